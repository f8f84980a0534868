// Stopped or cancelled from another process while the outcome of a write is unknown: nothing of it is sent again.

import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { until as untilSo } from '../../demo/world.mjs';
import { composeLedger } from '../../src/compose.ts';
import type { JsonObject } from '../../src/core/canonical.ts';
import { httpStory, keyed, referenced, type StatedOperation, storyDestination } from './http-harness.ts';

const TICKET = { title: 'Move the billing database' };
const MARA = { by: 'Mara', strength: 'same_account' } as const;
const HOUR_MS = 3_600_000;
/** Long enough for an order to be given meanwhile, also on a busy machine. */
const REPLY_MS = 5_000;
const STORY = { timeout: 60_000 };

type Order = 'stop' | 'cancel' | 'none';

/** The request arrives, and no answer comes: the order is given while it is out, on the file that all processes share. */
async function ordered(
  context: Parameters<typeof storyDestination>[0],
  operation: StatedOperation,
  order: Order,
) {
  const destination = await storyDestination(context);
  await destination.plan('a', { writes: ['hang_before'] });
  const { folder } = destination;
  const story = await httpStory(context, {
    folder,
    destinations: { tickets: { url: destination.url('a'), operation } },
    settings: { replyTimeoutMs: REPLY_MS },
  });
  const operator = await composeLedger({ data: join(folder, 'data') });
  context.onTestFinished(() => operator.close());
  const { id } = await story.propose(TICKET);
  await untilSo(() => destination.log('a', 'fault').length === 1, 'the write to arrive');
  const scope = { kind: 'destination', destination: 'tickets' } as const;
  if (order === 'stop') {
    const { inFlight } = await operator.stops.stop({ ...MARA, scope, reason: 'Migration.' });
    expect(inFlight.map((each) => each.id)).toEqual([id]);
  }
  if (order === 'cancel') expect((await operator.stops.cancel(id, MARA))?.cancelled).toBe(true);
  return { destination, id, story };
}

/** The approval that it was sent under expires while nothing is known of it. */
async function expired(context: Parameters<typeof storyDestination>[0], operation: StatedOperation) {
  const destination = await storyDestination(context);
  await destination.plan('a', { writes: ['hang_before'] });
  const story = await httpStory(context, {
    folder: destination.folder,
    destinations: { tickets: { url: destination.url('a'), operation, class: 'irreversible' } },
    settings: { replyTimeoutMs: REPLY_MS },
  });
  const { digest, id } = await story.propose(TICKET);
  const approval = { operation: id, digest, kind: 'approved', by: 'Mara', strength: 'passphrase' } as const;
  expect((await story.ledger.decideReview(approval)).decided).toBe(true);
  await untilSo(() => destination.log('a', 'fault').length === 1, 'the write to arrive');
  story.moveClock(9 * HOUR_MS);
  return { destination, id, story };
}

const ORDERS = [
  ['where nobody has said anything it is sent again', 'none', 2, 1],
  ['under a stop it is not sent again', 'stop', 1, 0],
  ['after a cancel it is not sent again', 'cancel', 1, 0],
] as const;

describe.concurrent('while the outcome is unknown', STORY, () => {
  for (const [what, order, writes, records] of ORDERS) {
    test(`[S31a] [S31b] looked for and not there: ${what}`, async (context) => {
      const { destination, id, story } = await ordered(context, referenced(), order);
      const after = await story.until(id, ({ effect, stage, why }) =>
        order === 'stop' ? effect === 'absent' && why?.code === 'stopped' : stage === 'closed',
      );
      expect(after.attempts).toHaveLength(writes);
      expect(destination.log('a', 'write')).toHaveLength(writes);
      expect(destination.records('a')).toHaveLength(records);
      expect(destination.log('a', 'question').length).toBeGreaterThan(0);
      if (order === 'cancel')
        expect(after).toMatchObject({ effect: 'absent', why: { code: 'cancelled', by: 'Mara' } });
    });

    test(`[S31a] [S31b] nothing but a key: ${what}`, async (context) => {
      const { destination, id, story } = await ordered(context, keyed(), order);
      const after = await story.until(id, ({ stage }) => stage === 'closed' || stage === 'parked');
      expect(after).toMatchObject(
        order === 'none' ? { stage: 'closed', effect: 'accepted' } : { stage: 'parked', effect: 'unknown' },
      );
      expect(destination.log('a', 'write')).toHaveLength(writes);
      expect(destination.records('a')).toHaveLength(records);
    });
  }

  test('[S31c] the approval expires: found not to be there, it is held and not sent again', async (context) => {
    const { destination, id, story } = await expired(context, referenced());
    const after = await story.until(id, ({ review }) => review?.because?.code === 'approval_expired');
    expect(after).toMatchObject({ stage: 'awaiting_approval', effect: 'absent' });
    expect(destination.log('a', 'write')).toHaveLength(1);
    expect(destination.records('a')).toEqual([]);
  });

  test('[S31c] the approval expires: nothing but a key, it is with a person and not repeated', async (context) => {
    const { guards, ...rest } = keyed();
    const window = { kind: 'duration', at_least: 'PT48H', from: 'first_accept', after: 'executes_again' };
    const lasting = (guards as readonly JsonObject[]).map((guard) => ({ ...guard, window }));
    const { destination, id, story } = await expired(context, { ...rest, guards: lasting });
    const after = await story.until(id, ({ stage }) => stage === 'parked');
    expect(after).toMatchObject({ effect: 'unknown', why: { code: 'approval_expired' } });
    expect(destination.log('a', 'write')).toHaveLength(1);
    expect(destination.records('a')).toEqual([]);
  });
});
