import { afterEach, describe, expect, test } from 'vitest';
import type { Operation } from '../../src/core/operation.ts';
import type { Actor } from '../../src/engine/queue-acts.ts';
import { type Fixture, operationOf, setup, until } from './setup.ts';

const MARA: Actor = { by: 'Mara', strength: 'passphrase' };

let fixture: Fixture | undefined;
afterEach(async () => {
  await fixture?.close();
  fixture = undefined;
});

async function start() {
  const world = await setup();
  fixture = world;
  const ask = async (tool: string, vm: string, run = 'billing', more: object = {}): Promise<Operation> =>
    operationOf(await world.write(tool, { vm }, { run: { id: run, ...more } }));
  const deny = ({ digest, id }: Operation) =>
    world.ledger.decideReview({
      operation: id,
      digest,
      kind: 'denied',
      by: 'Luis',
      strength: 'same_account',
    });
  const stageOf = async ({ id }: Operation) => (await world.ledger.readings.record(id))?.operation.stage;
  return { ...world, ask, deny, stageOf };
}

describe('the list of a run', () => {
  test('holds what waits in it for the same kind of answer, whatever a model says of it', async () => {
    const { ask, ledger } = await start();
    const [first, second] = [await ask('destroy', 'a'), await ask('destroy', 'b')];
    await ask('destroy', 'c', 'another run');
    const apart = await ask('unheard_of', 'd');
    const list = await ledger.runLists.show('billing');
    expect(list.operations.map(({ operation }) => operation)).toEqual([first.id, second.id]);
    expect(list.apart.map(({ id }) => id)).toEqual([apart.id]);
    // Shown again it is the same; it is found by its beginning, in its own run alone.
    expect((await ledger.runLists.show('billing')).digest).toBe(list.digest);
    const { digest, operations } = list;
    expect(await ledger.runLists.shown('billing', digest.slice(0, 12))).toEqual({ digest, operations });
    expect(await ledger.runLists.shown('billing', digest)).toEqual({ digest, operations });
    expect(await ledger.runLists.shown('another run', digest)).toBeUndefined();
    expect(await ledger.runLists.shown('billing', 'f'.repeat(64))).toBeUndefined();
    expect(await ledger.runLists.shown('billing', '0'.repeat(12))).toBeUndefined();
  });

  test('is approved as one decision; what changed is left out, what was denied stays so, what came since waits', async () => {
    const { ask, deny, ledger, records, stageOf } = await start();
    const step = { step: 'off', single: true };
    const kept = [await ask('destroy', 'a'), await ask('destroy', 'b')];
    const denied = await ask('destroy', 'c');
    const changed = await ask('destroy', 'd', 'billing', step);
    const list = await ledger.runLists.show('billing');
    expect(list.operations).toHaveLength(4);
    await deny(denied);
    const instead = await ask('destroy', 'e', 'billing', step);
    const later = await ask('destroy', 'f');
    // An equal call is no change.
    await ask('destroy', 'a', 'billing', {});
    const report = await ledger.queueActs.approveShown(list, MARA);
    expect(report.leftOut).toEqual([
      { operation: denied.id, why: 'changed' },
      { operation: changed.id, why: 'changed' },
    ]);
    expect(report.done.map(({ id }) => id)).toEqual(kept.map(({ id }) => id));
    for (const { id } of kept) {
      const operation = await until(ledger, id, ({ stage }) => stage === 'closed');
      expect(operation.review?.decision).toMatchObject({ by: 'Mara', list: list.digest });
    }
    expect((await ledger.runLists.since('billing', list)).map(({ id }) => id)).toEqual([
      instead.id,
      later.id,
    ]);
    expect([await stageOf(instead), await stageOf(later)]).toEqual([
      'awaiting_approval',
      'awaiting_approval',
    ]);
    expect((await ledger.readings.record(denied.id))?.operation.review?.decision?.kind).toBe('denied');
    expect(new Set(records.map(({ vm }) => vm))).toEqual(new Set(['a', 'b']));
    expect(records).toHaveLength(2);
  });

  test('has one decision, however many decide, and finishes under the first name', async () => {
    const { ask, ledger, records } = await start();
    const asked = [await ask('destroy', 'a'), await ask('destroy', 'b'), await ask('destroy', 'c')];
    const list = await ledger.runLists.show('billing');
    const decided = await Promise.all(
      ['Mara', 'Luis', 'Ada'].map((by) => ledger.queueActs.approveShown(list, { ...MARA, by })),
    );
    const done = decided.flatMap((report) => report.done);
    expect(new Set(done.map(({ id }) => id)).size).toBe(done.length);
    const names = new Set<string | undefined>();
    for (const { id } of asked)
      names.add((await until(ledger, id, ({ stage }) => stage === 'closed')).review?.decision?.by);
    expect(names.size).toBe(1);
    expect(records).toHaveLength(3);
  });

  test('is not approved by somebody who may be the agent, and a trial records nothing', async () => {
    const { ask, ledger, records, stageOf } = await start();
    const asked = await ask('destroy', 'a');
    const list = await ledger.runLists.show('billing');
    const weak = await ledger.queueActs.approveShown(list, { by: 'Mara', strength: 'same_account' });
    expect(weak.leftOut).toMatchObject([{ operation: asked.id, why: 'strength_too_low' }]);
    const trial = await ledger.queueActs.approveShown(list, MARA, { isTrial: true });
    expect(trial.done.map(({ stage }) => stage)).toEqual(['ready']);
    expect(await stageOf(asked)).toBe('awaiting_approval');
    expect(records).toEqual([]);
    // The first decision that counts is taken after both.
    expect((await ledger.queueActs.approveShown(list, { ...MARA, by: 'Ada' })).done).toHaveLength(1);
  });
});
