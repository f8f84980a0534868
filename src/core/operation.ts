// One intended write: its state, the events that make its history, and how an event changes the state.
//
// The state is what the store keeps in the row, so that no history is replayed to decide. It holds digests
// and references only; payloads, results and what a reviewer saw are content documents (D12).

import type { Attempt, ContentDigest } from './attempt.ts';
import type { RepeatClass, ToolClass } from './contract.ts';
import { type Evidence, effectOf } from './evidence.ts';
import {
  type Effect,
  type EventType,
  isAllowedPair,
  mayFollow,
  type Resolution,
  type Stage,
  stageAfter,
} from './lifecycle.ts';
import type { ApprovalDemands, PolicyReason, RecordedVerdict } from './policy.ts';

export type OperationId = string & { readonly brand?: 'OperationId' };

export interface RunReference {
  readonly id: string;
  /** True when nobody gave a run: then it is (principal, destination), rolled over every 24 h. */
  readonly weak: boolean;
  /** Declared by the workflow's author; hashed into the intent. */
  readonly step?: string;
  readonly single?: boolean;
}

export type ReviewQuestion =
  | 'irreversible'
  | 'unclassified'
  | 'same_work'
  | 'too_old'
  | 'error_reported'
  | 'ordered_again'
  /** The server is in `strict` mode: every write waits. */
  | 'strict'
  /** Its class was confirmed for another version of the tool. */
  | 'tool_changed'
  /** The write that is one too many within an hour: whether to go on. */
  | 'many_writes'
  /** The caller says that it is really wanted once more. */
  | 'again'
  /** A rule of the policy wants a person to decide. */
  | 'policy';

/** Recorded in `observe` mode: sent whatever the ledger held, so not guarded. What `guard` would have done. */
export type Observed =
  | { readonly guard: 'send' }
  | { readonly guard: 'ask'; readonly question: ReviewQuestion }
  /** It would have been answered with that operation, and not sent. */
  | { readonly guard: 'answer'; readonly operation: OperationId };

/** How well it is known who acted: named in receipts (D9). */
export type DecisionStrength = 'same_account' | 'passphrase' | 'sso';

/** A person's decision, or the open request for one, on exactly one digest. */
export interface Review {
  readonly id: string;
  readonly digest: string;
  readonly question: ReviewQuestion;
  readonly openedAt: number;
  readonly expiresAt: number;
  /** Why an earlier approval no longer holds, when this review replaces one: the operation is *held*. */
  readonly because?: Why;
  /** What a person is shown, stored before anybody sees it; absent where the review was opened without a gateway. */
  readonly shown?: ContentDigest;
  /** How the target stood when it was read for this review: it is read again, and must be the same, before it is sent. */
  readonly seen?: { readonly document: ContentDigest; readonly at: number };
  /** What the policy wanted of an approval when the review was opened. */
  readonly demands?: ApprovalDemands;
  /** Approvals of other persons, where more than one is wanted; the last one is the decision. */
  readonly approvals?: readonly ReviewedBy[];
  readonly decision?: ReviewedBy;
  /** The approval was taken back: no attempt starts under it since, and what had left is not recalled. */
  readonly revoked?: Revocation;
}

/** Who took an approval back, and how well that is known. */
export interface Revocation {
  readonly by: string;
  readonly at: number;
  readonly strength: DecisionStrength;
  readonly comment?: ContentDigest;
}

/** One person's answer to a review. */
export interface ReviewedBy {
  readonly kind: 'approved' | 'denied';
  /** As the person is called; a command takes any name that it is given. */
  readonly by: string;
  /** Who it is known to be, as rules name principals; `by` where the door knows no more. */
  readonly principal?: string;
  readonly at: number;
  readonly strength: DecisionStrength;
  readonly comment?: ContentDigest;
  /** What was shown of it, as a content document. */
  readonly shown?: ContentDigest;
  /** The digest of the frozen list that was decided on as one, where it was; this operation's own is in it. */
  readonly list?: string;
}

/** Whoever has approved it in this review, as rules name principals. */
export function approversOf({ approvals = [], decision }: Review): readonly string[] {
  const all = decision === undefined ? approvals : [...approvals, decision];
  return all.filter(({ kind }) => kind === 'approved').map(({ by, principal }) => principal ?? by);
}

