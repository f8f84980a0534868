// Writes that are run as tasks of a client of 2025-11-25, made with the SDK of that generation, over stdio: counted in
// the server's own log.

import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { type CallToolResult, CallToolResultSchema } from '@modelcontextprotocol/sdk/types.js';
import { afterEach, describe, expect, test } from 'vitest';
import {
  CleanUps,
  callsOf,
  gatewayArguments,
  operationsIn,
  ownerOf,
  startGateway,
  type ToolResult,
  textOf,
  toolsServer,
  until,
  untilAsync,
} from './processes.ts';

const cleanUps = new CleanUps();
afterEach(cleanUps.run);

const CONFIG = `
destination: tools
tools:
  make: {class: ordinary, repeat: unique}
  erase: {class: irreversible, repeat: unique}
  note: {class: ordinary, repeat: free, target: {type: page, id: '{page}'}}
`;
const TOOLS = [
  { name: 'look', inputSchema: { type: 'object' }, annotations: { readOnlyHint: true } },
  { name: 'make', inputSchema: { type: 'object' } },
  { name: 'erase', inputSchema: { type: 'object' } },
  { name: 'note', inputSchema: { type: 'object', properties: { page: { type: 'string' } } } },
];
const RELATED = 'io.modelcontextprotocol/related-task';

function setup(plan: object = {}) {
  const folder = cleanUps.folder();
  const data = join(folder, 'data');
  writeFileSync(join(folder, 'tools.json'), JSON.stringify(TOOLS));
  writeFileSync(join(folder, 'plan.json'), JSON.stringify(plan));
  const server = toolsServer(folder);
  const owner = ownerOf(data);
  return {
    data,
    made: () => callsOf(folder, 'make').length,
    erased: () => callsOf(folder, 'erase').length,
    noted: () => callsOf(folder, 'note').length,
    release: () => writeFileSync(join(folder, 'release'), ''),
    operations: () => operationsIn(data),
    operation: async () => (await operationsIn(data))[0],
    approve: async () => {
      const [operation] = await operationsIn(data);
      return owner.approve(operation?.id ?? '', '--digest', operation?.digest ?? '');
    },
    deny: async () => {
      const [operation] = await operationsIn(data);
      return owner.run('deny', operation?.id ?? '', '--digest', operation?.digest ?? '');
    },
    lines: () => cleanUps.started(startGateway({ data, server, config: CONFIG })),
    client: async (capabilities: object = { tasks: {} }): Promise<Client> => {
      const client = new Client({ name: 'tasks', version: '1' }, { capabilities });
      const args = gatewayArguments({ data, server, config: CONFIG });
      await client.connect(new StdioClientTransport({ command: process.execPath, args, stderr: 'ignore' }));
      cleanUps.add(() => client.close());
      return client;
    },
  };
}

/** What a stream of the SDK has told, in order. */
async function told(client: Client, name: string, onStatus: (text: string) => void = () => {}) {
  const types: string[] = [];
  let last: CallToolResult | Error | undefined;
  let message = '';
  for await (const one of client.experimental.tasks.callToolStream({ name, arguments: {} })) {
    types.push(one.type === 'taskStatus' ? one.task.status : one.type);
    if (one.type === 'taskStatus') {
      message = one.task.statusMessage ?? '';
      onStatus(message);
    }
    if (one.type === 'result') last = one.result as CallToolResult;
    if (one.type === 'error') last = one.error;
  }
  return { types, last, message };
}

async function begun(client: Client, name: string, args: object = {}): Promise<string> {
  const created = await client.request(
    { method: 'tools/call', params: { name, arguments: args, task: { ttl: 60_000 } } },
    { parse: (value: unknown) => value, safeParse: (data: unknown) => ({ success: true, data }) } as never,
  );
  return (created as { task: { taskId: string } }).task.taskId;
}

const resultOf = (client: Client, id: string): Promise<ToolResult> =>
  client.experimental.tasks.getTaskResult(id, CallToolResultSchema) as Promise<ToolResult>;

