// The gateway in front of one MCP server over stdio, all of it in this process.

import { localPrincipal } from '../access/principals.ts';
import { composeStdioGateway, type Reach } from '../compose.ts';
import type { GatewayConfig } from '../contracts/gateway-config.ts';
import { localAccount } from './account.ts';
import { dataDirectory } from './data-place.ts';
import { drillPoint } from './drill-point.ts';
import {
  destinationOf,
  loadRules,
  modeWords,
  quietConsole,
  reporter,
  rulesInForce,
  runOf,
  settingsOf,
  where,
} from './gateway-setup.ts';
import { listenersOf } from './listeners.ts';
import { EXIT, say } from './output.ts';
import type { NamedServer } from './server-name.ts';
import { packageVersion } from './version.ts';

export interface McpOptions {
  readonly config?: string;
  readonly data?: string;
  readonly name?: string;
  readonly run?: string;
  /** The address of a server over HTTP, in the place of a command. */
  readonly url?: string;
  /** The variable that holds it. */
  readonly urlEnv?: string;
  /** `Name:VARIABLE`, for each header of that server. */
  readonly headerEnv?: readonly string[];
  /** False: everything in this process. */
  readonly resident: boolean;
}

export async function mcpAlone(server: NamedServer, options: McpOptions): Promise<number> {
  const given = loadRules(options.config);
  runOf(options.run, given.config?.value, options.config);
  const destination = destinationOf(server, given.config?.value, options.config);
  quietConsole();
  const reached = drillPoint(process.env['COUNTERFOIL_DRILL_CRASH_AT']);
  const data = dataDirectory(options.data);
  const rules = await rulesInForce({ destination, given }, { data });
  const config = rules.config?.value;
  const gateway = await composeStdioGateway({
    data,
    listeners: listenersOf(data),
    destination,
    ...reachOf(server),
    rules,
    settings: settingsOf(config),
    requester: localPrincipal(localAccount()),
    run: options.run ?? config?.run,
    where: where(),
    input: process.stdin,
    output: process.stdout,
    report: reporter(),
    reached,
    version: packageVersion(),
  });
  say(recordingLine({ destination, data, config, isRecording: gateway.isRecording }));
  return untilClosed(gateway);
}

export function reachOf({
  command = [],
  url,
  headers = {},
}: {
  readonly command?: readonly string[] | undefined;
  readonly url?: string | undefined;
  readonly headers?: { readonly [name: string]: string } | undefined;
}): Reach {
  if (url !== undefined) return { url, headers };
  const [program = '', ...args] = command;
  return { command: program, args };
}

export function recordingLine({
  config,
  data,
  destination,
  isRecording,
}: {
  readonly destination: string;
  readonly data: string;
  /** The one in force. */
  readonly config: GatewayConfig | undefined;
  readonly isRecording: boolean;
}): string {
  return isRecording
    ? `counterfoil: writes to ${destination} are recorded in ${data}${modeWords(config)}`
    : `counterfoil: reads of ${destination} pass; its writes are refused until they can be recorded in ${data}`;
}

async function untilClosed(gateway: Awaited<ReturnType<typeof composeStdioGateway>>): Promise<number> {
  const signalled = new Promise<void>((resolveSignal) => {
    for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const)
      process.once(signal, () => resolveSignal());
  });
  await Promise.race([gateway.serve(), signalled]);
  // A client that closed its end waits for nothing: what is out is followed to its end, unless we are told to go.
  await Promise.race([gateway.close(), signalled.then(() => gateway.abort())]);
  await gateway.close();
  return EXIT.done;
}
