// An operator at the command line, with a gateway that goes on running.

import { afterEach, expect, test } from 'vitest';
import { fixtureWorld } from '../gateway/fixture-world.ts';
import { CleanUps, operationOf } from '../gateway/processes.ts';

const CONFIG = `destination: fixture
tools:
  note: {class: ordinary, repeat: unique}
  wipe: {class: irreversible, repeat: unique}
`;

const cleanUps = new CleanUps();
afterEach(cleanUps.run);

const textOf = (answer: unknown): string => JSON.stringify(answer);

test('a stop is told to callers and shown with its list; lifting it shows what waits first; a run is cancelled', {
  timeout: 90_000,
}, async () => {
  const world = fixtureWorld(cleanUps, [{ name: 'note' }, { name: 'wipe' }]);
  const gateway = await world.start(CONFIG);
  const { command } = world;

  const without = await command('stop', '--reason', 'x');
  expect([without.code, without.stderr]).toEqual([2, expect.stringContaining('one of --all, --destination')]);
  const stopped = await command('stop', '--tool', 'fixture/note', '--reason', 'Migration.', '--by', 'Mara');
  expect(stopped.stdout).toMatch(
    /^stp_\w+ {2}Stopped: sending "?note"? to "?fixture"?, by Mara\.\n {2}Reason: "Migration\."\n {2}Stopped at .*\n {2}No more will be sent, since .*\n {2}Nothing was out\.\n/,
  );
  const [id = ''] = stopped.stdout.split(' ');

  const call = await gateway.call('note', { text: 'a' });
  expect(textOf(call)).toMatch(
    /NOT SENT — an operator has stopped sending \\?"?note\\?"? to fixture since .* Reason: \\"Migration\.\\" It will not be sent later by itself; earlier changes were not reversed\. Reads still work\. Tell the user\./,
  );
  const asked = operationOf(await gateway.call('wipe', { disk: '1' }));
  expect(world.calls('note')).toEqual([]);

  const shown = await command('lift', id);
  expect([shown.code, shown.stdout]).toEqual([0, expect.stringContaining('Nothing is lifted yet.')]);
  const [, digest = ''] = /--digest ([0-9a-f]{12})/.exec(shown.stdout) ?? [];
  expect((await command('lift', id, '--digest', '0'.repeat(12))).code).toBe(5);
  const lifted = await command('lift', id, '--digest', digest, '--json');
  expect(JSON.parse(lifted.stdout)).toMatchObject({ released: [], ended: [], left_out: [] });
  expect((await command('stops')).stdout).toBe('Nothing is stopped.\n');
  expect(textOf(await gateway.call('note', { text: 'a' }))).toContain('done');
  expect(world.calls('note')).toHaveLength(1);

  // A person's cancel, of what waits for an approval too.
  const cancelled = await command('cancel', asked, '--by', 'Mara');
  expect([cancelled.code, cancelled.stdout]).toEqual([
    0,
    expect.stringMatching(
      /Cancel requested at .*\n {2}No more will be sent, since .*\n {2}Nothing was out\.\n {2}Earlier changes were not reversed\./,
    ),
  ]);
  expect((await command('cancel', asked, '--by', 'Luis')).stdout).toContain('Cancelled by Mara at ');
  expect((await command('cancel', 'op_NONE')).code).toBe(3);
  expect((await command('cancel', '--run', 'nowhere')).code).toBe(3);
  expect(textOf(await gateway.call('wipe', { disk: '1' }))).toContain('NOT SENT — cancelled by Mara at ');
  expect(world.calls('wipe')).toEqual([]);
});
