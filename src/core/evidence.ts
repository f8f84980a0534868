// What is known, from all evidence of all attempts: the one place where `effect` is computed (D4, D5, I7).
//
// `effectOf` looks at every piece each time, never at the present effect, so that evidence may arrive in any
// order and late: two orders of the same pieces give the same effect.

import type { Attempt, ContentDigest } from './attempt.ts';
import type { Effect } from './lifecycle.ts';

/** Kinds, weakest first. A person's statement is no evidence here: it fills `resolution`. */
export type Finding =
  /** The wire's own report: `left: 'no'` is a proof that nothing left. */
  | { readonly kind: 'transport'; readonly left: 'no' | 'maybe'; readonly what: string }
  /** A complete reply, read by the contract's table. */
  | {
      readonly kind: 'acknowledgement';
      readonly means: 'accepted' | 'in_progress' | 'rejected' | 'rejected_temporary' | 'error';
    }
  /**
   * The operation's own result, looked for. `absent` only where the contract lets an absence count and the
   * settle time is over; before, and where it does not, it is `not_found`, which claims nothing.
   */
  | {
      readonly kind: 'lookup';
      readonly found: 'present' | 'absent' | 'several' | 'not_found' | 'inconclusive';
      readonly count?: number;
      /** Of several: what the destination calls them; the first of them where there are many. */
      readonly records?: readonly string[];
    }
  /**
   * The changed fields, read again. `otherwise` tells what a difference means: `nobody_wrote` (the version
   * shows that our write did not take effect), `later_writer`, or `cannot_tell`.
   */
  | {
      readonly kind: 'readback';
      readonly matches: true | false | 'inconclusive';
      readonly otherwise?: 'nobody_wrote' | 'later_writer' | 'cannot_tell';
      readonly version?: string;
    }
  /** A callback of the destination; `id` is equal for each delivery of it. */
  | { readonly kind: 'notice'; readonly means: 'accepted' | 'rejected'; readonly id?: string };

export type Evidence = Finding & {
  /** The attempt that it is about; a look-up or read-back names the newest that it covers. */
  readonly attempt?: string;
  readonly observer: string;
  readonly observedAt: number;
  readonly recordedAt: number;
  readonly material?: ContentDigest;
};

type AttemptStanding = 'not_left' | 'rejected' | 'error' | 'unknown' | 'absent';

/**
 * The effect that the evidence supports. Presence beats everything but a contradiction; `verified` needs a
 * matching read-back after presence and is never lowered; without any proof a started attempt is `unknown`.
 */
export function effectOf(attempts: readonly Attempt[], evidence: readonly Evidence[]): Effect {
  if (attempts.length === 0) return 'not_sent';
  const sightings = evidence.filter((piece) => isSighting(piece, attempts));
  const sources = attempts.filter((attempt) => isSourceOf(sightings, attempt, attempts, evidence));
  if (isContradicted(attempts, sightings, sources, evidence)) return 'diverged';
  // While a try is out its own result is not established, whatever an earlier one turns out to have done.
  if (attempts.some((attempt) => attempt.open)) return 'unknown';
  if (sightings.length > 0) {
    return evidence.some((piece) => isMatch(piece, sources, attempts)) ? 'verified' : 'accepted';
  }
  const standings = attempts.map((attempt) => standingOf(attempt, attempts, evidence));
  if (standings.includes('unknown')) return 'unknown';
  if (standings.includes('error')) return 'error_reported';
  const last = standings.findLast((standing) => standing !== 'not_left');
  if (last === 'rejected') return 'rejected';
  return last === 'absent' ? 'absent' : 'not_sent';
}

/** What is known of one attempt, of which nothing says that it took effect. */
function standingOf(
  attempt: Attempt,
  attempts: readonly Attempt[],
  evidence: readonly Evidence[],
): AttemptStanding {
  const own = evidence.filter((piece) => piece.attempt === attempt.id);
  if (own.some(isRefusal)) return 'rejected';
  if (own.some(provesNothingLeft)) return 'not_left';
  if (isCoveredByAbsence(attempt, attempts, evidence)) return 'absent';
  if (own.some((piece) => piece.kind === 'acknowledgement' && piece.means === 'error')) return 'error';
  return 'unknown';
}

