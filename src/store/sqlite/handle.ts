// One open connection and what may still be believed of it.

import { setTimeout as delay } from 'node:timers/promises';
import { StoreFault } from '../port.ts';
import type { SqliteConnection } from './driver.ts';
import { causeOf, isBusy, isPoisonous } from './faults.ts';
import type { Place } from './place.ts';
import { prepareStatements, type Statements } from './statements.ts';

interface Reading {
  readonly read: () => unknown;
  readonly resolve: (answer: unknown) => void;
  readonly reject: (fault: unknown) => void;
}

export class Handle {
  readonly file: string;
  readonly connection: SqliteConnection;
  readonly statements: Statements;
  readonly lockWaitMs: number;
  readonly #place: Place;
  readonly #readings: Reading[] = [];
  #state: 'open' | 'poisoned' | 'closed' = 'open';

  constructor(options: {
    readonly file: string;
    readonly connection: SqliteConnection;
    readonly lockWaitMs: number;
    readonly place: Place;
  }) {
    this.file = options.file;
    this.connection = options.connection;
    this.lockWaitMs = options.lockWaitMs;
    this.#place = options.place;
    this.statements = prepareStatements(options.connection);
  }

  get isPoisoned(): boolean {
    return this.#state === 'poisoned';
  }

  /** @throws {StoreFault} when the handle is poisoned or closed. Nothing was asked of the engine. */
  assertUsable(): void {
    if (this.#state === 'poisoned') {
      throw new StoreFault(
        'ERR_STORE_POISONED',
        `The store at ${this.file} was not asked: an earlier error left its connection in doubt. ` +
          'Open it again, and read what was being stored before anything is sent.',
        { fate: 'not_stored' },
      );
    }
    if (this.#state === 'closed') {
      throw new StoreFault(
        'ERR_STORE_UNAVAILABLE',
        `The store at ${this.file} was not asked: it is closed.`,
        {
          fate: 'not_stored',
        },
      );
    }
  }

  /** @throws {StoreFault} when the path no longer leads to the open file; the handle is poisoned then. */
  assertInPlace(): void {
    try {
      this.#place.assertSame();
    } catch (error) {
      this.poison();
      throw error;
    }
  }

  poison(): void {
    this.#state = 'poisoned';
  }

  close(): void {
    if (this.#state === 'closed') return;
    this.#state = 'closed';
    this.connection.close();
  }

  /**
   * Runs one reading as a single snapshot: what one call answers was true at one moment, also while another
   * process commits. `read` does not wait, so no transaction stays open across turns of the event loop.
   *
   * Readings that are asked for one after another, as when a group commit has answered its callers, share a
   * snapshot: to open and close one costs three times what a row costs.
   */
  snapshot<T>(read: () => T): Promise<T> {
    return new Promise((resolve, reject) => {
      this.#readings.push({ read, resolve: resolve as (answer: unknown) => void, reject });
      if (this.#readings.length === 1) queueMicrotask(() => this.#readTogether());
    });
  }

  #readTogether(): void {
    const readings = this.#readings.splice(0);
    // One alone, or one that failed in company, waits for its own lock and fails for itself.
    if (readings.length === 1 || !this.#tryTogether(readings)) {
      for (const { read, resolve, reject } of readings) this.#readAlone(read).then(resolve, reject);
    }
  }

  #tryTogether(readings: readonly Reading[]): boolean {
    if (this.#state !== 'open') return false;
    let answers: readonly unknown[];
    try {
      this.statements.begin.run();
      answers = readings.map(({ read }) => read());
      this.statements.commit.run();
    } catch (error) {
      this.#endReading(error);
      if (!this.isPoisoned) return false;
      for (const { reject } of readings) reject(this.#readFault(error));
      return true;
    }
    for (const [index, { resolve }] of readings.entries()) resolve(answers[index]);
    return true;
  }

  async #readAlone<T>(read: () => T): Promise<T> {
    const since = performance.now();
    for (;;) {
      this.assertUsable();
      try {
        this.statements.begin.run();
        const answer = read();
        this.statements.commit.run();
        return answer;
      } catch (error) {
        this.#endReading(error);
        if (!isBusy(error)) throw this.#readFault(error);
        if (performance.now() - since >= this.lockWaitMs) throw this.#readFault(error);
        await delay(lockPauseMs());
      }
    }
  }

  #endReading(error: unknown): void {
    if (isPoisonous(error)) this.poison();
    try {
      if (this.connection.isTransaction) this.statements.rollback.run();
    } catch {
      this.poison();
    }
  }

  #readFault(error: unknown): StoreFault {
    return new StoreFault(
      'ERR_STORE_UNAVAILABLE',
      `The store at ${this.file} could not be read: ${causeOf(error)}.`,
      { fate: 'not_stored', cause: error },
    );
  }
}

/**
 * How long to leave the lock alone before asking again. SQLite's lock has no queue: who asks at the moment at
 * which it is free gets it. A random pause keeps two processes from asking in step.
 */
export function lockPauseMs(): number {
  return 1 + Math.random() * 4;
}
