import { afterAll, describe, expect, onTestFinished, test } from 'vitest';
import { type Store, StoreFault } from '../../src/store/port.ts';
import { openPostgresStore, postgresOpener } from '../../src/store/postgres/postgres-store.ts';
import { ReopeningStore } from '../../src/store/reopening-store.ts';
import {
  change,
  eventsOf,
  key,
  put,
  STORED,
  TENANT,
  versionOf,
  write,
} from '../../src/testing/store-cases/bench.ts';
import { testDatabase } from './fixtures/postgres.ts';
import { type CommitFault, PostgresProxy } from './fixtures/postgres-proxy.ts';
import { findBinaries, startServer } from './fixtures/postgres-server.ts';

const database = await testDatabase();
const proxy = database === undefined ? undefined : await PostgresProxy.start(database.url);
afterAll(() => proxy?.stop());

/** Short, so that a test of our own deadline does not take long; long enough for a machine that is busy. */
const DEADLINE_MS = 1_000;

function setup(schema: string) {
  if (database === undefined || proxy === undefined) throw new Error('There is no server.');
  const direct = database.address({ parameters: { schema } });
  const url = database.address({ port: proxy.port, parameters: { schema } });
  proxy.isClosed = false;
  return { database, proxy, direct, url, options: { url, deadlineMs: DEADLINE_MS } };
}

const FAULTS: readonly (readonly [CommitFault, string])[] = [
  ['lose_order', 'did not arrive'],
  ['keep_order', 'did not arrive, and whose transaction the server keeps open'],
  ['lose_answer', 'took effect, and whose answer was cut off'],
  ['keep_answer', 'took effect, and whose answer does not come'],
  ['warn', 'may not have reached a standby'],
];

const taking = (stream: string, version = 0) =>
  change([write(stream, version)], { claims: [{ key: key(version), sequence: 0, holder: stream }] });

describe.skipIf(database === undefined)('a COMMIT', () => {
  test.each(FAULTS)(
    '(%s) that %s: its fate is read on a new connection, and told as it is',
    async (fault) => {
      const { proxy, options } = setup(`fate_${fault}`);
      const store = await openPostgresStore(options);
      await put(store, change([write('op:before', 0)]));
      const before = { fired: proxy.fired, commits: store.commits };
      proxy.arm(fault);
      // Both in one transaction, with one that is refused among them.
      const results = await store.commit([
        taking('op:a'),
        change([write('op:before', 7)]),
        taking('op:b', 0),
      ]);
      expect(proxy.fired).toBe(before.fired + 1);
      expect(results).toEqual([
        STORED,
        { outcome: 'stale', stream: 'op:before', version: 1 },
        { outcome: 'taken', key: key(0), sequence: 0, by: 'op:a' },
      ]);
      expect(store.commits).toBe(before.commits + 1);
      // Once, whether it was stored by the first try or by another.
      expect(await eventsOf(store, 'op:a')).toHaveLength(1);
      expect((await store.latestClaims(TENANT, [key(0)]))[0]?.holder).toBe('op:a');
      await put(store, change([write('op:a', 1)]));
      await store.close();
    },
  );

  test('whose fate is guessed, by doing it once more, is told wrongly: so it must be read', async () => {
    const { proxy, options } = setup('fate_guessed');
    const store = await openPostgresStore(options);
    await put(store, change([write('op:before', 0)]));
    proxy.arm('lose_answer', { isClosedAfter: true });
    await expect(store.commit([taking('op:a')])).rejects.toMatchObject({ fate: 'unknown' });
    proxy.isClosed = false;
    const again = await openPostgresStore(options);
    expect(await again.commit([taking('op:a')])).toEqual([{ outcome: 'stale', stream: 'op:a', version: 1 }]);
    await again.close();
    await store.close();
  });

  test.each([
    ['lose_order', 0],
    ['lose_answer', 1],
  ] as const)(
    '(%s) whose fate cannot be read is unknown, poisons the store, and is settled before the next one opens',
    async (fault, version) => {
      const { proxy, options } = setup(`unknown_${fault}`);
      const open = postgresOpener(options);
      const store = await open();
      await put(store, change([write('op:before', 0)]));
      proxy.arm(fault, { isClosedAfter: true });
      await expect(store.commit([taking('op:a')])).rejects.toMatchObject({
        name: 'StoreFault',
        code: 'ERR_STORE_UNAVAILABLE',
        fate: 'unknown',
        message: expect.stringMatching(/Whether this call was stored is not known: .*\.$/),
      });
      const poisoned = { code: 'ERR_STORE_POISONED', fate: 'not_stored' };
      await expect(store.commit([taking('op:b')])).rejects.toMatchObject(poisoned);
      await expect(store.read(TENANT, ['op:a'])).rejects.toMatchObject(poisoned);
      await store.close();
      await expect(open()).rejects.toMatchObject({ code: 'ERR_STORE_UNAVAILABLE', fate: 'not_stored' });
      proxy.isClosed = false;
      const again = await open();
      expect(await versionOf(again, 'op:a')).toBe(version);
      await put(again, change([write('op:c', 0)]));
      await again.close();
    },
  );

  test('of unknown fate is gone round by whoever opens stores again: the next call works on a new one', async () => {
    const { proxy, options } = setup('reopened');
    const store = new ReopeningStore(postgresOpener(options));
    await put(store, change([write('op:before', 0)]));
    proxy.arm('lose_answer', { isClosedAfter: true });
    await expect(store.commit([taking('op:a')])).rejects.toMatchObject({ fate: 'unknown' });
    await expect(store.read(TENANT, ['op:a'])).rejects.toMatchObject({ code: 'ERR_STORE_UNAVAILABLE' });
    proxy.isClosed = false;
    expect(await versionOf(store, 'op:a')).toBe(1);
    await put(store, change([write('op:a', 1)]));
    await store.close();
  });
});

