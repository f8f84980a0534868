// The rules in an owner's configuration: as they are written, what can be wrong in them alone, and as the core judges by
// them.

import { canonicalJson, type JsonValue } from '../core/canonical.ts';
import { durationMs, type ToolClass } from '../core/contract.ts';
import { sha256Hex } from '../core/digest.ts';
import type { Policy, PolicyRule } from '../core/policy.ts';
import { readCondition } from './condition.ts';
import { closest, type Finding, listed, type Path } from './problem.ts';

export interface RuleConfig {
  readonly name: string;
  readonly tools?: readonly string[];
  readonly classes?: readonly Exclude<ToolClass, 'read'>[];
  readonly when?: string;
  readonly then?: 'allow' | 'ask' | 'refuse';
  /** Principals and groups, as in the next three. */
  readonly propose?: readonly string[];
  readonly approve?: readonly string[];
  readonly operate?: readonly string[];
  readonly read?: readonly string[];
  readonly separate?: boolean;
  readonly quorum?: number;
  readonly lifetime?: string;
  readonly per_run?: number;
  readonly requires?: readonly {
    readonly tool: string;
    /** `verified` when absent. */
    readonly effect?: 'accepted' | 'verified';
    readonly same?: { readonly [own: string]: string };
  }[];
}

export interface PolicyConfig {
  readonly version: 1;
  readonly groups?: { readonly [group: string]: readonly string[] };
  readonly access?: { readonly command: readonly string[]; readonly max_age?: string };
  readonly rules: readonly RuleConfig[];
}

/** How old what is known of a principal's access may be when something is sent. */
export const ACCESS_AGE_DEFAULT = 'PT5M';

/** What the schema cannot say about the rules of one configuration. */
export function checkPolicy(policy: PolicyConfig): readonly Finding[] {
  const { access, groups = {}, rules } = policy;
  return [
    ...rules.flatMap((rule, index) => checkRule(policy, rule, ['policy', 'rules', index])),
    ...Object.entries(groups).flatMap(([group, members]) =>
      members.flatMap((member, index) =>
        member.includes(':')
          ? []
          : {
              path: ['policy', 'groups', group, index],
              sentence: `The group ${group} lists ${member}, which is no principal; one is named like token:planner or local:mara.`,
            },
      ),
    ),
    ...(access?.max_age !== undefined && (durationMs(access.max_age) ?? 0) < 1_000
      ? [
          {
            path: ['policy', 'access', 'max_age'],
            sentence: `policy.access.max_age is ${access.max_age}; at least PT1S is allowed.`,
          },
        ]
      : []),
  ];
}

const DEMANDS = ['approve', 'separate', 'quorum', 'lifetime'] as const;
const ACTS = ['propose', 'approve', 'operate', 'read'] as const;
const PARTS = ['then', 'propose', 'operate', 'read', 'per_run', 'requires', ...DEMANDS] as const;

function checkRule(policy: PolicyConfig, rule: RuleConfig, path: Path): readonly Finding[] {
  const { name } = rule;
  const findings: Finding[] = [];
  const find = (member: string, sentence: string, at?: Finding['at']): void => {
    findings.push({ path: [...path, member], sentence, ...(at === undefined ? {} : { at }) });
  };
  if (policy.rules.find((other) => other.name === name) !== rule)
    find('name', `Two rules are called ${JSON.stringify(name)}; each needs a name of its own.`);
  if (PARTS.every((part) => rule[part] === undefined))
    find(
      'name',
      `The rule ${JSON.stringify(name)} asks for nothing; at least one of ${listed(PARTS)} is wanted.`,
    );
  if (rule.when !== undefined) {
    const read = readCondition(rule.when);
    if (!read.ok) find('when', `The condition of ${JSON.stringify(name)} ${read.problem}.`);
  }
  for (const act of ACTS) {
    for (const [index, one] of (rule[act] ?? []).entries()) {
      if (one.includes(':') || Object.hasOwn(policy.groups ?? {}, one)) continue;
      findings.push({ path: [...path, act, index], sentence: noGroup(policy, one) });
    }
  }
  if (rule.then === 'allow') findings.push(...checkAllow(rule, path));
  if (rule.lifetime !== undefined && (durationMs(rule.lifetime) ?? 0) < 1_000)
    find(
      'lifetime',
      `The lifetime of ${JSON.stringify(name)} is ${rule.lifetime}; at least PT1S is allowed.`,
    );
  return findings;
}

