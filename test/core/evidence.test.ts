import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Attempt } from '../../src/core/attempt.ts';
import { type Evidence, effectOf, type Finding } from '../../src/core/evidence.ts';
import type { Effect } from '../../src/core/lifecycle.ts';
import {
  ABSENT,
  ACCEPTED,
  attemptOf,
  CANNOT_TELL,
  ERROR,
  evidenceOf,
  FINDINGS,
  IN_PROGRESS,
  INCONCLUSIVE,
  LATER_WRITER,
  LOST,
  MATCHES,
  NOBODY_WROTE,
  NOT_FOUND,
  NOT_LEFT,
  NOT_READ,
  NOTICE_ACCEPTED,
  NOTICE_REJECTED,
  PRESENT,
  REJECTED,
  REJECTED_FOR_NOW,
  setup,
  setupLost,
  TWO_FOUND,
} from './fixtures.ts';

const FIRST = 'att_1';
const SECOND = 'att_2';

/** The effect of so many closed attempts under this evidence, given as [finding, attempt] in order of arrival. */
function effectAfter(
  attempts: number,
  ...pieces: readonly (readonly [Finding, (string | undefined)?])[]
): Effect {
  const made = Array.from({ length: attempts }, (_, index) => attemptOf(index + 1));
  return effectOf(
    made,
    pieces.map(([finding, attempt]) => evidenceOf(finding, attempt)),
  );
}

test('a repeat under a guard and its first try may both be acknowledged: that is one write (D7)', () => {
  const first = attemptOf(1);
  const repeat: Attempt = { ...attemptOf(2), under: 'request_key' };
  const both = [evidenceOf(ACCEPTED, FIRST), evidenceOf(ACCEPTED, SECOND)];
  expect(effectOf([first, repeat], both)).toBe('accepted');
  expect(effectOf([first, repeat], both.toReversed())).toBe('accepted');
  // Without a guard two were made; and what was proven absent has not been replayed.
  expect(effectOf([first, attemptOf(2)], both)).toBe('diverged');
  expect(effectOf([first, repeat], [evidenceOf(ABSENT, FIRST), ...both])).toBe('diverged');
});

describe('each effect is claimed only with its evidence (D4, I7)', () => {
  const ROWS: readonly (readonly [string, readonly Finding[], Effect])[] = [
    ['nothing at all', [], 'unknown'],
    ['a proof that nothing left', [NOT_LEFT], 'not_sent'],
    ['a connection lost after bytes may have left', [LOST], 'unknown'],
    ['an answer that it is still worked on (a 202)', [IN_PROGRESS], 'unknown'],
    ['an acknowledgement', [ACCEPTED], 'accepted'],
    ['a callback', [LOST, NOTICE_ACCEPTED], 'accepted'],
    ['the own result found', [LOST, PRESENT], 'accepted'],
    ['a definitive refusal', [REJECTED], 'rejected'],
    ['a refusal for now', [REJECTED_FOR_NOW], 'rejected'],
    ['a refusing callback', [LOST, NOTICE_REJECTED], 'rejected'],
    ['a complete error of no stated meaning', [ERROR], 'error_reported'],
    ['an absence that counts', [LOST, ABSENT], 'absent'],
    ['a look-up that found nothing but may not count', [LOST, NOT_FOUND], 'unknown'],
    ['a look-up without an answer', [LOST, INCONCLUSIVE], 'unknown'],
    ['more than one record', [LOST, TWO_FOUND], 'diverged'],
    ['an acknowledgement and an equal read-back', [ACCEPTED, MATCHES], 'verified'],
    ['a found record and an equal read-back', [LOST, PRESENT, MATCHES], 'verified'],
    ['an acknowledgement and a read-back without an answer', [ACCEPTED, NOT_READ], 'accepted'],
    ['an equal read-back alone: another may have written the same', [LOST, MATCHES], 'unknown'],
    ['an error, and a look-up that finds the record', [ERROR, PRESENT], 'accepted'],
    ['an error, and an absence that counts', [ERROR, ABSENT], 'absent'],
    ['an error, and a late acknowledgement', [ERROR, ACCEPTED], 'accepted'],
    ['still worked on, then acknowledged', [IN_PROGRESS, NOTICE_ACCEPTED], 'accepted'],
  ];
  for (const [given, findings, effect] of ROWS) {
    test(`${given}: ${effect}`, () => {
      expect(effectAfter(1, ...findings.map((finding) => [finding, FIRST] as const))).toBe(effect);
    });
  }

  test('before any attempt nothing was sent, whatever was found', () => {
    for (const finding of FINDINGS) expect(effectOf([], [evidenceOf(finding)])).toBe('not_sent');
  });
});