describe.skipIf(database === undefined)('a connection that the server ends', () => {
  const backends = `SELECT pid FROM pg_stat_activity WHERE datname = current_database()
    AND application_name = 'counterfoil'`;

  test('while it is idle is replaced, by who writes and by who reads', async () => {
    const { database, direct } = setup('ended_idle');
    const store = await openPostgresStore({ url: direct });
    await put(store, change([write('op:a', 0)]));
    expect(await versionOf(store, 'op:a')).toBe(1);
    const ended = await database.ask(`SELECT pg_terminate_backend(pid) FROM (${backends}) AS ours`);
    expect(ended.length).toBeGreaterThanOrEqual(2);
    await put(store, change([write('op:a', 1)]));
    expect(await versionOf(store, 'op:a')).toBe(2);
    await store.close();
  });

  test('in the middle of a transaction leaves nothing, and the changes are stored by the next try', async () => {
    const { database, direct } = setup('ended_busy');
    const store = await openPostgresStore({ url: direct });
    await put(store, change([write('op:a', 0)]));
    await database.ask('BEGIN');
    await database.ask("SELECT 1 FROM ended_busy.stream WHERE name = 'op:a' FOR UPDATE");
    const stored = put(store, change([write('op:a', 1)]));
    const waiting = await until(async () => {
      const rows = await database.ask(`${backends} AND wait_event_type = 'Lock'`);
      return rows[0]?.['pid'];
    });
    await database.ask('SELECT pg_terminate_backend($1)', [waiting]);
    await database.ask('COMMIT');
    await stored;
    expect(await eventsOf(store, 'op:a')).toHaveLength(2);
    await store.close();
  });
});

describe.skipIf(database === undefined)('a store that lacks what it has confirmed', () => {
  test('is not written to any more by whoever was told so', async () => {
    const { database, direct } = setup('set_back');
    const store: Store = new ReopeningStore(postgresOpener({ url: direct }));
    await put(store, change([write('op:a', 0)]));
    await database.ask('CREATE TABLE set_back.kept AS SELECT * FROM set_back.writer');
    await put(store, change([write('op:a', 1)]));
    // As a standby is that takes over without the last commit.
    await database.ask('UPDATE set_back.writer SET commits = (SELECT commits FROM set_back.kept)');
    const refused = {
      code: 'ERR_STORE_UNSAFE',
      message: expect.stringContaining('does not have what it has confirmed'),
    };
    await expect(store.commit([change([write('op:b', 0)])])).rejects.toMatchObject(refused);
    await expect(store.commit([change([write('op:b', 0)])])).rejects.toMatchObject({
      code: 'ERR_STORE_POISONED',
    });
    await expect(store.commit([change([write('op:b', 0)])])).rejects.toMatchObject(refused);
    await store.close();
  });
});

const binaries = database === undefined ? undefined : findBinaries();

describe.skipIf(binaries === undefined)('a server that crashes under load and comes back', () => {
  test('has everything that was confirmed, nothing that was refused, and is written to again', async () => {
    const server = await startServer(binaries ?? '');
    onTestFinished(() => server.stop());
    const fates = { stored: [] as string[], not_stored: [] as string[], unknown: [] as string[] };
    const work = { crashes: 0, isOver: false };
    const writer = async (name: number) => {
      const store = new ReopeningStore(postgresOpener({ url: server.url }));
      for (let index = 0; !work.isOver; index += 1) {
        const stream = `op:${name}-${index}`;
        try {
          const claims = [{ key: key(name * 1_000_000 + index), sequence: 0, holder: stream }];
          expect(await store.commit([change([write(stream, 0)], { claims })])).toEqual([STORED]);
          fates.stored.push(stream);
        } catch (fault) {
          if (!(fault instanceof StoreFault)) throw fault;
          fates[fault.fate].push(stream);
          // It is away; there is no hurry.
          await new Promise((resolve) => setTimeout(resolve, 5));
        }
      }
      await store.close();
    };
    const storedMore = (count: number) => {
      const wanted = fates.stored.length + count;
      return until(async () => (fates.stored.length >= wanted ? true : undefined));
    };
    const crashes = async () => {
      for (; work.crashes < 2; work.crashes += 1) {
        await storedMore(30);
        await server.crash();
      }
      await storedMore(30);
      work.isOver = true;
    };
    await Promise.all([crashes(), ...[1, 2, 3, 4].map(writer)]);
    const store = await openPostgresStore({ url: server.url });
    const isThere = async (streams: readonly string[]) =>
      (await store.read(TENANT, streams)).map((record) => record !== undefined);
    expect(fates.not_stored.length).toBeGreaterThan(0);
    expect(await isThere(fates.stored)).toEqual(fates.stored.map(() => true));
    expect(await isThere(fates.not_stored)).toEqual(fates.not_stored.map(() => false));
    await store.close();
  });
});

/** There is no signal of a lock that is waited for but the server's own list. */
async function until<Found>(look: () => Promise<Found | undefined>): Promise<Found> {
  for (;;) {
    const found = await look();
    if (found !== undefined) return found;
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}
