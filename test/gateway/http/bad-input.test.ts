// What the HTTP door is given that it must not take, one row each: it is told in one sentence, nothing is sent, and
// the next message goes through.

import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer, request as httpRequest, type IncomingHttpHeaders } from 'node:http';
import { connect as connectSocket } from 'node:net';
import { join } from 'node:path';
import { afterEach, describe, expect, test } from 'vitest';
import {
  CleanUps,
  callsOf,
  counterfoil,
  INITIALIZE,
  logOf,
  operationsIn,
  toolsServer,
  until,
} from '../processes.ts';
import { type Serving, sdkClient, startServing } from './serving.ts';

const cleanUps = new CleanUps();
afterEach(cleanUps.run);

interface Answered {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
}

/** One request as it is written, with nothing made right by a library. */
function raw(
  serving: Serving,
  options: {
    readonly method?: string;
    readonly path?: string;
    readonly headers?: Readonly<Record<string, string>>;
    readonly body?: string | Buffer;
  },
): Promise<Answered> {
  return new Promise((resolve, reject) => {
    const { method = 'POST', path = '/mcp', headers = {}, body } = options;
    const request = httpRequest(
      { host: '127.0.0.1', port: serving.port, method, path, headers },
      (response) => {
        let text = '';
        response.setEncoding('utf8').on('data', (chunk: string) => {
          text += chunk;
        });
        response.on('end', () =>
          resolve({ status: response.statusCode ?? 0, headers: response.headers, text }),
        );
        response.on('error', reject);
      },
    );
    request.on('error', reject);
    request.end(body);
  });
}

const JSON_HEADERS = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' };
const TOOLS = [
  { name: 'look', inputSchema: { type: 'object' }, annotations: { readOnlyHint: true } },
  {
    name: 'make',
    inputSchema: {
      type: 'object',
      properties: {
        title: { type: 'string' },
        region: { type: 'string', 'x-mcp-header': 'Region' },
        count: { type: 'integer', 'x-mcp-header': 'Count' },
      },
    },
  },
];
const CONFIG = { tools: { make: { class: 'ordinary' } } };

async function setup(tools: readonly object[] = TOOLS, plan: object = {}) {
  const folder = cleanUps.folder();
  writeFileSync(join(folder, 'tools.json'), JSON.stringify(tools));
  writeFileSync(join(folder, 'plan.json'), JSON.stringify(plan));
  const serving = await startServing(cleanUps, { tools: { command: toolsServer(folder), config: CONFIG } });
  return { folder, serving };
}

async function begun(serving: Serving): Promise<Record<string, string>> {
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'initialize', params: INITIALIZE });
  const { headers } = await raw(serving, { headers: JSON_HEADERS, body });
  const session = { ...JSON_HEADERS, 'mcp-session-id': String(headers['mcp-session-id']) };
  await raw(serving, { headers: session, body: '{"jsonrpc":"2.0","method":"notifications/initialized"}' });
  return session;
}

const META = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientCapabilities': {},
};
const modern = (method: string, params: object = {}, id: unknown = 1): string =>
  JSON.stringify({ jsonrpc: '2.0', id, method, params: { _meta: META, ...params } });
const modernHeaders = (method: string, more: Record<string, string> = {}): Record<string, string> => ({
  ...JSON_HEADERS,
  'mcp-protocol-version': '2026-07-28',
  'mcp-method': method,
  ...more,
});
const MAKE = { name: 'make', arguments: { title: 'a', region: 'eu', count: 42 } };
const makeHeaders = (more: Record<string, string> = {}): Record<string, string> =>
  modernHeaders('tools/call', {
    'mcp-name': 'make',
    'mcp-param-region': 'eu',
    'mcp-param-count': '42',
    ...more,
  });
const without = (headers: Record<string, string>, ...names: string[]): Record<string, string> =>
  Object.fromEntries(Object.entries(headers).filter(([name]) => !names.includes(name)));

