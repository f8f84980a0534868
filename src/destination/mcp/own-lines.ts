// The lines that we write ourselves, with their terminators. Texts that are given are put in as they are.

import type { McpFrame } from './frame.ts';

export const INITIALIZED_LINE = '{"jsonrpc":"2.0","method":"notifications/initialized"}\n';

/** Undefined when the params hold a line feed, which would end the frame in the middle. */
export function requestLine(id: string, method: string, params: string): string | undefined {
  if (params.includes('\n')) return undefined;
  return `{"jsonrpc":"2.0","id":"${id}","method":${JSON.stringify(method)},"params":${params}}\n`;
}

export function callParams(tool: string, payload: string, meta: string | undefined): string {
  const metaMember = meta === undefined ? '' : `,"_meta":${meta}`;
  return `{"name":${JSON.stringify(tool)},"arguments":${payload}${metaMember}}`;
}

export function cancelLine(id: string): string {
  const params = `{"requestId":"${id}","reason":"timed out"}`;
  return `{"jsonrpc":"2.0","method":"notifications/cancelled","params":${params}}\n`;
}

/** The answer to a server's request when there is no client that could give one: a server must not wait for nobody. */
export function clientlessAnswerLine({ text, head }: McpFrame): string | undefined {
  if (head?.id === undefined || head.method === undefined) return undefined;
  const id = text.slice(head.id.start, head.id.end);
  const answer =
    head.method === 'ping' ? '"result":{}' : '"error":{"code":-32601,"message":"There is no client here"}';
  return `{"jsonrpc":"2.0","id":${id},${answer}}\n`;
}
