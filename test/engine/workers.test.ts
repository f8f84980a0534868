import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { LedgerParts } from '../../src/compose.ts';
import { systemEnvironment } from '../../src/engine/environment.ts';
import type { Ledger } from '../../src/engine/ledger.ts';
import { type Fixture, operationOf, setup, signal, until } from './setup.ts';
import { eventually, inEveryTick, isBeat, isProposal, memoryStore, storeIn } from './stores.ts';

const RUN = { run: { id: 'cutover-1' } };
const LEASE_MS = 200;

let fixture: Fixture;

beforeEach(async () => {
  fixture = await setup({ onDisk: true });
  await fixture.ledger.close();
});

afterEach(async () => {
  await fixture.close();
});

const write = (ledger: Ledger, title: string, waitMs = 10_000) =>
  ledger.write({
    destination: 'cab',
    tool: 'create',
    arguments: { title },
    requester: 'agent',
    waitMs,
    ...RUN,
  });

async function typesOf(ledger: Ledger, id: string): Promise<readonly string[]> {
  return (await ledger.readings.history(id)).map(({ event }) => event.type);
}

/** A ledger whose beats are counted. */
async function beating(parts: Partial<LedgerParts> = {}, liveWaits?: Promise<void>) {
  const seen: { beats: number; ticks: number; beatsWait?: Promise<void> } = { beats: 0, ticks: 0 };
  const store = await storeIn(fixture.data, (inner) => ({
    foreignCommits: async () => (seen.ticks += 1),
    async commit(changes) {
      if (isBeat(changes)) await seen.beatsWait;
      const results = await inner.commit(changes);
      if (isBeat(changes)) seen.beats += 1;
      return results;
    },
    async live(query) {
      await liveWaits;
      return inner.live(query);
    },
  }));
  return { ledger: await fixture.open({ store, settings: { leaseMs: LEASE_MS }, ...parts }), seen };
}

/** Another ledger on the same file, whose looks at other workers are counted, and whose clock can be moved. */
async function watching(beforeFencing: () => Promise<void> = async () => {}) {
  const seen = { looks: 0 };
  let offset = 0;
  const system = systemEnvironment();
  const store = await storeIn(fixture.data, (inner) => ({
    ...inEveryTick(),
    read(tenant, streams) {
      if (streams.some((stream) => stream.startsWith('worker:'))) seen.looks += 1;
      return inner.read(tenant, streams);
    },
    async commit(changes) {
      if (JSON.stringify(changes.flatMap(({ writes }) => writes)).includes('attempt_fenced'))
        await beforeFencing();
      return inner.commit(changes);
    },
  }));
  const ledger = await fixture.open({
    store,
    settings: { leaseMs: LEASE_MS },
    environment: { ...system, monotonic: () => system.monotonic() + offset },
  });
  const looksAgain = (times: number) => {
    const until = seen.looks + times;
    return eventually(() => seen.looks >= until, 'the other worker was looked at');
  };
  return {
    ledger,
    looksAgain,
    moveClock: (ms: number) => {
      offset += ms;
    },
  };
}

