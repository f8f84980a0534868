// `counterfoil show`: what is recorded of one operation, for people and for scripts.

import { idInstant } from '../core/ids.ts';
import type { Operation } from '../core/operation.ts';
import { type ToolDifference, toolDifference } from '../core/tool-difference.ts';
import { demandWords, labelOf, sentenceOf, statedWords } from '../core/wording.ts';
import type { Ledger } from '../engine/ledger.ts';
import type { HistoryEntry, OperationReading } from '../engine/readings.ts';
import { withLedger } from './data-directory.ts';
import { evidenceLine, historyLine, instant, payloadLines, printable, reviewLines } from './lines.ts';
import { CommandFault, EXIT, exitCodeOf, print, printJson } from './output.ts';
import { toType } from './starter.ts';

export interface ShowOptions {
  readonly data?: string;
  readonly json?: boolean;
  readonly last?: boolean;
}

export async function show(id: string | undefined, options: ShowOptions): Promise<number> {
  if (id === undefined && options.last !== true) {
    throw new CommandFault(EXIT.usage, 'Name the operation to show (op_…), or say --last for the newest.');
  }
  if (id !== undefined && options.last === true) {
    throw new CommandFault(EXIT.usage, `Both ${printable(id)} and --last were given: name one of them.`);
  }
  return withLedger(options.data, async (ledger) => {
    const operation = await find(ledger, id);
    const reading = await shownReading(ledger, operation);
    const history = await ledger.readings.history(operation.id);
    if (options.json === true) printJson(asJson(reading, history));
    else for (const line of asLines(reading, history)) print(line);
    return exitCodeOf(operation);
  });
}

/** An operation by its whole id; the newest when none is named. */
async function find(ledger: Ledger, id: string | undefined): Promise<Operation> {
  if (id === undefined) {
    const [newest] = await ledger.readings.recent(1);
    if (newest === undefined)
      throw new CommandFault(EXIT.notFound, 'No operation has been recorded here yet.');
    return newest;
  }
  const record = await ledger.readings.record(id);
  if (record !== undefined) return record.operation;
  throw new CommandFault(
    EXIT.notFound,
    `No operation ${printable(id)} is recorded here: it never reached this ledger.`,
  );
}

/** A reading, and whether the process that had it out is no more: then nobody waits for its answer now. */
export type ShownReading = OperationReading & {
  readonly isSenderGone: boolean;
  /** Of a tool that is not what its class was confirmed for. */
  readonly difference: readonly ToolDifference[] | undefined;
};

export async function shownReading(ledger: Ledger, operation: Operation): Promise<ShownReading> {
  const reading = await ledger.readings.reading(operation);
  const difference = await toolChange(ledger, operation);
  return { ...reading, isSenderGone: await ledger.isSenderGone(operation), difference };
}

/**
 * What is different in a tool about which a person is asked again; none where one of the two was not kept. Of what a
 * binding was measured with the digest alone is known: then it is held against the tool as it was first seen.
 */
async function toolChange(
  ledger: Ledger,
  operation: Operation,
): Promise<readonly ToolDifference[] | undefined> {
  const { classBefore, destination, tool } = operation;
  if (classBefore === undefined) return undefined;
  const rules = await ledger.rules();
  const rule = rules.find((one) => one.destination === destination && one.tool === tool);
  const before = rule?.definition ?? (await ledger.tools.of(destination, tool))?.definition;
  const after = await ledger.readings.toolDefinition(operation);
  if (before === undefined || before === '' || after === undefined || before === after) return undefined;
  return toolDifference(before, after);
}

function differenceLines({ difference, operation }: ShownReading): readonly string[] {
  if (operation.classBefore === undefined) return [];
  const head = `  ${printable(operation.tool)} was ${operation.classBefore}, and is not the tool that this was said of:`;
  if (difference === undefined) return [head, '    what is different was not kept'];
  return [
    head,
    ...difference.map(
      ({ after, at, before }) =>
        `    ${printable(at)}: ${differenceWords(before)} → ${differenceWords(after)}`,
    ),
  ];
}

