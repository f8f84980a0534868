import { describe, expect, test } from 'vitest';
import { until } from '../../demo/world.mjs';
import { heldBy, queuedIn, RUN, STORY, setup, shown } from './harness.ts';

const MESSAGE = { channel: '#billing', text: 'The cutover begins.' };
const SAID = { ...RUN, call: 'call-1' };
const LOOKED = ['--looked-at', 'the channel #billing, messages since 22:00'];

describe.concurrent('a person states what became of a write that nobody can look up', STORY, () => {
  test('[S3b] "it happened": closed, and the effect stays unknown; the statement is shown and nothing is sent', async (context) => {
    const world = setup(context);
    world.plan({ on: 'notify_team', do: 'lose_reply' });
    const agent = await world.agent();
    const { operation: id } = await agent.call('notify_team', MESSAGE, SAID);
    const queue = await world.counterfoil(['queue']);
    const stated = await world.counterfoil([
      'queue',
      'resolve',
      id ?? '',
      '--happened',
      ...LOOKED,
      '--by',
      'Mara',
    ]);
    const again = await world.counterfoil([
      'queue',
      'resolve',
      id ?? '',
      '--happened',
      ...LOOKED,
      '--by',
      'Mara',
    ]);
    const { operation, label } = await shown(world, id);
    const told = await agent.call('notify_team', MESSAGE, SAID);

    expect(queue.stdout).toMatch(
      /^No answer from cutover \(1\) {2}cause_no_answer@cutover\n {2}1 needs a person\./,
    );
    expect(stated).toMatchObject({ code: 0, stderr: '' });
    expect(stated.stdout).toMatch(/^op_\w+ {2}Stated by Mara at .* UTC\. It may or may not have happened\./);
    expect(again.stdout).toContain('was done before by Mara; nothing was done now.');
    expect(operation).toMatchObject({
      stage: 'closed',
      effect: 'unknown',
      resolution: { resolution: 'stated_happened', by: 'Mara', strength: 'same_account', attempts: 1 },
    });
    expect(label).toMatch(/^Stated by Mara at /);
    expect(told.text).toMatch(/^OUTCOME UNKNOWN — Mara stated at \d\d:\d\d:\d\d UTC that it happened/);
    expect(queuedIn(await world.counterfoil(['queue', '--json']))).toEqual([]);
    expect(await heldBy(world)).toHaveLength(1);
    expect(world.faultsFired()).toBe(1);
  });

  test('[S3b] "it did not happen": sent again only under a new approval that shows the unknown and the statement', async (context) => {
    const world = setup(context);
    world.plan({ on: 'notify_team', do: 'exit' });
    const agent = await world.agent();
    const { operation: id = '' } = await agent.call('notify_team', MESSAGE, SAID);
    const early = await world.counterfoil(['queue', 'send-again', id, '--by', 'Mara']);
    const stated = await world.counterfoil([
      'queue',
      'resolve',
      id,
      '--not-happened',
      ...LOOKED,
      '--by',
      'Mara',
    ]);
    const afterStatement = await shown(world, id);
    const unsent = await agent.call('notify_team', MESSAGE, { ...RUN, call: 'call-2' });
    const ordered = await world.counterfoil(['queue', 'send-again', id, '--by', 'Mara']);
    const asked = await shown(world, id);
    const queue = await world.counterfoil(['queue']);
    const sentUnapproved = world.records().length;
    const wrong = await world.counterfoil(['approve', id, '--digest', '0123456789ab']);
    const approved = await world.counterfoil(['approve', id, '--digest', asked.digest, '--by', 'Luis']);
    await until(async () => (await shown(world, id)).operation.stage === 'closed', 'the second send');
    const { operation } = await shown(world, id);

    expect(early.code).toBe(5);
    expect(early.stdout).toContain('nobody has stated that it did not');
    expect(stated.stdout).toContain(`counterfoil queue send-again ${id}`);
    expect(afterStatement.operation).toMatchObject({ stage: 'parked', effect: 'unknown' });
    expect(unsent.text).toMatch(/^OUTCOME UNKNOWN — /);
    expect(ordered.code).toBe(0);
    expect(asked.operation).toMatchObject({
      stage: 'awaiting_approval',
      effect: 'unknown',
      orderedBy: 'Mara',
      review: { question: 'ordered_again' },
    });
    expect(asked.sentence).toMatch(
      /A person asked for it to be sent again\. .*An earlier try may or may not have happened\. Mara stated at .* that it did not happen\./,
    );
    expect(queue.stdout).toMatch(/Mara stated at .* that it did not happen\./);
    expect(sentUnapproved).toBe(0);
    expect(wrong.code).toBe(5);
    expect(approved.code).toBe(0);
    // The answer to the second try is no word against what was stated of the first.
    expect(operation).toMatchObject({
      effect: 'accepted',
      resolution: { resolution: 'stated_not_happened' },
    });
    expect(operation.resolution?.contradicted).toBeUndefined();
    expect(operation.attempts).toHaveLength(2);
    expect(await heldBy(world)).toHaveLength(1);
  });

  test('[S3c] "it did not happen", and the late reply says otherwise: accepted, the statement flagged, records 1', async (context) => {
    const world = setup(context);
    world.plan({ on: 'notify_team', do: 'take', ms: 9_000 });
    const agent = await world.agent();
    const { operation: id = '' } = await agent.call('notify_team', MESSAGE, SAID);
    const stated = await world.counterfoil([
      'queue',
      'resolve',
      id,
      '--not-happened',
      ...LOOKED,
      '--by',
      'Mara',
    ]);
    const before = await shown(world, id);
    await until(async () => (await shown(world, id)).operation.effect !== 'unknown', 'the late reply');
    const { operation, sentence } = await shown(world, id);
    const late = await world.counterfoil(['queue', 'send-again', id, '--by', 'Mara']);

    expect(stated.code).toBe(0);
    expect(before.operation).toMatchObject({ stage: 'parked', effect: 'unknown' });
    expect(operation).toMatchObject({
      stage: 'closed',
      effect: 'accepted',
      resolution: { resolution: 'stated_not_happened', by: 'Mara', contradicted: true },
    });
    expect(sentence).toMatch(/Mara stated at .* that it did not happen; later evidence says otherwise\./);
    expect(late.code).toBe(5);
    expect(await heldBy(world)).toHaveLength(1);
  });

  test('given up by name: closed as unknown, and said so', async (context) => {
    const world = setup(context);
    world.plan({ on: 'notify_team', do: 'lose_reply' });
    const agent = await world.agent();
    const { operation: id = '' } = await agent.call('notify_team', MESSAGE, SAID);
    const closed = await world.counterfoil(['queue', 'close-unknown', id, '--by', 'Mara', '--json']);
    const { operation, sentence } = await shown(world, id);

    expect(closed.json).toMatchObject({ act: 'close-unknown', by: 'Mara', left_out: [] });
    expect(operation).toMatchObject({
      stage: 'closed',
      effect: 'unknown',
      why: { code: 'given_up', by: 'Mara' },
    });
    expect(sentence).toContain('Closed by Mara without a finding.');
    expect(await heldBy(world)).toHaveLength(1);
  });
});
