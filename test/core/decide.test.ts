import { describe, expect, test } from 'vitest';
import type { ToolFacts } from '../../src/core/contract.ts';
import { type Decision, decide, decided } from '../../src/core/decide.ts';
import type { OperationEvent } from '../../src/core/operation.ts';
import { DEFAULT_BOUNDS } from '../../src/core/repeatability.ts';
import {
  ABSENT,
  ACCEPTED,
  CANNOT_TELL,
  contractOf,
  ERROR,
  evidenceOf,
  factsOf,
  factsWithLookup,
  HOUR_MS,
  IN_PROGRESS,
  INCONCLUSIVE,
  LOST,
  lookupOf,
  MATCHES,
  MINUTE_MS,
  NOT_FOUND,
  NOT_LEFT,
  NOT_READ,
  NOTICE_REJECTED,
  PRESENT,
  proposalOf,
  READ_BACK,
  REJECTED,
  REJECTED_FOR_NOW,
  SECOND_MS,
  setup,
  setupLost,
  T0,
} from './fixtures.ts';

const IRREVERSIBLE = factsOf({ class: 'irreversible' });
const UNCLASSIFIED = factsOf({ class: 'unclassified' });
const READ_BACK_FACTS = factsOf({ operation: contractOf({ lookups: [lookupOf()], readback: READ_BACK }) });

const types = (decision: Decision): readonly string[] | undefined =>
  decision.events?.map((event: OperationEvent) => event.type);

describe('propose', () => {
  test('ordinary and interactive work is allowed by a rule that is named (I3)', () => {
    for (const kind of ['ordinary', 'interactive'] as const) {
      const proposed = setup({ facts: factsOf({ class: kind, classSource: 'binding' }) });
      expect(proposed.state).toBe('ready not_sent');
      expect(proposed.operation.rule).toBe(`guard/${kind} (binding)`);
    }
  });

  test('irreversible and unclassified work waits for a person, on exactly its digest', () => {
    for (const kind of ['irreversible', 'unclassified'] as const) {
      const proposed = setup({ facts: factsOf({ class: kind }) });
      expect(proposed.state).toBe('awaiting_approval not_sent');
      expect(proposed.operation.review).toMatchObject({ question: kind, digest: 'digest-1', openedAt: T0 });
      expect(proposed.operation.rule).toBeUndefined();
    }
  });

  test('a question of identity is asked of a person, whatever the class', () => {
    for (const kind of ['ordinary', 'interactive', 'irreversible', 'unclassified'] as const) {
      const proposed = setup({ facts: factsOf({ class: kind }), question: 'same_work' });
      expect(proposed.state).toBe('awaiting_approval not_sent');
      expect(proposed.operation.review?.question).toBe('same_work');
    }
  });

  test('an operation is proposed once', () => {
    const { operation } = setup();
    const command = {
      type: 'propose',
      proposal: proposalOf(),
      facts: factsOf(),
      newReview: { id: 'r', expiresAt: T0 },
    } as const;
    expect(decide(operation, command, T0)).toEqual({ refusal: 'not_at_this_stage' });
    const refusal = { type: 'refuse_arguments', proposal: proposalOf(), problem: 'sha256:problem' } as const;
    expect(decide(operation, refusal, T0)).toEqual({ refusal: 'not_at_this_stage' });
  });

  test('arguments that do not fit are recorded and closed as not sent', () => {
    const refusal = { type: 'refuse_arguments', proposal: proposalOf(), problem: 'sha256:problem' } as const;
    const decision = decide(undefined, refusal, T0);
    expect(decision.events).toMatchObject([
      { type: 'proposed' },
      { type: 'closed', why: { code: 'arguments', problem: 'sha256:problem' } },
    ]);
  });

  test('no other command begins a history', () => {
    expect(decide(undefined, { type: 'deliver' }, T0)).toEqual({ refusal: 'not_at_this_stage' });
    expect(decide(undefined, { type: 'give_up', by: 'Mara' }, T0)).toEqual({ refusal: 'not_at_this_stage' });
  });
});

