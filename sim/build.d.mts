// The shape of build.mjs, for tests that are written in TypeScript.

export type Build = object;
export interface Patch {
  readonly file: string;
  readonly from: string;
  readonly to: string;
}
export function loadBuild(patches?: readonly Patch[]): Promise<Build>;
export function misfits(patches: readonly Patch[]): readonly string[];
