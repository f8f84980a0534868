// `npm run check`: everything that a change must pass. Types, lint, format, then the tests, among which are the
// permitted arrows and the promises. `--without-tests` leaves the tests out; other arguments go to Vitest.

import { runNode } from './processes.mjs';
import { setUpOrExit } from './setup.mjs';
import { figuresLine, runTests } from './test.mjs';

const CHECKS = [
  { name: 'types', args: ['node_modules/typescript/bin/tsc', '-p', 'tsconfig.json'] },
  { name: 'lint', args: ['node_modules/oxlint/bin/oxlint', '--deny-warnings'] },
  { name: 'format', args: ['node_modules/@biomejs/biome/bin/biome', 'ci', ...plainUnlessTerminal()] },
];

const args = process.argv.slice(2);
const hasTests = !args.includes('--without-tests');

await setUpOrExit({ figures: figuresLine({ passed: 0, failed: 1 }) });
const total = { passed: 0, failed: 0, skipped: 0 };
const lines = [];
for (const { name, args: check } of CHECKS) {
  await timed(name, async () => {
    const isGreen = (await runNode(check)) === 0;
    return { passed: isGreen ? 1 : 0, failed: isGreen ? 0 : 1, skipped: 0 };
  });
}
if (hasTests) await timed('tests', () => runTests(args));

process.stdout.write(`\n${lines.join('\n')}\n${figuresLine(total)}\n`);
process.exitCode = total.failed === 0 ? 0 : 1;

/** Biome colours its output also where nobody sees colours. */
function plainUnlessTerminal() {
  return process.stdout.isTTY ? [] : ['--colors=off'];
}

async function timed(name, step) {
  process.stdout.write(`── ${name}\n`);
  const since = performance.now();
  const figures = await step();
  const seconds = ((performance.now() - since) / 1000).toFixed(1);
  for (const key of Object.keys(total)) total[key] += figures[key];
  lines.push(`${name.padEnd(8)}${seconds.padStart(7)} s   ${figuresLine(figures)}`);
}
