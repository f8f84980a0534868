import { deepStrictEqual } from 'node:assert/strict';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { memberText, scanFrame, scanMembers, type TextRange } from '../../src/core/json-frame.ts';
import {
  jsonKey,
  jsonSoup,
  mutated,
  spelledObject,
  spelledString,
  spelledValue,
} from './json-arbitraries.ts';

function textAt(text: string, range: TextRange | undefined): string | undefined {
  return range && text.slice(range.start, range.end);
}

/** The frame with texts in place of ranges. */
function frameOf(text: string): Record<string, unknown> | undefined {
  const frame = scanFrame(text);
  if (frame === undefined) return undefined;
  const { id, params, result, error, ...rest } = frame;
  const ranges = Object.entries({ id, params, result, error });
  return {
    ...rest,
    ...Object.fromEntries(ranges.flatMap(([key, range]) => (range ? [[key, textAt(text, range)]] : []))),
  };
}

describe('scanFrame', () => {
  it('finds the members of a request as they were written', () => {
    const text =
      '{"jsonrpc":"2.0", "id" : "r-1" ,"method":"tools\\/call","params": {"name":"x", "arguments":{ } } }\n';
    expect(frameOf(text)).toEqual({
      id: '"r-1"',
      method: 'tools/call',
      params: '{"name":"x", "arguments":{ } }',
      duplicate: false,
    });
  });

  it('finds a result without changing a byte of it', () => {
    const result = '{"content":[{"type":"text","text":"a \\"}]} \\\\"}],"big":12345678901234567890,"f":1.0}';
    expect(frameOf(`{"result":${result},"id":0,"jsonrpc":"2.0"}`)).toEqual({
      id: '0',
      result,
      duplicate: false,
    });
  });

  it('finds an error, and an id that is null', () => {
    expect(frameOf('{"id":null,"error":{"code":-32600}}')).toEqual({
      id: 'null',
      error: '{"code":-32600}',
      duplicate: false,
    });
  });

  it('lets the id be replaced in place', () => {
    const text = '{"id" : 7, "result":{"id":7}}';
    const id = scanFrame(text)?.id as TextRange;
    expect(`${text.slice(0, id.start)}"up-1"${text.slice(id.end)}`).toBe(
      '{"id" : "up-1", "result":{"id":7}}',
    );
  });

  it('leaves out a method that is not a string', () => {
    expect(frameOf('{"method":["tools/call"],"id":1}')).toEqual({ id: '1', duplicate: false });
  });

  it('looks at the top level only', () => {
    expect(frameOf('{"x":{"id":1,"method":"tools/call","id":2},"y":["method"]}')).toEqual({
      duplicate: false,
    });
  });

  it.each([
    ['{"method":"ping","method":"tools/call"}', { method: 'tools/call', duplicate: true }],
    ['{"method":"ping","\\u006dethod":"tools/call"}', { method: 'tools/call', duplicate: true }],
    ['{"id":1,"x":0,"x":0}', { id: '1', duplicate: true }],
  ])('says so when a key occurs twice, and takes the last: %s', (text, expected) => {
    expect(frameOf(text)).toEqual(expected);
  });

  it.each([
    '',
    ' ',
    '[]',
    '[{"id":1}]',
    '"{}"',
    'null',
    '{',
    '{"id":1',
    '{"id":1}}',
    '{"id":1} {"id":2}',
    '{"id":1}x',
    '\ufeff{"id":1}',
    '{"id":1,}',
    '{,"id":1}',
    '{"id"}',
    '{"id":}',
    '{id:1}',
    "{'id':1}",
    '{"id":01}',
    '{"id":1.}',
    '{"id":+1}',
    '{"id":tru}',
    '{"id":NaN}',
    '{"id":[1}]}',
    '{"id":[{]}}',
    '{"id":"x}',
    '{"id":"x\\"}',
    '{"i\\xd":1}',
    '{"i\nd":1}',
    '{"id":1 "method":"x"}',
    '{"id":1/**/}',
    '{"params":{/*"*/},"method":"tools/call","x":{/*"*/}}',
    '{"params":{//"\n},"method":"tools/call"}',
    '{"params":{\'"\':1}}',
  ])('is undefined for what is not one JSON object: %j', (text) => {
    expect(scanFrame(text)).toBeUndefined();
    expect(scanMembers(text)).toBeUndefined();
  });

  it('skips nesting of any depth', () => {
    const deep = '[{"a":'.repeat(100_000) + '0' + '}]'.repeat(100_000);
    expect(frameOf(`{"id":1,"params":${deep}}`)).toEqual({ id: '1', params: deep, duplicate: false });
  });

  it('takes a time that grows with the length only', () => {
    for (const value of ['\\\\'.repeat(500_000), '\\"'.repeat(500_000), 'x'.repeat(1_000_000)]) {
      const started = performance.now();
      expect(scanFrame(`{"result":"${value}"}`)).toBeDefined();
      // Linear work is a few milliseconds here; quadratic work would be minutes.
      expect(performance.now() - started).toBeLessThan(2000);
    }
  });
});

