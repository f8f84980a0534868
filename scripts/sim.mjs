// `npm run sim`: sets up, then plays the simulation. Standard output is the simulation's own.

import { runNode } from './processes.mjs';
import { setUpOrExit } from './setup.mjs';

await setUpOrExit();
process.exitCode = await runNode(['sim/sim.mjs', ...process.argv.slice(2)]);
