// `counterfoil mcp`: the gateway in front of one MCP server over stdio. Every line on stdout is JSON-RPC.

import { existsSync, readFileSync } from 'node:fs';
import { basename, dirname, isAbsolute, resolve } from 'node:path';
import { composeLedger, composeStdioGateway } from '../compose.ts';
import { type GatewayConfig, resumeWindowMs, WRITES_PER_HOUR_DEFAULT } from '../contracts/gateway-config.ts';
import { type GatewaySetup, loadGatewaySetup } from '../contracts/load.ts';
import { formatProblem } from '../contracts/problem.ts';
import { durationMs } from '../core/contract.ts';
import { sha256Hex } from '../core/digest.ts';
import { DEFAULT_BOUNDS } from '../core/repeatability.ts';
import type { LedgerSettings } from '../engine/context.ts';
import type { PolicySources } from '../engine/policies.ts';
import { A_RUN_NAME, isRunName } from '../gateway/call.ts';
import { type SetupInForce, setupInForce } from '../gateway/policy-in-force.ts';
import type { GatewayRules } from '../gateway/tool-facts.ts';
import { StoreFault } from '../store/port.ts';
import { localAccount } from './account.ts';
import { dataDirectory } from './data-directory.ts';
import { drillPoint } from './drill-point.ts';
import { printable } from './lines.ts';
import { CommandFault, EXIT, say } from './output.ts';
import { packageVersion } from './version.ts';

export interface McpOptions {
  readonly config?: string;
  readonly data?: string;
  readonly run?: string;
}

