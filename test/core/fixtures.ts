// What the tests of the core are built from: facts, evidence, and one operation that is moved by commands.

import type { Attempt } from '../../src/core/attempt.ts';
import { type SendingConditions } from '../../src/core/authority.ts';
import type { ContractOperation, Lookup, ReadBack, ToolFacts } from '../../src/core/contract.ts';
import { type Command, type Decision, decide } from '../../src/core/decide.ts';
import type { Evidence, Finding } from '../../src/core/evidence.ts';
import type { Effect, Resolution, Stage } from '../../src/core/lifecycle.ts';
import {
  evolveAll,
  type Operation,
  type OperationEvent,
  type Proposal,
  type ReviewQuestion,
} from '../../src/core/operation.ts';
import type { Verdict } from '../../src/core/policy.ts';
import { type Bounds, DEFAULT_BOUNDS } from '../../src/core/repeatability.ts';

export const SECOND_MS = 1_000;
export const MINUTE_MS = 60 * SECOND_MS;
export const HOUR_MS = 60 * MINUTE_MS;

/** The instant at which every history of these tests begins: 14:00:00 UTC. */
export const T0 = Date.UTC(2026, 2, 6, 14, 0, 0);

// ── D4, copied from the domain's table and never from the code ─────────────────────────────────────────────

/** `order`: by a person's order after "it did not happen". `person`: closed by a named person. */
export type Allowance = 'yes' | 'no' | 'order' | 'person';

const D4_COLUMNS = [
  'not_sent',
  'unknown',
  'error_reported',
  'accepted',
  'verified',
  'rejected',
  'absent',
  'diverged',
] as const satisfies readonly Effect[];

const D4_ROWS: { readonly [stage in Stage]: readonly Allowance[] } = {
  //                  not_sent unknown  error_rep accepted verified rejected absent  diverged
  proposed: ['yes', 'order', 'no', 'no', 'no', 'yes', 'yes', 'no'],
  awaiting_approval: ['yes', 'order', 'no', 'no', 'no', 'yes', 'yes', 'no'],
  held: ['yes', 'no', 'no', 'no', 'no', 'yes', 'yes', 'no'],
  ready: ['yes', 'order', 'no', 'no', 'no', 'yes', 'yes', 'no'],
  sending: ['no', 'yes', 'no', 'no', 'no', 'no', 'no', 'no'],
  checking: ['no', 'yes', 'no', 'yes', 'no', 'no', 'no', 'no'],
  parked: ['yes', 'yes', 'no', 'no', 'no', 'yes', 'yes', 'yes'],
  closed: ['yes', 'person', 'yes', 'yes', 'yes', 'yes', 'yes', 'person'],
};

/** Whether D4 lets this stage show this effect. */
export function allowance(stage: Stage, effect: Effect): Allowance {
  return D4_ROWS[stage][D4_COLUMNS.indexOf(effect)] ?? 'no';
}

// ── Facts ──────────────────────────────────────────────────────────────────────────────────────────────────

export function lookupOf(overrides: Partial<Lookup> = {}): Lookup {
  return {
    by: 'client_reference',
    tool: { name: 'find_task', arguments: {} },
    consistency: { kind: 'read_after_write' },
    proves: { present: 'applied', absent: 'not_applied' },
    evidence: { grade: 'documented' },
    ...overrides,
  };
}

export const READ_BACK: ReadBack = {
  tool: { name: 'get_task', arguments: {} },
  matches: [],
  evidence: { grade: 'documented' },
};

/** A contract that states nothing about look-ups unless told; bytes land within 30 s of leaving. */
export function contractOf(overrides: Partial<ContractOperation> = {}): ContractOperation {
  return {
    id: 'create_task',
    match: ['create_task'],
    effect: 'create',
    completion: { kind: 'synchronous' },
    guards: [],
    lookups: [],
    outcomes: [],
    reversals: [],
    limits: { late_arrival: 'PT30S' },
    ...overrides,
  };
}

export function factsOf(overrides: Partial<ToolFacts> = {}): ToolFacts {
  return {
    destination: 'tasks-eu',
    tool: 'create_task',
    class: 'ordinary',
    classSource: 'owner',
    repeat: 'unique',
    checksArguments: false,
    digest: 'facts-1',
    ...overrides,
  };
}

/** Facts whose contract has one look-up; the strongest kind unless told. */
export function factsWithLookup(lookup: Partial<Lookup> = {}, overrides: Partial<ToolFacts> = {}): ToolFacts {
  return factsOf({ operation: contractOf({ lookups: [lookupOf(lookup)] }), ...overrides });
}

