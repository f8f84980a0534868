// The address of a review, opened by clients that can open addresses: once for each call that waits, for nobody else,
// and it decides nothing. Made with the SDKs of both generations, over stdio and HTTP.

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  Client as ModernClient,
  StreamableHTTPClientTransport as ModernTransport,
} from '@modelcontextprotocol/client';
import { StdioClientTransport as ModernLine } from '@modelcontextprotocol/client/stdio';
import { Client as LegacyClient } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport as LegacyLine } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport as LegacyTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import { afterEach, describe, expect, test } from 'vitest';
import { startServing } from './http/serving.ts';
import {
  CleanUps,
  callsOf,
  gatewayArguments,
  operationOf,
  operationsIn,
  ownerOf,
  startGateway,
  type ToolResult,
  textOf,
  toolsServer,
} from './processes.ts';

const cleanUps = new CleanUps();
afterEach(cleanUps.run);

const REVIEW_URL = 'https://ledger.example/reviews/{operation}?from=client';
const CONFIG = {
  destination: 'tools',
  review_url: REVIEW_URL,
  tools: { make: { class: 'ordinary' }, erase: { class: 'irreversible', repeat: 'unique' } },
};
const URLS = { elicitation: { url: {} } };

interface Asked {
  readonly mode?: string;
  readonly message: string;
  readonly url?: string;
  readonly elicitationId?: string;
}

type Answer = () => Promise<{ action: 'accept' | 'decline' | 'cancel' }>;
type Call = (name: string, args?: Record<string, unknown>) => Promise<ToolResult>;

interface Connected {
  readonly call: Call;
  readonly asked: Asked[];
}

function world(config: object = CONFIG) {
  const folder = cleanUps.folder();
  const data = join(folder, 'data');
  const tools = ['make', 'erase'].map((name) => ({ name, inputSchema: { type: 'object' } }));
  writeFileSync(join(folder, 'tools.json'), JSON.stringify(tools));
  const server = toolsServer(folder);
  const text = JSON.stringify(config);
  const args = (): string[] => gatewayArguments({ data, server, config: text });
  const owner = ownerOf(data);
  const { destination: _, ...served } = config as typeof CONFIG;
  return {
    data,
    args,
    server,
    text,
    erased: () => callsOf(folder, 'erase').length,
    url: async () =>
      (await startServing(cleanUps, { tools: { command: server, config: served } }, { data })).url(),
    decide: async (kind: 'approve' | 'deny') => {
      const operation = (await operationsIn(data)).at(-1);
      return owner.run(kind, operation?.id ?? '', '--digest', operation?.digest ?? '');
    },
  };
}

type World = ReturnType<typeof world>;
type Connect = (at: World, capabilities: object, answer: Answer) => Promise<Connected>;

function legacy(over: 'stdio' | 'http'): Connect {
  return async (at, capabilities, answer) => {
    const client = new LegacyClient({ name: 'l', version: '1' }, { capabilities });
    const asked: Asked[] = [];
    if ('elicitation' in capabilities) {
      client.setRequestHandler(ElicitRequestSchema, ({ params }) => {
        asked.push(params as Asked);
        return answer();
      });
    }
    const line = { command: process.execPath, args: at.args(), stderr: 'ignore' } as const;
    await client.connect(over === 'stdio' ? new LegacyLine(line) : new LegacyTransport(await at.url()));
    cleanUps.add(() => client.close());
    const call: Call = (name, args = {}) => client.callTool({ name, arguments: args }) as Promise<ToolResult>;
    return { call, asked };
  };
}

function modern(over: 'stdio' | 'http'): Connect {
  return async (at, capabilities, answer) => {
    const versionNegotiation = { mode: { pin: '2026-07-28' } };
    const client = new ModernClient({ name: 'm', version: '2' }, { capabilities, versionNegotiation });
    const asked: Asked[] = [];
    if ('elicitation' in capabilities) {
      client.setRequestHandler('elicitation/create', ({ params }) => {
        asked.push(params as Asked);
        return answer();
      });
    }
    const line = { command: process.execPath, args: at.args(), stderr: 'ignore' } as const;
    await client.connect(over === 'stdio' ? new ModernLine(line) : new ModernTransport(await at.url()));
    cleanUps.add(() => client.close());
    const call: Call = (name, args = {}) => client.callTool({ name, arguments: args }) as Promise<ToolResult>;
    return { call, asked };
  };
}

