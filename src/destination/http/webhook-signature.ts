// The signature of a webhook after Standard Webhooks (standard-webhooks/standard-webhooks, spec "Signature scheme"):
// HMAC-SHA256 over `id.timestamp.body`, in base64, after the version that made it.

import { createHmac, timingSafeEqual } from 'node:crypto';

export interface SignedNotice {
  /** Names in small letters. */
  readonly headers: { readonly [name: string]: string | undefined };
  readonly body: Uint8Array;
}

export type SignatureReading =
  | { readonly ok: true; readonly id: string; readonly sentAt: number }
  /** A sentence's second half. */
  | { readonly ok: false; readonly why: string };

const PREFIX = 'whsec_';
const VERSION = 'v1';
const ID_LENGTH_MAX = 256;

/**
 * @param secrets `whsec_…`, or several with spaces between while one is being exchanged
 * @param clock both in ms: the instant, and how far the sender's clock and ours may be apart
 */
export function verifySignature(
  { body, headers }: SignedNotice,
  secrets: string,
  clock: { readonly at: number; readonly toleranceMs: number },
): SignatureReading {
  const id = headers['webhook-id'] ?? '';
  const timestamp = headers['webhook-timestamp'] ?? '';
  const signatures = headers['webhook-signature'] ?? '';
  const missing = [
    ['webhook-id', id],
    ['webhook-timestamp', timestamp],
    ['webhook-signature', signatures],
  ].find(([, value]) => value === '')?.[0];
  if (missing !== undefined) return { ok: false, why: `its header ${missing} is missing` };
  if (id.length > ID_LENGTH_MAX) return { ok: false, why: 'its id is too long' };
  // Seconds since the epoch, and nothing that a number could be written as beside.
  const sentAt = /^\d{1,12}$/.test(timestamp) ? Number(timestamp) * 1000 : Number.NaN;
  if (Number.isNaN(sentAt)) return { ok: false, why: 'its timestamp is no number of seconds' };
  const expected = secrets
    .split(/\s+/)
    .filter((secret) => secret.startsWith(PREFIX))
    .map((secret) => signatureOf(secret, id, timestamp, body));
  if (expected.length === 0) return { ok: false, why: `no secret to check it by begins with ${PREFIX}` };
  const given = signatures.split(' ').flatMap((one) => (one.startsWith(`${VERSION},`) ? [one.slice(3)] : []));
  if (!given.some((one) => expected.some((other) => isEqual(one, other)))) {
    return { ok: false, why: 'its signature is not of our secret' };
  }
  // Only of what is signed, or anybody could learn our clock.
  if (Math.abs(clock.at - sentAt) <= clock.toleranceMs) return { ok: true, id, sentAt };
  return { ok: false, why: sentAt < clock.at ? 'it was signed too long ago' : 'it was signed in the future' };
}

/** The base64 part of a signature. */
export function signatureOf(secret: string, id: string, timestamp: string, body: Uint8Array): string {
  return createHmac('sha256', Buffer.from(secret.slice(PREFIX.length), 'base64'))
    .update(`${id}.${timestamp}.`)
    .update(body)
    .digest('base64');
}

function isEqual(one: string, other: string): boolean {
  const [a, b] = [Buffer.from(one), Buffer.from(other)];
  return a.length === b.length && timingSafeEqual(a, b);
}
