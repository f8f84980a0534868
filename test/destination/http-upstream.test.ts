import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, describe, expect, test } from 'vitest';
import { type McpFrame, readMcpFrame } from '../../src/destination/mcp/frame.ts';
import { type HttpUpstreamOptions, openHttpUpstream } from '../../src/destination/mcp/http-upstream.ts';
import type { LateReply, SendRequest } from '../../src/destination/port.ts';
import { type DestinationFault, exerciseDestination } from '../../src/testing/exercise-destination.ts';

const SERVER = fileURLToPath(new URL('./fixtures/scripted-http-server.mjs', import.meta.url));
const PLENTY_MS = 20_000;

interface LogEntry {
  readonly event: string;
  readonly [key: string]: unknown;
}

const cleanUps: (() => Promise<void> | void)[] = [];
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp();
});

async function startServer(flags: readonly string[]) {
  const folder = mkdtempSync(join(tmpdir(), 'counterfoil-'));
  const logPath = join(folder, 'log');
  const child: ChildProcess = spawn(process.execPath, [SERVER, logPath, ...flags], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const [line] = (await once(child.stdout ?? process.stdin, 'data')) as [Buffer];
  const stop = async (): Promise<void> => {
    if (child.exitCode === null && child.signalCode === null) {
      child.kill('SIGKILL');
      await once(child, 'exit');
    }
    rmSync(folder, { recursive: true, force: true });
  };
  const log = (): LogEntry[] =>
    existsSync(logPath)
      ? readFileSync(logPath, 'utf8')
          .split('\n')
          .filter((text) => text !== '')
          .map((text) => JSON.parse(text) as LogEntry)
      : [];
  return { child, url: `http://127.0.0.1:${line.toString().trim()}/mcp`, log, stop };
}

/** An address at which nobody listens. */
async function deadUrl(): Promise<string> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as { readonly port: number };
  await new Promise((resolve) => server.close(resolve));
  return `http://127.0.0.1:${port}/mcp`;
}

async function setup(flags: readonly string[] = [], options: Partial<HttpUpstreamOptions> = {}) {
  const server = await startServer(flags);
  cleanUps.push(server.stop);
  const upstream = openHttpUpstream({ name: 'scripted', url: server.url, ...options });
  cleanUps.push(() => upstream.close());
  const frames: { readonly frame: McpFrame; readonly about: string | undefined }[] = [];
  const waiters: (() => void)[] = [];
  const late: LateReply[] = [];
  const unanswered: { readonly key: string; readonly detail: string }[] = [];
  const told = (): void => {
    for (const tell of waiters.splice(0)) tell();
  };
  upstream.onFrame = (frame, about) => {
    frames.push({ frame, about });
    told();
  };
  upstream.onUnanswered = (key, detail) => {
    unanswered.push({ key, detail });
    told();
  };
  upstream.onLateReply = (reply) => {
    late.push(reply);
    told();
  };
  const until = async (fits: () => boolean): Promise<void> => {
    while (!fits()) await new Promise<void>((resolve) => waiters.push(resolve));
  };
  const records = (): number => server.log().filter(({ event }) => event === 'record').length;
  const send = (args: object, overrides: Partial<SendRequest> = {}) =>
    upstream.send(request(args, overrides));
  const forward = (message: object) =>
    upstream.forward(readMcpFrame(Buffer.from(JSON.stringify({ jsonrpc: '2.0', ...message }))));
  return { ...server, upstream, frames, late, unanswered, until, records, send, forward };
}

async function connected(flags: readonly string[] = [], options: Partial<HttpUpstreamOptions> = {}) {
  const bundle = await setup(flags, options);
  expect(await bundle.upstream.connect()).toEqual({ connected: true });
  return bundle;
}

function request(args: object, overrides: Partial<SendRequest> = {}): SendRequest {
  return {
    operation: 'op_1',
    attempt: 'at_1',
    tool: 'act',
    payload: JSON.stringify(args),
    replyTimeoutMs: PLENTY_MS,
    mayLeave: () => true,
    ...overrides,
  };
}

