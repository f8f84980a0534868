// Bugs that are planted on purpose, each in a copy of the build or in the model store, and nothing of them in the
// product: an invariant that no planted bug can break would say nothing by holding.

import { loadBuild } from './build.mjs';
import { playSeed } from './world.mjs';

export const PLANTED = [];

/** @returns the first seed that goes wrong, and how; `undefined` where none does */
export async function playPlanted({ patches = [], ignores = [] }, { seeds, from }) {
  const build = await loadBuild(patches);
  for (let seed = from; seed < from + seeds; seed += 1) {
    const { violation } = await playSeed(build, seed, { ignores });
    if (violation !== undefined) return { seed, violation };
  }
  return undefined;
}
