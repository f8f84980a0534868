import { randomBytes } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import type { ContentDocument, DocumentReference, Store } from '../../src/store/port.ts';
import { SealedContent } from '../../src/store/sealed-content.ts';
import { openSqliteStore } from '../../src/store/sqlite/sqlite-store.ts';
import { exerciseStore } from '../../src/testing/exercise-store.ts';
import { change, document, put, TENANT, write } from '../../src/testing/store-cases/bench.ts';

const KEY = new Uint8Array(randomBytes(32));
const TEXT = 'Northwind pays 4,200 to Vale & Sons';

describe('the store suite, with its content sealed', () => {
  const open = async () =>
    new SealedContent(
      await openSqliteStore({ file: ':memory:' }),
      () => KEY,
      ({ digest }) => {
        throw new Error(`${digest} cannot be opened`);
      },
    );
  for (const { name, run } of exerciseStore({ name: 'sealed', open, isDurable: false })) test(name, run);
});

async function setup() {
  const inner = await openSqliteStore({ file: ':memory:' });
  const unopened: DocumentReference[] = [];
  const over = (key: Uint8Array) =>
    new SealedContent(
      inner,
      () => key,
      (reference) => unopened.push(reference),
    );
  const payload = document('op:a', TEXT);
  const store = over(KEY);
  const keep = (into: Store, one: ContentDocument, version = 0) =>
    put(into, change([write(one.owner, version)], { documents: [one] }));
  await keep(store, payload);
  return { inner, keep, over, payload, store, unopened };
}

const textOf = (found: ContentDocument | undefined) => found && Buffer.from(found.bytes).toString('utf8');

test('what lies in the store is not the text, not even twice the same, and is longer by 17 bytes', async () => {
  const { inner, keep, payload, store } = await setup();
  const again = { ...payload, owner: 'op:b' };
  await keep(store, again);
  const [first, second] = await inner.documents(TENANT, [payload, again]);
  const bytes = [first, second].map((found) => Buffer.from(found?.bytes ?? []));
  expect(bytes.map((one) => one.includes('Northwind'))).toEqual([false, false]);
  expect(bytes[0]?.equals(bytes[1] ?? Buffer.alloc(0))).toBe(false);
  expect(bytes.map((one) => one.length)).toEqual([TEXT.length + 17, TEXT.length + 17]);
  expect(textOf((await store.documents(TENANT, [payload]))[0])).toBe(TEXT);
});

test('documents of all lengths come back, each under a counter of its own', async () => {
  const { inner, store } = await setup();
  const kept = Array.from({ length: 70 }, (_, length) => document(`op:n${length}`, 'x'.repeat(length)));
  await put(store, ...kept.map((one) => change([write(one.owner, 0)], { documents: [one] })));
  const found = await store.documents(TENANT, kept);
  expect(found.map(textOf)).toEqual(kept.map(textOf));
  expect(found.map((one) => one?.salt)).toEqual(kept.map(({ salt }) => salt));
  const stored = await inner.documents(TENANT, kept);
  const used = stored.map((one) => Buffer.from(one?.bytes ?? []).readUInt32BE(13));
  const blocks = kept.map(({ bytes, salt }) => Math.ceil((bytes.length + salt.length) / 16));
  expect(used.slice(1).map((at, index) => at - (used[index] ?? 0))).toEqual(blocks.slice(0, -1));
});

test('two processes share no part of the key stream', async () => {
  const { inner, keep, over, payload } = await setup();
  const other = { ...payload, owner: 'op:b' };
  await keep(over(KEY), other);
  const [first, second] = await inner.documents(TENANT, [payload, other]);
  const prefixes = [first, second].map((one) => Buffer.from(one?.bytes ?? []).toString('hex', 1, 13));
  expect(prefixes[0]).not.toBe(prefixes[1]);
});

test('under another key nothing is given, and it is told which document that was', async () => {
  const { over, payload, unopened } = await setup();
  expect(await over(new Uint8Array(randomBytes(32))).documents(TENANT, [payload])).toEqual([undefined]);
  expect(unopened).toEqual([{ owner: 'op:a', digest: payload.digest }]);
});

test.each([
  ['the name of another', (one: ContentDocument) => ({ ...one, digest: `sha256:${'0'.repeat(64)}` })],
  ['a changed byte', (one: ContentDocument) => ({ ...one, bytes: flipped(one.bytes, 40) })],
  ['a changed counter', (one: ContentDocument) => ({ ...one, bytes: flipped(one.bytes, 16) })],
  ['a changed salt', (one: ContentDocument) => ({ ...one, salt: flipped(one.salt, 0) })],
  ['a cut end', (one: ContentDocument) => ({ ...one, bytes: one.bytes.subarray(0, 30) })],
  ['hardly a beginning', (one: ContentDocument) => ({ ...one, bytes: one.bytes.subarray(0, 9) })],
] as const)('sealed bytes with %s cannot be opened', async (_name, altered) => {
  const { inner, keep, payload, store, unopened } = await setup();
  const [sealed] = await inner.documents(TENANT, [payload]);
  if (sealed === undefined) throw new Error('nothing was stored');
  const moved = { ...altered(sealed), owner: 'op:b' };
  await keep(inner, moved);
  expect(await store.documents(TENANT, [moved])).toEqual([undefined]);
  expect(unopened).toHaveLength(1);
});

test('what was stored before content was sealed is read, and is not where it is not what its digest says', async () => {
  const { inner, keep, store, unopened } = await setup();
  const older = document('op:b', TEXT);
  const altered = { ...document('op:c', TEXT), bytes: new TextEncoder().encode('Northwind pays 9,900') };
  await keep(inner, older);
  await keep(inner, altered);
  const found = await store.documents(TENANT, [older, altered]);
  expect(found.map(textOf)).toEqual([TEXT, undefined]);
  expect(unopened).toEqual([{ owner: 'op:c', digest: altered.digest }]);
});

function flipped(bytes: Uint8Array, at: number): Uint8Array {
  const copy = new Uint8Array(bytes);
  copy[at] = (copy[at] ?? 0) ^ 1;
  return copy;
}
