// `counterfoil cancel`: a person's cancel of one operation or of a run, with how far it has come.

import type { Acknowledgements } from '../core/cancellation.ts';
import type { Operation } from '../core/operation.ts';
import { acknowledgementLines } from '../core/stop-wording.ts';
import { labelOf, sentenceOf } from '../core/wording.ts';
import type { Ledger } from '../engine/ledger.ts';
import type { RunCancel } from '../engine/stops.ts';
import { withLedger } from './data-directory.ts';
import { printable } from './lines.ts';
import { CommandFault, EXIT, print, printJson } from './output.ts';
import { actorName } from './queue-acts.ts';
import { NAMED } from './queue-targets.ts';

export interface CancelOptions {
  readonly data?: string;
  readonly json?: boolean;
  readonly run?: string;
  readonly by?: string;
}

const CHANGES_SHOWN = 50;

export async function cancel(id: string | undefined, options: CancelOptions): Promise<number> {
  if ((id === undefined) === (options.run === undefined)) {
    throw new CommandFault(EXIT.usage, 'Name one operation (op_…), or a run with --run.');
  }
  const actor = { by: actorName(options.by), strength: 'same_account' } as const;
  return withLedger(options.data, async (ledger) => {
    if (options.run !== undefined) return cancelRun(ledger, options.run, actor, options);
    return cancelOne(ledger, id ?? '', actor, options);
  });
}

type By = Parameters<Ledger['stops']['cancel']>[1];

async function cancelOne(ledger: Ledger, id: string, by: By, options: CancelOptions): Promise<number> {
  const result = NAMED.test(id) ? await ledger.stops.cancel(id, by) : undefined;
  if (result === undefined)
    throw new CommandFault(EXIT.notFound, `There is no operation ${printable(JSON.stringify(id))}.`);
  const { operation } = result;
  if (!result.cancelled) {
    if (options.json === true) printJson({ cancelled: false, ...operationJson(operation) });
    else {
      print(`${operation.id}  ${labelOf(operation)}. ${sentenceOf(operation)}`);
      print('It had ended by itself: nothing of it could be cancelled, and nothing was reversed.');
    }
    return EXIT.conflict;
  }
  const { acknowledgements } = result;
  if (options.json === true) {
    printJson({ cancelled: true, ...operationJson(operation), ...acknowledgementsJson(acknowledgements) });
    return EXIT.done;
  }
  print(`${operation.id}  ${labelOf(operation)}. ${sentenceOf(operation)}`);
  for (const line of acknowledgementLines(acknowledgements, 'Cancel requested')) print(`  ${line}`);
  print('  Earlier changes were not reversed.');
  return EXIT.done;
}

async function cancelRun(ledger: Ledger, run: string, by: By, options: CancelOptions): Promise<number> {
  const ordered = await ledger.stops.cancelRun(run, by);
  if (ordered === undefined)
    throw new CommandFault(EXIT.notFound, `Nothing is recorded of a run ${printable(JSON.stringify(run))}.`);
  const cancelled = 'until' in ordered.noMore ? await ledger.stops.runAcknowledged(ordered) : ordered;
  if (cancelled === undefined) throw new Error('Assertion: the cancel of a run is not in the ledger.');
  if (options.json === true) printJson(runJson(cancelled));
  else for (const line of runLines(cancelled)) print(line);
  return EXIT.done;
}

function runLines(cancelled: RunCancel): readonly string[] {
  const { earlierChanges, notSent, run } = cancelled;
  return [
    `The run ${printable(run)}`,
    ...acknowledgementLines(cancelled, 'Cancel requested').map((line) => `  ${line}`),
    `  Not sent, and closed (${notSent.length}):`,
    ...changeLines(notSent),
    `  Earlier changes were not reversed (${earlierChanges.length}):`,
    ...changeLines(earlierChanges),
  ];
}

function changeLines(operations: readonly Operation[]): readonly string[] {
  const more = operations.length - CHANGES_SHOWN;
  return [
    ...operations
      .slice(0, CHANGES_SHOWN)
      .map((one) => `    ${one.id}  ${printable(one.tool)} on ${one.destination}. ${labelOf(one)}`),
    ...(more > 0 ? [`    … ${more} more`] : []),
  ];
}

function runJson(cancelled: RunCancel): object {
  const { earlierChanges, id, notSent, run } = cancelled;
  return {
    run,
    cancel: id,
    ...acknowledgementsJson(cancelled),
    not_sent: notSent.map(operationJson),
    earlier_changes: earlierChanges.map(operationJson),
  };
}

function acknowledgementsJson({ noMore, out, requestedAt, settledAt }: Acknowledgements): object {
  return {
    requested_at: requestedAt,
    no_more_at: 'at' in noMore ? noMore.at : null,
    settled_at: settledAt ?? null,
    out,
  };
}

function operationJson(operation: Operation): object {
  const { effect, id, stage } = operation;
  return { operation: id, stage, effect, label: labelOf(operation) };
}
