import { afterEach, describe, expect, test } from 'vitest';
import type { LedgerParts } from '../../src/compose.ts';
import type { JsonObject } from '../../src/core/canonical.ts';
import type { Operation } from '../../src/core/operation.ts';
import { DestinationError, functionDestination } from '../../src/destination/function-destination.ts';
import type { Destination } from '../../src/destination/port.ts';
import type { Answer } from '../../src/engine/answers.ts';
import type { Ledger } from '../../src/engine/ledger.ts';
import type { Change, Store } from '../../src/store/port.ts';
import { StoreFault } from '../../src/store/port.ts';
import { type Fixture, factsOf, lookedUpBy, operationOf, setup, signal, until } from './setup.ts';
import { eventually, inEveryTick, isProposal, memoryStore, reopeningStoreIn, storeFault } from './stores.ts';

let fixture: Fixture;

afterEach(async () => {
  await fixture.close();
});

const RUN = { run: { id: 'cutover-1' } };
const FREEZE = {
  destination: 'cab',
  tool: 'create',
  arguments: { title: 'Freeze' },
  requester: 'agent',
  ...RUN,
};

/** Faults of a ledger's own store, which is opened again after each, as the embedded one is. */
interface Faults {
  /** The next commit for which this is true ends with a fault of unknown fate. */
  hits: (changes: readonly Change[]) => boolean;
  /** Whether that commit was stored. */
  readonly isStored: boolean;
  /** How many readings fail after it. */
  unreadable: number;
}

async function faulty(faults: Faults, parts: Partial<LedgerParts> = {}): Promise<Ledger> {
  fixture = await setup({ onDisk: true });
  await fixture.ledger.close();
  const store = reopeningStoreIn(fixture.data, (inner) => {
    let isPoisoned = false;
    const usable = <Result>(call: () => Promise<Result>): Promise<Result> => {
      if (!isPoisoned) return call();
      return Promise.reject(new StoreFault('ERR_STORE_POISONED', 'Opened no more.', { fate: 'not_stored' }));
    };
    return {
      ...inEveryTick(),
      read: (...args) =>
        usable(() => {
          // How its destinations answer is read at any time, and no operation is read with it.
          const isAsideOf = args[1].every((stream) => !stream.startsWith('op:'));
          if (faults.unreadable === 0 || isAsideOf || isHitYet(faults)) return inner.read(...args);
          faults.unreadable -= 1;
          return Promise.reject(storeFault('not_stored'));
        }),
      commit: (changes) =>
        usable(async () => {
          if (!faults.hits(changes)) return inner.commit(changes);
          faults.hits = NEVER;
          if (faults.isStored) await inner.commit(changes);
          // Only now, as with the embedded store: a reading that comes meanwhile is not one of a broken handle.
          isPoisoned = true;
          throw storeFault('unknown');
        }),
    };
  });
  return fixture.open({ store, ...parts });
}

const NEVER = (): boolean => false;

function isHitYet(faults: Faults): boolean {
  return faults.hits !== NEVER;
}

