import { describe, expect, test } from 'vitest';
import { until } from '../../demo/world.mjs';
import { labelOf, sentenceOf } from '../../src/core/wording.ts';
import {
  BARE,
  httpStory,
  IDENTIFIED,
  keyed,
  referenced,
  SETTLED,
  type StoryDestination,
  storyDestination,
  versioned,
} from './http-harness.ts';

const TICKET = { title: 'Move the billing database' };
const SECOND = { title: 'Move the orders database' };
const STORY = { timeout: 60_000 };

async function setup(
  context: Parameters<typeof storyDestination>[0],
  operation: Parameters<typeof httpStory>[1]['destinations'][string]['operation'],
  plan: Parameters<StoryDestination['plan']>[1],
) {
  const destination = await storyDestination(context);
  await destination.plan('a', plan);
  const story = await httpStory(context, {
    folder: destination.folder,
    settings: { bounds: { attemptsMax: 3, elapsedMaxMs: 3_600_000, lookUpElapsedMaxMs: 400, sendByMs: 500 } },
    destinations: { tickets: { url: destination.url('a'), operation } },
  });
  return { destination, story };
}

describe.concurrent('two records where one was meant, over HTTP', STORY, () => {
  test('[S32a] the look-up finds two: diverged, with a person, both shown, and nothing is sent again', async (context) => {
    const { destination, story } = await setup(context, referenced(), {
      writes: ['lose_reply'],
      otherQuestions: 'unavailable',
    });
    const { id } = await story.propose(TICKET);
    await until(() => destination.log('a', 'question').length > 0, 'a look-up');
    await destination.plan('a', { copy: true, otherQuestions: 'answer' });
    const operation = await story.until(id, SETTLED);
    const shown = await story.counterfoil(['show', id]);
    const again = await story.propose(TICKET);

    expect(operation).toMatchObject({ stage: 'parked', effect: 'diverged', why: { code: 'contradiction' } });
    expect(sentenceOf(operation)).toContain('2 records were found where one was meant: T-1, T-2.');
    expect(shown.stdout).toContain('looked up: several (2 records: T-1, T-2)');
    expect(shown.code).toBe(12);
    expect(again.id).toBe(id);
    expect(destination.records('a')).toEqual(['T-1', 'T-2']);
    expect(destination.log('a', 'write')).toHaveLength(1);
  });
});

describe.concurrent('a destination that does not keep its word about a key', STORY, () => {
  /** What was written is shown when two requests have come: until then only a repeat can tell. */
  const IGNORED = { writes: ['lose_reply'], hidesUntil: 2, keys: 'ignored' } as const;

  test('[S34] the key is passed over: the second record is counted, diverged, shown as two, and trust is lowered', async (context) => {
    const { destination, story } = await setup(context, keyed({ isLookedUp: true }), IGNORED);
    const operation = await story.write(TICKET);
    const shown = await story.counterfoil(['show', operation.id]);

    expect(operation).toMatchObject({ stage: 'parked', effect: 'diverged' });
    expect(operation.attempts.map(({ under }) => under)).toEqual([undefined, 'request_key']);
    expect(labelOf(operation)).toBe('Needs a person');
    expect(shown.stdout).toContain('(2 records: T-1, T-2)');
    expect(destination.records('a')).toEqual(['T-1', 'T-2']);
    expect(await story.ledger.guards.list()).toMatchObject([
      { destination: 'tickets', tool: 'ticket.create', because: 'two_records', operation: operation.id },
    ]);

    // The next reply that is lost is not followed by a repeat.
    await destination.plan('a', { ...IGNORED, hidesUntil: 4 });
    const next = await story.write(SECOND);
    expect(next).toMatchObject({
      stage: 'parked',
      effect: 'unknown',
      why: { code: 'guard_lost', lost: 'distrusted' },
    });
    expect(sentenceOf(next)).toContain('the destination has passed over a key before');
    expect(destination.records('a')).toEqual(['T-1', 'T-2', 'T-3']);
    expect(destination.log('a', 'write')).toHaveLength(3);
  });

  test('[S34] there is no look-up, and the answer lacks the proof: unknown, never green, and trust is lowered', async (context) => {
    const proof = { in: 'body', name: '/replayed', value: 'true' };
    const { destination, story } = await setup(context, keyed({ proof }), {
      writes: ['lose_reply'],
      keys: 'ignored',
    });
    const operation = await story.write(TICKET);

    expect(operation).toMatchObject({ stage: 'parked', effect: 'unknown' });
    expect(operation.evidence.at(-1)).toMatchObject({ kind: 'transport', what: 'guard_not_proven' });
    expect(await story.ledger.guards.list()).toMatchObject([{ because: 'not_proven' }]);
    expect(destination.records('a')).toHaveLength(2);
    const writes = destination.log('a', 'write').length;
    await destination.plan('a', { writes: ['lose_reply'] });
    expect(await story.write(SECOND)).toMatchObject({ effect: 'unknown', why: { lost: 'distrusted' } });
    expect(destination.log('a', 'write')).toHaveLength(writes + 1);
  });

  test('where the key is honoured, the same repeat leaves one record and no trust is lost', async (context) => {
    const { destination, story } = await setup(context, keyed({ isLookedUp: true }), {
      ...IGNORED,
      keys: 'honoured',
    });
    const operation = await story.write(TICKET);

    expect(operation).toMatchObject({ stage: 'closed', effect: 'accepted', record: { id: 'T-1' } });
    expect(operation.attempts).toHaveLength(2);
    expect(destination.records('a')).toEqual(['T-1']);
    expect(await story.ledger.guards.list()).toEqual([]);
  });

  test('without key and look-up nothing is tried: one record, and a person', async (context) => {
    const { destination, story } = await setup(context, BARE, { writes: ['lose_reply'] });
    expect(await story.write(TICKET)).toMatchObject({ stage: 'parked', why: { code: 'no_lookup' } });
    expect(destination.records('a')).toEqual(['T-1']);
  });
});

