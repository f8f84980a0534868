import { spawn } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, readFileSync, statSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { afterEach, describe, expect, test } from 'vitest';
import {
  CleanUps,
  COUNTERFOIL,
  childrenOf,
  counterfoil,
  INITIALIZE,
  isRunning,
  operationOf,
  type ToolResult,
  textOf,
  until,
  untilAsync,
} from '../gateway/processes.ts';
import { CONFIG, type ResidentWorld, residentWorld } from './world.ts';

/** Lets a process believe that it is nine hours later. */
const LATER = new URL('./fixtures/later.mjs', import.meta.url).href;

const cleanUps = new CleanUps();
afterEach(cleanUps.run);

async function sdkClient(world: ResidentWorld) {
  const client = new Client({ name: 'sdk', version: '1' });
  const transport = new StdioClientTransport({
    command: process.execPath,
    args: world.arguments(),
    env: { ...(process.env as Record<string, string>), ...world.env },
    stderr: 'ignore',
  });
  await client.connect(transport);
  cleanUps.add(() => client.close());
  return { client, transport };
}

describe('the first client starts the process that serves all', () => {
  test('clients of the SDK work through it; it keeps one ledger, and one server for each of them', async () => {
    const world = residentWorld(cleanUps);
    const [one, other] = await Promise.all([sdkClient(world), sdkClient(world)]);
    expect((await one.client.listTools()).tools.map(({ name }) => name)).toEqual([
      'note',
      'erase',
      'look',
      'counterfoil_operation_status',
    ]);
    const first = (await one.client.callTool({ name: 'note', arguments: { n: 1 } })) as ToolResult;
    expect(textOf(first)).toBe('did note');
    const again = (await other.client.callTool({ name: 'note', arguments: { n: 1 } })) as ToolResult;
    expect(textOf(again)).toMatch(/^ALREADY_EXISTS — /);
    expect(world.calls()).toHaveLength(1);
    expect(world.residents()).toEqual([world.resident()]);
    expect(world.servers()).toHaveLength(2);
  });

  test('two that come at once start one, also where a killed one has left its socket', async () => {
    const world = residentWorld(cleanUps);
    await Promise.all([world.client(), world.client(), world.client()]);
    const first = world.resident();
    expect(world.residents()).toEqual([first]);
    process.kill(first, 'SIGKILL');
    await world.ended(first);
    expect(existsSync(join(world.data, 'resident', 'socket'))).toBe(true);
    const [one] = await Promise.all([world.client(), world.client(), world.client()]);
    expect(textOf((await one?.call('note', { n: 1 })) ?? {})).toBe('did note');
    expect(world.residents()).toHaveLength(2);
    expect(world.resident()).not.toBe(first);
  });

  test('nobody else may look into its folder, or connect', async () => {
    const world = residentWorld(cleanUps);
    await world.client();
    expect(statSync(join(world.data, 'resident')).mode & 0o777).toBe(0o700);
    expect(statSync(join(world.data, 'resident', 'socket')).mode & 0o777).toBe(0o600);
    expect(statSync(join(world.data, 'resident', 'log')).mode & 0o777).toBe(0o600);
  });

  test('a folder that others may look into is not relied on: the client is served alone, and told why', async () => {
    const world = residentWorld(cleanUps);
    mkdirSync(join(world.data, 'resident'), { recursive: true });
    chmodSync(join(world.data, 'resident'), 0o755);
    const client = await world.client();
    await client.says(/served by a process of its own: other accounts may look into .*resident\./);
    expect(textOf(await client.call('note', { n: 1 }))).toBe('did note');
    expect(world.residents()).toEqual([]);
  });

  test('a data directory with a long name is served as well', async () => {
    const world = residentWorld(cleanUps);
    const data = join(world.folder, 'd'.repeat(120));
    const client = await world.client({ data });
    expect(textOf(await client.call('note', { n: 1 }))).toBe('did note');
    const log = readFileSync(join(data, 'resident', 'log'), 'utf8');
    const pid = Number(/process (\d+) of version/.exec(log)?.[1]);
    expect(isRunning(pid)).toBe(true);
    process.kill(pid, 'SIGKILL');
    await world.ended(pid);
  });

  test('what cannot be meant is told through the pipe, whether or not a resident runs', async () => {
    const world = residentWorld(cleanUps);
    const bad = world.start({ config: 'destination: fixture\ncolour: red\n' });
    expect((await bad.exited).code).toBe(2);
    expect(bad.stderr).toMatch(/colour/);
    expect(existsSync(world.data)).toBe(false);
    await world.client();
    const worse = world.start({ config: 'destination: fixture\ncolour: red\n' });
    expect((await worse.exited).code).toBe(2);
    const [first, second] = [bad, worse].map(({ stderr }) => stderr.replace(/config-\d+/, 'config'));
    expect(second).toBe(first);
  });

  test('a configuration may ask for a process of its own, whether or not a resident runs', async () => {
    const world = residentWorld(cleanUps);
    const own = { config: `${CONFIG}resident: false\n` };
    const first = await world.client(own);
    expect(textOf(await first.call('note', { n: 1 }))).toBe('did note');
    expect(world.residents()).toEqual([]);
    await world.client();
    const second = await world.client(own);
    expect(textOf(await second.call('note', { n: 1 }))).toMatch(/^ALREADY_EXISTS — /);
    expect(second.stderr).not.toMatch(/process of its own/);
    expect(childrenOf(second.pid)).toHaveLength(1);
  });

  test('each server has the environment and the folder of its own client', async () => {
    const world = residentWorld(cleanUps);
    const server = [
      process.execPath,
      '-e',
      `process.stderr.write(process.env.MINE + ' in ' + process.cwd() + '\\n'); process.stdin.resume()`,
    ];
    const start = (name: string) => {
      const cwd = join(world.folder, name);
      mkdirSync(cwd);
      const child = spawn(process.execPath, [COUNTERFOIL, 'mcp', '--data', world.data, '--', ...server], {
        cwd,
        env: { ...process.env, ...world.env, MINE: name },
      });
      let said = '';
      child.stderr.setEncoding('utf8').on('data', (chunk: string) => {
        said += chunk;
      });
      child.stdin.write(
        '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"a","version":"1"}}}\n',
      );
      cleanUps.add(() => void child.kill('SIGKILL'));
      return until(() => /^\w+ in \S+$/m.exec(said)?.[0], 'the server to speak');
    };
    expect(await start('one')).toBe(`one in ${join(world.folder, 'one')}`);
    expect(await start('two')).toBe(`two in ${join(world.folder, 'two')}`);
    const own = readFileSync(`/proc/${world.resident()}/environ`, 'utf8');
    expect(own).not.toMatch(/MINE=/);
  });
});

