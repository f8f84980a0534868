// Every command on one operation, decided from state and context alone: events, or a refusal as a value.

import type { Attempt, ContentDigest } from './attempt.ts';
import {
  authorityFor,
  isStrongEnough,
  judgeSending,
  questionNow,
  type SendingConditions,
} from './authority.ts';
import type { ToolFacts } from './contract.ts';
import type { Evidence } from './evidence.ts';
import type { Effect } from './lifecycle.ts';
import {
  approversOf,
  assertNever,
  attemptsOfRound,
  type DecisionStrength,
  evolve,
  evolveAll,
  isStatementCurrent,
  isUnsettled,
  mayBeAskedAnew,
  type Operation,
  type OperationEvent,
  type OperationId,
  type Proposal,
  type Review,
  type ReviewedBy,
  type ReviewQuestion,
  type Revocation,
  type StatedResolution,
  type Why,
  wasEndedByWill,
} from './operation.ts';
import { type ApprovalDemands, unmetBy, type Verdict } from './policy.ts';
import { type Bounds, nextStep } from './repeatability.ts';
import { type Ending, whyOf } from './stop.ts';

/** Identity and end of a review, should one have to be opened; made at the edge, where chance and time are. */
export interface NewReview {
  readonly id: string;
  readonly expiresAt: number;
  readonly shown?: ContentDigest;
  readonly seen?: NonNullable<Review['seen']>;
}

export type Command =
  | {
      readonly type: 'propose';
      readonly proposal: Proposal;
      readonly facts: ToolFacts;
      readonly newReview: NewReview;
      /** A question about identity that a person must answer, whatever the tool's class. */
      readonly question?: ReviewQuestion;
      readonly verdict?: Verdict | undefined;
      /** Nothing is sent where it belongs: recorded, and closed at once. */
      readonly ended?: Ending | undefined;
    }
  | { readonly type: 'refuse_arguments'; readonly proposal: Proposal; readonly problem: ContentDigest }
  | {
      readonly type: 'start_attempt';
      readonly attempt: Omit<Attempt, 'number' | 'epoch' | 'open'>;
      readonly conditions: SendingConditions;
      readonly newReview: NewReview;
    }
  /** `leg`: counted from 2; of two answers to one question only one can be the next leg. */
  | {
      readonly type: 'record_leg';
      readonly attempt: string;
      readonly leg: number;
      readonly stopped?: boolean;
    }
  | {
      readonly type: 'record_evidence';
      readonly evidence: Evidence;
      readonly closes?: string;
      readonly result?: ContentDigest;
      readonly record?: Operation['record'];
      readonly facts: ToolFacts;
      readonly bounds: Bounds;
    }
  | {
      readonly type: 'fence_attempt';
      readonly attempt: string;
      readonly by: string;
      /** Absent while the tool is not known here: then it is only known to be unknown, and looked up later. */
      readonly facts: ToolFacts | undefined;
      readonly bounds: Bounds;
    }
  /** Nothing new is known, but what could be asked is not what it was: D7's next step is taken again. */
  | { readonly type: 'reconsider'; readonly facts: ToolFacts; readonly bounds: Bounds }
  | {
      readonly type: 'decide_review';
      readonly review: string;
      readonly digest: string;
      readonly decision: ReviewedBy;
    }
  | {
      readonly type: 'revoke_approval';
      readonly digest: string;
      readonly revocation: Revocation;
      readonly newReview: NewReview;
    }
  | { readonly type: 'lapse_review' }
  | {
      readonly type: 'reopen';
      readonly by: 'caller' | string;
      readonly facts: ToolFacts;
      readonly newReview: NewReview;
      readonly verdict?: Verdict | undefined;
      /** On a declared step: the proposal that this one takes the place of. */
      readonly supersedes?: OperationId;
      readonly ended?: Ending | undefined;
    }
  | { readonly type: 'state_finding'; readonly stated: StatedResolution }
  | {
      readonly type: 'order_again';
      readonly by: string;
      readonly strength?: DecisionStrength;
      readonly newReview: NewReview;
    }
  | { readonly type: 'give_up'; readonly by: string; readonly strength?: DecisionStrength }
  | { readonly type: 'order_look_up'; readonly by: string }
  | { readonly type: 'cancel_by_caller' }
  /** A named person's: nothing more of it is sent, whoever has approved it. */
  | { readonly type: 'cancel'; readonly by: string; readonly strength?: DecisionStrength }
  /** A stop is lifted without it: old work, which needs a new decision. */
  | { readonly type: 'end_stopped'; readonly why: Extract<Ending, { readonly code: 'stopped' }> }
  | { readonly type: 'supersede'; readonly by: OperationId }
  | { readonly type: 'see_replays'; readonly replays: readonly string[] }
  | { readonly type: 'deliver' };

