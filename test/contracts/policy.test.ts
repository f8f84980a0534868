import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { compileToolFacts } from '../../src/contracts/compile.ts';
import { readCondition } from '../../src/contracts/condition.ts';
import { loadGatewaySetup } from '../../src/contracts/load.ts';
import { loosenedBy } from '../../src/contracts/policy-change.ts';
import { formatProblem } from '../../src/contracts/problem.ts';
import type { JsonObject } from '../../src/core/canonical.ts';
import { judgePolicy, type PolicyCall } from '../../src/core/policy.ts';

const RULES = `destination: cloud-prod
tools:
  decommission_vm: {class: irreversible}
  move_date: {class: ordinary}
policy:
  version: 1
  groups:
    planners: [token:planner, local:mara]
  rules:
`;
const load = (rules: string, head = RULES) =>
  loadGatewaySetup(`${head}${rules}`, 'policy.yaml', { readText: () => ({ reason: 'there is none' }) });
const problems = (rules: string, head = RULES): readonly string[] => {
  const loaded = load(rules, head);
  return loaded.ok ? [] : loaded.problems.map(formatProblem);
};
const setupOf = (rules: string) => {
  const loaded = load(rules);
  if (!loaded.ok) throw new Error(loaded.problems.map(formatProblem).join('\n'));
  return loaded;
};

describe('rules of a configuration', () => {
  test.each<[string, string, string]>([
    [
      'an unknown key, with its line and column',
      '    - {name: a, then: ask, whn: args.x == 1}\n',
      'policy.yaml:10:28: ',
    ],
    [
      'a condition that is no CEL',
      '    - {name: a, then: ask, when: "args.x =="}\n',
      'cannot be read as CEL',
    ],
    ['an unknown variable', '    - {name: a, then: ask, when: "amount > 1"}\n', 'Unknown variable: amount'],
    [
      'matches',
      `    - {name: a, then: ask, when: 'args.x.matches("^(a+)+$")'}\n`,
      'write fits(text, pattern) instead',
    ],
    ['a condition that is none', '    - {name: a, then: ask, when: requester}\n', 'gives string'],
    [
      'a list within a list',
      '    - {name: a, then: ask, when: "args.a.all(x, args.b.all(y, x == y))"}\n',
      'a list within a list',
    ],
    [
      'a pattern that looks ahead',
      `    - {name: a, then: ask, when: 'fits(args.x, "(?=a)")'}\n`,
      'a pattern that cannot be read',
    ],
    [
      'a pattern by its caller',
      `    - {name: a, then: ask, when: 'fits(args.x, args.y)'}\n`,
      'not written out',
    ],
    ['a group that is not there', '    - {name: a, propose: [planner]}\n', 'did you mean planners?'],
    ['a rule that asks for nothing', '    - {name: a, tools: [x]}\n', 'asks for nothing'],
    [
      'two of one name',
      '    - {name: a, then: ask}\n    - {name: a, quorum: 2}\n',
      'Two rules are called "a"',
    ],
    [
      'irreversible writes that are allowed',
      '    - {name: a, classes: [irreversible], then: allow}\n',
      'The rule "a" allows irreversible writes; each of them waits for a person\'s decision on itself, and no rule lowers that.',
    ],
    [
      'an irreversible tool that is allowed',
      '    - {name: a, tools: [move_date, decommission_vm], then: allow}\n',
      'policy.yaml:10:36: The rule "a" allows decommission_vm, and this configuration says that it is irreversible',
    ],
    ['an allowance with demands', '    - {name: a, then: allow, quorum: 2}\n', 'make two rules of it'],
    ['a quorum of nobody', '    - {name: a, quorum: 0}\n', 'quorum'],
  ])('refuses %s', (_, rules, sentence) => {
    expect(problems(rules).join('\n')).toContain(sentence);
  });

  test('refuses another version of the form', () => {
    expect(problems('  rules: []\n', 'destination: x\npolicy:\n  version: 2\n')[0]).toContain(
      'policy.yaml:3:12: ',
    );
  });

  test('are judged on the frozen arguments, with groups unfolded', () => {
    const { config, contracts } = setupOf(
      `    - {name: planners, propose: [planners]}\n    - {name: far, when: args.days > 3, then: ask}\n`,
    );
    const facts = compileToolFacts({
      destination: 'cloud-prod',
      tool: 'move_date',
      arguments: {},
      contracts: contracts.map(({ value }) => value),
      config: config.value,
      hints: undefined,
      ownerRules: [],
      toolDigest: '',
    });
    if (facts.policy === undefined) throw new Error('no policy');
    const { policy } = facts;
    const outcome = (args: JsonObject, requester = 'local:mara') => {
      const call = {
        destination: 'cloud-prod',
        tool: 'move_date',
        run: { id: 'r' },
        class: 'ordinary',
      } as const;
      return judgePolicy(policy, { ...call, arguments: args, requester }).outcome;
    };
    expect(outcome({ days: 3 })).toBe('none');
    expect(outcome({ days: 4 })).toBe('ask');
    // Without the field it cannot be judged: a person, never a yes.
    expect(outcome({})).toBe('ask');
    expect(outcome({ days: 'four' })).toBe('ask');
    expect(outcome({ days: 3 }, 'token:other')).toBe('refuse');
  });
});