describe('not_sent', () => {
  test('is claimed only when every attempt is proven never to have left', () => {
    expect(effectAfter(2, [NOT_LEFT, FIRST], [NOT_LEFT, SECOND])).toBe('not_sent');
    expect(effectAfter(2, [NOT_LEFT, FIRST], [LOST, SECOND])).toBe('unknown');
    expect(effectAfter(2, [LOST, FIRST], [NOT_LEFT, SECOND])).toBe('unknown');
    expect(effectAfter(2, [NOT_LEFT, SECOND])).toBe('unknown');
  });

  test('is not what an operation shows that was refused once and did not leave the second time', () => {
    expect(effectAfter(2, [REJECTED_FOR_NOW, FIRST], [NOT_LEFT, SECOND])).toBe('rejected');
    expect(effectAfter(2, [ABSENT, FIRST], [NOT_LEFT, SECOND])).toBe('absent');
  });
});

/** What is known by attempt, from 1; under 0 what names none. */
type ByAttempt = { readonly [number: number]: readonly Finding[] };

describe('contradictions are diverged', () => {
  const ROWS: readonly (readonly [string, ByAttempt])[] = [
    ['presence of an attempt whose absence was claimed', { 1: [LOST, ABSENT, ACCEPTED] }],
    ['the same by callback', { 1: [ABSENT, NOTICE_ACCEPTED] }],
    ['found after it was looked for and not there', { 1: [ABSENT, PRESENT] }],
    ['found, and not saying of which attempt', { 0: [PRESENT], 1: [ABSENT] }],
    ['a refusal and an acknowledgement', { 1: [REJECTED, ACCEPTED] }],
    ['a refusal for now and a record', { 1: [REJECTED_FOR_NOW, PRESENT] }],
    ['a refusal and a record', { 1: [REJECTED, PRESENT] }],
    ['a refusing callback after an acknowledgement', { 1: [ACCEPTED, NOTICE_REJECTED] }],
    ['a proof that nothing left and a record', { 1: [NOT_LEFT, PRESENT] }],
    ['a proof that nothing left and an acknowledgement', { 1: [NOT_LEFT, ACCEPTED] }],
    ['a proof that nothing left and an answer that it is worked on', { 1: [NOT_LEFT, IN_PROGRESS] }],
    ['a proof that nothing left and an error in answer', { 1: [NOT_LEFT, ERROR] }],
    ['the same of one attempt among several', { 1: [LOST], 2: [NOT_LEFT, ERROR], 3: [LOST] }],
    ['two presences', { 1: [ACCEPTED], 2: [ACCEPTED] }],
    ['two presences, one by callback', { 1: [NOTICE_ACCEPTED], 2: [ACCEPTED] }],
    ['found before the second attempt, which is acknowledged too', { 1: [PRESENT], 2: [ACCEPTED] }],
    ['found and from the first, whose absence was claimed', { 1: [ABSENT, PRESENT], 2: [LOST] }],
    ['found, and from no attempt', { 1: [ABSENT], 2: [NOT_LEFT, PRESENT] }],
    ['a late reply of the first, when the second was acknowledged', { 1: [ABSENT, ACCEPTED], 2: [ACCEPTED] }],
    ['more than one record', { 1: [TWO_FOUND] }],
    ['acknowledged, read back unequal, and nobody wrote since', { 1: [ACCEPTED, NOBODY_WROTE] }],
    ['found, read back unequal, and nobody wrote since', { 1: [PRESENT, NOBODY_WROTE] }],
  ];
  for (const [given, known] of ROWS) {
    test(given, () => {
      const attempts = Object.keys(known).filter((number) => number !== '0').length;
      const pieces = Object.entries(known).flatMap(([number, findings]) =>
        findings.map((finding) => [finding, number === '0' ? undefined : `att_${number}`] as const),
      );
      expect(effectAfter(attempts, ...pieces)).toBe('diverged');
      expect(effectAfter(attempts, ...pieces.toReversed())).toBe('diverged');
    });
  }

  test('also while a later attempt is out', () => {
    const attempts = [attemptOf(1), attemptOf(2, { open: true })];
    const pieces = [evidenceOf(ABSENT, FIRST), evidenceOf(ACCEPTED, FIRST)];
    expect(effectOf(attempts, pieces)).toBe('diverged');
  });

  test('stay diverged when the later attempt comes back', () => {
    for (const finding of FINDINGS) {
      expect(effectAfter(2, [ABSENT, FIRST], [ACCEPTED, FIRST], [finding, SECOND])).toBe('diverged');
    }
  });
});

