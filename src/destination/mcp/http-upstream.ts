// One MCP server over Streamable HTTP, of either generation, shared by a client's pass-through traffic and by our own
// calls.
//
// There is no connection to hold: each message is a request of its own, and what is called connected here is a
// handshake that was agreed to. Nothing is "not sent" unless no request of it was begun (I1, D8): the end of a
// response's body is watched, and what ends without an answer is cut.

import { randomBytes } from 'node:crypto';
import { performance } from 'node:perf_hooks';
import type { JsonObject, JsonValue } from '../../core/canonical.ts';
import { memberText } from '../../core/json-frame.ts';
import type { AskReport, AskRequest, ConnectReport, LateReply, SendReport, SendRequest } from '../port.ts';
import { capReply, REPLY_MAX_BYTES } from '../reply-cap.ts';
import { undici } from '../undici.ts';
import { type McpFrame, readAnswer, readMcpFrame } from './frame.ts';
import { type Exchange, type ExchangeEnd, type ExchangeRequest, startExchange } from './http-exchange.ts';
import { FRAME_MAX_BYTES } from './line-framing.ts';
import type { Handshake } from './link.ts';
import {
  encodeHeaderValue,
  META,
  MODERN_VERSION,
  mirroredText,
  nameOfRequest,
  type ParamHeader,
  paramHeadersOf,
} from './mcp-headers.ts';
import { type CallEnd, OwnCalls } from './own-calls.ts';
import {
  handshakeOrder,
  isAgreement,
  isRefusedForVersion,
  metaAfter,
  ownParams,
  paramsAfter,
  withTasks,
} from './own-handshake.ts';
import { callParams, cancelParams, clientlessAnswer, requestText } from './own-lines.ts';
import { requestKey } from './request-key.ts';
import type { ForwardReport, McpUpstream, OwnHandshake, RequestOptions, UpstreamEnd } from './upstream.ts';

export interface HttpUpstreamOptions extends OwnHandshake {
  /** The destination's stable configured name. */
  readonly name: string;
  readonly url: string;
  /** Sent with each request, a credential for one. What the protocol itself says in a header, it says. */
  readonly headers?: Readonly<Record<string, string>>;
  /** How long one `connect` may take. Default 30 s. */
  readonly startTimeoutMs?: number;
  readonly replyMaxBytes?: number;
  readonly messageMaxBytes?: number;
  /** Which arguments go into headers, by tool; connections to one server tell each other what a list has said. */
  readonly paramHeaders?: ParamHeaders;
}

/** By tool; `unusable`: its schema asks for headers that cannot be. */
export type ParamHeaders = Map<string, readonly ParamHeader[] | 'unusable'>;

/** A response that refuses a request before it is looked at. */
export interface HttpRefusal {
  readonly status: number;
  /** It says how one is to make oneself known (RFC 9110, 11.6.1). */
  readonly hasChallenge: boolean;
}

export function openHttpUpstream(options: HttpUpstreamOptions): HttpUpstream {
  return new HttpUpstream(options);
}

const START_TIMEOUT_MS = 30_000;
/** What a server may take to agree to the end of a session; nothing depends on it. */
const GOODBYE_MS = 1_000;
const CONNECT_TIMEOUT_MS = 5_000;
/** Well below what servers use, so that no request is handed to a connection that is about to be closed. */
const KEEP_ALIVE_MS = 1_500;
/** Where the server has not said how long it wants to be left alone. */
const RETRY_DEFAULT_MS = 1_000;

const OF_THE_PROTOCOL = /^(accept|content-type|last-event-id|mcp-(session-id|protocol-version|method|name))$/;

/** Such a tool is none for a client over HTTP (specification 2026-07-28, streamable-http "Custom Headers"). */
const UNUSABLE =
  'its schema asks for arguments in HTTP headers (x-mcp-header) in a way that the protocol forbids';

/** How a message is sent: its headers differ by generation. */
interface Outgoing {
  readonly body: string | Buffer;
  readonly method: string | undefined;
  /** The raw params; what headers mirror is read from them. */
  readonly params: string;
  readonly mayLeave?: () => boolean;
  readonly onLeft?: () => void;
  /** `status`: of the response that carries it. */
  readonly onMessage: (frame: McpFrame, status: number) => void;
}

