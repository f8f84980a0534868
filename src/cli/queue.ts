// `counterfoil queue`: what is open, grouped by what stands in its way, with what a person can do about it.

import { isStrongEnough } from '../core/authority.ts';
import { type CauseGroup, isApprovalExpired, type Queued, standingOf } from '../core/cause.ts';
import { type FrozenList, frozenList } from '../core/frozen-list.ts';
import type { Operation } from '../core/operation.ts';
import { causeHeading, causeSentence, countsWords, isCauseId } from '../core/queue-wording.ts';
import type { CauseClaim } from '../engine/cause-claims.ts';
import type { Ledger } from '../engine/ledger.ts';
import { dataDirectory, withLedger } from './data-directory.ts';
import { instant, printable } from './lines.ts';
import { CommandFault, EXIT, print, printJson, say } from './output.ts';
import { isPassphraseSet } from './passphrase.ts';
import { asJson, queueLines, type ShownReading, shownReading } from './show.ts';
import { toType } from './starter.ts';

export interface QueueOptions {
  readonly data?: string;
  readonly json?: boolean;
}

const READINGS_MAX = 500;
/** Of one cause in the list of all; what a person is asked about is shown whole. */
const MEMBERS_SHOWN = 10;

export async function queue(options: QueueOptions & { readonly named?: readonly string[] }): Promise<number> {
  const [other] = options.named ?? [];
  if (other !== undefined) {
    // Without a command of that name the words after `queue` come here.
    const isCause = isCauseId(other) ? ` Did you mean ${toType(`queue show ${printable(other)}`)}?` : '';
    throw new CommandFault(
      EXIT.usage,
      `${printable(JSON.stringify(other))} is no command of queue.${isCause} Those that there are: ${toType('queue --help')}`,
    );
  }
  return withLedger(options.data, async (ledger) => {
    const { claims, groups, isCut } = await ledger.queue.read();
    if (isCut) say('counterfoil: More is open than was looked at: the counts are at least these.');
    const shown = limited(groups);
    if (options.json === true) {
      const operations = await readingsOf(ledger, shown);
      printJson({
        operations: operations.map((reading) => ({ ...asJson(reading, []), history: undefined })),
        causes: groups.map((group) => causeJson(group, claims.get(group.cause.id))),
      });
      return EXIT.done;
    }
    if (groups.length === 0) {
      print('Nothing waits for a person, and nothing is open.');
      return EXIT.done;
    }
    for (const group of groups) await printGroup(ledger, group, claims.get(group.cause.id));
    if (groups.some(isForPerson)) print(`What can be done about a cause: ${toType('queue show CAUSE')}`);
    const operations = groups.flatMap(({ members }) => members.map(({ operation }) => operation));
    if (await needsPassphrase(ledger, operations, options.data)) print(NO_PASSPHRASE);
    return EXIT.done;
  });
}

/** An approval tells by itself what can be done about it. */
function isForPerson({ cause, counts }: CauseGroup): boolean {
  return cause.kind !== 'approval' && counts.needsPerson > 0;
}

/** In order of arrival, as many as are read with their content. */
function limited(groups: readonly CauseGroup[]): readonly Operation[] {
  const all = groups
    .flatMap(({ members }) => members.map(({ operation }) => operation))
    .toSorted((one, other) => (one.id < other.id ? -1 : 1));
  if (all.length > READINGS_MAX) {
    say(`counterfoil: Only the ${READINGS_MAX} oldest are shown; there are more.`);
  }
  return all.slice(0, READINGS_MAX);
}

function readingsOf(ledger: Ledger, operations: readonly Operation[]): Promise<readonly ShownReading[]> {
  return Promise.all(operations.map((operation) => shownReading(ledger, operation)));
}

async function printGroup(ledger: Ledger, group: CauseGroup, claim: CauseClaim | undefined): Promise<void> {
  for (const line of headLines(group, claim)) print(line);
  const isAsked = ({ operation }: Queued): boolean => operation.stage === 'awaiting_approval';
  const shown = group.members.filter((member, index) => index < MEMBERS_SHOWN || isAsked(member));
  const readings = await readingsOf(
    ledger,
    shown.map(({ operation }) => operation),
  );
  for (const reading of readings) for (const line of queueLines(reading)) print(`  ${line}`);
  const more = group.members.length - shown.length;
  if (more > 0) print(`  … ${more} more: ${toType(`queue show ${group.cause.id}`)}`);
}