describe('no contradiction is', () => {
  test('a record found after a second attempt, when only the first is known not to have taken effect', () => {
    expect(effectAfter(2, [ABSENT, FIRST], [LOST, SECOND], [PRESENT, SECOND])).toBe('accepted');
    expect(effectAfter(2, [REJECTED_FOR_NOW, FIRST], [PRESENT, SECOND])).toBe('accepted');
  });

  test('an acknowledgement and the record that it is about', () => {
    expect(effectAfter(1, [ACCEPTED, FIRST], [PRESENT, FIRST])).toBe('accepted');
    expect(effectAfter(2, [ABSENT, FIRST], [ACCEPTED, SECOND], [PRESENT, SECOND])).toBe('accepted');
  });

  test('a read-back that shows the old value before anything acknowledged the write', () => {
    expect(effectAfter(1, [LOST, FIRST], [NOBODY_WROTE, FIRST])).toBe('unknown');
  });

  test('evidence that names no attempt of this operation', () => {
    expect(effectAfter(1, [NOT_LEFT, FIRST], [ACCEPTED, 'att_of_another'])).toBe('not_sent');
  });
});

describe('a read-back', () => {
  test('that differs because somebody wrote later leaves it accepted', () => {
    expect(effectAfter(1, [ACCEPTED, FIRST], [LATER_WRITER, FIRST])).toBe('accepted');
  });

  test('that differs without a version to tell why leaves it accepted', () => {
    expect(effectAfter(1, [ACCEPTED, FIRST], [CANNOT_TELL, FIRST])).toBe('accepted');
  });

  test('never lowers what was verified, when it shows later edits', () => {
    expect(effectAfter(1, [ACCEPTED, FIRST], [MATCHES, FIRST], [LATER_WRITER, FIRST])).toBe('verified');
    expect(effectAfter(1, [ACCEPTED, FIRST], [MATCHES, FIRST], [CANNOT_TELL, FIRST])).toBe('verified');
  });

  test('verifies nothing that was sent after it', () => {
    expect(effectAfter(2, [ABSENT, FIRST], [MATCHES, FIRST], [ACCEPTED, SECOND])).toBe('accepted');
    expect(effectAfter(2, [ABSENT, FIRST], [ACCEPTED, SECOND], [MATCHES, SECOND])).toBe('verified');
  });
});

describe('an absence', () => {
  test('is about the attempts that had started, and no later one', () => {
    expect(effectAfter(2, [ABSENT, FIRST], [LOST, SECOND])).toBe('unknown');
    expect(effectAfter(2, [ABSENT, SECOND], [LOST, SECOND])).toBe('absent');
  });

  test('that names no attempt claims nothing', () => {
    expect(effectAfter(1, [LOST, FIRST], [ABSENT])).toBe('unknown');
  });
});

describe('while an attempt is out', () => {
  test('its result is unknown, whatever is known of an earlier one without contradiction', () => {
    const open = attemptOf(2, { open: true });
    expect(effectOf([attemptOf(1), open], [evidenceOf(ACCEPTED, FIRST)])).toBe('unknown');
    expect(effectOf([attemptOf(1), open], [evidenceOf(REJECTED_FOR_NOW, FIRST)])).toBe('unknown');
    expect(effectOf([attemptOf(1), open], [evidenceOf(ABSENT, FIRST)])).toBe('unknown');
  });
});

