import { describe, expect, test } from 'vitest';
import { until } from '../../demo/world.mjs';
import { sentenceOf } from '../../src/core/wording.ts';
import {
  httpStory,
  keyed,
  lagging,
  referenced,
  SETTLED,
  type StoryDestination,
  storyDestination,
} from './http-harness.ts';

const TICKET = { title: 'Move the billing database' };
const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

/** With `npm run patience` the lag is twenty seconds; a test of every day keeps the ratio. */
const SETTLE_S = process.env['COUNTERFOIL_PATIENCE'] === undefined ? 2 : 20;
const STORY = { timeout: 60_000 };

describe.concurrent('a reply that does not come, over HTTP', STORY, () => {
  test('[S1] the reply is lost: unknown at once, then found, and a repeat is the same operation', async (context) => {
    const destination = await storyDestination(context);
    await destination.plan('a', { writes: ['lose_reply'] });
    const { events, until, propose, ...story } = await httpStory(context, {
      folder: destination.folder,
      destinations: { tickets: { url: destination.url('a'), operation: referenced() } },
    });
    const { id } = await propose(TICKET);
    const operation = await until(id, SETTLED);
    const again = await story.write(TICKET);

    expect(operation).toMatchObject({ stage: 'closed', effect: 'accepted', record: { id: 'T-1' } });
    expect(operation.evidence.map(({ kind }) => kind)).toEqual(['transport', 'lookup']);
    expect(await events(id)).toContain('checking');
    expect(again.id).toBe(id);
    expect(destination.records('a')).toEqual(['T-1']);
    expect(destination.log('a', 'write')).toHaveLength(1);
    expect(destination.log('a', 'fault')).toHaveLength(1);
  });

  test('[S1] the reply is lost, and there is nothing but a key that is honoured: repeated under it, one record', async (context) => {
    const destination = await storyDestination(context);
    await destination.plan('a', { writes: ['lose_reply'] });
    const { write } = await httpStory(context, {
      folder: destination.folder,
      destinations: { tickets: { url: destination.url('a'), operation: keyed() } },
    });
    const operation = await write(TICKET);

    expect(operation).toMatchObject({ stage: 'closed', effect: 'accepted', record: { id: 'T-1' } });
    expect(operation.attempts.map(({ under }) => under)).toEqual([undefined, 'request_key']);
    const keys = destination.log('a', 'write').map(({ key }) => key);
    expect(keys).toEqual([operation.id, operation.id]);
    expect(destination.records('a')).toEqual(['T-1']);
  });

  test('[S2] the connection is refused, then the destination comes back: sent once, by itself', async (context) => {
    const destination = await storyDestination(context, { isDown: true });
    const { propose, until } = await httpStory(context, {
      folder: destination.folder,
      destinations: { tickets: { url: destination.url('a'), operation: referenced() } },
    });
    const { id } = await propose(TICKET);
    const waiting = await until(id, ({ why }) => why?.code === 'waits_for_destination');
    await destination.start();
    const operation = await until(id, SETTLED);

    expect(waiting).toMatchObject({ stage: 'ready', effect: 'not_sent', attempts: [] });
    expect(sentenceOf(waiting)).toBe('Not sent yet. Waits for tickets to answer again.');
    expect(operation).toMatchObject({ stage: 'closed', effect: 'accepted' });
    expect(operation.attempts).toHaveLength(1);
    expect(destination.records('a')).toEqual(['T-1']);
  });
});

