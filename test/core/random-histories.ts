// Random histories of one operation, and a watch that asserts the domain's invariants after every step.
//
// The watch reads the events and the states between them; it asks none of the code under test what is right.

import fc from 'fast-check';
import type { Attempt } from '../../src/core/attempt.ts';
import type { Guard, Lookup, ToolClass, ToolFacts } from '../../src/core/contract.ts';
import { type Command, type Decision, decide } from '../../src/core/decide.ts';
import type { Evidence, Finding } from '../../src/core/evidence.ts';
import type { Resolution } from '../../src/core/lifecycle.ts';
import {
  evolve,
  type Operation,
  type OperationEvent,
  type ReviewQuestion,
} from '../../src/core/operation.ts';
import { type Bounds, DEFAULT_BOUNDS } from '../../src/core/repeatability.ts';
import type { StopInForce } from '../../src/core/stop.ts';
import {
  allowance,
  contractOf,
  evidenceOf,
  FINDINGS,
  factsOf,
  factsWithLookup,
  HOUR_MS,
  lookupOf,
  MINUTE_MS,
  proposalOf,
  READ_BACK,
  SECOND_MS,
  T0,
} from './fixtures.ts';

// ── What may happen ────────────────────────────────────────────────────────────────────────────────────────

/** One step of a history, before it is known which attempts and reviews there are to be about. */
export type Move =
  | { readonly move: 'pass'; readonly ms: number }
  | { readonly move: 'facts'; readonly contract: number; readonly class: ToolClass }
  | { readonly move: 'propose'; readonly question?: ReviewQuestion | undefined }
  | {
      readonly move: 'start';
      readonly connected: boolean;
      readonly digest: 'same' | 'other';
      readonly lockedBy?: string | undefined;
      readonly predecessor?: string | undefined;
      readonly isToolKnown?: boolean;
      readonly scope?: 'here' | 'elsewhere';
      readonly isDistrusted?: boolean;
      readonly isStopped?: boolean;
      readonly targetNow?: 'same' | 'changed' | 'unreadable';
    }
  | {
      readonly move: 'learn';
      readonly finding: Finding;
      /** Counted back from the newest attempt; -1: it does not say. */
      readonly back: number;
      readonly closes: boolean;
    }
  | { readonly move: 'fence'; readonly back: number; readonly isToolKnown: boolean }
  | {
      readonly move: 'decide';
      readonly kind: 'approved' | 'denied';
      readonly digest: 'same' | 'other';
      readonly review: 'same' | 'other';
    }
  | { readonly move: 'revoke'; readonly digest: 'same' | 'other' }
  | { readonly move: 'reopen'; readonly by: string }
  | { readonly move: 'state'; readonly resolution: Resolution }
  | { readonly move: 'supersede'; readonly by: string }
  | { readonly move: 'see_replay'; readonly replay: string }
  | { readonly move: 'person_cancels' | 'stop_is_lifted' }
  | { readonly move: 'lapse' | 'order' | 'look_up' | 'give_up' | 'cancel' | 'deliver' | 'reconsider' }
  /** Whatever is likely to come next at the present stage, so that histories become long. */
  | { readonly move: 'go_on'; readonly finding: Finding; readonly choice: number };

const CONTRACTS: readonly ToolFacts[] = [
  factsOf(),
  factsWithLookup(),
  factsWithLookup({ proves: { present: 'applied', absent: 'nothing' } }),
  factsWithLookup({
    consistency: { kind: 'eventual', settle: 'PT10M' },
    proves: { present: 'applied', absent: 'not_applied_after_settle' },
  }),
  factsWithLookup({ evidence: { grade: 'assumed' } }),
  factsOf({ operation: contractOf({ lookups: [lookupOf()], readback: READ_BACK }) }),
  guardedFacts({}),
  guardedFacts({ in_flight: { result: 'unknown' }, window: { kind: 'duration', at_least: 'PT1H' } }),
  guardedFacts({ strength: 'best_effort' }),
  guardedFacts({}, [lookupOf({ proves: { present: 'applied', absent: 'nothing' } })]),
];

