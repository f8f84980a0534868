import { afterEach, describe, expect, test } from 'vitest';
import { functionDestination } from '../../src/destination/function-destination.ts';
import type { Ledger } from '../../src/engine/ledger.ts';
import { type Fixture, factsOf, operationOf, setup, until } from './setup.ts';

let fixture: Fixture;
afterEach(() => fixture.close());

/** A destination that notes how many writes are out at once, and when each came. */
function counting(ms: number) {
  const seen = { out: 0, most: 0, at: [] as number[] };
  const send = async (): Promise<object> => {
    seen.at.push(Date.now());
    seen.out += 1;
    seen.most = Math.max(seen.most, seen.out);
    await new Promise((resolve) => setTimeout(resolve, ms));
    seen.out -= 1;
    return { content: [], structuredContent: {} };
  };
  return { seen, destination: functionDestination({ name: 'cab', tools: { create: send } }) };
}

async function writeAll(ledgers: readonly Ledger[], count: number): Promise<readonly string[]> {
  const writes = Array.from({ length: count }, async (_, number) => {
    const ledger = ledgers[number % ledgers.length] as Ledger;
    const answer = await ledger.write({
      destination: 'cab',
      tool: 'create',
      arguments: { number },
      requester: 'agent',
      run: { id: 'run-1' },
    });
    const { id } = operationOf(answer);
    const { effect } = await until(ledger, id, ({ stage }) => stage === 'closed');
    return effect;
  });
  return Promise.all(writes);
}

describe('writes that may be out at once', () => {
  test.each([1, 3])(
    'are never more than %i, of two processes together, and all of them leave',
    async (most) => {
      fixture = await setup({ onDisk: true });
      await fixture.ledger.close();
      const { seen, destination } = counting(15);
      const factsFor = () => factsOf('create', { sending: { concurrency: most } });
      const ledgers = [
        await fixture.open({ destinations: [destination], factsFor }),
        await fixture.open({ destinations: [destination], factsFor }),
      ];
      expect(await writeAll(ledgers, 24)).toEqual(Array.from({ length: 24 }, () => 'accepted'));
      expect(seen.at).toHaveLength(24);
      expect(seen.most).toBe(most);
    },
  );

  test('without a bound are as many as there are callers: the count above can go red', async () => {
    fixture = await setup({ onDisk: true });
    await fixture.ledger.close();
    const { seen, destination } = counting(200);
    const ledger = await fixture.open({ destinations: [destination], factsFor: () => factsOf('create') });
    await writeAll([ledger], 12);
    expect(seen.most).toBeGreaterThan(3);
  });

  test('tell their caller that they wait for their turn, and that nothing has left', async () => {
    fixture = await setup({ onDisk: true });
    await fixture.ledger.close();
    const { seen, destination } = counting(400);
    const factsFor = () => factsOf('create', { sending: { concurrency: 1 } });
    const ledger = await fixture.open({ destinations: [destination], factsFor });
    const call = { destination: 'cab', tool: 'create', requester: 'agent', run: { id: 'run-1' } };
    const first = ledger.write({ ...call, arguments: { number: 1 } });
    await expect.poll(() => seen.out).toBe(1);
    const second = operationOf(await ledger.write({ ...call, arguments: { number: 2 } }));
    expect(second).toMatchObject({
      stage: 'ready',
      effect: 'not_sent',
      why: { code: 'waits_for_place', at_once: 1 },
    });
    expect(operationOf(await first)).toMatchObject({ effect: 'accepted' });
    await until(ledger, second.id, ({ effect }) => effect === 'accepted');
    expect(seen.most).toBe(1);
  });
});

describe('writes that may leave in a time', () => {
  test('are never more in a window, of two processes together, and the others leave in the next', async () => {
    fixture = await setup({ onDisk: true });
    await fixture.ledger.close();
    const perMs = 1_500;
    const { seen, destination } = counting(1);
    const factsFor = () => factsOf('create', { sending: { rate: { writes: 4, perMs } } });
    const ledgers = [
      await fixture.open({ destinations: [destination], factsFor }),
      await fixture.open({ destinations: [destination], factsFor }),
    ];
    await writeAll(ledgers, 10);
    const perWindow = new Map<number, number>();
    for (const operation of await (ledgers[0] as Ledger).readings.recent(50)) {
      const startedAt = operation.attempts[0]?.startedAt ?? 0;
      const window = Math.floor(startedAt / perMs);
      perWindow.set(window, (perWindow.get(window) ?? 0) + 1);
    }
    expect([...perWindow.values()].reduce((sum, count) => sum + count)).toBe(10);
    // One that was taken as its window ended may have been started in the next.
    expect(Math.max(...perWindow.values())).toBeLessThanOrEqual(5);
    expect(perWindow.size).toBeGreaterThanOrEqual(3);
    expect(seen.at).toHaveLength(10);
  });
});
