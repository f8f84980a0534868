// Group commit: the changes of all callers of one turn of the event loop travel in one transaction, and what arrives
// while one is under way forms the next. There is no timer.
//
// What is known after an error:
//   before COMMIT                    nothing was stored. A conflict, a deadlock, a race that was lost and a lost
//                                    connection are run anew; anything else is told as `not_stored`
//   COMMIT: 40001, 40P01             the same: the server has rolled back
//   COMMIT: anything else, no answer, an answer beside which the server warns (01000), our own deadline
//                                    the connection is thrown away, and the fate is read on a new one (writer.ts). Only
//                                    where that cannot be had is it `unknown`, and the store is poisoned

import type { FrozenChange } from '../frozen-change.ts';
import { type ChangeResult, StoreFault } from '../port.ts';
import { bucketOf, type Decided, decideBatch, whatToLookAt } from './batch.ts';
import { causeOf, DeadlineOver, endsConnection, isRetriable, sqlStateOf } from './faults.ts';
import type { Line } from './line.ts';
import type { Statements } from './statements.ts';
import { WARNING, type Writer } from './writer.ts';

/** Calls join a transaction until it has this many changes. */
const CHANGES_PER_TRANSACTION = 512;
/** A turn that has only input to read takes tens of microseconds, a commit some hundreds. */
const GATHERING_TURNS_MAX = 4;
/** Each try that fails means that another process has come further; this many say that something else is wrong. */
const TRIES_MAX = 100;
/** From this one on a try makes room for those that overtake it. */
const PATIENT_TRIES = 3;
const SETTLING_TRIES_MAX = 3;
const UNIQUE_VIOLATION = '23505';

interface Call {
  readonly changes: readonly FrozenChange[];
  readonly resolve: (results: readonly ChangeResult[]) => void;
  readonly reject: (fault: unknown) => void;
}

export interface GroupCommitOptions {
  readonly open: () => Promise<Line>;
  readonly statements: Statements;
  readonly writer: Writer;
  /** As it is told to people. */
  readonly place: string;
}

/** A transaction that another process has overtaken: it is run anew, and sees what the other did. */
class Overtaken extends Error {}

export class GroupCommit {
  readonly #options: GroupCommitOptions;
  #line: Line | undefined;
  #waiting: Call[] = [];
  #isRunning = false;
  #onIdle: (() => void)[] = [];
  #commits = 0;
  #isPoisoned = false;

  constructor(options: GroupCommitOptions, line: Line) {
    this.#options = options;
    this.#line = line;
  }

  get commits(): number {
    return this.#commits;
  }

  get isPoisoned(): boolean {
    return this.#isPoisoned;
  }

