import { afterEach, describe, expect, test } from 'vitest';
import type { JsonObject } from '../../src/core/canonical.ts';
import type { ToolFacts } from '../../src/core/contract.ts';
import { functionDestination } from '../../src/destination/function-destination.ts';
import type { Destination } from '../../src/destination/port.ts';
import { type Environment, systemEnvironment } from '../../src/engine/environment.ts';
import type { Ledger } from '../../src/engine/ledger.ts';
import { type Fixture, factsOf, lookedUpBy, operationOf, setup, until } from './setup.ts';
import { eventually, inEveryTick, storeFault, storeIn } from './stores.ts';

let fixture: Fixture;

afterEach(async () => {
  await fixture.close();
});

const RUN = { run: { id: 'cutover-1' } };
const HOUR_MS = 3_600_000;
const FOUND = factsOf('create', { operation: lookedUpBy() });
const FREEZE = {
  destination: 'cab',
  tool: 'create',
  arguments: { title: 'Freeze' },
  requester: 'agent',
  waitMs: 50,
  ...RUN,
};

interface Behaviour {
  readonly create?: (args: JsonObject) => unknown;
  readonly destroy?: (args: JsonObject) => unknown;
  readonly find?: (args: JsonObject) => unknown;
}

/** A destination whose replies are lost, and whose look-up is down, but for what is given. */
function cab({ create, destroy, find }: Behaviour = {}): Destination {
  const lose = (): never => {
    throw new Error('connection reset');
  };
  return functionDestination({
    name: 'cab',
    tools: { create: create ?? lose, destroy: destroy ?? lose },
    asks: { find: find ?? lose },
  });
}

function listing(records: readonly JsonObject[]) {
  return {
    content: [{ type: 'text', text: JSON.stringify(records.map((_, at) => ({ id: `CHG-${at + 1}` }))) }],
  };
}

/** A ledger that is closed again with one write of which nothing is known but that it left. */
async function leftChecking(): Promise<string> {
  fixture = await setup({ onDisk: true });
  await fixture.ledger.close();
  const ledger = await fixture.open({ destinations: [cab()], factsFor: () => FOUND });
  const { id } = operationOf(await ledger.write(FREEZE));
  await until(ledger, id, (operation) => operation.stage === 'checking');
  await ledger.close();
  return id;
}

describe('an absence', () => {
  test('is counted from the instant of the question, not of its answer (D7)', async () => {
    fixture = await setup();
    const { records } = fixture;
    let sends = 0;
    let asked = 0;
    const destination = cab({
      create: () => {
        sends += 1;
        throw new Error('connection reset');
      },
      find: (args) => {
        asked += 1;
        const seen = listing(records);
        // The write lands, and its time runs out, while the answer is on its way.
        if (asked === 1) {
          records.push(args);
          fixture.moveClock(60_000);
        }
        return seen;
      },
    });
    const ledger = await fixture.open({ destinations: [destination], factsFor: () => FOUND });
    const answer = await ledger.write({ ...FREEZE, waitMs: 5_000 });
    expect(operationOf(answer)).toMatchObject({
      stage: 'closed',
      effect: 'accepted',
      record: { id: 'CHG-1' },
    });
    expect({ sends, asked, records: records.length }).toEqual({ sends: 1, asked: 2, records: 1 });
  });
});

describe('a look-up that can be made no more', () => {
  const contracts: readonly (readonly [string, ToolFacts | undefined])[] = [
    ['its contract has none now', factsOf('create')],
    ['its tool is not listed now', undefined],
  ];
  test.each(contracts)('leaves the write with a person, unknown, when %s (I4)', async (_why, now) => {
    const id = await leftChecking();
    const destroyed: JsonObject[] = [];
    const ledger = await fixture.open({
      store: await storeIn(fixture.data, inEveryTick),
      destinations: [cab({ destroy: (args) => destroyed.push(args) })],
      factsFor: (_destination, tool) => (tool === 'create' ? now : factsOf(tool, { class: 'irreversible' })),
      settings: { leaseMs: 100 },
    });
    const asked = operationOf(await ledger.write({ ...FREEZE, tool: 'destroy' }));
    await approve(ledger, asked.id, asked.digest);
    await until(ledger, asked.id, (operation) => operation.effect === 'accepted');
    const parked = await until(ledger, id, (operation) => operation.stage === 'parked');
    expect(parked).toMatchObject({ effect: 'unknown', why: { code: 'no_lookup' } });
    expect(destroyed).toHaveLength(1);
  });
});

