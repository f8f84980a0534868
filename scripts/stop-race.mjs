// `npm run stop-race`: sets up, then runs the stop race. Standard output is the race's own.

import { runNode } from './processes.mjs';
import { setUpOrExit } from './setup.mjs';

await setUpOrExit({ figures: '0 passed, 1 failed' });
process.exitCode = await runNode(['stop-race/stop-race.mjs', ...process.argv.slice(2)]);
