import { copyFileSync, existsSync, mkdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, describe, expect, test } from 'vitest';
import { checkStore } from '../../src/cli/check-machine.ts';
import type { CommandFault } from '../../src/cli/output.ts';
import { storeUse } from '../../src/cli/store.ts';
import {
  CleanUps,
  callsOf,
  counterfoil,
  operationOf,
  operationsIn,
  startGateway,
  textOf,
  toolsServer,
  untilAsync,
} from '../gateway/processes.ts';
import { testDatabase } from '../store/fixtures/postgres.ts';
import { PostgresProxy } from '../store/fixtures/postgres-proxy.ts';

const database = await testDatabase();
const proxy = database === undefined ? undefined : await PostgresProxy.start(database.url);
afterAll(() => proxy?.stop());

const cleanUps = new CleanUps();
afterEach(cleanUps.run);

const TOOLS = [
  { name: 'note', inputSchema: { type: 'object' } },
  { name: 'look', inputSchema: { type: 'object' }, annotations: { readOnlyHint: true } },
];
const CONFIG = 'destination: fixture\ntools:\n  note: {class: ordinary, repeat: unique}\n';

/** Two machines in front of one destination: each has a data directory of its own. */
function setup(schema: string, port?: number) {
  const folder = cleanUps.folder();
  const secret = 'hunter2-of-the-tests';
  const url = database?.address({
    password: secret,
    parameters: { schema },
    ...(port === undefined ? {} : { port }),
  }) as string;
  writeFileSync(join(folder, 'tools.json'), JSON.stringify(TOOLS));
  writeFileSync(join(folder, 'plan.json'), JSON.stringify({ note: { does: 'answer' } }));
  const machine = (name: string) => {
    const data = join(folder, name, 'data');
    mkdirSync(join(folder, name), { recursive: true });
    return {
      data,
      run: (...args: readonly string[]) => counterfoil(['store', ...args, '--data', data]),
      /** In this process: the same, where it is refused. */
      refusal: (address: string, more: Parameters<typeof storeUse>[1] = {}) =>
        storeUse(address, { data, ...more }).then(
          () => undefined,
          (fault: unknown) => fault as CommandFault,
        ),
      gateway: async () => {
        const gateway = cleanUps.started(
          startGateway({ data, server: toolsServer(folder), config: CONFIG, run: 'r' }),
        );
        await gateway.initialize();
        return (text: string) => gateway.call('note', { text });
      },
    };
  };
  return { folder, url, secret, machine };
}

