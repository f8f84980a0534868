import { chmodSync, existsSync, mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { loadSqliteDriver, type SqliteConnection } from '../../src/store/sqlite/driver.ts';
import { liveStatementText } from '../../src/store/sqlite/readings.ts';
import { openSqliteStore } from '../../src/store/sqlite/sqlite-store.ts';
import { exerciseStore } from '../../src/testing/exercise-store.ts';
import { change, key, live, put, TENANT, versionOf, write } from '../../src/testing/store-cases/bench.ts';
import { interposedDriver } from './fixtures/interposed-driver.ts';
import { temporaryDirectory } from './fixtures/temporary-place.ts';

const driver = await loadSqliteDriver();

describe('the store suite, on a file', () => {
  const directory = mkdtempSync(join(tmpdir(), 'counterfoil-suite-'));
  afterAll(() => rmSync(directory, { recursive: true, force: true }));
  const open = (place: string) => openSqliteStore({ file: join(directory, place, 'ledger.db'), driver });
  for (const { name, run } of exerciseStore({ name: 'sqlite', open, isDurable: true })) test(name, run);
});

describe('the store suite, in memory', () => {
  const open = () => openSqliteStore({ file: ':memory:', driver });
  for (const { name, run } of exerciseStore({ name: 'memory', open, isDurable: false })) test(name, run);
});

/** Runs SQL on a file beside the store. */
function onFile<T>(file: string, work: (connection: SqliteConnection) => T): T {
  const connection = driver.open(file);
  try {
    return work(connection);
  } finally {
    connection.close();
  }
}

describe('durability', () => {
  test('is read back from the engine and reported', async () => {
    const store = await openSqliteStore({ file: join(temporaryDirectory(), 'ledger.db') });
    expect(store.durability).toMatchObject({
      engine: 'sqlite',
      version: driver.version,
      settings: {
        driver: driver.name,
        journal_mode: 'wal',
        synchronous: 'full',
        foreign_keys: 'on',
        trusted_schema: 'off',
        mmap_size: '0',
      },
    });
    expect(Number(store.durability.settings['busy_timeout'])).toBeLessThanOrEqual(100);
    await store.close();
  });

  test.each([
    ['journal_mode', 'DELETE'],
    ['synchronous', 'NORMAL'],
    ['foreign_keys', 'OFF'],
    ['trusted_schema', 'ON'],
    ['mmap_size', '1048576'],
    ['busy_timeout', '5000'],
  ])('%s that is %s after it was set otherwise is refused', async (pragma, value) => {
    const file = join(temporaryDirectory(), 'ledger.db');
    const unsafe = interposedDriver(driver, {
      exec: (sql, run) => run(sql.startsWith(`PRAGMA ${pragma} `) ? `PRAGMA ${pragma} = ${value}` : sql),
    });
    await expect(openSqliteStore({ file, driver: unsafe })).rejects.toMatchObject({
      name: 'StoreFault',
      code: 'ERR_STORE_UNSAFE',
      fate: 'not_stored',
      message: expect.stringMatching(new RegExp(`${file}.*${pragma} should be`)),
    });
  });

  test('the log is kept when it is checkpointed, so that later commits write over blocks that exist', async () => {
    const file = join(temporaryDirectory(), 'ledger.db');
    const store = await openSqliteStore({ file });
    const wide = 'x'.repeat(40_000);
    const sizes: number[] = [];
    for (let index = 0; index < 300; index += 1) {
      await put(store, change([write(`op:${index}`, 0, { state: wide })]));
      sizes.push(statSync(`${file}-wal`).size);
    }
    expect(sizes.toSorted((a, b) => a - b)).toEqual(sizes);
    expect(sizes.at(-1)).toBeLessThan(6_000_000);
    await store.close();
  });
});

describe('opening', () => {
  test.skipIf(process.platform === 'win32')(
    'makes a directory and a file that only their owner can read',
    async () => {
      const directory = join(temporaryDirectory(), 'data', 'deep');
      const file = join(directory, 'ledger.db');
      const store = await openSqliteStore({ file });
      await put(store, change([write('op:a', 0)]));
      const mode = (path: string) => (statSync(path).mode & 0o777).toString(8);
      expect([join(directory, '..'), directory].map(mode)).toEqual(['700', '700']);
      expect([file, `${file}-wal`, `${file}-shm`].map(mode)).toEqual(['600', '600', '600']);
      await store.close();
    },
  );

  test('leaves the mode of a directory that was there', async () => {
    const directory = join(temporaryDirectory(), 'data');
    mkdirSync(directory);
    chmodSync(directory, 0o755);
    await (await openSqliteStore({ file: join(directory, 'ledger.db') })).close();
    expect(statSync(directory).mode & 0o777).toBe(0o755);
  });

  const unusable = async (file: string, problem: string | RegExp) => {
    const fault = await openSqliteStore({ file, lockWaitMs: 50 }).catch((error: unknown) => error);
    expect(fault).toMatchObject({ name: 'StoreFault', code: 'ERR_STORE_UNAVAILABLE', fate: 'not_stored' });
    const { message } = fault as Error;
    expect(message).toContain(file);
    expect(message).toMatch(problem);
    expect(message).not.toContain('\n');
  };

  test('a path through a file is refused in a sentence', async () => {
    const directory = temporaryDirectory();
    writeFileSync(join(directory, 'data'), 'a file');
    await unusable(join(directory, 'data', 'ledger.db'), /data is a file, not a directory\.$/);
    await unusable(join(directory, 'data', 'deep', 'ledger.db'), /deep is a file, not a directory\.$/);
  });

  test('a directory in place of the file is refused in a sentence', async () => {
    const directory = temporaryDirectory();
    await unusable(directory, 'is a directory, not a file.');
  });

  test('a file that is no database, and a database of another program, are refused in a sentence', async () => {
    const directory = temporaryDirectory();
    const text = join(directory, 'text.db');
    writeFileSync(text, 'not a database\n'.repeat(1000));
    await unusable(text, 'the file is not a SQLite database');
    const foreign = join(directory, 'foreign.db');
    onFile(foreign, (connection) => connection.exec('CREATE TABLE customers (id INTEGER)'));
    await unusable(foreign, 'it is a database of another program. Name another file for the store.');
    expect(
      onFile(foreign, (connection) => connection.prepare('SELECT name FROM sqlite_schema').all()),
    ).toHaveLength(1);
  });

  test('a file that needs a newer schema is refused, and one that only was written by newer code is not', async () => {
    const file = join(temporaryDirectory(), 'ledger.db');
    await (await openSqliteStore({ file })).close();
    onFile(file, (connection) => connection.exec("UPDATE meta SET value = '7' WHERE name = 'schema'"));
    await (await openSqliteStore({ file })).close();
    onFile(file, (connection) => connection.exec("UPDATE meta SET value = '7' WHERE name = 'schema_needed'"));
    await expect(openSqliteStore({ file })).rejects.toMatchObject({
      code: 'ERR_STORE_VERSION',
      message: expect.stringMatching(/it needs schema 7; this one knows 3.*Use the newer Counterfoil/),
    });
  });

  test('many handles may open a new file at the same moment', async () => {
    const file = join(temporaryDirectory(), 'ledger.db');
    const stores = await Promise.all(Array.from({ length: 8 }, () => openSqliteStore({ file })));
    for (const [index, store] of stores.entries()) await put(store, change([write(`op:${index}`, 0)]));
    expect(await versionOf(stores[0] as (typeof stores)[number], 'op:7')).toBe(1);
    for (const store of stores) await store.close();
    expect(existsSync(file)).toBe(true);
  });
});

describe('the lock of another process', () => {
  test('is waited for without stopping the event loop', async () => {
    const file = join(temporaryDirectory(), 'ledger.db');
    const store = await openSqliteStore({ file });
    const holder = driver.open(file);
    holder.exec('BEGIN IMMEDIATE');
    const stored = put(store, change([write('op:a', 0)]));
    let turns = 0;
    let longestMs = 0;
    for (let last = performance.now(); turns < 40; turns += 1) {
      await new Promise((resolve) => setTimeout(resolve, 1));
      longestMs = Math.max(longestMs, performance.now() - last);
      last = performance.now();
    }
    expect(longestMs).toBeLessThan(1_000);
    // Reading is not held up by a writer.
    expect(await versionOf(store, 'op:a')).toBe(0);
    holder.exec('ROLLBACK');
    await stored;
    holder.close();
    await store.close();
  });

  test('that is never let go makes a fault that says that nothing was stored, and does no harm', async () => {
    const file = join(temporaryDirectory(), 'ledger.db');
    const store = await openSqliteStore({ file, lockWaitMs: 60 });
    const holder = driver.open(file);
    holder.exec('BEGIN IMMEDIATE');
    await expect(store.commit([change([write('op:a', 0)])])).rejects.toMatchObject({
      name: 'StoreFault',
      code: 'ERR_STORE_UNAVAILABLE',
      fate: 'not_stored',
      message: expect.stringMatching(/another process holds its lock.*Nothing of this call was stored\.$/),
    });
    holder.exec('ROLLBACK');
    await put(store, change([write('op:a', 0)]));
    holder.close();
    await store.close();
  });
});

describe('the tables', () => {
  test('refuse to have a history rewritten or a claim passed on', async () => {
    const file = join(temporaryDirectory(), 'ledger.db');
    const store = await openSqliteStore({ file });
    await put(store, change([write('op:a', 0)], { claims: [{ key: key(1), sequence: 0, holder: 'op:a' }] }));
    await store.close();
    onFile(file, (connection) => {
      expect(() => connection.exec("UPDATE event SET events = '[]'")).toThrow('append-only');
      expect(() => connection.exec('UPDATE claim SET holder = 9')).toThrow('never passed on');
    });
  });

  test('answer every form of live query by an index', async () => {
    const file = join(temporaryDirectory(), 'ledger.db');
    const store = await openSqliteStore({ file });
    await put(store, change([write('op:a', 0, { live: live('a') })]));
    await store.close();
    const planOf = (query: object, hasQueue: boolean, share: 'held' | 'free' = 'free') =>
      onFile(file, (connection) => {
        const text = liveStatementText({ tenant: TENANT, limit: 10, ...query }, share, hasQueue);
        const steps = connection.prepare(`EXPLAIN QUERY PLAN ${text}`).all() as { readonly detail: string }[];
        return steps.map((step) => step.detail).join('; ');
      });
    expect(planOf({ dueBy: 1 }, true)).toContain('live_by_queue (tenant=? AND queue=? AND due_at<?)');
    expect(planOf({ dueBy: 1 }, true)).not.toContain('TEMP B-TREE');
    expect(planOf({ after: 'a' }, false)).toContain('live_by_order (tenant=? AND order_key>?)');
    expect(planOf({ after: 'a' }, false)).not.toContain('TEMP B-TREE');
    expect(planOf({ worker: 'w' }, false, 'held')).toContain('INDEX live_held');
    expect(planOf({ worker: 'w', stages: ['sending'] }, true, 'held')).toContain('INDEX live_held');
    expect(planOf({ dueBy: 1 }, true, 'held')).toContain('INDEX live_held');
    expect(planOf({ after: 'a' }, false, 'held')).toContain('live_held (tenant=? AND order_key>?)');
  });

  test('keep tenants apart by number, each in the bucket of its name', async () => {
    const file = join(temporaryDirectory(), 'ledger.db');
    const store = await openSqliteStore({ file });
    const names = Array.from({ length: 300 }, (_, index) => `tenant ${index}`);
    for (const tenant of names) await put(store, change([write('op:a', 0, { state: tenant })], { tenant }));
    for (const tenant of names) expect((await store.read(tenant, ['op:a']))[0]?.state).toBe(tenant);
    await store.close();
    const rows = onFile(file, (connection) => connection.prepare('SELECT id FROM tenant').all());
    const buckets = new Set((rows as { readonly id: number }[]).map((row) => Math.floor(row.id / 65_536)));
    expect(rows).toHaveLength(300);
    expect(buckets.size).toBeGreaterThan(60);
    expect(Math.max(...buckets)).toBeLessThan(128);
  });
});
