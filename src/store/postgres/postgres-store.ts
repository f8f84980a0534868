// The store on PostgreSQL: many processes, on many machines, behind the store port.

import assert from 'node:assert/strict';
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
import {
  type Change,
  type Durability,
  type LiveQuery,
  type Store,
  StoreFault,
  type StreamQuery,
} from '../port.ts';
import { readAddress } from './address.ts';
import { readDurability } from './durability.ts';
import { causeOf } from './faults.ts';
import { GroupCommit, poisoned } from './group-commit.ts';
import { Line, Lines } from './line.ts';
import {
  listStreams,
  readCrossRun,
  readDocuments,
  readHistory,
  readLatestClaims,
  readLive,
  readStreams,
} from './readings.ts';
import { assertSameKey, ensureSchema, readSchema, type SchemaState } from './schema.ts';
import type { Waivable } from './settings.ts';
import { Statements } from './statements.ts';
import { Writer } from './writer.ts';

export interface PostgresStoreOptions {
  /** `postgres://user@host:port/database`, with `?schema=NAME` where the tables are not in `counterfoil`. */
  readonly url: string;
  /** The longest time for one answer of the server, and for a lock. 10,000. */
  readonly deadlineMs?: number;
  /** Settings that may be unsafe, by name. */
  readonly waived?: readonly Waivable[];
  /** The ledger that must be there, where one is known: another one, or an empty place, is refused. */
  readonly ledger?: string;
  /**
   * Gives the digest of the key by which equal intents are told; `mayMake` where the ledger was begun with none yet.
   * Everybody who opens the store must give the same.
   */
  readonly keyDigest?: (mayMake: boolean) => Promise<string>;
  /** Connections for readings, beside the one that writes. 4. */
  readonly readersMax?: number;
}

const DEADLINE_MS = 10_000;
const READERS_MAX = 4;

/**
 * Opens the store, and creates its tables where there are none. Several processes may have it open.
 * @throws {StoreFault} with one sentence that names the place: `ERR_STORE_UNAVAILABLE` where it cannot be reached or
 *   used, `ERR_STORE_UNSAFE` where durability is not in force, `ERR_STORE_VERSION` where the server is too old or the
 *   tables need a newer Counterfoil.
 */
export function openPostgresStore(options: PostgresStoreOptions): Promise<Store> {
  return postgresOpener(options)();
}

/**
 * Opens the store, and opens it again after a fault: a doubt that the store before had is settled first, so that what
 * is read afterwards is final.
 */
export function postgresOpener(options: PostgresStoreOptions): () => Promise<Store> {
  const writer = new Writer();
  return () => open(writer, options);
}

async function open(writer: Writer, options: PostgresStoreOptions): Promise<Store> {
  const { url, deadlineMs = DEADLINE_MS, waived = [], readersMax = READERS_MAX } = options;
  const { config, schema, plainName, shown: place } = readAddress(url);
  const statements = new Statements(schema);
  const openLine = async (): Promise<Line> => {
    const line = await Line.open({ config, deadlineMs });
    await line.run({
      text: SESSION,
      values: [Object.keys(SESSION_SETTINGS), Object.values(SESSION_SETTINGS)],
    });
    await line.run({ text: LIMITS, values: [`${deadlineMs}ms`] });
    return line;
  };
  const openWriting = async (): Promise<Line> => {
    const line = await openLine();
    try {
      await readDurability(line, { place, waived });
    } catch (error) {
      await line.end();
      throw error;
    }
    return line;
  };
  let line: Line | undefined;
  try {
    line = await openLine();
    const durability = await readDurability(line, { place, waived });
    const mayCreate = options.ledger === undefined && !writer.hasLedger;
    const found = await ensureSchema(line, { schema, plainName, place, mayCreate });
    if (options.ledger !== undefined) writer.meet(options.ledger, place);
    writer.meet(found.ledger, place);
    if (options.keyDigest !== undefined) {
      await assertSameKey(line, { schema, place }, await options.keyDigest(found.key === undefined));
    }
    await writer.settle(line, statements, place);
    const groupCommit = new GroupCommit({ open: openWriting, statements, writer, place }, line);
    return new PostgresStore({
      place,
      durability: { ...durability, settings: { ...durability.settings, ledger: found.ledger } },
      statements,
      writer,
      groupCommit,
      readers: new Lines(openLine, readersMax),
    });
  } catch (error) {
    await line?.end();
    throw notOpened(error, place);
  }
}

/**
 * What is there, without changing anything.
 * @throws {StoreFault} as the opening does
 */
export async function inspectPostgres({
  url,
  deadlineMs = DEADLINE_MS,
  waived = [],
}: Pick<PostgresStoreOptions, 'url' | 'deadlineMs' | 'waived'>): Promise<{
  readonly durability: Durability;
  readonly schema: SchemaState;
}> {
  const { config, schema, plainName, shown: place } = readAddress(url);
  let line: Line | undefined;
  try {
    line = await Line.open({ config, deadlineMs });
    return {
      durability: await readDurability(line, { place, waived }),
      schema: await readSchema(line, schema, plainName),
    };
  } catch (error) {
    throw notOpened(error, place);
  } finally {
    await line?.end();
  }
}