describe.skipIf(database?.isOurs !== true)('a ledger on PostgreSQL', () => {
  test('is shared by machines that have its key, and a write of one is no new one for the other', async () => {
    const { folder, url, secret, machine } = setup('shared');
    const [one, other] = [machine('one'), machine('other')];
    const used = await one.run('use', url);
    expect(used).toMatchObject({ code: 0, stderr: '' });
    expect(used.stdout).toMatch(
      /^The ledger of \S+ is at postgres:\/\/owner@127\.0\.0\.1:\d+\/\w+ \(schema shared\) now/,
    );
    expect(statSync(join(one.data, 'store.json')).mode & 0o777).toBe(0o600);

    const refused = await other.refusal(url);
    expect(refused?.exitCode).toBe(1);
    expect(refused?.message).toMatch(/its key file intent\.key is missing here.*Put it there[^\n]*\.$/);
    expect(existsSync(join(other.data, 'store.json'))).toBe(false);
    mkdirSync(other.data);
    writeFileSync(join(other.data, 'intent.key'), Buffer.alloc(32, 7));
    expect((await other.refusal(url))?.message).toContain('it was begun with another key');
    copyFileSync(join(one.data, 'intent.key'), join(other.data, 'intent.key'));
    expect(await other.refusal(url)).toBeUndefined();

    const [first, second] = await Promise.all([one.gateway(), other.gateway()]);
    expect((await first('Freeze')).isError).not.toBe(true);
    // Until it is on record that the first was told, another may be given the same answer as its own.
    await untilAsync(
      async () => (await operationsIn(one.data))[0]?.deliveredAt !== undefined,
      'the first answer to be on record as delivered',
    );
    const repeated = await second('Freeze');
    expect(textOf(repeated)).toMatch(/^ALREADY_EXISTS — /);
    expect(callsOf(folder, 'note')).toHaveLength(1);
    const known = await operationsIn(other.data);
    expect(known.map(({ id, effect }) => [id, effect])).toEqual([[operationOf(repeated), 'accepted']]);
    expect(await operationsIn(one.data)).toEqual(known);

    // Both at once: one of them sends, and the other is told so.
    await Promise.all([first('Thaw'), second('Thaw')]);
    expect(callsOf(folder, 'note')).toHaveLength(2);

    const status = await other.run('status');
    expect(status.stdout).toMatch(
      /\(schema shared\)\nPostgreSQL \d+[^\n]*\n {2}isolation: [^\n]*\n {2}fsync: on\n/,
    );
    const looked = await checkStore(other.data);
    expect(looked).toMatchObject({ level: 'ok' });
    expect(looked.found).toContain('read back: fsync on, full_page_writes on, synchronous_commit on');
    expect(used.stdout + refused?.message + status.stdout + looked.found).not.toContain(secret);
  });

  test('that goes away is not written to, and nothing is sent; when it is back, the same call is sent once', async () => {
    const { folder, url, machine } = setup('away', proxy?.port);
    const one = machine('one');
    expect(await one.refusal(url)).toBeUndefined();
    const call = await one.gateway();
    await call('before');
    if (proxy !== undefined) proxy.isClosed = true;
    proxy?.cut();
    const refused = await call('meanwhile');
    expect(textOf(refused)).toMatch(/^NOT RECORDED, NOT SENT — /);
    expect(callsOf(folder, 'note')).toHaveLength(1);
    if (proxy !== undefined) proxy.isClosed = false;
    expect((await call('meanwhile')).isError).not.toBe(true);
    expect(callsOf(folder, 'note')).toHaveLength(2);
  });

  test('that was begun anew in the same place is not the one that the machine works with', async () => {
    const { url, machine } = setup('begun_anew');
    const one = machine('one');
    expect(await one.refusal(url)).toBeUndefined();
    await database?.ask('DROP SCHEMA begun_anew CASCADE');
    const gone = await counterfoil(['report', '--data', one.data]);
    expect(gone.code).toBe(1);
    expect(gone.stderr).toContain('the ledger that was there is gone');
    expect((await one.refusal(url))?.message).toContain('the ledger that was there is gone');
    expect(await machine('other').refusal(url)).toBeUndefined();
    expect((await one.refusal(url))?.message).toContain('does not have what it has confirmed before');
  });

  test('is refused where there is one in the directory already, and for what cannot be meant', async () => {
    const { url, machine } = setup('never');
    const { data, refusal } = machine('one');
    const refused = await refusal(url, { waive: ['autovacuum'] });
    expect(refused).toMatchObject({ exitCode: 2, message: expect.stringContaining('Nothing was changed.') });
    mkdirSync(data);
    writeFileSync(join(data, 'ledger.sqlite'), '');
    expect(await refusal(url)).toMatchObject({
      exitCode: 5,
      message: expect.stringMatching(/^There is a ledger in .*Nothing was changed\.$/),
    });
    const wrong = await machine('two').refusal('postgres://root:hunter2@localhost');
    expect(wrong?.message).toMatch(/^The store was not opened: .* names no database[^\n]*\.$/);
    expect(wrong?.message).not.toContain('hunter2');
  });

  test('has its tables made by whoever may, and the user of the ledger needs no right to make any', async () => {
    const { url, machine } = setup('printed');
    const { run, refusal } = machine('one');
    const printed = await run('migrate', url, '--print');
    expect(printed.stdout).toMatch(/^CREATE SCHEMA IF NOT EXISTS "printed";\nCREATE TABLE "printed"\.meta/);
    await database?.ask(printed.stdout);
    await database?.ask(
      'GRANT USAGE ON SCHEMA printed TO guest; GRANT ALL ON ALL TABLES IN SCHEMA printed TO guest',
    );
    const guest = database?.address({ user: 'guest', parameters: { schema: 'printed' } }) ?? '';
    expect(await refusal(guest)).toBeUndefined();
    expect((await run('migrate')).stdout).toMatch(
      /^The tables at postgres:\/\/guest@.* are there, schema 1\.\n$/,
    );
  });
});

describe.skipIf(database?.isOurs !== true)('counterfoil store check', () => {
  test('runs every case in a place that it removes, and names the one where a database does not do what is asked', async () => {
    // A server that loses what is marked, beneath the store's feet.
    await database?.ask(`CREATE FUNCTION forget() RETURNS trigger LANGUAGE plpgsql AS
      $$ BEGIN NEW.marked_at := NULL; RETURN NEW; END $$;
      CREATE FUNCTION spoil() RETURNS event_trigger LANGUAGE plpgsql AS $$ DECLARE made record; BEGIN
        FOR made IN SELECT * FROM pg_event_trigger_ddl_commands() WHERE object_type = 'table'
          AND object_identity LIKE 'counterfoil_check%.stream' LOOP
          EXECUTE format('CREATE TRIGGER forget BEFORE UPDATE ON %s FOR EACH ROW EXECUTE FUNCTION public.forget()', made.object_identity);
        END LOOP; END $$;
      CREATE EVENT TRIGGER spoil ON ddl_command_end WHEN TAG IN ('CREATE TABLE') EXECUTE FUNCTION spoil()`);
    const ran = await counterfoil(['store', 'check', database?.url ?? '']);
    await database?.ask('DROP EVENT TRIGGER spoil');
    expect(ran.code).toBe(1);
    expect(ran.stdout).toMatch(/^BROKEN {2}a mark is read with the version that it is about/m);
    const held = ran.stdout.match(/^holds {3}/gm)?.length ?? 0;
    expect(held).toBeGreaterThan(35);
    expect(ran.stdout).toContain(`\n${held} of ${held + 1} cases hold at postgres://owner@`);
    const left = await database?.ask(
      "SELECT 1 FROM information_schema.schemata WHERE schema_name LIKE 'counterfoil_check%'",
    );
    expect(left).toEqual([]);
  });
});

test('the store of a directory without a store is named as it is', async () => {
  const data = join(cleanUps.folder(), 'data');
  const ran = await counterfoil(['store', 'status', '--data', data]);
  expect(ran.stdout).toMatch(/ledger\.sqlite: there is no ledger yet\nSQLite \d/);
});
