// Who in this process waits for news of an operation.

import type { OperationRecord } from './records.ts';

type Listener = (record: OperationRecord) => void;

export class Waiters {
  readonly #listeners = new Map<string, Set<Listener>>();

  /** Operations that somebody waits for. */
  get operations(): Iterable<string> {
    return this.#listeners.keys();
  }

  get isEmpty(): boolean {
    return this.#listeners.size === 0;
  }

  /** Tells everybody who waits for this operation. */
  publish(record: OperationRecord): void {
    const listeners = this.#listeners.get(record.operation.id);
    if (listeners === undefined) return;
    for (const listener of [...listeners]) listener(record);
  }

  /** Returns the way to stop listening. */
  listen(operation: string, listener: Listener): () => void {
    const listeners = this.#listeners.get(operation) ?? new Set<Listener>();
    this.#listeners.set(operation, listeners);
    listeners.add(listener);
    return () => {
      listeners.delete(listener);
      if (listeners.size === 0 && this.#listeners.get(operation) === listeners)
        this.#listeners.delete(operation);
    };
  }
}
