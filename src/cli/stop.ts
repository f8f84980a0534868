// `counterfoil stop`, `stops` and `lift`: an operator's order that no more is sent at a scope, and its end.

import type { FrozenList, ListedOperation } from '../core/frozen-list.ts';
import type { Operation } from '../core/operation.ts';
import type { StopScope } from '../core/stop.ts';
import { acknowledgementLines, scopeWords } from '../core/stop-wording.ts';
import { labelOf } from '../core/wording.ts';
import type { Ledger } from '../engine/ledger.ts';
import type { LiftReport, StopReading } from '../engine/stops.ts';
import { withLedger } from './data-directory.ts';
import { STRENGTHS } from './decide.ts';
import { instant, printable } from './lines.ts';
import { CommandFault, EXIT, print, printJson, say } from './output.ts';
import { actorName, strengthFor } from './queue-acts.ts';
import { targetsOf } from './queue-targets.ts';
import { toType } from './starter.ts';

interface Common {
  readonly data?: string;
  readonly json?: boolean;
}

export interface StopOptions extends Common {
  readonly all?: boolean;
  readonly destination?: string;
  readonly tool?: string;
  readonly run?: string;
  readonly requester?: string;
  readonly reason: string;
  readonly by?: string;
}

export interface LiftOptions extends Common {
  readonly digest?: string;
  readonly release?: boolean;
  readonly list?: string;
  readonly by?: string;
}

const REASON_MAX = 500;
/** Of one stop, so many operations are named; with --json all are. */
const SHOWN_MAX = 20;

export async function stop(options: StopOptions): Promise<number> {
  const scope = scopeOf(options);
  const reason = options.reason.trim();
  if (reason.length > REASON_MAX) {
    throw new CommandFault(EXIT.usage, `--reason wants at most ${REASON_MAX} characters.`);
  }
  const by = actorName(options.by);
  return withLedger(options.data, async (ledger) => {
    const ordered = await ledger.stops.stop({ by, strength: 'same_account', scope, reason });
    if ('until' in ordered.noMore) {
      say(`counterfoil: Stopped. That no more will be sent can be said at ${instant(ordered.noMore.until)}.`);
    }
    const reading = await ledger.stops.acknowledged(ordered.stop.id);
    if (options.json === true) printJson(readingJson(reading));
    else for (const line of readingLines(reading)) print(line);
    return EXIT.done;
  });
}

function scopeOf({ all, destination, requester, run, tool }: StopOptions): StopScope {
  const given: StopScope[] = [
    ...(all === true ? [{ kind: 'everything' } as const] : []),
    ...(destination === undefined ? [] : [{ kind: 'destination', destination } as const]),
    ...(tool === undefined ? [] : [toolScope(tool)]),
    ...(run === undefined ? [] : [{ kind: 'run', run } as const]),
    ...(requester === undefined ? [] : [{ kind: 'requester', requester } as const]),
  ];
  const [scope] = given;
  if (scope === undefined || given.length > 1) {
    throw new CommandFault(
      EXIT.usage,
      'Say what is to be stopped: one of --all, --destination, --tool, --run and --requester.',
    );
  }
  return scope;
}

function toolScope(text: string): StopScope {
  const [, destination, tool] = /^([^/]+)\/(.+)$/.exec(text) ?? [];
  if (destination === undefined || tool === undefined) {
    throw new CommandFault(EXIT.usage, `--tool wants DESTINATION/TOOL, and was given ${quotedText(text)}.`);
  }
  return { kind: 'tool', destination, tool };
}

function quotedText(text: string): string {
  return printable(JSON.stringify(text));
}

export async function stops(id: string | undefined, options: Common): Promise<number> {
  return withLedger(options.data, async (ledger) => {
    const readings = id === undefined ? await ledger.stops.list() : [await found(ledger, id)];
    if (options.json === true) {
      printJson({ stops: readings.map(readingJson) });
      return EXIT.done;
    }
    if (readings.length === 0) print('Nothing is stopped.');
    for (const reading of readings) for (const line of readingLines(reading)) print(line);
    return EXIT.done;
  });
}

async function found(ledger: Ledger, id: string): Promise<StopReading> {
  const reading = /^stp_[0-9A-Z]{1,40}$/.test(id) ? await ledger.stops.find(id) : undefined;
  if (reading !== undefined) return reading;
  throw new CommandFault(
    EXIT.notFound,
    `There is no stop ${quotedText(id)}. To see those that are in force: ${toType('stops')}`,
  );
}

export async function lift(id: string, options: LiftOptions): Promise<number> {
  const by = actorName(options.by);
  if (options.release === true && options.list !== undefined) {
    throw new CommandFault(EXIT.usage, 'Give --release for all that wait, or --list for those of a file.');
  }
  return withLedger(options.data, async (ledger) => {
    const reading = await found(ledger, id);
    if (reading.endedAt !== undefined || reading.stop.kind !== 'stop') {
      const what =
        reading.stop.kind === 'stop' ? `was lifted at ${instant(reading.endedAt ?? 0)}` : 'is a cancel';
      throw new CommandFault(EXIT.conflict, `${id} ${what}: there is nothing to lift.`);
    }
    if (options.digest === undefined) return showList(reading, options);
    const released = await releasedBy(ledger, reading, { ...options, digest: options.digest });
    const shown = [...readingLines(reading), ...releaseLines(reading.waiting, released)];
    const strength = await strengthFor(ledger, options.data, 'Lifting a stop', shown);
    const report = await ledger.stops.lift(id, { by, strength }, released);
    if (report === undefined) throw new CommandFault(EXIT.conflict, `${id} was lifted by somebody else.`);
    if (options.json === true) printJson({ stop: id, by, strength, ...liftJson(report) });
    else for (const line of liftLines(report, strength)) print(line);
    return report.leftOut.length > 0 ? EXIT.conflict : EXIT.done;
  });
}

