// Who must allow a write, and whether what was allowed still stands at the moment of sending (D8, D9).

import type { ToolClass, ToolFacts } from './contract.ts';
import { isScopeKept, usableGuard } from './guarded-repeat.ts';
import {
  approversOf,
  type Operation,
  type OperationId,
  type Review,
  type ReviewQuestion,
  type Why,
} from './operation.ts';
import { type PolicyReason, unmetDemand, type Verdict } from './policy.ts';
import { type Bounds, isBeyondBounds } from './repeatability.ts';
import { type StopInForce, whyOf } from './stop.ts';

/** What a server's mode and its owner's rules say of one call: a rule by name, a question to a person, or no. */
export type Authority =
  | { readonly allowed: true; readonly rule: string }
  | { readonly allowed: false; readonly question: ReviewQuestion; readonly refused?: undefined }
  | { readonly allowed: false; readonly refused: PolicyReason; readonly question?: undefined };

/** @param verdict what the policy says of the call; it asks for more, and takes back one question alone */
export function authorityFor(facts: ToolFacts, verdict?: Verdict): Authority {
  const authority = authorityOfClass(facts);
  if (verdict === undefined || facts.mode === 'observe') return authority;
  const { because, outcome } = verdict;
  switch (outcome) {
    case 'none':
      return authority;
    case 'refuse':
      if (because === undefined) throw new Error('Assertion: what refuses has a name.');
      return { allowed: false, refused: because };
    case 'ask':
      return authority.allowed ? { allowed: false, question: 'policy' } : authority;
    case 'allow':
      // The floor of D9 and the question what a tool is are no rule's to answer.
      return !authority.allowed && authority.question === 'strict'
        ? { allowed: true, rule: `policy: ${because?.rule}` }
        : authority;
  }
}

function authorityOfClass(facts: ToolFacts): Authority {
  const { mode = 'guard' } = facts;
  if (facts.class === 'read') throw new Error(`Assertion: ${facts.tool} is a read and needs no authority.`);
  const rule = `${mode}/${facts.class} (${facts.classSource})`;
  // The one mode without a floor: nothing waits in it, and every surface says that nothing is guarded.
  if (mode === 'observe') return { allowed: true, rule };
  switch (facts.class) {
    case 'ordinary':
    case 'interactive':
      if (mode !== 'strict') return { allowed: true, rule };
      return facts.granted === undefined
        ? { allowed: false, question: 'strict' }
        : { allowed: true, rule: `${facts.granted.id} (given by ${facts.granted.by})` };
    case 'irreversible':
      return { allowed: false, question: 'irreversible' };
    case 'unclassified':
      return { allowed: false, question: facts.changedFrom === undefined ? 'unclassified' : 'tool_changed' };
  }
}

/** What a person must be asked although a rule had allowed it: the rule is stricter now. */
export function questionNow(facts: ToolFacts | undefined, verdict?: Verdict): ReviewQuestion | undefined {
  if (facts === undefined || facts.class === 'read') return undefined;
  const authority = authorityFor(facts, verdict);
  return authority.allowed ? undefined : (authority.question ?? 'policy');
}

/** What a standing permission may be given for: never what the floor protects, and nothing that nobody has classified. */
export function mayBeGranted(toolClass: ToolClass): boolean {
  return toolClass === 'ordinary' || toolClass === 'interactive';
}

/**
 * Whether one decision for a list may answer the question. What asks for more than whether these bytes are sent (what a
 * tool is, whether two are the same work) wants an answer of its own.
 */
export function mayBeListed(question: ReviewQuestion): boolean {
  return question === 'irreversible' || question === 'strict';
}

export type Strength = NonNullable<Review['decision']>['strength'];

/**
 * Whether an approval of this strength may let a tool of this class write. `same_account` proves only that
 * somebody under the account decided, which may be the agent itself: too little for what cannot be taken back (D9).
 */
