// What the changes of one transaction come to: each decided in its order, each seeing those before it. Pure; the rows
// that are looked at come from the server under lock, and the rows that result are written in one statement.

import { createHash } from 'node:crypto';
import type { FrozenChange, FrozenWrite } from '../frozen-change.ts';
import type { ChangeResult, LiveRow, StreamId } from '../port.ts';
import type { Row } from './line.ts';

const BUCKETS = 1024;
const buckets = new Map<string, number>();
const BUCKETS_KNOWN_MAX = 10_000;

/** The partition of everything that a tenant has. */
export function bucketOf(tenant: string): number {
  let bucket = buckets.get(tenant);
  if (bucket === undefined) {
    bucket = createHash('sha256').update(tenant).digest().readUInt16BE(0) % BUCKETS;
    if (buckets.size >= BUCKETS_KNOWN_MAX) buckets.clear();
    buckets.set(tenant, bucket);
  }
  return bucket;
}

/** A tenant's name cannot hold NUL. */
function nameOf(tenant: string, rest: string): string {
  return `${tenant}\0${rest}`;
}

function claimName(tenant: string, key: Uint8Array, sequence: number): string {
  return nameOf(tenant, `${Buffer.from(key).toString('latin1')}\0${sequence}`);
}

// ── What must be looked at ─────────────────────────────────────────────────────────────────────────────────

type Place = readonly [tenant: string, name: StreamId];

