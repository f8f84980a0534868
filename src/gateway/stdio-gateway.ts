// The MCP door over stdio, in front of one unmodified server: reads and everything else pass byte for byte,
// writes become operations, and the client is told the truth about them.

import type { Readable, Writable } from 'node:stream';
import { memberText } from '../core/json-frame.ts';
import { type McpFrame, readMcpFrame } from '../destination/mcp/frame.ts';
import { LineFraming } from '../destination/mcp/line-framing.ts';
import type { StdioUpstream } from '../destination/mcp/stdio-upstream.ts';
import { errorFrame, resultFrame } from './answer-frame.ts';
import { OpenRequests, type Passed, requestKey } from './open-requests.ts';
import { type CallParts, type OpenCall, ToolCalls } from './tool-calls.ts';

export interface GatewayParts extends CallParts {
  readonly upstream: StdioUpstream;
  readonly input: Readable;
  readonly output: Writable;
}

/** Our own error codes: outside the ranges that JSON-RPC and MCP keep for themselves. */
const CODE_SERVER_AWAY = 7001;
const CODE_SERVER_ENDED = 7002;
const CODE_INVALID_REQUEST = -32600;
const CODE_PARSE_ERROR = -32700;

/** Requests of whose answers the gateway takes note. */
const PASSED: ReadonlyMap<string, Passed> = new Map([
  ['initialize', 'handshake'],
  ['tools/list', 'list'],
]);

export class StdioGateway {
  readonly #parts: GatewayParts;
  readonly #toolCalls: ToolCalls;
  readonly #open = new OpenRequests();
  /** Frames are handled in their order; a write does not hold up what comes behind it. */
  #queue: Promise<void> = Promise.resolve();
  readonly #calls = new Set<Promise<void>>();
  /** Aborted once the client has closed its end. */
  readonly #ended = new AbortController();
  #earlyInitialized: McpFrame | undefined;

  constructor(parts: GatewayParts) {
    this.#parts = parts;
    this.#toolCalls = new ToolCalls(parts, {
      pass: ({ frame, id, key }) => this.#passRequest(frame, id, key, 'plain'),
      send: (frame, written) => this.#send(frame, written),
      ended: this.#ended.signal,
    });
    parts.upstream.onFrame = (frame) => this.#fromServer(frame);
    parts.upstream.onExit = (exit) => this.#serverEnded(exit.detail);
    parts.upstream.onGarbage = (line, count) => {
      if (count === 1) this.#reportStray(line.toString('utf8'));
    };
  }

  /**
   * Serves until the client has closed its end and every call that it had made is answered: a closed end ends the
   * wait for news, not the work (D10).
   */
  async serve(): Promise<void> {
    const { input } = this.#parts;
    const framing = new LineFraming({
      // Copied at once: the bytes may be a view of a chunk that is used again.
      onFrame: (bytes) => {
        const frame = readMcpFrame(Buffer.from(bytes));
        this.#inTurn(() => this.#fromClient(frame));
      },
      onUnreadable: () =>
        this.#send(errorFrame('null', CODE_PARSE_ERROR, 'The message is longer than this gateway reads.')),
    });
    for await (const chunk of input) {
      framing.push(chunk as Buffer);
      await this.#queue;
    }
    await this.#queue;
    this.#ended.abort();
    await Promise.allSettled([...this.#calls]);
  }

  #inTurn(work: () => Promise<void>): void {
    this.#queue = this.#queue.then(work).catch((cause: unknown) => {
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
    else await this.#passRequest(frame, id, key, PASSED.get(head.method) ?? 'plain');
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
    const work: Promise<void> = this.#toolCalls.call(call).finally(() => {
      this.#open.settle(key, call.signal);
      this.#calls.delete(work);
    });
    this.#calls.add(work);
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
      this.#showList(id, text.slice(head.result.start, head.result.end));
    } else this.#sendBytes(frame.bytes);
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
  #showList(id: string, result: string): void {
    const { facts, report, server } = this.#parts;
    // An agent that is only observed is shown what its server shows.
    if (facts.mode === 'observe') {
      this.#send(resultFrame(id, result));
      return;
    }
    const shown = server.connect().then(() => server.tools.shown(result, (tool) => facts.stampOf(tool)));
    const unchanged = (cause: unknown): string => {
      report(`The list of tools is shown as it came: ${String(cause)}`);
      return result;
    };
    void shown.catch(unchanged).then((list) => this.#send(resultFrame(id, list)));
  }

  #serverEnded(detail: string): void {
    this.#parts.server.tools.markStale();
    this.#earlyInitialized = undefined;
    if (this.#ended.signal.aborted) return;
    this.#parts.report(`The server ended: ${detail}. It is started again when it is needed.`);
    const message = `The MCP server behind this gateway ended before it answered: ${detail}.`;
    for (const id of this.#open.takeFromServer()) this.#send(errorFrame(id, CODE_SERVER_ENDED, message));
  }

  // ── To the client ────────────────────────────────────────────────────────────────────────────────────────

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
