// The messages that we write ourselves. Texts that are given are put in as they are; a line has its terminator.

import type { McpFrame } from './frame.ts';

export const INITIALIZED_LINE = '{"jsonrpc":"2.0","method":"notifications/initialized"}\n';

export function requestText(id: string, method: string, params: string): string {
  return `{"jsonrpc":"2.0","id":"${id}","method":${JSON.stringify(method)},"params":${params}}`;
}

/** Undefined when the params hold a line feed, which would end the frame in the middle. */
export function requestLine(id: string, method: string, params: string): string | undefined {
  return params.includes('\n') ? undefined : `${requestText(id, method, params)}\n`;
}

export function callParams(
  tool: string,
  payload: string,
  meta: string | undefined,
  more: Readonly<Record<string, string>> = {},
): string {
  const metaMember = meta === undefined ? '' : `,"_meta":${meta}`;
  const others = Object.entries(more).map(([name, value]) => `,${JSON.stringify(name)}:${value}`);
  return `{"name":${JSON.stringify(tool)},"arguments":${payload}${metaMember}${others.join('')}}`;
}

export function cancelParams(id: string): string {
  return `{"requestId":"${id}","reason":"timed out"}`;
}

export function cancelLine(id: string): string {
  return `{"jsonrpc":"2.0","method":"notifications/cancelled","params":${cancelParams(id)}}\n`;
}

/** The answer to a server's request when there is no client that could give one: a server must not wait for nobody. */
export function clientlessAnswer({ text, head }: McpFrame): string | undefined {
  if (head?.id === undefined || head.method === undefined) return undefined;
  const id = text.slice(head.id.start, head.id.end);
  const answer =
    head.method === 'ping' ? '"result":{}' : '"error":{"code":-32601,"message":"There is no client here"}';
  return `{"jsonrpc":"2.0","id":${id},${answer}}`;
}