describe('who may speak at all', () => {
  const PING = '{"jsonrpc":"2.0","id":9,"method":"ping"}';
  const rows: [string, Parameters<typeof raw>[1], number][] = [
    ['a Host of somebody else (DNS rebinding)', { headers: { ...JSON_HEADERS, host: 'evil.example' } }, 403],
    [
      'a Host that only begins like ours',
      { headers: { ...JSON_HEADERS, host: '127.0.0.1.evil.example' } },
      403,
    ],
    ['a Host with a user before it', { headers: { ...JSON_HEADERS, host: 'localhost@evil.example' } }, 403],
    ['an Origin of another site', { headers: { ...JSON_HEADERS, origin: 'https://evil.example' } }, 403],
    ['an Origin that is none', { headers: { ...JSON_HEADERS, origin: 'null' } }, 403],
    ['an Origin of a file', { headers: { ...JSON_HEADERS, origin: 'file://' } }, 403],
    ['another path', { path: '/', headers: JSON_HEADERS }, 404],
    ['a server that is not there', { path: '/mcp/others', headers: JSON_HEADERS }, 404],
    ['a name of an inherited member', { path: '/mcp/constructor', headers: JSON_HEADERS }, 404],
    ['PUT', { method: 'PUT', headers: JSON_HEADERS }, 405],
    ['a form', { headers: { ...JSON_HEADERS, 'content-type': 'text/plain' } }, 415],
    ['a client that takes neither answer', { headers: { ...JSON_HEADERS, accept: 'text/html' } }, 406],
    ['GET without a session', { method: 'GET', headers: { accept: 'text/event-stream' } }, 400],
    ['DELETE without a session', { method: 'DELETE' }, 400],
    ['DELETE of an unknown session', { method: 'DELETE', headers: { 'mcp-session-id': 'none' } }, 404],
  ];
  test('each is refused by its status, with a sentence, and nothing reaches the server', async () => {
    const { folder, serving } = await setup();
    for (const [name, options, status] of rows) {
      const body = options.method === undefined ? { body: PING } : {};
      const answered = await raw(serving, { ...body, ...options });
      expect(answered.status, name).toBe(status);
      const { error, id } = JSON.parse(answered.text) as { error: { message: string }; id: unknown };
      expect(error.message, name).toMatch(/\.$/);
      expect(id, name).toBeNull();
    }
    expect(logOf(folder).filter(({ event }) => event === 'call')).toEqual([]);
  });

  test.each(['localhost', '127.0.0.1', '[::1]'])(
    'a Host and an Origin of this machine are served: %s',
    async (name) => {
      const { serving } = await setup();
      const headers = { ...JSON_HEADERS, host: `${name}:${serving.port}`, origin: `http://${name}:3000` };
      const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'initialize', params: INITIALIZE });
      expect((await raw(serving, { headers, body })).status).toBe(200);
    },
  );
});

