// Writes that are run as tasks of clients over HTTP: of 2026-07-28, spoken to without any SDK, because none has the
// extension yet; and of 2025-11-25, with the SDK. What one principal has begun is nobody else's.

import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Client as ModernClient, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { Client as LegacyClient } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport as LegacyTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { CallToolResultSchema, ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import { afterEach, describe, expect, test } from 'vitest';
import {
  CleanUps,
  COUNTERFOIL,
  counterfoil,
  LineProcess,
  operationsIn,
  ownerOf,
  type ToolResult,
  textOf,
  until,
  untilAsync,
} from '../processes.ts';
import { type Serving, startServing } from './serving.ts';

const at = (name: string): string => fileURLToPath(new URL(name, import.meta.url));
const MODERN_SERVER = at('fixtures/modern-server.mjs');
const LEGACY_SERVER = at('fixtures/legacy-server.mjs');
const TASK_SERVER = at('../fixtures/modern-task-server.mjs');
const cleanUps = new CleanUps();
afterEach(cleanUps.run);

const TASKS = 'io.modelcontextprotocol/tasks';
const CAPABILITIES = { elicitation: { form: {} }, extensions: { [TASKS]: {} } };
const metaOf = (capabilities: object) => ({
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientCapabilities': capabilities,
});
const CONFIG = {
  tools: {
    make: { class: 'ordinary', repeat: 'unique' },
    make_when_told: { class: 'ordinary', repeat: 'unique' },
    make_asked: { class: 'irreversible', repeat: 'unique' },
  },
};

interface TaskResult extends ToolResult {
  readonly resultType?: string;
  readonly taskId?: string;
  readonly status?: string;
  readonly statusMessage?: string;
  readonly ttlMs?: number | null;
  readonly result?: ToolResult;
  readonly error?: { readonly code: number };
  readonly inputRequests?: Readonly<Record<string, { readonly method: string }>>;
  readonly capabilities?: { readonly extensions?: object };
}

interface Answered {
  readonly status: number;
  readonly result: TaskResult;
  readonly error?: { readonly code: number; readonly data?: unknown };
}

/** One request of 2026-07-28, of whoever has the token. */
async function ask(
  serving: Serving,
  method: string,
  params: { readonly [member: string]: unknown },
  { token, capabilities = CAPABILITIES }: { readonly token?: string; readonly capabilities?: object } = {},
): Promise<Answered> {
  const name = params['name'] ?? params['taskId'];
  const response = await fetch(serving.url(), {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      'mcp-protocol-version': '2026-07-28',
      'mcp-method': method,
      ...(typeof name === 'string' ? { 'mcp-name': name } : {}),
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
    },
    body: JSON.stringify({
      jsonrpc: '2.0',
      id: 1,
      method,
      params: { ...params, _meta: metaOf(capabilities) },
    }),
  });
  const text = await response.text();
  const json = text.startsWith('event:') ? (/^data: (.*)$/m.exec(text)?.[1] ?? '{}') : text;
  return { status: response.status, result: {}, ...(JSON.parse(json) as object) };
}

async function setup(file: string, config: object = CONFIG, data = join(cleanUps.folder(), 'data')) {
  const folder = cleanUps.folder();
  const logPath = join(folder, 'log');
  const server = { offer: { command: [process.execPath, file, logPath, 'stdio'], config } };
  const serving = await startServing(cleanUps, server, { data });
  const log = (): string => (existsSync(logPath) ? readFileSync(logPath, 'utf8') : '');
  const owner = ownerOf(data);
  return {
    data,
    serving,
    server,
    log,
    made: () => log().split('"event":"made"').length - 1,
    go: () => writeFileSync(`${logPath}.go`, ''),
    approve: async () => {
      const [operation] = await operationsIn(data);
      return owner.approve(operation?.id ?? '', '--digest', operation?.digest ?? '');
    },
  };
}

