// Operations as the store keeps them: reading a row, and turning a decision into one change.

import type { ContentDigest } from '../core/attempt.ts';
import { decide } from '../core/decide.ts';
import { sha256Hex } from '../core/digest.ts';
import { openKey } from '../core/intent.ts';
import { FREE_LOCK, type LockState, lockAfter } from '../core/locks.ts';
import {
  evolveAll,
  movingPart,
  type Operation,
  type OperationEvent,
  type Proposal,
} from '../core/operation.ts';
import type { Reply } from '../destination/port.ts';
import type {
  ContentDocument,
  CrossRunEntry,
  Json,
  LiveRow,
  Store,
  StoredEvent,
  StreamId,
  StreamRecord,
  StreamWrite,
} from '../store/port.ts';

/** An operation with the version of its stream: what the next commit compares with. */
export interface OperationRecord {
  readonly version: number;
  readonly operation: Operation;
  /** Of `operation.deliveredAt`, where it is only marked: the next step brings it into the history. */
  readonly deliveryMarkedAt?: number | undefined;
  /** What `operation.result` names, while it is at hand in the process that has just stored it. */
  readonly reply?: Reply | undefined;
}

/** A due time that never comes: the row waits for a person. */
export const NEVER_DUE = 8_640_000_000_000_000;

export function streamOf(id: string): string {
  return `op:${id}`;
}

/** What an operation is read from: the store, and what this process knows of its answers and has not stored yet. */
export interface Source {
  readonly store: Store;
  readonly tenant: string;
  readonly environment: { now(): number };
  readonly answersOut: { readonly delivered: { has(operation: string): boolean } };
}

export async function readOperation(source: Source, id: string): Promise<OperationRecord | undefined> {
  const [record] = await source.store.read(source.tenant, [streamOf(id)]);
  return record === undefined ? undefined : withDelivery(source, asRecord(record));
}

/** A record that was read a moment ago, with what has been told of its answer since. */
export function withDelivery({ answersOut, environment }: Source, record: OperationRecord): OperationRecord {
  return answersOut.delivered.has(record.operation.id) ? asDelivered(record, environment.now()) : record;
}

export function asRecord({ version, state, fixed, markedAt }: StreamRecord): OperationRecord {
  const operation = { ...(fixed as object), ...(state as object) } as unknown as Operation;
  return markedAt === undefined ? { version, operation } : asDelivered({ version, operation }, markedAt);
}

/** The record with the mark that its answer was delivered, where it may have one. */
export function asDelivered(record: OperationRecord, at: number): OperationRecord {
  const events = decide(record.operation, { type: 'deliver' }, at).events;
  const operation = events && evolveAll(record.operation, events);
  return operation === undefined ? record : { ...record, operation, deliveryMarkedAt: at };
}

/** An event as it was decided: what is fixed of its operation is stored beside the first events, not in them. */
export function asEvent({ event, fixed }: Pick<StoredEvent, 'event' | 'fixed'>): OperationEvent {
  const stored = event as unknown as OperationEvent;
  return stored.type === 'proposed' && fixed !== undefined
    ? { ...stored, proposal: fixed as unknown as Proposal }
    : stored;
}

/** What the history gets: first the mark that the state has already, then what was decided now. */
function recorded({ before, events }: NextState): readonly OperationEvent[] {
  const at = before?.deliveryMarkedAt;
  return at === undefined ? events : [{ type: 'delivered', at }, ...events];
}

/** The events without what is stored beside them, and that. */
function beginning(events: readonly OperationEvent[]): Pick<StreamWrite, 'events' | 'fixed'> {
  const [first, ...rest] = events;
  if (first?.type !== 'proposed') return { events: events as unknown as readonly Json[] };
  const { proposal, ...proposed } = first;
  return { events: [proposed, ...rest] as unknown as readonly Json[], fixed: proposal as unknown as Json };
}

/** A salted document: equal content never has equal names, so that a name tells nothing about its content. */
export function contentDocument(
  label: string,
  owner: string,
  bytes: Uint8Array,
  salt: Uint8Array,
): ContentDocument {
  return saltedDocument(label, streamOf(owner), bytes, salt);
}

/** The same, of another stream than an operation's. */
export function saltedDocument(
  label: string,
  owner: StreamId,
  bytes: Uint8Array,
  salt: Uint8Array,
): ContentDocument {
  const salted = new Uint8Array(salt.length + bytes.length);
  salted.set(salt, 0);
  salted.set(bytes, salt.length);
  const digest: ContentDigest = `sha256:${sha256Hex(salted)}`;
  return { digest, label, owner, salt, bytes };
}

/** Whether a document is what its name says: its digest is over salt and content. */
export function isUnaltered({ bytes, digest, salt }: ContentDocument): boolean {
  return contentDocument('', '', bytes, salt).digest === digest;
}

