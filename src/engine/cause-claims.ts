// Who works on a cause: one person at a time, until an instant, so that nobody has to remember to let go.

import type { Json } from '../store/port.ts';
import type { EngineContext } from './context.ts';

export interface CauseClaim {
  readonly by: string;
  readonly at: number;
  /** From this instant on it counts no more. */
  readonly until: number;
  /** Who handed it over, where somebody did. */
  readonly from?: string;
}

export type ClaimResult =
  | { readonly claimed: true; readonly claim: CauseClaim }
  /** `held`: somebody else has it. `not_yours`: only who has it may hand it over or let it go. */
  | {
      readonly claimed: false;
      readonly why: 'held' | 'not_yours';
      readonly claim: CauseClaim | undefined;
    };

export class CauseClaims {
  readonly #context: EngineContext;

  constructor(context: EngineContext) {
    this.#context = context;
  }

  /** The claims that count now, by cause. */
  async of(causes: readonly string[]): Promise<ReadonlyMap<string, CauseClaim>> {
    const { environment, store, tenant } = this.#context;
    const records = await store.read(tenant, causes.map(streamOf));
    const now = environment.now();
    return new Map(
      causes.flatMap((cause, index) => {
        const claim = inForce(records[index]?.state, now);
        return claim === undefined ? [] : [[cause, claim] as const];
      }),
    );
  }

  /** Taken, or held for longer by who has it already. */
  claim(cause: string, by: string, forMs: number): Promise<ClaimResult> {
    return this.#change(cause, (present, at) =>
      present === undefined || present.by === by ? { by, at, until: at + forMs } : 'held',
    );
  }

  /** Who has it gives it to somebody else, with a time of their own. */
  handOver(cause: string, from: string, to: string, forMs: number): Promise<ClaimResult> {
    return this.#change(cause, (present, at) =>
      present?.by === from ? { by: to, at, until: at + forMs, from } : 'not_yours',
    );
  }

  release(cause: string, by: string): Promise<ClaimResult> {
    return this.#change(cause, (present, at) =>
      present?.by === by ? { ...present, at, until: at } : 'not_yours',
    );
  }

  async #change(
    cause: string,
    next: (present: CauseClaim | undefined, at: number) => CauseClaim | 'held' | 'not_yours',
  ): Promise<ClaimResult> {
    const { environment, store, tenant } = this.#context;
    const stream = streamOf(cause);
    for (;;) {
      const [record] = await store.read(tenant, [stream]);
      const at = environment.now();
      const present = inForce(record?.state, at);
      const claim = next(present, at);
      if (typeof claim === 'string') return { claimed: false, why: claim, claim: present };
      const write = {
        stream,
        expectedVersion: record?.version ?? 0,
        events: [{ type: 'claimed', ...claim }] as unknown as readonly Json[],
        state: claim as unknown as Json,
      };
      const [result] = await store.commit([{ tenant, at, writes: [write] }]);
      if (result?.outcome === 'stored') return { claimed: true, claim };
    }
  }
}

function streamOf(cause: string): string {
  return `claim:${cause}`;
}

function inForce(state: Json | undefined, now: number): CauseClaim | undefined {
  const claim = state as unknown as CauseClaim | undefined;
  return claim === undefined || claim.until <= now ? undefined : claim;
}
