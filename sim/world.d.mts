// The shape of world.mjs, for tests that are written in TypeScript.

import type { Build } from './build.mjs';

export type Plan = object;

export interface Ended {
  readonly plan: Plan;
  readonly violation: (Error & { readonly invariant: string }) | undefined;
  readonly steps: number;
  readonly operations: number;
  readonly checks: number;
  /** What the run has done, as eight digits. */
  readonly trace: string;
  readonly fired: ReadonlyMap<string, number>;
}

export interface PlayOptions {
  readonly plan?: Plan;
  /** Also clocks that are set, and that differ by seconds. */
  readonly clocks?: boolean;
  readonly ignores?: readonly string[];
}

export function playSeed(build: Build, seed: number, options?: PlayOptions): Promise<Ended>;
