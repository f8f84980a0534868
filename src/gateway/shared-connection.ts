// One connection to the server for the stateless requests of one principal, whichever generation the server is of.
//
// Its requests run side by side on it under ids and progress tokens of ours. A server of the session generation is told
// only what it knows, and what it asks in the middle of a call is asked of that call's client.

import { randomBytes } from 'node:crypto';
import type { JsonObject, JsonValue } from '../core/canonical.ts';
import { memberText, scanMembers } from '../core/json-frame.ts';
import type { Answers, Question } from '../destination/mcp/asking.ts';
import { type McpFrame, readMcpFrame } from '../destination/mcp/frame.ts';
import { withMember, withMembers, withoutMembers } from '../destination/mcp/json-edit.ts';
import { META, MODERN_VERSION } from '../destination/mcp/mcp-headers.ts';
import { requestKey } from '../destination/mcp/request-key.ts';
import type { McpUpstream } from '../destination/mcp/upstream.ts';
import type { AskReport, ConnectReport } from '../destination/port.ts';
import { hasTasks } from './task-shapes.ts';
import type { GuardedServer } from './upstream.ts';

/** One request of a client while it is on its way. */
export interface SharedCall {
  /** Its name on this connection. */
  readonly key: string;
  readonly method: string;
  readonly capabilities: string;
  /** The client's own token, as raw text; the server is given one of ours. */
  readonly progressToken: string | undefined;
  readonly wantsLog: boolean;
  readonly message: (frame: string) => void;
  readonly ask: (questions: readonly Question[]) => Promise<Answers>;
}

/** A stream of changes that a client listens to. */
interface Listening {
  /** Its client's id of it, as raw text. */
  readonly id: string;
  readonly filter: Filter;
  readonly message: (frame: string) => void;
}

interface Filter {
  readonly toolsListChanged?: boolean;
  readonly promptsListChanged?: boolean;
  readonly resourcesListChanged?: boolean;
  readonly resourceSubscriptions?: readonly string[];
}

/** Requests in which a server may ask back. */
const ASKABLE: ReadonlySet<string> = new Set(['tools/call', 'prompts/get', 'resources/read']);
/** What the client must have declared to be asked. */
const CAPABILITY: ReadonlyMap<string, string> = new Map([
  ['elicitation/create', 'elicitation'],
  ['sampling/createMessage', 'sampling'],
  ['roots/list', 'roots'],
]);
/** What a request of the session generation may not carry; it was said once. */
const ENVELOPE = [META.protocolVersion, META.clientInfo, META.clientCapabilities, META.logLevel];
const SUBSCRIBE_MS = 30_000;

export class SharedConnection {
  readonly via: string;
  readonly #upstream: McpUpstream;
  readonly #server: GuardedServer;
  readonly #report: (message: string) => void;
  readonly #calls = new Map<string, SharedCall>();
  readonly #listening = new Map<string, Listening>();
  /** Our ids of the clients' subscriptions at a server of 2026-07-28, and which they are. */
  readonly #subscriptions = new Map<string, Listening>();
  readonly #watched = new Map<string, number>();
  readonly #tokenPrefix = `counterfoil:${randomBytes(4).toString('hex')}:`;
  readonly #ended = new AbortController();
  /** Aborted when the server has ended by itself. */
  #lost = new AbortController();
  #isWatching = false;
  #logLevel: string | undefined;
  /** The instant at which it was last used, on the monotonic clock. */
  usedAt = performance.now();

  constructor(upstream: McpUpstream, server: GuardedServer, report: (message: string) => void) {
    this.#upstream = upstream;
    this.#server = server;
    this.#report = report;
    this.via = server.attach(upstream, async (call, questions) => this.#calls.get(call)?.ask(questions));
    upstream.onFrame = (frame, about) => this.#fromServer(frame, about);
    upstream.onExit = ({ detail }) => {
      server.tools.markStale();
      // Whoever listened must know that it hears nothing any more; the next server knows of no subscription.
      this.#lost.abort();
      this.#lost = new AbortController();
      this.#watched.clear();
      this.#logLevel = undefined;
      report(`The server ended: ${detail}. It is started again when it is needed.`);
    };
    upstream.onGarbage = (line, count) => {
      if (count === 1)
        report(
          `The server said something that is no answer, which was dropped: ${line.toString('utf8', 0, 120)}`,
        );
    };
  }

  get isBusy(): boolean {
    return this.#calls.size > 0 || this.#listening.size > 0;
  }

  get #isModern(): boolean {
    return this.#upstream.handshake?.method === 'server/discover';
  }

