// The embedded store: one SQLite file, or `:memory:`, behind the store port.

import assert from 'node:assert/strict';
import { resolve } from 'node:path';
import {
  assertChange,
  assertDigest,
  assertKey,
  assertLimit,
  assertName,
  assertPrefix,
  assertStream,
} from '../assert-change.ts';
import { freezeChange } from '../frozen-change.ts';
import type { Change, Durability, LiveQuery, Store, StreamQuery } from '../port.ts';
import { loadSqliteDriver, type SqliteDriver } from './driver.ts';
import { GroupCommit } from './group-commit.ts';
import { Handle } from './handle.ts';
import { IN_MEMORY, openDatabase } from './open-database.ts';
import { Place } from './place.ts';
import {
  LiveReadings,
  listStreams,
  readCrossRun,
  readDocuments,
  readHistory,
  readLatestClaims,
  readStreams,
} from './readings.ts';
import { Tenants } from './tenants.ts';

export interface SqliteStoreOptions {
  /** The path of the database file, created where it is absent, or `:memory:`. */
  readonly file: string;
  /** The longest time to wait for another process's lock before a call is given up as not stored. 10,000. */
  readonly lockWaitMs?: number;
  /** The engine; by default the first that `loadSqliteDriver` finds. */
  readonly driver?: SqliteDriver;
}

/**
 * Opens the store and creates its directory (mode 0700), file (0600) and tables where they are absent. Several
 * processes may have one file open.
 * @throws {StoreFault} with one sentence that names the path: `ERR_STORE_UNAVAILABLE` where the place cannot be
 *   used, `ERR_STORE_UNSAFE` where durability is not in force, `ERR_STORE_VERSION` where the engine is too old
 *   or the file needs a newer Counterfoil.
 */
export async function openSqliteStore(options: SqliteStoreOptions): Promise<Store> {
  assert(options.file !== '', 'The store needs the path of its file.');
  const file = options.file === IN_MEMORY ? IN_MEMORY : resolve(options.file);
  const lockWaitMs = options.lockWaitMs ?? 10_000;
  const driver = options.driver ?? (await loadSqliteDriver());
  const { connection, settings } = await openDatabase({ file, driver, lockWaitMs });
  const place = new Place(file, file === IN_MEMORY);
  return new SqliteStore(new Handle({ file, connection, lockWaitMs, place }), {
    engine: 'sqlite',
    version: driver.version,
    settings: { ...settings, driver: driver.name },
  });
}

class SqliteStore implements Store {
  readonly durability: Durability;
  readonly #handle: Handle;
  readonly #tenants: Tenants;
  readonly #groupCommit: GroupCommit;
  readonly #liveReadings: LiveReadings;

  constructor(handle: Handle, durability: Durability) {
    this.durability = durability;
    this.#handle = handle;
    this.#tenants = new Tenants(handle.statements);
    this.#groupCommit = new GroupCommit(handle, this.#tenants);
    this.#liveReadings = new LiveReadings(handle.connection);
  }

  get commits(): number {
    return this.#groupCommit.commits;
  }

  async commit(changes: readonly Change[]) {
    this.#handle.assertUsable();
    for (const change of changes) assertChange(change);
    return changes.length === 0 ? [] : this.#groupCommit.store(changes.map(freezeChange));
  }

  async read(tenant: string, streams: readonly string[]) {
    for (const stream of streams) assertStream(stream);
    return this.#read(tenant, (number) => readStreams(this.#handle.statements, number, streams));
  }

  async latestClaims(tenant: string, keys: readonly string[]) {
    for (const key of keys) assertKey(key);
    return this.#read(tenant, (number) => readLatestClaims(this.#handle.statements, number, keys));
  }

  async crossRun(tenant: string, prefixes: readonly string[], limit: number) {
    for (const prefix of prefixes) assertPrefix(prefix);
    assertLimit(limit);
    return this.#read(tenant, (number) => readCrossRun(this.#handle.statements, number, prefixes, limit));
  }

  async history(tenant: string, stream: string) {
    assertStream(stream);
    return this.#read(tenant, (number) => readHistory(this.#handle.statements, number, stream));
  }

  async live(query: LiveQuery) {
    assertLimit(query.limit);
    for (const name of [...(query.queues ?? []), query.worker ?? '-']) assertName('queue or worker', name);
    assert(query.after === undefined || query.dueBy === undefined, 'live pages by order, not by due time.');
    return this.#read(query.tenant, (number) => this.#liveReadings.read(number, query));
  }

  async streams(query: StreamQuery) {
    assertLimit(query.limit);
    assertStream(query.after ?? `${query.kind}:-`);
    return this.#read(query.tenant, (number) => listStreams(this.#handle.statements, number, query));
  }

  async documents(tenant: string, references: Parameters<Store['documents']>[1]) {
    for (const { owner, digest } of references) {
      assertStream(owner);
      assertDigest(digest);
    }
    return this.#read(tenant, (number) => readDocuments(this.#handle.statements, number, references));
  }

  async foreignCommits() {
    this.#handle.assertInPlace();
    return this.#handle.snapshot(() => {
      const [version] = this.#handle.statements.dataVersion.get() as readonly [number];
      return version;
    });
  }

  /** Waits for the calls already made, then gives the file up. Calling it again does nothing. */
  async close() {
    await this.#groupCommit.idle();
    this.#handle.close();
  }

  async #read<T>(tenant: string, read: (number: number) => T): Promise<T> {
    assertName('tenant', tenant);
    return this.#handle.snapshot(() => read(this.#tenants.find(tenant)));
  }
}
