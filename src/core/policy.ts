// What its owner's rules say of one write: who may ask for it and approve it, whether a person is asked, what must have
// happened before. Pure and total: what cannot be judged needs a person, and is never allowed by it (D9).

import type { JsonObject } from './canonical.ts';
import type { Effect } from './lifecycle.ts';

/** What a rule may look at: the frozen arguments, who asks for them, and what they are for. */
export interface PolicyCall {
  readonly arguments: JsonObject;
  readonly requester: string;
  readonly run: { readonly id: string; readonly step?: string };
  readonly destination: string;
  readonly tool: string;
  /** A `ToolClass`. */
  readonly class: string;
}

/** `undefined`: it cannot be judged for this call, for instance because a field that it names is not there. */
export interface PolicyCondition {
  readonly text: string;
  readonly judge: (call: PolicyCall) => boolean | undefined;
}

/** Another write of the same run that must have happened before. */
export interface Prerequisite {
  readonly tool: string;
  readonly effect: 'accepted' | 'verified';
  /** An argument of the write that waits → the argument of the earlier one that must have the same value. */
  readonly same: { readonly [own: string]: string };
}

/** Every rule that speaks of a call counts; of several the strictest. Lists hold names of principals, groups unfolded. */
export interface PolicyRule {
  readonly name: string;
  /** Absent: of every tool. */
  readonly tools?: readonly string[];
  /** Absent: of writes of every class. */
  readonly classes?: readonly string[];
  readonly when?: PolicyCondition;
  /** `allow` takes back the question of `strict`, and no other. */
  readonly then?: 'allow' | 'ask' | 'refuse';
  readonly propose?: readonly string[];
  readonly approve?: readonly string[];
  readonly operate?: readonly string[];
  readonly read?: readonly string[];
  /** Whoever asked for it may not approve it. */
  readonly separate?: boolean;
  /** How many persons must approve it. */
  readonly quorum?: number;
  readonly lifetimeMs?: number;
  readonly requires?: readonly Prerequisite[];
  /** Writes of one run that go through before a person is asked. */
  readonly perRun?: number;
}

export interface Policy {
  /** SHA-256 over the policy as it is written. */
  readonly digest: string;
  readonly rules: readonly PolicyRule[];
  /** Who is asked whether a principal still has access, and how old an answer may be when something is sent. */
  readonly access?: { readonly command: readonly string[]; readonly maxAgeMs: number };
}

/** Why a rule asks or refuses: its name, and which of its parts. */
export interface PolicyReason {
  readonly rule: string;
  readonly part: 'then' | 'propose' | 'per_run' | 'not_judged';
  /** Of `per_run`. */
  readonly limit?: number;
}

/** What an approval must be, for all rules together. */
export interface ApprovalDemands {
  /** Whoever approves is in each of these lists. */
  readonly approvers?: readonly NamedBy[];
  readonly separate?: string;
  readonly quorum?: { readonly rule: string; readonly persons: number };
  readonly lifetime?: { readonly rule: string; readonly ms: number };
}

export interface Verdict {
  readonly policy: string;
  readonly outcome: 'none' | 'allow' | 'ask' | 'refuse';
  readonly because?: PolicyReason;
  /** Absent where no rule demands anything of an approval. */
  readonly demands?: ApprovalDemands;
  readonly requires: readonly (Prerequisite & { readonly rule: string })[];
  /** Whoever states, sends again or gives up is in each of these lists; absent where no rule names any. */
  readonly operators?: readonly NamedBy[];
  /** Whoever else is told of it when asking after it is in each of these lists. */
  readonly readers?: readonly NamedBy[];
}

/** Principals, and the rule that names them. */
export interface NamedBy {
  readonly rule: string;
  readonly names: readonly string[];
}

/** What is kept of a verdict beside the digest. */
export type RecordedVerdict = Pick<Verdict, 'policy' | 'outcome' | 'because' | 'operators' | 'readers'>;

export function recordedVerdict(verdict: Verdict): RecordedVerdict {
  const { because, operators, outcome, policy, readers } = verdict;
  return {
    policy,
    outcome,
    ...(because === undefined ? {} : { because }),
    ...(operators === undefined ? {} : { operators }),
    ...(readers === undefined ? {} : { readers }),
  };
}

