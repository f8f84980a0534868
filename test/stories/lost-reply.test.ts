import { describe, expect, test } from 'vitest';
import { until } from '../../demo/world.mjs';
import {
  CHANGE,
  heldBy,
  historyOf,
  IMPATIENT,
  OWN_ANSWER,
  queuedIn,
  RUN,
  STORY,
  setup,
  shown,
} from './harness.ts';

describe.concurrent('a reply that does not come', STORY, () => {
  test('[S1] the reply is lost: a caller that waits is told what was found, with the id of the record', async (context) => {
    const world = setup(context);
    world.plan({ on: 'raise_change_request', do: 'lose_reply' });
    const agent = await world.agent();
    const answer = await agent.call('raise_change_request', CHANGE, RUN);
    const { operation, history } = await shown(world);

    expect(answer.text).toMatch(/^ALREADY_EXISTS — .* its answer was lost, and the record was found/);
    expect(answer.text).toContain('cutover holds it as "CHG-1042"');
    expect(answer.isError).toBe(false);
    expect(answer.operation).toBe(operation.id);
    expect(operation).toMatchObject({ stage: 'closed', effect: 'verified', record: { id: 'CHG-1042' } });
    // Unknown at once, before anything was looked up.
    const checking = history.find(({ event }) => event.type === 'checking')?.event;
    expect(checking).toMatchObject({ why: { code: 'looking_up' } });
    expect(operation.attempts).toHaveLength(1);
    expect(await heldBy(world)).toHaveLength(1);
    expect(world.faultsFired()).toBe(1);
  });

  test('[S1] the reply is lost: the repeat of an impatient caller is answered with the same operation', async (context) => {
    const world = setup(context);
    world.plan({ on: 'raise_change_request', do: 'lose_reply' });
    const agent = await world.agent();
    const answer = await agent.call('raise_change_request', CHANGE, { ...RUN, call: 'call-1', ...IMPATIENT });
    const { operation } = await shown(world);

    expect(answer.tries).toBeGreaterThan(1);
    expect(answer.text).toMatch(/^ALREADY_EXISTS — .*nothing was sent now/);
    expect(answer.text).toContain('"CHG-1042": found by look-up');
    expect(answer.operation).toBe(operation.id);
    expect(operation.attempts).toHaveLength(1);
    expect(await heldBy(world)).toHaveLength(1);
  });

  test('[S1] the destination ends before it answers: looked up at once, and a repeat without a run is the same', async (context) => {
    const world = setup(context);
    world.plan({ on: 'raise_change_request', do: 'exit_after' });
    const agent = await world.agent();
    const first = await agent.call('raise_change_request', CHANGE);
    const second = await agent.call('raise_change_request', CHANGE);
    const { operation } = await shown(world);

    expect(first.text).toContain('its answer was lost, and the record was found');
    expect(second.text).toMatch(/^ALREADY_EXISTS — /);
    expect([first.operation, second.operation]).toEqual([operation.id, operation.id]);
    expect(operation).toMatchObject({ effect: 'verified', run: { weak: true } });
    expect(operation.evidence[0]).toMatchObject({ kind: 'transport', left: 'maybe', what: 'cut' });
    expect(await heldBy(world)).toHaveLength(1);
    expect(world.faultsFired()).toBe(1);
  });

  test('[S2] the destination is down and comes back: not sent, then sent once by itself', async (context) => {
    const world = setup(context);
    const agent = await world.agent();
    await agent.call('get_vm', { vm: 'vm-17' });
    world.plan({ on: 'start', do: 'exit', times: 2 });
    await world.killDestination();
    const said = { ...RUN, call: 'call-1' };
    const first = await agent.call('raise_change_request', CHANGE, said);
    const waiting = world.records().length;
    await until(() => world.records().length > 0, 'the write to be sent');
    const second = await agent.call('raise_change_request', CHANGE, said);
    const { operation } = await shown(world);

    expect(first.text).toMatch(/^NOT SENT YET — waits for cutover to answer again/);
    expect(first).toMatchObject({ isError: true, facts: { stage: 'ready', effect: 'not_sent' } });
    expect(waiting).toBe(0);
    expect(second.text.startsWith(OWN_ANSWER)).toBe(true);
    expect(operation.id).toBe(first.operation);
    expect(operation).toMatchObject({ effect: 'verified' });
    expect(operation.attempts).toHaveLength(1);
    expect(await heldBy(world)).toHaveLength(1);
    expect(world.faultsFired()).toBe(3);
  });

  test('[S3a] no key, no look-up, reply lost: parked, in the queue, and a repeat is not sent', async (context) => {
    const world = setup(context);
    world.plan({ on: 'notify_team', do: 'lose_reply' });
    const agent = await world.agent();
    const message = { channel: '#billing', text: 'The cutover begins.' };
    const first = await agent.call('notify_team', message, { ...RUN, call: 'call-1' });
    const again = await agent.call('notify_team', message, { ...RUN, call: 'call-2' });
    const found = await shown(world);
    const queue = await world.counterfoil(['queue', '--json']);
    const show = await world.counterfoil(['show', found.operation.id]);

    expect(first.text).toMatch(/^OUTCOME UNKNOWN — with a person now/);
    expect(first).toMatchObject({
      isError: true,
      facts: { stage: 'parked', effect: 'unknown', cause: 'no_lookup' },
    });
    expect(again.text).toBe(first.text);
    expect(again.operation).toBe(first.operation);
    expect(found.operation).toMatchObject({ id: first.operation, stage: 'parked', effect: 'unknown' });
    expect(found.label).toBe('Needs a person');
    expect(queuedIn(queue)).toEqual([first.operation]);
    // A script that looks must not take it for something to repeat.
    expect(show.code).toBe(12);
    expect(historyOf(found)).not.toContain('sending_again');
    expect(await heldBy(world)).toHaveLength(1);
  });

  test('[S17] the snapshot is slower than the caller: the second call attaches, and the late reply settles it', async (context) => {
    const world = setup(context);
    world.plan({ on: 'create_snapshot', do: 'take', ms: 3_000 });
    const agent = await world.agent();
    const snapshot = { database: 'billing', label: 'before the cutover' };
    const answer = await agent.call('create_snapshot', snapshot, {
      ...RUN,
      call: 'call-1',
      patienceMs: 2_000,
      tries: 4,
    });
    const found = await shown(world);

    expect(answer.tries).toBeGreaterThan(1);
    expect(JSON.parse(answer.text)).toEqual({ id: 'SNAP-1', ...snapshot, state: 'complete' });
    expect(found.operation).toMatchObject({ effect: 'verified', record: { id: 'SNAP-1' } });
    // It had been given up as unknown when the reply came after all.
    const kinds = found.operation.evidence.map(({ kind }) => kind);
    expect(kinds.indexOf('transport')).toBeGreaterThanOrEqual(0);
    expect(kinds.indexOf('acknowledgement')).toBeGreaterThan(kinds.indexOf('transport'));
    expect(historyOf(found)).toContain('cancel_requested');
    expect(found.operation.attempts).toHaveLength(1);
    expect(await heldBy(world)).toHaveLength(1);
  });

  test('a contract that is untrue about late arrival: the second record is found out, and nothing is green', async (context) => {
    const world = setup(context);
    // The contract says that after three seconds nothing arrives any more; this one takes five.
    world.plan({ on: 'raise_change_request', do: 'take', ms: 5_000 });
    const agent = await world.agent();
    const first = await agent.call('raise_change_request', CHANGE, RUN);
    await until(() => world.records().length === 2, 'the write that was taken for absent');
    await until(async () => (await shown(world)).operation.stage === 'parked', 'the late reply');
    const told = await agent.call('raise_change_request', CHANGE, RUN);

    expect(first.text.startsWith(OWN_ANSWER)).toBe(true);
    expect((await shown(world)).operation).toMatchObject({ stage: 'parked', effect: 'diverged' });
    expect(told.text).toMatch(/^CONTRADICTING EVIDENCE — with a person now/);
    expect(told.isError).toBe(true);
    expect(await heldBy(world)).toHaveLength(2);
  });
});