/** What is known of a principal who may act no more; `not_confirmed`: what is known is too old. */
export type AccessLost = 'removed' | 'expired' | 'not_confirmed';

/** Why the operation is where it is, in codes that `wording` turns into sentences. */
export type Why =
  | { readonly code: 'asks'; readonly question: ReviewQuestion }
  | { readonly code: 'waits_for_operation'; readonly operation: OperationId }
  /** The proposal that this one takes the place of may still land; it is no matter of the target's lock. */
  | { readonly code: 'waits_for_predecessor'; readonly operation: OperationId }
  | { readonly code: 'waits_for_destination'; readonly detail: string }
  /** So many writes may be out there at once, and are. */
  | { readonly code: 'waits_for_place'; readonly at_once: number }
  /** So many writes may leave in this time, and have. */
  | {
      readonly code: 'waits_for_rate';
      readonly writes: number;
      readonly perMs: number;
      readonly until: number;
    }
  | { readonly code: 'waits_for_gateway' }
  | { readonly code: 'waits_until'; readonly until: number }
  /** `waited`: what it had waited for until then, where that is why it was not sent in time. */
  | { readonly code: 'approval_expired'; readonly waited?: 'waits_for_destination' }
  | { readonly code: 'approval_revoked'; readonly by: string }
  /** What the write touches is not what was reviewed: the fields, and the versions where they are known. */
  | {
      readonly code: 'target_changed';
      readonly fields: readonly string[];
      readonly was?: string;
      readonly is?: string;
    }
  /** Whether it is what was reviewed cannot be told: it cannot be read any more. */
  | { readonly code: 'target_unreadable' }
  /** `rule`: the one of the policy that is not met any more; absent where the tool's class or the mode is. */
  | { readonly code: 'rule_stricter'; readonly rule?: string }
  /** A rule refused it: nobody is asked. */
  | { readonly code: 'refused_by_rule'; readonly because: PolicyReason }
  /** Whoever asked for it or approved it may not do so any more, or that cannot be confirmed now. */
  | {
      readonly code: 'access_lost';
      readonly who: 'requester' | 'approver';
      readonly principal: string;
      readonly how: AccessLost;
    }
  /** Another write of this run must be known to have happened before; `operation`: the latest one there is. */
  | {
      readonly code: 'waits_for_prerequisite';
      readonly rule: string;
      readonly tool: string;
      readonly effect: 'accepted' | 'verified';
      readonly operation?: OperationId;
    }
  | { readonly code: 'looking_up'; readonly nextAt: number }
  | { readonly code: 'reading_back' }
  | { readonly code: 'destination_still_working'; readonly nextAt: number }
  | { readonly code: 'no_lookup' }
  | { readonly code: 'lookups_exhausted'; readonly count: number }
  | { readonly code: 'absent_needs_decision' }
  | {
      readonly code: 'bounds_used_up';
      readonly attempts: number;
      readonly waited?: 'waits_for_destination';
    }
  | { readonly code: 'not_guarded' }
  /** Many writes were made within an hour; whether to go on is asked with that operation. */
  | { readonly code: 'waits_for_go_on'; readonly operation: OperationId }
  | { readonly code: 'go_on_refused'; readonly operation: OperationId }
  /** A repeat that was planned under a guard of the destination, which may be counted on no longer. */
  | { readonly code: 'guard_lost'; readonly lost: 'window' | 'scope' | 'distrusted' }
  /** An operator's order that nothing is sent there: not sent while it waits for that to be lifted, or ended by it. */
  | {
      readonly code: 'stopped';
      readonly stop: string;
      readonly since: number;
      readonly scope: 'everything' | 'destination' | 'tool' | 'run' | 'requester';
      readonly reason?: ContentDigest;
    }
  /** By a named person, alone or with its run. */
  | {
      readonly code: 'cancelled';
      readonly by: string;
      readonly at: number;
      readonly strength?: DecisionStrength;
    }
  | { readonly code: 'digest_mismatch' }
  | { readonly code: 'contradiction' }
  | { readonly code: 'review_undecided' }
  | { readonly code: 'answered' }
  | { readonly code: 'arguments'; readonly problem: ContentDigest }
  | { readonly code: 'denied' }
  | { readonly code: 'withdrawn_by_caller' }
  | { readonly code: 'replaced'; readonly by: OperationId }
  | { readonly code: 'stated'; readonly by: string }
  | { readonly code: 'given_up'; readonly by: string; readonly strength?: DecisionStrength };