describe('start_attempt', () => {
  test('claims with the next epoch and number, and the effect is unknown from then on', () => {
    const ready = setup();
    ready.start();
    expect(ready.state).toBe('sending unknown');
    expect(ready.operation.attempts).toMatchObject([{ number: 1, epoch: 1, open: true }]);
    expect(ready.operation.epoch).toBe(1);
  });

  test('is refused before an approval, and while another attempt is out', () => {
    expect(setup({ facts: IRREVERSIBLE }).start().refusal).toBe('not_at_this_stage');
    const sending = setup();
    sending.start();
    expect(sending.start().refusal).toBe('not_at_this_stage');
  });

  test('a wait is recorded once, with what it waits for', () => {
    const ready = setup();
    expect(types(ready.start({ lockedBy: 'op_9K1' }))).toEqual(['waiting']);
    expect(ready.operation.why).toEqual({ code: 'waits_for_operation', operation: 'op_9K1' });
    expect(ready.start({ lockedBy: 'op_9K1' }).refusal).toBe('nothing_to_do');
    expect(types(ready.start({ lockedBy: 'op_9K2' }))).toEqual(['waiting']);
    expect(ready.state).toBe('ready not_sent');
    ready.start();
    expect(ready.operation.why).toBeUndefined();
  });

  test('an expired approval is held, and a person is asked again over the present facts', () => {
    const waiting = setup({ facts: IRREVERSIBLE });
    waiting.decides('approved');
    waiting.pass(8 * HOUR_MS + 1);
    expect(types(waiting.start())).toEqual(['held', 'review_opened']);
    expect(waiting.state).toBe('awaiting_approval not_sent');
    expect(waiting.operation.review).toMatchObject({
      question: 'irreversible',
      because: { code: 'approval_expired' },
    });
    expect(waiting.operation.review?.decision).toBeUndefined();
  });

  test('a rule that became stricter is held, and asks what the new class asks', () => {
    for (const kind of ['irreversible', 'unclassified'] as const) {
      const ready = setup();
      ready.changeFacts({ class: kind });
      ready.start();
      expect(ready.state).toBe('awaiting_approval not_sent');
      expect(ready.operation.review).toMatchObject({ question: kind, because: { code: 'rule_stricter' } });
    }
  });

  test('a payload that is not what was decided on is parked, and nothing is sent (I3)', () => {
    const ready = setup();
    expect(types(ready.start({ digest: 'digest-altered' }))).toEqual(['parked']);
    expect(ready.state).toBe('parked not_sent');
  });

  test('what has used up its attempts or its time is parked (I14)', () => {
    const tried = setup({ bounds: { attemptsMax: 1 } });
    tried.start();
    tried.comesBack(NOT_LEFT);
    expect(tried.state).toBe('parked not_sent');
    const waited = setup();
    waited.pass(24 * HOUR_MS + 1);
    waited.start();
    expect(waited.state).toBe('parked not_sent');
    expect(waited.operation.why).toEqual({ code: 'bounds_used_up', attempts: 0 });
  });

  test('while the effect is unknown, a hold parks', () => {
    const ordered = setupLost();
    ordered.states('stated_not_happened');
    ordered.orderAgain();
    ordered.decides('approved');
    ordered.pass(8 * HOUR_MS + 1);
    expect(types(ordered.start())).toEqual(['parked']);
    expect(ordered.state).toBe('parked unknown');
  });
});

