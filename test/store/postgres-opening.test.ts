import pg from 'pg';
import { afterAll, describe, expect, test } from 'vitest';
import { StoreFault } from '../../src/store/port.ts';
import { openPostgresStore, postgresOpener } from '../../src/store/postgres/postgres-store.ts';
import { liveStatement } from '../../src/store/postgres/readings.ts';
import { tablesOf } from '../../src/store/postgres/schema.ts';
import { Statements } from '../../src/store/postgres/statements.ts';
import { change, live, put, TENANT, versionOf, write } from '../../src/testing/store-cases/bench.ts';
import { testDatabase } from './fixtures/postgres.ts';
import { findBinaries, KEYED_PASSWORD, startServer } from './fixtures/postgres-server.ts';

const database = await testDatabase();

/** One sentence about why it was not opened, with the place and without any password. */
async function refusalOf(url: string, secret?: string): Promise<StoreFault> {
  const fault = await openPostgresStore({ url, deadlineMs: 5_000 }).then(
    () => undefined,
    (error: unknown) => error,
  );
  expect(fault).toBeInstanceOf(StoreFault);
  const { message, fate, cause } = fault as StoreFault;
  expect(fate).toBe('not_stored');
  expect(message).toMatch(/^The store (at \S+ \(schema \w+\) )?was not opened: [^\n]+\.$/);
  if (secret !== undefined)
    expect(`${message} ${String(cause)} ${JSON.stringify(cause)}`).not.toContain(secret);
  return fault as StoreFault;
}

describe('an address', () => {
  test.each([
    ['mysql://root:hunter2@localhost/ledger', 'does not begin with postgres://'],
    ['postgres://root:hunter2@local host/ledger', 'is not postgres://user@host:port/database'],
    ['postgres://root:hunter2@localhost', 'names no database'],
    ['postgres://root:hunter2@localhost/ledger?schema=Ledger;--', 'schema is not a name'],
  ])('that cannot be used is refused without being repeated: %s', async (url, why) => {
    expect((await refusalOf(url, 'hunter2')).message).toContain(why);
  });
});

