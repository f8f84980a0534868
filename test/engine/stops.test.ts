// Stops and cancels in one process and in two on one file, over the counting destination.

import { afterEach, describe, expect, test } from 'vitest';
import { exitCodeOf } from '../../src/cli/output.ts';
import { answerText } from '../../src/core/answer-wording.ts';
import type { Ledger } from '../../src/engine/ledger.ts';
import { type Fixture, factsOf, operationOf, setup, signal, until } from './setup.ts';

const open: Fixture[] = [];
afterEach(async () => {
  for (const fixture of open.splice(0)) await fixture.close();
});

async function begin(options: Parameters<typeof setup>[0] = {}): Promise<Fixture> {
  const fixture = await setup({
    ...options,
    settings: { bounds: SHORT, stopMarginMs: 50, ...options.settings },
  });
  open.push(fixture);
  return fixture;
}

const SHORT = {
  attemptsMax: 5,
  elapsedMaxMs: 24 * 3_600_000,
  lookUpElapsedMaxMs: 3_600_000,
  sendByMs: 150,
};
const MARA = { by: 'Mara', strength: 'same_account' } as const;
const EVERYTHING = { kind: 'everything' } as const;
const run = (id: string) => ({ run: { id } });

describe('a stop', () => {
  test('closes new calls as not sent, says who and why, and is lifted for new work only', async () => {
    const { ledger, records, write } = await begin();
    const stop = await ledger.stops.stop({ ...MARA, scope: EVERYTHING, reason: 'Migration.' });
    expect(stop.noMore).toEqual({ at: expect.any(Number) });
    expect(stop.settledAt).toBeDefined();
    const answer = await write('create', { title: 'a' });
    const operation = operationOf(answer);
    expect([operation.stage, operation.effect, operation.why?.code]).toEqual([
      'closed',
      'not_sent',
      'stopped',
    ]);
    expect(exitCodeOf(operation)).toBe(14);
    if (answer.kind !== 'state') throw new Error(answer.kind);
    const { quote } = answer;
    expect(answerText(operation, quote === undefined ? {} : { quote })).toMatch(
      /^NOT SENT — an operator has stopped all sending since .* Reason: "Migration\." It will not be sent later by itself; earlier changes were not reversed\. Reads still work\./,
    );
    // The same call is told the same, and makes no other operation.
    expect(operationOf(await write('create', { title: 'a' })).id).toBe(operation.id);
    expect(records).toEqual([]);
    expect(await ledger.stops.lift(stop.stop.id, MARA)).toEqual({ released: [], ended: [], leftOut: [] });
    expect((await ledger.stops.list()).length).toBe(0);
    const again = operationOf(await write('create', { title: 'a' }));
    expect([again.id, again.round, again.stage, records.length]).toEqual([operation.id, 2, 'closed', 1]);
  });

  test('twice at one scope is one stop, and another scope is another', async () => {
    const { ledger, records, write } = await begin();
    const scope = { kind: 'tool', destination: 'cab', tool: 'create' } as const;
    const first = await ledger.stops.stop({ ...MARA, scope, reason: 'one' });
    const second = await ledger.stops.stop({ ...MARA, by: 'Luis', scope, reason: 'two' });
    expect([second.stop.id, second.reason]).toEqual([first.stop.id, 'one']);
    expect(operationOf(await write('set', { id: '1' })).stage).toBe('closed');
    expect(operationOf(await write('create', { title: 'a' })).why?.code).toBe('stopped');
    await ledger.stops.stop({ ...MARA, scope: { kind: 'requester', requester: 'agent' }, reason: 'three' });
    expect((await ledger.stops.list()).length).toBe(2);
    expect(operationOf(await write('set', { id: '2' })).why).toMatchObject({ scope: 'requester' });
    expect(operationOf(await write('set', { id: '2' }, { requester: 'other' })).why?.code).toBe('answered');
    expect(records.length).toBe(2);
  });

  test('lists exactly what is out; what waited is closed when it is lifted, but for what was listed', async () => {
    const { faults, ledger, records, write } = await begin({
      facts: { create: factsOf('create', { sending: { concurrency: 2 } }) },
    });
    const gate = signal();
    faults.push({ wait: gate.promise }, { wait: gate.promise });
    const answers = ['a', 'b', 'c', 'd', 'e'].map((title) => write('create', { title }, { waitMs: 0 }));
    const made = (await Promise.all(answers)).map(operationOf);
    const ready = await waiting(
      ledger,
      made.map(({ id }) => id),
    );
    const stop = await ledger.stops.stop({ ...MARA, scope: EVERYTHING, reason: 'Migration.' });
    const inFlight = stop.inFlight.map(({ id }) => id).sort();
    expect(inFlight).toEqual(
      made
        .map(({ id }) => id)
        .filter((id) => !ready.includes(id))
        .sort(),
    );
    expect(stop.out).toMatchObject({ open: 2, landed: 0 });
    expect(stop.settledAt).toBeUndefined();
    gate.give();
    for (const id of inFlight) await until(ledger, id, ({ stage }) => stage === 'closed');
    for (const id of ready) await until(ledger, id, ({ why }) => why?.code === 'stopped');
    const settled = await ledger.stops.acknowledged(stop.stop.id);
    expect(settled.out).toMatchObject({ landed: 2, open: 0 });
    expect(settled.settledAt).toBeDefined();
    expect(settled.waiting.operations.map(({ operation }) => operation)).toEqual([...ready].sort());
    const [kept, ...others] = settled.waiting.operations;
    if (kept === undefined) throw new Error('nothing waits');
    const lifted = await ledger.stops.lift(stop.stop.id, MARA, [kept]);
    expect(lifted).toEqual({
      released: [kept.operation],
      ended: others.map((one) => one.operation),
      leftOut: [],
    });
    await until(ledger, kept.operation, ({ effect }) => effect === 'accepted');
    for (const { operation } of others) {
      const record = await ledger.readings.record(operation);
      expect([record?.operation.stage, record?.operation.why?.code]).toEqual(['closed', 'stopped']);
    }
    expect(records.length).toBe(3);
  });

  test('stops what is only observed too, also where the ledger is not asked', async () => {
    const { ledger, records, write } = await begin({
      facts: { create: factsOf('create', { mode: 'observe' }) },
    });
    await ledger.stops.stop({ ...MARA, scope: EVERYTHING, reason: 'Migration.' });
    const operation = operationOf(await write('create', { title: 'a' }));
    expect(operation).toMatchObject({ stage: 'closed', effect: 'not_sent', why: { code: 'stopped' } });
    expect((await ledger.stops.over({ destination: 'cab', tool: 'create', requester: 'agent' }))?.by).toBe(
      'Mara',
    );
    expect(records).toEqual([]);
  });

  test('of another process is heard of by the commit that would have sent', async () => {
    const { ledger, open: openAnother, records, write } = await begin({ onDisk: true });
    await write('create', { title: 'before' });
    const operator = await openAnother({ destinations: [] });
    const stop = await operator.stops.stop({ ...MARA, scope: EVERYTHING, reason: 'Now.' });
    // In the same turn: nothing has told the first process of it.
    const answer = await write('create', { title: 'after' });
    expect(operationOf(answer).why).toMatchObject({ code: 'stopped', stop: stop.stop.id });
    expect(records.length).toBe(1);
    await operator.stops.lift(stop.stop.id, MARA);
    expect(operationOf(await write('create', { title: 'later' })).effect).toBe('accepted');
    expect(ledger).toBeDefined();
  });

  test('is acknowledged by any process that sends, when whoever ordered it has gone', async () => {
    const { faults, ledger, open: openAnother, write } = await begin({ onDisk: true });
    const gate = signal();
    faults.push({ wait: gate.promise });
    await write('create', { title: 'out' }, { waitMs: 0 });
    const operator = await openAnother({ destinations: [] });
    const { stop, noMore } = await operator.stops.stop({ ...MARA, scope: EVERYTHING, reason: 'Now.' });
    expect(noMore).toEqual({ until: stop.at + 200 });
    await operator.close();
    await expect
      .poll(async () => (await ledger.stops.find(stop.id))?.noMore, { timeout: 5_000 })
      .toEqual({ at: expect.any(Number) });
    gate.give();
    await expect
      .poll(async () => (await ledger.stops.find(stop.id))?.settledAt, { timeout: 5_000 })
      .toEqual(expect.any(Number));
  });
});

