// `npm run wire-faults`: sets up, then runs the wire-fault table. Standard output is the table's own.

import { runNode } from './processes.mjs';
import { setUpOrExit } from './setup.mjs';

await setUpOrExit();
process.exitCode = await runNode(['wire-faults/wire-faults.mjs', ...process.argv.slice(2)]);
