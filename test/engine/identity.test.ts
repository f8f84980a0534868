import { afterEach, describe, expect, test } from 'vitest';
import type { JsonObject } from '../../src/core/canonical.ts';
import type { ContractOperation, ToolFacts } from '../../src/core/contract.ts';
import type { Operation } from '../../src/core/operation.ts';
import { DestinationError, functionDestination } from '../../src/destination/function-destination.ts';
import type { Destination } from '../../src/destination/port.ts';
import type { Answer } from '../../src/engine/answers.ts';
import type { Ledger } from '../../src/engine/ledger.ts';
import { type Fixture, factsOf, lookedUpBy, operationOf, setup, signal, until } from './setup.ts';
import { inEveryTick, memoryStore } from './stores.ts';

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
    strength: 'passphrase',
  });
  expect(decided.decided).toBe(true);
}

describe('a question about identity that nobody answered in time', () => {
  let ledger: Ledger;

  /** Looked through in every tick, so that a review lapses as soon as it may. */
  async function opened(facts: { readonly [tool: string]: ToolFacts } = {}): Promise<void> {
    fixture = await setup({ facts });
    ledger = await fixture.open({ store: await memoryStore(inEveryTick) });
  }

  const write = (args: JsonObject, more: { readonly run: { readonly id: string } }) =>
    ledger.write({ destination: 'cab', tool: 'create', arguments: args, requester: 'agent', ...more });

  async function lapsed(ask: () => Promise<Answer>): Promise<Operation> {
    const asked = operationOf(await ask());
    expect(asked.stage).toBe('awaiting_approval');
    fixture.moveClock(9 * HOUR_MS);
    const ended = await until(ledger, asked.id, (operation) => operation.stage === 'closed');
    // The first equal call is told that; only the next one asks anew.
    expect(operationOf(await ask())).toMatchObject({ id: asked.id, stage: 'closed', effect: 'not_sent' });
    return ended;
  }

  test('[S16] is asked again by an equal call, which is never sent unasked (D6)', async () => {
    await opened();
    await write({ title: 'Freeze' }, RUN);
    fixture.moveClock(97 * HOUR_MS);
    const asked = await lapsed(() => write({ title: 'Freeze' }, RUN));
    for (let call = 0; call < 3; call += 1) {
      const again = operationOf(await write({ title: 'Freeze' }, RUN));
      expect(again).toMatchObject({
        id: asked.id,
        stage: 'awaiting_approval',
        review: { question: 'too_old' },
      });
    }
    expect(fixture.records).toHaveLength(1);
    await decide(ledger, operationOf(await write({ title: 'Freeze' }, RUN)), 'approved');
    await until(ledger, asked.id, (operation) => operation.effect === 'accepted');
    expect(fixture.records).toHaveLength(2);
  });

  test('is asked again by a call with another text too', async () => {
    await opened({ create: factsOf('create', { identity: ['title'] }) });
    const made = operationOf(await write({ title: 'Freeze', text: 'one' }, RUN));
    fixture.moveClock(97 * HOUR_MS);
    await lapsed(() => write({ title: 'Freeze', text: 'one' }, RUN));
    const other = operationOf(await write({ title: 'Freeze', text: 'two' }, RUN));
    expect(other).toMatchObject({ stage: 'awaiting_approval', review: { question: 'too_old' } });
    // The person is shown the write that was made, not the question that lapsed.
    expect(other.previous?.operation).toBe(made.id);
    expect(fixture.records).toHaveLength(1);
  });

  test('is asked again however often it lapses (I14)', async () => {
    await opened();
    await write({ title: 'Freeze' }, RUN);
    fixture.moveClock(97 * HOUR_MS);
    for (let round = 0; round < 22; round += 1) {
      await lapsed(() => write({ title: 'Freeze' }, RUN));
    }
    expect(fixture.records).toHaveLength(1);
  });

  test('stays one about the same work of another run', async () => {
    await opened();
    await write({ title: 'Freeze' }, { run: { id: 'mara' } });
    const luis = { run: { id: 'luis' } };
    await lapsed(() => write({ title: 'Freeze' }, luis));
    const again = operationOf(await write({ title: 'Freeze' }, luis));
    expect(again).toMatchObject({ stage: 'awaiting_approval', review: { question: 'same_work' } });
    expect(fixture.records).toHaveLength(1);
  });
});

