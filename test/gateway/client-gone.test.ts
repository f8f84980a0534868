import { type ChildProcess, spawn } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { afterEach, describe, expect, test } from 'vitest';
import { composeLedger } from '../../src/compose.ts';
import type { ToolFacts } from '../../src/core/contract.ts';
import type { Destination, SendReport } from '../../src/destination/port.ts';
import {
  CleanUps,
  callsOf,
  childrenOf,
  FILESYSTEM_SERVER,
  gatewayArguments,
  INITIALIZE,
  isRunning,
  LineProcess,
  logOf,
  operationOf,
  operationsIn,
  startGateway,
  type ToolResult,
  textOf,
  toolsServer,
  until,
  untilAsync,
} from './processes.ts';

const CLIENT = fileURLToPath(new URL('./fixtures/client.mjs', import.meta.url));
const TOOLS = [
  { name: 'note', inputSchema: { type: 'object' } },
  { name: 'erase', inputSchema: { type: 'object' } },
  { name: 'look', inputSchema: { type: 'object' }, annotations: { readOnlyHint: true } },
];
const CONFIG = `
destination: fixture
tools:
  note: {class: ordinary, repeat: unique}
  erase: {class: irreversible}
`;

const cleanUps = new CleanUps();
afterEach(cleanUps.run);

function setup(plan: object = { does: 'hold' }, ...flags: readonly string[]) {
  const folder = cleanUps.folder();
  const data = join(folder, 'data');
  writeFileSync(join(folder, 'tools.json'), JSON.stringify(TOOLS));
  writeFileSync(join(folder, 'plan.json'), JSON.stringify({ note: plan, erase: plan }));
  const options = { data, server: toolsServer(folder, ...flags), config: CONFIG };
  const servers = (): readonly number[] =>
    logOf(folder).flatMap(({ event, pid }) => (event === 'started' && pid !== undefined ? [pid] : []));
  // What a gateway leaves behind must not outlive the test that has found it.
  cleanUps.add(() => {
    for (const pid of servers()) if (isRunning(pid)) process.kill(pid, 'SIGKILL');
  });
  return {
    folder,
    data,
    arguments: () => gatewayArguments(options),
    gateway: async (): Promise<LineProcess> => {
      const gateway = cleanUps.started(startGateway(options));
      await gateway.initialize();
      return gateway;
    },
    calls: (tool = 'note') => callsOf(folder, tool),
    isOut: (tool = 'note') => until(() => callsOf(folder, tool).length === 1, 'the write to be out'),
    release: () => writeFileSync(join(folder, 'release'), ''),
    operations: () => operationsIn(data),
    /** The ids of every server process that was started here. */
    servers,
  };
}

async function areGone(...pids: readonly number[]): Promise<void> {
  for (const pid of pids) await until(() => !isRunning(pid), `process ${pid} to end`);
}

