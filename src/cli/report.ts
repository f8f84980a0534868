// `counterfoil report`: what was written, what is unclear, what each mode would have asked, which repeats were caught.

import type { Operation } from '../core/operation.ts';
import { type Report, reportOf } from '../core/report.ts';
import { effectLabel, labelOf } from '../core/wording.ts';
import type { Gap } from '../engine/gaps.ts';
import type { RepeatCount } from '../engine/repeats.ts';
import { withLedger } from './data-directory.ts';
import { instant, printable } from './lines.ts';
import { CommandFault, EXIT, print, printJson } from './output.ts';
import { readOperations } from './recorded.ts';
import { toType } from './starter.ts';

export interface ReportOptions {
  readonly data?: string;
  readonly json?: boolean;
  readonly run?: string;
  readonly since?: string;
}

interface Totals {
  readonly report: Report;
  readonly repeats: readonly RepeatCount[];
  readonly gaps: readonly Gap[];
  readonly isCut: boolean;
}

export async function report(options: ReportOptions): Promise<number> {
  const since = sinceOf(options.since);
  return withLedger(options.data, async (ledger) => {
    const { isCut, operations } = await readOperations(ledger, since);
    const own = operations.filter(({ run }) => options.run === undefined || run.id === options.run);
    if (options.run !== undefined && own.length === 0) {
      throw new CommandFault(
        EXIT.notFound,
        `No write of the run ${printable(options.run)} is recorded here.`,
      );
    }
    const gaps = options.run === undefined ? (await ledger.gaps.all()).filter(({ to }) => to >= since) : [];
    const repeats = await ledger.repeats.of(own.map(({ id }) => id));
    const totals: Totals = { report: reportOf(own), repeats, gaps, isCut };
    if (options.json === true) printJson(asJson(totals, options));
    else for (const line of asLines(totals, own)) print(line);
    return EXIT.done;
  });
}

function sinceOf(text: string | undefined): number {
  if (text === undefined) return 0;
  const at = /^\d{4}-\d\d-\d\d(T[\d:.]+(Z|[+-]\d\d:\d\d))?$/.test(text) ? Date.parse(text) : Number.NaN;
  if (Number.isNaN(at)) {
    throw new CommandFault(
      EXIT.usage,
      `--since wants a day or an instant with its zone, such as 2026-11-30 or 2026-11-30T14:00:00Z, and was given ${printable(JSON.stringify(text))}.`,
    );
  }
  return at;
}

function asJson({ gaps, isCut, repeats, report: totals }: Totals, { run, since }: ReportOptions): object {
  return {
    run: run ?? null,
    since: since ?? null,
    isCut,
    ...totals,
    unclear: totals.unclear.map((operation) => ({
      operation: operation.id,
      destination: operation.destination,
      tool: operation.tool,
      stage: operation.stage,
      effect: operation.effect,
      label: labelOf(operation),
      since: operation.since,
    })),
    repeatsCaught: repeats.reduce((sum, { count }) => sum + count, 0),
    repeats,
    gaps,
  };
}

function asLines(
  { gaps, repeats, report: totals }: Totals,
  operations: readonly Operation[],
): readonly string[] {
  if (operations.length === 0 && gaps.length === 0) return ['No write has been recorded in this time.'];
  const caught = repeats.reduce((sum, { count }) => sum + count, 0);
  const { asked, unclear } = totals;
  return [
    `Recorded: ${counted(totals.operations, 'operation')}`,
    ...totals.tools.map(
      ({ class: toolClass, destination, effects, operations: count, tool }) =>
        `  ${printable(tool)} on ${destination} (${toolClass}): ${count}, of them ${Object.entries(effects)
          .map(([effect, number]) => `${number} ${effectLabel(effect as Operation['effect']).toLowerCase()}`)
          .join(', ')}`,
    ),
    `A person would have been asked, by the classes of the tools: observe ${asked.observe}, guard ${asked.guard}, strict ${asked.strict}`,
    `Repeats that were caught: ${caught}${caught === 0 ? '' : `, of ${counted(repeats.length, 'operation')}`}`,
    ...repeats.map(
      ({ count, operation }) =>
        `  ${operation}: an equal call was answered with it ${count === 1 ? 'once' : `${count} times`}`,
    ),
    ...(totals.waiting === 0 ? [] : [`Waiting for a person: ${totals.waiting}. See: ${toType('queue')}`]),
    ...observedLines(totals),
    ...gaps.map(
      ({ destination, from, reasons, to, tools }) =>
        `Passed unrecorded to ${destination} (observe), ${instant(from)} to ${instant(to)}: ${Object.entries(
          tools,
        )
          .map(([tool, count]) => `${count} × ${printable(tool)}`)
          .join(', ')}; ${reasons.join('; ')}`,
    ),
    unclear.length === 0 ? 'Unclear: nothing' : `Unclear: ${unclear.length}`,
    ...unclear.map(
      (operation) =>
        `  ${operation.id}  ${labelOf(operation)}: ${printable(operation.tool)} on ${operation.destination}, since ${instant(operation.since)}`,
    ),
  ];
}

function observedLines({ observed, observedRepeats }: Report): readonly string[] {
  if (observed === 0) return [];
  return [
    `Not guarded (observe): ${counted(observed, 'operation')}; ${observedRepeats} of them guard would have answered with an earlier one, and not sent`,
  ];
}

function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}
