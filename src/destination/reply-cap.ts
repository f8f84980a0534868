// The cap on what is kept of a reply: the body is cut at a character, and says that it was cut.

import type { Reply } from './port.ts';

export const REPLY_MAX_BYTES = 16 * 1024 * 1024;

/** The reply, its body no longer than `replyMaxBytes` of UTF-8. */
export function capReply(reply: Reply, replyMaxBytes: number): Reply {
  // A UTF-16 unit takes at most three bytes, so that most bodies need no counting.
  if (reply.body.length * 3 <= replyMaxBytes) return reply;
  if (Buffer.byteLength(reply.body) <= replyMaxBytes) return reply;
  const bytes = Buffer.from(reply.body);
  let end = replyMaxBytes;
  // 0b10xxxxxx continues a character: go back to where it starts.
  while (end > 0 && ((bytes[end] ?? 0) & 0xc0) === 0x80) end--;
  return { ...reply, body: bytes.toString('utf8', 0, end), truncated: true };
}
