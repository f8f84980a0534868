// The stops that are in force, as this process knows them: one row for all of them, which every commit that precedes a
// send requires to be unchanged. A process that has not heard of a stop has its commit refused, reads, and decides anew.

import { type StopInForce, type Stoppable, stopOver } from '../core/stop.ts';
import type { Requirement, Store, StreamId } from '../store/port.ts';

export const STOPS_STREAM: StreamId = 'stops:now';

export interface StopsState {
  readonly stops: readonly StopInForce[];
}

export class StopsInForce {
  readonly #store: Store;
  readonly #tenant: string;
  #version = 0;
  #stops: readonly StopInForce[] = [];
  /** Told when another list is known: a stop has come, or was lifted. */
  onChanged: (stops: readonly StopInForce[]) => void = () => {};

  constructor(store: Store, tenant: string) {
    this.#store = store;
    this.#tenant = tenant;
  }

  /** What a commit requires after which something leaves. */
  get requirement(): Requirement {
    return { stream: STOPS_STREAM, version: this.#version };
  }

  get version(): number {
    return this.#version;
  }

  get all(): readonly StopInForce[] {
    return this.#stops;
  }

  /** From memory, which the commit's requirement makes good: it is asked on the hot path. */
  over(operation: Stoppable): StopInForce | undefined {
    return stopOver(this.#stops, operation);
  }

  /** @throws {StoreFault} */
  async refresh(): Promise<void> {
    const [record] = await this.#store.read(this.#tenant, [STOPS_STREAM]);
    if (record !== undefined) this.learn(record.version, record.state as unknown as StopsState);
  }

  learn(version: number, { stops }: StopsState): void {
    if (version <= this.#version) return;
    this.#version = version;
    this.#stops = stops;
    this.onChanged(stops);
  }
}

/** The row of one stop: who ordered it, what was out, how far it has come. */
export function stopStream(id: string): StreamId {
  return `stop:${id}`;
}
