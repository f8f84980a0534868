import { deepStrictEqual } from 'node:assert/strict';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { canonicalJson, type JsonLimits, type UnrepresentableCode } from '../../src/core/canonical.ts';
import { readStrictJson } from '../../src/core/json-text.ts';
import { jsonSoup, mutated, spelledValue } from './json-arbitraries.ts';

function reasonOf(
  source: string | Uint8Array,
  limits?: JsonLimits,
): { code: UnrepresentableCode; at: string } {
  const result = readStrictJson(source, limits);
  if (result.ok) throw new Error(`accepted: ${canonicalJson(result.value)}`);
  expect(result.reason.message).toMatch(/^[A-Z].*\.$/);
  return { code: result.reason.code, at: result.reason.at };
}

function messageOf(source: string): string {
  const result = readStrictJson(source);
  return result.ok ? '' : result.reason.message;
}

describe('readStrictJson refuses what has more than one meaning', () => {
  it.each<[string, string, UnrepresentableCode, string]>([
    ['a key twice', '{"a":1,"a":2}', 'duplicate_key', '/a'],
    ['a key twice with equal values', '{"a":1,"a":1}', 'duplicate_key', '/a'],
    ['a key twice, once escaped', '{"a":1,"\\u0061":2}', 'duplicate_key', '/a'],
    ['a key twice far inside', '[0,{"x":{"k":1,"l":2,"k":3}}]', 'duplicate_key', '/1/x/k'],
    ['an inherited name twice', '{"constructor":1,"constructor":2}', 'duplicate_key', '/constructor'],
    ['the key __proto__', '{"a":{"__proto__":{"admin":true}}}', 'reserved_key', '/a/__proto__'],
    ['the key __proto__, escaped', '{"\\u005f_proto__":1}', 'reserved_key', '/__proto__'],
    ['a lone high surrogate, escaped', '["\\ud800"]', 'lone_surrogate', '/0'],
    ['a lone low surrogate, escaped', '["x\\uDC00y"]', 'lone_surrogate', '/0'],
    ['surrogates in the wrong order', '["\\udc00\\ud800"]', 'lone_surrogate', '/0'],
    ['a lone surrogate, bare', '["\ud800"]', 'lone_surrogate', '/0'],
    ['a lone surrogate in a key', '{"in":{"\\ud800":1}}', 'lone_surrogate', '/in'],
  ])('%s', (_, text, code, at) => {
    expect(reasonOf(text)).toEqual({ code, at });
  });

  it.each([
    '9007199254740993',
    '-9007199254740993',
    '12345678901234567890',
    '295147905179352825856',
    '1e400',
    '-1e400',
    '1e99999999999999999999',
    '1e-400',
    '0.1000000000000000055511151231257827021181',
    '0.10000000000000001',
    '333333333.33333329',
    '2.4703282292062327e-324',
  ])('the number %s, which a double would change', (token) => {
    expect(reasonOf(`{"n":[${token}]}`)).toEqual({ code: 'number_not_exact', at: '/n/0' });
  });

  it('with a message that says what would have been sent', () => {
    expect(messageOf('9007199254740993')).toContain(
      '9007199254740993 cannot be held exactly: it would be sent as 9007199254740992',
    );
    expect(messageOf('1e400')).toContain('too large');
    expect(messageOf('1'.repeat(10_000)).length).toBeLessThan(200);
  });
});