describe('record_evidence', () => {
  test('an acknowledgement closes, or reads back first where the contract can', () => {
    const plain = setup();
    plain.start();
    plain.comesBack(ACCEPTED);
    expect(plain.state).toBe('closed accepted');
    const readable = setup({ facts: READ_BACK_FACTS });
    readable.start();
    readable.comesBack(ACCEPTED);
    expect(readable.state).toBe('checking accepted');
    readable.learn(MATCHES);
    expect(readable.state).toBe('closed verified');
  });

  test('a read-back without an answer leaves it accepted', () => {
    for (const finding of [NOT_READ, CANNOT_TELL]) {
      const readable = setup({ facts: READ_BACK_FACTS });
      readable.start();
      readable.comesBack(ACCEPTED);
      readable.learn(finding);
      expect(readable.state).toBe('closed accepted');
    }
  });

  test('a lost answer is looked up where the contract can, else it is parked at once', () => {
    expect(setupLost({ facts: factsWithLookup() }).state).toBe('checking unknown');
    expect(setupLost().state).toBe('parked unknown');
  });

  test('a complete error closes, and is never sent again by us', () => {
    const erred = setup({ facts: factsWithLookup() });
    erred.start();
    erred.comesBack(ERROR);
    expect(erred.state).toBe('closed error_reported');
  });

  test('a definitive refusal closes; one for now is sent again after a pause', () => {
    const refused = setup();
    refused.start();
    refused.comesBack(REJECTED);
    expect(refused.state).toBe('closed rejected');
    const later = setup();
    later.start();
    later.comesBack(REJECTED_FOR_NOW);
    expect(later.state).toBe('ready rejected');
    expect(later.operation.why?.code).toBe('waits_until');
  });

  test('a refusal for now that turns out to be definitive is not sent again', () => {
    const refused = setup();
    refused.start();
    refused.comesBack(REJECTED_FOR_NOW);
    refused.learn(NOTICE_REJECTED);
    expect(refused.state).toBe('closed rejected');
  });

  test('a definitive refusal of the first try ends it, when the second was refused only for now', () => {
    const late = setup();
    late.start();
    late.comesBack(REJECTED_FOR_NOW);
    late.start();
    late.learn(NOTICE_REJECTED, 'att_1');
    expect(late.state).toBe('sending unknown');
    late.comesBack(REJECTED_FOR_NOW);
    expect(late.state).toBe('closed rejected');
  });

  test('a definitive refusal of the first try ends it, when the second was not there and the contract has gone', () => {
    const late = setupLost({ facts: factsWithLookup() });
    late.learn(ABSENT);
    late.start();
    late.comesBack(ABSENT);
    expect(late.state).toBe('ready absent');
    late.changeFacts(factsOf({ operation: contractOf() }));
    late.learn(REJECTED, 'att_1');
    expect(late.state).toBe('closed absent');
  });

  test('what waits to be sent again after an absence waits for a person, once the contract does not allow it', () => {
    const looked = setupLost({ facts: factsWithLookup() });
    looked.learn(ABSENT);
    expect(looked.state).toBe('ready absent');
    looked.changeFacts(factsOf({ operation: contractOf() }));
    looked.learn(INCONCLUSIVE);
    expect(looked.state).toBe('parked absent');
    expect(looked.operation.why).toEqual({ code: 'absent_needs_decision' });
  });

  test('late presence of the first try is an incident while the second is out', () => {
    const again = setupLost({ facts: factsWithLookup() });
    again.learn(ABSENT);
    again.start();
    again.learn(ACCEPTED, 'att_1');
    expect(again.state).toBe('parked diverged');
    again.comesBack(ACCEPTED);
    expect(again.state).toBe('parked diverged');
    expect(again.operation.attempts.every((attempt) => !attempt.open)).toBe(true);
  });

  test('a person who closed contradicting evidence is not asked again for each further piece', () => {
    const diverged = setupLost();
    diverged.learn({ kind: 'lookup', found: 'several', count: 2 });
    expect(types(diverged.learn(INCONCLUSIVE))).toEqual(['evidence_recorded']);
    diverged.giveUp();
    expect(diverged.state).toBe('closed diverged');
    expect(types(diverged.learn(INCONCLUSIVE))).toEqual(['evidence_recorded']);
    expect(diverged.state).toBe('closed diverged');
  });

  test('what the destination gave is kept beside it: the result, the record, and later its version', () => {
    const kept = setup({ facts: READ_BACK_FACTS });
    kept.start();
    const evidence = evidenceOf(ACCEPTED, 'att_1');
    const known = { type: 'record_evidence', facts: READ_BACK_FACTS, bounds: DEFAULT_BOUNDS } as const;
    kept.run({ ...known, evidence, closes: 'att_1', result: 'sha256:result', record: { id: '1042' } });
    expect(kept.operation).toMatchObject({ result: 'sha256:result', record: { id: '1042' } });
    kept.run({ ...known, evidence: evidenceOf(MATCHES, 'att_1'), record: { version: '7' } });
    expect(kept.operation).toMatchObject({ result: 'sha256:result', record: { id: '1042', version: '7' } });
    const plain = setup();
    plain.start();
    plain.comesBack(ACCEPTED);
    expect(plain.operation.result).toBeUndefined();
    expect(plain.operation.record).toBeUndefined();
  });

  test('what a parked operation turns out to be changes what the person is asked', () => {
    const absent = setupLost();
    absent.learn(ABSENT);
    expect(absent.state).toBe('parked absent');
    expect(absent.operation.why).toEqual({ code: 'absent_needs_decision' });
    const unsent = setupLost();
    unsent.learn(NOT_LEFT);
    expect(unsent.state).toBe('parked not_sent');
    expect(unsent.operation.why).toEqual({ code: 'bounds_used_up', attempts: 1 });
    const contradicted = setupLost();
    contradicted.learn(ABSENT);
    contradicted.learn(ACCEPTED);
    expect(contradicted.operation.why).toEqual({ code: 'contradiction' });
  });

  test('what is parked and then found, acknowledged, refused or answered with an error closes', () => {
    for (const finding of [PRESENT, ACCEPTED, REJECTED, ERROR]) {
      const parked = setupLost();
      parked.learn(finding);
      expect(parked.operation.stage).toBe('closed');
    }
  });

  test('about an operation that was never attempted there is none', () => {
    const ready = setup();
    for (const finding of [PRESENT, ACCEPTED, ABSENT]) {
      expect(ready.learn(finding).refusal).toBe('not_at_this_stage');
    }
    ready.start();
    ready.comesBack(ACCEPTED);
    expect(ready.state).toBe('closed accepted');
  });

  test('a caller that was told "unknown" is given the result that is known later (D6)', () => {
    const lost = setupLost();
    lost.giveUp();
    lost.deliver();
    expect(lost.operation.deliveredAt).toBeDefined();
    lost.learn(ACCEPTED);
    expect(lost.state).toBe('closed accepted');
    expect(lost.operation.deliveredAt).toBeUndefined();
  });

  test('a read-back after the answer was given does not make it undelivered', () => {
    const accepted = setup();
    accepted.start();
    accepted.comesBack(ACCEPTED);
    accepted.deliver();
    accepted.learn(MATCHES);
    expect(accepted.state).toBe('closed verified');
    expect(accepted.operation.deliveredAt).toBeDefined();
  });

  test('a destination that goes on working is asked at growing distances, and never repeated', () => {
    const slow = setup({ facts: factsWithLookup() });
    slow.start();
    slow.comesBack(IN_PROGRESS);
    const pauses: number[] = [];
    for (let asked = 0; asked < 7; asked += 1) {
      const { why } = slow.operation;
      if (why?.code !== 'destination_still_working') throw new Error(`unexpected ${why?.code ?? 'nothing'}`);
      pauses.push(why.nextAt - slow.now);
      slow.pass(Math.max(why.nextAt - slow.now, 1));
      slow.learn(INCONCLUSIVE);
    }
    // The last falls on the first instant at which "not found" means something.
    expect(pauses).toEqual([0, 500, 1_000, 2_000, 5_000, 10_000, 13_499]);
  });
});

describe('fence_attempt', () => {
  test('leaves the effect unknown, never free to run (I4)', () => {
    const gone = setup({ facts: factsWithLookup() });
    gone.start();
    expect(gone.fence().events?.map((event) => event.type)).toEqual([
      'attempt_fenced',
      'evidence_recorded',
      'checking',
    ]);
    expect(gone.state).toBe('checking unknown');
    expect(gone.operation.attempts[0]).toMatchObject({ open: false, fenced: true });
    expect(gone.operation.epoch).toBe(2);
  });

  test('without a look-up a person must look', () => {
    const gone = setup();
    gone.start();
    gone.fence();
    expect(gone.state).toBe('parked unknown');
  });

  test('of an attempt that has come back or never was, there is nothing to do', () => {
    const closed = setup();
    closed.start();
    closed.comesBack(ACCEPTED);
    expect(closed.fence().refusal).toBe('nothing_to_do');
    expect(closed.fence('att_9').refusal).toBe('nothing_to_do');
  });

  test('a fenced attempt that wakes up settles nothing as the holder; its reply is late evidence (I6)', () => {
    const gone = setup({ facts: factsWithLookup() });
    gone.start();
    gone.fence();
    gone.learn(ABSENT);
    gone.start();
    gone.comesBack(NOT_LEFT, 'att_1');
    expect(gone.state).toBe('sending unknown');
    expect(gone.operation.attempts).toMatchObject([{ fenced: true, open: false }, { open: true }]);
  });

  test('also after a person closed an incident that was still out', () => {
    const again = setupLost({ facts: factsWithLookup() });
    again.learn(ABSENT);
    again.start();
    again.learn(ACCEPTED, 'att_1');
    again.giveUp();
    expect(again.state).toBe('closed diverged');
    again.fence('att_2');
    expect(again.state).toBe('closed diverged');
    expect(again.operation.attempts[1]?.open).toBe(false);
  });

  test('what an earlier try is known to have done is told when the later one is lost', () => {
    const ordered = setupLost();
    ordered.states('stated_not_happened');
    ordered.orderAgain();
    ordered.decides('approved');
    ordered.start();
    ordered.learn(ACCEPTED, 'att_1');
    expect(ordered.state).toBe('sending unknown');
    ordered.fence();
    expect(ordered.state).toBe('closed accepted');
    expect(ordered.operation.resolution?.contradicted).toBe(true);
  });
});

