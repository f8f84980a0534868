// One client of the gateway, whatever it speaks over, in front of its own connection to the server: reads and
// everything else pass byte for byte, writes become operations, and the client is told the truth about them.

import { memberText, scanFrame } from '../core/json-frame.ts';
import type { Answers, Question } from '../destination/mcp/asking.ts';
import type { McpFrame } from '../destination/mcp/frame.ts';
import { META } from '../destination/mcp/mcp-headers.ts';
import type { McpUpstream } from '../destination/mcp/upstream.ts';
import { errorFrame, memberFrame, resultFrame } from './answer-frame.ts';
import { type Refusal, readClientMessage, unusableId, usedId } from './client-frame.ts';
import type { ClientPort } from './client-port.ts';
import { ClientQuestions } from './client-questions.ts';
import type { Conversation, Waiter } from './conversation.ts';
import { modernResult } from './dialect.ts';
import { Legs } from './legs.ts';
import { OpenRequests, type Passed, requestKey } from './open-requests.ts';
import { canOpenLinks } from './review-links.ts';
import { type SessionTaskRequest, SessionTasks } from './session-tasks.ts';
import { TaskQuestions } from './task-questions.ts';
import { declaresTasksIn } from './task-shapes.ts';
import { type CallParts, type OpenCall, ToolCalls } from './tool-calls.ts';

export interface SessionParts extends CallParts {
  readonly upstream: McpUpstream;
  readonly client: ClientPort;
}

/** Our own error codes: outside the ranges that JSON-RPC and MCP keep for themselves. */
const CODE_SERVER_AWAY = 7001;
const CODE_SERVER_ENDED = 7002;
const CODE_INVALID_PARAMS = -32602;

/** Requests of whose answers the gateway takes note. */
const PASSED: ReadonlyMap<string, Passed> = new Map([
  ['initialize', 'handshake'],
  ['server/discover', 'discovery'],
  ['tools/list', 'list'],
]);

export class ClientSession {
  readonly #parts: SessionParts;
  readonly #toolCalls: ToolCalls;
  readonly #open = new OpenRequests();
  /** Frames are handled in their order; a write does not hold up what comes behind it. */
  #queue: Promise<void> = Promise.resolve();
  readonly #calls = new Set<Promise<void>>();
  /** Aborted once the client has closed its end. */
  readonly #ended = new AbortController();
  readonly #via: string;
  readonly #questions: ClientQuestions;
  readonly #legs: Legs;
  /** Calls of a stateless client that may be asked back, by their keys. */
  readonly #conversations = new Map<string, Conversation>();
  #earlyInitialized: McpFrame | undefined;
  readonly #tasks: SessionTasks;
  readonly #taskQuestions = new TaskQuestions();
  /** What a client of sessions has said that it can do; raw JSON text. */
  #capabilities: string | undefined;