function headLines(group: CauseGroup, claim: CauseClaim | undefined): readonly string[] {
  const { cause, counts, members, nextAt, since } = group;
  const next = nextAt === undefined ? '' : ` Next try by itself at ${instant(nextAt)}.`;
  const waits = members.some(
    ({ operation: { stage, why } }) => stage === 'checking' && why?.code === 'waits_for_gateway',
  )
    ? ` No gateway to ${printable(cause.destination)} runs now: what is to be checked waits for one.`
    : '';
  return [
    `${causeHeading(cause)} (${members.length})  ${printable(cause.id)}`,
    `  ${countsWords(counts)}. Since ${instant(since)}. ${causeSentence(cause)}${next}${waits}`,
    ...(claim === undefined ? [] : [`  ${claimWords(claim)}`]),
  ];
}

export function claimWords({ by, from, until }: CauseClaim): string {
  const handed = from === undefined ? '' : `, handed over by ${printable(from)}`;
  return `Claimed by ${printable(by)} until ${instant(until)}${handed}.`;
}

/** A cause as programs read it, with its list as it is frozen now. */
export function causeJson(group: CauseGroup, claim: CauseClaim | undefined): object {
  const { cause, counts, found, members, nextAt, since } = group;
  const { digest } = listOf(group);
  return {
    ...cause,
    heading: causeHeading(cause),
    counts: {
      never_sent: counts.neverSent,
      found: counts.found,
      needs_person: counts.needsPerson,
      goes_on: counts.goesOn,
      approvals_expired: counts.approvalsExpired,
    },
    since,
    next_at: nextAt ?? null,
    claim: claim ?? null,
    list: {
      digest,
      operations: members.map(({ operation, version }) => ({
        operation: operation.id,
        version,
        standing: standingOf(operation),
      })),
    },
    found: found.map(({ id }) => id),
  };
}

export function listOf({ members }: Pick<CauseGroup, 'members'>): FrozenList {
  return frozenList(members.map(({ operation, version }) => ({ operation: operation.id, version })));
}

export async function showCause(id: string, options: QueueOptions): Promise<number> {
  return withLedger(options.data, async (ledger) => {
    const { claims, groups } = await ledger.queue.read();
    const group = groups.find(({ cause }) => cause.id === id);
    if (group === undefined) throw noSuchCause(id);
    const claim = claims.get(id);
    if (options.json === true) {
      printJson(causeJson(group, claim));
      return EXIT.done;
    }
    for (const line of headLines(group, claim)) print(line);
    for (const { operation, version } of group.members) {
      const [head = '', ...lines] = queueLines(await shownReading(ledger, operation));
      print(`  ${head.replace(operation.id, `${operation.id}@${version}`)}`);
      for (const line of lines) print(`  ${line}`);
    }
    if (group.found.length > 0) print(`  found since: ${group.found.map((one) => one.id).join(', ')}`);
    const { digest } = listOf(group);
    print(`list       ${digest}`);
    for (const line of actLines(group, digest.slice(0, 12))) print(line);
    return EXIT.done;
  });
}

export function noSuchCause(id: string): CommandFault {
  return new CommandFault(
    EXIT.notFound,
    `Nothing open belongs to ${printable(id)} now. The causes that there are: ${toType('queue')}`,
  );
}

/** What can be done with the whole list, as commands. */
function actLines({ cause, members }: CauseGroup, digest: string): readonly string[] {
  const operations = members.map(({ operation }) => operation);
  const on = `${printable(cause.id)} --digest ${digest}`;
  const isParkedUnknown = ({ effect, stage }: Operation): boolean =>
    stage === 'parked' && (effect === 'unknown' || effect === 'diverged');
  const mayBeLookedUp = ({ effect, stage, why }: Operation): boolean =>
    stage === 'parked' && effect === 'unknown' && why?.code !== 'no_lookup';
  return [
    ...(operations.some(isParkedUnknown)
      ? [
          `To state what you found: ${toType('queue resolve OPERATION --not-happened --looked-at WHERE')}   (or --happened, --other-change)`,
        ]
      : []),
    ...(operations.some(mayBeLookedUp)
      ? [`To look all of it up again now: ${toType(`queue look-up ${on}`)}`]
      : []),
    ...(operations.some(isApprovalExpired)
      ? [`To renew the expired approvals as one decision: ${toType(`queue renew ${on}`)}`]
      : []),
    ...(operations.some(({ stage }) => stage === 'parked')
      ? [`To close what is with a person, unknown as it is: ${toType(`queue close-unknown ${on}`)}`]
      : []),
  ];
}

const NO_PASSPHRASE = `What cannot be taken back is approved with your passphrase, and none is set yet. Set it first, in a terminal: ${toType('passphrase set')}`;

/** Whether something waits that nobody can approve yet. */
async function needsPassphrase(
  ledger: Ledger,
  operations: readonly Operation[],
  data: string | undefined,
): Promise<boolean> {
  const isAsked = operations.some(
    ({ stage, toolClass }) => stage === 'awaiting_approval' && !isStrongEnough('same_account', toolClass),
  );
  return isAsked && !(await isPassphraseSet(ledger, dataDirectory(data)));
}