export type RefusalCode =
  /** It is no longer what the person had seen. */
  | 'changed'
  | 'already_decided'
  | 'already_revoked'
  | 'no_approval'
  | 'digest_differs'
  | 'no_open_review'
  | 'review_expired'
  | 'strength_too_low'
  /** A rule says who may approve it, and this is not one of them. */
  | 'not_an_approver'
  /** A rule wants somebody else than whoever asked for it. */
  | 'own_request'
  /** A rule says who may act on it, and this is not one of them. */
  | 'not_an_operator'
  | 'not_at_this_stage'
  | 'unsettled'
  | 'needs_statement'
  | 'nothing_to_do';

export type Decision =
  | { readonly events: readonly OperationEvent[]; readonly refusal?: undefined }
  | { readonly refusal: RefusalCode; readonly events?: undefined };

/**
 * @param operation the present state; `undefined` only for commands that begin one
 * @param at the instant (ms since the epoch) under which the events are recorded
 */
export function decide(operation: Operation | undefined, command: Command, at: number): Decision {
  const begins = command.type === 'propose' || command.type === 'refuse_arguments';
  if (begins && operation !== undefined) return { refusal: 'not_at_this_stage' };
  if (command.type === 'propose') return propose(command, at);
  if (command.type === 'refuse_arguments') {
    const why: Why = { code: 'arguments', problem: command.problem };
    return events({ type: 'proposed', at, proposal: command.proposal }, { type: 'closed', at, why });
  }
  if (operation === undefined) return { refusal: 'not_at_this_stage' };
  switch (command.type) {
    case 'start_attempt':
      return startAttempt(operation, command, at);
    case 'record_leg':
      return recordLeg(operation, command, at);
    case 'record_evidence':
      return recordEvidence(operation, command, at);
    case 'fence_attempt':
      return fenceAttempt(operation, command, at);
    case 'reconsider':
      if (operation.stage !== 'checking') return { refusal: 'not_at_this_stage' };
      return events(stageOf(operation, command.facts, command.bounds, at));
    case 'decide_review':
      return decideReview(operation, command, at);
    case 'revoke_approval':
      return revokeApproval(operation, command, at);
    case 'lapse_review':
      return lapseReview(operation, at);
    case 'reopen':
      return reopen(operation, command, at);
    case 'state_finding':
      return stateFinding(operation, command.stated, at);
    case 'order_again':
      return orderAgain(operation, command, at);
    case 'give_up':
      if (operation.stage !== 'parked') return { refusal: 'not_at_this_stage' };
      return events({
        type: 'closed',
        at,
        why: { code: 'given_up', by: command.by, ...strengthOf(command) },
      });
    case 'order_look_up':
      return orderLookUp(operation, command.by, at);
    case 'cancel_by_caller':
      return cancelByCaller(operation, at);
    case 'cancel':
      return cancel(operation, { code: 'cancelled', by: command.by, at, ...strengthOf(command) }, at);
    case 'end_stopped':
      return endStopped(operation, command.why, at);
    case 'supersede':
      return supersede(operation, command.by, at);
    case 'see_replays': {
      const unseen = [...new Set(command.replays)].filter((replay) => !operation.replays.includes(replay));
      if (unseen.length === 0) return { refusal: 'nothing_to_do' };
      return events(...unseen.map((replay): OperationEvent => ({ type: 'replay_seen', at, replay })));
    }
    case 'deliver':
      if (operation.deliveredAt !== undefined || operation.stage !== 'closed')
        return { refusal: 'nothing_to_do' };
      return events({ type: 'delivered', at });
    default:
      return assertNever(command);
  }
}

