// What the engine takes from the world beside store and destinations: time, chance, timers. Injected, so that
// tests and simulations own them.

import { randomFillSync } from 'node:crypto';
import { performance } from 'node:perf_hooks';

export interface Environment {
  /** Wall clock, ms since the epoch. */
  now(): number;
  /** A clock that never jumps, ms from an arbitrary start. Deadlines are measured by it alone. */
  monotonic(): number;
  random(bytes: number): Uint8Array;
  /**
   * Calls back once after `ms`; returns its cancel. The timer keeps the process alive only where somebody waits
   * for it (`holdsProcess`).
   */
  after(ms: number, callback: () => void, holdsProcess?: boolean): () => void;
}

const POOL_BYTES = 4096;
/** A longer time-out overflows and would fire at once. */
const TIMER_MAX_MS = 2 ** 31 - 1;

/** The real clock, the operating system's randomness (drawn in blocks), and unreferenced timers. */
export function systemEnvironment(): Environment {
  const pool = new Uint8Array(POOL_BYTES);
  let used = POOL_BYTES;
  return {
    now: () => Date.now(),
    monotonic: () => performance.now(),
    random(bytes) {
      if (used + bytes > POOL_BYTES) {
        randomFillSync(pool);
        used = 0;
      }
      used += bytes;
      return pool.slice(used - bytes, used);
    },
    after(ms, callback, holdsProcess = false) {
      const timer = setTimeout(callback, Math.min(ms, TIMER_MAX_MS));
      if (!holdsProcess) timer.unref();
      return () => clearTimeout(timer);
    },
  };
}
