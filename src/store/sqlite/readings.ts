// The readings of the embedded store: each one snapshot, each by an index.

import { digestToBytes, keyToBytes } from '../frozen-change.ts';
import type {
  Claim,
  ContentDocument,
  DocumentReference,
  Json,
  LiveQuery,
  LiveRow,
  StoredEvent,
  StreamId,
  StreamQuery,
  StreamRecord,
} from '../port.ts';
import type { SqliteConnection, SqliteStatement, SqliteValue } from './driver.ts';
import { prepareRows, type Statements } from './statements.ts';
import { findContent, findHead } from './write-change.ts';

type StateColumns = readonly [number, string, string | null, number | null];

function streamRecord(stream: StreamId, [version, state, fixed, markedAt]: StateColumns): StreamRecord {
  return {
    stream,
    version,
    state: JSON.parse(state) as Json,
    ...fixedOf(fixed),
    ...(markedAt === null ? {} : { markedAt }),
  };
}

function fixedOf(text: string | null): Pick<StreamRecord, 'fixed'> {
  return text === null ? {} : { fixed: JSON.parse(text) as Json };
}

export function readStreams(
  statements: Statements,
  tenant: number,
  streams: readonly StreamId[],
): readonly (StreamRecord | undefined)[] {
  return streams.map((stream) => {
    const row = statements.readStream.get(tenant, stream) as StateColumns | undefined;
    return row === undefined ? undefined : streamRecord(stream, row);
  });
}

export function readLatestClaims(
  statements: Statements,
  tenant: number,
  keys: readonly string[],
): readonly (Claim | undefined)[] {
  return keys.map((key) => {
    const row = statements.latestClaim.get(tenant, keyToBytes(key)) as readonly [number, string] | undefined;
    return row === undefined ? undefined : { key, sequence: row[0], holder: row[1] };
  });
}

/** Of the keys of 20 bytes that begin with 12 given ones: the least, and what is above all of them. */
type KeyRange = readonly [from: Uint8Array, to: Uint8Array];

const PREFIX_BYTES = 12;
const ABOVE = 'ff'.repeat(9);

function rangeOf(prefix: string): KeyRange {
  const to = keyToBytes(prefix + ABOVE);
  return [to.subarray(0, PREFIX_BYTES), to];
}

/** Nearly always there is none, and to find that out needs neither the join nor the sorter. */
function isThereAny(statements: Statements, tenant: number, ranges: readonly KeyRange[]): boolean {
  for (let at = 0; at < ranges.length; at += 3) {
    const one = ranges[at] as KeyRange;
    const other = ranges[at + 1] ?? one;
    const third = ranges[at + 2] ?? one;
    const found = statements.findCrossRun.get(tenant, one[0], one[1], other[0], other[1], third[0], third[1]);
    if (found !== undefined) return true;
  }
  return false;
}

export function readCrossRun(
  statements: Statements,
  tenant: number,
  prefixes: readonly string[],
  limit: number,
): readonly StreamId[] {
  const ranges = prefixes.map(rangeOf);
  if (!isThereAny(statements, tenant, ranges)) return [];
  const streams = new Set<StreamId>();
  for (const [from, to] of ranges) {
    // Those that are known already may come first.
    const rows = statements.listCrossRun.all(tenant, from, to, limit + streams.size);
    for (const [stream] of rows as readonly [string][]) {
      if (streams.size < limit) streams.add(stream);
    }
    if (streams.size >= limit) break;
  }
  return [...streams];
}

export function readHistory(
  statements: Statements,
  tenant: number,
  stream: StreamId,
): readonly StoredEvent[] {
  const commits: (readonly StoredEvent[])[] = [];
  let id = findHead(statements, tenant, stream)?.lastEvent ?? null;
  while (id !== null) {
    const row = statements.readEvents.get(id) as
      | readonly [number | null, number, number, string, string | null]
      | undefined;
    if (row === undefined) throw new Error(`Assertion: event ${id} of ${stream} is not there.`);
    const [previous, version, recordedAt, text, fixed] = row;
    const beside = fixedOf(fixed);
    commits.push(
      (JSON.parse(text) as readonly Json[]).map((event) => ({
        stream,
        version,
        recordedAt,
        event,
        ...beside,
      })),
    );
    id = previous;
  }
  return commits.reverse().flat();
}

