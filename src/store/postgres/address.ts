// The address of a store on PostgreSQL: what the driver is given, and what people are shown of it.

import type { ClientConfig } from 'pg';
import { StoreFault } from '../port.ts';

export interface PostgresAddress {
  readonly config: ClientConfig;
  /** The schema that holds the tables. */
  readonly plainName: string;
  /** The same, quoted for statements. */
  readonly schema: string;
  /** Without password and parameters. */
  readonly shown: string;
}

const DEFAULT_SCHEMA = 'counterfoil';
const SCHEMA_NAME = /^[a-z_][a-z0-9_]{0,62}$/;
const PARAMETER = 'schema';

/** Whether a text names a store on PostgreSQL. */
export function isPostgresAddress(text: string): boolean {
  return /^postgres(ql)?:/.test(text);
}

/**
 * @param text `postgres://user@host:port/database`, with `?schema=NAME` where the tables are not in `counterfoil`. What
 *   is left out comes from the environment (`PGPASSWORD` …) and the password file, as with every client of PostgreSQL.
 * @throws {StoreFault} for a text that is no such address; the sentence does not repeat it, as a password may be in it
 */
export function readAddress(text: string): PostgresAddress {
  let url: URL;
  try {
    url = new URL(text);
  } catch (cause) {
    throw notAnAddress('it is not postgres://user@host:port/database', cause);
  }
  if (!isPostgresAddress(text)) throw notAnAddress('it does not begin with postgres://');
  if (url.pathname.length < 2)
    throw notAnAddress('it names no database, as in postgres://user@host:port/database');
  const plainName = url.searchParams.get(PARAMETER) ?? DEFAULT_SCHEMA;
  if (!SCHEMA_NAME.test(plainName) || plainName.startsWith('pg_')) {
    throw notAnAddress('its schema is not a name of small letters, digits and _');
  }
  url.searchParams.delete(PARAMETER);
  const user = url.username === '' ? (url.searchParams.get('user') ?? '') : url.username;
  const host = url.host === '' ? (url.searchParams.get('host') ?? '') : url.host;
  return {
    config: { connectionString: url.href },
    plainName,
    schema: `"${plainName}"`,
    shown: `postgres://${user === '' ? '' : `${user}@`}${host}${url.pathname} (schema ${plainName})`,
  };
}

function notAnAddress(why: string, cause?: unknown): StoreFault {
  return new StoreFault(
    'ERR_STORE_UNAVAILABLE',
    `The store was not opened: its address cannot be used, because ${why}.`,
    // The URL parser repeats what it was given.
    { fate: 'not_stored', cause: cause instanceof Error ? cause.name : undefined },
  );
}
