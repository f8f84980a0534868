// What the commands that run a gateway have in common: the owner's files, the ledger's settings, what is told.

import { readFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { type GatewayConfig, resumeWindowMs } from '../contracts/gateway-config.ts';
import { loadGatewaySetup } from '../contracts/load.ts';
import { formatProblem } from '../contracts/problem.ts';
import { durationMs } from '../core/contract.ts';
import { DEFAULT_BOUNDS } from '../core/repeatability.ts';
import type { LedgerSettings } from '../engine/context.ts';
import type { GatewayRules } from '../gateway/tool-facts.ts';
import { printable } from './lines.ts';
import { CommandFault, EXIT, say } from './output.ts';

/** Whatever a library prints must not come between the lines of the protocol. */
export function quietConsole(): void {
  for (const method of ['log', 'info', 'debug'] as const) console[method] = console.error;
}

const SAME_AGAIN_MS = 60_000;
const REPORTS_KEPT_MAX = 1_000;

/** Other people's words are in what is told: made harmless. The same trouble is told once a minute, not each time. */
export function reporter(): (message: string) => void {
  const saidAt = new Map<string, number>();
  return (message) => {
    const now = performance.now();
    if (now - (saidAt.get(message) ?? Number.NEGATIVE_INFINITY) < SAME_AGAIN_MS) return;
    if (saidAt.size >= REPORTS_KEPT_MAX) saidAt.clear();
    saidAt.set(message, now);
    say(`counterfoil: ${printable(message)}`);
  };
}

export function loadRules(file: string | undefined): GatewayRules {
  if (file === undefined) return { config: undefined, contracts: [], bindings: [] };
  const path = resolve(file);
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (cause) {
    throw new CommandFault(EXIT.usage, `The configuration ${file} cannot be read: ${reasonOf(cause)}.`);
  }
  const setup = loadGatewaySetup(text, file, {
    today: new Date().toISOString().slice(0, 10),
    readText(name) {
      try {
        return { text: readFileSync(resolve(dirname(path), name), 'utf8') };
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
  };
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
    ...(replyTimeoutMs === undefined ? {} : { replyTimeoutMs }),
    ...(callerWaitMs === undefined ? {} : { callerWaitMs }),
    ...(approvalLifetimeMs === undefined ? {} : { approvalLifetimeMs }),
  };
}
