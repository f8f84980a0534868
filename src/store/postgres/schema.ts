// The tables of the store on PostgreSQL, and the check that a schema holds a version of them that this code may use.
//
// `bucket`, a hash of the tenant's name, leads every key and the tenant follows, so that all rows of one operation lie
// in one partition or shard. There are no sequences, triggers, foreign keys or singleton rows: what they would give is
// given by keys, versions and the row that each open store has in `writer`.

import { randomBytes } from 'node:crypto';
import { StoreFault } from '../port.ts';
import { causeOf, sqlStateOf } from './faults.ts';
import type { Line } from './line.ts';

/** Counts up with every change of the tables. */
export const SCHEMA_VERSION = 1;

/** All but `meta`. */
export const TABLES = ['stream', 'event', 'live', 'claim', 'cross_run', 'content', 'writer'] as const;

/**
 * What creates the tables in a schema, one statement each. Names compare byte by byte ("C"), as in every other adapter.
 * A stream of version 0 does not exist: such a row is there to be locked by those who require that it does not.
 */
export function tablesOf(schema: string, ledger: string): readonly string[] {
  return [
    `CREATE TABLE ${schema}.meta (
  name  text COLLATE "C" NOT NULL,
  value text NOT NULL,
  PRIMARY KEY (name)
)`,
    // No index but the key: with every step the row is written anew, and stays on its page.
    `CREATE TABLE ${schema}.stream (
  bucket    smallint NOT NULL,
  tenant    text COLLATE "C" NOT NULL,
  name      text COLLATE "C" NOT NULL,
  version   bigint NOT NULL,
  state     text NOT NULL,
  marked_at bigint,
  PRIMARY KEY (bucket, tenant, name)
)`,
    // Append-only: one row for each commit of a stream that has events, as a JSON array.
    `CREATE TABLE ${schema}.event (
  bucket      smallint NOT NULL,
  tenant      text COLLATE "C" NOT NULL,
  stream      text COLLATE "C" NOT NULL,
  version     bigint NOT NULL,
  recorded_at bigint NOT NULL,
  events      text NOT NULL,
  fixed       text,
  PRIMARY KEY (bucket, tenant, stream, version)
)`,
    // Open work alone: small, and the one table whose rows go.
    `CREATE TABLE ${schema}.live (
  bucket    smallint NOT NULL,
  tenant    text COLLATE "C" NOT NULL,
  stream    text COLLATE "C" NOT NULL,
  queue     text COLLATE "C" NOT NULL,
  stage     text COLLATE "C" NOT NULL,
  due_at    bigint NOT NULL,
  worker    text COLLATE "C",
  order_key text COLLATE "C" NOT NULL,
  PRIMARY KEY (bucket, tenant, stream)
)`,
    `CREATE INDEX live_by_queue ON ${schema}.live (bucket, tenant, queue, due_at, order_key)`,
    `CREATE INDEX live_by_order ON ${schema}.live (bucket, tenant, order_key)`,
    // Never released and never passed on. A key begins with its hour, so that fresh keys share pages.
    `CREATE TABLE ${schema}.claim (
  bucket   smallint NOT NULL,
  tenant   text COLLATE "C" NOT NULL,
  key      bytea NOT NULL,
  sequence bigint NOT NULL,
  holder   text COLLATE "C" NOT NULL,
  PRIMARY KEY (bucket, tenant, key, sequence)
)`,
    `CREATE TABLE ${schema}.cross_run (
  bucket smallint NOT NULL,
  tenant text COLLATE "C" NOT NULL,
  key    bytea NOT NULL,
  stream text COLLATE "C" NOT NULL,
  PRIMARY KEY (bucket, tenant, key, stream)
)`,
    `CREATE TABLE ${schema}.content (
  bucket smallint NOT NULL,
  tenant text COLLATE "C" NOT NULL,
  owner  text COLLATE "C" NOT NULL,
  digest bytea NOT NULL,
  label  text NOT NULL,
  salt   bytea NOT NULL,
  bytes  bytea NOT NULL,
  PRIMARY KEY (bucket, tenant, owner, digest)
)`,
    // One row for each store that is open, and bucket that it has written: how many transactions it has committed.
    `CREATE TABLE ${schema}.writer (
  bucket  smallint NOT NULL,
  id      text COLLATE "C" NOT NULL,
  commits bigint NOT NULL,
  settled bigint NOT NULL,
  PRIMARY KEY (bucket, id)
)`,
    // The second is the lowest version that code must know; it rises only with a breaking change. By the third a ledger
    // is told from another that was begun in the same place.
    `INSERT INTO ${schema}.meta (name, value) VALUES
  ('schema', '${SCHEMA_VERSION}'), ('schema_needed', '${SCHEMA_VERSION}'), ('ledger', '${ledger}')`,
  ];
}

export type SchemaState =
  | { readonly state: 'absent' }
  | { readonly state: 'foreign' }
  | {
      readonly state: 'present';
      readonly version: number;
      readonly needed: number;
      readonly ledger: string;
      /** The digest of the key that it was begun with; absent until somebody has. */
      readonly key: string | undefined;
    };

/** A name for a ledger that is begun now. */
export function newLedger(): string {
  return randomBytes(16).toString('hex');
}

