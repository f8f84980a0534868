import { describe, expect, test } from 'vitest';
import type { Grade, Lookup, ToolFacts } from '../../src/core/contract.ts';
import type { Finding } from '../../src/core/evidence.ts';
import {
  absenceCountsFrom,
  type Bounds,
  DEFAULT_BOUNDS,
  isAbsenceProof,
  type NextStep,
  nextStep,
  usableLookups,
} from '../../src/core/repeatability.ts';
import {
  ABSENT,
  ACCEPTED,
  contractOf,
  ERROR,
  factsOf,
  factsWithLookup,
  HOUR_MS,
  IN_PROGRESS,
  INCONCLUSIVE,
  LOST,
  lookupOf,
  MATCHES,
  MINUTE_MS,
  NOT_FOUND,
  NOT_LEFT,
  NOT_READ,
  NOTICE_REJECTED,
  PRESENT,
  READ_BACK,
  REJECTED,
  REJECTED_FOR_NOW,
  SECOND_MS,
  type Setup,
  setup,
  T0,
} from './fixtures.ts';

const GRADES: readonly Grade[] = ['documented', 'source', 'drilled', 'reported', 'assumed', 'not_documented'];
const TRUSTED: readonly Grade[] = ['documented', 'source', 'drilled'];

/** After `sendBy`, the contract's 30 s for what is still on its way. */
const COUNTS_FROM = T0 + DEFAULT_BOUNDS.sendByMs + 30 * SECOND_MS;

const GUARD = {
  kind: 'request_key',
  carrier: { in: 'header', name: 'Idempotency-Key' },
  scope: [],
  window: { kind: 'duration', at_least: 'PT24H', after: 'executes_again' },
  same: { result: 'replays_original' },
  different: { result: 'rejected' },
  in_flight: { result: 'unknown' },
  evidence: { grade: 'documented' },
  strength: 'enforced',
} as const;

/** An operation of one attempt of which this is known, in order of arrival; its facts are the strongest. */
function knowing(...findings: readonly Finding[]): Setup {
  const bundle = setup({ facts: factsWithLookup() });
  bundle.start();
  for (const finding of findings) bundle.comesBack(finding);
  return bundle;
}

function stepAfter(
  findings: readonly Finding[],
  facts: ToolFacts,
  { at = T0, bounds = {} }: { readonly at?: number; readonly bounds?: Partial<Bounds> } = {},
): NextStep {
  return nextStep(knowing(...findings).operation, facts, { ...DEFAULT_BOUNDS, ...bounds }, at);
}

/** The step, and why where it ends or parks, as one text. */
const inWords = (step: NextStep): string => ('why' in step ? `${step.step} ${step.why.code}` : step.step);

describe('step 0: what is settled by the answer itself', () => {
  const STRONG = factsWithLookup();
  const ROWS: readonly (readonly [string, readonly Finding[], ToolFacts, string])[] = [
    ['a definitive refusal closes', [REJECTED], STRONG, 'close answered'],
    ['a refusing callback closes', [LOST, NOTICE_REJECTED], STRONG, 'close answered'],
    ['a refusal for now is sent again', [REJECTED_FOR_NOW], STRONG, 'send_again'],
    [
      'a refusal for now that is definitive by callback closes',
      [REJECTED_FOR_NOW, NOTICE_REJECTED],
      STRONG,
      'close answered',
    ],
    ['a proof that nothing left is sent again', [NOT_LEFT], STRONG, 'send_again'],
    ['the same without a contract', [NOT_LEFT], factsOf(), 'send_again'],
    ['a complete error closes, whatever could be looked up', [ERROR], STRONG, 'close answered'],
    ['an acknowledgement closes', [ACCEPTED], STRONG, 'close answered'],
    [
      'an acknowledgement is read back where the contract can',
      [ACCEPTED],
      factsOf({ operation: contractOf({ readback: READ_BACK }) }),
      'read_back',
    ],
    [
      'once, also when that gave no answer',
      [ACCEPTED, NOT_READ],
      factsOf({ operation: contractOf({ readback: READ_BACK }) }),
      'close answered',
    ],
    ['what is verified closes', [ACCEPTED, MATCHES], STRONG, 'close answered'],
    ['what contradicts itself is parked', [REJECTED, ACCEPTED], STRONG, 'park contradiction'],
  ];
  for (const [given, findings, facts, expected] of ROWS) {
    test(given, () => {
      expect(inWords(stepAfter(findings, facts))).toBe(expected);
    });
  }
});

