import { deepStrictEqual } from 'node:assert/strict';
import { runInNewContext } from 'node:vm';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  canonicalJson,
  checkRepresentable,
  type JsonLimits,
  type JsonValue,
  utf8Length,
} from '../../src/core/canonical.ts';
import { readStrictJson } from '../../src/core/json-text.ts';
import { jsonKey, jsonString, jsonValue } from './json-arbitraries.ts';

function doubleOf(bits: string): number {
  const view = new DataView(new ArrayBuffer(8));
  view.setBigUint64(0, BigInt(`0x${bits}`));
  return view.getFloat64(0);
}

describe('canonicalJson follows RFC 8785', () => {
  it.each([
    ['0000000000000000', '0'],
    ['8000000000000000', '0'],
    ['0000000000000001', '5e-324'],
    ['8000000000000001', '-5e-324'],
    ['7fefffffffffffff', '1.7976931348623157e+308'],
    ['ffefffffffffffff', '-1.7976931348623157e+308'],
    ['4340000000000000', '9007199254740992'],
    ['c340000000000000', '-9007199254740992'],
    ['4430000000000000', '295147905179352830000'],
    ['44b52d02c7e14af5', '9.999999999999997e+22'],
    ['44b52d02c7e14af6', '1e+23'],
    ['44b52d02c7e14af7', '1.0000000000000001e+23'],
    ['444b1ae4d6e2ef4e', '999999999999999700000'],
    ['444b1ae4d6e2ef4f', '999999999999999900000'],
    ['444b1ae4d6e2ef50', '1e+21'],
    ['3eb0c6f7a0b5ed8c', '9.999999999999997e-7'],
    ['3eb0c6f7a0b5ed8d', '0.000001'],
    ['41b3de4355555553', '333333333.3333332'],
    ['41b3de4355555554', '333333333.33333325'],
    ['41b3de4355555555', '333333333.3333333'],
    ['41b3de4355555556', '333333333.3333334'],
    ['41b3de4355555557', '333333333.33333343'],
    ['becbf647612f3696', '-0.0000033333333333333333'],
    ['43143ff3c1cb0959', '1424953923781206.2'],
  ])('prints the double %s of appendix B as %s, which the strict reader accepts', (bits, expected) => {
    expect(canonicalJson(doubleOf(bits))).toBe(expected);
    deepStrictEqual(readStrictJson(expected), { ok: true, value: doubleOf(bits) + 0 });
  });

  it.each(['7fffffffffffffff', '7ff0000000000000', 'fff0000000000000'])(
    'throws on the double %s, which is no number of JSON',
    (bits) => {
      expect(() => canonicalJson(doubleOf(bits))).toThrow(/has no canonical form/);
    },
  );

  it('prints the numbers and the string of section 3.2.2 as the bytes of section 3.2.4', () => {
    const sample = String.raw`{
      "numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
      "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/",
      "literals": [null, true, false]
    }`;
    const expected = `
      7b 22 6c 69 74 65 72 61 6c 73 22 3a 5b 6e 75 6c 6c 2c 74 72
      75 65 2c 66 61 6c 73 65 5d 2c 22 6e 75 6d 62 65 72 73 22 3a
      5b 33 33 33 33 33 33 33 33 33 2e 33 33 33 33 33 33 33 2c 31
      65 2b 33 30 2c 34 2e 35 2c 30 2e 30 30 32 2c 31 65 2d 32 37
      5d 2c 22 73 74 72 69 6e 67 22 3a 22 e2 82 ac 24 5c 75 30 30
      30 66 5c 6e 41 27 42 5c 22 5c 5c 5c 5c 5c 22 2f 22 7d`;
    const bytes = Buffer.from(canonicalJson(JSON.parse(sample) as JsonValue), 'utf8');
    expect(bytes.toString('hex')).toBe(expected.replaceAll(/\s/g, ''));
  });

  it('sorts the keys of section 3.2.3 by UTF-16 code units, not by code points', () => {
    const text = canonicalJson({
      '\u20ac': 'Euro Sign',
      '\r': 'Carriage Return',
      '\ufb33': 'Hebrew Letter Dalet With Dagesh',
      '1': 'One',
      '\ud83d\ude00': 'Emoji: Grinning Face',
      '\u0080': 'Control',
      '\u00f6': 'Latin Small Letter O With Diaeresis',
    });
    expect(text.match(/(?<=:")[^"]+/g)).toEqual([
      'Carriage Return',
      'One',
      'Control',
      'Latin Small Letter O With Diaeresis',
      'Euro Sign',
      'Emoji: Grinning Face',
      'Hebrew Letter Dalet With Dagesh',
    ]);
  });

  it('sorts by code units beyond the size of the small sort as well', () => {
    const keys = Array.from({ length: 300 }, (_, index) =>
      String.fromCodePoint(((index * 7919) % 0x3000) + 0xa0),
    );
    const printed = canonicalJson(Object.fromEntries(keys.map((key) => [key, 0])));
    expect(Object.keys(JSON.parse(printed))).toEqual([...new Set(keys)].sort());
  });

  it('escapes only what must be escaped', () => {
    const text = '\b\t\n\f\r"\\/\u0000\u001f\u007f\u2028\ufffe';
    expect(canonicalJson(text)).toBe(String.raw`"\b\t\n\f\r\"\\/\u0000\u001f` + '\u007f\u2028\ufffe"');
  });

  it('keeps strings apart that only look alike (NFC and NFD)', () => {
    expect(canonicalJson('\u00e9')).not.toBe(canonicalJson('e\u0301'));
  });

  it('gives the same text whatever the order of the keys', () => {
    const members = fc.uniqueArray(fc.tuple(jsonKey, jsonValue), { maxLength: 40, selector: ([key]) => key });
    const shuffled = members.chain((list) =>
      fc.tuple(fc.constant(list), fc.shuffledSubarray(list, { minLength: list.length })),
    );
    fc.assert(
      fc.property(shuffled, ([first, second]) => {
        expect(canonicalJson(Object.fromEntries(first))).toBe(canonicalJson(Object.fromEntries(second)));
      }),
    );
  });

  it('is read back strictly as the same value, and printed again as the same text', () => {
    fc.assert(
      fc.property(jsonValue, (value) => {
        const text = canonicalJson(value);
        const read = readStrictJson(text);
        deepStrictEqual(read, { ok: true, value });
        if (read.ok) expect(canonicalJson(read.value)).toBe(text);
      }),
      { numRuns: 1000 },
    );
  });
});

