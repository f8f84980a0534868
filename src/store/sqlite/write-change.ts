// Decides one change under the write lock, and writes it if it stands.
//
// No savepoints. BEGIN IMMEDIATE holds the only write lock there is, so what is read in the first half cannot
// change before the second half writes: versions, requirements, named streams and claims are all looked at
// before the first write, and after that no write can fail on a precondition. A change that does not stand has
// therefore written nothing and its neighbours need no undoing. What can still fail (a full disk, an I/O
// error) is no fault of one change, and ends the whole transaction.

import type { FrozenChange, FrozenWrite } from '../frozen-change.ts';
import type { ChangeResult, StreamId } from '../port.ts';
import type { SqliteValue } from './driver.ts';
import type { Statements } from './statements.ts';
import { NO_TENANT, type Tenants } from './tenants.ts';

/** A stream's row without its state: what leads to everything else of it. */
export interface Head {
  readonly number: number;
  readonly version: number;
  readonly lastEvent: number | null;
  readonly lastContent: number | null;
}

export function findHead(statements: Statements, tenant: number, stream: StreamId): Head | undefined {
  const row = statements.findStream.get(tenant, stream) as
    | readonly [number, number, number | null, number | null]
    | undefined;
  if (row === undefined) return undefined;
  const [number, version, lastEvent, lastContent] = row;
  return { number, version, lastEvent, lastContent };
}

/** The number of a stream's document, of which there are few: from the newest back. */
export function findContent(
  statements: Statements,
  newest: number | null,
  digest: Uint8Array,
): number | undefined {
  let id = newest;
  while (id !== null) {
    const row = statements.findContent.get(id) as readonly [number | null, Uint8Array] | undefined;
    if (row === undefined) throw new Error(`Assertion: document ${id} is not there.`);
    if (Buffer.compare(row[1], digest) === 0) return id;
    id = row[0];
  }
  return undefined;
}

/** The numbers that new rows get, each one above the highest: read once for a writing transaction. */
export class Numbers {
  #stream: number;
  #event: number;
  #content: number;

  constructor(statements: Statements) {
    const row = statements.highestNumbers.get() as readonly [number, number, number];
    [this.#stream, this.#event, this.#content] = row;
  }

  nextStream(): number {
    this.#stream += 1;
    return this.#stream;
  }

  nextEvent(): number {
    this.#event += 1;
    return this.#event;
  }

  nextContent(): number {
    this.#content += 1;
    return this.#content;
  }
}

/**
 * What this transaction has looked up because a change required it: many changes of one moment require the same stream.
 * Versions by tenant and stream; one that the transaction writes is looked up anew.
 */
export type Required = Map<string, number>;

/** Inside a writing transaction. Throws only SQLite's own errors. */
export function writeChange(
  statements: Statements,
  tenants: Tenants,
  { next, required }: { readonly next: Numbers; readonly required: Required },
  change: FrozenChange,
): ChangeResult {
  const tenant = tenants.find(change.tenant);
  const heads = new Map<StreamId, Head>();
  const refusal = findObstacle(statements, tenant, change, heads, required);
  if (refusal !== undefined) return refusal;
  const known = tenant === NO_TENANT ? tenants.add(change.tenant) : tenant;
  new ChangeWriter(statements, known, next, heads).write(change);
  for (const { stream } of change.writes) required.delete(requiredKey(tenant, stream));
  return { outcome: 'stored' };
}

function requiredKey(tenant: number, stream: StreamId): string {
  return `${tenant} ${stream}`;
}

/** The reading half. Fills in the heads of the streams that exist. */
function findObstacle(
  statements: Statements,
  tenant: number,
  change: FrozenChange,
  heads: Map<StreamId, Head>,
  required: Required,
): ChangeResult | undefined {
  const versionOf = (stream: StreamId): number => {
    const head = findHead(statements, tenant, stream);
    if (head === undefined) return 0;
    heads.set(stream, head);
    return head.version;
  };

  for (const { stream, expectedVersion } of change.writes) {
    const version = versionOf(stream);
    if (version !== expectedVersion) return { outcome: 'stale', stream, version };
  }
  for (const requirement of change.requires) {
    const key = requiredKey(tenant, requirement.stream);
    const version = required.get(key) ?? versionOf(requirement.stream);
    required.set(key, version);
    if (version !== requirement.version) return { outcome: 'stale', stream: requirement.stream, version };
  }
  // Most of what is named is written by the same change, or has just been looked at.
  const isMissing = (stream: StreamId): boolean =>
    !heads.has(stream) && !change.writes.some((write) => write.stream === stream) && versionOf(stream) === 0;
  const missing =
    change.claims.find(({ holder }) => isMissing(holder))?.holder ??
    change.documents.find(({ owner }) => isMissing(owner))?.owner ??
    change.crossRun.find(({ stream }) => isMissing(stream))?.stream;
  if (missing !== undefined) return { outcome: 'stale', stream: missing, version: 0 };
  for (const { key, keyBytes, sequence } of change.claims) {
    const row = statements.findClaim.get(tenant, keyBytes, sequence) as readonly [string] | undefined;
    if (row !== undefined) return { outcome: 'taken', key, sequence, by: row[0] };
  }
  return undefined;
}

/** The writing half. */
class ChangeWriter {
  readonly #statements: Statements;
  readonly #tenant: number;
  readonly #next: Numbers;
  readonly #heads: Map<StreamId, Head>;