export interface StatedResolution {
  readonly resolution: Resolution;
  readonly by: string;
  readonly at: number;
  readonly strength?: DecisionStrength;
  /** Where the person looked, as a content document. */
  readonly looked?: ContentDigest;
  /** How many attempts had been made when it was stated; it says nothing about a later one. */
  readonly attempts?: number;
  /** Set when later evidence of a system says otherwise. */
  readonly contradicted?: boolean;
}

export interface Operation {
  readonly id: OperationId;
  readonly tenant: string;
  readonly run: RunReference;
  readonly requester: string;
  readonly destination: string;
  readonly tool: string;
  readonly toolClass: ToolClass;
  readonly repeat: RepeatClass;
  /** What allowed it, when no person did: the rule by name. */
  readonly rule?: string;
  readonly factsDigest: string;
  /** What the policy said of it when it was proposed; absent where there was none. */
  readonly policy?: RecordedVerdict;
  /** SHA-256 of the tool's name, schema and annotations, where it was listed: what a confirmed class is kept by. */
  readonly toolDigest?: string;
  readonly contract?: string;
  readonly intentKey: string;
  /** The same intent in any run, as hex: by this open work of other runs is found. */
  readonly crossRunHash: string;
  readonly sequence: number;
  /** SHA-256 of the canonical arguments as called, to tell what was different in an equal call. */
  readonly argumentsDigest: string;
  readonly payload: {
    readonly document: ContentDigest;
    readonly sha256: string;
    readonly bytes: number;
    /** The arguments and the request that was made of them (`FrozenWrite`); the arguments alone where absent. */
    readonly holds?: 'http_request';
  };
  readonly digest: string;
  readonly target?: { readonly locks: readonly string[]; readonly document: ContentDigest };
  readonly stamp?: string;
  /** Call ids and positions that this operation was asked by: an equal one is a proven replay. */
  readonly replays: readonly string[];
  readonly proposedAt: number;

  readonly stage: Stage;
  readonly effect: Effect;
  readonly resolution?: StatedResolution;
  readonly why?: Why;
  /** The instant at which the present stage began. */
  readonly since: number;

  readonly round: number;
  /** Bounds of time are counted from here. */
  readonly roundBeganAt: number;
  /** Attempts of earlier rounds. */
  readonly attemptsBefore: number;
  readonly epoch: number;
  readonly review?: Review;
  /** Set by a named person's order to send again (D4), until the attempt that it asked for. */
  readonly orderedBy?: string;
  /** The guard under which the next attempt repeats what may have happened already. */
  readonly under?: Attempt['under'];
  readonly attempts: readonly Attempt[];
  readonly evidence: readonly Evidence[];
  readonly lookUps: number;
  readonly cancelRequestedAt?: number;
  /** A person's cancel or an operator's stop: what is out goes on to be known, and nothing more of it is sent. */
  readonly ended?: Extract<Why, { readonly code: 'cancelled' | 'stopped' }>;
  readonly result?: ContentDigest;
  readonly record?: { readonly id?: string; readonly version?: string };
  readonly deliveredAt?: number;
  readonly supersedes?: OperationId;
  readonly supersededBy?: OperationId;
  /** An earlier operation with the same arguments, and why this one is another. */
  readonly previous?: { readonly operation: OperationId; readonly relation: 'occurrence' | 'other_run' };
  readonly observed?: Observed;
  /** The class that the tool had before it changed. */
  readonly classBefore?: Exclude<ToolClass, 'unclassified'>;
  /** The tool as it was listed, where a person is asked what it is. */
  readonly toolDocument?: ContentDigest;
  /** Why its caller wants a second one, in its words; or the person who asks in the caller's place. */
  readonly reason?: ContentDigest;
  /** That person, by name. */
  readonly askedBy?: string;
  /** Names that others know it by (a thread, a trace): for finding it, never hashed. */
  readonly references?: readonly string[];
}

