// How long a client of the HTTP door is left without a word, and what it is let keep: the times that pass here are
// turned by hand, everything else is real.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setImmediate as turn } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { composeHttpGateway } from '../../../src/compose.ts';
import type { EndpointLimits } from '../../../src/gateway/http/mcp-endpoint.ts';
import { CleanUps, INITIALIZE } from '../processes.ts';

const SERVER = fileURLToPath(new URL('../../destination/fixtures/scripted-http-server.mjs', import.meta.url));
const EVENTS = 'application/json, text/event-stream';
const MINUTE_MS = 60_000;
const cleanUps = new CleanUps();
afterEach(async () => {
  vi.useRealTimers();
  await cleanUps.run();
});

interface LogEntry {
  readonly event: string;
  readonly method?: string;
}

type Headers = Readonly<Record<string, string>>;

/** A gateway in this process, whose clock a test can turn, in front of a server of 2025-11-25 in its own. */
async function setup(limits: EndpointLimits = {}) {
  const folder = cleanUps.folder();
  const logPath = join(folder, 'log');
  const server = spawn(process.execPath, [SERVER, logPath], { stdio: ['ignore', 'pipe', 'inherit'] });
  cleanUps.add(async () => {
    server.kill('SIGKILL');
    await once(server, 'exit');
  });
  const [port] = (await once(server.stdout, 'data')) as [Buffer];
  const gateway = await composeHttpGateway({
    data: join(folder, 'data'),
    servers: [
      {
        name: 'scripted',
        destination: 'scripted',
        reach: { url: `http://127.0.0.1:${port.toString().trim()}/mcp` },
        rules: { config: undefined, contracts: [], bindings: [] },
        run: undefined,
      },
    ],
    host: '127.0.0.1',
    port: 0,
    hostNames: [],
    authenticate: () => ({ principal: 'somebody' }),
    settings: {},
    where: 'here',
    report: () => {},
    reached: () => {},
    version: '0',
    limits,
  });
  cleanUps.add(() => gateway.close());
  const url = `http://127.0.0.1:${gateway.port}/mcp`;
  const post = (message: object, headers: Headers) =>
    fetch(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json', accept: EVENTS, ...headers },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, ...message }),
    });
  const log = (event: string): readonly LogEntry[] =>
    existsSync(logPath)
      ? readFileSync(logPath, 'utf8')
          .split('\n')
          .slice(0, -1)
          .map((line) => JSON.parse(line) as LogEntry)
          .filter((entry) => entry.event === event)
      : [];
  /** Does not need a clock. */
  const logged = async (event: string, count: number): Promise<readonly LogEntry[]> => {
    while (log(event).length < count) await turn();
    return log(event);
  };
  /** The headers of a session's requests; its id at the gateway is in them. */
  const begin = async (): Promise<Headers> => {
    const response = await post({ method: 'initialize', params: INITIALIZE }, {});
    expect(response.status).toBe(200);
    await response.text();
    const session = { 'mcp-session-id': response.headers.get('mcp-session-id') ?? '' };
    await (await post({ id: undefined, method: 'notifications/initialized' }, session)).text();
    return session;
  };
  const end = (session: Headers) => fetch(url, { method: 'DELETE', headers: session });
  return { post, log, logged, begin, end };
}

/** A call, as a client of a session or of 2026-07-28 makes it. */
function callOf(
  tool: string,
  args: object,
  more: { readonly id?: number; readonly capabilities?: object } = {},
) {
  const { id = 1, capabilities } = more;
  const params = { name: tool, arguments: args };
  if (capabilities === undefined) return [{ id, method: 'tools/call', params }, {}] as const;
  const _meta = {
    'io.modelcontextprotocol/protocolVersion': '2026-07-28',
    'io.modelcontextprotocol/clientCapabilities': capabilities,
  };
  const headers: Headers = {
    'mcp-protocol-version': '2026-07-28',
    'mcp-method': 'tools/call',
    'mcp-name': tool,
  };
  return [{ id, method: 'tools/call', params: { ...params, _meta } }, headers] as const;
}

