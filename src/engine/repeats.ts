// How often equal calls were answered with an operation in place of making another: counted beside the operations, in
// streams of their own, and written down a little later. Losing a count loses a figure of a report, nothing else.

import { type Json, StoreFault } from '../store/port.ts';
import type { EngineContext } from './context.ts';

export interface RepeatCount {
  readonly operation: string;
  readonly count: number;
  readonly lastAt: number;
}

const FLUSH_MS = 200;
const TRIES_MAX = 5;

export class Repeats {
  readonly #context: EngineContext;
  #pending = new Map<string, number>();
  #cancelTimer: (() => void) | undefined;

  constructor(context: EngineContext) {
    this.#context = context;
  }

  caught(operation: string): void {
    this.#pending.set(operation, (this.#pending.get(operation) ?? 0) + 1);
    this.#cancelTimer ??= this.#context.environment.after(FLUSH_MS, () => {
      this.#cancelTimer = undefined;
      void this.flush();
    });
  }

  async flush(): Promise<void> {
    this.#cancelTimer?.();
    this.#cancelTimer = undefined;
    const pending = this.#pending;
    this.#pending = new Map();
    for (const [operation, count] of pending) {
      try {
        await this.#add(operation, count);
      } catch (cause) {
        if (!(cause instanceof StoreFault)) throw cause;
      }
    }
  }

  async of(operations: readonly string[]): Promise<readonly RepeatCount[]> {
    const { store, tenant } = this.#context;
    const records = await store.read(tenant, operations.map(streamOfRepeats));
    return records.flatMap((record) =>
      record === undefined ? [] : [record.state as unknown as RepeatCount],
    );
  }

  async #add(operation: string, more: number): Promise<void> {
    const { environment, store, tenant } = this.#context;
    const stream = streamOfRepeats(operation);
    for (let tries = 0; tries < TRIES_MAX; tries += 1) {
      const [record] = await store.read(tenant, [stream]);
      const at = environment.now();
      const before = record?.state as unknown as RepeatCount | undefined;
      const state = { operation, count: (before?.count ?? 0) + more, lastAt: at };
      const write = { stream, expectedVersion: record?.version ?? 0, events: [], state: state as Json };
      const [result] = await store.commit([{ tenant, at, writes: [write] }]);
      if (result?.outcome === 'stored') return;
    }
  }
}

function streamOfRepeats(operation: string): string {
  return `repeat:${operation}`;
}