describe('late evidence moves the operation (D4)', () => {
  test('a reply after closing as unknown makes it accepted, and flags the statement', () => {
    const lost = setupLost();
    lost.states('stated_not_happened');
    lost.giveUp();
    lost.learn(ACCEPTED);
    expect(lost.state).toBe('closed accepted');
    expect(lost.operation.resolution).toMatchObject({
      resolution: 'stated_not_happened',
      contradicted: true,
    });
  });

  test('"it happened" is contradicted by a proof that nothing left', () => {
    const lost = setupLost();
    lost.states('stated_happened');
    lost.learn(NOT_LEFT);
    expect(lost.state).toBe('closed not_sent');
    expect(lost.operation.resolution?.contradicted).toBe(true);
  });

  test('"it did not happen" is contradicted by a verified write, and by two records', () => {
    const verified = setupLost();
    verified.states('stated_not_happened');
    verified.learn(MATCHES);
    verified.learn(PRESENT);
    expect(verified.state).toBe('closed verified');
    expect(verified.operation.resolution?.contradicted).toBe(true);
    const several = setupLost();
    several.states('stated_not_happened');
    several.learn(TWO_FOUND);
    expect(several.state).toBe('parked diverged');
    expect(several.operation.resolution?.contradicted).toBe(true);
  });

  test('a statement that the evidence bears out is not flagged', () => {
    const lost = setupLost();
    lost.states('stated_happened');
    lost.learn(ACCEPTED);
    expect(lost.operation.resolution?.contradicted).toBeUndefined();
  });

  test('a notice next day, after a refusal closed it, is an incident for a person', () => {
    const refused = setup();
    refused.start();
    refused.comesBack(REJECTED);
    refused.deliver();
    refused.pass(24 * 3_600_000);
    refused.learn(NOTICE_ACCEPTED);
    expect(refused.state).toBe('parked diverged');
    expect(refused.operation.why).toEqual({ code: 'contradiction' });
  });
});

// ── Properties ─────────────────────────────────────────────────────────────────────────────────────────────

interface Known {
  readonly attempts: readonly Attempt[];
  readonly evidence: readonly Evidence[];
}

const known: fc.Arbitrary<Known> = fc
  .integer({ min: 1, max: 4 })
  .chain((count) =>
    fc.record({
      open: fc.boolean(),
      evidence: fc.array(
        fc.record({
          finding: fc.constantFrom(...FINDINGS),
          about: fc.option(fc.integer({ min: 1, max: count }), { freq: 8, nil: undefined }),
        }),
        { maxLength: 8 },
      ),
      count: fc.constant(count),
    }),
  )
  .map(({ count, evidence, open }) => ({
    // Only the newest can still be out: the next is started when the one before has come back or is fenced.
    attempts: Array.from({ length: count }, (_, index) =>
      attemptOf(index + 1, { open: open && index === count - 1 }),
    ),
    evidence: evidence.map(({ about, finding }) =>
      evidenceOf(finding, about === undefined ? undefined : `att_${about}`),
    ),
  }));

function shuffled<T>(list: readonly T[], order: readonly number[]): T[] {
  return list
    .map((item, index) => ({ item, place: order[index] ?? 0 }))
    .sort((one, other) => one.place - other.place)
    .map(({ item }) => item);
}

const closed = (attempts: readonly Attempt[]): readonly Attempt[] =>
  attempts.map((attempt) => ({ ...attempt, open: false }));

const RUNS = { numRuns: 3_000 };

