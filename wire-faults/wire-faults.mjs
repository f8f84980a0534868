// `npm run wire-faults`: every fault × every class of contract, and the differences to what is expected.
//
//   --write           writes what was seen to wire-faults/expected.json, to be read before it is committed
//   --only FAULT      one fault, in every class
//   --break           the positive control: a cut reply is taken for proof; must go red

import { writeFileSync } from 'node:fs';
import { allCells, differences, EXPECTED_FILE, readExpected, runCells, unknownEntries } from './table.mjs';

const flags = process.argv.slice(2);
const only = flags.includes('--only') ? flags[flags.indexOf('--only') + 1] : undefined;
const cells = allCells().filter(({ fault }) => only === undefined || fault === only);
if (cells.length === 0) {
  process.stderr.write(`There is no fault ${only}.\n`);
  process.exitCode = 2;
} else {
  const ends = await runCells(cells, { isBroken: flags.includes('--break') });
  if (flags.includes('--write')) write(ends);
  const problems = [...differences(ends), ...(only === undefined ? unknownEntries() : [])];
  for (const problem of problems) process.stdout.write(`${problem}\n`);
  const fired = ends.filter((end) => end.fired > 0).length;
  process.stdout.write(`${cells.length} cells, faults fired in ${fired} of them.\n`);
  const red = new Set(problems.map((problem) => problem.split(':')[0])).size;
  process.stdout.write(`${Math.max(0, cells.length - red)} passed, ${red} failed\n`);
  process.exitCode = red > 0 ? 1 : 0;
}

function write(ends) {
  const expected = only === undefined ? {} : readExpected();
  for (const { contract, fault, seen } of ends) {
    expected[fault] = { ...expected[fault], [contract]: seen };
  }
  writeFileSync(EXPECTED_FILE, `${JSON.stringify(expected, undefined, 2)}\n`);
}
