// The store port: one writing verb that compares and appends, a few paged readings, nothing else.
//
// Adapters live beside this file in folders of their own. Time is always a parameter, never the adapter's
// clock; no adapter knows what an operation is. `testing/exercise-store.ts` is the one suite that every
// adapter passes.

/** Any JSON value. Adapters store it as text and give back an equal value. */
export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };

/**
 * The name of one history, with its kind before the colon: `op:…`, `run:…`, `lock:…`, `review:…`, `rule:…`,
 * `shown:…`, `grant:…`, `worker:…`. All streams of one change belong to one tenant.
 */
export type StreamId = string;

/** One history's present state. `version` counts its commits: 1 after the first. */
export interface StreamRecord {
  readonly stream: StreamId;
  readonly version: number;
  readonly state: Json;
  /** As given with the first write; absent where none was. */
  readonly fixed?: Json;
  /** The instant of the mark on this version; absent where none was made. */
  readonly markedAt?: number;
}

/**
 * What live work is found by. A row exists while work is open and leaves when it is settled, so that
 * reading the live table costs nothing as history grows.
 */
export interface LiveRow {
  readonly stream: StreamId;
  /** The place that can go on with it: a destination's configured name. */
  readonly queue: string;
  /** What it is waiting to have done: the operation's stage. */
  readonly stage: string;
  /** Instant (ms since the epoch) before which nothing needs doing. */
  readonly dueAt: number;
  /** The worker that holds the claim, while one does. */
  readonly worker: string | null;
  /** Orders equal due times and gives order of arrival; the stream's own time-ordered id. */
  readonly order: string;
}

export interface StreamWrite {
  readonly stream: StreamId;
  /** The version that must be the present one; 0 for a stream that must not exist yet. */
  readonly expectedVersion: number;
  /** Appended to the history under the new version, in this order. May be empty. */
  readonly events: readonly Json[];
  readonly state: Json;
  /**
   * What of the history's state never changes: given with the first write, together with events, and never again.
   * It is stored once, so that a long beginning is not written anew with every step.
   */
  readonly fixed?: Json;
  /** Absent: leave the live row as it is. `null`: remove it. */
  readonly live?: Omit<LiveRow, 'stream'> | null;
}

/**
 * A unique row that is never released: the first taker of `(key, sequence)` keeps it, against itself as well.
 * `key` is 20 bytes as lower-case hexadecimal text, led by its hour (4 bytes), stored binary so that fresh
 * keys share index pages.
 */
export interface Claim {
  readonly key: string;
  /** 0 for the first; the next occurrence of the same intent takes the next number. */
  readonly sequence: number;
  readonly holder: StreamId;
}

/** A stream whose version must be unchanged for the change to be stored (0: must not exist). */
export interface Requirement {
  readonly stream: StreamId;
  readonly version: number;
}

/** Bytes kept apart from the history: payloads, results, what a reviewer was shown. */
export interface ContentDocument {
  /** `sha256:` + hex over salt and bytes; the only name by which histories mention it. */
  readonly digest: string;
  readonly label: string;
  /** The stream whose rights and retention govern it. */
  readonly owner: StreamId;
  readonly salt: Uint8Array;
  readonly bytes: Uint8Array;
}

/**
 * What a document is asked for by. A digest alone opens nothing: who asks knows whose rights govern the
 * document, and documents of one stream lie together (a digest is random, and an index led by it would
 * dirty another page for every document).
 */
export interface DocumentReference {
  readonly owner: StreamId;
  readonly digest: string;
}

/**
 * An advisory entry, not unique, keyed as claims are and found with them: the same intent in other runs, where no
 * claim of its own begins with the same bytes.
 */
export interface CrossRunEntry {
  readonly key: string;
  readonly stream: StreamId;
}

/**
 * That something was done about a stream's present version, at the change's instant. It is no part of the history,
 * moves no version on, and goes with the next write, whose writer has read it. Where the stream has another version, or
 * has a mark, nothing is done, and nothing of the change is refused for it.
 */
export interface Mark {
  readonly stream: StreamId;
  readonly version: number;
}

/**
 * All of it or nothing. At most 16 writes, of as many streams; at least one write, claim, document or mark. A stream
 * named as holder, owner or cross-run stream exists or is written by the same change; where it does not, the
 * change is stale, with version 0.
 */
export interface Change {
  readonly tenant: string;
  readonly writes: readonly StreamWrite[];
  readonly claims?: readonly Claim[];
  readonly requires?: readonly Requirement[];
  readonly documents?: readonly ContentDocument[];
  readonly crossRun?: readonly CrossRunEntry[];
  /** Made after the writes. */
  readonly marks?: readonly Mark[];
  /** The instant (ms since the epoch) that the change is recorded under. */
  readonly at: number;
}