describe('a worker that lives', () => {
  test('is not taken over by one that saw it idle for longer than the lease (I6)', async () => {
    const { ledger, seen } = await beating();
    const other = await watching();
    for (const title of ['one', 'two', 'three']) {
      const gate = signal();
      const isLookedAt = signal();
      // The other sees the write before the first beat that is made for it.
      seen.beatsWait = isLookedAt.promise;
      fixture.faults.push({ wait: gate.promise });
      const out = write(ledger, title);
      await other.looksAgain(1);
      isLookedAt.give();
      await other.looksAgain(2);
      gate.give();
      const answer = await out;
      expect(answer.kind).toBe('reply');
      expect(await typesOf(ledger, operationOf(answer).id)).not.toContain('attempt_fenced');
      other.moveClock(100 * LEASE_MS);
    }
    expect(fixture.records).toHaveLength(3);
  });

  test('is not taken over by one that is held up until it has beaten again (I6)', async () => {
    const { ledger, seen } = await beating();
    const isGoing = signal();
    let fencings = 0;
    const other = await watching(async () => {
      fencings += 1;
      isGoing.give();
      const before = seen.beats;
      await eventually(() => seen.beats > before, 'another beat');
    });
    const gate = signal();
    seen.beatsWait = isGoing.promise;
    fixture.faults.push({ wait: gate.promise });
    const out = write(ledger, 'slow');
    await other.looksAgain(2);
    other.moveClock(10 * LEASE_MS);
    await eventually(() => fencings > 0, 'the claim was about to be taken');
    await other.looksAgain(2);
    gate.give();
    const answer = await out;
    expect(answer.kind).toBe('reply');
    expect(await typesOf(ledger, operationOf(answer).id)).not.toContain('attempt_fenced');
  });

  test('goes on beating while its own search for work is held up', async () => {
    const held = signal();
    const { ledger, seen } = await beating({}, held.promise);
    const gate = signal();
    fixture.faults.push({ wait: gate.promise });
    const out = write(ledger, 'slow');
    await eventually(() => fixture.faults.length === 0, 'it was sent');
    const before = seen.beats;
    await eventually(() => seen.beats >= before + 3, 'three more beats');
    gate.give();
    expect((await out).kind).toBe('reply');
    held.give();
  });

  test('goes on beating while it closes, and records what it had out', async () => {
    const { ledger, seen } = await beating();
    const other = await watching();
    const gate = signal();
    fixture.faults.push({ wait: gate.promise });
    const { id } = operationOf(await write(ledger, 'slow', 20));
    const closing = ledger.close();
    const before = seen.beats;
    await eventually(() => seen.beats >= before + 10, 'ten more beats');
    await other.looksAgain(2);
    expect((await other.ledger.readings.record(id))?.operation.stage).toBe('sending');
    gate.give();
    await closing;
    const closed = await until(other.ledger, id, (operation) => operation.stage === 'closed');
    expect(closed).toMatchObject({ effect: 'accepted', attempts: [{ open: false }] });
    expect(await typesOf(other.ledger, id)).not.toContain('attempt_fenced');
    expect(fixture.records).toHaveLength(1);
  });

  test('says nothing while nothing of it is out', async () => {
    const { ledger, seen } = await beating({ settings: { leaseMs: 25 } });
    await write(ledger, 'quick');
    const before = { ...seen };
    await eventually(() => seen.ticks >= before.ticks + 2, 'time for forty beats');
    expect(seen.beats - before.beats).toBeLessThanOrEqual(1);
  });
});

describe('a worker that has stopped', () => {
  test('has lost what it had out once its beat stood still for the lease, and it is not sent again (I4)', async () => {
    let isFrozen = false;
    const never = new Promise<never>(() => {});
    const store = await storeIn(fixture.data, (inner) => ({
      commit: (changes) => (isFrozen ? never : inner.commit(changes)),
    }));
    const ledger = await fixture.open({ store, settings: { leaseMs: LEASE_MS } });
    const other = await watching();
    const gate = signal();
    fixture.faults.push({ wait: gate.promise });
    const { id } = operationOf(await write(ledger, 'slow', 20));
    isFrozen = true;
    await other.looksAgain(2);
    other.moveClock(10 * LEASE_MS);
    const parked = await until(other.ledger, id, (operation) => operation.stage === 'parked');
    expect(parked).toMatchObject({ effect: 'unknown', attempts: [{ fenced: true }] });
    expect(await typesOf(other.ledger, id)).toContain('attempt_fenced');
    isFrozen = false;
    gate.give();
    // What it says now is evidence all the same: presence settles it.
    await until(other.ledger, id, (operation) => operation.effect === 'accepted');
    expect(fixture.records).toHaveLength(1);
  });
});

describe('an attempt whose commit can be seen before its answer has come', () => {
  test('is sent once, and never taken for an orphan (I5)', async () => {
    let scans = 0;
    const store = await memoryStore((inner) => ({
      ...inEveryTick(),
      async commit(changes) {
        const results = await inner.commit(changes);
        const before = scans;
        if (isProposal(changes)) await eventually(() => scans >= before + 4, 'open work was looked at');
        return results;
      },
      live(query) {
        scans += 1;
        return inner.live(query);
      },
    }));
    const ledger = await fixture.open({ store });
    const answer = await write(ledger, 'Freeze');
    expect(answer.kind).toBe('reply');
    expect(operationOf(answer).attempts).toHaveLength(1);
    expect(operationOf(answer).evidence).toMatchObject([{ kind: 'acknowledgement', means: 'accepted' }]);
    expect(fixture.records).toHaveLength(1);
  });
});
