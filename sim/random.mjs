// Chance from a seed: the same numbers on every machine, and a stream of its own for each who draws.

export class Random {
  #state;

  /** @param {string} seed any text; streams of different texts have nothing in common */
  constructor(seed) {
    let hash = 0x811c9dc5;
    for (let index = 0; index < seed.length; index += 1) {
      hash = Math.imul(hash ^ seed.charCodeAt(index), 0x01000193);
    }
    this.#state = hash >>> 0;
    for (let turn = 0; turn < 4; turn += 1) this.next();
  }

  /** From 0 up to, not including, 1 (mulberry32). */
  next() {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let mixed = this.#state;
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  }

  chance(probability) {
    return this.next() < probability;
  }

  /** A whole number from `from` to `to`, both included. */
  between(from, to) {
    return from + Math.floor(this.next() * (to - from + 1));
  }

  pick(list) {
    return list[Math.floor(this.next() * list.length)];
  }

  bytes(count) {
    const bytes = new Uint8Array(count);
    for (let index = 0; index < count; index += 1) bytes[index] = Math.floor(this.next() * 256);
    return bytes;
  }
}