/** What is fixed when an operation is proposed. */
export type Proposal = Pick<
  Operation,
  | 'id'
  | 'tenant'
  | 'run'
  | 'requester'
  | 'destination'
  | 'tool'
  | 'toolClass'
  | 'repeat'
  | 'factsDigest'
  | 'policy'
  | 'toolDigest'
  | 'contract'
  | 'intentKey'
  | 'crossRunHash'
  | 'sequence'
  | 'argumentsDigest'
  | 'payload'
  | 'digest'
  | 'target'
  | 'stamp'
  | 'replays'
  | 'supersedes'
  | 'previous'
  | 'observed'
  | 'classBefore'
  | 'toolDocument'
  | 'reason'
  | 'askedBy'
  | 'references'
>;

/** What may change of an operation: together with its proposal, all of it. */
export type MovingPart = Omit<Operation, Exclude<keyof Proposal, 'replays' | 'supersedes'>>;

/** Every member by its name: it is made for each step, and a loop over names costs five times as much. */
export function movingPart(operation: Operation): {
  readonly [Member in keyof Required<MovingPart>]: MovingPart[Member];
} {
  return {
    replays: operation.replays,
    supersedes: operation.supersedes,
    rule: operation.rule,
    proposedAt: operation.proposedAt,
    stage: operation.stage,
    effect: operation.effect,
    resolution: operation.resolution,
    why: operation.why,
    since: operation.since,
    round: operation.round,
    roundBeganAt: operation.roundBeganAt,
    attemptsBefore: operation.attemptsBefore,
    epoch: operation.epoch,
    review: operation.review,
    orderedBy: operation.orderedBy,
    under: operation.under,
    attempts: operation.attempts,
    evidence: operation.evidence,
    lookUps: operation.lookUps,
    cancelRequestedAt: operation.cancelRequestedAt,
    ended: operation.ended,
    result: operation.result,
    record: operation.record,
    deliveredAt: operation.deliveredAt,
    supersededBy: operation.supersededBy,
  };
}

interface Timed {
  readonly at: number;
}

export type OperationEvent = Timed &
  (
    | { readonly type: 'proposed'; readonly proposal: Proposal }
    | { readonly type: 'allowed'; readonly rule: string }
    | { readonly type: 'review_opened'; readonly review: Review }
    | { readonly type: 'approved'; readonly decision: ReviewedBy }
    /** One of several persons whose approval is wanted. */
    | { readonly type: 'approved_in_part'; readonly decision: ReviewedBy }
    | { readonly type: 'denied'; readonly decision: ReviewedBy }
    | { readonly type: 'revoked'; readonly revocation: Revocation }
    | { readonly type: 'waiting'; readonly why: Why }
    | { readonly type: 'held'; readonly why: Why }
    | { readonly type: 'attempt_started'; readonly attempt: Attempt }
    /** The destination has asked back: the answer is the attempt's next leg, recorded before it leaves (D8). */
    | { readonly type: 'leg_recorded'; readonly attempt: string; readonly leg: number }
    | { readonly type: 'attempt_fenced'; readonly attempt: string; readonly by: string }
    | {
        readonly type: 'evidence_recorded';
        readonly evidence: Evidence;
        /** The attempt that this closes, if it does. */
        readonly closes?: string;
        readonly result?: ContentDigest;
        readonly record?: Operation['record'];
      }
    | { readonly type: 'checking'; readonly why: Why }
    | { readonly type: 'sending_again'; readonly why: Why; readonly under?: Attempt['under'] }
    | { readonly type: 'parked'; readonly why: Why }
    | { readonly type: 'closed'; readonly why: Why }
    | { readonly type: 'reopened'; readonly by: 'caller' | string; readonly supersedes?: OperationId }
    | { readonly type: 'ordered_again'; readonly by: string; readonly strength?: DecisionStrength }
    /** A person wants it looked up now, and not only when its turn comes. */
    | { readonly type: 'look_up_ordered'; readonly by: string }
    | { readonly type: 'stated'; readonly stated: StatedResolution }
    /** `cancelled`: by a named person, and not by the protocol of the call. */
    | {
        readonly type: 'cancel_requested';
        readonly cancelled?: Extract<Why, { readonly code: 'cancelled' }>;
      }
    /** A stop was lifted without it: it goes on to be known, and is not sent again by itself. */
    | { readonly type: 'sending_ended'; readonly why: Extract<Why, { readonly code: 'stopped' }> }
    | { readonly type: 'delivered' }
    | { readonly type: 'replay_seen'; readonly replay: string }
    | { readonly type: 'superseded'; readonly by: OperationId }
  );

