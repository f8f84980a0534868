import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { authorityFor, isLooserClass, type Strength } from '../../src/core/authority.ts';
import type { Mode, ToolClass } from '../../src/core/contract.ts';
import { unansweredQuestion } from '../../src/core/decide.ts';
import { judgeEqualCall } from '../../src/core/intent.ts';
import { FREE_LOCK, lockAfter, lockedBy } from '../../src/core/locks.ts';
import { ACCEPTED, factsOf, factsWithLookup, HOUR_MS, LOST, NOT_LEFT, setup, T0 } from './fixtures.ts';

const WRITES = ['ordinary', 'interactive', 'unclassified', 'irreversible'] as const;
const MODES = ['observe', 'guard', 'strict'] as const;

function factsIn(mode: Mode, toolClass: ToolClass) {
  return factsOf({ class: toolClass, ...(mode === 'guard' ? {} : { mode }) });
}

describe('who must allow a write', () => {
  test.each([
    ['observe', []],
    ['guard', ['unclassified', 'irreversible']],
    ['strict', ['ordinary', 'interactive', 'unclassified', 'irreversible']],
  ] as const)('%s asks a person for: %s', (mode, asks) => {
    const asked = WRITES.filter((toolClass) => !authorityFor(factsIn(mode, toolClass)).allowed);
    expect(asked).toEqual(asks);
  });

  test('a rule that allows names its mode', () => {
    expect(authorityFor(factsIn('observe', 'irreversible'))).toMatchObject({
      rule: expect.stringMatching(/^observe\/irreversible /),
    });
    expect(authorityFor(factsIn('guard', 'ordinary'))).toMatchObject({
      rule: expect.stringMatching(/^guard\/ordinary /),
    });
  });

  test('a tool that has changed asks that question, whatever it was', () => {
    const facts = factsOf({ class: 'unclassified', changedFrom: 'read' });
    expect(authorityFor(facts)).toEqual({ allowed: false, question: 'tool_changed' });
  });

  test('less careful than before is a matter of the class alone, and no class is looser than itself', () => {
    const classes = ['read', ...WRITES] as const;
    for (const one of classes) expect(isLooserClass(one, one)).toBe(false);
    expect(classes.filter((one) => isLooserClass(one, 'irreversible'))).toEqual([
      'read',
      'ordinary',
      'interactive',
      'unclassified',
    ]);
    expect(classes.filter((one) => isLooserClass(one, 'read'))).toEqual([]);
  });
});

describe('the floor', () => {
  test('in guard and strict nothing irreversible is started without a decision that is stronger than the account', () => {
    const strengths = fc.constantFrom<Strength>('same_account', 'passphrase', 'sso');
    const steps = fc.array(
      fc.record({
        mode: fc.constantFrom<Mode>(...MODES),
        toolClass: fc.constantFrom<ToolClass>(...WRITES),
        strength: strengths,
        decides: fc.boolean(),
      }),
      { maxLength: 6 },
    );
    fc.assert(
      fc.property(
        fc.constantFrom(...WRITES),
        fc.constantFrom<Mode>('guard', 'strict'),
        steps,
        (first, mode, plan) => {
          const one = setup({ facts: factsIn(mode, first) });
          let present: { mode: Mode; toolClass: ToolClass } = { mode, toolClass: first };
          for (const { decides, strength, ...next } of plan) {
            present = next;
            one.changeFacts({
              ...factsIn(next.mode, next.toolClass),
              mode: undefined as never,
              ...(next.mode === 'guard' ? {} : { mode: next.mode }),
            });
            const { operation } = one;
            if (decides && operation.stage === 'awaiting_approval') {
              one.run({
                type: 'decide_review',
                review: operation.review?.id ?? '',
                digest: operation.digest,
                decision: { kind: 'approved', by: 'Mara', at: one.now, strength },
              });
            }
            one.start();
            if (one.operation.stage === 'sending') break;
          }
          const { review, stage } = one.operation;
          if (stage !== 'sending' || present.mode === 'observe' || present.toolClass !== 'irreversible')
            return;
          expect(review?.decision?.kind).toBe('approved');
          expect(review?.decision?.strength).not.toBe('same_account');
        },
      ),
    );
  });
});