async function approve(ledger: Ledger, operation: string, digest: string): Promise<void> {
  await ledger.decideReview({ operation, digest, kind: 'approved', by: 'owner', strength: 'passphrase' });
}

describe('a ledger that was off for longer than look-ups may go on', () => {
  const openedAgain = async (find: () => unknown) =>
    fixture.open({
      store: await storeIn(fixture.data, inEveryTick),
      destinations: [cab({ find })],
      factsFor: () => FOUND,
      settings: { leaseMs: 100 },
    });

  test('looks up what it was checking', async () => {
    const id = await leftChecking();
    fixture.moveClock(72 * HOUR_MS);
    const ledger = await openedAgain(() => listing([{ title: 'Freeze' }]));
    const found = await until(ledger, id, (operation) => operation.stage !== 'checking');
    expect(found).toMatchObject({ stage: 'closed', effect: 'accepted' });
  });

  test('[S1] looks up what was out when it was killed (I6)', async () => {
    fixture = await setup({ onDisk: true });
    await fixture.ledger.close();
    let isKilled = false;
    const fails = async (): Promise<never> => {
      throw storeFault('not_stored');
    };
    const killed = await fixture.open({
      store: await storeIn(fixture.data, (inner) => ({
        commit: (changes) => (isKilled ? fails() : inner.commit(changes)),
      })),
      destinations: [
        cab({
          create: () => {
            isKilled = true;
            throw new Error('killed');
          },
        }),
      ],
      factsFor: () => FOUND,
    });
    const left = operationOf(await killed.write(FREEZE));
    expect(left).toMatchObject({ stage: 'sending', effect: 'unknown' });
    fixture.moveClock(72 * HOUR_MS);
    const ledger = await openedAgain(() => listing([{ title: 'Freeze' }]));
    const found = await until(ledger, left.id, ({ stage }) => stage !== 'sending' && stage !== 'checking');
    expect(found).toMatchObject({ stage: 'closed', effect: 'accepted', record: { id: 'CHG-1' } });
  });
});

test('work that is looked at again and again while its server is away keeps one timer (I14)', async () => {
  const id = await leftChecking();
  const pending = new Set<symbol>();
  const environment = countedTimers(pending);
  const functions = cab();
  let looks = 0;
  const away: Destination = {
    name: 'cab',
    isConnected: () => false,
    connect: async () => {
      looks += 1;
      return { connected: false, detail: 'refused' };
    },
    send: (request) => functions.send(request),
    ask: (request) => functions.ask(request),
    close: () => functions.close(),
  };
  const ledger = await fixture.open({
    environment,
    store: await storeIn(fixture.data, inEveryTick),
    destinations: [away],
    factsFor: () => undefined,
    settings: { leaseMs: 100 },
  });
  await eventually(() => looks >= 12, 'the server was asked twelve times');
  // The next tick, the next beat, and the operation's own.
  expect(pending.size).toBeLessThanOrEqual(3);
  expect((await ledger.readings.record(id))?.operation).toMatchObject({
    stage: 'checking',
    effect: 'unknown',
  });
});

function countedTimers(pending: Set<symbol>): Environment {
  const system = systemEnvironment();
  return {
    ...system,
    after(ms, callback, holdsProcess) {
      const timer = Symbol('timer');
      pending.add(timer);
      const cancel = system.after(
        ms,
        () => {
          pending.delete(timer);
          callback();
        },
        holdsProcess,
      );
      return () => {
        pending.delete(timer);
        cancel();
      };
    },
  };
}
