// The MCP server behind the gateway as the engine sees it: one destination, whichever of its connections carries a
// call. It is connected only once its tools are known, and never started ahead of a client that is about to greet it.

import { memberText } from '../core/json-frame.ts';
import type { Answers, Question } from '../destination/mcp/asking.ts';
import type { McpUpstream } from '../destination/mcp/upstream.ts';
import type {
  AskReport,
  AskRequest,
  ConnectReport,
  Destination,
  LateReply,
  SendReport,
  SendRequest,
} from '../destination/port.ts';
import { Attempt } from './attempt.ts';
import type { ServerFacts, ServerIdentity } from './tool-facts.ts';
import { type ListPage, ToolList } from './tool-list.ts';

/** A client greets within moments of starting us; a server that had to greet us first would be started twice. */
const GREETING_MS = 2_000;
const LIST_TIMEOUT_MS = 30_000;

export type AskCaller = (call: string, questions: readonly Question[]) => Promise<Answers>;

export interface GuardedServerOptions {
  /** Used where no client's connection is there: for work that has waited, and for look-ups. */
  readonly own: McpUpstream;
  /** Whether `own` is the connection of the one client, which greets the server through it. */
  readonly isGreetedByClient: boolean;
}

export class GuardedServer implements Destination {
  readonly name: string;
  readonly tools: ToolList;
  onLateReply?: (late: LateReply) => void;
  readonly #own: McpUpstream;
  /** Connections of clients, by the names that their calls are sent with. */
  readonly #attached = new Map<string, { readonly upstream: McpUpstream; readonly ask: AskCaller }>();
  /** Writes that are out, by connection and call, and how many legs of each have left. */
  readonly #out = new Map<string, { readonly request: SendRequest; legs: number }>();
  readonly #retiring = new Map<McpUpstream, Promise<void>>();
  #stopAsking: () => void = () => {};
  readonly #noAnswers = new Promise<undefined>((resolve) => {
    this.#stopAsking = () => resolve(undefined);
  });
  #attachedCount = 0;
  #facts: ServerFacts | undefined;
  /** Called with each new list, before anybody is told that the server is connected; false: to be called again. */
  onListed: () => Promise<boolean> = async () => true;
  /** The list that `onListed` was called with. */
  #announced: ToolList['all'];
  #greeted: () => void = () => {};
  readonly #greeting: Promise<void>;

  constructor({ own, isGreetedByClient }: GuardedServerOptions) {
    this.name = own.name;
    this.#own = own;
    this.#listen(own);
    const listPage: ListPage = async (cursor) => {
      const params = cursor === undefined ? '{}' : JSON.stringify({ cursor });
      const report = await this.#usable().request('tools/list', params, LIST_TIMEOUT_MS);
      if (!report.answered) return { problem: report.detail };
      if (report.reply.kind === 'result') return { result: report.reply.body };
      return { problem: `tools/list was answered with ${report.reply.body.slice(0, 200)}` };
    };
    this.tools = new ToolList(listPage, (tool) => this.#callProblem(tool));
    this.#greeting = isGreetedByClient ? this.#whenGreeted() : Promise.resolve();
  }

  #whenGreeted(): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, GREETING_MS);
      timer.unref();
      this.#greeted = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }

  /** Facts need the server's list, and the list needs this server: they are introduced after both exist. */
  setFacts(facts: ServerFacts): void {
    this.#facts = facts;
  }

  /**
   * A client's own connection; gives the name under which its calls find it.
   * @param ask asks the caller of one call, by its key, what the server has asked back
   */
  attach(upstream: McpUpstream, ask: AskCaller): string {
    if (upstream !== this.#own) this.#listen(upstream);
    this.#attachedCount += 1;
    const via = `c${this.#attachedCount}`;
    this.#attached.set(via, { upstream, ask });
    return via;
  }

  /** The client has left: what it has out is followed to its end on its connection, which closes then. */
  detach(via: string): void {
    const upstream = this.#attached.get(via)?.upstream;
    if (upstream === undefined || upstream === this.#own) return;
    this.#attached.delete(via);
    this.#retiring.set(
      upstream,
      upstream.retire().finally(() => this.#retiring.delete(upstream)),
    );
  }

  /** Nobody is waited for any more who could answer what a server has asked back: this process is about to end. */
  stopAsking(): void {
    this.#stopAsking();
  }

  /** The client has completed its handshake: what is open may go on. */
  clientGreeted(): void {
    this.#greeted();
  }

  /** Not while the list may have changed: a tool is judged by what it is now, and by what it was. */
  isConnected(): boolean {
    const { all, isFresh } = this.tools;
    return this.#usable().isConnected() && isFresh && this.#announced === all;
  }

  async connect(): Promise<ConnectReport> {
    if (!this.#usable().isConnected()) {
      if (this.#own.handshake === undefined) await this.#greeting;
      const connection = await this.#usable().connect();
      if (!connection.connected) return connection;
    }
    const identity = serverIdentity(this.#usable().handshake?.result);
    if (identity !== undefined) this.#facts?.identify(identity);
    const problem = await this.tools.ensure();
    this.#facts?.tellUnusable();
    const { all } = this.tools;
    if (problem === undefined && this.#announced !== all && (await this.onListed())) this.#announced = all;
    return problem === undefined ? { connected: true } : { connected: false, detail: problem };
  }

  async send(request: SendRequest): Promise<SendReport> {
    const { via = '' } = request;
    // The connection's name, and on it the call whose caller is there.
    const end = via.indexOf(':');
    const callers = this.#attached.get(via.slice(0, end));
    if (callers?.upstream.isConnected() !== true) {
      const { via: _, ...withoutCaller } = request;
      return this.#attempt(this.#usable(), withoutCaller, async () => undefined);
    }
    const call = via.slice(end + 1);
    this.#out.set(via, { request, legs: 1 });
    try {
      return await this.#attempt(callers.upstream, { ...request, via: call }, (questions) =>
        callers.ask(call, questions),
      );
    } finally {
      this.#out.delete(via);
    }
  }

  /**
   * The caller is about to answer a question of the server about this call. Where the call is a write that is out, the
   * answer is its next leg and recorded first (D8); false: it must not leave.
   */
  async mayAnswer(via: string): Promise<boolean> {
    const out = this.#out.get(via);
    if (out?.request.recordLeg === undefined) return true;
    out.legs += 1;
    return out.request.recordLeg(out.legs);
  }

  /** The operation of a call that is a write and out, by the call's key alone. */
  operationOf(call: string): string | undefined {
    for (const [via, { request }] of this.#out) if (via.endsWith(`:${call}`)) return request.operation;
    return undefined;
  }

  /** The writes that are out on one connection, as `mayAnswer` knows them. */
  outOn(connection: string): readonly string[] {
    return [...this.#out.keys()].filter((via) => via.startsWith(`${connection}:`));
  }

  #attempt(
    upstream: McpUpstream,
    request: SendRequest,
    ask: (questions: readonly Question[]) => Promise<Answers>,
  ): Promise<SendReport> {
    // What is only observed goes as it came.
    const followsTasks = this.#facts?.mode !== 'observe';
    const needsTask = followsTasks && this.tools.get(request.tool)?.needsTask === true && hasTasks(upstream);
    return new Attempt({
      upstream,
      request,
      needsTask,
      followsTasks,
      ask: (questions) => Promise.race([ask(questions), this.#noAnswers]),
    }).send();
  }

  ask(request: AskRequest): Promise<AskReport> {
    return this.#usable().ask(request);
  }

  async close(): Promise<void> {
    const attached = [...this.#attached.values()].map(({ upstream }) => upstream);
    const all = new Set([this.#own, ...attached, ...this.#retiring.keys()]);
    const retired = [...this.#retiring.values()];
    await Promise.all([...all].map((upstream) => upstream.close()));
    await Promise.all(retired);
  }

  /** Our own connection where it is there, else a client's. */
  #usable(): McpUpstream {
    if (this.#own.isConnected()) return this.#own;
    for (const { upstream } of this.#attached.values()) if (upstream.isConnected()) return upstream;
    // One that its client has greeted is started again as it was, rather than a second server beside it.
    for (const { upstream } of this.#attached.values()) if (upstream.handshake !== undefined) return upstream;
    return this.#own;
  }

  /** Whichever connection a call would take: clients of different generations may have called for different ones. */
  #callProblem(tool: string): string | undefined {
    const all = [this.#own, ...[...this.#attached.values()].map(({ upstream }) => upstream)];
    return all.map((upstream) => upstream.callProblem?.(tool)).find((problem) => problem !== undefined);
  }

  #listen(upstream: McpUpstream): void {
    upstream.onLateReply = (late) => this.onLateReply?.(late);
  }
}

interface ServerInfo {
  readonly name?: unknown;
  readonly version?: unknown;
}

/** Whether a server of 2025-11-25 runs calls of tools as tasks. */
function hasTasks({ handshake }: McpUpstream): boolean {
  if (handshake?.method !== 'initialize') return false;
  return memberText(handshake.result, 'capabilities', 'tasks', 'requests', 'tools', 'call') !== undefined;
}

/** What a server calls itself, from its answer to the handshake. */
export function serverIdentity(result: string | undefined): ServerIdentity | undefined {
  if (result === undefined) return undefined;
  try {
    const read = JSON.parse(result) as {
      readonly serverInfo?: ServerInfo;
      readonly _meta?: { readonly 'io.modelcontextprotocol/serverInfo'?: ServerInfo };
    };
    // The handshake of 2025-11-25 names it in the result, the discovery of 2026-07-28 in its `_meta`.
    const info = read.serverInfo ?? read._meta?.['io.modelcontextprotocol/serverInfo'];
    if (typeof info?.name !== 'string') return undefined;
    return { name: info.name, version: typeof info.version === 'string' ? info.version : '' };
  } catch {
    return undefined;
  }
}
