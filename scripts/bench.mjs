// `npm run bench`: sets up, then runs the floor benchmark. Standard output is the benchmark's own.

import { runNode } from './processes.mjs';
import { setUpOrExit } from './setup.mjs';

await setUpOrExit();
process.exitCode = await runNode(['bench/bench.mjs', ...process.argv.slice(2)]);