function events(...list: OperationEvent[]): Decision {
  return { events: list };
}

function propose(command: Extract<Command, { type: 'propose' }>, at: number): Decision {
  const { ended, facts, proposal, newReview } = command;
  if (ended !== undefined)
    return events({ type: 'proposed', at, proposal }, { type: 'closed', at, why: ended });
  return events(
    { type: 'proposed', at, proposal },
    authorise(proposal.digest, { facts, newReview, verdict: command.verdict }, at, command.question),
  );
}

/** Allowed by a rule that is named, a review over exactly this digest, or refused by a rule. */
function authorise(
  digest: string,
  judged: {
    readonly facts: ToolFacts;
    readonly newReview: NewReview;
    readonly verdict: Verdict | undefined;
  },
  at: number,
  question?: ReviewQuestion,
): OperationEvent {
  const { facts, newReview, verdict } = judged;
  const authority = authorityFor(facts, verdict);
  if (!authority.allowed && authority.refused !== undefined) {
    return { type: 'closed', at, why: { code: 'refused_by_rule', because: authority.refused } };
  }
  if (question === undefined && authority.allowed) return { type: 'allowed', at, rule: authority.rule };
  const asked = question ?? (authority.allowed ? undefined : authority.question);
  if (asked === undefined) throw new Error('Assertion: a review needs its question.');
  return openReview(digest, asked, newReview, at, { demands: verdict?.demands });
}

function openReview(
  digest: string,
  question: ReviewQuestion,
  newReview: NewReview,
  at: number,
  beside: { readonly because?: Why; readonly demands?: ApprovalDemands | undefined } = {},
): OperationEvent {
  const { because, demands } = beside;
  const ends = at + (demands?.lifetime?.ms ?? Number.POSITIVE_INFINITY);
  const review: Review = {
    digest,
    question,
    openedAt: at,
    ...newReview,
    expiresAt: Math.min(newReview.expiresAt, ends),
    ...(because === undefined ? {} : { because }),
    ...(demands === undefined ? {} : { demands }),
  };
  return { type: 'review_opened', at, review };
}

function startAttempt(
  operation: Operation,
  command: Extract<Command, { type: 'start_attempt' }>,
  at: number,
): Decision {
  if (operation.stage !== 'ready') return { refusal: 'not_at_this_stage' };
  const { stopped } = command.conditions;
  if (stopped?.kind === 'cancel') return cancel(operation, whyOf(stopped), at);
  const judged = judgeSending(operation, command.conditions);
  if (judged.send) {
    const number = operation.attempts.length + 1;
    const attempt: Attempt = {
      number,
      epoch: operation.epoch + 1,
      open: true,
      ...(operation.under === undefined ? {} : { under: operation.under }),
      ...command.attempt,
    };
    return events({ type: 'attempt_started', at, attempt });
  }
  switch (judged.then) {
    case 'wait':
      return isSameWhy(operation.why, judged.why)
        ? { refusal: 'nothing_to_do' }
        : events({ type: 'waiting', at, why: judged.why });
    case 'park':
      return events({ type: 'parked', at, why: afterWaiting(operation, judged.why) });
    case 'hold': {
      const { facts, verdict } = command.conditions;
      const asked = judged.why.code === 'go_on_refused' ? 'many_writes' : questionNow(facts, verdict);
      const earlier = operation.review?.question;
      // A rule that became stricter asks its own question; what has run out asks the same again.
      const isStricter = judged.why.code === 'rule_stricter';
      const question = (isStricter ? (asked ?? earlier) : (earlier ?? asked)) ?? 'irreversible';
      const why = afterWaiting(operation, judged.why);
      const beside = { because: why, demands: verdict?.demands };
      return events(
        { type: 'held', at, why },
        openReview(operation.digest, question, command.newReview, at, beside),
      );
    }
  }
}

