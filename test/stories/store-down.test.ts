import { rmSync, writeFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { until } from '../../demo/world.mjs';
import { CHANGE, heldBy, OWN_ANSWER, RUN, STORY, setup, shown } from './harness.ts';

describe.concurrent('a ledger that cannot record', STORY, () => {
  test('[S37] the store is down: reads pass, writes are not recorded and not sent, in those words', async (context) => {
    const world = setup(context);
    writeFileSync(world.data, 'not a directory');
    const agent = await world.agent();
    const read = await agent.call('get_vm', { vm: 'vm-17' });
    const write = await agent.call('raise_change_request', CHANGE, RUN);
    const irreversible = await agent.call('decommission_vm', { vm: 'vm-17', name: 'billing-db-old' }, RUN);

    expect(JSON.parse(read.text)).toEqual({ vm: 'vm-17', name: 'billing-db-old', state: 'running' });
    for (const answer of [write, irreversible]) {
      expect(answer.text).toMatch(
        /^NOT RECORDED, NOT SENT — the ledger cannot record writes now\. Reads still work\./,
      );
      expect(answer.isError).toBe(true);
      expect(answer.operation).toBeUndefined();
    }
    expect(await heldBy(world)).toEqual([]);
  });

  test('[S37] when the store can be opened again the same call is recorded and sent once', async (context) => {
    const world = setup(context);
    writeFileSync(world.data, 'not a directory');
    const agent = await world.agent();
    const down = await agent.call('raise_change_request', CHANGE, RUN);
    rmSync(world.data);
    let up = down;
    await until(async () => {
      up = await agent.call('raise_change_request', CHANGE, RUN);
      return !up.text.startsWith('NOT RECORDED');
    }, 'the ledger to be opened again');
    const { operation } = await shown(world);

    expect(down.text).toMatch(/^NOT RECORDED, NOT SENT/);
    expect(up.text.startsWith(OWN_ANSWER)).toBe(true);
    expect(operation.effect).toBe('verified');
    expect(await heldBy(world)).toHaveLength(1);
  });
});