/** Before anything is lifted: what waits, and how to say which of it is to go. */
function showList(reading: StopReading, options: LiftOptions): number {
  const { stop: order, waiting } = reading;
  if (options.json === true) {
    printJson({ ...readingJson(reading), list: waiting });
    return EXIT.done;
  }
  for (const line of readingLines(reading)) print(line);
  const digest = waiting.digest.slice(0, 12);
  print('Nothing is lifted yet.');
  print(`  For new work only; what waits is closed: ${toType(`lift ${order.id} --digest ${digest}`)}`);
  if (waiting.operations.length > 0) {
    print(
      `  And these ${waiting.operations.length}, each judged again: ${toType(`lift ${order.id} --digest ${digest} --release`)}`,
    );
    print(`  Or some of them: ${toType(`lift ${order.id} --json`)}, and give what is kept with --list FILE.`);
  }
  return EXIT.done;
}

async function releasedBy(
  ledger: Ledger,
  { stop: order, waiting }: StopReading,
  options: LiftOptions & { readonly digest: string },
): Promise<readonly ListedOperation[]> {
  if (!/^[0-9a-f]{12,64}$/.test(options.digest)) {
    throw new CommandFault(
      EXIT.usage,
      `--digest wants at least the first 12 digits of the digest of the list: ${toType(`lift ${order.id}`)}`,
    );
  }
  if (!waiting.digest.startsWith(options.digest)) {
    throw new CommandFault(
      EXIT.conflict,
      `Nothing was lifted: what waits is not the list with that digest any more. Look again: ${toType(`lift ${order.id}`)}`,
    );
  }
  if (options.release === true) return waiting.operations;
  if (options.list === undefined) return [];
  const { targets } = await targetsOf(ledger, [], { list: options.list });
  return targets.map(({ operation, version = 0 }) => ({ operation, version }));
}

function releaseLines(waiting: FrozenList, released: readonly ListedOperation[]): readonly string[] {
  const closed = waiting.operations.length - released.length;
  return [
    `To lift: ${released.length} of ${waiting.operations.length} go on, each judged again; ${Math.max(closed, 0)} are closed.`,
  ];
}

function liftLines(
  { ended, leftOut, released }: LiftReport,
  strength: keyof typeof STRENGTHS,
): readonly string[] {
  return [
    'Lifted. New work is sent again.',
    ...(released.length === 0 ? [] : [`${released.length} go on, each judged again before it is sent.`]),
    ...(ended.length === 0 ? [] : [`${ended.length} that waited are closed: they were not sent by us.`]),
    ...leftOut.map(
      (id) => `${id}  left out: it has changed since it was looked at; it is closed with the others.`,
    ),
    `Strength: ${STRENGTHS[strength]}`,
  ];
}

function liftJson({ ended, leftOut, released }: LiftReport): object {
  return { released, ended, left_out: leftOut };
}

function readingLines(reading: StopReading): readonly string[] {
  const { endedAt, inFlight, reason, stop: order, waiting } = reading;
  const isStop = order.kind === 'stop';
  const words = scopeWords(order.scope);
  return [
    `${order.id}  ${isStop ? 'Stopped' : 'Cancelled'}: ${words}, by ${printable(order.by)}.`,
    ...(reason === undefined ? [] : [`  Reason: ${quotedText(reason)}`]),
    ...acknowledgementLines(reading, isStop ? 'Stopped' : 'Cancel requested').map((line) => `  ${line}`),
    ...(inFlight.length === 0 ? [] : [`  Out when it was stopped (${inFlight.length}):`]),
    ...inFlight.slice(0, SHOWN_MAX).map((operation) => `    ${operationLine(operation)}`),
    ...(inFlight.length > SHOWN_MAX ? [`    … ${inFlight.length - SHOWN_MAX} more`] : []),
    endedAt === undefined
      ? `  Waiting (${waiting.operations.length}): not sent by themselves. Earlier changes were not reversed.`
      : `  Lifted at ${instant(endedAt)}.`,
  ];
}

function operationLine(operation: Operation): string {
  return `${operation.id}  ${printable(operation.tool)} on ${operation.destination}. ${labelOf(operation)}`;
}

function readingJson(reading: StopReading): object {
  const { endedAt, inFlight, noMore, out, reason, requestedAt, settledAt, stop: order, waiting } = reading;
  return {
    stop: order.id,
    kind: order.kind,
    scope: order.scope,
    by: order.by,
    reason: reason ?? null,
    requested_at: requestedAt,
    no_more_at: 'at' in noMore ? noMore.at : null,
    settled_at: settledAt ?? null,
    out,
    in_flight: inFlight.map(({ effect, id, stage }) => ({ operation: id, stage, effect })),
    waiting: { count: waiting.operations.length, digest: waiting.digest },
    ended_at: endedAt ?? null,
  };
}