/** How many earlier writes of the run each rule with a limit has spoken of; absent where they are not counted. */
export type RunCounts = { readonly [rule: string]: number };

type Speaks = 'yes' | 'no' | 'not_judged';

function speaksOf(rule: PolicyRule, call: PolicyCall): Speaks {
  if (rule.tools !== undefined && !rule.tools.includes(call.tool)) return 'no';
  if (rule.classes !== undefined && !rule.classes.includes(call.class)) return 'no';
  if (rule.when === undefined) return 'yes';
  const judged = rule.when.judge(call);
  if (judged === undefined) return 'not_judged';
  return judged ? 'yes' : 'no';
}

/** A rule with what it says of this call. */
export interface Spoken {
  readonly rule: PolicyRule;
  readonly speaks: Exclude<Speaks, 'no'>;
}

/** The rules that speak of a call; one that cannot be judged speaks, because it might. */
export function spokenOf(policy: Policy, call: PolicyCall): readonly Spoken[] {
  return policy.rules.flatMap((rule) => {
    const speaks = speaksOf(rule, call);
    return speaks === 'no' ? [] : [{ rule, speaks }];
  });
}

export function judgePolicy(policy: Policy, call: PolicyCall, counts: RunCounts = {}): Verdict {
  const spoken = spokenOf(policy, call);
  const reasons = spoken.map((one) => reasonOf(one, call, counts));
  const strictest = reasons.reduce<Outcome>(
    (worst, reason) => (CARE[reason.outcome] > CARE[worst.outcome] ? reason : worst),
    { outcome: 'none' },
  );
  // To allow is worth something only where no rule asks, and only by a rule that can be judged.
  const allows = reasons.find(({ outcome }) => outcome === 'allow');
  const { because, outcome } = strictest.outcome === 'none' && allows !== undefined ? allows : strictest;
  const demands = demandsOf(spoken.map(({ rule }) => rule));
  const operators = namedBy(spoken, 'operate');
  const readers = namedBy(spoken, 'read');
  return {
    policy: policy.digest,
    outcome,
    ...(because === undefined ? {} : { because }),
    ...(demands === undefined ? {} : { demands }),
    requires: spoken.flatMap(({ rule }) =>
      (rule.requires ?? []).map((prerequisite) => ({ ...prerequisite, rule: rule.name })),
    ),
    ...(operators.length === 0 ? {} : { operators }),
    ...(readers.length === 0 ? {} : { readers }),
  };
}

function namedBy(
  spoken: readonly Pick<Spoken, 'rule'>[],
  act: 'approve' | 'operate' | 'read',
): readonly NamedBy[] {
  return spoken.flatMap(({ rule }) => {
    const names = rule[act];
    return names === undefined ? [] : [{ rule: rule.name, names }];
  });
}

interface Outcome {
  readonly outcome: Verdict['outcome'];
  readonly because?: PolicyReason;
}

const CARE: { readonly [outcome in Verdict['outcome']]: number } = { allow: 0, none: 0, ask: 1, refuse: 2 };

function reasonOf({ rule, speaks }: Spoken, { requester }: PolicyCall, counts: RunCounts): Outcome {
  const because = (part: PolicyReason['part']): PolicyReason => ({ rule: rule.name, part });
  if (speaks === 'not_judged') return { outcome: 'ask', because: because('not_judged') };
  if (rule.propose !== undefined && !rule.propose.includes(requester)) {
    return { outcome: 'refuse', because: because('propose') };
  }
  if (rule.then === 'refuse' || rule.then === 'ask') return { outcome: rule.then, because: because('then') };
  const { perRun } = rule;
  if (perRun !== undefined && (countOf(counts, rule.name) ?? 0) >= perRun) {
    return { outcome: 'ask', because: { ...because('per_run'), limit: perRun } };
  }
  // What one rule demands of a person is demanded also where nothing else would ask for one.
  if (demandsOf([rule]) !== undefined && isAsking(rule)) return { outcome: 'ask', because: because('then') };
  return rule.then === 'allow' ? { outcome: 'allow', because: because('then') } : { outcome: 'none' };
}

