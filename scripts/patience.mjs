// `npm run patience`: the client of the SDK gives up after its own 60 s in the middle of a write. It is the test that
// `npm test` runs with a second in place of the minute; here nothing is lowered.

import { setUpOrExit } from './setup.mjs';
import { figuresLine, runTests } from './test.mjs';

await setUpOrExit({ figures: figuresLine({ passed: 0, failed: 1 }) });
process.env['COUNTERFOIL_PATIENCE'] = 'sdk';
const figures = await runTests(['test/gateway/client-patience.test.ts']);
process.stdout.write(`${figuresLine(figures)}\n`);
process.exitCode = figures.failed === 0 ? 0 : 1;
