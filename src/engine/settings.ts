// The ledger's own limits, printed wherever they are asked for. Units are in the names.

import { DEFAULT_BOUNDS } from '../core/repeatability.ts';
import type { LedgerSettings } from './context.ts';

const HOUR_MS = 3_600_000;

export const DEFAULT_SETTINGS: LedgerSettings = {
  bounds: DEFAULT_BOUNDS,
  approvalLifetimeMs: 8 * HOUR_MS,
  replyTimeoutMs: 120_000,
  callerWaitMs: 25_000,
  readBackTimeoutMs: 2_000,
  lookUpTimeoutMs: 10_000,
  resumeWindowMs: 96 * HOUR_MS,
  crossRunWindowMs: HOUR_MS,
  leaseMs: 10_000,
};