  /** Whether the server has tasks that its clients of 2026-07-28 can ask after. */
  get hasTasks(): boolean {
    return hasTasks(this.#upstream, 'stateless');
  }

  /** @returns why there is none, when there is none */
  async connect(): Promise<ConnectReport> {
    this.usedAt = performance.now();
    const connection = await this.#upstream.connect();
    if (!connection.connected) return connection;
    this.#watchTools();
    return connection;
  }

  close(): void {
    this.#ended.abort();
    this.#server.detach(this.via);
  }

  // ── Requests ─────────────────────────────────────────────────────────────────────────────────────────────

  /** The params as this server is given them: with a progress token of ours, and without what it does not know. */
  prepared(call: SharedCall, params: string): string {
    let meta = memberText(params, '_meta');
    if (meta === undefined) return params;
    if (call.progressToken !== undefined) meta = withMember(meta, 'progressToken', this.#tokenOf(call.key));
    if (!this.#isModern) meta = withoutMembers(meta, ENVELOPE);
    return withMember(params, '_meta', meta === '{}' ? undefined : meta);
  }

  /** The call is on its way: what the server says about it is its client's. */
  begin(call: SharedCall): void {
    this.#calls.set(call.key, call);
  }

  finish(call: SharedCall): void {
    this.#calls.delete(call.key);
    this.usedAt = performance.now();
  }

  /** @param params as `prepared` gave them */
  async request(call: SharedCall, params: string, signal: AbortSignal): Promise<AskReport> {
    await this.#agreeOnLog(call);
    const both = AbortSignal.any([signal, this.#ended.signal]);
    return this.#upstream.request(call.method, params, Number.POSITIVE_INFINITY, {
      signal: both,
      about: call.key,
    });
  }

  /** What the server says of itself, as a client of 2026-07-28 is told it. */
  async discover(call: SharedCall, params: string, signal: AbortSignal): Promise<AskReport> {
    if (this.#isModern) return this.request(call, params, signal);
    const result = this.#upstream.handshake?.result ?? '{}';
    const capabilities = withoutMembers(memberText(result, 'capabilities') ?? '{}', ['tasks']);
    const info = memberText(result, 'serverInfo');
    const instructions = memberText(result, 'instructions');
    const body = withMembers('{}', {
      supportedVersions: JSON.stringify([MODERN_VERSION]),
      capabilities,
      ...(info === undefined ? {} : { _meta: `{${JSON.stringify(META.serverInfo)}:${info}}` }),
      ...(instructions === undefined ? {} : { instructions }),
    });
    return { answered: true, reply: { kind: 'result', body } };
  }

  /** Log messages are asked for once in the session generation, and in each request since. */
  async #agreeOnLog({ wantsLog, key }: SharedCall): Promise<void> {
    const level = wantsLog ? this.#calls.get(key)?.wantsLog : false;
    if (level !== true || this.#isModern || this.#logLevel !== undefined) return;
    if (memberText(this.#upstream.handshake?.result ?? '{}', 'capabilities', 'logging') === undefined) return;
    this.#logLevel = 'debug';
    await this.#upstream.request('logging/setLevel', '{"level":"debug"}', SUBSCRIBE_MS);
  }

  // ── Subscriptions ────────────────────────────────────────────────────────────────────────────────────────

  /** Resolves when the subscription is over, with its last result where the server gave one. */
  async listen(
    id: string,
    key: string,
    params: string,
    message: (frame: string) => void,
    signal: AbortSignal,
  ): Promise<AskReport> {
    const filter = filterOf(params);
    const listening: Listening = { id, filter, message };
    this.#listening.set(key, listening);
    try {
      if (this.#isModern) return await this.#listenAtServer(listening, params, signal);
      const honoured = this.#honoured(filter);
      message(
        tagged(
          `{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"notifications":${JSON.stringify(honoured)}}}`,
          id,
        ),
      );
      const uris = honoured.resourceSubscriptions ?? [];
      for (const uri of uris) await this.#watch(uri, 1);
      const lost = this.#lost.signal;
      await ended([signal, this.#ended.signal, lost]);
      if (!lost.aborted) for (const uri of uris) await this.#watch(uri, -1);
      return {
        answered: true,
        reply: { kind: 'result', body: `{"_meta":{${JSON.stringify(META.subscriptionId)}:${id}}}` },
      };
    } finally {
      this.#listening.delete(key);
    }
  }

  async #listenAtServer(listening: Listening, params: string, signal: AbortSignal): Promise<AskReport> {
    let own = '';
    const both = AbortSignal.any([signal, this.#ended.signal]);
    const report = await this.#upstream.request('subscriptions/listen', params, Number.POSITIVE_INFINITY, {
      signal: both,
      about: listening.id,
      asked: (id) => {
        own = id;
        this.#subscriptions.set(id, listening);
      },
    });
    this.#subscriptions.delete(own);
    if (!report.answered || report.reply.kind === 'protocol_error') return report;
    const meta = memberText(report.reply.body, '_meta') ?? '{}';
    const body = withMember(report.reply.body, '_meta', withMember(meta, META.subscriptionId, listening.id));
    return { answered: true, reply: { ...report.reply, body } };
  }

  /** We have to hear of changed tools ourselves, whether a client listens or not. */
  #watchTools(): void {
    const result = this.#upstream.handshake?.result ?? '{}';
    if (!this.#isModern || this.#isWatching) return;
    if (memberText(result, 'capabilities', 'tools', 'listChanged') !== 'true') return;
    this.#isWatching = true;
    const params = '{"notifications":{"toolsListChanged":true}}';
    void this.#upstream
      .request('subscriptions/listen', params, Number.POSITIVE_INFINITY, {
        signal: this.#ended.signal,
        about: '',
      })
      .then(() => {
        this.#isWatching = false;
        // What changed while nobody listened is not known.
        this.#server.tools.markStale();
      });
  }

  #honoured(filter: Filter): Filter {
    const result = this.#upstream.handshake?.result ?? '{}';
    const can = (...path: string[]): boolean => memberText(result, 'capabilities', ...path) === 'true';
    return {
      ...(filter.toolsListChanged === true && can('tools', 'listChanged') ? { toolsListChanged: true } : {}),
      ...(filter.promptsListChanged === true && can('prompts', 'listChanged')
        ? { promptsListChanged: true }
        : {}),
      ...(filter.resourcesListChanged === true && can('resources', 'listChanged')
        ? { resourcesListChanged: true }
        : {}),
      ...(filter.resourceSubscriptions !== undefined && can('resources', 'subscribe')
        ? { resourceSubscriptions: filter.resourceSubscriptions }
        : {}),
    };
  }

  async #watch(uri: string, change: 1 | -1): Promise<void> {
    const before = this.#watched.get(uri) ?? 0;
    this.#watched.set(uri, before + change);
    const isFirst = before === 0 && change === 1;
    const isLast = before === 1 && change === -1;
    if (!isFirst && !isLast) return;
    const method = isFirst ? 'resources/subscribe' : 'resources/unsubscribe';
    await this.#upstream.request(method, JSON.stringify({ uri }), SUBSCRIBE_MS);
  }

  // ── From the server ──────────────────────────────────────────────────────────────────────────────────────

  #fromServer(frame: McpFrame, about: string | undefined): void {
    const { head, text } = frame;
    const { method } = head ?? {};
    if (method === undefined) return;
    if (head?.id !== undefined) {
      void this.#question(frame, method, about);
      return;
    }
    if (method === 'notifications/tools/list_changed') this.#server.tools.markStale();
    const params = head?.params === undefined ? '{}' : text.slice(head.params.start, head.params.end);
    const subscription = memberText(params, '_meta', META.subscriptionId);
    if (subscription !== undefined) {
      const listening = this.#subscriptions.get(String(JSON.parse(subscription)));
      listening?.message(tagged(text, listening.id));
    } else if (method === 'notifications/progress') this.#progress(text, params);
    else if (method === 'notifications/message')
      this.#callFor(about, ({ wantsLog }) => wantsLog)?.message(text);
    else this.#change(text, method, params);
  }

  #progress(text: string, params: string): void {
    const token = memberText(params, 'progressToken');
    for (const call of this.#calls.values()) {
      if (call.progressToken === undefined || token !== this.#tokenOf(call.key)) continue;
      const own = withMember(params, 'progressToken', call.progressToken);
      call.message(withMember(text, 'params', own));
      return;
    }
  }

  /** A change that a server of the session generation tells whoever is there. */
  #change(text: string, method: string, params: string): void {
    const uri = memberText(params, 'uri');
    for (const { id, filter, message } of this.#listening.values()) {
      const isWanted =
        (method === 'notifications/tools/list_changed' && filter.toolsListChanged === true) ||
        (method === 'notifications/prompts/list_changed' && filter.promptsListChanged === true) ||
        (method === 'notifications/resources/list_changed' && filter.resourcesListChanged === true) ||
        (method === 'notifications/resources/updated' &&
          uri !== undefined &&
          filter.resourceSubscriptions?.includes(String(JSON.parse(uri))) === true);
      if (isWanted) message(tagged(text, id));
    }
  }

  /** The call that a message belongs to: where the transport does not tell, it is told only if there is no other. */
  #callFor(about: string | undefined, fits: (call: SharedCall) => boolean): SharedCall | undefined {
    const told = about === undefined ? undefined : this.#calls.get(about);
    if (told !== undefined) return fits(told) ? told : undefined;
    const fitting = [...this.#calls.values()].filter(fits);
    return fitting.length === 1 ? fitting[0] : undefined;
  }

  /** A request of a server of the session generation, which its call's client is asked in its own way. */
  async #question(frame: McpFrame, method: string, about: string | undefined): Promise<void> {
    const { head, text } = frame;
    const id = head?.id === undefined ? 'null' : text.slice(head.id.start, head.id.end);
    if (method === 'ping') {
      this.#reply(id, '"result":{}');
      return;
    }
    const call = this.#callFor(about, (one) => ASKABLE.has(one.method));
    const capability = CAPABILITY.get(method);
    const isDeclared =
      call !== undefined &&
      capability !== undefined &&
      memberText(call.capabilities, capability) !== undefined;
    if (!isDeclared) {
      const why =
        call === undefined
          ? 'Which of the open calls this belongs to cannot be told'
          : 'The client of this call has not declared that it can be asked this';
      this.#reply(id, `"error":{"code":-32601,"message":${JSON.stringify(why)}}`);
      return;
    }
    const key = `q${requestKey(id) ?? ''}`;
    const params = head?.params === undefined ? undefined : text.slice(head.params.start, head.params.end);
    const answers = await call.ask([{ key, method, params }]);
    const answer = answers?.get(key);
    if (answer !== undefined && (await this.#server.mayAnswer(`${this.via}:${call.key}`))) {
      this.#reply(id, `"result":${answer}`);
    } else if (method === 'elicitation/create') this.#reply(id, '"result":{"action":"cancel"}');
    else this.#reply(id, '"error":{"code":-1,"message":"The client gave no answer"}');
  }

  #reply(id: string, member: string): void {
    const text = `{"jsonrpc":"2.0","id":${id},${member}}`;
    if (this.#upstream.forward(readMcpFrame(Buffer.from(text))) === 'not_connected') {
      this.#report('An answer to the server was not passed on: it is not there any more.');
    }
  }

  #tokenOf(key: string): string {
    return JSON.stringify(this.#tokenPrefix + key);
  }
}

/** A message with the id by which its client knows the subscription. */
function tagged(text: string, id: string): string {
  const params = memberText(text, 'params') ?? '{}';
  const meta = withMember(memberText(params, '_meta') ?? '{}', META.subscriptionId, id);
  return withMember(text, 'params', withMember(params, '_meta', meta));
}

function filterOf(params: string): Filter {
  const text = memberText(params, 'notifications');
  if (text === undefined || scanMembers(text) === undefined) return {};
  const read = JSON.parse(text) as JsonObject;
  const uris = read['resourceSubscriptions'];
  return {
    toolsListChanged: read['toolsListChanged'] === true,
    promptsListChanged: read['promptsListChanged'] === true,
    resourcesListChanged: read['resourcesListChanged'] === true,
    ...(Array.isArray(uris)
      ? { resourceSubscriptions: (uris as readonly JsonValue[]).filter((uri) => typeof uri === 'string') }
      : {}),
  };
}

function ended(signals: readonly AbortSignal[]): Promise<void> {
  const any = AbortSignal.any([...signals]);
  return any.aborted
    ? Promise.resolve()
    : new Promise((resolve) => any.addEventListener('abort', () => resolve(), { once: true }));
}
