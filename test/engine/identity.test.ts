import { afterEach, describe, expect, test } from 'vitest';
import type { ContractOperation, ToolFacts } from '../../src/core/contract.ts';
import type { Operation } from '../../src/core/operation.ts';
import { DestinationError, functionDestination } from '../../src/destination/function-destination.ts';
import type { Answer } from '../../src/engine/answers.ts';
import type { Ledger } from '../../src/engine/ledger.ts';
import { type Fixture, factsOf, lookedUpBy, operationOf, setup, signal, until } from './setup.ts';

let fixture: Fixture;

afterEach(async () => {
  await fixture.close();
});

const RUN = { run: { id: 'cutover-1' } };
const HOUR_MS = 3_600_000;

/** A contract by which an error of the tool means that nothing was done. */
const REFUSES: ContractOperation = lookedUpBy({
  lookups: [],
  outcomes: [{ when: { kind: ['tool_error'] }, means: 'not_applied', evidence: { grade: 'source' } }],
});

async function decide(ledger: Ledger, operation: Operation, kind: 'approved' | 'denied'): Promise<void> {
  const decided = await ledger.decideReview({
    operation: operation.id,
    digest: operation.digest,
    kind,
    by: 'owner',
    strength: 'same_account',
  });
  expect(decided.decided).toBe(true);
}

describe('a question about identity that nobody answered in time', () => {
  const TITLE_ONLY = { facts: { create: factsOf('create', { identity: ['title'] }) } };

  async function lapsed(ask: () => Promise<Answer>): Promise<Operation> {
    const asked = operationOf(await ask());
    expect(asked.stage).toBe('awaiting_approval');
    fixture.moveClock(9 * HOUR_MS);
    return until(fixture.ledger, asked.id, (operation) => operation.stage === 'closed');
  }

  test('[S16] is asked again by an equal call, which is never sent unasked (D6)', async () => {
    fixture = await setup();
    await fixture.write('create', { title: 'Freeze' }, RUN);
    fixture.moveClock(97 * HOUR_MS);
    const asked = await lapsed(() => fixture.write('create', { title: 'Freeze' }, RUN));
    for (let call = 0; call < 3; call += 1) {
      const again = operationOf(await fixture.write('create', { title: 'Freeze' }, RUN));
      expect(again).toMatchObject({
        id: asked.id,
        stage: 'awaiting_approval',
        review: { question: 'too_old' },
      });
    }
    expect(fixture.records).toHaveLength(1);
    await decide(fixture.ledger, operationOf(await fixture.write('create', { title: 'Freeze' }, RUN)), 'approved');
    await until(fixture.ledger, asked.id, (operation) => operation.effect === 'accepted');
    expect(fixture.records).toHaveLength(2);
  });

  test('is asked again by a call with another text too', async () => {
    fixture = await setup(TITLE_ONLY);
    await fixture.write('create', { title: 'Freeze', text: 'one' }, RUN);
    fixture.moveClock(97 * HOUR_MS);
    await lapsed(() => fixture.write('create', { title: 'Freeze', text: 'one' }, RUN));
    const other = operationOf(await fixture.write('create', { title: 'Freeze', text: 'two' }, RUN));
    expect(other).toMatchObject({ stage: 'awaiting_approval', review: { question: 'too_old' } });
    expect(fixture.records).toHaveLength(1);
  });

  test('is asked again however often it lapses (I14)', async () => {
    fixture = await setup();
    await fixture.write('create', { title: 'Freeze' }, RUN);
    fixture.moveClock(97 * HOUR_MS);
    for (let round = 0; round < 22; round += 1) {
      await lapsed(() => fixture.write('create', { title: 'Freeze' }, RUN));
    }
    expect(fixture.records).toHaveLength(1);
  });

  test('stays one about the same work of another run', async () => {
    fixture = await setup();
    await fixture.write('create', { title: 'Freeze' }, { run: { id: 'mara' } });
    const luis = { run: { id: 'luis' } };
    await lapsed(() => fixture.write('create', { title: 'Freeze' }, luis));
    const again = operationOf(await fixture.write('create', { title: 'Freeze' }, luis));
    expect(again).toMatchObject({ stage: 'awaiting_approval', review: { question: 'same_work' } });
    expect(fixture.records).toHaveLength(1);
  });
});

