// The servers of a file, made ready to be served, each by itself: what is wrong with one is told of that one.
// `counterfoil servers` lists them.

import { readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, resolve } from 'node:path';
import type { ServedServerParts } from '../compose.ts';
import { formatProblem } from '../contracts/problem.ts';
import type { ServeConfig, ServedServer } from '../contracts/serve-config.ts';
import { type ListedServer, readServersFile } from '../contracts/serve-servers.ts';
import type { LedgerSettings } from '../engine/context.ts';
import { type LoadedRules, loadRules, reasonOf, rulesInForce, runOf, settingsOf } from './gateway-setup.ts';
import { printable } from './lines.ts';
import { CommandFault, EXIT, print, printJson } from './output.ts';

interface Unservable {
  readonly name: string;
  readonly problem: string;
}

type ServableParts = ServedServerParts & {
  readonly settings: Partial<LedgerSettings>;
  readonly problem?: undefined;
};

/** As the files have it, which may not be what is in force. */
export type GivenServerParts = Unservable | (ServableParts & { readonly rules: LoadedRules });

export type NamedServerParts = Unservable | ServableParts;

export interface ServersRead {
  readonly listen: ServeConfig['listen'];
  readonly webhooks: NonNullable<ServeConfig['webhooks']>;
  /** As it stands in the file, made whole. */
  readonly notify: string | undefined;
  readonly named: readonly GivenServerParts[];
}

/** @throws {CommandFault} where the file as a whole cannot be read */
export function readServers(file: string): ServersRead {
  let text: string;
  try {
    text = readFileSync(resolve(file), 'utf8');
  } catch (cause) {
    throw new CommandFault(EXIT.usage, `The configuration ${file} cannot be read: ${reasonOf(cause)}.`);
  }
  const read = readServersFile(text, file, { environment: process.env, home: homedir() });
  if (!read.ok) {
    throw new CommandFault(
      EXIT.usage,
      `${read.problems.map(formatProblem).join('\n')}\nNothing was started: correct the configuration and start again.`,
    );
  }
  const folder = dirname(resolve(file));
  const destinations = new Map<string, string>();
  const named = read.servers.map((each) => namedParts(each, folder, destinations));
  const notify = read.notify === undefined ? undefined : resolve(folder, read.notify);
  return { listen: read.listen, webhooks: read.webhooks, notify, named };
}

function namedParts(each: ListedServer, folder: string, destinations: Map<string, string>): GivenServerParts {
  const { name, server } = each;
  if (server === undefined) return each;
  try {
    const file = server.config === undefined ? undefined : resolve(folder, server.config);
    const rules = loadRules(file);
    const config = rules.config?.value;
    const run = runOf(undefined, config, file);
    const destination = config?.destination ?? name;
    const twin = destinations.get(destination);
    if (twin !== undefined) {
      const problem = `It is the destination ${destination}, as ${twin} is: each needs a name of its own.`;
      return { name, problem };
    }
    destinations.set(destination, name);
    return { name, destination, reach: reachOf(server), rules, run, settings: settingsOf(config) };
  } catch (cause) {
    if (!(cause instanceof CommandFault)) throw cause;
    return { name, problem: problemOf(cause) };
  }
}

function problemOf({ message }: CommandFault): string {
  return message.replace(/\nNothing was started:[^\n]*$/, '');
}

/** The same under the rules that count for each of them. */
export async function serversInForce(
  named: readonly GivenServerParts[],
  data: string,
): Promise<readonly NamedServerParts[]> {
  const inForce: NamedServerParts[] = [];
  for (const each of named) inForce.push(each.problem === undefined ? await underRules(each, data) : each);
  return inForce;
}

async function underRules(
  each: Exclude<GivenServerParts, Unservable>,
  data: string,
): Promise<NamedServerParts> {
  const { destination, name, rules: given } = each;
  try {
    const rules = await rulesInForce({ destination, given }, { data });
    const config = rules.config?.value;
    return { ...each, rules, run: config?.run, settings: settingsOf(config) };
  } catch (cause) {
    if (!(cause instanceof CommandFault)) throw cause;
    return { name, problem: problemOf(cause) };
  }
}

/** One process keeps one ledger, which has one of each limit: those of the first server count. */
function withOneSetting(named: readonly NamedServerParts[]): readonly NamedServerParts[] {
  const first = named.find((each) => each.problem === undefined);
  if (first === undefined || first.problem !== undefined) return named;
  const shared = JSON.stringify(first.settings);
  return named.map((each) =>
    each.problem !== undefined || JSON.stringify(each.settings) === shared
      ? each
      : {
          name: each.name,
          problem: `Its configuration sets other limits or another resume window than that of ${first.name}, and one process keeps one ledger, which has one of each.`,
        },
  );
}

export function sorted(given: readonly NamedServerParts[]): {
  readonly servers: readonly ServedServerParts[];
  readonly settings: Partial<LedgerSettings>;
  readonly unservable: readonly { readonly name: string; readonly problem: string }[];
} {
  const named = withOneSetting(given);
  const servers = named.flatMap((each) => (each.problem === undefined ? [each] : []));
  const unservable = named.flatMap(({ name, problem }) => (problem === undefined ? [] : [{ name, problem }]));
  return { servers, settings: servers[0]?.settings ?? settingsOf(undefined), unservable };
}

function reachOf({ command, args = [], env, cwd, url, headers }: ServedServer): ServedServerParts['reach'] {
  if (url !== undefined) return { url, ...(headers === undefined ? {} : { headers }) };
  return {
    command: command ?? '',
    args,
    ...(env === undefined ? {} : { env: withOwn(env) }),
    ...(cwd === undefined ? {} : { cwd }),
  };
}

function withOwn(env: { readonly [name: string]: string }): Record<string, string> {
  const own = Object.entries(process.env).filter(
    (entry): entry is [string, string] => entry[1] !== undefined,
  );
  return { ...Object.fromEntries(own), ...env };
}

// ── counterfoil servers ────────────────────────────────────────────────────────────────────────────────────

/** Ends with 2 where one of them cannot be served, so that a script notices. */
export function servers(options: { readonly config: string; readonly json?: boolean }): number {
  const named = withOneSetting(readServers(options.config).named);
  const list = named.map((each) =>
    each.problem === undefined
      ? { name: each.name, served: true, destination: each.destination, path: `/mcp/${each.name}` }
      : { name: each.name, served: false, problem: each.problem },
  );
  if (options.json === true) printJson({ servers: list });
  else for (const each of list) print(serverLine(each));
  return list.every(({ served }) => served) ? EXIT.done : EXIT.usage;
}

function serverLine(each: {
  readonly name: string;
  readonly path?: string;
  readonly problem?: string;
}): string {
  const name = printable(each.name);
  return each.problem === undefined
    ? `${name}  can be served at ${each.path}`
    : `${name}  cannot be served. ${printable(each.problem)}`;
}
