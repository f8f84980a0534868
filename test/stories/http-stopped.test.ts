// Stopped or cancelled from another process while the outcome of a write is unknown: nothing of it is sent again.

import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { until as untilSo } from '../../demo/world.mjs';
import { composeLedger } from '../../src/compose.ts';
import { httpStory, keyed, referenced, type StatedOperation, storyDestination } from './http-harness.ts';

const TICKET = { title: 'Move the billing database' };
const MARA = { by: 'Mara', strength: 'same_account' } as const;
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
    settings: { replyTimeoutMs: 1_500 },
  });
  const { id } = await story.propose(TICKET);
  await untilSo(() => destination.log('a', 'fault').length === 1, 'the write to arrive');
  const operator = await composeLedger({ data: join(folder, 'data') });
  context.onTestFinished(() => operator.close());
  const scope = { kind: 'destination', destination: 'tickets' } as const;
  if (order === 'stop') {
    const { inFlight } = await operator.stops.stop({ ...MARA, scope, reason: 'Migration.' });
    expect(inFlight.map((each) => each.id)).toEqual([id]);
  }
  if (order === 'cancel') expect((await operator.stops.cancel(id, MARA))?.cancelled).toBe(true);
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
});
