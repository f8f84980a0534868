import { afterEach, describe, expect, test } from 'vitest';
import { answerText } from '../../src/core/answer-wording.ts';
import { alterPayloads } from './places.ts';
import { type Fixture, factsOf, lookedUpBy, operationOf, setup, signal, until } from './setup.ts';

let fixture: Fixture;

afterEach(async () => {
  await fixture.close();
});

const RUN = { run: { id: 'cutover-1' } };
const HOUR_MS = 3_600_000;

describe('a write that nothing stands against', () => {
  test('is recorded before it is sent, sent once, and answered with the destination’s own reply', async () => {
    fixture = await setup();
    const answer = await fixture.write('create', { title: 'Freeze' }, RUN);
    expect(answer).toMatchObject({ kind: 'reply', reply: { kind: 'result' } });
    expect(fixture.records).toHaveLength(1);
    const history = await fixture.ledger.readings.history(operationOf(answer).id);
    expect(history.map((entry) => entry.event.type).slice(0, 5)).toEqual([
      'proposed',
      'allowed',
      'attempt_started',
      'evidence_recorded',
      'closed',
    ]);
    // One commit before the send, one after it.
    expect(history.slice(0, 5).map((entry) => entry.version)).toEqual([1, 1, 1, 2, 2]);
  });

  test('[S21] 64 equal writes at once are one operation and one record', async () => {
    fixture = await setup();
    const answers = await Promise.all(
      Array.from({ length: 64 }, () => fixture.write('create', { title: 'Freeze' }, RUN)),
    );
    expect(fixture.records).toHaveLength(1);
    expect(new Set(answers.map((answer) => operationOf(answer).id)).size).toBe(1);
    const kinds = answers.map((answer) => answer.kind);
    expect(kinds.filter((kind) => kind === 'reply')).toHaveLength(1);
    expect(kinds.filter((kind) => kind === 'already_exists')).toHaveLength(63);
  });

  test('64 different writes at once are 64 records, in few commits', async () => {
    fixture = await setup();
    await Promise.all(Array.from({ length: 64 }, (_, n) => fixture.write('create', { title: `T${n}` }, RUN)));
    expect(fixture.records).toHaveLength(64);
  });
});

