import { afterEach, describe, expect, test } from 'vitest';
import type { Destination, SendReport, SendRequest } from '../../src/destination/port.ts';
import { type Fixture, setup } from './setup.ts';

const open: Fixture[] = [];
afterEach(async () => {
  for (const fixture of open.splice(0)) await fixture.close();
});

const DONE: SendReport = {
  left: 'maybe',
  ended: 'reply',
  reply: { kind: 'result', body: '{"content":[]}' },
  detail: '',
};

/** A destination that hands each request to the test, which answers it. */
async function withDestination(send: (request: SendRequest) => Promise<SendReport>, isConnected = true) {
  let connected = isConnected;
  const destination: Destination = {
    name: 'cab',
    isConnected: () => connected,
    connect: async () => {
      connected = true;
      return { connected: true };
    },
    send,
    ask: async () => ({ answered: false, detail: 'nobody asks' }),
    close: async () => {},
  };
  const fixture = await setup();
  open.push(fixture);
  const ledger = await fixture.open({ destinations: [destination] });
  const write = () =>
    ledger.write({
      destination: 'cab',
      tool: 'create',
      arguments: { title: 'a' },
      requester: 'agent',
      meta: '{"x":1}',
      via: 'c1:7',
    });
  return { ledger, write };
}

describe('a destination that asks back', () => {
  test('each leg is on record before the adapter may send it, and counts once', async () => {
    const seen: unknown[] = [];
    const { ledger, write } = await withDestination(async (request) => {
      seen.push(await request.recordLeg?.(2));
      const record = await ledger.readings.record(request.operation);
      seen.push(record?.operation.attempts.at(-1)?.legs, record?.operation.stage);
      seen.push(await request.recordLeg?.(2), await request.recordLeg?.(4), await request.recordLeg?.(3));
      return DONE;
    });
    expect(await write()).toMatchObject({
      kind: 'reply',
      operation: { attempts: [{ legs: 3, open: false }] },
    });
    expect(seen).toEqual([true, 2, 'sending', false, false, true]);
  });

  test('once the attempt has come back, no leg of it is recorded', async () => {
    let kept: SendRequest | undefined;
    const { write } = await withDestination(async (request) => {
      kept = request;
      return DONE;
    });
    await write();
    expect(await kept?.recordLeg?.(2)).toBe(false);
  });
});

test('a caller that waits while its destination is connected is still the one that it is sent for', async () => {
  const requests: SendRequest[] = [];
  const { write } = await withDestination(async (request) => {
    requests.push(request);
    return DONE;
  }, false);
  expect(await write()).toMatchObject({ kind: 'reply' });
  expect(requests).toMatchObject([{ meta: '{"x":1}', via: 'c1:7' }]);
});