describe('a client of another version', () => {
  test('is served alone and told so; the resident ends with its last client', async () => {
    const world = residentWorld(cleanUps, { idle: 'PT10M' });
    const client = await world.client();
    const pid = world.resident();
    const { connect } = await import('node:net');
    const socket = connect(join(world.data, 'resident', 'socket'));
    const answer = new Promise<string>((resolve) => socket.setEncoding('utf8').once('data', resolve));
    socket.write('{"version":"0.0.9","session":"s","carries":"talk"}\n');
    expect(JSON.parse(await answer)).toMatchObject({ served: false, alone: true });
    socket.destroy();
    expect(textOf(await client.call('look'))).toBe('did look');
    await client.end();
    await world.ended(pid);
  });

  test('whose resident says no is served by a process of its own', async () => {
    const world = residentWorld(cleanUps);
    mkdirSync(join(world.data, 'resident'), { recursive: true, mode: 0o700 });
    chmodSync(join(world.data, 'resident'), 0o700);
    const other = createServer((socket) => {
      socket.on('error', () => {});
      socket.once('data', () => socket.end('{"served":false,"alone":true,"reason":"it is older"}\n'));
    });
    await new Promise<void>((resolve) => other.listen(join(world.data, 'resident', 'socket'), resolve));
    cleanUps.add(() => void other.close());
    const client = await world.client();
    await client.says('this client is served by a process of its own: it is older.');
    expect(textOf(await client.call('note', { n: 1 }))).toBe('did note');
  });
});

