// The readings of the store on PostgreSQL: each one statement, and so one snapshot, by an index.

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
import { bucketOf } from './batch.ts';
import type { Line, Row, Statement } from './line.ts';
import type { Statements } from './statements.ts';

type RecordRow = readonly [string, number, string, string | null, number | null];

function streamRecord(row: Row): StreamRecord {
  const [stream, version, state, fixed, markedAt] = row as RecordRow;
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

export async function readStreams(
  line: Line,
  statements: Statements,
  tenant: string,
  streams: readonly StreamId[],
): Promise<readonly (StreamRecord | undefined)[]> {
  const wanted = [...new Set(streams)];
  const rows = await line.run(statements.of('readStreams', bucketOf(tenant), tenant, wanted));
  const found = new Map(rows.map((row) => [row[0] as string, row]));
  return streams.map((stream) => {
    const row = found.get(stream);
    return row === undefined ? undefined : streamRecord(row);
  });
}

export async function readLatestClaims(
  line: Line,
  statements: Statements,
  tenant: string,
  keys: readonly string[],
): Promise<readonly (Claim | undefined)[]> {
  const wanted = [...new Set(keys)].map(keyToBytes);
  const rows = await line.run(statements.of('latestClaims', bucketOf(tenant), tenant, wanted));
  const found = new Map(
    (rows as readonly (readonly [Buffer, number, string])[]).map(([bytes, sequence, holder]) => {
      const key = bytes.toString('hex');
      return [key, { key, sequence, holder }];
    }),
  );
  return keys.map((key) => found.get(key));
}

/** Above all keys of 20 bytes that begin with 12 given ones. */
const ABOVE = 'ff'.repeat(9);

export async function readCrossRun(
  line: Line,
  statements: Statements,
  tenant: string,
  prefixes: readonly string[],
  limit: number,
): Promise<readonly StreamId[]> {
  const rows = await line.run(
    statements.of(
      'crossRun',
      bucketOf(tenant),
      tenant,
      prefixes.map((_, at) => at),
      prefixes.map(keyToBytes),
      prefixes.map((prefix) => keyToBytes(prefix + ABOVE)),
      // Under each prefix those may come first that were found under an earlier one.
      2 * limit,
    ),
  );
  const streams = new Set((rows as readonly (readonly [number, string])[]).map(([, stream]) => stream));
  return [...streams].slice(0, limit);
}

export async function readHistory(
  line: Line,
  statements: Statements,
  tenant: string,
  stream: StreamId,
): Promise<readonly StoredEvent[]> {
  const rows = await line.run(statements.of('readHistory', bucketOf(tenant), tenant, stream));
  return (rows as readonly (readonly [number, number, string, string | null])[]).flatMap(
    ([version, recordedAt, text, fixed]) =>
      (JSON.parse(text) as readonly Json[]).map((event) => ({
        stream,
        version,
        recordedAt,
        event,
        ...fixedOf(fixed),
      })),
  );
}

export async function listStreams(
  line: Line,
  statements: Statements,
  { tenant, kind, after, newest, limit }: StreamQuery,
): Promise<readonly StreamRecord[]> {
  // ';' follows ':', so that these two bound every id of the kind.
  const first = `${kind}:`;
  const end = `${kind};`;
  const statement = newest
    ? statements.of('listNewestStreams', bucketOf(tenant), tenant, first, after ?? end, limit)
    : statements.of('listStreams', bucketOf(tenant), tenant, after ?? first, end, limit);
  return (await line.run(statement)).map(streamRecord);
}

export async function readDocuments(
  line: Line,
  statements: Statements,
  tenant: string,
  references: readonly DocumentReference[],
): Promise<readonly (ContentDocument | undefined)[]> {
  const wanted = new Map(references.map((reference) => [nameOf(reference), reference]));
  const rows = await line.run(
    statements.of(
      'readDocuments',
      bucketOf(tenant),
      tenant,
      [...wanted.values()].map(({ owner }) => owner),
      [...wanted.values()].map(({ digest }) => digestToBytes(digest)),
    ),
  );
  const found = new Map(
    (rows as readonly (readonly [string, Buffer, string, Buffer, Buffer])[]).map(
      ([owner, digestBytes, label, salt, bytes]) => {
        const digest = `sha256:${digestBytes.toString('hex')}`;
        return [nameOf({ owner, digest }), { digest, label, owner, salt, bytes }];
      },
    ),
  );
  return references.map((reference) => found.get(nameOf(reference)));
}

function nameOf({ owner, digest }: DocumentReference): string {
  return `${digest} ${owner}`;
}

/**
 * The statement for one form of query, of which there are 16. Of each queue only as many rows are read as are asked for
 * in all, from the index in their order.
 */
export function liveStatement(statements: Statements, query: LiveQuery): Statement {
  const values: unknown[] = [bucketOf(query.tenant), query.tenant];
  const next = (value: unknown): string => `$${values.push(value)}`;
  const conditions = ['s.bucket = $1', 's.tenant = $2'];
  let name = 'live';
  const add = (letter: string, value: unknown, condition: (parameter: string) => string): void => {
    if (value === undefined) return;
    name += letter;
    conditions.push(condition(next(value)));
  };
  add('S', query.stages, (parameter) => `s.stage = ANY(${parameter}::text[])`);
  add('D', query.dueBy, (parameter) => `s.due_at <= ${parameter}::bigint`);
  add('W', query.worker, (parameter) => `s.worker = ${parameter}::text`);
  add('A', query.after, (parameter) => `s.order_key > ${parameter}::text`);
  const order = query.dueBy === undefined ? 's.order_key' : 's.due_at, s.order_key';
  const columns = 's.stream, s.queue, s.stage, s.due_at, s.worker, s.order_key';
  const limit = `LIMIT ${next(query.limit)}`;
  const table = `${statements.schema}.live`;
  if (query.queues === undefined) {
    const where = conditions.join(' AND ');
    return {
      name,
      values,
      text: `SELECT ${columns} FROM ${table} AS s WHERE ${where} ORDER BY ${order} ${limit}`,
    };
  }
  const queues = next([...new Set(query.queues)]);
  const where = [...conditions, 's.queue = q.queue'].join(' AND ');
  return {
    name: `${name}Q`,
    values,
    text: `SELECT ${columns} FROM unnest(${queues}::text[]) AS q (queue) CROSS JOIN LATERAL (
      SELECT * FROM ${table} AS s WHERE ${where} ORDER BY ${order} ${limit}) AS s ORDER BY ${order} ${limit}`,
  };
}

export async function readLive(
  line: Line,
  statements: Statements,
  query: LiveQuery,
): Promise<readonly LiveRow[]> {
  const rows = await line.run(liveStatement(statements, query));
  return (rows as readonly (readonly [string, string, string, number, string | null, string])[]).map(
    ([stream, queue, stage, dueAt, worker, order]) => ({ stream, queue, stage, dueAt, worker, order }),
  );
}
