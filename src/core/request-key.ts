// The value of a guard: what a destination knows one write by. It is made from the operation's own id alone, so that a
// repeat has the same one and no model has any part in it (D6).

import type { ContractOperation, Guard } from './contract.ts';
import { sha256, sha256Hex } from './digest.ts';

/** Encodings of a guard's value that a key of ours can have. */
export type KeyEncoding = 'opaque' | 'sf_string' | 'uuid' | 'uuid_v4' | 'base32hex' | 'identifier';

/** With fewer characters two operations could be given one key. */
const DERIVED_MIN = 24;

/** The guard whose value we fill in; `undefined` where the caller's own arguments, or nothing, make the guard. */
export function keyGuard(operation: ContractOperation): Guard | undefined {
  return operation.guards.find(({ kind }) => kind === 'request_key' || kind === 'client_identity');
}

/** The key of an operation, as the guard's carrier takes it; `undefined` where none fits there. */
export function requestKey(
  operationId: string,
  { encoding = 'opaque', max_length: lengthMax = Number.POSITIVE_INFINITY, pattern }: Guard['carrier'],
): string | undefined {
  const key = encoded(operationId, encoding, lengthMax);
  if (key === undefined || key.length > lengthMax) return undefined;
  return pattern === undefined || new RegExp(pattern).test(key) ? key : undefined;
}

function encoded(operationId: string, encoding: string, lengthMax: number): string | undefined {
  switch (encoding as KeyEncoding) {
    case 'opaque':
      return operationId.length <= lengthMax ? operationId : derived(operationId, lengthMax);
    // A string of RFC 8941, as the draft of Idempotency-Key wants it.
    case 'sf_string': {
      const inside = encoded(operationId, 'opaque', lengthMax - 2);
      return inside === undefined ? undefined : `"${inside}"`;
    }
    case 'uuid':
    case 'uuid_v4':
      return uuidOf(operationId);
    case 'base32hex':
      return derived(operationId, lengthMax);
    // Letters, digits and single hyphens, and a letter first.
    case 'identifier': {
      const inside = derived(operationId, lengthMax - 3);
      return inside === undefined ? undefined : `op-${inside}`;
    }
    default:
      return undefined;
  }
}

const BASE32HEX = '0123456789abcdefghijklmnopqrstuv';
const DERIVED_LENGTH = 32;

/** 160 bits of a hash in the alphabet of RFC 4648 base32hex, in small letters. */
function derived(operationId: string, lengthMax: number): string | undefined {
  if (lengthMax < DERIVED_MIN) return undefined;
  let text = '';
  let bits = 0;
  let value = 0;
  for (const byte of sha256(`request key\n${operationId}`)) {
    value = (value << 8) | byte;
    for (bits += 8; bits >= 5; bits -= 5) text += BASE32HEX.charAt((value >> (bits - 5)) & 31);
    value &= 31;
  }
  return text.slice(0, Math.min(DERIVED_LENGTH, lengthMax));
}

/** The shape of version 4, filled from a hash instead of chance. */
function uuidOf(operationId: string): string {
  const hex = sha256Hex(`request key\n${operationId}`);
  const variant = '89ab'.charAt(Number.parseInt(hex.charAt(16), 16) & 3);
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-${variant}${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
}
