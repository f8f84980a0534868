import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, describe, expect, test } from 'vitest';
import { type McpFrame, readMcpFrame } from '../../src/destination/mcp/frame.ts';
import { openStdioUpstream, type StdioUpstreamOptions } from '../../src/destination/mcp/stdio-upstream.ts';
import type { LateReply, SendReport, SendRequest } from '../../src/destination/port.ts';
import { type DestinationFault, exerciseDestination } from '../../src/testing/exercise-destination.ts';

const SERVER = fileURLToPath(new URL('./fixtures/scripted-mcp-server.mjs', import.meta.url));
const FILESYSTEM_SERVER = fileURLToPath(
  new URL('../../node_modules/@modelcontextprotocol/server-filesystem/dist/index.js', import.meta.url),
);
const PLENTY_MS = 20_000;

interface LogEntry {
  readonly event: string;
  readonly [key: string]: unknown;
}

const cleanUps: (() => Promise<void> | void)[] = [];
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp();
});

/** A list that tests can wait on: `until` resolves as soon as an entry fits. */
class Seen<Entry> {
  readonly all: Entry[] = [];
  #waiters: (() => void)[] = [];

  readonly add = (entry: Entry): void => {
    this.all.push(entry);
    for (const tell of this.#waiters.splice(0)) tell();
  };

  async until(fits: (entry: Entry) => boolean): Promise<Entry> {
    for (;;) {
      const found = this.all.find(fits);
      if (found !== undefined) return found;
      await new Promise<void>((resolve) => this.#waiters.push(resolve));
    }
  }
}

function folder(): string {
  const path = mkdtempSync(join(tmpdir(), 'counterfoil-'));
  cleanUps.push(() => rmSync(path, { recursive: true, maxRetries: 10 }));
  return path;
}

function setup(flags: readonly string[] = [], options: Partial<StdioUpstreamOptions> = {}) {
  const logPath = join(folder(), 'log');
  const upstream = openStdioUpstream({
    name: 'scripted',
    command: process.execPath,
    args: [SERVER, logPath, ...flags],
    stderr: 'ignore',
    ...options,
  });
  cleanUps.push(() => upstream.close());
  const frames = new Seen<McpFrame>();
  const exits = new Seen<{ readonly code: number | null; readonly signal: string | null }>();
  const late = new Seen<LateReply>();
  const garbage = new Seen<string>();
  upstream.onFrame = frames.add;
  upstream.onExit = exits.add;
  upstream.onLateReply = late.add;
  upstream.onGarbage = (line) => garbage.add(line.toString());
  const log = (): LogEntry[] => readLog(logPath);
  return {
    upstream,
    logPath,
    frames,
    exits,
    late,
    garbage,
    log,
    records: () => log().filter(({ event }) => event === 'record').length,
    forward: (text: string) => upstream.forward(readMcpFrame(Buffer.from(text))),
    send: (args: object, overrides: Partial<SendRequest> = {}) => upstream.send(request(args, overrides)),
    look: (args: object = {}) =>
      upstream.ask({ tool: 'look', payload: JSON.stringify(args), timeoutMs: PLENTY_MS }),
    release: () => upstream.ask({ tool: 'release', payload: '{}', timeoutMs: PLENTY_MS }),
  };
}

async function connected(flags: readonly string[] = [], options: Partial<StdioUpstreamOptions> = {}) {
  const bundle = setup(flags, options);
  expect(await bundle.upstream.connect()).toEqual({ connected: true });
  return bundle;
}

function readLog(path: string): LogEntry[] {
  try {
    return readFileSync(path, 'utf8')
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line) as LogEntry);
  } catch {
    return [];
  }
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

/** One process that we started, ended from outside as an operator or the kernel would. */
function kill(pid: number | undefined, signal: NodeJS.Signals): void {
  if (pid === undefined) throw new Error('no child runs');
  process.kill(pid, signal);
}

describe('an MCP server over stdio passes the conformance suite', () => {
  const tricks: Record<DestinationFault, string> = {
    none: 'answer',
    tool_error: 'tool_error',
    protocol_error: 'protocol_error',
    unreachable: 'answer',
    cut_before_record: 'exit_before_record',
    cut_after_record: 'exit_after_record',
    silent: 'no_answer',
    held: 'hold',
    unreadable: 'garbage',
  };
  const start = async (fault: DestinationFault) => {
    const { upstream, records, release } = setup(
      [],
      fault === 'unreachable' ? { command: '/nonexistent' } : {},
    );
    return {
      destination: upstream,
      tool: 'act',
      payload: (mark: string) => JSON.stringify({ fault: tricks[fault], mark }),
      question: { tool: 'look', payload: '{}' },
      countRecords: async () => records(),
      release: async () => {
        await release();
      },
      stop: async () => {},
    };
  };
  const faults = Object.keys(tricks) as DestinationFault[];
  for (const { name, run } of exerciseDestination({ faults, start })) test(name, run);
});

describe('what is reported for each fault', () => {
  interface Row {
    readonly name: string;
    readonly flags?: readonly string[];
    readonly options?: Partial<StdioUpstreamOptions>;
    readonly args?: object;
    readonly request?: Partial<SendRequest>;
    /** Done before the send; the default connects. */
    readonly before?: (bundle: ReturnType<typeof setup>) => Promise<unknown>;
    /** Done when the send has begun. */
    readonly during?: (bundle: ReturnType<typeof setup>) => Promise<unknown>;
    readonly expected: object;
    readonly records: number;
  }
  const maybe = (ended: string, more: object = {}) => ({ left: 'maybe', ended, ...more });
  const no = (proof: string) => ({ left: 'no', proof });
  const deaf = async ({ upstream, frames }: ReturnType<typeof setup>) => {
    await upstream.connect();
    await frames.until(({ head }) => head?.method === 'notifications/deaf');
  };
  const rows: Row[] = [
    // nothing was written
    { name: 'never connected', before: async () => {}, expected: no('not_connected'), records: 0 },
    {
      name: 'a command that does not exist',
      options: { command: '/nonexistent/server' },
      expected: no('spawn_failed'),
      records: 0,
    },
    {
      name: 'a server that exits at its start',
      flags: ['--exit'],
      expected: no('not_connected'),
      records: 0,
    },
    {
      name: 'a server that refuses the handshake',
      flags: ['--refuse-handshake'],
      expected: no('not_connected'),
      records: 0,
    },
    {
      name: 'a server that never answers the handshake',
      flags: ['--no-handshake'],
      options: { startTimeoutMs: 300 },
      expected: no('not_connected'),
      records: 0,
    },
    {
      name: 'a server that was seen to end',
      before: async ({ upstream, exits }) => {
        await upstream.connect();
        kill(upstream.pid, 'SIGKILL');
        await exits.until(() => true);
      },
      expected: no('not_connected'),
      records: 0,
    },
    {
      name: 'after close',
      before: async ({ upstream }) => {
        await upstream.connect();
        await upstream.close();
      },
      expected: no('not_connected'),
      records: 0,
    },
    {
      name: 'it may not leave',
      request: { mayLeave: () => false },
      expected: no('refused_by_sender'),
      records: 0,
    },
    {
      name: 'the wait was aborted before',
      request: { signal: AbortSignal.abort() },
      expected: no('refused_by_sender'),
      records: 0,
    },
    {
      name: 'a payload that would end the frame',
      request: { payload: '{"fault":"answer",\n"mark":"m"}' },
      expected: no('refused_by_sender'),
      records: 0,
    },
    {
      name: 'a pipe that is full because the server does not read',
      flags: ['--deaf'],
      before: async (bundle) => {
        await deaf(bundle);
        bundle.forward(`{"jsonrpc":"2.0","method":"x","params":"${'x'.repeat(4_000_000)}"}`);
      },
      request: { replyTimeoutMs: 50 },
      expected: no('transport_busy'),
      records: 0,
    },
    {
      name: 'a server that ends while the write waits for the pipe',
      flags: ['--deaf'],
      before: async (bundle) => {
        await deaf(bundle);
        bundle.forward(`{"jsonrpc":"2.0","method":"x","params":"${'x'.repeat(4_000_000)}"}`);
      },
      during: async ({ upstream }) => kill(upstream.pid, 'SIGKILL'),
      expected: no('not_connected'),
      records: 0,
    },
    // something was written: a complete reply
    {
      name: 'an answer',
      args: { fault: 'answer', mark: 'm' },
      expected: maybe('reply', {
        reply: { kind: 'result', body: '{"content":[{"type":"text","text":"m"}]}' },
      }),
      records: 1,
    },
    {
      name: 'an answer that says it is an error',
      args: { fault: 'tool_error', mark: 'm' },
      expected: maybe('reply', {
        reply: { kind: 'tool_error', body: '{"content":[{"type":"text","text":"m"}],"isError":true}' },
      }),
      records: 1,
    },
    {
      name: 'a JSON-RPC error',
      args: { fault: 'protocol_error', mark: 'm' },
      expected: maybe('reply', {
        reply: { kind: 'protocol_error', body: '{"code":-32050,"message":"m"}', code: -32050 },
      }),
      records: 1,
    },
    {
      name: 'an answer written in its own way',
      args: { fault: 'exact' },
      expected: maybe('reply', {
        reply: { kind: 'result', body: '{"content":[],"n":1.0e2, "s":"\\u00e9"}' },
      }),
      records: 1,
    },
    {
      name: 'an answer whose id is written with escapes',
      args: { fault: 'escaped_id', mark: 'm' },
      expected: maybe('reply', { reply: { kind: 'result', body: '{"content":[],"mark":"m"}' } }),
      records: 1,
    },
    {
      name: 'an answer followed at once by the end of the server',
      args: { fault: 'reply_then_exit', mark: 'm' },
      expected: maybe('reply'),
      records: 1,
    },
    {
      name: 'an answer among lines that are no frames',
      args: { fault: 'noise', mark: 'm' },
      expected: maybe('reply'),
      records: 1,
    },
    {
      name: 'two answers',
      args: { fault: 'twice', mark: 'm' },
      expected: maybe('reply', {
        reply: { kind: 'result', body: '{"content":[{"type":"text","text":"m"}]}' },
      }),
      records: 1,
    },
    {
      name: 'an answer longer than is kept',
      args: { fault: 'huge', bytes: 5000 },
      options: { replyMaxBytes: 1000 },
      expected: maybe('reply', {
        reply: {
          kind: 'result',
          truncated: true,
          body: `{"content":[{"type":"text","text":"${'é'.repeat(482)}`,
        },
      }),
      records: 1,
    },
    // something was written: no complete reply
    {
      name: 'a server that ends before it acts',
      args: { fault: 'exit_before_record' },
      expected: maybe('cut'),
      records: 0,
    },
    {
      name: 'a server that ends before it reads',
      flags: ['--deaf'],
      before: deaf,
      during: async ({ upstream }) => kill(upstream.pid, 'SIGKILL'),
      expected: maybe('cut'),
      records: 0,
    },
    {
      name: 'a server that ends after it acted',
      args: { fault: 'exit_after_record' },
      expected: maybe('cut'),
      records: 1,
    },
    {
      name: 'a server that ends in the middle of its answer',
      args: { fault: 'half_reply' },
      expected: maybe('cut', { detail: expect.stringContaining('unfinished reply') }),
      records: 1,
    },
    {
      name: 'a server that closes its output and stays',
      args: { fault: 'close_stdout' },
      expected: maybe('cut'),
      records: 1,
    },
    {
      name: 'no answer',
      args: { fault: 'no_answer' },
      request: { replyTimeoutMs: 50 },
      expected: maybe('timeout'),
      records: 1,
    },
    {
      name: 'an answer to somebody else',
      args: { fault: 'wrong_id', mark: 'm' },
      request: { replyTimeoutMs: 200 },
      expected: maybe('timeout'),
      records: 1,
    },
    {
      name: 'a closed upstream',
      args: { fault: 'no_answer' },
      during: ({ upstream }) => upstream.close(),
      expected: maybe('aborted'),
      records: 1,
    },
    ...[
      'garbage',
      'not_utf8',
      'no_result',
      'result_and_error',
      'result_not_object',
      'two_results',
      'broken_beside',
    ].map(
      (fault): Row => ({
        name: `an answer that cannot be read: ${fault}`,
        args: { fault },
        expected: maybe('unreadable'),
        records: 1,
      }),
    ),
    ...['huge', 'huge_id_last'].map(
      (fault): Row => ({
        name: `an answer longer than is read: ${fault}`,
        args: { fault, bytes: 50_000 },
        options: { frameMaxBytes: 10_000 },
        expected: maybe('unreadable'),
        records: 1,
      }),
    ),
  ];

  test.each(rows)('$name', async (row) => {
    const bundle = setup(row.flags, row.options);
    const { upstream, frames, records } = bundle;
    await (row.before?.(bundle) ?? upstream.connect());
    const sending = bundle.send(row.args ?? { fault: 'answer', mark: 'm' }, row.request);
    await row.during?.(bundle);
    const report: SendReport = await sending;
    await upstream.close();

    expect(report).toMatchObject(row.expected);
    expect(records()).toBe(row.records);
    if (report.left === 'no') expect(records()).toBe(0);
    // Whatever happened, the client saw nothing of our call.
    const shown = frames.all.filter(({ text }) => text.includes('counterfoil:'));
    expect(shown).toEqual([]);
  });
});

describe('handing over', () => {
  test('writes the payload and meta as they are, with an id of its own', async () => {
    const { send, log } = await connected();
    const payload = '{"fault":"answer","mark":"żółw","n":1e2}';
    await send({}, { payload, meta: '{"example.org/a":1.0}' });
    const record = log().find(({ event }) => event === 'record');
    expect(record?.['line']).toMatch(
      /^\{"jsonrpc":"2\.0","id":"counterfoil:[0-9a-f]{8}:\d+","method":"tools\/call","params":\{"name":"act",/,
    );
    expect(record?.['line']).toContain(`"arguments":${payload},"_meta":{"example.org/a":1.0}}}`);
  });

  test('asks whether it may leave when the pipe takes it, not when it joins the queue', async () => {
    const bundle = await connected(['--deaf']);
    const { upstream, frames, forward, send, records } = bundle;
    await frames.until(({ head }) => head?.method === 'notifications/deaf');
    expect(forward(`{"jsonrpc":"2.0","method":"x","params":"${'x'.repeat(4_000_000)}"}`)).toBe('full');
    let asked = 0;
    const drained = upstream.drained();
    const sending = send(
      { fault: 'answer', mark: 'm' },
      {
        mayLeave: () => {
          asked++;
          return true;
        },
      },
    );
    expect(asked).toBe(0);
    kill(upstream.pid, 'SIGUSR2');
    await drained;
    expect(await sending).toMatchObject({ left: 'maybe', ended: 'reply' });
    expect(asked).toBe(1);
    expect(records()).toBe(1);
  });

  test('many writes at once share one signal without a warning', async () => {
    const { send, records } = await connected();
    const warnings: Error[] = [];
    const onWarning = (warning: Error) => warnings.push(warning);
    process.on('warning', onWarning);
    cleanUps.push(() => {
      process.off('warning', onWarning);
    });
    const { signal } = new AbortController();
    const reports = await Promise.all(
      Array.from({ length: 64 }, (_, index) => send({ fault: 'answer', mark: `m${index}` }, { signal })),
    );
    for (const [index, report] of reports.entries()) {
      expect(report).toMatchObject({ reply: { body: expect.stringContaining(`"m${index}"`) } });
    }
    expect(records()).toBe(64);
    expect(warnings).toEqual([]);
  });

  test('a large payload arrives whole', async () => {
    const { send, log } = await connected();
    const mark = 'é'.repeat(3_000_000);
    expect(await send({ fault: 'answer', mark })).toMatchObject({ ended: 'reply' });
    const record = log().find(({ event }) => event === 'record');
    expect((record?.['arguments'] as { mark: string } | undefined)?.mark === mark).toBe(true);
  });
});

describe('late replies', () => {
  test.each(['timeout', 'aborted'])('after %s the answer is given to the listener, once', async (ended) => {
    const { send, release, late, frames, garbage } = await connected();
    // A second answer to it is dropped as any other.
    const held = { fault: 'hold_twice', mark: 'm' };
    const abort = new AbortController();
    const sending = send(held, {
      signal: abort.signal,
      ...(ended === 'timeout' ? { replyTimeoutMs: 50 } : {}),
    });
    if (ended === 'aborted') abort.abort();
    expect(await sending).toMatchObject({ left: 'maybe', ended });
    await release();
    expect(late.all).toEqual([
      {
        operation: 'op_1',
        attempt: 'at_1',
        reply: { kind: 'result', body: '{"content":[{"type":"text","text":"m"}]}' },
      },
    ]);
    expect(frames.all).toEqual([]);
    expect(garbage.all).toEqual([expect.stringContaining('again')]);
  });

  test('an answer during close is still evidence', async () => {
    const { upstream, send, late, release } = await connected();
    const sending = send({ fault: 'hold', mark: 'm' });
    const releasing = release();
    const closing = upstream.close();
    expect(await sending).toMatchObject({ ended: 'aborted' });
    expect(await releasing).toMatchObject({ answered: false });
    await closing;
    expect(late.all).toHaveLength(1);
  });

  test('a second answer is dropped and counted, and no late reply', async () => {
    const { send, look, late, garbage } = await connected();
    await send({ fault: 'twice', mark: 'm' });
    await look();
    expect(late.all).toEqual([]);
    expect(garbage.all).toEqual([expect.stringContaining('a second answer')]);
  });
});

describe('questions', () => {
  test('a look-up that is not answered in time is cancelled at the server; a write never is', async () => {
    const { upstream, send, look, log } = await connected();
    const payload = '{"fault":"no_answer"}';
    expect(await upstream.ask({ tool: 'look', payload, timeoutMs: 30 })).toMatchObject({ answered: false });
    await send({ fault: 'no_answer' }, { replyTimeoutMs: 30 });
    await look();
    expect(log().filter(({ event }) => event === 'cancelled')).toHaveLength(1);
  });

  test('a look-up that is cut off is not answered', async () => {
    const { look } = await connected();
    expect(await look({ fault: 'half_reply' })).toMatchObject({ answered: false });
    expect(await look()).toMatchObject({ answered: false });
  });

  test('request gives the exact result of any method', async () => {
    const { upstream } = await connected();
    expect(await upstream.request('tools/list', '{}', PLENTY_MS)).toEqual({
      answered: true,
      reply: { kind: 'result', body: '{"tools":[{"name":"act"},{"name":"look"}]}' },
    });
  });

  test("without a client the server's own requests are answered: ping, and no to the rest", async () => {
    const { upstream, log } = await connected();
    delete upstream.onFrame;
    await upstream.ask({ tool: 'ask_client', payload: '{}', timeoutMs: PLENTY_MS });
    await upstream.close();
    const answers = log().filter(({ event }) => event === 'answer');
    expect(answers.map(({ message }) => message)).toEqual([
      { jsonrpc: '2.0', id: 's1', result: {} },
      { jsonrpc: '2.0', id: 's2', error: expect.objectContaining({ code: -32601 }) },
    ]);
  });
});

const INITIALIZE =
  '{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{"roots":{}},"clientInfo":{"name":"a client","version":"1.0"}}}';
const INITIALIZED = '{"jsonrpc":"2.0","method":"notifications/initialized"}';

async function withClient(flags: readonly string[] = [], options: Partial<StdioUpstreamOptions> = {}) {
  const bundle = setup(flags, options);
  expect(bundle.forward(INITIALIZE)).toBe('written');
  await bundle.frames.until(({ text }) => text.includes('"id":0'));
  expect(bundle.forward(INITIALIZED)).toBe('written');
  return bundle;
}

describe("a client's traffic", () => {
  test('its handshake starts the child and passes as it is; our calls share the connection', async () => {
    const { upstream, frames, log, send } = await withClient();
    expect(upstream.isConnected()).toBe(true);
    expect(await send({ fault: 'answer', mark: 'm' })).toMatchObject({ ended: 'reply' });
    expect(frames.all.map(({ text }) => text)).toEqual([
      '{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"scripted","version":"1"}}}',
    ]);
    expect(log().map(({ event }) => event)).toEqual(['started', 'initialize', 'initialized', 'record']);
    expect(upstream.handshake).toMatchObject({
      method: 'initialize',
      params: expect.stringContaining('a client'),
      result: expect.stringContaining('scripted'),
    });
  });

  test('frames pass both ways byte for byte', async () => {
    const { forward, frames, log } = await withClient();
    const call =
      '{ "id" : "7" ,"jsonrpc":"2.0","method":"tools/call", "params":{"name":"act","arguments":{"fault":"exact","n":1.50}}}\r';
    forward(call);
    const answer = await frames.until(({ text }) => text.includes('"id":"7"'));
    expect(answer.bytes.toString()).toBe(
      '{ "result" : {"content":[],"n":1.0e2, "s":"\\u00e9"} ,"jsonrpc":"2.0","id":"7"}',
    );
    expect(log().find(({ event }) => event === 'record')?.['line']).toBe(call);
  });

  test("an answer that nobody asked for is the client's to judge", async () => {
    const { send, frames } = await withClient();
    await send({ fault: 'wrong_id', mark: 'm' }, { replyTimeoutMs: 30 });
    expect(await frames.until(({ text }) => text.includes('someone-else'))).toBeDefined();
  });

  test('a banner is dropped and told', async () => {
    const { frames, garbage } = await withClient(['--banner']);
    expect(garbage.all).toEqual(['Scripted server v1', 'ready on stdio']);
    expect(frames.all).toHaveLength(1);
  });

  test('before the handshake is complete our calls are not sent, and connect waits for it', async () => {
    const { upstream, forward, frames, send, log } = setup();
    forward(INITIALIZE);
    const connecting = upstream.connect();
    expect(await send({ fault: 'answer', mark: 'm' })).toMatchObject({ left: 'no', proof: 'not_connected' });
    await frames.until(({ text }) => text.includes('"id":0'));
    expect(upstream.isConnected()).toBe(false);
    forward(INITIALIZED);
    expect(await connecting).toEqual({ connected: true });
    await send({ fault: 'answer', mark: 'm' });
    expect(log().filter(({ event }) => event === 'initialize')).toHaveLength(1);
  });

  test('connect gives up on a handshake that the client does not complete', async () => {
    const { upstream, forward } = setup([], { startTimeoutMs: 200 });
    forward(INITIALIZE);
    expect(await upstream.connect()).toMatchObject({ connected: false });
  });

  test('the end of the child is told with its exit code, and connect replays the handshake', async () => {
    const { upstream, forward, frames, exits, log, send } = await withClient();
    forward(
      '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"look","arguments":{"fault":"exit_after_record"}}}',
    );
    expect(await exits.until(() => true)).toMatchObject({ code: 3, signal: null });
    expect(forward('{"jsonrpc":"2.0","id":2,"method":"tools/list"}')).toBe('not_connected');

    expect(await upstream.connect()).toEqual({ connected: true });
    expect(forward('{"jsonrpc":"2.0","id":3,"method":"tools/list"}')).toBe('written');
    await frames.until(({ text }) => text.includes('"id":3'));
    expect(await send({ fault: 'answer', mark: 'm' })).toMatchObject({ ended: 'reply' });
    const [first, second] = log().filter(({ event }) => event === 'initialize');
    const params = /"params":.*$/;
    expect(params.exec(String(second?.['line']))?.[0]).toBe(params.exec(String(first?.['line']))?.[0]);
    expect(log().filter(({ event }) => event === 'initialized')).toHaveLength(2);
    // The client is told of one handshake, its own.
    expect(frames.all.filter(({ text }) => text.includes('protocolVersion'))).toHaveLength(1);
  });

  test('a handshake that was cut between its two halves is completed by the replay, once', async () => {
    const { upstream, forward, frames, exits, log } = setup();
    forward(INITIALIZE);
    await frames.until(({ text }) => text.includes('"id":0'));
    kill(upstream.pid, 'SIGKILL');
    await exits.until(() => true);
    expect(forward(INITIALIZED)).toBe('not_connected');
    await upstream.connect();
    expect(forward(INITIALIZED)).toBe('written');
    forward('{"jsonrpc":"2.0","id":3,"method":"tools/list"}');
    await frames.until(({ text }) => text.includes('"id":3'));
    expect(log().filter(({ event }) => event === 'initialized')).toHaveLength(1);
  });

  test('a client that comes after our own handshake gets a fresh child; our open call ends on the old one', async () => {
    const bundle = await connected();
    const { upstream, send, forward, frames, exits, log, records } = bundle;
    const first = upstream.pid;
    const sending = send({ fault: 'hold', mark: 'm' });
    forward(INITIALIZE);
    await frames.until(({ text }) => text.includes('"id":0'));
    forward(INITIALIZED);
    expect(upstream.pid).not.toBe(first);
    expect(await send({ fault: 'answer', mark: 'n' })).toMatchObject({ ended: 'reply' });
    kill(first, 'SIGKILL');
    expect(await sending).toMatchObject({ left: 'maybe', ended: 'cut' });
    expect(exits.all).toEqual([]);
    expect(records()).toBe(2);
    const lines = log().filter(({ event }) => event === 'initialize');
    expect(lines.map(({ line }) => String(line).includes('a client'))).toEqual([false, true]);
    expect(upstream.handshake?.params).toContain('a client');
  });

  test('a child that was replaced and owes us nothing is ended', async () => {
    const said = new Seen<string>();
    const { upstream, forward } = await connected([], { stderr: (chunk) => said.add(chunk.toString()) });
    forward(INITIALIZE);
    expect(await said.until((text) => text.includes('input ended'))).toBeDefined();
    expect(upstream.isConnected()).toBe(false);
  });

  test('a client of both generations falls back on the same connection', async () => {
    const { upstream, forward, frames, log } = setup();
    forward('{"jsonrpc":"2.0","id":"d","method":"server/discover","params":{"_meta":{"v":"2026-07-28"}}}');
    await frames.until(({ text }) => text.includes('"id":"d"'));
    forward(INITIALIZE);
    await frames.until(({ text }) => text.includes('"id":0'));
    forward(INITIALIZED);
    expect(upstream.isConnected()).toBe(true);
    await upstream.close();
    expect(log().map(({ event }) => event)).toEqual(['started', 'discover', 'initialize', 'initialized']);
  });

  test('a client of the session-less generation is connected by discovery, and its envelope is ours', async () => {
    const { upstream, forward, frames, exits, send, look, log } = setup(['--modern']);
    const discover =
      '{"jsonrpc":"2.0","id":"d","method":"server/discover","params":{"_meta":{"v":"2026-07-28"}}}';
    forward(discover);
    await frames.until(({ text }) => text.includes('"id":"d"'));
    expect(upstream.isConnected()).toBe(true);
    const pid = upstream.pid;
    expect(forward(discover)).toBe('written');
    expect(upstream.pid).toBe(pid);
    await send({ fault: 'answer', mark: 'm' });
    await look();
    kill(upstream.pid, 'SIGKILL');
    await exits.until(() => true);
    expect(await upstream.connect()).toEqual({ connected: true });
    await look();
    const metas = log().filter(({ event }) => event === 'record' || event === 'look');
    expect(metas.map(({ meta }) => meta)).toEqual(Array.from({ length: 3 }, () => ({ v: '2026-07-28' })));
    expect(log().filter(({ event }) => event === 'initialize')).toEqual([]);
  });
});

describe('the life of the child', () => {
  test('connect is shared, starts one child, and names itself', async () => {
    const { upstream, log } = setup();
    expect(upstream.isConnected()).toBe(false);
    await Promise.all([upstream.connect(), upstream.connect()]);
    expect(upstream.isConnected()).toBe(true);
    expect(log().filter(({ event }) => event === 'started')).toHaveLength(1);
    const { params } = JSON.parse(String(log().find(({ event }) => event === 'initialize')?.['line']));
    expect(params).toEqual({
      protocolVersion: '2025-11-25',
      capabilities: {},
      clientInfo: { name: 'counterfoil', version: '0' },
    });
  });

  test('a failed start can be tried again', async () => {
    const { upstream } = setup(['--exit']);
    const detail = expect.stringContaining('exit code 4');
    expect(await upstream.connect()).toEqual({ connected: false, detail });
    expect(await upstream.connect()).toEqual({ connected: false, detail });
  });

  test('the exit of a child whose output a grandchild holds open is noticed', async () => {
    const logPath = join(folder(), 'log');
    // What the shell leaves running has inherited the pipe, and keeps it open.
    const script = 'sleep 1000 & echo $! > "$0.sleeper"; "$@"';
    const { upstream } = setup([], {
      command: '/bin/sh',
      args: ['-c', script, logPath, process.execPath, SERVER, logPath],
    });
    cleanUps.push(() => kill(Number(readFileSync(`${logPath}.sleeper`, 'utf8')), 'SIGKILL'));
    await upstream.connect();
    expect(await upstream.send(request({ fault: 'exit_after_record' }))).toMatchObject({
      left: 'maybe',
      ended: 'cut',
      detail: expect.stringContaining('exit code 3'),
    });
  });

  test('a child that closed its output is ended, and told of', async () => {
    const { send, exits } = await connected();
    await send({ fault: 'close_stdout' });
    expect(await exits.until(() => true)).toMatchObject({ code: 0 });
  });

  test('a child that closed its input is noticed by the write that it does not read', async () => {
    const { upstream, send, exits, records } = await connected([], { killGraceMs: 50 });
    await send({ fault: 'close_stdin', mark: 'm' });
    const report = await send({ fault: 'answer', mark: 'n' });
    expect(report).toMatchObject({ left: 'maybe', ended: 'cut' });
    expect(await exits.until(() => true)).toMatchObject({ signal: 'SIGTERM' });
    await upstream.close();
    expect(records()).toBe(1);
  });

  test('close ends a child that ignores the end of its input and SIGTERM', async () => {
    const ready = new Seen<string>();
    const { upstream } = setup([], {
      args: ['-e', "process.on('SIGTERM', () => {}); setInterval(() => {}, 1000); console.error('ready')"],
      stderr: (chunk) => ready.add(chunk.toString()),
      killGraceMs: 50,
    });
    const connecting = upstream.connect();
    await ready.until((text) => text.includes('ready'));
    const { pid } = upstream;
    await upstream.close();
    expect(await connecting).toMatchObject({ connected: false });
    expect(() => kill(pid, 'SIGCONT')).toThrow('ESRCH');
  });

  test("the child's stderr goes to the sink, also its last words", async () => {
    const said = new Seen<string>();
    const { upstream } = setup([], {
      args: ['-e', "console.error('no such database'); process.exit(1)"],
      stderr: (chunk) => said.add(chunk.toString()),
    });
    expect(await upstream.connect()).toMatchObject({ connected: false });
    expect(await said.until((text) => text.includes('no such database'))).toBeDefined();
  });

  test('the environment is the one that is given', async () => {
    const said = new Seen<string>();
    const { upstream } = setup([], {
      args: ['-e', 'console.error(JSON.stringify(process.env))'],
      env: { ONLY: 'this' },
      stderr: (chunk) => said.add(chunk.toString()),
    });
    await upstream.connect();
    expect(JSON.parse(await said.until(() => true))).toEqual({ ONLY: 'this' });
  });
});

describe('the filesystem server, unmodified', () => {
  test('writes, reads, lists and refuses through the upstream', async () => {
    const root = folder();
    const { upstream } = setup([], { args: [FILESYSTEM_SERVER, root] });
    expect(await upstream.connect()).toEqual({ connected: true });
    const path = join(root, 'note.txt');
    const call = (tool: string, args: object) => ({ tool, payload: JSON.stringify(args) });

    const written = await upstream.send(request({}, call('write_file', { path, content: 'żółw\n' })));
    expect(written).toMatchObject({ left: 'maybe', ended: 'reply', reply: { kind: 'result' } });
    expect(readFileSync(path, 'utf8')).toBe('żółw\n');

    const refused = await upstream.send(
      request({}, call('write_file', { path: '/outside.txt', content: '' })),
    );
    expect(refused).toMatchObject({ left: 'maybe', ended: 'reply', reply: { kind: 'tool_error' } });

    const read = await upstream.ask({ ...call('read_text_file', { path }), timeoutMs: PLENTY_MS });
    expect(read).toMatchObject({ answered: true, reply: { body: expect.stringContaining('żółw') } });

    const listed = await upstream.request('tools/list', '{}', PLENTY_MS);
    expect(listed).toMatchObject({
      answered: true,
      reply: { body: expect.stringContaining('"write_file"') },
    });
  });
});
