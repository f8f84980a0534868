// The names under which callers come back for an answer: whose they are, in which order they are listed, and that an end
// which was told is never taken back.

import { afterEach, expect, test } from 'vitest';
import type { OperationAnswer } from '../../src/engine/answers.ts';
import type { Task } from '../../src/engine/tasks.ts';
import { type Fixture, factsOf, setup } from './setup.ts';

const opened: Fixture[] = [];
afterEach(async () => {
  for (const fixture of opened.splice(0)) await fixture.close();
});

async function world(options: Parameters<typeof setup>[0] = {}) {
  const fixture = await setup(options);
  opened.push(fixture);
  const begin = async (tool: string, args: object, requester = 'agent'): Promise<Task> => {
    const answer = await fixture.write(tool, args as never, { requester, delivery: 'told' });
    return fixture.ledger.tasks.begin(requester, answer as OperationAnswer);
  };
  return { ...fixture, begin };
}

test('it is found by its principal at its destination, and by nobody else', async () => {
  const { begin, ledger } = await world();
  const { id } = await begin('create', { title: 'a' });
  expect(id).toMatch(/^tsk_[0-9A-Z]{26}$/);
  expect(await ledger.tasks.find('cab', 'agent', id)).toMatchObject({ id, isFirst: true, tool: 'create' });
  expect(await ledger.tasks.find('cab', 'other', id)).toBeUndefined();
  expect(await ledger.tasks.find('other', 'agent', id)).toBeUndefined();
});

test('they are listed newest first, page by page, each principal’s own alone', async () => {
  const { begin, ledger, moveClock } = await world();
  const mine: string[] = [];
  for (let number = 0; number < 7; number += 1) {
    mine.unshift((await begin('append', { number })).id);
    await begin('append', { number }, 'other');
    moveClock(1_000);
  }
  const listed: string[] = [];
  for (;;) {
    const page = await ledger.tasks.list('cab', 'agent', { before: listed.at(-1), limit: 3 });
    listed.push(...page.map(({ id }) => id));
    if (page.length < 3) break;
  }
  expect(listed).toEqual(mine);
  expect(await ledger.tasks.list('cab', 'nobody', { before: undefined, limit: 3 })).toEqual([]);
});

test('its first caller is given the reply itself, as often as it asks; an equal call is told that it was done', async () => {
  const { begin, ledger, records } = await world();
  const first = await begin('create', { title: 'a' });
  const look = await ledger.tasks.look(first);
  expect(look).toMatchObject({ status: 'completed', answer: { kind: 'reply' } });
  ledger.delivered(first.operation);
  const second = await begin('create', { title: 'a' });
  expect(second.operation).toBe(first.operation);
  expect(await ledger.tasks.look(second)).toMatchObject({
    status: 'completed',
    answer: { kind: 'already_exists' },
  });
  expect(await ledger.tasks.look(look.task)).toMatchObject({ answer: { kind: 'reply' } });
  expect(records).toHaveLength(1);
});

test('what differs in an equal call is named with it, and its reply is not that of the other text', async () => {
  const facts = factsOf('note', { repeat: 'unique', identity: ['title'] });
  const { begin, ledger } = await world({ facts: { note: facts } });
  await begin('note', { title: 'a', body: 'x' });
  const other = await begin('note', { title: 'a', body: 'y' });
  expect(await ledger.tasks.look(other)).toMatchObject({
    answer: { kind: 'already_exists', notApplied: ['body'] },
  });
});

test('an end that was told stays, though the operation is opened again by an equal call', async () => {
  const { begin, faults, ledger } = await world();
  const held = await begin('destroy', { vm: 1 });
  const { operation } = (await ledger.tasks.look(held)).answer;
  expect((await ledger.tasks.look(held)).status).toBe('working');
  await ledger.decideReview({
    operation: operation.id,
    digest: operation.digest,
    kind: 'denied',
    by: 'Mara',
    strength: 'passphrase',
  });
  const denied = await ledger.tasks.look(held);
  expect(denied).toMatchObject({ status: 'completed', answer: { kind: 'state' } });
  faults.push('lose_request', 'lose_request');
  const parked = await begin('append', { number: 1 });
  const first = await ledger.tasks.look(parked);
  expect(first).toMatchObject({ status: 'completed', answer: { operation: { stage: 'parked' } } });
  expect(await ledger.tasks.find('cab', 'agent', parked.id)).toMatchObject({
    ended: { status: 'completed' },
  });
});

test('who waits for it is told as soon as it has ended', async () => {
  let release = (): void => {};
  const wait = new Promise<void>((resolve) => {
    release = resolve;
  });
  const { faults, ledger, write } = await world();
  faults.push({ wait });
  const answer = await write('create', { title: 'a' }, { waitMs: 0, delivery: 'told' });
  const task = await ledger.tasks.begin('agent', answer as OperationAnswer);
  expect((await ledger.tasks.look(task)).status).toBe('working');
  const settled = ledger.tasks.settled(task, new AbortController().signal, (id, waitMs, signal) =>
    ledger.status(id, waitMs, signal),
  );
  release();
  expect(await settled).toMatchObject({ status: 'completed', answer: { kind: 'reply' } });
});

test('who stops waiting is told what is known then', async () => {
  const { begin, ledger } = await world();
  const held = await begin('destroy', { vm: 1 });
  const gone = new AbortController();
  const settled = ledger.tasks.settled(held, gone.signal, (id, waitMs, signal) =>
    ledger.status(id, waitMs, signal),
  );
  gone.abort();
  expect(await settled).toMatchObject({ status: 'working', answer: { kind: 'state' } });
});
