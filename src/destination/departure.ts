// One HTTP request as far as its first byte: whether anything can have left, and the proof where nothing did. Shared by
// what is sent to MCP servers and to APIs, because "not sent" is claimed in one way only (D8).

import type { Dispatcher } from 'undici';

/** Nothing left: each of these is before the first byte of any request. */
export interface Unsent {
  readonly left: 'no';
  readonly proof: 'refused_by_sender' | 'not_connected' | 'connection_refused' | 'name_not_found';
  readonly detail: string;
}

export abstract class Departure {
  readonly #mayLeave: (() => boolean) | undefined;
  #controller: Dispatcher.DispatchController | undefined;
  #hasLeft = false;
  #isRefused = false;
  #abortedBy: string | undefined;

  /** @param mayLeave asked in the turn in which the first byte is handed to the socket, directly before it */
  constructor(mayLeave: (() => boolean) | undefined) {
    this.#mayLeave = mayLeave;
  }

  /** From now on something may have left. */
  protected abstract onLeft(): void;

  /** Why it was ended from this side, where it was. */
  protected get abortedBy(): string | undefined {
    return this.#abortedBy;
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
      this.onLeft();
    } else {
      this.#isRefused = true;
      controller.abort(new Error('it may not leave'));
    }
  }

  #isAllowed(): boolean {
    try {
      return this.#mayLeave?.() ?? true;
    } catch {
      return false;
    }
  }

  /** How a request ended of which nothing left; `undefined` where something may have. */
  protected unsent(error: Error): Unsent | undefined {
    if (this.#hasLeft) return undefined;
    const detail = this.#isRefused
      ? 'it was too late to hand it over, or the claim was lost'
      : (this.#abortedBy ?? describe(error));
    const isOurs = this.#isRefused || this.#abortedBy !== undefined || INVALID.has(codeOf(error));
    return { left: 'no', proof: isOurs ? 'refused_by_sender' : connectProof(error), detail };
  }
}

/** What cannot be written down as a request was never begun. */
const INVALID: ReadonlySet<string> = new Set(['UND_ERR_INVALID_ARG', 'UND_ERR_DESTROYED', 'UND_ERR_CLOSED']);

/** How no connection came about. */
function connectProof(error: Error): 'name_not_found' | 'connection_refused' | 'not_connected' {
  const code = codeOf(error);
  if (code === 'ENOTFOUND' || code === 'EAI_AGAIN') return 'name_not_found';
  return code === 'ECONNREFUSED' ? 'connection_refused' : 'not_connected';
}

export function codeOf(error: Error): string {
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