describe('a tool that is not known in this process', () => {
  test('is not sent, and what was allowed is not held against it', () => {
    const ready = setup();
    expect(types(ready.start({ facts: undefined }))).toEqual(['waiting']);
    expect(ready.state).toBe('ready not_sent');
    expect(ready.operation.why?.code).toBe('waits_for_destination');
  });

  test('a lost claim of it is unknown, and is looked up once the tool is known', () => {
    const gone = setup();
    gone.start();
    const fence = { type: 'fence_attempt', attempt: 'att_1', by: 'worker-2', facts: undefined } as const;
    expect(types(gone.run({ ...fence, bounds: DEFAULT_BOUNDS }))).toEqual([
      'attempt_fenced',
      'evidence_recorded',
      'checking',
    ]);
    expect(gone.state).toBe('checking unknown');
  });
});

describe('reconsider', () => {
  test('takes the next step anew for what is being checked, and knows nothing more than before', () => {
    const looking = setupLost({ facts: factsWithLookup() });
    const reconsider = (facts: ToolFacts) =>
      looking.run({ type: 'reconsider', facts, bounds: DEFAULT_BOUNDS });
    expect(types(reconsider(factsWithLookup()))).toEqual(['checking']);
    expect(types(reconsider(factsOf()))).toEqual(['parked']);
    expect(looking.state).toBe('parked unknown');
    expect(reconsider(factsWithLookup()).refusal).toBe('not_at_this_stage');
  });
});

describe('decide_review (I15)', () => {
  test('an approval makes it ready, a denial closes it, each once', () => {
    const approved = setup({ facts: IRREVERSIBLE });
    expect(types(approved.decides('approved'))).toEqual(['approved']);
    expect(approved.state).toBe('ready not_sent');
    expect(approved.operation.why).toBeUndefined();
    expect(approved.decides('denied').refusal).toBe('already_decided');
    expect(approved.state).toBe('ready not_sent');
    const denied = setup({ facts: IRREVERSIBLE });
    denied.decides('denied');
    expect(denied.state).toBe('closed not_sent');
    expect(denied.operation.why).toEqual({ code: 'denied' });
    expect(denied.decides('approved').refusal).toBe('already_decided');
  });

  test('another digest, another review, or a review that is over decides nothing', () => {
    const asked = setup({ facts: IRREVERSIBLE });
    expect(asked.decides('approved', { digest: 'digest-2' }).refusal).toBe('digest_differs');
    expect(asked.decides('approved', { review: 'rev_2' }).refusal).toBe('no_open_review');
    asked.pass(8 * HOUR_MS);
    expect(decide(asked.operation, { type: 'lapse_review' }, asked.now).refusal).toBe('nothing_to_do');
    const inTime = setup({ facts: IRREVERSIBLE });
    inTime.pass(8 * HOUR_MS);
    expect(types(inTime.decides('approved'))).toEqual(['approved']);
    asked.pass(1);
    expect(asked.decides('approved').refusal).toBe('review_expired');
    expect(asked.state).toBe('awaiting_approval not_sent');
  });

  test('another digest is told as such, also when it is decided', () => {
    const approved = setup({ facts: IRREVERSIBLE });
    approved.decides('approved');
    expect(approved.decides('denied', { digest: 'digest-2' }).refusal).toBe('digest_differs');
  });

  test('a stale tab that decides a withdrawn proposal is refused', () => {
    const asked = setup({ facts: IRREVERSIBLE });
    const review = asked.operation.review?.id ?? '';
    asked.supersede();
    expect(asked.decides('approved', { review }).refusal).toBe('no_open_review');
  });

  test('an approval covers the attempts of this operation until it expires', () => {
    const approved = setup({ facts: IRREVERSIBLE });
    approved.decides('approved');
    approved.start();
    approved.comesBack(REJECTED_FOR_NOW);
    approved.start();
    expect(approved.state).toBe('sending unknown');
  });

  test('denying that it is sent again leaves what is unknown with a person (D8)', () => {
    const ordered = setupLost();
    ordered.states('stated_not_happened');
    ordered.orderAgain();
    expect(types(ordered.decides('denied'))).toEqual(['denied', 'parked']);
    expect(ordered.state).toBe('parked unknown');
    expect(ordered.operation.why).toEqual({ code: 'denied' });
  });
});