describe('the same write in several runs', () => {
  test('those that were denied do not hide the one that was made', async () => {
    fixture = await setup();
    const ask = (id: string) => fixture.write('create', { title: 'Freeze' }, { run: { id } });
    await ask('first');
    for (let run = 1; run <= 40; run += 1) {
      const asked = operationOf(await ask(`run-${run}`));
      expect(asked).toMatchObject({ stage: 'awaiting_approval', review: { question: 'same_work' } });
      await decide(fixture.ledger, asked, 'denied');
    }
    expect(fixture.records).toHaveLength(1);
  });

  test('what stopped on its way long ago, often, does not hide what was made a moment ago', async () => {
    fixture = await setup();
    let toolClass: ToolFacts['class'] = 'irreversible';
    const ledger = await fixture.open({ factsFor: () => factsOf('create', { class: toolClass }) });
    const ask = (id: string) =>
      ledger.write({
        destination: 'cab',
        tool: 'create',
        arguments: { title: 'Freeze' },
        requester: 'agent',
        run: { id },
      });
    for (let week = 0; week < 20; week += 1) {
      await decide(ledger, operationOf(await ask(`week-${week}`)), 'denied');
      fixture.moveClock(168 * HOUR_MS);
    }
    toolClass = 'ordinary';
    expect((await ask('this week')).kind).toBe('reply');
    expect(operationOf(await ask('also this week')).review?.question).toBe('same_work');
    expect(fixture.records).toHaveLength(1);
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
    fixture = await setup();
    const asked = operationOf(await fixture.write('destroy', { vm: 'a' }, { run: { id: 'mara' } }));
    fixture.moveClock(6 * HOUR_MS);
    const other = await fixture.write('destroy', { vm: 'a' }, { run: { id: 'luis' } });
    expect(operationOf(other).id).toBe(asked.id);
    await decide(fixture.ledger, asked, 'approved');
    await until(fixture.ledger, asked.id, (operation) => operation.stage === 'closed');
    expect(fixture.records).toHaveLength(1);
  });
});

describe('a replay', () => {
  const clicks = (call: string) =>
    fixture.write('append', { line: 'x' }, { ...RUN, replays: [`call:${call}`] });

  test('[S16] of an earlier occurrence is answered with that one, in any order', async () => {
    fixture = await setup();
    const ids = new Map<string, string>();
    for (const call of ['1', '2', '3']) ids.set(call, operationOf(await clicks(call)).id);
    for (const call of ['1', '2', '3', '2', '1'])
      expect(operationOf(await clicks(call)).id).toBe(ids.get(call));
    expect(fixture.records).toHaveLength(3);
  });

  test('of an earlier occurrence is answered with that one while a later one is open', async () => {
    fixture = await setup();
    const first = operationOf(await clicks('1'));
    fixture.faults.push('lose_reply');
    const lost = operationOf(await clicks('2'));
    expect(lost).toMatchObject({ stage: 'parked', effect: 'unknown' });
    expect(operationOf(await clicks('1')).id).toBe(first.id);
    expect(operationOf(await clicks('2')).id).toBe(lost.id);
    expect(fixture.records).toHaveLength(2);
  });
});

