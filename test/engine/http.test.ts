import { createHmac } from 'node:crypto';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { composeHttpDestination, composeLedger } from '../../src/compose.ts';
import type { JsonObject } from '../../src/core/canonical.ts';
import { FAILURES_MAX } from '../../src/core/circuit.ts';
import { deadUrl, type HttpFixture, startDestination } from '../destination/http-fixture.ts';
import { contractOf, type HttpWorld, httpWorld, TICKET, writeFiles } from './http-world.ts';
import { operationOf, until } from './setup.ts';

let server: HttpFixture;
const worlds: HttpWorld[] = [];
beforeAll(async () => {
  server = await startDestination();
});
afterEach(async () => {
  for (const world of worlds.splice(0)) await world.close();
});
afterAll(() => server.stop());

async function setup(options: Parameters<typeof httpWorld>[1] = {}): Promise<HttpWorld> {
  const world = await httpWorld(server, options);
  worlds.push(world);
  return world;
}

const SHORT = { replyTimeoutMs: 300 };

test('a write is one request, and its answer is the acknowledgement', async () => {
  const world = await setup();
  const operation = await world.write({ title: 'Move the database' });
  expect(operation).toMatchObject({ stage: 'closed', effect: 'accepted', record: { id: 'T-1' } });
  expect([world.writes(), world.records()]).toEqual([1, 1]);
});

test.each([12, 48])(
  '%d first writes at once, to a destination that nobody has connected to, are all answered',
  async (count) => {
    const world = await setup();
    const call = { destination: 'tickets', tool: 'ticket.create', requester: 'agent', run: { id: 'run-1' } };
    const writes = Array.from({ length: count }, (_, index) =>
      world.ledger.write({ ...call, arguments: { title: `ticket ${index}` } }),
    );
    const kinds = (await Promise.all(writes)).map(({ kind }) => kind);
    expect(new Set(kinds)).toEqual(new Set(['reply']));
    expect(world.records()).toBe(count);
  },
);

test('what is reviewed and stored is the request itself, with our reference in it', async () => {
  const world = await setup({ configuration: { tools: { 'ticket.create': { class: 'irreversible' } } } });
  const call = { destination: 'tickets', tool: 'ticket.create', requester: 'agent', waitMs: 0 };
  await world.ledger.write({ ...call, arguments: { title: 'a' } });
  const [operation] = await world.ledger.readings.recent(1);
  const reading = await world.ledger.readings.operation(operation?.id ?? '');
  expect(operation?.stage).toBe('awaiting_approval');
  expect(JSON.parse(reading?.payload.text ?? '')).toEqual({
    arguments: { title: 'a', reference: operation?.id },
    request: {
      method: 'POST',
      target: '/tickets',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ reference: operation?.id, title: 'a' }),
    },
  });
  expect(reading?.payload.arguments).toEqual({ title: 'a', reference: operation?.id });
  expect(world.writes()).toBe(0);
});

test('a connection that is refused is proof: it waits for the destination, and nothing is unknown', async () => {
  const world = await setup({ url: await deadUrl() });
  const operation = await world.write({ title: 'a' });
  expect(operation).toMatchObject({
    stage: 'ready',
    effect: 'not_sent',
    why: { code: 'waits_for_destination' },
    attempts: [],
  });
});

test('a reply that is cut is unknown, and the record is found by its look-up', async () => {
  const world = await setup({ fault: 'rst_after' });
  const operation = await world.write({ title: 'a' });
  expect(operation).toMatchObject({ stage: 'closed', effect: 'accepted', record: { id: 'T-1' } });
  expect(operation.evidence).toMatchObject([
    { kind: 'transport', left: 'maybe', what: 'cut' },
    { kind: 'lookup', found: 'present' },
  ]);
  expect([world.writes(), world.records()]).toEqual([1, 1]);
});