describe('messages of a session (2025-11-25)', () => {
  test('malformed frames are refused with 400, each under the right id', async () => {
    const { folder, serving } = await setup();
    const headers = await begun(serving);
    const rows: readonly (readonly [string, string | Buffer, number, unknown])[] = [
      ['no JSON', 'hello', -32700, null],
      ['nothing', '', -32700, null],
      ['a number', '17', -32700, null],
      ['a batch', '[{"jsonrpc":"2.0","id":5,"method":"ping"}]', -32600, null],
      ['a member twice', '{"jsonrpc":"2.0","id":5,"method":"ping","method":"tools/call"}', -32600, 5],
      ['an id that is null', '{"jsonrpc":"2.0","id":null,"method":"ping"}', -32600, null],
      ['an id that is an object', '{"jsonrpc":"2.0","id":{},"method":"ping"}', -32600, null],
      ['an id with a fraction', '{"jsonrpc":"2.0","id":1.5,"method":"ping"}', -32600, null],
      ['a comment', '{"jsonrpc":"2.0",/* " */"id":5,"method":"ping"}', -32700, null],
      ['bytes that are no text', Buffer.from([0x7b, 0xff, 0xfe, 0x7d]), -32700, null],
    ];
    for (const [name, body, code, id] of rows) {
      const answered = await raw(serving, { headers, body });
      expect(answered.status, name).toBe(400);
      expect(JSON.parse(answered.text), name).toMatchObject({ id, error: { code } });
    }
    const body = '{"jsonrpc":"2.0","id":6,"method":"ping"}';
    expect((await raw(serving, { headers, body })).text).toBe('{"jsonrpc":"2.0","id":6,"result":{}}');
    expect(logOf(folder).filter(({ event }) => event === 'call')).toEqual([]);
  });

  test('an unknown session, one that has ended, and a version that no session has', async () => {
    const { serving } = await setup();
    const headers = await begun(serving);
    const body = '{"jsonrpc":"2.0","id":6,"method":"ping"}';
    expect((await raw(serving, { headers: JSON_HEADERS, body })).status).toBe(400);
    const unknown = { ...headers, 'mcp-session-id': '00000000-0000-0000-0000-000000000000' };
    expect((await raw(serving, { headers: unknown, body })).status).toBe(404);
    const odd = { ...headers, 'mcp-protocol-version': '1999-01-01' };
    expect((await raw(serving, { headers: odd, body })).status).toBe(400);
    expect((await raw(serving, { headers, body })).status).toBe(200);
    expect((await raw(serving, { method: 'DELETE', headers })).status).toBe(200);
    expect((await raw(serving, { headers, body })).status).toBe(404);
  });

  test('a second request under an id that is open does not disturb the first', async () => {
    const { folder, serving } = await setup(TOOLS, { make: { does: 'hold' } });
    const headers = await begun(serving);
    const call = JSON.stringify({
      jsonrpc: '2.0',
      id: 7,
      method: 'tools/call',
      params: { name: 'make', arguments: {} },
    });
    const first = raw(serving, { headers, body: call });
    await until(() => callsOf(folder, 'make').length === 1, 'the write to arrive');
    const second = await raw(serving, { headers, body: '{"jsonrpc":"2.0","id":7,"method":"ping"}' });
    expect(second.status).toBe(400);
    expect(JSON.parse(second.text)).toMatchObject({ id: null });
    writeFileSync(join(folder, 'release'), '');
    expect((await first).text).toContain('did make');
  });

  test('a message in several lines is one message', async () => {
    const { folder, serving } = await setup();
    const headers = await begun(serving);
    const params = { name: 'make', arguments: { title: 'a\nb' } };
    const body = JSON.stringify({ jsonrpc: '2.0', id: 7, method: 'tools/call', params }, undefined, 2);
    expect((await raw(serving, { headers, body })).text).toContain('did make');
    expect(callsOf(folder, 'make')[0]?.arguments).toEqual({ title: 'a\nb' });
  });
});