describe('readStrictJson accepts what has one meaning', () => {
  it.each<[string, unknown]>([
    ['0', 0],
    ['1.0', 1],
    ['1e0', 1],
    ['0.1', 0.1],
    ['0.10', 0.1],
    ['4.50', 4.5],
    ['2e-3', 0.002],
    ['1E30', 1e30],
    ['1e+21', 1e21],
    ['1000000000000000000000', 1e21],
    ['0.000000000000000000000000001', 1e-27],
    ['5e-324', 5e-324],
    ['1.7976931348623157e308', Number.MAX_VALUE],
    ['9007199254740992', 2 ** 53],
    ['9007199254740994', 2 ** 53 + 2],
    ['0e99999999999999999999', 0],
    [`1${'0'.repeat(300)}e-300`, 1],
    ['""', ''],
    ['"\\u0000\\/\\b"', '\u0000/\b'],
    ['"\\ud83d\\ude00"', '😀'],
    ['"\u2028\ufffe\uffff"', '\u2028\ufffe\uffff'],
    [' \t\r\n[ ] ', []],
    ['{"":{"":0}}', { '': { '': 0 } }],
    ['{"constructor":{"prototype":{"a":1}}}', { constructor: { prototype: { a: 1 } } }],
  ])('%s', (text, value) => {
    deepStrictEqual(readStrictJson(text), { ok: true, value });
    deepStrictEqual(readStrictJson(Buffer.from(text)), { ok: true, value });
  });

  it.each(['-0', '-0.0', '-0e5'])('%s as 0, which is the same value and what RFC 8785 prints', (text) => {
    deepStrictEqual(readStrictJson(text), { ok: true, value: 0 });
  });

  it('keeps a key that objects inherit as a member like any other, and leaves every prototype alone', () => {
    const result = readStrictJson(
      '{"toString":1,"constructor":{"prototype":{"polluted":1}},"hasOwnProperty":2}',
    );
    expect(result.ok && Object.keys(result.value as object)).toEqual([
      'toString',
      'constructor',
      'hasOwnProperty',
    ]);
    expect(({} as Record<string, unknown>)['polluted']).toBeUndefined();
  });
});

describe('readStrictJson refuses what is not JSON', () => {
  it.each<[string, string, UnrepresentableCode, string]>([
    ['nothing', '', 'empty', ''],
    ['white space only', ' \n ', 'empty', ''],
    ['a byte order mark', '\ufeff{}', 'byte_order_mark', ''],
    ['a byte order mark after white space', ' \ufeff{}', 'syntax', ''],
    ['text after the value', '{"a":1} x', 'trailing_text', ''],
    ['two values', '1 2', 'trailing_text', ''],
    ['a comma after the value', '{},', 'trailing_text', ''],
    ['a block comment', '{"a":/* one */1}', 'syntax', '/a'],
    ['a line comment', '// x\n1', 'syntax', ''],
    ['NaN', '{"n":NaN}', 'syntax', '/n'],
    ['Infinity', '-Infinity', 'syntax', ''],
    ['undefined', 'undefined', 'syntax', ''],
    ['a cut literal', '[nul]', 'syntax', '/0'],
    ['a long literal', '[nulls]', 'syntax', ''],
    ['a leading zero', '01', 'trailing_text', ''],
    ['a leading plus', '+1', 'syntax', ''],
    ['a number that ends with a point', '[1.]', 'syntax', ''],
    ['a number that starts with a point', '.5', 'syntax', ''],
    ['a number without an exponent', '[1e]', 'syntax', ''],
    ['a hexadecimal number', '[0x10]', 'syntax', ''],
    ['a minus alone', '[-]', 'syntax', '/0'],
    ['a comma before the end of an array', '[1,]', 'syntax', '/1'],
    ['a comma before the end of an object', '{"a":1,}', 'syntax', ''],
    ['an empty element', '[,1]', 'syntax', '/0'],
    ['a missing comma', '[1 2]', 'syntax', ''],
    ['a missing colon', '{"a" 1}', 'syntax', '/a'],
    ['a missing value', '{"a":}', 'syntax', '/a'],
    ['a key without quotes', '{a:1}', 'syntax', ''],
    ['a key in single quotes', "{'a':1}", 'syntax', ''],
    ['an object that does not end', '{"a":1', 'syntax', ''],
    ['an array that does not end', '[[1]', 'syntax', ''],
    ['the wrong bracket', '[1}', 'syntax', ''],
    ['a string that does not end', '["abc', 'syntax', '/0'],
    ['a string that ends with a backslash', '["abc\\', 'syntax', '/0'],
    ['a bare line break in a string', '["a\nb"]', 'syntax', '/0'],
    ['a bare NUL in a string', '["\u0000"]', 'syntax', '/0'],
    ['an escaped line break', '["\\\n"]', 'syntax', '/0'],
    ['an escape that JSON does not have', '["\\x41"]', 'syntax', '/0'],
    ['an escape cut short', '["\\u12"]', 'syntax', '/0'],
    ['a space that JSON does not have', '[1,\u00a02]', 'syntax', '/1'],
  ])('%s', (_, text, code, at) => {
    expect(reasonOf(text)).toEqual({ code, at });
  });

  it('with a message that says where', () => {
    expect(messageOf('[1 2]')).toContain('expected "," or "]" at offset 3');
    expect(messageOf('[1')).toContain('where the text ends');
  });

  it.each<[string, number[], UnrepresentableCode]>([
    ['no bytes', [], 'empty'],
    ['a byte that starts nothing', [0x22, 0xff, 0x22], 'invalid_utf8'],
    ['a character cut short', [0x22, 0xe2, 0x82, 0x22], 'invalid_utf8'],
    ['an overlong slash', [0x22, 0xc0, 0xaf, 0x22], 'invalid_utf8'],
    ['an encoded surrogate', [0x22, 0xed, 0xa0, 0x80, 0x22], 'invalid_utf8'],
    ['UTF-16 with a mark', [0xff, 0xfe, 0x31, 0x00], 'invalid_utf8'],
    ['UTF-16 without a mark', [0x31, 0x00], 'trailing_text'],
    ['a byte order mark', [0xef, 0xbb, 0xbf, 0x31], 'byte_order_mark'],
  ])('bytes: %s', (_, bytes, code) => {
    expect(reasonOf(Uint8Array.from(bytes)).code).toBe(code);
  });
});