export function listStreams(
  statements: Statements,
  tenant: number,
  query: StreamQuery,
): readonly StreamRecord[] {
  // ';' follows ':', so that these two bound every id of the kind.
  const first = `${query.kind}:`;
  const end = `${query.kind};`;
  const rows = query.newest
    ? statements.listNewestStreams.all(tenant, first, query.after ?? end, query.limit)
    : statements.listStreams.all(tenant, query.after ?? first, end, query.limit);
  return (rows as readonly (readonly [string, ...StateColumns])[]).map(([stream, ...columns]) =>
    streamRecord(stream, columns),
  );
}

export function readDocuments(
  statements: Statements,
  tenant: number,
  references: readonly DocumentReference[],
): readonly (ContentDocument | undefined)[] {
  return references.map(({ owner, digest }) => {
    const head = findHead(statements, tenant, owner);
    const id = findContent(statements, head?.lastContent ?? null, digestToBytes(digest));
    if (id === undefined) return undefined;
    const [label, salt, bytes] = statements.readContent.get(id) as readonly [string, Uint8Array, Uint8Array];
    return { digest, label, owner, salt, bytes };
  });
}

type LiveColumns = readonly [string, string, string, number, string | null, string];

/** Held by a worker, or by nobody: each has indexes of its own. */
export type Share = 'held' | 'free';

/**
 * The statement for one form of query, of one queue at most: with a list of queues SQLite would gather all
 * rows of all of them and sort, where one queue's rows come from the index in their order.
 */
export function liveStatementText(query: LiveQuery, share: Share, hasQueue: boolean): string {
  const conditions = ['tenant = ?'];
  if (hasQueue) conditions.push('queue = ?');
  conditions.push(share === 'held' ? 'worker IS NOT NULL' : 'queue IS NOT NULL AND worker IS NULL');
  if (query.stages !== undefined) conditions.push('stage IN (SELECT value FROM json_each(?))');
  if (query.dueBy !== undefined) conditions.push('due_at <= ?');
  if (query.worker !== undefined) conditions.push('worker = ?');
  if (query.after !== undefined) conditions.push('order_key > ?');
  const order = query.dueBy === undefined ? 'order_key' : 'due_at, order_key';
  return `SELECT name, queue, stage, due_at, worker, order_key FROM stream
    WHERE ${conditions.join(' AND ')} ORDER BY ${order} LIMIT ?`;
}

/** Live work. Statements are prepared per form of query, of which there are at most 64. */
export class LiveReadings {
  readonly #connection: SqliteConnection;
  readonly #statements = new Map<string, SqliteStatement>();

  constructor(connection: SqliteConnection) {
    this.#connection = connection;
  }

  read(tenant: number, query: LiveQuery): readonly LiveRow[] {
    const queues = query.queues === undefined ? [undefined] : [...new Set(query.queues)];
    const shares: readonly Share[] = query.worker === undefined ? ['held', 'free'] : ['held'];
    const rows = queues.flatMap((queue) =>
      shares.flatMap((share) => this.#readShare(tenant, query, share, queue)),
    );
    rows.sort(query.dueBy === undefined ? byOrder : byDueTime);
    return rows.slice(0, query.limit);
  }

  #readShare(tenant: number, query: LiveQuery, share: Share, queue: string | undefined): LiveRow[] {
    const text = liveStatementText(query, share, queue !== undefined);
    let statement = this.#statements.get(text);
    if (statement === undefined) {
      statement = prepareRows(this.#connection, text);
      this.#statements.set(text, statement);
    }
    const values: SqliteValue[] = [tenant];
    if (queue !== undefined) values.push(queue);
    if (query.stages !== undefined) values.push(JSON.stringify(query.stages));
    if (query.dueBy !== undefined) values.push(query.dueBy);
    if (query.worker !== undefined) values.push(query.worker);
    if (query.after !== undefined) values.push(query.after);
    const rows = statement.all(...values, query.limit) as LiveColumns[];
    return rows.map(([stream, name, stage, dueAt, worker, order]) => ({
      stream,
      queue: name,
      stage,
      dueAt,
      worker,
      order,
    }));
  }
}

function byOrder(a: LiveRow, b: LiveRow): number {
  return a.order < b.order ? -1 : a.order > b.order ? 1 : 0;
}

function byDueTime(a: LiveRow, b: LiveRow): number {
  return a.dueAt - b.dueAt || byOrder(a, b);
}
