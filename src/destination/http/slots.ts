// So many at a time, and no longer in line than it may take: what waits for a connection has not left.

export class Slots {
  #free: number;
  readonly #waiting = new Set<() => void>();

  constructor(count: number) {
    this.#free = count;
  }

  /** @returns the function that gives the place back; `undefined` when none was free in time */
  async take(waitMs: number): Promise<(() => void) | undefined> {
    if (this.#free === 0 && !(await this.#isFreed(waitMs))) return undefined;
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
