// Random histories of one operation under the watch of the invariants, and the proof that the watch sees.
// I12 is about several operations and is asserted where there are several, not here.

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { SendingConditions } from '../../src/core/authority.ts';
import type { Command, Decision } from '../../src/core/decide.ts';
import type { Operation, OperationEvent } from '../../src/core/operation.ts';
import { ABSENT, evidenceOf, factsWithLookup, HOUR_MS, NOT_LEFT } from './fixtures.ts';
import { keepsInvariants, MACHINE, type Machine, plan } from './random-histories.ts';

/** `INVARIANT_RUNS=300000` looks longer; the rarest bug that this has found took 63,000 histories. */
const RUNS = Number(process.env['INVARIANT_RUNS'] ?? 6_000);
const TIMEOUT_MS = 120_000 + RUNS;

describe('for any history of commands, conditions, evidence and time', () => {
  test('D4, I3–I7 and I13–I15 hold after every step, and no command throws', { timeout: TIMEOUT_MS }, () => {
    fc.assert(fc.property(plan, keepsInvariants(MACHINE)), { numRuns: RUNS });
  });
});

// ── Planted faults ─────────────────────────────────────────────────────────────────────────────────────────

/** A machine whose states are changed after each event. */
function evolving(
  change: (next: Operation, event: OperationEvent) => Partial<Operation> | undefined,
): Machine {
  return {
    ...MACHINE,
    evolve: (operation, event) => {
      const next = MACHINE.evolve(operation, event);
      return { ...next, ...change(next, event) };
    },
  };
}

/** A machine that is given another command, or another state to decide it on. */
function hearing(
  change: (command: Command, operation: Operation | undefined, at: number) => Command | [Operation, Command],
): Machine {
  return {
    ...MACHINE,
    decide: (operation, command, at) => {
      const heard = change(command, operation, at);
      return Array.isArray(heard) ? MACHINE.decide(...heard, at) : MACHINE.decide(operation, heard, at);
    },
  };
}

/** A machine that is told other conditions than there are, before each attempt. */
function sendingUnder(
  change: (operation: Operation | undefined, conditions: SendingConditions) => Partial<SendingConditions>,
): Machine {
  return hearing((command, operation) =>
    command.type === 'start_attempt'
      ? { ...command, conditions: { ...command.conditions, ...change(operation, command.conditions) } }
      : command,
  );
}

/** A machine that decides otherwise; `undefined` leaves a decision as it is. */
function deciding(
  change: (
    decision: Decision,
    command: Command,
    operation: Operation | undefined,
    at: number,
  ) => Decision | undefined,
): Machine {
  return {
    ...MACHINE,
    decide: (operation, command, at) => {
      const decision = MACHINE.decide(operation, command, at);
      return change(decision, command, operation, at) ?? decision;
    },
  };
}

