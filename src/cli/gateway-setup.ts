// What the commands that run a gateway have in common: the owner's files, the ledger's settings, what is told.

import { readFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { composeLedger, type SharedLedger } from '../compose.ts';
import { type GatewayConfig, resumeWindowMs, WRITES_PER_HOUR_DEFAULT } from '../contracts/gateway-config.ts';
import { type GatewaySetup, loadGatewaySetup } from '../contracts/load.ts';
import { formatProblem } from '../contracts/problem.ts';
import { durationMs } from '../core/contract.ts';
import { DEFAULT_BOUNDS } from '../core/repeatability.ts';
import type { LedgerSettings } from '../engine/context.ts';
import type { Policies, PolicySources } from '../engine/policies.ts';
import { A_RUN_NAME, isRunName } from '../gateway/call.ts';
import { setupInForce } from '../gateway/policy-in-force.ts';
import type { GatewayRules } from '../gateway/tool-facts.ts';
import { StoreFault } from '../store/port.ts';
import { localAccount } from './account.ts';
import { hasLedger } from './data-directory.ts';
import { printable } from './lines.ts';
import { CommandFault, EXIT, say } from './output.ts';
import type { NamedServer } from './server-name.ts';
import { toType } from './starter.ts';

/** Whatever a library prints must not come between the lines of the protocol. */
export function quietConsole(): void {
  for (const method of ['log', 'info', 'debug'] as const) console[method] = console.error;
}

/** Where a person can look. At most three words: what is longer is cut where the model is told of it. */
export function where(): string {
  return toType('queue');
}

const SAME_AGAIN_MS = 60_000;
const REPORTS_KEPT_MAX = 1_000;

/** Other people's words are in what is told: made harmless. The same trouble is told once a minute, not each time. */
export function reporter(tell: (message: string) => void = say): (message: string) => void {
  const saidAt = new Map<string, number>();
  return (message) => {
    const now = performance.now();
    if (now - (saidAt.get(message) ?? Number.NEGATIVE_INFINITY) < SAME_AGAIN_MS) return;
    if (saidAt.size >= REPORTS_KEPT_MAX) saidAt.clear();
    saidAt.set(message, now);
    tell(`counterfoil: ${printable(message)}`);
  };
}

/** Rules as they are in the files, with what they were read from. */
export type LoadedRules = GatewayRules & {
  readonly sources?: PolicySources;
  readonly setup?: GatewaySetup;
};

/** `since`: when they came into force, where the ledger knows; the same files may come into force more than once. */
export type RulesInForce = GatewayRules & { readonly since?: number };

type Tell = (message: string) => void;

/**
 * @param tell is told what should be known and stops nothing
 * @throws {CommandFault} where the configuration, or what it names, cannot be used
 */
export function loadRules(file: string | undefined, tell: Tell = say): LoadedRules {
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
  for (const note of setup.notes) tell(`counterfoil: ${formatProblem(note)}`);
  return {
    config: setup.config,
    contracts: setup.contracts,
    bindings: setup.bindings,
    sources: { text, files },
    setup,
  };
}

interface GivenRules {
  readonly destination: string;
  readonly given: LoadedRules;
}

interface InForceParts {
  readonly data: string;
  /** The open ledger of a process that has one. */
  readonly shared?: SharedLedger;
  /** Told what is not in force, and why. */
  readonly tell?: Tell;
}

/**
 * The rules that count for a destination. A configuration that loosens anything waits until its owner has confirmed
 * it, and the earlier one counts until then; so does one that is left out where there was one. Where the ledger cannot
 * tell what was confirmed, nothing is loosened.
 */
export async function rulesInForce(
  one: GivenRules,
  { data, shared, tell = say }: InForceParts,
): Promise<RulesInForce> {
  const { given } = one;
  // Nothing was ever in force here, and nothing is given that could be.
  if (given.setup === undefined && !hasLedger(data)) return given;
  try {
    const ledger = await composeLedger({ data, ...(shared === undefined ? {} : { shared }) });
    try {
      return await inForceOf(ledger.policies, one, tell);
    } finally {
      await ledger.close();
    }
  } catch (cause) {
    if (!(cause instanceof StoreFault)) throw cause;
    return withoutObserve(given, tell);
  }
}

/** @throws {StoreFault} @throws {CommandFault} */
async function inForceOf(
  policies: Policies,
  { destination, given }: GivenRules,
  tell: Tell,
): Promise<RulesInForce> {
  const written = given.setup === undefined ? await leftOut(policies, destination) : given;
  const { setup, sources } = written ?? {};
  if (setup === undefined || sources === undefined) return given;
  const inForce = await setupInForce(policies, { setup, sources, by: localAccount() });
  if (!inForce.ok) throw new CommandFault(EXIT.usage, inForce.problem);
  const { config, contracts, bindings } = inForce.setup;
  for (const sentence of inForce.loosens) tell(`counterfoil: not in force: ${printable(sentence)}`);
  if (inForce.loosens.length > 0) {
    const what = given.setup === undefined ? 'to start without the configuration' : 'the configuration';
    tell(
      `counterfoil: ${what} loosens the one before it, which stays in force until its owner confirms this one in a terminal: ${toType(`policy confirm ${destination} --digest ${inForce.digest.slice(0, 12)}`)}`,
    );
  }
  return { config, contracts, bindings, since: inForce.since };
}

/** A destination that had a configuration, and is started without one, is as if an empty one were given. */
async function leftOut(policies: Policies, destination: string): Promise<LoadedRules | undefined> {
  if ((await policies.of(destination)) === undefined) return undefined;
  const text = `destination: ${destination}\n`;
  const setup = loadGatewaySetup(text, 'no configuration', { readText: () => ({ reason: 'none is named' }) });
  if (!setup.ok) throw new Error(`Assertion: an empty configuration of ${destination} is one.`);
  const { bindings, config, contracts } = setup;
  return { config, contracts, bindings, setup, sources: { text, files: {} } };
}

function withoutObserve(given: LoadedRules, tell: Tell): GatewayRules {
  const { config } = given;
  if (config?.value.mode !== 'observe') return given;
  tell(
    'counterfoil: the ledger cannot tell whether observe was confirmed: guard counts until the next start.',
  );
  return { ...given, config: { ...config, value: { ...config.value, mode: 'guard' } } };
}

const MODE_WORDS = {
  observe: ' (observe: nothing is guarded, each call is sent as it comes)',
  guard: '',
  strict: ' (strict: every write waits for a person)',
} as const;

/** What is said of a server's mode when its gateway starts. */
export function modeWords(config: GatewayConfig | undefined): string {
  return MODE_WORDS[config?.mode ?? 'guard'];
}

/**
 * The run of a gateway, named on the command line or in its configuration.
 * @throws {CommandFault} where both name one that differs, or one is no name
 */
export function runOf(
  option: string | undefined,
  config: GatewayConfig | undefined,
  file: string | undefined,
): string | undefined {
  if (option !== undefined && config?.run !== undefined && option !== config.run) {
    throw new CommandFault(
      EXIT.usage,
      `Two runs are named: --run ${option}, and run: ${config.run} in ${file}. Leave one of them out.`,
    );
  }
  for (const [where, run] of [
    ['--run', option],
    ['run:', config?.run],
  ] as const) {
    if (run !== undefined && !isRunName(run)) {
      throw new CommandFault(EXIT.usage, `${where} ${printable(JSON.stringify(run))} is not ${A_RUN_NAME}.`);
    }
  }
  return option ?? config?.run;
}

/**
 * The name that a server is recorded under.
 * @throws {CommandFault} where `--name` and the configuration name two
 */
export function destinationOf(
  { isNamed, name }: Pick<NamedServer, 'isNamed' | 'name'>,
  config: GatewayConfig | undefined,
  file: string | undefined,
): string {
  if (config === undefined) return name;
  if (isNamed && config.destination !== name) {
    throw new CommandFault(
      EXIT.usage,
      `Two destinations are named: --name ${name}, and destination: ${config.destination} in ${file}. Leave one of them out.`,
    );
  }
  return config.destination;
}

export function reasonOf(cause: unknown): string {
  const { code, message } = cause as NodeJS.ErrnoException;
  if (code === 'ENOENT') return 'there is no such file';
  if (code === 'EISDIR') return 'it is a directory';
  if (code === 'EACCES') return 'this account may not read it';
  return message;
}

export function settingsOf(config: GatewayConfig | undefined): Partial<LedgerSettings> {
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
