// Decides one change under the write lock, and writes it if it stands.
//
// No savepoints. BEGIN IMMEDIATE holds the only write lock there is, so what is read in the first half cannot
// change before the second half writes: versions, requirements, named streams and claims are all looked at
// before the first write, and after that no write can fail on a precondition. A change that does not stand has
// therefore written nothing and its neighbours need no undoing. What can still fail (a full disk, an I/O
// error) is no fault of one change, and ends the whole transaction.

import type {
  Change,
  ChangeResult,
  Claim,
  ContentDocument,
  CrossRunEntry,
  LiveRow,
  StreamId,
} from '../port.ts';
import type { SqliteValue } from './driver.ts';
import type { Statements } from './statements.ts';
import { NO_TENANT, type Tenants } from './tenants.ts';

interface FrozenWrite {
  readonly stream: StreamId;
  readonly expectedVersion: number;
  readonly state: string;
  /** The events as a JSON array; absent when there are none. */
  readonly events: string | undefined;
  readonly live: Omit<LiveRow, 'stream'> | null | undefined;
}

/**
 * A change in the form that is bound: serialised once, in the caller's own turn and outside the lock, so that a
 * value that cannot be serialised fails its own call and no other.
 */
export interface FrozenChange {
  readonly tenant: string;
  readonly at: number;
  readonly writes: readonly FrozenWrite[];
  readonly requires: NonNullable<Change['requires']>;
  readonly claims: readonly (Claim & { readonly keyBytes: Uint8Array })[];
  readonly documents: readonly (ContentDocument & { readonly digestBytes: Uint8Array })[];
  readonly crossRun: readonly (CrossRunEntry & { readonly keyBytes: Uint8Array })[];
}

export function freezeChange(change: Change): FrozenChange {
  return {
    tenant: change.tenant,
    at: change.at,
    writes: change.writes.map(({ stream, expectedVersion, state, events, live }) => ({
      stream,
      expectedVersion,
      state: JSON.stringify(state),
      events: events.length === 0 ? undefined : JSON.stringify(events),
      live,
    })),
    requires: change.requires ?? [],
    claims: (change.claims ?? []).map((claim) => ({ ...claim, keyBytes: keyToBytes(claim.key) })),
    documents: (change.documents ?? []).map((document) => ({
      ...document,
      digestBytes: digestToBytes(document.digest),
    })),
    crossRun: (change.crossRun ?? []).map((entry) => ({ ...entry, keyBytes: keyToBytes(entry.key) })),
  };
}

export function keyToBytes(key: string): Uint8Array {
  return Buffer.from(key, 'hex');
}

export function digestToBytes(digest: string): Uint8Array {
  return Buffer.from(digest.slice('sha256:'.length), 'hex');
}

/** Inside a writing transaction. Throws only SQLite's own errors. */
export function writeChange(statements: Statements, tenants: Tenants, change: FrozenChange): ChangeResult {
  const tenant = tenants.find(change.tenant);
  const numbers = new Map<StreamId, number>();
  const refusal = findObstacle(statements, tenant, change, numbers);
  if (refusal !== undefined) return refusal;
  write(statements, tenant === NO_TENANT ? tenants.add(change.tenant) : tenant, change, numbers);
  return { outcome: 'stored' };
}

/** The reading half. Fills in the numbers of the streams that exist. */
function findObstacle(
  statements: Statements,
  tenant: number,
  change: FrozenChange,
  numbers: Map<StreamId, number>,
): ChangeResult | undefined {
  const versionOf = (stream: StreamId): number => {
    const row = statements.findStream.get(tenant, stream) as readonly [number, number] | undefined;
    if (row === undefined) return 0;
    numbers.set(stream, row[0]);
    return row[1];
  };

  for (const { stream, expectedVersion } of change.writes) {
    const version = versionOf(stream);
    if (version !== expectedVersion) return { outcome: 'stale', stream, version };
  }
  for (const requirement of change.requires) {
    const version = versionOf(requirement.stream);
    if (version !== requirement.version) return { outcome: 'stale', stream: requirement.stream, version };
  }
  for (const stream of namedStreams(change)) {
    if (numbers.has(stream) || change.writes.some((write) => write.stream === stream)) continue;
    if (versionOf(stream) === 0) return { outcome: 'stale', stream, version: 0 };
  }
  for (const { key, keyBytes, sequence } of change.claims) {
    const row = statements.findClaim.get(tenant, keyBytes, sequence) as readonly [string] | undefined;
    if (row !== undefined) return { outcome: 'taken', key, sequence, by: row[0] };
  }
  return undefined;
}

function* namedStreams(change: FrozenChange): Iterable<StreamId> {
  for (const claim of change.claims) yield claim.holder;
  for (const document of change.documents) yield document.owner;
  for (const entry of change.crossRun) yield entry.stream;
}

/** The writing half. */
function write(
  statements: Statements,
  tenant: number,
  change: FrozenChange,
  numbers: Map<StreamId, number>,
): void {
  for (const { stream, expectedVersion, state, events, live } of change.writes) {
    const version = expectedVersion + 1;
    let number = numbers.get(stream);
    if (number === undefined) {
      const row = statements.insertStream.run(tenant, stream, version, state, ...liveColumns(live));
      number = Number(row.lastInsertRowid);
      numbers.set(stream, number);
    } else if (live === undefined) {
      statements.updateStream.get(version, state, number);
    } else {
      statements.updateStreamAndLive.get(version, state, ...liveColumns(live), number);
    }
    if (events !== undefined) statements.insertEvents.get(number, version, change.at, events);
  }
  // Every stream below has its number: the reading half looked it up, or the loop above gave it.
  const numberOf = (stream: StreamId): number => numbers.get(stream) as number;
  for (const { keyBytes, sequence, holder } of change.claims) {
    statements.insertClaim.get(tenant, keyBytes, sequence, numberOf(holder));
  }
  for (const { owner, digestBytes, label, salt, bytes } of change.documents) {
    statements.insertContent.get(numberOf(owner), digestBytes, label, salt, bytes);
  }
  for (const { keyBytes, stream } of change.crossRun) {
    statements.insertCrossRun.get(tenant, keyBytes, numberOf(stream));
  }
}

const NOT_LIVE = [null, null, null, null, null] as const;

function liveColumns(live: FrozenWrite['live']): readonly SqliteValue[] {
  return live ? [live.queue, live.stage, live.dueAt, live.worker, live.order] : NOT_LIVE;
}
