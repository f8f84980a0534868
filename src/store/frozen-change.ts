// A change in the form in which an adapter binds it.

import type { Change, Claim, ContentDocument, CrossRunEntry, LiveRow, StreamId } from './port.ts';

export interface FrozenWrite {
  readonly stream: StreamId;
  readonly expectedVersion: number;
  readonly state: string;
  /** The events as a JSON array; absent when there are none. */
  readonly events: string | undefined;
  readonly fixed: string | null;
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
  readonly marks: NonNullable<Change['marks']>;
}

export function freezeChange(change: Change): FrozenChange {
  return {
    tenant: change.tenant,
    at: change.at,
    writes: change.writes.map(({ stream, expectedVersion, state, events, fixed, live }) => ({
      stream,
      expectedVersion,
      state: JSON.stringify(state),
      events: events.length === 0 ? undefined : JSON.stringify(events),
      fixed: fixed === undefined ? null : JSON.stringify(fixed),
      live,
    })),
    requires: change.requires ?? [],
    claims: (change.claims ?? []).map((claim) => ({ keyBytes: keyToBytes(claim.key), ...claim })),
    documents: (change.documents ?? []).map((document) => ({
      digestBytes: digestToBytes(document.digest),
      ...document,
    })),
    crossRun: (change.crossRun ?? []).map((entry) => ({ keyBytes: keyToBytes(entry.key), ...entry })),
    marks: change.marks ?? [],
  };
}

export function keyToBytes(key: string): Uint8Array {
  return Buffer.from(key, 'hex');
}

export function digestToBytes(digest: string): Uint8Array {
  return Buffer.from(digest.slice('sha256:'.length), 'hex');
}
