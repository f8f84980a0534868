// The shape of judge.mjs, for tests that are written in TypeScript.

export interface Row {
  readonly id: string;
  readonly variant?: string;
  readonly title: string;
  readonly expected: number;
  readonly without?: number;
  readonly effect: string;
  readonly told: readonly (string | readonly string[])[];
}

export interface Acted {
  readonly problem?: string;
  readonly faultsFired: number;
  readonly rows: readonly {
    readonly records: number;
    readonly answers: readonly string[];
    readonly operations: readonly unknown[];
    readonly problems: readonly string[];
  }[];
}

export interface JudgedStory {
  readonly id: string;
  readonly expectedRecords: number;
  readonly destinationRecords: number;
  readonly withoutCounterfoil?: number;
  readonly effect: string | null;
  readonly ok: boolean;
  readonly problems: readonly string[];
}

export function judge(
  scene: { readonly rows: readonly Row[]; readonly faults: number },
  index: number,
  guarded: Acted | undefined,
  direct: Acted | undefined,
): JudgedStory;
export function count(number: number, noun: string): string;
