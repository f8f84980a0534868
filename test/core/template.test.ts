import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { argumentAt, fillTemplate, templateNames, valueAt } from '../../src/core/template.ts';
import { jsonValue } from './json-arbitraries.ts';

const values = {
  arguments: { title: 'Move', count: 3, flag: false, tags: ['a', 'b'], at: { day: 'Monday' }, none: null },
  stamp: 'op_1',
  record: 'T-1',
};

describe('fillTemplate', () => {
  it.each<[unknown, unknown]>([
    ['plain', 'plain'],
    ['{title}', 'Move'],
    ['{count}', 3],
    ['{tags}', ['a', 'b']],
    ['{at}', { day: 'Monday' }],
    ['{none}', null],
    ['{at/day}', 'Monday'],
    ['{tags/1}', 'b'],
    ['{$stamp}', 'op_1'],
    ['{$record}', 'T-1'],
    ['{title} ({count}, {flag}) {$stamp}', 'Move (3, false) op_1'],
    ['{{title}} {title}', '{title} Move'],
    ['a { b', 'a { b'],
    [
      { id: '{$record}', deep: [{ text: '{title}!' }, 7, null, true] },
      { id: 'T-1', deep: [{ text: 'Move!' }, 7, null, true] },
    ],
  ])('%j becomes %j', (template, value) => {
    expect(fillTemplate(template, values)).toEqual({ ok: true, value });
  });

  it.each<[unknown, string, string]>([
    ['{gone}', 'gone', '{gone} has no value here'],
    ['{at/night}', 'at/night', '{at/night} has no value here'],
    ['{tags/2}', 'tags/2', '{tags/2} has no value here'],
    ['{tags/length}', 'tags/length', '{tags/length} has no value here'],
    ['{constructor}', 'constructor', '{constructor} has no value here'],
    ['{$other}', '$other', '{$other} has no value here'],
    ['x {gone}', 'gone', '{gone} has no value here that fits into a text'],
    ['x {tags}', 'tags', '{tags} has no value here that fits into a text'],
    ['x {none}', 'none', '{none} has no value here that fits into a text'],
    [{ a: ['{gone}'] }, 'gone', '{gone} has no value here'],
    [undefined, 'undefined', '{undefined} is no part of a template'],
  ])('%j cannot be filled', (template, missing, problem) => {
    expect(fillTemplate(template, values)).toEqual({ ok: false, missing, problem });
  });

  it.each([
    ['17', 17],
    ['0', 0],
    ['999999999999999', 999_999_999_999_999],
  ])('the record %j is a number where a tool wants one', (record, value) => {
    expect(fillTemplate('{$record_number}', { arguments: {}, record })).toEqual({ ok: true, value });
    expect(fillTemplate('{$record}', { arguments: {}, record })).toEqual({ ok: true, value: record });
  });

  it.each(['T-1', '', '017', '1.5', '-1', '1e3', ' 1', '9007199254740993', undefined])(
    'the record %j is no number, and fills none',
    (record) => {
      const filled = fillTemplate('{$record_number}', { arguments: {}, record });
      expect(filled).toEqual({
        ok: false,
        missing: '$record_number',
        problem: '{$record_number} has no value here',
      });
    },
  );

  it('does not fill stamp and record from arguments of these names', () => {
    const forged = { arguments: { $stamp: 'forged', $record: 'forged' } };
    expect(fillTemplate('{$stamp}', forged)).toMatchObject({ ok: false });
    expect(fillTemplate('{$record}', forged)).toMatchObject({ ok: false });
    expect(fillTemplate('{$record_number}', { arguments: { $record_number: 7 } })).toMatchObject({
      ok: false,
    });
  });

  it('does not read what it filled in as a template', () => {
    const sly = { arguments: { title: '{$stamp}', note: '$& {title}' }, stamp: 'op_1' };
    expect(fillTemplate('{title}', sly)).toEqual({ ok: true, value: '{$stamp}' });
    expect(fillTemplate('<{title}|{note}>', sly)).toEqual({ ok: true, value: '<{$stamp}|$& {title}>' });
  });

  it('keeps a key such as __proto__ a key', () => {
    const template = JSON.parse('{"__proto__": {"polluted": true}}');
    const filled = fillTemplate(template, values);
    expect(filled.ok && Object.hasOwn(filled.value as object, '__proto__')).toBe(true);
    expect(({} as { polluted?: boolean }).polluted).toBeUndefined();
  });

  it('gives every argument as it is', () => {
    fc.assert(
      fc.property(jsonValue, (value) => {
        expect(fillTemplate('{it}', { arguments: { it: value } })).toEqual({ ok: true, value });
      }),
    );
  });
});

describe('templateNames', () => {
  it('lists each name once, in order', () => {
    expect(templateNames({ a: ['{x} {y/z}', '{{no}}'], b: '{x}', c: 3, d: { e: '{$stamp}' } })).toEqual([
      'x',
      'y/z',
      '$stamp',
    ]);
  });
});

describe('valueAt', () => {
  it.each<[string, unknown]>([
    ['', { 'a/b': [{ '~': 1 }] }],
    ['/a~1b/0/~0', 1],
    ['/a~1b/0', { '~': 1 }],
    ['/a~1b/-', undefined],
    ['/a~1b/00', undefined],
    ['/a~1b/1', undefined],
    ['/toString', undefined],
    ['a', undefined],
  ])('%j', (pointer, value) => {
    expect(valueAt({ 'a/b': [{ '~': 1 }] }, pointer)).toEqual(value);
  });

  it('argumentAt takes a pointer without its first slash', () => {
    expect(argumentAt({ a: { b: 1 } }, 'a/b')).toBe(1);
    expect(argumentAt('text', 'length')).toBeUndefined();
  });
});