class Money {
  readonly cents = 5;
}

const holdsItself: unknown[] = [];
holdsItself.push(holdsItself);

describe('canonicalJson treats what is not JSON as a bug', () => {
  it.each<[string, unknown]>([
    ['undefined', undefined],
    ['an undefined member', { a: undefined }],
    ['an undefined element', [undefined]],
    ['a hole', [1, , 2]], // oxlint-disable-line no-sparse-arrays -- the hole is the case
    ['a function', { a: () => 1 }],
    ['a symbol', Symbol('s')],
    ['a symbol as key', { [Symbol('s')]: 1 }],
    ['a bigint', 1n],
    ['a Map', new Map()],
    ['a Set', new Set()],
    ['a Date', new Date(0)],
    ['a regular expression', /x/],
    ['an instance of a class', new Money()],
    ['an instance of a subclass of Array', new (class extends Array {})()],
    ['a boxed string', new String('x')],
    ['NaN', [Number.NaN]],
    ['Infinity', { a: Number.POSITIVE_INFINITY }],
    ['a lone surrogate', '\ud800'],
    ['a lone surrogate in a key', { '\udc00': 1 }],
    ['the key __proto__', JSON.parse('{"__proto__":1}')],
    ['a value that holds itself', holdsItself],
  ])('throws on %s', (_, value) => {
    expect(() => canonicalJson(value as JsonValue)).toThrow(
      expect.objectContaining({ name: 'AssertionError' }),
    );
  });

  it('takes objects without a prototype, and inherited names as keys', () => {
    expect(canonicalJson(Object.assign(Object.create(null), { b: 1, a: 2 }))).toBe('{"a":2,"b":1}');
    expect(canonicalJson({ toString: 1, constructor: 2 })).toBe('{"constructor":2,"toString":1}');
  });

  it('does not call toJSON', () => {
    expect(() => canonicalJson({ toJSON: () => 'x' } as unknown as JsonValue)).toThrow(/function/);
  });
});

