// One HTTP request with the phases of its way told: whether anything can have left, what came back, how it ended.
// Nothing is repeated, no redirect is followed, and no time-out is shorter than the one that is asked for.

import type { Dispatcher } from 'undici';
import { undici } from '../undici.ts';

export interface ExchangeRequest {
  readonly method: Dispatcher.HttpMethod;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
  /** Bytes on the wire, before anything is unpacked. */
  readonly replyMaxBytes: number;
  /** From the last byte that we sent to the reply's headers, and between any two parts of its body. */
  readonly headersMs: number;
  readonly bodyMs: number;
  /** Asked in the turn in which the first byte is handed to the socket, directly before it. */
  readonly mayLeave?: () => boolean;
  /** Called once when a phase takes longer than it may; the exchange goes on, for its answer may still come. */
  readonly onSlow: (phase: string) => void;
}

export type ExchangeEnd =
  | {
      readonly left: 'no';
      readonly proof: 'refused_by_sender' | 'not_connected' | 'connection_refused' | 'name_not_found';
      readonly detail: string;
    }
  /** The reply came whole, still packed as its `content-encoding` says. */
  | {
      readonly left: 'maybe';
      readonly ended: 'whole';
      readonly status: number;
      readonly headers: Readonly<Record<string, string>>;
      readonly body: Buffer;
    }
  | {
      readonly left: 'maybe';
      readonly ended: 'cut' | 'unreadable' | 'aborted';
      readonly detail: string;
    };

export interface Exchange {
  readonly done: Promise<ExchangeEnd>;
  /** Ends it from this side. */
  abort(reason: string): void;
}

export function startExchange(dispatcher: Dispatcher, request: ExchangeRequest): Exchange {
  let settle: (end: ExchangeEnd) => void = () => {};
  const done = new Promise<ExchangeEnd>((resolve) => {
    settle = resolve;
  });
  const handler = new Handler(request, settle);
  const { method, path, headers, body } = request;
  // No time-outs of the library: what is slow is told, and goes on.
  const options = { method, path, headers: { ...headers }, headersTimeout: 0, bodyTimeout: 0 };
  try {
    dispatcher.dispatch({ ...options, ...(body === undefined ? {} : { body }) }, handler);
  } catch (cause) {
    handler.onResponseError(undefined, cause as Error);
  }
  return { done, abort: (reason) => handler.abort(reason) };
}

class Handler implements Dispatcher.DispatchHandler {
  readonly #request: ExchangeRequest;
  readonly #settle: (end: ExchangeEnd) => void;
  #controller: Dispatcher.DispatchController | undefined;
  #timer: NodeJS.Timeout | undefined;
  #hasLeft = false;
  #isRefused = false;
  #abortedBy: string | undefined;
  #isTooLong = false;
  #status = 0;
  #headers: Readonly<Record<string, string>> = {};
  #body: Buffer[] = [];
  #bodyBytes = 0;

  constructor(request: ExchangeRequest, settle: (end: ExchangeEnd) => void) {
    this.#request = request;
    this.#settle = settle;
  }

  abort(reason: string): void {
    this.#abortedBy ??= reason;
    this.#controller?.abort(new Error(reason));
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    // A second start would be a repeat that nobody has decided on.
    if (this.#hasLeft) controller.abort(new Error('it would have been sent a second time'));
    else if (this.#abortedBy !== undefined) controller.abort(new Error(this.#abortedBy));
    else if (this.#isAllowed()) {
      this.#hasLeft = true;
      this.#watch('headers', this.#request.headersMs);
    } else {
      this.#isRefused = true;
      controller.abort(new Error('it may not leave'));
    }
  }

  #isAllowed(): boolean {
    try {
      return this.#request.mayLeave?.() ?? true;
    } catch {
      return false;
    }
  }

  #watch(phase: string, ms: number): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#request.onSlow(`no ${phase} of an answer within ${ms} ms`), ms);
  }

  onResponseStart(
    _controller: Dispatcher.DispatchController,
    status: number,
    headers: Record<string, string | string[] | undefined>,
  ): void {
    // What comes before the answer itself (100, 103) says nothing.
    if (status < 200) return;
    this.#status = status;
    this.#headers = Object.fromEntries(
      Object.entries(headers).map(([name, value = '']) => [name.toLowerCase(), [value].flat().join(', ')]),
    );
    this.#watch('more', this.#request.bodyMs);
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.#isTooLong) return;
    this.#timer?.refresh();
    this.#bodyBytes += chunk.length;
    if (this.#bodyBytes <= this.#request.replyMaxBytes) {
      this.#body.push(chunk);
      return;
    }
    this.#isTooLong = true;
    this.#body = [];
    controller.abort(new Error(`the reply is longer than ${this.#request.replyMaxBytes} bytes`));
  }

  onResponseEnd(): void {
    clearTimeout(this.#timer);
    const body = Buffer.concat(this.#body);
    this.#settle({ left: 'maybe', ended: 'whole', status: this.#status, headers: this.#headers, body });
  }

  onResponseError(_controller: unknown, error: Error): void {
    clearTimeout(this.#timer);
    const detail = this.#abortedBy ?? describe(error);
    if (!this.#hasLeft) {
      const why = this.#isRefused ? 'it was too late to hand it over, or the claim was lost' : detail;
      this.#settle({ left: 'no', proof: this.#proof(error), detail: why });
      return;
    }
    const isUnreadable = this.#isTooLong || isNoHttp(error);
    const ended = this.#abortedBy !== undefined ? 'aborted' : isUnreadable ? 'unreadable' : 'cut';
    this.#settle({ left: 'maybe', ended, detail });
  }

  #proof(error: Error): Extract<ExchangeEnd, { readonly left: 'no' }>['proof'] {
    if (this.#isRefused || this.#abortedBy !== undefined || INVALID.has(codeOf(error)))
      return 'refused_by_sender';
    return connectProof(error);
  }
}

/** Something answered, and it is no HTTP that can be read: the parser says so, or its headers are beyond all measure. */
function isNoHttp(error: Error): boolean {
  return error instanceof undici().errors.HTTPParserError || codeOf(error) === 'UND_ERR_HEADERS_OVERFLOW';
}

/** What cannot be written down as a request was never begun. */
const INVALID: ReadonlySet<string> = new Set(['UND_ERR_INVALID_ARG', 'UND_ERR_DESTROYED', 'UND_ERR_CLOSED']);

/** How no connection came about. Each of these is before the first byte of any request. */
function connectProof(error: Error): 'name_not_found' | 'connection_refused' | 'not_connected' {
  const code = codeOf(error);
  if (code === 'ENOTFOUND' || code === 'EAI_AGAIN') return 'name_not_found';
  return code === 'ECONNREFUSED' ? 'connection_refused' : 'not_connected';
}

function codeOf(error: Error): string {
  const { code } = error as NodeJS.ErrnoException;
  if (typeof code === 'string') return code;
  // Several addresses of one name, each refused.
  const [first] = (error as { readonly errors?: readonly Error[] }).errors ?? [];
  return first === undefined ? '' : codeOf(first);
}

export function describe(error: Error): string {
  const code = codeOf(error);
  const message = error.message === '' ? 'no connection' : error.message;
  return code === '' || message.includes(code) ? message : `${message} (${code})`;
}