/** What has run out because its destination did not answer belongs to that cause, also when it is with a person. */
function afterWaiting({ why: before }: Operation, why: Why): Why {
  const hasRunOut = why.code === 'approval_expired' || why.code === 'bounds_used_up';
  return hasRunOut && before?.code === 'waits_for_destination' ? { ...why, waited: before.code } : why;
}

/** What it waits for is told once; that a destination words its absence differently is no news. */
function isSameWhy(one: Why | undefined, other: Why): boolean {
  if (one?.code !== other.code) return false;
  const isAboutOperation =
    one.code === 'waits_for_operation' ||
    one.code === 'waits_for_predecessor' ||
    one.code === 'waits_for_prerequisite' ||
    one.code === 'waits_for_go_on';
  if (one.code === 'stopped') return one.stop === (other as typeof one).stop;
  return !isAboutOperation || one.operation === (other as typeof one).operation;
}

function recordLeg(
  { attempts, cancelRequestedAt, ended, stage }: Operation,
  { attempt: id, leg, stopped = false }: Extract<Command, { type: 'record_leg' }>,
  at: number,
): Decision {
  const attempt = attempts.find((other) => other.id === id);
  if (stage !== 'sending' || attempt?.open !== true) return { refusal: 'not_at_this_stage' };
  // The answer to a question is what makes it happen: it is not sent after a cancel, nor under a stop (D10).
  if (stopped || cancelRequestedAt !== undefined || ended !== undefined)
    return { refusal: 'not_at_this_stage' };
  if (leg !== (attempt.legs ?? 1) + 1) return { refusal: 'nothing_to_do' };
  return events({ type: 'leg_recorded', at, attempt: id, leg });
}

function recordEvidence(
  operation: Operation,
  command: Extract<Command, { type: 'record_evidence' }>,
  at: number,
): Decision {
  if (operation.attempts.length === 0) return { refusal: 'not_at_this_stage' };
  const { evidence, closes, result, record } = command;
  const recorded: OperationEvent = {
    type: 'evidence_recorded',
    at,
    evidence,
    ...(closes === undefined ? {} : { closes }),
    ...(result === undefined ? {} : { result }),
    ...(record === undefined ? {} : { record }),
  };
  const after = evolve(operation, recorded);
  return { events: [recorded, ...stageAfterEvidence(after, operation.effect, command, at)] };
}

/** Where an operation goes by what it is known to have done now; `before`: what was known of it. */
function stageAfterEvidence(
  operation: Operation,
  before: Effect,
  { facts, bounds }: { readonly facts: ToolFacts; readonly bounds: Bounds },
  at: number,
): readonly OperationEvent[] {
  const { effect, stage } = operation;
  const isNews = effect !== before;
  if (effect === 'diverged') {
    const isWithPerson = stage === 'parked' || stage === 'closed';
    return isWithPerson && !isNews ? [] : [{ type: 'parked', at, why: { code: 'contradiction' } }];
  }
  if (operation.attempts.some((attempt) => attempt.open)) return [];
  if (stage === 'sending' || stage === 'checking') return [stageOf(operation, facts, bounds, at)];
  if (stage === 'closed') return [];
  const isKnown = effect === 'accepted' || effect === 'verified' || effect === 'error_reported';
  const isSettledWhileParked = stage === 'parked' && effect === 'rejected';
  if (isKnown || isSettledWhileParked) return [{ type: 'closed', at, why: { code: 'answered' } }];
  if (stage === 'parked') return isNews ? parkedAnew(operation, at) : [];
  // About to be sent again on what was known before: a refusal may turn out to be definitive.
  if (attemptsOfRound(operation).length === 0) return [];
  const next = stageOf(operation, facts, bounds, at);
  return next.type === 'closed' || (next.type === 'parked' && stage === 'ready') ? [next] : [];
}