describe('equal calls', () => {
  test('[S16] a `unique` write is answered ALREADY_EXISTS with what was not applied', async () => {
    fixture = await setup({
      facts: { create: factsOf('create', { identity: ['title'] }) },
    });
    await fixture.write('create', { title: 'Freeze', description: 'one' }, RUN);
    const again = await fixture.write('create', { title: 'Freeze', description: 'two' }, RUN);
    expect(again).toMatchObject({ kind: 'already_exists', notApplied: ['description'] });
    expect(answerText(operationOf(again), { notApplied: ['description'] })).toMatch(/^ALREADY_EXISTS/);
    expect(fixture.records).toEqual([{ title: 'Freeze', description: 'one' }]);
  });

  test('[S16] A→B→A on a `state` tool goes through three times; A→A does not', async () => {
    fixture = await setup();
    for (const value of ['a', 'b', 'a']) await fixture.write('set', { id: 'x', value }, RUN);
    expect(fixture.records.map((record) => record['value'])).toEqual(['a', 'b', 'a']);
    const again = await fixture.write('set', { id: 'x', value: 'a' }, RUN);
    expect(again.kind).toBe('already_exists');
    expect(fixture.records).toHaveLength(3);
  });

  test('[S16] five equal clicks on a `free` tool are five records, each linked to the one before', async () => {
    fixture = await setup();
    const ids: string[] = [];
    for (let click = 0; click < 5; click += 1) {
      const operation = operationOf(await fixture.write('append', { line: 'x' }, RUN));
      expect(operation.previous?.operation).toBe(ids.at(-1));
      ids.push(operation.id);
    }
    expect(fixture.records).toHaveLength(5);
    expect(new Set(ids).size).toBe(5);
  });

  test('[S16] a replay with the same call id of a `free` write is no new click', async () => {
    fixture = await setup();
    const first = await fixture.write('append', { line: 'x' }, { ...RUN, replays: ['call:1'] });
    const replay = await fixture.write('append', { line: 'x' }, { ...RUN, replays: ['call:1'] });
    expect(operationOf(replay).id).toBe(operationOf(first).id);
    expect(fixture.records).toHaveLength(1);
  });

  test('an answer that was not delivered is given unchanged to the first equal call, then told as done', async () => {
    fixture = await setup();
    const first = await fixture.write('append', { line: 'x' }, { ...RUN, delivery: 'told' });
    fixture.ledger.undelivered(operationOf(first).id);
    const second = await fixture.write('append', { line: 'x' }, { ...RUN, delivery: 'told' });
    expect(second).toMatchObject({ kind: 'reply' });
    expect(operationOf(second).id).toBe(operationOf(first).id);
    fixture.ledger.delivered(operationOf(second).id);
    const third = await fixture.write('append', { line: 'x' }, { ...RUN, delivery: 'told' });
    expect(operationOf(third).id).not.toBe(operationOf(first).id);
    expect(fixture.records).toHaveLength(2);
  });

  test('a declared occurrence is another write', async () => {
    fixture = await setup();
    await fixture.write('create', { title: 'Weekly' }, { run: { id: 'weekly', occurrence: 0 } });
    await fixture.write('create', { title: 'Weekly' }, { run: { id: 'weekly', occurrence: 1 } });
    expect(fixture.records).toHaveLength(2);
  });

  test('a weak run counts as the same after it rolled over, until its window is over', async () => {
    fixture = await setup();
    await fixture.write('create', { title: 'Freeze' });
    fixture.moveClock(23 * HOUR_MS);
    expect((await fixture.write('create', { title: 'Freeze' })).kind).toBe('already_exists');
    fixture.moveClock(2 * HOUR_MS);
    await fixture.write('append', { line: 'rolls the weak run over' });
    expect(fixture.records).toHaveLength(2);
    expect((await fixture.write('create', { title: 'Freeze' })).kind).toBe('reply');
    expect(fixture.records).toHaveLength(3);
  });

  test('the same `unique` write in another run within an hour is a question for a person', async () => {
    fixture = await setup();
    await fixture.write('create', { title: 'Freeze' }, { run: { id: 'mara' } });
    const other = operationOf(await fixture.write('create', { title: 'Freeze' }, { run: { id: 'luis' } }));
    expect(other).toMatchObject({ stage: 'awaiting_approval', review: { question: 'same_work' } });
    expect(answerText(other)).toMatch(/^NOT SENT — the same write was made in another run/);
    expect(fixture.records).toHaveLength(1);
  });
});