describe('messages without a session (2026-07-28)', () => {
  const rows: [string, Record<string, string>, string, number, number][] = [
    ['no _meta', modernHeaders('tools/list'), '{"jsonrpc":"2.0","id":1,"method":"tools/list"}', 400, -32602],
    [
      '_meta without a version',
      modernHeaders('tools/list'),
      '{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/clientCapabilities":{}}}}',
      400,
      -32602,
    ],
    [
      '_meta without capabilities',
      modernHeaders('tools/list'),
      '{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}',
      400,
      -32602,
    ],
    [
      'another version in the header',
      modernHeaders('tools/list', { 'mcp-protocol-version': '2027-01-01' }),
      modern('tools/list'),
      400,
      -32020,
    ],
    [
      'no version in the header',
      without(modernHeaders('tools/list'), 'mcp-protocol-version'),
      modern('tools/list'),
      400,
      -32020,
    ],
    [
      'a version that nobody serves',
      modernHeaders('tools/list', { 'mcp-protocol-version': 'v999' }),
      modern('tools/list', { _meta: { ...META, 'io.modelcontextprotocol/protocolVersion': 'v999' } }),
      400,
      -32022,
    ],
    ['no Mcp-Method', without(modernHeaders('tools/list'), 'mcp-method'), modern('tools/list'), 400, -32020],
    ['another Mcp-Method', modernHeaders('prompts/list'), modern('tools/list'), 400, -32020],
    ['Mcp-Method in another case', modernHeaders('TOOLS/LIST'), modern('tools/list'), 400, -32020],
    ['no Mcp-Name', without(makeHeaders(), 'mcp-name'), modern('tools/call', MAKE), 400, -32020],
    ['another Mcp-Name', makeHeaders({ 'mcp-name': 'look' }), modern('tools/call', MAKE), 400, -32020],
    [
      'a broken Mcp-Name',
      makeHeaders({ 'mcp-name': '=?base64?!!?=' }),
      modern('tools/call', MAKE),
      400,
      -32020,
    ],
    [
      'another mirrored argument',
      makeHeaders({ 'mcp-param-region': 'us' }),
      modern('tools/call', MAKE),
      400,
      -32020,
    ],
    [
      'no mirrored argument',
      without(makeHeaders(), 'mcp-param-region'),
      modern('tools/call', MAKE),
      400,
      -32020,
    ],
    ['a method that this generation has given up', modernHeaders('ping'), modern('ping'), 404, -32601],
    ['a method that nobody knows', modernHeaders('no/such'), modern('no/such'), 404, -32601],
    [
      'a _meta twice',
      modernHeaders('tools/list'),
      `${modern('tools/list').slice(0, -2)},"_meta":{}}}`,
      400,
      -32602,
    ],
    [
      'a forged state',
      makeHeaders(),
      modern('tools/call', { ...MAKE, requestState: 'cf1.AAAA' }),
      400,
      -32602,
    ],
  ];
  test('each is refused by its status and code, and nothing reaches a write', async () => {
    const { folder, serving } = await setup();
    for (const [name, headers, body, status, code] of rows) {
      const answered = await raw(serving, { headers, body });
      expect({ status: answered.status, ...(JSON.parse(answered.text) as object) }, name).toMatchObject({
        status,
        error: { code },
      });
    }
    expect(callsOf(folder, 'make')).toEqual([]);
    expect(await operationsIn(serving.data)).toEqual([]);
    const name = `=?base64?${Buffer.from('make').toString('base64')}?=`;
    const headers = makeHeaders({ 'mcp-name': name, 'mcp-param-count': '42.0' });
    expect((await raw(serving, { headers, body: modern('tools/call', MAKE) })).text).toContain('did make');
    expect(callsOf(folder, 'make')).toHaveLength(1);
  });

  test('a client that closes its request takes a read back, and ends no write', async () => {
    const { folder, serving } = await setup(TOOLS, { make: { does: 'hold' } });
    const abort = new AbortController();
    const body = modern('tools/call', MAKE);
    const sent = fetch(serving.url(), { method: 'POST', headers: makeHeaders(), body, signal: abort.signal });
    await until(() => callsOf(folder, 'make').length === 1, 'the write to arrive');
    abort.abort();
    await expect(sent).rejects.toThrow(/abort/i);
    writeFileSync(join(folder, 'release'), '');
    await until(() => logOf(folder).some(({ event }) => event === 'answered'), 'the write to be answered');
    const again = await raw(serving, { headers: makeHeaders(), body: modern('tools/call', MAKE, 2) });
    expect(again.text).toContain('did make');
    expect(callsOf(folder, 'make')).toHaveLength(1);
  });
});