/** With a person already, who is now asked something else. */
function parkedAnew({ attempts, effect }: Operation, at: number): readonly OperationEvent[] {
  if (effect === 'absent') return [{ type: 'parked', at, why: { code: 'absent_needs_decision' } }];
  if (effect !== 'not_sent') return [];
  return [{ type: 'parked', at, why: { code: 'bounds_used_up', attempts: attempts.length } }];
}

/** D7's step, as the event that moves the operation there. */
function stageOf(operation: Operation, facts: ToolFacts, bounds: Bounds, at: number): OperationEvent {
  const step = nextStep(operation, facts, bounds, at);
  switch (step.step) {
    case 'close':
      return { type: 'closed', at, why: step.why };
    case 'read_back':
      return { type: 'checking', at, why: { code: 'reading_back' } };
    case 'look_up':
      return { type: 'checking', at, why: { code: 'looking_up', nextAt: step.at } };
    case 'ask_again':
      return { type: 'checking', at, why: { code: 'destination_still_working', nextAt: step.at } };
    case 'send_again':
      // In `observe` nothing leaves but what its caller sent itself.
      if (operation.observed !== undefined) {
        return operation.effect === 'unknown'
          ? { type: 'parked', at, why: { code: 'not_guarded' } }
          : { type: 'closed', at, why: { code: 'not_guarded' } };
      }
      if (isUnapproved(operation)) return withPersonAgain(operation, at);
      return {
        type: 'sending_again',
        at,
        why: { code: 'waits_until', until: step.at },
        ...(step.under === undefined ? {} : { under: step.under }),
      };
    case 'park':
      return { type: 'parked', at, why: step.why };
  }
}

/** Asked for again, and not approved: it was looked up once more since, and that is no word for sending it. */
function isUnapproved({ review }: Operation): boolean {
  return review !== undefined && review.decision?.kind !== 'approved';
}

function withPersonAgain({ effect, review }: Operation, at: number): OperationEvent {
  if (effect === 'rejected') return { type: 'closed', at, why: { code: 'answered' } };
  if (effect === 'absent') return { type: 'parked', at, why: { code: 'absent_needs_decision' } };
  const code = review?.decision === undefined ? 'review_undecided' : 'denied';
  return { type: 'parked', at, why: { code } };
}

/** A claim that was lost: what was out has ended without an answer that counts, and is known no better. */
function fenceAttempt(
  operation: Operation,
  command: Extract<Command, { type: 'fence_attempt' }>,
  at: number,
): Decision {
  const attempt = operation.attempts.find((other) => other.id === command.attempt);
  if (attempt?.open !== true) return { refusal: 'nothing_to_do' };
  const fenced: OperationEvent = { type: 'attempt_fenced', at, attempt: attempt.id, by: command.by };
  const recorded: OperationEvent = {
    type: 'evidence_recorded',
    at,
    evidence: {
      kind: 'transport',
      left: 'maybe',
      what: 'claim_lost',
      attempt: attempt.id,
      observer: command.by,
      observedAt: at,
      recordedAt: at,
    },
  };
  const after = evolve(evolve(operation, fenced), recorded);
  const { bounds, facts } = command;
  if (facts === undefined) {
    if (after.stage !== 'sending' || after.effect !== 'unknown') return { refusal: 'not_at_this_stage' };
    return events(fenced, recorded, { type: 'checking', at, why: { code: 'looking_up', nextAt: at } });
  }
  return {
    events: [fenced, recorded, ...stageAfterEvidence(after, operation.effect, { facts, bounds }, at)],
  };
}

