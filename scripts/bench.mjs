// `npm run bench`: sets up, then runs the floor benchmark. Standard output is the benchmark's own.

import { runNode } from './processes.mjs';
import { setUpOrExit } from './setup.mjs';

await setUpOrExit();
// The collector is called between rounds, so that no round pays for the garbage of the one before it.
process.exitCode = await runNode(['--expose-gc', 'bench/bench.mjs', ...process.argv.slice(2)]);
