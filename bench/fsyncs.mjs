// How often the product makes the disk settle for one operation: counted by strace over a process that runs a
// fixed number of operations, opening and closing of the ledger included.

import { execFile, execFileSync } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const run = promisify(execFile);
const OPERATIONS = fileURLToPath(new URL('operations.mjs', import.meta.url));

const hasStrace = (() => {
  try {
    execFileSync('strace', ['--version'], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
})();

/** One process that runs `operations` operations on a fresh ledger. `fsyncs` is `undefined` without strace. */
export async function runOperations({
  directory,
  port,
  operations,
  concurrency,
  withReadBack = false,
  countsFsyncs = false,
}) {
  const data = await mkdtemp(join(directory, 'operations-'));
  const counts = join(data, 'strace.txt');
  const script = [OPERATIONS, JSON.stringify({ data, port, operations, concurrency, withReadBack })];
  const isTraced = countsFsyncs && hasStrace;
  // With --seccomp-bpf no other system call is stopped, so that the process runs at nearly its own speed.
  const { stdout } = isTraced
    ? await run('strace', [
        '-f',
        '--seccomp-bpf',
        '-c',
        '-e',
        'trace=fsync,fdatasync',
        '-o',
        counts,
        process.execPath,
        ...script,
      ])
    : await run(process.execPath, script);
  const report = JSON.parse(stdout.trim().split('\n').at(-1));
  const fsyncs = isTraced ? countOf(await readFile(counts, 'utf8')) : undefined;
  await rm(data, { recursive: true });
  return { ...report, fsyncs };
}

/** @returns {Promise<{ perOperation: number, commitsPerOperation: number, source: 'strace' | 'derived' }>} */
export async function measureFsyncs({ directory, port, operations, concurrency, withReadBack }) {
  const report = await runOperations({
    directory,
    port,
    operations,
    concurrency,
    withReadBack,
    countsFsyncs: true,
  });
  const fsyncs =
    report.fsyncs ??
    (await derivedFsyncs({ directory, port, operations, concurrency, withReadBack, report }));
  return {
    perOperation: fsyncs / operations,
    commitsPerOperation: report.commits / operations,
    source: report.fsyncs === undefined ? 'derived' : 'strace',
  };
}

/** The store moves the log's pages into the database each time the log has grown by this much. */
const CHECKPOINT_BYTES = 4 * 2 ** 20;
/** The log before its pages are moved, the database after it, and the new head of the log that is written over. */
const FSYNCS_PER_CHECKPOINT = 3;
const FEW_OPERATIONS = 64;

/** With synchronous=FULL: one fsync for each commit, and those of the checkpoints, by the growth of a short log. */
async function derivedFsyncs({ report, operations, ...where }) {
  const few = await runOperations({ ...where, operations: FEW_OPERATIONS });
  const checkpoints = Math.floor((few.logBytes / FEW_OPERATIONS) * (operations / CHECKPOINT_BYTES)) + 1;
  return report.commits + checkpoints * FSYNCS_PER_CHECKPOINT;
}

/** The sum of the `calls` column of strace's table. */
function countOf(table) {
  let calls = 0;
  for (const line of table.split('\n')) {
    const columns = line.trim().split(/\s+/);
    if (columns.at(-1) === 'fsync' || columns.at(-1) === 'fdatasync') calls += Number(columns[3]);
  }
  return calls;
}
