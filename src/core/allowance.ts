// How much may be sent to a destination at once and in a time (D8): what its owner or its contract allows, as values.

import type { ToolFacts } from './contract.ts';

export interface Allowance {
  /** Writes that may be out at once. */
  readonly concurrency?: number;
  /** Writes that may leave within each window of `perMs`; windows begin at multiples of it, for all processes alike. */
  readonly rate?: { readonly writes: number; readonly perMs: number };
}

/** The owner's word and the contract's: the lower number counts. */
export function allowanceOf({ operation, sending }: ToolFacts): Allowance | undefined {
  const stated = operation?.limits?.concurrency;
  const own = sending?.concurrency;
  const concurrency = Math.min(stated ?? Number.POSITIVE_INFINITY, own ?? Number.POSITIVE_INFINITY);
  const isOneAtATime = Number.isFinite(concurrency);
  if (!isOneAtATime && sending?.rate === undefined) return undefined;
  return {
    ...(isOneAtATime ? { concurrency } : {}),
    ...(sending?.rate === undefined ? {} : { rate: sending.rate }),
  };
}

/** What has been taken of the present window. */
export interface RateWindow {
  readonly beganAt: number;
  readonly taken: number;
}

/** So many slices are made of a window: few enough writes of the ledger, and little is lost with a process. */
const SLICES = 10;

export function windowAt(perMs: number, at: number): number {
  return Math.floor(at / perMs) * perMs;
}

/**
 * A slice of the present window for one process; `undefined` where all of it is taken. Clocks differ: who is a little
 * behind counts in the window that another has begun, else the two would take turns in beginning theirs anew.
 */
export function leased(
  window: RateWindow | undefined,
  rate: NonNullable<Allowance['rate']>,
  at: number,
): { readonly window: RateWindow; readonly slice: number } | undefined {
  const own = windowAt(rate.perMs, at);
  const isNext = window?.beganAt === own + rate.perMs;
  const beganAt = isNext ? window.beganAt : own;
  const taken = window?.beganAt === beganAt ? window.taken : 0;
  const slice = Math.min(Math.max(1, Math.floor(rate.writes / SLICES)), rate.writes - taken);
  return slice <= 0 ? undefined : { window: { beganAt, taken: taken + slice }, slice };
}