const accepting: Answer = async () => ({ action: 'accept' });

describe.each([
  ['2025-11-25 over stdio', legacy('stdio')],
  ['2025-11-25 over HTTP', legacy('http')],
  ['2026-07-28 over stdio', modern('stdio')],
  ['2026-07-28 over HTTP', modern('http')],
] as const)('a client of %s that can open addresses', (_what, connect) => {
  test('is given the address once for a call that waits; whatever it answers decides nothing', async () => {
    const at = world();
    const actions = ['accept', 'decline', 'cancel'] as const;
    const { asked, call } = await connect(at, URLS, async () => ({
      action: actions[asked.length - 1] ?? 'accept',
    }));
    expect(textOf(await call('make'))).toBe('did make');
    expect(asked).toEqual([]);
    for (const [index, action] of actions.entries()) {
      const held = await call('erase', { action });
      expect(textOf(held)).toMatch(/^NOT SENT YET — waiting for a person's approval/);
      const id = operationOf(held);
      expect(asked).toHaveLength(index + 1);
      expect(asked[index]).toMatchObject({
        mode: 'url',
        url: `https://ledger.example/reviews/${id}?from=client`,
        message: `A person must approve this exact action first. Erase on tools (${id}). The page asks who you are. Opening it decides nothing, and neither does this answer.`,
      });
    }
    // Once for each call, not for each time that it is asked after.
    const first = (await operationsIn(at.data)).find(({ tool }) => tool === 'erase');
    await call('counterfoil_operation_status', { operation: first?.id ?? '' });
    expect(asked).toHaveLength(actions.length);
    expect(operationOf(await call('erase', { action: 'accept' }))).toBe(first?.id);
    expect(asked).toHaveLength(actions.length + 1);
    const held = (await operationsIn(at.data)).filter(({ tool }) => tool === 'erase');
    expect(held).toHaveLength(actions.length);
    for (const { attempts, effect, review, stage } of held) {
      expect({ attempts, effect, stage }).toEqual({
        attempts: [],
        effect: 'not_sent',
        stage: 'awaiting_approval',
      });
      expect(review?.decision).toBeUndefined();
    }
    expect(at.erased()).toBe(0);
  });

  test('is answered with what came of it where the person has decided meanwhile', async () => {
    const at = world();
    const { asked, call } = await connect(at, URLS, async () => {
      await at.decide(asked.length === 1 ? 'approve' : 'deny');
      return { action: 'accept' };
    });
    expect(textOf(await call('erase', { which: 'approved' }))).toBe('did erase');
    expect(textOf(await call('erase', { which: 'denied' }))).toMatch(/^NOT SENT — denied by an approver/);
    expect(at.erased()).toBe(1);
    expect(asked).toHaveLength(2);
  });

  test('but not one that fills in forms alone', async () => {
    const { asked, call } = await connect(world(), { elicitation: { form: {} } }, accepting);
    expect(textOf(await call('erase'))).toMatch(/^NOT SENT YET/);
    expect(asked).toEqual([]);
  });
});

const { review_url: _none, ...WITHOUT } = CONFIG;

test.each([
  ['says nothing', legacy('stdio'), {}, CONFIG],
  ['says nothing', modern('stdio'), {}, CONFIG],
  ['names no kind', legacy('stdio'), { elicitation: {} }, CONFIG],
  ['names no kind', modern('http'), { elicitation: {} }, CONFIG],
  ['could, where no address is configured', legacy('http'), URLS, WITHOUT],
  ['could, where no address is configured', modern('stdio'), URLS, WITHOUT],
] as const)('nobody is asked who %s', async (_who, connect, capabilities, config) => {
  const { asked, call } = await connect(world(config), capabilities, accepting);
  expect(textOf(await call('erase'))).toMatch(/^NOT SENT YET/);
  expect(asked).toEqual([]);
});

test('a state that outlives its process tells what is known of the write', async () => {
  const { data, server } = world();
  const { destination: _, ...config } = CONFIG;
  const serve = () => startServing(cleanUps, { tools: { command: server, config } }, { data });
  const meta = {
    'io.modelcontextprotocol/protocolVersion': '2026-07-28',
    'io.modelcontextprotocol/clientCapabilities': URLS,
  };
  const ask = async (url: URL, more: object = {}) => {
    const params = { name: 'erase', arguments: {}, _meta: meta, ...more };
    const response = await fetch(url, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
        'mcp-protocol-version': '2026-07-28',
        'mcp-method': 'tools/call',
        'mcp-name': 'erase',
      },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params }),
    });
    const { result } = (await response.json()) as {
      result: ToolResult & { resultType: string; requestState?: string; inputRequests?: object };
    };
    return result;
  };
  const first = await serve();
  const asked = await ask(first.url());
  expect(asked).toMatchObject({ resultType: 'input_required', inputRequests: { review: {} } });
  first.process.kill('SIGKILL');
  await first.process.died;
  const next = await serve();
  const more = { requestState: asked.requestState, inputResponses: { review: { action: 'accept' } } };
  expect(textOf(await ask(next.url(), more))).toMatch(/^NOT SENT YET — waiting for a person's approval/);
  // An equal call is another call: it is given the address as well, and its answer ends it.
  const again = await ask(next.url());
  const { requestState } = again;
  const held = await ask(next.url(), { requestState, inputResponses: { review: { action: 'decline' } } });
  expect(textOf(held)).toMatch(/^NOT SENT YET — waiting for a person's approval/);
  expect(await operationsIn(data)).toMatchObject([{ stage: 'awaiting_approval' }]);
});