describe('a COMMIT of unknown fate', () => {
  test('of a proposal that was stored goes on, is sent once, and is told truthfully (I1)', async () => {
    const ledger = await faulty({ hits: isProposal, isStored: true, unreadable: 0 });
    const answer = await ledger.write(FREEZE);
    expect(answer).toMatchObject({ kind: 'reply', operation: { effect: 'accepted' } });
    expect((await ledger.write(FREEZE)).kind).toBe('already_exists');
    expect(fixture.records).toHaveLength(1);
  });

  test('of a proposal that was not stored is told as not recorded, and the next call is the first', async () => {
    const ledger = await faulty({ hits: isProposal, isStored: false, unreadable: 0 });
    expect((await ledger.write(FREEZE)).kind).toBe('not_recorded');
    expect(fixture.records).toHaveLength(0);
    expect(await ledger.readings.recent(10)).toHaveLength(0);
    expect((await ledger.write(FREEZE)).kind).toBe('reply');
    expect(fixture.records).toHaveLength(1);
  });

  test.each([
    ['stored', true],
    ['not stored', false],
  ])(
    'that cannot be read back is told with the operation’s id, and leads to one record where it was %s (I2)',
    async (_fate, isStored) => {
      const ledger = await faulty({ hits: isProposal, isStored, unreadable: 1 });
      const answer = await ledger.write(FREEZE);
      expect(answer).toMatchObject({ kind: 'fate_unknown', operation: expect.stringMatching(/^op_/) });
      const again = await ledger.write(FREEZE);
      const { id } = operationOf(again);
      expect(id === (answer as Extract<Answer, { kind: 'fate_unknown' }>).operation).toBe(isStored);
      await until(ledger, id, (operation) => operation.stage === 'closed');
      expect(operationOf(await ledger.write(FREEZE)).id).toBe(id);
      expect(fixture.records).toHaveLength(1);
    },
  );

  test('of a proposal that nobody asks for again is found and sent by itself, once', async () => {
    const ledger = await faulty({ hits: isProposal, isStored: true, unreadable: 1 });
    const answer = await ledger.write(FREEZE);
    if (answer.kind !== 'fate_unknown') throw new Error(`answered ${answer.kind}`);
    const closed = await until(ledger, answer.operation, (operation) => operation.stage === 'closed');
    expect(closed).toMatchObject({ effect: 'accepted' });
    expect(closed.evidence[0]).toMatchObject({ kind: 'transport', left: 'no', what: 'never_handed_over' });
    expect(fixture.records).toHaveLength(1);
  });

  test('of an attempt’s start leads to one record, whatever became of it (I5)', async () => {
    for (const isStored of [true, false]) {
      const faults: Faults = { hits: NEVER, isStored, unreadable: 0 };
      const ledger = await faulty(faults);
      const asked = operationOf(await ledger.write({ ...FREEZE, tool: 'destroy' }));
      faults.hits = startsAttempt;
      await approve(ledger, asked);
      await until(ledger, asked.id, (operation) => operation.effect === 'accepted');
      expect(faults.hits).toBe(NEVER);
      expect(fixture.records).toHaveLength(1);
      await fixture.close();
    }
  });

  test.each([
    ['stored', 'told as sent', true, 0],
    ['not stored', 'told as not recorded', false, 0],
    ['stored and unreadable', 'told as of unknown fate', true, 1],
    ['not stored and unreadable', 'told as of unknown fate', false, 1],
  ])(
    'of a new round that was %s is %s, and leads to one record',
    async (_fate, _told, isStored, unreadable) => {
      const refuses = lookedUpBy({
        lookups: [],
        outcomes: [{ when: { kind: ['tool_error'] }, means: 'not_applied', evidence: { grade: 'source' } }],
      });
      let sends = 0;
      const create = (args: JsonObject): unknown => {
        sends += 1;
        if (sends === 1) throw new DestinationError('refused');
        return fixture.records.push(args);
      };
      const ledger = await faulty(
        { hits: (changes) => hasEvent(changes, 'reopened'), isStored, unreadable },
        {
          destinations: [functionDestination({ name: 'cab', tools: { create } })],
          factsFor: () => factsOf('create', { operation: refuses }),
        },
      );
      const refused = operationOf(await ledger.write(FREEZE));
      expect(refused).toMatchObject({ stage: 'closed', effect: 'rejected' });
      const again = await ledger.write(FREEZE);
      const readable = isStored ? 'reply' : 'not_recorded';
      expect(again.kind).toBe(unreadable > 0 ? 'fate_unknown' : readable);
      if (again.kind === 'fate_unknown') expect(again.operation).toBe(refused.id);
      if (again.kind === 'not_recorded') {
        expect((await ledger.readings.record(refused.id))?.operation).toMatchObject({
          round: 1,
          stage: 'closed',
        });
      }
      const last = operationOf(await ledger.write(FREEZE));
      expect(last.id).toBe(refused.id);
      await until(ledger, refused.id, (operation) => operation.effect === 'accepted');
      expect(fixture.records).toHaveLength(1);
      expect(sends).toBe(2);
    },
  );

  test('of an outcome is stored again, says the same, and is told to the caller', async () => {
    for (const isStored of [true, false]) {
      const ledger = await faulty({ hits: recordsEvidence, isStored, unreadable: 0 });
      const answer = await ledger.write(FREEZE);
      expect(answer).toMatchObject({ kind: 'reply', operation: { stage: 'closed', effect: 'accepted' } });
      expect(operationOf(answer).evidence).toHaveLength(1);
      expect(fixture.records).toHaveLength(1);
      await fixture.close();
    }
  });
});

function startsAttempt(changes: readonly Change[]): boolean {
  return hasEvent(changes, 'attempt_started');
}

function recordsEvidence(changes: readonly Change[]): boolean {
  return hasEvent(changes, 'evidence_recorded');
}

