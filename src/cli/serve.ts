// `counterfoil serve`: the gateway in front of several MCP servers over HTTP, for clients on this machine.

import { readFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { composeHttpGateway, type RunningHttpGateway, type ServedServerParts } from '../compose.ts';
import type { GatewayConfig } from '../contracts/gateway-config.ts';
import { loadServeConfig } from '../contracts/load.ts';
import { formatProblem } from '../contracts/problem.ts';
import type { ServeConfig, ServedServer } from '../contracts/serve-config.ts';
import type { LedgerSettings } from '../engine/context.ts';
import { A_RUN_NAME, isRunName } from '../gateway/call.ts';
import { localAccount } from './account.ts';
import { dataDirectory } from './data-directory.ts';
import { drillPoint } from './drill-point.ts';
import {
  loadRules,
  modeWords,
  quietConsole,
  reasonOf,
  reporter,
  rulesInForce,
  settingsOf,
} from './gateway-setup.ts';
import { printable } from './lines.ts';
import { CommandFault, EXIT, say } from './output.ts';
import { nameHere } from './starter.ts';
import { packageVersion } from './version.ts';

export interface ServeOptions {
  readonly config: string;
  readonly data?: string;
  readonly host?: string;
  readonly port?: string;
}

const DEFAULT_PORT = 3210;
const DEFAULT_HOST = '127.0.0.1';
const LOOPBACK = /^(localhost|127(\.\d{1,3}){3}|::1)$/;

export async function serve(options: ServeOptions): Promise<number> {
  const config = loadServe(options.config);
  const host = options.host ?? config.listen?.host ?? DEFAULT_HOST;
  if (!LOOPBACK.test(host)) {
    throw new CommandFault(
      EXIT.usage,
      `${printable(host)} can be reached from other machines, and nothing here asks who calls: listen on 127.0.0.1, localhost or ::1.`,
    );
  }
  quietConsole();
  const reached = drillPoint(process.env['COUNTERFOIL_DRILL_CRASH_AT']);
  const data = dataDirectory(options.data);
  const { servers, settings } = await serversOf(config, options.config, data);
  const gateway = await listening({
    data,
    servers,
    host,
    port: portOf(options.port) ?? config.listen?.port ?? DEFAULT_PORT,
    hostNames: config.listen?.names ?? [],
    authenticate: () => ({ principal: `local:${localAccount()}` }),
    settings,
    where: `${nameHere()} queue`,
    report: reporter(),
    reached,
    version: packageVersion(),
  });
  const shownHost = host.includes(':') ? `[${host}]` : host;
  for (const [name, path] of gateway.paths) {
    const config = servers.find((server) => server.name === name)?.rules.config?.value;
    say(`counterfoil: ${name} is served at http://${shownHost}:${gateway.port}${path}${modeWords(config)}`);
  }
  say(
    gateway.isRecording
      ? `counterfoil: writes are recorded in ${data}`
      : `counterfoil: reads pass; writes are refused until they can be recorded in ${data}`,
  );
  return untilSignalled(gateway);
}

async function listening(parts: Parameters<typeof composeHttpGateway>[0]): Promise<RunningHttpGateway> {
  try {
    return await composeHttpGateway(parts);
  } catch (cause) {
    const { code, syscall } = cause as NodeJS.ErrnoException;
    if (syscall !== 'listen' && syscall !== 'getaddrinfo') throw cause;
    const why = code === 'EADDRINUSE' ? 'somebody else listens there' : (code ?? 'it cannot be listened on');
    throw new CommandFault(
      EXIT.usage,
      `${printable(parts.host)}, port ${parts.port}: ${why}. Give another port with --port; 0 takes any that is free.`,
    );
  }
}

/** The first signal lets what is out come to its end; the second does not wait for it. */
async function untilSignalled(gateway: RunningHttpGateway): Promise<number> {
  let count = 0;
  const waiting = new Map<number, () => void>();
  const signal = (number: number): Promise<void> =>
    new Promise((resolveSignal) => {
      if (count >= number) resolveSignal();
      else waiting.set(number, resolveSignal);
    });
  for (const name of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) {
    process.on(name, () => {
      count += 1;
      waiting.get(count)?.();
    });
  }
  await signal(1);
  await Promise.race([gateway.close(), signal(2).then(() => gateway.abort())]);
  await gateway.close();
  return EXIT.done;
}

function loadServe(file: string): ServeConfig {
  let text: string;
  try {
    text = readFileSync(resolve(file), 'utf8');
  } catch (cause) {
    throw new CommandFault(EXIT.usage, `The configuration ${file} cannot be read: ${reasonOf(cause)}.`);
  }
  const loaded = loadServeConfig(text, file);
  if (loaded.ok) return loaded.config;
  throw new CommandFault(
    EXIT.usage,
    `${loaded.problems.map(formatProblem).join('\n')}\nNothing was started: correct the configuration and start again.`,
  );
}

async function serversOf(
  config: ServeConfig,
  file: string,
  data: string,
): Promise<{ readonly servers: readonly ServedServerParts[]; readonly settings: Partial<LedgerSettings> }> {
  const folder = dirname(resolve(file));
  const destinations = new Map<string, string>();
  const given = Object.entries(config.servers).map(([name, served]) => {
    const rules = loadRules(served.config === undefined ? undefined : resolve(folder, served.config));
    const destination = rules.config?.value.destination ?? name;
    const twin = destinations.get(destination);
    if (twin !== undefined) {
      throw new CommandFault(
        EXIT.usage,
        `The servers ${twin} and ${name} are both the destination ${destination}: each needs a name of its own.`,
      );
    }
    destinations.set(destination, name);
    runOf(rules.config?.value, name);
    return { name, served, destination, given: rules };
  });
  const inForce = await rulesInForce(given, data);
  const servers = given.map(({ name, served, destination, given: written }, index): ServedServerParts => {
    const rules = inForce[index] ?? written;
    return { name, destination, reach: reachOf(served), rules, run: runOf(rules.config?.value, name) };
  });
  return { servers, settings: sharedSettings(servers) };
}

/** One process keeps one ledger. @throws {CommandFault} where what is in force for two of them differs */
function sharedSettings(servers: readonly ServedServerParts[]): Partial<LedgerSettings> {
  const settings = new Map<string, string>();
  let shared: Partial<LedgerSettings> = settingsOf(undefined);
  for (const { name, rules } of servers) {
    shared = settingsOf(rules.config?.value);
    settings.set(JSON.stringify(shared), name);
  }
  if (settings.size > 1) {
    const [one, other] = [...settings.values()];
    throw new CommandFault(
      EXIT.usage,
      `The configurations of ${one} and ${other} set different limits or resume windows; one process keeps one ledger, which has one of each.`,
    );
  }
  return shared;
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

function runOf(config: GatewayConfig | undefined, name: string): string | undefined {
  const run = config?.run;
  if (run !== undefined && !isRunName(run)) {
    throw new CommandFault(
      EXIT.usage,
      `run: ${printable(JSON.stringify(run))} in the configuration of ${name} is not ${A_RUN_NAME}.`,
    );
  }
  return run;
}

function portOf(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const port = Number(text);
  if (!/^\d+$/.test(text) || port > 65_535) {
    throw new CommandFault(EXIT.usage, `--port ${printable(text)} is not a port from 0 to 65535.`);
  }
  return port;
}
