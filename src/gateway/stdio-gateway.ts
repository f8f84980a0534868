// The MCP door over stdio, in front of one unmodified server: reads and everything else pass byte for byte,
// writes become operations, and the client is told the truth about them.

import type { Readable, Writable } from 'node:stream';
import type { JsonObject } from '../core/canonical.ts';
import { memberText } from '../core/json-frame.ts';
import type { ToolFacts } from '../core/contract.ts';
import { answerText, misconfiguredText, sentenceOf, unrepresentableText } from '../core/wording.ts';
import { type McpFrame, readMcpFrame } from '../destination/mcp/frame.ts';
import { LineFraming } from '../destination/mcp/line-framing.ts';
import type { StdioUpstream } from '../destination/mcp/stdio-upstream.ts';
import { schemaWithout, SchemaChecks } from './tool-list.ts';
import type { Answer } from '../engine/answers.ts';
import type { Ledger } from '../engine/ledger.ts';
import type { Reached } from '../core/stopping-points.ts';
import {
  type AnswerDoor,
  answerFrame,
  errorFrame,
  operationMeta,
  resultFrame,
  textResult,
} from './answer-frame.ts';
import { readToolCall, type ToolCall } from './call.ts';
import { readStatusQuestion } from './status-tool.ts';
import type { ServerFacts } from './tool-facts.ts';
import type { ListedTool } from './tool-list.ts';
import type { GuardedServer } from './upstream.ts';

export interface GatewayParts {
  readonly ledger: Ledger;
  readonly upstream: StdioUpstream;
  readonly server: GuardedServer;
  readonly facts: ServerFacts;
  readonly requester: string;
  readonly run: string | undefined;
  /** Where a person can look, in words or as an address. */
  readonly where: string;
  readonly input: Readable;
  readonly output: Writable;
  readonly report: (message: string) => void;
  readonly reached: Reached;
}

/** Our own error codes: outside the ranges that JSON-RPC and MCP keep for themselves. */
const CODE_SERVER_AWAY = 7001;
const CODE_SERVER_ENDED = 7002;
const CODE_INVALID_REQUEST = -32600;
const CODE_PARSE_ERROR = -32700;
const CODE_INVALID_PARAMS = -32602;

export class StdioGateway {
  readonly #parts: GatewayParts;
  readonly #schemas: SchemaChecks;
  /** Requests of the client that the server has to answer, by the raw text of their ids. */
  readonly #atServer = new Set<string>();
  /** Those among them that list tools: their answers are shown changed. */
  readonly #lists = new Set<string>();
  /** Writes that a call of the client is open for. */
  readonly #writes = new Map<string, AbortController>();
  /** Frames are handled in their order; a write does not hold up what comes behind it. */
  #queue: Promise<void> = Promise.resolve();
  #ended = false;

  constructor(parts: GatewayParts) {
    this.#parts = parts;
    this.#schemas = new SchemaChecks(parts.report);
    parts.upstream.onFrame = (frame) => this.#fromServer(frame);
    parts.upstream.onExit = (exit) => this.#serverEnded(exit.detail);
    parts.upstream.onGarbage = (line, count) => {
      if (count === 1) {
        parts.report(
          `The server printed a line that is not JSON-RPC, which was dropped: ${line.toString('utf8').slice(0, 120)}`,
        );
      }
    };
  }