function decideReview(
  operation: Operation,
  command: Extract<Command, { type: 'decide_review' }>,
  at: number,
): Decision {
  const { review } = operation;
  if (review === undefined || review.id !== command.review) return { refusal: 'no_open_review' };
  if (review.digest !== command.digest) return { refusal: 'digest_differs' };
  if (review.decision !== undefined) return { refusal: 'already_decided' };
  if (operation.stage !== 'awaiting_approval') return { refusal: 'no_open_review' };
  if (at > review.expiresAt) return { refusal: 'review_expired' };
  const { shown } = review;
  const decision = shown === undefined ? command.decision : { ...command.decision, shown };
  const toolClass = review.question === 'irreversible' ? 'irreversible' : operation.toolClass;
  if (decision.kind === 'approved' && !isStrongEnough(decision.strength, toolClass)) {
    return { refusal: 'strength_too_low' };
  }
  if (decision.kind === 'approved') return approve(operation, review, decision, at);
  const denied: OperationEvent = { type: 'denied', at, decision };
  // Denying that it is sent again says nothing about the try whose result is unknown (D8, "Close").
  if (operation.effect === 'unknown') return events(denied, { type: 'parked', at, why: { code: 'denied' } });
  return events(denied);
}

/** One more approval: the last of those that are wanted lets it go on. */
function approve({ requester }: Operation, review: Review, decision: ReviewedBy, at: number): Decision {
  const by = decision.principal ?? decision.by;
  const unmet = unmetBy(review.demands, by, requester);
  if (unmet !== undefined) return { refusal: unmet.what === 'separate' ? 'own_request' : 'not_an_approver' };
  const before = approversOf(review);
  if (before.includes(by)) return { refusal: 'already_decided' };
  const isLast = approvalsMissing(review) <= 1;
  return events({ type: isLast ? 'approved' : 'approved_in_part', at, decision });
}

/** How many persons have still to approve it. */
export function approvalsMissing(review: Review): number {
  return Math.max(0, (review.demands?.quorum?.persons ?? 1) - approversOf(review).length);
}

/**
 * Takes an approval back. What waits under it is held, and a person is asked anew; what is on its way goes on to be
 * known, and no attempt starts after it.
 */
function revokeApproval(
  operation: Operation,
  command: Extract<Command, { type: 'revoke_approval' }>,
  at: number,
): Decision {
  const { effect, review, stage } = operation;
  if (review === undefined) return { refusal: 'no_approval' };
  if (review.digest !== command.digest) return { refusal: 'digest_differs' };
  const earlier = revocationOf(review);
  if (earlier !== undefined) return { refusal: 'already_revoked' };
  if (review.decision?.kind !== 'approved') return { refusal: 'no_approval' };
  // What is closed is sent again under a new approval alone: there is nothing left to take back.
  if (stage === 'closed') return { refusal: 'not_at_this_stage' };
  const { newReview, revocation } = command;
  const revoked: OperationEvent = { type: 'revoked', at, revocation };
  if (stage !== 'ready') return events(revoked);
  const why: Why = { code: 'approval_revoked', by: revocation.by };
  if (effect === 'unknown') return events(revoked, { type: 'parked', at, why });
  return events(
    revoked,
    { type: 'held', at, why },
    openReview(operation.digest, review.question, { ...newReview, ...shownIn(review) }, at, {
      because: why,
      demands: review.demands,
    }),
  );
}

/** What was read and shown for the same bytes before: a person who asks anew has no way to the destination. */
function shownIn(review: Review | undefined): Pick<NewReview, 'shown' | 'seen'> {
  const { seen, shown } = review ?? {};
  return { ...(shown === undefined ? {} : { shown }), ...(seen === undefined ? {} : { seen }) };
}

/** By whom the approval was taken back: of this review, or of the one that it takes the place of. */
function revocationOf({ because, decision, revoked }: Review): { readonly by: string } | undefined {
  if (revoked !== undefined) return revoked;
  return decision === undefined && because?.code === 'approval_revoked' ? because : undefined;
}

/** A review that ends undecided closes the operation; while something is unknown it goes back to a person. */
function lapseReview(operation: Operation, at: number): Decision {
  if (operation.stage !== 'awaiting_approval') return { refusal: 'not_at_this_stage' };
  if (at <= (operation.review?.expiresAt ?? Number.POSITIVE_INFINITY)) return { refusal: 'nothing_to_do' };
  const why: Why = { code: 'review_undecided' };
  return events(operation.effect === 'unknown' ? { type: 'parked', at, why } : { type: 'closed', at, why });
}