  constructor(parts: SessionParts) {
    this.#parts = parts;
    const { client, upstream } = parts;
    const ask = (call: string, questions: readonly Question[]) =>
      this.#conversations.get(call)?.ask(questions) ?? this.#questions.ask(call, questions);
    this.#legs = new Legs(parts);
    this.#tasks = new SessionTasks({ ...parts, questions: this.#taskQuestions });
    this.#via = parts.server.attach(upstream, ask);
    this.#questions = new ClientQuestions(client);
    upstream.onAsk = ask;
    this.#toolCalls = new ToolCalls(parts, {
      pass: ({ frame, id, key }) => {
        this.#conversations.delete(key);
        return this.#passRequest(frame, id, key, 'plain');
      },
      answer: ({ key }, frame, written) => this.#answerCall(key, frame, written),
      giveTask: ({ key }, task, result) => {
        const conversation = this.#conversations.get(key);
        if (conversation === undefined) return;
        this.#taskQuestions.begin(task, conversation);
        conversation.giveTask(result);
      },
      askLink: (open, question) => this.#askLink(open, question),
      ended: this.#ended.signal,
      via: this.#via,
    });
    upstream.onFrame = (frame, about) => this.#fromServer(frame, about);
    upstream.onUnanswered = (key, detail) => this.#unanswered(key, detail);
    upstream.onExit = (exit) => this.#serverEnded(exit.detail);
    upstream.onGarbage = (line, count) => {
      if (count === 1) this.#reportStray(line.toString('utf8'));
    };
  }

  /** Handles one frame of the client, after those that came before it; resolves when the next may come. */
  receive(frame: McpFrame): Promise<void> {
    this.#inTurn(() => this.#fromClient(frame));
    return this.#queue;
  }

  /** What the client has sent is no frame at all. */
  refuse({ id, code, message }: Refusal): void {
    this.#parts.client.answer(undefined, errorFrame(id, code, message));
  }

  /**
   * The client has closed its end. Resolves when every call that it had made is answered: a closed end ends the wait
   * for news, not the work (D10).
   */
  async end(): Promise<void> {
    await this.#queue;
    this.#ended.abort();
    this.#questions.close();
    await Promise.allSettled([...this.#calls]);
    this.#parts.server.detach(this.#via);
  }

  #inTurn(work: () => Promise<void>): void {
    this.#queue = this.#queue.then(work).catch((cause: unknown) => {
      this.#parts.report(`A message of the client could not be handled: ${String(cause)}`);
    });
  }

  // ── From the client ──────────────────────────────────────────────────────────────────────────────────────

  async #fromClient(frame: McpFrame): Promise<void> {
    const message = readClientMessage(frame, (key) => this.#open.has(key));
    if (message.kind === 'refused') {
      this.refuse(message);
      return;
    }
    if (message.kind === 'response') {
      await this.#response(frame);
      return;
    }
    const { method } = message;
    if (method === 'tools/call') {
      this.#receiveCall(frame, message.kind === 'request' ? message : undefined);
      return;
    }
    if (message.kind === 'notification') {
      await this.#notification(frame, method);
      return;
    }
    const { id, key } = message;
    if (this.#open.isOwedByGateway(key)) this.refuse(usedId(id));
    else if (key === undefined) await this.#pass(frame);
    else {
      const params = paramsOf(frame);
      if (method === 'initialize' || method === 'server/discover') this.#tasks.greeted(method, params);
      if (method === 'initialize') this.#capabilities = memberText(params, 'capabilities');
      const asked = this.#tasks.asked(method, params);
      if (asked !== undefined) this.#receiveTaskRequest(asked, id, key);
      else await this.#passRequest(this.#tasks.forServer(frame), id, key, PASSED.get(method) ?? 'plain');
    }
  }

  /** Not awaited: an answer may be waited for, and what comes behind it is not held up. */
  #receiveTaskRequest(asked: SessionTaskRequest, id: string, key: string): void {
    const { client, ledger, report } = this.#parts;
    const signal = this.#open.take(key);
    const until = AbortSignal.any([signal, this.#ended.signal]);
    const work: Promise<void> = asked
      .answer(until)
      .then((answer) => {
        if (signal.aborted) return;
        client.answer(key, memberFrame(id, answer), (isWritten) => {
          const isTold = isWritten && !this.#ended.signal.aborted;
          if (isTold && answer.outcomeOf !== undefined) ledger.delivered(answer.outcomeOf);
        });
      })
      .catch((cause: unknown) => {
        report(`A request about a task ended in a fault of the gateway: ${String(cause)}`);
        client.answer(key, errorFrame(id, CODE_SERVER_ENDED, 'The gateway met a fault of its own.'));
      })
      .finally(() => {
        this.#open.settle(key, signal);
        this.#calls.delete(work);
      });
    this.#calls.add(work);
  }

  /** The client's answer to a question: of ours, or of the server's, to whom it passes. */
  async #response(frame: McpFrame): Promise<void> {
    if (this.#questions.answer(frame)) return;
    // Of several writes that are out nobody can tell which one was asked about: each of them has it on record.
    for (const via of this.#parts.server.outOn(this.#via)) {
      if (!(await this.#parts.server.mayAnswer(via))) {
        this.#parts.report(
          'An answer of the client to the server was not passed on: it could not be recorded.',
        );
        return;
      }
    }
    await this.#pass(frame);
  }

  async #notification(frame: McpFrame, method: string): Promise<void> {
    const isTakenBack =
      method === 'notifications/cancelled' &&
      this.#open.takeBack(requestKey(memberText(paramsOf(frame), 'requestId')));
    if (isTakenBack) return;
    if (method === 'notifications/initialized') await this.#initialized(frame);
    else await this.#pass(frame);
  }

  /**
   * Some clients write it together with `initialize`, as a script does: the server hears of it once it has answered,
   * so that everybody agrees on when the handshake is complete.
   */
  async #initialized(frame: McpFrame): Promise<void> {
    if (this.#open.isShakingHands) {
      this.#earlyInitialized = frame;
      return;
    }
    await this.#pass(frame);
    this.#parts.server.clientGreeted();
    void this.#parts.server.connect();
  }

  #receiveCall(
    frame: McpFrame,
    asked: { readonly id: string; readonly key: string | undefined } | undefined,
  ): void {
    if (asked === undefined) {
      this.#parts.report('A tools/call without an id was dropped: nobody could be told what became of it.');
      return;
    }
    const { id, key } = asked;
    if (key === undefined) {
      this.refuse(unusableId());
      return;
    }
    if (this.#open.has(key)) {
      this.refuse(usedId(id));
      return;
    }
    // Open from here on, so that a cancel which comes before anything is decided is not lost.
    const call: OpenCall = { id, key, frame, signal: this.#open.take(key), isProposed: false };
    // Not awaited: many calls are open at once.
    const work: Promise<void> = this.#carryOut(call).finally(() => {
      this.#open.settle(key, call.signal);
      this.#calls.delete(work);
    });
    this.#calls.add(work);
  }

  async #carryOut(call: OpenCall): Promise<void> {
    const params = paramsOf(call.frame);
    // Looked for as text first: most clients are of sessions, and their calls are not read twice.
    const isStateless =
      params.includes(META.protocolVersion) &&
      memberText(params, '_meta', META.protocolVersion) !== undefined;
    if (!isStateless) await this.#toolCalls.call(call);
    else await this.#statelessCall(call, params);
  }

  /** A client of 2026-07-28 is asked by a result, and answers by a call of its own. */
  async #statelessCall(call: OpenCall, params: string): Promise<void> {
    const { client, requester } = this.#parts;
    const asked = { requester, method: 'tools/call', params };
    const resumed = await this.#legs.resume(asked);
    if (resumed?.kind === 'refused') {
      client.answer(call.key, errorFrame(call.id, CODE_INVALID_PARAMS, resumed.message));
    } else if (resumed?.kind === 'known') client.answer(call.key, resultFrame(call.id, resumed.result));
    else if (resumed?.kind === 'conversation') await this.#waitsOn(resumed.conversation, call);
    else {
      const equal = this.#legs.equalOf(asked);
      if (equal !== undefined) {
        await this.#waitsOn(equal, call);
        return;
      }
      const conversation = this.#legs.begin(asked, call.key);
      this.#conversations.set(call.key, conversation);
      const waiting = this.#waitsOn(conversation, call);
      const declaresTasks = declaresTasksIn(params);
      await this.#toolCalls.call({ ...call, signal: conversation.signal, declaresTasks });
      this.#conversations.delete(call.key);
      this.#taskQuestions.end(conversation);
      if (!conversation.isSettled) conversation.drop();
      await waiting;
    }
  }

  /** Resolves when this leg has its answer, or the call turned out to be the server's to answer. */
  #waitsOn(conversation: Conversation, { id, key, signal }: OpenCall): Promise<void> {
    const { client } = this.#parts;
    return new Promise((resolve) => {
      const waiter: Waiter = {
        message: () => {},
        asks: (questions) => {
          const result = this.#legs.inputRequired(conversation, questions);
          const message = 'The server asked back, and the gateway cannot pass the question on now.';
          client.answer(
            key,
            result === undefined ? errorFrame(id, CODE_SERVER_ENDED, message) : resultFrame(id, result),
          );
          resolve();
        },
        ends: (member, text, written) => {
          const given = member === 'result' ? modernResult('tools/call', text) : text;
          client.answer(key, `{"jsonrpc":"2.0","id":${id},"${member}":${given}}`, written);
          resolve();
        },
        dropped: resolve,
      };
      const leave = (): void => {
        conversation.leave(waiter);
        resolve();
      };
      if (signal.aborted) leave();
      else {
        signal.addEventListener('abort', leave, { once: true });
        conversation.wait(waiter);
      }
    });
  }

  #askLink({ frame, key }: OpenCall, question: Question): Promise<Answers> | undefined {
    const conversation = this.#conversations.get(key);
    if (conversation === undefined)
      return canOpenLinks(this.#capabilities) ? this.#questions.ask(key, [question]) : undefined;
    const capabilities = memberText(paramsOf(frame), '_meta', META.clientCapabilities);
    return canOpenLinks(capabilities) ? conversation.ask([question]) : undefined;
  }

  #answerCall(key: string, frame: string, written?: (isWritten: boolean) => void): void {
    const conversation = this.#conversations.get(key);
    if (conversation === undefined) {
      this.#parts.client.answer(key, frame, written);
      return;
    }
    const { result, error } = scanFrame(frame) ?? {};
    const range = result ?? error;
    const text = range === undefined ? '{}' : frame.slice(range.start, range.end);
    conversation.settle(result === undefined ? 'error' : 'result', text, written);
  }

  /** A request that the server has to answer. */
  async #passRequest(frame: McpFrame, id: string, key: string, what: Passed): Promise<void> {
    this.#open.pass(key, id, what);
    const problem = await this.#pass(frame);
    if (problem === undefined || !this.#open.dropPassed(key)) return;
    this.#parts.client.answer(
      key,
      errorFrame(
        id,
        CODE_SERVER_AWAY,
        `The MCP server behind this gateway cannot be reached: ${problem}. The request was not passed on.`,
      ),
    );
  }

  /** Gives the reason when the frame could not be passed on. */
  async #pass(frame: McpFrame): Promise<string | undefined> {
    const { upstream } = this.#parts;
    let forwarded = upstream.forward(frame);
    if (forwarded === 'not_connected') {
      const connection = await upstream.connect();
      if (!connection.connected) return connection.detail;
      forwarded = upstream.forward(frame);
      if (forwarded === 'not_connected') return 'it ended again';
    }
    if (forwarded === 'full') await upstream.drained();
    return undefined;
  }

  // ── From the server ──────────────────────────────────────────────────────────────────────────────────────

  #fromServer(frame: McpFrame, about: string | undefined): void {
    const { head, text } = frame;
    const { client } = this.#parts;
    const isResponse = head?.method === undefined && (head?.result ?? head?.error) !== undefined;
    if (head !== undefined && head.method === undefined && !isResponse) {
      this.#reportStray(text);
      return;
    }
    if (head?.method === 'notifications/tools/list_changed') this.#parts.server.tools.markStale();
    if (!isResponse || head?.id === undefined) {
      client.pass(frame, about);
      return;
    }
    const id = text.slice(head.id.start, head.id.end);
    const key = requestKey(id);
    const asked = key === undefined ? 'plain' : this.#open.answered(key);
    if (asked === 'owed_by_gateway') {
      this.#parts.report(
        `The server answered the call ${id}, which it was not asked under that id; it was dropped.`,
      );
    } else if (head.result !== undefined && asked !== 'plain') {
      const result = text.slice(head.result.start, head.result.end);
      if (asked === 'list') this.#showList(id, key, result);
      else {
        const shown = this.#tasks.greeting(asked, result);
        client.answer(key, shown === result ? frame.bytes : resultFrame(id, shown));
      }
    } else client.answer(key, frame.bytes);
    if (asked === 'handshake') this.#handshakeAnswered();
  }

  #handshakeAnswered(): void {
    const early = this.#earlyInitialized;
    this.#earlyInitialized = undefined;
    if (early === undefined) return;
    this.#inTurn(() => this.#initialized(early));
  }

  #reportStray(text: string): void {
    this.#parts.report(
      `The server printed a line that is not JSON-RPC, which was dropped: ${text.slice(0, STRAY_SHOWN_MAX)}`,
    );
  }

  /** Which arguments are ours depends on the binding, and that on the list: it is read first. */
  #showList(id: string, key: string | undefined, result: string): void {
    const { client, facts, report, server } = this.#parts;
    // An agent that is only observed is shown what its server shows.
    if (facts.mode === 'observe') {
      client.answer(key, resultFrame(id, result));
      return;
    }
    const isTaskable = (tool: string): boolean => this.#tasks.isOffered && !facts.isRead(tool);
    const shown = server
      .connect()
      .then(() => server.tools.shown(result, (tool) => facts.stampOf(tool), isTaskable));
    const unchanged = (cause: unknown): string => {
      report(`The list of tools is shown as it came: ${String(cause)}`);
      return result;
    };
    void shown.catch(unchanged).then((list) => client.answer(key, resultFrame(id, list)));
  }

  #unanswered(key: string, detail: string): void {
    const id = this.#open.takeOne(key);
    if (id === undefined) return;
    const message = `The MCP server behind this gateway gave no answer: ${detail}.`;
    this.#parts.client.answer(key, errorFrame(id, CODE_SERVER_ENDED, message));
  }

  #serverEnded(detail: string): void {
    const { client } = this.#parts;
    this.#parts.server.tools.markStale();
    this.#earlyInitialized = undefined;
    if (this.#ended.signal.aborted) return;
    this.#parts.report(`The server ended: ${detail}. It is started again when it is needed.`);
    const message = `The MCP server behind this gateway ended before it answered: ${detail}.`;
    for (const id of this.#open.takeFromServer()) {
      client.answer(requestKey(id), errorFrame(id, CODE_SERVER_ENDED, message));
    }
  }
}

function paramsOf({ head, text }: McpFrame): string {
  return head?.params === undefined ? '{}' : text.slice(head.params.start, head.params.end);
}

const STRAY_SHOWN_MAX = 120;
