import { describe, expect, test } from 'vitest';
import { until } from '../../demo/world.mjs';
import { sentenceOf } from '../../src/core/wording.ts';
import {
  BARE,
  httpStory,
  keyed,
  referenced,
  SETTLED,
  type StoryDestination,
  storyDestination,
} from './http-harness.ts';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const STORY = { timeout: 60_000 };
const HEALTHY = ['one', 'two', 'three', 'four'] as const;

describe.concurrent('a destination that stays down', STORY, () => {
  test('[S10a] what is for it waits, named; the circuit opens; others go on; when it is back, everything goes on by itself', async (context) => {
    const [down, other] = await Promise.all([storyDestination(context), storyDestination(context)]);
    await down.plan('a', { writes: ['lose_reply', 'lose_reply'], otherQuestions: 'hang' });
    const story = await httpStory(context, {
      folder: down.folder,
      destinations: {
        tickets: { url: down.url('a'), operation: referenced() },
        other: { url: other.url('a'), operation: referenced() },
      },
    });
    const lost = await Promise.all([story.propose({ title: 'a' }), story.propose({ title: 'b' })]);
    for (const { id } of lost) await story.until(id, ({ stage }) => stage === 'checking');
    await down.kill();
    const late = await Promise.all(['c', 'd', 'e'].map((title) => story.propose({ title })));

    const [circuit] = await untilOpen(story.ledger);
    expect(circuit).toMatchObject({ destination: 'tickets', standing: 'open' });
    expect(circuit?.failures).toBeGreaterThanOrEqual(5);
    for (const { id } of late) {
      const waiting = await story.until(id, ({ why }) => why?.code === 'waits_for_destination');
      expect(waiting).toMatchObject({ stage: 'ready', effect: 'not_sent' });
      expect(sentenceOf(waiting)).toBe('Not sent yet. Waits for tickets to answer again.');
    }
    const doctor = await story.counterfoil(['doctor']);
    expect(doctor.stdout).toMatch(/note {4}circuit {4}tickets has not answered \d+ times in a row, since /);
    expect(await story.write({ title: 'x' }, 'other')).toMatchObject({ stage: 'closed', effect: 'accepted' });
    for (const { id } of lost) {
      expect(await story.until(id, () => true)).toMatchObject({ stage: 'checking', effect: 'unknown' });
    }

    // A person says that it answers, and it does not: it opens again, and nothing is lost by it.
    expect(doctor.stdout).toMatch(/counterfoil queue reset tickets\n/);
    const reset = await story.counterfoil(['queue', 'reset', 'tickets', '--by', 'Mara']);
    expect(reset.code).toBe(0);
    expect(reset.stdout).toMatch(
      /^The circuit of tickets is closed, by the word of Mara; it had not answered \d+ times in a row\.\nThe running gateway to tickets looks up and sends what waits now\./,
    );
    expect(await untilOpen(story.ledger)).toMatchObject([{ destination: 'tickets' }]);

    await down.start();
    const ends = await Promise.all([...lost, ...late].map(({ id }) => story.until(id, SETTLED)));
    expect(ends.map(({ effect }) => effect)).toEqual(Array.from(ends, () => 'accepted'));
    expect(down.records('a')).toHaveLength(5);
    expect(down.log('a', 'write')).toHaveLength(5);
    expect(await story.ledger.circuits.list()).toEqual([]);
    expect((await story.counterfoil(['doctor'])).stdout).not.toContain('circuit');
    const again = await story.counterfoil(['queue', 'reset', 'tickets', '--by', 'Mara']);
    expect([again.code, again.stdout]).toEqual([
      0,
      expect.stringMatching(
        /^Nothing was changed: the circuit of tickets is closed since .*, by an answer\.\n$/,
      ),
    ]);
  });

  test('[S10a] it stays down for longer than we may wait: parked at that bound, each as what is known of it', async (context) => {
    const down = await storyDestination(context);
    await down.plan('a', { writes: ['lose_reply'], otherQuestions: 'hang' });
    const story = await httpStory(context, {
      folder: down.folder,
      destinations: { tickets: { url: down.url('a'), operation: referenced() } },
    });
    const lost = await story.propose({ title: 'a' });
    await story.until(lost.id, ({ stage }) => stage === 'checking');
    await down.kill();
    const late = await story.propose({ title: 'b' });
    await story.until(late.id, ({ why }) => why?.code === 'waits_for_destination');
    await untilOpen(story.ledger);
    story.moveClock(25 * HOUR_MS);

    expect(await story.until(lost.id, SETTLED)).toMatchObject({
      stage: 'parked',
      effect: 'unknown',
      why: { code: 'lookups_exhausted' },
    });
    expect(await story.until(late.id, SETTLED)).toMatchObject({
      stage: 'parked',
      effect: 'not_sent',
      why: { code: 'bounds_used_up' },
    });
    expect(down.records('a')).toHaveLength(1);
  });

  for (const how of ['hangs', 'refuses'] as const) {
    test(`[S10b] the fifth ${how}, with forty writes for it: every write to the four others is done meanwhile`, async (context) => {
      const fifth = await storyDestination(context);
      const four = await Promise.all(HEALTHY.map(() => storyDestination(context)));
      const hung = Array.from({ length: 60 }, () => 'hang_before' as const);
      if (how === 'hangs') await fifth.plan('a', { writes: hung, otherQuestions: 'hang' });
      else await fifth.kill();
      const story = await httpStory(context, {
        folder: fifth.folder,
        destinations: {
          tickets: { url: fifth.url('a'), operation: referenced() },
          ...Object.fromEntries(
            HEALTHY.map((name, index) => [
              name,
              { url: (four[index] as StoryDestination).url('a'), operation: BARE },
            ]),
          ),
        },
      });
      const stuck = await Promise.all(titles(40).map((title) => story.propose({ title })));
      const writes = HEALTHY.flatMap((name) => titles(25).map((title) => story.write({ title }, name)));
      const done = await Promise.all(writes);

      expect(new Set(done.map(({ effect }) => effect))).toEqual(new Set(['accepted']));
      expect(four.map((one) => one.records('a').length)).toEqual([25, 25, 25, 25]);
      const open = await Promise.all(stuck.map(({ id }) => story.until(id, () => true)));
      expect(open.filter(SETTLED)).toEqual([]);
      expect(fifth.records('a')).toEqual([]);
    });
  }
});