/** Facts whose contract promises that a repeat under our key does no harm, but for what is taken away. */
function guardedFacts(taken: Partial<Guard>, lookups: readonly Lookup[] = []): ToolFacts {
  const guard: Guard = {
    kind: 'request_key',
    carrier: { in: 'header', name: 'Idempotency-Key' },
    scope: ['credential'],
    window: { kind: 'duration', at_least: 'PT24H' },
    same: { result: 'replays_original' },
    different: { result: 'rejected' },
    in_flight: { result: 'waits' },
    strength: 'enforced',
    evidence: { grade: 'documented' },
    ...taken,
  };
  return factsOf({
    contract: { id: 'tasks', revision: 1, reviewBy: '2026-12-31' },
    operation: contractOf({ http: { method: 'POST', path: '/tasks' }, guards: [guard], lookups }),
  });
}

const STOP: StopInForce = {
  id: 'stp_1',
  kind: 'stop',
  scope: { kind: 'destination', destination: 'tasks-eu' },
  by: 'Mara',
  at: T0,
};

const STOPPED = {
  code: 'stopped',
  stop: STOP.id,
  since: STOP.at,
  scope: 'destination',
} as const;

/** After these nothing more of a round is sent. */
const ENDS: readonly string[] = ['cancel_requested', 'sending_ended', 'superseded'];

const CLASSES: readonly ToolClass[] = ['ordinary', 'interactive', 'irreversible', 'unclassified'];

const mostly = <T>(usual: T, ...others: readonly T[]): fc.Arbitrary<T> =>
  fc.oneof(
    { weight: 8, arbitrary: fc.constant(usual) },
    { weight: 2, arbitrary: fc.constantFrom(...others) },
  );

const back = fc.oneof(
  { weight: 7, arbitrary: fc.constant(0) },
  { weight: 2, arbitrary: fc.integer({ min: 1, max: 3 }) },
  { weight: 1, arbitrary: fc.constant(-1) },
);

