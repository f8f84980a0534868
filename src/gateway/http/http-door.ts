// The MCP door over HTTP: one listener, several servers, each under a path of its own. Loopback only, unless somebody
// says who is asking.

import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { McpEndpoint } from './mcp-endpoint.ts';
import { type HttpRefusal, headerOf, sendRefusal } from './refusals.ts';
import { hostProblem, LOOPBACK_NAMES, refused } from './request-guard.ts';

/** Who asks, or what is answered instead; nobody else reads a credential. */
export type Authenticate = (
  request: IncomingMessage,
  server: string,
) => Authentication | Promise<Authentication>;

export type Authentication = { readonly principal: string } | { readonly refusal: HttpRefusal };

/** A server behind a path, or the sentence that says why there is none. */
export type DoorEndpoint = { readonly server: string } & (
  | { readonly endpoint: McpEndpoint; readonly problem?: undefined }
  | { readonly problem: string; readonly endpoint?: undefined }
);

export interface HttpDoorParts {
  /** By path. */
  readonly endpoints: ReadonlyMap<string, DoorEndpoint>;
  readonly authenticate: Authenticate;
  /** Names beside those of loopback under which the door may be asked for. */
  readonly hostNames: readonly string[];
  readonly report: (message: string) => void;
}

/** From the first byte of a request to its last: an endless one is cut off then. */
const REQUEST_MAX_MS = 60_000;
const HEADERS_MAX_MS = 15_000;
/** How long a stream may go on after who has opened it may ask no more: a token that was revoked, or has expired. */
const STILL_ALLOWED_EACH_MS = 1_000;

/** A request that is answered, or whose answer is a stream that stays open. */
interface OpenRequest {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly server: string;
  readonly endpoint: McpEndpoint;
  readonly principal: string;
}

export class HttpDoor {
  readonly #parts: HttpDoorParts;
  readonly #server: Server;
  readonly #hostNames: readonly string[];
  readonly #open = new Set<OpenRequest>();
  #watch: NodeJS.Timeout | undefined;
  #isClosing = false;

  constructor(parts: HttpDoorParts) {
    this.#parts = parts;
    this.#hostNames = [...LOOPBACK_NAMES, ...parts.hostNames.map((name) => name.toLowerCase())];
    this.#server = createServer(
      { requestTimeout: REQUEST_MAX_MS, headersTimeout: HEADERS_MAX_MS },
      (request, response) => void this.#handle(request, response),
    );
  }

  /** @returns the port. Rejects where it cannot be had. */
  listen(host: string, port: number): Promise<number> {
    return new Promise((resolve, reject) => {
      this.#server.once('error', reject);
      this.#server.listen(port, host, () => {
        this.#server.off('error', reject);
        this.#watchOpen();
        resolve((this.#server.address() as AddressInfo).port);
      });
    });
  }

  /** Takes no new requests. Resolves when what was called is answered or recorded, and every connection is closed. */
  async close(): Promise<void> {
    this.#isClosing = true;
    clearTimeout(this.#watch);
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    const endpoints = new Set(
      [...this.#parts.endpoints.values()].flatMap(({ endpoint }) =>
        endpoint === undefined ? [] : [endpoint],
      ),
    );
    await Promise.all([...endpoints].map((endpoint) => endpoint.close()));
    this.#server.closeAllConnections();
    await closed;
  }

  async #handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    response.on('error', () => {});
    try {
      const refusal = await this.#serve(request, response);
      if (refusal !== undefined) sendRefusal(response, refusal);
    } catch (cause) {
      this.#parts.report(`A request could not be handled: ${String(cause)}`);
      sendRefusal(response, refused(500, 'The gateway met a fault of its own. Ask what became of the call.'));
    }
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<HttpRefusal | undefined> {
    const foreign = hostProblem(request, this.#hostNames);
    if (foreign !== undefined) return foreign;
    if (this.#isClosing) return refused(503, 'The gateway is closing.', { connection: 'close' });
    const path = (request.url ?? '').split('?')[0] ?? '';
    const behind = this.#parts.endpoints.get(path);
    if (behind === undefined) return refused(404, 'No server is behind this path.');
    const who = await this.#parts.authenticate(request, behind.server);
    if ('refusal' in who) return who.refusal;
    const { endpoint, problem } = behind;
    if (endpoint === undefined) return refused(503, `${behind.server} cannot be served. ${problem}`);
    const { principal } = who;
    const open: OpenRequest = { request, response, server: behind.server, endpoint, principal };
    this.#open.add(open);
    response.once('close', () => this.#open.delete(open));
    await endpoint.handle(request, response, principal);
    return undefined;
  }

  // ── What is open ─────────────────────────────────────────────────────────────────────────────────────────

  /** Each request is judged as it comes; a stream may stay open for days. */
  #watchOpen(): void {
    this.#watch = setTimeout(() => {
      void this.#judgeOpen()
        .catch((cause: unknown) =>
          this.#parts.report(`Who may go on asking could not be judged: ${String(cause)}`),
        )
        .finally(() => {
          if (!this.#isClosing) this.#watchOpen();
        });
    }, STILL_ALLOWED_EACH_MS);
    this.#watch.unref();
  }

  /** What was called goes on, and is recorded; nobody is told of it any more. */
  async #judgeOpen(): Promise<void> {
    const judged = new Map<string, Authentication>();
    const ended: OpenRequest[] = [];
    for (const open of this.#open) {
      const key = JSON.stringify([open.server, headerOf(open.request, 'authorization') ?? null]);
      const who = judged.get(key) ?? (await this.#parts.authenticate(open.request, open.server));
      judged.set(key, who);
      if ('principal' in who) continue;
      const { refusal } = who;
      // While nobody can be judged (503) what was allowed goes on.
      if (refusal.status !== 401 && refusal.status !== 403) continue;
      if (open.response.headersSent) open.response.destroy();
      else sendRefusal(open.response, refusal);
      ended.push(open);
    }
    // Only then: a session that ends closes what is open of it without a word.
    for (const { endpoint, principal } of ended) endpoint.endSessionsOf(principal);
  }
}