describe('readStrictJson keeps to its limits', () => {
  it('of depth: 64 levels are read, 65 are not, and 200,000 do not overflow the stack', () => {
    const nested = (depth: number) => '['.repeat(depth) + ']'.repeat(depth);
    expect(readStrictJson(nested(64)).ok).toBe(true);
    expect(reasonOf(nested(65)).code).toBe('too_deep');
    expect(reasonOf('{"a":'.repeat(200_000)).code).toBe('too_deep');
    expect(reasonOf('[['.repeat(5000)).code).toBe('too_deep');
    expect(readStrictJson(nested(512), { depthMax: 512 }).ok).toBe(true);
    expect(reasonOf('[[1]]', { depthMax: 1 })).toEqual({ code: 'too_deep', at: '/0' });
  });

  it('of size, counted in bytes of UTF-8 for texts and bytes alike', () => {
    for (const text of ['"abcd"', '"éé"', '"€x"', '"😀"']) {
      for (const source of [text, Buffer.from(text)]) {
        expect(readStrictJson(source, { bytesMax: 6 }).ok).toBe(true);
        expect(reasonOf(source, { bytesMax: 5 })).toEqual({ code: 'too_large', at: '' });
      }
    }
    expect(reasonOf('"€€€€"', { bytesMax: 13 }).code).toBe('too_large');
    expect(reasonOf(' '.repeat(16 * 1024 * 1024 + 1)).code).toBe('too_large');
  });

  it('in a time that grows with the length only', () => {
    const longInputs = [
      `1${'0'.repeat(1_000_000)}1`,
      `0.5${'0'.repeat(1_000_000)}`,
      `1e${'9'.repeat(1_000_000)}`,
      `"${'\\'.repeat(1_000_000)}`,
      `"${'\\"'.repeat(500_000)}"`,
      JSON.stringify('😀'.repeat(500_000)),
    ];
    for (const text of longInputs) {
      const started = performance.now();
      readStrictJson(text);
      // Linear work is a few milliseconds here; quadratic work would be minutes.
      expect(performance.now() - started).toBeLessThan(2000);
    }
  });
});

