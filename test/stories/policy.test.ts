// Rules that are judged again when something is sent: what must have happened before, and how long an approval lasts.

import { appendFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { until } from '../../demo/world.mjs';
import { changedConfig, heldBy, NEW_MACHINE, OLD_MACHINE, RUN, STORY, setup, shown } from './harness.ts';

const RULES = `policy:
  version: 1
  rules:
    - name: Snapshot first
      tools: [decommission_vm]
      requires: [{tool: create_snapshot, effect: verified, same: {name: database}}]
    - name: Short for the new machine
      tools: [decommission_vm]
      when: args.vm == "${NEW_MACHINE.vm}"
      lifetime: PT8S
`;

describe.concurrent(
  'a decommission needs a verified snapshot of the same machine in the same run',
  STORY,
  () => {
    test('[S33] [S6c] while the snapshot is unknown nothing is decommissioned, an approval that expires meanwhile is held, and what is known lets it go on', async (context) => {
      const config = changedConfig(context, {});
      appendFileSync(config, RULES);
      const world = setup(context, { config });
      const agent = await world.agent();
      // Its reply is lost, and for as long as the destination says so it is not listed either.
      world.plan(
        { on: 'create_snapshot', do: 'lose_reply' },
        { on: 'list_snapshots', do: 'find_nothing', times: 100_000 },
      );
      const snapshot = await agent.call(
        'create_snapshot',
        { database: OLD_MACHINE.name, label: 'before' },
        { ...RUN, patienceMs: 15_000 },
      );
      const asked = await agent.call('decommission_vm', OLD_MACHINE, RUN);
      const first = await shown(world, asked.operation);
      const approved = await world.approve(first.operation.id, first.digest, 'demo owner');
      const status = () =>
        agent.call('counterfoil_operation_status', { operation: first.operation.id, wait_s: 1 });
      await until(async () => (await status()).text.includes('waits for'), 'it to wait');
      const waiting = await shown(world, first.operation.id);
      // Another machine, of which no snapshot was ever asked for, under a rule that gives an approval eight seconds.
      const other = await agent.call('decommission_vm', NEW_MACHINE, { run: 'another run' });
      const second = await shown(world, other.operation);
      const shortly = await world.approve(second.operation.id, second.digest, 'demo owner');
      await until(
        async () =>
          (
            await agent.call('counterfoil_operation_status', { operation: second.operation.id, wait_s: 2 })
          ).text.includes('expired'),
        'its approval to expire',
      );
      const expired = await shown(world, second.operation.id);
      const meanwhile = world.records('decommission_vm');
      const unknown = await shown(world, snapshot.operation);
      // The destination lists it again: it is found, read back, and what waited for it goes on by itself.
      world.heal('list_snapshots');
      const ordered = await world.counterfoil(['queue', 'look-up', snapshot.operation ?? '', '--json']);
      await until(() => world.records('decommission_vm').length > 0, 'the decommission');
      await status();
      const last = await shown(world, first.operation.id);

      expect(snapshot.text).toMatch(/^OUTCOME UNKNOWN — /);
      expect([approved.code, ordered.code]).toEqual([0, 0]);
      expect(waiting.operation).toMatchObject({
        stage: 'ready',
        effect: 'not_sent',
        attempts: [],
        why: {
          code: 'waits_for_prerequisite',
          rule: 'Snapshot first',
          tool: 'create_snapshot',
          operation: snapshot.operation,
        },
      });
      expect(unknown.operation.effect).toBe('unknown');
      expect(shortly.code).toBe(0);
      expect(expired.operation).toMatchObject({
        stage: 'awaiting_approval',
        effect: 'not_sent',
        attempts: [],
        review: { because: { code: 'approval_expired' } },
      });
      expect(meanwhile).toEqual([]);
      expect(last.operation.effect).toBe('verified');
      const held = await heldBy(world);
      expect(held.filter(({ vm }) => vm !== undefined).map(({ vm }) => vm)).toEqual([OLD_MACHINE.vm]);
    });
  },
);