describe('the resident is killed', () => {
  test('with a write out: its clients are cut off, the next one starts another, and the write is not sent again', async () => {
    const world = residentWorld(cleanUps, { plan: { does: 'hold' } });
    const { client } = await sdkClient(world);
    const open = client.callTool({ name: 'note', arguments: { n: 1 } }).then(
      () => 'answered',
      (cause: unknown) => String(cause),
    );
    await world.isOut();
    const pid = world.resident();
    process.kill(pid, 'SIGKILL');
    expect(await open).toMatch(/closed/i);
    world.release();
    const next = await world.client();
    expect(world.resident()).not.toBe(pid);
    const parked = await untilAsync(
      async () => (await world.operations()).find(({ stage }) => stage === 'parked'),
      'the write to be told as unknown',
    );
    const again = await next.call('note', { n: 1 });
    expect(operationOf(again)).toBe(parked.id);
    expect(textOf(again)).toMatch(/^OUTCOME UNKNOWN — /);
    expect(world.calls()).toHaveLength(1);
  });

  test('and so are the pipes told: each ends with a sentence', async () => {
    const world = residentWorld(cleanUps);
    const client = await world.client();
    process.kill(world.resident(), 'SIGKILL');
    expect((await client.exited).code).toBe(1);
    expect(client.stderr).toMatch(/the process that serves the clients of this account has ended/);
  });
});

describe('the client closes its end', () => {
  test('in one breath with its calls, as a script does: each of them is answered all the same', async () => {
    const world = residentWorld(cleanUps);
    const script = world.start();
    const frames = [
      { id: 1, method: 'initialize', params: INITIALIZE },
      { method: 'notifications/initialized' },
      { id: 2, method: 'tools/call', params: { name: 'note', arguments: { n: 1 } } },
      { id: 3, method: 'tools/call', params: { name: 'look', arguments: {} } },
      { id: 4, method: 'tools/call', params: { name: 'erase', arguments: { n: 1 } } },
    ];
    script.write(`${frames.map((frame) => JSON.stringify({ jsonrpc: '2.0', ...frame })).join('\n')}\n`);
    expect(await script.end()).toEqual({ code: 0, signal: null });
    script.expectPure();
    const told = script.lines.flatMap(({ message }) =>
      typeof message?.id === 'number' && message.id > 1 ? [[message.id, textOf(message.result ?? {})]] : [],
    );
    expect(Object.fromEntries(told)).toEqual({
      2: 'did note',
      3: 'did look',
      4: expect.stringMatching(/^NOT SENT YET — waiting for a person/),
    });
    expect(world.residents()).toEqual([world.resident()]);
  });
});

