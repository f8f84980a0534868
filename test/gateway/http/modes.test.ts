// Modes, pinned tools and configurations that wait, for clients over HTTP of either generation.

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  Client as ModernClient,
  StreamableHTTPClientTransport as ModernTransport,
} from '@modelcontextprotocol/client';
import { afterEach, describe, expect, test } from 'vitest';
import {
  CleanUps,
  callsOf,
  counterfoil,
  operationOf,
  operationsIn,
  type ToolResult,
  textOf,
  toolsServer,
} from '../processes.ts';
import { sdkClient, startServing } from './serving.ts';

/** Each of them starts several processes; on a busy machine they take their time. */
const PATIENT = { timeout: 90_000 };

const cleanUps = new CleanUps();
afterEach(cleanUps.run);

const TOOLS = [
  { name: 'look', inputSchema: { type: 'object' }, annotations: { readOnlyHint: true } },
  { name: 'make', inputSchema: { type: 'object' } },
  { name: 'wipe', inputSchema: { type: 'object' } },
];
const CLASSES = { make: { class: 'ordinary', repeat: 'unique' }, wipe: { class: 'irreversible' } };

interface Caller {
  call(name: string, args?: Record<string, unknown>): Promise<ToolResult>;
  names(): Promise<readonly string[]>;
}

async function legacy(url: URL): Promise<Caller> {
  const { client } = await sdkClient(cleanUps, url);
  return {
    call: async (name, args = {}) => (await client.callTool({ name, arguments: args })) as ToolResult,
    names: async () => (await client.listTools()).tools.map((tool) => tool.name),
  };
}

async function modern(url: URL): Promise<Caller> {
  const client = new ModernClient(
    { name: 'test', version: '1' },
    { versionNegotiation: { mode: { pin: '2026-07-28' } } },
  );
  await client.connect(new ModernTransport(url));
  cleanUps.add(() => client.close());
  return {
    call: async (name, args = {}) => (await client.callTool({ name, arguments: args })) as ToolResult,
    names: async () => (await client.listTools()).tools.map((tool) => tool.name),
  };
}

function world() {
  const folder = cleanUps.folder();
  const list = (tools: readonly object[]): void =>
    writeFileSync(join(folder, 'tools.json'), JSON.stringify(tools));
  list(TOOLS);
  writeFileSync(join(folder, 'plan.json'), '{}');
  return { command: toolsServer(folder), list, calls: (tool: string) => callsOf(folder, tool) };
}