describe.concurrent('a destination that answers 409 for ids that were taken once', STORY, () => {
  test('the reply is lost: repeated under its own id, the 409 is no outcome, and the look-up finds it', async (context) => {
    const { destination, story } = await setup(context, IDENTIFIED, {
      writes: ['lose_reply'],
      questions: ['unavailable'],
    });
    const operation = await story.write(TICKET);
    expect(operation).toMatchObject({ stage: 'closed', effect: 'accepted' });
    expect(destination.records('a')).toHaveLength(1);
  });

  /** The reply is lost, and somebody deletes the thing before we can look for it. */
  const deleted = async (context: Parameters<typeof storyDestination>[0], freesIds: boolean) => {
    const { destination, story } = await setup(context, IDENTIFIED, {
      writes: ['lose_reply'],
      otherQuestions: 'unavailable',
      freesIds,
    });
    const { id } = await story.propose(TICKET);
    await until(() => destination.log('a', 'question').length > 0, 'a look-up');
    await destination.plan('a', { remove: true, otherQuestions: 'answer' });
    return { destination, operation: await story.until(id, SETTLED) };
  };

  test('it was deleted before we could look: it is not made again, and a person is asked', async (context) => {
    const { destination, operation } = await deleted(context, false);
    expect(operation).toMatchObject({ stage: 'parked', effect: 'unknown' });
    expect(operation.attempts.some(({ under }) => under === 'client_identity')).toBe(true);
    expect(destination.records('a')).toHaveLength(1);
    expect(destination.log('a', 'write').length).toBeGreaterThan(1);
  });

  test('a contract that is untrue about that: what was deleted is made once more', async (context) => {
    const { destination } = await deleted(context, true);
    expect(destination.records('a')).toHaveLength(2);
  });
});

describe.concurrent('what the destination says, and what is there', STORY, () => {
  const PAGE = { page: 'runbook', state: 'frozen' };

  test('[S42] it refuses: rejected, with its answer as evidence, and nothing is there', async (context) => {
    const { destination, story } = await setup(context, referenced(), { writes: ['refuse'] });
    const operation = await story.write(TICKET);
    const reading = await story.ledger.readings.operation(operation.id);

    expect(operation).toMatchObject({ stage: 'closed', effect: 'rejected' });
    expect(operation.evidence).toMatchObject([{ kind: 'acknowledgement', means: 'rejected' }]);
    expect(reading?.reply).toMatchObject({ code: 422 });
    expect(reading?.reply?.body).toContain('It is closed.');
    expect(destination.records('a')).toEqual([]);
    expect(destination.log('a', 'write')).toHaveLength(1);
  });

  test('[S42] it acknowledges, and the record at that very version is another: diverged, with both', async (context) => {
    const { destination, story } = await setup(context, versioned(), { writes: ['keep_old'] });
    const operation = await story.write(PAGE);
    const shown = await story.counterfoil(['show', operation.id]);

    expect(operation).toMatchObject({ stage: 'parked', effect: 'diverged', why: { code: 'contradiction' } });
    expect(operation.evidence).toMatchObject([
      { kind: 'acknowledgement', means: 'accepted' },
      { kind: 'readback', matches: false, otherwise: 'nobody_wrote', version: '1' },
    ]);
    expect(sentenceOf(operation)).toContain(
      'at the version that this write made, and is not what was written',
    );
    expect(shown.stdout).toContain('read back: it differs at the version of our own write');
    expect(destination.records('a')).toEqual(['runbook']);
  });

  test('[S42] somebody wrote after us: accepted, changed since, and no contradiction', async (context) => {
    const { destination, story } = await setup(context, versioned(), { writes: ['overwritten'] });
    const operation = await story.write(PAGE);

    expect(operation).toMatchObject({ stage: 'closed', effect: 'accepted' });
    expect(operation.evidence.at(-1)).toMatchObject({
      matches: false,
      otherwise: 'later_writer',
      version: '2',
    });
    expect(labelOf(operation)).toBe('Accepted, changed since');
    expect(destination.records('a')).toEqual(['runbook', 'runbook']);
  });

  test('[S42] a version that may come back shows nothing: accepted, different, and that it cannot be told', async (context) => {
    const { story } = await setup(context, versioned({ aba_safe: 'no' }), { writes: ['keep_old'] });
    const operation = await story.write(PAGE);

    expect(operation).toMatchObject({ stage: 'closed', effect: 'accepted' });
    expect(operation.evidence.at(-1)).toMatchObject({ matches: false, otherwise: 'cannot_tell' });
    expect(sentenceOf(operation)).toContain('whether this write took effect cannot be told');
  });

  test('what is there is what was written: verified', async (context) => {
    const { story } = await setup(context, versioned(), {});
    expect(await story.write(PAGE)).toMatchObject({ stage: 'closed', effect: 'verified' });
  });
});
