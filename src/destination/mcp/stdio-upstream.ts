// One unmodified MCP server over stdio, shared by a client's pass-through traffic and by our own calls.
//
// A client's frames go through as bytes. Our own requests carry ids that no client can have, and their answers
// are never shown to it. Nothing is "not sent" here unless `write` was never called for it (I1, D8): a child
// that ends after the write may have acted on it.

import { randomBytes } from 'node:crypto';
import { performance } from 'node:perf_hooks';
import { watchAbort } from '../abort-watch.ts';
import type { AskReport, AskRequest, ConnectReport, LateReply, SendReport, SendRequest } from '../port.ts';
import { capReply, REPLY_MAX_BYTES } from '../reply-cap.ts';
import { type McpFrame, readAnswer, readMcpFrame } from './frame.ts';
import type { UnreadableLine } from './line-framing.ts';
import { type Handshake, type Link, newLink, phaseSettled, retire, settlePhase } from './link.ts';
import { type CallEnd, OwnCalls } from './own-calls.ts';
import {
  handshakeOrder,
  isAgreement,
  metaAfter,
  ownParams,
  paramsAfter,
  withTasks,
} from './own-handshake.ts';
import { callParams, cancelLine, clientlessAnswer, INITIALIZED_LINE, requestLine } from './own-lines.ts';
import { requestKey } from './request-key.ts';
import { type ChildExit, StdioChild, type StdioCommand } from './stdio-child.ts';
import type { ForwardReport, McpUpstream, OwnHandshake, RequestOptions } from './upstream.ts';

export interface StdioUpstreamOptions extends StdioCommand, OwnHandshake {
  /** The destination's stable configured name. */
  readonly name: string;
  /** How long one `connect` may take, start and handshake together. Default 30 s. */
  readonly startTimeoutMs?: number;
  /** Longest reply body that is kept whole; a longer one is cut and says so. Default 16 MiB. */
  readonly replyMaxBytes?: number;
  /** Longest frame that is read at all. Default 64 MiB. */
  readonly frameMaxBytes?: number;
  /** How long the child has to end after its input was closed, and again after SIGTERM. Default 2 s. */
  readonly killGraceMs?: number;
}

export function openStdioUpstream(options: StdioUpstreamOptions): StdioUpstream {
  return new StdioUpstream(options);
}

const START_TIMEOUT_MS = 30_000;
const KILL_GRACE_MS = 2_000;
/** A server of the session generation may not answer what it does not know. */
const PROBE_MS = 3_000;
const LINE_FEED = Buffer.from('\n');

/** Why nothing can be handed over now, in the words of a `SendReport`. */
interface Obstacle {
  readonly proof: 'not_connected' | 'spawn_failed';
  readonly detail: string;
}

export class StdioUpstream implements McpUpstream {
  readonly name: string;
  onLateReply?: (late: LateReply) => void;
  /** Every frame of the server that is not for us, unchanged. Without a listener the server's requests are refused. */
  onFrame?: (frame: McpFrame) => void;
  /** A request of the client whose answer came and cannot be read. */
  onUnanswered?: (key: string, detail: string) => void;
  /** The child has ended by itself: what the client asked it will not be answered. Not called after `close`. */
  onExit?: (exit: ChildExit) => void;
  /**
   * A line that is no frame (a banner, a stray print, an answer that nobody waits for) and was dropped, with
   * the number of such lines so far: report the first, not each.
   */
  onGarbage?: (line: Buffer, count: number) => void;

  readonly #options: StdioUpstreamOptions;
  #own: OwnHandshake;
  readonly #replyMaxBytes: number;
  readonly #startTimeoutMs: number;
  /** A client cannot know the tag, and so cannot make an id that we would take for ours. */
  readonly #idPrefix = `counterfoil:${randomBytes(4).toString('hex')}:`;
  readonly #ownIdInBrokenText = new RegExp(`^\\s*\\{.*"id"\\s*:\\s*"(${this.#idPrefix}\\d+)"`, 's');
  /** Every child that has not exited: the present one, and those that it has replaced. */
  readonly #links = new Set<Link>();
  #idCount = 0;
  #garbageCount = 0;
  #link: Link | undefined;
  #handshake: Handshake | undefined;
  #connecting: Promise<ConnectReport> | undefined;
  #lastEnd: Obstacle = { proof: 'not_connected', detail: 'the MCP server has not been started' };
  #isClosed = false;
  /** Set by `retire`: what is out is awaited, nothing new goes out. */
  #isRetired = false;

