// One HTTP request to an MCP server, with the phases of its way told: whether anything can have left, what came back,
// and how it ended. Nothing is repeated and no redirect is followed.

import type { Dispatcher } from 'undici';
import { SseReader } from './sse-reader.ts';

export interface ExchangeRequest {
  readonly method: 'POST' | 'GET' | 'DELETE';
  readonly origin: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string | Buffer;
  /** The longest message that is read. */
  readonly messageMaxBytes: number;
  /** Asked in the turn in which the first byte is handed to the socket, directly before it. */
  readonly mayLeave?: () => boolean;
  /** From now on something may have left. */
  readonly onLeft?: () => void;
  /** Headers have come. Called once. */
  readonly onStart?: (status: number, headers: Readonly<Record<string, string | undefined>>) => void;
  /** A whole message: the JSON body, or one event's data. */
  readonly onMessage: (bytes: Buffer) => void;
  /** The id of an event, by which its stream can be taken up again, and how long to wait before that. */
  readonly onEventId?: (id: string | undefined, retryMs: number | undefined) => void;
}

export type ExchangeEnd =
  | {
      readonly left: 'no';
      readonly proof: 'refused_by_sender' | 'not_connected' | 'connection_refused';
      readonly detail: string;
    }
  /** The response came whole. What is no message (an error page, say) is in `text`, cut short. */
  | {
      readonly left: 'maybe';
      readonly ended: 'whole';
      readonly status: number;
      readonly isStream: boolean;
      readonly text: string;
    }
  | {
      readonly left: 'maybe';
      readonly ended: 'cut' | 'too_long' | 'aborted';
      readonly status: number | undefined;
      readonly detail: string;
    };

export interface Exchange {
  readonly done: Promise<ExchangeEnd>;
  /** Ends it from this side. */
  abort(reason: string): void;
}

const SHOWN_MAX = 500;

export function startExchange(dispatcher: Dispatcher, request: ExchangeRequest): Exchange {
  let settle: (end: ExchangeEnd) => void = () => {};
  const done = new Promise<ExchangeEnd>((resolve) => {
    settle = resolve;
  });
  const handler = new Handler(request, settle);
  const { method, origin, path, headers, body } = request;
  // No time-outs of its own: who waits knows for how long.
  const options = { method, origin, path, headers, headersTimeout: 0, bodyTimeout: 0 };
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
  #hasLeft = false;
  #isRefused = false;
  #abortedBy: string | undefined;
  #isTooLong = false;
  #status: number | undefined;
  #isStream = false;
  #isJson = false;
  #reader: SseReader | undefined;
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
    else if (!this.#isAllowed()) {
      this.#isRefused = true;
      controller.abort(new Error('it may not leave'));
    } else {
      this.#hasLeft = true;
      this.#request.onLeft?.();
    }
  }

  #isAllowed(): boolean {
    try {
      return this.#request.mayLeave?.() ?? true;
    } catch {
      return false;
    }
  }

  onResponseStart(
    controller: Dispatcher.DispatchController,
    status: number,
    headers: Record<string, string | string[] | undefined>,
  ): void {
    if (status < 200) return;
    this.#status = status;
    const one = (name: string): string | undefined => [headers[name]].flat()[0];
    const type = (one('content-type') ?? '').toLowerCase();
    this.#isStream = status < 300 && type.startsWith('text/event-stream');
    this.#isJson = type.startsWith('application/json');
    if (this.#isStream) {
      const { messageMaxBytes, onEventId, onMessage } = this.#request;
      this.#reader = new SseReader(
        messageMaxBytes,
        ({ data, id, retryMs }) => {
          onEventId?.(id, retryMs);
          if (data.length > 0) onMessage(data);
        },
        () => this.#tooLong(controller),
      );
    }
    const told = ['mcp-session-id', 'content-type', 'www-authenticate'].map((name) => [name, one(name)]);
    this.#request.onStart?.(status, Object.fromEntries(told));
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.#isTooLong) return;
    if (this.#reader !== undefined) {
      this.#reader.push(chunk);
      return;
    }
    this.#bodyBytes += chunk.length;
    if (this.#bodyBytes > this.#request.messageMaxBytes) this.#tooLong(controller);
    else this.#body.push(chunk);
  }

  onResponseEnd(): void {
    const body = Buffer.concat(this.#body);
    if (this.#isJson && body.length > 0) this.#request.onMessage(body);
    this.#settle({
      left: 'maybe',
      ended: 'whole',
      status: this.#status ?? 0,
      isStream: this.#isStream,
      text: this.#isJson ? '' : body.toString('utf8', 0, SHOWN_MAX),
    });
  }

  onResponseError(_controller: unknown, error: Error): void {
    const detail = this.#abortedBy ?? describe(error);
    if (!this.#hasLeft) {
      const isOurs = this.#isRefused || this.#abortedBy !== undefined;
      const proof = isOurs
        ? 'refused_by_sender'
        : (error as NodeJS.ErrnoException).code === 'ECONNREFUSED'
          ? 'connection_refused'
          : 'not_connected';
      const why = this.#isRefused ? 'it was too late to hand it over, or the claim was lost' : detail;
      this.#settle({ left: 'no', proof, detail: why });
      return;
    }
    const ended = this.#isTooLong ? 'too_long' : this.#abortedBy === undefined ? 'cut' : 'aborted';
    this.#settle({ left: 'maybe', ended, status: this.#status, detail });
  }

  #tooLong(controller: Dispatcher.DispatchController): void {
    this.#isTooLong = true;
    this.#body = [];
    controller.abort(new Error(`the reply is longer than ${this.#request.messageMaxBytes} bytes`));
  }
}

function describe(error: Error): string {
  const { code } = error as NodeJS.ErrnoException;
  return code === undefined || error.message.includes(code) ? error.message : `${error.message} (${code})`;
}
