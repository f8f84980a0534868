// Step 2 of D7: whether a guard of the destination makes one more send of the same bytes, under the same key, harmless.
//
// Everything must be stated, on trusted evidence: what the contract leaves open counts against the repeat. Who is asked
// here is told of one guard or of none; a refusal leads to look-ups or to a person, never to "try and see".

import {
  type ContractOperation,
  durationMs,
  type Guard,
  type HttpWrite,
  isTrusted,
  lateArrivalMs,
  type ToolFacts,
} from './contract.ts';
import { bearsKey } from './http-request.ts';
import type { Operation } from './operation.ts';
import { keyGuard, requestKey } from './request-key.ts';

export type GuardKind = Guard['kind'];

/** So much of a promised window is counted on; the rest is for clocks that differ and for what is on its way. */
const WINDOW_SHARE = 0.8;

export interface RepeatQuestion {
  readonly at: number;
  /** A look-up has proven that nothing is there: then nothing that exists can be overwritten or made twice. */
  readonly isAbsent: boolean;
  /** The kind that the repeat was planned under; any, when absent. */
  readonly kind?: GuardKind | undefined;
}

/** The first guard under which the next attempt may repeat the earlier ones; `undefined` where none may be counted on. */
export function usableGuard(
  operation: Operation,
  facts: ToolFacts,
  question: RepeatQuestion,
): Guard | undefined {
  const { operation: written, contract } = facts;
  if (written === undefined || isOverdue(contract, question.at)) return undefined;
  return written.guards.find(
    (guard) =>
      (question.kind === undefined || guard.kind === question.kind) &&
      isPromised(guard) &&
      isCarried(guard, facts) &&
      isHarmless(guard, written, question.isAbsent) &&
      isPastFlight(guard, operation, facts, question.at) &&
      question.at < usableUntil(guard, operation, facts),
  );
}

/** Whether the destination itself refuses the write where the record is not as the request names it. */
export function bearsPrecondition(facts: ToolFacts): boolean {
  const { guards = [] } = facts.operation ?? {};
  return guards.some(
    (guard) => guard.kind === 'precondition' && isPromised(guard) && isCarried(guard, facts),
  );
}

/** Past this day a contract still tells how to look, and no longer how to repeat. */
function isOverdue(contract: ToolFacts['contract'], at: number): boolean {
  if (contract === undefined) return true;
  const endOfDay = Date.parse(`${contract.reviewBy}T23:59:59.999Z`);
  return Number.isNaN(endOfDay) || at > endOfDay;
}

function isPromised(guard: Guard): boolean {
  const { side_effects: sideEffects = 'once' } = guard.same;
  return isTrusted(guard.evidence) && guard.strength === 'enforced' && sideEffects === 'once';
}

/** Whether the guard's value is in the frozen bytes, put there by us or, for a precondition, by what was decided on. */
function isCarried(guard: Guard, facts: ToolFacts): boolean {
  const { operation: written, stamp } = facts;
  if (written === undefined || guard.kind === 'sequence') return false;
  if (guard.kind === 'desired_state') return true;
  if (written.http !== undefined) {
    if (guard.kind === 'precondition') return isAlwaysSent(guard, written.http.headers);
    const hasForm = requestKey(SAMPLE_ID, guard.carrier) !== undefined;
    return guard === keyGuard(written) && hasForm && bearsKey(written, guard);
  }
  return guard.carrier.name !== undefined && guard.carrier.name === stamp?.argument;
}

/**
 * A header that is left out where an argument is missing would let such a write through unguarded, and so would one that
 * every state of the record meets.
 */
function isAlwaysSent({ carrier }: Guard, headers: HttpWrite['headers'] = {}): boolean {
  const name = carrier.name?.toLowerCase();
  return Object.entries(headers).some(
    ([header, text]) =>
      carrier.in === 'header' &&
      header.toLowerCase() === name &&
      !text.includes('?}') &&
      (text.includes('{') || name === 'if-none-match'),
  );
}

const SAMPLE_ID = 'op_00000000000000000000000000';

/** What the destination does with the same value once more, as far as it is harmless for this kind of write. */
function isHarmless(guard: Guard, written: ContractOperation, isAbsent: boolean): boolean {
  const { after_delete: afterDelete = 'unknown', kind, same } = guard;
  // It would answer that it exists, and only a look-up tells whose it is.
  const canTell = written.lookups.some((lookup) => lookup.tool !== undefined);
  switch (kind) {
    case 'request_key':
      return same.result === 'replays_original' || same.result === 'replays_current';
    case 'client_identity': {
      // Somebody may have deleted our record meanwhile, where its name is free again then.
      const isSafe = isAbsent || afterDelete === 'blocked' || afterDelete === 'not_applicable';
      return isSafe && (isReplayed(same.result) || (same.result === 'conflict' && canTell));
    }
    case 'precondition':
      return (same.result === 'conflict' && canTell) || isReplayed(same.result);
    case 'desired_state':
      // Of a record that is there, a repeat may undo what somebody wrote since (I10).
      return isAbsent && same.result === 'converges' && MAKES_A_RECORD.includes(written.effect);
    case 'sequence':
      return false;
  }
}

function isReplayed(result: Guard['same']['result']): boolean {
  return (
    result === 'replays_original' ||
    result === 'replays_current' ||
    result === 'converges' ||
    result === 'silently_dropped'
  );
}

const MAKES_A_RECORD: readonly ContractOperation['effect'][] = ['create', 'upsert'];

/** Two of the same may be under way at once only where the contract states what becomes of them. */
function isPastFlight(guard: Guard, operation: Operation, facts: ToolFacts, at: number): boolean {
  const { result } = guard.in_flight;
  if (result !== 'executes_again' && result !== 'unknown') return true;
  const sendBy = Math.max(...operation.attempts.map((attempt) => attempt.sendBy));
  return at >= sendBy + lateArrivalMs(facts.operation);
}

/**
 * The instant from which a repeat may come to a destination that no longer knows the value, with a margin; counted from
 * the first try, since whatever it counts from cannot have been earlier. The repeat must have landed by then: its first
 * byte may leave until `sendBy`, and then be on its way.
 */
export function usableUntil({ window }: Guard, { attempts }: Operation, facts: ToolFacts): number {
  const [first] = attempts;
  if (window.kind === 'resource_lifetime') return Number.POSITIVE_INFINITY;
  const promisedMs = window.kind === 'duration' ? durationMs(window.at_least) : undefined;
  if (first === undefined || promisedMs === undefined) return Number.NEGATIVE_INFINITY;
  const flightMs = first.sendBy - first.startedAt + lateArrivalMs(facts.operation);
  return first.startedAt + Math.min(promisedMs * WINDOW_SHARE, promisedMs - flightMs);
}

/** Members of a guard's scope that the frozen bytes do not settle: whose key it is, and where it is sent. */
const OUTSIDE_THE_BYTES: readonly Guard['scope'][number][] = [
  'account',
  'credential',
  'endpoint',
  'region',
  'zone',
  'queue',
  'partition',
  'integration',
];

/**
 * Whether the next attempt would be made in the scope of the earlier ones.
 * @param scope what the destination says of credential and place, as the ledger keeps it; `undefined` where it says nothing
 */
export function isScopeKept(guard: Guard, operation: Operation, scope: string | undefined): boolean {
  if (!guard.scope.some((member) => OUTSIDE_THE_BYTES.includes(member))) return true;
  return scope !== undefined && operation.attempts.every((attempt) => attempt.scope === scope);
}
