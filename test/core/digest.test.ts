import { describe, expect, it } from 'vitest';
import { hmacSha256Hex, sha256, sha256Hex } from '../../src/core/digest.ts';

const ABC = 'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad';

describe('digests', () => {
  it('are those of FIPS 180-4, for texts and for bytes', () => {
    expect(sha256Hex('abc')).toBe(ABC);
    expect(sha256Hex(new TextEncoder().encode('abc'))).toBe(ABC);
    expect(Buffer.from(sha256('abc')).toString('hex')).toBe(ABC);
    expect(sha256Hex('')).toBe('e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855');
  });

  it('hash a text as its UTF-8 bytes', () => {
    expect(sha256Hex('é😀')).toBe(sha256Hex(new TextEncoder().encode('é😀')));
  });

  it('are those of RFC 4231, test case 2, with a key', () => {
    expect(hmacSha256Hex(new TextEncoder().encode('Jefe'), 'what do ya want for nothing?')).toBe(
      '5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843',
    );
  });
});
