import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { foundBy, foundInContent, traceOf } from '../../src/core/search.ts';
import { ACCEPTED, proposalOf, setup } from './fixtures.ts';

const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736';
const { operation } = (() => {
  const one = setup({
    proposal: {
      ...proposalOf(),
      id: 'op_01M8PJMWASYVG44DAKPH6QWTB1',
      run: { id: 'cutover', weak: false },
      replays: ['call:toolu_7', 'position:ns|3'],
      references: [`trace:${TRACE}`, 'thread:t-9'],
      digest: 'abcdef0123456789'.repeat(4),
    },
  });
  one.start({ digest: 'abcdef0123456789'.repeat(4) });
  one.comesBack(ACCEPTED);
  return { operation: { ...one.operation, record: { id: 'CHG/1042' } } };
})();

describe('the names of an operation', () => {
  test.each([
    ['op_01M8PJMWASYVG44DAKPH6QWTB1', 'operation'],
    ['OP_01m8pj', 'operation'],
    ['att_1', 'attempt'],
    ['cutover', 'run'],
    ['CHG/1042', 'record'],
    ['https://x.example/changes/CHG%2F1042?tab=log#top', 'record'],
    ['toolu_7', 'call'],
    ['ns|3', 'call'],
    ['t-9', 'reference'],
    [TRACE, 'reference'],
    [`00-${TRACE}-00f067aa0ba902b7-00`, 'reference'],
    ['abcdef012345', 'digest'],
    ['  cutover ', 'run'],
  ])('%s', (words, by) => expect(foundBy(operation, words)).toBe(by));

  test.each(['', '  ', 'op_', 'cutove', 'CHG', 'abcdef', 'https://x.example/', 'op_01M8PJX', 'trace'])(
    '"%s" is none of them',
    (words) => expect(foundBy(operation, words)).toBeUndefined(),
  );

  test('no words make the search throw', () => {
    fc.assert(
      fc.property(fc.string(), (words) => {
        foundBy(operation, words);
        foundInContent(words, { target: [words], texts: ['{}'] });
        return traceOf(words).length >= 0;
      }),
    );
  });

  test('content is found by a whole target, or by words as they stand in JSON', () => {
    const content = { target: ['p-7'], texts: ['{"text":"say \\"yes\\""}'] };
    expect(foundInContent('p-7', content)).toBe('target');
    expect(foundInContent('https://x.example/p-7', content)).toBe('target');
    expect(foundInContent('say "yes"', content)).toBe('content');
    expect(foundInContent('p', content)).toBeUndefined();
    expect(foundInContent('', content)).toBeUndefined();
  });
});
