// What may be said of a cancel or a stop, and when: three acknowledgements, each with its time (D10). None of them says
// that an earlier change was reversed.

import type { Operation } from './operation.ts';
import { isUnsettled } from './operation.ts';

/** How far what was out is known by now. */
export interface OutCounts {
  /** Accepted or verified. */
  readonly landed: number;
  /** Never left, refused, or looked for and not there. */
  readonly notLanded: number;
  readonly errorReported: number;
  /** Its result is still being established, or is with a person. */
  readonly open: number;
  /** Closed by a person, and never established: this keeps the third acknowledgement open. */
  readonly closedUnknown: readonly { readonly operation: string; readonly by: string }[];
}

export interface Acknowledgements {
  readonly requestedAt: number;
  /** `until`: it is not acknowledged before then. */
  readonly noMore: { readonly at: number } | { readonly until: number };
  readonly out: OutCounts;
  /** When all that was out had settled; absent while it has not. */
  readonly settledAt?: number;
}

export function countOut(operations: readonly Operation[]): OutCounts {
  const counts = { landed: 0, notLanded: 0, errorReported: 0, open: 0 };
  const closedUnknown: { operation: string; by: string }[] = [];
  for (const operation of operations) {
    const { effect, id, stage } = operation;
    if (effect === 'unknown' || effect === 'diverged') {
      if (stage === 'closed') closedUnknown.push({ operation: id, by: closedBy(operation) });
      else counts.open += 1;
    } else if (isUnsettled(operation)) counts.open += 1;
    else if (effect === 'accepted' || effect === 'verified') counts.landed += 1;
    else if (effect === 'error_reported') counts.errorReported += 1;
    else counts.notLanded += 1;
  }
  return { ...counts, closedUnknown };
}

function closedBy({ resolution, why }: Operation): string {
  if (why?.code === 'stated' || why?.code === 'given_up') return why.by;
  return resolution?.by ?? 'a person';
}

/** The instant at which the last of them became known; nothing while one has not. */
export function settledAt(operations: readonly Operation[], earliest: number): number | undefined {
  const { closedUnknown, open } = countOut(operations);
  if (open > 0 || closedUnknown.length > 0) return undefined;
  return Math.max(earliest, ...operations.map(({ since }) => since));
}

/**
 * Of one operation that a person or its caller cancelled; `undefined` where nobody has.
 * @param marginMs what is added to `sendBy` before "no more will be sent" is said
 */
export function acknowledgementsOf(operation: Operation, marginMs: number): Acknowledgements | undefined {
  const { cancelRequestedAt: requestedAt } = operation;
  if (requestedAt === undefined) return undefined;
  const out = operation.attempts.filter(
    (attempt) => attempt.startedAt <= requestedAt && !isKnownBy(operation, attempt.id, requestedAt),
  );
  const noMore = out.map(({ id, sendBy, startedAt }) => {
    // Whatever it has told: it had left by then, and leaves once.
    const toldAt = firstTold(operation, id) ?? Number.POSITIVE_INFINITY;
    return Math.min(toldAt, requestedAt + (sendBy - startedAt) + marginMs);
  });
  const noMoreAt = Math.max(requestedAt, ...noMore);
  const concerned = operation.attempts.length === 0 ? [] : [operation];
  const settled = settledAt(concerned, noMoreAt);
  return {
    requestedAt,
    noMore: { at: noMoreAt },
    out: countOut(concerned),
    ...(settled === undefined ? {} : { settledAt: settled }),
  };
}

/** The same, as it may be said at an instant. */
export function acknowledgedBy(
  { noMore, settledAt: settled, ...rest }: Acknowledgements,
  at: number,
): Acknowledgements {
  if (!('at' in noMore) || noMore.at <= at)
    return { ...rest, noMore, ...(settled === undefined ? {} : { settledAt: settled }) };
  return { ...rest, noMore: { until: noMore.at } };
}

function firstTold({ evidence }: Operation, attempt: string): number | undefined {
  const told = evidence.filter((piece) => piece.attempt === attempt && piece.kind !== 'lookup');
  return told.length === 0 ? undefined : Math.min(...told.map(({ recordedAt }) => recordedAt));
}

function isKnownBy(operation: Operation, attempt: string, at: number): boolean {
  return (firstTold(operation, attempt) ?? Number.POSITIVE_INFINITY) <= at;
}
