// `counterfoil queue resolve`, `send-again`, `close-unknown` and `look-up`: what a person does about open work.

import { isApprovalExpired } from '../core/cause.ts';
import type { Resolution } from '../core/lifecycle.ts';
import type { Operation } from '../core/operation.ts';
import { leftOutWords } from '../core/queue-wording.ts';
import { labelOf, sentenceOf } from '../core/wording.ts';
import type { Ledger } from '../engine/ledger.ts';
import type { ActMode, Actor, ActReport, ActTarget, LeftOut } from '../engine/queue-acts.ts';
import { localAccount, ownPrincipal } from './account.ts';
import { dataDirectory, withLedger } from './data-directory.ts';
import { approvalLines, checkPersonName, STRENGTHS } from './decide.ts';
import { instant, printable } from './lines.ts';
import { CommandFault, EXIT, print, printJson } from './output.ts';
import { askPassphrase, knownOwner } from './passphrase.ts';
import { type TargetOptions, type Targets, targetsOf } from './queue-targets.ts';
import { toType } from './starter.ts';

export interface ActOptions extends TargetOptions {
  readonly data?: string;
  readonly json?: boolean;
  readonly by?: string;
  readonly dryRun?: boolean;
}

export interface ResolveOptions extends ActOptions {
  readonly happened?: boolean;
  readonly notHappened?: boolean;
  readonly otherChange?: boolean;
  readonly lookedAt: string;
}

export const LOOKED_MAX = 2_048;

export async function resolve(named: readonly string[], options: ResolveOptions): Promise<number> {
  const resolution = findingOf(options);
  const looked = options.lookedAt;
  if (looked.length > LOOKED_MAX) {
    throw new CommandFault(EXIT.usage, `--looked-at wants at most ${LOOKED_MAX} characters.`);
  }
  return act(named, options, {
    verb: 'resolve',
    purpose: 'A statement',
    isFor: isOpenQuestion,
    does: (ledger, targets, ...as) => ledger.queueActs.state(targets, { resolution, looked }, ...as),
    after: resolution === 'stated_not_happened' ? sendAgainLine : undefined,
  });
}

function findingOf(options: ResolveOptions): Resolution {
  const given: readonly Resolution[] = [
    ...(options.happened === true ? (['stated_happened'] as const) : []),
    ...(options.notHappened === true ? (['stated_not_happened'] as const) : []),
    ...(options.otherChange === true ? (['stated_other_change'] as const) : []),
  ];
  const [resolution] = given;
  if (resolution === undefined || given.length > 1) {
    throw new CommandFault(
      EXIT.usage,
      'Say what you found: one of --happened, --not-happened and --other-change. What you could not tell stays as it is; to give it up is close-unknown.',
    );
  }
  return resolution;
}

function sendAgainLine({ id }: Operation): string {
  return `  To have it sent again, under a new approval: ${toType(`queue send-again ${id}`)}`;
}

export async function sendAgain(named: readonly string[], options: ActOptions): Promise<number> {
  return act(named, options, {
    verb: 'send-again',
    isFor: ({ effect, resolution, stage }) =>
      stage === 'parked' && (effect !== 'unknown' || resolution?.resolution === 'stated_not_happened'),
    does: (ledger, targets, ...as) => ledger.queueActs.sendAgain(targets, ...as),
    after: ({ digest, id }) => `  To decide: ${toType(`approve ${id} --digest ${digest.slice(0, 12)}`)}`,
  });
}

export async function closeUnknown(named: readonly string[], options: ActOptions): Promise<number> {
  return act(named, options, {
    verb: 'close-unknown',
    purpose: 'Closing it',
    isFor: ({ stage }) => stage === 'parked',
    does: (ledger, targets, ...as) => ledger.queueActs.close(targets, ...as),
  });
}