describe.each([
  ['2025-11-25', []],
  ['2026-07-28', ['--modern']],
] as const)('the suite of the destination port, %s over HTTP', (_version, flags) => {
  const tricks: Readonly<Partial<Record<DestinationFault, string>>> = {
    none: 'answer',
    tool_error: 'tool_error',
    protocol_error: 'protocol_error',
    unreachable: 'answer',
    cut_before_record: 'cut_before_record',
    cut_after_record: 'cut_after_record',
    silent: 'no_answer',
    held: 'hold',
    unreadable: 'garbage',
  };
  const start = async (fault: DestinationFault) => {
    const server = await startServer(flags);
    const url = fault === 'unreachable' ? await deadUrl() : server.url;
    const destination = openHttpUpstream({ name: 'scripted', url });
    return {
      destination,
      tool: 'act',
      payload: (mark: string) => JSON.stringify({ fault: tricks[fault], mark }),
      question: { tool: 'look', payload: '{}' },
      countRecords: async () => server.log().filter(({ event }) => event === 'record').length,
      release: async () => {
        await destination.ask({ tool: 'release', payload: '{}', timeoutMs: PLENTY_MS });
      },
      stop: server.stop,
    };
  };
  const faults = Object.keys(tricks) as DestinationFault[];
  for (const { name, run } of exerciseDestination({ faults, start })) test(name, run);
});

describe('what is reported for each fault', () => {
  const maybe = (ended: string, more: object = {}) => ({ left: 'maybe', ended, ...more });
  const small = { messageMaxBytes: 200_000 };
  const rows: readonly [string, string, object, Partial<HttpUpstreamOptions>?][] = [
    [
      'an error with HTTP 400 under our id',
      'protocol_error_400',
      maybe('reply', { reply: { code: -32602 } }),
    ],
    ['an error with HTTP 400 under no id', 'error_without_id', maybe('reply', { reply: { code: -32600 } })],
    ['a reply by a stream', 'stream', maybe('reply', { reply: { kind: 'result' } })],
    [
      'two replies on one stream: the first counts',
      'stream_twice',
      maybe('reply', { reply: { kind: 'result' } }),
    ],
    ['a stream that ends before the reply', 'stream_ends', maybe('cut')],
    ['a stream that is taken up again where it broke off', 'stream_resumed', maybe('reply')],
    ['half a reply', 'half_reply', maybe('cut')],
    ['a page in place of a reply', 'page', maybe('unreadable')],
    [
      'HTTP 502',
      'bad_gateway',
      maybe('unreadable', { detail: 'it answered with HTTP 502: upstream went away' }),
    ],
    ['HTTP 202 without a reply', 'accepted', maybe('unreadable')],
    ['a redirect, which is not followed', 'redirect', maybe('unreadable')],
    ['a reply to somebody else', 'wrong_id', maybe('unreadable')],
    ['a reply without an end', 'endless', maybe('unreadable'), small],
    ['an event without an end', 'endless_event', maybe('unreadable'), small],
    ['a session that is no more', 'session_gone', maybe('reply', { reply: { kind: 'protocol_error' } })],
  ];
  test.each(rows)('%s', async (...row) => {
    const [, fault, expected, options = {}] = row;
    const { send, records, upstream } = await connected([], options);
    expect(await send({ fault, mark: 'm' })).toMatchObject(expected);
    expect(records()).toBe(1);
    // Whatever it was, the next one goes through.
    expect(await upstream.connect()).toEqual({ connected: true });
    expect(await send({ fault: 'answer', mark: 'next' })).toMatchObject(maybe('reply'));
    expect(records()).toBe(2);
  });

  test('a reply keeps its bytes', async () => {
    const { send } = await connected();
    expect(await send({ fault: 'exact' })).toMatchObject({
      reply: { body: '{"content":[],"n":1.0e2, "s":"\\u00e9"}' },
    });
  });

  test('a server that is gone has been sent nothing, and the next that is there is greeted anew', async () => {
    const { child, send, upstream } = await connected();
    child.kill('SIGKILL');
    await once(child, 'exit');
    const report = await send({ fault: 'answer' });
    expect(report).toMatchObject({ left: 'no', proof: 'connection_refused' });
    expect(upstream.isConnected()).toBe(false);
    expect((await upstream.connect()).connected).toBe(false);
  });
});

describe('a stream that ended before the reply is come back for', () => {
  test.each([
    ['not before the server’s time', 250, 250],
    ['after a second where the server names no time', undefined, 1_000],
  ])('%s', async (_name, retry, atLeastMs) => {
    const { log, send } = await connected();
    const report = await send({ fault: 'stream_ends_with_id', mark: 'm', retry });
    expect(report).toMatchObject({ left: 'maybe', ended: 'reply' });
    const at = (fits: (entry: LogEntry) => boolean): number => Number(log().find(fits)?.['at']);
    const ended = at(({ event }) => event === 'stream_ended');
    const back = at(({ event, last }) => event === 'get' && last === 'r-1');
    // Timers count whole milliseconds.
    expect(back - ended).toBeGreaterThanOrEqual(atLeastMs - 2);
  });
});

