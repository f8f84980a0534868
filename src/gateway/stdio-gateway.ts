// The MCP door over stdio, in front of one unmodified server: reads and everything else pass byte for byte,
// writes become operations, and the client is told the truth about them.

import type { Readable, Writable } from 'node:stream';
import type { JsonObject } from '../core/canonical.ts';
import { memberText } from '../core/json-frame.ts';
import type { ToolFacts } from '../core/contract.ts';
import { misconfiguredText, unrepresentableText } from '../core/wording.ts';
import { type McpFrame, readMcpFrame } from '../destination/mcp/frame.ts';
import { LineFraming } from '../destination/mcp/line-framing.ts';
import type { StdioUpstream } from '../destination/mcp/stdio-upstream.ts';
import type { Answer } from '../engine/answers.ts';
import type { Ledger } from '../engine/ledger.ts';
import type { Reached } from '../core/stopping-points.ts';
import { type AnswerDoor, answerFrame, errorFrame, resultFrame, textResult } from './answer-frame.ts';
import { readToolCall, type ToolCall } from './call.ts';
import { OpenRequests, type Passed, requestKey } from './open-requests.ts';
import { SchemaChecks } from './schema-checks.ts';
import { readStatusQuestion, statusResult } from './status-tool.ts';
import type { ServerFacts } from './tool-facts.ts';
import { type ListedTool, schemaWithout } from './tool-list.ts';
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

/** Requests of whose answers the gateway takes note. */
const PASSED: { readonly [method: string]: Passed } = { initialize: 'handshake', 'tools/list': 'list' };

/** One `tools/call` that the gateway has to answer or to pass on. */
interface OpenCall {
  /** The raw text of its id, and the key that it is open under. */
  readonly id: string;
  readonly key: string;
  readonly frame: McpFrame;
  /** Aborted when the client takes the call back or is gone. */
  readonly signal: AbortSignal;
  /** Set before anything is recorded for it: from then on a fault leaves open what has happened. */
  isProposed: boolean;
}

export class StdioGateway {
  readonly #parts: GatewayParts;
  readonly #schemas: SchemaChecks;
  readonly #open = new OpenRequests();
  /** Frames are handled in their order; a write does not hold up what comes behind it. */
  #queue: Promise<void> = Promise.resolve();
  #ended = false;
  #earlyInitialized: McpFrame | undefined;

