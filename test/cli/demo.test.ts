import { readdirSync } from 'node:fs';
import { afterEach, describe, expect, test } from 'vitest';
import { type Meant, problemsOf, type Seen } from '../../src/cli/demo-judge.ts';
import { CleanUps, counterfoil } from '../gateway/processes.ts';

/** It starts some twenty processes; on a busy machine they take their time. */
const PATIENT = { timeout: 120_000 };

const cleanUps = new CleanUps();
afterEach(cleanUps.run);

describe('counterfoil demo', PATIENT, () => {
  test('counts at the destination what each story leaves there, with and without the gateway, and cleans up', async () => {
    const scratch = cleanUps.folder();
    const ran = await counterfoil(['demo', '--json'], { env: { TMPDIR: scratch } });
    const { faultsFired, ok, stories } = JSON.parse(ran.stdout) as {
      readonly ok: boolean;
      readonly faultsFired: number;
      readonly stories: readonly {
        readonly title: string;
        readonly destinationRecords: number;
        readonly withoutCounterfoil: number | null;
        readonly problems: readonly string[];
      }[];
    };
    expect(stories.filter(({ problems }) => problems.length > 0)).toEqual([]);
    expect([ran.code, ok, faultsFired]).toEqual([0, true, 6]);
    expect(
      stories.map(({ destinationRecords, withoutCounterfoil }) => [destinationRecords, withoutCounterfoil]),
    ).toEqual([
      [1, 2],
      [1, 2],
      [1, null],
      [1, null],
      [1, 16],
      [2, 2],
      [0, 1],
    ]);
    expect(readdirSync(scratch)).toEqual([]);
  });
});

describe('a story is wrong', () => {
  const meant: Meant = {
    id: 'S1',
    title: 'told',
    expectedRecords: 1,
    without: 2,
    effect: 'verified',
    operations: 1,
    faults: 1,
    told: 'ALREADY_EXISTS',
  };
  const seen: Seen = {
    records: 1,
    faults: 1,
    effects: ['verified'],
    told: 'ALREADY_EXISTS — done before.',
    direct: { records: 2, faults: 1 },
  };

  test('not where all is as it was meant', () => {
    expect(problemsOf(meant, seen)).toEqual([]);
  });

  const wrong: readonly (readonly [string, Partial<Seen>])[] = [
    ['where the destination holds more', { records: 2 }],
    ['where the fault has not fired', { faults: 0 }],
    ['where the ledger says something else', { effects: ['unknown'] }],
    ['where there are more operations', { effects: ['verified', 'verified'] }],
    ['where the agent was told something else', { told: 'Done.' }],
    ['where the agent was told nothing', { told: undefined }],
    ['where the fault does no harm without us', { direct: { records: 1, faults: 1 } }],
    ['where it did not fire without us', { direct: { records: 2, faults: 0 } }],
    ['where it was not told without us', { direct: undefined }],
  ];
  test.each(wrong)('%s', (_what, change) => {
    expect(problemsOf(meant, { ...seen, ...change })).toHaveLength(1);
  });
});
