// The shape of table.mjs, for tests that are written in TypeScript.

export interface Cell {
  readonly fault: string;
  readonly contract: string;
}

export interface EndedCell extends Cell {
  readonly seen: string;
  readonly fired: number;
  readonly evidence: readonly string[];
}

export type Expected = { readonly [fault: string]: { readonly [contract: string]: string } };

export const FAULTS: readonly string[];
export const EXPECTED_FILE: string;
export function allCells(): readonly Cell[];
export function readExpected(): Expected;
export function runCells(
  cells: readonly Cell[],
  options?: { readonly isBroken?: boolean; readonly atOnce?: number },
): Promise<readonly EndedCell[]>;
export function differences(ends: readonly EndedCell[], expected?: Expected): readonly string[];
export function unknownEntries(expected?: Expected): readonly string[];
export function sampleOf(cells: readonly Cell[], count: number, seed: number): readonly Cell[];
