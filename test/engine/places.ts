// Where the ledgers of these tests are: SQLite, or with `TEST_STORE=postgres` that store.

import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { LEDGER_FILE } from '../../src/compose.ts';
import type { Store } from '../../src/store/port.ts';
import { loadSqliteDriver } from '../../src/store/sqlite/driver.ts';
import { openSqliteStore } from '../../src/store/sqlite/sqlite-store.ts';
import { readStoreFile, writeStoreFile } from '../../src/store/store-file.ts';
import type { TestDatabase } from '../store/fixtures/postgres.ts';

// What speaks to a server is loaded only then.
const database: TestDatabase | undefined =
  process.env['TEST_STORE'] === 'postgres'
    ? await (await import('../store/fixtures/postgres.ts')).testDatabase()
    : undefined;

/** In place of memory: a place that nobody else has. */
export function elsewhere(): { readonly storeUrl?: string } {
  return database === undefined ? {} : { storeUrl: addressOf(newSchema()) };
}

/** Has the ledger of a data directory where these tests have theirs. */
export async function placeOf(data: string): Promise<void> {
  if (database !== undefined) await writeStoreFile(data, { url: addressOf(newSchema()) });
}

/** One more connection to the ledger of a data directory. */
export async function openStoreIn(data: string): Promise<Store> {
  const named = readStoreFile(data);
  if (named === undefined) return openSqliteStore({ file: join(data, LEDGER_FILE) });
  return (await import('../../src/store/postgres/postgres-store.ts')).openPostgresStore(named);
}

/** Alters all content of one label, as somebody with an editor for databases would. */
export async function alterContent(data: string, label: string, text: string): Promise<void> {
  await alter(data, (schema, [first, second]) => ({
    sql: `UPDATE ${schema}content SET bytes = ${first} WHERE label = ${second}`,
    values: [Buffer.from(text), label],
  }));
}

export const alterPayloads = (data: string, text: string): Promise<void> =>
  alterContent(data, 'payload', text);

/** Alters a text in every state. */
export async function alterStates(data: string, from: string, to: string): Promise<void> {
  await alter(data, (schema, [first, second]) => ({
    sql: `UPDATE ${schema}stream SET state = replace(state, ${first}, ${second})`,
    values: [from, to],
  }));
}

type Alteration = (
  schema: string,
  places: readonly [string, string],
) => { readonly sql: string; readonly values: readonly [Buffer | string, string] };

async function alter(data: string, alteration: Alteration): Promise<void> {
  const named = readStoreFile(data);
  if (named !== undefined) {
    const schema = new URL(named.url).searchParams.get('schema');
    const { sql, values } = alteration(`${schema}.`, ['$1', '$2']);
    await database?.ask(sql, values);
    return;
  }
  const { sql, values } = alteration('', ['?', '?']);
  const file = (await loadSqliteDriver()).open(join(data, LEDGER_FILE));
  file.prepare(sql).run(...values);
  file.close();
}

function newSchema(): string {
  return `e_${randomBytes(8).toString('hex')}`;
}

function addressOf(schema: string): string {
  return database?.address({ parameters: { schema } }) ?? '';
}