describe('the client is gone while a write is out', () => {
  for (const signal of ['SIGKILL', 'SIGTERM'] as const) {
    test(`by ${signal} of its pipe: the outcome is recorded, and the repeat from a new connection is given it`, async () => {
      const world = residentWorld(cleanUps, { plan: { does: 'hold' } });
      const client = await world.client();
      client.ask('tools/call', { name: 'note', arguments: { n: 1 } });
      await world.isOut();
      client.kill(signal);
      await client.died;
      const next = await world.client();
      const repeat = next.ask('tools/call', { name: 'note', arguments: { n: 1 } });
      world.release();
      expect(textOf((await next.answer(repeat)).message.result ?? {})).toBe('did note');
      expect(textOf(await next.call('note', { n: 1 }))).toMatch(/^ALREADY_EXISTS — /);
      expect(world.calls()).toHaveLength(1);
      expect(await world.operations()).toMatchObject([{ stage: 'closed', effect: 'accepted' }]);
    });
  }

  test('because it gave up after a second: the repeat, from a new connection too, meets the same operation', async () => {
    const world = residentWorld(cleanUps, { plan: { does: 'hold' } });
    const { client } = await sdkClient(world);
    const gaveUp = client.callTool({ name: 'note', arguments: { n: 1 } }, undefined, { timeout: 1_000 });
    await expect(gaveUp).rejects.toThrow(/timed out/i);
    const { client: other } = await sdkClient(world);
    const repeats = [client, other].map((each) => each.callTool({ name: 'note', arguments: { n: 1 } }));
    await untilAsync(async () => (await world.operations()).length === 1, 'the operation');
    world.release();
    const texts = (await Promise.all(repeats)).map((result) => textOf(result as ToolResult));
    expect(texts.toSorted()[0]).toMatch(/^ALREADY_EXISTS — /);
    expect(texts).toContain('did note');
    expect(await world.operations()).toHaveLength(1);
    expect(world.calls()).toHaveLength(1);
  });
});

describe('[S43] the approval comes when the client has gone', { timeout: 60_000 }, () => {
  async function waiting(world: ResidentWorld) {
    const client = await world.client();
    const id = operationOf(await client.call('erase', { n: 1 }));
    await client.end();
    await world.ended(...world.servers());
    const [operation] = await world.operations();
    return { id, digest: operation?.digest ?? '' };
  }

  test('the resident stays for it, sends it, and ends', async () => {
    const world = residentWorld(cleanUps, { idle: 'PT0.2S' });
    const { id, digest } = await waiting(world);
    const pid = world.resident();
    const approved = await world.owner.approve(id, '--digest', digest);
    expect(approved.stdout).toMatch(/It is sent by the running gateway to fixture\./);
    await world.isOut('erase');
    await untilAsync(async () => (await world.operations())[0]?.stage === 'closed', 'the write to be done');
    expect(await world.operations()).toMatchObject([{ id, stage: 'closed', effect: 'accepted' }]);
    await world.ended(pid, ...world.servers());
    expect(world.log()).toMatch(/ends: no client is there, and nothing is open/);
  });

  test('a denial lets it end', async () => {
    const world = residentWorld(cleanUps, { idle: 'PT0.2S' });
    const { id, digest } = await waiting(world);
    const pid = world.resident();
    await counterfoil(['deny', id, '--digest', digest, '--data', world.data]);
    await world.ended(pid);
    expect(world.calls('erase')).toEqual([]);
  });

  test('where no gateway runs any more it is shown as waiting for one, and the next one sends it', async () => {
    const world = residentWorld(cleanUps);
    const { id, digest } = await waiting(world);
    const pid = world.resident();
    process.kill(pid, 'SIGKILL');
    await world.ended(pid);
    const approved = await world.owner.approve(id, '--digest', digest);
    expect(approved.stdout).toMatch(/No gateway to fixture runs now: it waits for one, .* until \d{4}/);
    const shown = await counterfoil(['show', id, '--data', world.data]);
    expect(shown.stdout).toMatch(/Not sent yet\. Waits for a gateway to fixture; none runs now\./);
    const next = await world.client();
    await world.isOut('erase');
    await next.end();
    expect(await world.operations()).toMatchObject([{ id, stage: 'closed', effect: 'accepted' }]);
  });
  test('an approval that has ended meanwhile sends nothing: a person is asked anew', async () => {
    const world = residentWorld(cleanUps);
    const { id, digest } = await waiting(world);
    const pid = world.resident();
    process.kill(pid, 'SIGKILL');
    await world.ended(pid);
    expect((await world.owner.approve(id, '--digest', digest)).code).toBe(0);
    // A gateway whose clock is nine hours on: an approval is valid for eight (D9).
    const world9 = { NODE_OPTIONS: `--import ${LATER}` };
    const next = world.start({ resident: false, env: { ...world.env, ...world9 } });
    await next.initialize();
    const [held] = await untilAsync(async () => {
      const operations = await world.operations();
      return operations[0]?.stage === 'awaiting_approval' ? operations : undefined;
    }, 'the operation to be held');
    expect(held?.review?.because).toEqual({ code: 'approval_expired' });
    await next.end();
    expect(world.calls('erase')).toEqual([]);
  });
});