export function isStrongEnough(strength: Strength, toolClass: ToolClass): boolean {
  return toolClass !== 'irreversible' || strength !== 'same_account';
}

/** How careful a class is; both in the middle let writes go through. */
const CLASS_CARE: { readonly [toolClass in ToolClass]: number } = {
  read: 0,
  ordinary: 1,
  interactive: 1,
  unclassified: 2,
  irreversible: 3,
};

export function isLooserClass(next: ToolClass, before: ToolClass): boolean {
  return CLASS_CARE[next] < CLASS_CARE[before];
}

/** Whether a person has approved exactly this operation, and the approval is still valid at `at`. */
export function hasApproval(operation: Operation, at: number): boolean {
  const { review } = operation;
  if (review?.decision?.kind !== 'approved' || review.revoked !== undefined) return false;
  return review.digest === operation.digest && at <= review.expiresAt;
}

/** What the sender knows at the moment of claiming, beside the operation. */
export interface SendingConditions {
  readonly at: number;
  /** Absent while the tool is not known here: then nothing is held against it, and it waits. */
  readonly facts: ToolFacts | undefined;
  readonly bounds: Bounds;
  /** The digest recomputed from the stored payload. */
  readonly digest: string;
  readonly connected: boolean;
  readonly connectionDetail: string;
  /** Another operation that holds a target's lock, or stands before this one in its line. */
  readonly lockedBy: OperationId | undefined;
  /** After many writes within an hour: the operation with which a person is asked whether to go on. */
  readonly goOn?: { readonly operation: OperationId; readonly standing: 'asked' | 'refused' } | undefined;
  /** What stands in the way of one more write, of those that may be out at once or leave in a time. */
  readonly noRoom?: Extract<Why, { readonly code: 'waits_for_place' | 'waits_for_rate' }> | undefined;
  /** What the destination says of credential and place, as the ledger keeps it. */
  readonly scope?: string | undefined;
  /** Guards of this tool were passed over once, and nobody has said since that they count again. */
  readonly isDistrusted?: boolean;
  /** An operator's stop over it; a cancel of its run is no matter of waiting. */
  readonly stopped?: StopInForce | undefined;
  /** What an approval was given on is not so any more: the target was read again before this. */
  readonly targetNow?: Extract<Why, { readonly code: 'target_changed' | 'target_unreadable' }> | undefined;
  /** The operation that this one supersedes, while that one is not settled. */
  readonly unsettledPredecessor: OperationId | undefined;
  /** What the policy in force says of it now; absent where there is none, or nothing is known of the tool. */
  readonly verdict?: Verdict | undefined;
  /** Whose access is lost, of those on whose word it is sent. */
  readonly accessLost?: Extract<Why, { readonly code: 'access_lost' }> | undefined;
  /** A write that must have happened before, and is not known to have. */
  readonly prerequisite?: Extract<Why, { readonly code: 'waits_for_prerequisite' }> | undefined;
}

export type SendingDecision =
  | { readonly send: true }
  | { readonly send: false; readonly then: 'wait' | 'hold' | 'park'; readonly why: Why };

