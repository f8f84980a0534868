import { afterEach, describe, expect, test } from 'vitest';
import { composeLedger } from '../../src/compose.ts';
import type { Operation } from '../../src/core/operation.ts';
import { DEFAULT_BOUNDS } from '../../src/core/repeatability.ts';
import { systemEnvironment } from '../../src/engine/environment.ts';
import type { Actor } from '../../src/engine/queue-acts.ts';
import { StoreFault } from '../../src/store/port.ts';
import { type Fixture, operationOf, setup, until } from './setup.ts';
import { storeFault, storeIn } from './stores.ts';

const HOUR_MS = 3_600_000;
const MARA: Actor = { by: 'Mara', strength: 'passphrase' };
const LUIS: Actor = { by: 'Luis', strength: 'same_account' };
const NOT_HAPPENED = { resolution: 'stated_not_happened', looked: 'the list of records' } as const;
const CAUSE = 'cause_no_answer@cab';

let fixture: Fixture | undefined;
afterEach(async () => {
  await fixture?.close();
  fixture = undefined;
});

async function start(options: Parameters<typeof setup>[0] = {}): Promise<Fixture> {
  fixture = await setup(options);
  return fixture;
}

/** A write whose request and answer are lost, and that nobody can look up. */
async function lost({ faults, ledger, write }: Fixture, title: string): Promise<Operation> {
  faults.push('lose_request');
  const { id } = operationOf(await write('create', { title }));
  return until(ledger, id, ({ stage }) => stage === 'parked');
}

async function versionOf({ ledger }: Fixture, id: string): Promise<number> {
  return (await ledger.readings.record(id))?.version ?? 0;
}

/** More tries than there is time for, so that only the approval ends them. */
const PATIENT = { settings: { bounds: { ...DEFAULT_BOUNDS, attemptsMax: 1_000 } } };

/** Approved, and then not sent in time, because the destination refused every connection. */
async function expired(
  { faults, ledger, moveClock, write }: Fixture,
  count: number,
): Promise<readonly string[]> {
  const ids: string[] = [];
  for (let index = 0; index < count; index += 1) {
    ids.push(operationOf(await write('destroy', { id: `r-${index}` })).id);
  }
  faults.push(...Array.from({ length: 1_000 }, () => 'refuse' as const));
  for (const id of ids) {
    const digest = (await ledger.readings.record(id))?.operation.digest ?? '';
    await ledger.decideReview({
      operation: id,
      digest,
      kind: 'approved',
      by: 'Mara',
      strength: 'passphrase',
    });
    await until(ledger, id, ({ attempts, stage }) => stage === 'ready' && attempts.length > 0);
  }
  moveClock(9 * HOUR_MS);
  for (const id of ids) await until(ledger, id, ({ review }) => review?.because?.code === 'approval_expired');
  faults.splice(0);
  return ids;
}

describe('a claim on a cause', () => {
  test('is one person’s until its time is over, and can be handed over and let go', async () => {
    const world = await start();
    const { claims } = world.ledger.queue;
    expect(await claims.claim(CAUSE, 'Mara', 60_000)).toMatchObject({ claimed: true });
    expect(await claims.claim(CAUSE, 'Luis', 60_000)).toMatchObject({
      claimed: false,
      why: 'held',
      claim: { by: 'Mara' },
    });
    expect(await claims.claim(CAUSE, 'Mara', 120_000)).toMatchObject({ claimed: true });
    expect(await claims.handOver(CAUSE, 'Luis', 'Ada', 60_000)).toMatchObject({
      claimed: false,
      why: 'not_yours',
    });
    expect(await claims.handOver(CAUSE, 'Mara', 'Luis', 60_000)).toMatchObject({
      claim: { by: 'Luis', from: 'Mara' },
    });
    expect((await claims.of([CAUSE])).get(CAUSE)).toMatchObject({ by: 'Luis' });
    world.moveClock(61_000);
    expect((await claims.of([CAUSE])).size).toBe(0);
    expect(await claims.claim(CAUSE, 'Ada', 60_000)).toMatchObject({ claimed: true });
    expect(await claims.release(CAUSE, 'Luis')).toMatchObject({ claimed: false, why: 'not_yours' });
    expect(await claims.release(CAUSE, 'Ada')).toMatchObject({ claimed: true });
    expect((await claims.of([CAUSE])).size).toBe(0);
  });

  test('of two that come at once one has it', async () => {
    const { ledger } = await start();
    const both = await Promise.all(
      ['Mara', 'Luis'].map((by) => ledger.queue.claims.claim(CAUSE, by, 60_000)),
    );
    expect(both.filter(({ claimed }) => claimed)).toHaveLength(1);
  });

  test('others leave its operations alone; a look-up is nobody’s harm', async () => {
    const world = await start();
    const { id } = await lost(world, 'a');
    await world.ledger.queue.claims.claim(CAUSE, 'Mara', 60_000);
    expect(await world.ledger.queueActs.close([{ operation: id }], LUIS)).toMatchObject({
      done: [],
      leftOut: [{ operation: id, why: 'claimed', claim: { by: 'Mara' } }],
    });
    expect((await world.ledger.queueActs.lookUp([{ operation: id }], LUIS)).done).toHaveLength(1);
    await until(world.ledger, id, ({ stage }) => stage === 'parked');
    expect((await world.ledger.queueActs.close([{ operation: id }], MARA)).done).toHaveLength(1);
  });
});