describe('a lost answer', () => {
  test('[S1] is looked up, found, and told as found', async () => {
    fixture = await setup();
    fixture.faults.push('lose_reply');
    const answer = await fixture.write('create_found', { title: 'Freeze' }, RUN);
    expect(answer.kind).toBe('found');
    expect(operationOf(answer)).toMatchObject({ effect: 'accepted', record: { id: 'CHG-1' } });
    const again = await fixture.write('create_found', { title: 'Freeze' }, RUN);
    expect(again.kind).toBe('already_exists');
    expect(fixture.records).toHaveLength(1);
    const history = await fixture.ledger.readings.history(operationOf(answer).id);
    const unknownFirst = history.find((entry) => entry.event.type === 'checking');
    expect(unknownFirst).toBeDefined();
  });

  test('that never arrived is proven absent, then sent again, where the contract allows that', async () => {
    fixture = await setup({
      settings: {
        bounds: { attemptsMax: 5, elapsedMaxMs: HOUR_MS, lookUpElapsedMaxMs: HOUR_MS, sendByMs: 50 },
      },
    });
    fixture.faults.push('lose_request');
    const answer = await fixture.write('create_found', { title: 'Freeze' }, RUN);
    expect(operationOf(answer)).toMatchObject({ effect: 'accepted', stage: 'closed' });
    expect(operationOf(answer).attempts).toHaveLength(2);
    expect(fixture.records).toHaveLength(1);
  });

  test('[S3] without a look-up is with a person, and stays unknown', async () => {
    fixture = await setup();
    fixture.faults.push('lose_reply');
    const answer = await fixture.write('create', { title: 'Freeze' }, RUN);
    expect(operationOf(answer)).toMatchObject({
      stage: 'parked',
      effect: 'unknown',
      why: { code: 'no_lookup' },
    });
    const again = await fixture.write('create', { title: 'Freeze' }, RUN);
    expect(operationOf(again).id).toBe(operationOf(answer).id);
    fixture.moveClock(100 * HOUR_MS);
    expect(operationOf(await fixture.write('create', { title: 'Freeze' }, RUN)).effect).toBe('unknown');
    expect(fixture.records).toHaveLength(1);
  });

  test('two records found by the look-up are shown as two', async () => {
    fixture = await setup();
    fixture.records.push({ title: 'Freeze' });
    fixture.faults.push('lose_reply');
    const answer = operationOf(await fixture.write('create_found', { title: 'Freeze' }, RUN));
    expect(answer).toMatchObject({ stage: 'parked', effect: 'diverged' });
    expect(answerText(answer)).toContain('2 records');
  });

  test('[S17] a reply after the time-out settles the operation, and nothing is sent twice', async () => {
    const gate = signal();
    fixture = await setup({ settings: { replyTimeoutMs: 50 } });
    fixture.faults.push({ wait: gate.promise });
    const answer = operationOf(await fixture.write('create', { title: 'Slow' }, RUN));
    expect(answer).toMatchObject({ effect: 'unknown' });
    gate.give();
    const settled = await until(fixture.ledger, answer.id, (operation) => operation.stage === 'closed');
    expect(settled.effect).toBe('accepted');
    expect(fixture.records).toHaveLength(1);
  });

  test('[S2] a refused connection is proven not sent, and sent again by itself', async () => {
    fixture = await setup();
    fixture.faults.push('refuse', 'refuse');
    const answer = await fixture.write('create', { title: 'Freeze' }, RUN);
    expect(answer.kind).toBe('reply');
    expect(operationOf(answer).attempts).toHaveLength(3);
    expect(fixture.records).toHaveLength(1);
  });

  test('[S2] refusals without end are bounded and end with a person, still not sent', async () => {
    fixture = await setup({
      settings: {
        bounds: { attemptsMax: 2, elapsedMaxMs: HOUR_MS, lookUpElapsedMaxMs: HOUR_MS, sendByMs: 2_000 },
      },
    });
    fixture.faults.push('refuse', 'refuse', 'refuse');
    const operation = operationOf(await fixture.write('create', { title: 'Freeze' }, RUN));
    expect(operation).toMatchObject({ stage: 'parked', effect: 'not_sent', why: { code: 'bounds_used_up' } });
    expect(fixture.records).toHaveLength(0);
  });
});

