// What the HTTP door answers where it does not go on: a status, and a JSON-RPC error that says why in one sentence.

import type { IncomingMessage, ServerResponse } from 'node:http';

export interface HttpRefusal {
  readonly status: number;
  /** A JSON-RPC error code: the specification's where it names one, else ours. */
  readonly code: number;
  readonly message: string;
  readonly data?: unknown;
  readonly headers?: { readonly [name: string]: string };
  /** The raw id of the request that is refused; `null` where it could not be read, or must not be used. */
  readonly id?: string;
}

/** The error of a message that the HTTP layer does not accept; outside the ranges that MCP keeps for itself. */
export const CODE_HTTP_REFUSED = 7003;

function refusalFrame({ id = 'null', code, message, data }: HttpRefusal): string {
  const error = { code, message, data: data ?? { origin: 'counterfoil' } };
  return `{"jsonrpc":"2.0","id":${id},"error":${JSON.stringify(error)}}`;
}

export function sendRefusal(response: ServerResponse, refusal: HttpRefusal): void {
  sendJson(response, refusal.status, refusalFrame(refusal), refusal.headers);
}

/** @param written told whether the operating system has taken it */
export function sendJson(
  response: ServerResponse,
  status: number,
  body: string | Buffer,
  headers: { readonly [name: string]: string } = {},
  written: (isWritten: boolean) => void = () => {},
): void {
  if (response.destroyed || response.headersSent) {
    written(false);
    return;
  }
  let isTold = false;
  const tell = (isWritten: boolean): void => {
    if (isTold) return;
    isTold = true;
    written(isWritten);
  };
  response.once('finish', () => tell(true));
  response.once('close', () => tell(false));
  response.writeHead(status, {
    ...headers,
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(body),
  });
  response.end(body);
}

/** An answer without a body. */
export function sendEmpty(
  response: ServerResponse,
  status: number,
  headers: { readonly [name: string]: string } = {},
): void {
  if (response.destroyed || response.headersSent) return;
  response.writeHead(status, { ...headers, 'content-length': 0 });
  response.end();
}

/** The one value of a header; `undefined` where it is absent. Node gives lists for a few names only. */
export function headerOf(request: IncomingMessage, name: string): string | undefined {
  const value = request.headers[name];
  return Array.isArray(value) ? value.join(', ') : value;
}
