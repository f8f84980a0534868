import { expect, test } from 'vitest';
import { allowanceOf, leased, type RateWindow, windowAt } from '../../src/core/allowance.ts';
import { waitWords } from '../../src/core/wording.ts';
import { contractOf, factsOf, SECOND_MS, setup, T0 } from './fixtures.ts';

test('the owner and the contract each set a bound, and the lower one counts', () => {
  const stated = (concurrency: number) => contractOf({ limits: { concurrency } });
  expect(allowanceOf(factsOf())).toBeUndefined();
  expect(allowanceOf(factsOf({ operation: contractOf() }))).toBeUndefined();
  expect(allowanceOf(factsOf({ operation: stated(8) }))).toEqual({ concurrency: 8 });
  expect(allowanceOf(factsOf({ operation: stated(8), sending: { concurrency: 3 } }))).toEqual({
    concurrency: 3,
  });
  expect(allowanceOf(factsOf({ operation: stated(2), sending: { concurrency: 3 } }))).toEqual({
    concurrency: 2,
  });
  const rate = { writes: 100, perMs: 60_000 };
  expect(allowanceOf(factsOf({ sending: { rate } }))).toEqual({ rate });
});

test('a window is leased in slices, never more than it has, and begins anew', () => {
  const rate = { writes: 25, perMs: 10 * SECOND_MS };
  const slices: number[] = [];
  let window: RateWindow | undefined;
  for (let lease = leased(window, rate, T0); lease !== undefined; lease = leased(window, rate, T0 + 9_999)) {
    window = lease.window;
    slices.push(lease.slice);
  }
  expect(slices.reduce((sum, slice) => sum + slice)).toBe(25);
  expect(Math.max(...slices)).toBe(2);
  expect(window).toEqual({ beganAt: T0, taken: 25 });
  expect(leased(window, rate, T0 + 10_000)).toEqual({ window: { beganAt: T0 + 10_000, taken: 2 }, slice: 2 });
  expect(leased(undefined, { writes: 3, perMs: SECOND_MS }, T0)?.slice).toBe(1);
  expect(windowAt(SECOND_MS, T0 + 999)).toBe(T0);
});

test('a clock that is a little behind counts in the window that another has begun, and one far ahead counts for none', () => {
  const rate = { writes: 2, perMs: 10 * SECOND_MS };
  const begun = leased(undefined, rate, T0 + 10_000)?.window;
  const behind = leased(begun, rate, T0 + 9_900);
  expect(behind?.window).toEqual({ beganAt: T0 + 10_000, taken: 2 });
  expect(leased(behind?.window, rate, T0 + 9_950)).toBeUndefined();
  expect(leased(behind?.window, rate, T0 + 10_050)).toBeUndefined();
  // A clock that was an hour ahead has been set right: nobody waits for an hour.
  const far = leased(undefined, rate, T0 + 3_600_000)?.window;
  expect(leased(far, rate, T0)?.window).toEqual({ beganAt: T0, taken: 1 });
});

test.each([
  [{ code: 'waits_for_place', at_once: 1 }, 'waits for its turn: at most 1 write to tasks-eu is out at once'],
  [
    { code: 'waits_for_place', at_once: 4 },
    'waits for its turn: at most 4 writes to tasks-eu are out at once',
  ],
  [
    { code: 'waits_for_rate', writes: 100, perMs: 60_000, until: T0 + 30_000 },
    'waits for its turn until 14:00:30 UTC: at most 100 writes may leave for tasks-eu in a minute',
  ],
  [
    { code: 'waits_for_rate', writes: 1, perMs: 7_200_000, until: T0 },
    'waits for its turn until 14:00:00 UTC: at most 1 write may leave for tasks-eu in 2 hours',
  ],
] as const)('waiting for room is worded: %j', (why, words) => {
  const bundle = setup();
  bundle.start({ noRoom: why });
  expect(bundle.state).toBe('ready not_sent');
  expect(waitWords(bundle.operation, {})).toBe(words);
});