/** The property must find each, by the law that it breaks. */
const FAULTS: readonly (readonly [string, string, Machine])[] = [
  [
    'time alone makes the unknown absent',
    'I4',
    evolving((next, event) =>
      next.effect === 'unknown' && event.type !== 'evidence_recorded' && event.at - next.since > HOUR_MS
        ? { effect: 'absent' }
        : undefined,
    ),
  ],
  [
    'a statement is taken for evidence',
    'I4',
    evolving((_, event) =>
      event.type === 'stated' && event.stated.resolution === 'stated_happened'
        ? { effect: 'accepted' }
        : undefined,
    ),
  ],
  [
    'a lost claim is taken for a proof that nothing left',
    'I4',
    deciding((decision, _command, _operation, at) => {
      const [fenced] = decision.events ?? [];
      if (fenced?.type !== 'attempt_fenced') return undefined;
      const evidence = evidenceOf(NOT_LEFT, fenced.attempt, at);
      return { events: [fenced, { type: 'evidence_recorded', at, evidence, closes: fenced.attempt }] };
    }),
  ],
  [
    'evidence is made up when a look-up gives none',
    'I7',
    hearing((command) =>
      command.type === 'record_evidence' &&
      command.evidence.kind === 'lookup' &&
      command.evidence.found === 'not_found'
        ? { ...command, evidence: { ...command.evidence, ...ABSENT } }
        : command,
    ),
  ],
  [
    'an acknowledgement is claimed for every answer',
    'I7',
    evolving((next) => (next.effect === 'error_reported' ? { effect: 'accepted' } : undefined)),
  ],
  [
    'what a person must be asked is allowed by a rule',
    'I3',
    deciding((decision, command, _operation, at) => {
      const isAsked = decision.events?.[1]?.type === 'review_opened';
      if (command.type !== 'propose' || !isAsked) return undefined;
      return {
        events: [
          { type: 'proposed', at, proposal: command.proposal },
          { type: 'allowed', at, rule: 'any' },
        ],
      };
    }),
  ],
  [
    'a rule that became stricter is not looked at again',
    'I3',
    sendingUnder((_, { facts }) => (facts === undefined ? {} : { facts: factsWithLookup() })),
  ],
  [
    'an expired approval is used',
    'I3',
    sendingUnder((operation) => (operation?.review === undefined ? {} : { at: operation.review.openedAt })),
  ],
  [
    'the digest is not compared before sending',
    'I3',
    sendingUnder((operation) => (operation === undefined ? {} : { digest: operation.digest })),
  ],
  [
    'an order needs no statement',
    'I5',
    hearing((command, operation, at) => {
      if (command.type !== 'order_again' || operation === undefined) return command;
      const stated = { resolution: 'stated_not_happened', by: 'nobody', at } as const;
      return [{ ...operation, resolution: { ...stated, attempts: operation.attempts.length } }, command];
    }),
  ],
  [
    'a statement about the first try serves for the second',
    'I5',
    hearing((command, operation) => {
      if (command.type !== 'order_again' || operation?.resolution === undefined) return command;
      const resolution = { ...operation.resolution, attempts: operation.attempts.length };
      return [{ ...operation, resolution }, command];
    }),
  ],
  [
    'every absence is enough to send again',
    'I5',
    hearing((command) =>
      command.type === 'record_evidence' ? { ...command, facts: factsWithLookup() } : command,
    ),
  ],
  [
    'every refusal is taken to be for now',
    'I5',
    deciding((decision, command, operation, at) => {
      if (command.type !== 'record_evidence' || operation?.stage !== 'sending') return undefined;
      const { evidence } = command;
      const last = decision.events?.at(-1);
      if (evidence.kind !== 'acknowledgement' || evidence.means !== 'rejected' || last?.type !== 'closed')
        return undefined;
      const again: OperationEvent = { type: 'sending_again', at, why: { code: 'waits_until', until: at } };
      return { events: [...(decision.events ?? []).slice(0, -1), again] };
    }),
  ],
  [
    'a fenced attempt that comes back is the holder again',
    'I6',
    evolving((next, event) =>
      event.type === 'evidence_recorded' && event.evidence.observer === 'worker-1'
        ? {
            attempts: next.attempts.map((attempt) =>
              attempt.id === event.closes ? { ...attempt, fenced: false } : attempt,
            ),
          }
        : undefined,
    ),
  ],
  [
    'a new round takes other bytes',
    'I13',
    evolving((next, event) =>
      event.type === 'reopened' ? { payload: { ...next.payload, sha256: 'other' } } : undefined,
    ),
  ],
  [
    'attempts are not counted',
    'I14',
    hearing((command) => {
      if (command.type === 'start_attempt') {
        const { conditions } = command;
        const bounds = { ...conditions.bounds, attemptsMax: 99 };
        return { ...command, conditions: { ...conditions, bounds } };
      }
      return command.type === 'record_evidence'
        ? { ...command, bounds: { ...command.bounds, attemptsMax: 99 } }
        : command;
    }),
  ],
  [
    'time is not counted',
    'I14',
    hearing((command) => {
      if (command.type !== 'start_attempt') return command;
      const { conditions } = command;
      const bounds = { ...conditions.bounds, elapsedMaxMs: Number.POSITIVE_INFINITY };
      return { ...command, conditions: { ...conditions, bounds } };
    }),
  ],
  [
    'any digest decides a review',
    'I15',
    hearing((command, operation) =>
      command.type === 'decide_review' ? { ...command, digest: operation?.review?.digest ?? '' } : command,
    ),
  ],
  [
    'an answer is delivered again and again',
    'I15',
    deciding((_, command, operation, at) =>
      command.type === 'deliver' && operation?.stage === 'closed'
        ? { events: [{ type: 'delivered', at }] }
        : undefined,
    ),
  ],
  [
    'a cancel is noted and forgotten',
    'D8',
    deciding((decision, command) => {
      const [requested] = decision.events ?? [];
      return command.type === 'cancel_by_caller' && requested !== undefined
        ? { events: [requested] }
        : undefined;
    }),
  ],
  ['a locked target is written to', 'D8', sendingUnder(() => ({ lockedBy: undefined }))],
  ['an unsettled predecessor is overtaken', 'D6', sendingUnder(() => ({ unsettledPredecessor: undefined }))],
  [
    'the ledger gives up on what is unknown by itself',
    'D4',
    deciding((decision, command, operation, at) =>
      command.type === 'record_evidence' &&
      operation?.stage === 'sending' &&
      decision.events?.at(-1)?.type === 'parked'
        ? {
            events: [
              ...decision.events.slice(0, -1),
              { type: 'closed', at, why: { code: 'given_up', by: '' } },
            ],
          }
        : undefined,
    ),
  ],
];

describe('the property finds a planted fault', () => {
  for (const [fault, law, machine] of FAULTS) {
    test(`${fault} (${law})`, { timeout: TIMEOUT_MS }, () => {
      const found = fc.check(fc.property(plan, keepsInvariants(machine)), {
        numRuns: 20_000,
        seed: 1,
        endOnFailure: true,
      });
      expect(found.failed).toBe(true);
      expect(String(found.errorInstance)).toContain(`Violation: ${law}:`);
    });
  }
});
