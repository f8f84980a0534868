import { randomBytes } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import {
  checkToken,
  hashOfToken,
  mayPrincipalWrite,
  opensServer,
  principalOf,
  TOKEN_BYTES,
  type TokenRow,
  tokenText,
} from '../../src/access/tokens.ts';

const AT = 1_000;
const made = (
  name: string,
  more: Partial<TokenRow> = {},
): { readonly text: string; readonly row: TokenRow } => {
  const text = tokenText(randomBytes(TOKEN_BYTES));
  return {
    text,
    row: { name, hash: hashOfToken(text), access: 'write', createdAt: 0, createdBy: 'mara', ...more },
  };
};

describe('a token', () => {
  const ci = made('ci');
  const old = made('old', { expiresAt: AT });
  const lost = made('lost', { revokedAt: 10 });
  const rows = [lost.row, old.row, ci.row];

  test('is told from every other by its whole text', () => {
    expect(checkToken(ci.text, rows, AT)).toEqual({ known: true, row: ci.row });
    const last = ci.text.endsWith('A') ? 'B' : 'A';
    expect(checkToken(`${ci.text.slice(0, -1)}${last}`, rows, AT)).toEqual({ known: false, why: 'unknown' });
    expect(checkToken(made('other').text, rows, AT)).toEqual({ known: false, why: 'unknown' });
  });

  test('is refused for what it is', () => {
    expect(checkToken(lost.text, rows, AT)).toEqual({ known: false, why: 'revoked' });
    expect(checkToken(old.text, rows, AT)).toEqual({ known: false, why: 'expired' });
    expect(checkToken(old.text, rows, AT - 1)).toEqual({ known: true, row: old.row });
    for (const text of ['', 'cft_', ci.row.hash, ` ${ci.text}`, `${ci.text}x`]) {
      expect(checkToken(text, rows, AT), text).toEqual({ known: false, why: 'malformed' });
    }
  });

  test('is not in what is kept of it', () => {
    expect(JSON.stringify(ci.row)).not.toContain(ci.text.slice(4));
    expect(ci.row.hash).toMatch(/^[0-9a-f]{64}$/);
  });

  test('opens the servers that it names, or every one', () => {
    expect(opensServer(ci.row, 'any')).toBe(true);
    const { row } = made('scoped', { servers: ['files'] });
    expect(opensServer(row, 'files')).toBe(true);
    expect(opensServer(row, 'mail')).toBe(false);
  });

  test('for reading writes nothing; who has none is judged elsewhere', () => {
    const reader = made('reader', { access: 'read' }).row;
    expect(mayPrincipalWrite(principalOf(reader), [reader, ci.row])).toBe(false);
    expect(mayPrincipalWrite(principalOf(ci.row), [reader, ci.row])).toBe(true);
    expect(mayPrincipalWrite('local:reader', [reader])).toBe(true);
  });
});