function reasonOf(value: unknown, limits?: JsonLimits): { code: string; at: string } {
  const result = checkRepresentable(value, limits);
  if (result.ok) throw new Error(`accepted: ${canonicalJson(result.value)}`);
  expect(result.reason.message).toMatch(/^[A-Z].*\.$/);
  return { code: result.reason.code, at: result.reason.at };
}

function nested(depth: number): unknown {
  let value: unknown = 0;
  for (let level = 0; level < depth; level++) value = level % 2 === 0 ? [value] : { a: value };
  return value;
}

describe('checkRepresentable refuses with the reason and the place', () => {
  it.each<[string, unknown, string, string]>([
    ['undefined', undefined, 'not_json', ''],
    ['an undefined member', { a: [{ b: undefined }] }, 'not_json', '/a/0/b'],
    ['a function', { a: () => 1 }, 'not_json', '/a'],
    ['a symbol', [Symbol('s')], 'not_json', '/0'],
    ['a bigint', { n: 1n }, 'not_json', '/n'],
    ['NaN', { n: Number.NaN }, 'not_finite', '/n'],
    ['minus infinity', Number.NEGATIVE_INFINITY, 'not_finite', ''],
    ['2^53', { n: 2 ** 53 }, 'unsafe_integer', '/n'],
    ['a large integer with an exponent', 1e21, 'unsafe_integer', ''],
    ['a lone surrogate', { s: 'x\udfff' }, 'lone_surrogate', '/s'],
    ['a lone surrogate in a key', { in: { '\ud800': 1 } }, 'lone_surrogate', '/in'],
    ['a cycle', { list: [holdsItself] }, 'cycle', '/list/0/0'],
    ['a Map', { m: new Map() }, 'not_plain', '/m'],
    ['a Date', new Date(0), 'not_plain', ''],
    ['an instance of a class', new Money(), 'not_plain', ''],
    ['a subclass of Array', new (class extends Array {})(), 'not_plain', ''],
    ['an object that inherits members', Object.create({ a: 1 }), 'not_plain', ''],
    [
      'an object that inherits from one without a prototype',
      Object.create(Object.create(null)),
      'not_plain',
      '',
    ],
    ['bytes', new Uint8Array(2), 'not_plain', ''],
    ['the namespace Math', Math, 'hidden_member', '/abs'],
    ['a hole', [1, , 2], 'sparse_array', '/1'], // oxlint-disable-line no-sparse-arrays -- the hole is the case
    ['a symbol as key', { a: { [Symbol('s')]: 1 } }, 'symbol_key', '/a'],
    ['a member beside the elements', Object.assign([1], { extra: 2 }), 'hidden_member', ''],
    ['a member that is not enumerable', Object.defineProperty({}, 'a', { value: 1 }), 'hidden_member', '/a'],
    ['the key __proto__', JSON.parse('{"a":{"__proto__":1}}'), 'reserved_key', '/a/__proto__'],
    ['a key with the signs of a pointer', { 'a/b~c': undefined }, 'not_json', '/a~1b~0c'],
  ])('%s', (_, value, code, at) => {
    expect(reasonOf(value)).toEqual({ code, at });
  });

  it('an accessor, without running it', () => {
    let runs = 0;
    const value = {
      get due() {
        return ++runs;
      },
    };
    expect(reasonOf(value)).toEqual({ code: 'accessor', at: '/due' });
    expect(runs).toBe(0);
  });

  it('an object whose reading throws', () => {
    const trapped = new Proxy(
      { a: 1 },
      {
        ownKeys: () => {
          throw new Error('no');
        },
      },
    );
    expect(reasonOf({ p: trapped })).toEqual({ code: 'unreadable', at: '/p' });
    const { proxy, revoke } = Proxy.revocable([], {});
    revoke();
    expect(reasonOf([proxy])).toEqual({ code: 'unreadable', at: '/0' });
  });

  it('nesting beyond the limit', () => {
    expect(checkRepresentable(nested(64)).ok).toBe(true);
    expect(reasonOf(nested(65)).code).toBe('too_deep');
    expect(reasonOf(nested(200_000)).code).toBe('too_deep');
    expect(reasonOf(nested(3), { depthMax: 2 }).code).toBe('too_deep');
  });

  it('a small value whose shared parts unfold without end', () => {
    let shared: unknown = ['x'];
    for (let level = 0; level < 40; level++) shared = [shared, shared];
    expect(reasonOf(shared, { bytesMax: 100_000 }).code).toBe('too_large');
  });

  it('a place that stays small, and storable, when a key is long', () => {
    const { at } = reasonOf({ ['x'.repeat(79) + '😀'.repeat(1000)]: undefined });
    expect(at).toBe(`/${'x'.repeat(79)}…`);
  });
});

