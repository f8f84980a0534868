// What the recorded operations add up to: what was written, what is unclear, and what each mode would have asked.

import { authorityFor } from './authority.ts';
import type { Mode, ToolClass } from './contract.ts';
import type { Effect } from './lifecycle.ts';
import type { Operation } from './operation.ts';

export interface ToolTotals {
  readonly destination: string;
  readonly tool: string;
  readonly class: ToolClass;
  readonly operations: number;
  readonly effects: { readonly [effect in Effect]?: number };
}

export interface Report {
  readonly operations: number;
  readonly tools: readonly ToolTotals[];
  /** Operations that a person would have been asked about, had the mode been in force for all of them. */
  readonly asked: { readonly [mode in Mode]: number };
  /** Not settled, or settled as something that nobody knows; the oldest first. */
  readonly unclear: readonly Operation[];
  /** Not sent, because a person has still to say something. */
  readonly waiting: number;
  /** Recorded in `observe`: sent, and not guarded. */
  readonly observed: number;
  /** Of those, equal calls that guard would have answered and not sent. */
  readonly observedRepeats: number;
}

export function reportOf(operations: readonly Operation[]): Report {
  return {
    operations: operations.length,
    tools: totalsOf(operations),
    asked: {
      observe: askedIn('observe', operations),
      guard: askedIn('guard', operations),
      strict: askedIn('strict', operations),
    },
    unclear: operations.filter(isUnclear).toSorted((a, b) => (a.id < b.id ? -1 : 1)),
    waiting: operations.filter(({ stage }) => stage === 'awaiting_approval' || stage === 'held').length,
    observed: operations.filter(({ observed }) => observed !== undefined).length,
    observedRepeats: operations.filter(({ observed }) => observed?.guard === 'answer').length,
  };
}

function totalsOf(operations: readonly Operation[]): readonly ToolTotals[] {
  const totals = new Map<string, { -readonly [Member in keyof ToolTotals]: ToolTotals[Member] }>();
  for (const { destination, effect, tool, toolClass } of operations) {
    const name = JSON.stringify([destination, tool, toolClass]);
    const total = totals.get(name) ?? { destination, tool, class: toolClass, operations: 0, effects: {} };
    total.operations += 1;
    total.effects = { ...total.effects, [effect]: (total.effects[effect] ?? 0) + 1 };
    totals.set(name, total);
  }
  return [...totals.entries()].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, total]) => total);
}

/**
 * How many operations a mode would have put before a person by its rules for classes. An unclassified tool asks once
 * for each version of it; an operation that guard would have answered with another is none there. Questions of
 * identity, and of many writes within an hour, come on top in both of the modes that ask.
 */
function askedIn(mode: Mode, operations: readonly Operation[]): number {
  const asked = new Set<string>();
  for (const operation of operations) {
    if (operation.why?.code === 'arguments') continue;
    if (mode !== 'observe' && operation.observed?.guard === 'answer') continue;
    const authority = authorityFor({
      destination: operation.destination,
      tool: operation.tool,
      class: operation.toolClass,
      classSource: 'nobody',
      repeat: operation.repeat,
      checksArguments: false,
      digest: operation.factsDigest,
      ...(mode === 'guard' ? {} : { mode }),
    });
    if (authority.allowed) continue;
    const isOnce = mode === 'guard' && operation.toolClass === 'unclassified';
    asked.add(
      isOnce
        ? JSON.stringify([operation.destination, operation.tool, operation.toolDigest ?? ''])
        : operation.id,
    );
  }
  return asked.size;
}

function isUnclear({ effect, stage }: Operation): boolean {
  if (effect === 'unknown' || effect === 'diverged' || effect === 'error_reported') return true;
  return stage === 'parked' || stage === 'sending' || stage === 'checking';
}
