// What the one algorithm answers for a write, in every situation that can follow it: asked of the core itself, with an
// operation that was moved there by its own commands. Whatever is said of a contract rests on these answers.

import { askableNow } from '../core/askable.ts';
import {
  type Contract,
  type ContractOperation,
  durationMs,
  isTrusted,
  type OutcomeMeaning,
  type ToolFacts,
} from '../core/contract.ts';
import { decide } from '../core/decide.ts';
import type { Finding as Known } from '../core/evidence.ts';
import { evolveAll, type Operation } from '../core/operation.ts';
import {
  absenceCountsFrom,
  DEFAULT_BOUNDS,
  isAbsenceProof,
  type NextStep,
  nextStep,
  usableLookups,
} from '../core/repeatability.ts';
import { compileToolFacts } from './compile.ts';

export type SituationId =
  | 'not_sent'
  | 'refused_for_now'
  | 'refused'
  | 'error'
  | 'lost'
  | 'found'
  | 'inconclusive'
  | 'not_found_early'
  | 'not_found_late'
  | 'two_found'
  | 'window_over'
  | 'overdue';

/** In the order in which they are told. */
export const SITUATIONS: { readonly [id in SituationId]: string } = {
  not_sent: 'not sent',
  refused_for_now: 'refused for now',
  refused: 'refused',
  error: 'error',
  lost: 'lost',
  found: 'found',
  inconclusive: 'cannot tell',
  not_found_early: 'not found, early',
  not_found_late: 'not found, late',
  two_found: 'two found',
  window_over: 'window over',
  overdue: 'overdue',
};

export interface Answer {
  readonly situation: SituationId;
  /**
   * Absent where the situation cannot arise: no trusted outcome names such a reply, nothing can be looked up by us, or no
   * window is measured by the clock.
   */
  readonly step?: NextStep;
  /** What the effect is then. */
  readonly effect?: Operation['effect'];
  /** From the first sending to the situation. */
  readonly afterMs?: number;
}

const SECOND_MS = 1_000;
const DAY_MS = 24 * 3_600_000;
/** A reply that has not come by then is called lost, in these situations. */
const LOST_AFTER_MS = 30 * SECOND_MS;

/** The answers for one write of a contract, in the order of `SITUATIONS`. */
export function answersFor(contract: Contract, operation: ContractOperation): readonly Answer[] {
  const facts = factsOf(contract, operation);
  return (Object.keys(SITUATIONS) as SituationId[]).map((situation) => answer(situation, facts, contract));
}

/** The facts as a gateway would have them whose owner names this write for a tool. */
export function factsOf(
  contract: Contract,
  operation: ContractOperation,
  tool: string = operation.id,
): ToolFacts {
  return compileToolFacts({
    destination: contract.id,
    tool,
    arguments: {},
    contracts: [contract],
    config: {
      destination: contract.id,
      tools: { [tool]: { class: 'ordinary', contract_operation: `${contract.id}/${operation.id}` } },
    },
    hints: undefined,
    ownerRules: [],
    toolDigest: '',
  });
}

function answer(situation: SituationId, facts: ToolFacts, contract: Contract): Answer {
  const sentAt = Date.parse(`${contract.ownership.reviewed_on}T12:00:00Z`);
  const history = new History(facts, sentAt);
  const [lookup] = usableLookups(askableNow(facts, history.operation).operation);
  switch (situation) {
    case 'not_sent':
      return history.answer(situation, 0, { kind: 'transport', left: 'no', what: 'connection_refused' });
    case 'refused_for_now':
      if (!isNamed(facts, 'not_applied_temporary')) return { situation };
      return history.answer(situation, SECOND_MS, { kind: 'acknowledgement', means: 'rejected_temporary' });
    case 'refused':
      if (!isNamed(facts, 'not_applied')) return { situation };
      return history.answer(situation, SECOND_MS, { kind: 'acknowledgement', means: 'rejected' });
    case 'error':
      return history.answer(situation, SECOND_MS, { kind: 'acknowledgement', means: 'error' });
    case 'lost':
      return history.answer(situation, LOST_AFTER_MS, LOST);
    case 'overdue': {
      // As it would be read a day after the review was due.
      const dueAt = Date.parse(`${contract.ownership.review_by}T12:00:00Z`);
      return new History(facts, dueAt + DAY_MS).answer(situation, LOST_AFTER_MS, LOST);
    }
    case 'window_over': {
      const windowMs = windowOf(facts);
      // Nobody could do anything before: the time in which we look begins only now.
      return windowMs === undefined ? { situation } : history.answer(situation, windowMs, LOST);
    }
    default:
      if (lookup === undefined) return { situation };
  }
  history.learn(LOST_AFTER_MS, LOST);
  const countsFromMs = absenceCountsFrom(history.operation, lookup, facts) - sentAt;
  switch (situation) {
    case 'found':
      return history.answer(situation, LOST_AFTER_MS + SECOND_MS, { kind: 'lookup', found: 'present' });
    case 'two_found':
      return history.answer(situation, LOST_AFTER_MS + SECOND_MS, {
        kind: 'lookup',
        found: 'several',
        count: 2,
      });
    case 'inconclusive':
      return history.answer(situation, LOST_AFTER_MS + SECOND_MS, { kind: 'lookup', found: 'inconclusive' });
    case 'not_found_early':
      return history.answer(situation, Math.min(LOST_AFTER_MS + SECOND_MS, countsFromMs - SECOND_MS), {
        kind: 'lookup',
        found: 'not_found',
      });
    case 'not_found_late': {
      const afterMs = countsFromMs + SECOND_MS;
      const isProof = isAbsenceProof(history.operation, lookup, facts, sentAt + afterMs);
      return history.answer(situation, afterMs, { kind: 'lookup', found: isProof ? 'absent' : 'not_found' });
    }
  }
}

