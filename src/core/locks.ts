// The lock on a target: held from the first attempt until settled, with a line of those who wait (D6, I12).

import { isStatementCurrent, isUnsettled, type Operation, type OperationId } from './operation.ts';

/** The state of a lock's stream. `lastSettled` answers "was anything of ours settled on this target since?". */
export interface LockState {
  readonly holder: OperationId | null;
  readonly line: readonly OperationId[];
  readonly lastSettled: OperationId | null;
}

export const FREE_LOCK: LockState = { holder: null, line: [], lastSettled: null };

/** Whether this operation's write may still land on its targets, and no person has released them. */
export function holdsLocks(operation: Operation): boolean {
  if (operation.attempts.length === 0 || operation.stage === 'closed') return false;
  if (isStatementCurrent(operation)) return false;
  return isUnsettled(operation) || operation.effect === 'diverged';
}

export function waitsInLine(operation: Operation): boolean {
  return operation.stage === 'ready' && operation.why?.code === 'waits_for_operation';
}

/** Who stands before this operation, if anybody: the holder, or the first in line. */
export function lockedBy(lock: LockState | undefined, operation: OperationId): OperationId | undefined {
  if (lock === undefined) return undefined;
  if (lock.holder !== null && lock.holder !== operation) return lock.holder;
  const first = lock.line.find((waiting) => waiting !== operation);
  const place = lock.line.indexOf(operation);
  if (first === undefined) return undefined;
  // In line already: only those before it count. Not in line: all of them do.
  return place === 0 ? undefined : first;
}

/**
 * The lock as it must be once the operation is in this state; the same object when nothing changes. Only an
 * attempt's start takes a lock: what is learnt later, of a write whose lock somebody else holds by now, keeps
 * nothing and takes nothing.
 */
export function lockAfter(lock: LockState, operation: Operation, startsAttempt: boolean): LockState {
  const { id } = operation;
  if (operation.observed !== undefined) return lockBeside(lock, operation);
  const line = lineAfter(lock.line, operation);
  const holder =
    startsAttempt || (lock.holder === id && holdsLocks(operation))
      ? id
      : lock.holder === id
        ? null
        : lock.holder;
  const hasLanded = operation.effect === 'accepted' || operation.effect === 'verified';
  const settled = lock.holder === id && holder === null && hasLanded ? id : lock.lastSettled;
  if (line === lock.line && holder === lock.holder && settled === lock.lastSettled) return lock;
  return { holder, line, lastSettled: settled };
}

/** In `observe` no lock is taken and nobody waits; that something of ours has settled on the target is still noted. */
function lockBeside(lock: LockState, operation: Operation): LockState {
  const hasLanded = operation.effect === 'accepted' || operation.effect === 'verified';
  // Once only: what happens to the record afterwards is no news of the target.
  const isNews = operation.stage === 'closed' && hasLanded && operation.deliveredAt === undefined;
  return isNews && lock.lastSettled !== operation.id ? { ...lock, lastSettled: operation.id } : lock;
}

function lineAfter(line: readonly OperationId[], operation: Operation): readonly OperationId[] {
  const isIn = line.includes(operation.id);
  if (waitsInLine(operation)) return isIn ? line : [...line, operation.id];
  return isIn ? line.filter((waiting) => waiting !== operation.id) : line;
}
