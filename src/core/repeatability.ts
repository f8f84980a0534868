// The one algorithm for what follows from what is known: close, read back, look up, send again, or park (D7).
//
// No destination is named here; everything comes from the tool's facts.

import {
  type ContractOperation,
  durationMs,
  isTrusted,
  type Lookup,
  lateArrivalMs,
  type ToolFacts,
} from './contract.ts';
import type { Evidence } from './evidence.ts';
import { type GuardKind, usableGuard, usableUntil } from './guarded-repeat.ts';
import { attemptsOfRound, type Operation, type Why } from './operation.ts';

/** Bounds of ours (policy): what exceeds them is parked and visible (I14). Units in the names. */
export interface Bounds {
  readonly attemptsMax: number;
  /** From the beginning of the round to its last automatic attempt. */
  readonly elapsedMaxMs: number;
  /** How long look-ups go on after absence could first have counted. */
  readonly lookUpElapsedMaxMs: number;
  readonly sendByMs: number;
}

export const DEFAULT_BOUNDS: Bounds = {
  attemptsMax: 5,
  elapsedMaxMs: 24 * 3_600_000,
  lookUpElapsedMaxMs: 3_600_000,
  sendByMs: 2_000,
};

/** Whether the attempts or the time of this round are used up. */
export function isBeyondBounds(operation: Operation, bounds: Bounds, at: number): boolean {
  return (
    attemptsOfRound(operation).length >= bounds.attemptsMax ||
    at - sendableSince(operation) > bounds.elapsedMaxMs
  );
}

/** A person may take longer than we may try: the time counts from the decision, where one was needed. */
function sendableSince({ review, roundBeganAt }: Operation): number {
  return Math.max(roundBeganAt, review?.decision?.at ?? roundBeganAt);
}

export type NextStep =
  | { readonly step: 'close'; readonly why: Why }
  | { readonly step: 'read_back' }
  | { readonly step: 'look_up'; readonly at: number }
  | { readonly step: 'ask_again'; readonly at: number }
  /** `under`: the guard that makes it harmless, should an earlier try have happened after all. */
  | { readonly step: 'send_again'; readonly at: number; readonly under?: GuardKind }
  | { readonly step: 'park'; readonly why: Why };

/** What to do with an operation of which no attempt is open, given everything that is known at `at`. */
export function nextStep(operation: Operation, facts: ToolFacts, bounds: Bounds, at: number): NextStep {
  switch (operation.effect) {
    case 'verified':
    case 'error_reported':
      return ANSWERED;
    case 'diverged':
      return { step: 'park', why: { code: 'contradiction' } };
    case 'accepted': {
      const countAt = countingDue(operation, facts);
      if (countAt !== undefined) return { step: 'look_up', at: Math.max(at, countAt) };
      return mayReadBack(operation, facts) ? { step: 'read_back' } : ANSWERED;
    }
    case 'rejected':
      return sendAgain(operation, bounds, at, ANSWERED);
    case 'not_sent':
      return sendAgain(operation, bounds, at, {
        step: 'park',
        why: { code: 'bounds_used_up', attempts: operation.attempts.length },
      });
    case 'absent': {
      const park: NextStep = { step: 'park', why: { code: 'absent_needs_decision' } };
      const why = withdrawal(operation);
      if (why !== undefined) return { step: 'close', why };
      if (isRefusedForGood(operation)) return ANSWERED;
      const under = usableGuard(operation, facts, { at, isAbsent: true })?.kind;
      if (under !== undefined) return sendAgain(operation, bounds, at, park, under);
      return absenceAllowsSending(facts) ? sendAgain(operation, bounds, at, park) : park;
    }
    case 'unknown':
      return afterUnknown(operation, facts, bounds, at);
  }
}

function mayReadBack(operation: Operation, facts: ToolFacts): boolean {
  if (facts.operation?.readback === undefined) return false;
  return !operation.evidence.some((piece) => piece.kind === 'readback');
}

const ANSWERED: NextStep = { step: 'close', why: { code: 'answered' } };

