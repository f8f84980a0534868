// Every client in front of every server: both generations, both transports, with clients and servers of the SDKs.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import {
  Client as ModernClient,
  StreamableHTTPClientTransport as ModernTransport,
} from '@modelcontextprotocol/client';
import { Client as LegacyClient } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport as LegacyTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import {
  CreateMessageRequestSchema,
  ElicitRequestSchema,
  ListRootsRequestSchema,
  LoggingMessageNotificationSchema,
  ResourceUpdatedNotificationSchema,
  ToolListChangedNotificationSchema,
} from '@modelcontextprotocol/sdk/types.js';
import { afterEach, describe, expect, test } from 'vitest';
import { CleanUps, operationsIn, type ToolResult, textOf, until, untilAsync } from '../processes.ts';
import { startServing } from './serving.ts';

const here = (name: string): string => fileURLToPath(new URL(`fixtures/${name}`, import.meta.url));
const cleanUps = new CleanUps();
afterEach(cleanUps.run);

interface LogEntry {
  readonly event: string;
  readonly [key: string]: unknown;
}

/** The reach of one server, and its log. */
async function startUpstream(file: string, mode: 'stdio' | 'http') {
  const logPath = join(cleanUps.folder(), 'log');
  const log = (): LogEntry[] =>
    existsSync(logPath)
      ? readFileSync(logPath, 'utf8')
          .split('\n')
          .slice(0, -1)
          .map((line) => JSON.parse(line) as LogEntry)
      : [];
  if (mode === 'stdio') return { entry: { command: [process.execPath, here(file), logPath, 'stdio'] }, log };
  const child = spawn(process.execPath, [here(file), logPath, 'http'], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  cleanUps.add(async () => {
    child.kill('SIGKILL');
    await once(child, 'exit');
  });
  const [port] = (await once(child.stdout, 'data')) as [Buffer];
  return { entry: { url: `http://127.0.0.1:${port.toString().trim()}/mcp` }, log };
}

/** What a test needs of a client, whichever SDK it is made with. */
interface TestClient {
  call(name: string, args?: object, onProgress?: (progress: number) => void): Promise<ToolResult>;
  /** Calls, and takes it back once `isWaiting`. */
  cancelled(name: string, isWaiting: () => boolean): Promise<void>;
  request(method: string, params?: object): Promise<Record<string, unknown>>;
  listen(): Promise<void>;
  readonly heard: string[];
  readonly version: string;
}

const CAPABILITIES = { elicitation: { form: {} }, sampling: {}, roots: {} };
const ANSWERS = {
  elicitation: { action: 'accept' as const, content: { name: 'Ada' } },
  sampling: {
    model: 'm',
    role: 'assistant' as const,
    content: { type: 'text' as const, text: 'Lisbon' },
  },
  roots: { roots: [{ uri: 'file:///root', name: 'root' }] },
};
const anything = {
  parse: (value: unknown) => value,
  safeParse: (data: unknown) => ({ success: true, data }),
};

async function legacyClient(url: URL, capabilities: object): Promise<TestClient> {
  const client = new LegacyClient({ name: 'legacy', version: '1' }, { capabilities });
  const heard: string[] = [];
  if ('elicitation' in capabilities) {
    client.setRequestHandler(ElicitRequestSchema, () => ANSWERS.elicitation);
    client.setRequestHandler(CreateMessageRequestSchema, () => ANSWERS.sampling);
    client.setRequestHandler(ListRootsRequestSchema, () => ANSWERS.roots);
  }
  for (const schema of [
    LoggingMessageNotificationSchema,
    ResourceUpdatedNotificationSchema,
    ToolListChangedNotificationSchema,
  ]) {
    client.setNotificationHandler(schema, ({ method }) => void heard.push(method));
  }
  await client.connect(new LegacyTransport(url));
  cleanUps.add(() => client.close());
  return {
    heard,
    version: 'legacy',
    call: (name, args = {}, onProgress) =>
      client.callTool(
        { name, arguments: args as Record<string, unknown> },
        undefined,
        onProgress === undefined ? {} : { onprogress: ({ progress }) => onProgress(progress) },
      ) as Promise<ToolResult>,
    async cancelled(name, isWaiting) {
      const abort = new AbortController();
      const call = client.callTool({ name, arguments: {} }, undefined, { signal: abort.signal });
      const outcome = call.then(() => 'answered', String);
      await until(isWaiting, 'the call to arrive');
      abort.abort();
      expect(await outcome).toMatch(/abort/i);
    },
    request: (method, params = {}) =>
      client.request({ method, params } as never, anything as never) as Promise<Record<string, unknown>>,
    async listen() {
      await client.subscribeResource({ uri: 'test://a' });
    },
  };
}

async function modernClient(url: URL, capabilities: object): Promise<TestClient> {
  const client = new ModernClient(
    { name: 'modern', version: '2' },
    { capabilities, versionNegotiation: { mode: { pin: '2026-07-28' } } },
  );
  const heard: string[] = [];
  if ('elicitation' in capabilities) {
    client.setRequestHandler('elicitation/create', () => ANSWERS.elicitation);
    client.setRequestHandler('sampling/createMessage', () => ANSWERS.sampling);
    client.setRequestHandler('roots/list', () => ANSWERS.roots);
  }
  for (const method of [
    'notifications/message',
    'notifications/resources/updated',
    'notifications/tools/list_changed',
  ] as const) {
    client.setNotificationHandler(method, () => void heard.push(method));
  }
  await client.connect(new ModernTransport(url));
  cleanUps.add(() => client.close());
  const meta = { 'io.modelcontextprotocol/logLevel': 'debug' };
  return {
    heard,
    version: 'modern',
    call: (name, args = {}, onProgress) =>
      client.callTool(
        { name, arguments: args as Record<string, unknown>, ...(name === 'talk' ? { _meta: meta } : {}) },
        onProgress === undefined ? {} : { onprogress: ({ progress }) => onProgress(progress) },
      ) as Promise<ToolResult>,
    async cancelled(name, isWaiting) {
      const abort = new AbortController();
      const call = client.callTool({ name, arguments: {} }, { signal: abort.signal });
      const outcome = call.then(() => 'answered', String);
      await until(isWaiting, 'the call to arrive');
      abort.abort();
      expect(await outcome).toMatch(/abort/i);
    },
    request: (method, params = {}) =>
      client.request({ method, params } as never, anything as never) as Promise<Record<string, unknown>>,
    async listen() {
      await client.listen({ toolsListChanged: true, resourceSubscriptions: ['test://a'] });
    },
  };
}

const SERVERS = [
  ['2025-11-25 over stdio', 'legacy-server.mjs', 'stdio'],
  ['2025-11-25 over HTTP', 'legacy-server.mjs', 'http'],
  ['2026-07-28 over stdio', 'modern-server.mjs', 'stdio'],
  ['2026-07-28 over HTTP', 'modern-server.mjs', 'http'],
] as const;
const CLIENTS = [
  ['2025-11-25', legacyClient],
  ['2026-07-28', modernClient],
] as const;
const PAIRS = CLIENTS.flatMap(([client, connect]) =>
  SERVERS.map(([server, file, mode]) => ({ client, connect, server, file, mode })),
);
const CONFIG = {
  tools: { make: { class: 'ordinary', repeat: 'unique' }, make_asked: { class: 'ordinary' } },
};

describe.each(PAIRS)('[S29] a client of $client, a server of $server', ({ connect, file, mode }) => {
  async function setup(capabilities: object = CAPABILITIES) {
    const { entry, log } = await startUpstream(file, mode);
    const serving = await startServing(cleanUps, { offer: { ...entry, config: CONFIG } });
    const client = await connect(serving.url(), capabilities);
    const made = () => log().filter(({ event }) => event === 'made');
    return { client, log, made, serving };
  }

  test('reads pass: tools, resources page by page, prompts, completion', async () => {
    const { client } = await setup();
    const { tools } = await client.request('tools/list');
    expect((tools as { name: string }[]).map(({ name }) => name)).toContain('counterfoil_operation_status');
    expect(textOf(await client.call('look'))).toBe('looked');
    const first = await client.request('resources/list');
    expect(first).toMatchObject({ resources: [{ uri: 'test://a' }], nextCursor: 'two' });
    expect(await client.request('resources/list', { cursor: 'two' })).toMatchObject({
      resources: [{ uri: 'test://b' }],
    });
    expect(await client.request('resources/read', { uri: 'test://a' })).toMatchObject({
      contents: [{ text: 'content of test://a' }],
    });
    expect(await client.request('prompts/get', { name: 'greet', arguments: { who: 'Al' } })).toMatchObject({
      messages: [{ content: { text: 'Greet Al' } }],
    });
    const ref = { type: 'ref/prompt', name: 'greet' };
    expect(
      await client.request('completion/complete', { ref, argument: { name: 'who', value: 'A' } }),
    ).toMatchObject({ completion: { values: ['Alice'] } });
  });

  test('a write is recorded and sent, its structured content comes, and an equal one is not sent again', async () => {
    const { client, made, serving } = await setup();
    const first = await client.call('make', { title: 'x' });
    expect(textOf(first)).toBe('made x');
    expect(first.structuredContent).toEqual({ title: 'x' });
    const again = await client.call('make', { title: 'x' });
    expect(textOf(again)).toMatch(/^ALREADY_EXISTS — .*made x$/s);
    expect(again.structuredContent).toEqual({ title: 'x' });
    expect(made()).toHaveLength(1);
    const [operation] = await operationsIn(serving.data);
    expect(operation).toMatchObject({ tool: 'make', stage: 'closed', effect: 'accepted' });
  });

  test('progress and log messages come before the answer that they belong to', async () => {
    const { client } = await setup();
    const seen: number[] = [];
    expect(textOf(await client.call('count', {}, (progress) => seen.push(progress)))).toBe('counted');
    await until(() => seen.length === 3, 'three steps of progress');
    expect(seen).toEqual([1, 2, 3]);
    expect(textOf(await client.call('talk'))).toBe('talked');
    await until(() => client.heard.includes('notifications/message'), 'the log message');
  });

  test('what a server asks in the middle of a call its client is asked: elicitation, sampling, roots', async () => {
    const { client } = await setup();
    expect(textOf(await client.call('ask_name'))).toBe('Hello, Ada');
    expect(textOf(await client.call('ask_model'))).toBe('The model says Lisbon');
    expect(textOf(await client.call('ask_roots'))).toBe('file:///root');
  });

  test('a write in whose middle the server asks is one attempt of several legs', async () => {
    const { client, made, serving } = await setup();
    expect(textOf(await client.call('make_asked', { title: 'x' }))).toBe('made x for Ada');
    expect(made()).toHaveLength(1);
    const [operation] = await operationsIn(serving.data);
    expect(operation).toMatchObject({ stage: 'closed', effect: 'accepted', attempts: [{ legs: 2 }] });
  });

  test('a read that is cancelled is cancelled at the server', async () => {
    const { client, log } = await setup();
    await client.cancelled('wait', () => log().some(({ event }) => event === 'waiting'));
    await until(() => log().some(({ event }) => event === 'cancelled'), 'the server to hear of it');
  });

  test('changes of lists and resources are heard', async () => {
    const { client } = await setup();
    await client.listen();
    await untilAsync(async () => {
      await client.call('change');
      return (
        client.heard.includes('notifications/tools/list_changed') &&
        client.heard.includes('notifications/resources/updated')
      );
    }, 'both changes');
  });
});
