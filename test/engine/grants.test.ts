import { afterEach, expect, test } from 'vitest';
import type { Operation } from '../../src/core/operation.ts';
import { GRANT_MAX_MS } from '../../src/engine/grants.ts';
import { type Fixture, factsOf, operationOf, setup, until } from './setup.ts';

const HOUR_MS = 3_600_000;
const STRICT = { mode: 'strict' } as const;
const FACTS = {
  note: factsOf('note', { ...STRICT, repeat: 'free' }),
  mark: factsOf('mark', { ...STRICT, repeat: 'free' }),
  destroy: factsOf('destroy', { ...STRICT, class: 'irreversible' }),
  unheard_of: factsOf('unheard_of', { ...STRICT, class: 'unclassified', classSource: 'nobody' }),
};

let fixture: Fixture | undefined;
afterEach(async () => {
  await fixture?.close();
  fixture = undefined;
});

async function start() {
  const world = await setup({ facts: FACTS });
  fixture = world;
  let offset = 0;
  const ask = async (tool: string, text: string, run = 'billing'): Promise<Operation> =>
    operationOf(await world.write(tool, { text }, { run: { id: run } }));
  const grant = (operation: Operation, more: object = {}) =>
    world.ledger.grants.give({
      operation: operation.id,
      digest: operation.digest,
      until: Date.now() + offset + HOUR_MS,
      by: 'Mara',
      strength: 'passphrase',
      ...more,
    });
  const pass = (ms: number): void => {
    offset += ms;
    world.moveClock(ms);
  };
  return { ...world, ask, grant, pass };
}

test('a grant lets its kind of write through in its run, until its end, under a rule with its name', async () => {
  const { ask, grant, ledger, pass, records } = await start();
  const waiting = await ask('note', 'first');
  expect(waiting.review?.question).toBe('strict');
  const given = await grant(waiting);
  expect(given).toMatchObject({ granted: true, grant: { tool: 'note', run: 'billing', by: 'Mara' } });
  const id = given.granted ? given.grant.id : '';
  // It is no approval: what waits is decided by itself.
  expect((await ledger.readings.record(waiting.id))?.operation.stage).toBe('awaiting_approval');
  const through = await ask('note', 'second');
  expect(through).toMatchObject({ stage: 'closed', effect: 'accepted', rule: `${id} (given by Mara)` });
  expect(through.review).toBeUndefined();
  for (const [tool, run] of [
    ['note', 'another run'],
    ['mark', 'billing'],
    ['destroy', 'billing'],
    ['unheard_of', 'billing'],
  ] as const)
    expect((await ask(tool, 'not covered', run)).stage).toBe('awaiting_approval');
  pass(HOUR_MS + 1);
  expect((await ask('note', 'third')).stage).toBe('awaiting_approval');
  expect(records.map(({ text }) => text)).toEqual(['second']);
});

test('a grant that is revoked lets nothing more through, and holds what had not left', async () => {
  const { ask, faults, grant, ledger, records, write } = await start();
  const given = await grant(await ask('note', 'first'));
  const id = given.granted ? given.grant.id : '';
  faults.push(...Array.from({ length: 4 }, () => 'refuse' as const));
  const waiting = operationOf(await write('note', { text: 'second' }, { run: { id: 'billing' }, waitMs: 0 }));
  await until(ledger, waiting.id, ({ attempts, stage }) => stage === 'ready' && attempts.length > 0);
  expect(await ledger.grants.revoke(id, 'Luis')).toMatchObject({ revoked: { by: 'Luis' } });
  // The first revocation stands.
  expect(await ledger.grants.revoke(id, 'Ada')).toMatchObject({ revoked: { by: 'Luis' } });
  const held = await until(ledger, waiting.id, ({ stage }) => stage === 'awaiting_approval');
  expect(held.review).toMatchObject({ question: 'strict', because: { code: 'rule_stricter' } });
  expect((await ask('note', 'third')).stage).toBe('awaiting_approval');
  expect(records).toEqual([]);
  expect((await ledger.grants.list()).map((each) => ledger.grants.isInForce(each))).toEqual([false]);
});

test('nothing is granted for what the floor protects, by somebody who may be the agent, or for long', async () => {
  const { ask, grant, ledger, records } = await start();
  const note = await ask('note', 'a');
  const refusals: unknown[] = [];
  for (const asked of [
    grant(await ask('destroy', 'a')),
    grant(await ask('unheard_of', 'a')),
    grant(note, { strength: 'same_account' }),
    grant(note, { digest: 'f'.repeat(64) }),
    grant(note, { digest: note.digest.slice(0, 11) }),
    grant(note, { operation: 'op_none' }),
    grant(note, { until: Date.now() + GRANT_MAX_MS + HOUR_MS }),
    grant(note, { until: Date.now() - 1 }),
  ]) {
    const result = await asked;
    refusals.push(result.granted ? 'granted' : result.refusal);
  }
  expect(refusals).toEqual([
    ...['never_granted', 'never_granted', 'strength_too_low', 'digest_differs', 'digest_differs'],
    ...['not_found', 'too_long', 'too_long'],
  ]);
  expect(await ledger.grants.list()).toEqual([]);
  expect((await ask('note', 'b')).stage).toBe('awaiting_approval');
  expect(records).toEqual([]);
});