function notOpened(error: unknown, place: string): StoreFault {
  if (error instanceof StoreFault) return error;
  return new StoreFault('ERR_STORE_UNAVAILABLE', `The store at ${place} was not opened: ${causeOf(error)}.`, {
    fate: 'not_stored',
    cause: error,
  });
}

/**
 * Every statement goes by a key. A plan that is made while a table is small would scan it, and is kept while it grows.
 * Those that a server does not know are left out.
 */
const SESSION_SETTINGS = {
  enable_seqscan: 'off',
  enable_hashjoin: 'off',
  enable_mergejoin: 'off',
  jit: 'off',
} as const;
const SESSION = `SELECT set_config(p.name, k.value, false) FROM pg_settings AS p
  JOIN unnest($1::text[], $2::text[]) AS k (name, value) ON k.name = p.name`;
/** Locks are not held for a process that has gone, nor waited for without end. */
const LIMITS = `SELECT set_config('lock_timeout', $1, false),
  set_config('idle_in_transaction_session_timeout', $1, false)`;

interface Parts {
  readonly place: string;
  readonly durability: Durability;
  readonly statements: Statements;
  readonly writer: Writer;
  readonly groupCommit: GroupCommit;
  readonly readers: Lines;
}

class PostgresStore implements Store {
  readonly #parts: Parts;
  #isClosed = false;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  get durability(): Durability {
    return this.#parts.durability;
  }

  get commits(): number {
    return this.#parts.groupCommit.commits;
  }

  async commit(changes: readonly Change[]) {
    this.#assertUsable();
    for (const change of changes) assertChange(change);
    return changes.length === 0 ? [] : this.#parts.groupCommit.store(changes.map(freezeChange));
  }

  async read(tenant: string, streams: readonly string[]) {
    for (const stream of streams) assertStream(stream);
    return this.#read(tenant, (line, statements) => readStreams(line, statements, tenant, streams));
  }

  async latestClaims(tenant: string, keys: readonly string[]) {
    for (const key of keys) assertKey(key);
    return this.#read(tenant, (line, statements) => readLatestClaims(line, statements, tenant, keys));
  }

  async crossRun(tenant: string, prefixes: readonly string[], limit: number) {
    for (const prefix of prefixes) assertPrefix(prefix);
    assertLimit(limit);
    return this.#read(tenant, (line, statements) => readCrossRun(line, statements, tenant, prefixes, limit));
  }

  async history(tenant: string, stream: string) {
    assertStream(stream);
    return this.#read(tenant, (line, statements) => readHistory(line, statements, tenant, stream));
  }

  async live(query: LiveQuery) {
    assertLimit(query.limit);
    for (const name of [...(query.queues ?? []), query.worker ?? '-']) assertName('queue or worker', name);
    assert(query.after === undefined || query.dueBy === undefined, 'live pages by order, not by due time.');
    return this.#read(query.tenant, (line, statements) => readLive(line, statements, query));
  }

  async streams(query: StreamQuery) {
    assertLimit(query.limit);
    assertStream(query.after ?? `${query.kind}:-`);
    return this.#read(query.tenant, (line, statements) => listStreams(line, statements, query));
  }

  async documents(tenant: string, references: Parameters<Store['documents']>[1]) {
    for (const { owner, digest } of references) {
      assertStream(owner);
      assertDigest(digest);
    }
    return this.#read(tenant, (line, statements) => readDocuments(line, statements, tenant, references));
  }

  async foreignCommits() {
    return this.#read('-', async (line, statements) => {
      const [row] = await line.run(statements.of('foreignCommits', this.#parts.writer.id));
      return row?.[0] as number;
    });
  }

  /** Waits for the calls already made, then gives its connections up. Calling it again does nothing. */
  async close() {
    if (this.#isClosed) return;
    this.#isClosed = true;
    const { groupCommit, readers } = this.#parts;
    await groupCommit.idle();
    await Promise.all([groupCommit.end(), readers.end()]);
  }

  #assertUsable(): void {
    const { place, groupCommit } = this.#parts;
    if (groupCommit.isPoisoned) throw poisoned(place);
    if (this.#isClosed) {
      throw new StoreFault('ERR_STORE_UNAVAILABLE', `The store at ${place} was not asked: it is closed.`, {
        fate: 'not_stored',
      });
    }
  }

  async #read<Result>(
    tenant: string,
    read: (line: Line, statements: Statements) => Promise<Result>,
  ): Promise<Result> {
    assertName('tenant', tenant);
    this.#assertUsable();
    const { readers, statements, place } = this.#parts;
    try {
      return await readers.use((line) => read(line, statements));
    } catch (error) {
      if (error instanceof StoreFault) throw error;
      throw new StoreFault(
        'ERR_STORE_UNAVAILABLE',
        `The store at ${place} could not be read: ${causeOf(error)}.`,
        {
          fate: 'not_stored',
          cause: error,
        },
      );
    }
  }
}
