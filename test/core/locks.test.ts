import { describe, expect, test } from 'vitest';
import { FREE_LOCK, holdsLocks, type LockState, lockAfter, lockedBy } from '../../src/core/locks.ts';
import type { Operation } from '../../src/core/operation.ts';
import {
  ABSENT,
  ACCEPTED,
  ERROR,
  factsWithLookup,
  LOST,
  NOT_LEFT,
  REJECTED,
  setup,
  setupLost,
  TWO_FOUND,
} from './fixtures.ts';

describe('a target is locked (D6)', () => {
  test('from the first attempt until settled', () => {
    const write = setup();
    expect(holdsLocks(write.operation)).toBe(false);
    write.start();
    expect(holdsLocks(write.operation)).toBe(true);
    write.comesBack(ACCEPTED);
    expect(holdsLocks(write.operation)).toBe(false);
  });

  test('while its write is looked up, is with a person, or contradicts itself', () => {
    expect(holdsLocks(setupLost({ facts: factsWithLookup() }).operation)).toBe(true);
    const parked = setupLost();
    expect(holdsLocks(parked.operation)).toBe(true);
    parked.learn(TWO_FOUND);
    expect(holdsLocks(parked.operation)).toBe(true);
  });

  test('by nothing that was not sent, was refused, or was answered with an error', () => {
    for (const finding of [NOT_LEFT, REJECTED, ERROR]) {
      const write = setup();
      write.start();
      write.comesBack(finding);
      expect(holdsLocks(write.operation)).toBe(false);
    }
  });

  test('until a named person states a finding or gives up', () => {
    for (const resolution of ['stated_happened', 'stated_not_happened', 'stated_other_change'] as const) {
      const stated = setupLost();
      stated.states(resolution);
      expect(holdsLocks(stated.operation)).toBe(false);
    }
    const givenUp = setupLost();
    givenUp.giveUp();
    expect(holdsLocks(givenUp.operation)).toBe(false);
  });

  test('again by the attempt that a person ordered, and by nothing before it', () => {
    const lost = setupLost();
    lost.states('stated_not_happened');
    lost.orderAgain();
    expect(holdsLocks(lost.operation)).toBe(false);
    lost.decides('approved');
    expect(holdsLocks(lost.operation)).toBe(false);
    lost.start();
    expect(holdsLocks(lost.operation)).toBe(true);
    lost.comesBack(LOST);
    expect(lost.state).toBe('parked unknown');
    expect(holdsLocks(lost.operation)).toBe(true);
  });

  test('not by what was looked for and is not there', () => {
    const absent = setupLost();
    absent.learn(ABSENT);
    expect(holdsLocks(absent.operation)).toBe(false);
  });
});

/** As a commit does: only a start takes. */
function after(lock: LockState, operation: Operation): LockState {
  return lockAfter(lock, operation, operation.stage === 'sending');
}

describe('the line before a lock', () => {
  const waiting = (id: string) => {
    const write = setup({ proposal: { id } });
    write.start({ lockedBy: 'op_1' });
    return write;
  };

  test('is kept in order of arrival', () => {
    const second = waiting('op_2');
    const third = waiting('op_3');
    const held = { ...FREE_LOCK, holder: 'op_1' };
    const line = after(after(held, second.operation), third.operation);
    expect(line.line).toEqual(['op_2', 'op_3']);
    expect(after(line, second.operation)).toBe(line);
    expect(lockedBy(line, 'op_2')).toBe('op_1');
    const free = { ...line, holder: null };
    expect(lockedBy(free, 'op_2')).toBeUndefined();
    expect(lockedBy(free, 'op_3')).toBe('op_2');
    expect(lockedBy(free, 'op_4')).toBe('op_2');
  });

  test('is left by what is sent, withdrawn or closed', () => {
    for (const end of ['start', 'cancel', 'supersede'] as const) {
      const second = waiting('op_2');
      const line = after(FREE_LOCK, second.operation);
      expect(line.line).toEqual(['op_2']);
      second[end]();
      expect(after(line, second.operation).line).toEqual([]);
    }
  });

  test('nobody stands before a lock that nobody ever took', () => {
    expect(lockedBy(undefined, 'op_1')).toBeUndefined();
    expect(lockedBy(FREE_LOCK, 'op_1')).toBeUndefined();
  });
});

describe('what settled last on a target', () => {
  test('is told by the lock, and only of what landed', () => {
    const write = setup({ proposal: { id: 'op_1' } });
    write.start();
    const taken = after(FREE_LOCK, write.operation);
    expect(taken).toMatchObject({ holder: 'op_1', lastSettled: null });
    write.comesBack(ACCEPTED);
    expect(after(taken, write.operation)).toEqual({ holder: null, line: [], lastSettled: 'op_1' });
    const refused = setup({ proposal: { id: 'op_2' } });
    refused.start();
    const before = { ...FREE_LOCK, lastSettled: 'op_1' };
    const held = after(before, refused.operation);
    refused.comesBack(REJECTED);
    expect(after(held, refused.operation)).toEqual(before);
  });
});