describe.each(['2025-11-25', '2026-07-28'])('an answer to a client of %s', (version) => {
  const capabilities = version === '2026-07-28' ? { capabilities: {} } : {};
  const HOLD = { fault: 'hold', mark: 'held' };

  async function held() {
    const gateway = await setup();
    const session = version === '2026-07-28' ? {} : await gateway.begin();
    const call = (id: number, tool: string, args: object, accept: string) => {
      const [message, headers] = callOf(tool, args, { id, ...capabilities });
      return gateway.post(message, { ...session, ...headers, accept });
    };
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    return { ...gateway, call };
  }

  test('that takes ten seconds comes on a stream, whose headers are there by then', async () => {
    const { call, logged } = await held();
    let isThere = false;
    const response = call(1, 'look', HOLD, EVENTS).finally(() => {
      isThere = true;
    });
    await logged('look', 1);
    vi.advanceTimersByTime(9_999);
    const quick = await call(2, 'look', {}, EVENTS);
    expect(quick.headers.get('content-type')).toBe('application/json');
    expect(isThere).toBe(false);
    vi.advanceTimersByTime(1);
    const { headers, body } = await response;
    expect(headers.get('content-type')).toBe('text/event-stream');
    await (await call(3, 'release', {}, EVENTS)).text();
    let text = '';
    for await (const chunk of body ?? []) text += Buffer.from(chunk as Uint8Array).toString();
    const data = /^data: (\{.*\})$/m.exec(text)?.[1] ?? '{}';
    expect(JSON.parse(data)).toMatchObject({ id: 1, result: { content: [{ text: 'held' }] } });
  });

  test('stays in one piece for a client that takes no stream, however long it takes', async () => {
    const { call, logged } = await held();
    const response = call(1, 'look', HOLD, 'application/json');
    await logged('look', 1);
    vi.advanceTimersByTime(10 * MINUTE_MS);
    await (await call(2, 'release', {}, 'application/json')).text();
    const { headers, ...rest } = await response.then(async (given) => ({
      headers: given.headers,
      body: (await given.json()) as object,
    }));
    expect(headers.get('content-type')).toBe('application/json');
    expect(rest.body).toMatchObject({ id: 1, result: { content: [{ text: 'held' }] } });
  });
});

describe('sessions', () => {
  test('that are silent for half an hour end, and one that waits for an answer does not', async () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'performance'] });
    const { begin, log, logged, post } = await setup();
    const silent = await begin();
    const busy = await begin();
    const [message] = callOf('look', { fault: 'hold', mark: 'held' });
    const answer = post(message, busy);
    await logged('look', 1);
    vi.advanceTimersByTime(30 * MINUTE_MS);
    expect((await post({ method: 'ping' }, silent)).status).toBe(200);
    // That was a sign of life.
    vi.advanceTimersByTime(30 * MINUTE_MS);
    expect(log('deleted')).toEqual([]);
    vi.advanceTimersByTime(MINUTE_MS);
    await logged('deleted', 1);
    expect((await post({ method: 'ping' }, silent)).status).toBe(404);
    await (await post(callOf('release', {}, { id: 2 })[0], busy)).text();
    expect(await (await answer).json()).toMatchObject({ result: { content: [{ text: 'held' }] } });
    expect(log('deleted')).toHaveLength(1);
  });

  test('are begun up to a number, and again once one of them has ended', async () => {
    const { begin, end, post } = await setup({ sessionsMax: 2 });
    const first = await begin();
    await begin();
    const refused = await post({ method: 'initialize', params: INITIALIZE }, {});
    expect(refused.status).toBe(503);
    expect(await refused.text()).toContain('2 sessions are open, and no more are begun.');
    expect((await post({ method: 'ping' }, first)).status).toBe(200);
    expect((await end(first)).status).toBe(200);
    await begin();
  });
});

describe('connections for clients of 2026-07-28', () => {
  /** Each set of capabilities has a connection, and so a session at the server, of its own. */
  const looked = async (
    { post }: Awaited<ReturnType<typeof setup>>,
    name: string,
    args: object = {},
  ): Promise<Response> => {
    const [message, headers] = callOf('look', args, { capabilities: { experimental: { [name]: {} } } });
    return post(message, headers);
  };

  test('that nobody has used for ten minutes are closed, and one that is in use is not', async () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'performance'] });
    const gateway = await setup();
    const { log, logged } = gateway;
    await looked(gateway, 'idle');
    const answer = looked(gateway, 'busy', { fault: 'hold', mark: 'held' });
    await logged('look', 2);
    vi.advanceTimersByTime(10 * MINUTE_MS);
    await looked(gateway, 'idle');
    vi.advanceTimersByTime(10 * MINUTE_MS);
    expect(log('deleted')).toEqual([]);
    vi.advanceTimersByTime(MINUTE_MS);
    await logged('deleted', 1);
    // Whoever comes back is given another, which can release what waits on the first.
    const [message, headers] = callOf('release', {}, { capabilities: { experimental: { idle: {} } } });
    await (await gateway.post(message, headers)).text();
    expect(await (await answer).json()).toMatchObject({ result: { content: [{ text: 'held' }] } });
    expect(log('deleted')).toHaveLength(1);
  });

  test('beyond a number take the place of the one that has been idle longest', async () => {
    const gateway = await setup({ connectionsMax: 3 });
    const { log, logged, post } = gateway;
    const answer = looked(gateway, 'busy', { fault: 'hold', mark: 'held' });
    await logged('look', 1);
    for (const name of ['first', 'second', 'first']) await (await looked(gateway, name)).text();
    expect(log('deleted')).toEqual([]);
    await (await looked(gateway, 'third')).text();
    await logged('deleted', 1);
    const begun = () => log('message').filter(({ method }) => method === 'initialize').length;
    const before = begun();
    await (await looked(gateway, 'first')).text();
    expect(begun()).toBe(before);
    await (await looked(gateway, 'second')).text();
    expect(begun()).toBe(before + 1);
    await logged('deleted', 2);
    const [message, headers] = callOf('release', {}, { capabilities: { experimental: { second: {} } } });
    await (await post(message, headers)).text();
    expect(await (await answer).json()).toMatchObject({ result: { content: [{ text: 'held' }] } });
  });
});