describe.concurrent('a key that is known for an hour', STORY, () => {
  /** The destination ends as it has written, before it answers, and is away until so much time is over. */
  const away = async (
    context: Parameters<typeof storyDestination>[0],
    operation: ReturnType<typeof keyed>,
    { minutes, hidesUntil = 0 }: { readonly minutes: number; readonly hidesUntil?: number },
  ) => {
    const destination = await storyDestination(context);
    await destination.plan('a', { writes: ['die'], hidesUntil });
    const story = await httpStory(context, {
      folder: destination.folder,
      destinations: { tickets: { url: destination.url('a'), operation } },
    });
    const { id } = await story.propose({ title: 'a' });
    await untilOpen(story.ledger);
    story.moveClock(minutes * MINUTE_MS);
    await destination.start();
    // What was tried in between and came to nothing is tried again after a pause.
    story.moveClock(MINUTE_MS);
    return { destination, operation: await story.until(id, SETTLED) };
  };

  test('[S19] within the window it is sent again under its key: one record', async (context) => {
    const { destination, operation } = await away(context, keyed(), { minutes: 30 });
    expect(operation).toMatchObject({ stage: 'closed', effect: 'accepted', record: { id: 'T-1' } });
    expect(destination.log('a', 'write')).toHaveLength(2);
    expect(destination.records('a')).toEqual(['T-1']);
  });

  test('[S19] after it nothing is repeated: without a look-up it is a person\u2019s', async (context) => {
    const { destination, operation } = await away(context, keyed(), { minutes: 55 });
    expect(operation).toMatchObject({
      stage: 'parked',
      effect: 'unknown',
      why: { code: 'guard_lost', lost: 'window' },
    });
    expect(sentenceOf(operation)).toContain('the time is over for which the key is known to count');
    expect(destination.log('a', 'write')).toHaveLength(1);
    expect(destination.records('a')).toEqual(['T-1']);
  });

  test('[S19] after it there is the look-up, which finds it', async (context) => {
    const { destination, operation } = await away(context, keyed({ isLookedUp: true }), { minutes: 55 });
    expect(operation).toMatchObject({ stage: 'closed', effect: 'accepted', record: { id: 'T-1' } });
    expect(destination.log('a', 'write')).toHaveLength(1);
    expect(destination.records('a')).toEqual(['T-1']);
  });

  test('[S19] after it a look-up that finds nothing leads to a person, and to no repeat', async (context) => {
    const { destination, operation } = await away(context, keyed({ isLookedUp: true }), {
      minutes: 55,
      hidesUntil: 2,
    });
    expect(operation).toMatchObject({ stage: 'parked', effect: 'unknown' });
    expect(destination.log('a', 'write')).toHaveLength(1);
    expect(destination.records('a')).toEqual(['T-1']);
  });
});

function titles(count: number): readonly string[] {
  return Array.from({ length: count }, (_, index) => `ticket ${index + 1}`);
}

async function untilOpen({ circuits }: { readonly circuits: { list(): Promise<readonly OpenCircuit[]> } }) {
  let open: readonly OpenCircuit[] = [];
  await until(async () => {
    open = await circuits.list();
    return open.length > 0;
  }, 'the circuit to open');
  return open;
}

type OpenCircuit = { readonly destination: string; readonly failures: number; readonly standing: string };
