// What a case of the store suite works with: handles on a place of its own, and short ways to write changes.

import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import type {
  Change,
  ChangeResult,
  ContentDocument,
  Json,
  LiveRow,
  Store,
  StreamId,
  StreamWrite,
} from '../../store/port.ts';

export interface Bench {
  /** The handle that most cases use. */
  readonly store: Store;
  /** One more handle on the same place; only for stores that are durable. */
  open(): Promise<Store>;
}

export interface CaseDefinition {
  readonly name: string;
  readonly run: (bench: Bench) => Promise<void>;
}

export const TENANT = 'acme';
export const AT = 1_764_500_000_000;
export const STORED: ChangeResult = { outcome: 'stored' };

/** A write of a stream at the version it should have; the state names both, so that mix-ups show. */
export function write(
  stream: StreamId,
  expectedVersion: number,
  more: Partial<StreamWrite> = {},
): StreamWrite {
  const version = expectedVersion + 1;
  return {
    stream,
    expectedVersion,
    state: { of: stream, version },
    events: [{ type: 'written', of: stream, version }],
    ...more,
  };
}

export function change(writes: readonly StreamWrite[], more: Partial<Change> = {}): Change {
  return { tenant: TENANT, at: AT, writes, ...more };
}

/** A key of one hour; different numbers give different keys. */
export function key(number: number): string {
  return `0007778a${number.toString(16).padStart(16, '0')}${'5a'.repeat(8)}`;
}

/** What the keys of equal intents have in common. */
export function prefix(key: string): string {
  return key.slice(0, 24);
}

export function live(order: string, more: Partial<LiveRow> = {}): Omit<LiveRow, 'stream'> {
  return { queue: 'crm', stage: 'sending', dueAt: AT, worker: null, order, ...more };
}

export function document(owner: StreamId, content: string | Uint8Array, label = 'payload'): ContentDocument {
  const salt = new Uint8Array(randomBytes(16));
  const bytes = typeof content === 'string' ? new TextEncoder().encode(content) : content;
  const digest = createHash('sha256').update(salt).update(bytes).digest('hex');
  return { digest: `sha256:${digest}`, label, owner, salt, bytes };
}

/** Stores changes that must be stored. */
export async function put(store: Store, ...changes: readonly Change[]): Promise<void> {
  const results = await store.commit(changes);
  assert.deepEqual(
    results,
    changes.map(() => STORED),
  );
}

export async function versionOf(store: Store, stream: StreamId, tenant = TENANT): Promise<number> {
  const [record] = await store.read(tenant, [stream]);
  return record?.version ?? 0;
}

/** Everything that a change to this stream could have left behind. */
export async function assertUntouched(store: Store, stream: StreamId, version: number): Promise<void> {
  assert.equal(await versionOf(store, stream), version, `${stream} has another version`);
  const history = await store.history(TENANT, stream);
  const newest = history.at(-1)?.version ?? 0;
  assert(newest <= version, `the history of ${stream} goes on to version ${newest}`);
}

export async function assertIsBug(call: Promise<unknown>, what: string): Promise<void> {
  await assert.rejects(call, { name: 'AssertionError' }, `${what} should be refused as a bug`);
}

/** Events of a history without the fields that a case has no interest in. */
export async function eventsOf(store: Store, stream: StreamId): Promise<readonly Json[]> {
  return (await store.history(TENANT, stream)).map((stored) => stored.event);
}