async function waiting(ledger: Ledger, ids: readonly string[]): Promise<readonly string[]> {
  const ready: string[] = [];
  for (const id of ids) {
    const at = await until(
      ledger,
      id,
      ({ stage, why }) => stage === 'sending' || why?.code === 'waits_for_place',
    );
    if (at.stage === 'ready') ready.push(id);
  }
  return ready;
}

describe('while the outcome is unknown', () => {
  test.each(['stop', 'cancel'] as const)(
    'a %s leaves only look-ups: what was looked for and is not there is not sent again',
    async (order) => {
      const { faults, ledger, records, write } = await begin();
      const gate = signal();
      faults.push({ loseRequestAfter: gate.promise });
      const { id } = operationOf(await write('create_found', { title: 'a' }, { waitMs: 0 }));
      if (order === 'cancel') await ledger.stops.cancel(id, MARA);
      else await ledger.stops.stop({ ...MARA, scope: EVERYTHING, reason: 'Now.' });
      gate.give();
      const end = order === 'cancel' ? 'closed' : 'ready';
      const code = order === 'cancel' ? 'cancelled' : 'stopped';
      const after = await until(ledger, id, ({ stage, why }) => stage === end && why?.code === code);
      expect([after.effect, after.attempts.length, records.length]).toEqual(['absent', 1, 0]);
      if (order === 'cancel') return;
      const [stop] = await ledger.stops.list();
      await ledger.stops.lift(stop?.stop.id ?? '', MARA);
      const ended = await ledger.readings.record(id);
      expect([ended?.operation.stage, ended?.operation.effect]).toEqual(['closed', 'absent']);
      expect(records.length).toBe(0);
    },
  );

  test('what nobody can look up is with a person, and not repeated, under a stop or when it is lifted', async () => {
    const { faults, ledger, records, write } = await begin();
    const gate = signal();
    faults.push({ loseRequestAfter: gate.promise });
    const { id } = operationOf(await write('create', { title: 'a' }, { waitMs: 0 }));
    const { stop } = await ledger.stops.stop({ ...MARA, scope: EVERYTHING, reason: 'Now.' });
    gate.give();
    await until(ledger, id, ({ stage }) => stage === 'parked');
    await ledger.stops.lift(stop.id, MARA);
    const after = await ledger.readings.record(id);
    expect([after?.operation.stage, after?.operation.effect]).toEqual(['parked', 'unknown']);
    expect([after?.operation.attempts.length, records.length]).toEqual([1, 0]);
  });

  test('a cancel leaves only look-ups: what is found not to be there is closed', async () => {
    const { faults, ledger, records, write } = await begin();
    const gate = signal();
    faults.push({ loseReplyAfter: gate.promise });
    const sent = write('create_found', { title: 'a' }, { waitMs: 0 });
    const { id } = operationOf(await sent);
    const requested = await ledger.stops.cancel(id, MARA);
    if (requested?.cancelled !== true) throw new Error('not cancelled');
    expect(requested.acknowledgements.noMore).toEqual({ until: expect.any(Number) });
    expect(requested.acknowledgements.out.open).toBe(1);
    gate.give();
    const after = await until(ledger, id, ({ stage }) => stage === 'closed');
    expect([after.effect, records.length]).toEqual(['accepted', 1]);
    // Asked again: the same acknowledgements, further on.
    const again = await ledger.stops.cancel(id, { ...MARA, by: 'Luis' });
    if (again?.cancelled !== true) throw new Error('not cancelled');
    expect(again.acknowledgements.requestedAt).toBe(requested.acknowledgements.requestedAt);
    expect(again.acknowledgements.settledAt).toBeDefined();
    expect(again.acknowledgements.out.landed).toBe(1);
  });

  test('one that a person closed without a finding keeps the last acknowledgement open', async () => {
    const { faults, ledger, write } = await begin();
    faults.push('lose_request');
    const operation = operationOf(await write('create', { title: 'a' }));
    expect(operation.stage).toBe('parked');
    await ledger.stops.cancel(operation.id, MARA);
    await ledger.queueActs.close([{ operation: operation.id }], { ...MARA, by: 'Luis' });
    const result = await ledger.stops.cancel(operation.id, MARA);
    if (result?.cancelled !== true) throw new Error('not cancelled');
    expect(result.acknowledgements.noMore).toEqual({ at: result.acknowledgements.requestedAt });
    expect(result.acknowledgements.out.closedUnknown).toEqual([{ operation: operation.id, by: 'Luis' }]);
    expect(result.acknowledgements.settledAt).toBeUndefined();
  });
});