describe('an act', () => {
  test('is done at the version that was seen, and left out where something has happened since', async () => {
    const world = await start();
    const { id } = await lost(world, 'a');
    const version = await versionOf(world, id);
    const { queueActs } = world.ledger;
    await queueActs.state([{ operation: id, version }], NOT_HAPPENED, MARA);
    expect(await queueActs.close([{ operation: id, version }], LUIS)).toMatchObject({
      done: [],
      leftOut: [{ operation: id, why: 'changed' }],
    });
    expect((await world.ledger.readings.record(id))?.operation.stage).toBe('parked');
    expect(await queueActs.close([{ operation: 'op_none' }], LUIS)).toMatchObject({
      leftOut: [{ why: 'not_found' }],
    });
  });

  test('an equal call that came in between is no change', async () => {
    const world = await start();
    const { id } = await lost(world, 'a');
    const version = await versionOf(world, id);
    await world.write('create', { title: 'a' }, { replays: ['call-2'] });
    expect(await versionOf(world, id)).toBeGreaterThan(version);
    const { done } = await world.ledger.queueActs.close([{ operation: id, version }], MARA);
    expect(done).toMatchObject([{ id, stage: 'closed', effect: 'unknown' }]);
  });

  test('that was done before by the same person is not done again', async () => {
    const world = await start();
    const { id } = await lost(world, 'a');
    const { queueActs } = world.ledger;
    const targets = [{ operation: id }];
    for (const act of [
      () => queueActs.state(targets, NOT_HAPPENED, MARA),
      () => queueActs.sendAgain(targets, MARA),
    ]) {
      expect(await act()).toMatchObject({ done: [{ id }], already: [], leftOut: [] });
      const version = await versionOf(world, id);
      expect(await act()).toMatchObject({ done: [], already: [{ id }], leftOut: [] });
      expect(await versionOf(world, id)).toBe(version);
    }
  });

  test('tried only, it tells what would be done, and nothing is recorded', async () => {
    const world = await start();
    const { id } = await lost(world, 'a');
    const version = await versionOf(world, id);
    const targets = [{ operation: id, version }];
    const trial = { isTrial: true };
    const { queueActs } = world.ledger;
    expect((await queueActs.close(targets, MARA, trial)).done).toMatchObject([{ stage: 'closed' }]);
    expect(await queueActs.sendAgain(targets, MARA, trial)).toMatchObject({
      leftOut: [{ why: 'needs_statement' }],
    });
    expect(await versionOf(world, id)).toBe(version);
  });

  test('a statement keeps its name, its strength and where the person looked', async () => {
    const world = await start();
    const { id } = await lost(world, 'a');
    await world.ledger.queueActs.state([{ operation: id }], NOT_HAPPENED, MARA);
    const reading = await world.ledger.readings.operation(id);
    expect(reading?.operation.resolution).toMatchObject({ by: 'Mara', strength: 'passphrase' });
    expect(reading?.looked).toBe('the list of records');
    expect(reading?.operation.effect).toBe('unknown');
  });
});

