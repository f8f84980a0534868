// `counterfoil queue claim`, `hand-over` and `release`: who works on a cause, and until when.

import { durationMs } from '../core/contract.ts';
import { isCauseId } from '../core/queue-wording.ts';
import type { ClaimResult } from '../engine/cause-claims.ts';
import type { Ledger } from '../engine/ledger.ts';
import { withLedger } from './data-directory.ts';
import { printable } from './lines.ts';
import { CommandFault, EXIT, print, printJson } from './output.ts';
import { claimWords, noSuchCause } from './queue.ts';
import { actorName } from './queue-acts.ts';

export interface ClaimOptions {
  readonly data?: string;
  readonly json?: boolean;
  readonly by?: string;
  readonly for?: string;
}

const MINUTE_MS = 60_000;
const CLAIM_DEFAULT_MS = 15 * MINUTE_MS;
const CLAIM_MAX_MS = 7 * 24 * 60 * MINUTE_MS;

export async function claimCause(cause: string, options: ClaimOptions): Promise<number> {
  const by = actorName(options.by);
  const forMs = timeOf(options.for);
  return onCause(cause, options, async (ledger) => {
    // What is claimed must be there; to hand over or to let go of what has gone meanwhile is no mistake.
    const { groups } = await ledger.queue.read();
    if (!groups.some((group) => group.cause.id === cause)) throw noSuchCause(cause);
    return ledger.queue.claims.claim(cause, by, forMs);
  });
}

export async function handOver(
  cause: string,
  options: ClaimOptions & { readonly to: string },
): Promise<number> {
  const by = actorName(options.by);
  const to = actorName(options.to);
  const forMs = timeOf(options.for);
  return onCause(cause, options, (ledger) => ledger.queue.claims.handOver(cause, by, to, forMs));
}

export async function releaseCause(cause: string, options: ClaimOptions): Promise<number> {
  const by = actorName(options.by);
  return onCause(cause, options, (ledger) => ledger.queue.claims.release(cause, by));
}

async function onCause(
  cause: string,
  options: ClaimOptions,
  change: (ledger: Ledger) => Promise<ClaimResult>,
): Promise<number> {
  if (!isCauseId(cause)) {
    throw new CommandFault(EXIT.usage, `${printable(JSON.stringify(cause))} is no cause (cause_…).`);
  }
  return withLedger(options.data, async (ledger) => {
    const result = await change(ledger);
    if (!result.claimed) throw refused(cause, result);
    const { claim } = result;
    if (options.json === true) printJson({ cause, claim });
    else print(claim.until <= claim.at ? 'Let go of.' : `${printable(cause)}  ${claimWords(claim)}`);
    return EXIT.done;
  });
}

function refused(cause: string, { claim }: Extract<ClaimResult, { claimed: false }>): CommandFault {
  const who =
    claim === undefined
      ? `Nobody has claimed ${printable(cause)} now.`
      : `It is not yours: ${claimWords(claim)}`;
  return new CommandFault(EXIT.conflict, `Nothing was changed. ${who}`);
}

/** @throws {CommandFault} for what is no time, or a longer one than anybody can mean */
export function timeOf(text: string | undefined): number {
  if (text === undefined) return CLAIM_DEFAULT_MS;
  const [, count, unit] = /^(\d{1,6})([mh])$/.exec(text) ?? [];
  const ms = count === undefined ? durationMs(text) : Number(count) * (unit === 'h' ? 60 : 1) * MINUTE_MS;
  if (ms !== undefined && ms > 0 && ms <= CLAIM_MAX_MS) return ms;
  throw new CommandFault(
    EXIT.usage,
    `--for ${printable(text)} is no time of at most seven days, such as 15m, 2h or PT1H.`,
  );
}