describe('for any evidence', () => {
  test('the order in which it arrived does not matter', () => {
    fc.assert(
      fc.property(
        known,
        fc.array(fc.integer(), { minLength: 8, maxLength: 8 }),
        ({ attempts, evidence }, order) => {
          expect(effectOf(attempts, shuffled(evidence, order))).toBe(effectOf(attempts, evidence));
        },
      ),
      RUNS,
    );
  });

  test('that arrives twice nothing changes', () => {
    fc.assert(
      fc.property(known, fc.nat(), ({ attempts, evidence }, which) => {
        const again = evidence.length === 0 ? [] : [evidence[which % evidence.length] as Evidence];
        expect(effectOf(attempts, [...evidence, ...again])).toBe(effectOf(attempts, evidence));
      }),
      RUNS,
    );
  });

  test('no effect is claimed without the pieces that D4 asks for (I7)', () => {
    fc.assert(
      fc.property(known, ({ attempts, evidence }) => {
        const effect = effectOf(attempts, evidence);
        expect(supports(effect, attempts, evidence), effect).toBe(true);
      }),
      RUNS,
    );
  });

  test('without any of it a started attempt is unknown', () => {
    fc.assert(
      fc.property(known, ({ attempts }) => {
        expect(effectOf(attempts, [])).toBe('unknown');
      }),
    );
  });

  test('a contradiction is never taken back by more evidence', () => {
    fc.assert(
      fc.property(known, known, ({ attempts, evidence }, more) => {
        fc.pre(effectOf(attempts, evidence) === 'diverged');
        expect(effectOf(attempts, [...evidence, ...more.evidence])).toBe('diverged');
      }),
      RUNS,
    );
  });

  test('what is established of closed attempts is never unknown again by more evidence', () => {
    fc.assert(
      fc.property(known, known, ({ attempts, evidence }, more) => {
        const settled = closed(attempts);
        fc.pre(effectOf(settled, evidence) !== 'unknown');
        expect(effectOf(settled, [...evidence, ...more.evidence])).not.toBe('unknown');
      }),
      RUNS,
    );
  });

  test('verified is lowered by nothing but a contradiction', () => {
    fc.assert(
      fc.property(known, fc.constantFrom(...FINDINGS), ({ attempts, evidence }, finding) => {
        const verified = [
          ...evidence,
          evidenceOf(ACCEPTED, FIRST),
          evidenceOf(MATCHES, `att_${attempts.length}`),
        ];
        fc.pre(effectOf(closed(attempts), verified) === 'verified');
        const after = effectOf(closed(attempts), [...verified, evidenceOf(finding, FIRST)]);
        expect(['verified', 'diverged']).toContain(after);
        if (finding.kind === 'readback' && finding !== NOBODY_WROTE) expect(after).toBe('verified');
      }),
      RUNS,
    );
  });

  test('pieces that claim nothing change nothing', () => {
    fc.assert(
      fc.property(
        known,
        fc.constantFrom(LOST, NOT_FOUND, INCONCLUSIVE, NOT_READ),
        ({ attempts, evidence }, finding) => {
          expect(effectOf(attempts, [...evidence, evidenceOf(finding, FIRST)])).toBe(
            effectOf(attempts, evidence),
          );
        },
      ),
      RUNS,
    );
  });
});

/** Whether the pieces that D4 asks for are there, told without the code under test. */
function supports(effect: Effect, attempts: readonly Attempt[], evidence: readonly Evidence[]): boolean {
  const has = (...findings: readonly Finding[]) => evidence.some((piece) => isAnyOf(piece, findings));
  switch (effect) {
    case 'not_sent':
      return attempts.every((attempt) =>
        evidence.some((piece) => piece.attempt === attempt.id && isAnyOf(piece, [NOT_LEFT])),
      );
    case 'unknown':
      return true;
    case 'error_reported':
      return has(ERROR);
    case 'accepted':
      return has(ACCEPTED, PRESENT, NOTICE_ACCEPTED);
    case 'verified':
      return has(ACCEPTED, PRESENT, NOTICE_ACCEPTED) && has(MATCHES);
    case 'rejected':
      return has(REJECTED, REJECTED_FOR_NOW, NOTICE_REJECTED);
    case 'absent':
      return has(ABSENT);
    case 'diverged':
      return evidence.length >= 2 || has(TWO_FOUND);
  }
}

function isAnyOf(piece: Evidence, findings: readonly Finding[]): boolean {
  return findings.some((finding) =>
    Object.entries(finding).every(([member, value]) => piece[member as keyof Evidence] === value),
  );
}
