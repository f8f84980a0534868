import { expect, test } from 'vitest';
import {
  type Circuit,
  CLOSED_CIRCUIT,
  closed,
  FAILURES_MAX,
  failedAgain,
  opened,
  tried,
} from '../../src/core/circuit.ts';
import { MINUTE_MS, SECOND_MS, T0 } from './fixtures.ts';

test('a circuit that opens is tried after a second, by one at a time', () => {
  const open = opened(CLOSED_CIRCUIT, T0);
  expect(open).toEqual({ standing: 'open', since: T0, failures: FAILURES_MAX, tryAt: T0 + SECOND_MS });
  expect(tried(open, 'wrk_1', T0)).toBeUndefined();
  const trying = tried(open, 'wrk_1', T0 + SECOND_MS) as Circuit;
  expect(trying.trying?.worker).toBe('wrk_1');
  expect(tried(trying, 'wrk_2', T0 + 2 * SECOND_MS)).toBeUndefined();
  // Whoever tried may have been killed: its place is free again.
  expect(tried(trying, 'wrk_2', T0 + SECOND_MS + MINUTE_MS)?.trying?.worker).toBe('wrk_2');
});

test('each try that fails makes the pause longer, to half a minute and no further', () => {
  let circuit = opened(CLOSED_CIRCUIT, T0);
  const pauses: number[] = [];
  let at = T0;
  for (let tries = 0; tries < 7; tries += 1) {
    at = circuit.tryAt;
    circuit = failedAgain(tried(circuit, 'wrk_1', at) as Circuit, at);
    pauses.push((circuit.tryAt - at) / SECOND_MS);
    expect(circuit.trying).toBeUndefined();
  }
  expect(pauses).toEqual([2, 5, 10, 30, 30, 30, 30]);
  expect(circuit).toMatchObject({ standing: 'open', since: T0, failures: FAILURES_MAX + 7 });
});

test('an answer closes it, and so does a person by name; what is closed stays as it is', () => {
  const open = opened(CLOSED_CIRCUIT, T0);
  expect(closed(open, T0 + 5)).toEqual({ standing: 'closed', since: T0 + 5, failures: 0, tryAt: 0 });
  expect(closed(open, T0 + 5, 'Mara')).toMatchObject({ standing: 'closed', by: 'Mara' });
  expect(closed(CLOSED_CIRCUIT, T0 + 5)).toBe(CLOSED_CIRCUIT);
  expect(tried(CLOSED_CIRCUIT, 'wrk_1', T0)).toBeUndefined();
  expect(opened(open, T0 + 9)).toBe(open);
});
