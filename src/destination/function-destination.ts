// A destination made of plain functions: for a system that is reached through its own client library.
//
// Nobody watches the wire here. Once a function has been entered, only its author can know that nothing left,
// and says so by throwing `context.notSent(…)`; every other throw leaves the effect unknown.

import { watchAbort } from './abort-watch.ts';
import type {
  AskReport,
  AskRequest,
  ConnectReport,
  Destination,
  LateReply,
  Reply,
  SendReport,
  SendRequest,
} from './port.ts';
import { capReply, REPLY_MAX_BYTES } from './reply-cap.ts';

export interface ToolContext {
  readonly operation: string;
  readonly attempt: string;
  /** The exact text that was decided on; `args` is the same, parsed. Send this where bytes matter. */
  readonly payload: string;
  /**
   * Aborts when the process shuts down. A reply time-out does not abort it: an answer that comes late is
   * evidence, and a write that has left is not called back.
   */
  readonly signal: AbortSignal;
  /**
   * An error to throw when no byte of this write can have left: the host name was not found, the connection
   * was refused. The author of the function vouches for it; the operation is then recorded as not sent and
   * may be sent again. A time-out, a reset or an HTTP status never proves this. Honoured only when it is
   * thrown out of the call that it was made for.
   */
  notSent(reason: string): Error;
}

export interface AskContext {
  readonly payload: string;
  /** Aborts at the time-out and when the process shuts down. */
  readonly signal: AbortSignal;
}

/**
 * One write. The value it gives is kept as JSON and is the reply; throw a `DestinationError` for an answer
 * that says it is an error. `args` is `any` so that an author can name the type that the schema promises.
 */
// oxlint-disable-next-line typescript/no-explicit-any -- see above.
export type ToolFunction = (args: any, context: ToolContext) => unknown;

/** One read-only question: a look-up or a read-back. It must change nothing. */
// oxlint-disable-next-line typescript/no-explicit-any -- see above.
export type AskFunction = (args: any, context: AskContext) => unknown;

export interface FunctionDestinationOptions {
  /** The stable configured name. */
  readonly name: string;
  readonly tools: Readonly<Record<string, ToolFunction>>;
  readonly asks?: Readonly<Record<string, AskFunction>>;
  /** Default 16 MiB of UTF-8. */
  readonly replyMaxBytes?: number;
}

/**
 * A complete answer of the destination that says it is an error. Throw it only when the destination itself
 * answered: it is recorded as its reply, and the contract may read "nothing was done" from it.
 */
export class DestinationError extends Error {
  readonly kind = 'tool_error';
  /** JSON text. */
  readonly body: string;
  /** HTTP status or the destination's own number, where there is one. */
  readonly code: number | undefined;

  constructor(answer: unknown, options: { readonly code?: number; readonly cause?: unknown } = {}) {
    super('the destination answered with an error', 'cause' in options ? { cause: options.cause } : {});
    this.name = 'DestinationError';
    this.body = toJson(answer);
    this.code = options.code;
  }
}

export function functionDestination(options: FunctionDestinationOptions): Destination {
  return new FunctionDestination(options);
}

class FunctionDestination implements Destination {
  readonly name: string;
  onLateReply?: (late: LateReply) => void;
  readonly #tools: ReadonlyMap<string, ToolFunction>;
  readonly #asks: ReadonlyMap<string, AskFunction>;
  readonly #replyMaxBytes: number;
  readonly #waiting = new Set<{ abort(reason: string): void }>();
  #closed = false;

  constructor(options: FunctionDestinationOptions) {
    this.name = options.name;
    // Maps, so that a tool called `constructor` is not found where there is none.
    this.#tools = new Map(Object.entries(options.tools));
    this.#asks = new Map(Object.entries(options.asks ?? {}));
    this.#replyMaxBytes = options.replyMaxBytes ?? REPLY_MAX_BYTES;
  }

  isConnected(): boolean {
    return !this.#closed;
  }

  async connect(): Promise<ConnectReport> {
    return this.#closed ? { connected: false, detail: CLOSED } : { connected: true };
  }

