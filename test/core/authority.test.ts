import { describe, expect, test } from 'vitest';
import { authorityFor, hasApproval, judgeSending, type SendingConditions } from '../../src/core/authority.ts';
import type { ToolClass } from '../../src/core/contract.ts';
import type { Operation } from '../../src/core/operation.ts';
import { DEFAULT_BOUNDS } from '../../src/core/repeatability.ts';
import { factsOf, HOUR_MS, LOST, NOT_LEFT, REJECTED_FOR_NOW, setup, T0 } from './fixtures.ts';

const APPROVAL_MS = 8 * HOUR_MS;

function conditionsOf(overrides: Partial<SendingConditions> = {}): SendingConditions {
  return {
    at: T0,
    facts: factsOf(),
    bounds: DEFAULT_BOUNDS,
    digest: 'digest-1',
    connected: true,
    connectionDetail: '',
    lockedBy: undefined,
    unsettledPredecessor: undefined,
    ...overrides,
  };
}

/** What is to be done, and why, as one text. */
function judged(operation: Operation, overrides: Partial<SendingConditions> = {}): string {
  const decision = judgeSending(operation, conditionsOf(overrides));
  return decision.send ? 'send' : `${decision.then} ${decision.why.code}`;
}

const allowedByRule = (): Operation => setup().operation;

function approved(kind: ToolClass = 'irreversible'): Operation {
  const asked = setup({ facts: factsOf({ class: kind }) });
  asked.decides('approved');
  return asked.operation;
}

/** Ordered again and approved, while the first try is unknown. */
function ordered(): Operation {
  const lost = setup();
  lost.start();
  lost.comesBack(LOST);
  lost.states('stated_not_happened');
  lost.orderAgain();
  lost.decides('approved');
  return lost.operation;
}

describe('who must allow a write (D9, guard)', () => {
  const ROWS: readonly (readonly [ToolClass, string])[] = [
    ['ordinary', 'guard/ordinary (binding)'],
    ['interactive', 'guard/interactive (binding)'],
    ['irreversible', 'asks irreversible'],
    ['unclassified', 'asks unclassified'],
  ];
  for (const [kind, expected] of ROWS) {
    test(`${kind}: ${expected}`, () => {
      const authority = authorityFor(factsOf({ class: kind, classSource: 'binding' }));
      expect(authority.allowed ? authority.rule : `asks ${authority.question}`).toBe(expected);
    });
  }

  test('a grant lets through what waits because its server is strict, by name, and nothing that the floor protects', () => {
    const granted = { id: 'grant_1', by: 'Mara' };
    const outcome = (kind: ToolClass): string => {
      const authority = authorityFor(factsOf({ class: kind, mode: 'strict', granted }));
      return authority.allowed ? authority.rule : `asks ${authority.question}`;
    };
    expect(outcome('ordinary')).toBe('grant_1 (given by Mara)');
    expect(outcome('interactive')).toBe('grant_1 (given by Mara)');
    expect(outcome('irreversible')).toBe('asks irreversible');
    expect(outcome('unclassified')).toBe('asks unclassified');
  });

  test('a read needs no authority, so that asking for one is a bug', () => {
    expect(() => authorityFor(factsOf({ class: 'read' }))).toThrow('Assertion');
  });
});

describe('an approval', () => {
  test('holds for its own digest, until its end', () => {
    const operation = approved();
    expect(hasApproval(operation, T0)).toBe(true);
    expect(hasApproval(operation, T0 + APPROVAL_MS)).toBe(true);
    expect(hasApproval(operation, T0 + APPROVAL_MS + 1)).toBe(false);
    expect(hasApproval({ ...operation, digest: 'digest-2' }, T0)).toBe(false);
  });

  test('is neither a rule nor an open or denied review', () => {
    expect(hasApproval(allowedByRule(), T0)).toBe(false);
    const asked = setup({ facts: factsOf({ class: 'irreversible' }) });
    expect(hasApproval(asked.operation, T0)).toBe(false);
    asked.decides('denied');
    expect(hasApproval(asked.operation, T0)).toBe(false);
  });
});

// D8 names more conditions than exist yet: stop, circuit, rate, concurrency, prerequisites and gateways among
// the waits; entitlement, preconditions and exceptions among the holds. Each belongs into a list below.

