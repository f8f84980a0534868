// One JSON-RPC frame of an MCP connection: its bytes as they came, its text, and where its members lie.

import { isUtf8 } from 'node:buffer';
import { type Frame, scanFrame } from '../../core/json-frame.ts';
import type { Reply } from '../port.ts';

export interface McpFrame {
  /** The bytes as they came, without the line's terminator. They are what is passed on. */
  readonly bytes: Buffer;
  readonly text: string;
  /** Ranges into `text`; undefined when the frame is not one JSON object (a batch, or not JSON at all). */
  readonly head: Frame | undefined;
}

export function readMcpFrame(bytes: Buffer): McpFrame {
  const text = bytes.toString('utf8');
  return { bytes, text, head: scanFrame(text) };
}

/**
 * The same frame in one line. Between the tokens of JSON a line feed is space, and within a string it may not stand:
 * a message that came over HTTP may hold some, and on a line each would end it.
 */
export function oneLine<Text extends string | Buffer>(frame: Text): Text {
  if (!frame.includes('\n') && !frame.includes('\r')) return frame;
  if (typeof frame === 'string') return frame.replaceAll(/[\r\n]/g, ' ') as Text;
  return Buffer.from(frame.map((byte) => (byte === 0x0a || byte === 0x0d ? 0x20 : byte))) as Text;
}

export type Answer =
  | { readonly readable: true; readonly reply: Reply }
  | { readonly readable: false; readonly detail: string };

/**
 * Reads the answer to one of our own requests, strictly: what is kept as a reply must have one meaning and be
 * exact, so that whatever a lenient reader would guess at is unreadable here.
 */
export function readAnswer(frame: McpFrame): Answer {
  const { bytes, text, head } = frame;
  if (head === undefined || !isUtf8(bytes)) return unreadable('is not JSON in UTF-8');
  if (head.duplicate) return unreadable('has the same member twice');
  const at = head.result ?? head.error;
  if (at === undefined || (head.result && head.error))
    return unreadable('does not hold one of result and error');
  let answer: { readonly result?: unknown; readonly error?: unknown };
  try {
    answer = JSON.parse(text);
  } catch {
    return unreadable('is not JSON in UTF-8');
  }
  const content = head.result ? answer.result : answer.error;
  if (typeof content !== 'object' || content === null || Array.isArray(content)) {
    return unreadable('has a result or error that is not an object');
  }
  const body = text.slice(at.start, at.end);
  if (head.result) {
    const isError = (content as { isError?: unknown }).isError === true;
    return { readable: true, reply: { kind: isError ? 'tool_error' : 'result', body } };
  }
  const code = (content as { code?: unknown }).code;
  const reply = { kind: 'protocol_error', body, ...(typeof code === 'number' ? { code } : {}) } as const;
  return { readable: true, reply };
}

function unreadable(detail: string): Answer {
  return { readable: false, detail: `the reply ${detail}` };
}
