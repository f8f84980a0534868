// The queue as it is read: everything open, grouped by cause, with what became known of each cause since.

import { type CauseGroup, groupByCause, type Queued } from '../core/cause.ts';
import { idInstant } from '../core/ids.ts';
import type { Operation } from '../core/operation.ts';
import { type CauseClaim, CauseClaims } from './cause-claims.ts';
import type { EngineContext } from './context.ts';
import { asItWaits, type Holders } from './holders.ts';
import { asRecord, withDelivery } from './records.ts';

export interface QueueReading {
  readonly groups: readonly CauseGroup[];
  /** By cause; only those that count now. */
  readonly claims: ReadonlyMap<string, CauseClaim>;
  /** True where more is open than was read: counts are at least these. */
  readonly isCut: boolean;
}

const PAGE = 500;
const OPEN_MAX = 10_000;
const SETTLED_MAX = 5_000;
/** Who was caught by an obstacle may have been proposed some time before the first that is still open. */
const EARLIER_MS = 3_600_000;

export class Queue {
  readonly claims: CauseClaims;
  readonly #context: EngineContext;
  readonly #holders: Holders;

  constructor(context: EngineContext, holders: Holders) {
    this.#context = context;
    this.#holders = holders;
    this.claims = new CauseClaims(context);
  }

  async read(): Promise<QueueReading> {
    const { open, isCut } = await this.#open();
    const causes = groupByCause(open);
    const groups = groupByCause(open, await this.#settledSince(causes));
    const claims = await this.claims.of(groups.map(({ cause }) => cause.id));
    return { groups, claims, isCut };
  }

  /** The operation as the queue shows it, at its present version. */
  async queued(id: string): Promise<Queued | undefined> {
    const { store, tenant } = this.#context;
    const [record] = await store.read(tenant, [`op:${id}`]);
    if (record === undefined) return undefined;
    const { operation, version } = withDelivery(this.#context, asRecord(record));
    await this.#context.stops.refresh();
    return { operation: await this.#asItWaits(operation, new Map()), version };
  }

  /** Whether a process runs that can ask the destination. */
  isHeld(destination: string): Promise<boolean> {
    return this.#holders.isHeld(destination);
  }

  async #open(): Promise<{ readonly open: readonly Queued[]; readonly isCut: boolean }> {
    const { store, tenant } = this.#context;
    const held = new Map<string, boolean>();
    const open: Queued[] = [];
    await this.#context.stops.refresh();
    for (let after: string | undefined; ; ) {
      const rows = await store.live({ tenant, limit: PAGE, ...(after === undefined ? {} : { after }) });
      const records = await store.read(
        tenant,
        rows.map(({ stream }) => stream),
      );
      for (const record of records) {
        if (record === undefined) continue;
        const { operation, version } = withDelivery(this.#context, asRecord(record));
        open.push({ operation: await this.#asItWaits(operation, held), version });
      }
      after = rows.at(-1)?.order;
      if (rows.length < PAGE) return { open, isCut: false };
      if (open.length >= OPEN_MAX) return { open, isCut: true };
    }
  }

  #asItWaits(operation: Operation, held: Map<string, boolean>): Promise<Operation> {
    return asItWaits(operation, this.#context.stops, async (destination) => {
      const isHeld = held.get(destination) ?? (await this.#holders.isHeld(destination));
      held.set(destination, isHeld);
      return isHeld;
    });
  }

  /** What may have been found of causes that are about lost answers; nothing is read where there is none. */
  async #settledSince(causes: readonly CauseGroup[]): Promise<readonly Operation[]> {
    const { store, tenant } = this.#context;
    const begun = causes
      .filter(({ cause }) => cause.kind === 'no_answer' || cause.kind === 'gateway_ended')
      .map(({ since }) => since - EARLIER_MS);
    if (begun.length === 0) return [];
    const from = Math.min(...begun);
    const settled: Operation[] = [];
    for (let after: string | undefined; ; ) {
      const records = await store.streams({
        tenant,
        kind: 'op',
        newest: true,
        limit: PAGE,
        ...(after === undefined ? {} : { after }),
      });
      for (const record of records) {
        const { operation } = asRecord(record);
        if ((idInstant(operation.id) ?? 0) < from) return settled;
        if (operation.stage === 'closed') settled.push(operation);
      }
      after = records.at(-1)?.stream;
      if (records.length < PAGE || settled.length >= SETTLED_MAX) return settled;
    }
  }
}
