// What a server's `tools/list` gives, whole and as it is: for whoever writes down what is promised of its tools.

import type { JsonObject, JsonValue } from '../core/canonical.ts';
import type { McpUpstream } from '../destination/mcp/upstream.ts';

export type ToolsGiven =
  /** JSON of one list, over all of its pages. */
  { readonly answered: true; readonly text: string } | { readonly answered: false; readonly detail: string };

const PAGES_MAX = 64;

export async function toolsGiven(upstream: McpUpstream, timeoutMs: number): Promise<ToolsGiven> {
  const connection = await upstream.connect();
  if (!connection.connected) return { answered: false, detail: connection.detail };
  const tools: JsonValue[] = [];
  let cursor: JsonValue | undefined;
  for (let page = 0; page < PAGES_MAX; page += 1) {
    const params = cursor === undefined ? '{}' : JSON.stringify({ cursor });
    const report = await upstream.request('tools/list', params, timeoutMs);
    if (!report.answered) return { answered: false, detail: report.detail };
    const { body, kind } = report.reply;
    if (kind !== 'result') return { answered: false, detail: `tools/list got ${body.slice(0, 200)}` };
    const given = JSON.parse(body) as JsonObject;
    if (!Array.isArray(given['tools'])) return { answered: false, detail: 'tools/list got no list' };
    tools.push(...(given['tools'] as readonly JsonValue[]));
    cursor = given['nextCursor'];
    // Some servers end with an empty cursor.
    if (typeof cursor !== 'string' || cursor === '')
      return { answered: true, text: JSON.stringify({ tools }, null, 2) };
  }
  return { answered: false, detail: `its list has more than ${PAGES_MAX} pages` };
}
