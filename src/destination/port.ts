// The destination port: send one frozen payload, ask one read-only question, and report what the wire showed.
//
// An adapter never throws and never decides what a reply means: it reports phases, and the core classifies
// them by the contract (D8). `left: 'no'` is a proof, given only where no byte of this request can have
// reached the destination; everything else is `left: 'maybe'`.

import type { ReplyDoubt } from '../core/reply-places.ts';

/** What is handed over: the exact bytes that were frozen, and how long to wait for the answer. */
export interface SendRequest {
  readonly operation: string;
  readonly attempt: string;
  readonly tool: string;
  /** The canonical JSON text of the arguments, sent as it is. */
  readonly payload: string;
  /** Opaque members for the wire beside the arguments (MCP `_meta`), as JSON text; never hashed. */
  readonly meta?: string;
  /** The caller's own connection, by the name that the door gave it: a destination that has several prefers it. */
  readonly via?: string;
  readonly replyTimeoutMs: number;
  /** When the first attempt of this operation that may have left was started, in ms since the epoch; a repeat has the same. */
  readonly firstSentAt?: number;
  /** Aborts the wait on shutdown only; a caller that leaves does not trigger it. */
  readonly signal?: AbortSignal;
  /**
   * Called in the same turn as, and directly before, the first byte is handed to the transport. Returning
   * false means that it is too late (`sendBy`) or that the claim is lost: the adapter must hand over nothing
   * and report `left: 'no'` with `proof: 'refused_by_sender'`.
   */
  readonly mayLeave: () => boolean;
  /**
   * Records that an answer to a question of the destination is about to leave, as leg `leg` (from 2) of this attempt
   * (D8). False: the attempt is no longer ours, or that leg was recorded before: nothing of it may leave.
   */
  readonly recordLeg?: (leg: number) => Promise<boolean>;
  /** Whether the destination may answer with a task of its own, because its end is awaited (MCP). */
  readonly followsTasks?: boolean;
  /** Members beside name and arguments for a leg after the first (MCP `inputResponses`), as JSON texts by name. */
  readonly more?: Readonly<Record<string, string>>;
}

/** A complete reply. `body` is the raw JSON text of the result (MCP: of the `result` or `error` member). */
export interface Reply {
  /** `result`: the destination's answer; `tool_error`: an answer that says it is an error (MCP `isError`);
   * `protocol_error`: an error of the protocol in place of an answer (JSON-RPC `error`). */
  readonly kind: 'result' | 'tool_error' | 'protocol_error';
  readonly body: string;
  /** HTTP status or JSON-RPC code, where there is one. */
  readonly code?: number;
  /** Of an HTTP reply: the headers that are kept, names in small letters. Never those that carry a credential. */
  readonly headers?: { readonly [name: string]: string };
  /** Why it need not be the destination's own answer to this request; the wire alone cannot say that it is not. */
  readonly doubt?: ReplyDoubt;
  /** True when the body was cut at the reply cap; it is recorded, never replayed. */
  readonly truncated?: boolean;
}

export type SendReport =
  | {
      readonly left: 'no';
      /** The transport's own proof: `not_connected`, `spawn_failed`, `refused_by_sender`, `connection_refused`… */
      readonly proof: string;
      readonly detail: string;
    }
  | {
      readonly left: 'maybe';
      readonly ended: 'reply' | 'cut' | 'timeout' | 'unreadable' | 'aborted';
      readonly reply?: Reply;
      readonly detail: string;
    };

/** A reply that came after `send` had reported `timeout`, `cut` or `aborted`. */
export interface LateReply {
  readonly operation: string;
  readonly attempt: string;
  readonly reply: Reply;
}

/** A read-only question: a look-up or a read-back. */
export interface AskRequest {
  readonly tool: string;
  readonly payload: string;
  readonly timeoutMs: number;
}

export type AskReport =
  | { readonly answered: true; readonly reply: Reply }
  /**
   * `not_asked`: something of ours stands in the way. `unusable`: there was an answer, and nothing can be told from it.
   * Without either nothing came, and the destination may be away.
   */
  | { readonly answered: false; readonly detail: string; readonly because?: 'not_asked' | 'unusable' };

/** A callback as it came: the exact bytes of its body, and its headers, names in small letters. */
export interface GivenNotice {
  readonly headers: { readonly [name: string]: string | undefined };
  readonly body: Uint8Array;
  /** ms since the epoch. */
  readonly at: number;
}

/** What a callback calls the operation that it is about. */
export interface NoticeName {
  readonly by: 'stamp' | 'request_key' | 'record';
  readonly value: string;
}

export type NoticeReport =
  /** `id`: equal for each delivery of one notice. `body`: JSON text. */
  | {
      readonly genuine: true;
      readonly id: string;
      readonly sentAt: number;
      readonly body: string;
      readonly names: readonly NoticeName[];
    }
  /** A sentence's second half. */
  | { readonly genuine: false; readonly why: string };

export type ConnectReport =
  | { readonly connected: true }
  /** `isAway: false`: it was not asked; a rest, a place in line or a secret of ours stands in the way. */
  | { readonly connected: false; readonly detail: string; readonly isAway?: false };

export interface Destination {
  readonly name: string;
  /** True while a request could be handed over at once. Synchronous, because it is asked on the hot path. */
  isConnected(): boolean;
  /** The same of a question, where that is not the same: writes that hang must not keep one from being asked. */
  isAskable?(): boolean;
  /**
   * Connects when needed; one attempt, bounded by the adapter's own time-out. Never throws.
   * @param purpose `question`: no place among the writes is needed; to send, when absent
   */
  connect(purpose?: 'question'): Promise<ConnectReport>;
  send(request: SendRequest): Promise<SendReport>;
  ask(request: AskRequest): Promise<AskReport>;
  /**
   * Which credential and place a request would be made with now: another text for another one, and nothing that tells
   * either. `undefined` where that is not known, and of a destination that cannot say.
   */
  scope?(): string | undefined;
  /** Whether a callback is the destination's own; only of one that sends such. */
  readNotice?(notice: GivenNotice): NoticeReport;
  /** At most one listener; set by the engine before the first send. */
  onLateReply?: (late: LateReply) => void;
  close(): Promise<void>;
}
