// Random JSON for property tests: values, and texts that spell them in the many ways that JSON allows.

import fc from 'fast-check';
import type { JsonValue } from '../../src/core/canonical.ts';

/** A value together with one spelling of it. */
export interface Spelled {
  readonly value: JsonValue;
  readonly text: string;
}

const KEYS = [
  'a',
  'b',
  'id',
  'method',
  'constructor',
  'toString',
  '',
  '1',
  '10',
  '2',
  'é',
  'ﬀ',
  '😀',
  'a/b~c',
];

export const jsonString: fc.Arbitrary<string> = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 12 }),
  fc.string({
    unit: fc.constantFrom('{', '}', '[', ']', '"', '\\', ',', ':', '\n', 'x', '/', '😀'),
    maxLength: 8,
  }),
);

export const jsonKey: fc.Arbitrary<string> = fc
  .oneof(fc.constantFrom(...KEYS), jsonString)
  .filter((key) => key !== '__proto__');

export const jsonNumber: fc.Arbitrary<number> = fc
  .oneof(
    fc.integer(),
    fc.maxSafeInteger(),
    fc.double({ noNaN: true, noDefaultInfinity: true }),
    fc.integer({ min: -99999, max: 99999 }).map((cents) => cents / 100),
  )
  .map((value) => value + 0);

export const { value: jsonValue } = fc.letrec<{ value: JsonValue }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 5, withCrossShrink: true },
    fc.oneof(fc.constantFrom(null, true, false), jsonNumber, jsonString),
    fc.array(tie('value'), { maxLength: 5 }),
    fc
      .uniqueArray(fc.tuple(jsonKey, tie('value')), { maxLength: 6, selector: ([key]) => key })
      .map((members) => Object.fromEntries(members)),
  ),
}));

const space: fc.Arbitrary<string> = fc.oneof(
  { weight: 3, arbitrary: fc.constant('') },
  fc.string({ unit: fc.constantFrom(' ', '\t', '\n', '\r'), maxLength: 3 }),
);

function escapeUnit(unit: string): string {
  return `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`;
}

/** Each character either as JSON.stringify writes it, or as an escape of its code units. */
export function spelledString(value: fc.Arbitrary<string>): fc.Arbitrary<{ value: string; text: string }> {
  return fc.tuple(value, fc.infiniteStream(fc.nat(7))).map(([text, dice]) => {
    const spell = (character: string): string => {
      const roll = dice.next().value;
      if (roll === 0) return character.split('').map(escapeUnit).join('');
      return character === '/' && roll < 4 ? '\\/' : JSON.stringify(character).slice(1, -1);
    };
    return { value: text, text: `"${Array.from(text, spell).join('')}"` };
  });
}

const spelledNumber: fc.Arbitrary<Spelled> = fc
  .tuple(jsonNumber, fc.constantFrom('', '.0', 'e0', 'E+0', '.00e-0'))
  .map(([value, ending]) => {
    const text = String(value);
    return { value, text: /^-?\d+$/.test(text) ? text + ending : text };
  });

function join(open: string, parts: readonly string[], gap: string, close: string): string {
  return `${open}${gap}${parts.map((part) => `${gap}${part}`).join(`${gap},`)}${gap}${close}`;
}

export const { value: spelledValue, object: spelledObject } = fc.letrec<{ value: Spelled; object: Spelled }>(
  (tie) => ({
    value: fc.oneof(
      { maxDepth: 4, withCrossShrink: true },
      fc.oneof(
        fc.constantFrom(null, true, false).map((value) => ({ value, text: String(value) })),
        spelledNumber,
        spelledString(jsonString),
      ),
      fc.tuple(fc.array(tie('value'), { maxLength: 4 }), space).map(([parts, gap]) => ({
        value: parts.map((part) => part.value),
        text: join(
          '[',
          parts.map((part) => part.text),
          gap,
          ']',
        ),
      })),
      tie('object'),
    ),
    object: fc
      .tuple(
        fc.uniqueArray(fc.tuple(spelledString(jsonKey), tie('value')), {
          maxLength: 5,
          selector: ([key]) => key.value,
        }),
        space,
      )
      .map(([members, gap]) => ({
        value: Object.fromEntries(members.map(([key, member]) => [key.value, member.value])),
        text: join(
          '{',
          members.map(([key, member]) => `${key.text}${gap}:${gap}${member.text}`),
          gap,
          '}',
        ),
      })),
  }),
);

const FRAGMENTS = [
  ...'{ } [ ] , : " \\ "a" "\\u0061" "b": "__proto__": "\\x" "\\udc00" true nul undefined NaN Infinity'.split(
    ' ',
  ),
  ..."0 1 - -0 01 1. .5 1e 1e400 1e-400 9007199254740993 0.1 /*\"*/ // 'a'".split(' '),
  ' ',
  '\n',
  '"\t"',
  '\u0000',
  '\ud800',
  '\ufeff',
  '\u00a0',
];

/** A spelled value with a few pieces cut out, put in or doubled: mostly not JSON any more, but nearly. */
export function mutated(source: fc.Arbitrary<Spelled>): fc.Arbitrary<string> {
  const edit = fc.record({
    at: fc.double({ min: 0, max: 1, noNaN: true }),
    cut: fc.nat(3),
    put: fc.constantFrom('', ...FRAGMENTS),
  });
  return fc.tuple(source, fc.array(edit, { maxLength: 3 })).map(([{ text }, edits]) =>
    edits.reduce((current, { at, cut, put }) => {
      const offset = Math.floor(at * current.length);
      return current.slice(0, offset) + put + current.slice(offset + cut);
    }, text),
  );
}

/** Pieces of JSON in any order. */
export const jsonSoup: fc.Arbitrary<string> = fc
  .array(fc.constantFrom(...FRAGMENTS), { maxLength: 12 })
  .map((pieces) => pieces.join(''));
