// Rules as the engine keeps to them: more than one person, who may act, how old what is known of access may be.

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, test } from 'vitest';
import type { Operation } from '../../src/core/operation.ts';
import type { Policy, PolicyRule } from '../../src/core/policy.ts';
import type { ReviewDecision } from '../../src/engine/ledger.ts';
import { type Fixture, factsOf, operationOf, setup, until } from './setup.ts';

const cleanUps: (() => Promise<void> | void)[] = [];
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp();
});

async function under(rules: readonly PolicyRule[], access?: Policy['access']): Promise<Fixture> {
  const policy: Policy = { digest: 'policy-1', rules, ...(access === undefined ? {} : { access }) };
  const facts = { create: factsOf('create', { repeat: 'free', policy }) };
  const fixture = await setup({ facts });
  cleanUps.push(() => fixture.close());
  return fixture;
}

const approve = ({ ledger }: Fixture, { digest, id }: Operation, by: string, principal = by) => {
  const decision: ReviewDecision = {
    operation: id,
    digest,
    kind: 'approved',
    by,
    principal,
    strength: 'passphrase',
  };
  return ledger.decideReview(decision);
};

describe('an approval by two of three', () => {
  const TWO: readonly PolicyRule[] = [
    { name: 'two', quorum: 2, approve: ['local:mara', 'local:luis', 'local:ana'], separate: true },
  ];

  test('sends with the second person, and counts whoever it is known to be, not the name that is given', async () => {
    const fixture = await under(TWO);
    const asked = operationOf(await fixture.write('create', { title: 'a' }, { requester: 'local:mara' }));
    expect(asked.review).toMatchObject({
      question: 'policy',
      demands: { quorum: { rule: 'two', persons: 2 } },
    });
    expect(await approve(fixture, asked, 'local:luis', 'local:mara')).toMatchObject({
      refusal: 'own_request',
    });
    expect(await approve(fixture, asked, 'Luis', 'local:eve')).toMatchObject({ refusal: 'not_an_approver' });
    expect(await approve(fixture, asked, 'Luis', 'local:luis')).toMatchObject({ decided: true });
    expect(await approve(fixture, asked, 'Ana', 'local:luis')).toMatchObject({ refusal: 'already_decided' });
    expect(fixture.records).toEqual([]);
    expect(await approve(fixture, asked, 'Ana', 'local:ana')).toMatchObject({ decided: true });
    await until(fixture.ledger, asked.id, ({ stage }) => stage === 'closed');
    expect(fixture.records).toEqual([{ title: 'a' }]);
  });

  test('is held when one of the two has lost access since', async () => {
    const fixture = await under(TWO);
    const asked = operationOf(await fixture.write('create', { title: 'a' }));
    await approve(fixture, asked, 'Luis', 'local:luis');
    expect(await fixture.ledger.principals.remove('local:luis', 'Mara')).toBe(true);
    await approve(fixture, asked, 'Ana', 'local:ana');
    const held = await until(fixture.ledger, asked.id, ({ review }) => review?.because !== undefined);
    expect(held.review?.because).toEqual({
      code: 'access_lost',
      who: 'approver',
      principal: 'local:luis',
      how: 'removed',
    });
    expect(fixture.records).toEqual([]);
  });
});

test('whoever is not named by a rule does not act on what is with a person', async () => {
  const fixture = await under([{ name: 'operators', operate: ['local:ana'] }]);
  fixture.faults.push('lose_request');
  const { id } = operationOf(await fixture.write('create', { title: 'a' }));
  await until(fixture.ledger, id, ({ stage }) => stage === 'parked');
  const finding = { resolution: 'stated_happened', looked: 'the list' } as const;
  const state = (principal: string) =>
    fixture.ledger.queueActs.state([{ operation: id }], finding, {
      by: 'Ana',
      principal,
      strength: 'same_account',
    });
  expect(await state('local:eve')).toMatchObject({ leftOut: [{ why: 'not_an_operator' }] });
  expect(await state('local:ana')).toMatchObject({ leftOut: [], done: [{ id }] });
});