/** D8 before every attempt, in one decision with the claim. */
export function judgeSending(operation: Operation, conditions: SendingConditions): SendingDecision {
  const { at, bounds, facts } = conditions;
  if (conditions.digest !== operation.digest) return refuse('park', { code: 'digest_mismatch' });
  // Whatever else has changed is judged when the stop is lifted; while something is unknown nothing waits for that.
  if (conditions.stopped !== undefined) {
    return refuse(operation.effect === 'unknown' ? 'park' : 'wait', whyOf(conditions.stopped));
  }
  if (isBeyondBounds(operation, bounds, at)) {
    return refuse('park', { code: 'bounds_used_up', attempts: operation.attempts.length });
  }
  const guardLost = lostGuard(operation, conditions);
  if (guardLost !== undefined) return refuse('park', guardLost);
  const lost = lostAuthority(operation, conditions);
  if (lost?.code === 'digest_mismatch') return refuse('park', lost);
  if (lost !== undefined) return refuse(operation.effect === 'unknown' ? 'park' : 'hold', lost);
  const { goOn, targetNow } = conditions;
  // Of what may have happened already, our own write may be the change.
  if (targetNow !== undefined && operation.effect !== 'unknown') return refuse('hold', targetNow);
  if (goOn !== undefined) {
    return goOn.standing === 'asked'
      ? refuse('wait', { code: 'waits_for_go_on', operation: goOn.operation })
      : refuse('hold', { code: 'go_on_refused', operation: goOn.operation });
  }
  if (conditions.unsettledPredecessor !== undefined) {
    return refuse('wait', { code: 'waits_for_predecessor', operation: conditions.unsettledPredecessor });
  }
  if (conditions.prerequisite !== undefined) return refuse('wait', conditions.prerequisite);
  if (conditions.lockedBy !== undefined) {
    return refuse('wait', { code: 'waits_for_operation', operation: conditions.lockedBy });
  }
  if (!conditions.connected || facts === undefined) {
    return refuse('wait', { code: 'waits_for_destination', detail: conditions.connectionDetail });
  }
  return conditions.noRoom === undefined ? { send: true } : refuse('wait', conditions.noRoom);
}

/** A repeat that was planned under a guard needs it at the moment of sending; while nothing is known of the tool it waits. */
function lostGuard(operation: Operation, conditions: SendingConditions): Why | undefined {
  const { at, facts, isDistrusted = false, scope } = conditions;
  if (operation.under === undefined || facts === undefined) return undefined;
  if (isDistrusted) return { code: 'guard_lost', lost: 'distrusted' };
  const isAbsent = operation.effect === 'absent';
  const guard = usableGuard(operation, facts, { at, isAbsent, kind: operation.under });
  if (guard === undefined) return { code: 'guard_lost', lost: 'window' };
  return isScopeKept(guard, operation, scope) ? undefined : { code: 'guard_lost', lost: 'scope' };
}

function refuse(then: 'wait' | 'hold' | 'park', why: Why): SendingDecision {
  return { send: false, then, why };
}

function lostAuthority(
  operation: Operation,
  { accessLost, at, facts, verdict }: SendingConditions,
): Why | undefined {
  const { review } = operation;
  if (review?.decision?.kind === 'approved' && review.digest !== operation.digest) {
    return { code: 'digest_mismatch' };
  }
  if (review?.decision?.kind === 'approved' && review.revoked !== undefined) {
    return { code: 'approval_revoked', by: review.revoked.by };
  }
  if (accessLost !== undefined) return accessLost;
  if (review?.decision?.kind === 'approved') {
    if (at > review.expiresAt) return { code: 'approval_expired' };
    const isEnough = isStrongEnough(review.decision.strength, facts?.class ?? operation.toolClass);
    return isEnough ? stricterPolicy(operation, review, verdict, at) : { code: 'rule_stricter' };
  }
  // No person decided: the rule that allowed it must still allow it. Equal or looser goes on.
  if (questionNow(facts, verdict) === undefined) return undefined;
  return questionNow(facts) === undefined ? stricterBy(verdict?.because?.rule) : { code: 'rule_stricter' };
}

/** What the policy wants now is held against the approvals as they were given. */
function stricterPolicy(
  { requester }: Operation,
  review: Review,
  verdict: Verdict | undefined,
  at: number,
): Why | undefined {
  if (verdict === undefined) return undefined;
  if (verdict.outcome === 'refuse') return stricterBy(verdict.because?.rule);
  const given = { by: approversOf(review), requester, openedAt: review.openedAt };
  const unmet = unmetDemand(verdict.demands, given, at);
  return unmet === undefined ? undefined : stricterBy(unmet.rule);
}

function stricterBy(rule: string | undefined): Why {
  return { code: 'rule_stricter', ...(rule === undefined ? {} : { rule }) };
}