describe('checkRepresentable takes a snapshot', () => {
  it('which is a deep-frozen copy that later changes do not reach', () => {
    const source = { title: 'Freeze', tags: ['a'], nested: { due: 1 } };
    const result = checkRepresentable(source);
    source.tags.push('b');
    source.nested.due = 2;
    deepStrictEqual(result, { ok: true, value: { title: 'Freeze', tags: ['a'], nested: { due: 1 } } });
    const { value } = result as { value: { tags: unknown; nested: unknown } };
    expect([value, value.tags, value.nested].every(Object.isFrozen)).toBe(true);
  });

  it('and reads each member once', () => {
    let reads = 0;
    const proxy = new Proxy(
      { a: 1 },
      {
        getOwnPropertyDescriptor: (target, key) => {
          reads++;
          return Reflect.getOwnPropertyDescriptor(target, key);
        },
      },
    );
    deepStrictEqual(checkRepresentable(proxy), { ok: true, value: { a: 1 } });
    expect(reads).toBe(1);
  });

  it('with -0 as the 0 that it is printed as', () => {
    deepStrictEqual(checkRepresentable([-0]), { ok: true, value: [0] });
  });

  it('of plain objects from another realm and without a prototype', () => {
    deepStrictEqual(checkRepresentable(runInNewContext('({ a: [1, { b: 2 }] })')), {
      ok: true,
      value: { a: [1, { b: 2 }] },
    });
    deepStrictEqual(checkRepresentable(Object.assign(Object.create(null), { a: 1 })), {
      ok: true,
      value: { a: 1 },
    });
  });

  it('of the same object in two places, which is no cycle', () => {
    const shared = { a: 1 };
    deepStrictEqual(checkRepresentable([shared, shared]), { ok: true, value: [{ a: 1 }, { a: 1 }] });
  });

  it('of every JSON value without large integers, counting the bytes of its canonical form', () => {
    const holdsUnsafeInteger = (value: unknown): boolean =>
      typeof value === 'object' && value !== null
        ? Object.values(value).some(holdsUnsafeInteger)
        : Number.isInteger(value) && !Number.isSafeInteger(value);
    fc.assert(
      fc.property(jsonValue, (value) => {
        const text = canonicalJson(value);
        fc.pre(!holdsUnsafeInteger(value));
        const bytes = Buffer.byteLength(text);
        deepStrictEqual(checkRepresentable(value, { bytesMax: bytes }), { ok: true, value });
        expect(reasonOf(value, { bytesMax: bytes - 1 }).code).toBe('too_large');
      }),
      { numRuns: 500 },
    );
  });

  it('or a reason, and never throws, for any value at all', () => {
    const anything = fc.anything({
      withBigInt: true,
      withBoxedValues: true,
      withDate: true,
      withMap: true,
      withNullPrototype: true,
      withSet: true,
      withSparseArray: true,
      withTypedArray: true,
    });
    fc.assert(
      fc.property(anything, (value) => {
        const result = checkRepresentable(value);
        if (result.ok) expect(readStrictJson(canonicalJson(result.value)).ok).toBe(true);
        else expect(result.reason.code).toMatch(/^[a-z_]+$/);
      }),
      { numRuns: 1000 },
    );
  });
});

describe('the limits', () => {
  it.each([{ depthMax: 513 }, { depthMax: -1 }, { depthMax: 1.5 }, { bytesMax: Number.NaN }])(
    'are a bug of the caller when they are %o',
    (limits) => {
      expect(() => checkRepresentable(1, limits)).toThrow(
        expect.objectContaining({ name: 'AssertionError' }),
      );
    },
  );

  it('count UTF-8 bytes', () => {
    fc.assert(
      fc.property(jsonString, (text) => {
        expect(utf8Length(text)).toBe(Buffer.byteLength(text));
      }),
    );
    expect(utf8Length('\ud800x\udc00')).toBe(7);
  });
});