describe.skipIf(database?.isOurs !== true)('a store that cannot be opened says why in one sentence', () => {
  const secret = 'not-the-password-7';

  test('nobody listens', async () => {
    const url = database?.address({ port: 1, password: secret }) ?? '';
    const { code, message } = await refusalOf(url, secret);
    expect(code).toBe('ERR_STORE_UNAVAILABLE');
    expect(message).toContain('owner@127.0.0.1:1/');
    expect(message).toContain('nobody listens at that address');
  });

  test('a wrong password, and a right one', async () => {
    const address = (password: string) =>
      database?.address({ user: 'keyed', password, parameters: { schema: 'keyed' } }) ?? '';
    const { message } = await refusalOf(address(secret), secret);
    expect(message).toContain('does not accept this user with this password');
    await database?.ask('CREATE SCHEMA keyed AUTHORIZATION keyed');
    // A schema that was made for it: it needs no right to make one.
    await (await openPostgresStore({ url: address(KEYED_PASSWORD) })).close();
  });

  test('a user who is not let in, and a database that is not there', async () => {
    const barred = await refusalOf(database?.address({ user: 'barred' }) ?? '');
    expect(barred.message).toContain('does not let this user in from here');
    const url = new URL(database?.url ?? '');
    url.pathname = '/none';
    expect((await refusalOf(url.href)).message).toContain('has no database of that name');
  });

  test('a right that is missing: to make the tables, and to use them', async () => {
    const guest = (schema: string) => database?.address({ user: 'guest', parameters: { schema } }) ?? '';
    const { message } = await refusalOf(guest('unmade'));
    expect(message).toContain('this user may not make them');
    expect(message).toContain('counterfoil store migrate --print');
    await (
      await openPostgresStore({ url: database?.address({ parameters: { schema: 'closed' } }) ?? '' })
    ).close();
    expect((await refusalOf(guest('closed'))).message).toContain('a right is missing: permission denied');
  });

  test('tables of another program', async () => {
    await database?.ask('CREATE SCHEMA foreigners; CREATE TABLE foreigners.customers (id integer)');
    const url = database?.address({ parameters: { schema: 'foreigners' } }) ?? '';
    expect((await refusalOf(url)).message).toContain('holds tables of another program');
  });

  test('tables that need a newer Counterfoil; those that only were written by one are no reason', async () => {
    const url = database?.address({ parameters: { schema: 'newer' } }) ?? '';
    await (await openPostgresStore({ url })).close();
    await database?.ask("UPDATE newer.meta SET value = '7' WHERE name = 'schema'");
    await (await openPostgresStore({ url })).close();
    await database?.ask("UPDATE newer.meta SET value = '7' WHERE name = 'schema_needed'");
    const { code, message } = await refusalOf(url);
    expect(code).toBe('ERR_STORE_VERSION');
    expect(message).toMatch(/it needs schema 7; this one knows 1.*Use the newer Counterfoil/);
  });

  test('a database in another encoding, and one that only reads', async () => {
    const readOnly = { options: '-c default_transaction_read_only=on' };
    const { message } = await refusalOf(database?.address({ parameters: readOnly }) ?? '');
    expect(message).toContain('read-only');
    const url = new URL(database?.url ?? '');
    const name = `${url.pathname.slice(1)}_latin`;
    await database?.ask(`CREATE DATABASE ${name} TEMPLATE template0 ENCODING 'LATIN1' LOCALE 'C'`);
    url.pathname = `/${name}`;
    expect((await refusalOf(url.href)).message).toContain('has the encoding LATIN1, and UTF8 is needed');
    await database?.ask(`DROP DATABASE ${name} WITH (FORCE)`);
  });

  test('durability that is not in force is named, and may be waived by that name', async () => {
    const url = (value: string) =>
      database?.address({ parameters: { options: `-c synchronous_commit=${value}` } }) ?? '';
    const { code, message } = await refusalOf(url('off'));
    expect(code).toBe('ERR_STORE_UNSAFE');
    expect(message).toContain('synchronous_commit is off, and a commit that was confirmed could be lost');
    const waived = await openPostgresStore({ url: url('off'), waived: ['synchronous_commit'] });
    expect(waived.durability.settings).toMatchObject({
      fsync: 'on',
      full_page_writes: 'on',
      synchronous_commit: 'off (waived)',
    });
    await waived.close();
    // No standby is waited for here: this machine's disk is, as with `on`.
    await (await openPostgresStore({ url: url('local') })).close();
  });
});

const binaries = database === undefined ? undefined : findBinaries();

describe.skipIf(binaries === undefined)('a server of its own', async () => {
  const server =
    binaries === undefined ? undefined : await startServer(binaries, ['fsync=off', 'full_page_writes=off']);
  afterAll(() => server?.stop());

  test('without fsync, or with torn pages, is refused by name', async () => {
    const url = server?.url ?? '';
    expect((await refusalOf(url)).message).toContain('fsync is off');
    await expect(openPostgresStore({ url, waived: ['fsync'] })).rejects.toMatchObject({
      code: 'ERR_STORE_UNSAFE',
      message: expect.stringContaining('full_page_writes is off'),
    });
  });

  test('whose standby does not answer: what is committed here alone is not told as stored', async () => {
    const url = server?.url ?? '';
    const open = postgresOpener({ url, waived: ['fsync', 'full_page_writes'], deadlineMs: 1_000 });
    const store = await open();
    await put(store, change([write('op:a', 0)]));
    const beside = new pg.Client({ connectionString: url });
    beside.on('error', () => {});
    await beside.connect();
    const standbys = async (statement: string) => {
      await beside.query(statement);
      await beside.query('SELECT pg_reload_conf()');
    };
    await standbys("ALTER SYSTEM SET synchronous_standby_names = 'nobody'");
    // Some are stored before the server has taken note of that.
    let version = 1;
    const storeMore = async () => {
      for (;;) {
        await put(store, change([write('op:a', version)]));
        version += 1;
      }
    };
    const fault = storeMore().then(
      () => undefined,
      (error: unknown) => error,
    );
    let waiting: unknown;
    while (waiting === undefined) {
      const { rows } = await beside.query("SELECT pid FROM pg_stat_activity WHERE wait_event = 'SyncRep'");
      waiting = rows[0]?.pid;
      if (waiting === undefined) await new Promise((resolve) => setTimeout(resolve, 5));
    }
    const cancelled = version;
    // A wait that somebody cancels is answered as a success, with a warning beside it.
    await beside.query('SELECT pg_cancel_backend($1)', [waiting]);
    expect(await fault).toMatchObject({ name: 'StoreFault', fate: 'unknown' });
    expect(version).toBe(cancelled);
    await store.close();
    await standbys('ALTER SYSTEM RESET synchronous_standby_names');
    const again = await open();
    expect(await versionOf(again, 'op:a')).toBe(version + 1);
    await again.close();
    await beside.end();
  });
});