describe.concurrent('a look-up that cannot be relied on, over HTTP', STORY, () => {
  /** A contract that knows of the lag, or one that does not; the destination is the same. */
  const lag = async (
    context: Parameters<typeof storyDestination>[0],
    operation: ReturnType<typeof lagging>,
  ) => {
    const destination = await storyDestination(context);
    await destination.plan('a', { writes: ['lose_reply'], lagMs: SETTLE_S * 800 });
    const story = await httpStory(context, {
      folder: destination.folder,
      settings: {
        bounds: { attemptsMax: 3, elapsedMaxMs: HOUR_MS, lookUpElapsedMaxMs: HOUR_MS, sendByMs: 500 },
      },
      destinations: { tickets: { url: destination.url('a'), operation } },
    });
    return { destination, operation: await story.write(TICKET), story };
  };

  test(`[S5] it lags, and ${SETTLE_S} s are the time to settle: never taken for absent before, then found`, async (context) => {
    const { destination, operation, story } = await lag(context, lagging(`PT${SETTLE_S}S`));
    const history = await story.ledger.readings.history(operation.id);
    const found = history.flatMap(({ event }) =>
      event.type === 'evidence_recorded' && event.evidence.kind === 'lookup' ? [event.evidence.found] : [],
    );

    expect(operation).toMatchObject({ stage: 'closed', effect: 'accepted', record: { id: 'T-1' } });
    expect(found.at(-1)).toBe('present');
    expect(new Set(found.slice(0, -1))).toEqual(new Set(['not_found']));
    expect(destination.records('a')).toEqual(['T-1']);
    expect(destination.log('a', 'write')).toHaveLength(1);
  });

  test('a contract that does not know of the lag: taken for absent, and two records', async (context) => {
    const { destination, operation } = await lag(context, referenced());
    expect(operation.attempts.length).toBeGreaterThan(1);
    expect(destination.records('a').length).toBeGreaterThan(1);
  });

  for (const [fault, how] of [
    ['hang', 'hangs'],
    ['cut', 'is itself lost'],
    ['unavailable', 'is answered 503'],
  ] as const) {
    test(`[S5] the look-up ${how}: it is asked again, and the record is found`, async (context) => {
      const destination = await storyDestination(context);
      await destination.plan('a', { writes: ['lose_reply'], questions: [fault, fault] });
      const { write } = await httpStory(context, {
        folder: destination.folder,
        destinations: { tickets: { url: destination.url('a'), operation: referenced() } },
      });
      const operation = await write(TICKET);

      expect(operation).toMatchObject({ stage: 'closed', effect: 'accepted', record: { id: 'T-1' } });
      expect(destination.log('a', 'fault').map((entry) => entry.fault)).toEqual(['lose_reply', fault, fault]);
      expect(destination.records('a')).toEqual(['T-1']);
      expect(destination.log('a', 'write')).toHaveLength(1);
    });
  }

  test('[S5] it answers 503 for an hour: waits, named, nothing is sent again; then it is found', async (context) => {
    const { destination, id, story } = await unavailable(context);
    let planned = 2;
    for (let minutes = 0; minutes < 60; minutes += 10) {
      await askedOnceMore(destination, () => story.moveClock(10 * MINUTE_MS));
      // When the next one is due is recorded after the answer, and counted from then.
      const waiting = await story.until(
        id,
        ({ lookUps, stage }) => stage === 'checking' && lookUps > planned,
      );
      planned = waiting.lookUps;
      expect(waiting).toMatchObject({ effect: 'unknown', why: { code: 'looking_up' } });
      expect(sentenceOf(waiting)).toMatch(/^Looking it up; next check at .* It may or may not have happened/);
    }
    await destination.plan('a', { otherQuestions: 'answer' });
    story.moveClock(MINUTE_MS);
    const operation = await story.until(id, SETTLED);

    expect(operation).toMatchObject({ stage: 'closed', effect: 'accepted', record: { id: 'T-1' } });
    expect(destination.records('a')).toEqual(['T-1']);
    expect(destination.log('a', 'write')).toHaveLength(1);
  });

  test('[S5] it answers 503 for longer than we may wait: parked at that bound, unknown, and not sent again', async (context) => {
    const { destination, id, story } = await unavailable(context);
    await askedOnceMore(destination, () => story.moveClock(23 * HOUR_MS));
    const before = await story.until(id, ({ lookUps, stage }) => stage === 'checking' && lookUps > 2);
    story.moveClock(2 * HOUR_MS);
    const operation = await story.until(id, SETTLED);

    expect(before.effect).toBe('unknown');
    expect(operation).toMatchObject({
      stage: 'parked',
      effect: 'unknown',
      why: { code: 'lookups_exhausted' },
    });
    expect(destination.records('a')).toEqual(['T-1']);
    expect(destination.log('a', 'write')).toHaveLength(1);
  });
});

/** One reply is lost, and every question after it is answered 503. */
async function unavailable(context: Parameters<typeof storyDestination>[0]) {
  const destination = await storyDestination(context);
  await destination.plan('a', { writes: ['lose_reply'], otherQuestions: 'unavailable' });
  const story = await httpStory(context, {
    folder: destination.folder,
    destinations: { tickets: { url: destination.url('a'), operation: referenced() } },
  });
  const { id } = await story.propose(TICKET);
  // Asked once, and recorded when it is asked next.
  await story.until(id, ({ lookUps, stage }) => stage === 'checking' && lookUps > 1);
  return { destination, id, story };
}

/** A question has come that was asked since the hour was moved on. */
async function askedOnceMore(destination: StoryDestination, moveOn: () => void): Promise<void> {
  const before = destination.log('a', 'question').length;
  moveOn();
  await until(() => destination.log('a', 'question').length > before, 'one more look-up');
}
