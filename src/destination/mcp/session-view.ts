// A server for a client of the session generation (2025-11-25 and earlier), whichever generation the server is of.
//
// The client's handshake goes to the server first. A server that refuses it and is of 2026-07-28 is spoken to in its
// own way, and what it lacks in the client's eyes is made up here: the handshake, ping, the log level, subscriptions,
// and questions in the middle of a call. A result keeps its bytes.

import { memberText } from '../../core/json-frame.ts';
import type { AskReport, AskRequest, ConnectReport, LateReply, SendReport, SendRequest } from '../port.ts';
import { type Answers, answerMembers, type Question, readInputRequired } from './asking.ts';
import { type McpFrame, readMcpFrame } from './frame.ts';
import { withMember, withMembers } from './json-edit.ts';
import type { Handshake } from './link.ts';
import { LEGACY_VERSIONS, META, MODERN_VERSION } from './mcp-headers.ts';
import { LEGACY_VERSION } from './own-handshake.ts';
import { requestKey } from './request-key.ts';
import type { ForwardReport, McpUpstream, OwnHandshake, RequestOptions, UpstreamEnd } from './upstream.ts';

/** What is known of the server from one of its clients to the next. */
export interface KnownGeneration {
  /** Set once a server has refused the session generation's handshake and agreed to the other's. */
  isModernOnly?: boolean;
}

export interface SessionViewOptions {
  readonly upstream: McpUpstream;
  readonly known: KnownGeneration;
}

/** How often a server may ask back in one request. */
const LEGS_MAX = 16;
const CODE_SERVER_ENDED = 7002;

/** The client's own handshake, while it waits for its answer. */
interface Asked {
  readonly key: string;
  readonly id: string;
  readonly params: string;
  readonly frame: McpFrame;
}

export class SessionView implements McpUpstream {
  readonly name: string;
  onLateReply?: (late: LateReply) => void;
  onFrame?: (frame: McpFrame, about?: string) => void;
  onUnanswered?: (key: string, detail: string) => void;
  onExit?: (end: UpstreamEnd) => void;
  onGarbage?: (line: Buffer, count: number) => void;
  onAsk?: (about: string, questions: readonly Question[]) => Promise<Answers>;

  readonly #upstream: McpUpstream;
  readonly #known: KnownGeneration;
  readonly #open = new Map<string, AbortController>();
  readonly #uris = new Set<string>();
  #asked: Asked | undefined;
  /** `bridged`: the server is of 2026-07-28, and `#client` what the client said of itself. */
  #mode: 'plain' | 'bridged' = 'plain';
  #client: { readonly capabilities: string; readonly info: string; readonly version: string } | undefined;
  #logLevel: string | undefined;
  #isGreeted = false;
  #listening: AbortController | undefined;