describe('a tool whose schema asks for headers as it may not', () => {
  test('is not called over HTTP, the others are, and it is once its server has corrected it', async () => {
    const { log, send, upstream } = await connected(['--modern', '--odd']);
    await upstream.request('tools/list', '{}', PLENTY_MS);
    expect(upstream.callProblem('odd')).toMatch(/x-mcp-header/);
    const refused = { left: 'no', proof: 'refused_by_sender', detail: upstream.callProblem('odd') };
    expect(await send({ a: 1 }, { tool: 'odd' })).toEqual(refused);
    const asked = await upstream.ask({ tool: 'odd', payload: '{}', timeoutMs: PLENTY_MS });
    expect(asked).toEqual({ answered: false, because: 'not_asked', detail: upstream.callProblem('odd') });
    expect(log().filter(({ event }) => event === 'odd')).toEqual([]);
    expect(await send({ fault: 'answer' })).toMatchObject({ ended: 'reply' });
    await upstream.ask({ tool: 'mend', payload: '{}', timeoutMs: PLENTY_MS });
    await upstream.request('tools/list', '{}', PLENTY_MS);
    expect(upstream.callProblem('odd')).toBeUndefined();
    expect(await send({ a: 1 }, { tool: 'odd' })).toMatchObject({ ended: 'reply' });
  });

  test('is called in a session, which knows no such headers', async () => {
    const { send, upstream } = await connected(['--odd']);
    await upstream.request('tools/list', '{}', PLENTY_MS);
    expect(upstream.callProblem('odd')).toBeUndefined();
    expect(await send({ a: 1 }, { tool: 'odd' })).toMatchObject({ ended: 'reply' });
  });
});

describe('which generation is spoken', () => {
  const askedOf = (log: () => LogEntry[]) =>
    log().flatMap(({ event, method }) =>
      event === 'message' && method !== 'notifications/initialized' ? [method] : [],
    );

  test.each([
    ['a server of 2025-11-25', [], 'legacy', ['initialize']],
    ['a server of 2025-11-25', [], 'modern', ['server/discover', 'initialize']],
    ['a server of 2026-07-28', ['--modern'], 'legacy', ['initialize', 'server/discover']],
    ['a server of 2026-07-28', ['--modern'], 'modern', ['server/discover']],
    ['a server of both', ['--dual'], 'legacy', ['initialize']],
    ['a server of both', ['--dual'], 'modern', ['server/discover']],
  ] as const)('%s (%j), %s preferred: %j', async (_name, flags, prefers, expected) => {
    const { log, upstream } = await connected(flags, { prefers });
    expect(askedOf(log)).toEqual(expected);
    expect(upstream.handshake?.method).toBe(expected.at(-1));
  });

  test.each([
    ['once, and names ours', ['--refuse-version', '1'], true, ['server/discover', 'server/discover']],
    [
      'again and again',
      ['--refuse-version', '9'],
      false,
      ['server/discover', 'server/discover', 'initialize'],
    ],
    [
      'once, and names none of ours',
      ['--refuse-version', '1', '--serves', '2099-01-01'],
      false,
      ['server/discover', 'initialize'],
    ],
  ] as const)('a server that refuses the version %s', async (_name, flags, isReached, expected) => {
    const { log, upstream } = await setup(['--modern', ...flags], { prefers: 'modern' });
    expect((await upstream.connect()).connected).toBe(isReached);
    expect(askedOf(log)).toEqual(expected);
  });

  test('each request of 2026-07-28 says what a session said once, and mirrors what the tool asks for', async () => {
    const { log, send, upstream } = await connected(['--modern']);
    await upstream.request('tools/list', '{}', PLENTY_MS);
    await send({ fault: 'answer', mark: 'é' }, { meta: '{"counterfoil/run":"r"}' });
    const record = log().find(({ event }) => event === 'record');
    expect(record?.['headers']).toMatchObject({
      'mcp-protocol-version': '2026-07-28',
      'mcp-method': 'tools/call',
      'mcp-name': 'act',
      'mcp-param-mark': '=?base64?w6k=?=',
    });
    expect(record?.['meta']).toMatchObject({
      'counterfoil/run': 'r',
      'io.modelcontextprotocol/protocolVersion': '2026-07-28',
      'io.modelcontextprotocol/clientCapabilities': {},
    });
  });
});

