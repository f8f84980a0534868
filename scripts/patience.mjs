// `npm run patience`: the client of the SDK gives up after its own 60 s in the middle of a write, and a look-up shows what
// it was asked for 20 s later. They are the tests that `npm test` runs with a second or two in their place; here nothing is
// lowered.

import { setUpOrExit } from './setup.mjs';
import { figuresLine, runTests } from './test.mjs';

await setUpOrExit({ figures: figuresLine({ passed: 0, failed: 1 }) });
process.env['COUNTERFOIL_PATIENCE'] = 'sdk';
const figures = await runTests(['test/gateway/client-patience.test.ts', 'test/stories/http-lookup.test.ts']);
process.stdout.write(`${figuresLine(figures)}\n`);
process.exitCode = figures.failed === 0 ? 0 : 1;