export function proposalOf(overrides: Partial<Proposal> = {}): Proposal {
  return {
    id: 'op_9K3',
    tenant: 'acme',
    run: { id: 'run-1', weak: false },
    requester: 'agent:planner',
    destination: 'tasks-eu',
    tool: 'create_task',
    toolClass: 'ordinary',
    repeat: 'unique',
    factsDigest: 'facts-1',
    intentKey: '00'.repeat(20),
    crossRunHash: '00'.repeat(16),
    sequence: 0,
    argumentsDigest: 'arguments-1',
    payload: { document: 'sha256:payload', sha256: 'payload-1', bytes: 42 },
    digest: 'digest-1',
    replays: [],
    ...overrides,
  };
}

// ── Evidence ───────────────────────────────────────────────────────────────────────────────────────────────

/** An attempt as `effectOf` sees it; closed unless told. */
export function attemptOf(number: number, overrides: Partial<Attempt> = {}): Attempt {
  const startedAt = T0 + number * MINUTE_MS;
  return {
    id: `att_${number}`,
    number,
    worker: 'worker-1',
    epoch: number,
    startedAt,
    sendBy: startedAt + DEFAULT_BOUNDS.sendByMs,
    open: false,
    ...overrides,
  };
}

/** A finding about an attempt, as a piece of evidence. */
export function evidenceOf(finding: Finding, attempt?: string, at = T0): Evidence {
  return {
    ...finding,
    ...(attempt === undefined ? {} : { attempt }),
    observer: 'worker-1',
    observedAt: at,
    recordedAt: at,
  };
}

export const ACCEPTED: Finding = { kind: 'acknowledgement', means: 'accepted' };
export const IN_PROGRESS: Finding = { kind: 'acknowledgement', means: 'in_progress' };
export const REJECTED: Finding = { kind: 'acknowledgement', means: 'rejected' };
export const REJECTED_FOR_NOW: Finding = { kind: 'acknowledgement', means: 'rejected_temporary' };
export const ERROR: Finding = { kind: 'acknowledgement', means: 'error' };
export const NOT_LEFT: Finding = { kind: 'transport', left: 'no', what: 'connection_refused' };
export const LOST: Finding = { kind: 'transport', left: 'maybe', what: 'connection_lost' };
export const PRESENT: Finding = { kind: 'lookup', found: 'present' };
export const ABSENT: Finding = { kind: 'lookup', found: 'absent' };
export const NOT_FOUND: Finding = { kind: 'lookup', found: 'not_found' };
export const INCONCLUSIVE: Finding = { kind: 'lookup', found: 'inconclusive' };
export const TWO_FOUND: Finding = { kind: 'lookup', found: 'several', count: 2 };
export const MATCHES: Finding = { kind: 'readback', matches: true };
export const NOT_READ: Finding = { kind: 'readback', matches: 'inconclusive' };
export const NOBODY_WROTE: Finding = { kind: 'readback', matches: false, otherwise: 'nobody_wrote' };
export const LATER_WRITER: Finding = { kind: 'readback', matches: false, otherwise: 'later_writer' };
export const CANNOT_TELL: Finding = { kind: 'readback', matches: false, otherwise: 'cannot_tell' };
export const NOTICE_ACCEPTED: Finding = { kind: 'notice', means: 'accepted' };
export const NOTICE_REJECTED: Finding = { kind: 'notice', means: 'rejected' };

export const FINDINGS: readonly Finding[] = [
  ACCEPTED,
  IN_PROGRESS,
  REJECTED,
  REJECTED_FOR_NOW,
  ERROR,
  NOT_LEFT,
  LOST,
  PRESENT,
  ABSENT,
  NOT_FOUND,
  INCONCLUSIVE,
  TWO_FOUND,
  MATCHES,
  NOT_READ,
  NOBODY_WROTE,
  LATER_WRITER,
  CANNOT_TELL,
  NOTICE_ACCEPTED,
  NOTICE_REJECTED,
];

// ── One operation, moved by commands ───────────────────────────────────────────────────────────────────────

export interface SetupOptions {
  readonly facts?: ToolFacts;
  readonly bounds?: Partial<Bounds>;
  readonly proposal?: Partial<Proposal>;
  readonly question?: ReviewQuestion;
  readonly verdict?: Verdict;
}

const REVIEW_LIFETIME_MS = 8 * HOUR_MS;

