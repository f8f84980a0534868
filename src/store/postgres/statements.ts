// Every statement of the store on PostgreSQL by name. Those that take many rows take one array for each column.

import type { Statement } from './line.ts';

/** `unnest` of arrays as a table, its parameters numbered on from those before it. */
class Parameters {
  #count = 0;

  table(columns: readonly (readonly [name: string, type: string])[], alias = 'k'): string {
    const arrays = columns.map(([, type]) => {
      this.#count += 1;
      return `$${this.#count}::${type}[]`;
    });
    return `unnest(${arrays.join(', ')}) AS ${alias} (${columns.map(([name]) => name).join(', ')})`;
  }

  one(type: string): string {
    this.#count += 1;
    return `$${this.#count}::${type}`;
  }
}

const PLACE = [
  ['bucket', 'smallint'],
  ['tenant', 'text'],
  ['name', 'text'],
] as const;
const STATE = [
  ['version', 'bigint'],
  ['state', 'text'],
  ['marked_at', 'bigint'],
] as const;

const SAME_PLACE = 's.bucket = k.bucket AND s.tenant = k.tenant AND s.name = k.name';

/**
 * The first half of a transaction. Streams that will be written are locked in the order of their keys, those that must
 * stay as they are against change; those that are only named, and claims, are looked at.
 */
function lookText(schema: string): string {
  const parameters = new Parameters();
  const streams = (lock: string) =>
    `SELECT s.tenant, s.name, s.version, s.marked_at FROM ${parameters.table(PLACE)}
    JOIN ${schema}.stream AS s ON ${SAME_PLACE}
    ORDER BY s.bucket, s.tenant, s.name ${lock}`;
  return `WITH written AS (${streams('FOR UPDATE OF s')}),
  steady AS (${streams('FOR SHARE OF s')}),
  named AS (${streams('')}),
  held AS (SELECT s.tenant, s.key, s.sequence, s.holder
    FROM ${parameters.table([...PLACE.slice(0, 2), ['key', 'bytea'], ['sequence', 'bigint']])}
    JOIN ${schema}.claim AS s
    ON s.bucket = k.bucket AND s.tenant = k.tenant AND s.key = k.key AND s.sequence = k.sequence)
  SELECT tenant, name, version, marked_at, NULL::bytea FROM written
  UNION ALL SELECT tenant, name, version, marked_at, NULL FROM steady
  UNION ALL SELECT tenant, name, version, marked_at, NULL FROM named
  UNION ALL SELECT tenant, holder, sequence, NULL, key FROM held`;
}

/** The second half: all rows of all changes. What comes back is how many rows of each kind were really written. */
function writeText(schema: string): string {
  const parameters = new Parameters();
  const [bucket, tenant, name] = PLACE;
  const stream = ['stream', 'text'] as const;
  const key = ['key', 'bytea'] as const;
  return `WITH created AS (
    INSERT INTO ${schema}.stream (bucket, tenant, name, version, state, marked_at)
    SELECT * FROM ${parameters.table([...PLACE, ...STATE])}
    ON CONFLICT (bucket, tenant, name) DO NOTHING RETURNING 1),
  moved AS (
    UPDATE ${schema}.stream AS s
    SET version = k.version, state = coalesce(k.state, s.state), marked_at = k.marked_at
    FROM ${parameters.table([...PLACE, ['before', 'bigint'], ...STATE])}
    WHERE ${SAME_PLACE} AND s.version = k.before RETURNING 1),
  told AS (
    INSERT INTO ${schema}.event (bucket, tenant, stream, version, recorded_at, events, fixed)
    SELECT * FROM ${parameters.table([
      bucket,
      tenant,
      stream,
      ['version', 'bigint'],
      ['recorded_at', 'bigint'],
      ['events', 'text'],
      ['fixed', 'text'],
    ])}),
  gone AS (
    DELETE FROM ${schema}.live AS s USING ${parameters.table([bucket, tenant, name])}
    WHERE s.bucket = k.bucket AND s.tenant = k.tenant AND s.stream = k.name),
  open AS (
    INSERT INTO ${schema}.live (bucket, tenant, stream, queue, stage, due_at, worker, order_key)
    SELECT * FROM ${parameters.table([
      bucket,
      tenant,
      stream,
      ['queue', 'text'],
      ['stage', 'text'],
      ['due_at', 'bigint'],
      ['worker', 'text'],
      ['order_key', 'text'],
    ])}
    ON CONFLICT (bucket, tenant, stream) DO UPDATE SET queue = EXCLUDED.queue, stage = EXCLUDED.stage,
      due_at = EXCLUDED.due_at, worker = EXCLUDED.worker, order_key = EXCLUDED.order_key),
  claimed AS (
    INSERT INTO ${schema}.claim (bucket, tenant, key, sequence, holder)
    SELECT * FROM ${parameters.table([bucket, tenant, key, ['sequence', 'bigint'], ['holder', 'text']])}
    ON CONFLICT (bucket, tenant, key, sequence) DO NOTHING RETURNING 1),
  crossed AS (
    INSERT INTO ${schema}.cross_run (bucket, tenant, key, stream)
    SELECT * FROM ${parameters.table([bucket, tenant, key, stream])}
    ON CONFLICT (bucket, tenant, key, stream) DO NOTHING),
  kept AS (
    INSERT INTO ${schema}.content (bucket, tenant, owner, digest, label, salt, bytes)
    SELECT * FROM ${parameters.table([
      bucket,
      tenant,
      ['owner', 'text'],
      ['digest', 'bytea'],
      ['label', 'text'],
      ['salt', 'bytea'],
      ['bytes', 'bytea'],
    ])}
    ON CONFLICT (bucket, tenant, owner, digest) DO NOTHING),
  counted AS (
    UPDATE ${schema}.writer SET commits = commits + 1
    WHERE bucket = ${parameters.one('smallint')} AND id = ${parameters.one('text')}
      AND commits = ${parameters.one('bigint')} RETURNING 1)
  SELECT (SELECT count(*) FROM created), (SELECT count(*) FROM moved), (SELECT count(*) FROM claimed),
    (SELECT count(*) FROM counted)`;
}