describe('a target', () => {
  test('has one unsettled write; others wait in order of arrival and are sent by themselves', async () => {
    fixture = await setup();
    const gate = signal();
    fixture.faults.push({ wait: gate.promise });
    const first = fixture.write('set', { id: 'x', value: 1 }, RUN);
    const second = await fixture.write('set', { id: 'x', value: 2 }, RUN);
    const third = await fixture.write('set', { id: 'x', value: 3 }, RUN);
    const waiting = operationOf(second);
    expect(waiting).toMatchObject({ stage: 'ready', why: { code: 'waits_for_operation' } });
    expect(answerText(waiting)).toMatch(/^NOT SENT YET — waits for op_/);
    expect(fixture.records).toHaveLength(0);
    gate.give();
    await first;
    await until(fixture.ledger, operationOf(third).id, (operation) => operation.stage === 'closed');
    expect(fixture.records.map((record) => record['value'])).toEqual([1, 2, 3]);
  });

  test('stays locked while its write is unknown, and is free for other targets', async () => {
    fixture = await setup();
    fixture.faults.push('lose_reply');
    const lost = operationOf(await fixture.write('set', { id: 'x', value: 1 }, RUN));
    expect(lost).toMatchObject({ stage: 'parked', effect: 'unknown' });
    const blocked = operationOf(await fixture.write('set', { id: 'x', value: 2 }, RUN));
    expect(blocked.why).toMatchObject({ code: 'waits_for_operation', operation: lost.id });
    expect((await fixture.write('set', { id: 'y', value: 2 }, RUN)).kind).toBe('reply');
    expect(fixture.records).toHaveLength(2);
  });

  test('a withdrawn proposal leaves the line', async () => {
    fixture = await setup();
    const gate = signal();
    fixture.faults.push({ wait: gate.promise });
    const step = { run: { id: 'cutover-1', step: 'dns' } };
    const first = fixture.write('set', { id: 'x', value: 1 }, RUN);
    const second = operationOf(await fixture.write('set', { id: 'x', value: 2 }, step));
    const third = operationOf(await fixture.write('set', { id: 'x', value: 3 }, step));
    expect(third.supersedes).toBe(second.id);
    gate.give();
    await first;
    await until(fixture.ledger, third.id, (operation) => operation.stage === 'closed');
    const withdrawn = await until(fixture.ledger, second.id, (operation) => operation.stage === 'closed');
    expect(withdrawn).toMatchObject({ effect: 'not_sent', why: { code: 'replaced', by: third.id } });
    expect(fixture.records.map((record) => record['value'])).toEqual([1, 3]);
  });
});