/** The row by which open work is found again; `null` when nothing is left to be done or shown. */
export function liveRowOf(operation: Operation, worker: string): Omit<LiveRow, 'stream'> | null {
  const row = (dueAt: number, held: string | null): Omit<LiveRow, 'stream'> => ({
    queue: operation.destination,
    stage: operation.stage,
    dueAt,
    worker: held,
    order: operation.id,
  });
  const { why } = operation;
  switch (operation.stage) {
    case 'sending':
      return row(operation.since, worker);
    case 'checking':
      return row(why !== undefined && 'nextAt' in why ? why.nextAt : operation.since, worker);
    case 'awaiting_approval':
      return row((operation.review?.expiresAt ?? NEVER_DUE) + 1, null);
    case 'ready':
      return row(why !== undefined && 'until' in why ? why.until : operation.since, null);
    case 'proposed':
    case 'held':
    case 'parked':
      return row(NEVER_DUE, null);
    case 'closed':
      // Read back and different: closed, but a person should see it.
      return isReadBackDifferent(operation) ? row(NEVER_DUE, null) : null;
  }
}

/** Nothing where there was no row and is none. */
function liveChange(
  before: Operation | undefined,
  operation: Operation,
  worker: string,
): Pick<StreamWrite, 'live'> {
  const live = liveRowOf(operation, worker);
  const hasNone = live === null && (before === undefined || liveRowOf(before, worker) === null);
  return hasNone ? {} : { live };
}

export function isReadBackDifferent(operation: Operation): boolean {
  const last = operation.evidence.findLast((piece) => piece.kind === 'readback');
  return last?.kind === 'readback' && last.matches === false && operation.effect === 'accepted';
}

/** The records of an operation's locks, as just read; absent streams are free locks at version 0. */
export type LockRecords = readonly {
  readonly stream: string;
  readonly version: number;
  readonly state: LockState;
}[];

export async function readLocks(
  store: Store,
  tenant: string,
  locks: readonly string[] | undefined,
): Promise<LockRecords> {
  if (locks === undefined || locks.length === 0) return [];
  const records = await store.read(tenant, locks);
  return locks.map((stream, index) => {
    const record = records[index];
    return {
      stream,
      version: record?.version ?? 0,
      state: (record?.state as unknown as LockState) ?? FREE_LOCK,
    };
  });
}

export interface NextState {
  readonly before: OperationRecord | undefined;
  readonly events: readonly OperationEvent[];
  /** The state after the events, where it has been made already. */
  readonly after?: Operation;
  readonly locks: LockRecords;
  readonly worker: string;
}

/** The writes of one operation's step: its own stream, and every lock that the step takes or frees. */
export function writesOf(next: NextState): { readonly operation: Operation; readonly writes: StreamWrite[] } {
  const operation = next.after ?? evolveAll(next.before?.operation, next.events);
  if (operation === undefined) throw new Error('Assertion: a decision without events has nothing to store.');
  const writes: StreamWrite[] = [
    {
      stream: streamOf(operation.id),
      expectedVersion: next.before?.version ?? 0,
      ...beginning(recorded(next)),
      state: movingPart(operation) as unknown as Json,
      ...liveChange(next.before?.operation, operation, next.worker),
    },
  ];
  const startsAttempt = next.events.some((event) => event.type === 'attempt_started');
  for (const lock of next.locks) {
    const after = lockAfter(lock.state, operation, startsAttempt);
    if (after === lock.state) continue;
    const isTaken = startsAttempt && after.holder === operation.id;
    if (isTaken && lock.state.holder !== null && lock.state.holder !== operation.id) {
      throw new Error(`Assertion: ${operation.id} would take a lock that ${lock.state.holder} holds (I12).`);
    }
    writes.push({
      stream: lock.stream,
      expectedVersion: lock.version,
      events: [],
      state: after as unknown as Json,
    });
  }
  return { operation, writes };
}

/** Who is next in the lines of the locks that a step has freed. */
export function nextInLine(before: LockRecords, operation: Operation): readonly string[] {
  return before.flatMap((lock) => {
    const after = lockAfter(lock.state, operation, false);
    const first = after.line[0];
    return after.holder === null && first !== undefined ? [first] : [];
  });
}

/**
 * The entry by which other runs find work that stays open; only work that stops on its way gets one, so that
 * what goes straight through costs nothing.
 */
export function openEntries(before: Operation | undefined, after: Operation): readonly CrossRunEntry[] {
  if (!staysOpen(after) || (before !== undefined && staysOpen(before))) return [];
  return [{ key: openKey(after.crossRunHash), stream: streamOf(after.id) }];
}

function staysOpen({ stage, why }: Operation): boolean {
  return (
    stage === 'awaiting_approval' ||
    stage === 'parked' ||
    (stage === 'ready' && why !== undefined) ||
    stage === 'checking'
  );
}