  store(changes: readonly FrozenChange[]): Promise<readonly ChangeResult[]> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ changes, resolve, reject });
      if (!this.#isRunning) {
        this.#isRunning = true;
        this.#gather(1);
      }
    });
  }

  /** Resolves when every call made so far has its answer. */
  async idle(): Promise<void> {
    if (this.#isRunning) await new Promise<void>((resolve) => this.#onIdle.push(resolve));
  }

  /** Once idle. */
  async end(): Promise<void> {
    const line = this.#line;
    this.#line = undefined;
    if (line === undefined || line.isLost) return;
    try {
      await this.#options.writer.leave(line, this.#options.statements);
    } catch {
      // The row stays, and is no harm.
    }
    await line.end();
  }

  #gather(turn: number): void {
    const before = this.#waiting.length;
    setImmediate(() => {
      if (this.#waiting.length > before && turn < GATHERING_TURNS_MAX) this.#gather(turn + 1);
      else void this.#runAll();
    });
  }

  async #runAll(): Promise<void> {
    while (this.#waiting.length > 0) {
      const calls = this.#takeCalls();
      try {
        const results = await this.#runOne(calls.flatMap(({ changes }) => changes));
        let at = 0;
        for (const { changes, resolve } of calls) {
          resolve(results.slice(at, at + changes.length));
          at += changes.length;
        }
      } catch (error) {
        for (const { reject } of calls) reject(error);
      }
    }
    this.#isRunning = false;
    for (const resolve of this.#onIdle.splice(0)) resolve();
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

  /** @throws {StoreFault} */
  async #runOne(changes: readonly FrozenChange[]): Promise<readonly ChangeResult[]> {
    for (let tries = 1; ; tries += 1) {
      if (this.#isPoisoned) throw poisoned(this.#options.place);
      try {
        const results = await this.#transact(changes);
        if (results !== undefined) return results;
      } catch (error) {
        if (error instanceof StoreFault) throw error;
        // The first statement after a pause is where a connection that has ended meanwhile is noticed.
        const isCut = endsConnection(error) && !(error instanceof DeadlineOver) && tries === 1;
        // Two that create one stream meet at whichever of its keys is written first.
        const isOvertaken = error instanceof Overtaken || sqlStateOf(error) === UNIQUE_VIOLATION;
        const mayGoOn = isOvertaken || isRetriable(error) || isCut;
        if (!mayGoOn || tries >= TRIES_MAX) throw this.#fault(error, 'not_stored');
      }
      if (tries >= PATIENT_TRIES) await pause(Math.random() * 10);
    }
  }

  /** `undefined`: it was not stored, though nothing is against it. Throws what came before COMMIT. */
  async #transact(changes: readonly FrozenChange[]): Promise<readonly ChangeResult[] | undefined> {
    const { statements, writer } = this.#options;
    if (this.#line?.isLost !== false) this.#line = await this.#options.open();
    const line = this.#line;
    const bucket = bucketOf((changes[0] as FrozenChange).tenant);
    const count = await writer.countIn(bucket, line, statements);
    let decided: Decided;
    try {
      await line.run({ text: 'BEGIN' });
      decided = await this.#decide(line, changes);
      if (decided.rows !== undefined) {
        const [counts] = await line.run(statements.of('write', ...decided.rows, bucket, writer.id, count));
        this.#assertWritten(decided, counts as readonly number[]);
      }
    } catch (error) {
      await line.rollBack();
      throw error;
    }
    return this.#commit(line, decided, { bucket, commits: count + 1 });
  }

  async #decide(line: Line, changes: readonly FrozenChange[]): Promise<Decided> {
    const { statements } = this.#options;
    const wanted = whatToLookAt(changes);
    const look = async () => decideBatch(changes, await line.run(statements.of('look', ...wanted)));
    const decided = await look();
    if (decided.unlockable.length > 0) {
      const places = decided.unlockable;
      const columns = [places.map(([tenant]) => bucketOf(tenant)), places.map(([tenant]) => tenant)];
      await line.run(
        statements.of(
          'holdPlace',
          ...columns,
          places.map(([, name]) => name),
        ),
      );
      return look();
    }
    // While it waited for a lock, what it looks for may have been stored together with what it has waited for.
    return decided.hasMissing ? look() : decided;
  }

  #assertWritten({ expected }: Decided, [created, moved, claimed, counted]: readonly number[]): void {
    if (counted !== 1) {
      this.#isPoisoned = true;
      throw this.#options.writer.setBack(this.#options.place);
    }
    if (created !== expected[0] || moved !== expected[1] || claimed !== expected[2]) {
      throw new Overtaken('another process was first');
    }
  }

  async #commit(
    line: Line,
    { results, rows }: Decided,
    count: { readonly bucket: number; readonly commits: number },
  ): Promise<readonly ChangeResult[] | undefined> {
    const { writer } = this.#options;
    let cause: unknown;
    try {
      const { isCommitted, notices } = await line.commit();
      if (!isCommitted) return undefined;
      if (!notices.includes(WARNING)) {
        if (rows !== undefined) writer.acknowledge(count);
        this.#commits += 1;
        return results;
      }
      cause = new Error('the server warned that a standby may not have what was committed');
    } catch (error) {
      if (isRetriable(error)) {
        await line.rollBack();
        return undefined;
      }
      cause = error;
    }
    line.lose();
    // Nothing was to be written: what was decided is decided anew.
    if (rows === undefined) return undefined;
    writer.doubt(count);
    if ((await this.#settle(cause)) === 'not_stored') return undefined;
    this.#commits += 1;
    return results;
  }

  /** @throws {StoreFault} of unknown fate, and poisons the store, where the fate cannot be read */
  async #settle(cause: unknown): Promise<'stored' | 'not_stored'> {
    const { writer, statements, place } = this.#options;
    for (let tries = 1; ; tries += 1) {
      try {
        this.#line = await this.#options.open();
        return await writer.settle(this.#line, statements, place);
      } catch (error) {
        const mayGoOn = isRetriable(error) || sqlStateOf(error) === '55P03';
        if (mayGoOn && tries < SETTLING_TRIES_MAX) continue;
        this.#isPoisoned = true;
        throw this.#fault(cause, 'unknown');
      }
    }
  }

  #fault(error: unknown, fate: 'not_stored' | 'unknown'): StoreFault {
    const known =
      fate === 'not_stored'
        ? 'Nothing of this call was stored.'
        : 'Whether this call was stored is not known: open the store again and read before anything is sent.';
    return new StoreFault(
      'ERR_STORE_UNAVAILABLE',
      `The store at ${this.#options.place} could not be written: ${causeOf(error)}. ${known}`,
      { fate, cause: error },
    );
  }
}

export function poisoned(place: string): StoreFault {
  return new StoreFault(
    'ERR_STORE_POISONED',
    `The store at ${place} was not asked: an earlier error left its connection in doubt. ` +
      'Open it again, and read what was being stored before anything is sent.',
    { fate: 'not_stored' },
  );
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, ms);
  });
}