function reopen(operation: Operation, command: Extract<Command, { type: 'reopen' }>, at: number): Decision {
  if (operation.stage !== 'closed') return { refusal: 'not_at_this_stage' };
  if (!mayBeAskedAnew(operation)) {
    return { refusal: isUnsettled(operation) ? 'unsettled' : 'not_at_this_stage' };
  }
  if (command.by === 'caller' && wasEndedByWill(operation)) return { refusal: 'not_at_this_stage' };
  const { ended, facts, newReview, verdict } = command;
  if (ended !== undefined) {
    if (operation.why?.code === ended.code) return { refusal: 'nothing_to_do' };
    return events({ type: 'reopened', at, by: command.by }, { type: 'closed', at, why: ended });
  }
  const authorised = authorise(
    operation.digest,
    { facts, newReview, verdict },
    at,
    unansweredQuestion(operation),
  );
  const { supersedes } = command;
  return events(
    { type: 'reopened', at, by: command.by, ...(supersedes === undefined ? {} : { supersedes }) },
    authorised,
  );
}

/** They are about more than the tool, so that its class does not answer them. */
const LASTING_QUESTIONS: readonly ReviewQuestion[] = [
  'same_work',
  'too_old',
  'error_reported',
  'again',
  'many_writes',
];

/** A question about identity, or about going on, stays one until a person has answered it: that nobody did in time is no answer. */
export function unansweredQuestion({ review }: Operation): ReviewQuestion | undefined {
  if (review === undefined) return undefined;
  if (review.decision?.kind === 'approved' && review.revoked === undefined) return undefined;
  return LASTING_QUESTIONS.includes(review.question) ? review.question : undefined;
}

function stateFinding(operation: Operation, stated: StatedResolution, at: number): Decision {
  const isOpenQuestion = operation.effect === 'unknown' || operation.effect === 'diverged';
  if ((operation.stage !== 'parked' && operation.stage !== 'closed') || !isOpenQuestion) {
    return { refusal: 'not_at_this_stage' };
  }
  const statedEvent: OperationEvent = { type: 'stated', at, stated };
  if (operation.stage === 'closed' || stated.resolution === 'stated_not_happened') return events(statedEvent);
  return events(statedEvent, { type: 'closed', at, why: { code: 'stated', by: stated.by } });
}

/** A named person's order to send the same operation again: only after a statement, under a new approval. */
function orderAgain(
  operation: Operation,
  command: Extract<Command, { type: 'order_again' }>,
  at: number,
): Decision {
  const { review } = operation;
  if (operation.stage !== 'parked' && operation.stage !== 'closed') return { refusal: 'not_at_this_stage' };
  // What was only observed was never guarded: a second one is an operation of its own.
  if (operation.observed !== undefined) return { refusal: 'not_at_this_stage' };
  const isStated =
    isStatementCurrent(operation) && operation.resolution?.resolution === 'stated_not_happened';
  if (operation.effect === 'unknown' && !isStated) return { refusal: 'needs_statement' };
  if (!['unknown', 'absent', 'not_sent', 'rejected'].includes(operation.effect)) {
    return { refusal: 'not_at_this_stage' };
  }
  return events(
    { type: 'ordered_again', at, by: command.by, ...strengthOf(command) },
    openReview(operation.digest, 'ordered_again', { ...command.newReview, ...shownIn(review) }, at),
  );
}

function strengthOf({ strength }: { readonly strength?: DecisionStrength }): {
  readonly strength?: DecisionStrength;
} {
  return strength === undefined ? {} : { strength };
}

