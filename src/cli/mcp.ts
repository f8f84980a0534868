// `counterfoil mcp`: the gateway in front of one MCP server over stdio. Every line on stdout is JSON-RPC.

import { existsSync } from 'node:fs';
import { basename, isAbsolute, resolve } from 'node:path';
import { composeStdioGateway, type Reach } from '../compose.ts';
import type { GatewayConfig } from '../contracts/gateway-config.ts';
import { sha256Hex } from '../core/digest.ts';
import { A_RUN_NAME, isRunName } from '../gateway/call.ts';
import { localAccount } from './account.ts';
import { dataDirectory } from './data-directory.ts';
import { drillPoint } from './drill-point.ts';
import { loadRules, modeWords, quietConsole, reporter, rulesInForce, settingsOf } from './gateway-setup.ts';
import { printable } from './lines.ts';
import { CommandFault, EXIT, say } from './output.ts';
import { nameHere } from './starter.ts';
import { packageVersion } from './version.ts';

export interface McpOptions {
  readonly config?: string;
  readonly data?: string;
  readonly name?: string;
  readonly run?: string;
  /** The address of a server over HTTP, in the place of a command. */
  readonly url?: string;
}

export async function mcp(command: readonly string[], options: McpOptions): Promise<number> {
  const reach = reachOf(command, options.url);
  const given = loadRules(options.config);
  checkRuns(options, given.config?.value);
  if (options.name !== undefined) checkName(options.name, given.config?.value, options.config);
  quietConsole();
  const reached = drillPoint(process.env['COUNTERFOIL_DRILL_CRASH_AT']);
  const data = dataDirectory(options.data);
  const destination =
    given.config?.value.destination ??
    options.name ??
    nameOf(options.url === undefined ? command : [options.url]);
  const [rules = given] = await rulesInForce([{ destination, given }], data);
  const config = rules.config?.value;
  const gateway = await composeStdioGateway({
    data,
    destination,
    ...reach,
    rules,
    settings: settingsOf(config),
    requester: `local:${localAccount()}`,
    run: options.run ?? config?.run,
    // At most three words: what is longer is cut where the model is told of it.
    where: `${nameHere()} queue`,
    input: process.stdin,
    output: process.stdout,
    report: reporter(),
    reached,
    version: packageVersion(),
  });
  say(
    gateway.isRecording
      ? `counterfoil: writes to ${destination} are recorded in ${data}${modeWords(config)}`
      : `counterfoil: reads of ${destination} pass; its writes are refused until they can be recorded in ${data}`,
  );
  return untilClosed(gateway);
}

/** @throws {CommandFault} when two runs are named, or one that cannot be a run's name */
function checkRuns(options: McpOptions, config: GatewayConfig | undefined): void {
  if (options.run !== undefined && config?.run !== undefined && options.run !== config.run) {
    throw new CommandFault(
      EXIT.usage,
      `Two runs are named: --run ${options.run}, and run: ${config.run} in ${options.config}. Leave one of them out.`,
    );
  }
  for (const [where, run] of [
    ['--run', options.run],
    ['run:', config?.run],
  ] as const) {
    if (run !== undefined && !isRunName(run)) {
      throw new CommandFault(EXIT.usage, `${where} ${printable(JSON.stringify(run))} is not ${A_RUN_NAME}.`);
    }
  }
}

function checkName(name: string, config: GatewayConfig | undefined, file: string | undefined): void {
  if (!/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/.test(name)) {
    throw new CommandFault(
      EXIT.usage,
      `--name ${printable(JSON.stringify(name))} is not a stable name of at most 64 letters, digits, dots, hyphens and underscores.`,
    );
  }
  if (config !== undefined && config.destination !== name) {
    throw new CommandFault(
      EXIT.usage,
      `Two destinations are named: --name ${name}, and destination: ${config.destination} in ${file}. Leave one of them out.`,
    );
  }
}

function reachOf([program, ...args]: readonly string[], url: string | undefined): Reach {
  if (program !== undefined && url !== undefined) {
    throw new CommandFault(EXIT.usage, 'A command and --url are both given; only one of them can be meant.');
  }
  if (program !== undefined) return { command: program, args };
  if (url === undefined) {
    throw new CommandFault(
      EXIT.usage,
      "missing required argument 'command': name the server to stand in front of, counterfoil mcp -- COMMAND ARGS… or counterfoil mcp --url ADDRESS",
    );
  }
  const { protocol } = URL.canParse(url) ? new URL(url) : { protocol: '' };
  if (protocol !== 'http:' && protocol !== 'https:') {
    throw new CommandFault(EXIT.usage, `--url ${printable(url)} is no http or https address.`);
  }
  return { url };
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

/** Programs that only start others: the name that matters comes after them. */
const STARTERS = new Set([
  'node',
  'npx',
  'npm',
  'exec',
  'pnpm',
  'dlx',
  'yarn',
  'bun',
  'bunx',
  'uv',
  'uvx',
  'run',
  'python',
  'python3',
  'deno',
  'env',
  'sh',
  'bash',
]);
/** Names of entry files that say nothing about what they are part of. */
const ENTRIES = new Set(['index', 'main', 'server', 'cli', 'dist', 'build', 'bin', 'src', 'lib', 'out']);

/**
 * A stable name for a server that nobody has named: a word from its command line, and a few digits of all of
 * it, so that two servers that differ only in an argument, or in the directory that one names, are two destinations.
 */
function nameOf(command: readonly string[]): string {
  // What is given as NAME=VALUE may be a secret, and names are shown everywhere.
  const isWord = (part: string): boolean =>
    !part.startsWith('-') && !part.includes('=') && !STARTERS.has(basename(part));
  const first = command.find(isWord) ?? 'server';
  const segments = first.split(/[\\/]/).filter((segment) => segment !== '');
  const words = segments.map((segment) =>
    segment.replace(/\.[cm]?[jt]s$|\.py$/, '').replace(/(?<=.)@[^@]*$/, ''),
  );
  const word = words.findLast((segment) => !ENTRIES.has(segment)) ?? 'server';
  const plain = word
    .replace(/[^A-Za-z0-9._-]+/g, '-')
    .replace(/^[^A-Za-z0-9]+/, '')
    .slice(0, 48);
  const whole = command.map((part) => (isRelativePath(part) ? resolve(part) : part));
  return `${plain === '' ? 'server' : plain}-${sha256Hex(JSON.stringify(whole)).slice(0, 6)}`;
}

/** The same relative path is another one in another directory, and so is the server that is given it. */
function isRelativePath(part: string): boolean {
  return !part.startsWith('-') && !isAbsolute(part) && existsSync(part);
}