  constructor(statements: Statements, tenant: number, next: Numbers, heads: Map<StreamId, Head>) {
    this.#statements = statements;
    this.#tenant = tenant;
    this.#next = next;
    this.#heads = heads;
  }

  write({ at, writes, claims, documents, crossRun, marks }: FrozenChange): void {
    for (const one of writes) this.#writeStream(one, at, documents);
    for (const { keyBytes, sequence, holder } of claims) {
      this.#statements.insertClaim.get(this.#tenant, keyBytes, sequence, this.#numberOf(holder));
    }
    for (const document of documents) {
      if (!writes.some(({ stream }) => stream === document.owner)) this.#addContent(document);
    }
    for (const { keyBytes, stream } of crossRun) {
      this.#statements.insertCrossRun.get(this.#tenant, keyBytes, this.#numberOf(stream));
    }
    for (const { stream, version } of marks) {
      this.#statements.markStream.get(at, this.#tenant, stream, version);
    }
  }

  #writeStream(one: FrozenWrite, at: number, documents: FrozenChange['documents']): void {
    const { stream, expectedVersion, state, events, fixed, live } = one;
    const statements = this.#statements;
    const before = this.#heads.get(stream);
    const number = before?.number ?? this.#next.nextStream();
    const version = expectedVersion + 1;
    let lastEvent = before?.lastEvent ?? null;
    if (events !== undefined) {
      const id = this.#next.nextEvent();
      statements.insertEvents.get(id, number, version, at, lastEvent, events, fixed);
      lastEvent = id;
    }
    let lastContent = before?.lastContent ?? null;
    for (const document of documents) {
      if (document.owner === stream) lastContent = this.#insertContent(document, number, lastContent);
    }
    if (before === undefined) {
      statements.insertStream.get(
        number,
        this.#tenant,
        stream,
        version,
        // What is fixed comes with the first events.
        fixed === null ? null : lastEvent,
        lastEvent,
        lastContent,
        state,
        ...liveColumns(live),
      );
    } else if (live === undefined) {
      statements.updateStream.get(version, lastEvent, lastContent, state, number);
    } else {
      statements.updateStreamAndLive.get(
        version,
        lastEvent,
        lastContent,
        state,
        ...liveColumns(live),
        number,
      );
    }
    this.#heads.set(stream, { number, version, lastEvent, lastContent });
  }

  /** To a stream that this change does not write otherwise. */
  #addContent(document: FrozenChange['documents'][number]): void {
    const head = this.#heads.get(document.owner) as Head;
    // The digest covers salt and bytes: a second document of the same owner and digest is the same one.
    if (findContent(this.#statements, head.lastContent, document.digestBytes) !== undefined) return;
    const lastContent = this.#insertContent(document, head.number, head.lastContent);
    this.#statements.setLastContent.get(lastContent, head.number);
    this.#heads.set(document.owner, { ...head, lastContent });
  }

  #insertContent(
    { digestBytes, label, salt, bytes }: FrozenChange['documents'][number],
    owner: number,
    newest: number | null,
  ): number {
    const id = this.#next.nextContent();
    this.#statements.insertContent.get(id, owner, newest, digestBytes, label, salt, bytes);
    return id;
  }

  /** Every stream that is named here has its head: the reading half looked it up, or it was written above. */
  #numberOf(stream: StreamId): number {
    return (this.#heads.get(stream) as Head).number;
  }
}

const NOT_LIVE = [null, null, null, null, null] as const;

function liveColumns(live: FrozenWrite['live']): readonly SqliteValue[] {
  return live ? [live.queue, live.stage, live.dueAt, live.worker, live.order] : NOT_LIVE;
}