describe('a changed proposal on a `single` step', () => {
  const STEP = { run: { id: 'cutover-1', step: 'dns', single: true } };
  const MOVE: ToolFacts = factsOf('move', {
    repeat: 'state',
    target: { type: 'record', id: ['{id}'] },
    operation: REFUSES,
  });

  /** A destination that refuses once what it is told to, and is late with its reply to what it is told to. */
  async function moving(refuses: string[], isLateWith: string[] = []) {
    fixture = await setup();
    const late = signal();
    const sent: string[] = [];
    const answer = (tool: string) => async (args: { readonly id: string; readonly to: string }) => {
      sent.push(args.to);
      const isRefused = refuses[0] === args.to;
      if (isRefused) refuses.shift();
      if (isRefused) throw new DestinationError('refused');
      if (isLateWith.includes(args.to)) await late.promise;
      return { content: [{ type: 'text', text: tool }] };
    };
    const ledger = await fixture.open({
      destinations: [
        functionDestination({ name: 'cab', tools: { move: answer('move'), ask: answer('ask') } }),
      ],
      factsFor: (_destination, tool) => (tool === 'ask' ? factsOf('ask', { class: 'irreversible' }) : MOVE),
      settings: { replyTimeoutMs: 50, callerWaitMs: 100 },
      store: await memoryStore(inEveryTick),
    });
    const write = async (to: string, tool = 'move', run: typeof STEP | { id: string } = STEP) =>
      operationOf(
        await ledger.write({
          destination: 'cab',
          tool,
          arguments: { id: to.slice(0, 1), to },
          requester: 'agent',
          run: 'run' in run ? run.run : run,
          waitMs: 2_000,
        }),
      );
    return { late, ledger, sent, write };
  }

  test('withdraws what waits for a person when the first proposal is made again (D6)', async () => {
    const { ledger, sent, write } = await moving(['a']);
    const refused = await write('a');
    expect(refused).toMatchObject({ stage: 'closed', effect: 'rejected' });
    const asked = await write('b', 'ask');
    expect(asked).toMatchObject({ stage: 'awaiting_approval', supersedes: refused.id });
    const again = await write('a');
    expect(again).toMatchObject({ id: refused.id, effect: 'accepted', supersedes: asked.id });
    expect(await until(ledger, asked.id, (operation) => operation.stage === 'closed')).toMatchObject({
      effect: 'not_sent',
      why: { code: 'replaced', by: refused.id },
    });
    expect(sent).toEqual(['a', 'a']);
  });

  test('waits for what is unknown when the first proposal is made again (D6)', async () => {
    const { late, ledger, sent, write } = await moving(['a'], ['b']);
    const refused = await write('a');
    const lost = await write('b');
    expect(lost).toMatchObject({ stage: 'parked', effect: 'unknown' });
    expect(await write('a')).toMatchObject({
      id: refused.id,
      stage: 'ready',
      why: { code: 'waits_for_predecessor', operation: lost.id },
    });
    expect(sent).toEqual(['a', 'b']);
    late.give();
    await until(ledger, refused.id, (operation) => operation.effect === 'accepted');
    expect((await ledger.readings.record(lost.id))?.operation).toMatchObject({ effect: 'accepted' });
    expect(sent).toEqual(['a', 'b', 'a']);
  });

  test('that waits for the one before it keeps nobody from its own target', async () => {
    const { sent, write } = await moving([], ['a']);
    const lost = await write('a');
    const changed = await write('b1');
    expect(changed).toMatchObject({
      stage: 'ready',
      why: { code: 'waits_for_predecessor', operation: lost.id },
    });
    expect(await write('b2', 'move', { id: 'cutover-2' })).toMatchObject({ effect: 'accepted' });
    expect(sent).toEqual(['a', 'b2']);
  });
});

test('an equal call that comes at once after a refusal is given the reply of its own round', async () => {
  fixture = await setup();
  let sends = 0;
  const create = (args: JsonObject): unknown => {
    sends += 1;
    if (sends === 1) throw new DestinationError(said('not now'));
    fixture.records.push(args);
    return said('created');
  };
  const ledger = await fixture.open({
    destinations: [functionDestination({ name: 'cab', tools: { create } })],
    factsFor: () => factsOf('create', { operation: REFUSES }),
  });
  const write = () =>
    ledger.write({
      destination: 'cab',
      tool: 'create',
      arguments: { title: 'Freeze' },
      requester: 'agent',
      ...RUN,
    });
  const refused = await write();
  expect(refused).toMatchObject({ kind: 'reply', operation: { effect: 'rejected' } });
  const again = await write();
  expect(again).toMatchObject({ kind: 'reply', reply: { body: JSON.stringify(said('created')) } });
  expect(operationOf(again)).toMatchObject({ id: operationOf(refused).id, round: 2, effect: 'accepted' });
  expect((await write()).kind).toBe('already_exists');
  expect(fixture.records).toHaveLength(1);
});

