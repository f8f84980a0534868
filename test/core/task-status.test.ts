import { expect, test } from 'vitest';
import { EFFECTS, STAGES } from '../../src/core/lifecycle.ts';
import type { Operation } from '../../src/core/operation.ts';
import { taskEndOf } from '../../src/core/task-status.ts';

const operation = (stage: string, effect: string, code?: string): Operation =>
  ({ stage, effect, ...(code === undefined ? {} : { why: { code } }) }) as unknown as Operation;

test('what goes on by itself, or as soon as a person has decided, is no end', () => {
  for (const stage of STAGES.filter((one) => one !== 'parked' && one !== 'closed')) {
    for (const effect of EFFECTS) expect(taskEndOf(operation(stage, effect), false)).toBeUndefined();
  }
});

test('failed is an error of the protocol that the destination has answered with, and nothing else', () => {
  for (const stage of ['parked', 'closed']) {
    for (const effect of EFFECTS) {
      expect(taskEndOf(operation(stage, effect, 'answered'), false)).toBe('completed');
    }
  }
  expect(taskEndOf(operation('closed', 'error_reported', 'answered'), true)).toBe('failed');
});

test('cancelled is what its caller took back before anything had left, and nothing else', () => {
  expect(taskEndOf(operation('closed', 'not_sent', 'withdrawn_by_caller'), false)).toBe('cancelled');
  for (const code of ['denied', 'replaced', 'arguments', 'review_undecided']) {
    expect(taskEndOf(operation('closed', 'not_sent', code), false)).toBe('completed');
  }
  expect(taskEndOf(operation('parked', 'unknown', 'withdrawn_by_caller'), false)).toBe('completed');
});