describe('a client of 2025-11-25 that declares tasks', () => {
  test('is offered them for writes; others see the server as it is', async () => {
    const { client } = setup();
    const declared = await client();
    expect(declared.getServerCapabilities()?.tasks).toEqual({
      list: {},
      cancel: {},
      requests: { tools: { call: {} } },
    });
    const support = async (one: Client) =>
      Object.fromEntries(
        (await one.listTools()).tools.map(({ name, execution }) => [name, execution?.taskSupport]),
      );
    expect(await support(declared)).toMatchObject({ make: 'optional', erase: 'optional', look: undefined });
    const other = await client({});
    expect(other.getServerCapabilities()?.tasks).toBeUndefined();
    expect(await support(other)).toMatchObject({ make: undefined, erase: undefined });
  });

  test('gets the answer of the server through its task, byte for byte but for the task’s name', async () => {
    const result = { content: [{ type: 'text', text: 'done' }], structuredContent: { id: 'r1', n: 1.5 } };
    const { client, made, operation } = setup({ make: { result } });
    const one = await client();
    await one.listTools();
    const { types, last } = await told(one, 'make');
    expect(types[0]).toBe('taskCreated');
    expect(types.slice(-2)).toEqual(['completed', 'result']);
    expect(last).toMatchObject(result);
    expect((last as ToolResult)._meta).toHaveProperty([RELATED]);
    expect(made()).toBe(1);
    expect(await operation()).toMatchObject({ stage: 'closed', effect: 'accepted', attempts: [{}] });
  });

  test('is told that it is on its way, and waits for the result', async () => {
    const { client, made, release, operation } = setup({ make: { does: 'hold' } });
    const one = await client();
    const id = await begun(one, 'make');
    await until(() => made() === 1, 'the call to reach the server');
    const task = await one.experimental.tasks.getTask(id);
    expect(task).toMatchObject({ taskId: id, status: 'working', ttl: null });
    expect(task.statusMessage).toMatch(/^SENT, NO ANSWER YET \(op_/);
    expect(await operation()).toMatchObject({ stage: 'sending' });
    const waiting = resultOf(one, id);
    release();
    expect(textOf(await waiting)).toBe('did make');
    expect((await one.experimental.tasks.getTask(id)).status).toBe('completed');
    // The same answer as often as it is asked for.
    expect(textOf(await resultOf(one, id))).toBe('did make');
    expect(made()).toBe(1);
  });

  test('a write that waits for a person is a task that goes on when it is approved', async () => {
    const { approve, client, erased } = setup();
    const one = await client();
    await one.listTools();
    let approving: Promise<unknown> | undefined;
    const { types, last } = await told(one, 'erase', (message) => {
      if (message.startsWith('NOT SENT YET — waiting for a person')) approving ??= approve();
    });
    expect(approving).toBeDefined();
    expect(types).toContain('working');
    expect(types.slice(-2)).toEqual(['completed', 'result']);
    expect(textOf(last as ToolResult)).toBe('did erase');
    expect(erased()).toBe(1);
  });

  test('one that is denied has ended, with the words that its call would have had', async () => {
    const { client, deny, erased } = setup();
    const one = await client();
    const id = await begun(one, 'erase');
    await deny();
    const result = await resultOf(one, id);
    expect(result.isError).toBe(true);
    expect(textOf(result)).toMatch(/^NOT SENT — denied by an approver/);
    expect((await one.experimental.tasks.getTask(id)).status).toBe('completed');
    expect(erased()).toBe(0);
  });

  test('an outcome that is unknown is never called failed', async () => {
    const { client, made } = setup({ make: { does: 'die_done' } });
    const one = await client();
    await one.listTools();
    const { types, last } = await told(one, 'make');
    expect(types.slice(-2)).toEqual(['completed', 'result']);
    expect(textOf(last as ToolResult)).toMatch(/^OUTCOME UNKNOWN/);
    expect(made()).toBe(1);
  });

  test('an error of the protocol from the server is what the task has failed with', async () => {
    const { client } = setup({ make: { error: { code: -32050, message: 'no room' } } });
    const one = await client();
    const id = await begun(one, 'make');
    await untilAsync(
      async () => (await one.experimental.tasks.getTask(id)).status === 'failed',
      'the task to end',
    );
    await expect(resultOf(one, id)).rejects.toMatchObject({ code: -32050 });
  });
});

describe('a task', () => {
  test('outlives its connection, and its process', async () => {
    const { client, made } = setup();
    const first = await client();
    const id = await begun(first, 'make');
    expect(textOf(await resultOf(first, id))).toBe('did make');
    await first.close();
    const second = await client();
    expect(textOf(await resultOf(second, id))).toBe('did make');
    const { tasks } = await second.experimental.tasks.listTasks();
    expect(tasks.map(({ taskId, status }) => [taskId, status])).toEqual([[id, 'completed']]);
    expect(made()).toBe(1);
  });

  test('of an equal call is the same operation, and says that nothing was sent now', async () => {
    const { client, made, operations } = setup();
    const one = await client();
    const first = await begun(one, 'make');
    expect(textOf(await resultOf(one, first))).toBe('did make');
    const second = await begun(one, 'make');
    expect(second).not.toBe(first);
    const again = await resultOf(one, second);
    expect(textOf(again)).toMatch(/^ALREADY_EXISTS — this was done before in this run; nothing was sent now/);
    expect(textOf(again)).toContain('did make');
    expect(made()).toBe(1);
    expect(await operations()).toHaveLength(1);
  });

  test('whose answer nobody has read gives it to the first equal call, unchanged', async () => {
    const { client, made, operation } = setup();
    const one = await client();
    const id = await begun(one, 'make');
    await untilAsync(async () => (await operation())?.stage === 'closed', 'the write to be answered');
    const equal = (await one.callTool({ name: 'make', arguments: {} })) as ToolResult;
    expect(textOf(equal)).toBe('did make');
    expect(textOf(await resultOf(one, id))).toBe('did make');
    expect(made()).toBe(1);
  });

  test('that waits for a person, or is out, is not cancelled, and says so', async () => {
    const { client, made, erased, release, operation } = setup({ make: { does: 'hold' } });
    const one = await client();
    const held = await begun(one, 'erase');
    const refused = await one.experimental.tasks.cancelTask(held);
    expect(refused.status).toBe('working');
    expect(refused.statusMessage).toMatch(
      /^NOT CANCELLED — a person was asked, and it is that person's to end/,
    );
    expect(await operation()).toMatchObject({ stage: 'awaiting_approval' });
    const out = await begun(one, 'make');
    await until(() => made() === 1, 'the call to reach the server');
    const asked = await one.experimental.tasks.cancelTask(out);
    expect(asked.status).toBe('working');
    expect(asked.statusMessage).toMatch(/^CANCEL REQUESTED at .* what was sent before is not called back/);
    release();
    expect(textOf(await resultOf(one, out))).toBe('did make');
    await expect(one.experimental.tasks.cancelTask(out)).rejects.toMatchObject({ code: -32602 });
    expect(erased()).toBe(0);
  });

  test('is cancelled where nothing has left', async () => {
    const { client, noted, release } = setup({ note: { does: 'hold' } });
    const one = await client();
    const first = await begun(one, 'note', { page: 'a', text: 'x' });
    await until(() => noted() === 1, 'the first call to reach the server');
    // It waits until the first is known, because it writes to the same page.
    const second = await begun(one, 'note', { page: 'a', text: 'y' });
    expect((await one.experimental.tasks.getTask(second)).statusMessage).toMatch(
      /^NOT SENT YET — waits for op_/,
    );
    const cancelled = await one.experimental.tasks.cancelTask(second);
    expect(cancelled).toMatchObject({ status: 'cancelled' });
    expect(cancelled.statusMessage).toMatch(/^NOT SENT — the caller took it back/);
    release();
    expect(textOf(await resultOf(one, first))).toBe('did note');
    const result = await resultOf(one, second);
    expect(result.isError).toBe(true);
    expect(textOf(result)).toMatch(/^NOT SENT — the caller took it back/);
    expect((await one.experimental.tasks.getTask(second)).status).toBe('cancelled');
    expect(noted()).toBe(1);
  });

  test('that nobody began is unknown, and so is a page of them', async () => {
    const { client } = setup();
    const one = await client();
    const id = `tsk_${'0'.repeat(26)}`;
    await expect(one.experimental.tasks.getTask(id)).rejects.toMatchObject({ code: -32602 });
    await expect(one.experimental.tasks.getTask('another')).rejects.toMatchObject({ code: -32602 });
    await expect(one.experimental.tasks.listTasks('another')).rejects.toMatchObject({ code: -32602 });
    await expect(one.experimental.tasks.listTasks('counterfoil:x')).rejects.toMatchObject({ code: -32602 });
  });

  test('is not begun where nothing could be recorded: its client is told by an error in our words', async () => {
    const { lines, made } = setup();
    const gateway = lines();
    await gateway.initialize();
    const params = { name: 'nothing', arguments: {}, task: {} };
    const { message } = await gateway.request('tools/call', params);
    expect(message.error?.message).toMatch(
      /^NOT SENT — tools lists no tool "nothing"\. Nothing was recorded/,
    );
    const twice =
      '{"jsonrpc":"2.0","id":"x","method":"tools/call","params":{"name":"make","task":{},"arguments":{"a":1,"a":2}}}';
    gateway.send(twice);
    expect((await gateway.answer('x')).message.error?.message).toMatch(
      /^NOT SENT — the arguments cannot be represented/,
    );
    expect(made()).toBe(0);
  });

  test('of a read is the server’s own: it passes as it came', async () => {
    const { lines } = setup();
    const gateway = lines();
    await gateway.initialize();
    const { message } = await gateway.request('tools/call', {
      name: 'look',
      arguments: {},
      task: { ttl: 1 },
    });
    expect(textOf(message.result ?? {})).toBe('did look');
    const asked = await gateway.request('tasks/get', { taskId: 'of-the-server' });
    expect(asked.message.error?.message).toBe('No such method: tasks/get');
  });
});

describe('a server of 2025-11-25 that runs a tool as a task alone', () => {
  test('has its task followed to its end, in one attempt, whether its client asked for one or not', async () => {
    const folder = cleanUps.folder();
    const logPath = join(folder, 'log');
    const data = join(folder, 'data');
    const server = [
      process.execPath,
      fileURLToPath(new URL('fixtures/task-server.mjs', import.meta.url)),
      logPath,
    ];
    const config = 'destination: slow\ntools: {slow: {class: ordinary, repeat: free}}\n';
    const gateway = cleanUps.started(startGateway({ data, server, config }));
    await gateway.initialize();
    const log = (): string => (existsSync(logPath) ? readFileSync(logPath, 'utf8') : '');
    expect(textOf(await gateway.call('slow', { title: 'a' }))).toBe('slowly made a');
    const params = { name: 'slow', arguments: { title: 'b' }, task: {} };
    const { message } = await gateway.request('tools/call', params);
    const { task } = message.result as unknown as { task: { taskId: string } };
    expect(task.taskId).toMatch(/^tsk_/);
    const result = await gateway.request('tasks/result', { taskId: task.taskId });
    expect(textOf(result.message.result ?? {})).toBe('slowly made b');
    expect(log().match(/"event":"made"/g)).toHaveLength(2);
    for (const operation of await operationsIn(data)) {
      expect(operation).toMatchObject({ stage: 'closed', effect: 'accepted', attempts: [{ open: false }] });
    }
    // Its own tasks are listed behind ours.
    const first = await gateway.request('tasks/list', {});
    const page = first.message.result as unknown as { tasks: object[]; nextCursor: string };
    expect(page.tasks).toHaveLength(1);
    const next = await gateway.request('tasks/list', { cursor: page.nextCursor });
    expect((next.message.result as unknown as { tasks: object[] }).tasks).toHaveLength(2);
  });
});