/** How many call ids and positions are kept; older ones can no longer prove a replay. */
const REPLAYS_MAX = 8;

/**
 * The state after an event. Total for every event that may follow.
 * @throws an assertion when the event may not follow or would show an effect that its stage may not (D4):
 * both are bugs, and stop the work before anything is stored or sent.
 */
export function evolve(operation: Operation | undefined, event: OperationEvent): Operation {
  return follow(operation === undefined ? undefined : copyOf(operation), event) as Operation;
}

/** After these the pair of columns may be settled only by the next event of the same decision. */
const SETTLED_BY_THE_NEXT: ReadonlySet<EventType> = new Set([
  'evidence_recorded',
  'attempt_fenced',
  'denied',
]);

/** Applies events in their order; the pair of columns is asserted at the end, as a commit shows it. */
export function evolveAll(
  operation: Operation | undefined,
  events: readonly OperationEvent[],
): Operation | undefined {
  let draft: Draft | undefined = operation === undefined ? undefined : copyOf(operation);
  for (const event of events) draft = follow(draft, event);
  return draft === undefined ? undefined : (asserted(draft) as Operation);
}

/**
 * A state that is being made: a copy that nobody else holds. One copy serves all events of a decision, because
 * to copy a state for each member that changes costs more than everything else that is decided.
 */
// A member that is not there and one that is undefined mean the same, and are the same in the store.
type Draft = { -readonly [Member in keyof Required<Operation>]: Operation[Member] };

/**
 * Every member by its name, also those that are not there yet: a copy by spreading has no room for them, and V8 takes
 * a microsecond for each that is added later.
 */
function copyOf(operation: Operation): Draft {
  return {
    id: operation.id,
    tenant: operation.tenant,
    run: operation.run,
    requester: operation.requester,
    destination: operation.destination,
    tool: operation.tool,
    toolClass: operation.toolClass,
    toolDigest: operation.toolDigest,
    repeat: operation.repeat,
    factsDigest: operation.factsDigest,
    policy: operation.policy,
    contract: operation.contract,
    intentKey: operation.intentKey,
    crossRunHash: operation.crossRunHash,
    sequence: operation.sequence,
    argumentsDigest: operation.argumentsDigest,
    payload: operation.payload,
    digest: operation.digest,
    target: operation.target,
    stamp: operation.stamp,
    previous: operation.previous,
    observed: operation.observed,
    classBefore: operation.classBefore,
    toolDocument: operation.toolDocument,
    reason: operation.reason,
    askedBy: operation.askedBy,
    references: operation.references,
    ...movingPart(operation),
  };
}

function follow(draft: Draft | undefined, event: OperationEvent): Draft {
  if (!mayFollow(event.type, draft?.stage)) {
    throw new Error(`Assertion: "${event.type}" may not follow at ${draft?.stage ?? 'nothing'} (D4).`);
  }
  const stage = stageAfter(event.type, draft?.stage);
  const next = event.type === 'proposed' ? begun(event.proposal, event.at) : draft;
  if (next === undefined) throw new Error(`Assertion: "${event.type}" needs an operation.`);
  if (event.type !== 'proposed') apply(next, event);
  if (stage !== next.stage) {
    next.stage = stage;
    next.since = event.at;
  }
  return SETTLED_BY_THE_NEXT.has(event.type) ? next : asserted(next);
}

