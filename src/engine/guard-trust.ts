// Which tools' guards are counted on no longer: a destination that has passed over a key once is not trusted with the next
// repeat, until a named person says that it counts again (S34). Trust is only ever lowered by what was seen.

import type { Strength } from '../core/authority.ts';
import type { Json, StreamRecord } from '../store/port.ts';
import { StoreFault } from '../store/port.ts';
import type { EngineContext } from './context.ts';
import { describe } from './reports.ts';

/** `not_proven`: a reply lacked what shows that the guard was honoured. `two_records`: a look-up found more than one. */
export type LostTrust = 'not_proven' | 'two_records';

export interface GuardStanding {
  readonly destination: string;
  readonly tool: string;
  readonly because: LostTrust;
  /** The operation at which it was seen. */
  readonly operation: string;
  readonly at: number;
  readonly restored?: { readonly by: string; readonly at: number; readonly strength: Strength };
}

const LISTED_MAX = 1_000;

export class GuardTrust {
  readonly #context: EngineContext;

  constructor(context: EngineContext) {
    this.#context = context;
  }

  /** @throws {StoreFault} */
  async isLost(destination: string, tool: string): Promise<boolean> {
    const standing = (await this.#read(destination, tool))?.state as GuardStanding | undefined;
    return standing !== undefined && standing.restored === undefined;
  }

  /** Recorded once; a store that fails is reported, and the next repeat that goes wrong says so again. */
  async lower(standing: Omit<GuardStanding, 'at' | 'restored'>): Promise<void> {
    const at = this.#context.environment.now();
    try {
      for (;;) {
        const record = await this.#read(standing.destination, standing.tool);
        const present = record?.state as GuardStanding | undefined;
        if (present !== undefined && present.restored === undefined) return;
        if (await this.#write(record, { ...standing, at }, { type: 'lowered', ...standing })) break;
      }
      this.#context.report(
        `${standing.destination} has passed over a key of ${standing.tool} (${standing.operation}): repeats of it are no longer made by themselves.`,
      );
    } catch (cause) {
      if (!(cause instanceof StoreFault)) throw cause;
      this.#context.report(`That a key was passed over could not be recorded: ${describe(cause)}`);
    }
  }

  /** A named person's word. `false` where nothing was lost. @throws {StoreFault} */
  async restore(destination: string, tool: string, by: string, strength: Strength): Promise<boolean> {
    for (;;) {
      const record = await this.#read(destination, tool);
      const present = record?.state as GuardStanding | undefined;
      if (record === undefined || present === undefined || present.restored !== undefined) return false;
      const restored = { by, at: this.#context.environment.now(), strength };
      if (await this.#write(record, { ...present, restored }, { type: 'restored', ...restored })) return true;
    }
  }

  /** Those that are lost now. @throws {StoreFault} */
  async list(): Promise<readonly GuardStanding[]> {
    const { store, tenant } = this.#context;
    const records = await store.streams({ tenant, kind: 'guard', limit: LISTED_MAX });
    return records
      .map(({ state }) => state as unknown as GuardStanding)
      .filter((standing) => standing.restored === undefined);
  }

  async #read(destination: string, tool: string): Promise<StreamRecord | undefined> {
    const [record] = await this.#context.store.read(this.#context.tenant, [streamOf(destination, tool)]);
    return record;
  }

  async #write(
    record: StreamRecord | undefined,
    state: GuardStanding,
    event: { readonly [member: string]: Json },
  ): Promise<boolean> {
    const { environment, store, tenant } = this.#context;
    const stream = record?.stream ?? streamOf(state.destination, state.tool);
    const [result] = await store.commit([
      {
        tenant,
        at: environment.now(),
        writes: [
          {
            stream,
            expectedVersion: record?.version ?? 0,
            events: [event],
            state: state as unknown as Json,
          },
        ],
      },
    ]);
    return result?.outcome === 'stored';
  }
}

function streamOf(destination: string, tool: string): string {
  return `guard:${destination}/${tool}`;
}
