// The requests of one server's clients of 2026-07-28, whatever they speak over: each for itself, and each leg of a call
// that was asked back too.

import { canonicalJson, type JsonValue } from '../core/canonical.ts';
import { memberText, scanFrame } from '../core/json-frame.ts';
import { readMcpFrame } from '../destination/mcp/frame.ts';
import type { McpUpstream } from '../destination/mcp/upstream.ts';
import type { AskReport } from '../destination/port.ts';
import { ownError } from './answer-frame.ts';
import type { Conversation, Waiter } from './conversation.ts';
import { modernError, modernResult } from './dialect.ts';
import { Legs } from './legs.ts';
import { canOpenLinks } from './review-links.ts';
import { type SharedCall, SharedConnection } from './shared-connection.ts';
import { isAboutOurTask, TaskDoor } from './task-door.ts';
import { TaskQuestions } from './task-questions.ts';
import { declaresTasks, withTaskExtension } from './task-shapes.ts';
import { type CallParts, type OpenCall, ToolCalls } from './tool-calls.ts';

/** One request, checked: its envelope is what this generation asks for. */
export interface StatelessRequest {
  readonly id: string;
  readonly key: string;
  readonly method: string;
  /** The raw params. */
  readonly params: string;
  /** What the client says it can do, as raw JSON text. */
  readonly capabilities: string;
  /** Whether it asked for log messages, and from which level; raw JSON text. */
  readonly logLevel: string | undefined;
}

/** Why a request is not gone on with; `status` is HTTP's. */
export interface StatelessRefusal {
  readonly status: number;
  readonly code: number;
  readonly message: string;
  readonly data?: unknown;
  readonly id?: string;
}

/** The way to the client of one request. */
export interface StatelessAnswer {
  /** Called when the client has left before it was answered, or has taken the request back. */
  onGone: () => void;
  /** The answer will be long in coming, and messages come before it. */
  open(): void;
  message(frame: string): void;
  refuse(refusal: StatelessRefusal): void;
  /** @param written told whether the operating system has taken it */
  end(id: string, member: 'result' | 'error', text: string, written?: (isWritten: boolean) => void): void;
}

export interface StatelessParts extends Omit<CallParts, 'requester'> {
  /** A connection for clients with these capabilities (raw JSON text), not opened yet. */
  readonly openShared: (capabilities: string) => McpUpstream;
  /** How many connections are held at most while one of them is idle. Default 256. */
  readonly connectionsMax?: number;
  /** Set for the one client behind a line: its server is there as long as it is. Clients over HTTP have none. */
  readonly line?: {
    /** Aborted once the client has closed its end. */
    readonly ended: AbortSignal;
  };
}

/** What stands against a call once its server is known; `undefined`: nothing. */
export type CallCheck = () => Promise<StatelessRefusal | undefined>;

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

export class StatelessRequests {
  readonly #parts: StatelessParts;
  readonly #connections = new Map<string, SharedConnection>();
  readonly #legs: Legs;
  readonly #questions = new TaskQuestions();
  readonly #sweep: NodeJS.Timeout | undefined;
  readonly #ending = new Set<Promise<void>>();

  constructor(parts: StatelessParts) {
    this.#parts = parts;
    this.#legs = new Legs(parts);
    if (parts.line !== undefined) return;
    this.#sweep = setInterval(() => this.#closeIdle(), SWEEP_MS);
    this.#sweep.unref();
  }

