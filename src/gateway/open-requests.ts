// The client's requests that have no answer yet, by their ids: who owes the answer, and whether it is still wanted.

export { requestKey } from '../destination/mcp/request-key.ts';

/** What the gateway must know of a request that is the server's to answer. */
export type Passed = 'handshake' | 'discovery' | 'list' | 'plain';

type OpenRequest =
  | { readonly by: 'server'; readonly id: string; readonly what: Passed }
  | { readonly by: 'gateway'; readonly takenBack: AbortController };

export class OpenRequests {
  readonly #open = new Map<string, OpenRequest>();

  has(key: string): boolean {
    return this.#open.has(key);
  }

  isOwedByGateway(key: string | undefined): boolean {
    return key !== undefined && this.#open.get(key)?.by === 'gateway';
  }

  /** The gateway has a call to decide about or to answer. The signal tells that the client has taken it back. */
  take(key: string): AbortSignal {
    const takenBack = new AbortController();
    this.#open.set(key, { by: 'gateway', takenBack });
    return takenBack.signal;
  }

  /** The server has to answer it; `id` is the raw text. */
  pass(key: string, id: string, what: Passed): void {
    this.#open.set(key, { by: 'server', id, what });
  }

  /** Whether the server has not answered the client's handshake yet. */
  get isShakingHands(): boolean {
    for (const request of this.#open.values()) {
      if (request.by === 'server' && request.what === 'handshake') return true;
    }
    return false;
  }

  /** What the gateway owed is answered, or passed on before. */
  settle(key: string, signal: AbortSignal): void {
    const request = this.#open.get(key);
    if (request?.by === 'gateway' && request.takenBack.signal === signal) this.#open.delete(key);
  }

  /** False when the request is not the gateway's, so that its cancel is for the server to hear. */
  takeBack(key: string | undefined): boolean {
    const request = key === undefined ? undefined : this.#open.get(key);
    if (request?.by !== 'gateway') return false;
    request.takenBack.abort();
    return true;
  }

  /** The server has answered: what was asked. */
  answered(key: string): Passed | 'owed_by_gateway' {
    const request = this.#open.get(key);
    if (request?.by === 'gateway') return 'owed_by_gateway';
    this.#open.delete(key);
    return request?.what ?? 'plain';
  }

  /** Forgets one that could not be passed on. False when it was answered meanwhile. */
  dropPassed(key: string): boolean {
    return this.#open.get(key)?.by === 'server' && this.#open.delete(key);
  }

  /** The server will not answer it: its raw id, unless it was answered meanwhile. */
  takeOne(key: string): string | undefined {
    const request = this.#open.get(key);
    if (request?.by !== 'server') return undefined;
    this.#open.delete(key);
    return request.id;
  }

  /** The server is gone: the raw ids of what it will not answer any more. */
  takeFromServer(): readonly string[] {
    const ids: string[] = [];
    for (const [key, request] of this.#open) {
      if (request.by !== 'server') continue;
      ids.push(request.id);
      this.#open.delete(key);
    }
    return ids;
  }
}
