// The requests of our own that wait for an answer on one MCP connection, and those whose answer may come late.

import { watchAbort } from '../abort-watch.ts';
import type { LateReply, Reply } from '../port.ts';
import type { Answer } from './frame.ts';

export type CallEnd =
  | { readonly ended: 'reply'; readonly reply: Reply }
  | { readonly ended: 'cut' | 'timeout' | 'unreadable' | 'aborted'; readonly detail: string };

export interface OwnCall {
  /** `Infinity`: for as long as it takes. */
  readonly timeoutMs: number;
  readonly signal?: AbortSignal | undefined;
  /** Set for a write: an answer that comes after the wait has ended is still evidence about this attempt. */
  readonly write?: { readonly operation: string; readonly attempt: string };
  readonly onEnd: (end: CallEnd) => void;
}

/**
 * How many ended writes are remembered per connection. A connection's end drops them all, since only the
 * process that was asked can answer; the count bounds a server that never answers at about a megabyte. There
 * is no time limit: a late answer is true however late, and one that is forgotten costs only a look-up.
 */
const LATE_MAX = 4096;

interface Waiting {
  readonly call: OwnCall;
  readonly timer: NodeJS.Timeout | undefined;
  readonly unwatch: (() => void) | undefined;
}

export class OwnCalls {
  readonly #waiting = new Map<string, Waiting>();
  readonly #late = new Map<string, { readonly operation: string; readonly attempt: string }>();
  readonly #onLateReply: (late: LateReply) => void;
  readonly #idleWaiters = new Set<() => void>();

  constructor(onLateReply: (late: LateReply) => void) {
    this.#onLateReply = onLateReply;
  }

  /** Starts the wait. Called in the turn in which the request was written, so that no answer can precede it. */
  open(id: string, call: OwnCall): void {
    const onAbort = () => this.end(id, { ended: 'aborted', detail: 'the wait was aborted' });
    const timer = Number.isFinite(call.timeoutMs)
      ? setTimeout(() => {
          this.end(id, { ended: 'timeout', detail: `no answer within ${call.timeoutMs} ms` });
        }, call.timeoutMs)
      : undefined;
    const unwatch = call.signal && watchAbort(call.signal, onAbort);
    this.#waiting.set(id, { call, timer, unwatch });
  }

  /** False for an answer that nobody waits for: a second one, or one to a request that is forgotten. */
  answer(id: string, answer: Answer): boolean {
    if (this.#waiting.has(id)) {
      this.end(
        id,
        answer.readable
          ? { ended: 'reply', reply: answer.reply }
          : { ended: 'unreadable', detail: answer.detail },
      );
      return true;
    }
    const write = this.#late.get(id);
    if (write === undefined || !answer.readable) return false;
    this.#late.delete(id);
    this.#onLateReply({ ...write, reply: answer.reply });
    return true;
  }

  end(id: string, end: CallEnd): void {
    const waiting = this.#waiting.get(id);
    if (waiting === undefined) return;
    this.#waiting.delete(id);
    clearTimeout(waiting.timer);
    waiting.unwatch?.();
    if (end.ended !== 'reply' && end.ended !== 'cut' && waiting.call.write !== undefined) {
      this.#remember(id, waiting.call.write);
    }
    waiting.call.onEnd(end);
    if (this.#waiting.size === 0) this.#tellIdle();
  }

  /** Tells once when no call waits, which may be at once. */
  whenIdle(tell: () => void): void {
    this.#idleWaiters.add(tell);
    if (this.#waiting.size === 0) this.#tellIdle();
  }

  #tellIdle(): void {
    const waiters = [...this.#idleWaiters];
    this.#idleWaiters.clear();
    for (const tell of waiters) tell();
  }

  endAll(ended: 'cut' | 'aborted', detail: string): void {
    for (const id of [...this.#waiting.keys()]) this.end(id, { ended, detail });
  }

  #remember(id: string, write: { readonly operation: string; readonly attempt: string }): void {
    this.#late.set(id, write);
    if (this.#late.size <= LATE_MAX) return;
    // A Map keeps the order of insertion, so that the first key is the oldest.
    for (const oldest of this.#late.keys()) {
      this.#late.delete(oldest);
      return;
    }
  }
}
