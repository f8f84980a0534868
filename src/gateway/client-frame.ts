// One frame of a client, read strictly: which message it is, or why it cannot be handled and under which id that
// is told.

import type { McpFrame } from '../destination/mcp/frame.ts';
import { requestKey } from './open-requests.ts';

const CODE_INVALID_REQUEST = -32600;
export const CODE_PARSE_ERROR = -32700;

export type ClientMessage =
  /** `key`: undefined where MCP does not allow such an id. */
  | {
      readonly kind: 'request';
      readonly id: string;
      readonly key: string | undefined;
      readonly method: string;
    }
  | { readonly kind: 'notification'; readonly method: string }
  /** An answer to a request of the server. */
  | { readonly kind: 'response' }
  | { readonly kind: 'refused'; readonly id: string; readonly code: number; readonly message: string };

/**
 * @param isOpen whether a request under that key still waits for its answer: under its id, a refusal would be
 *   taken for the answer
 */
export function readClientMessage({ head, text }: McpFrame, isOpen: (key: string) => boolean): ClientMessage {
  if (head === undefined) return unread(text);
  const id = head.id === undefined ? undefined : text.slice(head.id.start, head.id.end);
  const key = requestKey(id);
  if (head.duplicate) {
    // Readers differ on which of two equal members counts: the server could see a call where we see none.
    const known = id === undefined || key === undefined || isOpen(key) ? 'null' : id;
    return refused(known, CODE_INVALID_REQUEST, 'A member of the message is there twice. Send it once.');
  }
  const { method } = head;
  if (method === undefined) return { kind: 'response' };
  if (id === undefined) return { kind: 'notification', method };
  return { kind: 'request', id, key, method };
}

export type Refusal = Extract<ClientMessage, { kind: 'refused' }>;

export function unusableId(): Refusal {
  return refused(
    'null',
    CODE_INVALID_REQUEST,
    'The id of a call must be a string or a whole number. The call was not handled.',
  );
}

/** A batch could hide a write among reads, and a line that we cannot read could be one to the server. */
function unread(text: string): Refusal {
  return text.trimStart().startsWith('[')
    ? refused('null', CODE_INVALID_REQUEST, 'Batches are not accepted: send each request by itself.')
    : refused('null', CODE_PARSE_ERROR, 'The message is not a JSON-RPC object.');
}

/** Told under no id: under this one, it would be taken for the answer to the call that is open. */
export function usedId(id: string): Refusal {
  return refused(
    'null',
    CODE_INVALID_REQUEST,
    `The id ${id} belongs to a call that is still open: the second message with it was not handled.`,
  );
}

function refused(id: string, code: number, message: string): Refusal {
  return { kind: 'refused', id, code, message };
}