describe('sizes', () => {
  test('a body that is too long is refused, declared or endless, and the door goes on', async () => {
    const { serving } = await setup();
    const headers = await begun(serving);
    const declared = { ...headers, 'content-length': String(64 * 1024 * 1024) };
    const answered = await new Promise<number>((resolve, reject) => {
      const request = httpRequest(
        { host: '127.0.0.1', port: serving.port, method: 'POST', path: '/mcp', headers: declared },
        (response) => resolve(response.statusCode ?? 0),
      );
      request.on('error', reject);
      request.flushHeaders();
    });
    expect(answered).toBe(413);
    const endless = await new Promise<number>((resolve, reject) => {
      const request = httpRequest(
        { host: '127.0.0.1', port: serving.port, method: 'POST', path: '/mcp', headers },
        (response) => {
          resolve(response.statusCode ?? 0);
          request.destroy();
        },
      );
      request.on('error', reject);
      const chunk = Buffer.alloc(1024 * 1024, 0x20);
      const more = (): void => {
        if (!request.destroyed && !request.writableEnded) request.write(chunk, () => more());
      };
      more();
    });
    expect(endless).toBe(413);
    const body = '{"jsonrpc":"2.0","id":6,"method":"ping"}';
    expect((await raw(serving, { headers, body })).status).toBe(200);
  });

  test('a request that is cut off in its middle is nothing', async () => {
    const { folder, serving } = await setup();
    const headers = await begun(serving);
    const socket = connectSocket(serving.port, '127.0.0.1');
    socket.on('error', () => {});
    await new Promise<void>((resolve) => socket.once('connect', () => resolve()));
    const head = Object.entries({ ...headers, host: '127.0.0.1', 'content-length': '1000' });
    socket.write(
      `POST /mcp HTTP/1.1\r\n${head.map(([name, value]) => `${name}: ${value}\r\n`).join('')}\r\n`,
    );
    await new Promise<void>((resolve) =>
      socket.write('{"jsonrpc":"2.0","id":7,"method":"tools/call"', () => resolve()),
    );
    socket.destroy();
    const body = '{"jsonrpc":"2.0","id":6,"method":"ping"}';
    expect((await raw(serving, { headers, body })).status).toBe(200);
    expect(callsOf(folder, 'make')).toEqual([]);
  });

  test('10,000 tools, a description of 1 MB, and a name that is our helper tool’s', async () => {
    const many = Array.from({ length: 10_000 }, (_, index) => ({
      name: `tool_${index}`,
      inputSchema: { type: 'object' },
      annotations: { readOnlyHint: true },
    }));
    const long = { name: 'long', description: 'x'.repeat(1024 * 1024), inputSchema: { type: 'object' } };
    const ours = {
      name: 'counterfoil_operation_status',
      inputSchema: { type: 'object' },
      annotations: { readOnlyHint: true },
    };
    const { folder, serving } = await setup([...many, long, ours]);
    const { client } = await sdkClient(cleanUps, serving.url());
    const { tools } = await client.listTools();
    expect(tools).toHaveLength(10_003);
    expect(tools.at(-3)?.description).toHaveLength(1024 * 1024);
    expect(tools.at(-1)?.name).toBe('counterfoil_operation_status_2');
    await client.callTool({ name: 'tool_9999', arguments: {} });
    await client.callTool({ name: 'counterfoil_operation_status', arguments: {} });
    expect(callsOf(folder, 'counterfoil_operation_status')).toHaveLength(1);
  });

  test('a server that floods its output ends its own connection’s calls, and no other’s', async () => {
    const { folder, serving } = await setup(TOOLS, { look: { flood: 70 * 1024 * 1024 } });
    const first = await sdkClient(cleanUps, serving.url());
    const second = await sdkClient(cleanUps, serving.url());
    const flooded = first.client.callTool({ name: 'look', arguments: {} });
    await until(() => logOf(folder).some(({ event }) => event === 'answered'), 'the flood to begin');
    const made = await second.client.callTool({ name: 'make', arguments: { title: 'a' } });
    expect(JSON.stringify(made)).toContain('did make');
    await expect(flooded).rejects.toThrow(/gave no answer: the reply is \d+ bytes long, more than is read/);
    await first.client.callTool({ name: 'make', arguments: { title: 'b' } });
    expect(callsOf(folder, 'make')).toHaveLength(2);
  });
});

describe('answers that are not what was asked', () => {
  test('a reply for another id, and a second reply, reach nobody', async () => {
    const { serving } = await setup(TOOLS, { look: { forges: 4242 } });
    const headers = await begun(serving);
    const params = { name: 'look', arguments: {} };
    const body = JSON.stringify({ jsonrpc: '2.0', id: 7, method: 'tools/call', params });
    const answered = await raw(serving, { headers, body });
    expect(answered.text).toContain('did look');
    expect(answered.text).not.toContain('forged');
  });
});

