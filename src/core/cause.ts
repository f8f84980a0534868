// Why open work is where it is, in groups: one obstacle at one destination is one cause, however many operations it
// has caught, and whether they wait, are looked up, or are with a person (D8, "The queue groups by cause").
//
// Everything is derived from operations as they are. A cause has no row, so that it is never out of date.

import { unlikeReadBack } from './known-facts.ts';
import type { Operation, Why } from './operation.ts';

/** In the order in which a person looks at them: what is wrong, what is asked, what goes on by itself. */
export const CAUSE_KINDS = [
  /** The pieces of evidence contradict each other. */
  'contradiction',
  /** What is stored is not what was decided on. */
  'digest_mismatch',
  /** The destination gives no answer: nothing could be sent, or what was sent is not established. */
  'no_answer',
  /** The process that had it out ended. */
  'gateway_ended',
  /** Looked for and not there; another send needs a person. */
  'absent',
  'bounds_used_up',
  'approval_expired',
  /** What a write touches is not what was reviewed. */
  'target_changed',
  /** An approval was given, and taken back before it was used up. */
  'approval_revoked',
  'rule_stricter',
  /** Whoever asked for it or approved it may do so no more. */
  'access_lost',
  /** Going on after many writes within an hour was not approved. */
  'go_on_refused',
  /** Closed, and what was read back is not what was written. */
  'read_back_differs',
  /** A person is asked, and nothing else is in the way. */
  'approval',
  'no_gateway',
  /** An operator has stopped sending there. */
  'stopped',
  /** As many writes as may be are out, or have left in this time. */
  'limit',
  /** Another operation comes first: it has the target's lock, or is asked about. */
  'other_first',
  'on_its_way',
] as const;
export type CauseKind = (typeof CAUSE_KINDS)[number];

export interface Cause {
  /** `cause_KIND@DESTINATION`: equal as long as the obstacle is the same one. */
  readonly id: string;
  readonly kind: CauseKind;
  readonly destination: string;
}

/** What there is to be done about one operation of a cause. */
export type Standing = 'never_sent' | 'found' | 'needs_person' | 'goes_on';

/** An operation as the queue reads it: at this version of its history. */
export interface Queued {
  readonly operation: Operation;
  readonly version: number;
}

export interface CauseGroup {
  readonly cause: Cause;
  /** In order of arrival. */
  readonly members: readonly Queued[];
  /** Of the same obstacle, and known since; not among the members. */
  readonly found: readonly Operation[];
  readonly counts: CauseCounts;
  /** The instant at which the obstacle met the first of its members. */
  readonly since: number;
  /** The next instant at which something is tried by itself; absent where nothing is, or only when somebody answers. */
  readonly nextAt?: number;
}

export interface CauseCounts {
  readonly neverSent: number;
  readonly found: number;
  readonly needsPerson: number;
  readonly goesOn: number;
  /** Of those that were never sent: an approval was given, and has expired. */
  readonly approvalsExpired: number;
}

export function causeId(kind: CauseKind, destination: string): string {
  return `cause_${kind}@${destination}`;
}

/** `undefined` for what is closed and leaves nothing to be looked at. */
export function causeOf(operation: Operation): Cause | undefined {
  const kind = kindOf(operation);
  if (kind === undefined) return undefined;
  const { destination } = operation;
  return { id: causeId(kind, destination), kind, destination };
}

function kindOf(operation: Operation): CauseKind | undefined {
  switch (operation.stage) {
    case 'proposed':
    case 'sending':
      return 'on_its_way';
    case 'awaiting_approval':
    case 'held':
      return kindOfHeld(operation.stage === 'held' ? operation.why : operation.review?.because);
    case 'ready':
      return kindOfReady(operation);
    case 'checking':
      return isLookedUp(operation) ? kindOfUnknown(operation) : 'on_its_way';
    case 'parked':
      return kindOfParked(operation);
    case 'closed':
      return unlikeReadBack(operation) === undefined ? undefined : 'read_back_differs';
  }
}

/** Now, or as soon as a gateway runs that can. */
function isLookedUp({ effect, why }: Operation): boolean {
  return why?.code === 'looking_up' || (why?.code === 'waits_for_gateway' && effect === 'unknown');
}

function kindOfHeld(why: Why | undefined): CauseKind {
  switch (why?.code) {
    case 'approval_expired':
      return why.waited === undefined ? 'approval_expired' : 'no_answer';
    case 'target_changed':
    case 'target_unreadable':
      return 'target_changed';
    case 'approval_revoked':
    case 'rule_stricter':
    case 'access_lost':
    case 'go_on_refused':
      return why.code;
    default:
      return 'approval';
  }
}