  constructor(parts: GatewayParts) {
    this.#parts = parts;
    this.#schemas = new SchemaChecks(parts.report);
    parts.upstream.onFrame = (frame) => this.#fromServer(frame);
    parts.upstream.onExit = (exit) => this.#serverEnded(exit.detail);
    parts.upstream.onGarbage = (line, count) => {
      if (count === 1) this.#reportStray(line.toString('utf8'));
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
    this.#open.takeBackAll();
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
    const key = requestKey(id);
    if (head.duplicate) {
      // Readers differ on which of two equal members counts: the server could see a call where we see none.
      const known = id === undefined || key === undefined || this.#open.has(key) ? 'null' : id;
      this.#send(
        errorFrame(known, CODE_INVALID_REQUEST, 'A member of the message is there twice. Send it once.'),
      );
      return;
    }
    if (head.method === 'tools/call') {
      this.#receiveCall(frame, id, key);
      return;
    }
    if (head.method !== undefined && this.#open.isOwedByGateway(key)) {
      this.#refuseUsedId(id);
      return;
    }
    const params = head.params === undefined ? '' : text.slice(head.params.start, head.params.end);
    if (
      head.method === 'notifications/cancelled' &&
      this.#open.takeBack(requestKey(memberText(params, 'requestId')))
    ) {
      return;
    }
    if (head.method === 'notifications/initialized') await this.#initialized(frame);
    else if (head.method === undefined || id === undefined || key === undefined) await this.#pass(frame);
    else await this.#passRequest(frame, id, key, PASSED[head.method] ?? 'plain');
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

  /** A batch could hide a write among reads, and a line that we cannot read could be one to the server. */
  #refuseUnread(text: string): void {
    const message = text.trimStart().startsWith('[')
      ? 'Batches are not accepted: send each request by itself.'
      : 'The message is not a JSON-RPC object.';
    this.#send(
      errorFrame('null', text.trimStart().startsWith('[') ? CODE_INVALID_REQUEST : CODE_PARSE_ERROR, message),
    );
  }

  /** Answered under no id: under this one, it would be taken for the answer to the call that is open. */
  #refuseUsedId(id: string | undefined): void {
    this.#send(
      errorFrame(
        'null',
        CODE_INVALID_REQUEST,
        `The id ${id} belongs to a call that is still open: the second message with it was not handled.`,
      ),
    );
  }

  #receiveCall(frame: McpFrame, id: string | undefined, key: string | undefined): void {
    if (id === undefined) {
      this.#parts.report('A tools/call without an id was dropped: nobody could be told what became of it.');
      return;
    }
    if (key === undefined) {
      this.#send(
        errorFrame(
          'null',
          CODE_INVALID_REQUEST,
          'The id of a call must be a string or a whole number. The call was not handled.',
        ),
      );
      return;
    }
    if (this.#open.has(key)) {
      this.#refuseUsedId(id);
      return;
    }
    // Open from here on, so that a cancel which comes before anything is decided is not lost.
    const call: OpenCall = { id, key, frame, signal: this.#open.take(key), isProposed: false };
    // Not awaited: many calls are open at once.
    void this.#call(call)
      .catch((cause: unknown) => this.#callFault(call, cause))
      .finally(() => this.#open.settle(key, call.signal));
  }

  /** A request that the server has to answer. */
  async #passRequest(frame: McpFrame, id: string, key: string, what: Passed): Promise<void> {
    this.#open.pass(key, id, what);
    const problem = await this.#pass(frame);
    if (problem === undefined || !this.#open.dropPassed(key)) return;
    this.#send(
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

  #fromServer(frame: McpFrame): void {
    const { head, text } = frame;
    const isResponse = head?.method === undefined && (head?.result ?? head?.error) !== undefined;
    if (head !== undefined && head.method === undefined && !isResponse) {
      this.#reportStray(text);
      return;
    }
    if (head?.method === 'notifications/tools/list_changed') this.#parts.server.tools.markStale();
    if (!isResponse || head?.id === undefined) {
      this.#sendBytes(frame.bytes);
      return;
    }
    const id = text.slice(head.id.start, head.id.end);
    const key = requestKey(id);
    const asked = key === undefined ? 'plain' : this.#open.answered(key);
    if (asked === 'owed_by_gateway') {
      this.#parts.report(
        `The server answered the call ${id}, which it was not asked under that id; it was dropped.`,
      );
    } else if (asked === 'list' && head.result !== undefined) {
      void this.#showList(id, text.slice(head.result.start, head.result.end));
    } else this.#sendBytes(frame.bytes);
    const early = this.#earlyInitialized;
    if (asked !== 'handshake' || early === undefined) return;
    this.#earlyInitialized = undefined;
    void this.#initialized(early);
  }

  #reportStray(text: string): void {
    this.#parts.report(
      `The server printed a line that is not JSON-RPC, which was dropped: ${text.slice(0, STRAY_SHOWN_MAX)}`,
    );
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
    const message = `The MCP server behind this gateway ended before it answered: ${detail}.`;
    for (const id of this.#open.takeFromServer()) this.#send(errorFrame(id, CODE_SERVER_ENDED, message));
  }

  // ── Calls ────────────────────────────────────────────────────────────────────────────────────────────────

  async #call(open: OpenCall): Promise<void> {
    const { run, server } = this.#parts;
    const { head, text } = open.frame;
    const reading = readToolCall(head?.params && text.slice(head.params.start, head.params.end), run);
    if (!reading.ok) {
      this.#answerError(open, `The call cannot be read: ${reading.problem}.`);
      return;
    }
    const call = inUtf8(reading.call, open.frame);
    if (call.tool === server.tools.helperName) {
      await this.#status(open, call);
      return;
    }
    const { problem, tool } = await this.#listed(call.tool);
    if (tool === undefined) this.#unlisted(open, call.tool, problem);
    else if (await this.#isRead(call)) await this.#passCall(open);
    else await this.#write(open, call, tool);
  }

  /** Whether the call is known to change nothing: then it is the server's, whatever is in it. */
  async #isRead(call: ToolCall): Promise<boolean> {
    const { facts } = this.#parts;
    if (!call.arguments.ok) return facts.isRead(call.tool);
    const known = await this.#factsOf(call.tool, call.arguments.value);
    return known === undefined ? facts.isRead(call.tool) : known.class === 'read';
  }

  async #passCall({ frame, id, key, signal }: OpenCall): Promise<void> {
    if (!signal.aborted) await this.#passRequest(frame, id, key, 'plain');
  }

  async #write(open: OpenCall, call: ToolCall, tool: ListedTool): Promise<void> {
    const { facts, ledger, requester, server } = this.#parts;
    const { origin } = call;
    if (!call.arguments.ok) {
      this.#answerText(open, call.arguments.refusal);
      return;
    }
    if (!origin.ok) {
      this.#answerError(open, `The call cannot be read: ${origin.problem}.`);
      return;
    }
    const args = call.arguments.value;
    const obstacle = facts.obstacle(call.tool, args);
    if (obstacle !== undefined) {
      this.#answerText(open, misconfiguredText(call.tool, obstacle));
      return;
    }
    const stamp = facts.for(server.name, call.tool, args)?.stamp?.argument;
    const problem = await this.#schemaProblem(tool, args, stamp);
    // Taken back before anything was recorded: it never was.
    if (open.signal.aborted) return;
    open.isProposed = true;
    const answer = await ledger.write({
      destination: server.name,
      tool: call.tool,
      arguments: args,
      requester,
      toolDigest: tool.digest,
      replays: origin.replays,
      signal: open.signal,
      delivery: 'told',
      ...(origin.run === undefined ? {} : { run: origin.run }),
      ...(call.meta === undefined ? {} : { meta: call.meta }),
      ...(problem === undefined ? {} : { schemaProblem: problem }),
    });
    await this.#answer(open, answer, tool);
  }

  /** Facts as they are now: a class that an owner confirmed a moment ago counts, one that was revoked does not. */
  async #factsOf(tool: string, args: JsonObject): Promise<ToolFacts | undefined> {
    const { facts, ledger, server } = this.#parts;
    const known = facts.for(server.name, tool, args);
    if (known?.classSource !== 'nobody' && known?.classSource !== 'owner') return known;
    try {
      facts.confirm(await ledger.rules());
    } catch {
      // The store is down: the write will be answered so. What was confirmed before is not to be relied on.
      facts.confirm([]);
    }
    return facts.for(server.name, tool, args);
  }

  /** The tool as it is listed now; `problem`: why the server has not listed anything. */
  async #listed(
    tool: string,
  ): Promise<{ readonly tool?: ListedTool | undefined; readonly problem?: string | undefined }> {
    const { server } = this.#parts;
    const known = server.tools.get(tool);
    if (known !== undefined && server.isConnected()) return { tool: known };
    if (known === undefined) server.tools.markStale();
    // Where the server is away, what it listed before is what is known; the write waits for it then.
    const connection = await server.connect();
    return {
      tool: server.tools.get(tool) ?? known,
      problem: connection.connected ? undefined : connection.detail,
    };
  }

  /** Nobody knows what it would do, so that it is not passed on. */
  #unlisted(open: OpenCall, tool: string, problem: string | undefined): void {
    const { server } = this.#parts;
    this.#answerText(
      open,
      server.tools.isKnown
        ? `NOT SENT — ${server.name} lists no tool ${quoted(tool)}. Nothing was recorded. Correct and call again.`
        : `NOT SENT — the tools of ${server.name} are not known yet: ${quoted(problem ?? 'it has listed none')}. Nothing was recorded. Tell the user; it may be called again.`,
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

  async #answer(open: OpenCall, answer: Answer, tool: ListedTool): Promise<void> {
    const { ledger, reached } = this.#parts;
    const frame = await answerFrame(open.id, answer, this.#door(tool));
    reached('before_answer');
    const operation = answer.kind === 'not_recorded' ? undefined : answer.operation;
    if (open.signal.aborted || this.#ended) {
      if (operation !== undefined) ledger.undelivered(operation.id);
      return;
    }
    this.#send(frame, (isWritten) => {
      if (operation === undefined) return;
      if (!isWritten) ledger.undelivered(operation.id);
      else if (operation.stage === 'closed') ledger.delivered(operation.id);
    });
    reached('answered');
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

  async #status(open: OpenCall, call: ToolCall): Promise<void> {
    const { ledger, server, where } = this.#parts;
    const question = call.arguments.ok
      ? readStatusQuestion(call.arguments.value)
      : { ok: false as const, problem: 'its arguments cannot be read' };
    if (!question.ok) {
      this.#answerText(open, `The question does not fit: ${question.problem}.`);
      return;
    }
    let result: string | undefined;
    try {
      const operation = await ledger.status(question.operation, question.waitMs);
      const reading = operation && (await ledger.readings.reading(operation));
      result = reading && statusResult(reading, { helperTool: server.tools.helperName, where });
    } catch (cause) {
      this.#parts.report(`An operation could not be read: ${describe(cause)}`);
      this.#answerText(
        open,
        'The ledger cannot be read now. What is recorded stays recorded; ask again later.',
      );
      return;
    }
    if (result === undefined) {
      this.#answerText(
        open,
        `No operation ${quoted(question.operation)} is recorded here: it never reached this ledger.`,
      );
    } else this.#send(resultFrame(open.id, result));
  }

  #callFault(open: OpenCall, cause: unknown): void {
    this.#parts.report(`A call ended in a fault of the gateway: ${describe(cause)}`);
    this.#answerText(
      open,
      open.isProposed
        ? 'OUTCOME UNKNOWN — the gateway met a fault of its own. Do not repeat this and do not do it another way. Tell the user.'
        : 'NOT RECORDED, NOT SENT — the gateway met a fault of its own before that. Do not do it another way. Tell the user.',
    );
  }

  // ── To the client ────────────────────────────────────────────────────────────────────────────────────────

  #answerText(open: OpenCall, words: string): void {
    if (!open.signal.aborted) this.#send(resultFrame(open.id, textResult(words, true)));
  }

  #answerError(open: OpenCall, message: string): void {
    if (!open.signal.aborted) this.#send(errorFrame(open.id, CODE_INVALID_PARAMS, message));
  }

  /** @param written told whether the operating system has taken it */
  #send(frame: string, written: (isWritten: boolean) => void = () => {}): void {
    const { output } = this.#parts;
    if (!output.writable) written(false);
    else output.write(`${frame}\n`, (cause) => written(cause === undefined || cause === null));
  }

  #sendBytes(bytes: Buffer): void {
    if (this.#parts.output.writable) this.#parts.output.write(Buffer.concat([bytes, LINE_FEED]));
  }
}

const LINE_FEED = Buffer.from('\n');
const STRAY_SHOWN_MAX = 120;
const QUOTED_MAX = 160;

function quoted(text: string): string {
  return JSON.stringify(text.slice(0, QUOTED_MAX));
}

function describe(cause: unknown): string {
  return cause instanceof Error ? cause.message : String(cause);
}

/** Bytes that are no text were read as U+FFFD: a write would be recorded, and sent, as something else. */
function inUtf8(call: ToolCall, { bytes, text }: McpFrame): ToolCall {
  if (!text.includes('\uFFFD') || Buffer.from(text, 'utf8').equals(bytes)) return call;
  return {
    ...call,
    arguments: { ok: false, refusal: unrepresentableText('They hold bytes that are not UTF-8.') },
  };
}
