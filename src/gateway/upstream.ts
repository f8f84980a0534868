// The MCP server behind the gateway as the engine sees it: one destination, whichever of its connections carries a
// call. It is connected only once its tools are known, and never started ahead of a client that is about to greet it.

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
import type { ServerFacts, ServerIdentity } from './tool-facts.ts';
import { ToolList } from './tool-list.ts';

/** A client greets within moments of starting us; a server that had to greet us first would be started twice. */
const GREETING_MS = 2_000;
const LIST_TIMEOUT_MS = 30_000;

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
  readonly #attached = new Map<string, McpUpstream>();
  readonly #retiring = new Set<Promise<void>>();
  #attachedCount = 0;
  #facts: ServerFacts | undefined;
  #greeted: () => void = () => {};
  readonly #greeting: Promise<void>;

  constructor({ own, isGreetedByClient }: GuardedServerOptions) {
    this.name = own.name;
    this.#own = own;
    this.#listen(own);
    this.tools = new ToolList(async (cursor) => {
      const params = cursor === undefined ? '{}' : JSON.stringify({ cursor });
      const report = await this.#usable().request('tools/list', params, LIST_TIMEOUT_MS);
      if (!report.answered) return { problem: report.detail };
      if (report.reply.kind === 'result') return { result: report.reply.body };
      return { problem: `tools/list was answered with ${report.reply.body.slice(0, 200)}` };
    });
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

  /** A client's own connection; gives the name under which its calls find it. */
  attach(upstream: McpUpstream): string {
    if (upstream !== this.#own) this.#listen(upstream);
    this.#attachedCount += 1;
    const via = `c${this.#attachedCount}`;
    this.#attached.set(via, upstream);
    return via;
  }

  /** The client has left: what it has out is followed to its end on its connection, which closes then. */
  detach(via: string): void {
    const upstream = this.#attached.get(via);
    if (upstream === undefined || upstream === this.#own) return;
    this.#attached.delete(via);
    const retiring: Promise<void> = upstream.retire().finally(() => this.#retiring.delete(retiring));
    this.#retiring.add(retiring);
  }

  /** The client has completed its handshake: what is open may go on. */
  clientGreeted(): void {
    this.#greeted();
  }

  /** Not while the list may have changed: a tool is judged by what it is now. */
  isConnected(): boolean {
    return this.#usable().isConnected() && this.tools.isFresh;
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
    return problem === undefined ? { connected: true } : { connected: false, detail: problem };
  }

  send(request: SendRequest): Promise<SendReport> {
    const { via = '' } = request;
    // The connection's name, and on it the call whose caller is there.
    const end = via.indexOf(':');
    const callers = this.#attached.get(via.slice(0, end));
    if (callers?.isConnected() === true) return callers.send({ ...request, via: via.slice(end + 1) });
    const { via: _, ...withoutCaller } = request;
    return this.#usable().send(withoutCaller);
  }

  ask(request: AskRequest): Promise<AskReport> {
    return this.#usable().ask(request);
  }

  async close(): Promise<void> {
    const all = new Set([this.#own, ...this.#attached.values()]);
    await Promise.all([...all].map((upstream) => upstream.close()));
    await Promise.all(this.#retiring);
  }

  /** Our own connection where it is there, else a client's. */
  #usable(): McpUpstream {
    if (this.#own.isConnected()) return this.#own;
    for (const upstream of this.#attached.values()) if (upstream.isConnected()) return upstream;
    return this.#own;
  }

  #listen(upstream: McpUpstream): void {
    upstream.onLateReply = (late) => this.onLateReply?.(late);
  }
}

interface ServerInfo {
  readonly name?: unknown;
  readonly version?: unknown;
}

function serverIdentity(result: string | undefined): ServerIdentity | undefined {
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