/** What is fixed was given with the events of version 1. */
const recordColumns = 's.name, s.version, s.state, e.fixed, s.marked_at';

function texts(schema: string) {
  const fixed = `LEFT JOIN ${schema}.event AS e
    ON e.bucket = s.bucket AND e.tenant = s.tenant AND e.stream = s.name AND e.version = 1`;
  const list = (order: 'ASC' | 'DESC') => `SELECT ${recordColumns} FROM ${schema}.stream AS s ${fixed}
    WHERE s.bucket = $1 AND s.tenant = $2 AND s.name > $3 AND s.name < $4 AND s.version > 0
    ORDER BY s.name ${order} LIMIT $5`;
  return {
    begin: 'BEGIN',
    look: lookText(schema),
    holdPlace: `INSERT INTO ${schema}.stream (bucket, tenant, name, version, state)
      SELECT *, 0, '' FROM ${new Parameters().table(PLACE)} ON CONFLICT (bucket, tenant, name) DO NOTHING`,
    write: writeText(schema),

    addWriter: `INSERT INTO ${schema}.writer (bucket, id, commits, settled) VALUES ($1, $2, $3, 0)
      ON CONFLICT (bucket, id) DO NOTHING`,
    lockWriter: `SELECT commits FROM ${schema}.writer WHERE bucket = $1 AND id = $2 FOR UPDATE`,
    settleWriter: `UPDATE ${schema}.writer SET settled = settled + 1 WHERE bucket = $1 AND id = $2`,
    removeWriter: `DELETE FROM ${schema}.writer WHERE id = $1`,
    foreignCommits: `SELECT coalesce(sum(commits), 0)::bigint FROM ${schema}.writer WHERE id <> $1`,

    readStreams: `SELECT ${recordColumns} FROM unnest($3::text[]) AS k (name)
      JOIN ${schema}.stream AS s ON s.bucket = $1 AND s.tenant = $2 AND s.name = k.name AND s.version > 0
      ${fixed}`,
    listStreams: list('ASC'),
    listNewestStreams: list('DESC'),
    readHistory: `SELECT version, recorded_at, events, fixed FROM ${schema}.event
      WHERE bucket = $1 AND tenant = $2 AND stream = $3 ORDER BY version`,
    latestClaims: `SELECT k.key, c.sequence, c.holder FROM unnest($3::bytea[]) AS k (key)
      CROSS JOIN LATERAL (SELECT s.sequence, s.holder FROM ${schema}.claim AS s
        WHERE s.bucket = $1 AND s.tenant = $2 AND s.key = k.key ORDER BY s.sequence DESC LIMIT 1) AS c`,
    crossRun: `SELECT k.at, f.name FROM unnest($3::integer[], $4::bytea[], $5::bytea[]) AS k (at, low, high)
      CROSS JOIN LATERAL (
        SELECT s.holder AS name FROM ${schema}.claim AS s
        WHERE s.bucket = $1 AND s.tenant = $2 AND s.key >= k.low AND s.key < k.high
        UNION SELECT s.stream FROM ${schema}.cross_run AS s
        WHERE s.bucket = $1 AND s.tenant = $2 AND s.key >= k.low AND s.key < k.high
        ORDER BY name DESC LIMIT $6) AS f
      ORDER BY k.at, f.name DESC`,
    readDocuments: `SELECT s.owner, s.digest, s.label, s.salt, s.bytes
      FROM unnest($3::text[], $4::bytea[]) AS k (owner, digest)
      JOIN ${schema}.content AS s
      ON s.bucket = $1 AND s.tenant = $2 AND s.owner = k.owner AND s.digest = k.digest`,
  } as const;
}

export type StatementName = keyof ReturnType<typeof texts>;

export class Statements {
  readonly #texts: ReturnType<typeof texts>;
  /** Quoted. */
  readonly schema: string;

  constructor(schema: string) {
    this.schema = schema;
    this.#texts = texts(schema);
  }

  of(name: StatementName, ...values: readonly unknown[]): Statement {
    return { name, text: this.#texts[name], values };
  }

  get all(): readonly string[] {
    return Object.values(this.#texts);
  }
}
