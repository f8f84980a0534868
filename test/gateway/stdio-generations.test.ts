// Clients of both generations over stdio, in front of servers of both generations over both transports.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Client as ModernClient } from '@modelcontextprotocol/client';
import { StdioClientTransport as ModernTransport } from '@modelcontextprotocol/client/stdio';
import { Client as LegacyClient } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport as LegacyTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import { afterEach, expect, test } from 'vitest';
import {
  CleanUps,
  COUNTERFOIL,
  counterfoil,
  isRunning,
  operationsIn,
  startGateway,
  type ToolResult,
  textOf,
  toolsServer,
  until,
  untilAsync,
} from './processes.ts';

const at = (name: string): string => fileURLToPath(new URL(`http/fixtures/${name}`, import.meta.url));
const cleanUps = new CleanUps();
afterEach(cleanUps.run);

const CAPABILITIES = { elicitation: { form: {} } };
const ACCEPTED = { action: 'accept' as const, content: { name: 'Ada' } };

async function setup(file: string, mode: 'stdio' | 'http') {
  const folder = cleanUps.folder();
  const logPath = join(folder, 'log');
  const data = join(folder, 'data');
  const config = join(folder, 'config.yaml');
  writeFileSync(config, 'destination: offer\ntools: {make_asked: {class: ordinary}}\n');
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

async function modernClient(args: readonly string[]): Promise<Call> {
  const client = new ModernClient(
    { name: 'modern', version: '2' },
    { capabilities: CAPABILITIES, versionNegotiation: { mode: 'auto' } },
  );
  client.setRequestHandler('elicitation/create', () => ACCEPTED);
  await client.connect(new ModernTransport({ command: process.execPath, args: [...args], stderr: 'ignore' }));
  cleanUps.add(() => client.close());
  return (name, given) => client.callTool({ name, arguments: given }) as Promise<ToolResult>;
}

test.each([
  ['2025-11-25', 'legacy-server.mjs', 'stdio', legacyClient],
  ['2025-11-25', 'legacy-server.mjs', 'http', legacyClient],
  ['2025-11-25', 'modern-server.mjs', 'stdio', legacyClient],
  ['2025-11-25', 'modern-server.mjs', 'http', legacyClient],
  ['2026-07-28', 'modern-server.mjs', 'stdio', modernClient],
  ['2026-07-28', 'modern-server.mjs', 'http', modernClient],
  // It goes on with the handshake that the server knows.
  ['both generations', 'legacy-server.mjs', 'stdio', modernClient],
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

test('a server of 2026-07-28 that has ended is started again for a client of sessions', async () => {
  const { args, log } = await setup('modern-server.mjs', 'stdio');
  const call = await legacyClient(args);
  expect(textOf(await call('look', {}))).toBe('looked');
  const pid = Number(/"pid":(\d+)/.exec(log())?.[1]);
  process.kill(pid, 'SIGKILL');
  await until(() => !isRunning(pid), 'the server to be gone');
  await untilAsync(async () => {
    try {
      return textOf(await call('look', {})) === 'looked';
    } catch {
      return false;
    }
  }, 'the next server to answer');
  expect(log().match(/"event":"started"/g)).toHaveLength(2);
});

test('a write that is to be run as a task is not sent, and told so; a read passes with it', async () => {
  const folder = cleanUps.folder();
  const annotations = { readOnlyHint: true };
  const tools = ['look', 'make'].map((name) => ({ name, inputSchema: { type: 'object' } }));
  writeFileSync(join(folder, 'tools.json'), JSON.stringify([{ ...tools[0], annotations }, tools[1]]));
  const config = 'destination: tools\ntools: {make: {class: ordinary}}\n';
  const data = join(folder, 'data');
  const gateway = cleanUps.started(startGateway({ data, server: toolsServer(folder), config }));
  await gateway.initialize();
  const params = { name: 'make', arguments: {}, task: { ttl: 1000 } };
  const { message } = await gateway.request('tools/call', params);
  expect(textOf(message.result ?? {})).toMatch(/^NOT SENT — a write is not run as a task here/);
  const read = await gateway.request('tools/call', { ...params, name: 'look' });
  expect(textOf(read.message.result ?? {})).toBe('did look');
  expect(await operationsIn(data)).toEqual([]);
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
