import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { authorityFor } from '../../src/core/authority.ts';
import type { ToolClass } from '../../src/core/contract.ts';
import { judgePolicy, type Policy, type PolicyCall, type PolicyRule } from '../../src/core/policy.ts';
import { factsOf, HOUR_MS, MINUTE_MS, setup, setupLost } from './fixtures.ts';

const CALL: PolicyCall = {
  arguments: { amount: 40 },
  requester: 'token:planner',
  run: { id: 'run-1' },
  destination: 'tasks-eu',
  tool: 'create_issue',
  class: 'ordinary',
};
const policyOf = (...rules: readonly PolicyRule[]): Policy => ({ digest: 'policy-1', rules });
const judged = (rules: readonly PolicyRule[], call: Partial<PolicyCall> = {}, counts = {}) =>
  judgePolicy(policyOf(...rules), { ...CALL, ...call }, counts);
const when = (answer: boolean | undefined) => ({ text: 'args.amount < 100', judge: () => answer });

describe('the rules that speak of a call', () => {
  test.each<[string, readonly PolicyRule[], string, string | undefined]>([
    ['none', [{ name: 'a', tools: ['other'], then: 'refuse' }], 'none', undefined],
    ['by class', [{ name: 'a', classes: ['irreversible'], then: 'refuse' }], 'none', undefined],
    ['its condition holds', [{ name: 'a', when: when(true), then: 'ask' }], 'ask', 'then'],
    ['its condition does not hold', [{ name: 'a', when: when(false), then: 'ask' }], 'none', undefined],
    [
      'the strictest of several',
      [
        { name: 'a', then: 'ask' },
        { name: 'b', then: 'refuse' },
      ],
      'refuse',
      'then',
    ],
    ['who may ask', [{ name: 'a', propose: ['token:other'] }], 'refuse', 'propose'],
    ['somebody who may', [{ name: 'a', propose: ['token:planner'] }], 'none', undefined],
    ['who may approve, so that somebody does', [{ name: 'a', approve: ['local:mara'] }], 'ask', 'then'],
    [
      'an allowance beside a question',
      [
        { name: 'a', then: 'allow' },
        { name: 'b', then: 'ask' },
      ],
      'ask',
      'then',
    ],
  ])('%s', (_, rules, outcome, part) => {
    const verdict = judged(rules);
    expect([verdict.outcome, verdict.because?.part]).toEqual([outcome, part]);
  });

  test.each(['allow', 'ask', 'refuse', undefined] as const)(
    'what cannot be judged needs a person, whatever the rule says (%s)',
    (then) => {
      const rule: PolicyRule = { name: 'a', when: when(undefined), ...(then === undefined ? {} : { then }) };
      expect(judged([rule])).toMatchObject({ outcome: 'ask', because: { rule: 'a', part: 'not_judged' } });
      // Not even beside a rule that allows.
      expect(judged([{ name: 'b', then: 'allow' }, rule]).outcome).toBe('ask');
    },
  );

  test('so many writes of a run go without a person', () => {
    const rules = [{ name: 'few', perRun: 2 }];
    expect(judged(rules, {}, { few: 1 }).outcome).toBe('none');
    expect(judged(rules, {}, { few: 2 })).toMatchObject({
      outcome: 'ask',
      because: { rule: 'few', part: 'per_run', limit: 2 },
    });
  });

  test('of demands the strictest counts', () => {
    const { demands } = judged([
      { name: 'two', quorum: 2, lifetimeMs: HOUR_MS },
      { name: 'three', quorum: 3, separate: true, lifetimeMs: 2 * HOUR_MS },
    ]);
    expect(demands).toEqual({
      separate: 'three',
      quorum: { rule: 'three', persons: 3 },
      lifetime: { rule: 'two', ms: HOUR_MS },
    });
  });
});

const classes: readonly ToolClass[] = ['ordinary', 'interactive', 'unclassified', 'irreversible'];
const anyRule: fc.Arbitrary<PolicyRule> = fc.record(
  {
    name: fc.constantFrom('a', 'b', 'c'),
    tools: fc.constantFrom(['create_issue'], ['other']),
    classes: fc.subarray([...classes], { minLength: 1 }),
    when: fc.constantFrom(when(true), when(false), when(undefined)),
    then: fc.constantFrom('allow', 'ask', 'refuse'),
    propose: fc.constantFrom(['token:planner'], ['token:other']),
    approve: fc.constantFrom(['local:mara']),
    quorum: fc.integer({ min: 1, max: 3 }),
    perRun: fc.integer({ min: 1, max: 3 }),
  },
  { requiredKeys: ['name'] },
);

describe('the floor of D9', () => {
  test('is lowered by no rule, and no rule makes a question of the class one that nobody is asked', () => {
    fc.assert(
      fc.property(
        fc.array(anyRule, { maxLength: 5 }),
        fc.constantFrom(...classes),
        fc.constantFrom('guard', 'strict'),
        (rules, toolClass, mode) => {
          const facts = factsOf({ class: toolClass, ...(mode === 'strict' ? { mode } : {}) });
          const alone = authorityFor(facts);
          const together = authorityFor(facts, judged(rules, { class: toolClass }));
          if (toolClass === 'irreversible' || toolClass === 'unclassified')
            expect(together.allowed).toBe(false);
          // In `strict` an ordinary write may be let go by name; else rules only add.
          if (!alone.allowed && alone.question !== 'strict') expect(together.allowed).toBe(false);
        },
      ),
    );
  });

  test('a rule may let an ordinary write of a strict server go, and is named', () => {
    const strict = factsOf({ mode: 'strict' });
    expect(authorityFor(strict, judged([{ name: 'small', then: 'allow' }]))).toEqual({
      allowed: true,
      rule: 'policy: small',
    });
  });
});