/** A proposed operation, its clock, and the commands by which sentences of the tests move it. */
export function setup(options: SetupOptions = {}) {
  const bounds: Bounds = { ...DEFAULT_BOUNDS, ...options.bounds };
  let facts = options.facts ?? factsOf();
  let now = T0;
  let reviews = 0;
  let operation: Operation | undefined;
  const history: OperationEvent[] = [];

  function run(command: Command): Decision {
    const decision = decide(operation, command, now);
    if (decision.events !== undefined) {
      operation = evolveAll(operation, decision.events);
      history.push(...decision.events);
    }
    return decision;
  }
  const current = (): Operation => {
    if (operation === undefined) throw new Error('nothing was proposed');
    return operation;
  };
  const newReview = () => {
    reviews += 1;
    return { id: `rev_${reviews}`, expiresAt: now + REVIEW_LIFETIME_MS };
  };

  const bundle = {
    history,
    get operation(): Operation {
      return current();
    },
    get now(): number {
      return now;
    },
    /** Stage and effect, as one word each. */
    get state(): string {
      return `${current().stage} ${current().effect}`;
    },
    get eventTypes(): readonly string[] {
      return history.map((event) => event.type);
    },
    run,
    pass(ms: number): void {
      now += ms;
    },
    changeFacts(overrides: Partial<ToolFacts>): void {
      facts = { ...facts, ...overrides };
    },
    start(conditions: Partial<SendingConditions> = {}): Decision {
      const number = current().attempts.length + 1;
      return run({
        type: 'start_attempt',
        attempt: {
          id: `att_${number}`,
          worker: 'worker-1',
          startedAt: now,
          sendBy: now + bounds.sendByMs,
          ...(conditions.scope === undefined ? {} : { scope: conditions.scope }),
        },
        newReview: newReview(),
        conditions: {
          at: now,
          facts,
          bounds,
          digest: current().digest,
          connected: true,
          connectionDetail: '',
          lockedBy: undefined,
          unsettledPredecessor: undefined,
          ...conditions,
        },
      });
    },
    /** Evidence about the newest attempt unless told; never closes an attempt. */
    learn(finding: Finding, attempt = current().attempts.at(-1)?.id): Decision {
      return run({ type: 'record_evidence', evidence: evidenceOf(finding, attempt, now), facts, bounds });
    },
    /** What the holder of the newest attempt reports when it has come back. */
    comesBack(finding: Finding, attempt = current().attempts.at(-1)?.id): Decision {
      return run({
        type: 'record_evidence',
        evidence: evidenceOf(finding, attempt, now),
        ...(attempt === undefined ? {} : { closes: attempt }),
        facts,
        bounds,
      });
    },
    fence(attempt = current().attempts.at(-1)?.id ?? ''): Decision {
      return run({ type: 'fence_attempt', attempt, by: 'worker-2', facts, bounds });
    },
    decides(
      kind: 'approved' | 'denied',
      { review = current().review?.id ?? '', digest = current().digest, by = 'Mara' } = {},
    ): Decision {
      return run({
        type: 'decide_review',
        review,
        digest,
        decision: { kind, by, at: now, strength: 'passphrase' },
      });
    },
    revokes: (digest = current().digest): Decision =>
      run({
        type: 'revoke_approval',
        digest,
        revocation: { by: 'Luis', at: now, strength: 'same_account' },
        newReview: newReview(),
      }),
    lapse: () => run({ type: 'lapse_review' }),
    reopen: (by = 'caller') => run({ type: 'reopen', by, facts, newReview: newReview() }),
    states: (resolution: Resolution, by = 'Mara') =>
      run({ type: 'state_finding', stated: { resolution, by, at: now } }),
    orderAgain: (by = 'Mara') => run({ type: 'order_again', by, newReview: newReview() }),
    giveUp: (by = 'Mara') => run({ type: 'give_up', by }),
    cancel: () => run({ type: 'cancel_by_caller' }),
    supersede: (by = 'op_9K6') => run({ type: 'supersede', by }),
    deliver: () => run({ type: 'deliver' }),
  };

  run({
    type: 'propose',
    proposal: proposalOf({ toolClass: facts.class, repeat: facts.repeat, ...options.proposal }),
    facts,
    newReview: newReview(),
    ...(options.question === undefined ? {} : { question: options.question }),
    verdict: options.verdict,
  });
  return bundle;
}

export type Setup = ReturnType<typeof setup>;

/** An operation whose first attempt left and whose answer was lost. */
export function setupLost(options: SetupOptions = {}): Setup {
  const bundle = setup(options);
  bundle.start();
  bundle.comesBack(LOST);
  return bundle;
}
