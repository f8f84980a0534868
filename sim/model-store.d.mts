// The shape of model-store.mjs, for tests that are written in TypeScript.

import type { Store } from '../src/store/port.ts';

export class ModelPlace {
  /** By all of its handles. */
  readonly commits: number;
}

export const ModelHandle: new (place: ModelPlace, port: object) => Store;