export async function lookUp(named: readonly string[], options: ActOptions): Promise<number> {
  return act(named, options, {
    verb: 'look-up',
    isHarmless: true,
    isFor: ({ effect, stage }) => effect === 'unknown' && (stage === 'parked' || stage === 'checking'),
    does: (ledger, targets, ...as) => ledger.queueActs.lookUp(targets, ...as),
    also: waitingLines,
  });
}

export async function renew(named: readonly string[], options: ActOptions): Promise<number> {
  return act(named, options, {
    verb: 'renew',
    purpose: 'An approval',
    isFor: isApprovalExpired,
    shows: async (ledger, targets) => {
      const lines = await Promise.all(targets.map((target) => approvalLines(ledger, target)));
      return [`One decision for ${targets.length} operations, each exactly as it is shown:`, ...lines.flat()];
    },
    does: (ledger, targets, ...as) => ledger.queueActs.renew(targets, ...as),
    also: async (ledger, report) => {
      if (report.done.length === 0) return [];
      const destinations = [...new Set(report.done.map(({ destination }) => destination))];
      const held = await Promise.all(destinations.map((each) => ledger.queue.isHeld(each)));
      return destinations.map((destination, index) =>
        held[index] === true
          ? `They are sent by the running gateway to ${destination}, as soon as it answers.`
          : `No gateway to ${destination} runs now: they wait for one.`,
      );
    },
  });
}

/** Who looks is the process that holds the destination; where none runs, that is what it waits for. */
async function waitingLines(ledger: Ledger, { already, done }: ActReport): Promise<readonly string[]> {
  const destinations = new Set([...done, ...already].map(({ destination }) => destination));
  const lines = [];
  for (const destination of destinations) {
    lines.push(
      (await ledger.queue.isHeld(destination))
        ? `The running gateway to ${destination} looks now.`
        : `No gateway to ${destination} runs now: waiting for a gateway to ${destination}, which looks when it starts.`,
    );
  }
  return lines;
}

function isOpenQuestion({ effect, stage }: Operation): boolean {
  return stage === 'parked' && (effect === 'unknown' || effect === 'diverged');
}

interface Verb {
  readonly verb: string;
  /** What the passphrase is asked for, where one is set; an act that decides nothing asks for none. */
  readonly purpose?: string;
  /** Which operations of a list it is about. */
  readonly isFor: (operation: Operation) => boolean;
  /** What is shown before the passphrase is typed, in place of what is known of each. */
  readonly shows?: (ledger: Ledger, targets: readonly ActTarget[]) => Promise<readonly string[]>;
  readonly does: (
    ledger: Ledger,
    targets: readonly ActTarget[],
    actor: Actor,
    mode: ActMode,
  ) => Promise<ActReport>;
  /** What has changed since is no news to it. */
  readonly isHarmless?: boolean;
  /** A line about each operation that it was done with. */
  readonly after?: ((operation: Operation) => string) | undefined;
  readonly also?: (ledger: Ledger, report: ActReport) => Promise<readonly string[]>;
}

async function act(named: readonly string[], options: ActOptions, verb: Verb): Promise<number> {
  const by = actorName(options.by);
  return withLedger(options.data, async (ledger) => {
    const targets = await concerned(ledger, await targetsOf(ledger, named, options), verb);
    const shown = await (verb.shows?.(ledger, targets) ?? shownLines(ledger, verb.verb, targets));
    const isTrial = options.dryRun === true;
    const purpose = targets.length === 0 || isTrial ? undefined : verb.purpose;
    const strength = await strengthFor(ledger, options.data, purpose, shown);
    const actor: Actor = { by, principal: ownPrincipal(), strength };
    const report = await verb.does(ledger, targets, actor, { isTrial });
    const lines = isTrial ? [DRY_RUN] : ((await verb.also?.(ledger, report)) ?? []);
    return told(report, options, { verb, actor, lines });
  });
}

export const DRY_RUN = 'This was a dry run: nothing was recorded, and nothing is done.';

/** @throws {CommandFault} for what cannot be a name */
export function actorName(given: string | undefined): string {
  const by = given ?? localAccount();
  checkPersonName(by);
  return by;
}

