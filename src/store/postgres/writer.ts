// Who writes: a name that one open store has on the server, with the number of transactions that it has committed. By it
// a transaction whose COMMIT was not answered is found again on a new connection, and other writers notice its commits.
//
// Each transaction counts its writer's row up by one, and so holds the lock of that row until it has ended. Who gets the
// lock on a new connection knows that the transaction in doubt has ended, and by the number whether it was committed.
// What settles the doubt is itself a commit: where a standby must confirm, it has then confirmed the earlier one as well.

import { randomBytes } from 'node:crypto';
import { StoreFault } from '../port.ts';
import { DoubtfulCommit } from './faults.ts';
import type { Line } from './line.ts';
import type { Statements } from './statements.ts';

interface Count {
  readonly bucket: number;
  readonly commits: number;
}

/** A server says so beside its answer to COMMIT: what follows is that the commit may be on this machine alone. */
export const WARNING = '01000';

/** Kept by whoever opens a store again, so that a doubt outlives the store that had it. */
export class Writer {
  readonly id = randomBytes(12).toString('hex');
  /** By bucket, as acknowledged. Numbers begin anywhere, so that two writers are not mistaken for one another. */
  readonly #commits = new Map<number, number>();
  #doubt: Count | undefined;
  #isSetBack = false;
  #ledger: string | undefined;

  /** Whether it has worked on a ledger, which then must still be there. */
  get hasLedger(): boolean {
    return this.#ledger !== undefined;
  }

  /** @throws {StoreFault} for another ledger than the one it has worked on */
  meet(ledger: string, place: string): void {
    this.#ledger ??= ledger;
    if (ledger !== this.#ledger) throw this.setBack(place);
  }

  /** The number that the writer's row has now. The row is made where there is none yet. */
  async countIn(bucket: number, line: Line, statements: Statements): Promise<number> {
    const known = this.#commits.get(bucket);
    if (known !== undefined) return known;
    const first = randomBytes(4).readUInt32BE(0);
    await line.run(statements.of('addWriter', bucket, this.id, first));
    // A row that was made by a call whose answer was lost has another number.
    const [row] = await line.run(statements.of('lockWriter', bucket, this.id));
    const commits = row?.[0] as number;
    this.#commits.set(bucket, commits);
    return commits;
  }

  acknowledge({ bucket, commits }: Count): void {
    this.#commits.set(bucket, commits);
  }

  /** `commits` is the number that the row has if the transaction was committed. */
  doubt(count: Count): void {
    this.#doubt = count;
  }

  /**
   * On a new connection: whether the transaction in doubt was committed. It cannot be any more once this has answered.
   * @throws pg's own error, or `DeadlineOver`, while that cannot be told
   */
  async settle(line: Line, statements: Statements, place: string): Promise<'stored' | 'not_stored'> {
    if (this.#isSetBack) throw this.setBack(place);
    const doubt = this.#doubt;
    if (doubt === undefined) return 'not_stored';
    const { bucket, commits } = doubt;
    await line.run({ text: 'BEGIN' });
    try {
      const [row] = await line.run(statements.of('lockWriter', bucket, this.id));
      const found = row?.[0] as number | undefined;
      if (found !== commits && found !== commits - 1) throw this.setBack(place);
      await line.run(statements.of('settleWriter', bucket, this.id));
      const { isCommitted, notices } = await line.commit();
      if (!isCommitted || notices.includes(WARNING)) {
        throw new DoubtfulCommit('the server does not confirm that its standby has what was committed');
      }
      this.#commits.set(bucket, found);
      this.#doubt = undefined;
      return found === commits ? 'stored' : 'not_stored';
    } catch (error) {
      await line.rollBack();
      throw error;
    }
  }

  /** Leaves no row behind; nothing is lost where that does not succeed. */
  async leave(line: Line, statements: Statements): Promise<void> {
    if (this.#isSetBack || this.#doubt !== undefined || this.#commits.size === 0) return;
    await line.run(statements.of('removeWriter', this.id));
    this.#commits.clear();
  }

  /** What was acknowledged is not there: another server answers, or one that was set back. That is so from now on. */
  setBack(place: string): StoreFault {
    this.#isSetBack = true;
    return new StoreFault(
      'ERR_STORE_UNSAFE',
      `The store at ${place} is not used any more: it does not have what it has confirmed before, as after a restore or a failover that lost commits. Nothing is sent from it.`,
      { fate: 'not_stored' },
    );
  }
}
