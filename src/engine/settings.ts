// The ledger's own limits, printed wherever they are asked for. Units are in the names.

import { durationMs, type ToolFacts } from '../core/contract.ts';
import { DEFAULT_BOUNDS } from '../core/repeatability.ts';
import type { LedgerSettings } from './context.ts';

const HOUR_MS = 3_600_000;

export const DEFAULT_SETTINGS: LedgerSettings = {
  bounds: DEFAULT_BOUNDS,
  approvalLifetimeMs: 8 * HOUR_MS,
  callerWaitMs: 25_000,
  readBackTimeoutMs: 2_000,
  lookUpTimeoutMs: 10_000,
  resumeWindowMs: 96 * HOUR_MS,
  crossRunWindowMs: HOUR_MS,
  leaseMs: 10_000,
  stopMarginMs: 500,
};

export const REPLY_TIMEOUT_DEFAULT_MS = 120_000;

/** How long an answer to a write is waited for before its outcome is unknown. */
export function replyTimeoutMs(settings: LedgerSettings, facts: ToolFacts): number {
  return (
    settings.replyTimeoutMs ?? durationMs(facts.operation?.limits?.reply_timeout) ?? REPLY_TIMEOUT_DEFAULT_MS
  );
}
