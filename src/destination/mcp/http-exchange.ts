// One HTTP request to an MCP server, with the phases of its way told: whether anything can have left, what came back,
// and how it ended. Nothing is repeated and no redirect is followed.

import type { Dispatcher } from 'undici';
import { Departure, describe, type Unsent } from '../departure.ts';
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
  | Unsent
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

class Handler extends Departure implements Dispatcher.DispatchHandler {
  readonly #request: ExchangeRequest;
  readonly #settle: (end: ExchangeEnd) => void;
  #isTooLong = false;
  #status: number | undefined;
  #isStream = false;
  #isJson = false;
  #reader: SseReader | undefined;
  #body: Buffer[] = [];
  #bodyBytes = 0;

  constructor(request: ExchangeRequest, settle: (end: ExchangeEnd) => void) {
    super(request.mayLeave);
    this.#request = request;
    this.#settle = settle;
  }

  protected override onLeft(): void {
    this.#request.onLeft?.();
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
    const unsent = this.unsent(error);
    if (unsent !== undefined) {
      this.#settle(unsent);
      return;
    }
    const ended = this.#isTooLong ? 'too_long' : this.abortedBy === undefined ? 'cut' : 'aborted';
    this.#settle({ left: 'maybe', ended, status: this.#status, detail: this.abortedBy ?? describe(error) });
  }

  #tooLong(controller: Dispatcher.DispatchController): void {
    this.#isTooLong = true;
    this.#body = [];
    controller.abort(new Error(`the reply is longer than ${this.#request.messageMaxBytes} bytes`));
  }
}
