// `counterfoil serve`: the gateway in front of several MCP servers over HTTP, for this machine or for a team.

import { localPrincipal } from '../access/principals.ts';
import { composeHttpGateway, composeLedger, type RunningHttpGateway } from '../compose.ts';
import { StoreFault } from '../store/port.ts';
import { localAccount } from './account.ts';
import { dataDirectory } from './data-place.ts';
import { drillPoint } from './drill-point.ts';
import { modeWords, quietConsole, reporter, where } from './gateway-setup.ts';
import { printable } from './lines.ts';
import { listenersOf, webhooksOf } from './listeners.ts';
import { CommandFault, EXIT, say } from './output.ts';
import { readServers, serversInForce, sorted } from './served-servers.ts';
import { toType } from './starter.ts';
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
  const { listen, named, notify, webhooks } = readServers(options.config);
  const data = dataDirectory(options.data);
  const listeners = [...webhooksOf(webhooks, options.config), ...listenersOf(data, notify)];
  const host = options.host ?? listen?.host ?? DEFAULT_HOST;
  const isLoopback = LOOPBACK.test(host);
  // Before anything is made: then nothing was.
  const given = sorted(named);
  if (given.servers.length === 0) throw noneServed(given.unservable);
  quietConsole();
  const reached = drillPoint(process.env['COUNTERFOIL_DRILL_CRASH_AT']);
  if (!isLoopback && !(await hasToken(data))) {
    throw new CommandFault(
      EXIT.usage,
      `${printable(host)} can be reached from other machines, and nobody has a token yet: make one with ${toType('token create NAME')}, or listen on 127.0.0.1, localhost or ::1.`,
    );
  }
  const { servers, settings, unservable } = sorted(await serversInForce(named, data));
  if (servers.length === 0) throw noneServed(unservable);
  const gateway = await listening({
    data,
    servers,
    unservable,
    host,
    port: portOf(options.port) ?? listen?.port ?? DEFAULT_PORT,
    hostNames: [...(listen?.names ?? []), ...(isLoopback ? [] : [host.includes(':') ? `[${host}]` : host])],
    localPrincipal: isLoopback ? localPrincipal(localAccount()) : undefined,
    settings,
    listeners,
    where: where(),
    report: reporter(),
    reached,
    version: packageVersion(),
  });
  const shownHost = host.includes(':') ? `[${host}]` : host;
  for (const [name, path] of gateway.paths) {
    const config = servers.find((server) => server.name === name)?.rules.config?.value;
    say(`counterfoil: ${name} is served at http://${shownHost}:${gateway.port}${path}${modeWords(config)}`);
  }
  for (const each of unservable) say(`counterfoil: ${problemLine(each)}`);
  say(
    gateway.isRecording
      ? `counterfoil: writes are recorded in ${data}`
      : `counterfoil: reads pass; writes are refused until they can be recorded in ${data}`,
  );
  return untilSignalled(gateway);
}

function noneServed(unservable: readonly Parameters<typeof problemLine>[0][]): CommandFault {
  return new CommandFault(
    EXIT.usage,
    [...unservable.map(problemLine), 'None of the servers can be served. Nothing was started.'].join('\n'),
  );
}

function problemLine({ name, problem }: { readonly name: string; readonly problem: string }): string {
  return `${printable(name)} cannot be served. ${printable(problem)}`;
}

async function hasToken(data: string): Promise<boolean> {
  const ledger = await composeLedger({ data }).catch((cause: unknown) => {
    if (cause instanceof StoreFault) throw new CommandFault(EXIT.internal, cause.message);
    throw cause;
  });
  try {
    return (await ledger.tokens.all()).length > 0;
  } finally {
    await ledger.close();
  }
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

function portOf(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const port = Number(text);
  if (!/^\d+$/.test(text) || port > 65_535) {
    throw new CommandFault(EXIT.usage, `--port ${printable(text)} is not a port from 0 to 65535.`);
  }
  return port;
}
