// What a caller is told when the engine or the disk fails, and what may be believed afterwards.

import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import type { Store, StoreFault } from '../../src/store/port.ts';
import { loadSqliteDriver, type SqliteConnection } from '../../src/store/sqlite/driver.ts';
import { openSqliteStore } from '../../src/store/sqlite/sqlite-store.ts';
import { change, put, STORED, TENANT, versionOf, write } from '../../src/testing/store-cases/bench.ts';
import { type Interposition, interposedDriver, sqliteError } from './fixtures/interposed-driver.ts';
import { temporaryDirectory } from './fixtures/temporary-place.ts';

const driver = await loadSqliteDriver();

const IOERR_FSYNC = 1034;
const IOERR_WRITE = 778;
const FULL = 13;
const BUSY = 5;
const CORRUPT = 11;

/** A store with two streams in it, of which the engine's answers can be changed from then on. */
async function setup() {
  const file = join(temporaryDirectory(), 'ledger.db');
  let between: Interposition['run'];
  const interposed = interposedDriver(driver, {
    run: (sql, run, connection) => (between === undefined ? run() : between(sql, run, connection)),
  });
  const store = await openSqliteStore({ file, driver: interposed, lockWaitMs: 200 });
  await put(store, change([write('op:a', 0)]), change([write('op:b', 0)]));
  return {
    file,
    store,
    interpose(run: Interposition['run']) {
      between = run;
    },
    /** Every call of one turn, as faults or results. */
    commitTogether: (...streams: readonly string[]) =>
      Promise.all(
        streams.map((stream) =>
          store.commit([change([write(stream, 0)])]).catch((error: unknown) => error as StoreFault),
        ),
      ),
    reopen: () => openSqliteStore({ file }),
  };
}

async function expectPoisoned(store: Store): Promise<void> {
  const poisoned = { name: 'StoreFault', code: 'ERR_STORE_POISONED', fate: 'not_stored' };
  await expect(store.commit([change([write('op:later', 0)])])).rejects.toMatchObject(poisoned);
  await expect(store.read(TENANT, ['op:a'])).rejects.toMatchObject(poisoned);
  await expect(store.foreignCommits()).rejects.toMatchObject(poisoned);
}

describe('an error of COMMIT', () => {
  test('after which the rows are there is an unknown fate, and only a new connection tells', async () => {
    const { store, interpose, commitTogether, reopen, file } = await setup();
    interpose((sql, run) => {
      if (sql !== 'COMMIT') return run();
      run();
      throw sqliteError(IOERR_FSYNC, 'disk I/O error');
    });
    const faults = await commitTogether('op:c', 'op:d');
    for (const fault of faults) {
      expect(fault).toMatchObject({ name: 'StoreFault', code: 'ERR_STORE_UNAVAILABLE', fate: 'unknown' });
      expect((fault as StoreFault).message).toMatch(
        new RegExp(
          `^The store at ${file} could not be written: the disk reported an error .*not known: open`,
        ),
      );
    }
    await expectPoisoned(store);
    await store.close();
    const again = await reopen();
    expect(await versionOf(again, 'op:c')).toBe(1);
    expect(await versionOf(again, 'op:later')).toBe(0);
    await again.close();
  });

  test('after which the rows are not there is an unknown fate as well', async () => {
    const { store, interpose, commitTogether, reopen } = await setup();
    interpose((sql, run, connection: SqliteConnection) => {
      if (sql !== 'COMMIT') return run();
      connection.exec('ROLLBACK');
      throw sqliteError(FULL, 'database or disk is full');
    });
    expect(await commitTogether('op:c')).toMatchObject([{ fate: 'unknown' }]);
    await expectPoisoned(store);
    await store.close();
    const again = await reopen();
    expect(await versionOf(again, 'op:c')).toBe(0);
    await again.close();
  });

  test('that leaves the transaction open lets the lock go, so that others can work on', async () => {
    const { store, interpose, commitTogether, reopen } = await setup();
    interpose((sql, run) => {
      if (sql === 'COMMIT') throw sqliteError(BUSY, 'database is locked');
      return run();
    });
    expect(await commitTogether('op:c')).toMatchObject([{ fate: 'unknown' }]);
    const other = await reopen();
    await put(other, change([write('op:d', 0)]));
    await other.close();
    await store.close();
  });

  test('refuses what was waiting behind it as not stored', async () => {
    const { store, interpose } = await setup();
    interpose((sql, run) => {
      if (sql !== 'COMMIT') return run();
      throw sqliteError(IOERR_FSYNC, 'disk I/O error');
    });
    const many = (name: string) =>
      store
        .commit(Array.from({ length: 300 }, (_, index) => change([write(`op:${name}${index}`, 0)])))
        .catch((error: unknown) => error);
    expect(await Promise.all([many('x'), many('y')])).toMatchObject([
      { code: 'ERR_STORE_UNAVAILABLE', fate: 'unknown' },
      { code: 'ERR_STORE_POISONED', fate: 'not_stored' },
    ]);
    await store.close();
  });
});

