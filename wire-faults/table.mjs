// The wire-fault table: what becomes of one write under each fault and each class of contract, beside what is expected.
//
// What is counted is the destination's own log, read when everything has ended. A cell that is not in the file of what
// is expected is red, and so is an entry of that file that no cell has.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { runCell, WAY_FAULTS } from './cell.mjs';
import { CLASSES } from './contracts.mjs';
import { isSecond, LOOKUP_FAULTS, SERVED_FAULTS } from './destination.mjs';

const DESTINATION = fileURLToPath(new URL('./destination.mjs', import.meta.url));
export const EXPECTED_FILE = fileURLToPath(new URL('./expected.json', import.meta.url));
export const FAULTS = [...WAY_FAULTS, ...SERVED_FAULTS];

/** @returns {readonly { fault: string, contract: string }[]} */
export function allCells() {
  return FAULTS.flatMap((fault) => CLASSES.map((contract) => ({ fault, contract })));
}

/** @returns {Record<string, Record<string, string>>} fault → class → what is expected */
export function readExpected() {
  return existsSync(EXPECTED_FILE) ? JSON.parse(readFileSync(EXPECTED_FILE, 'utf8')) : {};
}

/**
 * @param {readonly { fault: string, contract: string }[]} cells
 * @param {{ isBroken?: boolean, atOnce?: number }} [options]
 * @returns {Promise<readonly { fault: string, contract: string, seen: string, fired: number, evidence: readonly string[] }[]>}
 */
export async function runCells(cells, { isBroken = false, atOnce = 24 } = {}) {
  const folder = mkdtempSync(join(tmpdir(), 'counterfoil-wire-'));
  const log = join(folder, 'destination.log');
  const child = spawn(process.execPath, [DESTINATION, log], { stdio: ['ignore', 'pipe', 'inherit'] });
  try {
    const [port] = await once(child.stdout, 'data');
    const origin = `http://127.0.0.1:${port.toString().trim()}`;
    const ends = await inTurn(cells, atOnce, async (cell) => ({
      ...cell,
      ...(await runCell({ ...cell, folder, origin, isBroken })),
    }));
    child.kill('SIGKILL');
    await once(child, 'exit');
    return ends.map((end) => withCounts(end, countsIn(log)));
  } finally {
    child.kill('SIGKILL');
    rmSync(folder, { recursive: true, force: true, maxRetries: 10 });
  }
}

async function inTurn(items, atOnce, run) {
  const results = [];
  const queue = [...items.entries()];
  const work = async () => {
    for (let next = queue.shift(); next !== undefined; next = queue.shift()) {
      const [index, item] = next;
      results[index] = await run(item);
    }
  };
  await Promise.all(Array.from({ length: atOnce }, work));
  return results;
}

function countsIn(log) {
  const counts = new Map();
  const lines = existsSync(log) ? readFileSync(log, 'utf8').split('\n') : [];
  for (const line of lines) {
    if (line === '') continue;
    const { cell, event } = JSON.parse(line);
    const count = counts.get(cell) ?? { write: 0, record: 0, fired: 0, question: 0 };
    count[event] += 1;
    counts.set(cell, count);
  }
  return counts;
}

function withCounts({ contract, evidence, fault, name, state }, counts) {
  const { fired, record, write } = counts.get(name) ?? { write: 0, record: 0, fired: 0 };
  const before = isSecond(fault) ? 1 : 0;
  const isWay = WAY_FAULTS.includes(fault);
  return {
    fault,
    contract,
    evidence,
    seen: `${state}; ${write - before} arrived, ${record - before} recorded`,
    // A way that is no way is its own fault: the proof that it fired is that nothing arrived.
    fired: isWay ? Number(write === 0) : fired,
  };
}

/** @returns {readonly string[]} one sentence for each difference between what is expected and what was seen */
export function differences(ends, expected = readExpected()) {
  return ends.flatMap(({ contract, evidence, fault, fired, seen }) => {
    const wanted = expected[fault]?.[contract];
    const place = `${fault} × ${contract}`;
    // Of a look-up's fault there are two: the write's reply is cut, and then its look-up is asked, where there is one.
    const least = LOOKUP_FAULTS.includes(fault) && contract !== 'R0' ? 2 : 1;
    const problems = [];
    if (fired < least) problems.push(`${place}: the fault did not fire.`);
    if (wanted === undefined) problems.push(`${place}: is not listed; it was seen as "${seen}".`);
    else if (wanted !== seen) {
      problems.push(`${place}: "${wanted}" is expected, and "${seen}" was seen (${evidence.join(', ')}).`);
    }
    return problems;
  });
}

/** @returns {readonly string[]} entries of the file that no cell has */
export function unknownEntries(expected = readExpected()) {
  return Object.entries(expected).flatMap(([fault, byClass]) =>
    Object.keys(byClass)
      .filter((contract) => !FAULTS.includes(fault) || !CLASSES.includes(contract))
      .map((contract) => `${fault} × ${contract}: is listed, and there is no such cell.`),
  );
}

/** A number of cells, the same for the same seed. */
export function sampleOf(cells, count, seed) {
  let state = seed >>> 0;
  const random = () => {
    // mulberry32
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  const left = [...cells];
  return Array.from({ length: Math.min(count, left.length) }, () => {
    const [one] = left.splice(Math.floor(random() * left.length), 1);
    return one;
  });
}