describe('the cancel of a run', () => {
  test('closes what was not sent, lists what was, and holds for what is asked for afterwards', async () => {
    const {
      faults,
      ledger,
      open: openAnother,
      records,
      write,
    } = await begin({
      onDisk: true,
      facts: { destroy: factsOf('destroy', { class: 'irreversible' }) },
    });
    const done = operationOf(await write('create', { title: 'done' }, run('r1')));
    const asked = operationOf(await write('destroy', { id: '1' }, run('r1')));
    const gate = signal();
    faults.push({ wait: gate.promise });
    const out = operationOf(await write('append', { line: 'out' }, { ...run('r1'), waitMs: 0 }));
    const other = operationOf(await write('destroy', { id: '1' }, run('r2')));
    const cancelled = await ledger.stops.cancelRun('r1', MARA);
    expect(cancelled?.notSent.map(({ id }) => id)).toEqual([asked.id]);
    expect(cancelled?.earlierChanges.map(({ id }) => id)).toEqual([done.id]);
    expect(cancelled?.out).toMatchObject({ open: 1 });
    expect(cancelled?.settledAt).toBeUndefined();
    expect((await ledger.readings.record(asked.id))?.operation.why).toMatchObject({
      code: 'cancelled',
      by: 'Mara',
    });
    gate.give();
    await until(ledger, out.id, ({ stage }) => stage === 'closed');
    if (cancelled === undefined) throw new Error('no such run');
    const after = await ledger.stops.runAcknowledged(cancelled);
    expect(after?.noMore).toEqual({ at: expect.any(Number) });
    expect(after?.out).toMatchObject({ open: 0, landed: 1 });
    expect(after?.settledAt).toBeDefined();
    // Nothing is in force beside the run's own row, in any process.
    expect(await ledger.stops.list()).toEqual([]);
    const elsewhere = await openAnother();
    const late = await elsewhere.write({
      destination: 'cab',
      tool: 'create',
      arguments: { title: 'late' },
      requester: 'agent',
      run: { id: 'r1' },
    });
    expect(operationOf(late)).toMatchObject({
      stage: 'closed',
      effect: 'not_sent',
      why: { code: 'cancelled' },
    });
    const repeated = operationOf(await write('destroy', { id: '1' }, run('r1')));
    expect([repeated.id, repeated.stage]).toEqual([asked.id, 'closed']);
    // The other run is nobody's to cancel here: it attached to the first, and asks anew now.
    expect(other.id).toBe(asked.id);
    const anew = operationOf(await write('destroy', { id: '1' }, run('r2')));
    expect([anew.stage, anew.previous?.operation]).toEqual(['awaiting_approval', asked.id]);
    expect(records.length).toBe(2);
    expect(await ledger.stops.cancelRun('nowhere', MARA)).toBeUndefined();
    const twice = await ledger.stops.cancelRun('r1', { ...MARA, by: 'Luis' });
    expect(twice?.requestedAt).toBe(cancelled.requestedAt);
  });
});
