// `counterfoil approve --run`: what waits for approval in one run, as one list, and one decision for it.

import type { FrozenList } from '../core/frozen-list.ts';
import type { Operation } from '../core/operation.ts';
import { sentenceOf } from '../core/wording.ts';
import type { Ledger } from '../engine/ledger.ts';
import type { RunList } from '../engine/run-lists.ts';
import { withLedger } from './data-directory.ts';
import { approvalLines, checkDigest } from './decide.ts';
import { printable } from './lines.ts';
import { CommandFault, EXIT, print, printJson } from './output.ts';
import { actorName, strengthFor, told } from './queue-acts.ts';
import { toType } from './starter.ts';

export interface ApproveRunOptions {
  readonly data?: string;
  readonly json?: boolean;
  readonly digest?: string;
  readonly by?: string;
  readonly dryRun?: boolean;
}

export function approveRun(run: string, options: ApproveRunOptions): Promise<number> {
  const { digest } = options;
  if (digest !== undefined) checkDigest(digest);
  return withLedger(options.data, (ledger) =>
    digest === undefined ? showRun(ledger, run, options) : decideRun(ledger, run, digest, options),
  );
}

async function showRun(ledger: Ledger, run: string, options: ApproveRunOptions): Promise<number> {
  const list = await ledger.runLists.show(run);
  if (list.records.length === 0 && list.apart.length === 0) {
    throw new CommandFault(EXIT.notFound, `Nothing of the run ${shellWord(run)} waits for approval.`);
  }
  if (options.json === true) {
    const { apart, digest, isCut, operations } = list;
    printJson({ run, list: { digest, operations }, apart: apart.map(({ id }) => id), cut: isCut });
    return EXIT.waitingForApproval;
  }
  for (const line of await shownLines(ledger, list)) print(line);
  return EXIT.waitingForApproval;
}

async function shownLines(ledger: Ledger, list: RunList): Promise<readonly string[]> {
  const { apart, digest, isCut, records, run } = list;
  const each = await Promise.all(
    records.map(({ operation, version }) => approvalLines(ledger, { operation: operation.id }, version)),
  );
  return [
    `Run ${printable(run)}: ${records.length} ${records.length === 1 ? 'operation waits' : 'operations wait'} for approval, each exactly as it is shown:`,
    ...each.flat().map((line) => `  ${line}`),
    ...(isCut ? ['More of it wait than a list may hold; these are the oldest.'] : []),
    ...apartLines(apart, 'Not in the list, because each wants an answer of its own:'),
    ...(records.length === 0
      ? []
      : [
          `list       ${digest}`,
          `To approve all of it as one decision: ${toType(`approve --run ${shellWord(run)} --digest ${digest.slice(0, 12)}`)}`,
          'What is denied by itself before that is left out; the others are not touched by it.',
        ]),
  ];
}

function apartLines(operations: readonly Operation[], head: string): readonly string[] {
  if (operations.length === 0) return [];
  const line = (operation: Operation): string =>
    `  ${operation.id}  ${printable(operation.tool)} on ${operation.destination}. ${sentenceOf(operation)}`;
  return [head, ...operations.map(line)];
}

async function decideRun(
  ledger: Ledger,
  run: string,
  digest: string,
  options: ApproveRunOptions,
): Promise<number> {
  const by = actorName(options.by);
  const list = await ledger.runLists.shown(run, digest);
  if (list === undefined) {
    throw new CommandFault(
      EXIT.conflict,
      `Nothing was decided: no list of the run ${shellWord(run)} with that digest was shown. Look at it (${toType(`approve --run ${shellWord(run)}`)}) and decide on what it is now.`,
    );
  }
  const isTrial = options.dryRun === true;
  const purpose = isTrial ? undefined : 'An approval';
  const strength = await strengthFor(ledger, options.data, purpose, await listLines(ledger, list));
  const report = await ledger.queueActs.approveShown(list, { by, strength }, { isTrial });
  const since = await ledger.runLists.since(run, list);
  const lines = apartLines(since, 'Not in the list that was decided on, and still waiting:');
  return told(report, options, {
    verb: { verb: 'approve', purpose: 'An approval' },
    actor: { by, strength },
    lines,
  });
}

/** What the person sees on the terminal before the passphrase is typed. */
async function listLines(ledger: Ledger, { operations }: FrozenList): Promise<readonly string[]> {
  const each = await Promise.all(
    operations.map(({ operation, version }) => approvalLines(ledger, { operation }, version)),
  );
  return [`One decision for ${operations.length} operations, each exactly as it is shown:`, ...each.flat()];
}

/** As a shell takes it for one word. */
function shellWord(text: string): string {
  const shown = printable(text);
  return /^[\w./:@-]+$/.test(shown) ? shown : `'${shown.replaceAll("'", `'\\''`)}'`;
}
