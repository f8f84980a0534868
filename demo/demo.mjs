// The demonstration: an agent's client, a gateway, and a destination that loses replies, while processes are
// killed. It counts what the destination holds, and compares it with what the ledger and the caller were told.
//
//   node demo/demo.mjs [--json] [--without-gateway] [--store URL] [--help]

import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { count, judge } from './judge.mjs';
import { NOT_CHECKED, ORDER, SCENES } from './stories.mjs';
import { printTable } from './table.mjs';
import { makeWorld } from './world.mjs';

const USAGE = `Usage: npm run demo -- [--json] [--without-gateway] [--store URL]

  --json              print one line of JSON in place of the table
  --without-gateway   let the client talk to the destination itself, with the same retries: it goes wrong
  --store URL         the ledgers are on PostgreSQL, in schemas that are removed afterwards:
                      postgres://USER@HOST:PORT/DATABASE
`;

const FLAGS = ['--json', '--without-gateway', '--help'];
const given = process.argv.slice(2);
const store = takeValue(given, '--store');
const unknown = given.find((flag) => !FLAGS.includes(flag));
if (unknown !== undefined) {
  process.stderr.write(`The demo knows no ${unknown}.\n${USAGE}`);
  process.exit(2);
}
if (given.includes('--help')) {
  process.stdout.write(USAGE);
  process.exit(0);
}
const isJson = given.includes('--json');
const hasGateway = !given.includes('--without-gateway');
if (hasGateway && !existsSync(fileURLToPath(new URL('../dist/cli/counterfoil.js', import.meta.url)))) {
  process.stderr.write(
    'The gateway has not been built. `npm run demo` does that by itself; `npm run build` does only that.\n',
  );
  process.exit(2);
}

/** Takes an option with its value out of the list. */
function takeValue(list, flag) {
  const at = list.indexOf(flag);
  if (at === -1) return undefined;
  const [, value] = list.splice(at, 2);
  if (value?.startsWith('postgres')) return value;
  process.stderr.write(`${flag} needs the address of a database.\n${USAGE}`);
  process.exit(2);
}

const began = performance.now();
const schemas = [];
const folder = mkdtempSync(join(tmpdir(), 'counterfoil-demo-'));
process.once('SIGINT', () => {
  rmSync(folder, { recursive: true, force: true });
  process.exit(130);
});

function progress(row, words) {
  const seconds = ((performance.now() - began) / 1000).toFixed(1).padStart(4);
  const name = row.variant === undefined ? row.id : `${row.id} ${row.variant}`;
  process.stderr.write(`${seconds} s  ${name.padEnd(26)} ${words}\n`);
}

// ── Acting ───────────────────────────────────────────────────────────────────────────────────────────────────

/** Acts one scene in a world of its own, and counts when every process of it has ended. */
async function act(scene, gateway) {
  const [first] = scene.rows;
  const name = [first.id, first.variant, gateway ? 'gateway' : 'direct'].filter(Boolean).join('-');
  const own = join(folder, name.replaceAll(/[^\w-]+/g, '-'));
  const world = makeWorld({ folder: own, gateway, ...(store === undefined ? {} : { store }) });
  if (world.schema !== undefined) schemas.push(world.schema);
  let parts;
  let problem;
  try {
    parts = await scene.act(world);
  } catch (error) {
    problem = `The story could not be told to its end: ${error.message}`;
  }
  await world.close();
  const shown = gateway
    ? await Promise.all((parts ?? []).map((part) => showAll(world, part.operations)))
    : [];
  return {
    problem,
    faultsFired: world.faultsFired(),
    rows: scene.rows.map((row, index) => ({
      records: row.records(world.records()),
      answers: (parts?.[index]?.answers ?? []).map(({ text }) => text),
      problems: parts?.[index]?.problems ?? [],
      operations: shown[index] ?? [],
    })),
  };
}

async function showAll(world, ids) {
  return Promise.all([...new Set(ids)].map((id) => (id === undefined ? undefined : world.show(id))));
}

/** Runs the tasks side by side, at most `width` at a time, and gives their results in the order of the tasks. */
async function sideBySide(tasks, width) {
  const results = [];
  let next = 0;
  const worker = async () => {
    while (next < tasks.length) {
      const index = next;
      next += 1;
      results[index] = await tasks[index]();
    }
  };
  await Promise.all(Array.from({ length: width }, worker));
  return results;
}

// ── The run ──────────────────────────────────────────────────────────────────────────────────────────────────

async function tell(scene) {
  for (const row of scene.rows) progress(row, `${row.title} …`);
  const isCompared = !hasGateway || scene.rows.some((row) => row.without !== undefined);
  const guarded = hasGateway ? await act(scene, true) : undefined;
  const direct = isCompared ? await act(scene, false) : undefined;
  const rows = scene.rows.map((_, index) => judge(scene, index, guarded, direct));
  for (const row of rows) {
    const words = `${count(row.destinationRecords, 'record')}${row.effect === null ? '' : `, ${row.effect}`}`;
    progress(row, row.ok ? words : `WRONG: ${row.problems.join(' ')}`);
  }
  return { rows, faultsFired: (guarded?.faultsFired ?? 0) + (direct?.faultsFired ?? 0) };
}

const scenes = hasGateway
  ? SCENES
  : SCENES.filter(({ rows }) => rows.some((row) => row.without !== undefined));
const width = Math.max(3, Math.min(6, availableParallelism()));
const told = await sideBySide(
  scenes.map((scene) => () => tell(scene)),
  width,
);
const stories = told
  .flatMap(({ rows }) => rows)
  .toSorted((a, b) => ORDER.indexOf(a.id) - ORDER.indexOf(b.id));
const faultsFired = told.reduce((sum, scene) => sum + scene.faultsFired, 0);
const ok = stories.every((story) => story.ok);

/** What the stories have left on the server. */
async function removeSchemas() {
  const { default: pg } = await import('pg');
  const client = new pg.Client({ connectionString: store });
  await client.connect();
  for (const schema of schemas) await client.query(`DROP SCHEMA IF EXISTS "${schema}" CASCADE`);
  await client.end();
}

if (schemas.length > 0) await removeSchemas();
if (ok) rmSync(folder, { recursive: true, force: true });
else process.stderr.write(`What the processes of this run wrote is kept in ${folder}\n`);
const seconds = Number(((performance.now() - began) / 1000).toFixed(1));
if (isJson) {
  process.stdout.write(`${JSON.stringify({ ok, stories, notChecked: NOT_CHECKED, faultsFired, seconds })}\n`);
} else {
  printTable({ ok, stories, notChecked: NOT_CHECKED, faultsFired, seconds, hasGateway });
}
process.exitCode = ok ? 0 : 1;
