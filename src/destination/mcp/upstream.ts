// One connection to an MCP server as the gateway uses it, whatever it runs over: a client's frames pass through it
// as bytes, and our own calls go beside them.

import type { AskReport, Destination } from '../port.ts';
import type { Answers, Question } from './asking.ts';
import type { McpFrame } from './frame.ts';
import type { Handshake } from './link.ts';

/**
 * `full`: written, but the source should pause until `drained`. `not_connected`: nothing was written, because
 * there is no connection or its handshake is being replayed: `connect`, then forward again.
 */
export type ForwardReport = 'written' | 'full' | 'not_connected';

/** How a connection has ended by itself. */
export interface UpstreamEnd {
  readonly detail: string;
}

export interface RequestOptions {
  /** Ends the wait, and cancels the request at the server. */
  readonly signal?: AbortSignal | undefined;
  /** For whom it is asked: what the server says on the request's own stream is told with this name. */
  readonly about?: string | undefined;
  /** Told the id under which it is asked, before it is. */
  readonly asked?: ((id: string) => void) | undefined;
}

/** How a connection is opened where no client's handshake passes through it. */
export interface OwnHandshake {
  /** Which generation is tried first. Default `legacy`. */
  readonly prefers?: 'legacy' | 'modern';
  /** What we say that our client can do, as JSON text. Default nothing. */
  readonly clientCapabilities?: string;
  /** Our own version, told to the server. */
  readonly clientVersion?: string;
}

export interface McpUpstream extends Destination {
  /** How we are to open it ourselves; of no effect once it has been opened. */
  introduce(own: OwnHandshake): void;
  /** The client's handshake, once the server has answered it, or else our own. Its method tells the generation. */
  readonly handshake: Handshake | undefined;
  /**
   * Every frame of the server that is not for us, unchanged; `about`: the client's request, by its key, on whose own
   * stream it came, where the transport tells. Without a listener the server's requests are refused.
   */
  onFrame?: (frame: McpFrame, about?: string) => void;
  /** A request of the client, by its key, that will not be answered, although the connection goes on. */
  onUnanswered?: (key: string, detail: string) => void;
  /** Asks the client, in the middle of its request `about`, what the server has asked; only where a bridge needs it. */
  onAsk?: (about: string, questions: readonly Question[]) => Promise<Answers>;
  /** The connection has ended by itself: what the client asked will not be answered. Not called after `close`. */
  onExit?(end: UpstreamEnd): void;
  /** What is no frame and was dropped, with the number of such so far: report the first, not each. */
  onGarbage?: (line: Buffer, count: number) => void;
  /** Sends one frame of the client unchanged. A client's `initialize` opens a connection when there is none. */
  forward(frame: McpFrame): ForwardReport;
  /** Resolves when the server has taken what was forwarded, or is gone. */
  drained(): Promise<void>;
  /** One read-only request of our own, `tools/list` for one. A time-out cancels it at the server. */
  request(method: string, params: string, timeoutMs: number, options?: RequestOptions): Promise<AskReport>;
  /** Why a tool that the server lists cannot be called on this transport; `undefined` where it can. */
  callProblem?(tool: string): string | undefined;
  /** No new calls; closes once none of ours waits on it: a client that leaves ends the wait, not the work (D10). */
  retire(): Promise<void>;
}
