// A client of the SDK gives up in the middle of a write: the repeat finds the operation that is there.
//
// The SDK gives up after 60 s unless it is told otherwise. `npm test` tells it otherwise, so that nobody waits a minute
// for what is the same path; `npm run patience` tells it nothing.

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  Client as NewerClient,
  StreamableHTTPClientTransport as NewerHttp,
} from '@modelcontextprotocol/client';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { afterAll, describe, expect, test } from 'vitest';
import { startServing } from './http/serving.ts';
import {
  CleanUps,
  callsOf,
  gatewayArguments,
  operationsIn,
  type ToolResult,
  textOf,
  toolsServer,
  until,
} from './processes.ts';

const isTrue = process.env['COUNTERFOIL_PATIENCE'] === 'sdk';
const SDK_MS = 60_000;
const LOWERED_MS = 1_000;
const patienceMs = isTrue ? SDK_MS : LOWERED_MS;
const OPTIONS = isTrue ? {} : { timeout: LOWERED_MS };
const AFTER = isTrue ? 'after the 60 s of the SDK' : 'after 1 s, in place of the 60 s of the SDK,';

/** All of them wait at once. */
const cleanUps = new CleanUps();
afterAll(cleanUps.run);

/** An answer is waited for two minutes, as nobody says otherwise: longer than the client waits. */
const CONFIG = { tools: { note: { class: 'ordinary', repeat: 'unique' } } };

interface Caller {
  call(options?: { readonly timeout?: number }): Promise<ToolResult>;
}

function setup() {
  const folder = cleanUps.folder();
  const data = join(folder, 'data');
  writeFileSync(join(folder, 'tools.json'), '[{"name":"note","inputSchema":{"type":"object"}}]');
  writeFileSync(join(folder, 'plan.json'), '{"note":{"does":"hold"}}');
  return {
    folder,
    data,
    server: toolsServer(folder),
    calls: () => callsOf(folder, 'note'),
    isOut: () => until(() => callsOf(folder, 'note').length === 1, 'the write to be out'),
    release: () => writeFileSync(join(folder, 'release'), ''),
    operations: () => operationsIn(data),
  };
}

type World = ReturnType<typeof setup>;

const NOTE = { name: 'note', arguments: { n: 1 } };
const WHO = { name: 'patience', version: '1' };

/** A process of its own for each. */
async function overStdio(world: World, config: object = CONFIG): Promise<Caller> {
  const client = new Client(WHO);
  const text = JSON.stringify({ destination: 'fixture', ...config });
  const args = gatewayArguments({ data: world.data, server: world.server, config: text });
  await client.connect(new StdioClientTransport({ command: process.execPath, args, stderr: 'ignore' }));
  cleanUps.add(() => client.close());
  return { call: async (options) => (await client.callTool(NOTE, undefined, options)) as ToolResult };
}

async function overHttp(url: URL): Promise<Caller> {
  const client = new Client(WHO);
  await client.connect(new StreamableHTTPClientTransport(url));
  cleanUps.add(() => client.close());
  return { call: async (options) => (await client.callTool(NOTE, undefined, options)) as ToolResult };
}

/** Of protocol 2026-07-28. */
async function newerOverHttp(url: URL): Promise<Caller> {
  const client = new NewerClient(WHO, { versionNegotiation: { mode: 'auto' } });
  await client.connect(new NewerHttp(url));
  cleanUps.add(() => client.close());
  return { call: async (options) => (await client.callTool(NOTE, options)) as ToolResult };
}

/** The first call, until the client gives it up. */
async function givesUp(caller: Caller, world: World): Promise<void> {
  const beganMs = performance.now();
  const call = caller.call(OPTIONS).then(
    (result) => `answered: ${textOf(result)}`,
    (cause: unknown) => String(cause),
  );
  await world.isOut();
  expect(await call).toMatch(/timed out/i);
  // The clocks of timers are coarse.
  expect(performance.now() - beganMs).toBeGreaterThan(patienceMs - 50);
  expect(await world.operations()).toMatchObject([{ stage: 'sending', effect: 'unknown' }]);
}

/** The same write again, by some, while the first is out; then it is answered. */
async function findsIt(world: World, callers: readonly Caller[]): Promise<void> {
  const [first] = await world.operations();
  const waiting = callers.map((caller) => caller.call(OPTIONS));
  world.release();
  for (const answer of await Promise.all(waiting)) {
    expect(textOf(answer)).toMatch(/^(did note|ALREADY_EXISTS — )/);
  }
  for (const caller of callers) {
    const again = await caller.call(OPTIONS);
    expect(textOf(again)).toMatch(/^ALREADY_EXISTS — /);
    expect(again._meta?.['counterfoil/operation']?.operation).toBe(first?.id);
  }
  expect(await world.operations()).toMatchObject([{ id: first?.id, stage: 'closed', effect: 'accepted' }]);
  expect(world.calls()).toHaveLength(1);
}

describe.concurrent('a client gives up while its write is out', { timeout: 150_000 }, () => {
  test(`[S17] ${AFTER} over stdio: the repeat, also of a new connection, is answered with the same operation`, async () => {
    const world = setup();
    const client = await overStdio(world);
    await givesUp(client, world);
    await findsIt(world, [client, await overStdio(world)]);
  });

  test(`[S17] ${AFTER} over HTTP: the repeat, also of a new connection and of the newer protocol, is the same operation`, async () => {
    const world = setup();
    const { url } = await startServing(
      cleanUps,
      { fixture: { command: world.server, config: CONFIG } },
      { data: world.data },
    );
    const client = await overHttp(url());
    await givesUp(client, world);
    await findsIt(world, [client, await overHttp(url()), await newerOverHttp(url())]);
  });

  test(`[S17] ${AFTER} in the newer protocol, which takes the call back: what was out settles, and the repeat is given it`, async () => {
    const world = setup();
    const { url } = await startServing(
      cleanUps,
      { fixture: { command: world.server, config: CONFIG } },
      { data: world.data },
    );
    const client = await newerOverHttp(url());
    await givesUp(client, world);
    await findsIt(world, [client, await overHttp(url())]);
  });

  const limits = isTrue ? {} : { limits: { caller_wait: 'PT1S' } };
  const told = isTrue ? '25 s' : '1 s, in place of 25 s';
  test(`[S17] ${AFTER} over stdio: a repeat while it is still out is told so after ${told}, within its own patience`, async () => {
    const world = setup();
    const client = await overStdio(world, { ...CONFIG, ...limits });
    await givesUp(client, world);
    const again = await client.call();
    expect(textOf(again)).toMatch(/^SENT, NO ANSWER YET/);
    expect(world.calls()).toHaveLength(1);
    await findsIt(world, [client, await overStdio(world, { ...CONFIG, ...limits })]);
  });
});
