// The SQLite engine: `node:sqlite` where Node carries one recent enough, else the package with the same interface.
//
// Everything else in this room is written against the few members below, so that a test can stand between
// the store and the engine, and so that no driver's own types are needed to compile.

import { StoreFault } from '../port.ts';

/** What the engine binds and returns. Integers are numbers: nothing stored here exceeds 2^53. */
export type SqliteValue = null | number | string | Uint8Array;

export interface SqliteStatement {
  run(...values: readonly SqliteValue[]): {
    readonly changes: number | bigint;
    readonly lastInsertRowid: number | bigint;
  };
  get(...values: readonly SqliteValue[]): unknown;
  all(...values: readonly SqliteValue[]): unknown[];
  setReturnArrays(enabled: boolean): void;
}

export interface SqliteConnection {
  /** Whether a transaction is open. SQLite ends one by itself on some errors, a full disk among them. */
  readonly isTransaction: boolean;
  exec(sql: string): void;
  prepare(sql: string): SqliteStatement;
  close(): void;
}

export interface SqliteDriver {
  /** The module that it came from. */
  readonly name: string;
  /** The engine's own answer to `sqlite_version()`. */
  readonly version: string;
  open(file: string): SqliteConnection;
}

/** Where an engine may come from; `load` gives `undefined` where this Node has no such module. */
export interface DriverSource {
  readonly name: string;
  load(): Promise<SqliteModule | undefined>;
}

/** The part of `node:sqlite` that is used. */
export interface SqliteModule {
  readonly DatabaseSync: new (file: string) => SqliteConnection;
}

/**
 * The oldest engine that is used. 3.51.3 mended the WAL-reset bug, by which a checkpoint that ran beside a
 * writer could lose committed pages: https://sqlite.org/wal.html#walresetbug
 */
export const SQLITE_VERSION_MIN = '3.51.3';

const sources: readonly DriverSource[] = [
  { name: 'node:sqlite', load: async () => loadBuiltin() },
  {
    name: '@photostructure/sqlite',
    load: () => import('@photostructure/sqlite'),
  },
];

/**
 * The first source whose engine loads and is recent enough.
 * @throws {StoreFault} `ERR_STORE_VERSION` when engines load but all are too old, `ERR_STORE_UNAVAILABLE` when
 *   none loads; the message says what was tried and what to do.
 */
export async function loadSqliteDriver(from: readonly DriverSource[] = sources): Promise<SqliteDriver> {
  const tried: string[] = [];
  let outdated = false;
  let cause: unknown;
  for (const source of from) {
    try {
      const module = await source.load();
      if (module === undefined) {
        tried.push(`${source.name}: not part of Node ${process.versions.node}`);
        continue;
      }
      const driver = describeDriver(source.name, module);
      if (isRecentEnough(driver.version)) return driver;
      outdated = true;
      tried.push(`${source.name}: carries SQLite ${driver.version}`);
    } catch (error) {
      cause = error;
      tried.push(`${source.name}: ${error instanceof Error ? error.message.split('\n')[0] : String(error)}`);
    }
  }
  throw new StoreFault(
    outdated ? 'ERR_STORE_VERSION' : 'ERR_STORE_UNAVAILABLE',
    `No SQLite of version ${SQLITE_VERSION_MIN} or later could be loaded (${tried.join('; ')}). ` +
      'Use Node 24 or later, or install Counterfoil again so that @photostructure/sqlite is there for this platform.',
    { fate: 'not_stored', cause },
  );
}

/** Compares dotted numbers; anything that is not three of them is not recent enough. */
export function isRecentEnough(version: string): boolean {
  const parts = version.split('.').map(Number);
  const least = SQLITE_VERSION_MIN.split('.').map(Number);
  for (const [index, wanted] of least.entries()) {
    const found = parts[index];
    if (found === undefined || Number.isNaN(found)) return false;
    if (found !== wanted) return found > wanted;
  }
  return true;
}

function describeDriver(name: string, module: SqliteModule): SqliteDriver {
  const probe = new module.DatabaseSync(':memory:');
  try {
    const row = probe.prepare('SELECT sqlite_version() AS version').get() as { readonly version: string };
    return { name, version: row.version, open: (file) => new module.DatabaseSync(file) };
  } finally {
    probe.close();
  }
}

/**
 * Loads Node's own module without its "experimental" line, which Node 22 prints once per process and which
 * would only tell a user about a choice that this file has already weighed. Loading is synchronous, so the
 * replacement of `emitWarning` is gone again before any other code can run, and passes on all other warnings.
 */
function loadBuiltin(): SqliteModule | undefined {
  const emitWarning = process.emitWarning;
  const withoutOwn = (...warning: readonly unknown[]): void => {
    const isOwn = warning[1] === 'ExperimentalWarning' && String(warning[0]).includes('SQLite');
    if (!isOwn) Reflect.apply(emitWarning, process, warning);
  };
  process.emitWarning = withoutOwn;
  try {
    return process.getBuiltinModule('node:sqlite') as SqliteModule | undefined;
  } finally {
    process.emitWarning = emitWarning;
  }
}
