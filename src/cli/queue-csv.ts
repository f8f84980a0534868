// `counterfoil queue export` and `import`: the queue as a table to work on elsewhere. Each row is one operation at the
// version that was exported; the columns `act` and `looked_at` are what comes back.

import { writeFileSync } from 'node:fs';
import { type CauseGroup, type Queued, standingOf } from '../core/cause.ts';
import { csvText, readCsv } from '../core/csv.ts';
import type { Resolution } from '../core/lifecycle.ts';
import { labelOf, sentenceOf } from '../core/wording.ts';
import type { Ledger } from '../engine/ledger.ts';
import type { ActMode, Actor, ActReport, ActTarget } from '../engine/queue-acts.ts';
import { ownPrincipal } from './account.ts';
import { withLedger } from './data-directory.ts';
import { approvalLines } from './decide.ts';
import { reasonOf } from './gateway-setup.ts';
import { printable } from './lines.ts';
import { CommandFault, EXIT, say } from './output.ts';
import { noSuchCause, type QueueOptions } from './queue.ts';
import { actorName, DRY_RUN, LOOKED_MAX, strengthFor, told } from './queue-acts.ts';
import { NAMED, readListText } from './queue-targets.ts';

const COLUMNS = [
  'operation',
  'version',
  'cause',
  'destination',
  'tool',
  'target',
  'standing',
  'state',
  'effect',
  'since',
  'what_is_known',
  'act',
  'looked_at',
] as const;
type Column = (typeof COLUMNS)[number];

export async function exportQueue(
  cause: string | undefined,
  options: QueueOptions & { readonly out?: string },
): Promise<number> {
  return withLedger(options.data, async (ledger) => {
    const { groups, isCut } = await ledger.queue.read();
    if (isCut) say('counterfoil: More is open than was looked at: not all of it is exported.');
    const wanted = cause === undefined ? groups : groups.filter((group) => group.cause.id === cause);
    if (cause !== undefined && wanted.length === 0) throw noSuchCause(cause);
    const rows: (readonly string[])[] = [COLUMNS];
    for (const group of wanted) {
      for (const member of group.members) rows.push(await rowOf(ledger, group, member));
    }
    write(csvText(rows), options.out);
    say(`counterfoil: ${rows.length - 1} operations were exported.`);
    return EXIT.done;
  });
}

async function rowOf(
  ledger: Ledger,
  { cause }: CauseGroup,
  { operation, version }: Queued,
): Promise<readonly string[]> {
  const { target } = await ledger.readings.reading(operation);
  const cells: { readonly [column in Column]: string } = {
    operation: operation.id,
    version: String(version),
    cause: cause.id,
    destination: operation.destination,
    tool: operation.tool,
    target: target ?? '',
    standing: standingOf(operation),
    state: labelOf(operation),
    effect: operation.effect,
    since: new Date(operation.since).toISOString(),
    what_is_known: sentenceOf(operation, target === undefined ? {} : { target }),
    act: '',
    looked_at: '',
  };
  return COLUMNS.map((column) => printable(cells[column]));
}

function write(text: string, out: string | undefined): void {
  if (out === undefined) {
    process.stdout.write(text);
    return;
  }
  try {
    // What lies there may be somebody's work of hours.
    writeFileSync(out, text, { flag: 'wx', mode: 0o600 });
  } catch (cause) {
    const isThere = (cause as NodeJS.ErrnoException).code === 'EEXIST';
    const why = isThere ? 'there is a file already' : reasonOf(cause);
    throw new CommandFault(EXIT.usage, `Nothing was exported to ${printable(out)}: ${why}.`);
  }
}

// ── Import ─────────────────────────────────────────────────────────────────────────────────────────────────

const FINDINGS: { readonly [act: string]: Resolution } = {
  happened: 'stated_happened',
  not_happened: 'stated_not_happened',
  other_change: 'stated_other_change',
};
const OTHER_ACTS = ['send_again', 'close_unknown', 'look_up', 'renew'] as const;
const ACTS: readonly string[] = [...Object.keys(FINDINGS), ...OTHER_ACTS];
/** They decide nothing by themselves: no passphrase is asked for them. */
const OPEN_ACTS: readonly string[] = ['send_again', 'look_up'];

interface Wish {
  readonly line: number;
  readonly act: string;
  readonly looked: string;
  readonly target: ActTarget;
}

export interface ImportOptions extends QueueOptions {
  readonly by?: string;
  readonly dryRun?: boolean;
}