function hasEvent(changes: readonly Change[], type: string): boolean {
  const events = changes.flatMap((change) => change.writes.flatMap((write) => write.events));
  return events.some((event) => (event as { readonly type?: string }).type === type);
}

async function approve(ledger: Ledger, { digest, id }: Operation): Promise<void> {
  const decided = await ledger.decideReview({
    operation: id,
    digest,
    kind: 'approved',
    by: 'owner',
    strength: 'passphrase',
  });
  expect(decided.decided).toBe(true);
}

describe('a store that is down while a write is out', () => {
  async function outWhileDown() {
    fixture = await setup();
    const down = { reads: false, commits: false };
    const fails = <Result>(): Promise<Result> => Promise.reject(storeFault('not_stored'));
    const store = await memoryStore(
      (inner): Partial<Store> => ({
        read: (...args) => (down.reads ? fails() : inner.read(...args)),
        documents: (...args) => (down.reads ? fails() : inner.documents(...args)),
        commit: (changes) => (down.commits ? fails() : inner.commit(changes)),
      }),
    );
    const ledger = await fixture.open({ store });
    const gate = signal();
    fixture.faults.push({ wait: gate.promise });
    return { ledger, down, gate };
  }

  test('keeps nobody from being told that it is out, and gets its outcome afterwards', async () => {
    const { down, gate, ledger } = await outWhileDown();
    const call = ledger.write({ ...FREEZE, waitMs: 100 });
    await eventually(() => fixture.faults.length === 0, 'it was sent');
    down.reads = true;
    down.commits = true;
    gate.give();
    const answer = await call;
    expect(answer).toMatchObject({ kind: 'state', operation: { stage: 'sending', effect: 'unknown' } });
    down.reads = false;
    down.commits = false;
    await until(ledger, operationOf(answer).id, (operation) => operation.effect === 'accepted');
    expect((await ledger.write(FREEZE)).kind).toBe('reply');
    expect(fixture.records).toHaveLength(1);
  });

  test('keeps an equal call from being noted, and not from being told', async () => {
    const { down, gate, ledger } = await outWhileDown();
    const first = ledger.write({ ...FREEZE, replays: ['call:1'] });
    await eventually(() => fixture.faults.length === 0, 'it was sent');
    down.commits = true;
    const second = await ledger.write({ ...FREEZE, replays: ['call:2'], waitMs: 20 });
    expect(second).toMatchObject({ kind: 'state', operation: { stage: 'sending', effect: 'unknown' } });
    down.commits = false;
    gate.give();
    expect(operationOf(await first).id).toBe(operationOf(second).id);
    expect(fixture.records).toHaveLength(1);
  });
});

test('a late reply that comes while the store is down is recorded when it is up again', async () => {
  let isDown = false;
  let refused = 0;
  fixture = await setup();
  const store = await memoryStore((inner) => ({
    async read(...args) {
      if (isDown && args[1].some((stream) => stream.startsWith('op:'))) {
        refused += 1;
        throw storeFault('not_stored');
      }
      return inner.read(...args);
    },
  }));
  const ledger = await fixture.open({ store, settings: { replyTimeoutMs: 50 } });
  const late = signal();
  fixture.faults.push({ wait: late.promise });
  const unknown = operationOf(await ledger.write(FREEZE));
  expect(unknown).toMatchObject({ stage: 'parked', effect: 'unknown' });
  isDown = true;
  late.give();
  await eventually(() => refused > 0, 'the late reply was to be recorded');
  isDown = false;
  await until(ledger, unknown.id, ({ effect }) => effect === 'accepted');
});