interface Ended {
  readonly end: ExchangeEnd;
  readonly detail: string;
}

export class HttpUpstream implements McpUpstream {
  readonly name: string;
  onLateReply?: (late: LateReply) => void;
  onFrame?: (frame: McpFrame, about?: string) => void;
  onUnanswered?: (key: string, detail: string) => void;
  onExit?: (end: UpstreamEnd) => void;
  onGarbage?: (line: Buffer, count: number) => void;

  readonly #options: HttpUpstreamOptions;
  #own: OwnHandshake;
  readonly #url: URL;
  readonly #agent = new (undici().Agent)({
    connect: { timeout: CONNECT_TIMEOUT_MS },
    keepAliveTimeout: KEEP_ALIVE_MS,
    keepAliveMaxTimeout: KEEP_ALIVE_MS,
    pipelining: 1,
    allowH2: false,
  });
  readonly #replyMaxBytes: number;
  readonly #idPrefix = `counterfoil:${randomBytes(4).toString('hex')}:`;
  readonly #calls: OwnCalls;
  readonly #exchanges = new Set<Exchange>();
  #idCount = 0;
  #garbageCount = 0;
  #phase: 'fresh' | 'agreed' | 'connected' = 'fresh';
  #handshake: Handshake | undefined;
  #sessionId: string | undefined;
  #version: string | undefined;
  #connecting: Promise<ConnectReport> | undefined;
  /** What is sent waits for the handshake's last message. */
  #gate: Promise<void> = Promise.resolve();
  #lastEnd = 'the MCP server has not been asked for anything';
  #isClosed = false;
  #isRetired = false;
  #listener: Exchange | undefined;
  readonly #paramHeaders: ParamHeaders;
  readonly #givenHeaders: Readonly<Record<string, string>>;
  #refusal: HttpRefusal | undefined;

  constructor(options: HttpUpstreamOptions) {
    this.name = options.name;
    this.#options = options;
    this.#own = options;
    this.#url = new URL(options.url);
    this.#paramHeaders = options.paramHeaders ?? (new Map() as ParamHeaders);
    // Of two spellings of one header both would be sent.
    const given = Object.entries(options.headers ?? {}).map(([name, value]) => [name.toLowerCase(), value]);
    this.#givenHeaders = Object.fromEntries(given.filter(([name = '']) => !OF_THE_PROTOCOL.test(name)));
    this.#replyMaxBytes = options.replyMaxBytes ?? REPLY_MAX_BYTES;
    this.#calls = new OwnCalls((late) =>
      this.onLateReply?.({ ...late, reply: capReply(late.reply, this.#replyMaxBytes) }),
    );
  }

  get handshake(): Handshake | undefined {
    return this.#handshake;
  }

  introduce(own: OwnHandshake): void {
    if (this.#handshake === undefined) this.#own = { ...this.#own, ...own };
  }

  /** The newest of them, for whoever is told that the server cannot be connected to. */
  get refusal(): HttpRefusal | undefined {
    return this.#refusal;
  }

  isConnected(): boolean {
    return this.#phase === 'connected' && !this.#isClosed && !this.#isRetired;
  }

  connect(): Promise<ConnectReport> {
    if (this.#isClosed || this.#isRetired)
      return Promise.resolve({ connected: false, detail: 'it was closed' });
    if (this.isConnected()) return Promise.resolve({ connected: true });
    this.#connecting ??= this.#connect().finally(() => {
      this.#connecting = undefined;
    });
    return this.#connecting;
  }

  callProblem(tool: string): string | undefined {
    return this.#isModern && this.#paramHeaders.get(tool) === 'unusable' ? UNUSABLE : undefined;
  }

  // ——— the client's traffic

  forward(frame: McpFrame): ForwardReport {
    if (this.#isClosed || this.#isRetired) return 'not_connected';
    const method = frame.head?.method;
    const isHandshake = method === 'initialize' || method === 'server/discover';
    if (this.#phase === 'fresh' && !isHandshake) return 'not_connected';
    if (method === 'notifications/initialized') {
      // The handshake was replayed for a client: it is complete.
      if (this.#phase === 'connected') return 'written';
      this.#phase = 'connected';
      this.#gate = this.#forwardMessage(frame).then(() => this.#listen());
    } else void this.#forwardMessage(frame);
    return 'written';
  }

  drained(): Promise<void> {
    return Promise.resolve();
  }

  async #forwardMessage(frame: McpFrame): Promise<void> {
    const { head, text } = frame;
    const method = head?.method;
    const id = head?.id && text.slice(head.id.start, head.id.end);
    const key = method === undefined ? undefined : requestKey(id);
    const params = head?.params === undefined ? '{}' : text.slice(head.params.start, head.params.end);
    let isAnswered = false;
    if (method !== 'initialize') await this.#gate;
    const { detail } = await this.#exchange({
      body: frame.bytes,
      method,
      params,
      onMessage: (given, status) => {
        const message = id !== undefined && isRefusal(given, status) ? underId(given, id) : given;
        const isAnswer = isResponse(message) && requestKey(idOf(message)) === key;
        if (isAnswer && key !== undefined && isAnswered) this.#drop(message.bytes);
        else {
          if (isAnswer) {
            isAnswered = true;
            this.#onForwardedAnswer(method, params, message);
          }
          this.#toClient(message, key);
        }
      },
    });
    if (key !== undefined && !isAnswered && !this.#isClosed) this.onUnanswered?.(key, detail);
  }

  #onForwardedAnswer(method: string | undefined, params: string, { head, text }: McpFrame): void {
    if (head?.result === undefined) return;
    const result = text.slice(head.result.start, head.result.end);
    if (method === 'initialize') this.#agreed({ method, params, result });
    if (method === 'server/discover' && this.#handshake === undefined) {
      this.#agreed({ method, params, result });
      this.#phase = 'connected';
    }
    if (method === 'tools/list') this.#noteTools(result);
  }

  #toClient(frame: McpFrame, about?: string): void {
    if (this.onFrame !== undefined) this.onFrame(frame, about);
    else {
      const answer = clientlessAnswer(frame);
      if (answer !== undefined)
        void this.#exchange({ body: answer, method: undefined, params: '{}', onMessage: () => {} });
    }
  }

  // ——— our own calls

  async send(request: SendRequest): Promise<SendReport> {
    if (!this.isConnected()) return { left: 'no', proof: 'not_connected', detail: this.#lastEnd };
    if (request.signal?.aborted) return refused('the wait was aborted before anything was sent');
    const problem = this.callProblem(request.tool);
    if (problem !== undefined) return refused(problem);
    await this.#gate;
    const id = this.#nextId();
    const meta = withTasks(
      this.#handshake,
      metaAfter(this.#handshake, request.meta),
      request.followsTasks === true,
    );
    const params = callParams(request.tool, request.payload, meta, request.more);
    const { operation, attempt, replyTimeoutMs: timeoutMs, signal } = request;
    return new Promise((resolve) => {
      let hasLeft = false;
      const exchange = this.#exchange({
        body: requestText(id, 'tools/call', params),
        method: 'tools/call',
        params,
        mayLeave: () => signal?.aborted !== true && request.mayLeave(),
        onLeft: () => {
          hasLeft = true;
          const onEnd = (end: CallEnd) => resolve(this.#toSendReport(end));
          this.#calls.open(id, { timeoutMs, signal, write: { operation, attempt }, onEnd });
        },
        onMessage: (frame, status) => this.#onOwnMessage(id, frame, request.via, status),
      });
      void exchange.then(({ end, detail }) => {
        if (end.left === 'no') {
          if (end.proof !== 'refused_by_sender') this.#lost(detail);
          resolve({ left: 'no', proof: end.proof, detail });
        } else if (hasLeft) this.#endCall(id, end, detail);
      });
    });
  }

  ask(request: AskRequest): Promise<AskReport> {
    const problem = this.callProblem(request.tool);
    if (problem !== undefined) return Promise.resolve({ answered: false, detail: problem });
    return this.request(
      'tools/call',
      callParams(request.tool, request.payload, undefined),
      request.timeoutMs,
    );
  }

  async request(
    method: string,
    params: string,
    timeoutMs: number,
    options: RequestOptions = {},
  ): Promise<AskReport> {
    if (!this.isConnected()) return { answered: false, detail: this.#lastEnd };
    await this.#gate;
    return this.#request(method, params, timeoutMs, options);
  }

  async #request(
    method: string,
    params: string,
    timeoutMs: number,
    { signal, about, asked }: RequestOptions = {},
  ): Promise<AskReport> {
    const id = this.#nextId();
    asked?.(id);
    const whole = paramsAfter(this.#handshake, method, params);
    let started: Exchange | undefined;
    const report = new Promise<AskReport>((resolve) => {
      const onEnd = (end: CallEnd) => {
        if (end.ended === 'reply') {
          if (method === 'tools/list') this.#noteTools(end.reply.body);
          // What passes to a client is not cut.
          resolve({
            answered: true,
            reply: about === undefined ? capReply(end.reply, this.#replyMaxBytes) : end.reply,
          });
          return;
        }
        // Only reads are cancelled: a write that has left is never called back.
        if (end.ended === 'timeout' || end.ended === 'aborted') {
          started?.abort(end.detail);
          if (!this.#isModern && !this.#isClosed) this.#notify('notifications/cancelled', cancelParams(id));
        }
        resolve({ answered: false, detail: end.detail });
      };
      this.#calls.open(id, { timeoutMs, signal, onEnd });
    });
    const outgoing = {
      body: requestText(id, method, whole),
      method,
      params: whole,
      onMessage: (frame: McpFrame, status: number) => this.#onOwnMessage(id, frame, about, status),
    };
    void this.#exchange(outgoing, (exchange) => {
      started = exchange;
    }).then(({ end, detail }) => {
      if (end.left === 'no') this.#lost(detail);
      this.#endCall(id, end, detail);
    });
    return report;
  }

  #onOwnMessage(id: string, frame: McpFrame, about: string | undefined, status: number): void {
    const { head } = frame;
    if (head === undefined || (head.duplicate && frame.text.includes(id))) {
      this.#calls.end(id, { ended: 'unreadable', detail: 'the reply is not JSON' });
      this.#drop(frame.bytes);
    } else if (!isResponse(frame)) this.#toClient(frame, about);
    else if (isRefusal(frame, status)) this.#calls.answer(id, readAnswer(frame));
    else if (decodedId(frame) !== id || !this.#calls.answer(id, readAnswer(frame))) this.#drop(frame.bytes);
  }

  /** The exchange is over: whatever was not answered on it will not be. */
  #endCall(id: string, end: ExchangeEnd, detail: string): void {
    if (end.left === 'no') this.#calls.end(id, { ended: 'cut', detail });
    else if (end.ended === 'whole') {
      // A stream that ends early is cut; a whole response without an answer in it cannot be read.
      this.#calls.end(id, { ended: end.isStream ? 'cut' : 'unreadable', detail });
    } else if (end.ended === 'too_long') this.#calls.end(id, { ended: 'unreadable', detail });
    else this.#calls.end(id, { ended: end.ended, detail });
  }

  async retire(): Promise<void> {
    this.#isRetired = true;
    await new Promise<void>((resolve) => this.#calls.whenIdle(resolve));
    await this.close();
  }

  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#lastEnd = 'it was closed';
    this.#calls.endAll('aborted', 'the connection was closed while it waited');
    for (const exchange of this.#exchanges) exchange.abort('the connection was closed');
    if (this.#sessionId !== undefined) await this.#sayGoodbye();
    await this.#agent.destroy();
  }

  // ——— handshake

  get #isModern(): boolean {
    return this.#handshake?.method === 'server/discover';
  }

  async #connect(): Promise<ConnectReport> {
    const deadlineMs = performance.now() + (this.#options.startTimeoutMs ?? START_TIMEOUT_MS);
    const known = this.#handshake?.method;
    const order = known === undefined ? handshakeOrder(this.#own.prefers) : [known];
    let detail = '';
    for (const method of order) {
      const leftMs = deadlineMs - performance.now();
      if (leftMs <= 0 || this.#isClosed) break;
      const problem = await this.#shakeHands(method, leftMs);
      if (problem === undefined) return { connected: true };
      detail = problem;
      // Nobody is there: the other generation would not be either.
      if (this.#phase === 'fresh' && this.#isUnreachable) break;
    }
    this.#lastEnd = `the MCP server's handshake failed: ${detail}`;
    return { connected: false, detail: this.#lastEnd };
  }

  #isUnreachable = false;

  async #shakeHands(method: Handshake['method'], timeoutMs: number): Promise<string | undefined> {
    const params = this.#handshake?.params ?? ownParams(method, this.#own);
    const before = this.#handshake;
    // The generation decides how a request is made.
    this.#handshake = { method, params, result: before?.result ?? '{}' };
    this.#sessionId = undefined;
    this.#version = undefined;
    this.#isUnreachable = false;
    const report = await this.#greet(method, params, timeoutMs);
    const isAgreed =
      report.answered && report.reply.kind !== 'protocol_error' && isAgreement(method, report.reply.body);
    if (!isAgreed) {
      this.#handshake = before;
      this.#phase = 'fresh';
      return report.answered ? `answered with ${report.reply.body.slice(0, 500)}` : report.detail;
    }
    this.#agreed({ method, params, result: report.reply.body });
    if (method === 'initialize') {
      await this.#exchange({
        body: '{"jsonrpc":"2.0","method":"notifications/initialized"}',
        method: 'notifications/initialized',
        params: '{}',
        onMessage: () => {},
      });
      this.#listen();
    }
    this.#phase = 'connected';
    return undefined;
  }

  async #greet(method: Handshake['method'], params: string, timeoutMs: number): Promise<AskReport> {
    const sinceMs = performance.now();
    const report = await this.#request(method, params, timeoutMs);
    const isRefused = method === 'server/discover' && report.answered && isRefusedForVersion(report.reply);
    if (!isRefused) return report;
    return this.#request(method, params, timeoutMs - (performance.now() - sinceMs));
  }

  #agreed(handshake: Handshake): void {
    this.#handshake = handshake;
    if (handshake.method === 'initialize') {
      const version = memberText(handshake.result, 'protocolVersion');
      this.#version = version === undefined ? undefined : String(JSON.parse(version));
    }
    this.#phase = 'agreed';
  }

  /** The server is not there, or knows the session no more: whoever comes next begins anew. */
  #lost(detail: string): void {
    this.#lastEnd = detail;
    this.#isUnreachable = true;
    this.#sessionId = undefined;
    this.#listener?.abort('the session is over');
    this.#listener = undefined;
    if (this.#phase === 'connected') this.#phase = 'fresh';
  }

  // ——— what the server says by itself

  /** The stream for messages that belong to no request; a server need not offer one. */
  #listen(): void {
    if (this.#isModern || this.#isClosed || this.#listener !== undefined) return;
    void this.#follow({
      lastEventId: undefined,
      onMessage: (frame) => this.#toClient(frame),
      isStanding: true,
    });
  }

  /** Reads a stream, and takes it up again where it broke off, for as long as the server lets us. */
  async #follow(stream: {
    lastEventId: string | undefined;
    retryMs?: number | undefined;
    readonly onMessage: (frame: McpFrame) => void;
    readonly isStanding: boolean;
    readonly isDone?: () => boolean;
  }): Promise<string> {
    let detail = 'the stream of the reply ended before the reply came';
    // What is followed has ended once already; the server says when it may be come back for (SEP-1699).
    let isAgain = !stream.isStanding;
    for (let quickEnds = 0; quickEnds < 5; ) {
      if (isAgain) await pause(stream.retryMs ?? RETRY_DEFAULT_MS);
      isAgain = true;
      if (this.#isClosed || stream.isDone?.() === true) return detail;
      let hasCome = false;
      const exchange = this.#start({
        method: 'GET',
        headers: {
          ...this.#sessionHeaders(),
          accept: 'text/event-stream',
          ...(stream.lastEventId === undefined ? {} : { 'last-event-id': stream.lastEventId }),
        },
        onMessage: (bytes) => {
          hasCome = true;
          stream.onMessage(readMcpFrame(bytes));
        },
        onEventId: (id, retryMs) => {
          if (id !== undefined && id !== '') stream.lastEventId = id;
          stream.retryMs = retryMs ?? stream.retryMs;
        },
      });
      if (stream.isStanding) this.#listener = exchange;
      const end = await exchange.done;
      if (end.left === 'no' || end.ended === 'aborted' || end.ended === 'too_long')
        return end.left === 'no' ? end.detail : detail;
      if (end.ended === 'whole' && !end.isStream)
        return `the stream could not be taken up again: HTTP ${end.status}`;
      if (end.ended === 'cut' && end.status === undefined) return end.detail;
      detail = end.ended === 'cut' ? end.detail : detail;
      quickEnds = hasCome ? 0 : quickEnds + 1;
    }
    return detail;
  }

  // ——— HTTP

  /** Sends one message and reads all that comes back for it. */
  async #exchange(outgoing: Outgoing, started?: (exchange: Exchange) => void): Promise<Ended> {
    const session = this.#sessionId;
    let lastEventId: string | undefined;
    let retryMs: number | undefined;
    let isAnswered = false;
    let status = 200;
    const onMessage = (frame: McpFrame): void => {
      if (isResponse(frame)) isAnswered = true;
      outgoing.onMessage(frame, status);
    };
    const exchange = this.#start({
      method: 'POST',
      headers: this.#headersOf(outgoing),
      body: outgoing.body,
      ...(outgoing.mayLeave === undefined ? {} : { mayLeave: outgoing.mayLeave }),
      ...(outgoing.onLeft === undefined ? {} : { onLeft: outgoing.onLeft }),
      onStart: (started, headers) => {
        status = started;
        if (status >= 400)
          this.#refusal = { status, hasChallenge: headers['www-authenticate'] !== undefined };
        const given = headers['mcp-session-id'];
        if (outgoing.method === 'initialize' && given !== undefined) this.#sessionId = given;
      },
      onMessage: (bytes) => onMessage(readMcpFrame(bytes)),
      onEventId: (id, wait) => {
        if (id !== undefined && id !== '') lastEventId = id;
        retryMs = wait ?? retryMs;
      },
    });
    started?.(exchange);
    const end = await exchange.done;
    if (end.left === 'maybe' && end.status === 404 && session !== undefined && session === this.#sessionId) {
      this.#lost('the MCP server knows the session no more (HTTP 404)');
    }
    const wasStream =
      end.left === 'maybe' && (end.ended === 'cut' || (end.ended === 'whole' && end.isStream));
    if (wasStream && !isAnswered && lastEventId !== undefined && !this.#isModern) {
      const isDone = (): boolean => isAnswered;
      const detail = await this.#follow({ lastEventId, retryMs, onMessage, isStanding: false, isDone });
      return { end, detail };
    }
    return { end, detail: detailOf(end) };
  }

  #start(request: Omit<ExchangeRequest, 'origin' | 'path' | 'messageMaxBytes'>): Exchange {
    const exchange = startExchange(this.#agent, {
      ...request,
      origin: this.#url.origin,
      path: `${this.#url.pathname}${this.#url.search}`,
      messageMaxBytes: this.#options.messageMaxBytes ?? FRAME_MAX_BYTES,
    });
    this.#exchanges.add(exchange);
    void exchange.done.then(() => this.#exchanges.delete(exchange));
    return exchange;
  }

  #headersOf({ method, params }: Outgoing): Record<string, string> {
    const common = {
      ...this.#givenHeaders,
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
    };
    const isModern = method === 'server/discover' || this.#isModern;
    if (!isModern) return { ...common, ...(method === 'initialize' ? {} : this.#sessionHeaders()) };
    const version = memberText(params, '_meta', META.protocolVersion);
    const name = method === undefined ? undefined : nameOfRequest(method, params);
    return {
      ...common,
      'mcp-protocol-version': version === undefined ? MODERN_VERSION : String(JSON.parse(version)),
      ...(method === undefined ? {} : { 'mcp-method': method }),
      ...(name === undefined ? {} : { 'mcp-name': encodeHeaderValue(name) }),
      ...(method === 'tools/call' && name !== undefined ? this.#mirrored(name, params) : {}),
    };
  }

  #sessionHeaders(): Record<string, string> {
    return {
      ...this.#givenHeaders,
      ...(this.#sessionId === undefined ? {} : { 'mcp-session-id': this.#sessionId }),
      ...(this.#version === undefined ? {} : { 'mcp-protocol-version': this.#version }),
    };
  }

  #mirrored(tool: string, params: string): Record<string, string> {
    const headers = this.#paramHeaders.get(tool);
    if (headers === undefined || headers === 'unusable' || headers.length === 0) return {};
    const args = JSON.parse(memberText(params, 'arguments') ?? '{}') as JsonValue;
    return Object.fromEntries(
      headers.flatMap(({ header, path }) => {
        const text = mirroredText(args, path);
        return text === undefined ? [] : [[header, encodeHeaderValue(text)]];
      }),
    );
  }

  /** Which arguments go into headers is said in the list, which is the same in both generations. */
  #noteTools(result: string): void {
    // A tool that is listed without them now may have had some.
    if (!result.includes('x-mcp-header') && this.#paramHeaders.size === 0) return;
    const { tools } = JSON.parse(result) as { readonly tools?: readonly JsonObject[] };
    for (const tool of tools ?? []) {
      const { name, inputSchema } = tool;
      if (typeof name !== 'string') continue;
      this.#paramHeaders.set(name, paramHeadersOf(inputSchema as JsonObject) ?? 'unusable');
    }
  }

  #notify(method: string, params: string): void {
    const body = `{"jsonrpc":"2.0","method":${JSON.stringify(method)},"params":${params}}`;
    void this.#exchange({ body, method, params, onMessage: () => {} });
  }

  async #sayGoodbye(): Promise<void> {
    const exchange = this.#start({ method: 'DELETE', headers: this.#sessionHeaders(), onMessage: () => {} });
    const timer = setTimeout(() => exchange.abort('no answer to the end of the session'), GOODBYE_MS);
    await exchange.done;
    clearTimeout(timer);
  }

  #nextId(): string {
    this.#idCount++;
    return `${this.#idPrefix}${this.#idCount}`;
  }

  #drop(bytes: Buffer): void {
    this.#garbageCount++;
    this.onGarbage?.(bytes, this.#garbageCount);
  }

  #toSendReport(end: CallEnd): SendReport {
    if (end.ended !== 'reply') return { left: 'maybe', ended: end.ended, detail: end.detail };
    const reply = capReply(end.reply, this.#replyMaxBytes);
    return { left: 'maybe', ended: 'reply', reply, detail: 'the MCP server answered' };
  }
}