/** Whether a refusal of this round was definitive. After one of an earlier round this round was begun. */
function isRefusedForGood(operation: Operation): boolean {
  const attempts = attemptsOfRound(operation).map((attempt) => attempt.id);
  return operation.evidence.some(
    (piece) =>
      (piece.kind === 'acknowledgement' || piece.kind === 'notice') &&
      piece.means === 'rejected' &&
      attempts.includes(piece.attempt ?? ''),
  );
}

/** Whether the destination said of the newest attempt that it goes on working. */
function isStillWorkedOn(operation: Operation): boolean {
  const newest = operation.attempts.at(-1)?.id;
  return operation.evidence.some(
    (piece) => piece.attempt === newest && piece.kind === 'acknowledgement' && piece.means === 'in_progress',
  );
}

/** Somebody wants no more of it, or the destination refused a try: what is unknown is looked up, and not repeated (D8). */
function isEnded(operation: Operation): boolean {
  return withdrawal(operation) !== undefined || isRefusedForGood(operation);
}

/** Somebody wants no more of it: what is known not to have happened closes, and is not sent again (D8). */
function withdrawal(operation: Operation): Why | undefined {
  if (operation.supersededBy !== undefined) return { code: 'replaced', by: operation.supersededBy };
  if (operation.ended !== undefined) return operation.ended;
  return operation.cancelRequestedAt === undefined ? undefined : { code: 'withdrawn_by_caller' };
}

const FIRST_PAUSE_MS = 200;
const PAUSE_MAX_MS = 30_000;

function sendAgain(
  operation: Operation,
  bounds: Bounds,
  at: number,
  otherwise: NextStep,
  under?: GuardKind,
): NextStep {
  const why = withdrawal(operation);
  if (why !== undefined) return { step: 'close', why };
  if (isRefusedForGood(operation)) return ANSWERED;
  if (isBeyondBounds(operation, bounds, at)) return otherwise;
  const tries = operation.attempts.length;
  return {
    step: 'send_again',
    at: at + Math.min(FIRST_PAUSE_MS * 2 ** Math.max(0, tries - 1), PAUSE_MAX_MS),
    ...(under === undefined ? {} : { under }),
  };
}

/**
 * A repeat was acknowledged: that the guard was honoured, and not passed over, is counted once by a look-up that can see
 * both tries, where there is one.
 */
function countingDue(operation: Operation, facts: ToolFacts): number | undefined {
  const last = operation.attempts.findLast((attempt) => attempt.under !== undefined);
  const [lookup] = usableLookups(facts.operation);
  if (last === undefined || lookup === undefined) return undefined;
  const dueAt = last.sendBy + (durationMs(lookup.consistency.settle) ?? 0);
  const counts = operation.evidence.filter((piece) => piece.kind === 'lookup' && piece.attempt === last.id);
  if (counts.some((piece) => piece.observedAt >= dueAt && !isUnanswered(piece))) return undefined;
  if (operation.lookUps >= COUNTS_MAX) return undefined;
  return Math.max(dueAt, (counts.at(-1)?.recordedAt ?? 0) + (LOOK_UP_PAUSES_MS[operation.lookUps] ?? 0));
}

/** A destination that does not answer look-ups is not waited for without end: then the acknowledgement stands alone. */
const COUNTS_MAX = 6;

function isUnanswered(piece: Evidence): boolean {
  return piece.kind === 'lookup' && piece.found === 'inconclusive';
}

/** Without a guard only where the contract states so, on trusted evidence, for a read-after-write look-up. */
function absenceAllowsSending(facts: ToolFacts): boolean {
  // Only the first is asked, so only of the first can an absence be.
  const [lookup] = usableLookups(facts.operation);
  if (lookup === undefined) return false;
  const { consistency, evidence, proves } = lookup;
  return proves.absent === 'not_applied' && consistency.kind === 'read_after_write' && isTrusted(evidence);
}

/** Look-ups that we can ask, best first. */
export function usableLookups(operation: ContractOperation | undefined): readonly Lookup[] {
  return (operation?.lookups ?? []).filter(
    (lookup) => lookup.tool !== undefined && lookup.evidence.grade !== 'not_documented',
  );
}

