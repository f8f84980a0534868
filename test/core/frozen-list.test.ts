import { expect, test } from 'vitest';
import { frozenList } from '../../src/core/frozen-list.ts';

const ONE = { operation: 'op_1', version: 3 };
const OTHER = { operation: 'op_2', version: 5 };

test('a list has one digest in whatever order it is given, and another one as soon as a version moves on', () => {
  const list = frozenList([OTHER, ONE]);
  expect(list.operations).toEqual([ONE, OTHER]);
  expect(list.digest).toMatch(/^[0-9a-f]{64}$/);
  expect(frozenList([ONE, OTHER]).digest).toBe(list.digest);
  expect(frozenList([ONE, { ...OTHER, version: 6 }]).digest).not.toBe(list.digest);
  expect(frozenList([ONE]).digest).not.toBe(list.digest);
});

test('an operation that is given twice is in it once', () => {
  expect(frozenList([ONE, ONE, OTHER]).operations).toEqual([ONE, OTHER]);
});
