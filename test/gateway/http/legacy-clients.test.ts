import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, test } from 'vitest';
import {
  CleanUps,
  callsOf,
  childrenOf,
  FILESYSTEM_SERVER,
  isRunning,
  logOf,
  operationOf,
  operationsIn,
  ownerOf,
  type ToolResult,
  textOf,
  toolsServer,
  until,
  untilAsync,
} from '../processes.ts';
import { sdkClient, startServing } from './serving.ts';

const cleanUps = new CleanUps();
afterEach(cleanUps.run);

const TOOLS = [
  { name: 'look', inputSchema: { type: 'object' }, annotations: { readOnlyHint: true } },
  { name: 'make', inputSchema: { type: 'object' } },
  { name: 'wipe', inputSchema: { type: 'object' } },
];
const CONFIG = { tools: { make: { class: 'ordinary' }, wipe: { class: 'irreversible' } } };

async function setup(plan: object = {}, config: object = CONFIG) {
  const folder = cleanUps.folder();
  writeFileSync(join(folder, 'tools.json'), JSON.stringify(TOOLS));
  writeFileSync(join(folder, 'plan.json'), JSON.stringify(plan));
  const serving = await startServing(cleanUps, { tools: { command: toolsServer(folder), config } });
  return { folder, serving, connect: () => sdkClient(cleanUps, serving.url()) };
}

const call = async (
  { client }: Awaited<ReturnType<typeof sdkClient>>,
  name: string,
  args: Record<string, unknown> = {},
): Promise<ToolResult> => (await client.callTool({ name, arguments: args })) as ToolResult;

describe('a client of 2025-11-25 over HTTP, in front of a server over stdio', () => {
  test('reads pass, and a write is recorded', async () => {
    const { folder, serving, connect } = await setup();
    const client = await connect();
    const { tools } = await client.client.listTools();
    expect(tools.map(({ name }) => name)).toEqual(['look', 'make', 'wipe', 'counterfoil_operation_status']);
    expect(textOf(await call(client, 'look'))).toBe('did look');
    expect(textOf(await call(client, 'make', { title: 'a' }))).toBe('did make');
    expect(callsOf(folder, 'make')).toHaveLength(1);
    const [operation] = await operationsIn(serving.data);
    expect(operation).toMatchObject({ tool: 'make', stage: 'closed', effect: 'accepted' });
    expect(operation?.requester).toMatch(/^local:/);
  });

  test('each client has a server of its own, and a client that leaves takes it along', async () => {
    const { folder, serving, connect } = await setup();
    const first = await connect();
    const second = await connect();
    await call(first, 'look');
    await call(second, 'look');
    expect(first.transport.sessionId).not.toBe(second.transport.sessionId);
    expect(childrenOf(serving.process.pid)).toHaveLength(2);
    const started = logOf(folder).filter(({ event }) => event === 'started');
    expect(started).toHaveLength(2);
    await first.transport.terminateSession();
    await until(() => started.some(({ pid }) => !isRunning(pid ?? 0)), 'one of the servers to end');
    expect(textOf(await call(second, 'look'))).toBe('did look');
  });

  test('a write whose client has left is followed to its end on its own connection', async () => {
    const { folder, serving, connect } = await setup({ make: { does: 'hold' } });
    const client = await connect();
    const lost = call(client, 'make', { title: 'a' }).catch(() => 'lost');
    await until(() => callsOf(folder, 'make').length === 1, 'the write to arrive');
    await client.transport.terminateSession();
    await client.client.close();
    expect(await lost).toBe('lost');
    writeFileSync(join(folder, 'release'), '');
    const operation = await untilAsync(async () => {
      const [first] = await operationsIn(serving.data);
      return first?.stage === 'closed' ? first : undefined;
    }, 'the operation to be closed');
    expect(operation).toMatchObject({ effect: 'accepted' });
    expect(operation.deliveredAt).toBeUndefined();
  });

  test('a write that was approved after its client has left is sent by a connection of our own', async () => {
    const { folder, serving, connect } = await setup();
    const client = await connect();
    const asked = await call(client, 'wipe', { disk: 1 });
    expect(textOf(asked)).toMatch(/^NOT SENT YET — waiting for a person's approval/);
    await client.transport.terminateSession();
    const id = operationOf(asked);
    const [operation] = await operationsIn(serving.data);
    const ran = await ownerOf(serving.data).approve(id, '--digest', operation?.digest ?? '');
    expect(ran.code).toBe(0);
    await until(() => callsOf(folder, 'wipe').length === 1, 'the write to be sent');
  });

  test('told to end, it ends with its servers, also while clients listen; a write that is out is followed', async () => {
    const { folder, serving, connect } = await setup({ make: { does: 'hold' } });
    const client = await connect();
    await connect();
    const calling = call(client, 'make', { title: 'a' }).catch(() => 'lost');
    await until(() => callsOf(folder, 'make').length === 1, 'the write to arrive');
    const servers = childrenOf(serving.process.pid);
    expect(servers).toHaveLength(2);
    serving.process.kill('SIGTERM');
    writeFileSync(join(folder, 'release'), '');
    expect(await serving.process.exited).toEqual({ code: 0, signal: null });
    await calling;
    expect(servers.filter(isRunning)).toEqual([]);
    const [operation] = await operationsIn(serving.data);
    expect(operation).toMatchObject({ stage: 'closed', effect: 'accepted' });
  });

  test('the shipped filesystem server: a file is written, and the record says verified', async () => {
    const root = join(cleanUps.folder(), 'root');
    mkdirSync(root);
    const serving = await startServing(cleanUps, {
      files: { command: [process.execPath, FILESYSTEM_SERVER, root] },
    });
    const client = await sdkClient(cleanUps, serving.url('/mcp/files'));
    await call(client, 'write_file', { path: join(root, 'a.txt'), content: 'hello' });
    expect(readFileSync(join(root, 'a.txt'), 'utf8')).toBe('hello');
    const [operation] = await operationsIn(serving.data);
    expect(operation).toMatchObject({ tool: 'write_file', effect: 'verified' });
  });
});