  /** Resolves when every call that was made is answered. */
  async settled(): Promise<void> {
    while (this.#ending.size > 0) await Promise.allSettled([...this.#ending]);
  }

  /** Subscriptions end; what was called is answered or recorded. */
  async close(): Promise<void> {
    clearInterval(this.#sweep);
    for (const connection of this.#connections.values()) connection.close();
    await Promise.allSettled([...this.#ending]);
  }

  /** @param check asked before a tool is called */
  async serve(
    asked: StatelessRequest,
    requester: string,
    answer: StatelessAnswer,
    check: CallCheck = async () => undefined,
  ): Promise<void> {
    const { id, method, params } = asked;
    const legAsked = { requester, method, params };
    const leg = new Leg(answer, asked, this.#legs);
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
    const isObserved = this.#parts.facts.mode === 'observe';
    if (!isObserved && isAboutOurTask('stateless', asked, false)) {
      await this.#task(asked, requester, leg);
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
    if (!isObserved && !connection.hasTasks && isAboutOurTask('stateless', asked, true)) {
      await this.#task(asked, requester, leg);
      return;
    }
    const problem = method === 'tools/call' ? await check() : undefined;
    if (problem !== undefined) {
      leg.refuse(problem);
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
    asked: StatelessRequest,
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
        settle(conversation, report, await this.#shown(asked, report));
      }
    } catch (cause) {
      this.#parts.report(`A request ended in a fault of the gateway: ${String(cause)}`);
      conversation.settle('error', errorText(CODE_SERVER_ENDED, 'The gateway met a fault of its own.'));
    } finally {
      connection.finish(call);
      this.#questions.end(conversation);
      // Behind a task the call has an end that nobody waits for.
      if (!conversation.isSettled) conversation.drop();
    }
  }

  async #toolCall(
    connection: SharedConnection,
    conversation: Conversation,
    call: SharedCall,
    params: string,
    requester: string,
  ): Promise<void> {
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
        giveTask: (_open, task, result) => {
          this.#questions.begin(task, conversation);
          conversation.giveTask(result);
        },
        askLink: (_open, question) =>
          canOpenLinks(call.capabilities) ? conversation.ask([question]) : undefined,
        ended: this.#parts.line?.ended ?? NEVER,
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
      declaresTasks: declaresTasks(call.capabilities),
    };
    await calls.call(open);
  }

  // ── Lists and subscriptions ──────────────────────────────────────────────────────────────────────────────

  /** A list of tools, or what the server says of itself, as the client is shown it; `undefined`: as it came. */
  async #shown({ capabilities, method }: StatelessRequest, report: AskReport): Promise<string | undefined> {
    if (!report.answered || report.reply.kind !== 'result') return undefined;
    const { facts, server } = this.#parts;
    // An agent that is only observed is shown what its server shows.
    if (facts.mode === 'observe') return undefined;
    if (method === 'server/discover' && declaresTasks(capabilities))
      return withTaskExtension(report.reply.body);
    if (method !== 'tools/list') return undefined;
    await server.connect();
    return server.tools.shown(report.reply.body, (tool) => facts.stampOf(tool));
  }

  /** One about a task of ours: no server has to be there for it. */
  async #task(
    { capabilities, method, params }: StatelessRequest,
    requester: string,
    leg: Leg,
  ): Promise<void> {
    const gone = new AbortController();
    const door = new TaskDoor({ ...this.#parts, requester, questions: this.#questions });
    const isDeclared = declaresTasks(capabilities);
    const asked = { method, params, generation: 'stateless', isDeclared, signal: gone.signal } as const;
    const { member, outcomeOf, text } = await door.answer(asked, false);
    leg.ends(member, text, (isWritten) => {
      if (isWritten && outcomeOf !== undefined) this.#parts.ledger.delivered(outcomeOf);
    });
  }

  async #listen(
    connection: SharedConnection,
    { id, key, params }: StatelessRequest,
    leg: Leg,
  ): Promise<void> {
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

/** One leg: the request that waits, and how it is told. */
class Leg implements Waiter {
  readonly #answer: StatelessAnswer;
  readonly #asked: StatelessRequest;
  readonly #legs: Legs;
  #conversation: Conversation | undefined;

  constructor(answer: StatelessAnswer, asked: StatelessRequest, legs: Legs) {
    this.#asked = asked;
    this.#legs = legs;
    this.#answer = answer;
  }

  follow(conversation: Conversation): void {
    this.#conversation = conversation;
    this.#answer.onGone = () => conversation.leave(this);
    conversation.wait(this);
  }

  /** For a stream that is open from the beginning. */
  open(onGone: () => void): void {
    this.#answer.onGone = onGone;
    this.#answer.open();
  }

  refuse(refusal: StatelessRefusal): void {
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
  return ownError(code, message).text;
}

const NEVER = new AbortController().signal;

function canonicalOf(text: string): string {
  try {
    return canonicalJson(JSON.parse(text) as JsonValue);
  } catch {
    return text;
  }
}
