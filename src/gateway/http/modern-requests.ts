// The requests of one server's clients of 2026-07-28: each for itself, and each leg of a call that was asked back too.

import type { IncomingMessage, ServerResponse } from 'node:http';
import { canonicalJson, type JsonValue } from '../../core/canonical.ts';
import { memberText, scanFrame } from '../../core/json-frame.ts';
import { type McpFrame, readMcpFrame } from '../../destination/mcp/frame.ts';
import { paramHeadersOf } from '../../destination/mcp/mcp-headers.ts';
import type { McpUpstream } from '../../destination/mcp/upstream.ts';
import type { AskReport } from '../../destination/port.ts';
import { readClientMessage, unusableId } from '../client-frame.ts';
import type { Conversation, Waiter } from '../conversation.ts';
import { modernError, modernResult } from '../dialect.ts';
import { Legs } from '../legs.ts';
import { type SharedCall, SharedConnection } from '../shared-connection.ts';
import { type CallParts, type OpenCall, ToolCalls } from '../tool-calls.ts';
import { ModernAnswer } from './modern-answer.ts';
import { type ModernRequest, mirrorProblem, readModernRequest } from './modern-request.ts';
import { type HttpRefusal, sendEmpty, sendRefusal } from './refusals.ts';
import { accepts } from './request-guard.ts';

export interface ModernParts extends Omit<CallParts, 'requester'> {
  /** A connection for clients with these capabilities (raw JSON text), not opened yet. */
  readonly openShared: (capabilities: string) => McpUpstream;
  /** How many connections are held at most while one of them is idle. Default 256. */
  readonly connectionsMax?: number;
}

const CONNECTIONS_MAX = 256;
const IDLE_MAX_MS = 10 * 60_000;
const SWEEP_MS = 60_000;
const CODE_SERVER_AWAY = 7001;
const CODE_SERVER_ENDED = 7002;
const CODE_INVALID_PARAMS = -32602;
const CODE_METHOD_NOT_FOUND = -32601;
/** Methods that this generation has given up: a server of the earlier one must not hear them in its name. */
const GIVEN_UP: ReadonlySet<string> = new Set([
  'initialize',
  'ping',
  'logging/setLevel',
  'resources/subscribe',
  'resources/unsubscribe',
  'tasks/list',
  'tasks/result',
]);

export class ModernRequests {
  readonly #parts: ModernParts;
  readonly #connections = new Map<string, SharedConnection>();
  readonly #legs: Legs;
  readonly #sweep: NodeJS.Timeout;
  readonly #ending = new Set<Promise<void>>();

  constructor(parts: ModernParts) {
    this.#parts = parts;
    this.#legs = new Legs(parts);
    this.#sweep = setInterval(() => this.#closeIdle(), SWEEP_MS);
    this.#sweep.unref();
  }

  async post(
    request: IncomingMessage,
    response: ServerResponse,
    frame: McpFrame,
    requester: string,
  ): Promise<void> {
    const message = readClientMessage(frame, () => false);
    if (message.kind === 'notification') {
      sendEmpty(response, 202);
      return;
    }
    if (message.kind !== 'request' || message.key === undefined) {
      const refusal =
        message.kind === 'refused'
          ? message
          : message.kind === 'request'
            ? unusableId()
            : { id: 'null', code: -32600, message: 'This generation has no answers from clients.' };
      const { id, code, message: why } = refusal;
      sendRefusal(response, { status: 400, id, code, message: why });
      return;
    }
    const read = readModernRequest(request, frame, { ...message, key: message.key });
    if (!read.ok) {
      sendRefusal(response, read.refusal);
      return;
    }
    await this.#serve(request, response, read.request, requester);
  }