function ordered(places: Iterable<Place>): readonly (readonly unknown[])[] {
  const sorted = [...places].sort((a, b) => compare(a[0], b[0]) || compare(a[1], b[1]));
  return [
    sorted.map(([tenant]) => bucketOf(tenant)),
    sorted.map(([tenant]) => tenant),
    sorted.map(([, name]) => name),
  ];
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

/** The values of the statement `look`. */
export function whatToLookAt(changes: readonly FrozenChange[]): readonly unknown[] {
  const written = new Map<string, Place>();
  const steady = new Map<string, Place>();
  const named = new Map<string, Place>();
  const claims = new Map<string, readonly [tenant: string, key: Uint8Array, sequence: number]>();
  const note = (to: Map<string, Place>, tenant: string, stream: StreamId) =>
    to.set(nameOf(tenant, stream), [tenant, stream]);
  for (const { tenant, writes, requires, marks, claims: wanted, documents, crossRun } of changes) {
    for (const { stream } of [...writes, ...marks]) note(written, tenant, stream);
    for (const { stream } of requires) note(steady, tenant, stream);
    for (const { holder } of wanted) note(named, tenant, holder);
    for (const { owner } of documents) note(named, tenant, owner);
    for (const { stream } of crossRun) note(named, tenant, stream);
    for (const { keyBytes, sequence } of wanted) {
      claims.set(claimName(tenant, keyBytes, sequence), [tenant, keyBytes, sequence]);
    }
  }
  for (const name of written.keys()) {
    steady.delete(name);
    named.delete(name);
  }
  for (const name of steady.keys()) named.delete(name);
  const keys = [...claims.values()];
  return [
    ...ordered(written.values()),
    ...ordered(steady.values()),
    ...ordered(named.values()),
    keys.map(([tenant]) => bucketOf(tenant)),
    keys.map(([tenant]) => tenant),
    keys.map(([, key]) => key),
    keys.map(([, , sequence]) => sequence),
  ];
}

// ── What was decided ───────────────────────────────────────────────────────────────────────────────────────

interface Head {
  readonly tenant: string;
  readonly stream: StreamId;
  /** As it is on the server; `undefined` where there is no row at all. */
  readonly before: number | undefined;
  version: number;
  markedAt: number | null;
  /** `undefined`: as it is. */
  state: string | undefined;
  live: Omit<LiveRow, 'stream'> | null | undefined;
  isTouched: boolean;
}

export interface Decided {
  readonly results: readonly ChangeResult[];
  /** Streams that are required not to exist, and have no row that could be locked. */
  readonly unlockable: readonly Place[];
  /** A change was refused because a stream that it names was not there. */
  readonly hasMissing: boolean;
  /** The values of the statement `write`, without the last three; `undefined` where there is nothing to write. */
  readonly rows: readonly unknown[] | undefined;
  /** How many rows must have been written of streams, of streams that were there, and of claims. */
  readonly expected: readonly [created: number, moved: number, claimed: number];
}

export function decideBatch(changes: readonly FrozenChange[], looked: readonly Row[]): Decided {
  return new Batch(looked).decide(changes);
}

class Batch {
  readonly #heads = new Map<string, Head>();
  readonly #holders = new Map<string, StreamId>();
  readonly #unlockable = new Map<string, Place>();
  readonly #events: unknown[][] = [];
  readonly #claims: unknown[][] = [];
  readonly #crossRun: unknown[][] = [];
  readonly #documents: unknown[][] = [];
  #hasMissing = false;

  constructor(looked: readonly Row[]) {
    for (const row of looked) {
      const [tenant, stream, number, markedAt, key] = row as readonly [
        string,
        string,
        number,
        number | null,
        Uint8Array | null,
      ];
      if (key !== null) {
        this.#holders.set(claimName(tenant, key, number), stream);
        continue;
      }
      const head = { tenant, stream, before: number, version: number, markedAt };
      this.#heads.set(nameOf(tenant, stream), {
        ...head,
        state: undefined,
        live: undefined,
        isTouched: false,
      });
    }
  }

  decide(changes: readonly FrozenChange[]): Decided {
    const results = changes.map((change): ChangeResult => {
      const obstacle = this.#findObstacle(change);
      if (obstacle !== undefined) return obstacle;
      this.#apply(change);
      return { outcome: 'stored' };
    });
    return {
      results,
      unlockable: [...this.#unlockable.values()],
      hasMissing: this.#hasMissing,
      ...this.#rows(),
    };
  }

  #head(tenant: string, stream: StreamId): Head {
    const name = nameOf(tenant, stream);
    let head = this.#heads.get(name);
    if (head === undefined) {
      head = {
        tenant,
        stream,
        before: undefined,
        version: 0,
        markedAt: null,
        state: undefined,
        live: undefined,
        isTouched: false,
      };
      this.#heads.set(name, head);
    }
    return head;
  }

  #findObstacle(change: FrozenChange): ChangeResult | undefined {
    const { tenant, writes, requires, claims, documents, crossRun } = change;
    for (const { stream, expectedVersion } of writes) {
      const { version } = this.#head(tenant, stream);
      if (version !== expectedVersion) return { outcome: 'stale', stream, version };
    }
    for (const { stream, version: wanted } of requires) {
      const { version, before } = this.#head(tenant, stream);
      if (version !== wanted) return { outcome: 'stale', stream, version };
      const isWritten = writes.some((write) => write.stream === stream);
      if (before === undefined && wanted === 0 && !isWritten) {
        this.#unlockable.set(nameOf(tenant, stream), [tenant, stream]);
      }
    }
    const isMissing = (stream: StreamId): boolean =>
      !writes.some((write) => write.stream === stream) && this.#head(tenant, stream).version === 0;
    const missing =
      claims.find(({ holder }) => isMissing(holder))?.holder ??
      documents.find(({ owner }) => isMissing(owner))?.owner ??
      crossRun.find(({ stream }) => isMissing(stream))?.stream;
    if (missing !== undefined) {
      this.#hasMissing = true;
      return { outcome: 'stale', stream: missing, version: 0 };
    }
    for (const { key, keyBytes, sequence } of claims) {
      const by = this.#holders.get(claimName(tenant, keyBytes, sequence));
      if (by !== undefined) return { outcome: 'taken', key, sequence, by };
    }
    return undefined;
  }

  #apply({ tenant, at, writes, claims, documents, crossRun, marks }: FrozenChange): void {
    const bucket = bucketOf(tenant);
    for (const write of writes) this.#applyWrite(tenant, at, write);
    for (const { keyBytes, sequence, holder } of claims) {
      this.#holders.set(claimName(tenant, keyBytes, sequence), holder);
      this.#claims.push([bucket, tenant, keyBytes, sequence, holder]);
    }
    for (const { owner, digestBytes, label, salt, bytes } of documents) {
      this.#documents.push([bucket, tenant, owner, digestBytes, label, salt, bytes]);
    }
    for (const { keyBytes, stream } of crossRun) this.#crossRun.push([bucket, tenant, keyBytes, stream]);
    for (const { stream, version } of marks) {
      const head = this.#head(tenant, stream);
      if (version === 0 || head.version !== version || head.markedAt !== null) continue;
      head.markedAt = at;
      head.isTouched = true;
    }
  }

  #applyWrite(tenant: string, at: number, { stream, state, events, fixed, live }: FrozenWrite): void {
    const head = this.#head(tenant, stream);
    head.version += 1;
    head.state = state;
    head.markedAt = null;
    head.isTouched = true;
    if (live !== undefined) head.live = live;
    if (events !== undefined) {
      this.#events.push([bucketOf(tenant), tenant, stream, head.version, at, events, fixed]);
    }
  }

  #rows(): Pick<Decided, 'rows' | 'expected'> {
    const touched = [...this.#heads.values()]
      .filter((head) => head.isTouched)
      .sort((a, b) => compare(a.tenant, b.tenant) || compare(a.stream, b.stream));
    const created: unknown[][] = [];
    const moved: unknown[][] = [];
    const gone: unknown[][] = [];
    const open: unknown[][] = [];
    for (const { tenant, stream, before, version, state, markedAt, live } of touched) {
      const place = [bucketOf(tenant), tenant, stream];
      if (before === undefined) created.push([...place, version, state, markedAt]);
      else moved.push([...place, before, version, state ?? null, markedAt]);
      if (live === null && before !== undefined) gone.push(place);
      if (live) open.push([...place, live.queue, live.stage, live.dueAt, live.worker, live.order]);
    }
    const expected = [created.length, moved.length, this.#claims.length] as const;
    const { length } = [touched, this.#claims, this.#crossRun, this.#documents].flat();
    if (length === 0) return { rows: undefined, expected };
    const claims = this.#claims.sort((a, b) => Buffer.compare(a[2] as Uint8Array, b[2] as Uint8Array));
    return {
      expected,
      rows: [
        ...columns(created, 6),
        ...columns(moved, 7),
        ...columns(this.#events, 7),
        ...columns(gone, 3),
        ...columns(open, 8),
        ...columns(claims, 5),
        ...columns(this.#crossRun, 4),
        ...columns(unique(this.#documents), 7),
      ],
    };
  }
}

/** One array for each column. */
function columns(rows: readonly (readonly unknown[])[], width: number): readonly (readonly unknown[])[] {
  return Array.from({ length: width }, (_, column) => rows.map((row) => row[column]));
}

/** The digest covers salt and bytes: a second document of the same owner and digest is the same one. */
function unique(documents: readonly unknown[][]): readonly unknown[][] {
  const known = new Map<string, unknown[]>();
  for (const row of documents) {
    known.set(
      nameOf(row[1] as string, `${row[2] as string}\0${Buffer.from(row[3] as Uint8Array).toString('hex')}`),
      row,
    );
  }
  return [...known.values()];
}