describe('a write that needs a person', () => {
  test('waits, is sent once after the approval of its digest, and its equal call is answered with it', async () => {
    fixture = await setup();
    const asked = operationOf(await fixture.write('destroy', { vm: 'a' }, RUN));
    expect(asked.stage).toBe('awaiting_approval');
    expect(fixture.records).toHaveLength(0);
    const wrong = await fixture.ledger.decideReview({
      operation: asked.id,
      digest: 'f'.repeat(64),
      kind: 'approved',
      by: 'owner',
      strength: 'passphrase',
    });
    expect(wrong).toMatchObject({ decided: false, refusal: 'digest_differs' });
    const decided = await fixture.ledger.decideReview({
      operation: asked.id,
      digest: asked.digest.slice(0, 12),
      kind: 'approved',
      by: 'owner',
      strength: 'passphrase',
    });
    expect(decided.decided).toBe(true);
    await until(fixture.ledger, asked.id, (operation) => operation.stage === 'closed');
    expect(fixture.records).toEqual([{ vm: 'a' }]);
    const again = await fixture.ledger.decideReview({
      operation: asked.id,
      digest: asked.digest,
      kind: 'denied',
      by: 'owner',
      strength: 'passphrase',
    });
    expect(again).toMatchObject({ decided: false, refusal: 'already_decided' });
    // The result was never delivered: the first equal call is given it, unchanged.
    expect((await fixture.write('destroy', { vm: 'a' }, RUN)).kind).toBe('reply');
  });

  test('[S18] another machine on the same `single` step is another operation without any approval', async () => {
    fixture = await setup();
    const step = { run: { id: 'cutover-1', step: 'decommission', single: true } };
    const asked = operationOf(await fixture.write('destroy', { vm: 'a' }, step));
    await fixture.ledger.decideReview({
      operation: asked.id,
      digest: asked.digest,
      kind: 'approved',
      by: 'owner',
      strength: 'passphrase',
    });
    await until(fixture.ledger, asked.id, (operation) => operation.stage === 'closed');
    const other = operationOf(await fixture.write('destroy', { vm: 'b' }, step));
    expect(other).toMatchObject({ stage: 'awaiting_approval', supersedes: asked.id });
    expect(fixture.records).toEqual([{ vm: 'a' }]);
  });

  test('denied: the reason reaches the caller, and the same call stays denied', async () => {
    fixture = await setup();
    const asked = operationOf(await fixture.write('destroy', { vm: 'a' }, RUN));
    await fixture.ledger.decideReview({
      operation: asked.id,
      digest: asked.digest,
      kind: 'denied',
      by: 'owner',
      strength: 'passphrase',
      comment: 'Wrong VM.',
    });
    const answer = await fixture.write('destroy', { vm: 'a' }, RUN);
    expect(answer).toMatchObject({ kind: 'state', quote: 'Wrong VM.' });
    expect(operationOf(answer)).toMatchObject({
      stage: 'closed',
      effect: 'not_sent',
      why: { code: 'denied' },
    });
    expect(operationOf(await fixture.write('destroy', { vm: 'a' }, RUN)).stage).toBe('closed');
    expect(fixture.records).toHaveLength(0);
  });

  test('a review that nobody decided in time ends, nothing is sent, and an equal call asks anew', async () => {
    fixture = await setup({ settings: { approvalLifetimeMs: 60_000 } });
    const asked = operationOf(await fixture.write('destroy', { vm: 'a' }, RUN));
    fixture.moveClock(61_000);
    const late = await fixture.ledger.decideReview({
      operation: asked.id,
      digest: asked.digest,
      kind: 'approved',
      by: 'owner',
      strength: 'passphrase',
    });
    expect(late).toMatchObject({
      decided: false,
      refusal: expect.stringMatching(/review_expired|no_open_review/),
    });
    await until(fixture.ledger, asked.id, (operation) => operation.stage === 'closed');
    const again = operationOf(await fixture.write('destroy', { vm: 'a' }, RUN));
    expect(again.id).toBe(asked.id);
    const anew = operationOf(await fixture.write('destroy', { vm: 'a' }, RUN));
    expect(anew).toMatchObject({ id: asked.id, stage: 'awaiting_approval' });
    // Whoever looked at the first review has not seen what is asked now, though the payload is the same.
    const decision = { operation: asked.id, digest: asked.digest, by: 'owner' } as const;
    const old = {
      ...decision,
      review: asked.review?.id ?? '',
      kind: 'approved',
      strength: 'passphrase',
    } as const;
    expect(await fixture.ledger.decideReview(old)).toMatchObject({
      decided: false,
      refusal: 'review_differs',
    });
    expect(await fixture.ledger.refusalOf(old)).toMatchObject({ refusal: 'review_differs' });
    expect(fixture.records).toHaveLength(0);
  });

  test('an unclassified tool asks, and its approval becomes a visible rule that can be revoked', async () => {
    fixture = await setup();
    const asked = operationOf(
      await fixture.write('unheard_of', { x: 1 }, { ...RUN, toolDigest: 'd'.repeat(64) }),
    );
    expect(asked.review?.question).toBe('unclassified');
    const decided = await fixture.ledger.decideReview({
      operation: asked.id,
      digest: asked.digest,
      kind: 'approved',
      by: 'owner',
      strength: 'passphrase',
    });
    expect(decided).toMatchObject({ decided: true, rule: { tool: 'unheard_of', class: 'ordinary' } });
    expect(await fixture.ledger.rules()).toHaveLength(1);
    expect(await fixture.ledger.revokeRule('cab', 'unheard_of', 'owner', 'same_account')).toBe('revoked');
    expect(await fixture.ledger.revokeRule('cab', 'unheard_of', 'owner', 'same_account')).toBe('no_rule');
  });

  test('[S9] a payload that was altered behind the ledger’s back is never sent', async () => {
    fixture = await setup({ onDisk: true });
    const asked = operationOf(await fixture.write('destroy', { vm: 'a' }, RUN));
    await alterPayloads(fixture.data, '{"vm":"b"}');
    await fixture.ledger.decideReview({
      operation: asked.id,
      digest: asked.digest,
      kind: 'approved',
      by: 'owner',
      strength: 'passphrase',
    });
    const parked = await until(fixture.ledger, asked.id, (operation) => operation.stage === 'parked');
    expect(parked.why?.code).toBe('digest_mismatch');
    expect(fixture.records).toHaveLength(0);
  });
});