test('a principal whose time is over sends nothing more, also what needs no person', async () => {
  const fixture = await under([]);
  const expiresAt = Date.now() + 60_000;
  await fixture.ledger.principals.add({ name: 'agent', kind: 'agent', expiresAt }, 'Mara');
  expect(operationOf(await fixture.write('create', { title: 'a' })).effect).toBe('accepted');
  fixture.moveClock(61_000);
  const { id } = operationOf(await fixture.write('create', { title: 'b' }));
  const held = await until(fixture.ledger, id, ({ review }) => review?.because !== undefined);
  expect(held.review?.because).toMatchObject({ code: 'access_lost', who: 'requester', how: 'expired' });
  expect(fixture.records).toEqual([{ title: 'a' }]);
});

test('what is known of access is asked again when it is older than the policy allows', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'counterfoil-access-'));
  cleanUps.push(() => rmSync(folder, { recursive: true, force: true }));
  const log = join(folder, 'asked');
  const script = join(folder, 'source.mjs');
  const answers = (answer: string): void =>
    writeFileSync(
      script,
      `import { appendFileSync } from 'node:fs';
appendFileSync(${JSON.stringify(log)}, process.argv[2] + '\\n');
process.stdout.write('${answer}');
`,
    );
  answers('{"access": true}');
  const fixture = await under([], { command: [process.execPath, script], maxAgeMs: 60_000 });
  const asked = (): readonly string[] => readFileSync(log, 'utf8').trim().split('\n');
  // Together, and again while the answer is young: asked once.
  await Promise.all(['a', 'b'].map((title) => fixture.write('create', { title })));
  await fixture.write('create', { title: 'c' });
  expect(asked()).toEqual(['agent']);
  expect(fixture.records).toHaveLength(3);
  fixture.moveClock(61_000);
  answers('{"access": "yes"}');
  const { id } = operationOf(await fixture.write('create', { title: 'd' }));
  const held = await until(fixture.ledger, id, ({ review }) => review?.because !== undefined);
  expect(held.review?.because).toMatchObject({ code: 'access_lost', how: 'not_confirmed' });
  expect(asked()).toEqual(['agent', 'agent']);
  // Removed there, and given back here: it is asked again, whatever it said before.
  answers('{"access": false}');
  const isLost = async (how: string): Promise<void> => {
    const { id: next } = operationOf(await fixture.write('create', { title: how }));
    const lost = await until(fixture.ledger, next, ({ review }) => review?.because !== undefined);
    expect(lost.review?.because).toMatchObject({ code: 'access_lost', how: 'removed' });
  };
  await isLost('once');
  expect(await fixture.ledger.principals.restore('agent', 'Mara')).toBe(true);
  await isLost('again');
  expect(asked()).toHaveLength(4);
  expect(fixture.records).toHaveLength(3);
});

test('a write that must have happened before is looked for in its own run, with the same value', async () => {
  const policy: Policy = {
    digest: 'policy-1',
    rules: [
      {
        name: 'snapshot first',
        tools: ['destroy'],
        requires: [{ tool: 'create', effect: 'accepted', same: { vm: 'title' } }],
      },
    ],
  };
  const fixture = await setup({
    facts: { create: factsOf('create', { policy }), destroy: factsOf('destroy', { repeat: 'free', policy }) },
  });
  cleanUps.push(() => fixture.close());
  const inRun = (id: string) => ({ run: { id }, waitMs: 0 });
  await fixture.write('create', { title: 'vm-1' }, { run: { id: 'one' } });
  const waits = async (vm: string, run: string) =>
    operationOf(await fixture.write('destroy', { vm }, inRun(run))).id;
  const waiting = [await waits('vm-2', 'one'), await waits('vm-1', 'two')];
  for (const id of waiting)
    await until(fixture.ledger, id, ({ why }) => why?.code === 'waits_for_prerequisite');
  const sent = await waits('vm-1', 'one');
  await until(fixture.ledger, sent, ({ stage }) => stage === 'closed');
  expect(fixture.records).toEqual([{ title: 'vm-1' }, { vm: 'vm-1' }]);
  // The one that was missing is made: what waited goes on by itself.
  await fixture.write('create', { title: 'vm-2' }, { run: { id: 'one' } });
  await until(fixture.ledger, waiting[0] ?? '', ({ stage }) => stage === 'closed');
  expect(fixture.records).toHaveLength(4);
});
