// Group commit: the changes of all callers of one turn of the event loop travel in one transaction, one fsync.
//
// There is no timer. `setImmediate` runs after everything that this turn had to do, so a lone caller waits for
// nobody and sixty-four callers share a commit; what arrives while a commit runs forms the next one. Answers of
// a destination come in over several turns: while each turn brings more callers, they are waited for a little.
//
// What is known after an error:
//   BEGIN: busy               nothing began; tried again, without blocking the loop, until `lockWaitMs` is over
//   BEGIN: anything else      nothing began: `not_stored`
//   a statement               the transaction is rolled back (SQLite has often done so itself): `not_stored`
//   a statement: I/O, damage  `unknown`, and the handle is poisoned
//   ROLLBACK or COMMIT        `unknown`, and the handle is poisoned: a commit that was reported as failed has
//                             been found present after opening again

import type { FrozenChange } from '../frozen-change.ts';
import { type ChangeResult, StoreFault } from '../port.ts';
import { causeOf, isBusy, isPoisonous } from './faults.ts';
import { type Handle, lockPauseMs } from './handle.ts';
import { Tenants } from './tenants.ts';
import { Numbers, writeChange } from './write-change.ts';

/**
 * Calls join a transaction until it has this many changes. At 25 to 45 µs each that keeps one transaction, for
 * which the loop stands still and other processes wait, near 20 ms.
 */
const CHANGES_PER_TRANSACTION = 512;

/** A turn that has only input to read takes tens of microseconds, a commit some hundreds. */
const GATHERING_TURNS_MAX = 4;

interface Call {
  readonly changes: readonly FrozenChange[];
  readonly since: number;
  readonly resolve: (results: readonly ChangeResult[]) => void;
  readonly reject: (fault: unknown) => void;
}

export class GroupCommit {
  readonly #handle: Handle;
  readonly #tenants: Tenants;
  #waiting: Call[] = [];
  #isScheduled = false;
  #onIdle: (() => void)[] = [];
  #commits = 0;

  constructor(handle: Handle, tenants: Tenants) {
    this.#handle = handle;
    this.#tenants = tenants;
  }

  get commits(): number {
    return this.#commits;
  }

  store(changes: readonly FrozenChange[]): Promise<readonly ChangeResult[]> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ changes, since: performance.now(), resolve, reject });
      if (!this.#isScheduled) this.#schedule();
    });
  }

  /** Resolves when every call made so far has its answer. */
  async idle(): Promise<void> {
    if (this.#isScheduled) await new Promise<void>((resolve) => this.#onIdle.push(resolve));
  }

  #schedule(pauseMs?: number): void {
    this.#isScheduled = true;
    if (pauseMs === undefined) this.#gather(1);
    else setTimeout(() => this.#turn(), pauseMs);
  }

  #gather(turn: number): void {
    const before = this.#waiting.length;
    setImmediate(() => {
      if (this.#waiting.length > before && turn < GATHERING_TURNS_MAX) this.#gather(turn + 1);
      else this.#turn();
    });
  }

  #turn(): void {
    const pauseMs = this.#runOne();
    if (this.#waiting.length > 0) {
      this.#schedule(pauseMs);
      return;
    }
    this.#isScheduled = false;
    for (const resolve of this.#onIdle.splice(0)) resolve();
  }

  /** One transaction. Gives the time to wait before the next, when the lock was not to be had. */
  #runOne(): number | undefined {
    try {
      this.#handle.assertUsable();
      this.#handle.assertInPlace();
      this.#handle.statements.beginImmediate.run();
    } catch (error) {
      if (!isBusy(error)) {
        if (isPoisonous(error)) this.#handle.poison();
        this.#refuse(
          this.#waiting.splice(0),
          error instanceof StoreFault ? error : this.#fault(error, 'not_stored'),
        );
        return undefined;
      }
      const now = performance.now();
      const isLate = (call: Call) => now - call.since >= this.#handle.lockWaitMs;
      if (this.#waiting.some(isLate)) {
        this.#refuse(this.#waiting.filter(isLate), this.#fault(error, 'not_stored'));
        this.#waiting = this.#waiting.filter((call) => !isLate(call));
      }
      return lockPauseMs();
    }

    const calls = this.#takeCalls();
    const results: ChangeResult[][] = [];
    try {
      const { statements } = this.#handle;
      const transaction = { next: new Numbers(statements), required: new Map<string, number>() };
      for (const { changes } of calls) {
        results.push(changes.map((change) => writeChange(statements, this.#tenants, transaction, change)));
      }
    } catch (error) {
      this.#refuse(calls, this.#fault(error, this.#undo(error)));
      return undefined;
    }
    try {
      this.#handle.statements.commit.run();
    } catch (error) {
      this.#undo(error);
      this.#handle.poison();
      this.#refuse(calls, this.#fault(error, 'unknown'));
      return undefined;
    }
    this.#commits += 1;
    for (const [index, call] of calls.entries()) call.resolve(results[index] as ChangeResult[]);
    return undefined;
  }

  #takeCalls(): readonly Call[] {
    let changes = 0;
    let taken = 0;
    for (const call of this.#waiting) {
      if (taken > 0 && changes + call.changes.length > CHANGES_PER_TRANSACTION) break;
      changes += call.changes.length;
      taken += 1;
    }
    return this.#waiting.splice(0, taken);
  }

  /** Rolls back what SQLite has not rolled back itself, and says what is then known. */
  #undo(error: unknown): 'not_stored' | 'unknown' {
    this.#tenants.forget();
    if (isPoisonous(error)) this.#handle.poison();
    try {
      // After SQLITE_FULL, for one, no transaction is left, and a ROLLBACK would itself be an error.
      if (this.#handle.connection.isTransaction) this.#handle.statements.rollback.run();
    } catch {
      this.#handle.poison();
    }
    return this.#handle.isPoisoned ? 'unknown' : 'not_stored';
  }

  #refuse(calls: readonly Call[], fault: StoreFault): void {
    for (const call of calls) call.reject(fault);
  }

  #fault(error: unknown, fate: 'not_stored' | 'unknown'): StoreFault {
    const known =
      fate === 'not_stored'
        ? 'Nothing of this call was stored.'
        : 'Whether this call was stored is not known: open the store again and read before anything is sent.';
    return new StoreFault(
      'ERR_STORE_UNAVAILABLE',
      `The store at ${this.#handle.file} could not be written: ${causeOf(error)}. ${known}`,
      { fate, cause: error },
    );
  }
}