function asserted(operation: Draft): Draft {
  const bySomebody =
    operation.stage === 'closed'
      ? operation.why?.code === 'given_up' || isStatementCurrent(operation as Operation)
      : operation.orderedBy !== undefined || operation.under !== undefined;
  if (!isAllowedPair(operation.stage, operation.effect, bySomebody)) {
    throw new Error(
      `Assertion: ${operation.id} would show ${operation.stage} with ${operation.effect}, which D4 does not allow.`,
    );
  }
  return operation;
}

function apply(draft: Draft, event: Exclude<OperationEvent, { type: 'proposed' }>): void {
  switch (event.type) {
    case 'allowed':
      draft.rule = event.rule;
      draft.why = undefined;
      return;
    case 'review_opened':
      draft.review = event.review;
      draft.why = { code: 'asks', question: event.review.question };
      return;
    case 'approved':
    case 'denied':
      applyDecision(draft, event);
      return;
    case 'approved_in_part':
      if (draft.review === undefined) throw new Error(`Assertion: ${draft.id} has no review to decide.`);
      draft.review = { ...draft.review, approvals: [...(draft.review.approvals ?? []), event.decision] };
      return;
    case 'revoked':
      if (draft.review === undefined) throw new Error(`Assertion: ${draft.id} has no approval to revoke.`);
      draft.review = { ...draft.review, revoked: event.revocation };
      return;
    case 'waiting':
      draft.why = event.why;
      return;
    case 'sending_again':
      draft.why = event.why;
      draft.under = event.under;
      return;
    // Also when a person has allowed it anew, what was planned under a guard is repeated under it alone.
    case 'held':
      draft.why = event.why;
      return;
    case 'checking':
    case 'parked':
    case 'closed':
      draft.why = event.why;
      draft.under = undefined;
      if (isLookingUp(event.why)) draft.lookUps += 1;
      return;
    case 'attempt_started':
      draft.orderedBy = undefined;
      draft.under = undefined;
      draft.why = undefined;
      draft.attempts = [...draft.attempts, event.attempt];
      draft.epoch = event.attempt.epoch;
      draft.lookUps = 0;
      draft.effect = effectOf(draft.attempts, draft.evidence);
      return;
    case 'leg_recorded':
      draft.attempts = draft.attempts.map((attempt) =>
        attempt.id === event.attempt ? { ...attempt, legs: event.leg } : attempt,
      );
      return;
    case 'attempt_fenced':
      draft.epoch += 1;
      draft.attempts = draft.attempts.map((attempt) =>
        attempt.id === event.attempt ? { ...attempt, open: false, fenced: true } : attempt,
      );
      return;
    case 'evidence_recorded':
      applyEvidence(draft, event);
      return;
    case 'reopened':
      beginRound(draft, event.at);
      if (event.supersedes !== undefined) draft.supersedes = event.supersedes;
      return;
    case 'ordered_again':
      beginRound(draft, event.at);
      draft.orderedBy = event.by;
      return;
    case 'look_up_ordered':
      draft.why = { code: 'looking_up', nextAt: event.at };
      return;
    case 'stated':
      draft.resolution = { ...event.stated, attempts: draft.attempts.length };
      return;
    case 'cancel_requested':
      draft.cancelRequestedAt ??= event.at;
      if (event.cancelled !== undefined) draft.ended = event.cancelled;
      return;
    case 'sending_ended':
      draft.ended ??= event.why;
      return;
    case 'delivered':
      draft.deliveredAt ??= event.at;
      return;
    case 'replay_seen':
      draft.replays = [...draft.replays, event.replay].slice(-REPLAYS_MAX);
      return;
    case 'superseded':
      draft.supersededBy = event.by;
      return;
    default:
      assertNever(event);
  }
}

function begun(proposal: Proposal, at: number): Draft {
  return copyOf({
    proposedAt: at,
    stage: 'proposed',
    effect: 'not_sent',
    since: at,
    round: 1,
    roundBeganAt: at,
    attemptsBefore: 0,
    epoch: 0,
    attempts: [],
    evidence: [],
    lookUps: 0,
    ...proposal,
  });
}

function applyDecision(draft: Draft, event: Extract<OperationEvent, { type: 'approved' | 'denied' }>): void {
  if (draft.review === undefined) throw new Error(`Assertion: ${draft.id} has no review to decide.`);
  draft.review = { ...draft.review, decision: event.decision };
  if (event.type === 'denied') draft.why = { code: 'denied' };
  else draft.why = undefined;
}