describe('lapse_review', () => {
  test('ends what nobody decided; it closes, and an equal call may ask again', () => {
    const asked = setup({ facts: UNCLASSIFIED });
    asked.pass(8 * HOUR_MS + 1);
    asked.lapse();
    expect(asked.state).toBe('closed not_sent');
    expect(asked.operation.why).toEqual({ code: 'review_undecided' });
    expect(asked.lapse().refusal).toBe('not_at_this_stage');
    asked.reopen();
    expect(asked.state).toBe('awaiting_approval not_sent');
  });

  test('while something is unknown it goes back to a person', () => {
    const ordered = setupLost();
    ordered.states('stated_not_happened');
    ordered.orderAgain();
    ordered.pass(8 * HOUR_MS + 1);
    ordered.lapse();
    expect(ordered.state).toBe('parked unknown');
  });
});

describe('reopen', () => {
  test('begins a new round of the same operation, with fresh authority, bounds and answer', () => {
    const refused = setup({ bounds: { attemptsMax: 1 } });
    refused.start();
    refused.comesBack(REJECTED);
    refused.deliver();
    refused.pass(48 * HOUR_MS);
    expect(types(refused.reopen())).toEqual(['reopened', 'allowed']);
    expect(refused.operation).toMatchObject({
      stage: 'ready',
      effect: 'rejected',
      round: 2,
      digest: 'digest-1',
    });
    expect(refused.operation.deliveredAt).toBeUndefined();
    refused.start();
    refused.comesBack(REJECTED_FOR_NOW);
    expect(refused.operation.attempts).toHaveLength(2);
  });

  test('counts time from the round, so that a try of today is not over because of last week', () => {
    const refused = setup();
    refused.start();
    refused.comesBack(REJECTED);
    refused.pass(48 * HOUR_MS);
    refused.reopen();
    refused.start();
    refused.comesBack(REJECTED_FOR_NOW);
    expect(refused.state).toBe('ready rejected');
  });

  test('asks again where the class asks', () => {
    const refused = setup();
    refused.start();
    refused.comesBack(REJECTED);
    refused.changeFacts({ class: 'irreversible' });
    refused.reopen();
    expect(refused.state).toBe('awaiting_approval rejected');
  });

  test('a question of identity stays one until a person has answered it', () => {
    for (const question of ['same_work', 'too_old', 'error_reported'] as const) {
      const asked = setup({ question });
      asked.pass(8 * HOUR_MS + 1);
      asked.lapse();
      asked.reopen();
      expect(asked.state).toBe('awaiting_approval not_sent');
      expect(asked.operation.review?.question).toBe(question);
      asked.decides('approved');
      asked.start();
      asked.comesBack(REJECTED);
      asked.reopen();
      expect(asked.state).toBe('ready rejected');
    }
  });

  test('after a denial, a replacement or giving up only a person may', () => {
    const denied = setup({ facts: IRREVERSIBLE });
    denied.decides('denied');
    const replaced = setup();
    replaced.supersede();
    const givenUp = setup({ bounds: { attemptsMax: 1 } });
    givenUp.start();
    givenUp.comesBack(NOT_LEFT);
    givenUp.giveUp();
    for (const ended of [denied, replaced, givenUp]) {
      expect(ended.state).toBe('closed not_sent');
      expect(ended.reopen('caller').refusal).toBe('not_at_this_stage');
      expect(ended.reopen('Mara').events).toBeDefined();
    }
  });

  test('what happened, may have happened or is open is never begun again', () => {
    const accepted = setup();
    accepted.start();
    accepted.comesBack(ACCEPTED);
    expect(accepted.reopen('Mara').refusal).toBe('not_at_this_stage');
    const unknown = setupLost();
    unknown.giveUp();
    expect(unknown.reopen('Mara').refusal).toBe('unsettled');
    expect(setup().reopen('Mara').refusal).toBe('not_at_this_stage');
  });
});

describe("a person's statement (D4)", () => {
  test('"it happened" and "something else" close, and the effect stays unknown', () => {
    for (const resolution of ['stated_happened', 'stated_other_change'] as const) {
      const lost = setupLost();
      lost.states(resolution);
      expect(lost.state).toBe('closed unknown');
      expect(lost.operation.resolution).toMatchObject({ resolution, by: 'Mara' });
    }
  });

  test('"it did not happen" stays with a person, who may order it again', () => {
    const lost = setupLost();
    lost.states('stated_not_happened');
    expect(lost.state).toBe('parked unknown');
  });

  test('is about what is unknown or contradicts itself, and about nothing else', () => {
    expect(setup().states('stated_happened').refusal).toBe('not_at_this_stage');
    const accepted = setup();
    accepted.start();
    accepted.comesBack(ACCEPTED);
    expect(accepted.states('stated_not_happened').refusal).toBe('not_at_this_stage');
    const looking = setupLost({ facts: factsWithLookup() });
    expect(looking.states('stated_not_happened').refusal).toBe('not_at_this_stage');
  });

  test('may be made after giving up', () => {
    const lost = setupLost();
    lost.giveUp();
    lost.states('stated_not_happened');
    expect(lost.state).toBe('closed unknown');
    expect(lost.orderAgain().events).toBeDefined();
  });
});

