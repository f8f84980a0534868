// A tool that the protocol of 2026-07-28 forbids to call over HTTP: no client is shown it, no call of it leaves, and
// whoever runs the gateway is told.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import {
  Client as ModernClient,
  StreamableHTTPClientTransport as ModernTransport,
} from '@modelcontextprotocol/client';
import { afterEach, expect, test } from 'vitest';
import { CleanUps, operationsIn, type ToolResult } from '../processes.ts';
import { sdkClient, startServing } from './serving.ts';

const SERVER = fileURLToPath(new URL('../../destination/fixtures/scripted-http-server.mjs', import.meta.url));
const cleanUps = new CleanUps();
afterEach(cleanUps.run);

async function setup(flags: readonly string[]) {
  const logPath = join(cleanUps.folder(), 'log');
  const child = spawn(process.execPath, [SERVER, logPath, '--odd', ...flags], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  cleanUps.add(async () => {
    child.kill('SIGKILL');
    await once(child, 'exit');
  });
  const [port] = (await once(child.stdout, 'data')) as [Buffer];
  const url = `http://127.0.0.1:${port.toString().trim()}/mcp`;
  const config = { tools: { odd: { class: 'ordinary' }, act: { class: 'ordinary' } } };
  const serving = await startServing(cleanUps, { scripted: { url, config } });
  const called = (): readonly string[] =>
    readFileSync(logPath, 'utf8').match(/"event":"(odd|record)"/g) ?? [];
  return { serving, called };
}

async function modernClient(url: URL) {
  const client = new ModernClient(
    { name: 'test', version: '1' },
    { versionNegotiation: { mode: { pin: '2026-07-28' } } },
  );
  await client.connect(new ModernTransport(url));
  cleanUps.add(() => client.close());
  return client;
}

test.each(['a client of 2025-11-25', 'a client of 2026-07-28'])('%s', async (which) => {
  const { serving, called } = await setup(['--modern']);
  const client =
    which === 'a client of 2026-07-28'
      ? await modernClient(serving.url())
      : (await sdkClient(cleanUps, serving.url())).client;
  const names = (await client.listTools()).tools.map(({ name }) => name);
  expect(names).toContain('act');
  expect(names).not.toContain('odd');
  const refused = (await client.callTool({ name: 'odd', arguments: { a: 1 } })) as ToolResult;
  expect(refused.isError).toBe(true);
  expect(refused.content?.[0]?.text).toMatch(/^NOT SENT — the tool "odd" cannot be called: .*x-mcp-header/);
  expect(called()).toEqual([]);
  expect(await operationsIn(serving.data)).toEqual([]);
  expect(serving.process.stderr.match(/odd is not shown and cannot be called: .*x-mcp-header/g)).toHaveLength(
    1,
  );
  const act = (await client.callTool({
    name: 'act',
    arguments: { fault: 'answer', mark: 'm' },
  })) as ToolResult;
  expect(act.isError).not.toBe(true);
  expect(called()).toEqual(['"event":"record"']);
});

test('a server of sessions may have such a tool: its clients know no such headers', async () => {
  const { serving, called } = await setup([]);
  const { client } = await sdkClient(cleanUps, serving.url());
  expect((await client.listTools()).tools.map(({ name }) => name)).toContain('odd');
  const done = (await client.callTool({ name: 'odd', arguments: { a: 1 } })) as ToolResult;
  expect(done.isError).not.toBe(true);
  expect(called()).toEqual(['"event":"odd"']);
});
