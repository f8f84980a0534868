// One open connection and what may still be believed of it.

import { setTimeout as delay } from 'node:timers/promises';
import { StoreFault } from '../port.ts';
import type { SqliteConnection } from './driver.ts';
import { causeOf, isBusy, isPoisonous } from './faults.ts';
import type { Place } from './place.ts';
import { prepareStatements, type Statements } from './statements.ts';

export class Handle {
  readonly file: string;
  readonly connection: SqliteConnection;
  readonly statements: Statements;
  readonly lockWaitMs: number;
  readonly #place: Place;
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
   */
  async snapshot<T>(read: () => T): Promise<T> {
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
