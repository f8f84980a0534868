// When a destination has asked to be left alone (RFC 9110, Retry-After): until then nothing is sent to it.

/** What asks for longer is asked again then: a header may be wrong, and work must not stand still for a day by it. */
const REST_MAX_MS = 15 * 60_000;

export class Rest {
  #until = 0;

  get isOver(): boolean {
    return Date.now() >= this.#until;
  }

  get words(): string {
    return `it asked to be left alone until ${new Date(this.#until).toISOString()}`;
  }

  /** @param header seconds, or a date as HTTP writes it */
  heed(status: number, header: string | undefined): void {
    if (header === undefined || (status !== 429 && status !== 503)) return;
    const now = Date.now();
    const at = /^\d{1,10}$/.test(header) ? now + Number(header) * 1000 : Date.parse(header);
    if (!Number.isNaN(at)) this.#until = Math.max(this.#until, Math.min(at, now + REST_MAX_MS));
  }
}