const DIFFERENCE_LENGTH_MAX = 400;

function differenceWords(value: unknown): string {
  const text = value === undefined ? 'not there' : JSON.stringify(value);
  const more = text.length - DIFFERENCE_LENGTH_MAX;
  return `${printable(text.slice(0, DIFFERENCE_LENGTH_MAX))}${more > 0 ? ` … ${more} characters more, with --json` : ''}`;
}

/** Who stated what, and where they looked: shown also to whoever decides whether it is sent again. */
function statementLines({ looked, operation }: OperationReading): readonly string[] {
  const { resolution } = operation;
  if (resolution === undefined) return [];
  const strength = resolution.strength === undefined ? '' : ` (strength: ${resolution.strength})`;
  const where = looked === undefined ? '' : `; looked at ${printable(JSON.stringify(looked))}`;
  return [`  ${printable(statedWords(resolution))}${strength}${where}`];
}

function reasonLines({ operation, reason }: ShownReading): readonly string[] {
  const who = operation.askedBy === undefined ? 'its caller' : printable(operation.askedBy);
  return reason === undefined ? [] : [`  ${who} says: ${printable(JSON.stringify(reason))}`];
}

export function asJson(reading: ShownReading, history: readonly HistoryEntry[]): object {
  const { operation, target } = reading;
  return {
    operation,
    label: labelOf(operation),
    sentence: sentenceOf(operation, wordsOf(reading)),
    target: target ?? null,
    digest: operation.digest,
    intact: reading.isIntact,
    payload: reading.payload.text,
    ...(reading.shown === undefined ? {} : { review: reading.shown }),
    ...(reading.difference === undefined ? {} : { difference: reading.difference }),
    ...(reading.reason === undefined ? {} : { reason: reading.reason }),
    ...(reading.looked === undefined ? {} : { looked: reading.looked }),
    history,
  };
}

function wordsOf(reading: ShownReading): Parameters<typeof sentenceOf>[1] {
  return {
    isSenderGone: reading.isSenderGone,
    ...(reading.target === undefined ? {} : { target: reading.target }),
    ...(reading.quote === undefined ? {} : { quote: reading.quote }),
  };
}

function asLines(reading: ShownReading, history: readonly HistoryEntry[]): readonly string[] {
  const { operation } = reading;
  const approval = operation.review?.decision;
  return [
    `${operation.id}  ${labelOf(operation)}`,
    sentenceOf(operation, wordsOf(reading)),
    '',
    `what       ${whatWords(reading)}`,
    `run        ${printable(operation.run.id)}${operation.run.step === undefined ? '' : `, step ${printable(operation.run.step)}`}${operation.run.weak ? ' (weak: no run was given)' : ''}`,
    `asked by   ${printable(operation.requester)} at ${instant(operation.proposedAt)}`,
    ...linkLines(operation),
    `allowed    ${allowedBy(operation, approval)}`,
    ...demandLines(operation).map((line) => `wanted     ${line}`),
    `digest     ${operation.digest}${reading.isIntact ? '' : '  DOES NOT MATCH what is stored now'}`,
    ...(operation.record?.id === undefined ? [] : [`record     ${printable(operation.record.id)}`]),
    ...differenceLines(reading).map((line) => line.slice(2)),
    ...reasonLines(reading).map((line) => line.slice(2)),
    ...statementLines(reading).map((line) => `stated   ${line}`),
    ...(reading.shown === undefined ? [] : ['review', ...reviewLines(reading.shown, '')]),
    'payload',
    ...payloadLines(reading.payload.text),
    'evidence',
    ...(operation.evidence.length === 0
      ? ['  nothing recorded']
      : operation.evidence.map((piece) => `  ${evidenceLine(piece)}`)),
    'history',
    ...history.map((entry) => `  ${historyLine(entry)}`),
  ];
}