test('a client that does not answer is answered all the same, and its late answer reaches nobody', async () => {
  const { data, server, text } = world({ ...CONFIG, limits: { caller_wait: 'PT1S' } });
  const gateway = cleanUps.started(startGateway({ data, server, config: text }));
  await gateway.request('initialize', {
    protocolVersion: '2025-11-25',
    capabilities: URLS,
    clientInfo: { name: 'silent', version: '1' },
  });
  gateway.notify('notifications/initialized');
  const call = gateway.ask('tools/call', { name: 'erase', arguments: {} });
  const { message } = await gateway.answer(call);
  expect(textOf(message.result ?? {})).toMatch(/^NOT SENT YET/);
  const questions = gateway.lines.flatMap((line) =>
    line.message?.method === 'elicitation/create' ? [line.message] : [],
  );
  expect(questions).toHaveLength(1);
  gateway.send(JSON.stringify({ jsonrpc: '2.0', id: questions[0]?.id, result: { action: 'accept' } }));
  expect(
    textOf((await gateway.request('tools/call', { name: 'make', arguments: {} })).message.result ?? {}),
  ).toBe('did make');
});

test('of a call that became a task it is put beside the task, with its name', async () => {
  const { data, server, text } = world();
  const gateway = cleanUps.started(startGateway({ data, server, config: text }));
  await gateway.request('initialize', {
    protocolVersion: '2025-11-25',
    capabilities: { ...URLS, tasks: {} },
    clientInfo: { name: 'tasks', version: '1' },
  });
  gateway.notify('notifications/initialized');
  const created = await gateway.request('tools/call', { name: 'erase', arguments: {}, task: {} });
  const { task } = created.message.result as unknown as { task: { taskId: string } };
  const { message } = await gateway.request('tasks/get', { taskId: task.taskId });
  expect(message.result).toMatchObject({ status: 'working' });
  const questions = gateway.lines.flatMap((line) =>
    line.message?.method === 'elicitation/create' ? [line.message.params] : [],
  );
  expect(questions).toMatchObject([
    { mode: 'url', _meta: { 'io.modelcontextprotocol/related-task': { taskId: task.taskId } } },
  ]);
});