test('a look-up whose answers cannot be used says nothing of the destination: its circuit stays closed, and others are sent', async () => {
  const world = await setup({
    fault: 'lookup_no_end',
    operation: { ...TICKET, lookups: [paged(2)] },
    settings: { ...SHORT, callerWaitMs: 100 },
  });
  const first = await world.propose({ title: 'a' });
  const actor = { by: 'Mara', strength: 'same_account' } as const;
  // Two pages each: as many look-ups in a row as would open the circuit of a destination that is away, and one more.
  while (world.questions() < 2 * (FAILURES_MAX + 1)) {
    await world.ledger.queueActs.lookUp([{ operation: first }], actor);
    await setTimeout(10);
  }
  const asked = await until(world.ledger, first, () => true);
  expect(asked).toMatchObject({ stage: 'checking', effect: 'unknown' });
  expect(await world.ledger.circuits.list()).toEqual([]);
  expect(await world.write({ title: 'b' })).toMatchObject({ stage: 'closed', effect: 'accepted' });
  expect(world.writes()).toBe(2);
});

test('a write that hangs takes the last connection for writes, and it is looked up all the same', async () => {
  const configuration = { pool: { connections: 1 } };
  const world = await setup({ fault: 'drop_reply', configuration, settings: SHORT });
  const operation = await world.write({ title: 'a' });
  expect(operation).toMatchObject({ stage: 'closed', effect: 'accepted', record: { id: 'T-1' } });
  expect([world.writes(), world.records(), world.questions()]).toEqual([1, 1, 1]);
});

/** The look-up of a ticket, over so many pages at most. */
function paged(pages: number): JsonObject {
  const [lookup] = TICKET['lookups'] as readonly [JsonObject];
  const http = { ...(lookup['http'] as JsonObject), pages: { next: { link: 'next' }, pages_max: pages } };
  return { ...lookup, http };
}

test('a template that names what a call does not give is refused in a sentence, and nothing is sent', async () => {
  const world = await setup();
  const operation = await world.write({ text: 'a' });
  const reading = await world.ledger.readings.operation(operation.id);
  expect(operation).toMatchObject({ stage: 'closed', effect: 'not_sent', why: { code: 'arguments' } });
  expect(reading?.quote).toBe('the request cannot be made: {title} has no value here');
  expect(world.writes()).toBe(0);
});

test('an operation that nobody has classified waits for a person, and is sent when it is approved', async () => {
  const world = await setup({ configuration: { tools: {} } });
  const call = { destination: 'tickets', tool: 'ticket.create', requester: 'agent', waitMs: 0 };
  const { digest, id, stage } = operationOf(await world.ledger.write({ ...call, arguments: { title: 'a' } }));
  expect([stage, world.writes()]).toEqual(['awaiting_approval', 0]);
  const decision = { operation: id, digest, by: 'Mara', strength: 'same_account' } as const;
  expect(await world.ledger.decideReview({ ...decision, kind: 'approved' })).toMatchObject({ decided: true });
  await until(world.ledger, id, (operation) => operation.stage === 'closed');
  expect(world.records()).toBe(1);
});

test('a secret that is not there keeps a write waiting, and says which', async () => {
  const world = await setup({
    configuration: {
      headers: { Authorization: 'Bearer {token}' },
      secrets: { token: { env: 'TOKEN_THAT_IS_NOT_SET' } },
    },
  });
  const operation = await world.write({ title: 'a' });
  expect(operation.why).toEqual({
    code: 'waits_for_destination',
    detail: 'the secret token is not there: the variable TOKEN_THAT_IS_NOT_SET is not set',
  });
  expect(world.writes()).toBe(0);
});

