// One signed message to somebody else's address (Standard Webhooks): posted, its status read, its body left unread.
// Nothing is followed.

import { signatureOf } from './http/webhook-signature.ts';
import { undici } from './undici.ts';

export interface PostRequest {
  readonly url: string;
  /** `whsec_` and base64. */
  readonly secret: string;
  /** The same for every try, by which a receiver knows what it has already. */
  readonly id: string;
  /** Seconds since the epoch, of this try. */
  readonly timestamp: number;
  /** JSON. */
  readonly body: string;
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}

const BODY_MAX_BYTES = 16 * 1024;

/** @returns the status · @throws where none came in time */
export async function postSigned(message: PostRequest): Promise<number> {
  const { body, id, secret, signal, timeoutMs, url } = message;
  const timestamp = String(message.timestamp);
  const { statusCode, body: answer } = await undici().request(url, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      'webhook-id': id,
      'webhook-timestamp': timestamp,
      'webhook-signature': `v1,${signatureOf(secret, id, timestamp, Buffer.from(body, 'utf8'))}`,
    },
    body,
    headersTimeout: timeoutMs,
    bodyTimeout: timeoutMs,
    signal: AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]),
  });
  await answer.dump({ limit: BODY_MAX_BYTES });
  return statusCode;
}
