// `npm run demo`: sets up, then runs the demonstration. Standard output is the demonstration's own.

import { runNode } from './processes.mjs';
import { setUpOrExit } from './setup.mjs';

await setUpOrExit();
process.exitCode = await runNode(['demo/demo.mjs', ...process.argv.slice(2)]);