describe('memberText', () => {
  const text = '{"a":{"b":{"c":[1, {"d":"}"}]}, "b\\"x":"y"},"\\u0061b": 1.0 , "s":"{\\"a\\":1}","n":null}';

  it.each<[string[], string | undefined]>([
    [['a', 'b'], '{"c":[1, {"d":"}"}]}'],
    [['a', 'b', 'c'], '[1, {"d":"}"}]'],
    [['a', 'b"x'], '"y"'],
    [['ab'], '1.0'],
    [['s'], '"{\\"a\\":1}"'],
    [['n'], 'null'],
    [[], text],
    [['missing'], undefined],
    [['c'], undefined],
    [['a', 'c'], undefined],
    [['s', 'a'], undefined],
    [['n', 'a'], undefined],
    [['a', 'b', 'c', '0'], undefined],
    [['toString'], undefined],
  ])('%j', (path, expected) => {
    expect(memberText(text, ...path)).toBe(expected);
    expect(memberText(` ${text}\r\n`, ...path)).toBe(expected);
  });

  it('takes the last of equal keys, on every level', () => {
    expect(memberText('{"a":1,"\\u0061":2}', 'a')).toBe('2');
    expect(memberText('{"a":{"b":1},"a":{"b":2,"b":3}}', 'a', 'b')).toBe('3');
    expect(memberText('{"a":{"b":1},"a":{}}', 'a', 'b')).toBeUndefined();
    expect(memberText('{"a":{"b":1},"a":7}', 'a', 'b')).toBeUndefined();
  });

  it('is undefined when the text does not end as one value', () => {
    expect(memberText('{"a":1', 'a')).toBeUndefined();
    expect(memberText('{"a":1} 2', 'a')).toBeUndefined();
    expect(memberText('{"a":{"b":1},"c"}', 'a', 'b')).toBeUndefined();
  });
});

/** A top-level object as a list of members, equal keys allowed. */
const spelledMembers = fc.array(fc.tuple(spelledString(jsonKey), spelledValue), { maxLength: 6 });

describe('the scanner beside JSON.parse', () => {
  it('finds in any frame what JSON.parse finds, as it was written', () => {
    const gap = fc.string({ unit: fc.constantFrom(' ', '\t', '\r', '\n'), maxLength: 2 });
    fc.assert(
      fc.property(spelledMembers, gap, (list, space) => {
        const members = list.map(([key, member]) => `${key.text}${space}:${space}${member.text}${space}`);
        const text = `${space}{${space}${members.join(`,${space}`)}}${space}`;
        const expected = new Map(list.map(([key, member]) => [key.value, member.text]));
        const scanned = scanMembers(text);
        const found = [...(scanned?.values ?? [])].map(([key, range]) => [key, textAt(text, range)]);
        deepStrictEqual(new Map(found as [string, string][]), expected);
        expect(scanned?.duplicate).toBe(expected.size < list.length);
        const parsed = JSON.parse(text) as Record<string, unknown>;
        for (const key of expected.keys()) {
          expect(memberText(text, key)).toBe(expected.get(key));
          deepStrictEqual(JSON.parse(expected.get(key) as string), parsed[key]);
        }
      }),
      { numRuns: 1000 },
    );
  });

  it('follows a path as deep as the values go', () => {
    fc.assert(
      fc.property(spelledObject, ({ value, text }) => {
        const visit = (node: unknown, path: string[]): void => {
          deepStrictEqual(
            JSON.parse(memberText(text, ...path) as string, (_, v) => (Object.is(v, -0) ? 0 : v)),
            node,
          );
          if (typeof node !== 'object' || node === null || Array.isArray(node)) return;
          for (const [key, member] of Object.entries(node)) visit(member, [...path, key]);
        };
        visit(value, []);
      }),
    );
  });

  it('never throws on damaged texts, and misses no object that JSON.parse reads', () => {
    fc.assert(
      fc.property(fc.oneof(mutated(spelledObject), jsonSoup), (text) => {
        const scanned = scanMembers(text);
        scanFrame(text);
        memberText(text, 'a', 'b');
        let parsed: unknown;
        try {
          parsed = JSON.parse(text);
        } catch {
          return;
        }
        const isObject = typeof parsed === 'object' && parsed !== null && !Array.isArray(parsed);
        expect(scanned !== undefined).toBe(isObject);
        if (isObject)
          deepStrictEqual(new Set(scanned?.values.keys()), new Set(Object.keys(parsed as object)));
      }),
      { numRuns: 5000 },
    );
  });
});