test('what a rule had allowed and is irreversible now needs more than the account', () => {
  const one = setup();
  one.changeFacts({ class: 'irreversible' });
  one.start();
  expect(one.operation.review).toMatchObject({
    question: 'irreversible',
    because: { code: 'rule_stricter' },
  });
  const decide = (strength: Strength) =>
    one.run({
      type: 'decide_review',
      review: one.operation.review?.id ?? '',
      digest: one.operation.digest,
      decision: { kind: 'approved', by: 'Mara', at: one.now, strength },
    });
  expect(decide('same_account').refusal).toBe('strength_too_low');
  expect(decide('passphrase').refusal).toBeUndefined();
  one.start();
  expect(one.state).toBe('sending unknown');
});

describe('what is only observed', () => {
  const observed = { guard: 'send' } as const;
  const start = (overrides = {}) =>
    setup({ facts: { ...factsWithLookup(), mode: 'observe', ...overrides }, proposal: { observed } });

  test('is never sent again by us: proven not sent it is closed, unknown it goes to a person', () => {
    const notSent = start();
    notSent.start();
    notSent.comesBack(NOT_LEFT);
    expect(notSent.state).toBe('closed not_sent');
    const lost = setup({ facts: factsOf({ mode: 'observe' }), proposal: { observed } });
    lost.start();
    lost.comesBack(LOST);
    expect(lost.state).toBe('parked unknown');
    expect(lost.orderAgain().refusal).toBe('not_at_this_stage');
  });

  test('takes no lock and stands in no line; that it has settled on its target is noted once', () => {
    const one = start();
    one.start();
    const during = lockAfter(FREE_LOCK, one.operation, true);
    expect(during).toBe(FREE_LOCK);
    expect(lockedBy(during, 'op_other')).toBeUndefined();
    one.comesBack(ACCEPTED);
    const after = lockAfter(during, one.operation, false);
    expect(after).toEqual({ holder: null, line: [], lastSettled: one.operation.id });
    one.deliver();
    const later = { ...after, lastSettled: 'op_later' };
    expect(lockAfter(later, one.operation, false)).toBe(later);
  });

  test('is not carried on by guard: an equal call after it was not sent is an operation of its own', () => {
    const one = start();
    one.start();
    one.comesBack(NOT_LEFT);
    one.deliver();
    const call = {
      at: T0,
      replays: [],
      repeat: 'unique',
      resumeWindowMs: HOUR_MS,
      settledSince: false,
      stillOurs: undefined,
    } as const;
    expect(judgeEqualCall(one.operation, call)).toEqual({ answer: 'next_occurrence' });
  });
});

describe('questions that the class of a tool does not answer', () => {
  test.each(['again', 'many_writes'] as const)('%s stays one until a person has said yes', (question) => {
    const one = setup({ question });
    one.pass(9 * HOUR_MS);
    one.lapse();
    expect(one.state).toBe('closed not_sent');
    expect(unansweredQuestion(one.operation)).toBe(question);
    one.reopen();
    expect(one.operation).toMatchObject({ stage: 'awaiting_approval', review: { question } });
  });

  test('after many writes it waits while a person is asked, and is held when that was a no', () => {
    const one = setup();
    one.start({ goOn: { operation: 'op_9', standing: 'asked' } });
    expect(one.operation).toMatchObject({
      stage: 'ready',
      why: { code: 'waits_for_go_on', operation: 'op_9' },
    });
    expect(one.start({ goOn: { operation: 'op_9', standing: 'asked' } }).refusal).toBe('nothing_to_do');
    one.start({ goOn: { operation: 'op_9', standing: 'refused' } });
    expect(one.operation).toMatchObject({
      stage: 'awaiting_approval',
      review: { question: 'many_writes', because: { code: 'go_on_refused' } },
    });
    one.decides('approved');
    one.start();
    expect(one.state).toBe('sending unknown');
  });
});