export async function mcp(command: readonly string[], options: McpOptions): Promise<number> {
  const [program, ...args] = command;
  if (program === undefined) {
    throw new CommandFault(
      EXIT.usage,
      'Name the server to stand in front of: counterfoil mcp -- COMMAND ARGS…',
    );
  }
  const given = loadRules(options.config);
  checkRuns(options, given.config?.value);
  const data = dataDirectory(options.data);
  const rules = await rulesInForce(given, data);
  const config = rules.config?.value;
  // Whatever a library prints must not come between the lines of the protocol.
  for (const method of ['log', 'info', 'debug'] as const) console[method] = console.error;
  const destination = config?.destination ?? nameOf(command);
  const gateway = await composeStdioGateway({
    data,
    destination,
    command: program,
    args,
    rules,
    settings: settingsOf(config),
    requester: `local:${localAccount()}`,
    run: options.run ?? config?.run,
    // At most three words: what is longer is cut where the model is told of it.
    where: 'counterfoil queue',
    input: process.stdin,
    output: process.stdout,
    report: reporter(),
    reached: drillPoint(process.env['COUNTERFOIL_DRILL_CRASH_AT']),
    version: packageVersion(),
  });
  say(
    gateway.isRecording
      ? `counterfoil: writes to ${destination} are recorded in ${data}${MODE_WORDS[config?.mode ?? 'guard']}`
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

const MODE_WORDS = {
  observe: ' (observe: nothing is guarded, each call is sent as it comes)',
  guard: '',
  strict: ' (strict: every write waits for a person)',
} as const;

const SAME_AGAIN_MS = 60_000;
const REPORTS_KEPT_MAX = 1_000;

/** Other people's words are in what is told: made harmless. The same trouble is told once a minute, not each time. */
function reporter(): (message: string) => void {
  const saidAt = new Map<string, number>();
  return (message) => {
    const now = performance.now();
    if (now - (saidAt.get(message) ?? Number.NEGATIVE_INFINITY) < SAME_AGAIN_MS) return;
    if (saidAt.size >= REPORTS_KEPT_MAX) saidAt.clear();
    saidAt.set(message, now);
    say(`counterfoil: ${printable(message)}`);
  };
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

type LoadedRules = GatewayRules & {
  readonly sources?: PolicySources;
  readonly setup?: GatewaySetup;
};

/**
 * A configuration that loosens anything waits until its owner has confirmed it; the earlier one counts until then.
 * Where the ledger cannot tell what was confirmed, nothing is loosened.
 */
async function rulesInForce(loaded: LoadedRules, data: string): Promise<GatewayRules> {
  const { setup, sources } = loaded;
  if (setup === undefined || sources === undefined) return loaded;
  let inForce: SetupInForce;
  try {
    const ledger = await composeLedger({ data });
    try {
      inForce = await setupInForce(ledger.policies, { setup, sources, by: localAccount() });
    } finally {
      await ledger.close();
    }
  } catch (cause) {
    if (!(cause instanceof StoreFault)) throw cause;
    return withoutObserve(loaded);
  }
  if (!inForce.ok) throw new CommandFault(EXIT.usage, inForce.problem);
  const { config, contracts, bindings } = inForce.setup;
  for (const sentence of inForce.loosens) say(`counterfoil: not in force: ${printable(sentence)}`);
  if (inForce.loosens.length > 0) {
    say(
      `counterfoil: the configuration loosens the one before it, which stays in force until its owner confirms this one in a terminal: counterfoil policy confirm ${config.value.destination} --digest ${inForce.digest.slice(0, 12)}`,
    );
  }
  return { config, contracts, bindings };
}

function withoutObserve(loaded: LoadedRules): GatewayRules {
  const { config } = loaded;
  if (config?.value.mode !== 'observe') return loaded;
  say(
    'counterfoil: the ledger cannot tell whether observe was confirmed: guard counts until the next start.',
  );
  return { ...loaded, config: { ...config, value: { ...config.value, mode: 'guard' } } };
}

function loadRules(file: string | undefined): LoadedRules {
  if (file === undefined) return { config: undefined, contracts: [], bindings: [] };
  const path = resolve(file);
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (cause) {
    throw new CommandFault(EXIT.usage, `The configuration ${file} cannot be read: ${reasonOf(cause)}.`);
  }
  const files: { [name: string]: string } = {};
  const setup = loadGatewaySetup(text, file, {
    today: new Date().toISOString().slice(0, 10),
    readText(name) {
      try {
        const read = readFileSync(resolve(dirname(path), name), 'utf8');
        files[name] = read;
        return { text: read };
      } catch (cause) {
        return { reason: reasonOf(cause) };
      }
    },
  });
  if (!setup.ok) {
    throw new CommandFault(
      EXIT.usage,
      `${setup.problems.map(formatProblem).join('\n')}\nNothing was started: correct the configuration and start again.`,
    );
  }
  for (const note of setup.notes) say(`counterfoil: ${formatProblem(note)}`);
  return {
    config: setup.config,
    contracts: setup.contracts,
    bindings: setup.bindings,
    sources: { text, files },
    setup,
  };
}

function reasonOf(cause: unknown): string {
  const { code, message } = cause as NodeJS.ErrnoException;
  if (code === 'ENOENT') return 'there is no such file';
  if (code === 'EISDIR') return 'it is a directory';
  if (code === 'EACCES') return 'this account may not read it';
  return message;
}

function settingsOf(config: GatewayConfig | undefined): Partial<LedgerSettings> {
  const limits = config?.limits ?? {};
  const replyTimeoutMs = durationMs(limits.reply_timeout);
  const callerWaitMs = durationMs(limits.caller_wait);
  const approvalLifetimeMs = durationMs(limits.approval_lifetime);
  const elapsedMaxMs = durationMs(limits.elapsed);
  return {
    resumeWindowMs: resumeWindowMs(config),
    bounds: {
      ...DEFAULT_BOUNDS,
      ...(limits.attempts === undefined ? {} : { attemptsMax: limits.attempts }),
      ...(elapsedMaxMs === undefined ? {} : { elapsedMaxMs }),
    },
    writesPerHourMax: limits.writes_per_hour ?? WRITES_PER_HOUR_DEFAULT,
    ...(replyTimeoutMs === undefined ? {} : { replyTimeoutMs }),
    ...(callerWaitMs === undefined ? {} : { callerWaitMs }),
    ...(approvalLifetimeMs === undefined ? {} : { approvalLifetimeMs }),
  };
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
