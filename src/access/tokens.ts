// Local tokens: how they are made, kept and compared, and what one of them opens.
//
// A token is 32 random bytes, so that a plain SHA-256 is as good as any slow hash: nobody can go through 2^256 of
// them, and slow hashes are for secrets that people choose (NIST SP 800-63B-4, 3.1.2). Who reads the store learns
// nothing that opens anything.

import { createHash, timingSafeEqual } from 'node:crypto';

export const TOKEN_BYTES = 32;
/** By which scanners of leaked secrets, and people, can tell what it is. */
const PREFIX = 'cft_';
const TOKEN = /^cft_[A-Za-z0-9_-]{43}$/;

export type TokenAccess = 'read' | 'write';

/** What is kept of a token: never the token. */
export interface TokenRow {
  readonly name: string;
  /** SHA-256 of the token's text, as 64 hexadecimal digits. */
  readonly hash: string;
  /** The servers that it opens, by the names in their addresses; all of them where absent. */
  readonly servers?: readonly string[];
  readonly access: TokenAccess;
  readonly createdAt: number;
  readonly createdBy: string;
  readonly expiresAt?: number;
  readonly revokedAt?: number;
}

/** @param random `TOKEN_BYTES` from the operating system */
export function tokenText(random: Uint8Array): string {
  return `${PREFIX}${Buffer.from(random).toString('base64url')}`;
}

export function hashOfToken(text: string): string {
  return createHash('sha256').update(text, 'utf8').digest('hex');
}

export type TokenCheck =
  | { readonly known: true; readonly row: TokenRow }
  | { readonly known: false; readonly why: 'malformed' | 'unknown' | 'revoked' | 'expired' };

/** Compared in a time that does not tell how much of a token was right. */
export function checkToken(text: string, rows: readonly TokenRow[], at: number): TokenCheck {
  if (!TOKEN.test(text)) return { known: false, why: 'malformed' };
  const given = Buffer.from(hashOfToken(text), 'hex');
  const found = rows.find(({ hash }) => timingSafeEqual(Buffer.from(hash, 'hex'), given));
  if (found === undefined) return { known: false, why: 'unknown' };
  if (found.revokedAt !== undefined) return { known: false, why: 'revoked' };
  if (found.expiresAt !== undefined && at >= found.expiresAt) return { known: false, why: 'expired' };
  return { known: true, row: found };
}

export function opensServer({ servers }: TokenRow, server: string): boolean {
  return servers === undefined || servers.includes(server);
}

/** Whoever it is at the destination's door, as operations, decisions and receipts name them. */
export function principalOf({ name }: Pick<TokenRow, 'name'>): string {
  return `token:${name}`;
}

export function isTokenPrincipal(principal: string): boolean {
  return principal.startsWith('token:');
}

/** Who has no token is judged elsewhere. */
export function mayPrincipalWrite(principal: string, rows: readonly TokenRow[]): boolean {
  return rows.find((row) => principalOf(row) === principal)?.access !== 'read';
}
