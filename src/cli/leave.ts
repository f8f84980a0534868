// `counterfoil leave`: every client starts its servers itself again, as it did; what is recorded stays.

import { type Release, type Releasing, releaseEntries } from '../clients/change.ts';
import {
  type ClientFile,
  encoded,
  findWriteObstacle,
  readClientFile,
  replaceClientFile,
} from '../clients/client-file.ts';
import { unifiedDiff } from '../clients/diff.ts';
import { type GuardedEntry, recordLeft } from '../clients/journal.ts';
import { dataDirectory, journalIn } from './data-directory.ts';
import { type LeftRecords, leaveRecords } from './export-records.ts';
import { restartWords } from './init-words.ts';
import { printable, printableLine } from './lines.ts';
import { CommandFault, EXIT, print, printJson } from './output.ts';
import { agreed } from './question.ts';
import { survey } from './survey.ts';

export interface LeaveOptions {
  readonly data?: string;
  readonly json?: boolean;
  readonly yes?: boolean;
  readonly export?: string;
}

export async function leave(options: LeaveOptions): Promise<number> {
  if (options.json === true && options.yes !== true) {
    throw new CommandFault(EXIT.usage, 'With --json nothing can be asked: say --yes to write.');
  }
  const data = dataDirectory(options.data);
  const { guarded } = await journalIn(data);
  const plans = await planAll(guarded);
  if (options.json !== true) printPlans(plans);
  const isWriting = plans.some(({ kind, release }) => kind === 'writable' && release.edits.length > 0);
  const isAgreed =
    !isWriting ||
    options.yes === true ||
    (await agreed('Write this?', { flag: '--yes', notDone: 'Nothing was written.' }));
  // First, so that a file which cannot be written is told while nothing has been changed.
  const left: LeftRecords = isAgreed ? await leaveRecords(data, options.export) : { kind: 'nothing' };
  const results = isAgreed ? await releaseAll(plans, data) : [];
  const others = await entriesOfOthers(guarded);
  if (options.json === true) printJson(asJson(results, left, others));
  else printEnd(results, left, { isAgreed, others, data });
  if (results.some(({ problem }) => problem !== undefined)) return EXIT.notAllowed;
  return left.kind === 'unreadable' ? EXIT.internal : EXIT.done;
}

// ── Planning ─────────────────────────────────────────────────────────────────────────────────────────────────

type FilePlan = { readonly path: string; readonly entries: readonly GuardedEntry[] } & (
  | { readonly kind: 'writable'; readonly file: ClientFile; readonly release: Releasing }
  | { readonly kind: 'gone'; readonly release?: undefined }
  | { readonly kind: 'obstacle'; readonly problem: string; readonly release?: undefined }
);

async function planAll(guarded: readonly GuardedEntry[]): Promise<readonly FilePlan[]> {
  const plans: FilePlan[] = [];
  for (const path of new Set(guarded.map(({ file }) => file))) {
    plans.push(await planOne(path, newestOf(guarded.filter(({ file }) => file === path))));
  }
  return plans;
}

/** An entry that was guarded again, after somebody had put it back by hand, is taken back to what it was last. */
function newestOf(entries: readonly GuardedEntry[]): readonly GuardedEntry[] {
  return [...new Map(entries.map((entry) => [JSON.stringify(entry.path), entry])).values()];
}

async function planOne(path: string, entries: readonly GuardedEntry[]): Promise<FilePlan> {
  const read = await readClientFile(path);
  if (read.found === 'nothing') return { path, entries, kind: 'gone' };
  if (read.found === 'obstacle') return { path, entries, kind: 'obstacle', problem: read.problem };
  const { file } = read;
  const release = releaseEntries(file.text, entries);
  if (release.problem !== undefined) return { path, entries, kind: 'obstacle', problem: release.problem };
  const problem = release.edits.length === 0 ? undefined : await findWriteObstacle(file.target);
  if (problem !== undefined) return { path, entries, kind: 'obstacle', problem };
  return { path, entries, kind: 'writable', file, release };
}

// ── Writing ──────────────────────────────────────────────────────────────────────────────────────────────────

interface FileResult {
  readonly path: string;
  readonly entries: readonly GuardedEntry[];
  readonly released: readonly Release[];
  /** The end of a sentence: why the file is as it was found. */
  readonly problem: string | undefined;
}

const NEWER_MAX = 5;

async function releaseAll(plans: readonly FilePlan[], data: string): Promise<readonly FileResult[]> {
  const results: FileResult[] = [];
  for (const plan of plans) {
    const result = await releaseOne(plan);
    results.push(result);
    if (result.problem === undefined) {
      await recordLeft(
        data,
        plan.entries.map(({ id }) => id),
        Date.now(),
      );
    }
  }
  return results;
}

