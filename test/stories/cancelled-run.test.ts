// Twelve approved changes, a lost reply among them, a colleague who asks for the rest, and a cancel (S12).

import { expect, test } from 'vitest';
import { until as untilSo } from '../../demo/world.mjs';
import { answerText, foundText } from '../../src/core/answer-wording.ts';
import type { Operation } from '../../src/core/operation.ts';
import { acknowledgementLines } from '../../src/core/stop-wording.ts';
import { operationOf } from '../engine/setup.ts';
import { httpStory, storyDestination, versioned } from './http-harness.ts';

const MARA = { by: 'Mara', strength: 'passphrase' } as const;
const PAGES = Array.from({ length: 12 }, (_, index) => `p-${index + 1}`);

test('[S12] twelve approved, two verified, one reply lost, a colleague asks for the rest, and the first cancels', {
  timeout: 60_000,
}, async (context) => {
  const destination = await storyDestination(context);
  await destination.plan('a', { writes: ['answer', 'answer', 'hang_before'] });
  const story = await httpStory(context, {
    folder: destination.folder,
    destinations: {
      tickets: {
        url: destination.url('a'),
        class: 'irreversible',
        // One at a time: what follows the lost one waits for it.
        operation: { ...versioned(), limits: { late_arrival: 'PT0S', concurrency: 1 } },
      },
    },
    settings: { replyTimeoutMs: 4_000 },
  });
  const { ledger } = story;
  const ask = async (page: string, who: string) => {
    const call = { tool: 'page.set', arguments: { page, state: 'moved' }, destination: 'tickets' };
    return ledger.write({ ...call, requester: who, run: { id: `run of ${who}` } });
  };
  const all = async (who: string, pages = PAGES): Promise<readonly Operation[]> => {
    const operations: Operation[] = [];
    for (const page of pages) operations.push(operationOf(await ask(page, who)));
    return operations;
  };
  const approve = async ({ digest, id }: Operation): Promise<void> => {
    const decided = await ledger.decideReview({ operation: id, digest, kind: 'approved', ...MARA });
    expect(decided.decided).toBe(true);
  };
  const now = async (id: string): Promise<Operation> => {
    const record = await ledger.readings.record(id);
    if (record === undefined) throw new Error(`${id} is not recorded`);
    return record.operation;
  };

  const maras = await all('mara');
  const [first, second, third, ...rest] = maras as [Operation, Operation, Operation, ...Operation[]];
  for (const one of [first, second]) {
    await approve(one);
    await story.until(one.id, ({ effect, stage }) => stage === 'closed' && effect === 'verified');
  }
  await approve(third);
  await untilSo(() => destination.log('a', 'fault').length === 1, 'the third to arrive');
  for (const one of rest) await approve(one);
  for (const { id } of rest) await story.until(id, ({ why }) => why?.code === 'waits_for_place');

  // Luis asks for all twelve: the same operations.
  const luis = await all('luis');
  expect(luis.map(({ id }) => id)).toEqual(maras.map(({ id }) => id));
  const done = await ask(PAGES[0] ?? '', 'luis');
  expect(done.kind).toBe('already_exists');
  expect(answerText(operationOf(done))).toMatch(/^ALREADY_EXISTS — /);
  expect(luis[2]?.stage).toBe('sending');
  expect(luis.slice(3).map(({ stage }) => stage)).toEqual(rest.map(() => 'ready'));

  const cancelled = await ledger.stops.cancelRun('run of mara', MARA);
  if (cancelled === undefined) throw new Error('no such run');
  // At once: no other process sends here.
  expect(cancelled.noMore).toEqual({ at: expect.any(Number) });
  expect(cancelled.notSent.map(({ id }) => id)).toEqual(rest.map(({ id }) => id));
  expect(cancelled.earlierChanges.map(({ id }) => id)).toEqual([first.id, second.id]);
  expect(cancelled.out.open).toBe(1);
  for (const { id } of rest) {
    const closed = await now(id);
    expect(closed).toMatchObject({
      stage: 'closed',
      effect: 'not_sent',
      why: { code: 'cancelled', by: 'Mara' },
    });
    expect(answerText(closed)).toMatch(/^NOT SENT — cancelled by Mara at .* Nothing reached tickets\./);
  }

  // Its reply is lost: not known, and not repeated.
  const lost = await story.until(third.id, ({ stage }) => stage === 'parked');
  expect([lost.effect, lost.attempts.length]).toEqual(['unknown', 1]);
  const later = await ledger.stops.runAcknowledged(cancelled);
  if (later === undefined) throw new Error('no such cancel');
  expect(later.noMore).toEqual({ at: expect.any(Number) });
  expect(later.settledAt).toBeUndefined();
  const said = acknowledgementLines(later, 'Cancel requested').join(' ');
  expect(said).toMatch(
    /^Cancel requested at \S+ UTC\. No more will be sent, since \S+ UTC\. 1 result still being checked\.$/,
  );
  expect(said).not.toMatch(/reversed|undone/i);

  // Told so at the next asking, and asked again they are others, each with an approval of its own to come.
  const anew = await all('luis', PAGES.slice(3));
  expect(anew.map(({ stage }) => stage)).toEqual(rest.map(() => 'awaiting_approval'));
  expect(anew.map(({ previous }) => previous?.operation)).toEqual(rest.map(({ id }) => id));
  expect(new Set(anew.map(({ id }) => id)).size).toBe(9);
  expect(foundText(await now(third.id))).toMatch(/^OUTCOME UNKNOWN/);
  const written = destination.log('a', 'record').length;
  expect(written).toBe(2);

  // A person closes what is not known: the last acknowledgement stays open, and says why.
  await ledger.queueActs.close([{ operation: third.id }], { by: 'Luis', strength: 'same_account' });
  const end = await ledger.stops.runCancel('run of mara');
  expect(end?.settledAt).toBeUndefined();
  expect(end?.out.closedUnknown).toEqual([{ operation: third.id, by: 'Luis' }]);
});