  /** Serves until the client closes its end. */
  async serve(): Promise<void> {
    const { input } = this.#parts;
    const framing = new LineFraming({
      onFrame: (bytes) => this.#enqueue(Buffer.from(bytes)),
      onUnreadable: () =>
        this.#send(errorFrame('null', CODE_PARSE_ERROR, 'The message is longer than this gateway reads.')),
    });
    for await (const chunk of input) {
      framing.push(chunk as Buffer);
      await this.#queue;
    }
    await this.#queue;
    this.#ended = true;
    for (const controller of this.#writes.values()) controller.abort();
  }

  #enqueue(bytes: Buffer): void {
    this.#queue = this.#queue
      .then(() => this.#fromClient(readMcpFrame(bytes)))
      .catch((cause: unknown) => {
        this.#parts.report(`A message of the client could not be handled: ${String(cause)}`);
      });
  }

  // ── From the client ──────────────────────────────────────────────────────────────────────────────────────

  async #fromClient(frame: McpFrame): Promise<void> {
    const { head, text } = frame;
    if (head === undefined) {
      this.#refuseUnread(text);
      return;
    }
    const id = head.id === undefined ? undefined : text.slice(head.id.start, head.id.end);
    if (head.method === 'tools/call') {
      if (head.duplicate)
        this.#send(errorFrame(id ?? 'null', CODE_INVALID_REQUEST, 'A member of the request is there twice.'));
      else if (id === undefined)
        this.#parts.report('A tools/call without an id was dropped: nobody could be told what became of it.');
      else {
        const params = head.params === undefined ? undefined : text.slice(head.params.start, head.params.end);
        // Not awaited: many calls are open at once.
        void this.#call(id, params, frame).catch((cause: unknown) => this.#callFault(id, cause));
      }
      return;
    }
    if (head.duplicate && head.method === undefined && text.includes('tools/call')) {
      this.#send(errorFrame(id ?? 'null', CODE_INVALID_REQUEST, 'A member of the request is there twice.'));
      return;
    }
    if (
      head.method === 'notifications/cancelled' &&
      this.#cancelled(head.params === undefined ? '' : text.slice(head.params.start, head.params.end))
    ) {
      return;
    }
    if (head.method === 'tools/list' && id !== undefined) this.#lists.add(id);
    await this.#pass(frame, head.method === undefined ? undefined : id);
    if (head.method === 'notifications/initialized') {
      this.#parts.server.clientGreeted();
      void this.#parts.server.connect();
    }
  }