describe('order_again', () => {
  test('asks for "it did not happen" first, and then for an approval of its own', () => {
    const lost = setupLost();
    expect(lost.orderAgain().refusal).toBe('needs_statement');
    lost.states('stated_not_happened');
    expect(types(lost.orderAgain())).toEqual(['ordered_again', 'review_opened']);
    expect(lost.state).toBe('awaiting_approval unknown');
    expect(lost.operation.review).toMatchObject({ question: 'ordered_again', digest: 'digest-1' });
    lost.decides('approved');
    expect(lost.state).toBe('ready unknown');
    lost.start();
    expect(lost.operation.attempts).toHaveLength(2);
  });

  test('is not answered by a statement that something else happened', () => {
    const lost = setupLost();
    lost.states('stated_happened');
    expect(lost.orderAgain().refusal).toBe('needs_statement');
  });

  test('needs a new statement for each try that was lost', () => {
    const lost = setupLost();
    lost.states('stated_not_happened');
    lost.orderAgain();
    lost.decides('approved');
    lost.start();
    lost.comesBack(LOST);
    expect(lost.state).toBe('parked unknown');
    expect(lost.orderAgain().refusal).toBe('needs_statement');
    lost.states('stated_not_happened');
    expect(lost.orderAgain().events).toBeDefined();
  });

  test('inherits no approval', () => {
    const lost = setup({ facts: IRREVERSIBLE });
    lost.decides('approved');
    lost.start();
    lost.comesBack(LOST);
    lost.states('stated_not_happened');
    lost.orderAgain();
    expect(lost.operation.review?.decision).toBeUndefined();
    expect(lost.start().refusal).toBe('not_at_this_stage');
  });

  test('what is known not to have happened needs no statement', () => {
    const absent = setupLost();
    absent.learn(ABSENT);
    expect(absent.orderAgain().events).toBeDefined();
  });

  test('what happened or contradicts itself is not ordered again', () => {
    const accepted = setup();
    accepted.start();
    accepted.comesBack(ACCEPTED);
    expect(accepted.orderAgain().refusal).toBe('not_at_this_stage');
    const diverged = setupLost();
    diverged.learn({ kind: 'lookup', found: 'several', count: 2 });
    diverged.states('stated_not_happened');
    expect(diverged.orderAgain().refusal).toBe('not_at_this_stage');
  });

  test('the late answer of the first try ends what was ordered and not yet sent', () => {
    const lost = setupLost();
    lost.states('stated_not_happened');
    lost.orderAgain();
    lost.decides('approved');
    lost.learn(ACCEPTED, 'att_1');
    expect(lost.state).toBe('closed accepted');
    expect(lost.start().refusal).toBe('not_at_this_stage');
  });
});

describe('order_look_up', () => {
  const order = { type: 'order_look_up', by: 'Mara' } as const;

  test('has what nobody could look up looked at again, and the effect stays unknown', () => {
    const lost = setupLost();
    expect(lost.state).toBe('parked unknown');
    expect(types(lost.run(order))).toEqual(['look_up_ordered']);
    expect(lost.state).toBe('checking unknown');
    expect(lost.operation.why).toEqual({ code: 'looking_up', nextAt: lost.now });
    lost.run({ type: 'reconsider', facts: factsOf(), bounds: DEFAULT_BOUNDS });
    expect(lost.state).toBe('parked unknown');
  });

  test('makes a look-up due that would come later, once, and is not counted as one', () => {
    const lost = setupLost({ facts: factsWithLookup() });
    lost.learn(INCONCLUSIVE);
    const before = lost.operation.lookUps;
    expect(types(lost.run(order))).toEqual(['look_up_ordered']);
    expect(lost.operation.lookUps).toBe(before);
    expect(lost.run(order)).toEqual({ refusal: 'nothing_to_do' });
  });

  test('is no word for sending: what a person has denied to send again is not, whatever is found', () => {
    const denied = setupLost({ facts: factsWithLookup(), bounds: { lookUpElapsedMaxMs: 0 } });
    denied.pass(2 * HOUR_MS);
    denied.learn(NOT_FOUND);
    expect(denied.state).toBe('parked unknown');
    denied.states('stated_not_happened');
    denied.orderAgain();
    denied.decides('denied');
    expect(types(denied.run(order))).toEqual(['look_up_ordered']);
    expect(types(denied.learn(ABSENT))).toEqual(['evidence_recorded', 'parked']);
    expect(denied.state).toBe('parked absent');
    expect(denied.operation.why).toEqual({ code: 'absent_needs_decision' });
  });

  test('is refused for what is known, out, or closed', () => {
    const bundle = setup();
    expect(bundle.run(order)).toEqual({ refusal: 'not_at_this_stage' });
    bundle.start();
    expect(bundle.run(order)).toEqual({ refusal: 'not_at_this_stage' });
    bundle.comesBack(ACCEPTED);
    expect(bundle.run(order)).toEqual({ refusal: 'not_at_this_stage' });
    const given = setupLost();
    given.giveUp();
    expect(given.run(order)).toEqual({ refusal: 'not_at_this_stage' });
  });
});

describe('a statement about a first try', () => {
  test('is not contradicted by what a second one did, and is by what the first did after all', () => {
    const ordered = setupLost();
    ordered.states('stated_not_happened');
    ordered.orderAgain();
    ordered.decides('approved');
    ordered.start();
    ordered.comesBack(ACCEPTED);
    expect(ordered.state).toBe('closed accepted');
    expect(ordered.operation.resolution?.contradicted).toBeUndefined();
    ordered.learn(ACCEPTED, 'att_1');
    expect(ordered.state).toBe('parked diverged');
    expect(ordered.operation.resolution?.contradicted).toBe(true);
  });
});

describe('give_up', () => {
  test('closes what is parked, by name, and claims nothing', () => {
    const lost = setupLost();
    lost.giveUp('Luis');
    expect(lost.state).toBe('closed unknown');
    expect(lost.operation.why).toEqual({ code: 'given_up', by: 'Luis' });
    expect(lost.giveUp().refusal).toBe('not_at_this_stage');
  });

  test('is for parked work only', () => {
    expect(setup().giveUp().refusal).toBe('not_at_this_stage');
    expect(setup({ facts: IRREVERSIBLE }).giveUp().refusal).toBe('not_at_this_stage');
  });
});

