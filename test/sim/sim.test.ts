import { expect, test } from 'vitest';
import { loadBuild, misfits } from '../../sim/build.mjs';
import { INVARIANTS, PLANTED, playPlanted } from '../../sim/planted.mjs';
import { shrunk } from '../../sim/shrink.mjs';
import { type Ended, playSeed } from '../../sim/world.mjs';

/** The first of them; another one with SIM_SEED. It is in the title of the test that it makes. */
const SEED = Number(process.env['SIM_SEED'] ?? 1);
const SEEDS = 10;

test(`no invariant is broken in ${SEEDS} runs from seed ${SEED} on, and their faults came about`, async () => {
  const build = await loadBuild();
  const ended: Ended[] = [];
  for (let seed = SEED; seed < SEED + SEEDS; seed += 1) ended.push(await playSeed(build, seed));
  expect(
    ended.flatMap(({ plan, violation }) => (violation === undefined ? [] : [{ plan, violation }])),
  ).toEqual([]);
  const fired = new Set(ended.flatMap((end) => [...end.fired.keys()]));
  for (const fault of ['kill', 'pause', 'lost_request', 'lost_reply', 'late_request', 'store_ghost'])
    expect(fired).toContain(fault);
  expect(ended.reduce((sum, { operations }) => sum + operations, 0)).toBeGreaterThan(SEEDS * 5);
});

test('the same seed goes the same way, and another one another', async () => {
  const build = await loadBuild();
  const first = await playSeed(build, 7);
  expect(await playSeed(build, 7)).toMatchObject({ trace: first.trace, steps: first.steps });
  expect((await playSeed(build, 8)).trace).not.toBe(first.trace);
});

test('a planted bug is found, and its run is made smaller', async () => {
  const bug = PLANTED.find(({ name }) => name === 'timeout-taken-for-not-sent');
  const found = await playPlanted(bug as (typeof PLANTED)[number], { seeds: 50, from: 1 });
  expect(found?.violation.message).toMatch(/^I7: op_\w+ is called not sent, and att_\w+ has left$/);
  const build = await loadBuild(bug?.patches);
  const ended = await playSeed(build, found?.seed ?? 0);
  const small = await shrunk(build, ended);
  expect(small.violation?.name).toBe(ended.violation?.name);
  expect(small.steps).toBeLessThan(ended.steps);
});

test('every invariant has a planted bug that is to break it', () => {
  const broken = new Set(PLANTED.flatMap(({ breaks }) => breaks));
  expect(INVARIANTS.filter((invariant) => !broken.has(invariant))).toEqual([]);
});

test('every bug can still be planted, and one that cannot is told', async () => {
  expect(misfits(PLANTED.flatMap(({ patches = [] }) => patches))).toEqual([]);
  const patch = { file: 'core/decide.js', from: 'no such text in it', to: '' };
  await expect(loadBuild([patch])).rejects.toThrow('A bug is planted in one place: 0 of core/decide.js');
});
