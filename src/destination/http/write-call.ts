// One write on its way: whoever comes first, its answer or the end of the wait, is reported; the other is late.

import { watchAbort } from '../abort-watch.ts';
import type { Reply, SendReport, SendRequest } from '../port.ts';
import type { Exchange } from './exchange.ts';

export class WriteCall {
  exchange: Exchange | undefined;
  readonly #request: SendRequest;
  readonly #lateMs: number;
  readonly #resolve: (report: SendReport) => void;
  readonly #unwatch: (() => void) | undefined;
  #timer: NodeJS.Timeout;
  #hasLeft = false;
  #reported = false;

  constructor(request: SendRequest, lateMs: number, resolve: (report: SendReport) => void) {
    this.#request = request;
    this.#lateMs = lateMs;
    this.#resolve = resolve;
    this.#unwatch = request.signal && watchAbort(request.signal, () => this.abort('the wait was aborted'));
    this.#timer = setTimeout(
      () => this.onSlow(`no answer within ${request.replyTimeoutMs} ms`),
      request.replyTimeoutMs,
    );
  }

  mayLeave(): boolean {
    this.#hasLeft = this.#request.mayLeave();
    return this.#hasLeft;
  }

  onSlow(detail: string): void {
    // Before anything has left there is nothing to wait for: that it will not leave is the end of it.
    if (!this.#hasLeft) this.exchange?.abort(detail);
    else if (!this.#reported) {
      this.#tell({ left: 'maybe', ended: 'timeout', detail });
      this.#timer = setTimeout(() => this.exchange?.abort('its answer did not come'), this.#lateMs);
    }
  }

  abort(reason: string): void {
    if (this.#hasLeft) this.#tell({ left: 'maybe', ended: 'aborted', detail: reason });
    this.exchange?.abort(reason);
  }

  /** @returns false when the wait was over before it came */
  replied(reply: Reply): boolean {
    const isInTime = !this.#reported;
    this.report({ left: 'maybe', ended: 'reply', reply, detail: `answered with ${reply.code ?? 0}` });
    return isInTime;
  }

  /** The exchange has ended. */
  report(report: SendReport): void {
    this.#tell(report);
    clearTimeout(this.#timer);
    this.#unwatch?.();
  }

  #tell(report: SendReport): void {
    clearTimeout(this.#timer);
    if (this.#reported) return;
    this.#reported = true;
    this.#resolve(report);
  }
}
