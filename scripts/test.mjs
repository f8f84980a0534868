// `npm test`: sets up, runs the tests, and ends with one line of figures. Arguments go to Vitest.

import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isProgram, runNode } from './processes.mjs';
import { setUpOrExit } from './setup.mjs';

/**
 * @param {readonly string[]} args for Vitest, such as a folder or `-t PATTERN`
 * @returns {Promise<{ passed: number, failed: number, skipped: number }>} what fails outside a test, or is not
 *   run at all, counts as a failure
 */
export async function runTests(args) {
  const folder = mkdtempSync(join(tmpdir(), 'counterfoil-test-'));
  const file = join(folder, 'result.json');
  try {
    const code = await runNode([
      'node_modules/vitest/vitest.mjs',
      'run',
      '--reporter=default',
      '--reporter=json',
      `--outputFile.json=${file}`,
      ...args,
    ]);
    return readFigures(file, code);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function readFigures(file, code) {
  let report;
  try {
    report = JSON.parse(readFileSync(file, 'utf8'));
  } catch {
    process.stderr.write(`Vitest ended with ${code} and left no report.\n`);
    return { passed: 0, failed: 1, skipped: 0 };
  }
  const figures = {
    passed: report.numPassedTests,
    failed: report.numFailedTests + report.testResults.filter(isBrokenFile).length,
    skipped: report.numPendingTests + report.numTodoTests,
  };
  if (figures.failed > 0 || (code === 0 && figures.passed > 0)) return figures;
  process.stderr.write(
    figures.passed === 0 ? 'No test ran.\n' : `Vitest ended with ${code} although no test failed.\n`,
  );
  return { ...figures, failed: 1 };
}

/** A file that fails without a failed test in it: it could not be loaded, or a hook of it threw. */
function isBrokenFile({ status, assertionResults }) {
  return status === 'failed' && assertionResults.every((test) => test.status !== 'failed');
}

/** The one line of figures that each checking command ends with. */
export function figuresLine({ passed, failed, skipped = 0 }) {
  return `${passed} passed, ${failed} failed${skipped === 0 ? '' : `, ${skipped} skipped`}`;
}

if (isProgram(import.meta.url)) {
  await setUpOrExit({ figures: figuresLine({ passed: 0, failed: 1 }) });
  const figures = await runTests(process.argv.slice(2));
  process.stdout.write(`${figuresLine(figures)}\n`);
  process.exitCode = figures.failed === 0 ? 0 : 1;
}