test('no secret is in the ledger: not in the payload, not in the answer, not in the history', async () => {
  const canary = 'canary-8255-canary';
  const world = await setup({
    configuration: { headers: { Authorization: 'Bearer {token}' }, secrets: { token: { env: 'TOKEN' } } },
    environment: { TOKEN: canary },
  });
  const { id } = await world.write({ title: `mine is ${canary}` });
  const reading = await world.ledger.readings.operation(id);
  const history = await world.ledger.readings.history(id);
  expect(world.records()).toBe(1);
  expect(JSON.stringify([reading?.reply, history, reading?.operation])).not.toContain(canary);
  expect(reading?.reply?.body).toContain('[the secret token]');
});

test('a conditional write changes what it was meant for, and nothing that has changed since', async () => {
  const evidence = { grade: 'documented' };
  const world = await setup({
    operation: {
      ...TICKET,
      effect: 'update',
      identity: ['title', 'version'],
      http: {
        method: 'PUT',
        path: '/items/{title}',
        headers: { 'If-Match': '{version}' },
        body: { state: 'closed', reference: '{$stamp}' },
      },
      acknowledgement: { version: { from: 'headers', path: '/etag' } },
      guards: [
        {
          kind: 'precondition',
          carrier: { in: 'header', name: 'If-Match', encoding: 'etag' },
          scope: ['resource'],
          window: { kind: 'resource_lifetime' },
          same: { result: 'conflict' },
          different: { result: 'conflict' },
          in_flight: { result: 'serialised' },
          evidence,
        },
      ],
      outcomes: [{ when: { status: [412] }, means: 'not_applied', evidence }],
    },
  });
  const first = await world.write({ title: 'a', version: '0' });
  expect(first).toMatchObject({ stage: 'closed', effect: 'accepted', record: { version: '"1"' } });
  const stale = await world.write({ title: 'a', version: '0' });
  expect(stale).toMatchObject({ stage: 'closed', effect: 'rejected' });
  const next = await world.write({ title: 'a', version: '"1"' });
  expect(next).toMatchObject({ effect: 'accepted', record: { version: '"2"' } });
  expect([world.writes(), world.records()]).toEqual([3, 2]);
});

const GUARD = {
  kind: 'request_key',
  carrier: { in: 'header', name: 'Repeatability-Request-ID', encoding: 'uuid' },
  scope: ['endpoint'],
  window: { kind: 'unknown', from: 'client_timestamp', after: 'rejected' },
  same: { result: 'replays_original' },
  different: { result: 'rejected' },
  in_flight: { result: 'unknown' },
  evidence: { grade: 'documented' },
};

test('a repeat carries the same key, the same bytes and the same instant of its first sending', async () => {
  const headers = { 'Repeatability-First-Sent': '{$first_sent}' };
  const operation = { ...TICKET, guards: [GUARD], http: { ...(TICKET['http'] as object), headers } };
  const world = await setup({ fault: 'rst_before', operation });
  expect(await world.write({ title: 'a' })).toMatchObject({ stage: 'closed', effect: 'accepted' });
  const [first, second] = world.sent().map((one) => ({
    key: one.headers?.['repeatability-request-id'],
    at: one.headers?.['repeatability-first-sent'],
    length: one.headers?.['content-length'],
  }));
  expect(second).toEqual(first);
  expect(first?.key).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-4/);
  expect(first?.at).toMatch(/^\w{3}, \d{2} \w{3} \d{4} \d{2}:\d{2}:\d{2} GMT$/);
  expect([world.writes(), world.records()]).toEqual([2, 1]);
});