function isRefusal(piece: Evidence): boolean {
  if (piece.kind === 'notice') return piece.means === 'rejected';
  return (
    piece.kind === 'acknowledgement' && (piece.means === 'rejected' || piece.means === 'rejected_temporary')
  );
}

function provesNothingLeft(piece: Evidence): boolean {
  return piece.kind === 'transport' && piece.left === 'no';
}

/** Evidence that the write took effect: acknowledged, called back, or found. */
function isSighting(piece: Evidence, attempts: readonly Attempt[]): boolean {
  if (piece.attempt !== undefined && !attempts.some((attempt) => attempt.id === piece.attempt)) return false;
  if (piece.kind === 'lookup') return piece.found === 'present';
  return (piece.kind === 'acknowledgement' || piece.kind === 'notice') && piece.means === 'accepted';
}

/** Whether this one attempt would explain everything that was seen, and nothing denies that it took effect. */
function isSourceOf(
  sightings: readonly Evidence[],
  attempt: Attempt,
  attempts: readonly Attempt[],
  evidence: readonly Evidence[],
): boolean {
  return (
    sightings.every((piece) => mayBeFrom(piece, attempt, attempts)) && !isDenied(attempt, attempts, evidence)
  );
}

/**
 * A reply is about its own attempt, or, to a repeat under a guard, about a try that it repeats; a look-up may have seen
 * any that had started; unnamed, it may be any.
 */
function mayBeFrom(piece: Evidence, attempt: Attempt, attempts: readonly Attempt[]): boolean {
  if (piece.attempt === undefined || piece.attempt === attempt.id) return true;
  const isOfRepeat = attempts.some(({ id, under }) => id === piece.attempt && under !== undefined);
  return (piece.kind === 'lookup' || isOfRepeat) && covers(piece.attempt, attempt, attempts);
}

/** An absence is about the attempts that had started when it was observed, and no later one. */
function isCoveredByAbsence(
  attempt: Attempt,
  attempts: readonly Attempt[],
  evidence: readonly Evidence[],
): boolean {
  return evidence.some(
    (piece) =>
      piece.kind === 'lookup' && piece.found === 'absent' && covers(piece.attempt, attempt, attempts),
  );
}

/** A look-up or read-back names the newest attempt that it covers. */
function covers(named: string | undefined, attempt: Attempt, attempts: readonly Attempt[]): boolean {
  const newest = attempts.find((other) => other.id === named);
  return newest !== undefined && attempt.number <= newest.number;
}

/** A read-back that matched, made after an attempt that the presence can be from. */
function isMatch(piece: Evidence, sources: readonly Attempt[], attempts: readonly Attempt[]): boolean {
  if (piece.kind !== 'readback' || piece.matches !== true) return false;
  return piece.attempt === undefined || sources.some((source) => covers(piece.attempt, source, attempts));
}

/** One write leaves one record: what no single attempt explains is a contradiction, or more than one record. */
function isContradicted(
  attempts: readonly Attempt[],
  sightings: readonly Evidence[],
  sources: readonly Attempt[],
  evidence: readonly Evidence[],
): boolean {
  if (evidence.some((piece) => piece.kind === 'lookup' && piece.found === 'several')) return true;
  if (attempts.some((attempt) => isAnsweredUnsent(attempt, evidence))) return true;
  if (sightings.length === 0) return false;
  const hasNotTakenEffect = evidence.some(
    (piece) => piece.kind === 'readback' && piece.matches === false && piece.otherwise === 'nobody_wrote',
  );
  return hasNotTakenEffect || sources.length === 0;
}

/** The destination answered what is proven never to have left: one of the two is not true. */
function isAnsweredUnsent(attempt: Attempt, evidence: readonly Evidence[]): boolean {
  const own = evidence.filter((piece) => piece.attempt === attempt.id);
  return (
    own.some(provesNothingLeft) && own.some((piece) => piece.kind === 'acknowledgement' && !isRefusal(piece))
  );
}

/** Evidence says that this attempt did not take effect. */
function isDenied(attempt: Attempt, attempts: readonly Attempt[], evidence: readonly Evidence[]): boolean {
  const own = evidence.filter((piece) => piece.attempt === attempt.id);
  return (
    own.some((piece) => isRefusal(piece) || provesNothingLeft(piece)) ||
    isCoveredByAbsence(attempt, attempts, evidence)
  );
}
