// The tables of the embedded store, and the check that a file holds a version of them that this code may use.
//
// One integer leads every key that a name leads elsewhere: a tenant's number (its bucket in the high bits, see
// tenants.ts), or a stream's number, which belongs to one tenant. Rows are therefore small, and everything
// that one operation writes lies on the pages that its neighbours in time have just written: in WAL mode the
// cost of a commit is the number of different pages it touches. The claim and cross-run keys alone are random,
// within their hour.

import { StoreFault } from '../port.ts';
import type { SqliteConnection } from './driver.ts';

/** Counts up with every change of the tables. */
export const SCHEMA_VERSION = 3;

const TABLES = `
CREATE TABLE meta (
  name  TEXT PRIMARY KEY,
  value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE tenant (
  id   INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE
) STRICT;

-- One history's present state and, while its work is open, what it is found by. Those columns are NULL once the
-- work is settled, and the partial indexes hold open work alone; a table beside this one would be a second row
-- to write and to remove for every operation. The row leads to the newest of its events and documents, each of
-- which leads to the one before: an index over them would be another page to write in every commit. What of the
-- state never changes is in the row of the first events, so that this one stays short.
CREATE TABLE stream (
  id           INTEGER PRIMARY KEY,
  tenant       INTEGER NOT NULL,
  name         TEXT NOT NULL,
  version      INTEGER NOT NULL,
  fixed_event  INTEGER,
  last_event   INTEGER,
  last_content INTEGER,
  queue        TEXT,
  stage        TEXT,
  due_at       INTEGER,
  worker       TEXT,
  order_key    TEXT,
  marked_at    INTEGER,
  state        TEXT NOT NULL,
  UNIQUE (tenant, name)
) STRICT;
-- What a worker holds is as little as is out at once, and comes and goes with every operation: one small index has it,
-- and is read whole. What nobody holds may be much, and stays: it is found by due time and by order.
CREATE INDEX live_held ON stream (tenant, order_key) WHERE worker IS NOT NULL;
CREATE INDEX live_by_queue ON stream (tenant, queue, due_at, order_key) WHERE queue IS NOT NULL AND worker IS NULL;
CREATE INDEX live_by_order ON stream (tenant, order_key) WHERE queue IS NOT NULL AND worker IS NULL;

-- The next number is one above the highest, and a number that a claim still holds must never be given again.
CREATE TRIGGER newest_stream_stays BEFORE DELETE ON stream WHEN OLD.id = (SELECT max(id) FROM stream)
BEGIN SELECT RAISE(ABORT, 'the newest stream stays, so that its number is not given again'); END;

-- Append-only: one row per commit of a stream, holding its events as a JSON array, in order of commit.
CREATE TABLE event (
  id          INTEGER PRIMARY KEY,
  stream      INTEGER NOT NULL,
  version     INTEGER NOT NULL,
  recorded_at INTEGER NOT NULL,
  previous    INTEGER,
  events      TEXT NOT NULL,
  fixed       TEXT
) STRICT;

CREATE TRIGGER event_is_append_only BEFORE UPDATE ON event
BEGIN SELECT RAISE(ABORT, 'events are append-only'); END;

-- Claims, never released: the holder is a stream's number; no index leads from streams to claims, hence no
-- REFERENCES. What begins alike is the same intent in other runs. Where no claim begins with the hour in which
-- an operation was proposed, an entry with a sequence below 0, made from the stream's number, does.
CREATE TABLE claim (
  tenant   INTEGER NOT NULL,
  key      BLOB NOT NULL,
  sequence INTEGER NOT NULL,
  holder   INTEGER NOT NULL,
  PRIMARY KEY (tenant, key, sequence)
) STRICT, WITHOUT ROWID;

CREATE TRIGGER claim_is_never_passed_on BEFORE UPDATE ON claim
BEGIN SELECT RAISE(ABORT, 'claims are never passed on'); END;

CREATE TABLE content (
  id       INTEGER PRIMARY KEY,
  owner    INTEGER NOT NULL,
  previous INTEGER,
  digest   BLOB NOT NULL,
  label    TEXT NOT NULL,
  salt     BLOB NOT NULL,
  bytes    BLOB NOT NULL
) STRICT;

INSERT INTO meta (name, value) VALUES
  ('schema', '${SCHEMA_VERSION}'),
  -- The lowest schema version that code must know to use this file; it rises only with a breaking change.
  ('schema_needed', '${SCHEMA_VERSION}');
`;

/**
 * Creates the tables where there are none. Safe with several processes at once: the look and the creation are
 * one transaction under the write lock. Throws SQLite's own error when the lock is not to be had, so that the
 * caller tries again.
 * @throws {StoreFault} `ERR_STORE_VERSION` for a file that needs newer code, `ERR_STORE_UNAVAILABLE` for a
 *   database of another program.
 */
export function ensureSchema(connection: SqliteConnection, file: string): void {
  if (readSchemaNeeded(connection, file) === undefined) {
    connection.exec('BEGIN IMMEDIATE');
    try {
      if (readSchemaNeeded(connection, file) === undefined) connection.exec(TABLES);
      connection.exec('COMMIT');
    } catch (error) {
      if (connection.isTransaction) connection.exec('ROLLBACK');
      throw error;
    }
  }
}

function readSchemaNeeded(connection: SqliteConnection, file: string): number | undefined {
  const tables = connection.prepare("SELECT name FROM sqlite_schema WHERE type = 'table'").all() as {
    readonly name: string;
  }[];
  if (tables.length === 0) return undefined;

  const meta = tables.some((table) => table.name === 'meta')
    ? (connection.prepare("SELECT value FROM meta WHERE name = 'schema_needed'").get() as
        | { readonly value: string }
        | undefined)
    : undefined;
  if (meta === undefined) {
    throw new StoreFault(
      'ERR_STORE_UNAVAILABLE',
      `The file ${file} was not opened: it is a database of another program. Name another file for the store.`,
      { fate: 'not_stored' },
    );
  }
  const needed = Number(meta.value);
  if (needed < SCHEMA_VERSION) {
    throw new StoreFault(
      'ERR_STORE_VERSION',
      `The store at ${file} was not opened: it was written by an earlier Counterfoil (schema ${needed}; this one ` +
        `uses ${SCHEMA_VERSION}), from before the first release. Read it with that one, and name another place here.`,
      { fate: 'not_stored' },
    );
  }
  if (needed > SCHEMA_VERSION) {
    throw new StoreFault(
      'ERR_STORE_VERSION',
      `The store at ${file} was not opened: it was written by a newer Counterfoil (it needs schema ${needed}; ` +
        `this one knows ${SCHEMA_VERSION}). Use the newer Counterfoil with it.`,
      { fate: 'not_stored' },
    );
  }
  return needed;
}
