import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  durationMs,
  type Grade,
  isTrusted,
  LATE_ARRIVAL_FLOOR_MS,
  lateArrivalMs,
} from '../../src/core/contract.ts';
import { contractOf } from './fixtures.ts';

describe('a duration', () => {
  const ROWS: readonly (readonly [string, number])[] = [
    ['PT0S', 0],
    ['PT1S', 1_000],
    ['PT30S', 30_000],
    ['PT0.5S', 500],
    ['PT1.25S', 1_250],
    ['PT0.001S', 1],
    ['PT2M', 120_000],
    ['PT90M', 5_400_000],
    ['PT1H', 3_600_000],
    ['PT96H', 345_600_000],
    ['PT1H30M', 5_400_000],
    ['PT1H30M15S', 5_415_000],
    ['PT1H15S', 3_615_000],
    ['P1D', 86_400_000],
    ['P30D', 2_592_000_000],
    ['P1DT12H', 129_600_000],
    ['P1DT1H1M1.001S', 90_061_001],
    ['P0D', 0],
    ['PT007S', 7_000],
  ];
  for (const [text, ms] of ROWS) {
    test(`${text} is ${ms} ms`, () => {
      expect(durationMs(text)).toBe(ms);
    });
  }

  const NONSENSE: readonly string[] = [
    '',
    'P',
    'PT',
    'P1DT',
    'T1S',
    '1S',
    'PT1',
    'P1',
    'PT1S ',
    ' PT1S',
    'PT1S\n',
    'pt1s',
    'PT1s',
    'P1H',
    'PT1D',
    'P1W',
    'P1Y',
    'P1M',
    'P1Y2M3D',
    '-PT1S',
    'PT-1S',
    '+PT1S',
    'PT1,5S',
    'PT1.S',
    'PT.5S',
    'PT1.0001S',
    'PT1.5M',
    'P1.5D',
    'PT1S1M',
    'PT1M1H',
    'PT1SPT1S',
    'PT1e3S',
    'PT٣S',
    'P1DPT1H',
    'PTInfinityS',
    '10 minutes',
    'soon',
    '600',
    'null',
  ];
  for (const text of NONSENSE) {
    test(`${JSON.stringify(text)} is none`, () => {
      expect(durationMs(text)).toBeUndefined();
    });
  }

  test('that was not stated is none', () => {
    expect(durationMs(undefined)).toBeUndefined();
  });

  test('of any size is a whole number of milliseconds, or so long that it never ends', () => {
    const part = fc.bigInt({ min: 0n, max: 10n ** 30n });
    fc.assert(
      fc.property(part, part, part, part, (days, hours, minutes, seconds) => {
        const ms = durationMs(`P${days}DT${hours}H${minutes}M${seconds}S`);
        expect(ms).toBeGreaterThanOrEqual(0);
        expect(Number.isInteger(ms)).toBe(true);
      }),
    );
    expect(durationMs(`PT${'9'.repeat(400)}S`)).toBe(Number.POSITIVE_INFINITY);
  });

  test('is read in no time, however long the nonsense', () => {
    for (const text of [`P${'1'.repeat(100_000)}`, `PT1.${'0'.repeat(100_000)}`, 'PT'.repeat(50_000)]) {
      expect(durationMs(text)).toBeUndefined();
    }
  });

  test('is either none or a number, for any text', () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.stringMatching(/^P?T?[0-9DHMS.T]*$/)), (text) => {
        const ms = durationMs(text);
        expect(ms === undefined || ms >= 0).toBe(true);
      }),
    );
  });
});

describe('how late a request may still land', () => {
  test('is what the contract states, else 15 minutes', () => {
    expect(LATE_ARRIVAL_FLOOR_MS).toBe(900_000);
    expect(lateArrivalMs(contractOf({ limits: { late_arrival: 'PT30S' } }))).toBe(30_000);
    expect(lateArrivalMs(contractOf({ limits: { late_arrival: 'PT2H' } }))).toBe(7_200_000);
    expect(lateArrivalMs(contractOf({ limits: {} }))).toBe(900_000);
    expect(lateArrivalMs(undefined)).toBe(900_000);
  });

  test('is 15 minutes when what the contract states cannot be read', () => {
    expect(lateArrivalMs(contractOf({ limits: { late_arrival: 'soon' } }))).toBe(900_000);
  });
});

describe('a grade', () => {
  const ROWS: readonly (readonly [Grade, boolean])[] = [
    ['documented', true],
    ['source', true],
    ['drilled', true],
    ['reported', false],
    ['assumed', false],
    ['not_documented', false],
  ];
  for (const [grade, trusted] of ROWS) {
    test(`${grade} ${trusted ? 'may' : 'may not'} drive a repeat or let an absence count`, () => {
      expect(isTrusted({ grade })).toBe(trusted);
    });
  }
});