describe.each([
  ['2025-11-25', legacy],
  ['2026-07-28', modern],
])('a client of %s', PATIENT, (_, connect) => {
  test('each server has a mode of its own', async () => {
    const [watched, guarded, strict] = [world(), world(), world()];
    const serving = await startServing(cleanUps, {
      watched: { command: watched.command, config: { mode: 'observe', tools: CLASSES } },
      guarded: { command: guarded.command, config: { tools: CLASSES } },
      strict: { command: strict.command, config: { mode: 'strict', tools: CLASSES } },
    });
    expect(serving.process.stderr).toMatch(
      /watched is served at \S+ \(observe: nothing is guarded, each call is sent as it comes\)/,
    );
    expect(serving.process.stderr).toMatch(
      /strict is served at \S+ \(strict: every write waits for a person\)/,
    );

    const one = await connect(serving.url('/mcp/watched'));
    expect(await one.names()).toEqual(TOOLS.map(({ name }) => name));
    for (let count = 0; count < 2; count += 1) expect(textOf(await one.call('make'))).toBe('did make');
    expect(textOf(await one.call('wipe'))).toBe('did wipe');
    expect([watched.calls('make').length, watched.calls('wipe').length]).toEqual([2, 1]);

    const two = await connect(serving.url('/mcp/guarded'));
    expect(await two.names()).toContain('counterfoil_operation_status');
    expect(textOf(await two.call('make'))).toBe('did make');
    expect(textOf(await two.call('wipe'))).toMatch(/^NOT SENT YET — waiting for a person/);

    const three = await connect(serving.url('/mcp/strict'));
    expect(textOf(await three.call('look'))).toBe('did look');
    expect(textOf(await three.call('make'))).toMatch(/^NOT SENT YET — waiting for a person/);
    expect(strict.calls('make')).toHaveLength(0);

    const all = await operationsIn(serving.data);
    expect(
      all.map(({ destination, observed, review }) => [destination, observed?.guard ?? review?.question]),
    ).toEqual([
      ['watched', 'send'],
      ['watched', 'answer'],
      ['watched', 'ask'],
      ['guarded', undefined],
      ['guarded', 'irreversible'],
      ['strict', 'strict'],
    ]);
    // The floor holds for what came over HTTP as well.
    const wiped = all.find(({ destination, tool }) => destination === 'guarded' && tool === 'wipe');
    const alone = await counterfoil([
      'approve',
      wiped?.id ?? '',
      '--digest',
      wiped?.digest ?? '',
      '--data',
      serving.data,
    ]);
    expect(alone.code).toBe(4);
    expect(guarded.calls('wipe')).toHaveLength(0);
  });

  test('a tool that has changed since it was first seen asks again; the others go on', async () => {
    const [one, two] = [world(), world()];
    const servers = {
      one: { command: one.command, config: { tools: CLASSES } },
      two: { command: two.command, config: { tools: CLASSES } },
    };
    const first = await startServing(cleanUps, servers);
    for (const name of ['one', 'two']) {
      const caller = await connect(first.url(`/mcp/${name}`));
      expect(textOf(await caller.call('make', { n: 1 }))).toBe('did make');
    }
    first.process.kill('SIGTERM');
    await first.process.exited;
    const changed = { type: 'object', properties: { everywhere: { type: 'boolean' } } };
    two.list(TOOLS.map((tool) => (tool.name === 'make' ? { ...tool, inputSchema: changed } : tool)));
    const second = await startServing(cleanUps, servers, { data: first.data });
    const asked = await (await connect(second.url('/mcp/two'))).call('make', { n: 2 });
    expect(textOf(asked)).toMatch(/^NOT SENT YET — waiting for a person/);
    const unchanged = await connect(second.url('/mcp/one'));
    expect(textOf(await unchanged.call('make', { n: 2 }))).toBe('did make');
    const id = operationOf(asked);
    expect((await operationsIn(first.data)).find((operation) => operation.id === id)).toMatchObject({
      review: { question: 'tool_changed' },
      classBefore: 'ordinary',
    });
    const queue = await counterfoil(['queue', '--data', first.data]);
    expect(queue.stdout).toContain('inputSchema/properties: not there → {"everywhere":{"type":"boolean"}}');
    expect(second.process.stderr).toContain('make is not the tool that the configuration was written for');
  });
});

test(
  'what loosens one server waits, and so does leaving its configuration out; the others are as they were',
  PATIENT,
  async () => {
    const [one, two] = [world(), world()];
    const first = await startServing(cleanUps, {
      one: { command: one.command, config: { tools: CLASSES } },
      two: { command: two.command, config: { tools: CLASSES } },
    });
    first.process.kill('SIGTERM');
    await first.process.exited;
    const second = await startServing(
      cleanUps,
      {
        one: { command: one.command, config: { mode: 'observe', tools: CLASSES } },
        two: { command: two.command },
      },
      { data: first.data },
    );
    expect(second.process.stderr).toContain('not in force: The mode is observe, and was guard.');
    expect(second.process.stderr).toContain('not in force: wipe is unclassified, and was irreversible.');
    expect(second.process.stderr).toMatch(
      /to start without the configuration loosens the one before it, .* counterfoil policy confirm two --digest [0-9a-f]{12}/,
    );
    for (const name of ['one', 'two']) {
      const caller = await legacy(second.url(`/mcp/${name}`));
      expect(textOf(await caller.call('make'))).toBe('did make');
      expect(textOf(await caller.call('wipe'))).toMatch(/^NOT SENT YET — waiting for a person/);
    }
    expect([one.calls('wipe').length, two.calls('wipe').length]).toEqual([0, 0]);
  },
);