describe('the same write in several runs', () => {
  test('one that was denied does not hide one that was made', async () => {
    fixture = await setup();
    const ask = (id: string) => fixture.write('create', { title: 'Freeze' }, { run: { id } });
    await ask('first');
    for (const run of ['second', 'third', 'fourth']) {
      const asked = operationOf(await ask(run));
      expect(asked).toMatchObject({ stage: 'awaiting_approval', review: { question: 'same_work' } });
      await decide(fixture.ledger, asked, 'denied');
    }
    expect(fixture.records).toHaveLength(1);
  });

  test('what stopped on its way long ago, often, does not hide what was made a moment ago', async () => {
    fixture = await setup();
    const ask = (id: string) => fixture.write('create', { title: 'Freeze' }, { run: { id } });
    for (let week = 0; week < 16; week += 1) {
      fixture.faults.push('refuse');
      expect((await ask(`week-${week}`)).kind).toBe('reply');
      fixture.moveClock(168 * HOUR_MS);
    }
    expect((await ask('this week')).kind).toBe('reply');
    expect(operationOf(await ask('also this week')).review?.question).toBe('same_work');
    expect(fixture.records).toHaveLength(17);
  });

  test('[S3] what is unknown is found by another run long after its window, and sent by none (I4)', async () => {
    fixture = await setup();
    fixture.faults.push('lose_reply');
    const lost = operationOf(await fixture.write('create', { title: 'Freeze' }, { run: { id: 'mara' } }));
    expect(lost).toMatchObject({ stage: 'parked', effect: 'unknown' });
    fixture.moveClock(72 * HOUR_MS);
    for (const run of ['luis', 'ines']) {
      const other = await fixture.write('create', { title: 'Freeze' }, { run: { id: run } });
      expect(other).toMatchObject({ kind: 'state', otherRun: 'agent', operation: { id: lost.id } });
    }
    expect(fixture.records).toHaveLength(1);
  });

  test('what waits for a person is found by another run after its window', async () => {
    fixture = await setup({ settings: { approvalLifetimeMs: 100 * HOUR_MS } });
    const asked = operationOf(await fixture.write('destroy', { vm: 'a' }, { run: { id: 'mara' } }));
    fixture.moveClock(72 * HOUR_MS);
    const other = await fixture.write('destroy', { vm: 'a' }, { run: { id: 'luis' } });
    expect(operationOf(other).id).toBe(asked.id);
    await decide(fixture.ledger, asked, 'approved');
    await until(fixture.ledger, asked.id, (operation) => operation.stage === 'closed');
    expect(fixture.records).toHaveLength(1);
  });

  test('a caller of another run that leaves takes nothing back', async () => {
    fixture = await setup();
    const gate = signal();
    const destination = functionDestination({
      name: 'cab',
      tools: {
        create: async (args, context) => {
          if (fixture.records.length > 0) throw new Error('Sent twice.');
          await gate.promise;
          if (gate.isFirst()) throw context.notSent('connection refused');
          fixture.records.push(args);
          return {};
        },
      },
    });
    const ledger = await fixture.open({ destinations: [destination] });
    const call = { destination: 'cab', tool: 'create', arguments: { title: 'Freeze' } };
    const mara = ledger.write({ ...call, requester: 'mara', run: { id: 'mara' } });
    const controller = new AbortController();
    const luis = ledger.write({
      ...call,
      requester: 'luis',
      run: { id: 'luis' },
      signal: controller.signal,
    });
    await new Promise((resolve) => setImmediate(resolve));
    controller.abort();
    expect(operationOf(await luis).requester).toBe('mara');
    gate.give();
    expect(operationOf(await mara)).toMatchObject({ effect: 'accepted' });
    expect(operationOf(await mara).cancelRequestedAt).toBeUndefined();
    expect(fixture.records).toHaveLength(1);
  });
});