/**
 * The instant from which an absence may count: the last sender is past `sendBy`, its bytes have landed, and what landed
 * last would be seen.
 */
export function absenceCountsFrom(operation: Operation, lookup: Lookup, facts: ToolFacts): number {
  const sendBy = Math.max(...operation.attempts.map((attempt) => attempt.sendBy));
  const settleMs = durationMs(lookup.consistency.settle) ?? 0;
  return sendBy + lateArrivalMs(facts.operation) + settleMs;
}

/** Whether "not found", seen now, proves that the write did not happen. */
export function isAbsenceProof(operation: Operation, lookup: Lookup, facts: ToolFacts, at: number): boolean {
  return mayProveAbsence(lookup) && at >= absenceCountsFrom(operation, lookup, facts);
}

/** A look-up that lags by an unknown time never shows that something is not there. */
function mayProveAbsence({ consistency, evidence, proves }: Lookup): boolean {
  if (proves.absent === 'nothing' || consistency.kind === 'unknown') return false;
  if (consistency.kind === 'eventual' && durationMs(consistency.settle) === undefined) return false;
  return isTrusted(evidence);
}

const LOOK_UP_PAUSES_MS = [0, 500, 1_000, 2_000, 5_000, 10_000, 30_000, 60_000];

function afterUnknown(operation: Operation, facts: ToolFacts, bounds: Bounds, at: number): NextStep {
  const [lookup] = usableLookups(facts.operation);
  const guard = isEnded(operation) ? undefined : usableGuard(operation, facts, { at, isAbsent: false });
  const orRepeat = (otherwise: NextStep): NextStep =>
    guard === undefined ? otherwise : sendAgain(operation, bounds, at, otherwise, guard.kind);
  if (lookup === undefined) return orRepeat({ step: 'park', why: { code: 'no_lookup' } });
  const countsFrom = absenceCountsFrom(operation, lookup, facts);
  const asked = operation.lookUps;
  if (isPointless(operation, lookup, countsFrom, at) || isTooLong(operation, bounds, countsFrom, at)) {
    return orRepeat({ step: 'park', why: { code: 'lookups_exhausted', count: asked } });
  }
  // The window would close before an absence could count.
  if (guard !== undefined && usableUntil(guard, operation, facts) <= countsFrom + bounds.sendByMs) {
    const repeat = orRepeat(ANSWERED);
    if (repeat.step === 'send_again') return repeat;
  }
  const pause = LOOK_UP_PAUSES_MS[Math.min(asked, LOOK_UP_PAUSES_MS.length - 1)] ?? 0;
  // Never later than the instant at which "not found" first means something.
  const due = at < countsFrom ? Math.min(at + pause, Math.max(countsFrom, at)) : at + pause;
  return isStillWorkedOn(operation) ? { step: 'ask_again', at: due } : { step: 'look_up', at: due };
}

/**
 * Counted from when the checking began, so that time in which nobody could look is not held against it. While
 * the destination does not answer at all, its health is the only obstacle, and the longer bound counts (D8).
 */
function isTooLong(operation: Operation, bounds: Bounds, countsFrom: number, at: number): boolean {
  if (operation.stage !== 'checking') return false;
  const last = operation.evidence.findLast((piece) => piece.kind === 'lookup');
  const isAnswering = last?.kind === 'lookup' && last.found !== 'inconclusive';
  const boundMs = isAnswering ? bounds.lookUpElapsedMaxMs : bounds.elapsedMaxMs;
  return at > Math.max(countsFrom, operation.since) + boundMs;
}

/** Looked after everything must have landed, found nothing, and absence can prove nothing here. */
function isPointless(operation: Operation, lookup: Lookup, countsFrom: number, at: number): boolean {
  const last: Evidence | undefined = operation.evidence.findLast((piece) => piece.kind === 'lookup');
  if (last?.kind !== 'lookup' || last.found !== 'not_found' || at < countsFrom) return false;
  if (last.observedAt < countsFrom) return false;
  return !mayProveAbsence(lookup);
}
