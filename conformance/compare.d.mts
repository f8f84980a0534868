// The shape of compare.mjs, for tests that are written in TypeScript.

export interface Check {
  readonly id: string;
  readonly status: string;
  readonly errorMessage?: string;
}

export interface WorseCheck {
  readonly check: string;
  readonly direct: string;
  readonly through: string;
  readonly message?: string;
}

export interface Row {
  readonly scenario: string;
  readonly verdict: 'passed' | 'failed' | 'not_asked';
  readonly problems: readonly WorseCheck[];
  readonly because?: string;
}

export type Run = ReadonlyMap<string, readonly Check[]>;

export function passes(checks: readonly Check[]): boolean;
export function worseChecks(
  direct: readonly Check[],
  through: readonly Check[] | undefined,
): readonly WorseCheck[];
export function compareRuns(runs: {
  readonly required: readonly string[];
  readonly direct: Run;
  readonly through: Run;
  readonly agreed?: readonly {
    readonly scenario: string;
    readonly check: string;
    readonly through: string;
    readonly because: string;
  }[];
}): readonly Row[];
export function judgeRun(what: {
  readonly required: readonly string[];
  readonly run: Run;
  readonly notOurs?: Readonly<Record<string, string>>;
}): readonly Row[];
export function countVerdicts(rows: readonly Row[]): {
  readonly passed: number;
  readonly failed: number;
  readonly notAsked: number;
};