/** An error in place of an answer that could not be given under the request's own id: it was refused at the door. */
function isRefusal(frame: McpFrame, status: number): boolean {
  const id = idOf(frame);
  return (
    status >= 400 && status < 500 && frame.head?.error !== undefined && (id === undefined || id === 'null')
  );
}

function underId({ head, text }: McpFrame, id: string): McpFrame {
  const error = head?.error === undefined ? '{}' : text.slice(head.error.start, head.error.end);
  return readMcpFrame(Buffer.from(`{"jsonrpc":"2.0","id":${id},"error":${error}}`));
}

function isResponse({ head }: McpFrame): boolean {
  return head !== undefined && head.method === undefined && (head.result ?? head.error) !== undefined;
}

function idOf({ head, text }: McpFrame): string | undefined {
  return head?.id && text.slice(head.id.start, head.id.end);
}

/** Servers may write our id with escapes. */
function decodedId(frame: McpFrame): string | undefined {
  const key = requestKey(idOf(frame));
  return key?.startsWith('"') === true ? String(JSON.parse(key)) : undefined;
}

function detailOf(end: ExchangeEnd): string {
  if (end.left === 'no') return end.detail;
  if (end.ended !== 'whole') return end.detail;
  if (end.isStream) return 'the stream of the reply ended before the reply came';
  const said = end.text.trim();
  return `it answered with HTTP ${end.status}${said === '' ? ' and no reply' : `: ${said}`}`;
}

function refused(detail: string): SendReport {
  return { left: 'no', proof: 'refused_by_sender', detail };
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, ms).unref();
  });
}
