// So many at a time, and no longer in line than it may take: what waits for a connection has not left.

export class Slots {
  #free: number;
  readonly #waiting = new Set<() => void>();

  constructor(count: number) {
    this.#free = count;
  }

  get isFree(): boolean {
    return this.#free > 0;
  }

  /** Whether one is free within that time; it is not kept for who asks. */
  async whenFree(waitMs: number): Promise<boolean> {
    return this.isFree || this.#isFreed(waitMs);
  }

  /** @returns the function that gives the place back; `undefined` when none was free in time */
  async take(waitMs: number): Promise<(() => void) | undefined> {
    const endsAt = Date.now() + waitMs;
    // Between the news that one is free and the taking of it somebody else may have come.
    while (this.#free === 0) if (!(await this.#isFreed(endsAt - Date.now()))) return undefined;
    this.#free -= 1;
    let isGiven = false;
    return () => {
      if (isGiven) return;
      isGiven = true;
      this.#free += 1;
      const [next] = this.#waiting;
      next?.();
    };
  }

  async #isFreed(waitMs: number): Promise<boolean> {
    const endsAt = Date.now() + waitMs;
    // A place that was freed may be gone again when its turn comes.
    while (this.#free === 0) {
      const leftMs = endsAt - Date.now();
      if (leftMs <= 0) return false;
      await new Promise<void>((resolve) => {
        const tell = (): void => {
          clearTimeout(timer);
          this.#waiting.delete(tell);
          resolve();
        };
        const timer = setTimeout(tell, leftMs);
        this.#waiting.add(tell);
      });
    }
    return true;
  }
}
