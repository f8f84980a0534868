// SHA-256 and its keyed form: the one file of the core that touches a library of the platform.

import { createHmac, hash } from 'node:crypto';

/** SHA-256 as 64 lower-case hexadecimal digits; a string is hashed as its UTF-8 bytes. */
export function sha256Hex(data: string | Uint8Array): string {
  return hash('sha256', data, 'hex');
}

/** SHA-256 as 32 bytes; a string is hashed as its UTF-8 bytes. */
export function sha256(data: string | Uint8Array): Uint8Array {
  return new Uint8Array(hash('sha256', data, 'buffer'));
}

/** HMAC-SHA-256 as 64 lower-case hexadecimal digits: equal only for those who hold the same key. */
export function hmacSha256Hex(key: Uint8Array, data: string): string {
  return createHmac('sha256', key).update(data, 'utf8').digest('hex');
}