describe('a call with another text outside the business parameters', () => {
  const facts = factsOf('create', { identity: ['title'], operation: REFUSES });

  test('after a refusal is an operation of its own, answered with its own reply', async () => {
    fixture = await setup();
    const sent: string[] = [];
    const ledger = await fixture.open({
      factsFor: () => facts,
      destinations: [
        functionDestination({
          name: 'cab',
          tools: {
            create: async ({ text }: { readonly text: string }) => {
              sent.push(text);
              if (text === 'too long') throw new DestinationError(said('the text is too long'));
              return said(`created ${text}`);
            },
          },
        }),
      ],
    });
    const write = (text: string) =>
      ledger.write({
        destination: 'cab',
        tool: 'create',
        arguments: { title: 'Freeze', text },
        requester: 'agent',
        ...RUN,
      });
    const refused = operationOf(await write('too long'));
    const corrected = await write('short');
    expect(corrected).toMatchObject({
      kind: 'reply',
      reply: { body: JSON.stringify(said('created short')) },
    });
    expect(operationOf(corrected).previous).toEqual({ operation: refused.id, relation: 'occurrence' });
    expect(await write('shorter')).toMatchObject({ kind: 'already_exists', notApplied: ['text'] });
    expect(sent).toEqual(['too long', 'short']);
  });

  test('beside one with the first text leads to one record: whichever is stored first is the answer to both (I2)', async () => {
    fixture = await setup();
    const sent: string[] = [];
    const create = async ({ text }: { readonly text: string }) => {
      sent.push(text);
      if (sent.length === 1) throw new DestinationError(said('not now'));
      return said(`created ${text}`);
    };
    const ledger = await fixture.open({
      factsFor: () => facts,
      destinations: [functionDestination({ name: 'cab', tools: { create } })],
    });
    const write = (text: string) =>
      ledger.write({
        destination: 'cab',
        tool: 'create',
        arguments: { title: 'Freeze', text },
        requester: 'agent',
        ...RUN,
      });
    await write('one');
    const [one, two] = (await Promise.all([write('one'), write('two')])).map(operationOf);
    expect(one?.id).toBe(two?.id);
    expect(sent).toHaveLength(2);
  });

  test('after a withdrawn one sends the new text, and never the old one', async () => {
    fixture = await setup();
    let isUp = false;
    const sent: string[] = [];
    const functions = functionDestination({
      name: 'cab',
      tools: {
        create: async ({ text }: { readonly text: string }) => {
          sent.push(text);
          return said(`created ${text}`);
        },
      },
    });
    const destination: Destination = {
      name: 'cab',
      isConnected: () => isUp,
      connect: async () => (isUp ? { connected: true } : { connected: false, detail: 'refused' }),
      send: (request) => functions.send(request),
      ask: (request) => functions.ask(request),
      close: () => functions.close(),
    };
    const ledger = await fixture.open({ factsFor: () => facts, destinations: [destination] });
    const controller = new AbortController();
    const write = (text: string, more: { readonly signal?: AbortSignal } = {}) =>
      ledger.write({
        destination: 'cab',
        tool: 'create',
        arguments: { title: 'Freeze', text },
        requester: 'agent',
        ...RUN,
        ...more,
      });
    const waits = operationOf(await write('one', { signal: controller.signal }));
    expect(waits.why?.code).toBe('waits_for_destination');
    controller.abort();
    const withdrawn = operationOf(await write('one', { signal: controller.signal }));
    await until(ledger, withdrawn.id, (operation) => operation.why?.code === 'withdrawn_by_caller');
    isUp = true;
    expect(await write('two')).toMatchObject({
      kind: 'reply',
      reply: { body: JSON.stringify(said('created two')) },
    });
    expect(sent).toEqual(['two']);
  });
});

describe('many calls at once', () => {
  test('[S21] 140 equal ones with call ids of their own are one operation and one record (I2)', async () => {
    fixture = await setup();
    const answers = await Promise.all(
      Array.from({ length: 140 }, (_, call) =>
        fixture.write('create', { title: 'Freeze' }, { ...RUN, replays: [`call:${call}`] }),
      ),
    );
    expect(new Set(answers.map((answer) => operationOf(answer).id)).size).toBe(1);
    expect(fixture.records).toHaveLength(1);
  });

  test('140 different ones for one locked target are all recorded, and wait', async () => {
    fixture = await setup();
    fixture.faults.push('lose_reply');
    const lost = operationOf(await fixture.write('set', { id: 'x', value: 0 }, RUN));
    const answers = await Promise.all(
      Array.from({ length: 140 }, (_, value) => fixture.write('set', { id: 'x', value: value + 1 }, RUN)),
    );
    for (const answer of answers) {
      expect(operationOf(answer)).toMatchObject({ stage: 'ready', why: { code: 'waits_for_operation' } });
    }
    expect(operationOf(answers[0] as Answer).why).toMatchObject({ operation: lost.id });
    expect(fixture.records).toHaveLength(1);
  });
});

function said(text: string) {
  return { content: [{ type: 'text', text }] };
}