describe('step 1: look-ups first', () => {
  test('without a contract nothing is looked up or repeated', () => {
    expect(inWords(stepAfter([LOST], factsOf()))).toBe('park no_lookup');
    expect(inWords(stepAfter([IN_PROGRESS], factsOf()))).toBe('park no_lookup');
  });

  test('a guard alone never leads to a second send', () => {
    const guarded = factsOf({ operation: contractOf({ guards: [GUARD] }) });
    expect(inWords(stepAfter([LOST], guarded))).toBe('park no_lookup');
    const both = factsOf({ operation: contractOf({ guards: [GUARD], lookups: [lookupOf()] }) });
    expect(inWords(stepAfter([LOST], both))).toBe('look_up');
  });

  test('the unknown is looked up, also when the contract is past its review date', () => {
    const overdue = factsWithLookup({}, { contract: { id: 'tasks', revision: 3, reviewBy: '2020-01-01' } });
    expect(inWords(stepAfter([LOST], overdue))).toBe('look_up');
  });

  test('and also when the caller took its call back, or it was superseded', () => {
    const cancelled = knowing(LOST);
    cancelled.cancel();
    const superseded = knowing(LOST);
    superseded.supersede();
    for (const { operation } of [cancelled, superseded]) {
      expect(inWords(nextStep(operation, factsWithLookup(), DEFAULT_BOUNDS, T0))).toBe('look_up');
    }
  });

  test('what is present is accepted, and closes', () => {
    expect(inWords(stepAfter([LOST, PRESENT], factsWithLookup()))).toBe('close answered');
  });

  test('only look-ups that can be asked count, best first', () => {
    const { tool: _, ...elsewhere } = lookupOf({ by: 'event_feed' });
    const unproved = lookupOf({ by: 'list_scan', evidence: { grade: 'not_documented' } });
    const usable = lookupOf({ by: 'natural_fields' });
    const last = lookupOf({ by: 'list_scan' });
    expect(usableLookups(contractOf({ lookups: [elsewhere, unproved, usable, last] }))).toEqual([
      usable,
      last,
    ]);
    expect(usableLookups(undefined)).toEqual([]);
    const none = factsOf({ operation: contractOf({ lookups: [elsewhere, unproved] }) });
    expect(inWords(stepAfter([LOST], none))).toBe('park no_lookup');
  });

  describe('an absence counts', () => {
    interface Row {
      readonly given: string;
      readonly lookup?: Partial<Lookup>;
      /** The contract's; `undefined`: it is silent. */
      readonly lateArrival?: string | undefined;
      /** From `sendBy`; `never`. */
      readonly afterMs: number | 'never';
    }
    const AFTER_SETTLE = { present: 'applied', absent: 'not_applied_after_settle' } as const;
    const ROWS: readonly Row[] = [
      { given: 'read after write, once nothing can land any more', afterMs: 30 * SECOND_MS },
      { given: 'a silent contract: 15 minutes', lateArrival: undefined, afterMs: 15 * MINUTE_MS },
      { given: 'late arrival none at all', lateArrival: 'PT0S', afterMs: 0 },
      {
        given: 'a settle time, for what lands last has to be seen as well',
        lookup: { consistency: { kind: 'eventual', settle: 'PT10M' }, proves: AFTER_SETTLE },
        afterMs: 10 * MINUTE_MS + 30 * SECOND_MS,
      },
      {
        given: 'a settle time and a silent contract',
        lookup: { consistency: { kind: 'eventual', settle: 'PT10S' }, proves: AFTER_SETTLE },
        lateArrival: undefined,
        afterMs: 15 * MINUTE_MS + 10 * SECOND_MS,
      },
      {
        given: 'eventual without a settle time',
        lookup: { consistency: { kind: 'eventual' }, proves: AFTER_SETTLE },
        afterMs: 'never',
      },
      {
        given: 'eventual with a settle time that cannot be read',
        lookup: { consistency: { kind: 'eventual', settle: 'ten minutes' }, proves: AFTER_SETTLE },
        afterMs: 'never',
      },
      {
        given: 'unknown consistency',
        lookup: { consistency: { kind: 'unknown', settle: 'PT1S' } },
        afterMs: 'never',
      },
      {
        given: 'absence proves nothing',
        lookup: { proves: { present: 'applied', absent: 'nothing' } },
        afterMs: 'never',
      },
      ...GRADES.map(
        (grade): Row => ({
          given: `evidence ${grade}`,
          lookup: { evidence: { grade } },
          afterMs: TRUSTED.includes(grade) ? 30 * SECOND_MS : 'never',
        }),
      ),
    ];
    for (const row of ROWS) {
      const { afterMs, given, lookup } = row;
      test(`${given}: ${afterMs === 'never' ? 'never' : `${afterMs / SECOND_MS} s after sendBy`}`, () => {
        const limits = 'lateArrival' in row ? row.lateArrival : 'PT30S';
        const asked = lookupOf(lookup);
        const facts = factsOf({
          operation: contractOf({
            lookups: [asked],
            limits: limits === undefined ? {} : { late_arrival: limits },
          }),
        });
        const { operation } = knowing(LOST);
        const proof = (at: number) => isAbsenceProof(operation, asked, facts, at);
        const sendBy = T0 + DEFAULT_BOUNDS.sendByMs;
        if (afterMs === 'never') {
          for (const at of [T0, sendBy, sendBy + HOUR_MS, sendBy + 1_000 * HOUR_MS])
            expect(proof(at)).toBe(false);
          return;
        }
        expect(proof(sendBy + afterMs)).toBe(true);
        expect(proof(sendBy + afterMs - 1)).toBe(false);
        expect(proof(T0)).toBe(false);
      });
    }

    test('from the last time that any sender may still hand over a byte', () => {
      const tried = setup({ facts: factsWithLookup() });
      tried.start();
      tried.comesBack(REJECTED_FOR_NOW);
      tried.pass(HOUR_MS);
      tried.start();
      tried.comesBack(LOST);
      const facts = factsWithLookup();
      expect(absenceCountsFrom(tried.operation, lookupOf(), facts)).toBe(COUNTS_FROM + HOUR_MS);
    });
  });

  describe('what was looked for and is not there', () => {
    const ROWS: readonly (readonly [string, readonly Lookup[], string])[] = [
      [
        'is sent again where the contract states it of a read-after-write look-up',
        [lookupOf()],
        'send_again',
      ],
      ...GRADES.map(
        (grade) =>
          [
            `needs ${TRUSTED.includes(grade) ? 'nobody' : 'a person'}, when that is ${grade}`,
            [lookupOf({ evidence: { grade } })],
            TRUSTED.includes(grade) ? 'send_again' : 'park absent_needs_decision',
          ] as const,
      ),
      [
        'needs a person when it holds only after a settle time',
        [lookupOf({ proves: { present: 'applied', absent: 'not_applied_after_settle' } })],
        'park absent_needs_decision',
      ],
      [
        'needs a person when the look-up is eventual',
        [lookupOf({ consistency: { kind: 'eventual', settle: 'PT1M' } })],
        'park absent_needs_decision',
      ],
      [
        'needs a person when only a look-up that is not asked would allow it',
        [lookupOf({ proves: { present: 'applied', absent: 'not_applied_after_settle' } }), lookupOf()],
        'park absent_needs_decision',
      ],
      ['needs a person when the contract has gone', [], 'park absent_needs_decision'],
    ];
    for (const [given, lookups, expected] of ROWS) {
      test(given, () => {
        expect(inWords(stepAfter([LOST, ABSENT], factsOf({ operation: contractOf({ lookups }) })))).toBe(
          expected,
        );
      });
    }

    test('is not sent again beyond the bounds, but parked with that send for one decision', () => {
      const used = stepAfter([LOST, ABSENT], factsWithLookup(), { bounds: { attemptsMax: 1 } });
      expect(inWords(used)).toBe('park absent_needs_decision');
    });
  });

  describe('when to look', () => {
    test('at once, then at growing distances, and on the instant at which absence first counts', () => {
      const looking = knowing(LOST);
      const waits: number[] = [];
      while (looking.now < COUNTS_FROM) {
        const { why } = looking.operation;
        if (why?.code !== 'looking_up') throw new Error(`unexpected ${why?.code ?? 'nothing'}`);
        waits.push(why.nextAt - looking.now);
        looking.pass(why.nextAt - looking.now);
        looking.learn(NOT_FOUND);
      }
      expect(waits).toEqual([0, 500, 1_000, 2_000, 5_000, 10_000, 13_500]);
      expect(looking.now).toBe(COUNTS_FROM);
    });

    test('goes on after that instant while nobody answers, and ends with a person', () => {
      const at = (ms: number) => stepAfter([LOST, INCONCLUSIVE], factsWithLookup(), { at: COUNTS_FROM + ms });
      expect(inWords(at(0))).toBe('look_up');
      // Its health is the only obstacle: the longer bound of D8 counts, from when the checking began.
      expect(inWords(at(DEFAULT_BOUNDS.elapsedMaxMs))).toBe('look_up');
      expect(inWords(at(DEFAULT_BOUNDS.elapsedMaxMs + 1))).toBe('park lookups_exhausted');
      // A look-up that can prove no absence may still find the record, once it answers.
      const weak = factsWithLookup({ proves: { present: 'applied', absent: 'nothing' } });
      const late = setup({ facts: weak });
      late.start();
      late.comesBack(LOST);
      late.pass(COUNTS_FROM - T0);
      late.learn(INCONCLUSIVE);
      expect(late.state).toBe('checking unknown');
    });

    test('ends at that instant where absence can prove nothing', () => {
      for (const lookup of [
        { proves: { present: 'applied', absent: 'nothing' } },
        { evidence: { grade: 'assumed' } },
        { evidence: { grade: 'reported' } },
        { consistency: { kind: 'unknown' } },
        { consistency: { kind: 'eventual' } },
      ] as const) {
        const looking = setup({ facts: factsWithLookup(lookup) });
        looking.start();
        looking.comesBack(LOST);
        looking.learn(NOT_FOUND);
        expect(looking.state).toBe('checking unknown');
        looking.pass(COUNTS_FROM - T0 - 1);
        looking.learn(NOT_FOUND);
        expect(looking.state).toBe('checking unknown');
        looking.pass(1);
        looking.learn(NOT_FOUND);
        expect(looking.state).toBe('parked unknown');
        expect(looking.operation.why?.code).toBe('lookups_exhausted');
      }
    });

    test('what the destination still works on is asked again, and says so', () => {
      expect(inWords(stepAfter([IN_PROGRESS], factsWithLookup()))).toBe('ask_again');
      const again = setup({ facts: factsWithLookup() });
      again.start();
      again.comesBack(IN_PROGRESS);
      again.learn(ABSENT);
      again.start();
      again.comesBack(LOST);
      expect(again.operation.why?.code).toBe('looking_up');
    });
  });
});