const move: fc.Arbitrary<Move> = fc.oneof(
  {
    weight: 40,
    arbitrary: fc.record({
      move: fc.constant('go_on' as const),
      finding: fc.constantFrom(...FINDINGS),
      choice: fc.nat({ max: 5 }),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      move: fc.constant('pass' as const),
      ms: fc.constantFrom(
        1,
        500,
        3 * SECOND_MS,
        40 * SECOND_MS,
        20 * MINUTE_MS,
        2 * HOUR_MS,
        9 * HOUR_MS,
        25 * HOUR_MS,
      ),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      move: fc.constant('facts' as const),
      contract: fc.nat({ max: CONTRACTS.length - 1 }),
      class: mostly<ToolClass>('ordinary', ...CLASSES),
    }),
  },
  {
    weight: 10,
    arbitrary: fc.record({
      move: fc.constant('start' as const),
      scope: mostly('here' as const, 'elsewhere' as const),
      isDistrusted: mostly(false, true),
      connected: mostly(true, false),
      digest: fc.oneof(
        { weight: 30, arbitrary: fc.constant('same' as const) },
        fc.constant('other' as const),
      ),
      lockedBy: mostly<string | undefined>(undefined, 'op_lock'),
      predecessor: mostly<string | undefined>(undefined, 'op_before'),
      isToolKnown: mostly(true, false),
      isStopped: fc.oneof({ weight: 20, arbitrary: fc.constant(false) }, fc.constant(true)),
      targetNow: mostly<'same' | 'changed' | 'unreadable'>('same', 'changed', 'unreadable'),
    }),
  },
  {
    weight: 14,
    arbitrary: fc.record({
      move: fc.constant('learn' as const),
      finding: fc.constantFrom(...FINDINGS),
      back,
      closes: mostly(true, false),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({ move: fc.constant('fence' as const), back, isToolKnown: mostly(true, false) }),
  },
  { weight: 2, arbitrary: fc.record({ move: fc.constant('reconsider' as const) }) },
  {
    weight: 8,
    arbitrary: fc.record({
      move: fc.constant('decide' as const),
      kind: mostly<'approved' | 'denied'>('approved', 'denied'),
      digest: mostly<'same' | 'other'>('same', 'other'),
      review: mostly<'same' | 'other'>('same', 'other'),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      move: fc.constant('revoke' as const),
      digest: mostly<'same' | 'other'>('same', 'other'),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({ move: fc.constant('reopen' as const), by: fc.constantFrom('caller', 'Mara') }),
  },
  {
    weight: 5,
    arbitrary: fc.record({
      move: fc.constant('state' as const),
      resolution: mostly<Resolution>('stated_not_happened', 'stated_happened', 'stated_other_change'),
    }),
  },
  { weight: 5, arbitrary: fc.record({ move: fc.constant('order' as const) }) },
  {
    weight: 1,
    arbitrary: fc.record({ move: fc.constant('supersede' as const), by: fc.constantFrom('op_a', 'op_b') }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      move: fc.constant('see_replay' as const),
      replay: fc.constantFrom('call-1', 'call-2'),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      move: fc.constantFrom('lapse' as const, 'give_up' as const, 'cancel' as const, 'deliver' as const),
    }),
  },
  { weight: 2, arbitrary: fc.record({ move: fc.constant('look_up' as const) }) },
  {
    weight: 1,
    arbitrary: fc.record({
      move: fc.constantFrom('person_cancels' as const, 'stop_is_lifted' as const),
    }),
  },
  { weight: 1, arbitrary: fc.record({ move: fc.constant('propose' as const) }) },
);

export interface Plan {
  readonly contract: number;
  readonly class: ToolClass;
  readonly question: ReviewQuestion | undefined;
  readonly attemptsMax: number;
  readonly moves: readonly Move[];
}

export const plan: fc.Arbitrary<Plan> = fc.record({
  contract: fc.nat({ max: CONTRACTS.length - 1 }),
  class: mostly<ToolClass>('ordinary', ...CLASSES),
  question: mostly<ReviewQuestion | undefined>(undefined, 'same_work', 'too_old', 'error_reported'),
  attemptsMax: fc.constantFrom(1, 2, 5),
  moves: fc.array(move, { maxLength: 40, size: 'max' }),
});

// ── Carrying it out ────────────────────────────────────────────────────────────────────────────────────────

/** The code under test; a planted fault is a machine with one of the two replaced. */
export interface Machine {
  readonly decide: typeof decide;
  readonly evolve: typeof evolve;
}

export const MACHINE: Machine = { decide, evolve };

export interface Step {
  readonly command: Command;
  readonly before: Operation | undefined;
  readonly decision: Decision;
  /** Each event with the state before and after it. */
  readonly changes: readonly Change[];
  readonly after: Operation | undefined;
  readonly at: number;
}

export interface Change {
  readonly event: OperationEvent;
  readonly before: Operation | undefined;
  readonly after: Operation;
}

/** Carries out a plan; `seen` is called after every step that something was decided in. */
export function carryOut(planned: Plan, machine: Machine, seen: (step: Step) => void): void {
  const bounds: Bounds = { ...DEFAULT_BOUNDS, attemptsMax: planned.attemptsMax };
  let contract = planned.contract;
  let toolClass = planned.class;
  let operation: Operation | undefined;
  let at = T0;
  let made = 0;

  for (const next of [{ move: 'propose', question: planned.question } as const, ...planned.moves]) {
    const one = next.move === 'go_on' ? likely(next, operation) : next;
    at += 1;
    if (one.move === 'pass') at += one.ms;
    if (one.move === 'facts') [contract, toolClass] = [one.contract, one.class];
    made += 1;
    const facts: ToolFacts = { ...(CONTRACTS[contract] ?? factsOf()), class: toolClass };
    const command = commandOf(one, { operation, at, made, facts, bounds });
    if (command === undefined) continue;
    const before = operation;
    const decision = machine.decide(operation, command, at);
    const changes: Change[] = [];
    for (const event of decision.events ?? []) {
      const evolved: Operation = deepFreeze(machine.evolve(operation, event));
      changes.push({ event, before: operation, after: evolved });
      operation = evolved;
    }
    seen({ command, before, decision, changes, after: operation, at });
  }
}

type Simple = Exclude<Move, { readonly move: 'go_on' }>;

function likely({ choice, finding }: Extract<Move, { move: 'go_on' }>, operation?: Operation): Simple {
  const learn: Simple = { move: 'learn', finding, back: 0, closes: true };
  const decided = { move: 'decide', digest: 'same', review: 'same' } as const;
  const stated: Simple = { move: 'state', resolution: 'stated_not_happened' };
  switch (operation?.stage) {
    case 'awaiting_approval':
      return { ...decided, kind: choice === 0 ? 'denied' : 'approved' };
    case 'ready':
      return { move: 'start', connected: true, digest: 'same', scope: 'here' };
    case 'sending':
    case 'checking':
      return learn;
    case 'parked':
      if (choice < 2) return choice === 0 ? { move: 'give_up' } : learn;
      return operation.effect === 'unknown' && choice < 4 ? stated : { move: 'order' };
    case 'closed':
      return choice < 2 ? { move: 'reopen', by: 'Mara' } : { move: 'order' };
    default:
      return { move: 'pass', ms: 1 };
  }
}

interface Present {
  readonly operation: Operation | undefined;
  readonly at: number;
  readonly made: number;
  readonly facts: ToolFacts;
  readonly bounds: Bounds;
}

function commandOf(one: Simple, { operation, at, made, facts, bounds }: Present): Command | undefined {
  const newReview = { id: `rev_${made}`, expiresAt: at + 8 * HOUR_MS };
  const attemptAt = (steps: number) => operation?.attempts.at(-1 - steps)?.id;
  switch (one.move) {
    case 'pass':
    case 'facts':
      return undefined;
    case 'propose':
      return {
        type: 'propose',
        proposal: proposalOf({ toolClass: facts.class }),
        facts,
        newReview,
        ...(one.question === undefined ? {} : { question: one.question }),
      };
    case 'start':
      return {
        type: 'start_attempt',
        attempt: {
          id: `att_${made}`,
          worker: 'worker-1',
          startedAt: at,
          sendBy: at + bounds.sendByMs,
          scope: one.scope ?? 'here',
        },
        newReview,
        conditions: {
          at,
          facts: one.isToolKnown === false ? undefined : facts,
          bounds,
          digest: one.digest === 'same' ? (operation?.digest ?? '') : 'digest-altered',
          connected: one.connected,
          connectionDetail: one.connected ? '' : 'connection refused',
          lockedBy: one.lockedBy,
          unsettledPredecessor: one.predecessor,
          scope: one.scope ?? 'here',
          isDistrusted: one.isDistrusted ?? false,
          stopped: one.isStopped === true ? STOP : undefined,
          targetNow: TARGET_NOW[one.targetNow ?? 'same'],
        },
      };
    case 'learn': {
      const attempt = one.back < 0 ? undefined : attemptAt(one.back);
      const closes = one.closes && attempt !== undefined;
      return {
        type: 'record_evidence',
        evidence: evidenceOf(one.finding, attempt, at),
        ...(closes ? { closes: attempt } : {}),
        facts,
        bounds,
      };
    }
    case 'fence':
      return {
        type: 'fence_attempt',
        attempt: attemptAt(Math.max(0, one.back)) ?? 'att_none',
        by: 'worker-2',
        facts: one.isToolKnown ? facts : undefined,
        bounds,
      };
    case 'reconsider':
      return { type: 'reconsider', facts, bounds };
    case 'decide':
      return {
        type: 'decide_review',
        review: one.review === 'same' ? (operation?.review?.id ?? '') : 'rev_other',
        digest: one.digest === 'same' ? (operation?.digest ?? '') : 'digest-altered',
        decision: { kind: one.kind, by: 'Mara', at, strength: 'passphrase' },
      };
    case 'revoke':
      return {
        type: 'revoke_approval',
        digest: one.digest === 'same' ? (operation?.digest ?? '') : 'digest-altered',
        revocation: { by: 'Luis', at, strength: 'same_account' },
        newReview,
      };
    case 'lapse':
      return { type: 'lapse_review' };
    case 'reopen':
      return { type: 'reopen', by: one.by, facts, newReview };
    case 'state':
      return { type: 'state_finding', stated: { resolution: one.resolution, by: 'Mara', at } };
    case 'order':
      return { type: 'order_again', by: 'Mara', newReview };
    case 'look_up':
      return { type: 'order_look_up', by: 'Mara' };
    case 'give_up':
      return { type: 'give_up', by: 'Mara' };
    case 'cancel':
      return { type: 'cancel_by_caller' };
    case 'person_cancels':
      return { type: 'cancel', by: 'Mara' };
    case 'stop_is_lifted':
      return { type: 'end_stopped', why: STOPPED };
    case 'supersede':
      return { type: 'supersede', by: one.by };
    case 'see_replay':
      return { type: 'see_replays', replays: [one.replay] };
    case 'deliver':
      return { type: 'deliver' };
  }
}

const TARGET_NOW = {
  same: undefined,
  changed: { code: 'target_changed', fields: ['due'], was: '11', is: '12' },
  unreadable: { code: 'target_unreadable' },
} as const;

/** A state that is changed in place would change a history behind the ledger's back. */
function deepFreeze<T>(value: T): T {
  if (typeof value === 'object' && value !== null && !Object.isFrozen(value)) {
    Object.freeze(value);
    for (const member of Object.values(value)) deepFreeze(member);
  }
  return value;
}

// ── The watch ──────────────────────────────────────────────────────────────────────────────────────────────

class Violation extends Error {
  override readonly name = 'Violation';
}

function must(holds: boolean, law: string, what: string): void {
  if (!holds) throw new Violation(`${law}: ${what}`);
}

interface Round {
  readonly opened: OperationEvent;
  /** Whether it was opened with a question that a person must answer. */
  readonly asks: boolean;
  readonly events: OperationEvent[];
}

/** What the watch remembers of a history, beside the states. */
export class Watch {
  readonly #rounds: Round[] = [];
  readonly #roundOf = new Map<string, number>();
  readonly #decisionsOf = new Map<string, number>();
  readonly #learned: Evidence[] = [];
  readonly #fenced = new Set<string>();
  readonly #machine: Machine;
  /** Facts under which the operation last became ready to be sent again by itself. */
  #repeatFacts: ToolFacts | undefined;
  #closedBy: Command['type'] | undefined;

  constructor(machine: Machine) {
    this.#machine = machine;
  }

  readonly see = (step: Step): void => {
    for (const change of step.changes) this.#seeChange(step, change);
    if (step.after === undefined) return;
    this.#pairIsAllowed(step.after);
    this.#claimIsSupported(step.after);
    this.#nothingIsReplaced(step);
    this.#fencedNeverHolds(step);
    this.#isBounded(step.after, step);
    this.#againChangesNothing(step);
  };

  get #round(): Round {
    const round = this.#rounds.at(-1);
    if (round === undefined) throw new Violation('a history without a proposal');
    return round;
  }

  #seeChange(step: Step, { after, before, event }: Change): void {
    if (event.type === 'proposed' || event.type === 'reopened' || event.type === 'ordered_again') {
      const isAsked = step.command.type === 'propose' && step.command.question !== undefined;
      this.#rounds.push({ opened: event, asks: isAsked || this.#isStillAsked(event), events: [] });
    }
    if (event.type === 'closed') this.#closedBy = step.command.type;
    if (event.type === 'attempt_started') this.#mayStart(step, event.attempt, before);
    if (event.type === 'evidence_recorded') this.#learned.push(event.evidence);
    if (event.type === 'attempt_fenced') this.#fenced.add(event.attempt);
    if (event.type === 'sending_again' && 'facts' in step.command) {
      this.#repeatFacts = step.command.facts;
    }
    if (event.type === 'approved' || event.type === 'denied') this.#isDecidedOnce(step, before);
    this.#round.events.push(event);
    this.#onlyEvidenceChangesEffect(step, event, before, after);
  }

  /** A question of identity that nobody has answered stays one in the next round. */
  #isStillAsked(event: OperationEvent): boolean {
    const last = this.#rounds.at(-1);
    const isAnswered = last?.events.some(({ type }) => type === 'approved') === true;
    return event.type === 'reopened' && last?.asks === true && !isAnswered;
  }

  /** I4: time, restarts, cancels, statements and retries never change the effect. */
  #onlyEvidenceChangesEffect(
    step: Step,
    event: OperationEvent,
    before: Operation | undefined,
    after: Operation,
  ): void {
    if (before === undefined) return must(after.effect === 'not_sent', 'I4', 'a proposal shows an effect');
    if (event.type === 'attempt_started') {
      return must(after.effect === 'unknown', 'I4', `an attempt started with effect ${after.effect}`);
    }
    if (event.type !== 'evidence_recorded') {
      return must(
        after.effect === before.effect,
        'I4',
        `${event.type} made ${before.effect} ${after.effect}`,
      );
    }
    if (step.command.type === 'fence_attempt') {
      const { evidence } = event;
      const claimsNothing = evidence.kind === 'transport' && evidence.left === 'maybe';
      return must(claimsNothing, 'I4', 'a lost claim was taken for evidence');
    }
    const given = step.command.type === 'record_evidence' ? step.command.evidence : undefined;
    must(event.evidence === given, 'I7', 'evidence was recorded that nobody gave');
  }

  /** D4's table, with the named persons' acts read off the history. */
  #pairIsAllowed({ effect, stage }: Operation): void {
    const allowed = allowance(stage, effect);
    if (allowed === 'yes') return;
    must(allowed !== 'no', 'D4', `${stage} shows ${effect}`);
    const { events, opened } = this.#round;
    if (allowed === 'order') {
      const last = events.findLast(({ type }) => type === 'sending_again' || type === 'attempt_started');
      if (stage === 'ready' && last?.type === 'sending_again' && last.under !== undefined) return;
      const isUsed = events.some((event) => event.type === 'attempt_started');
      return must(
        opened.type === 'ordered_again' && !isUsed,
        'D4',
        `${stage} shows ${effect} without an order`,
      );
    }
    const byPerson = this.#closedBy === 'give_up' || this.#closedBy === 'state_finding';
    must(byPerson, 'D4', `${effect} was closed by ${this.#closedBy ?? 'nothing'}`);
  }

  /** I7: the pieces that the claim needs are among those that were given. */
  #claimIsSupported({ attempts, effect }: Operation): void {
    const has = (test: (piece: Evidence) => boolean): boolean => this.#learned.some(test);
    const supported = {
      not_sent: attempts.every((attempt) =>
        has((piece) => piece.attempt === attempt.id && provesNotLeft(piece)),
      ),
      unknown: attempts.length > 0,
      error_reported: has((piece) => piece.kind === 'acknowledgement' && piece.means === 'error'),
      accepted: has(isSighting),
      verified: has(isSighting) && has((piece) => piece.kind === 'readback' && piece.matches === true),
      rejected: has((piece) => isRefusal(piece)),
      absent: has((piece) => piece.kind === 'lookup' && piece.found === 'absent'),
      diverged:
        this.#learned.length >= 2 || has((piece) => piece.kind === 'lookup' && piece.found === 'several'),
    }[effect];
    must(supported, 'I7', `${effect} is claimed without its evidence`);
  }

  #mayStart(step: Step, attempt: Attempt, operation: Operation | undefined): void {
    if (operation === undefined || step.command.type !== 'start_attempt') {
      throw new Violation('I1: an attempt started by itself');
    }
    const { conditions } = step.command;
    must(
      operation.attempts.every((earlier) => !earlier.open),
      'I12',
      'two attempts are out at once',
    );
    must(
      conditions.connected && conditions.lockedBy === undefined,
      'D8',
      'an attempt started that had to wait',
    );
    must(conditions.unsettledPredecessor === undefined, 'D6', 'an attempt overtook an unsettled predecessor');
    const { facts } = conditions;
    if (facts === undefined) throw new Violation('D8: an attempt of a tool that is not known');
    this.#isAuthorised(operation, { ...conditions, facts }, step.at);
    if (!this.#isGuarded(operation, step)) this.#repeatIsLawful(operation);
    const ended = this.#round.events.some(({ type }) => ENDS.includes(type));
    must(!ended, 'D8', 'an attempt started after it was cancelled, stopped for good or superseded');
    this.#roundOf.set(attempt.id, this.#rounds.length);
  }

  /** I3, and D9's floor: a rule by name for ordinary work, else an approval of exactly these bytes. */
  #isAuthorised(
    operation: Operation,
    conditions: { readonly digest: string; readonly facts: ToolFacts },
    at: number,
  ): void {
    must(conditions.digest === operation.digest, 'I3', 'what is sent is not what was decided on');
    const { asks, events, opened: began } = this.#round;
    const decided = events.findLast(
      ({ type }) =>
        type === 'approved' || type === 'denied' || type === 'revoked' || type === 'review_opened',
    );
    const opened = events.findLast((event) => event.type === 'review_opened');
    if (decided?.type === 'approved' && opened?.type === 'review_opened') {
      const { review } = opened;
      must(review.digest === operation.digest, 'I3', 'the approval is of something else');
      return must(at <= review.expiresAt, 'I3', 'the approval has expired');
    }
    const needsPerson = decided !== undefined || asks || began.type === 'ordered_again';
    must(!needsPerson, 'I3', 'a person had to be asked and has not approved');
    must(
      events.some((event) => event.type === 'allowed' && event.rule !== ''),
      'I3',
      'neither rule nor approval',
    );
    const hasRule = conditions.facts.class === 'ordinary' || conditions.facts.class === 'interactive';
    must(hasRule, 'I3', `${conditions.facts.class} work was sent by a rule`);
  }

  /** I5, D7 step 2: under a promised guard, in its time and its scope, while nothing tells that it went wrong before. */
  #isGuarded(operation: Operation, { at, command }: Step): boolean {
    if (command.type !== 'start_attempt' || operation.under === undefined) return false;
    must(!this.#learned.some(isSighting), 'I5', 'what is known to have happened is repeated');
    const { facts, isDistrusted, scope } = command.conditions;
    const guard = facts?.operation?.guards.find(({ kind }) => kind === operation.under);
    const first = operation.attempts[0]?.startedAt ?? Number.NaN;
    must(guard?.strength === 'enforced', 'I5', 'repeated under a guard that nobody promised');
    const promisedMs = guard?.window.at_least === 'PT1H' ? HOUR_MS : 24 * HOUR_MS;
    must(at < first + promisedMs * 0.8, 'I5', 'repeated when the key may be forgotten');
    must(isDistrusted !== true, 'I5', 'repeated where a key was passed over');
    const isSameScope = operation.attempts.every((attempt) => attempt.scope === scope);
    must(isSameScope, 'I5', 'repeated with another credential');
    if (guard?.in_flight.result === 'unknown') {
      const last = operation.attempts.at(-1)?.sendBy ?? Number.NaN;
      must(at >= last + 30 * SECOND_MS, 'I5', 'repeated while the first may be under way');
    }
    return true;
  }

  /** I5: again only what is proven not to have happened, or by a person's order and a new approval. */
  #repeatIsLawful(operation: Operation): void {
    must(!this.#learned.some(isSighting), 'I5', 'what is known to have happened is sent again');
    const { events, opened } = this.#round;
    const open = operation.attempts.filter((attempt) => !this.#isHarmless(attempt, operation));
    if (open.length === 0) return;
    must(opened.type === 'ordered_again', 'I5', `sent again while ${open[0]?.id ?? ''} is not settled`);
    const ordered = events.some((event) => event.type === 'attempt_started');
    must(!ordered, 'I5', 'one order sent it twice');
    const before = this.#rounds.slice(0, -1).flatMap((round) => [round.opened, ...round.events]);
    const statement = before.findLastIndex((event) => event.type === 'stated');
    const attempt = before.findLastIndex((event) => event.type === 'attempt_started');
    const stated = before[statement];
    const isStated = stated?.type === 'stated' && stated.stated.resolution === 'stated_not_happened';
    must(
      isStated && statement > attempt,
      'I5',
      'ordered again without "it did not happen" about the last try',
    );
  }

  #isHarmless(attempt: Attempt, operation: Operation): boolean {
    const own = this.#learned.filter((piece) => piece.attempt === attempt.id);
    if (own.some(provesNotLeft)) return true;
    const isSameRound = this.#roundOf.get(attempt.id) === this.#rounds.length;
    const refusals = own.filter(isRefusal);
    if (refusals.length > 0) {
      const isForNow = refusals.every(
        (piece) => piece.kind === 'acknowledgement' && piece.means === 'rejected_temporary',
      );
      return isForNow || !isSameRound;
    }
    const isAbsent = this.#learned.some((piece) => {
      const covered = operation.attempts.find((other) => other.id === piece.attempt);
      return piece.kind === 'lookup' && piece.found === 'absent' && (covered?.number ?? 0) >= attempt.number;
    });
    // Of an earlier try it was judged when the one after it started.
    const isJudgedNow = isSameRound && attempt === operation.attempts.at(-1);
    return isAbsent && (!isJudgedNow || this.#mayRepeatAfterAbsence());
  }

  /** D7, step 1, without a guard. */
  #mayRepeatAfterAbsence(): boolean {
    const lookup = this.#repeatFacts?.operation?.lookups[0];
    if (lookup === undefined) return false;
    const isTrusted = ['documented', 'source', 'drilled'].includes(lookup.evidence.grade);
    return (
      isTrusted && lookup.proves.absent === 'not_applied' && lookup.consistency.kind === 'read_after_write'
    );
  }

  /** I13: nothing that was frozen when it was proposed is ever replaced. */
  #nothingIsReplaced({ after, before }: Step): void {
    if (before === undefined || after === undefined) return;
    for (const frozen of [
      'id',
      'digest',
      'payload',
      'intentKey',
      'argumentsDigest',
      'requester',
      'stamp',
    ] as const) {
      must(after[frozen] === before[frozen], 'I13', `${frozen} was replaced`);
    }
    must(after.evidence.length > 0 || before.evidence.length === 0, 'I9', 'evidence is gone');
    must(after.attempts.length >= before.attempts.length, 'I9', 'an attempt is gone');
  }

  /** I6: a result that comes after the claim was lost is evidence, and nothing more. */
  #fencedNeverHolds({ after, before, command, decision }: Step): void {
    for (const attempt of after?.attempts ?? []) {
      if (this.#fenced.has(attempt.id))
        must(!attempt.open && attempt.fenced === true, 'I6', `${attempt.id} is open again`);
    }
    if (command.type !== 'record_evidence' || command.closes === undefined) return;
    if (!this.#fenced.has(command.closes) || before === undefined || after === undefined) return;
    const isOut = before.attempts.some((attempt) => attempt.open);
    if (!isOut || decision.events === undefined) return;
    must(
      after.attempts.some((attempt) => attempt.open),
      'I6',
      'a fenced attempt closed another',
    );
    const moved = after.stage !== before.stage;
    must(!moved || after.effect === 'diverged', 'I6', `a fenced attempt made ${before.stage} ${after.stage}`);
  }

  /** I14: attempts and time. */
  #isBounded({ attempts, round, stage }: Operation, { at, before, command }: Step): void {
    must(round === this.#rounds.length, 'I14', 'rounds are miscounted');
    if (command.type !== 'start_attempt') return;
    const { attemptsMax, elapsedMaxMs } = command.conditions.bounds;
    must(attempts.length <= attemptsMax * round, 'I14', `${attempts.length} attempts in ${round} rounds`);
    if (stage !== 'sending' || before?.stage === 'sending') return;
    // A person may take longer than we may try: an approval begins the time anew.
    const allowedAt = this.#round.events.findLast(({ type }) => type === 'approved')?.at;
    const since = allowedAt ?? this.#round.opened.at;
    must(at - since <= elapsedMaxMs, 'I14', 'an attempt started after the time of its round');
  }

  /** I15: a review has one decision, by its own id and digest and in its time. */
  #isDecidedOnce({ at, command }: Step, operation: Operation | undefined): void {
    const review = operation?.review;
    if (review === undefined || command.type !== 'decide_review')
      throw new Violation('I15: decided by itself');
    const count = (this.#decisionsOf.get(review.id) ?? 0) + 1;
    this.#decisionsOf.set(review.id, count);
    must(count === 1, 'I15', `${review.id} was decided ${count} times`);
    must(command.review === review.id, 'I15', 'another review was decided');
    must(
      command.digest === review.digest && review.digest === operation?.digest,
      'I15',
      'another digest was decided',
    );
    must(at <= review.expiresAt, 'I15', 'a review was decided after its end');
  }

  /** I15: the same command once more changes nothing; evidence that arrives twice claims nothing more. */
  #againChangesNothing({ after, at, command, decision }: Step): void {
    if (after === undefined || decision.events === undefined) return;
    const again = this.#machine.decide(after, command, at);
    const mayRepeat: readonly Command['type'][] = ['record_evidence', 'state_finding', 'reconsider'];
    if (mayRepeat.includes(command.type)) {
      let state = after;
      for (const event of again.events ?? []) state = this.#machine.evolve(state, event);
      must(
        state.effect === after.effect,
        'I15',
        `${command.type} twice made ${after.effect} ${state.effect}`,
      );
      return;
    }
    must(again.refusal !== undefined, 'I15', `${command.type} took place twice`);
    if (command.type === 'decide_review') {
      must(
        again.refusal === 'already_decided',
        'I15',
        `deciding twice was refused as ${again.refusal ?? ''}`,
      );
    }
  }
}

function provesNotLeft(piece: Evidence): boolean {
  return piece.kind === 'transport' && piece.left === 'no';
}

function isSighting(piece: Evidence): boolean {
  if (piece.kind === 'lookup') return piece.found === 'present';
  return (piece.kind === 'acknowledgement' || piece.kind === 'notice') && piece.means === 'accepted';
}

function isRefusal(piece: Evidence): boolean {
  if (piece.kind === 'notice') return piece.means === 'rejected';
  return (
    piece.kind === 'acknowledgement' && (piece.means === 'rejected' || piece.means === 'rejected_temporary')
  );
}

/** The property: no history breaks an invariant, and no command throws in any state that can be reached. */
export function keepsInvariants(machine: Machine): (planned: Plan) => void {
  return (planned) => carryOut(planned, machine, new Watch(machine).see);
}