  /** Subscriptions end; what was called is answered or recorded. */
  async close(): Promise<void> {
    clearInterval(this.#sweep);
    for (const connection of this.#connections.values()) connection.close();
    await Promise.allSettled([...this.#ending]);
  }

  async #serve(
    request: IncomingMessage,
    response: ServerResponse,
    asked: ModernRequest,
    requester: string,
  ): Promise<void> {
    const { id, method, params } = asked;
    const legAsked = { requester, method, params };
    const leg = new Leg(response, accepts(request, 'text/event-stream'), asked, this.#legs);
    const resumed = await this.#legs.resume(legAsked);
    const found = resumed === undefined ? this.#legs.equalOf(legAsked) : undefined;
    const followed = resumed?.kind === 'conversation' ? resumed.conversation : found;
    if (followed !== undefined) {
      leg.follow(followed);
      return;
    }
    if (resumed?.kind === 'known') {
      leg.ends('result', resumed.result);
      return;
    }
    if (resumed?.kind === 'refused') {
      leg.refuse({ status: 400, id, code: CODE_INVALID_PARAMS, message: resumed.message });
      return;
    }
    if (GIVEN_UP.has(method)) {
      leg.refuse({ status: 404, id, code: CODE_METHOD_NOT_FOUND, message: `Method not found: ${method}` });
      return;
    }
    const connection = this.#connectionFor(requester, asked.capabilities);
    const connected = await connection.connect();
    if (!connected.connected) {
      const message = `The MCP server behind this gateway cannot be reached: ${connected.detail}. The request was not passed on.`;
      leg.ends('error', errorText(CODE_SERVER_AWAY, message));
      return;
    }
    const mirrored = method === 'tools/call' ? await this.#mirrorProblem(request, asked) : undefined;
    if (mirrored !== undefined) {
      leg.refuse(mirrored);
      return;
    }
    if (method === 'subscriptions/listen') {
      await this.#listen(connection, asked, leg);
      return;
    }
    const conversation = this.#legs.begin(legAsked);
    leg.follow(conversation);
    this.#track(this.#carryOut(connection, conversation, asked, requester));
  }

  /** The call behind a conversation, whichever of its legs waits. Never rejects. */
  async #carryOut(
    connection: SharedConnection,
    conversation: Conversation,
    asked: ModernRequest,
    requester: string,
  ): Promise<void> {
    const { method, capabilities, logLevel } = asked;
    const call: SharedCall = {
      key: conversation.id,
      method,
      capabilities,
      progressToken: memberText(asked.params, '_meta', 'progressToken'),
      wantsLog: logLevel !== undefined,
      message: (frame) => conversation.message(frame),
      ask: (questions) => conversation.ask(questions),
    };
    const params = connection.prepared(call, asked.params);
    connection.begin(call);
    try {
      if (method === 'tools/call') await this.#toolCall(connection, conversation, call, params, requester);
      else {
        const report =
          method === 'server/discover'
            ? await connection.discover(call, params, conversation.signal)
            : await connection.request(call, params, conversation.signal);
        settle(conversation, report, method === 'tools/list' ? await this.#shown(report) : undefined);
      }
    } catch (cause) {
      this.#parts.report(`A request ended in a fault of the gateway: ${String(cause)}`);
      conversation.settle('error', errorText(CODE_SERVER_ENDED, 'The gateway met a fault of its own.'));
    } finally {
      connection.finish(call);
    }
  }

  async #toolCall(
    connection: SharedConnection,
    conversation: Conversation,
    call: SharedCall,
    params: string,
    requester: string,
  ): Promise<void> {
    const ended = new AbortController();
    const calls = new ToolCalls(
      { ...this.#parts, requester },
      {
        pass: async () => settle(conversation, await connection.request(call, params, conversation.signal)),
        answer: (_open, frame, written) => {
          const { result, error } = scanFrame(frame) ?? {};
          const range = result ?? error;
          const text = range === undefined ? '{}' : frame.slice(range.start, range.end);
          conversation.settle(result === undefined ? 'error' : 'result', text, written);
        },
        ended: ended.signal,
        via: connection.via,
      },
    );
    const text = `{"jsonrpc":"2.0","id":0,"method":"tools/call","params":${params}}`;
    const open: OpenCall = {
      id: '0',
      key: call.key,
      frame: readMcpFrame(Buffer.from(text)),
      signal: conversation.signal,
      isProposed: false,
    };
    await calls.call(open);
  }

  // ── Lists and subscriptions ──────────────────────────────────────────────────────────────────────────────

  async #shown(report: AskReport): Promise<string | undefined> {
    if (!report.answered || report.reply.kind !== 'result') return undefined;
    const { facts, server } = this.#parts;
    // An agent that is only observed is shown what its server shows.
    if (facts.mode === 'observe') return undefined;
    await server.connect();
    return server.tools.shown(report.reply.body, (tool) => facts.stampOf(tool));
  }

  async #listen(connection: SharedConnection, { id, key, params }: ModernRequest, leg: Leg): Promise<void> {
    const gone = new AbortController();
    leg.open(() => gone.abort());
    const report = await connection.listen(
      id,
      `${key}:${performance.now()}`,
      params,
      (frame) => leg.message(frame),
      gone.signal,
    );
    if (!report.answered) leg.ends('error', errorText(CODE_SERVER_ENDED, report.detail));
    else if (report.reply.kind === 'protocol_error') leg.ends('error', report.reply.body);
    else leg.ends('result', report.reply.body);
  }

  async #mirrorProblem(request: IncomingMessage, asked: ModernRequest): Promise<HttpRefusal | undefined> {
    const { server } = this.#parts;
    if (!server.isConnected()) await server.connect();
    const name = textOf(memberText(asked.params, 'name') ?? '""');
    const headers = paramHeadersOf(server.tools.get(name)?.inputSchema);
    return headers === undefined ? undefined : mirrorProblem(request, asked, headers);
  }

  // ── Connections ──────────────────────────────────────────────────────────────────────────────────────────

  /** A server of the session generation is told once what its client can do: each set has a connection of its own. */
  #connectionFor(requester: string, capabilities: string): SharedConnection {
    const key = JSON.stringify([requester, canonicalOf(capabilities)]);
    const known = this.#connections.get(key);
    if (known !== undefined) return known;
    const connectionsMax = this.#parts.connectionsMax ?? CONNECTIONS_MAX;
    if (this.#connections.size >= connectionsMax) this.#closeOldest();
    const { server, report, openShared } = this.#parts;
    const connection = new SharedConnection(openShared(capabilities), server, report);
    this.#connections.set(key, connection);
    return connection;
  }

  #closeIdle(): void {
    const now = performance.now();
    for (const [key, connection] of this.#connections) {
      if (!connection.isBusy && now - connection.usedAt > IDLE_MAX_MS) this.#closeOne(key, connection);
    }
  }