describe('work that goes on after 202', () => {
  const operation = {
    ...TICKET,
    completion: {
      kind: 'accepted_then_poll',
      handle: { in: 'body', name: '/job/id' },
      done: ['done'],
      failed: ['failed'],
      http: {
        path: '/jobs/{$record}',
        state: '/state',
        record: '/ticket/id',
        failed_means: 'not_applied',
        evidence: { grade: 'drilled' },
      },
    },
  };

  test.each([
    ['accepted_done', { stage: 'closed', effect: 'accepted', record: { id: 'T-1' } }, 1],
    ['accepted_failed', { stage: 'closed', effect: 'rejected' }, 0],
  ])('%s: it is asked by its handle until it has ended', async (fault, end, records) => {
    const world = await setup({ fault, operation });
    expect(await world.write({ title: 'a' })).toMatchObject(end);
    expect([world.writes(), world.records()]).toEqual([1, records]);
  });

  test('a lost answer leaves no handle: the look-up by our reference is asked', async () => {
    const world = await setup({ fault: 'rst_after', operation });
    const found = await world.write({ title: 'a' });
    expect(found).toMatchObject({ stage: 'closed', effect: 'accepted', record: { id: 'T-1' } });
  });

  test('a lost answer where only the handle could be asked by goes to a person at once', async () => {
    const world = await setup({ fault: 'rst_after', operation: { ...operation, lookups: [] } });
    const parked = await world.write({ title: 'a' });
    expect(parked).toMatchObject({ stage: 'parked', effect: 'unknown', why: { code: 'no_lookup' } });
  });
});

describe('notices', () => {
  const SECRET = `whsec_${Buffer.from('a secret of the tests').toString('base64')}`;
  const operation = {
    ...TICKET,
    lookups: [],
    notices: [
      {
        names: { by: 'stamp', path: '/data/reference' },
        when: [{ path: '/type', equals: 'ticket.created' }],
        means: 'applied',
        evidence: { grade: 'documented' },
      },
      {
        names: { by: 'stamp', path: '/data/reference' },
        when: [{ path: '/type', equals: 'ticket.refused' }],
        means: 'not_applied',
        evidence: { grade: 'documented' },
      },
    ],
  };
  const configuration = { notices: { secret: 'signing' }, secrets: { signing: { env: 'SIGNING' } } };
  const told = (body: object, { id = 'msg_1', secret = SECRET } = {}) => {
    const text = Buffer.from(JSON.stringify(body));
    const timestamp = String(Math.floor(Date.now() / 1000));
    const key = Buffer.from(secret.slice(6), 'base64');
    const signature = createHmac('sha256', key)
      .update(`${id}.${timestamp}.${text.toString()}`)
      .digest('base64');
    return {
      destination: 'tickets',
      headers: { 'Webhook-Id': id, 'Webhook-Timestamp': timestamp, 'Webhook-Signature': `v1,${signature}` },
      body: text,
    };
  };
  const lost = () =>
    setup({
      fault: 'drop_reply',
      operation,
      configuration,
      environment: { SIGNING: SECRET },
      settings: SHORT,
    });

  test('one that comes late settles what a person was asked about, and is recorded once', async () => {
    const world = await lost();
    const parked = await world.write({ title: 'a' });
    expect(parked).toMatchObject({ stage: 'parked', effect: 'unknown' });
    const notice = told({ type: 'ticket.created', data: { reference: parked.id } });
    expect(await world.ledger.notice(notice)).toEqual({ recorded: true, operation: parked.id, again: false });
    expect(await world.ledger.notice(notice)).toEqual({ recorded: true, operation: parked.id, again: true });
    const record = await world.ledger.readings.record(parked.id);
    expect(record?.operation).toMatchObject({ stage: 'closed', effect: 'accepted' });
    const notices = record?.operation.evidence.filter(({ kind }) => kind === 'notice');
    expect(notices).toMatchObject([{ means: 'accepted', id: 'msg_1' }]);
  });

  test('one that says that nothing was done makes it rejected', async () => {
    const world = await lost();
    const { id } = await world.write({ title: 'a' });
    await world.ledger.notice(told({ type: 'ticket.refused', data: { reference: id } }));
    const record = await world.ledger.readings.record(id);
    expect(record?.operation).toMatchObject({ stage: 'closed', effect: 'rejected' });
  });

  test('one that says it of one of two tries says nothing of the other', async () => {
    const window = { kind: 'duration', at_least: 'P1D', after: 'executes_again' };
    const counted = { ...GUARD, window, in_flight: { result: 'waits' }, strength: 'enforced' };
    const world = await setup({
      fault: 'rst_before',
      operation: { ...operation, guards: [counted] },
      configuration,
      environment: { SIGNING: SECRET },
    });
    const { id, ...written } = await world.write({ title: 'a' });
    expect([written.effect, world.writes(), world.records()]).toEqual(['accepted', 2, 1]);
    const notice = told({ type: 'ticket.refused', data: { reference: id } });
    expect(await world.ledger.notice(notice)).toMatchObject({ recorded: true, again: false });
    const record = await world.ledger.readings.record(id);
    expect(record?.operation).toMatchObject({ stage: 'closed', effect: 'accepted' });
    expect(record?.operation.evidence).toContainEqual(
      expect.objectContaining({ kind: 'notice', means: 'rejected' }),
    );
  });

  test('what is not the destination’s own, names nothing or says nothing is not recorded', async () => {
    const world = await lost();
    const { id } = await world.write({ title: 'a' });
    const body = { type: 'ticket.created', data: { reference: id } };
    const forged = told(body, { secret: `whsec_${Buffer.from('another').toString('base64')}` });
    expect(await world.ledger.notice(forged)).toMatchObject({ recorded: false, because: 'refused' });
    expect(await world.ledger.notice({ ...told(body), destination: 'nobody' })).toMatchObject({
      because: 'refused',
    });
    const other = told({ ...body, data: { reference: 'op_01JC3V9R7T5N2QX8W4M6K0ZABC' } });
    expect(await world.ledger.notice(other)).toMatchObject({ because: 'names_nothing' });
    const odd = told({ ...body, type: 'ticket.seen' });
    expect(await world.ledger.notice(odd)).toMatchObject({ because: 'says_nothing' });
    const record = await world.ledger.readings.record(id);
    expect(record?.operation).toMatchObject({ stage: 'parked', effect: 'unknown' });
  });
});