describe('the SQL', () => {
  const statements = new Statements('"counterfoil"');
  const query = { tenant: TENANT, limit: 1 };
  const liveTexts = [query, { ...query, queues: ['crm'], stages: ['ready'], dueBy: 1, worker: 'w' }].map(
    (each) => liveStatement(statements, each).text,
  );
  const everything = [...statements.all, ...tablesOf('"counterfoil"', 'l'), ...liveTexts];

  /** What a database that only speaks as PostgreSQL does may lack, or what would be a clock that is not ours. */
  const BANNED = [
    /\btrigger\b/i,
    /\breferences\b|\bforeign key\b|\bcascade\b/i,
    /advisory/i,
    /\b(un)?listen\b|\bnotify\b/i,
    /\bsavepoint\b/i,
    /\bcreate\s+sequence\b|\bnextval\b|\b(small|big)?serial\b|\bidentity\b/i,
    /\bnow\s*\(|\bcurrent_(timestamp|date|time)\b|\blocaltime|clock_timestamp|statement_timestamp|transaction_timestamp/i,
    /\bfunction\b|\bprocedure\b|\bplpgsql\b/i,
    /\btemp(orary)?\b|\btruncate\b|\bpartition\b/i,
  ];
  const findBanned = (texts: readonly string[]) =>
    texts.flatMap((text) => BANNED.filter((word) => word.test(text)).map((word) => `${word}: ${text}`));

  test('relies on nothing that the databases it is meant for do not share', () => {
    expect(everything.length).toBeGreaterThan(25);
    expect(findBanned(everything)).toEqual([]);
  });

  test.each([
    'CREATE TRIGGER t',
    'SELECT pg_advisory_lock(1)',
    'LISTEN work',
    'NOTIFY work',
    'SAVEPOINT a',
    'CREATE SEQUENCE s',
    'id bigserial',
    'SELECT now()',
    'x REFERENCES y ON DELETE CASCADE',
    'DEFAULT current_timestamp',
  ])('is found out where it would: %s', (text) => {
    expect(findBanned([text])).not.toEqual([]);
  });

  test.skipIf(database === undefined)('finds live work by an index, whatever it is asked', async () => {
    const store = await openPostgresStore({
      url: database?.address({ parameters: { schema: 'planned' } }) ?? '',
    });
    await put(store, change([write('op:a', 0, { live: live('a') })]));
    await store.close();
    const planned = new Statements('"planned"');
    for (const form of [
      { dueBy: 1, queues: ['crm'] },
      { after: 'a' },
      { queues: ['crm'], stages: ['ready'] },
    ]) {
      const { text, values } = liveStatement(planned, { ...query, ...form });
      await database?.ask('SET enable_seqscan = off');
      const plan = (await database?.ask(`EXPLAIN ${text}`, values)) ?? [];
      expect(plan.map((row) => row['QUERY PLAN']).join('\n')).toMatch(/Index (Only )?Scan using live_by_/);
    }
  });
});