type Fraction = readonly [numerator: bigint, denominator: bigint];

/** The exact value of a number token, worked out with integers instead of with digits. */
function fractionOf(token: string): Fraction {
  const [mantissa = '', exponent = '0'] = token.toLowerCase().split('e');
  const [whole = '', fraction = ''] = mantissa.split('.');
  const power = Number(exponent) - fraction.length;
  const digits = BigInt(whole + fraction);
  return power >= 0 ? [digits * 10n ** BigInt(power), 1n] : [digits, 10n ** BigInt(-power)];
}

function isSameNumber([a, b]: Fraction, [c, d]: Fraction): boolean {
  return a * d === c * b;
}

describe('readStrictJson beside JSON.parse', () => {
  // What JSON.parse takes and the strict reader, rightly, does not.
  const STRICTER = ['duplicate_key', 'reserved_key', 'lone_surrogate', 'number_not_exact', 'too_deep'];

  function agree(text: string): void {
    const result = readStrictJson(text);
    let parsed: { value: unknown } | undefined;
    try {
      parsed = { value: JSON.parse(text, (_, value) => (Object.is(value, -0) ? 0 : value)) };
    } catch {
      parsed = undefined;
    }
    if (result.ok) deepStrictEqual(result.value, parsed?.value);
    else if (parsed !== undefined) expect(STRICTER).toContain(result.reason.code);
  }

  it('reads every spelling of a value as that value', () => {
    fc.assert(
      fc.property(spelledValue, ({ value, text }) => {
        deepStrictEqual(readStrictJson(text), { ok: true, value });
        deepStrictEqual(readStrictJson(Buffer.from(text)), { ok: true, value });
        agree(text);
      }),
      { numRuns: 1000 },
    );
  });

  it('never throws, and agrees on what is JSON, when texts are damaged', () => {
    fc.assert(fc.property(fc.oneof(mutated(spelledValue), jsonSoup), agree), { numRuns: 5000 });
  });

  it('never throws on bytes', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 40 }), (bytes) => {
        const result = readStrictJson(bytes);
        if (!result.ok) expect(result.reason.code).toMatch(/^[a-z_0-9]+$/);
      }),
    );
  });

  it('accepts a number exactly when its double prints as the same number', () => {
    const digits = (min: number, max: number) =>
      fc.string({ unit: fc.constantFrom(...'0012345678999'), minLength: min, maxLength: max });
    const token = fc
      .tuple(
        digits(1, 25).map((text) => text.replace(/^0+(?=.)/, '')),
        digits(0, 25),
        fc.option(fc.integer({ min: -360, max: 340 })),
      )
      .map(
        ([whole, fraction, exponent]) =>
          `${whole}${fraction && `.${fraction}`}${exponent === null ? '' : `e${exponent}`}`,
      );
    fc.assert(
      fc.property(token, (text) => {
        const value = Number(text);
        const isExact = Number.isFinite(value) && isSameNumber(fractionOf(text), fractionOf(String(value)));
        deepStrictEqual(readStrictJson(text).ok, isExact);
        deepStrictEqual(readStrictJson(`-${text}`).ok, isExact);
      }),
      { numRuns: 3000 },
    );
  });

  it('leaves Object.prototype as it was', () => {
    const before = Reflect.ownKeys(Object.prototype).length;
    for (const key of ['__proto__', 'constructor', 'prototype', 'toString', 'valueOf']) {
      readStrictJson(`{"${key}":{"${key}":{"polluted":true}}}`);
    }
    expect(Reflect.ownKeys(Object.prototype)).toHaveLength(before);
    expect('polluted' in {}).toBe(false);
  });
});
