// What the evidence of an operation says, read off for words: which piece, and when.

import type { Attempt } from './attempt.ts';
import type { Evidence } from './evidence.ts';
import type { Operation } from './operation.ts';

export function isFoundByLookUp(operation: Operation): boolean {
  return (
    !operation.evidence.some(isAcknowledgement) &&
    operation.evidence.some((piece) => piece.kind === 'lookup' && piece.found === 'present')
  );
}

export function isAcknowledgement(piece: Evidence): boolean {
  return (piece.kind === 'acknowledgement' || piece.kind === 'notice') && piece.means === 'accepted';
}

export function acknowledgedAt(operation: Operation): number {
  return operation.evidence.find(isAcknowledgement)?.observedAt ?? operation.since;
}

export function lookedUpAt(operation: Operation, found: 'present' | 'absent'): number {
  const lookUp = operation.evidence.findLast((piece) => piece.kind === 'lookup' && piece.found === found);
  return lookUp?.observedAt ?? operation.since;
}

/** The last read-back, where it showed something else and the write is still no more than accepted. */
export function unlikeReadBack(operation: Operation) {
  const last = operation.evidence.findLast((piece) => piece.kind === 'readback' && piece.matches === false);
  return last?.kind === 'readback' && operation.effect === 'accepted' ? last : undefined;
}

export function verifiedAt(operation: Operation): number {
  const readBack = operation.evidence.findLast(
    (piece) => piece.kind === 'readback' && piece.matches === true,
  );
  return readBack?.observedAt ?? operation.since;
}

/** Attempts that may have left; of the others it is proven that nothing did. */
export function sentAttempts({ attempts, evidence }: Operation): readonly Attempt[] {
  return attempts.filter(
    ({ id }) =>
      !evidence.some((piece) => piece.attempt === id && piece.kind === 'transport' && piece.left === 'no'),
  );
}

export function lastSentAt(operation: Operation): number {
  return sentAttempts(operation).at(-1)?.startedAt ?? operation.since;
}

/** When the first of them was started, in ms since the epoch. */
export function firstSentAt(operation: Operation): number {
  return sentAttempts(operation)[0]?.startedAt ?? operation.since;
}
