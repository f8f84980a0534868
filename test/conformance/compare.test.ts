import { describe, expect, test } from 'vitest';
import {
  type Check,
  compareRuns,
  countVerdicts,
  judgeRun,
  passes,
  worseChecks,
} from '../../conformance/compare.mjs';

/** Checks in short: `a` succeeds, `a!` fails, `a?` warns, `a-` is skipped, `a.` is noted. */
const STATUS: Record<string, string> = { '!': 'FAILURE', '?': 'WARNING', '-': 'SKIPPED', '.': 'INFO' };
const checks = (short: string): Check[] =>
  short
    .split(' ')
    .filter(Boolean)
    .map((text) => ({ id: text.replace(/\W$/, ''), status: STATUS[text.at(-1) ?? ''] ?? 'SUCCESS' }));
const run = (scenarios: Record<string, string>) =>
  new Map(Object.entries(scenarios).map(([name, short]) => [name, checks(short)]));
const worse = (direct: string, through: string) =>
  worseChecks(checks(direct), checks(through)).map((one) => `${one.check}: ${one.direct} → ${one.through}`);

describe('a scenario', () => {
  test.each([
    ['a', true],
    ['a b? c- d.', true],
    ['a b!', false],
    ['', false],
    ['a- b.', false],
  ])('of the checks "%s" passes: %s', (short, expected) => {
    expect(passes(checks(short))).toBe(expected);
  });

  test('with a status that nobody knows does not pass', () => {
    expect(
      passes([
        { id: 'a', status: 'SUCCESS' },
        { id: 'b', status: 'ABANDONED' },
      ]),
    ).toBe(false);
  });
});

describe('a check is worse through us', () => {
  test.each([
    ['a b', 'a b', []],
    ['a', 'a!', ['a: SUCCESS → FAILURE']],
    ['a', 'a?', ['a: SUCCESS → WARNING']],
    ['a', 'a-', ['a: SUCCESS → SKIPPED']],
    ['a b', 'b', ['a: SUCCESS → missing']],
    ['a?', 'a!', ['a: WARNING → FAILURE']],
    ['a', 'a z!', ['z: missing → FAILURE']],
    ['a', 'a z?', ['z: missing → WARNING']],
    // What was not shown without us need not be shown through us.
    ['a-', 'a', []],
    ['a-', '', []],
    ['a.', 'a-', []],
    ['a?', 'a', []],
    ['a?', '', []],
    ['a!', 'a!', []],
    // The same id several times: each is held against its own.
    ['a a a', 'a a! a', ['a: SUCCESS → FAILURE']],
    ['a a', 'a', ['a: SUCCESS → missing']],
    ['a', 'a a!', ['a: missing → FAILURE']],
    ['a', 'a a', []],
  ])('"%s" without us, "%s" through us', (direct, through, expected) => {
    expect(worse(direct, through)).toEqual(expected);
  });

  test('when its scenario was not run to its end', () => {
    expect(worseChecks(checks('a'), undefined)).toEqual([
      { check: '(scenario)', direct: 'run', through: 'not run' },
    ]);
  });

  test('and the words of the suite are kept', () => {
    const now = [{ id: 'a', status: 'FAILURE', errorMessage: 'no progress came' }];
    expect(worseChecks(checks('a'), now)).toMatchObject([{ message: 'no progress came' }]);
  });
});

describe('two runs', () => {
  const required = ['one', 'two'];

  test('are judged scenario by scenario, also those that nobody requires', () => {
    const rows = compareRuns({
      required,
      direct: run({ one: 'a b', two: 'c', beside: 'd' }),
      through: run({ one: 'a b!', two: 'c', beside: 'd!' }),
    });
    expect(rows.map(({ scenario, verdict }) => [scenario, verdict])).toEqual([
      ['one', 'failed'],
      ['two', 'passed'],
      ['beside', 'failed'],
    ]);
    expect(countVerdicts(rows)).toEqual({ passed: 1, failed: 2, notAsked: 0 });
  });

  test('what does not pass without us is not asked of us, unless the generation requires it', () => {
    const rows = compareRuns({
      required,
      direct: run({ one: 'a!', beside: 'd!' }),
      through: run({ one: 'a', beside: 'd!' }),
    });
    expect(rows).toMatchObject([
      { scenario: 'one', verdict: 'failed', problems: [{ check: 'a', direct: 'required' }] },
      { scenario: 'beside', verdict: 'not_asked' },
    ]);
  });

  test('a difference that is meant is none, and no other one of the scenario is meant by it', () => {
    const meant = { scenario: 'one', check: 'a', through: 'INFO', because: 'a note says as much' };
    const judged = (through: string) =>
      compareRuns({ required, direct: run({ one: 'a b' }), through: run({ one: through }), agreed: [meant] });
    expect(judged('a. b')).toMatchObject([{ verdict: 'passed', problems: [] }]);
    expect(judged('a! b')).toMatchObject([{ verdict: 'failed' }]);
    expect(judged('a. b!')).toMatchObject([{ verdict: 'failed', problems: [{ check: 'b' }] }]);
  });

  test('an agreed difference that is none any more is told, so that it is taken back', () => {
    const meant = { scenario: 'one', check: 'a', through: 'INFO', because: 'it was so once' };
    const rows = compareRuns({
      required,
      direct: run({ one: 'a' }),
      through: run({ one: 'a' }),
      agreed: [meant],
    });
    expect(rows).toMatchObject([
      { verdict: 'failed', problems: [{ direct: 'agreed INFO', through: 'not so' }] },
    ]);
  });

  test('a run through us that did not come about fails in every scenario', () => {
    const rows = compareRuns({ required, direct: run({ one: 'a', two: 'b' }), through: new Map() });
    expect(countVerdicts(rows)).toEqual({ passed: 0, failed: 2, notAsked: 0 });
  });
});

describe('one run alone', () => {
  test('fails where something required fails, shows nothing, or was not run', () => {
    const rows = judgeRun({
      required: ['good', 'bad', 'empty', 'absent'],
      run: run({ good: 'a', bad: 'a b!', empty: '', beside: 'z!' }),
    });
    expect(rows.map(({ scenario, verdict }) => `${scenario} ${verdict}`)).toEqual([
      'good passed',
      'bad failed',
      'empty failed',
      'absent failed',
    ]);
    expect(rows.every(({ verdict, problems }) => verdict === 'passed' || problems.length > 0)).toBe(true);
  });

  test('says why something is not asked of us', () => {
    const rows = judgeRun({ required: ['x'], run: run({ x: 'a!' }), notOurs: { x: 'another does it' } });
    expect(rows).toEqual([{ scenario: 'x', verdict: 'not_asked', problems: [], because: 'another does it' }]);
  });
});