/** Only what is not established is looked up; what is on its way has a sender that waits for its answer. */
function orderLookUp(operation: Operation, by: string, at: number): Decision {
  const { effect, stage, why } = operation;
  if (effect !== 'unknown' || (stage !== 'parked' && stage !== 'checking')) {
    return { refusal: 'not_at_this_stage' };
  }
  if (stage === 'checking' && (why?.code !== 'looking_up' || why.nextAt <= at)) {
    return { refusal: 'nothing_to_do' };
  }
  return events({ type: 'look_up_ordered', at, by });
}

/**
 * The protocol's cancel of one call. It ends what no person has been asked about and what has not left; what
 * has left goes on to be known, with the request recorded.
 */
function cancelByCaller(operation: Operation, at: number): Decision {
  if (operation.stage === 'closed' || operation.cancelRequestedAt !== undefined)
    return { refusal: 'nothing_to_do' };
  if (operation.stage === 'awaiting_approval' || operation.review !== undefined)
    return { refusal: 'nothing_to_do' };
  const requested: OperationEvent = { type: 'cancel_requested', at };
  if (operation.stage !== 'ready') return events(requested);
  // A repeat under a guard was about to leave: what is unknown stays so, and nothing more is sent (D8, "Close").
  const type = operation.effect === 'unknown' ? 'parked' : 'closed';
  return events(requested, { type, at, why: { code: 'withdrawn_by_caller' } });
}

/**
 * A person's cancel. What has not left closes, whoever has approved it; what has left goes on to be known, and what is
 * unknown is only looked up (D8, "Close"). It is asked for once: the first one stands.
 */
function cancel(operation: Operation, why: Ending, at: number): Decision {
  if (why.code !== 'cancelled') throw new Error('Assertion: a cancel says who cancelled.');
  if (operation.ended?.code === 'cancelled') return { refusal: 'nothing_to_do' };
  if (operation.stage === 'closed') return { refusal: 'not_at_this_stage' };
  const requested: OperationEvent = { type: 'cancel_requested', at, cancelled: why };
  return { events: [requested, ...endOfSending(operation, why, at)] };
}

/** What of it waited is closed; what is out goes on to be known. */
function endStopped(
  operation: Operation,
  why: Extract<Ending, { readonly code: 'stopped' }>,
  at: number,
): Decision {
  const { ended, stage } = operation;
  if (stage === 'ready') return { events: endOfSending(operation, why, at) };
  if (stage !== 'sending' && stage !== 'checking') return { refusal: 'not_at_this_stage' };
  return ended === undefined ? events({ type: 'sending_ended', at, why }) : { refusal: 'nothing_to_do' };
}

function endOfSending({ effect, stage }: Operation, why: Ending, at: number): readonly OperationEvent[] {
  const isOpenQuestion = effect === 'unknown' || effect === 'diverged';
  if (stage === 'sending' || stage === 'checking' || stage === 'closed') return [];
  if (isOpenQuestion) return stage === 'parked' ? [] : [{ type: 'parked', at, why }];
  return [{ type: 'closed', at, why }];
}

/**
 * A changed proposal takes the place of one of which nothing is on its way. What is on its way is only linked:
 * it goes on to be known, and is not sent again by itself (D8, "Close").
 */
function supersede(operation: Operation, by: OperationId, at: number): Decision {
  if (operation.supersededBy === by) return { refusal: 'nothing_to_do' };
  const superseded: OperationEvent = { type: 'superseded', at, by };
  const why: Why = { code: 'replaced', by };
  switch (operation.stage) {
    case 'closed':
    case 'sending':
    case 'checking':
      return events(superseded);
    case 'parked':
      return operation.effect === 'unknown' || operation.effect === 'diverged'
        ? events(superseded)
        : events(superseded, { type: 'closed', at, why });
    case 'proposed':
    case 'awaiting_approval':
    case 'held':
    case 'ready':
      return events(superseded, { type: operation.effect === 'unknown' ? 'parked' : 'closed', at, why });
  }
}

/** The state that a decision leads to; `undefined` for a refusal. */
export function decided(operation: Operation | undefined, decision: Decision): Operation | undefined {
  return decision.events === undefined ? undefined : evolveAll(operation, decision.events);
}
