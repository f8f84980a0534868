// What the ledgers of one process know together: who waits for news of an operation, and which answers were given.

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

/** Answers on their way to their callers. Lost with the process: then an equal call is given the result again. */
export interface AnswersOut {
  /** Results that were handed to a call and whose delivery is not told yet; the next caller is told of them. */
  readonly given: Map<string, OperationRecord>;
  /** Delivered, and not recorded as such yet; with the operation as it was answered, where it is at hand. */
  readonly delivered: Map<string, OperationRecord | undefined>;
}

export function noAnswersOut(): AnswersOut {
  return { given: new Map(), delivered: new Map() };
}