export async function importQueue(file: string, options: ImportOptions): Promise<number> {
  const by = actorName(options.by);
  const wishes = readWishes(readListText(file), file);
  return withLedger(options.data, async (ledger) => {
    const isTrial = options.dryRun === true;
    const decides = wishes.some(({ act }) => !OPEN_ACTS.includes(act));
    const verb = { verb: 'import', ...(decides && !isTrial ? { purpose: 'An act on the queue' } : {}) };
    const shown = await Promise.all(wishes.map((wish) => wishLines(ledger, wish)));
    const strength = await strengthFor(ledger, options.data, verb.purpose, [
      `From ${printable(file)}:`,
      ...shown.flat(),
    ]);
    const actor: Actor = { by, principal: ownPrincipal(), strength };
    const report = await doAll(ledger, wishes, actor, { isTrial });
    const lines = isTrial ? [DRY_RUN] : [];
    return told(report, options, { verb, actor, lines });
  });
}

/** Of what is approved anew, exactly what is sent. */
async function wishLines(ledger: Ledger, { act, target }: Wish): Promise<readonly string[]> {
  return act === 'renew' ? approvalLines(ledger, target) : [`  ${target.operation}  ${act}`];
}

async function doAll(
  ledger: Ledger,
  wishes: readonly Wish[],
  actor: Actor,
  mode: ActMode,
): Promise<ActReport> {
  const acts = ledger.queueActs;
  const reports: ActReport[] = [];
  // Of a list approved as one the whole is one decision; the others are done in the order of the rows.
  const renewed = wishes.filter(({ act }) => act === 'renew').map(({ target }) => target);
  if (renewed.length > 0) reports.push(await acts.renew(renewed, actor, mode));
  for (const { act, looked, target } of wishes) {
    const resolution = FINDINGS[act];
    if (resolution !== undefined)
      reports.push(await acts.state([target], { resolution, looked }, actor, mode));
    else if (act === 'send_again') reports.push(await acts.sendAgain([target], actor, mode));
    else if (act === 'close_unknown') reports.push(await acts.close([target], actor, mode));
    else if (act === 'look_up') reports.push(await acts.lookUp([target], actor, mode));
  }
  return {
    done: reports.flatMap(({ done }) => done),
    already: reports.flatMap(({ already }) => already),
    leftOut: reports.flatMap(({ leftOut }) => leftOut),
  };
}

/** Rows without an act are left alone. @throws {CommandFault} naming the line; nothing of the file is done then */
function readWishes(text: string, file: string): readonly Wish[] {
  const refuse = (line: number, problem: string): CommandFault =>
    new CommandFault(
      EXIT.usage,
      `${printable(file)}, line ${line}: ${problem}. Nothing of the file was done.`,
    );
  const reading = readCsv(text);
  if (!reading.ok) throw refuse(reading.line, `it ${reading.problem}`);
  const [header, ...rows] = reading.rows;
  const places = new Map(header?.cells.map((name, index) => [name, index]));
  const missing = (['operation', 'version', 'act', 'looked_at'] as const).filter((name) => !places.has(name));
  if (missing.length > 0) {
    throw refuse(1, `the columns ${missing.join(', ')} are missing (cells are separated by commas)`);
  }
  const unknown = [...places.keys()].filter((name) => !COLUMNS.includes(name as Column));
  if (unknown.length > 0) throw refuse(1, `there is no column ${printable(unknown.join(', '))}`);
  const seen = new Set<string>();
  return rows.flatMap(({ cells, line }): readonly Wish[] => {
    const cell = (column: Column): string => (cells[places.get(column) ?? -1] ?? '').trim();
    const problem = rowProblem(cell, seen);
    if (problem !== undefined) throw refuse(line, problem);
    if (cell('act') === '') return [];
    const target = { operation: cell('operation'), version: Number(cell('version')) };
    return [{ line, act: cell('act'), looked: cell('looked_at'), target }];
  });
}

function rowProblem(cell: (column: Column) => string, seen: Set<string>): string | undefined {
  const [operation, version, act] = [cell('operation'), cell('version'), cell('act')];
  if (!NAMED.test(operation) || operation.includes('@')) {
    return `${printable(JSON.stringify(operation))} is no operation`;
  }
  if (seen.has(operation)) return `${operation} is there twice`;
  seen.add(operation);
  if (!/^[1-9]\d{0,14}$/.test(version)) return `${printable(JSON.stringify(version))} is no version`;
  if (act !== '' && !ACTS.includes(act)) {
    return `${printable(JSON.stringify(act))} is no act; there are ${ACTS.join(', ')}`;
  }
  if (Object.hasOwn(FINDINGS, act) && cell('looked_at') === '') {
    return `${act} wants to know where you looked, in looked_at`;
  }
  if (cell('looked_at').length > LOOKED_MAX) return `looked_at has more than ${LOOKED_MAX} characters`;
  return undefined;
}
