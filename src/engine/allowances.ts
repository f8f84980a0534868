// Rate and concurrency of a destination, kept in the ledger for all processes together. A rate is leased in slices, so
// that not every write asks the store; how many writes are out is counted from what is open, under a row that every
// claim of that destination moves on, so that two processes never both take the last place.

import { type Allowance, leased, type RateWindow, windowAt } from '../core/allowance.ts';
import type { Json, StreamWrite } from '../store/port.ts';
import type { EngineContext } from './context.ts';

interface Slice {
  readonly beganAt: number;
  left: number;
}

/** Another claim has the place that was there. */
export class NoPlace extends Error {
  override readonly name = 'NoPlace';
}

export class Allowances {
  readonly #context: EngineContext;
  readonly #slices = new Map<string, Slice>();
  /** Claims of one process take their turns, so that they do not overtake each other in the store. */
  readonly #turns = new Map<string, Promise<void>>();

  constructor(context: EngineContext) {
    this.#context = context;
  }

  /** Takes one write of the rate; else the instant from which there are new ones. @throws {StoreFault} */
  async take(destination: string, { rate }: Allowance): Promise<number | undefined> {
    if (rate === undefined) return undefined;
    const { environment, store, tenant } = this.#context;
    const stream = `rate:${destination}`;
    for (;;) {
      const at = environment.now();
      const beganAt = windowAt(rate.perMs, at);
      const own = this.#slices.get(destination);
      if (own?.beganAt === beganAt && own.left > 0) {
        own.left -= 1;
        return undefined;
      }
      const [record] = await store.read(tenant, [stream]);
      const lease = leased(record?.state as unknown as RateWindow | undefined, rate, at);
      if (lease === undefined) return beganAt + rate.perMs;
      const state = lease.window as unknown as Json;
      const write = { stream, expectedVersion: record?.version ?? 0, events: [], state };
      const [result] = await store.commit([{ tenant, at, writes: [write] }]);
      if (result?.outcome === 'stored') this.#slices.set(destination, { beganAt, left: lease.slice });
    }
  }

  /** Runs a claim when those before it are through; without a bound of concurrency, at once. */
  async inTurn<Result>(
    destination: string,
    { concurrency }: Allowance,
    claim: () => Promise<Result>,
  ): Promise<Result> {
    if (concurrency === undefined) return claim();
    const before = this.#turns.get(destination) ?? Promise.resolve();
    const result = before.then(claim);
    const ended = result.then(
      () => {},
      () => {},
    );
    this.#turns.set(destination, ended);
    try {
      return await result;
    } finally {
      if (this.#turns.get(destination) === ended) this.#turns.delete(destination);
    }
  }

  /** The write that a claim makes beside its own: it stands only while no other claim came between. @throws {NoPlace} */
  async place(destination: string, concurrency: number): Promise<StreamWrite> {
    const { environment, store, tenant } = this.#context;
    const stream = `places:${destination}`;
    // The row before the count: who claims between the two moves it on.
    const [record] = await store.read(tenant, [stream]);
    const query = { tenant, queues: [destination], stages: ['sending'], limit: concurrency };
    if ((await store.live(query)).length >= concurrency) throw new NoPlace();
    const state = { at: environment.now() };
    return { stream, expectedVersion: record?.version ?? 0, events: [], state };
  }

  /** Who may have waited for the place that is free now, in order of arrival. @throws {StoreFault} */
  async waiting(destination: string): Promise<readonly string[]> {
    const { store, tenant } = this.#context;
    const rows = await store.live({ tenant, queues: [destination], stages: ['ready'], limit: NUDGED_MAX });
    return rows.map(({ stream }) => stream.slice('op:'.length));
  }
}

const NUDGED_MAX = 3;