describe('sending again is bounded (I14)', () => {
  const again = (bounds: Partial<Bounds>, at = T0, ...findings: readonly Finding[]) =>
    inWords(stepAfter(findings, factsWithLookup(), { bounds, at }));

  test('by the number of attempts: unsent work is parked, refused work closes', () => {
    expect(again({ attemptsMax: 2 }, T0, NOT_LEFT)).toBe('send_again');
    expect(again({ attemptsMax: 1 }, T0, NOT_LEFT)).toBe('park bounds_used_up');
    expect(again({ attemptsMax: 1 }, T0, REJECTED_FOR_NOW)).toBe('close answered');
  });

  test('by time since the round began', () => {
    const late = T0 + DEFAULT_BOUNDS.elapsedMaxMs;
    expect(again({}, late, NOT_LEFT)).toBe('send_again');
    expect(again({}, late + 1, NOT_LEFT)).toBe('park bounds_used_up');
    expect(again({}, late + 1, REJECTED_FOR_NOW)).toBe('close answered');
  });

  test('each new round has bounds of its own', () => {
    const refused = setup({ bounds: { attemptsMax: 1 } });
    refused.start();
    refused.comesBack(REJECTED);
    refused.pass(48 * HOUR_MS);
    refused.reopen();
    refused.start();
    refused.comesBack(NOT_LEFT);
    expect(refused.operation.why).toEqual({ code: 'answered' });
    const more = nextStep(refused.operation, factsOf(), { ...DEFAULT_BOUNDS, attemptsMax: 2 }, refused.now);
    expect(inWords(more)).toBe('send_again');
  });

  test('the pauses double from 200 ms to 30 s', () => {
    const tried = setup({ bounds: { attemptsMax: 20 } });
    const pauses: number[] = [];
    for (let tries = 0; tries < 10; tries += 1) {
      tried.start();
      tried.comesBack(NOT_LEFT);
      const { why } = tried.operation;
      pauses.push(why?.code === 'waits_until' ? why.until - tried.now : Number.NaN);
    }
    expect(pauses).toEqual([200, 400, 800, 1_600, 3_200, 6_400, 12_800, 25_600, 30_000, 30_000]);
  });

  test('and ends where the caller took its call back or another took its place', () => {
    const unsent = setup();
    unsent.start();
    unsent.cancel();
    unsent.comesBack(NOT_LEFT);
    const { operation } = unsent;
    expect(inWords(nextStep(operation, factsOf(), DEFAULT_BOUNDS, T0))).toBe('close withdrawn_by_caller');
    const replaced = { ...operation, supersededBy: 'op_9K6' };
    expect(nextStep(replaced, factsOf(), DEFAULT_BOUNDS, T0)).toEqual({
      step: 'close',
      why: { code: 'replaced', by: 'op_9K6' },
    });
  });
});

describe('step 3: never "try and see"', () => {
  test('nothing that is unknown is ever sent again by this algorithm', () => {
    const contracts: readonly ToolFacts[] = [
      factsOf(),
      factsWithLookup(),
      factsOf({ operation: contractOf({ guards: [GUARD], lookups: [lookupOf()] }) }),
      ...GRADES.map((grade) => factsWithLookup({ evidence: { grade } })),
    ];
    for (const facts of contracts) {
      for (const finding of [LOST, IN_PROGRESS, NOT_FOUND, INCONCLUSIVE, NOT_READ]) {
        for (const ms of [0, 31 * SECOND_MS, HOUR_MS, 25 * HOUR_MS]) {
          const step = stepAfter([LOST, finding], facts, { at: T0 + ms });
          expect(['look_up', 'ask_again', 'park']).toContain(step.step);
        }
      }
    }
  });
});