describe('the client closes its end while a write is out', () => {
  test('the outcome is recorded, nothing is left running, and the next equal call is given the answer', async () => {
    const { gateway: start, isOut, release, operations, servers, calls } = setup();
    const gateway = await start();
    gateway.ask('tools/call', { name: 'note', arguments: { n: 1 } });
    await isOut();
    const exited = gateway.end();
    expect(gateway.exit).toBeUndefined();
    release();
    expect(await exited).toEqual({ code: 0, signal: null });
    await areGone(...servers());
    expect(await operations()).toMatchObject([{ stage: 'closed', effect: 'accepted' }]);
    expect((await operations())[0]?.deliveredAt).toBeUndefined();
    gateway.expectPure();
    const next = await start();
    expect(textOf(await next.call('note', { n: 1 }))).toBe('did note');
    expect(textOf(await next.call('note', { n: 1 }))).toMatch(/^ALREADY_EXISTS — /);
    expect(calls()).toHaveLength(1);
  });

  test('what was called just before is done and answered all the same, as a script expects', async () => {
    const { gateway: start, arguments: args, operations, servers } = setup({ does: 'answer' });
    const script = cleanUps.started(new LineProcess(process.execPath, args()));
    const call = (id: number, name: string, input: object): object => ({
      jsonrpc: '2.0',
      id,
      method: 'tools/call',
      params: { name, arguments: input },
    });
    const frames = [
      { jsonrpc: '2.0', id: 1, method: 'initialize', params: INITIALIZE },
      { jsonrpc: '2.0', method: 'notifications/initialized' },
      call(2, 'note', { n: 1 }),
      call(3, 'look', {}),
      call(4, 'erase', { n: 1 }),
      call(5, 'counterfoil_operation_status', { operation: 'op_1', wait_s: 45 }),
    ];
    // All of it in one breath, and the end with it.
    script.write(`${frames.map((frame) => JSON.stringify(frame)).join('\n')}\n`);
    expect(await script.end()).toEqual({ code: 0, signal: null });
    script.expectPure();
    const said = (id: number): string => {
      const line = script.lines.find(({ message }) => message?.id === id);
      return textOf(line?.message?.result ?? {});
    };
    expect(script.lines.filter(({ message }) => message?.id !== undefined)).toHaveLength(5);
    expect(said(2)).toBe('did note');
    expect(said(3)).toBe('did look');
    expect(said(4)).toMatch(/^NOT SENT YET — waiting for a person's approval/);
    expect(said(5)).toMatch(/^No operation "op_1" is recorded here/);
    await areGone(...servers());
    // Both were called at once: either may be recorded first.
    const recorded = (await operations()).toSorted((a, b) => (a.stage < b.stage ? 1 : -1));
    expect(recorded).toMatchObject([
      { stage: 'closed', effect: 'accepted' },
      { stage: 'awaiting_approval', effect: 'not_sent' },
    ]);
    // Nothing has shown that the answer was read: the next equal call is given it, and nothing is sent again.
    const next = await start();
    expect(textOf(await next.call('note', { n: 1 }))).toBe('did note');
    expect(textOf(await next.call('note', { n: 1 }))).toMatch(/^ALREADY_EXISTS — /);
  });

  test('whoever waits for news of an operation is told what is known, and the gateway ends', async () => {
    const { gateway: start } = setup({ does: 'answer' });
    const gateway = await start();
    const operation = operationOf(await gateway.call('erase', { n: 1 }));
    const id = gateway.ask('tools/call', {
      name: 'counterfoil_operation_status',
      arguments: { operation, wait_s: 45 },
    });
    expect((await gateway.end()).code).toBe(0);
    expect(textOf((await gateway.answer(id)).message.result ?? {})).toMatch(/^NOT SENT YET — /);
  });

  test('so it is with a write that a person has just approved and no call waits for', async () => {
    const { data, gateway: start, isOut, release, operations, servers } = setup();
    const gateway = await start();
    const id = operationOf(await gateway.call('erase', { n: 1 }));
    const ledger = await composeLedger({ data });
    const digest = (await ledger.readings.record(id))?.operation.digest ?? '';
    await ledger.decideReview({
      operation: id,
      digest,
      kind: 'approved',
      by: 'Mara',
      strength: 'passphrase',
    });
    await ledger.close();
    await isOut('erase');
    const exited = gateway.end();
    release();
    expect(await exited).toEqual({ code: 0, signal: null });
    await areGone(...servers());
    expect(await operations()).toMatchObject([{ stage: 'closed', effect: 'accepted' }]);
  });
});

describe('a ledger is closed while its loop has a write out that no call waits for', () => {
  test('its destination is closed only after the outcome is recorded', async () => {
    const data = join(cleanUps.folder(), 'data');
    const seen: string[] = [];
    let answer: (report: SendReport) => void = () => {};
    let isSent: () => void = () => {};
    const sent = new Promise<void>((resolve) => {
      isSent = resolve;
    });
    const destination: Destination = {
      name: 'held',
      isConnected: () => true,
      connect: async () => ({ connected: true }),
      ask: async () => ({ answered: false, detail: 'nothing to ask' }),
      send: () => {
        isSent();
        return new Promise((resolve) => {
          answer = resolve;
        });
      },
      close: async () => {
        seen.push('closed');
      },
    };
    const facts: ToolFacts = {
      destination: 'held',
      tool: 'erase',
      class: 'irreversible',
      classSource: 'configuration',
      repeat: 'unique',
      checksArguments: false,
      digest: 'facts',
    };
    const ledger = await composeLedger({ data, destinations: [destination], factsFor: () => facts });
    const asked = await ledger.write({
      destination: 'held',
      tool: 'erase',
      arguments: {},
      requester: 'test',
    });
    if (asked.kind !== 'state') throw new Error(`It is ${asked.kind}.`);
    const { id, digest } = asked.operation;
    await ledger.decideReview({
      operation: id,
      digest,
      kind: 'approved',
      by: 'Mara',
      strength: 'passphrase',
    });
    await sent;
    const closing = ledger.close();
    // Long enough for a close that does not wait: everything in it that is not the world's has run by then.
    for (let turn = 0; turn < 50; turn += 1) await new Promise((resolve) => setImmediate(resolve));
    expect(seen).toEqual([]);
    answer({ left: 'maybe', ended: 'reply', reply: { kind: 'result', body: '{}' }, detail: '' });
    await closing;
    expect(seen).toEqual(['closed']);
    expect(await operationsIn(data)).toMatchObject([{ stage: 'closed', effect: 'accepted' }]);
  });
});

describe('the client is killed while a write is out', () => {
  test('the gateway records the outcome although nobody listens any more, and ends with its server', async () => {
    const world = setup({ does: 'hold', strays: true });
    const client = await killable('note', { n: 1 }, world.arguments());
    await world.isOut();
    await client.kill();
    world.release();
    await areGone(client.gateway, ...world.servers());
    expect(await world.operations()).toMatchObject([{ stage: 'closed', effect: 'accepted' }]);
    expect((await world.operations())[0]?.deliveredAt).toBeUndefined();
    const next = await world.gateway();
    expect(textOf(await next.call('note', { n: 1 }))).toBe('did note');
    expect(world.calls()).toHaveLength(1);
  });
});

describe('the gateway is told to end while a write is out', () => {
  test('it ends at once: the outcome is unknown, told so by the next gateway, and never sent again', async () => {
    const { gateway: start, isOut, operations, servers, calls } = setup();
    const gateway = await start();
    gateway.ask('tools/call', { name: 'note', arguments: { n: 1 } });
    await isOut();
    gateway.kill('SIGTERM');
    expect(await gateway.exited).toEqual({ code: 0, signal: null });
    await areGone(...servers());
    expect(await operations()).toMatchObject([{ stage: 'parked', effect: 'unknown' }]);
    const next = await start();
    expect(textOf(await next.call('note', { n: 1 }))).toMatch(/^OUTCOME UNKNOWN — /);
    expect(calls()).toHaveLength(1);
  });

  test('a server that ends neither with its input nor on SIGTERM is not left behind when a client closes', async () => {
    const world = setup({ does: 'answer' }, 'deaf');
    const client = new Client({ name: 'sdk', version: '1' });
    const transport = new StdioClientTransport({
      command: process.execPath,
      args: world.arguments(),
      stderr: 'ignore',
    });
    await client.connect(transport);
    await client.callTool({ name: 'note', arguments: { n: 1 } });
    const { pid } = transport;
    await client.close();
    await areGone(pid ?? 0, ...world.servers());
    expect(await world.operations()).toMatchObject([{ stage: 'closed', effect: 'accepted' }]);
  });

  test('nor when the client closes while a write is out there', async () => {
    const world = setup({ does: 'hold' }, 'deaf');
    const client = new Client({ name: 'sdk', version: '1' });
    const transport = new StdioClientTransport({
      command: process.execPath,
      args: world.arguments(),
      stderr: 'ignore',
    });
    await client.connect(transport);
    const open = client.callTool({ name: 'note', arguments: { n: 1 } });
    const ended = open.then(
      (result) => textOf(result as ToolResult),
      (cause: unknown) => String(cause),
    );
    await world.isOut();
    const { pid } = transport;
    await client.close();
    // Its call ends by the closed connection, or by what the gateway still had time to say.
    expect(await ended).toMatch(/closed|^OUTCOME UNKNOWN — /);
    await areGone(pid ?? 0, ...world.servers());
    expect(await world.operations()).toMatchObject([{ stage: 'parked', effect: 'unknown' }]);
  });
});

describe('the gateway is killed while a write is out', () => {
  test('the server ends by itself; the next gateway looks the write up and finds it', async () => {
    const folder = cleanUps.folder();
    const files = join(folder, 'files');
    mkdirSync(files);
    const options = { data: join(folder, 'data'), server: [process.execPath, FILESYSTEM_SERVER, files] };
    const env = { COUNTERFOIL_DRILL_CRASH_AT: 'bytes_left' };
    const gateway = cleanUps.started(startGateway({ ...options, env }));
    await gateway.initialize();
    await gateway.request('tools/list');
    const [server] = childrenOf(gateway.pid);
    if (server === undefined) throw new Error('The gateway has no child.');
    process.kill(server, 'SIGSTOP');
    const args = { path: join(files, 'a.txt'), content: 'landed' };
    gateway.ask('tools/call', { name: 'write_file', arguments: args });
    await gateway.died;
    expect(await operationsIn(options.data)).toMatchObject([{ stage: 'sending', effect: 'unknown' }]);
    // What was in the pipe is read by the server all the same; its answer reaches nobody.
    process.kill(server, 'SIGCONT');
    await areGone(server);
    expect(readFileSync(args.path, 'utf8')).toBe('landed');
    const next = cleanUps.started(startGateway(options));
    await next.initialize();
    const found = await untilAsync(
      async () => (await operationsIn(options.data)).find(({ stage }) => stage === 'closed'),
      'the look-up',
    );
    expect(['accepted', 'verified']).toContain(found.effect);
    expect(found.evidence.some(({ kind }) => kind === 'lookup')).toBe(true);
    const again = await next.call('write_file', args);
    expect(operationOf(again)).toBe(found.id);
    expect(textOf(again)).toMatch(/^ALREADY_EXISTS — /);
    expect(await operationsIn(options.data)).toHaveLength(1);
  });
});

/** A client process with a gateway of its own, and the way to kill it alone. */
async function killable(tool: string, args: object, gateway: readonly string[]) {
  const client: ChildProcess = spawn(
    process.execPath,
    [CLIENT, tool, JSON.stringify(args), process.execPath, ...gateway],
    { stdio: ['ignore', 'pipe', 'inherit'] },
  );
  let printed = '';
  client.stdout?.setEncoding('utf8').on('data', (chunk: string) => {
    printed += chunk;
  });
  const pid = await until(() => /^(\d+)\n/.exec(printed)?.[1], 'the id of the gateway');
  const exited = new Promise<void>((resolve) => client.once('exit', () => resolve()));
  cleanUps.add(async () => {
    client.kill('SIGKILL');
    await exited;
  });
  return {
    gateway: Number(pid),
    /** Resolves once it is gone: until then it could still read. */
    kill: async (): Promise<void> => {
      client.kill('SIGKILL');
      await exited;
    },
  };
}