describe('cancel_by_caller (D10)', () => {
  test('ends what waits and has not left', () => {
    const waiting = setup();
    waiting.start({ lockedBy: 'op_9K1' });
    expect(types(waiting.cancel())).toEqual(['cancel_requested', 'closed']);
    expect(waiting.state).toBe('closed not_sent');
    expect(waiting.cancel().refusal).toBe('nothing_to_do');
  });

  test("never ends what waits for or has a person's approval", () => {
    const asked = setup({ facts: IRREVERSIBLE });
    expect(asked.cancel().refusal).toBe('nothing_to_do');
    asked.decides('approved');
    expect(asked.cancel().refusal).toBe('nothing_to_do');
    expect(asked.state).toBe('ready not_sent');
  });

  test('what has left goes on to be known', () => {
    const sending = setup();
    sending.start();
    expect(types(sending.cancel())).toEqual(['cancel_requested']);
    sending.comesBack(ACCEPTED);
    expect(sending.state).toBe('closed accepted');
  });

  test('what turns out not to have happened closes, and is not sent again', () => {
    for (const [finding, effect] of [
      [NOT_LEFT, 'not_sent'],
      [REJECTED_FOR_NOW, 'rejected'],
    ] as const) {
      const sending = setup();
      sending.start();
      sending.cancel();
      sending.comesBack(finding);
      expect(sending.state).toBe(`closed ${effect}`);
      expect(sending.operation.why).toEqual({ code: 'withdrawn_by_caller' });
    }
    const looking = setupLost({ facts: factsWithLookup() });
    looking.cancel();
    expect(looking.state).toBe('checking unknown');
    looking.learn(ABSENT);
    expect(looking.state).toBe('closed absent');
  });
});

describe('supersede (D6)', () => {
  test('withdraws what was never sent, whatever it waits for', () => {
    const ready = setup();
    const asked = setup({ facts: IRREVERSIBLE });
    const unsent = setup();
    unsent.start();
    unsent.comesBack(NOT_LEFT);
    expect(unsent.state).toBe('ready not_sent');
    for (const earlier of [ready, asked, unsent]) {
      expect(types(earlier.supersede('op_9K6'))).toEqual(['superseded', 'closed']);
      expect(earlier.state).toBe('closed not_sent');
      expect(earlier.operation.why).toEqual({ code: 'replaced', by: 'op_9K6' });
      expect(earlier.supersede('op_9K6').refusal).toBe('nothing_to_do');
    }
  });

  test('withdraws what was refused for now and waits to be sent again', () => {
    const refused = setup();
    refused.start();
    refused.comesBack(REJECTED_FOR_NOW);
    refused.supersede();
    expect(refused.state).toBe('closed rejected');
  });

  test('withdraws what a person has been asked about, when it was never sent', () => {
    const parked = setup({ bounds: { attemptsMax: 1 } });
    parked.start();
    parked.comesBack(NOT_LEFT);
    parked.supersede();
    expect(parked.state).toBe('closed not_sent');
  });

  test('links what has left, which goes on to be known and is not sent again', () => {
    const sending = setup();
    sending.start();
    expect(types(sending.supersede())).toEqual(['superseded']);
    sending.comesBack(NOT_LEFT);
    expect(sending.state).toBe('closed not_sent');
    const looking = setupLost({ facts: factsWithLookup() });
    looking.supersede();
    looking.learn(ABSENT);
    expect(looking.state).toBe('closed absent');
    expect(looking.operation.why).toEqual({ code: 'replaced', by: 'op_9K6' });
  });

  test('parks what was ordered again while its first try is unknown', () => {
    const ordered = setupLost();
    ordered.states('stated_not_happened');
    ordered.orderAgain();
    ordered.decides('approved');
    ordered.supersede();
    expect(ordered.state).toBe('parked unknown');
  });

  test('links what is done', () => {
    const accepted = setup();
    accepted.start();
    accepted.comesBack(ACCEPTED);
    accepted.supersede();
    expect(accepted.state).toBe('closed accepted');
    expect(accepted.operation.supersededBy).toBe('op_9K6');
  });
});

describe('deliver and see_replays', () => {
  test('an answer is delivered once, and only when there is one', () => {
    const ready = setup();
    expect(ready.deliver().refusal).toBe('nothing_to_do');
    ready.start();
    ready.comesBack(ACCEPTED);
    ready.deliver();
    expect(ready.operation.deliveredAt).toBe(T0);
    expect(ready.deliver().refusal).toBe('nothing_to_do');
  });

  test('call ids are kept, each once, and no more than can be told apart', () => {
    const ready = setup();
    ready.run({ type: 'see_replays', replays: ['call-0'] });
    expect(ready.run({ type: 'see_replays', replays: ['call-0'] }).refusal).toBe('nothing_to_do');
    for (let call = 1; call < 12; call += 1) ready.run({ type: 'see_replays', replays: [`call-${call}`] });
    expect(ready.operation.replays).toHaveLength(8);
    expect(ready.operation.replays.at(-1)).toBe('call-11');
  });
});

describe('the state that a decision leads to', () => {
  test('is told for events, and for a refusal there is none', () => {
    const { operation } = setup();
    const started = decide(operation, { type: 'see_replays', replays: ['call-1', 'call-1'] }, T0);
    expect(decided(operation, started)?.replays).toEqual(['call-1']);
    expect(decided(operation, { refusal: 'nothing_to_do' })).toBeUndefined();
  });
});

