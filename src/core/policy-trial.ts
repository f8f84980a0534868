// What rules would have said of writes that are recorded already, in the order in which they came.

import { authorityFor } from './authority.ts';
import type { ToolFacts } from './contract.ts';
import type { OperationId, ReviewQuestion } from './operation.ts';
import { judgePolicy, type PolicyCall, type PolicyReason, spokenOf } from './policy.ts';

export interface TriedCall {
  readonly operation: OperationId;
  /** With the policy that is tried. */
  readonly facts: ToolFacts;
  readonly call: PolicyCall;
}

export interface TrialLine {
  readonly operation: OperationId;
  readonly tool: string;
  readonly outcome: 'waits' | 'refused';
  /** Absent where the class or the mode asks, and no rule. */
  readonly because?: PolicyReason;
  readonly question?: ReviewQuestion;
}

export interface Trial {
  readonly total: number;
  /** Those that would not have gone by themselves. */
  readonly lines: readonly TrialLine[];
}

/** Prerequisites are not tried: what was known at which moment is not counted here. */
export function tryPolicy(calls: readonly TriedCall[]): Trial {
  const counts = new Map<string, Record<string, number>>();
  const lines = calls.flatMap(({ call, facts, operation }): TrialLine[] => {
    const run = counts.get(call.run.id) ?? {};
    counts.set(call.run.id, run);
    const verdict = facts.policy && judgePolicy(facts.policy, call, run);
    for (const { rule } of facts.policy === undefined ? [] : spokenOf(facts.policy, call)) {
      if (rule.perRun !== undefined) run[rule.name] = (run[rule.name] ?? 0) + 1;
    }
    const authority = authorityFor(facts, verdict);
    if (authority.allowed) return [];
    const because = verdict?.outcome === 'ask' || verdict?.outcome === 'refuse' ? verdict.because : undefined;
    return [
      {
        operation,
        tool: call.tool,
        outcome: authority.refused === undefined ? 'waits' : 'refused',
        ...(because === undefined ? {} : { because }),
        ...(authority.question === undefined ? {} : { question: authority.question }),
      },
    ];
  });
  return { total: calls.length, lines };
}