test('the configuration that the documentation shows can be used', () => {
  const text = readFileSync(new URL('../../docs/policy.md', import.meta.url), 'utf8');
  const [, shown = ''] = /```yaml\n(destination:.*?)```/s.exec(text) ?? [];
  const [, access = ''] = /```yaml\n(  access:.*?)```/s.exec(text) ?? [];
  const loaded = loadGatewaySetup(`${shown}${access}`, 'policy.yaml', {
    readText: () => ({ reason: 'there is none' }),
  });
  expect(loaded.ok ? [] : loaded.problems.map(formatProblem)).toEqual([]);
  expect(loaded.ok && loaded.config.value.policy?.rules.map(({ name }) => name)).toContain('Two of three');
});

describe('conditions', () => {
  const call = (args: JsonObject): PolicyCall => ({
    arguments: args,
    requester: 'token:planner',
    run: { id: 'run-1' },
    destination: 'cloud-prod',
    tool: 'move_date',
    class: 'ordinary',
  });
  const judged = (text: string, args: JsonObject): boolean | undefined => {
    const read = readCondition(text);
    if (!read.ok) throw new Error(read.problem);
    return read.condition.judge(call(args));
  };

  test.each<[string, JsonObject, boolean | undefined]>([
    ['args.amount <= 100', { amount: 99.5 }, true],
    ['args.amount <= 100', { amount: 101 }, false],
    ['args.amount <= 100', {}, undefined],
    ['args.amount <= 100', { amount: '5' }, undefined],
    ['has(args.to) && args.to == "a"', {}, false],
    ['args.to.all(x, fits(x, "@example[.]org$"))', { to: ['a@example.org'] }, true],
    ['args.to.all(x, fits(x, "@example[.]org$"))', { to: ['a@example.org', 'b@example.com'] }, false],
    ['requester == "token:planner" && run.id == "run-1" && class == "ordinary"', {}, true],
    ['run.step == "x"', {}, undefined],
    // Nothing of the language that judges it is an argument.
    ['args.constructor == "x"', {}, undefined],
    ['has(args.toString)', {}, false],
  ])('%s on %j', (text, args, expected) => {
    expect(judged(text, args)).toBe(expected);
  });

  test('are judged for any arguments, and nothing that they are throws', () => {
    const conditions = [
      'args.a < 3 || args.b.c == "x"',
      'has(args.a) && args.a.all(x, x > 1)',
      'fits(args.a, "^x+$")',
      'args.a + args.b == args.c',
      'args.a in args.b',
    ];
    fc.assert(
      fc.property(
        fc.constantFrom(...conditions),
        fc.dictionary(fc.constantFrom('a', 'b', 'c'), fc.jsonValue()),
        (text, args) => {
          expect([true, false, undefined]).toContain(judged(text, args as JsonObject));
        },
      ),
    );
  });

  test('a pattern takes no longer for an argument that was made for it', () => {
    const began = performance.now();
    expect(judged('fits(args.x, "^(a+)+$")', { x: `${'a'.repeat(50_000)}b` })).toBe(false);
    // What backtracks takes longer than anybody waits for from 40 characters on.
    expect(performance.now() - began).toBeLessThan(5_000);
  });
});

describe('of two policies', () => {
  const TWO = '    - {name: two, tools: [move_date], quorum: 2, lifetime: PT2H, approve: [planners]}\n';
  const loosened = (next: string, before: string) => loosenedBy(setupOf(next), setupOf(before));

  test.each<[string, string, string]>([
    ['a rule more', `${TWO}    - {name: more, then: ask}\n`, TWO],
    ['three in place of two', TWO.replace('quorum: 2', 'quorum: 3'), TWO],
    ['a shorter life', TWO.replace('PT2H', 'PT1H'), TWO],
    ['fewer approvers', TWO.replace('[planners]', '[local:mara]'), TWO],
    ['an allowance less', TWO, `${TWO}    - {name: free, then: allow}\n`],
    ['the same', TWO, TWO],
  ])('%s loosens nothing', (_, next, before) => {
    expect(loosened(next, before)).toEqual([]);
  });

  test.each<[string, string, string]>([
    ['a rule less', '    []\n', 'The rule "two" is left out.'],
    ['one in place of two', TWO.replace('quorum: 2, ', ''), 'The rule "two": quorum is not as before.'],
    ['a longer life', TWO.replace('PT2H', 'PT3H'), 'The rule "two": lifetime is not as before.'],
    ['other tools', TWO.replace('[move_date]', '[x]'), 'The rule "two": tools is not as before.'],
    [
      'more approvers',
      TWO.replace('[planners]', '[planners, token:x]'),
      'The rule "two": approve is not as before.',
    ],
    ['an allowance', `${TWO}    - {name: free, then: allow}\n`, 'The rule "free" is new, and allows.'],
  ])('%s loosens', (_, next, sentence) => {
    expect(loosened(next, TWO)).toEqual([sentence]);
  });
});