/** Reads what there is, and changes nothing. */
export async function readSchema(line: Line, schema: string, plainName: string): Promise<SchemaState> {
  try {
    const rows = await line.run({
      text: `SELECT name, value FROM ${schema}.meta`,
    });
    const values = new Map(rows as readonly (readonly [string, string])[]);
    const needed = Number(values.get('schema_needed'));
    if (!Number.isSafeInteger(needed)) return { state: 'foreign' };
    const ledger = values.get('ledger') ?? '';
    return {
      state: 'present',
      version: Number(values.get('schema')),
      needed,
      ledger,
      key: values.get('key'),
    };
  } catch (error) {
    if (!ABSENT.has(sqlStateOf(error) ?? '')) throw error;
  }
  const found = await line.run({
    text: 'SELECT 1 FROM information_schema.tables WHERE table_schema = $1 LIMIT 1',
    values: [plainName],
  });
  return { state: found.length === 0 ? 'absent' : 'foreign' };
}

/** undefined_table, undefined_column, invalid_schema_name. */
const ABSENT = new Set(['42P01', '42703', '3F000']);
/** Two that create the same at the same moment: unique_violation, duplicate schema, table, object, and the like. */
const OVERTAKEN = new Set(['23505', '42P06', '42P07', '42710', '40001', '40P01', 'XX000']);
const TRIES_MAX = 20;

/**
 * Creates the tables where there are none. Several processes may do so at once: one of them wins, and the others find
 * what it made.
 * @throws {StoreFault} `ERR_STORE_VERSION` for tables that need newer code, `ERR_STORE_UNAVAILABLE` for those of another
 *   program and where a right is missing
 */
export async function ensureSchema(
  line: Line,
  {
    schema,
    plainName,
    place,
    mayCreate,
  }: {
    readonly schema: string;
    readonly plainName: string;
    readonly place: string;
    readonly mayCreate: boolean;
  },
): Promise<SchemaState & { readonly state: 'present' }> {
  for (let tries = 1; ; tries += 1) {
    const found = await readSchema(line, schema, plainName);
    if (found.state === 'present') {
      assertKnown(found.needed, place);
      return found;
    }
    if (found.state === 'foreign') {
      throw new StoreFault(
        'ERR_STORE_UNAVAILABLE',
        `The store at ${place} was not opened: its schema holds tables of another program. Name another schema, with ?schema=NAME.`,
        { fate: 'not_stored' },
      );
    }
    if (!mayCreate) {
      throw new StoreFault(
        'ERR_STORE_UNSAFE',
        `The store at ${place} was not opened: the ledger that was there is gone, and in a new one every earlier write would be new. Bring it back, or name another place.`,
        { fate: 'not_stored' },
      );
    }
    try {
      await createTables(line, schema, plainName);
    } catch (error) {
      const state = sqlStateOf(error) ?? '';
      if (OVERTAKEN.has(state) && tries < TRIES_MAX) continue;
      if (state !== '42501') throw error;
      throw new StoreFault(
        'ERR_STORE_UNAVAILABLE',
        `The store at ${place} was not opened: it has no tables yet, and this user may not make them (${causeOf(error)}). Let somebody who may run what \`counterfoil store migrate --print\` prints.`,
        { fate: 'not_stored', cause: error },
      );
    }
  }
}

async function createTables(line: Line, schema: string, plainName: string): Promise<void> {
  await line.run({ text: 'BEGIN' });
  try {
    const there = await line.run({
      text: 'SELECT 1 FROM information_schema.schemata WHERE schema_name = $1',
      values: [plainName],
    });
    // A schema that somebody else has made for us asks for no right to make one.
    if (there.length === 0) await line.run({ text: `CREATE SCHEMA ${schema}` });
    for (const text of tablesOf(schema, newLedger())) await line.run({ text });
    await line.run({ text: 'COMMIT' });
  } catch (error) {
    await line.rollBack();
    throw error;
  }
}

/**
 * Whoever works on a ledger tells equal intents by one key. The first gives it its digest, and nobody comes in with
 * another: a write that was made would be a new one for them.
 * @throws {StoreFault} `ERR_STORE_UNSAFE`
 */
export async function assertSameKey(
  line: Line,
  { schema, place }: { readonly schema: string; readonly place: string },
  digest: string,
): Promise<void> {
  const text = `SELECT value FROM ${schema}.meta WHERE name = 'key'`;
  let [row] = await line.run({ text });
  if (row === undefined) {
    await line.run({
      text: `INSERT INTO ${schema}.meta (name, value) VALUES ('key', $1) ON CONFLICT (name) DO NOTHING`,
      values: [digest],
    });
    [row] = await line.run({ text });
  }
  if (row?.[0] === digest) return;
  throw new StoreFault(
    'ERR_STORE_UNSAFE',
    `The store at ${place} was not opened: it was begun with another key, and under this one its writes would be new. Put the file intent.key of a machine that works with it in the data directory of this one.`,
    { fate: 'not_stored' },
  );
}

function assertKnown(needed: number, place: string): void {
  if (needed <= SCHEMA_VERSION) return;
  throw new StoreFault(
    'ERR_STORE_VERSION',
    `The store at ${place} was not opened: it was written by a newer Counterfoil (it needs schema ${needed}; ` +
      `this one knows ${SCHEMA_VERSION}). Use the newer Counterfoil with it.`,
    { fate: 'not_stored' },
  );
}
