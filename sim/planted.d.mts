// The shape of planted.mjs, for tests that are written in TypeScript.

import type { Patch } from './build.mjs';

export interface PlantedBug {
  readonly name: string;
  readonly breaks: readonly string[];
  readonly patches?: readonly Patch[];
  readonly ignores?: readonly string[];
  readonly among?: object;
}

export const PLANTED: readonly PlantedBug[];
export const INVARIANTS: readonly string[];

export function playPlanted(
  bug: PlantedBug,
  range: { readonly seeds: number; readonly from: number },
): Promise<{ readonly seed: number; readonly violation: Error & { readonly invariant: string } } | undefined>;