describe('the resident ends', () => {
  test('some time after its last client, and the next client starts another', async () => {
    const world = residentWorld(cleanUps, { idle: 'PT0.2S' });
    const client = await world.client();
    const pid = world.resident();
    await client.call('note', { n: 1 });
    expect((await client.end()).code).toBe(0);
    await world.ended(pid, ...world.servers());
    expect(existsSync(join(world.data, 'resident', 'socket'))).toBe(false);
    const next = await world.client();
    expect(textOf(await next.call('note', { n: 1 }))).toMatch(/^ALREADY_EXISTS — /);
  });

  test('not while a client is there', async () => {
    const world = residentWorld(cleanUps, { idle: 'PT0.1S' });
    const client = await world.client();
    const pid = world.resident();
    // Ten times its idle time, on its own clock: it looks four times in each.
    await new Promise((resolve) => setTimeout(resolve, 1_000));
    expect(isRunning(pid)).toBe(true);
    expect(textOf(await client.call('look'))).toBe('did look');
  });

  test('on SIGTERM: what is out is followed to its end first, then nothing is left running', async () => {
    const world = residentWorld(cleanUps, { plan: { does: 'hold' } });
    const client = await world.client();
    const open = client.ask('tools/call', { name: 'note', arguments: { n: 1 } });
    await world.isOut();
    const pid = world.resident();
    process.kill(pid, 'SIGTERM');
    await until(() => world.log().includes('ends: it was told to'), 'the signal to be heard');
    expect(isRunning(pid)).toBe(true);
    world.release();
    expect(textOf((await client.answer(open)).message.result ?? {})).toBe('did note');
    await world.ended(pid, ...world.servers());
    expect(await world.operations()).toMatchObject([{ stage: 'closed', effect: 'accepted' }]);
  });

  test('on a second SIGTERM at once: what is out is recorded as unknown', async () => {
    const world = residentWorld(cleanUps, { plan: { does: 'hold' } });
    const client = await world.client();
    client.ask('tools/call', { name: 'note', arguments: { n: 1 } });
    await world.isOut();
    const pid = world.resident();
    process.kill(pid, 'SIGTERM');
    await until(() => world.log().includes('ends: it was told to'), 'the signal to be heard');
    process.kill(pid, 'SIGTERM');
    await world.ended(pid, ...world.servers());
    expect(await world.operations()).toMatchObject([{ stage: 'parked', effect: 'unknown' }]);
  });

  test('when its data directory has been removed and no client is there', async () => {
    const world = residentWorld(cleanUps, { idle: 'PT10M', env: {} });
    const { rmSync } = await import('node:fs');
    const client = await world.client();
    const pid = world.resident();
    rmSync(world.data, { recursive: true });
    await client.end();
    await world.ended(pid);
  });
});

describe('what a pipe costs', () => {
  test('at most 16 MB of memory of its own', async () => {
    const world = residentWorld(cleanUps);
    await world.client();
    const pipe = await world.client();
    const status = readFileSync(`/proc/${pipe.pid}/status`, 'utf8');
    const kib = (name: string): number => Number(new RegExp(`${name}:\\s+(\\d+) kB`).exec(status)?.[1]);
    console.info(`pipe: RSS ${kib('VmRSS')} KiB, of which anonymous ${kib('RssAnon')} KiB`);
    expect(kib('RssAnon')).toBeLessThan(16 * 1024);
  });
});
