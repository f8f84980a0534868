// Clients of both generations over stdio, in front of servers of both generations over both transports.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Client as ModernClient } from '@modelcontextprotocol/client';
import { StdioClientTransport as ModernTransport } from '@modelcontextprotocol/client/stdio';
import { Client as LegacyClient } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport as LegacyTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import { afterEach, describe, expect, test } from 'vitest';
import {
  CleanUps,
  COUNTERFOIL,
  counterfoil,
  isReaped,
  LineProcess,
  operationsIn,
  type ToolResult,
  textOf,
  until,
  untilAsync,
} from './processes.ts';

const at = (name: string): string => fileURLToPath(new URL(`http/fixtures/${name}`, import.meta.url));
const cleanUps = new CleanUps();
afterEach(cleanUps.run);

const CAPABILITIES = { elicitation: { form: {} } };
const META = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientCapabilities': CAPABILITIES,
};
const ACCEPTED = { action: 'accept' as const, content: { name: 'Ada' } };

async function setup(file: string, mode: 'stdio' | 'http') {
  const folder = cleanUps.folder();
  const logPath = join(folder, 'log');
  const data = join(folder, 'data');
  const config = join(folder, 'config.yaml');
  writeFileSync(
    config,
    'destination: offer\ntools: {make_asked: {class: ordinary}, make_when_told: {class: ordinary}}\n',
  );
  const log = (): string => (existsSync(logPath) ? readFileSync(logPath, 'utf8') : '');
  const made = (): number => log().split('"event":"made"').length - 1;
  const args = [COUNTERFOIL, 'mcp', '--data', data, '--config', config];
  if (mode === 'stdio')
    return { args: [...args, '--', process.execPath, at(file), logPath, 'stdio'], data, made, log };
  const child = spawn(process.execPath, [at(file), logPath, 'http'], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  cleanUps.add(async () => {
    child.kill('SIGKILL');
    await once(child, 'exit');
  });
  const [port] = (await once(child.stdout, 'data')) as [Buffer];
  return { args: [...args, '--url', `http://127.0.0.1:${port.toString().trim()}/mcp`], data, made, log };
}

type Call = (name: string, args: Record<string, unknown>) => Promise<ToolResult>;

async function legacyClient(args: readonly string[]): Promise<Call> {
  const client = new LegacyClient({ name: 'legacy', version: '1' }, { capabilities: CAPABILITIES });
  client.setRequestHandler(ElicitRequestSchema, () => ACCEPTED);
  await client.connect(new LegacyTransport({ command: process.execPath, args: [...args], stderr: 'ignore' }));
  cleanUps.add(() => client.close());
  return (name, given) => client.callTool({ name, arguments: given }) as Promise<ToolResult>;
}

type Negotiation = NonNullable<ConstructorParameters<typeof ModernClient>[1]>['versionNegotiation'];

async function connected(args: readonly string[], versionNegotiation: Negotiation): Promise<ModernClient> {
  const client = new ModernClient(
    { name: 'modern', version: '2' },
    { capabilities: CAPABILITIES, ...(versionNegotiation === undefined ? {} : { versionNegotiation }) },
  );
  client.setRequestHandler('elicitation/create', () => ACCEPTED);
  await client.connect(new ModernTransport({ command: process.execPath, args: [...args], stderr: 'ignore' }));
  cleanUps.add(() => client.close());
  return client;
}

const calling =
  (client: ModernClient): Call =>
  (name, given) =>
    client.callTool({ name, arguments: given }) as Promise<ToolResult>;

const modernClient = async (args: readonly string[]): Promise<Call> =>
  calling(await connected(args, { mode: 'auto' }));

/** It knows 2026-07-28 and nothing else. */
const modernOnly = (args: readonly string[]): Promise<ModernClient> =>
  connected(args, { mode: { pin: '2026-07-28' } });

const modernOnlyClient = async (args: readonly string[]): Promise<Call> => calling(await modernOnly(args));

test.each([
  ['2025-11-25', 'legacy-server.mjs', 'stdio', legacyClient],
  ['2025-11-25', 'legacy-server.mjs', 'http', legacyClient],
  ['2025-11-25', 'modern-server.mjs', 'stdio', legacyClient],
  ['2025-11-25', 'modern-server.mjs', 'http', legacyClient],
  ['2026-07-28', 'modern-server.mjs', 'stdio', modernClient],
  ['2026-07-28', 'modern-server.mjs', 'http', modernClient],
  ['2026-07-28 alone', 'modern-server.mjs', 'stdio', modernOnlyClient],
  ['2026-07-28 alone', 'modern-server.mjs', 'http', modernOnlyClient],
  ['2026-07-28 alone', 'legacy-server.mjs', 'stdio', modernOnlyClient],
  ['2026-07-28 alone', 'legacy-server.mjs', 'http', modernOnlyClient],
  // It is of the later generation where it can be, as over HTTP.
  ['both generations', 'legacy-server.mjs', 'stdio', modernClient],
  ['both generations', 'legacy-server.mjs', 'http', modernClient],
] as const)('a client of %s over stdio, %s over %s: reads pass, a write has its legs', async (...row) => {
  const [, file, mode, connect] = row;
  const { args, data, made } = await setup(file, mode);
  const call = await connect(args);
  expect(textOf(await call('look', {}))).toBe('looked');
  expect(textOf(await call('ask_name', {}))).toBe('Hello, Ada');
  expect(textOf(await call('make_asked', { title: 'x' }))).toBe('made x for Ada');
  expect(made()).toBe(1);
  const [operation] = await operationsIn(data);
  expect(operation).toMatchObject({ stage: 'closed', effect: 'accepted', attempts: [{ legs: 2 }] });
});

describe('a client of 2026-07-28 alone, in front of a server of 2025-11-25 over stdio', () => {
  test('sees its tools, prompts and resources', async () => {
    const { args } = await setup('legacy-server.mjs', 'stdio');
    const client = await modernOnly(args);
    expect(client.getServerVersion()?.name).toBe('legacy-offer');
    const { tools } = await client.listTools();
    expect(tools.map(({ name }) => name)).toContain('make_asked');
    expect(tools.at(-1)?.name).toBe('counterfoil_operation_status');
    expect((await client.listResources()).resources.map(({ uri }) => uri)).toEqual(['test://a', 'test://b']);
    expect((await client.readResource({ uri: 'test://a' })).contents).toMatchObject([
      { text: 'content of test://a' },
    ]);
    const greeting = await client.getPrompt({ name: 'greet', arguments: { who: 'Ada' } });
    expect(greeting.messages).toMatchObject([{ content: { text: 'Greet Ada' } }]);
  });

  test('hears of progress under its own token, and asks for no log that it did not want', async () => {
    const { args } = await setup('legacy-server.mjs', 'stdio');
    const gateway = cleanUps.started(new LineProcess(process.execPath, args));
    const _meta = { ...META, progressToken: 'mine' };
    await gateway.request('tools/call', { name: 'count', arguments: {}, _meta });
    const heard = gateway.lines.flatMap(({ message }) =>
      message?.method === 'notifications/progress' ? [message.params] : [],
    );
    expect(heard).toEqual([1, 2, 3].map((progress) => ({ progressToken: 'mine', progress, total: 3 })));
    await gateway.request('tools/call', { name: 'talk', arguments: {}, _meta: META });
    expect(gateway.lines.filter(({ message }) => message?.method === 'notifications/message')).toEqual([]);
    const wanted = { ...META, 'io.modelcontextprotocol/logLevel': 'info' };
    await gateway.request('tools/call', { name: 'talk', arguments: {}, _meta: wanted });
    expect(gateway.lines.filter(({ message }) => message?.method === 'notifications/message')).toHaveLength(
      1,
    );
    gateway.expectPure();
  });

  test('hears of changes that it listens to', async () => {
    const { args } = await setup('legacy-server.mjs', 'stdio');
    const gateway = cleanUps.started(new LineProcess(process.execPath, args));
    const params = { _meta: META, notifications: { toolsListChanged: true } };
    const id = gateway.ask('subscriptions/listen', params);
    const heard = (method: string) => () =>
      gateway.lines.find(({ message }) => message?.method === method)?.message;
    await until(heard('notifications/subscriptions/acknowledged'), 'the subscription to be acknowledged');
    gateway.ask('tools/call', { name: 'change', arguments: {}, _meta: META });
    const change = await until(heard('notifications/tools/list_changed'), 'the change to be heard of');
    expect(change.params).toEqual({ _meta: { 'io.modelcontextprotocol/subscriptionId': id } });
    gateway.notify('notifications/cancelled', { requestId: id });
    const { message } = await gateway.request('tools/call', { name: 'look', arguments: {}, _meta: META });
    expect(message.result).toMatchObject({ resultType: 'complete', content: [{ text: 'looked' }] });
    expect(gateway.lines.filter(({ message: one }) => one?.id === id)).toEqual([]);
    gateway.expectPure();
  });

  test('takes a read back: its server is told, and nothing more is said of it', async () => {
    const { args, log } = await setup('legacy-server.mjs', 'stdio');
    const gateway = cleanUps.started(new LineProcess(process.execPath, args));
    const id = gateway.ask('tools/call', { name: 'wait', arguments: {}, _meta: META });
    await until(() => log().includes('"event":"waiting"'), 'the call to reach the server');
    gateway.notify('notifications/cancelled', { requestId: id });
    await until(() => log().includes('"event":"cancelled"'), 'the server to be told');
    await gateway.request('tools/list', { _meta: META });
    expect(gateway.lines.filter(({ message }) => message?.id === id)).toEqual([]);
  });

  test.each([
    ['no version', {}, -32602],
    ['another version', { ...META, 'io.modelcontextprotocol/protocolVersion': '2027-01-01' }, -32022],
    ['no capabilities', { 'io.modelcontextprotocol/protocolVersion': '2026-07-28' }, -32602],
  ])('is told what is wrong with a request of %s', async (_what, meta, code) => {
    const { args, made } = await setup('legacy-server.mjs', 'stdio');
    const gateway = cleanUps.started(new LineProcess(process.execPath, args));
    const first = await gateway.request('server/discover', { _meta: META });
    expect(first.message.result).toMatchObject({ supportedVersions: ['2026-07-28'] });
    const params = { name: 'make', arguments: { title: 'x' }, _meta: meta };
    expect((await gateway.request('tools/call', params)).message.error?.code).toBe(code);
    for (const method of ['initialize', 'ping', 'tasks/result']) {
      expect((await gateway.request(method, { _meta: META })).message.error?.code).toBe(-32601);
    }
    expect(made()).toBe(0);
  });

  test('has its server started again when it has ended', async () => {
    const { args, data, log, made } = await setup('legacy-server.mjs', 'stdio');
    const call = calling(await modernOnly(args));
    expect(textOf(await call('look', {}))).toBe('looked');
    // The client starts a process of its own to ask for the version.
    const pid = Number([...log().matchAll(/"pid":(\d+)/g)].at(-1)?.[1]);
    process.kill(pid, 'SIGKILL');
    await until(() => isReaped(pid), 'the gateway to know that its server has ended');
    expect(textOf(await call('make_asked', { title: 'x' }))).toBe('made x for Ada');
    expect(made()).toBe(1);
    expect(await operationsIn(data)).toMatchObject([{ stage: 'closed', effect: 'accepted' }]);
  });

  test('closes its end while a write is out: it is followed to its end', async () => {
    const { args, data, log } = await setup('legacy-server.mjs', 'stdio');
    const gateway = cleanUps.started(
      new LineProcess(process.execPath, [...args.slice(0, 2), '--no-resident', ...args.slice(2)]),
    );
    gateway.ask('tools/call', { name: 'make_when_told', arguments: { title: 'x' }, _meta: META });
    await until(() => log().includes('"event":"waiting"'), 'the call to reach the server');
    const ended = gateway.end();
    writeFileSync(`${dirname(data)}/log.go`, '');
    expect(await ended).toMatchObject({ code: 0 });
    expect(await operationsIn(data)).toMatchObject([{ stage: 'closed', effect: 'accepted' }]);
  });
});

test('a server of 2026-07-28 that has ended is started again for a client of sessions', async () => {
  const { args, log } = await setup('modern-server.mjs', 'stdio');
  const call = await legacyClient(args);
  expect(textOf(await call('look', {}))).toBe('looked');
  const pid = Number(/"pid":(\d+)/.exec(log())?.[1]);
  process.kill(pid, 'SIGKILL');
  await until(() => isReaped(pid), 'the gateway to know that its server has ended');
  await untilAsync(async () => {
    try {
      return textOf(await call('look', {})) === 'looked';
    } catch {
      return false;
    }
  }, 'the next server to answer');
  expect(log().match(/"event":"started"/g)).toHaveLength(2);
});

test.each([
  [
    'both a command and an address',
    ['--url', 'http://127.0.0.1:1/mcp', '--', 'node'],
    /only one of them can be meant/,
  ],
  ['an address of another kind', ['--url', 'ftp://x'], /is no http or https address/],
])('%s', async (_name, options, expected) => {
  const ran = await counterfoil(['mcp', '--data', join(cleanUps.folder(), 'data'), ...options]);
  expect(ran).toMatchObject({ code: 2, stdout: '' });
  expect(ran.stderr).toMatch(expected);
});