function checkAllow({ classes, name, ...rule }: RuleConfig, path: Path): readonly Finding[] {
  if (classes?.includes('irreversible') === true) {
    const sentence = `The rule ${JSON.stringify(name)} allows irreversible writes; each of them waits for a person's decision on itself, and no rule lowers that.`;
    return [{ path: [...path, 'classes'], sentence }];
  }
  const demanded = DEMANDS.filter((part) => rule[part] !== undefined);
  if (demanded.length === 0) return [];
  const sentence = `The rule ${JSON.stringify(name)} allows, and says of an approval ${listed(demanded)}; make two rules of it.`;
  return [{ path: [...path, 'then'], sentence }];
}

function noGroup({ groups = {} }: PolicyConfig, name: string): string {
  const near = closest(name, Object.keys(groups));
  const hint =
    near === undefined ? 'a principal is named like token:planner or local:mara' : `did you mean ${near}?`;
  return `There is no group ${name} (${hint}).`;
}

// ── As the core judges by it ───────────────────────────────────────────────────────────────────────────────

const compiled = new WeakMap<PolicyConfig, Policy>();

/** The same policy for the same object, of a configuration that was checked. */
export function compiledPolicy(config: PolicyConfig): Policy {
  let policy = compiled.get(config);
  if (policy === undefined) {
    policy = compile(config);
    compiled.set(config, policy);
  }
  return policy;
}

function compile(config: PolicyConfig): Policy {
  const { access } = config;
  return Object.freeze({
    digest: sha256Hex(canonicalJson(config as unknown as JsonValue)),
    rules: config.rules.map((rule) => compileRule(config, rule)),
    ...(access === undefined
      ? {}
      : {
          access: {
            command: access.command,
            maxAgeMs: durationMs(access.max_age ?? ACCESS_AGE_DEFAULT) ?? 0,
          },
        }),
  });
}

function compileRule(config: PolicyConfig, rule: RuleConfig): PolicyRule {
  const { classes, lifetime, name, per_run: perRun, quorum, requires, separate, then, tools, when } = rule;
  const lifetimeMs = durationMs(lifetime);
  const read = when === undefined ? undefined : readCondition(when);
  if (read?.ok === false) throw new Error(`Assertion: the rule ${name} was not checked: ${read.problem}`);
  return {
    name,
    ...(tools === undefined ? {} : { tools }),
    ...(classes === undefined ? {} : { classes }),
    ...(read === undefined ? {} : { when: read.condition }),
    ...(then === undefined ? {} : { then }),
    ...membersOf(config, rule),
    ...(separate === undefined ? {} : { separate }),
    ...(quorum === undefined ? {} : { quorum }),
    ...(lifetimeMs === undefined ? {} : { lifetimeMs }),
    ...(perRun === undefined ? {} : { perRun }),
    ...(requires === undefined
      ? {}
      : {
          requires: requires.map(({ effect = 'verified', same = {}, tool }) => ({ tool, effect, same })),
        }),
  };
}

function membersOf(
  { groups = {} }: PolicyConfig,
  rule: RuleConfig,
): { readonly [act in (typeof ACTS)[number]]?: readonly string[] } {
  const members: { [act in (typeof ACTS)[number]]?: readonly string[] } = {};
  for (const act of ACTS) {
    const list = rule[act];
    if (list === undefined) continue;
    members[act] = list.flatMap((one) => (Object.hasOwn(groups, one) ? (groups[one] ?? []) : [one]));
  }
  return members;
}