describe('before every attempt (D8)', () => {
  test('what is allowed and stands against nothing is sent', () => {
    expect(judged(allowedByRule())).toBe('send');
    expect(judged(approved(), { facts: factsOf({ class: 'irreversible' }) })).toBe('send');
    expect(judged(approved('unclassified'), { facts: factsOf({ class: 'unclassified' }) })).toBe('send');
    expect(judged(ordered())).toBe('send');
  });

  test('counts the time for sending from the decision of a person, who may take longer than it', () => {
    const since = { roundBeganAt: T0 - 2 * DEFAULT_BOUNDS.elapsedMaxMs };
    expect(judged({ ...approved(), ...since })).toBe('send');
    expect(judged({ ...allowedByRule(), ...since })).toBe('park bounds_used_up');
  });

  describe('waits', () => {
    const ROWS: readonly (readonly [string, Partial<SendingConditions>, string])[] = [
      ['for the lock of its target', { lockedBy: 'op_9K1' }, 'wait waits_for_operation'],
      [
        'for the operation that it replaces',
        { unsettledPredecessor: 'op_9K2' },
        'wait waits_for_predecessor',
      ],
      [
        'for the destination',
        { connected: false, connectionDetail: 'refused' },
        'wait waits_for_destination',
      ],
    ];
    for (const [given, conditions, expected] of ROWS) {
      test(given, () => {
        for (const operation of [allowedByRule(), approved(), ordered()]) {
          expect(judged(operation, conditions)).toBe(expected);
        }
      });
    }

    test('and names which operation', () => {
      const locked = judgeSending(allowedByRule(), conditionsOf({ lockedBy: 'op_9K1' }));
      expect(locked).toMatchObject({ why: { operation: 'op_9K1' } });
      const behind = judgeSending(
        allowedByRule(),
        conditionsOf({ unsettledPredecessor: 'op_9K2', lockedBy: 'op_9K1' }),
      );
      expect(behind).toMatchObject({ why: { operation: 'op_9K2' } });
    });
  });

  describe('holds', () => {
    test('when the approval has expired', () => {
      expect(judged(approved(), { at: T0 + APPROVAL_MS })).toBe('send');
      expect(judged(approved(), { at: T0 + APPROVAL_MS + 1 })).toBe('hold approval_expired');
    });

    test('when the rule became stricter; equal or looser goes on', () => {
      const now = (kind: ToolClass) => judged(allowedByRule(), { facts: factsOf({ class: kind }) });
      expect(now('irreversible')).toBe('hold rule_stricter');
      expect(now('unclassified')).toBe('hold rule_stricter');
      expect(now('ordinary')).toBe('send');
      expect(now('interactive')).toBe('send');
      expect(now('read')).toBe('send');
    });

    test('also where something else would make it wait', () => {
      const conditions = { at: T0 + APPROVAL_MS + 1, lockedBy: 'op_9K1', connected: false };
      expect(judged(approved(), conditions)).toBe('hold approval_expired');
    });
  });

  describe('parks', () => {
    test('when the payload is not what was decided on', () => {
      for (const operation of [allowedByRule(), approved(), ordered()]) {
        expect(judged(operation, { digest: 'digest-2' })).toBe('park digest_mismatch');
      }
    });

    test('when the approval is of another digest', () => {
      const operation = approved();
      const review = { ...operation.review, digest: 'digest-0' } as NonNullable<Operation['review']>;
      expect(judged({ ...operation, review })).toBe('park digest_mismatch');
    });

    test('when the attempts of its rounds are used up', () => {
      const refused = setup();
      refused.start();
      refused.comesBack(REJECTED_FOR_NOW);
      const bounds = (attemptsMax: number) => ({ bounds: { ...DEFAULT_BOUNDS, attemptsMax } });
      expect(judged(refused.operation, bounds(2))).toBe('send');
      expect(judged(refused.operation, bounds(1))).toBe('park bounds_used_up');
    });

    test('when the time of its round is used up, whatever it waited for', () => {
      const late = T0 + DEFAULT_BOUNDS.elapsedMaxMs;
      expect(judged(allowedByRule(), { at: late })).toBe('send');
      expect(judged(allowedByRule(), { at: late + 1 })).toBe('park bounds_used_up');
      expect(judged(allowedByRule(), { at: late + 1, connected: false })).toBe('park bounds_used_up');
    });

    test('where it would hold, while an earlier try is unknown', () => {
      expect(judged(ordered(), { at: T0 + APPROVAL_MS + 1 })).toBe('park approval_expired');
    });
  });

  test('an approval covers the attempts that follow a proof that nothing left', () => {
    const asked = setup({ facts: factsOf({ class: 'irreversible' }) });
    asked.decides('approved');
    asked.start();
    asked.comesBack(NOT_LEFT);
    expect(judged(asked.operation, { facts: factsOf({ class: 'irreversible' }) })).toBe('send');
  });
});
