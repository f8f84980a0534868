// The life of one child of an upstream: which handshake it is in, and which of our calls wait on it.

import type { OwnCalls } from './own-calls.ts';
import type { StdioChild } from './stdio-child.ts';

/** How a connection to the server was opened; replayed when the child is started again. */
export interface Handshake {
  readonly method: 'initialize' | 'server/discover';
  /** The JSON text of the request's params. */
  readonly params: string;
  /** The JSON text of the server's answer to it. */
  readonly result: string;
}

/**
 * `fresh`: started, nothing agreed. `client_handshake`: the client's own handshake passes through.
 * `own_handshake`: we make it, or replay it. `connected`: tools may be called. `ended`: no answer can come.
 */
export type LinkPhase = 'fresh' | 'client_handshake' | 'own_handshake' | 'connected' | 'ended';

export interface Link {
  readonly child: StdioChild;
  readonly calls: OwnCalls;
  phase: LinkPhase;
  /** A client's new handshake has replaced this link: its calls are awaited, then it is ended. */
  retired: boolean;
  /** The client's handshake request that has no answer yet; `id` is raw JSON text. */
  asked: { readonly id: string; readonly method: Handshake['method']; readonly params: string } | undefined;
  /** Told when the phase becomes `connected` or `ended`. */
  readonly phaseWaiters: Set<() => void>;
}

export function newLink(child: StdioChild, calls: OwnCalls): Link {
  return { child, calls, phase: 'fresh', retired: false, asked: undefined, phaseWaiters: new Set() };
}

export function settlePhase(link: Link, phase: 'connected' | 'ended'): void {
  link.phase = phase;
  for (const tell of [...link.phaseWaiters]) tell();
}

/** Ends a link that was replaced, as soon as none of our calls waits on it. */
export function retire(link: Link): void {
  link.retired = true;
  link.calls.whenIdle(() => void link.child.terminate());
}

/** The phase when it becomes `connected` or `ended`; undefined when it does not within the time. */
export function phaseSettled(link: Link, timeoutMs: number): Promise<LinkPhase | undefined> {
  return new Promise((resolve) => {
    const done = (phase: LinkPhase | undefined) => {
      clearTimeout(timer);
      link.phaseWaiters.delete(tell);
      resolve(phase);
    };
    const tell = () => done(link.phase);
    const timer = setTimeout(() => done(undefined), timeoutMs);
    link.phaseWaiters.add(tell);
  });
}
