import { describe, expect, test } from 'vitest';
import { heldBy, NEW_MACHINE, OLD_MACHINE, RUN, STORY, setup, shown } from './harness.ts';

const STEP = { ...RUN, step: 'decommission', single: true, call: 'call-1' };

describe.concurrent('an approval is for one operation, exactly as it was shown', STORY, () => {
  test('[S18] a replay of the approved decommission that names another machine is not covered, and is not sent', async (context) => {
    const world = setup(context);
    const agent = await world.agent();
    const asked = await agent.call('decommission_vm', OLD_MACHINE, STEP);
    const first = await shown(world, asked.operation);
    const approved = await world.approve(first.operation.id, first.digest, 'demo owner');
    await agent.call('counterfoil_operation_status', { operation: first.operation.id, wait_s: 10 });
    const done = await agent.call('decommission_vm', OLD_MACHINE, STEP);
    const replayed = await agent.call('decommission_vm', NEW_MACHINE, STEP);
    const second = await shown(world, replayed.operation);
    // Nobody can carry the first approval over.
    const carried = await world.approve(second.operation.id, first.digest, 'demo owner');
    const denied = await world.deny(
      second.operation.id,
      second.digest,
      'demo owner',
      'This is the new machine.',
    );
    const told = await agent.call('decommission_vm', NEW_MACHINE, STEP);

    expect(asked.text).toMatch(/^NOT SENT YET — waiting for a person's approval .*vm-17/);
    expect(approved.code).toBe(0);
    expect(JSON.parse(done.text)).toEqual({ ...OLD_MACHINE, state: 'decommissioned' });
    expect(replayed.text).toMatch(/^NOT SENT YET — waiting for a person's approval .*vm-18/);
    expect(replayed.isError).toBe(true);
    expect(second.operation.id).not.toBe(first.operation.id);
    expect(second.operation).toMatchObject({ stage: 'awaiting_approval', supersedes: first.operation.id });
    expect(second.digest).not.toBe(first.digest);
    expect(carried.code).toBe(5);
    expect(denied.code).toBe(0);
    expect(told.text).toMatch(/^NOT SENT — denied by an approver .*"This is the new machine\."/);
    expect((await shown(world, first.operation.id)).operation).toMatchObject({
      effect: 'verified',
      review: { decision: { kind: 'approved', by: 'demo owner', strength: 'passphrase' } },
    });
    const held = await heldBy(world, 'decommission_vm');
    expect(held.map(({ vm }) => vm)).toEqual(['vm-17']);
  });

  test('[S18] a replay that names another machine before the decision takes the place of the first, and the old digest decides nothing', async (context) => {
    const world = setup(context);
    const agent = await world.agent();
    const asked = await agent.call('decommission_vm', OLD_MACHINE, STEP);
    const first = await shown(world, asked.operation);
    const replayed = await agent.call('decommission_vm', NEW_MACHINE, STEP);
    const late = await world.approve(first.operation.id, first.digest, 'demo owner');
    const status = await agent.call('counterfoil_operation_status', { operation: first.operation.id });

    expect(replayed.operation).not.toBe(asked.operation);
    expect(late.code).toBe(5);
    expect(status.text).toMatch(new RegExp(`^NOT SENT — replaced by ${replayed.operation}`));
    expect(await heldBy(world)).toEqual([]);
  });
});
