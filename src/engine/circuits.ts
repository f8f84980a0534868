// The circuits of this process's destinations: shared by all processes through the store, and written when one opens,
// is tried or closes, never for an answer that changes nothing.

import {
  type Circuit,
  CLOSED_CIRCUIT,
  closed,
  FAILURES_MAX,
  failedAgain,
  opened,
  tried,
} from '../core/circuit.ts';
import type { Reply } from '../destination/port.ts';
import { type Json, StoreFault } from '../store/port.ts';
import type { EngineContext } from './context.ts';
import { describe } from './reports.ts';

interface Known {
  readonly circuit: Circuit;
  readonly version: number;
}

/** How long one that waits may be told of a circuit from memory, where nothing says that it has changed. */
const ANEW_MS = 1_000;

export class Circuits {
  readonly #context: EngineContext;
  readonly #known = new Map<string, Known>();
  /** Failures in a row, by destination, that this process has seen. */
  readonly #failures = new Map<string, number>();
  /** Called with a destination that answers again. */
  onClosed: (destination: string) => void = () => {};

  constructor(context: EngineContext) {
    this.#context = context;
  }

  /** From memory: it is asked on the hot path. */
  isClosed(destination: string): boolean {
    return this.#known.get(destination)?.circuit.standing !== 'open';
  }

  /** Whether an answer of it would change nothing: nearly always, and then nothing is waited for. */
  isUnremarkable(destination: string): boolean {
    return this.isClosed(destination) && !this.#failures.has(destination);
  }

  /** How the destination stands, in a sentence's second half; `undefined` while it answers. */
  words(destination: string): string | undefined {
    const circuit = this.#known.get(destination)?.circuit;
    if (circuit?.standing !== 'open') return undefined;
    return `it has not answered ${circuit.failures} times in a row`;
  }

  /** Reads those of this process anew: another process may have opened or closed one. @throws {StoreFault} */
  async refresh(): Promise<void> {
    const { destinations, store, tenant } = this.#context;
    const names = [...destinations.keys()];
    const records = await store.read(tenant, names.map(streamOf));
    for (const [index, name] of names.entries()) {
      const record = records[index];
      if (record === undefined) continue;
      this.#learn(name, { circuit: record.state as unknown as Circuit, version: record.version });
    }
  }

  /**
   * Whether something may be sent or asked now. Of an open circuit one is let through at a time, and its answer is the
   * word; `undefined` means that it may go, else the instant from which to ask again.
   */
  async closedUntil(destination: string): Promise<number | undefined> {
    if (this.isClosed(destination)) return undefined;
    const { environment, worker } = this.#context;
    const at = environment.now();
    const tryAt = this.#known.get(destination)?.circuit.tryAt ?? 0;
    if (at < tryAt) return tryAt;
    const isMine = await this.#change(destination, (circuit) => tried(circuit, worker, at));
    const circuit = this.#known.get(destination)?.circuit ?? CLOSED_CIRCUIT;
    if (isMine || circuit.standing === 'closed') return undefined;
    return Math.max(circuit.tryAt, at + ANEW_MS);
  }

  /** A whole answer came, whatever it says. */
  async answered(destination: string): Promise<void> {
    this.#failures.delete(destination);
    if (this.isClosed(destination)) return;
    await this.#changeSafely(destination, (circuit) => closed(circuit, this.#context.environment.now()));
  }

  /** No answer came: it could not be reached, or said nothing in its time. */
  async failed(destination: string): Promise<void> {
    const at = this.#context.environment.now();
    if (!this.isClosed(destination)) {
      await this.#changeSafely(destination, (circuit) =>
        circuit.trying?.worker === this.#context.worker ? failedAgain(circuit, at) : circuit,
      );
      return;
    }
    const failures = (this.#failures.get(destination) ?? 0) + 1;
    this.#failures.set(destination, failures);
    if (failures < FAILURES_MAX) return;
    this.#failures.delete(destination);
    await this.#changeSafely(destination, (circuit) => opened(circuit, at));
  }

  /** A named person says that it answers again. `false` where it was closed. @throws {StoreFault} */
  async close(destination: string, by: string): Promise<boolean> {
    return this.#change(destination, (circuit) => closed(circuit, this.#context.environment.now(), by));
  }

  /** How the destination stands; `undefined` of one whose circuit was never open. @throws {StoreFault} */
  async of(destination: string): Promise<Circuit | undefined> {
    const { store, tenant } = this.#context;
    const [record] = await store.read(tenant, [streamOf(destination)]);
    return record?.state as unknown as Circuit | undefined;
  }

  /** Those that are open, of all destinations. @throws {StoreFault} */
  async list(): Promise<readonly (Circuit & { readonly destination: string })[]> {
    const { store, tenant } = this.#context;
    const records = await store.streams({ tenant, kind: 'circuit', limit: LISTED_MAX });
    return records
      .map(({ state, stream }) => ({
        ...(state as unknown as Circuit),
        destination: stream.slice('circuit:'.length),
      }))
      .filter(({ standing }) => standing === 'open');
  }

  async #changeSafely(destination: string, next: (circuit: Circuit) => Circuit | undefined): Promise<void> {
    try {
      await this.#change(destination, next);
    } catch (cause) {
      if (!(cause instanceof StoreFault)) throw cause;
      this.#context.report(`How ${destination} answers could not be recorded: ${describe(cause)}`);
    }
  }

  /** True where this call has changed it. */
  async #change(destination: string, next: (circuit: Circuit) => Circuit | undefined): Promise<boolean> {
    const { environment, store, tenant } = this.#context;
    const stream = streamOf(destination);
    for (;;) {
      const [record] = await store.read(tenant, [stream]);
      const circuit = (record?.state as unknown as Circuit | undefined) ?? CLOSED_CIRCUIT;
      const version = record?.version ?? 0;
      this.#learn(destination, { circuit, version });
      const after = next(circuit);
      if (after === undefined || after === circuit) return false;
      const state = after as unknown as Json;
      const write = { stream, expectedVersion: version, events: [state], state };
      const [result] = await store.commit([{ tenant, at: environment.now(), writes: [write] }]);
      if (result?.outcome !== 'stored') continue;
      this.#learn(destination, { circuit: after, version: version + 1 });
      return true;
    }
  }

  #learn(destination: string, known: Known): void {
    const before = this.#known.get(destination);
    if (before !== undefined && before.version >= known.version) return;
    this.#known.set(destination, known);
    if (before?.circuit.standing === 'open' && known.circuit.standing === 'closed')
      this.onClosed(destination);
  }
}

/** What stands before a destination answers in its place while it is away. */
export function isItsOwn({ code }: Reply): boolean {
  return code !== 502 && code !== 503 && code !== 504;
}

const LISTED_MAX = 1_000;

function streamOf(destination: string): string {
  return `circuit:${destination}`;
}