describe('time alone', () => {
  test('never changes what is known', () => {
    const lost = setupLost({ facts: factsWithLookup() });
    lost.pass(365 * 24 * HOUR_MS);
    lost.learn(NOT_FOUND);
    expect(lost.state).toBe('parked unknown');
  });

  test('and an approval that came in the evening is used within its validity, or not at all', () => {
    const asked = setup({ facts: IRREVERSIBLE });
    asked.pass(4 * HOUR_MS);
    asked.decides('approved');
    asked.pass(4 * HOUR_MS - MINUTE_MS);
    asked.start({ connected: false, connectionDetail: 'no gateway' });
    expect(asked.state).toBe('ready not_sent');
    asked.pass(MINUTE_MS + SECOND_MS);
    asked.start();
    expect(asked.operation.review?.because).toEqual({
      code: 'approval_expired',
      waited: 'waits_for_destination',
    });
  });
});

describe('the legs of an attempt, where the destination asks back', () => {
  const leg = (attempt: string, number: number) => ({ type: 'record_leg', attempt, leg: number }) as const;

  test('each is recorded once, in its order, while the attempt is out', () => {
    const bundle = setup();
    expect(bundle.run(leg('att_1', 2))).toEqual({ refusal: 'not_at_this_stage' });
    bundle.start();
    expect(bundle.run(leg('att_2', 2))).toEqual({ refusal: 'not_at_this_stage' });
    expect(bundle.run(leg('att_1', 3))).toEqual({ refusal: 'nothing_to_do' });
    expect(types(bundle.run(leg('att_1', 2)))).toEqual(['leg_recorded']);
    expect(bundle.run(leg('att_1', 2))).toEqual({ refusal: 'nothing_to_do' });
    expect(types(bundle.run(leg('att_1', 3)))).toEqual(['leg_recorded']);
    expect(bundle.operation.attempts).toMatchObject([{ id: 'att_1', open: true, legs: 3 }]);
    expect(bundle.state).toBe('sending unknown');
  });

  test('none is recorded for an attempt that has come back, or whose claim was lost', () => {
    const back = setup();
    back.start();
    back.comesBack(ACCEPTED);
    expect(back.run(leg('att_1', 2))).toEqual({ refusal: 'not_at_this_stage' });
    const fenced = setup();
    fenced.start();
    fenced.fence();
    expect(fenced.run(leg('att_1', 2))).toEqual({ refusal: 'not_at_this_stage' });
  });
});

describe('revoke_approval (D9)', () => {
  test('holds what waits under it, and asks anew with another review', () => {
    const approved = setup({ facts: IRREVERSIBLE });
    approved.decides('approved');
    const first = approved.operation.review?.id;
    expect(types(approved.revokes())).toEqual(['revoked', 'held', 'review_opened']);
    expect(approved.state).toBe('awaiting_approval not_sent');
    expect(approved.operation.review).toMatchObject({
      question: 'irreversible',
      because: { code: 'approval_revoked', by: 'Luis' },
    });
    expect(approved.operation.review?.id).not.toBe(first);
    expect(approved.decides('approved', { review: first ?? '' }).refusal).toBe('no_open_review');
    expect(approved.start().refusal).toBe('not_at_this_stage');
    expect(approved.revokes().refusal).toBe('already_revoked');
    expect(types(approved.decides('approved'))).toEqual(['approved']);
    expect(types(approved.start())).toEqual(['attempt_started']);
  });

  test('what is on its way goes on to be known, and no attempt starts after it', () => {
    const sent = setup({ facts: IRREVERSIBLE });
    sent.decides('approved');
    sent.start();
    expect(types(sent.revokes())).toEqual(['revoked']);
    expect(sent.state).toBe('sending unknown');
    expect(sent.operation.review).toMatchObject({ decision: { by: 'Mara' }, revoked: { by: 'Luis' } });
    expect(sent.revokes().refusal).toBe('already_revoked');
    // Proven that nothing left: by itself it would be sent again.
    sent.comesBack(NOT_LEFT);
    expect(sent.state).toBe('ready not_sent');
    sent.pass(MINUTE_MS);
    expect(types(sent.start())).toEqual(['held', 'review_opened']);
    expect(sent.operation.attempts).toHaveLength(1);
  });

  test('what is unknown is parked, and what was accepted stays so', () => {
    const ordered = setupLost();
    ordered.states('stated_not_happened');
    ordered.orderAgain();
    ordered.decides('approved');
    expect(types(ordered.revokes())).toEqual(['revoked', 'parked']);
    expect([ordered.state, ordered.operation.why?.code]).toEqual(['parked unknown', 'approval_revoked']);
    const landed = setup({ facts: IRREVERSIBLE });
    landed.decides('approved');
    landed.start();
    landed.revokes();
    landed.comesBack(ACCEPTED);
    expect(landed.state).toBe('closed accepted');
    expect(landed.revokes().refusal).toBe('already_revoked');
  });

  test('only an approval, under its own digest, while something may still be sent', () => {
    expect(setup().revokes().refusal).toBe('no_approval');
    const asked = setup({ facts: IRREVERSIBLE });
    expect(asked.revokes().refusal).toBe('no_approval');
    asked.decides('approved');
    expect(asked.revokes('digest-2').refusal).toBe('digest_differs');
    asked.start();
    asked.comesBack(ACCEPTED);
    expect(asked.revokes().refusal).toBe('not_at_this_stage');
    const denied = setup({ facts: IRREVERSIBLE });
    denied.decides('denied');
    expect(denied.revokes().refusal).toBe('no_approval');
  });
});