function kindOfReady({ attempts, effect, why }: Operation): CauseKind {
  switch (why?.code) {
    case 'waits_for_destination':
      return 'no_answer';
    case 'waits_for_gateway':
      return 'no_gateway';
    case 'stopped':
      return 'stopped';
    case 'waits_for_place':
    case 'waits_for_rate':
      return 'limit';
    case 'waits_for_operation':
    case 'waits_for_predecessor':
    case 'waits_for_prerequisite':
    case 'waits_for_go_on':
      return 'other_first';
    case 'waits_until':
      // Proven that nothing left: the destination could not be reached.
      return attempts.length > 0 && effect === 'not_sent' ? 'no_answer' : 'on_its_way';
    default:
      return 'on_its_way';
  }
}

function kindOfParked(operation: Operation): CauseKind {
  const { attempts, effect, why } = operation;
  if (why?.code === 'digest_mismatch') return why.code;
  if (effect === 'diverged') return 'contradiction';
  if (effect === 'unknown') return kindOfUnknown(operation);
  if (effect === 'absent') return 'absent';
  const hasMetNobody = why?.code === 'bounds_used_up' && (attempts.length > 0 || why.waited !== undefined);
  return hasMetNobody ? 'no_answer' : 'bounds_used_up';
}

/** How our own side reports that its process is no more. */
const GATEWAY_ENDED: readonly string[] = ['claim_lost', 'abandoned'];

function kindOfUnknown({ attempts, evidence }: Operation): CauseKind {
  const newest = attempts.at(-1)?.id;
  const wire = evidence.findLast((piece) => piece.kind === 'transport' && piece.attempt === newest);
  return wire?.kind === 'transport' && GATEWAY_ENDED.includes(wire.what) ? 'gateway_ended' : 'no_answer';
}

export function standingOf({ effect, stage }: Operation): Standing {
  if (stage === 'closed') return 'needs_person';
  if (effect === 'not_sent' && stage !== 'sending') return 'never_sent';
  return stage === 'parked' || stage === 'awaiting_approval' || stage === 'held' ? 'needs_person' : 'goes_on';
}

/** Whether a new approval is all that is missing to what was never sent: the one it had has expired. */
export function isApprovalExpired({ effect, review, stage }: Operation): boolean {
  return (
    stage === 'awaiting_approval' && effect === 'not_sent' && review?.because?.code === 'approval_expired'
  );
}

/** The instant at which its obstacle met the operation. */
function metAt(operation: Operation): number {
  const { attempts, effect, review, roundBeganAt, since, stage } = operation;
  if (effect !== 'not_sent') return attempts.at(-1)?.startedAt ?? since;
  return stage === 'awaiting_approval' && review?.because === undefined ? since : roundBeganAt;
}

/** @param settled operations that are closed, of which some may have been caught by the same obstacles */
export function groupByCause(
  open: readonly Queued[],
  settled: readonly Operation[] = [],
): readonly CauseGroup[] {
  const groups = new Map<string, { readonly cause: Cause; readonly members: Queued[] }>();
  for (const queued of open) {
    const cause = causeOf(queued.operation);
    if (cause === undefined) continue;
    const group = groups.get(cause.id) ?? { cause, members: [] };
    group.members.push(queued);
    groups.set(cause.id, group);
  }
  return [...groups.values()]
    .map(({ cause, members }) => groupOf(cause, members, settled))
    .toSorted((one, other) => orderOf(one) - orderOf(other) || (one.cause.id < other.cause.id ? -1 : 1));
}

function orderOf({ cause }: CauseGroup): number {
  return CAUSE_KINDS.indexOf(cause.kind);
}

function groupOf(cause: Cause, members: readonly Queued[], settled: readonly Operation[]): CauseGroup {
  const operations = members.map(({ operation }) => operation);
  const since = Math.min(...operations.map(metAt));
  const found = settled.filter((operation) => isFoundSince(operation, cause, since));
  const standings = operations.map(standingOf);
  const count = (standing: Standing): number => standings.filter((each) => each === standing).length;
  const next = operations.flatMap(nextOf);
  return {
    cause,
    members,
    found,
    since,
    counts: {
      neverSent: count('never_sent'),
      found: found.length,
      needsPerson: count('needs_person'),
      goesOn: count('goes_on'),
      approvalsExpired: operations.filter(isApprovalExpired).length,
    },
    ...(next.length === 0 ? {} : { nextAt: Math.min(...next) }),
  };
}

/** Sent, its answer lost for that reason, and known to have landed while others of the cause were open. */
function isFoundSince(operation: Operation, { destination, kind }: Cause, since: number): boolean {
  const { effect, stage, since: closedAt } = operation;
  const hasLanded = stage === 'closed' && (effect === 'accepted' || effect === 'verified');
  if (!hasLanded || operation.destination !== destination || closedAt < since) return false;
  const wasLost = operation.evidence.some((piece) => piece.kind === 'transport' && piece.left === 'maybe');
  return wasLost && kindOfUnknown(operation) === kind;
}

function nextOf({ stage, why }: Operation): readonly number[] {
  if (stage === 'checking' && why !== undefined && 'nextAt' in why) return [why.nextAt];
  return stage === 'ready' && why !== undefined && 'until' in why ? [why.until] : [];
}