function applyEvidence(draft: Draft, event: Extract<OperationEvent, { type: 'evidence_recorded' }>): void {
  const before = draft.effect;
  draft.evidence = [...draft.evidence.filter((piece) => !isOutdated(piece, event.evidence)), event.evidence];
  draft.attempts = draft.attempts.map((attempt) =>
    attempt.id === event.closes ? { ...attempt, open: false } : attempt,
  );
  if (event.result !== undefined) draft.result = event.result;
  if (event.record !== undefined) draft.record = { ...draft.record, ...event.record };
  draft.effect = effectOf(draft.attempts, draft.evidence);
  if (isNews(before, draft.effect)) draft.deliveredAt = undefined;
  const { resolution } = draft;
  if (resolution !== undefined && contradicts(resolution.resolution, effectOfStated(draft))) {
    draft.resolution = { ...resolution, contradicted: true };
  }
}

/** A statement is about what had been sent by then: that a later attempt has taken effect does not deny it. */
function effectOfStated({ attempts, evidence, resolution }: Draft): Effect {
  return effectOf(attempts.slice(0, resolution?.attempts), evidence);
}

/** Look-ups that claimed nothing give way to the next one, so that the state stays small; history keeps all. */
function isOutdated(piece: Evidence, by: Evidence): boolean {
  return (
    piece.kind === 'lookup' &&
    by.kind === 'lookup' &&
    (piece.found === 'not_found' || piece.found === 'inconclusive')
  );
}

function contradicts(resolution: Resolution, effect: Effect): boolean {
  if (resolution === 'stated_happened') return ['absent', 'rejected', 'not_sent'].includes(effect);
  return effect === 'accepted' || effect === 'verified' || effect === 'diverged';
}

/** What the caller was told was that nothing is established: what is known now has yet to be given (D6). */
function isNews(before: Effect, now: Effect): boolean {
  return before !== now && (before === 'unknown' || before === 'error_reported');
}

function isLookingUp(why: Why): boolean {
  return why.code === 'looking_up' || why.code === 'destination_still_working';
}

/** The same operation, asked for anew: fresh authority and bounds, and an answer that has yet to be given. */
function beginRound(draft: Draft, at: number): void {
  draft.why = undefined;
  draft.review = undefined;
  draft.cancelRequestedAt = undefined;
  draft.ended = undefined;
  draft.supersededBy = undefined;
  draft.deliveredAt = undefined;
  draft.orderedBy = undefined;
  draft.under = undefined;
  draft.round += 1;
  draft.roundBeganAt = at;
  draft.attemptsBefore = draft.attempts.length;
}

export function attemptsOfRound(operation: Operation): readonly Attempt[] {
  return operation.attempts.slice(operation.attemptsBefore);
}

/** Whether a person has stated a finding about everything that was sent, and nothing was sent since. */
export function isStatementCurrent(operation: Operation): boolean {
  return operation.resolution?.attempts === operation.attempts.length;
}

/** Whether the write may still be on its way, or its result is not established. */
export function isUnsettled(operation: Operation): boolean {
  if (operation.attempts.some((attempt) => attempt.open)) return true;
  return operation.effect === 'unknown' || operation.stage === 'sending' || operation.stage === 'checking';
}

/** Whether a new round of it may begin: it is closed, and known not to have happened (D4). */
export function mayBeAskedAnew({ effect, stage }: Operation): boolean {
  return stage === 'closed' && (effect === 'not_sent' || effect === 'rejected' || effect === 'absent');
}

/** Closed by a person's will, and not by what happened: only a person begins a new round (D4). */
export function wasEndedByWill(operation: Operation): boolean {
  const code = operation.why?.code;
  return code === 'denied' || code === 'replaced' || code === 'given_up' || code === 'cancelled';
}

export function isClosed(operation: Operation): boolean {
  return operation.stage === 'closed';
}

export function assertNever(value: never): never {
  throw new Error(`Assertion: unexpected ${JSON.stringify(value)}.`);
}
