// What a story of `counterfoil demo` must come to, and every reason why it has not.

import type { Effect } from '../core/lifecycle.ts';

export interface Meant {
  /** The promise that it is told for, where there is one: docs/promises.md. */
  readonly id: string;
  readonly title: string;
  readonly expectedRecords: number;
  /** What the same agent makes with nothing between; absent where the fault is one of the gateway's own. */
  readonly without?: number;
  readonly effect: Effect;
  readonly operations: number;
  /** In each of the two worlds. */
  readonly faults: number;
  /** How the last answer to the agent begins. */
  readonly told: string;
}

/** What came of it: counted at the destination, read in the ledger, said to the agent. */
export interface Seen {
  readonly records: number;
  readonly faults: number;
  /** One for each operation that is recorded. */
  readonly effects: readonly Effect[];
  /** The last that the agent was told; `undefined` where its connection ended. */
  readonly told: string | undefined;
  /** The same with nothing between; absent where that was not acted. */
  readonly direct: { readonly records: number; readonly faults: number } | undefined;
}

export function effectOf(effects: readonly Effect[]): string {
  return [...new Set(effects)].join(', ');
}

/** A story proves something only when its faults have happened, and only when they would have done harm. */
export function problemsOf(
  meant: Meant,
  { direct, effects, faults, records, told }: Seen,
): readonly string[] {
  const effect = effectOf(effects);
  const checks: readonly (readonly [boolean, string])[] = [
    [records === meant.expectedRecords, `The destination holds ${records} records.`],
    [effects.length === meant.operations, `${effects.length} operations are recorded.`],
    [effect === meant.effect, `The ledger says ${effect}; ${meant.effect} meant.`],
    [told?.startsWith(meant.told) === true, `The agent was told: ${told ?? 'nothing'}`],
    [faults === meant.faults, `${faults} faults fired; ${meant.faults} planned.`],
    [
      direct?.records === meant.without && (direct === undefined || direct.faults === meant.faults),
      `With nothing between there are ${direct?.records} records, ${meant.without} foreseen: this proves nothing.`,
    ],
  ];
  return checks.filter(([holds]) => !holds).map(([, problem]) => problem);
}