describe('a late acceptance', () => {
  test('of a write proven absent, whose lock another holds by now, is kept and shown as diverged (D4)', async () => {
    fixture = await setup();
    const late = signal();
    const held = signal();
    const reports: string[] = [];
    const sent: JsonObject[] = [];
    const [lookup] = lookedUpBy().lookups;
    if (lookup === undefined) throw new Error('the fixture has a look-up');
    const settling = {
      ...lookup,
      consistency: { kind: 'eventual', settle: 'PT0S' },
      proves: { present: 'applied', absent: 'not_applied_after_settle' },
    } as const;
    const facts = factsOf('set', {
      repeat: 'state',
      target: { type: 'record', id: ['{id}'] },
      operation: lookedUpBy({ lookups: [settling] }),
    });
    const ledger = await fixture.open({
      factsFor: () => facts,
      report: (message) => reports.push(message),
      settings: {
        replyTimeoutMs: 20,
        bounds: { attemptsMax: 5, elapsedMaxMs: 3_600_000, lookUpElapsedMaxMs: 3_600_000, sendByMs: 50 },
      },
      destinations: [
        functionDestination({
          name: 'cab',
          tools: {
            set: async (args: JsonObject) => {
              sent.push(args);
              await (sent.length === 1 ? late.promise : held.promise);
              return {};
            },
          },
          asks: { find: () => ({ content: [{ type: 'text', text: '[]' }] }) },
        }),
      ],
    });
    const set = (title: string) =>
      ledger.write({
        destination: 'cab',
        tool: 'set',
        arguments: { id: 'x', title },
        requester: 'agent',
        waitMs: 5,
        ...RUN,
      });
    const first = operationOf(await set('one'));
    await until(
      ledger,
      first.id,
      (operation) => operation.stage === 'parked' && operation.effect === 'absent',
    );
    const second = operationOf(await set('two'));
    expect(second.stage).toBe('sending');
    late.give();
    const diverged = await until(ledger, first.id, (operation) => operation.effect === 'diverged');
    expect(diverged).toMatchObject({ stage: 'parked', why: { code: 'contradiction' } });
    expect(diverged.evidence.map((piece) => piece.kind)).toContain('acknowledgement');
    held.give();
    await until(ledger, second.id, (operation) => operation.effect !== 'unknown');
    expect(sent).toHaveLength(2);
    expect(reports).toEqual([]);
  });
});

describe('a caller of another run', () => {
  test('that leaves takes nothing back, and the owner’s write goes on (D10)', async () => {
    fixture = await setup();
    const gate = signal();
    let tries = 0;
    const destination = functionDestination({
      name: 'cab',
      tools: {
        create: async (args: JsonObject, context) => {
          tries += 1;
          if (tries > 1) return fixture.records.push(args);
          await gate.promise;
          throw context.notSent('connection refused');
        },
      },
    });
    const ledger = await fixture.open({ destinations: [destination] });
    const mara = ledger.write({ ...FREEZE, requester: 'mara', run: { id: 'mara' } });
    await eventually(() => tries === 1, 'it is out');
    const controller = new AbortController();
    const luis = ledger.write({
      ...FREEZE,
      requester: 'luis',
      run: { id: 'luis' },
      signal: controller.signal,
    });
    controller.abort();
    expect(await luis).toMatchObject({ kind: 'state', otherRun: 'mara' });
    gate.give();
    const done = operationOf(await mara);
    expect(done).toMatchObject({ stage: 'closed', effect: 'accepted' });
    expect(done.cancelRequestedAt).toBeUndefined();
    expect(fixture.records).toHaveLength(1);
  });
});

describe('while the destination is down', () => {
  /** Refuses every connection until it is up; counts how often it was asked. */
  function downUntil(isUp: () => boolean, asked: () => void): Destination {
    const functions = functionDestination({
      name: 'cab',
      tools: { create: (args: JsonObject) => fixture.records.push(args) },
    });
    return {
      name: 'cab',
      isConnected: isUp,
      connect: async () => {
        asked();
        return isUp() ? { connected: true } : { connected: false, detail: 'connection refused' };
      },
      send: (request) => functions.send(request),
      ask: (request) => functions.ask(request),
      close: () => functions.close(),
    };
  }

  test.each([
    ['equal', () => FREEZE],
    ['different', (call: number) => ({ ...FREEZE, arguments: { title: `T${call}` } })],
  ])('%s callers are all told at once that the write waits for it (D6)', async (_kind, callOf) => {
    fixture = await setup();
    let isUp = false;
    let connects = 0;
    const destination = downUntil(
      () => isUp,
      () => (connects += 1),
    );
    const ledger = await fixture.open({ destinations: [destination], settings: { callerWaitMs: 60_000 } });
    const waiting: Operation[] = [];
    for (let call = 0; call < 4; call += 1) {
      // The later of each pair comes when the destination has just been asked, and may not be asked again.
      const answers = await Promise.all([ledger.write(callOf(call)), ledger.write(callOf(call + 10))]);
      waiting.push(...answers.map(operationOf));
    }
    for (const operation of waiting) {
      expect(operation).toMatchObject({
        stage: 'ready',
        effect: 'not_sent',
        why: { code: 'waits_for_destination' },
      });
    }
    expect(connects).toBeLessThan(8);
    isUp = true;
    const ids = new Set(waiting.map((operation) => operation.id));
    for (const id of ids) await until(ledger, id, (operation) => operation.stage === 'closed');
    expect(fixture.records).toHaveLength(ids.size);
  });
});
