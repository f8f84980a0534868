// Whether one policy loosens another, rule by rule: every rule that speaks counts, so that a policy is no looser where each
// of its rules is at least as careful, none is missing, and none is new that allows.

import { durationMs } from '../core/contract.ts';
import { ACCESS_AGE_DEFAULT, type PolicyConfig, type RuleConfig } from './policy-config.ts';
import { listed } from './problem.ts';

/** One sentence for each thing that is looser; a policy that is not there is one without rules. */
export function looserPolicy(
  next: PolicyConfig | undefined,
  before: PolicyConfig | undefined,
): readonly string[] {
  const rules = next?.rules ?? [];
  const earlier = before?.rules ?? [];
  return [
    ...earlier.flatMap((rule) => {
      // What only allowed is missed by nobody.
      const isGrant = rule.then === 'allow' && rule.propose === undefined;
      const now = rules.find(({ name }) => name === rule.name);
      if (now !== undefined) return looserRule(next, now, before, rule);
      return isGrant ? [] : [`The rule ${JSON.stringify(rule.name)} is left out.`];
    }),
    ...rules.flatMap((rule) =>
      rule.then === 'allow' && !earlier.some(({ name }) => name === rule.name)
        ? [`The rule ${JSON.stringify(rule.name)} is new, and allows.`]
        : [],
    ),
    ...looserAccess(next, before),
  ];
}

const THEN_CARE = { allow: 0, none: 1, ask: 2, refuse: 3 } as const;

/** What cannot be compared must be the same: of which calls a rule speaks, and what must have happened before. */
function looserRule(
  next: PolicyConfig | undefined,
  rule: RuleConfig,
  before: PolicyConfig | undefined,
  earlier: RuleConfig,
): readonly string[] {
  const parts: string[] = [];
  for (const part of ['tools', 'classes', 'when', 'requires'] as const)
    if (!isSame(rule[part], earlier[part])) parts.push(part);
  if (THEN_CARE[rule.then ?? 'none'] < THEN_CARE[earlier.then ?? 'none']) parts.push('then');
  for (const act of ['propose', 'approve', 'operate', 'read'] as const) {
    const members = membersOf(next, rule[act]);
    const were = membersOf(before, earlier[act]);
    if (were !== undefined && (members === undefined || members.some((one) => !were.includes(one))))
      parts.push(act);
  }
  if (earlier.separate === true && rule.separate !== true) parts.push('separate');
  if ((rule.quorum ?? 1) < (earlier.quorum ?? 1)) parts.push('quorum');
  if (isAbove(durationMs(rule.lifetime), durationMs(earlier.lifetime))) parts.push('lifetime');
  if (isAbove(rule.per_run, earlier.per_run)) parts.push('per_run');
  if (parts.length === 0) return [];
  const are = parts.length > 1 ? 'are' : 'is';
  return [`The rule ${JSON.stringify(rule.name)}: ${listed(parts)} ${are} not as before.`];
}

/** A bound that is not there is above all others. */
function isAbove(bound: number | undefined, before: number | undefined): boolean {
  return (bound ?? Number.POSITIVE_INFINITY) > (before ?? Number.POSITIVE_INFINITY);
}

function membersOf(
  policy: PolicyConfig | undefined,
  list: readonly string[] | undefined,
): readonly string[] | undefined {
  const groups = policy?.groups ?? {};
  return list?.flatMap((one) => (Object.hasOwn(groups, one) ? (groups[one] ?? []) : [one]));
}

function looserAccess(next: PolicyConfig | undefined, before: PolicyConfig | undefined): readonly string[] {
  if (before?.access === undefined) return [];
  if (!isSame(next?.access?.command, before.access.command))
    return ['Who is asked whether a principal still has access is not as before.'];
  const [age, earlier] = [next?.access, before.access].map((access) => access?.max_age ?? ACCESS_AGE_DEFAULT);
  return (durationMs(age) ?? 0) > (durationMs(earlier) ?? 0)
    ? [`policy.access.max_age is ${age}, and was ${earlier}.`]
    : [];
}

function isSame(one: unknown, other: unknown): boolean {
  return JSON.stringify(one ?? null) === JSON.stringify(other ?? null);
}