test('what was never sent, and whose review nobody decided, is sent again by a person’s order and approval', async () => {
  const world = await start();
  const { ledger } = world;
  const { id } = operationOf(await world.write('destroy', { id: 'r-1' }));
  world.moveClock(9 * HOUR_MS);
  await until(ledger, id, ({ stage, why }) => stage === 'closed' && why?.code === 'review_undecided');
  const { done } = await ledger.queueActs.sendAgain([{ operation: id }], LUIS);
  expect(done).toMatchObject([{ id, stage: 'awaiting_approval', review: { question: 'ordered_again' } }]);
  expect(world.records).toEqual([]);
  const [{ digest }] = done as [Operation];
  await ledger.decideReview({ operation: id, digest, kind: 'approved', by: 'Mara', strength: 'passphrase' });
  await until(ledger, id, ({ effect }) => effect === 'accepted');
  expect(world.records).toHaveLength(1);
});

describe('expired approvals', () => {
  test('are renewed as one decision on the list: one row, named by each operation, and each is sent once', async () => {
    const world = await start(PATIENT);
    const ids = await expired(world, 3);
    const { ledger } = world;
    const { groups } = await ledger.queue.read();
    expect(groups.flatMap(({ members }) => members)).toHaveLength(3);
    const targets = await Promise.all(
      ids.map(async (operation) => ({ operation, version: await versionOf(world, operation) })),
    );
    const refused = await ledger.queueActs.renew(targets, LUIS);
    expect(refused.leftOut.map(({ why }) => why)).toEqual(ids.map(() => 'strength_too_low'));
    const { done, leftOut, list } = await ledger.queueActs.renew(targets, MARA);
    expect(leftOut).toEqual([]);
    expect(done.map(({ review }) => review?.decision)).toEqual(
      ids.map(() => expect.objectContaining({ kind: 'approved', by: 'Mara', list: list.digest })),
    );
    // Whoever decides the same list again finds the first decision.
    expect(await ledger.queueActs.renew(targets, { ...MARA, by: 'Ada' })).toMatchObject({
      done: [],
      leftOut: [],
    });
    for (const id of ids) {
      const operation = await until(ledger, id, ({ stage }) => stage === 'closed');
      expect(operation).toMatchObject({ effect: 'accepted', review: { decision: { by: 'Mara' } } });
    }
    expect(world.records.map((record) => record['id'])).toHaveLength(3);
  });

  test('what has changed since the list was frozen is left out, and the others are not dropped for it', async () => {
    const world = await start(PATIENT);
    const ids = await expired(world, 2);
    const targets = await Promise.all(
      ids.map(async (operation) => ({ operation, version: await versionOf(world, operation) })),
    );
    const [first = ''] = ids;
    const digest = (await world.ledger.readings.record(first))?.operation.digest ?? '';
    await world.ledger.decideReview({
      operation: first,
      digest,
      kind: 'denied',
      by: 'Luis',
      strength: 'same_account',
    });
    const report = await world.ledger.queueActs.renew(targets, MARA);
    expect(report.leftOut).toEqual([{ operation: first, why: 'changed' }]);
    expect(report.done.map(({ id }) => id)).toEqual(ids.slice(1));
  });

  test('a decision that was broken off between two operations is finished under its first name', async () => {
    const world = await start({ ...PATIENT, onDisk: true });
    const ids = await expired(world, 2);
    const targets = await Promise.all(
      ids.map(async (operation) => ({ operation, version: await versionOf(world, operation) })),
    );
    let commits = 0;
    const store = await storeIn(world.data, (inner) => ({
      commit: async (changes) => {
        commits += 1;
        // The list, the first operation, and then no more.
        if (commits > 2) throw storeFault('not_stored');
        return inner.commit(changes);
      },
    }));
    const clock = { ...systemEnvironment(), now: () => Date.now() + 9 * HOUR_MS };
    const broken = await composeLedger({ data: world.data, store, environment: clock });
    await expect(broken.queueActs.renew(targets, MARA)).rejects.toThrow(StoreFault);
    await broken.close();
    expect(commits).toBe(3);
    const report = await world.ledger.queueActs.renew(targets, { ...MARA, by: 'Ada' });
    expect(report.already.map(({ id }) => id)).toEqual(ids.slice(0, 1));
    expect(report.done.map(({ id, review }) => [id, review?.decision?.by])).toEqual([[ids[1], 'Mara']]);
    for (const id of ids) await until(world.ledger, id, ({ stage }) => stage === 'closed');
    expect(world.records).toHaveLength(2);
  });
});
