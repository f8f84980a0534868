import { expect, test } from 'vitest';
import { acknowledgedBy, acknowledgementsOf, countOut } from '../../src/core/cancellation.ts';
import { decide } from '../../src/core/decide.ts';
import { evolveAll, type Operation } from '../../src/core/operation.ts';
import { DEFAULT_BOUNDS } from '../../src/core/repeatability.ts';
import { isCovered, type StopInForce, stopOver } from '../../src/core/stop.ts';
import { acknowledgementLines } from '../../src/core/stop-wording.ts';
import { ACCEPTED, factsOf, LOST, setup, T0 } from './fixtures.ts';

const MARGIN_MS = 500;

function cancelled(operation: Operation, at: number): Operation {
  const { events } = decide(operation, { type: 'cancel', by: 'Mara' }, at);
  const after = events && evolveAll(operation, events);
  if (after === undefined) throw new Error('it was not cancelled');
  return after;
}

test('what was not sent is acknowledged whole at once', () => {
  const { operation } = setup();
  const acknowledged = acknowledgementsOf(cancelled(operation, T0 + 5), MARGIN_MS);
  expect(acknowledged).toMatchObject({ requestedAt: T0 + 5, noMore: { at: T0 + 5 }, settledAt: T0 + 5 });
  expect(acknowledgementsOf(operation, MARGIN_MS)).toBeUndefined();
});

test('of what is out, "no more" is said sendBy and a margin later, or as soon as it has told something', () => {
  const one = setup();
  one.start();
  const out = cancelled(one.operation, T0 + 100);
  const [attempt] = out.attempts;
  const sendByMs = (attempt?.sendBy ?? 0) - (attempt?.startedAt ?? 0);
  const until = T0 + 100 + sendByMs + MARGIN_MS;
  const acknowledged = acknowledgementsOf(out, MARGIN_MS);
  expect(acknowledged?.noMore).toEqual({ at: until });
  expect(acknowledged?.settledAt).toBeUndefined();
  if (acknowledged === undefined) return;
  expect(acknowledgedBy(acknowledged, until - 1).noMore).toEqual({ until });
  expect(acknowledgedBy(acknowledged, until).noMore).toEqual({ at: until });

  const answered = setup();
  answered.start();
  const before = cancelled(answered.operation, answered.operation.since);
  const { events } = decide(
    before,
    {
      type: 'record_evidence',
      closes: before.attempts[0]?.id ?? '',
      evidence: {
        ...ACCEPTED,
        attempt: before.attempts[0]?.id ?? '',
        observer: 'worker-1',
        observedAt: T0 + 200,
        recordedAt: T0 + 200,
      },
      facts: factsOf(),
      bounds: DEFAULT_BOUNDS,
    },
    T0 + 200,
  );
  const after = events && evolveAll(before, events);
  expect(after && acknowledgementsOf(after, MARGIN_MS)).toMatchObject({
    noMore: { at: T0 + 200 },
    settledAt: T0 + 200,
    out: { landed: 1 },
  });
});

test('a result that a person closed as unknown keeps the last one open, and is named', () => {
  const one = setup();
  one.start();
  one.comesBack(LOST);
  const parked = cancelled(one.operation, T0 + 9_000);
  const { events } = decide(parked, { type: 'give_up', by: 'Luis' }, T0 + 10_000);
  const closed = events && evolveAll(parked, events);
  if (closed === undefined) throw new Error('it was not closed');
  const acknowledged = acknowledgementsOf(closed, MARGIN_MS);
  expect(acknowledged?.settledAt).toBeUndefined();
  expect(countOut([closed]).closedUnknown).toEqual([{ operation: closed.id, by: 'Luis' }]);
  const lines = acknowledged === undefined ? [] : acknowledgementLines(acknowledged, 'Cancel requested');
  expect(lines.join(' ')).toMatch(/ 1 result closed as unknown by Luis \(op_\w+\)\.$/);
});

test('a stop covers what its scope names, and a cancel comes before a stop', () => {
  const operation = { destination: 'd', tool: 't', requester: 'r', run: { id: 'x' } };
  const covered = [
    { kind: 'everything' },
    { kind: 'destination', destination: 'd' },
    { kind: 'tool', destination: 'd', tool: 't' },
    { kind: 'run', run: 'x' },
    { kind: 'requester', requester: 'r' },
  ] as const;
  const others = [
    { kind: 'destination', destination: 't' },
    { kind: 'tool', destination: 'x', tool: 't' },
    { kind: 'tool', destination: 'd', tool: 'd' },
    { kind: 'run', run: 'r' },
    { kind: 'requester', requester: 'x' },
  ] as const;
  expect(covered.map((scope) => isCovered(scope, operation))).toEqual(covered.map(() => true));
  expect(others.map((scope) => isCovered(scope, operation))).toEqual(others.map(() => false));
  const order = (id: string, kind: StopInForce['kind']): StopInForce => {
    return { id, kind, scope: { kind: 'everything' }, by: 'Mara', at: T0 };
  };
  expect(stopOver([order('a', 'stop'), order('b', 'cancel')], operation)?.id).toBe('b');
  expect(stopOver([], operation)).toBeUndefined();
});
