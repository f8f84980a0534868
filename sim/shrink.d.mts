// The shape of shrink.mjs, for tests that are written in TypeScript.

import type { Build } from './build.mjs';
import type { Ended, PlayOptions } from './world.mjs';

export function shrunk(build: Build, ended: Ended, options?: PlayOptions): Promise<Ended>;
