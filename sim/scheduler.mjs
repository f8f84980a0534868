// Virtual time: everything that happens is an event in one heap, ordered by its instant and then by chance.
//
// One event is fired in a turn of the event loop, and Node empties the microtasks before the next turn: that is all
// that the run takes from the real world.

export class Scheduler {
  #heap = [];
  #random;
  #hash = 0x811c9dc5;
  now = 0;
  steps = 0;
  /** With a trace every event is told in a line. */
  onTrace;

  constructor(random) {
    this.#random = random;
  }

  /**
   * @param {number} ms from now
   * @param {string} what names it in the trace
   * @param {() => void} fire
   * @param {object} [owner] what it belongs to: an owner that has ended drops it, one that is paused gets it later
   * @returns {() => void} takes it back
   */
  in(ms, what, fire, owner) {
    const event = { at: this.now + Math.max(0, ms), tie: this.#random.next(), what, fire, owner };
    this.#push(event);
    return () => {
      event.fire = undefined;
    };
  }

  get isEmpty() {
    return this.#heap.length === 0;
  }

  /** What the whole run has done so far, as eight digits. */
  get trace() {
    return (this.#hash >>> 0).toString(16).padStart(8, '0');
  }

  /** Adds a word to the trace. */
  note(word) {
    let hash = this.#hash;
    for (let index = 0; index < word.length; index += 1) {
      hash = Math.imul(hash ^ word.charCodeAt(index), 0x01000193);
    }
    this.#hash = hash;
    this.onTrace?.(`${String(Math.round(this.now)).padStart(8)} ms  ${word}`);
  }

  /** Fires the next event; `false` where there is none. */
  step() {
    for (;;) {
      const event = this.#pop();
      if (event === undefined) return false;
      if (event.fire === undefined || event.owner?.isGone === true) continue;
      this.now = Math.max(this.now, event.at);
      const until = event.owner?.pausedUntil ?? 0;
      if (until > this.now) {
        // It is found in its old order when its process goes on.
        event.at = until + (event.at % 1) / 1_000;
        this.#push(event);
        continue;
      }
      this.steps += 1;
      this.note(event.what);
      event.fire();
      return true;
    }
  }

  /** Fires events until `isDone()`, none is left, or `stepsMax` were fired. */
  run(isDone, stepsMax) {
    const last = this.steps + stepsMax;
    return new Promise((resolve, reject) => {
      const turn = () => {
        try {
          if (isDone() || this.steps >= last || !this.step()) resolve();
          else setImmediate(turn);
        } catch (cause) {
          reject(cause);
        }
      };
      setImmediate(turn);
    });
  }

  #push(event) {
    const heap = this.#heap;
    let index = heap.length;
    heap.push(event);
    while (index > 0) {
      const parent = (index - 1) >> 1;
      if (!isBefore(event, heap[parent])) break;
      heap[index] = heap[parent];
      index = parent;
    }
    heap[index] = event;
  }

  #pop() {
    const heap = this.#heap;
    const first = heap[0];
    const last = heap.pop();
    if (first === undefined || heap.length === 0) return first;
    let index = 0;
    for (;;) {
      let child = 2 * index + 1;
      if (child >= heap.length) break;
      if (child + 1 < heap.length && isBefore(heap[child + 1], heap[child])) child += 1;
      if (!isBefore(heap[child], last)) break;
      heap[index] = heap[child];
      index = child;
    }
    heap[index] = last;
    return first;
  }
}

function isBefore(one, other) {
  return one.at < other.at || (one.at === other.at && one.tie < other.tie);
}