describe('an approval under rules', () => {
  const verdict = judged([{ name: 'two of them', approve: ['Mara', 'Luis', 'local:ana'], quorum: 2 }]);

  test('wants distinct persons of its list on one digest; one denial ends it', () => {
    const one = setup({ verdict });
    expect(one.decides('approved', { by: 'Eve' })).toEqual({ refusal: 'not_an_approver' });
    one.decides('approved', { by: 'Mara' });
    expect(one.state).toBe('awaiting_approval not_sent');
    expect(one.decides('approved', { by: 'Mara' })).toEqual({ refusal: 'already_decided' });
    one.decides('approved', { by: 'Luis' });
    expect(one.state).toBe('ready not_sent');
    one.start({ verdict });
    expect(one.state).toBe('sending unknown');

    const other = setup({ verdict });
    other.decides('approved', { by: 'Mara' });
    other.decides('denied', { by: 'Luis' });
    expect(other.state).toBe('closed not_sent');
  });

  test('is not given by whoever asked, where a rule wants two', () => {
    const one = setup({
      proposal: { requester: 'Mara' },
      verdict: judged([{ name: 'four eyes', then: 'ask', separate: true }]),
    });
    expect(one.decides('approved', { by: 'Mara' })).toEqual({ refusal: 'own_request' });
    one.decides('approved', { by: 'Luis' });
    expect(one.state).toBe('ready not_sent');
  });

  test('ends with the lifetime that a rule gives it', () => {
    const short = judged([{ name: 'short', then: 'ask', lifetimeMs: MINUTE_MS }]);
    const one = setup({ verdict: short });
    one.decides('approved');
    one.pass(MINUTE_MS + 1);
    one.start({ verdict: short });
    expect(one.operation.review?.because).toEqual({ code: 'approval_expired' });
    expect(one.state).toBe('awaiting_approval not_sent');
  });
});

describe('judged again before it is sent', () => {
  test('equal or looser goes on', () => {
    const two = judged([{ name: 'two', quorum: 2 }]);
    const one = setup({ verdict: two });
    one.decides('approved', { by: 'Mara' });
    one.decides('approved', { by: 'Luis' });
    one.start({ verdict: judged([]) });
    expect(one.state).toBe('sending unknown');
  });

  test.each<[string, readonly PolicyRule[], boolean]>([
    ['a person is asked now', [{ name: 'now', then: 'ask' }], false],
    ['it is refused now', [{ name: 'now', then: 'refuse' }], true],
    ['two persons are wanted now', [{ name: 'now', quorum: 2 }], true],
    ['somebody else must approve now', [{ name: 'now', approve: ['Luis'] }], true],
    ['its condition cannot be judged now', [{ name: 'now', when: when(undefined) }], false],
  ])('%s: held, with the name of the rule', (_, rules, isApproved) => {
    const one = setup(isApproved ? { verdict: judged([{ name: 'before', then: 'ask' }]) } : {});
    if (isApproved) one.decides('approved', { by: 'Mara' });
    one.start({ verdict: judged(rules) });
    expect(one.state).toBe('awaiting_approval not_sent');
    expect(one.operation.review?.because).toEqual({ code: 'rule_stricter', rule: 'now' });
    expect(one.operation.attempts).toHaveLength(0);
  });

  test('lost access holds what was approved, and parks what is unknown', () => {
    const accessLost = {
      code: 'access_lost',
      who: 'approver',
      principal: 'local:mara',
      how: 'removed',
    } as const;
    const one = setup({ facts: factsOf({ class: 'irreversible' }) });
    one.decides('approved');
    one.start({ accessLost });
    expect(one.state).toBe('awaiting_approval not_sent');
    expect(one.operation.review).toMatchObject({ because: accessLost, question: 'irreversible' });
    // Approved again, it is asked again.
    one.decides('approved');
    one.start({ accessLost });
    expect(one.operation.attempts).toHaveLength(0);

    const lost = setupLost();
    lost.states('stated_not_happened');
    lost.orderAgain();
    lost.decides('approved');
    expect(lost.state).toBe('ready unknown');
    lost.start({ accessLost });
    expect(lost.state).toBe('parked unknown');
    expect(lost.operation.attempts).toHaveLength(1);
  });

  test('waits for what must have happened before, and goes on when it has', () => {
    const prerequisite = {
      code: 'waits_for_prerequisite',
      rule: 'snapshot first',
      tool: 'snapshot_vm',
      effect: 'verified',
      operation: 'op_9K2',
    } as const;
    const one = setup();
    one.start({ prerequisite });
    expect(one.state).toBe('ready not_sent');
    expect(one.operation.why).toEqual(prerequisite);
    one.start({ prerequisite });
    expect(one.eventTypes.filter((type) => type === 'waiting')).toHaveLength(1);
    one.start();
    expect(one.state).toBe('sending unknown');
  });
});

test('what a rule refuses is recorded and closed; asked for again it is judged again', () => {
  const one = setup({ verdict: judged([{ name: 'no', then: 'refuse' }]) });
  expect(one.state).toBe('closed not_sent');
  expect(one.operation.why).toEqual({ code: 'refused_by_rule', because: { rule: 'no', part: 'then' } });
  one.reopen();
  expect(one.state).toBe('ready not_sent');
});