  #closeOldest(): void {
    const idle = [...this.#connections].filter(([, { isBusy }]) => !isBusy);
    const oldest = idle.toSorted(([, a], [, b]) => a.usedAt - b.usedAt)[0];
    if (oldest !== undefined) this.#closeOne(...oldest);
  }

  #closeOne(key: string, connection: SharedConnection): void {
    this.#connections.delete(key);
    connection.close();
  }

  #track(work: Promise<void>): void {
    const tracked: Promise<void> = work.finally(() => this.#ending.delete(tracked));
    this.#ending.add(tracked);
  }
}

/** One leg: the HTTP request that waits, and how it is told. */
class Leg implements Waiter {
  readonly #answer: ModernAnswer;
  readonly #asked: ModernRequest;
  readonly #legs: Legs;
  #conversation: Conversation | undefined;
  #onGone: () => void = () => {};

  constructor(response: ServerResponse, acceptsEvents: boolean, asked: ModernRequest, legs: Legs) {
    this.#asked = asked;
    this.#legs = legs;
    this.#answer = new ModernAnswer(response, acceptsEvents, () => this.#onGone());
  }

  follow(conversation: Conversation): void {
    this.#conversation = conversation;
    this.#onGone = () => conversation.leave(this);
    conversation.wait(this);
  }

  /** For a stream that is open from the beginning. */
  open(onGone: () => void): void {
    this.#onGone = onGone;
    this.#answer.open();
  }

  refuse(refusal: HttpRefusal): void {
    this.#answer.refuse(refusal);
  }

  message(frame: string): void {
    this.#answer.message(frame);
  }

  asks(questions: Parameters<Waiter['asks']>[0]): void {
    const conversation = this.#conversation;
    const result = conversation && this.#legs.inputRequired(conversation, questions);
    if (result === undefined) {
      const message = 'The server asked back, and the gateway cannot pass the question on now.';
      this.ends('error', errorText(CODE_SERVER_ENDED, message));
    } else this.#answer.end(this.#asked.id, 'result', result);
  }

  ends(member: 'result' | 'error', text: string, written?: (isWritten: boolean) => void): void {
    const given = member === 'result' ? modernResult(this.#asked.method, text) : modernError(text);
    this.#answer.end(this.#asked.id, member, given, written);
  }
}

function settle(conversation: Conversation, report: AskReport, shown?: string): void {
  if (!report.answered) {
    const message = `The MCP server behind this gateway gave no answer: ${report.detail}.`;
    conversation.settle('error', errorText(CODE_SERVER_ENDED, message));
  } else if (report.reply.kind === 'protocol_error') conversation.settle('error', report.reply.body);
  else conversation.settle('result', shown ?? report.reply.body);
}

function errorText(code: number, message: string): string {
  return JSON.stringify({ code, message, data: { origin: 'counterfoil' } });
}

function canonicalOf(text: string): string {
  try {
    return canonicalJson(JSON.parse(text) as JsonValue);
  } catch {
    return text;
  }
}

function textOf(text: string): string {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'string' ? value : '';
  } catch {
    return '';
  }
}
