// The `requestState` that a client of 2026-07-28 carries from a question to its answer: sealed, so that it can neither
// be read nor made up, and bound to who asked, what was asked, and which leg it is. That it counts once is not its
// matter: a leg is taken once, and for a write recorded.

import { createCipheriv, createDecipheriv, createHash, randomBytes } from 'node:crypto';

export interface LegState {
  readonly conversation: string;
  readonly leg: number;
  /** Where the call is a write that is recorded. */
  readonly operation?: string;
  /** Digest of the principal and of the request, without what changes from leg to leg. */
  readonly bound: string;
  /** ms since the epoch. */
  readonly expiresAt: number;
}

const PREFIX = 'cf1.';
const IV_BYTES = 12;
const TAG_BYTES = 16;

export function isSealed(text: string): boolean {
  return text.startsWith(PREFIX);
}

export function seal(key: Uint8Array, state: LegState): string {
  const iv = randomBytes(IV_BYTES);
  const cipher = createCipheriv('aes-256-gcm', key, iv);
  const sealed = Buffer.concat([cipher.update(JSON.stringify(state), 'utf8'), cipher.final()]);
  return PREFIX + Buffer.concat([iv, cipher.getAuthTag(), sealed]).toString('base64url');
}

/** `undefined` for what was not sealed under this key, or was changed. */
export function unseal(key: Uint8Array, text: string): LegState | undefined {
  const bytes = Buffer.from(text.slice(PREFIX.length), 'base64url');
  if (!isSealed(text) || bytes.length < IV_BYTES + TAG_BYTES) return undefined;
  try {
    const decipher = createDecipheriv('aes-256-gcm', key, bytes.subarray(0, IV_BYTES));
    decipher.setAuthTag(bytes.subarray(IV_BYTES, IV_BYTES + TAG_BYTES));
    const sealed = bytes.subarray(IV_BYTES + TAG_BYTES);
    const opened = Buffer.concat([decipher.update(sealed), decipher.final()]).toString('utf8');
    return JSON.parse(opened) as LegState;
  } catch {
    return undefined;
  }
}

/** What a state is bound to: the same principal repeats the same request, under whichever id. */
export function boundTo(principal: string, method: string, request: string): string {
  return createHash('sha256')
    .update(JSON.stringify([principal, method, request]))
    .digest('base64url');
}