async function releaseOne(first: FilePlan): Promise<FileResult> {
  const { path, entries } = first;
  let plan = first;
  for (let count = 0; count < NEWER_MAX; count += 1) {
    if (plan.kind === 'obstacle') return { path, entries, released: [], problem: plan.problem };
    if (plan.kind === 'gone')
      return { path, entries, released: entries.map(() => 'missing'), problem: undefined };
    const { file, release } = plan;
    const done = { path, entries, released: release.released, problem: undefined };
    if (release.edits.length === 0) return done;
    const result = await replaceClientFile({ file, bytes: encoded(release.text, file) });
    if (result.replaced) return done;
    if (result.reason === 'obstacle') return { path, entries, released: [], problem: result.problem };
    // Taking our words out is the same change in a newer text.
    plan = await planOne(path, entries);
  }
  return {
    path,
    entries,
    released: [],
    problem: 'its client keeps writing it. Close the client, and call again',
  };
}

/** Entries that start us and that `init` did not write: somebody wrote them, and they stay. */
async function entriesOfOthers(guarded: readonly GuardedEntry[]): Promise<readonly string[]> {
  const { servers } = await survey({}, new Map());
  return servers
    .filter(({ standing }) => standing.kind === 'ours')
    .filter(
      ({ file, entry }) =>
        !guarded.some(
          (each) => each.file === file.path && JSON.stringify(each.path) === JSON.stringify(entry.path),
        ),
    )
    .map(({ file, entry }) => `${entry.name} in ${file.path}`);
}

// ── Words ────────────────────────────────────────────────────────────────────────────────────────────────────

const RELEASES: { readonly [release in Release]: string } = {
  restored: 'is exactly as it was before init',
  taken_out: 'starts its server itself again; what else was changed in it since init stays',
  not_ours: 'was already started without us, and is left as it is',
  no_command:
    'was changed to start us with something else than a command, and is left as it is: take it out by hand',
  missing: 'is not in the file any more',
};

function printPlans(plans: readonly FilePlan[]): void {
  for (const plan of plans) {
    if (plan.kind !== 'writable') continue;
    const { file, release, path } = plan;
    const lines = unifiedDiff({ file: path, before: file.text, after: release.text, edits: release.edits });
    for (const line of lines) print(printableLine(line));
  }
}

function printEnd(
  results: readonly FileResult[],
  left: LeftRecords,
  about: { readonly isAgreed: boolean; readonly others: readonly string[]; readonly data: string },
): void {
  if (!about.isAgreed) print('Nothing was written.');
  else if (results.length === 0) print('init has changed no file that is not back already.');
  for (const { path, entries, released, problem } of results) {
    print(printable(path));
    if (problem !== undefined) print(`  It is still as init left it: ${printable(problem)}.`);
    for (const [index, release] of released.entries()) {
      const name = entries[index]?.path.at(-1) ?? '';
      print(`  ${printable(name)} ${RELEASES[release]}`);
    }
  }
  for (const other of about.others) {
    print(`Still starts us, and was not written by init: ${printable(other)}. Take it out by hand.`);
  }
  if (!about.isAgreed) return;
  const isChanged = (release: Release): boolean => release === 'restored' || release === 'taken_out';
  const changed = results.flatMap(({ entries, released }) =>
    entries.filter((_, index) => isChanged(released[index] ?? 'missing')),
  );
  if (changed.length > 0) print(restartWords(changed.map(({ title }) => title)));
  if (left.kind === 'nothing') print('Nothing was ever recorded here.');
  if (left.kind === 'unreadable') print(`Nothing was exported: ${left.problem}`);
  if (left.kind !== 'exported') return;
  if (left.open.length > 0) {
    print(`Open (${left.open.length}): none of it is sent or looked up while no gateway runs.`);
    for (const { operation, label, sentence } of left.open) print(`  ${operation}  ${label}. ${sentence}`);
  }
  print(`${left.operations} operations were exported to ${printable(left.file)}`);
  print(`They stay recorded in ${printable(about.data)} as well: nothing was deleted.`);
}

function asJson(results: readonly FileResult[], left: LeftRecords, others: readonly string[]): object {
  return {
    files: results.map(({ path, entries, released, problem }) => ({
      path,
      problem: problem ?? null,
      entries: entries.map((entry, index) => ({
        path: entry.path,
        destination: entry.name,
        release: released[index] ?? null,
      })),
    })),
    not_by_init: others,
    export: left.kind === 'exported' ? { file: left.file, operations: left.operations } : null,
    export_problem: left.kind === 'unreadable' ? left.problem : null,
    open: left.kind === 'exported' ? left.open : [],
  };
}