describe('a caller that takes its call back', () => {
  test('ends the wait, not what has left', async () => {
    fixture = await setup();
    const gate = signal();
    fixture.faults.push({ wait: gate.promise });
    const controller = new AbortController();
    const call = fixture.write('create', { title: 'Slow' }, { ...RUN, signal: controller.signal });
    await new Promise((resolve) => setTimeout(resolve, 20));
    controller.abort();
    const left = operationOf(await call);
    expect(left).toMatchObject({ stage: 'sending', effect: 'unknown' });
    gate.give();
    await until(fixture.ledger, left.id, (operation) => operation.stage === 'closed');
    expect((await fixture.write('create', { title: 'Slow' }, RUN)).kind).toBe('reply');
    expect(fixture.records).toHaveLength(1);
  });
});

describe('a ledger that is opened again', () => {
  test('carries on with what was open, and knows what was done', async () => {
    fixture = await setup({ onDisk: true });
    await fixture.write('create', { title: 'Freeze' }, RUN);
    const asked = operationOf(await fixture.write('destroy', { vm: 'a' }, RUN));
    await fixture.ledger.close();
    const second = await fixture.open();
    const again = await second.write({
      destination: 'cab',
      tool: 'create',
      arguments: { title: 'Freeze' },
      requester: 'agent',
      ...RUN,
    });
    expect(again.kind).toBe('already_exists');
    await second.decideReview({
      operation: asked.id,
      digest: asked.digest,
      kind: 'approved',
      by: 'owner',
      strength: 'passphrase',
    });
    await until(second, asked.id, (operation) => operation.stage === 'closed');
    expect(fixture.records).toHaveLength(2);
  });

  test('two ledgers on one file are one: equal writes of both are one operation', async () => {
    fixture = await setup({ onDisk: true });
    const second = await fixture.open();
    const call = {
      destination: 'cab',
      tool: 'create',
      arguments: { title: 'Freeze' },
      requester: 'agent',
      ...RUN,
    };
    const answers = await Promise.all([
      ...Array.from({ length: 16 }, () => fixture.ledger.write(call)),
      ...Array.from({ length: 16 }, () => second.write(call)),
    ]);
    expect(fixture.records).toHaveLength(1);
    expect(new Set(answers.map((answer) => operationOf(answer).id)).size).toBe(1);
  });
});

test('arguments that do not fit the tool are recorded as not sent, and the corrected call is another', async () => {
  fixture = await setup();
  const wrong = await fixture.write('create', {}, { ...RUN, schemaProblem: '"title" is required' });
  expect(wrong).toMatchObject({ kind: 'state', quote: '"title" is required' });
  expect(answerText(operationOf(wrong), { quote: '"title" is required' })).toMatch(
    /^NOT SENT — arguments do not fit the tool: "title" is required/,
  );
  expect((await fixture.write('create', { title: 'x' }, RUN)).kind).toBe('reply');
  expect(fixture.records).toHaveLength(1);
});

test('a contract whose absence proves nothing never leads to a second send', async () => {
  const [lookup] = lookedUpBy().lookups;
  if (lookup === undefined) throw new Error('the fixture has a look-up');
  const facts = factsOf('create_found', {
    operation: lookedUpBy({ lookups: [{ ...lookup, proves: { present: 'applied', absent: 'nothing' } }] }),
  });
  fixture = await setup({
    facts: { create_found: facts },
    settings: {
      bounds: { attemptsMax: 5, elapsedMaxMs: HOUR_MS, lookUpElapsedMaxMs: HOUR_MS, sendByMs: 20 },
    },
  });
  fixture.faults.push('lose_request');
  const operation = operationOf(await fixture.write('create_found', { title: 'Freeze' }, RUN));
  expect(operation).toMatchObject({ stage: 'parked', effect: 'unknown', why: { code: 'lookups_exhausted' } });
  expect(fixture.records).toHaveLength(0);
});