  constructor({ upstream, known }: SessionViewOptions) {
    this.name = upstream.name;
    this.#upstream = upstream;
    this.#known = known;
    upstream.onLateReply = (late) => this.onLateReply?.(late);
    upstream.onFrame = (frame, about) => this.#fromServer(frame, about);
    upstream.onUnanswered = (key, detail) => {
      if (key === this.#asked?.key) void this.#probe(detail);
      else this.onUnanswered?.(key, detail);
    };
    upstream.onExit = (end) => this.onExit?.(end);
    upstream.onGarbage = (line, count) => this.onGarbage?.(line, count);
  }

  get handshake(): Handshake | undefined {
    return this.#upstream.handshake;
  }

  introduce(own: OwnHandshake): void {
    this.#upstream.introduce(own);
  }

  isConnected(): boolean {
    return this.#upstream.isConnected() && (this.#mode === 'plain' || this.#isGreeted);
  }

  connect(): Promise<ConnectReport> {
    return this.#upstream.connect();
  }

  callProblem(tool: string): string | undefined {
    return this.#upstream.callProblem?.(tool);
  }

  drained(): Promise<void> {
    return this.#upstream.drained();
  }

  send(request: SendRequest): Promise<SendReport> {
    const meta = this.#mode === 'plain' ? request.meta : this.#envelope(request.meta);
    return this.#upstream.send({ ...request, ...(meta === undefined ? {} : { meta }) });
  }

  ask(request: AskRequest): Promise<AskReport> {
    return this.#upstream.ask(request);
  }

  request(method: string, params: string, timeoutMs: number, options?: RequestOptions): Promise<AskReport> {
    const isOfTask = this.#mode === 'bridged' && method.startsWith('tasks/');
    const given = isOfTask
      ? withMember(params, '_meta', this.#envelope(memberText(params, '_meta')))
      : params;
    return this.#upstream.request(method, given, timeoutMs, options);
  }

  async retire(): Promise<void> {
    this.#endAll();
    await this.#upstream.retire();
  }

  async close(): Promise<void> {
    this.#endAll();
    await this.#upstream.close();
  }

  #endAll(): void {
    this.#listening?.abort();
    for (const abort of this.#open.values()) abort.abort();
  }

  // ——— the client's traffic

  forward(frame: McpFrame): ForwardReport {
    const { head, text } = frame;
    const id = head?.id && text.slice(head.id.start, head.id.end);
    const key = requestKey(id);
    if (head?.method === 'initialize' && id !== undefined && key !== undefined) {
      const params = head.params === undefined ? '{}' : text.slice(head.params.start, head.params.end);
      this.#asked = { key, id, params, frame };
      if (this.#known.isModernOnly !== true) return this.#upstream.forward(frame);
      void this.#probe('it is known to be of 2026-07-28');
      return 'written';
    }
    if (this.#mode === 'plain') return this.#upstream.forward(frame);
    const params = head?.params === undefined ? '{}' : text.slice(head.params.start, head.params.end);
    if (head?.method === undefined) return 'written';
    if (id === undefined) this.#notification(head.method, params);
    else if (key !== undefined) void this.#request(head.method, id, key, params);
    return 'written';
  }

  /** The server does not agree to the client's handshake: it is asked whether it agrees to the other. */
  async #probe(detail: string, refusal?: McpFrame): Promise<void> {
    const asked = this.#asked;
    this.#asked = undefined;
    if (asked === undefined) return;
    const connection = await this.#upstream.connect();
    if (!connection.connected || this.#upstream.handshake?.method !== 'server/discover') {
      if (refusal !== undefined) this.onFrame?.(refusal, asked.key);
      else this.onUnanswered?.(asked.key, connection.connected ? detail : connection.detail);
      return;
    }
    this.#known.isModernOnly = true;
    this.#mode = 'bridged';
    // A client that has not said from which level on is told what the server sees fit to tell.
    if (memberText(this.#upstream.handshake.result, 'capabilities', 'logging') !== undefined) {
      this.#logLevel = '"info"';
    }
    const requested = textOf(memberText(asked.params, 'protocolVersion'));
    const version = LEGACY_VERSIONS.includes(requested) ? requested : LEGACY_VERSION;
    this.#client = {
      capabilities: memberText(asked.params, 'capabilities') ?? '{}',
      info: memberText(asked.params, 'clientInfo') ?? '{"name":"unknown","version":"0"}',
      version,
    };
    const { result } = this.#upstream.handshake;
    const instructions = memberText(result, 'instructions');
    this.#answer(
      asked.id,
      asked.key,
      withMembers('{}', {
        protocolVersion: JSON.stringify(version),
        capabilities: memberText(result, 'capabilities') ?? '{}',
        serverInfo: memberText(result, '_meta', META.serverInfo) ?? '{"name":"unknown","version":""}',
        ...(instructions === undefined ? {} : { instructions }),
      }),
    );
  }

  #notification(method: string, params: string): void {
    if (method === 'notifications/initialized') {
      this.#isGreeted = true;
      this.#listen();
    } else if (method === 'notifications/cancelled') {
      const key = requestKey(memberText(params, 'requestId'));
      if (key !== undefined) this.#open.get(key)?.abort();
    }
  }

  async #request(method: string, id: string, key: string, params: string): Promise<void> {
    switch (method) {
      case 'ping':
        this.#answer(id, key, '{}');
        return;
      case 'logging/setLevel':
        this.#logLevel = memberText(params, 'level');
        this.#answer(id, key, '{}');
        return;
      case 'resources/subscribe':
      case 'resources/unsubscribe': {
        const uri = textOf(memberText(params, 'uri'));
        if (method === 'resources/subscribe') this.#uris.add(uri);
        else this.#uris.delete(uri);
        this.#listen();
        this.#answer(id, key, '{}');
        return;
      }
      default:
        await this.#askServer(method, id, key, params);
    }
  }

