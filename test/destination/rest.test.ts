import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { Rest } from '../../src/destination/http/rest.ts';

beforeEach(() => {
  vi.useFakeTimers({ now: Date.UTC(2026, 10, 30, 12) });
});
afterEach(() => {
  vi.useRealTimers();
});

test.each([
  [429, '30', 30_000],
  [503, 'Mon, 30 Nov 2026 12:00:20 GMT', 20_000],
  [429, '86400', 900_000],
  [429, '0', 0],
])('%i with Retry-After %s: it is left alone for %i ms', (status, header, ms) => {
  const rest = new Rest();
  rest.heed(status, header);
  expect(rest.isOver).toBe(ms === 0);
  vi.advanceTimersByTime(Math.max(0, ms - 1));
  expect(rest.isOver).toBe(ms === 0);
  vi.advanceTimersByTime(1);
  expect(rest.isOver).toBe(true);
});

test.each([
  [429, undefined],
  [201, '30'],
  [429, 'soon'],
  [429, '-1'],
  [429, 'Mon, 30 Nov 2020 12:00:00 GMT'],
])('%i with Retry-After %s is no reason to wait', (status, header) => {
  const rest = new Rest();
  rest.heed(status, header);
  expect(rest.isOver).toBe(true);
});
