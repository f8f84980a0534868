// The MCP server behind the gateway as the engine sees it: connected only once its tools are known, and never
// started ahead of a client that is about to greet it.

import type { StdioUpstream } from '../destination/mcp/stdio-upstream.ts';
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

export class GuardedServer implements Destination {
  readonly name: string;
  readonly tools: ToolList;
  onLateReply?: (late: LateReply) => void;
  readonly #upstream: StdioUpstream;
  #facts: ServerFacts | undefined;
  /** Called with each new list, before anybody is told that the server is connected; false: to be called again. */
  onListed: () => Promise<boolean> = async () => true;
  #told = 0;
  #greeted: () => void = () => {};
  readonly #greeting: Promise<void>;

  constructor(upstream: StdioUpstream) {
    this.name = upstream.name;
    this.#upstream = upstream;
    upstream.onLateReply = (late) => this.onLateReply?.(late);
    this.tools = new ToolList(async (cursor) => {
      const params = cursor === undefined ? '{}' : JSON.stringify({ cursor });
      const report = await upstream.request('tools/list', params, LIST_TIMEOUT_MS);
      if (!report.answered) return { problem: report.detail };
      if (report.reply.kind === 'result') return { result: report.reply.body };
      return { problem: `tools/list was answered with ${report.reply.body.slice(0, 200)}` };
    });
    this.#greeting = new Promise((resolve) => {
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

  /** The client has completed its handshake: what is open may go on. */
  clientGreeted(): void {
    this.#greeted();
  }

  /** Not while the list may have changed: a tool is judged by what it is now. */
  isConnected(): boolean {
    return this.#upstream.isConnected() && this.tools.isFresh;
  }

  async connect(): Promise<ConnectReport> {
    if (this.#upstream.handshake === undefined) await this.#greeting;
    const connection = await this.#upstream.connect();
    if (!connection.connected) return connection;
    const identity = serverIdentity(this.#upstream.handshake?.result);
    if (identity !== undefined) this.#facts?.identify(identity);
    const problem = await this.tools.ensure();
    if (problem === undefined && this.#told !== this.tools.version) {
      const { version } = this.tools;
      if (await this.onListed()) this.#told = version;
    }
    return problem === undefined ? { connected: true } : { connected: false, detail: problem };
  }

  send(request: SendRequest): Promise<SendReport> {
    return this.#upstream.send(request);
  }

  ask(request: AskRequest): Promise<AskReport> {
    return this.#upstream.ask(request);
  }

  close(): Promise<void> {
    return this.#upstream.close();
  }
}

function serverIdentity(result: string | undefined): ServerIdentity | undefined {
  if (result === undefined) return undefined;
  try {
    const info = (
      JSON.parse(result) as { readonly serverInfo?: { readonly name?: unknown; readonly version?: unknown } }
    ).serverInfo;
    if (typeof info?.name !== 'string') return undefined;
    return { name: info.name, version: typeof info.version === 'string' ? info.version : '' };
  } catch {
    return undefined;
  }
}
