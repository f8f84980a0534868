// How a run is told: a table for each generation, what is worse beneath it, and one line of figures.

const MARKS = { passed: '✓', failed: '✗', not_asked: '–' };
const MESSAGE_MAX = 200;

/** @param {{ generation: string, legs: readonly { name: string, rows: readonly object[], trouble?: string }[] }} result */
export function printGeneration({ generation, legs }, print) {
  const scenarios = [...new Set(legs.flatMap(({ rows }) => rows.map(({ scenario }) => scenario)))];
  const width = Math.max(...legs.map(({ name }) => name.length), 6);
  const cells = (texts) => texts.map((text) => text.padEnd(width)).join('  ');
  print(`\n${generation}`);
  print(`${cells(legs.map(({ name }) => name))}  scenario`);
  for (const scenario of scenarios) {
    const marks = legs.map(({ rows }) => MARKS[rowOf(rows, scenario)?.verdict] ?? ' ');
    print(`${cells(marks)}  ${scenario}`);
  }
  for (const { name, rows, trouble, operations } of legs) {
    if (operations !== undefined) print(`  ${name}: ${operations} operations in the ledger`);
    for (const line of counted(rows.flatMap(({ because }) => because ?? []))) {
      print(`  ${name}, not asked: ${line}`);
    }
    if (trouble !== undefined) print(`  ${name}: ${trouble}`);
    for (const { scenario, problems } of rows) {
      for (const line of counted(problems.map(inWords))) print(`  ${name}: ${scenario}: ${line}`);
    }
  }
}

function inWords({ check, direct, through, message }) {
  const why = message === undefined ? '' : ` — ${message.replaceAll(/\s+/g, ' ').slice(0, MESSAGE_MAX)}`;
  return `${check}: ${direct} → ${through}${why}`;
}

/** Each line once, with how often it came. */
function counted(lines) {
  const counts = new Map();
  for (const line of lines) counts.set(line, (counts.get(line) ?? 0) + 1);
  return [...counts].map(([line, count]) => (count === 1 ? line : `${line} (${count} times)`));
}

function rowOf(rows, scenario) {
  return rows.find((row) => row.scenario === scenario);
}
