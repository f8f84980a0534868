// What passes keeps its bytes, over whichever transports; and a session's stream is taken up again where it broke off.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, describe, expect, test } from 'vitest';
import { CleanUps, INITIALIZE, operationsIn } from '../processes.ts';
import { type ServedEntry, type Serving, startServing } from './serving.ts';

const at = (path: string): string => fileURLToPath(new URL(path, import.meta.url));
const STDIO_SERVER = at('../../destination/fixtures/scripted-mcp-server.mjs');
const HTTP_SERVER = at('../../destination/fixtures/scripted-http-server.mjs');
const LEGACY_SERVER = at('fixtures/legacy-server.mjs');
const cleanUps = new CleanUps();
afterEach(cleanUps.run);

const EXACT = '{"content":[],"n":1.0e2, "s":"\\u00e9"}';
const CONFIG = { tools: { look: { class: 'read' }, act: { class: 'ordinary' } } };
const HEADERS = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' };

async function scripted(mode: 'stdio' | 'http'): Promise<ServedEntry> {
  const logPath = join(cleanUps.folder(), 'log');
  if (mode === 'stdio') return { command: [process.execPath, STDIO_SERVER, logPath], config: CONFIG };
  const child = spawn(process.execPath, [HTTP_SERVER, logPath], { stdio: ['ignore', 'pipe', 'inherit'] });
  cleanUps.add(async () => {
    child.kill('SIGKILL');
    await once(child, 'exit');
  });
  const [port] = (await once(child.stdout, 'data')) as [Buffer];
  return { url: `http://127.0.0.1:${port.toString().trim()}/mcp`, config: CONFIG };
}

async function begun(serving: Serving): Promise<Record<string, string>> {
  const body = JSON.stringify({ jsonrpc: '2.0', id: 0, method: 'initialize', params: INITIALIZE });
  const response = await fetch(serving.url(), { method: 'POST', headers: HEADERS, body });
  const headers = { ...HEADERS, 'mcp-session-id': response.headers.get('mcp-session-id') ?? '' };
  await response.text();
  const initialized = '{"jsonrpc":"2.0","method":"notifications/initialized"}';
  await fetch(serving.url(), { method: 'POST', headers, body: initialized });
  return headers;
}

describe.each(['stdio', 'http'] as const)('a server over %s', (mode) => {
  test.each(['look', 'act'])(
    'the result of %s keeps its bytes, for a client of either generation',
    async (tool) => {
      const serving = await startServing(cleanUps, { exact: await scripted(mode) });
      const session = await begun(serving);
      const params = { name: tool, arguments: { fault: 'exact', mark: 'm' } };
      const body = JSON.stringify({ jsonrpc: '2.0', id: 'a', method: 'tools/call', params });
      const legacy = await fetch(serving.url(), { method: 'POST', headers: session, body });
      expect(await legacy.text()).toContain(EXACT);
      const meta = {
        'io.modelcontextprotocol/protocolVersion': '2026-07-28',
        'io.modelcontextprotocol/clientCapabilities': {},
      };
      const headers = {
        ...HEADERS,
        'mcp-protocol-version': '2026-07-28',
        'mcp-method': 'tools/call',
        'mcp-name': tool,
        'mcp-param-mark': 'm',
      };
      const modern = await fetch(serving.url(), {
        method: 'POST',
        headers,
        body: JSON.stringify({
          jsonrpc: '2.0',
          id: 'b',
          method: 'tools/call',
          params: { ...params, _meta: meta },
        }),
      });
      // One member more, which that generation requires; every other byte is the server's.
      expect(await modern.text()).toBe(
        `{"jsonrpc":"2.0","id":"b","result":{"resultType":"complete",${EXACT.slice(1)}}`,
      );
      expect(await operationsIn(serving.data)).toHaveLength(tool === 'act' ? 2 : 0);
    },
  );
});

/** Reads events until one of them fits; gives its data and id. */
async function eventOf(
  response: Response,
  fits: (message: { readonly method?: string; readonly result?: unknown }) => boolean,
): Promise<{ readonly id: string; readonly message: { readonly id: unknown } }> {
  let text = '';
  for await (const chunk of response.body ?? []) {
    text += new TextDecoder().decode(chunk as Uint8Array);
    for (const event of text.split('\n\n').slice(0, -1)) {
      const data = /^data: (.+)$/m.exec(event)?.[1];
      const id = /^id: (.+)$/m.exec(event)?.[1] ?? '';
      if (data === undefined) continue;
      const message = JSON.parse(data) as { id: unknown; method?: string };
      if (fits(message)) return { id, message };
    }
  }
  throw new Error(`The stream ended before that: ${text}`);
}

test('a client that loses its stream in the middle of a call is given the rest by Last-Event-ID', async () => {
  const log = join(cleanUps.folder(), 'log');
  const serving = await startServing(cleanUps, {
    offer: { command: [process.execPath, LEGACY_SERVER, log, 'stdio'] },
  });
  const body = JSON.stringify({
    jsonrpc: '2.0',
    id: 0,
    method: 'initialize',
    params: { ...INITIALIZE, capabilities: { elicitation: {} } },
  });
  const response = await fetch(serving.url(), { method: 'POST', headers: HEADERS, body });
  const headers = { ...HEADERS, 'mcp-session-id': response.headers.get('mcp-session-id') ?? '' };
  await response.text();
  const post = (message: object): Promise<Response> =>
    fetch(serving.url(), { method: 'POST', headers, body: JSON.stringify({ jsonrpc: '2.0', ...message }) });
  await post({ method: 'notifications/initialized' });
  const abort = new AbortController();
  const params = { name: 'ask_name', arguments: {} };
  const first = await fetch(serving.url(), {
    method: 'POST',
    headers,
    body: JSON.stringify({ jsonrpc: '2.0', id: 7, method: 'tools/call', params }),
    signal: abort.signal,
  });
  const question = await eventOf(first, ({ method }) => method === 'elicitation/create');
  abort.abort();
  await post({ id: question.message.id, result: { action: 'accept', content: { name: 'Ada' } } });
  const resumed = await fetch(serving.url(), { headers: { ...headers, 'last-event-id': question.id } });
  const answer = await eventOf(resumed, ({ result }) => result !== undefined);
  expect(answer.message).toMatchObject({ id: 7, result: { content: [{ text: 'Hello, Ada' }] } });
  const unknown = await fetch(serving.url(), { headers: { ...headers, 'last-event-id': '99-1' } });
  expect(unknown.status).toBe(400);
});