test('what was approved is what leaves, whatever the contract says by then', async () => {
  const data = join(server.folder, 'data');
  const folder = join(server.folder, 'files');
  const url = server.url();
  const cell = new URL(url).pathname;
  const configuration = {
    url,
    mode: 'strict',
    tools: { 'ticket.create': { class: 'ordinary' } },
  };
  const open = async (operation: JsonObject) => {
    const file = writeFiles(folder, contractOf(operation), configuration);
    return composeLedger({ data, http: [await composeHttpDestination(file)] });
  };
  const call = { destination: 'tickets', tool: 'ticket.create', requester: 'agent', waitMs: 0 };
  let ledger = await open(TICKET);
  try {
    const { id, digest } = operationOf(await ledger.write({ ...call, arguments: { title: 'reviewed' } }));
    await ledger.close();
    const http = TICKET['http'] as JsonObject;
    ledger = await open({ ...TICKET, http: { ...http, body: { title: 'another text', admin: true } } });
    await ledger.decideReview({
      operation: id,
      digest,
      kind: 'approved',
      by: 'Mara',
      strength: 'same_account',
    });
    await until(ledger, id, ({ attempts, stage }) => attempts.length > 0 && stage !== 'sending');
    const sent = server.log('write').flatMap(({ body, path }) => (path?.startsWith(cell) ? [body] : []));
    expect(sent).toEqual([{ reference: id, title: 'reviewed' }]);
  } finally {
    await ledger.close();
  }
});

test('many writes over few connections are one request each', async () => {
  const world = await setup({ configuration: { pool: { connections: 2 } } });
  const ends = await Promise.all(
    Array.from({ length: 60 }, (_, index) => world.write({ title: `t-${index}` })),
  );
  expect(new Set(ends.map(({ effect, stage }) => `${stage} ${effect}`))).toEqual(
    new Set(['closed accepted']),
  );
  expect(new Set(ends.map(({ record }) => record?.id)).size).toBe(60);
  expect([world.writes(), world.records()]).toEqual([60, 60]);
});
