// What a change must be before any adapter looks at it: a change that breaks these is a bug of the caller.

import assert from 'node:assert/strict';
import type { Change, StreamId } from './port.ts';

export const WRITES_MAX = 16;

const CLAIM_KEY = /^[0-9a-f]{40}$/;
const KEY_PREFIX = /^[0-9a-f]{24}$/;
const CONTENT_DIGEST = /^sha256:[0-9a-f]{64}$/;
const STREAM_ID = /^[a-z][a-z_]*:./;
/** Orders are compared by several engines and by programs; plain ASCII sorts the same in all of them. */
const ORDER = /^[\x20-\x7e]+$/;

/**
 * NUL ends a text in one of the drivers, and a lone surrogate cannot be written as UTF-8: either would let two
 * different names, of tenants even, become one row.
 */
function isStorable(name: string): boolean {
  return !name.includes('\0') && name.isWellFormed();
}

/** @throws {AssertionError} naming what is wrong. Nothing of the change was stored. */
export function assertChange(change: Change): void {
  const { tenant, writes, claims = [], requires = [], documents = [], crossRun = [], marks = [] } = change;
  assertName('tenant', tenant);
  hold(
    writes.length <= WRITES_MAX,
    () => `A change has at most ${WRITES_MAX} writes; this one has ${writes.length}.`,
  );
  hold(
    writes.length + claims.length + documents.length + marks.length > 0,
    () => 'A change has at least one write, claim, document or mark; this one has none.',
  );
  assertWhole('at', change.at);

  const written = new Set<StreamId>();
  for (const write of writes) {
    assertStream(write.stream);
    hold(!written.has(write.stream), () => `A change writes a stream once; it writes ${write.stream} twice.`);
    written.add(write.stream);
    assertWhole('expectedVersion', write.expectedVersion);
    hold(write.state !== undefined, () => `The state of ${write.stream} is missing.`);
    hold(
      write.fixed === undefined || (write.expectedVersion === 0 && write.events.length > 0),
      () => `What is fixed of ${write.stream} comes with its first write, and with events.`,
    );
    if (write.live) {
      const { queue, stage, worker, order, dueAt } = write.live;
      assertName('queue', queue);
      assertName('stage', stage);
      if (worker !== null) assertName('worker', worker);
      hold(ORDER.test(order), () => `order is printable ASCII; '${order}' is not.`);
      assertWhole('dueAt', dueAt);
    }
  }
  for (const requirement of requires) {
    assertStream(requirement.stream);
    assertWhole('version', requirement.version);
  }
  const claimed = new Set<string>();
  for (const claim of claims) {
    assertKey(claim.key);
    assertWhole('sequence', claim.sequence);
    assertStream(claim.holder);
    const name = `${claim.key}/${claim.sequence}`;
    hold(!claimed.has(name), () => `A change takes a claim once; it takes ${name} twice.`);
    claimed.add(name);
  }
  for (const document of documents) {
    assertDigest(document.digest);
    assertName('label', document.label);
    assertStream(document.owner);
  }
  for (const entry of crossRun) {
    assertKey(entry.key);
    assertStream(entry.stream);
  }
  for (const mark of marks) {
    assertStream(mark.stream);
    assertWhole('version', mark.version);
  }
}

export function assertStream(stream: StreamId): void {
  hold(
    STREAM_ID.test(stream) && isStorable(stream),
    () => `A stream is named 'kind:id'; '${stream}' is not, or holds a character that cannot be stored.`,
  );
}

export function assertKey(key: string): void {
  hold(CLAIM_KEY.test(key), () => `A key is 20 bytes as 40 lower-case hexadecimal digits; '${key}' is not.`);
}

export function assertPrefix(prefix: string): void {
  hold(
    KEY_PREFIX.test(prefix),
    () => `A prefix of keys is 12 bytes as 24 lower-case hexadecimal digits; '${prefix}' is not.`,
  );
}

export function assertDigest(digest: string): void {
  hold(
    CONTENT_DIGEST.test(digest),
    () => `A digest is 'sha256:' and 64 hexadecimal digits; '${digest}' is not.`,
  );
}

export function assertName(what: string, name: string): void {
  hold(name !== '' && isStorable(name), () => `${what} is empty or holds a character that cannot be stored.`);
}

/** A limit of rows to read: the readings are paged, so one is always meant. */
export function assertLimit(limit: number): void {
  hold(
    Number.isSafeInteger(limit) && limit > 0,
    () => `limit is a whole number of rows above 0, not ${limit}.`,
  );
}

function assertWhole(what: string, value: number): void {
  hold(Number.isSafeInteger(value) && value >= 0, () => `${what} is a whole number from 0, not ${value}.`);
}

/** The message is made only when it is needed: every change passes here. */
function hold(condition: boolean, message: () => string): void {
  if (!condition) assert.fail(message());
}
