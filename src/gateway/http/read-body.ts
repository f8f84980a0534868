// The body of one HTTP request, up to a size. An endless one is cut off there; one that stalls is cut off by the
// server's own time for a whole request.

import type { IncomingMessage } from 'node:http';

export type Body =
  | { readonly read: 'whole'; readonly bytes: Buffer }
  | { readonly read: 'too_long' }
  | { readonly read: 'cut' };

export function readBody(request: IncomingMessage, maxBytes: number): Promise<Body> {
  const declared = Number(request.headers['content-length'] ?? 0);
  if (declared > maxBytes) return Promise.resolve({ read: 'too_long' });
  return new Promise((resolve) => {
    const chunks: Buffer[] = [];
    let bytes = 0;
    request.on('data', (chunk: Buffer) => {
      bytes += chunk.length;
      if (bytes <= maxBytes) chunks.push(chunk);
      else {
        request.pause();
        resolve({ read: 'too_long' });
      }
    });
    request.once('end', () => resolve({ read: 'whole', bytes: Buffer.concat(chunks) }));
    request.once('error', () => resolve({ read: 'cut' }));
    request.once('close', () => resolve({ read: 'cut' }));
  });
}
