// `counterfoil init`: finds the servers of this account's MCP clients, shows what each can do, and puts us in front.

import { maskArguments, maskWords, shownAddress } from '../clients/masking.ts';
import { placesOf } from '../clients/places.ts';
import { dataDirectory, journalIn, rulesIn, withLedger } from './data-directory.ts';
import { type FilePlan, planFiles, type Written, writeFiles } from './guard-files.ts';
import { asJson, printEnd, printSurvey } from './init-words.ts';
import { printable } from './lines.ts';
import { isAtAddress, type Look, lookAtAll } from './look.ts';
import { CommandFault, EXIT, printJson, say } from './output.ts';
import { isPassphraseSet } from './passphrase.ts';
import { agreed, canAsk } from './question.ts';
import { commandHere, OUR_NAME, starterHere, toType, type Via } from './starter.ts';
import { type Survey, type SurveyedServer, survey } from './survey.ts';

export interface InitOptions {
  readonly data?: string;
  readonly json?: boolean;
  readonly yes?: boolean;
  readonly dryRun?: boolean;
  readonly client?: readonly string[];
  readonly server?: readonly string[];
  readonly via?: Via;
}

const LOOK_TIMEOUT_MS = 30_000;

export async function init(options: InitOptions): Promise<number> {
  if (options.json === true && options.yes !== true && options.dryRun !== true) {
    throw new CommandFault(
      EXIT.usage,
      'With --json nothing can be asked: say --dry-run to look, or --yes to write.',
    );
  }
  const data = dataDirectory(options.data);
  const journal = await journalIn(data);
  const found = await survey(options, journal.names);
  if (found.files.length === 0) throw nothingFound(found);
  const toStart = await serversToStart(found, options);
  if (toStart.length > 0 && options.json !== true) {
    const what = toStart.length === 1 ? 'the server' : `${toStart.length} servers`;
    say(
      `${capital(lookVerb(toStart, 'ing'))} ${what} to list the tools, each for at most ${LOOK_TIMEOUT_MS / 1000} s.`,
    );
  }
  const looks = await lookAtAll(toStart, {
    data,
    surroundings: found.surroundings,
    ownerRules: await rulesIn(data),
    timeoutMs: LOOK_TIMEOUT_MS,
  });
  const starter = starterHere(options.via);
  const wanted = found.servers.filter((server) => isToBeGuarded(server, looks, options));
  const plans = await planFiles(wanted, starter, data);
  if (options.json !== true) printSurvey(found, looks, plans);
  const isWriting = plans.some(({ change }) => change !== undefined);
  const isAgreed =
    isWriting &&
    options.dryRun !== true &&
    (options.yes === true ||
      (await agreed(`Write ${plans.length === 1 ? 'this change' : 'these changes'}?`, {
        flag: '--yes',
        notDone: 'Nothing was written.',
      })));
  const written = isAgreed ? await writeFiles(plans, data) : [];
  if (options.json === true) printJson(asJson(found, looks, plans, written, options.dryRun === true));
  else printEnd(plans, written, { isWriting, isAgreed, hints: await hints(looks, data) });
  return exitCodeFor(plans, written);
}

function nothingFound({ surroundings }: Survey): CommandFault {
  const places = placesOf(surroundings).map(({ title, path }) => `  ${title}: ${printable(path)}`);
  return new CommandFault(
    EXIT.notFound,
    `No configuration of an MCP client was found, so there is nothing to guard. Looked for:\n${places.join('\n')}`,
  );
}

// ── Looking ──────────────────────────────────────────────────────────────────────────────────────────────────

/** What came with a project is somebody else's choice of a program: it is started only when its reader agrees. */
async function serversToStart(found: Survey, options: InitOptions): Promise<readonly SurveyedServer[]> {
  const startable = found.servers.filter(({ standing, entry }) => standing.kind === 'open' && !entry.isOff);
  const foreign = startable.filter(({ place }) => place.scope === 'project');
  if (foreign.length === 0 || options.yes === true) return startable;
  const own = startable.filter(({ place }) => place.scope === 'user');
  if (!canAsk()) return own;
  say(
    `These servers come with the project in this folder. To see their tools, they must be ${lookVerb(foreign, 'ed')}:`,
  );
  for (const { entry } of foreign) say(`  ${printable(entry.name)}: ${reachLine(entry)}`);
  const isAgreed = await agreed(`${capital(lookVerb(foreign, ''))} them?`, {
    flag: '--yes',
    notDone: `Nothing was ${lookVerb(foreign, 'ed')}.`,
  });
  return isAgreed ? startable : own;
}

/** A command is started, an address asked. */
function lookVerb(servers: readonly SurveyedServer[], ending: string): string {
  const asked = servers.filter(({ entry }) => isAtAddress(entry)).length;
  const verbs = [...(asked < servers.length ? ['start'] : []), ...(asked > 0 ? ['ask'] : [])];
  return verbs.map((verb) => verb + ending).join(' or ');
}

function capital(text: string): string {
  return text.slice(0, 1).toUpperCase() + text.slice(1);
}

function reachLine({ server }: SurveyedServer['entry']): string {
  if (server.kind === 'http') {
    const names = Object.keys(server.headers);
    return printable(
      `${shownAddress(server.url)}${names.length === 0 ? '' : ` with the headers ${names.join(', ')}`}`,
    );
  }
  if (server.kind !== 'stdio') return '';
  const { command, args } = server.launch;
  return printable([maskWords(command), ...maskArguments(args)].join(' '));
}

/** One that could not be looked at is left as it is, unless it was asked for by name. */
function isToBeGuarded(
  server: SurveyedServer,
  looks: ReadonlyMap<SurveyedServer, Look>,
  options: InitOptions,
): boolean {
  if (server.standing.kind !== 'open') return false;
  const look = looks.get(server);
  if (look?.answered === false && look.isBeyondUs === true) return false;
  return look?.answered === true || (options.server ?? []).includes(server.entry.name);
}

/** What a person comes upon later, and can do now. */
async function hints(looks: ReadonlyMap<SurveyedServer, Look>, data: string): Promise<readonly string[]> {
  const irreversible = [...looks.values()]
    .flatMap((look) => (look.answered ? look.tools : []))
    .filter((tool) => tool.class === 'irreversible');
  const isSet = irreversible.length === 0 || (await hasPassphrase(data));
  const command = commandHere();
  return [
    ...(isSet
      ? []
      : [
          `What is irreversible is approved with a passphrase of yours, and none is set yet: ${toType('passphrase set')}`,
        ]),
    ...(command === OUR_NAME
      ? []
      : [`${OUR_NAME} is not in your PATH: say ${printable(command)} in its place.`]),
  ];
}

async function hasPassphrase(data: string): Promise<boolean> {
  try {
    return await withLedger(data, (ledger) => isPassphraseSet(ledger, data));
  } catch (cause) {
    // Without a ledger none is set; one that cannot be read is told of by doctor, and is no reason for a hint.
    if (cause instanceof CommandFault) return cause.exitCode !== EXIT.notFound;
    throw cause;
  }
}

function exitCodeFor(plans: readonly FilePlan[], written: readonly Written[]): number {
  for (const each of written) if (!each.isWritten) return each.exitCode;
  return plans.some(({ problem }) => problem !== undefined) ? EXIT.notAllowed : EXIT.done;
}