const ended = (serving: Serving, taskId: unknown, options: object = {}): Promise<TaskResult> =>
  untilAsync(async () => {
    const { result } = await ask(serving, 'tasks/get', { taskId }, options);
    return result.status !== 'working' && result;
  }, 'the task to end');

describe.each([
  ['2026-07-28', MODERN_SERVER],
  ['2025-11-25', LEGACY_SERVER],
] as const)('a client of 2026-07-28 that declares tasks, in front of a server of %s', (_version, file) => {
  test('is told that there are tasks; one that does not declare them is not, and may not ask after any', async () => {
    const { serving } = await setup(file);
    const declared = await ask(serving, 'server/discover', {});
    expect(declared.result.capabilities?.extensions).toEqual({ [TASKS]: {} });
    const other = { capabilities: { elicitation: {} } };
    const plain = await ask(serving, 'server/discover', {}, other);
    expect(plain.result.capabilities?.extensions).toBeUndefined();
    const unknown = await ask(serving, 'tasks/get', { taskId: 'another' });
    expect(unknown.error?.code).toBe(-32602);
    const refused = await ask(serving, 'tasks/get', { taskId: `tsk_${'0'.repeat(26)}` }, other);
    expect(refused).toMatchObject({
      status: 400,
      error: { code: -32021, data: { requiredCapabilities: { extensions: { [TASKS]: {} } } } },
    });
  });

  test('is answered at once where there is an outcome; what takes long becomes a task', async () => {
    const { go, log, serving } = await setup(file);
    let calls = 0;
    // A busy machine may need longer for one of them.
    await untilAsync(async () => {
      calls += 1;
      const title = `x${calls}`;
      const { result: quick } = await ask(serving, 'tools/call', { name: 'make', arguments: { title } });
      const outcome = quick.resultType === 'task' ? (await ended(serving, quick.taskId)).result : quick;
      expect(outcome).toMatchObject({ resultType: 'complete', content: [{ text: `made ${title}` }] });
      return quick.resultType === 'complete';
    }, 'an answer at once');
    const { result } = await ask(serving, 'tools/call', {
      name: 'make_when_told',
      arguments: { title: 'y' },
    });
    expect(result).toMatchObject({ resultType: 'task', status: 'working', ttlMs: null });
    expect(result.statusMessage).toMatch(/^SENT, NO ANSWER YET \(op_/);
    const working = await ask(serving, 'tasks/get', { taskId: result.taskId });
    expect(working.result).toMatchObject({ resultType: 'complete', status: 'working' });
    go();
    const done = await ended(serving, result.taskId);
    expect(done).toMatchObject({ status: 'completed', result: { resultType: 'complete' } });
    expect(done.result).toMatchObject({ content: [{ text: 'made y' }], structuredContent: { title: 'y' } });
    expect(log().match(/"event":"made"/g)).toHaveLength(calls + 1);
  });

  test('one that does not declare them waits for the outcome, as before', async () => {
    const { go, log, serving } = await setup(file);
    const asked = ask(
      serving,
      'tools/call',
      { name: 'make_when_told', arguments: { title: 'y' } },
      { capabilities: {} },
    );
    await until(() => log().includes('"event":"waiting"'), 'the call to reach the server');
    go();
    expect((await asked).result).toMatchObject({ resultType: 'complete', content: [{ text: 'made y' }] });
  });

  test('a question in the middle is found in the task, and answered through it', async () => {
    const config = { tools: { make_late_asked: { class: 'ordinary', repeat: 'unique' } } };
    const { data, go, made, serving } = await setup(file, config);
    const call = { name: 'make_late_asked', arguments: { title: 'z' } };
    const { result } = await ask(serving, 'tools/call', call);
    expect(result).toMatchObject({ resultType: 'task', status: 'working' });
    go();
    const asking = await ended(serving, result.taskId);
    expect(asking.status).toBe('input_required');
    const [key = '', question] = Object.entries(asking.inputRequests ?? {})[0] ?? [];
    expect(question?.method).toBe('elicitation/create');
    const accepted = { action: 'accept', content: { name: 'Ada' } };
    // An equal call is the same write, behind a task of its own, and is not asked in its place.
    const equal = await ask(serving, 'tools/call', call);
    expect(equal.result).toMatchObject({ resultType: 'task', status: 'working' });
    expect(equal.result.taskId).not.toBe(result.taskId);
    const stray = { taskId: result.taskId, inputResponses: { other: accepted } };
    expect((await ask(serving, 'tasks/update', stray)).result).toEqual({ resultType: 'complete' });
    await ask(serving, 'tasks/update', { taskId: result.taskId, inputResponses: { [key]: accepted } });
    const done = await ended(serving, result.taskId);
    expect(textOf(done.result ?? {})).toBe('made z for Ada');
    const same = await ended(serving, equal.result.taskId);
    expect(textOf(same.result ?? {})).toContain('made z for Ada');
    expect(made()).toBe(1);
    expect(await operationsIn(data)).toMatchObject([{ effect: 'accepted', attempts: [{ legs: 2 }] }]);
  });

  test('a cancel while a question is open answers it with nothing: the write is what is known then', async () => {
    const config = { tools: { make_late_asked: { class: 'ordinary', repeat: 'unique' } } };
    const { data, go, made, serving } = await setup(file, config);
    const call = { name: 'make_late_asked', arguments: { title: 'z' } };
    const { result } = await ask(serving, 'tools/call', call);
    go();
    expect((await ended(serving, result.taskId)).status).toBe('input_required');
    const cancelled = await ask(serving, 'tasks/cancel', { taskId: result.taskId });
    expect(cancelled.result).toEqual({ resultType: 'complete' });
    const done = await untilAsync(async () => {
      const { result: now } = await ask(serving, 'tasks/get', { taskId: result.taskId });
      return now.status === 'completed' && now;
    }, 'the task to end');
    expect(textOf(done.result ?? {})).toMatch(/^(OUTCOME UNKNOWN|nothing was made)/);
    expect(made()).toBe(0);
    const [operation] = await operationsIn(data);
    expect(operation?.cancelRequestedAt).toBeGreaterThan(0);
    expect(['unknown', 'error_reported']).toContain(operation?.effect);
  });

  test('a write that waits for a person is a task, which goes on in another process when it is approved', async () => {
    const config = { tools: { make_when_told: { class: 'irreversible', repeat: 'unique' } } };
    const { approve, data, go, log, made, serving, server } = await setup(file, config);
    const call = { name: 'make_when_told', arguments: { title: 'z' } };
    const { result } = await ask(serving, 'tools/call', call);
    expect(result).toMatchObject({ resultType: 'task', status: 'working' });
    expect(result.statusMessage).toMatch(/^NOT SENT YET — waiting for a person's approval/);
    // Its cancel is acknowledged, and takes nothing from the person who was asked.
    const cancelled = await ask(serving, 'tasks/cancel', { taskId: result.taskId });
    expect(cancelled.result).toEqual({ resultType: 'complete' });
    serving.process.kill('SIGKILL');
    await serving.process.died;
    const next = await startServing(cleanUps, server, { data });
    const found = await ask(next, 'tasks/get', { taskId: result.taskId });
    expect(found.result.statusMessage).toMatch(/^NOT SENT YET — waiting for a person's approval/);
    await approve();
    await until(() => log().includes('"event":"waiting"'), 'the approved call to reach the server');
    go();
    const done = await ended(next, result.taskId);
    expect(done.status).toBe('completed');
    expect(textOf(done.result ?? {})).toBe('made z');
    expect(made()).toBe(1);
  });
});

test('of another principal is found by nobody, in neither generation', async () => {
  const { data, made, serving } = await setup(LEGACY_SERVER);
  const tokens = new Map<string, string>();
  for (const name of ['ada', 'bob']) {
    const { stdout } = await counterfoil(['token', 'create', name, '--data', data]);
    tokens.set(name, stdout.trim());
  }
  const session = async (name: string): Promise<LegacyClient> => {
    const client = new LegacyClient({ name, version: '1' }, { capabilities: { tasks: {} } });
    const headers = { authorization: `Bearer ${tokens.get(name) ?? ''}` };
    await client.connect(new LegacyTransport(serving.url(), { requestInit: { headers } }));
    cleanUps.add(() => client.close());
    return client;
  };
  const ada = await session('ada');
  const stream = ada.experimental.tasks.callToolStream(
    { name: 'make', arguments: { title: 'x' } },
    undefined,
    {
      task: {},
    },
  );
  const ids: string[] = [];
  for await (const one of stream) {
    if (one.type === 'taskCreated') ids.push(one.task.taskId);
    if (one.type === 'result') expect(textOf(one.result as ToolResult)).toBe('made x');
  }
  const [id = ''] = ids;
  const bob = await session('bob');
  await expect(bob.experimental.tasks.getTask(id)).rejects.toMatchObject({ code: -32602 });
  await expect(bob.experimental.tasks.getTaskResult(id)).rejects.toMatchObject({ code: -32602 });
  await expect(bob.experimental.tasks.cancelTask(id)).rejects.toMatchObject({ code: -32602 });
  expect((await bob.experimental.tasks.listTasks()).tasks).toEqual([]);
  for (const method of ['tasks/get', 'tasks/cancel', 'tasks/update']) {
    const params = { taskId: id, inputResponses: {} };
    const refused = await ask(serving, method, params, { token: tokens.get('bob') ?? '' });
    expect(refused.error?.code).toBe(-32602);
  }
  // The same principal finds it on another connection, and in the other generation.
  const again = await session('ada');
  expect((await again.experimental.tasks.listTasks()).tasks).toMatchObject([{ taskId: id }]);
  const result = await again.experimental.tasks.getTaskResult(id, CallToolResultSchema);
  expect(textOf(result as ToolResult)).toBe('made x');
  const modern = await ask(serving, 'tasks/get', { taskId: id }, { token: tokens.get('ada') ?? '' });
  expect(textOf(modern.result.result ?? {})).toBe('made x');
  expect(made()).toBe(1);
});

test('a client of the SDK of 2026-07-28, which knows no tasks, is given none', async () => {
  const { go, log, serving } = await setup(LEGACY_SERVER);
  const client = new ModernClient({ name: 'm', version: '2' }, { versionNegotiation: { mode: 'auto' } });
  await client.connect(new StreamableHTTPClientTransport(serving.url()));
  cleanUps.add(() => client.close());
  const called = client.callTool({ name: 'make_when_told', arguments: { title: 'x' } });
  await until(() => log().includes('"event":"waiting"'), 'the call to reach the server');
  go();
  expect(textOf((await called) as ToolResult)).toBe('made x');
  const held = (await client.callTool({ name: 'make_asked', arguments: { title: 'x' } })) as ToolResult;
  expect(textOf(held)).toMatch(/^NOT SENT YET — waiting for a person's approval/);
});

describe('a server of 2026-07-28 that runs a tool as a task alone', () => {
  const config = { tools: { slow: { class: 'ordinary', repeat: 'free' } } };

  test.each([
    ['declares tasks', CAPABILITIES],
    ['does not', { elicitation: { form: {} } }],
  ])(
    'has its task followed to its end for a client that %s, its questions asked',
    async (_what, capabilities) => {
      const { data, log, made, serving } = await setup(TASK_SERVER, config);
      const call = { name: 'slow', arguments: { title: 'x' } };
      const accepted = { action: 'accept', content: { name: 'Ada' } };
      let { result } = await ask(serving, 'tools/call', call, { capabilities });
      if (result.resultType === 'input_required') {
        const { requestState } = result as { requestState?: string };
        const more = { requestState, inputResponses: { name: accepted } };
        ({ result } = await ask(serving, 'tools/call', { ...call, ...more }, { capabilities }));
      }
      // On a busy machine the call may have become a task meanwhile, before its question or after it.
      for (const { taskId } = result; result.resultType === 'task' || result.status === 'input_required'; ) {
        result = await ended(serving, taskId);
        const keys = Object.keys(result.inputRequests ?? {});
        const inputResponses = Object.fromEntries(keys.map((key) => [key, accepted]));
        if (keys.length > 0) await ask(serving, 'tasks/update', { taskId, inputResponses });
      }
      expect(textOf(result.result ?? result)).toBe('slowly made x for Ada');
      expect(made()).toBe(1);
      expect(log()).toContain('"event":"answered"');
      const [operation] = await operationsIn(data);
      expect(operation).toMatchObject({ stage: 'closed', effect: 'accepted', attempts: [{ legs: 2 }] });
    },
  );

  test('has it followed for a client of sessions too, which is asked by a request', async () => {
    const { data, made, serving } = await setup(TASK_SERVER, config);
    const client = new LegacyClient(
      { name: 'l', version: '1' },
      { capabilities: { elicitation: { form: {} } } },
    );
    client.setRequestHandler(ElicitRequestSchema, () => ({ action: 'accept', content: { name: 'Ada' } }));
    await client.connect(new LegacyTransport(serving.url()));
    cleanUps.add(() => client.close());
    const done = (await client.callTool({ name: 'slow', arguments: { title: 'x' } })) as ToolResult;
    expect(textOf(done)).toBe('slowly made x for Ada');
    expect(made()).toBe(1);
    expect(await operationsIn(data)).toMatchObject([{ effect: 'accepted', attempts: [{ legs: 2 }] }]);
  });

  test.each([
    ['broken', 'error_reported', /broken/],
    ['given up', 'unknown', /^OUTCOME UNKNOWN/],
  ])('whose task ends as "%s": the write is %s', async (title, effect, expected) => {
    const { data, made, serving } = await setup(TASK_SERVER, config);
    const call = { name: 'slow', arguments: { title } };
    const answer = await ask(serving, 'tools/call', call, { capabilities: {} });
    expect(JSON.stringify(answer.error ?? textOf(answer.result)).replace(/^"/, '')).toMatch(expected);
    expect(made()).toBe(1);
    expect(await operationsIn(data)).toMatchObject([{ effect, attempts: [{ open: false }] }]);
  });
});

test('over stdio too a client of 2026-07-28 that declares tasks is given them', async () => {
  for (const file of [LEGACY_SERVER, MODERN_SERVER]) {
    const folder = cleanUps.folder();
    const logPath = join(folder, 'log');
    const config = join(folder, 'c.yaml');
    writeFileSync(config, 'destination: offer\ntools: {make_when_told: {class: ordinary}}\n');
    const args = ['mcp', '--no-resident', '--data', join(folder, 'data'), '--config', config, '--'];
    const gateway = cleanUps.started(
      new LineProcess(process.execPath, [COUNTERFOIL, ...args, process.execPath, file, logPath, 'stdio']),
    );
    const _meta = metaOf(CAPABILITIES);
    const discovered = await gateway.request('server/discover', { _meta });
    expect((discovered.message.result as TaskResult).capabilities?.extensions).toEqual({ [TASKS]: {} });
    const params = { name: 'make_when_told', arguments: { title: 'y' }, _meta };
    const created = (await gateway.request('tools/call', params)).message.result as TaskResult;
    expect(created).toMatchObject({ resultType: 'task', status: 'working' });
    writeFileSync(`${logPath}.go`, '');
    const done = await untilAsync(async () => {
      const got = await gateway.request('tasks/get', { taskId: created.taskId, _meta });
      const result = got.message.result as TaskResult;
      return result.status === 'completed' && result;
    }, 'the task to end');
    expect(textOf(done.result ?? {})).toBe('made y');
    gateway.expectPure();
    expect(await gateway.end()).toMatchObject({ code: 0 });
  }
});