/** Whether a reply of this meaning can be recognised, on evidence that counts. */
function isNamed({ operation }: ToolFacts, means: OutcomeMeaning): boolean {
  return (operation?.outcomes ?? []).some(
    (rule) => rule.means === means && rule.evidence !== undefined && isTrusted(rule.evidence),
  );
}

const LOST: Known = { kind: 'transport', left: 'maybe', what: 'reply_timeout' };

/** The longest time for which a guard of the operation promises to know its value. */
function windowOf({ operation }: ToolFacts): number | undefined {
  const windows = (operation?.guards ?? []).flatMap(({ window }) =>
    window.kind === 'duration' ? (durationMs(window.at_least) ?? []) : [],
  );
  return windows.length === 0 ? undefined : Math.max(...windows);
}

/** One operation that was sent once, and what became known of it. */
class History {
  operation: Operation;
  readonly #facts: ToolFacts;
  readonly #sentAt: number;

  constructor(facts: ToolFacts, sentAt: number) {
    this.#facts = facts;
    this.#sentAt = sentAt;
    this.operation = sentOnce(facts, sentAt);
  }

  learn(afterMs: number, known: Known): void {
    const at = this.#sentAt + afterMs;
    const attempt = this.operation.attempts[0];
    const decision = decide(
      this.operation,
      {
        type: 'record_evidence',
        evidence: {
          ...known,
          observer: 'check',
          observedAt: at,
          recordedAt: at,
          ...(attempt === undefined ? {} : { attempt: attempt.id }),
        },
        ...(attempt?.open === true ? { closes: attempt.id } : {}),
        facts: this.#facts,
        bounds: DEFAULT_BOUNDS,
      },
      at,
    );
    this.operation = evolveAll(this.operation, decision.events ?? []) ?? this.operation;
  }

  answer(situation: SituationId, afterMs: number, known: Known): Answer {
    this.learn(afterMs, known);
    const facts = askableNow(this.#facts, this.operation);
    const step = nextStep(this.operation, facts, DEFAULT_BOUNDS, this.#sentAt + afterMs);
    return { situation, step, effect: this.operation.effect, afterMs };
  }
}

const DAY_LONG_REVIEW = { id: 'rev_check', expiresAt: Number.MAX_SAFE_INTEGER };

function sentOnce(facts: ToolFacts, at: number): Operation {
  let operation: Operation | undefined;
  const run = (command: Parameters<typeof decide>[1]): void => {
    const decision = decide(operation, command, at);
    if (decision.events === undefined) throw new Error(`Assertion: ${command.type} is refused here.`);
    operation = evolveAll(operation, decision.events);
  };
  run({ type: 'propose', proposal: proposalOf(facts), facts, newReview: DAY_LONG_REVIEW });
  if (operation?.stage === 'awaiting_approval') {
    run({
      type: 'decide_review',
      review: DAY_LONG_REVIEW.id,
      digest: operation.digest,
      decision: { kind: 'approved', by: 'check', at, strength: 'passphrase' },
    });
  }
  run({
    type: 'start_attempt',
    attempt: { id: 'att_check', worker: 'check', startedAt: at, sendBy: at + DEFAULT_BOUNDS.sendByMs },
    newReview: DAY_LONG_REVIEW,
    conditions: {
      at,
      facts,
      bounds: DEFAULT_BOUNDS,
      digest: 'digest',
      connected: true,
      connectionDetail: '',
      lockedBy: undefined,
      unsettledPredecessor: undefined,
    },
  });
  if (operation === undefined) throw new Error('Assertion: an operation was proposed.');
  return operation;
}

function proposalOf({ class: toolClass, destination, digest, repeat, tool }: ToolFacts) {
  return {
    id: 'op_check',
    tenant: 'check',
    run: { id: 'check', weak: false },
    requester: 'check',
    destination,
    tool,
    toolClass,
    repeat,
    factsDigest: digest,
    intentKey: '00'.repeat(20),
    crossRunHash: '00'.repeat(16),
    sequence: 0,
    argumentsDigest: 'arguments',
    payload: { document: 'sha256:payload' as const, sha256: 'payload', bytes: 0 },
    digest: 'digest',
    replays: [],
  };
}