/** Of a list, what the act is about; what was named one by one is judged one by one. */
async function concerned(
  ledger: Ledger,
  { isList, targets }: Targets,
  verb: Verb,
): Promise<readonly ActTarget[]> {
  if (!isList) return targets;
  const about: ActTarget[] = [];
  for (const target of targets) {
    const record = await ledger.readings.record(target.operation);
    const isToBeTold = verb.isHarmless !== true && record?.version !== target.version;
    if (record === undefined || isToBeTold || verb.isFor(record.operation)) about.push(target);
  }
  return about;
}

const SHOWN_MAX = 200;

/** What the person sees on the terminal before the passphrase is typed. */
async function shownLines(
  ledger: Ledger,
  verb: string,
  targets: readonly ActTarget[],
): Promise<readonly string[]> {
  const lines: string[] = [
    `To ${verb}: ${targets.length} ${targets.length === 1 ? 'operation' : 'operations'}`,
  ];
  for (const { operation: id } of targets.slice(0, SHOWN_MAX)) {
    const record = await ledger.readings.record(id);
    if (record === undefined) continue;
    const { operation } = record;
    lines.push(`  ${id}  ${printable(operation.tool)} on ${operation.destination}. ${sentenceOf(operation)}`);
  }
  if (targets.length > SHOWN_MAX) lines.push(`  … ${targets.length - SHOWN_MAX} more`);
  return lines;
}

/**
 * With a passphrase, where one is set, for what decides something: a statement lets go of its target's lock, and only
 * a person at a terminal can be told from the agent under the same account.
 */
export async function strengthFor(
  ledger: Ledger,
  data: string | undefined,
  purpose: string | undefined,
  shown: readonly string[],
): Promise<Actor['strength']> {
  if (purpose === undefined || (await knownOwner(ledger, dataDirectory(data))) === undefined) {
    return 'same_account';
  }
  await askPassphrase(ledger, data, purpose, shown);
  return 'passphrase';
}

interface Telling {
  readonly verb: Pick<Verb, 'verb' | 'after' | 'purpose'>;
  readonly actor: Actor;
  readonly lines: readonly string[];
}

/** Prints what was done and what was left out; ends with a conflict where anything was. */
export function told(
  report: ActReport,
  options: Pick<ActOptions, 'json' | 'dryRun'>,
  telling: Telling,
): number {
  const { already, done, leftOut } = report;
  const { actor, lines, verb } = telling;
  if (options.json === true) {
    printJson({
      act: verb.verb,
      ...actor,
      done: done.map(operationJson),
      already: already.map(operationJson),
      left_out: leftOut.map((each) => ({ ...each, sentence: leftOutLine(each) })),
      notes: lines,
    });
  } else {
    for (const operation of done) {
      print(`${operation.id}  ${labelOf(operation)}. ${sentenceOf(operation)}`);
      if (verb.after !== undefined) print(verb.after(operation));
    }
    for (const { id } of already)
      print(`${id}  was done before by ${printable(actor.by)}; nothing was done now.`);
    for (const each of leftOut) print(`${each.operation}  left out: ${leftOutLine(each)}`);
    const isDecided = done.length > 0 && verb.purpose !== undefined && options.dryRun !== true;
    if (isDecided) print(`Strength: ${STRENGTHS[actor.strength]}`);
    for (const line of lines) print(line);
    if (done.length + already.length + leftOut.length === 0) print('Nothing of the list is concerned.');
  }
  return leftOut.length > 0 ? EXIT.conflict : EXIT.done;
}

function operationJson(operation: Operation): object {
  const { digest, effect, id, resolution, stage } = operation;
  return { operation: id, stage, effect, digest, label: labelOf(operation), resolution: resolution ?? null };
}

function leftOutLine(each: LeftOut): string {
  if (each.why !== 'claimed') return `${leftOutWords(each.why, each.state)}.`;
  return `its cause is claimed by ${printable(each.claim.by)} until ${instant(each.claim.until)}.`;
}