  constructor(options: StdioUpstreamOptions) {
    this.name = options.name;
    this.#options = options;
    this.#own = options;
    this.#replyMaxBytes = options.replyMaxBytes ?? REPLY_MAX_BYTES;
    this.#startTimeoutMs = options.startTimeoutMs ?? START_TIMEOUT_MS;
  }

  /** The client's handshake, once the server has answered it, or else our own. */
  get handshake(): Handshake | undefined {
    return this.#handshake;
  }

  /** The id of the child process, while one runs. */
  get pid(): number | undefined {
    return this.#link?.child.pid;
  }

  introduce(own: OwnHandshake): void {
    if (this.#handshake === undefined) this.#own = { ...this.#own, ...own };
  }

  isConnected(): boolean {
    return this.#link?.phase === 'connected' && this.#link.child.isOpen && !this.#isRetired;
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

  // ——— the client's traffic

  /** Writes one frame of the client unchanged. A client's `initialize` starts the child when none runs. */
  forward(frame: McpFrame): ForwardReport {
    if (this.#isClosed || this.#isRetired) return 'not_connected';
    const method = frame.head?.method;
    if ((method === 'initialize' || method === 'server/discover') && frame.head?.id !== undefined) {
      this.#beginClientHandshake(frame, method);
    }
    const link = this.#link;
    if (link === undefined || link.phase === 'own_handshake' || !link.child.isOpen) return 'not_connected';
    if (method === 'notifications/initialized') {
      // The handshake was replayed for a client whose child ended in the middle of its own: it is complete.
      if (link.phase === 'connected') return 'written';
      if (link.phase === 'client_handshake' && link.asked === undefined) settlePhase(link, 'connected');
    }
    // One write, so that no line of our own can come between a frame and its terminator.
    return link.child.write(Buffer.concat([frame.bytes, LINE_FEED])) ? 'written' : 'full';
  }

  /** Resolves when the child has taken what was forwarded, or is gone. */
  drained(): Promise<void> {
    return this.#link?.child.flushed() ?? Promise.resolve();
  }

  // ——— our own calls

  async send(request: SendRequest): Promise<SendReport> {
    const id = this.#nextId();
    const params = callParams(
      request.tool,
      request.payload,
      withTasks(this.#handshake, metaAfter(this.#handshake, request.meta), request.followsTasks === true),
      request.more,
    );
    const line = requestLine(id, 'tools/call', params);
    if (line === undefined)
      return refused('its payload or meta holds a line feed, which would end the frame');
    const link = this.#link;
    if (link === undefined || !this.isConnected()) return { left: 'no', ...this.#whyNotConnected() };
    if (request.signal?.aborted) return refused('the wait was aborted before anything was written');
    if (!link.child.isFlushed) {
      const obstacle = await this.#waitForPipe(link, request);
      if (obstacle !== undefined) return obstacle;
    }
    let mayLeave: boolean;
    try {
      mayLeave = request.mayLeave();
    } catch {
      return refused('the check before handing over failed');
    }
    if (!mayLeave) return refused('it was too late to hand it over, or the claim was lost');
    link.child.write(line);
    const { operation, attempt, replyTimeoutMs: timeoutMs, signal } = request;
    return new Promise((resolve) => {
      const onEnd = (end: CallEnd) => resolve(this.#toSendReport(end));
      link.calls.open(id, { timeoutMs, signal, write: { operation, attempt }, onEnd });
    });
  }

  async ask(request: AskRequest): Promise<AskReport> {
    return this.request(
      'tools/call',
      callParams(request.tool, request.payload, undefined),
      request.timeoutMs,
    );
  }

  /** One read-only request of our own, `tools/list` for one. A time-out cancels it at the server. */
  async request(
    method: string,
    params: string,
    timeoutMs: number,
    options: RequestOptions = {},
  ): Promise<AskReport> {
    const link = this.#link;
    if (link === undefined || !this.isConnected())
      return { answered: false, detail: this.#whyNotConnected().detail };
    return this.#request(link, method, paramsAfter(this.#handshake, method, params), timeoutMs, options);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#lastEnd = { proof: 'not_connected', detail: 'it was closed' };
    const links = [...this.#links];
    for (const link of links) link.calls.endAll('aborted', 'the connection was closed while it waited');
    await Promise.all(links.map((link) => link.child.terminate()));
  }

  async retire(): Promise<void> {
    this.#isRetired = true;
    await Promise.all(
      [...this.#links].map(({ calls }) => new Promise<void>((resolve) => calls.whenIdle(resolve))),
    );
    await this.close();
  }

  // ——— start and handshake

  async #connect(): Promise<ConnectReport> {
    const deadlineMs = performance.now() + this.#startTimeoutMs;
    for (;;) {
      if (this.#isClosed) return { connected: false, detail: 'it was closed' };
      if (this.isConnected()) return { connected: true };
      const leftMs = deadlineMs - performance.now();
      if (leftMs <= 0) return { connected: false, detail: `no connection within ${this.#startTimeoutMs} ms` };
      const link = this.#link;
      if (link?.phase === 'client_handshake') {
        const phase = await phaseSettled(link, leftMs);
        if (phase === 'connected' || this.#link !== link) continue;
        return { connected: false, detail: this.#whyNotConnected().detail };
      }
      // A server may hold something that only one process can have: the old one is gone before the new one starts.
      if (link !== undefined && link.phase !== 'fresh') await link.child.terminate();
      if (this.#link !== link || this.#isClosed) continue;
      const fresh = link?.phase === 'fresh' && link.child.isOpen ? link : this.#start();
      const detail = await this.#shakeHands(fresh, leftMs);
      if (detail !== undefined && this.#link === fresh) return { connected: false, detail };
    }
  }

  #start(): Link {
    const options = this.#options;
    const calls = new OwnCalls((late) =>
      this.onLateReply?.({ ...late, reply: capReply(late.reply, this.#replyMaxBytes) }),
    );
    const child: StdioChild = new StdioChild({
      ...options,
      killGraceMs: options.killGraceMs ?? KILL_GRACE_MS,
      onFrame: (bytes) => this.#onChildFrame(link, bytes),
      onUnreadable: (line) => this.#onChildUnreadable(link, line),
      onCut: (detail) => this.#onChildCut(link, detail),
      onExit: (exit) => this.#onChildExit(link, exit),
    });
    const link: Link = newLink(child, calls);
    this.#links.add(link);
    this.#link = link;
    return link;
  }

  /** Makes our own handshake, or replays the one that is remembered. Gives the reason when it came to nothing. */
  async #shakeHands(link: Link, timeoutMs: number): Promise<string | undefined> {
    if (!link.child.hasStarted) {
      await link.child.terminate();
      return this.#lastEnd.detail;
    }
    const known = this.#handshake?.method;
    const order = known === undefined ? handshakeOrder(this.#own.prefers) : [known];
    link.phase = 'own_handshake';
    let why = '';
    for (const method of order) {
      const params = this.#handshake?.params ?? ownParams(method, this.#own);
      const isProbe = method === 'server/discover' && method !== order.at(-1);
      const report = await this.#request(
        link,
        method,
        params,
        isProbe ? Math.min(timeoutMs, PROBE_MS) : timeoutMs,
      );
      if (link.retired) return this.#lastEnd.detail;
      if (link.phase !== 'own_handshake') {
        await link.child.terminate();
        return this.#lastEnd.detail;
      }
      if (
        report.answered &&
        report.reply.kind !== 'protocol_error' &&
        isAgreement(method, report.reply.body)
      ) {
        if (method === 'initialize') link.child.write(INITIALIZED_LINE);
        this.#handshake ??= { method, params, result: report.reply.body };
        settlePhase(link, 'connected');
        return undefined;
      }
      why = report.answered ? `answered with ${report.reply.body.slice(0, 500)}` : report.detail;
      if (!report.answered && !isProbe) break;
    }
    await link.child.terminate();
    this.#lastEnd = { proof: 'not_connected', detail: `the MCP server's handshake failed: ${why}` };
    return this.#lastEnd.detail;
  }

  #whyNotConnected(): Obstacle {
    const isShakingHands = this.#link?.phase === 'own_handshake' || this.#link?.phase === 'client_handshake';
    if (!isShakingHands || this.#isClosed) return this.#lastEnd;
    return { proof: 'not_connected', detail: "the MCP server's handshake is not complete" };
  }

  /**
   * A client's handshake belongs on a child that has had none, because servers differ on a second one. A child
   * that has, from our own handshake or an earlier client's, is replaced.
   */
  #beginClientHandshake(frame: McpFrame, method: Handshake['method']): void {
    const { text, head } = frame;
    let link = this.#link;
    // The session-less generation may ask this at any time; it opens nothing a second time.
    const isRepeat = method === 'server/discover' && this.#handshake?.method === method;
    if (isRepeat && (link?.phase === 'connected' || link?.phase === 'own_handshake')) return;
    const isUsable = link?.child.isOpen && (link.phase === 'fresh' || link.phase === 'client_handshake');
    if (link === undefined || !isUsable || (link.phase === 'client_handshake' && link.asked === undefined)) {
      if (link !== undefined) retire(link);
      link = this.#start();
    }
    if (!link.child.isOpen || head?.id === undefined) return;
    link.phase = 'client_handshake';
    const params = head.params === undefined ? '{}' : text.slice(head.params.start, head.params.end);
    link.asked = { id: text.slice(head.id.start, head.id.end), method, params };
  }

  #onClientHandshakeAnswer(link: Link, frame: McpFrame): void {
    const asked = link.asked;
    const result = frame.head?.result;
    link.asked = undefined;
    if (asked === undefined) return;
    if (result === undefined) {
      // Refused: a client of both generations goes on with `initialize` on the same connection.
      link.phase = 'fresh';
      return;
    }
    const { method, params } = asked;
    this.#handshake = { method, params, result: frame.text.slice(result.start, result.end) };
    if (method === 'server/discover') settlePhase(link, 'connected');
  }

  // ——— what the child says

  #onChildFrame(link: Link, bytes: Buffer): void {
    const frame = readMcpFrame(bytes);
    const { text, head } = frame;
    if (head === undefined || (head.duplicate && text.includes(this.#idPrefix))) {
      this.#onBrokenFrame(link, frame);
      return;
    }
    const id = head.id && this.#ownId(text.slice(head.id.start, head.id.end));
    if (id !== undefined) {
      const isAnswer = head.method === undefined;
      if (!isAnswer || !link.calls.answer(id, readAnswer(frame))) this.#drop(bytes);
      return;
    }
    if (link.retired) return;
    const isResponse = head.method === undefined && head.id !== undefined;
    if (isResponse && link.asked !== undefined && text.slice(head.id.start, head.id.end) === link.asked.id) {
      this.#onClientHandshakeAnswer(link, frame);
    }
    if (this.onFrame !== undefined) {
      this.onFrame(frame);
      return;
    }
    const answer = clientlessAnswer(frame);
    if (answer !== undefined && link.child.isOpen) link.child.write(`${answer}\n`);
  }

  /** The id when it is one of ours; servers may write it with escapes. */
  #ownId(idText: string): string | undefined {
    if (!idText.startsWith('"')) return undefined;
    let id = idText.slice(1, -1);
    if (id.includes('\\')) id = decoded(idText);
    return id.startsWith(this.#idPrefix) ? id : undefined;
  }

  #onBrokenFrame(link: Link, frame: McpFrame): void {
    const { bytes, text } = frame;
    // A batch is an answer to a client's batch, and the client's to read; we never send one.
    if (isBatch(text) && !text.includes(this.#idPrefix) && !link.retired) this.onFrame?.(frame);
    else {
      this.#endUnreadable(link, text, 'the reply is not JSON');
      this.#drop(bytes);
    }
  }

  #onChildUnreadable(link: Link, line: UnreadableLine): void {
    // Servers write the id before or behind the result; both ends of the line were kept.
    const text = `${line.start.toString('latin1')} ${line.end.toString('latin1')}`;
    const detail = `the reply is ${line.bytes} bytes long, more than is read`;
    this.#endUnreadable(link, text, detail);
    this.#drop(line.start);
    const id =
      ID_FIRST.exec(line.start.toString('utf8'))?.[1] ?? ID_LAST.exec(line.end.toString('utf8'))?.[1];
    const key = requestKey(id);
    if (key !== undefined && !link.retired) this.onUnanswered?.(key, detail);
  }

  /**
   * A broken line that looks like an answer to one of our calls ends the wait for it: no better one will come.
   * A line that only mentions the id, as a log line does, ends nothing.
   */
  #endUnreadable(link: Link, text: string, detail: string): void {
    const id = this.#ownIdInBrokenText.exec(text)?.[1];
    if (id !== undefined) link.calls.end(id, { ended: 'unreadable', detail });
  }

  #drop(line: Buffer): void {
    this.#garbageCount++;
    this.onGarbage?.(line, this.#garbageCount);
  }

  #onChildCut(link: Link, detail: string): void {
    if (!this.#isClosed && !link.retired) this.#lastEnd = { proof: 'not_connected', detail };
    settlePhase(link, 'ended');
    link.calls.endAll('cut', detail);
  }

  #onChildExit(link: Link, exit: ChildExit): void {
    this.#links.delete(link);
    if (this.#isClosed || link.retired) return;
    const proof = link.child.hasStarted ? 'not_connected' : 'spawn_failed';
    this.#lastEnd = { proof, detail: exit.detail };
    if (link.child.hasStarted) this.onExit?.(exit);
  }

  // ——— writing

  #nextId(): string {
    this.#idCount++;
    return `${this.#idPrefix}${this.#idCount}`;
  }

  #request(
    link: Link,
    method: string,
    params: string,
    timeoutMs: number,
    { signal, about, asked }: RequestOptions = {},
  ): Promise<AskReport> {
    const id = this.#nextId();
    asked?.(id);
    const line = requestLine(id, method, params);
    if (line === undefined) {
      return Promise.resolve({
        answered: false,
        detail: 'its params hold a line feed, which would end the frame',
      });
    }
    link.child.write(line);
    return new Promise((resolve) => {
      const onEnd = (end: CallEnd) => {
        if (end.ended === 'reply') {
          // What passes to a client is not cut.
          const reply = about === undefined ? capReply(end.reply, this.#replyMaxBytes) : end.reply;
          resolve({ answered: true, reply });
          return;
        }
        // Only reads are cancelled: a write that has left is never called back.
        if (
          (end.ended === 'timeout' || end.ended === 'aborted') &&
          method !== 'initialize' &&
          link.child.isOpen
        ) {
          link.child.write(cancelLine(id));
        }
        resolve({ answered: false, detail: end.detail });
      };
      link.calls.open(id, { timeoutMs, signal, onEnd });
    });
  }

  /**
   * Waits until the pipe is empty, so that "it may leave" is asked when the first byte leaves this process and
   * not when it joins a queue behind a child that does not read (I6).
   */
  async #waitForPipe(link: Link, request: SendRequest): Promise<SendReport | undefined> {
    const deadlineMs = performance.now() + request.replyTimeoutMs;
    while (!link.child.isFlushed) {
      const leftMs = deadlineMs - performance.now();
      if (leftMs <= 0) {
        return {
          left: 'no',
          proof: 'transport_busy',
          detail: 'the MCP server did not read its input in time',
        };
      }
      await settledWithin(link.child.flushed(), leftMs, request.signal);
      if (request.signal?.aborted) return refused('the wait was aborted before anything was written');
      if (this.#link !== link || !this.isConnected()) return { left: 'no', ...this.#whyNotConnected() };
    }
    return undefined;
  }

  #toSendReport(end: CallEnd): SendReport {
    if (end.ended !== 'reply') return { left: 'maybe', ended: end.ended, detail: end.detail };
    const reply = capReply(end.reply, this.#replyMaxBytes);
    return { left: 'maybe', ended: 'reply', reply, detail: 'the MCP server answered' };
  }
}

/** Where the id of an answer stands that is too long to be read: before its result, or behind it. */
const ID_FIRST = /^\s*\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?"id"\s*:\s*("(?:[^"\\]|\\.)*"|-?\d+)\s*,/;
const ID_LAST = /"id"\s*:\s*("(?:[^"\\]|\\.)*"|-?\d+)\s*\}\s*$/;

function refused(detail: string): SendReport {
  return { left: 'no', proof: 'refused_by_sender', detail };
}

/** The string that a JSON text spells; '' when it spells none. */
function decoded(text: string): string {
  try {
    return String(JSON.parse(text));
  } catch {
    return '';
  }
}

function isBatch(text: string): boolean {
  if (!text.trimStart().startsWith('[')) return false;
  try {
    return Array.isArray(JSON.parse(text));
  } catch {
    return false;
  }
}

/** Resolves with the promise, or when the time is over, or when the signal aborts. */
function settledWithin(promise: Promise<void>, timeoutMs: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer);
      unwatch?.();
      resolve();
    };
    const timer = setTimeout(done, timeoutMs);
    const unwatch = signal && watchAbort(signal, done);
    void promise.then(done);
  });
}