  /** A batch could hide a write among reads, and a line that we cannot read could be one to the server. */
  #refuseUnread(text: string): void {
    const message = text.trimStart().startsWith('[')
      ? 'Batches are not accepted: send each request by itself.'
      : 'The message is not a JSON-RPC object.';
    this.#send(
      errorFrame('null', text.trimStart().startsWith('[') ? CODE_INVALID_REQUEST : CODE_PARSE_ERROR, message),
    );
  }

  /** True when the cancelled request is a write of ours: the server knows nothing of its id. */
  #cancelled(params: string): boolean {
    const requestId = memberText(params, 'requestId');
    const controller = requestId === undefined ? undefined : this.#writes.get(requestId);
    controller?.abort();
    return controller !== undefined;
  }

  /** @param id the raw id of a request, which must be answered by somebody */
  async #pass(frame: McpFrame, id: string | undefined): Promise<void> {
    const { upstream } = this.#parts;
    if (id !== undefined) this.#atServer.add(id);
    let forwarded = upstream.forward(frame);
    if (forwarded === 'not_connected') {
      const connection = await upstream.connect();
      forwarded = connection.connected ? upstream.forward(frame) : 'not_connected';
      if (forwarded === 'not_connected') {
        const detail = connection.connected ? 'it ended again' : connection.detail;
        if (id !== undefined && this.#atServer.delete(id)) {
          this.#lists.delete(id);
          this.#send(
            errorFrame(
              id,
              CODE_SERVER_AWAY,
              `The MCP server behind this gateway cannot be reached: ${detail}. The request was not passed on.`,
            ),
          );
        }
        return;
      }
    }
    if (forwarded === 'full') await upstream.drained();
  }

  // ── From the server ──────────────────────────────────────────────────────────────────────────────────────

  #fromServer(frame: McpFrame): void {
    const { head, text } = frame;
    if (head?.method === 'notifications/tools/list_changed') this.#parts.server.tools.markStale();
    const id =
      head?.id === undefined || head.method !== undefined
        ? undefined
        : text.slice(head.id.start, head.id.end);
    if (id !== undefined) {
      this.#atServer.delete(id);
      if (this.#lists.delete(id) && head?.result !== undefined) {
        void this.#showList(id, text.slice(head.result.start, head.result.end));
        return;
      }
    }
    this.#sendBytes(frame.bytes);
  }

  async #showList(id: string, result: string): Promise<void> {
    const { facts, server } = this.#parts;
    // Which arguments are ours depends on the binding, and that on the list: it is read first.
    await server.connect();
    this.#send(
      resultFrame(
        id,
        server.tools.shown(result, (tool) => facts.stampOf(tool)),
      ),
    );
  }

  #serverEnded(detail: string): void {
    this.#parts.server.tools.markStale();
    if (this.#ended) return;
    this.#parts.report(`The server ended: ${detail}. It is started again when it is needed.`);
    for (const id of this.#atServer) {
      this.#send(
        errorFrame(
          id,
          CODE_SERVER_ENDED,
          `The MCP server behind this gateway ended before it answered: ${detail}.`,
        ),
      );
    }
    this.#atServer.clear();
    this.#lists.clear();
  }

  // ── Calls ────────────────────────────────────────────────────────────────────────────────────────────────

  async #call(id: string, params: string | undefined, frame: McpFrame): Promise<void> {
    const { requester, run, server } = this.#parts;
    const reading = readToolCall(params, run);
    if (!reading.ok) {
      this.#send(errorFrame(id, CODE_INVALID_PARAMS, `The call cannot be read: ${reading.problem}.`));
      return;
    }
    const { call } = reading;
    if (call.tool === server.tools.helperName) {
      await this.#status(id, call);
      return;
    }
    const tool = await this.#listed(call.tool);
    if (tool === undefined) {
      // Nobody knows what it would do; the server's own answer tells the caller, where there is a server.
      await this.#unlisted(id, call.tool);
      return;
    }
    if (!call.arguments.ok) {
      // A read that the server may understand is the server's to judge.
      if (this.#parts.facts.isRead(call.tool)) await this.#pass(frame, id);
      else this.#send(resultFrame(id, textResult(unrepresentableText(call.arguments.reason), true)));
      return;
    }
    const args = call.arguments.value;
    const known = await this.#factsOf(call.tool, args);
    if (known?.class === 'read' || (known === undefined && this.#parts.facts.isRead(call.tool))) {
      await this.#pass(frame, id);
      return;
    }
    const obstacle = this.#parts.facts.obstacle(call.tool);
    if (obstacle !== undefined) {
      this.#send(resultFrame(id, textResult(misconfiguredText(call.tool, obstacle), true)));
      return;
    }
    const controller = new AbortController();
    this.#writes.set(id, controller);
    try {
      const stamp = known?.stamp?.argument;
      const problem = await this.#schemaProblem(tool, args, stamp);
      const answer = await this.#parts.ledger.write({
        destination: server.name,
        tool: call.tool,
        arguments: args,
        requester,
        toolDigest: tool.digest,
        replays: call.replays,
        signal: controller.signal,
        delivery: 'told',
        ...(call.run === undefined ? {} : { run: call.run }),
        ...(call.meta === undefined ? {} : { meta: call.meta }),
        ...(problem === undefined ? {} : { schemaProblem: problem }),
      });
      await this.#answer(id, answer, tool, controller.signal);
    } finally {
      this.#writes.delete(id);
    }
  }

  /** Facts as they are now: a class that an owner confirmed a moment ago counts, one that was revoked does not. */
  async #factsOf(tool: string, args: JsonObject): Promise<ToolFacts | undefined> {
    const { facts, ledger, server } = this.#parts;
    const known = facts.for(server.name, tool, args);
    if (known?.classSource !== 'nobody' && known?.classSource !== 'owner') return known;
    try {
      const rules = await ledger.rules();
      facts.confirm(rules.filter((rule) => rule.destination === server.name && rule.revokedAt === undefined));
    } catch {
      // The store is down: the write will be answered so. What was confirmed before is not to be relied on.
      facts.confirm([]);
    }
    return facts.for(server.name, tool, args);
  }

  async #listed(tool: string): Promise<ListedTool | undefined> {
    const { server } = this.#parts;
    const known = server.tools.get(tool);
    if (known !== undefined && server.isConnected()) return known;
    if (known === undefined) server.tools.markStale();
    // Where the server is away, what it listed before is what is known; the write waits for it then.
    await server.connect();
    return server.tools.get(tool) ?? known;
  }

  async #unlisted(id: string, tool: string): Promise<void> {
    const { server } = this.#parts;
    const why = server.tools.isKnown
      ? `${server.name} lists no tool ${JSON.stringify(tool.slice(0, 80))}`
      : `${server.name} cannot be reached, and its tools are not known yet`;
    this.#send(
      resultFrame(
        id,
        textResult(
          `NOT SENT — ${why}. Nothing was recorded. ${server.tools.isKnown ? 'Correct and call again.' : 'Tell the user; it may be called again.'}`,
          true,
        ),
      ),
    );
  }

  async #schemaProblem(
    tool: ListedTool,
    args: JsonObject,
    stamp: string | undefined,
  ): Promise<string | undefined> {
    if (tool.inputSchema === undefined) return undefined;
    const schema = stamp === undefined ? tool.inputSchema : schemaWithout(tool.inputSchema, stamp);
    const given =
      stamp === undefined
        ? args
        : Object.fromEntries(Object.entries(args).filter(([name]) => name !== stamp));
    return this.#schemas.problem(schema, given, `the tool ${tool.name}`);
  }

  async #answer(id: string, answer: Answer, tool: ListedTool, signal: AbortSignal): Promise<void> {
    const { ledger, reached } = this.#parts;
    const frame = await answerFrame(id, answer, this.#door(tool));
    reached('before_answer');
    const operation = answer.kind === 'not_recorded' ? undefined : answer.operation;
    if (signal.aborted || this.#ended || !this.#parts.output.writable) {
      if (operation !== undefined) ledger.undelivered(operation.id);
      return;
    }
    this.#send(frame);
    reached('answered');
    if (operation?.stage === 'closed') ledger.delivered(operation.id);
  }

  #door(tool: ListedTool): AnswerDoor {
    return {
      helperTool: this.#parts.server.tools.helperName,
      where: this.#parts.where,
      fits: async (structured) => {
        if (tool.outputSchema === undefined) return true;
        if (structured === undefined) return false;
        return (
          (await this.#schemas.problem(tool.outputSchema, structured, `the results of ${tool.name}`)) ===
          undefined
        );
      },
    };
  }

  async #status(id: string, call: ToolCall): Promise<void> {
    const { ledger, server, where } = this.#parts;
    const question = call.arguments.ok
      ? readStatusQuestion(call.arguments.value)
      : { ok: false as const, problem: call.arguments.reason };
    if (!question.ok) {
      this.#send(resultFrame(id, textResult(`The question does not fit: ${question.problem}.`, true)));
      return;
    }
    const operation = await ledger.status(question.operation, question.waitMs);
    if (operation === undefined) {
      this.#send(
        resultFrame(
          id,
          textResult(
            `No operation ${JSON.stringify(question.operation.slice(0, 60))} is recorded here: it never reached this gateway.`,
            true,
          ),
        ),
      );
      return;
    }
    const reading = await ledger.readings.reading(operation);
    const words = {
      helperTool: server.tools.helperName,
      where,
      ...(reading.target === undefined ? {} : { target: reading.target }),
      ...(reading.quote === undefined ? {} : { quote: reading.quote }),
    };
    const isLanded =
      operation.stage === 'closed' && (operation.effect === 'accepted' || operation.effect === 'verified');
    const told = isLanded ? `${sentenceOf(operation, words)} (${operation.id})` : '';
    const content = [
      {
        type: 'text',
        text: isLanded ? `${told} ${answerText(operation, words)}` : answerText(operation, words),
      },
    ];
    this.#send(resultFrame(id, JSON.stringify({ content, ...operationMeta(operation) })));
  }

  #callFault(id: string, cause: unknown): void {
    const what = cause instanceof Error ? cause.message : String(cause);
    this.#parts.report(`A call ended in a fault of the gateway: ${what}`);
    this.#send(
      resultFrame(
        id,
        textResult(
          'OUTCOME UNKNOWN — the gateway met a fault of its own. Do not repeat this and do not do it another way. Tell the user.',
          true,
        ),
      ),
    );
  }

  // ── To the client ────────────────────────────────────────────────────────────────────────────────────────

  #send(frame: string): void {
    if (this.#parts.output.writable) this.#parts.output.write(`${frame}\n`);
  }

  #sendBytes(bytes: Buffer): void {
    if (this.#parts.output.writable) this.#parts.output.write(Buffer.concat([bytes, LINE_FEED]));
  }
}

const LINE_FEED = Buffer.from('\n');