test('what one connection has read of a tool’s headers, another to the same server knows', async () => {
  const paramHeaders = new Map();
  const { log, send, upstream, url } = await connected(['--modern'], { paramHeaders });
  const lister = openHttpUpstream({ name: 'scripted', url, paramHeaders });
  cleanUps.push(() => lister.close());
  await lister.connect();
  await lister.request('tools/list', '{}', PLENTY_MS);
  expect(upstream.isConnected()).toBe(true);
  await send({ fault: 'answer', mark: 'plain' });
  expect(log().find(({ event }) => event === 'record')?.['headers']).toMatchObject({
    'mcp-param-mark': 'plain',
  });
});

describe('a client’s traffic', () => {
  const INITIALIZE = {
    id: 1,
    method: 'initialize',
    params: { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'c', version: '1' } },
  };

  test('passes, each answer with the request it is for, and its session goes with it', async () => {
    const { forward, frames, log, until, upstream } = await setup();
    expect(forward({ id: 0, method: 'tools/list' })).toBe('not_connected');
    expect(forward(INITIALIZE)).toBe('written');
    await until(() => frames.length === 1);
    expect(upstream.isConnected()).toBe(false);
    forward({ method: 'notifications/initialized' });
    expect(upstream.isConnected()).toBe(true);
    forward({ id: 'x', method: 'tools/list', params: {} });
    await until(() => frames.length === 2);
    expect(frames[1]?.about).toBe('"x"');
    expect(JSON.parse(frames[1]?.frame.text ?? '')).toMatchObject({ id: 'x' });
    await upstream.close();
    expect(log().find(({ event }) => event === 'deleted')).toMatchObject({ session: 'session-1' });
  });

  test('what the server says on a request’s stream is told with it', async () => {
    const { forward, frames, until } = await connected();
    const params = { name: 'look', arguments: { fault: 'stream', mark: 'm' } };
    forward({ id: 7, method: 'tools/call', params });
    await until(() => frames.length === 2);
    expect(frames.map(({ about }) => about)).toEqual(['7', '7']);
    expect(frames[0]?.frame.head?.method).toBe('notifications/message');
  });

  test.each(['stream_ends', 'bad_gateway', 'page', 'wrong_id'])(
    'a request that gets no answer is told as such (%s)',
    async (fault) => {
      const { forward, unanswered, until } = await connected();
      forward({ id: 7, method: 'tools/call', params: { name: 'look', arguments: { fault, mark: 'm' } } });
      await until(() => unanswered.length === 1);
      expect(unanswered[0]?.key).toBe('7');
    },
  );

  test('a refusal under no id reaches the request that it is for', async () => {
    const { forward, frames, until } = await connected();
    const params = { name: 'look', arguments: { fault: 'error_without_id' } };
    forward({ id: 7, method: 'tools/call', params });
    await until(() => frames.length === 1);
    expect(frames[0]?.frame.text).toBe('{"jsonrpc":"2.0","id":7,"error":{"code":-32600,"message":"no"}}');
  });

  test('what the server says by itself comes by the stream of GET', async () => {
    const { child, frames, log, until } = await connected();
    while (!log().some(({ event }) => event === 'get'))
      await new Promise((resolve) => setTimeout(resolve, 5));
    child.kill('SIGUSR2');
    await until(() => frames.length === 1);
    expect(frames[0]?.frame.head?.method).toBe('notifications/tools/list_changed');
  });
});

test('a header is sent once, however it is spelled, and what the protocol says in one stands', async () => {
  const headers = { Authorization: 'Bearer one', ACCEPT: 'text/html', 'Content-Type': 'text/plain' };
  const { log, upstream } = await setup([], { headers });
  expect(await upstream.connect()).toEqual({ connected: true });
  await upstream.send(request({ fault: 'answer', mark: 'm' }));
  const record = log().find(({ event }) => event === 'record');
  expect(record?.['headers']).toMatchObject({
    authorization: 'Bearer one',
    accept: 'application/json, text/event-stream',
    'content-type': 'application/json',
  });
});

test.each([
  [['--bearer', 'k'], { status: 401, hasChallenge: true }],
  [['--older-transport'], { status: 405, hasChallenge: false }],
  [[], undefined],
])(
  'a server that refuses whoever asks (%j) is told from one that does not answer',
  async (flags, refusal) => {
    const { upstream } = await setup(flags);
    await upstream.connect();
    expect(upstream.refusal).toEqual(refusal);
  },
);
