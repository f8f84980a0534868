// The stops that are in force, as this process knows them: one row for all of them, which every commit that precedes a
// send requires to be unchanged. A process that has not heard of a stop has its commit refused, reads, and decides anew.

import { isCovered, type StopInForce, type Stoppable, stopOver } from '../core/stop.ts';
import type { Requirement, Store, StreamId } from '../store/port.ts';

export const STOPS_STREAM: StreamId = 'stops:now';

/** Within the seconds for which an attempt may still leave, hardly more than a few come. */
const CAME_MAX = 256;

export interface StopsState {
  readonly stops: readonly StopInForce[];
}

export class StopsInForce {
  readonly #store: Store;
  readonly #tenant: string;
  #version = 0;
  #stops: readonly StopInForce[] = [];
  /** Those that came last, also when they are lifted by now, each with the version that it came with. */
  #came: readonly { readonly version: number; readonly stop: StopInForce }[] = [];
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

  /** Whether one has come over it since that version: what had not left by then does not leave when it is lifted. */
  hasComeOver(operation: Stoppable, since: number): boolean {
    if (since === this.#version) return false;
    return this.#came.some(({ stop, version }) => version > since && isCovered(stop.scope, operation));
  }

  /** @throws {StoreFault} */
  async refresh(): Promise<void> {
    const [record] = await this.#store.read(this.#tenant, [STOPS_STREAM]);
    if (record !== undefined) this.learn(record.version, record.state as unknown as StopsState);
  }

  learn(version: number, { stops }: StopsState): void {
    if (version <= this.#version) return;
    const known = new Set(this.#stops.map(({ id }) => id));
    const added = stops.filter(({ id }) => !known.has(id)).map((stop) => ({ version, stop }));
    this.#came = [...this.#came, ...added].slice(-CAME_MAX);
    this.#version = version;
    this.#stops = stops;
    this.onChanged(stops);
  }
}

/** The row of one stop: who ordered it, what was out, how far it has come. */
export function stopStream(id: string): StreamId {
  return `stop:${id}`;
}