  async send(request: SendRequest): Promise<SendReport> {
    if (this.#closed) return { left: 'no', proof: 'not_connected', detail: CLOSED };
    if (request.signal?.aborted) return refused('the wait was aborted before anything was handed over');
    const tool = this.#tools.get(request.tool);
    if (tool === undefined) return refused(`no function is given for the tool ${request.tool}`);
    let args: unknown;
    try {
      args = JSON.parse(request.payload);
      if (!request.mayLeave()) return refused('it was too late to hand it over, or the claim was lost');
    } catch (error) {
      return refused(`it could not be handed over: ${describe(error)}`);
    }
    // From here on the function may have sent: nothing may throw or wait between `mayLeave` and this call.
    const { operation, attempt } = request;
    return new Promise((resolve) => {
      const call = new SendCall(request, resolve, this.#waiting);
      const answer = enter(() => tool(args, call));
      call.watch(answer, this.#replyMaxBytes, (reply) => this.onLateReply?.({ operation, attempt, reply }));
    });
  }

  async ask(request: AskRequest): Promise<AskReport> {
    if (this.#closed) return { answered: false, detail: CLOSED };
    const ask = this.#asks.get(request.tool);
    if (ask === undefined)
      return { answered: false, because: 'not_asked', detail: `no function is given for ${request.tool}` };
    const abort = new AbortController();
    const waiting = { abort: (reason: string) => abort.abort(new Error(reason)) };
    this.#waiting.add(waiting);
    const timer = setTimeout(() => waiting.abort('timed out'), request.timeoutMs);
    const stopped = new Promise<never>((_, reject) => {
      abort.signal.addEventListener('abort', () => reject(abort.signal.reason), { once: true });
    });
    try {
      const context = { payload: request.payload, signal: abort.signal };
      const answer = Promise.resolve(ask(JSON.parse(request.payload), context));
      const reply = toReply(await Promise.race([answer, stopped]), this.#replyMaxBytes);
      return { answered: true, reply };
    } catch (error) {
      if (!(error instanceof DestinationError)) {
        return { answered: false, detail: `${request.tool} gave no answer: ${describe(error)}` };
      }
      return { answered: true, reply: errorReply(error, this.#replyMaxBytes) };
    } finally {
      clearTimeout(timer);
      this.#waiting.delete(waiting);
    }
  }

  async close(): Promise<void> {
    this.#closed = true;
    for (const waiting of [...this.#waiting]) waiting.abort(CLOSED);
  }
}

const CLOSED = 'the destination was closed';

/** One entered function: whoever comes first, its answer or the end of the wait, is reported; the other is late. */
class SendCall implements ToolContext {
  readonly #request: SendRequest;
  readonly #resolve: (report: SendReport) => void;
  readonly #waiting: Set<{ abort(reason: string): void }>;
  readonly #timer: NodeJS.Timeout;
  readonly #unwatch: (() => void) | undefined;
  #controller: AbortController | undefined;
  #abortedBy: string | undefined;
  #reported = false;

  constructor(
    request: SendRequest,
    resolve: (report: SendReport) => void,
    waiting: Set<{ abort(reason: string): void }>,
  ) {
    this.#request = request;
    this.#resolve = resolve;
    this.#waiting = waiting;
    waiting.add(this);
    this.#unwatch = request.signal && watchAbort(request.signal, () => this.abort('the wait was aborted'));
    this.#timer = setTimeout(() => {
      this.#report({
        left: 'maybe',
        ended: 'timeout',
        detail: `no answer within ${request.replyTimeoutMs} ms`,
      });
    }, request.replyTimeoutMs);
  }

  get operation(): string {
    return this.#request.operation;
  }

  get attempt(): string {
    return this.#request.attempt;
  }

  get payload(): string {
    return this.#request.payload;
  }

  /** Made on first use: most functions do not ask, and a controller costs more than the rest of the call. */
  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      if (this.#abortedBy !== undefined) this.#controller.abort(new Error(this.#abortedBy));
    }
    return this.#controller.signal;
  }

  notSent(reason: string): Error {
    return new NotSent(this, reason);
  }

  abort(reason: string): void {
    this.#abortedBy = reason;
    this.#report({ left: 'maybe', ended: 'aborted', detail: reason });
    this.#controller?.abort(new Error(reason));
  }

  watch(answer: Promise<unknown>, replyMaxBytes: number, onLate: (reply: Reply) => void): void {
    const replied = (reply: Reply) => {
      if (this.#reported) onLate(reply);
      else this.#report({ left: 'maybe', ended: 'reply', reply, detail: 'the function gave an answer' });
    };
    answer.then(
      (value) => {
        this.#settle();
        let reply: Reply;
        try {
          reply = toReply(value, replyMaxBytes);
        } catch (error) {
          const detail = `the function gave a value that has no JSON form: ${describe(error)}`;
          this.#report({ left: 'maybe', ended: 'unreadable', detail });
          return;
        }
        replied(reply);
      },
      (error: unknown) => {
        this.#settle();
        if (error instanceof DestinationError) replied(errorReply(error, replyMaxBytes));
        else if (error instanceof NotSent && error.call === this) {
          this.#report({ left: 'no', proof: 'vouched_by_author', detail: error.message });
        } else {
          this.#report({ left: 'maybe', ended: 'cut', detail: `the function threw: ${describe(error)}` });
        }
      },
    );
  }

  #report(report: SendReport): void {
    if (this.#reported) return;
    this.#reported = true;
    clearTimeout(this.#timer);
    this.#resolve(report);
  }

  /** The function has ended. Until then, even after its time-out, the end of the process is told to it. */
  #settle(): void {
    this.#unwatch?.();
    this.#waiting.delete(this);
  }
}

/** The author's word that nothing left; bound to one call, so that a kept error proves nothing for the next. */
class NotSent extends Error {
  readonly call: SendCall;

  constructor(call: SendCall, reason: string) {
    super(reason);
    this.name = 'NotSent';
    this.call = call;
  }
}

/** Runs a function that may throw at once, as if it had returned a promise that rejects. */
function enter(run: () => unknown): Promise<unknown> {
  try {
    return Promise.resolve(run());
  } catch (error) {
    return Promise.reject(error);
  }
}

function toReply(value: unknown, replyMaxBytes: number): Reply {
  return capReply({ kind: 'result', body: toJson(value) }, replyMaxBytes);
}

function errorReply(error: DestinationError, replyMaxBytes: number): Reply {
  const code = error.code === undefined ? {} : { code: error.code };
  return capReply({ kind: 'tool_error', body: error.body, ...code }, replyMaxBytes);
}

/** A function that returns nothing has answered: its answer is `null`. */
function toJson(value: unknown): string {
  return JSON.stringify(value) ?? 'null';
}

function refused(detail: string): SendReport {
  return { left: 'no', proof: 'refused_by_sender', detail };
}

function describe(error: unknown): string {
  return error instanceof Error ? error.message : `a ${typeof error} was thrown`;
}