  async #askServer(method: string, id: string, key: string, params: string): Promise<void> {
    const connection = await this.#upstream.connect();
    if (!connection.connected) {
      this.onUnanswered?.(key, connection.detail);
      return;
    }
    // The server may have been started anew, and hears of nobody who listens.
    if (this.#isGreeted && this.#listening === undefined) this.#listen();
    const abort = new AbortController();
    this.#open.set(key, abort);
    const meta = this.#envelope(memberText(params, '_meta'));
    let whole = withMember(params, '_meta', meta);
    try {
      for (let leg = 1; leg <= LEGS_MAX; leg += 1) {
        const options = { signal: abort.signal, about: key };
        const report = await this.#upstream.request(method, whole, Number.POSITIVE_INFINITY, options);
        if (abort.signal.aborted) return;
        if (!report.answered) {
          this.onUnanswered?.(key, report.detail);
          return;
        }
        const { kind, body } = report.reply;
        const asked = kind === 'result' ? readInputRequired(body) : undefined;
        if (asked === undefined) {
          this.#answer(id, key, body, kind === 'protocol_error' ? 'error' : 'result');
          return;
        }
        const answers = await this.onAsk?.(key, asked.questions);
        if (answers === undefined) break;
        for (const [name, value] of Object.entries(answerMembers(answers, asked.requestState))) {
          whole = withMember(whole, name, value);
        }
      }
      const message = 'The server asked back, and was given no answer.';
      this.#answer(id, key, JSON.stringify({ code: CODE_SERVER_ENDED, message }), 'error');
    } finally {
      this.#open.delete(key);
    }
  }

  #answer(id: string, key: string, text: string, member: 'result' | 'error' = 'result'): void {
    const frame = `{"jsonrpc":"2.0","id":${id},"${member}":${text}}`;
    this.onFrame?.(readMcpFrame(Buffer.from(frame)), key);
  }

  /** What the client said of itself once, said in each request; it speaks the server's version through us. */
  #envelope(meta: string | undefined): string {
    const { capabilities = '{}', info = '{}' } = this.#client ?? {};
    return withMembers(meta ?? '{}', {
      [META.protocolVersion]: JSON.stringify(MODERN_VERSION),
      [META.clientInfo]: info,
      [META.clientCapabilities]: capabilities,
      ...(this.#logLevel === undefined ? {} : { [META.logLevel]: this.#logLevel }),
    });
  }

  // ——— what the server says

  #fromServer(frame: McpFrame, about: string | undefined): void {
    const { head, text } = frame;
    const asked = this.#asked;
    if (asked !== undefined && head !== undefined && head.method === undefined) {
      const key = requestKey(head.id && text.slice(head.id.start, head.id.end));
      if (key === asked.key) {
        if (head.result === undefined) {
          void this.#probe('it refused the handshake', frame);
          return;
        }
        this.#asked = undefined;
      }
    }
    // Which subscription it came by is ours to know alone.
    if (head?.method === 'notifications/subscriptions/acknowledged') return;
    this.onFrame?.(frame, about === '' ? undefined : about);
  }

  /** One subscription for all that the client hears in a session; opened anew when it wants to hear something else. */
  #listen(): void {
    this.#listening?.abort();
    const result = this.#upstream.handshake?.result ?? '{}';
    const can = (...path: string[]): boolean => memberText(result, 'capabilities', ...path) === 'true';
    const filter = {
      ...(can('tools', 'listChanged') ? { toolsListChanged: true } : {}),
      ...(can('prompts', 'listChanged') ? { promptsListChanged: true } : {}),
      ...(can('resources', 'listChanged') ? { resourcesListChanged: true } : {}),
      ...(this.#uris.size > 0 ? { resourceSubscriptions: [...this.#uris] } : {}),
    };
    if (Object.keys(filter).length === 0) return;
    const abort = new AbortController();
    this.#listening = abort;
    const params = withMember(JSON.stringify({ notifications: filter }), '_meta', this.#envelope(undefined));
    const options = { signal: abort.signal, about: '' };
    void this.#upstream
      .request('subscriptions/listen', params, Number.POSITIVE_INFINITY, options)
      .then(() => {
        if (this.#listening === abort) this.#listening = undefined;
      });
  }
}

function textOf(text: string | undefined): string {
  try {
    return String(JSON.parse(text ?? '""'));
  } catch {
    return '';
  }
}