describe('an error of a statement', () => {
  test('rolls back the whole transaction, tells every caller that nothing was stored, and does no more harm', async () => {
    const { store, interpose, commitTogether } = await setup();
    interpose((sql, run) => {
      if (sql.startsWith('INSERT INTO event')) throw sqliteError(7, 'out of memory');
      return run();
    });
    expect(await commitTogether('op:c', 'op:d')).toMatchObject([
      { code: 'ERR_STORE_UNAVAILABLE', fate: 'not_stored' },
      { code: 'ERR_STORE_UNAVAILABLE', fate: 'not_stored' },
    ]);
    interpose(undefined);
    expect(await versionOf(store, 'op:c')).toBe(0);
    expect(await commitTogether('op:c', 'op:d')).toEqual([[STORED], [STORED]]);
    await store.close();
  });

  test('forgets the number that a new tenant was given in it', async () => {
    const { store, interpose } = await setup();
    interpose((sql, run) => {
      if (sql.startsWith('INSERT INTO event')) throw sqliteError(7, 'out of memory');
      return run();
    });
    const theirs = change([write('op:a', 0)], { tenant: 'globex' });
    await expect(store.commit([theirs])).rejects.toMatchObject({ fate: 'not_stored' });
    interpose(undefined);
    expect(await store.read('globex', ['op:a'])).toEqual([undefined]);
    expect(await store.commit([theirs])).toEqual([STORED]);
    expect(await versionOf(store, 'op:a', 'globex')).toBe(1);
    await store.close();
  });

  test.each([
    ['an I/O error', IOERR_WRITE, 'disk I/O error'],
    ['damage', CORRUPT, 'database disk image is malformed'],
  ])('that is %s is an unknown fate and poisons the handle', async (_what, errcode, message) => {
    const { store, interpose, commitTogether } = await setup();
    interpose((sql, run) => {
      if (sql.startsWith('INSERT INTO event')) throw sqliteError(errcode, message);
      return run();
    });
    expect(await commitTogether('op:c')).toMatchObject([{ code: 'ERR_STORE_UNAVAILABLE', fate: 'unknown' }]);
    await expectPoisoned(store);
    await store.close();
  });

  test('of ROLLBACK is an unknown fate and poisons the handle', async () => {
    const { store, interpose, commitTogether } = await setup();
    interpose((sql, run) => {
      if (sql.startsWith('INSERT INTO event')) throw sqliteError(7, 'out of memory');
      if (sql === 'ROLLBACK') throw sqliteError(1, 'cannot rollback');
      return run();
    });
    expect(await commitTogether('op:c')).toMatchObject([{ fate: 'unknown' }]);
    await expectPoisoned(store);
    await store.close();
  });

  test('of reading an unreadable page poisons the handle, though reading stores nothing', async () => {
    const { store, interpose } = await setup();
    interpose((sql, run) => {
      if (sql.startsWith('SELECT stream.version')) throw sqliteError(266, 'disk I/O error');
      return run();
    });
    await expect(store.read(TENANT, ['op:a'])).rejects.toMatchObject({
      code: 'ERR_STORE_UNAVAILABLE',
      fate: 'not_stored',
      message: expect.stringContaining('could not be read: the disk reported an error'),
    });
    await expectPoisoned(store);
    await store.close();
  });
});

describe('a full disk', () => {
  test('stores nothing of the transaction, says so with the path, and works again when there is room', async () => {
    const file = join(temporaryDirectory(), 'ledger.db');
    let connection: SqliteConnection | undefined;
    const store = await openSqliteStore({
      file,
      driver: {
        ...driver,
        open(path) {
          connection = driver.open(path);
          return connection;
        },
      },
    });
    await put(store, change([write('op:a', 0)]));
    // The engine's own limit stands in for the disk's: SQLite rolls back by itself and reports the same code.
    connection?.exec('PRAGMA max_page_count = 60');
    const large = change([write('op:large', 0, { state: 'x'.repeat(500_000) })]);
    const [first, second] = await Promise.allSettled([
      store.commit([change([write('op:b', 0)])]),
      store.commit([large]),
    ]);
    for (const settled of [first, second]) {
      expect(settled).toMatchObject({
        status: 'rejected',
        reason: { name: 'StoreFault', code: 'ERR_STORE_UNAVAILABLE', fate: 'not_stored' },
      });
    }
    expect(String((first as PromiseRejectedResult).reason.message)).toMatch(
      new RegExp(
        `^The store at ${file} could not be written: the disk is full .* Nothing of this call was stored\\.$`,
      ),
    );
    expect(await versionOf(store, 'op:b')).toBe(0);
    connection?.exec('PRAGMA max_page_count = 100000');
    await put(store, change([write('op:b', 0)]), large);
    await store.close();
  });

  test('at opening is named with the path', async () => {
    const file = join(temporaryDirectory(), 'ledger.db');
    const full = interposedDriver(driver, {
      exec: (sql, run) => {
        if (sql.includes('CREATE TABLE')) run('PRAGMA max_page_count = 3');
        run(sql);
      },
    });
    await expect(openSqliteStore({ file, driver: full })).rejects.toMatchObject({
      code: 'ERR_STORE_UNAVAILABLE',
      message: expect.stringContaining(`The store at ${file} could not be opened: the disk is full`),
    });
    await (await openSqliteStore({ file })).close();
  });
});