describe('how it is started', () => {
  const rows: [string, object | string, readonly string[], RegExp][] = [
    [
      'a configuration that is not there',
      '',
      ['--config', 'none.yaml'],
      /cannot be read: there is no such file/,
    ],
    ['no servers', {}, [], /"?servers"? is missing/],
    ['a server that says nothing', { servers: { a: {} } }, [], /servers\.a says neither command nor url/],
    [
      'a server that says both',
      { servers: { a: { command: 'x', url: 'http://x' } } },
      [],
      /says both command and url/,
    ],
    [
      'arguments for an address',
      { servers: { a: { url: 'http://x', args: ['y'] } } },
      [],
      /says args, which only a server that is started/,
    ],
    [
      'headers for a command',
      { servers: { a: { command: 'x', headers: {} } } },
      [],
      /says headers, which only a server that is reached/,
    ],
    ['an unknown key', { servers: { a: { comand: 'x' } } }, [], /did you mean command\?/],
    ['an address of another kind', { servers: { a: { url: 'ftp://x' } } }, [], /http or https address/],
    [
      'an address of other machines',
      { servers: { a: { command: 'x' } } },
      ['--host', '0.0.0.0'],
      /can be reached from other machines/,
    ],
    [
      'a webhook on another machine without https',
      { servers: { a: { command: 'x' } }, webhooks: [{ url: 'http://example.com/', secret: { env: 'X' } }] },
      [],
      /webhooks\[0\]\.url is an http address of another machine; only https is allowed there/,
    ],
    [
      'a webhook with its secret written out',
      { servers: { a: { command: 'x' } }, webhooks: [{ url: 'https://example.com/', secret: 'whsec_x' }] },
      [],
      /^(?![^]*whsec_)[^]*webhooks\[0\]\.secret says where the secret is kept: \{env: VARIABLE\} or \{file: NAME\}/,
    ],
    [
      'a webhook with a key that is unknown',
      {
        servers: { a: { command: 'x' } },
        webhooks: [{ url: 'https://example.com/', secret: { env: 'X' }, event: 'all' }],
      },
      [],
      /The key "event" is not known in webhooks\[0\]/,
    ],
    [
      'a webhook with two places for its secret',
      {
        servers: { a: { command: 'x' } },
        webhooks: [{ url: 'https://example.com/', secret: { env: 'X', file: 'y' } }],
      },
      [],
      /one of them and nothing else/,
    ],
    [
      'a webhook whose variable is not set',
      {
        servers: { a: { command: 'x' } },
        webhooks: [{ url: 'https://example.com/', secret: { env: 'NOT_SET_HERE' } }],
      },
      [],
      /The variable NOT_SET_HERE, which holds the secret of a webhook, is not set\. Nothing was started\./,
    ],
    [
      'a webhook whose file holds no secret',
      {
        servers: { a: { command: 'x' } },
        webhooks: [{ url: 'http://127.0.0.1:9/', secret: { file: 'serve.yaml' } }],
      },
      [],
      /The secret of a webhook in serve\.yaml is not whsec_ and then 24 to 64 bytes in base64/,
    ],
    [
      'a webhook whose secret is too short',
      {
        servers: { a: { command: 'x' } },
        webhooks: [{ url: 'http://127.0.0.1:9/', secret: { env: 'SHORT_SECRET' } }],
      },
      [],
      /The secret of a webhook in the variable SHORT_SECRET is not whsec_ and then 24 to 64 bytes in base64/,
    ],
    ['a port that is none', { servers: { a: { command: 'x' } } }, ['--port', '70000'], /is not a port/],
  ];
  test.each(rows)('%s', async (_name, config, options, expected) => {
    const folder = cleanUps.folder();
    const file = join(folder, 'serve.yaml');
    writeFileSync(file, JSON.stringify(config));
    const named = options.includes('--config') ? [] : ['--config', file];
    const ran = await counterfoil(['serve', '--data', join(folder, 'data'), ...named, ...options], {
      cwd: folder,
      env: { SHORT_SECRET: `whsec_${Buffer.alloc(23).toString('base64')}` },
    });
    expect(ran).toMatchObject({ code: 2, stdout: '' });
    expect(ran.stderr).toMatch(expected);
  });

  test('a port that somebody else has', async () => {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', () => resolve()));
    cleanUps.add(() => void server.close());
    const { port } = server.address() as { readonly port: number };
    const folder = cleanUps.folder();
    const file = join(folder, 'serve.yaml');
    writeFileSync(file, JSON.stringify({ servers: { a: { command: 'x' } } }));
    const ran = await counterfoil([
      'serve',
      '--config',
      file,
      '--data',
      join(folder, 'data'),
      '--port',
      String(port),
    ]);
    expect(ran.code).toBe(2);
    expect(ran.stderr).toContain('somebody else listens there');
    expect(existsSync(file) && readFileSync(file, 'utf8')).toContain('servers');
  });
});