/** What rules want of the approval, and who has given one of several. */
function demandLines({ review }: Operation): readonly string[] {
  const { approvals = [], demands } = review ?? {};
  if (demands === undefined) return [];
  return [
    ...demandWords(demands).map(printable),
    ...approvals.map(({ at, by }) => `approved in part by ${printable(by)} at ${instant(at)}`),
  ];
}

/** Other operations that a reader of this one must know of. */
function linkLines({ previous, supersededBy, supersedes }: Operation): readonly string[] {
  const lines: string[] = [];
  if (supersedes !== undefined)
    lines.push(`in place   of ${supersedes}, an earlier proposal on the same step`);
  if (supersededBy !== undefined)
    lines.push(`followed   by ${supersededBy}, a changed proposal on the same step`);
  if (previous !== undefined) {
    const made = idInstant(previous.operation);
    const when = made === undefined ? '' : `, proposed at ${instant(made)}`;
    const how = previous.relation === 'other_run' ? 'the same write in another run' : 'the same write before';
    lines.push(`linked     to ${previous.operation}${when}: ${how}`);
  }
  return lines;
}

function whatWords({ operation, target }: OperationReading): string {
  const what = `${printable(operation.tool)} on ${operation.destination}`;
  return target === undefined ? what : `${what}, ${printable(target)}`;
}

function allowedBy(
  operation: Operation,
  approval: NonNullable<Operation['review']>['decision'] | undefined,
): string {
  if (approval !== undefined) {
    const by =
      (approval.principal ?? approval.by) === operation.requester
        ? `${approval.by}, who is also the requester`
        : approval.by;
    const list =
      approval.list === undefined ? '' : `, one decision for the list ${approval.list.slice(0, 12)}`;
    const { revoked } = operation.review ?? {};
    const ended =
      revoked === undefined
        ? ''
        : `; revoked by ${printable(revoked.by)} at ${instant(revoked.at)} (strength: ${revoked.strength})`;
    return `${approval.kind} by ${printable(by)} at ${instant(approval.at)} (strength: ${approval.strength})${list}${ended}`;
  }
  if (operation.rule !== undefined) return `by the rule ${operation.rule}`;
  return operation.review === undefined
    ? 'not yet'
    : `not yet: a person is asked until ${instant(operation.review.expiresAt)}`;
}

/** A review that takes the place of another one is named: what was said of the earlier one does not count for it. */
export function decisionCommand({ digest, id, review }: Operation): string {
  const which = review?.because === undefined ? '' : ` --review ${review.id}`;
  return `approve ${id} --digest ${digest.slice(0, 12)}${which}`;
}

function classHint(given: string): string {
  const others = ['read', 'ordinary', 'irreversible', 'interactive'].filter((one) => one !== given);
  return `  Approved, the tool is ${given} from then on; or say --class ${others.slice(0, -1).join(', ')} or ${others.at(-1)}.`;
}

/** One operation as the queue shows it; what is to be decided, with how. */
export function queueLines(reading: ShownReading): readonly string[] {
  const { operation } = reading;
  const lines = [
    `${operation.id}  ${whatWords(reading)}`,
    `  ${sentenceOf(operation, wordsOf(reading))} Since ${instant(operation.since)}.`,
    ...linkLines(operation).map((line) => `  ${line}`),
    ...statementLines(reading),
  ];
  if (operation.stage !== 'awaiting_approval') return lines;
  const question = operation.review?.question;
  return [
    ...lines,
    ...differenceLines(reading),
    ...reasonLines(reading),
    ...reviewLines(reading.shown, reading.payload.text),
    ...demandLines(operation).map((line) => `  wanted: ${line}`),
    `  To decide: ${toType(decisionCommand(operation))}   (or: deny … --reason TEXT)`,
    ...(question === 'unclassified' ? [classHint('ordinary')] : []),
    ...(question === 'tool_changed' ? [classHint(operation.classBefore ?? 'ordinary')] : []),
  ];
}