/**
 * `stored`: durable now. `stale`: a stream had another version; nothing of the change was written; `stream`
 * and `version` name the first that differed (writes, then requirements). `taken`: nothing is stale, but a
 * claim is held; nothing was written.
 */
export type ChangeResult =
  | { readonly outcome: 'stored' }
  | { readonly outcome: 'stale'; readonly stream: StreamId; readonly version: number }
  | { readonly outcome: 'taken'; readonly key: string; readonly sequence: number; readonly by: StreamId };

export interface StoredEvent {
  readonly stream: StreamId;
  readonly version: number;
  readonly recordedAt: number;
  readonly event: Json;
  /** With the events of version 1, what was given as fixed. */
  readonly fixed?: Json;
}

/** With `dueBy` the rows come by due time, then order; without it by order alone, so that `after` pages. */
export interface LiveQuery {
  readonly tenant: string;
  readonly queues?: readonly string[];
  readonly stages?: readonly string[];
  /** Only rows due at or before this instant. */
  readonly dueBy?: number;
  readonly worker?: string;
  /** Rows after this `order`; for paging in order of arrival, so not together with `dueBy`. */
  readonly after?: string;
  readonly limit: number;
}

export interface StreamQuery {
  readonly tenant: string;
  /** The kind before the colon: `op`, `review`, … */
  readonly kind: string;
  /** Streams after this id in id order (`newest`: before it). */
  readonly after?: StreamId;
  readonly newest?: boolean;
  readonly limit: number;
}

/** What the store itself reports about its durability; read back at start, never assumed. */
export interface Durability {
  readonly engine: string;
  readonly version: string;
  /** Adapter-specific facts as read back, e.g. `synchronous: 'full'`. */
  readonly settings: { readonly [name: string]: string };
}

export interface Store {
  readonly durability: Durability;
  /**
   * Stores each change wholly or not at all, in one transaction; results are in the order of the changes.
   * A change that is stale or taken does not disturb its neighbours. Changes of one call that touch the same
   * stream or claim are decided in their order, each seeing those before it.
   * @throws {StoreFault} when nothing of the call may be taken as stored; `fate` says what is known.
   */
  commit(changes: readonly Change[]): Promise<readonly ChangeResult[]>;
  /** In the order asked; `undefined` for a stream that does not exist. */
  read(tenant: string, streams: readonly StreamId[]): Promise<readonly (StreamRecord | undefined)[]>;
  /** The claim with the highest sequence under each key; `undefined` where none exists. */
  latestClaims(tenant: string, keys: readonly string[]): Promise<readonly (Claim | undefined)[]>;
  /**
   * The streams that hold a claim, or are named by a cross-run entry, whose key begins with one of `prefixes`
   * (12 bytes as 24 lower-case hexadecimal digits). Each stream once, at most `limit` in all: prefixes in the
   * order asked, under each the highest stream id first.
   */
  crossRun(tenant: string, prefixes: readonly string[], limit: number): Promise<readonly StreamId[]>;
  history(tenant: string, stream: StreamId): Promise<readonly StoredEvent[]>;
  live(query: LiveQuery): Promise<readonly LiveRow[]>;
  streams(query: StreamQuery): Promise<readonly StreamRecord[]>;
  documents(
    tenant: string,
    references: readonly DocumentReference[],
  ): Promise<readonly (ContentDocument | undefined)[]>;
  /**
   * A number that changes whenever another connection or process has committed. Cheap enough to ask ten
   * times a second; equal answers mean that no foreign commit needs looking at.
   */
  foreignCommits(): Promise<number>;
  /** How many transactions this handle has committed; for benchmarks. */
  readonly commits: number;
  close(): Promise<void>;
}

/**
 * A fault of the store. `fate: 'not_stored'` only where the adapter knows that the transaction was rolled
 * back; `fate: 'unknown'` after an error of COMMIT itself: the handle is poisoned (every later call fails
 * with `ERR_STORE_POISONED`) and the rows must be read again on a new connection before anything is sent.
 */
export class StoreFault extends Error {
  override readonly name = 'StoreFault';
  readonly code: 'ERR_STORE_UNAVAILABLE' | 'ERR_STORE_POISONED' | 'ERR_STORE_UNSAFE' | 'ERR_STORE_VERSION';
  readonly fate: 'not_stored' | 'unknown';
  constructor(
    code: StoreFault['code'],
    message: string,
    options: { readonly fate: 'not_stored' | 'unknown'; readonly cause?: unknown },
  ) {
    super(message, { cause: options.cause });
    this.code = code;
    this.fate = options.fate;
  }
}