function countOf(counts: RunCounts, rule: string): number | undefined {
  return Object.hasOwn(counts, rule) ? counts[rule] : undefined;
}

/** More than one person, or persons by name, are not asked for a write that nobody is to decide on. */
function isAsking({ approve, quorum }: PolicyRule): boolean {
  return approve !== undefined || quorum !== undefined;
}

function demandsOf(rules: readonly PolicyRule[]): ApprovalDemands | undefined {
  const approvers = namedBy(
    rules.map((rule) => ({ rule })),
    'approve',
  );
  const separate = rules.find((rule) => rule.separate === true)?.name;
  const quorum = most(
    rules.flatMap(({ name, quorum: persons }) =>
      persons === undefined ? [] : [{ rule: name, persons, care: persons }],
    ),
  );
  const lifetime = most(
    rules.flatMap(({ lifetimeMs: ms, name }) => (ms === undefined ? [] : [{ rule: name, ms, care: -ms }])),
  );
  const demands: ApprovalDemands = {
    ...(approvers.length === 0 ? {} : { approvers }),
    ...(separate === undefined ? {} : { separate }),
    ...(quorum === undefined ? {} : { quorum: { rule: quorum.rule, persons: quorum.persons } }),
    ...(lifetime === undefined ? {} : { lifetime: { rule: lifetime.rule, ms: lifetime.ms } }),
  };
  return Object.keys(demands).length === 0 ? undefined : demands;
}

function most<One extends { readonly care: number }>(list: readonly One[]): One | undefined {
  return list.toSorted((a, b) => b.care - a.care)[0];
}

// ── Approvals ──────────────────────────────────────────────────────────────────────────────────────────────

/** What of an approval does not meet the demands; `rule` is the one that wants more. */
export type Unmet = {
  readonly rule: string;
  readonly what: 'approver' | 'separate' | 'quorum' | 'lifetime';
};

/** Why one person's approval would not count. */
export function unmetBy(
  demands: ApprovalDemands | undefined,
  by: string,
  requester: string,
): Unmet | undefined {
  const missing = demands?.approvers?.find(({ names }) => !names.includes(by));
  if (missing !== undefined) return { rule: missing.rule, what: 'approver' };
  if (demands?.separate !== undefined && by === requester)
    return { rule: demands.separate, what: 'separate' };
  return undefined;
}

/** @param openedAt since when the approvals count, as the lifetime is counted */
export function unmetDemand(
  demands: ApprovalDemands | undefined,
  given: { readonly by: readonly string[]; readonly requester: string; readonly openedAt: number },
  at: number,
): Unmet | undefined {
  const one = given.by
    .map((by) => unmetBy(demands, by, given.requester))
    .find((unmet) => unmet !== undefined);
  if (one !== undefined) return one;
  const { lifetime, quorum } = demands ?? {};
  if (quorum !== undefined && new Set(given.by).size < quorum.persons)
    return { rule: quorum.rule, what: 'quorum' };
  if (lifetime !== undefined && at > given.openedAt + lifetime.ms)
    return { rule: lifetime.rule, what: 'lifetime' };
  return undefined;
}

// ── Before ─────────────────────────────────────────────────────────────────────────────────────────────────

/** Whether an earlier write is known to have happened as far as a rule wants it known. */
export function meetsPrerequisite({ effect: wanted }: Prerequisite, effect: Effect): boolean {
  return effect === 'verified' || (wanted === 'accepted' && effect === 'accepted');
}

/** The rule by which a principal may not act on an operation; `undefined` where none names others. */
export function refusedOperator(verdict: RecordedVerdict | undefined, by: string): string | undefined {
  return verdict?.operators?.find(({ names }) => !names.includes(by))?.rule;
}

/** The same for whoever only asks after it, and did not ask for it. */
export function refusedReader(verdict: RecordedVerdict | undefined, by: string): string | undefined {
  return verdict?.readers?.find(({ names }) => !names.includes(by))?.rule;
}
