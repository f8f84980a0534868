import { execFileSync } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { memberText } from '../../src/core/json-frame.ts';
import { HELPER_TOOL_NAME, helperToolText } from '../../src/gateway/status-tool.ts';
import {
  CleanUps,
  childrenOf,
  counterfoil,
  FILESYSTEM_SERVER,
  gatewayArguments,
  INITIALIZE,
  LineProcess,
  operationOf,
  operationsIn,
  startGateway,
  textOf,
  untilAsync,
} from './processes.ts';

/** A folder of files, and the unmodified server for it: by itself, and behind a gateway. */
function setup(cleanUps: CleanUps) {
  const folder = cleanUps.folder();
  const files = join(folder, 'files');
  mkdirSync(files);
  const data = join(folder, 'data');
  const server = [process.execPath, FILESYSTEM_SERVER, files];
  return {
    folder,
    files,
    data,
    server,
    path: (name: string): string => join(files, name),
    gateway: (): LineProcess => cleanUps.started(startGateway({ data, server })),
    direct: (): LineProcess => cleanUps.started(new LineProcess(process.execPath, server.slice(1))),
    operations: () => operationsIn(data),
  };
}

/** Files of several kinds that nobody changes; reading them does not change their times either. */
function fill(files: string): void {
  mkdirSync(join(files, 'folder'));
  writeFileSync(join(files, 'plain.txt'), 'one\ntwo\nthree\nfour\n');
  writeFileSync(join(files, 'folder', 'letters.txt'), 'Grüße, 你好, 🙂 \u2028 "quoted" \\ \u0000 end');
  writeFileSync(join(files, 'large.txt'), 'a line of a large file\n'.repeat(50_000));
  writeFileSync(join(files, 'dot.png'), Buffer.from('89504e470d0a1a0a0000000d49484452', 'hex'));
  for (const name of ['plain.txt', 'dot.png', 'large.txt', 'folder/letters.txt', 'folder']) {
    utimesSync(join(files, name), new Date('2026-11-02T00:00:00Z'), new Date('2026-11-01T00:00:00Z'));
  }
}

describe('[S29] what is no write passes as if no gateway were there', () => {
  const cleanUps = new CleanUps();
  const world = setup(cleanUps);
  let direct: LineProcess;
  let gateway: LineProcess;
  beforeAll(async () => {
    fill(world.files);
    direct = world.direct();
    gateway = world.gateway();
  });
  afterAll(async () => {
    gateway.expectPure();
    await cleanUps.run();
  });

  /** Sends both the same line and gives both whole answers. */
  async function both(id: number, line: string) {
    for (const process of [direct, gateway]) process.send(line);
    return { direct: (await direct.answer(id)).text, gateway: (await gateway.answer(id)).text };
  }
  const request = (id: number, method: string, params: object = {}): string =>
    JSON.stringify({ jsonrpc: '2.0', id, method, params });

  test('the answer to initialize is unchanged byte for byte, capabilities and all', async () => {
    const answers = await both(1000, request(1000, 'initialize', INITIALIZE));
    expect(answers.gateway).toBe(answers.direct);
    for (const process of [direct, gateway]) process.notify('notifications/initialized');
  });

  test('each of its tools is listed unchanged byte for byte, and the helper tool comes last', async () => {
    const answers = await both(1001, request(1001, 'tools/list'));
    const [own, shown] = [memberText(answers.direct, 'result'), memberText(answers.gateway, 'result')];
    expect(shown).toContain(`,${helperToolText(HELPER_TOOL_NAME)}]`);
    expect(shown?.replace(`,${helperToolText(HELPER_TOOL_NAME)}`, '')).toBe(own);
  });

  const at = (name: string): string => join(world.files, name);
  const READS: readonly (readonly [string, object])[] = [
    ['read_file', { path: at('plain.txt') }],
    ['read_text_file', { path: at('plain.txt'), head: 2 }],
    ['read_text_file', { path: at('plain.txt'), tail: 1 }],
    ['read_text_file', { path: at('folder/letters.txt') }],
    ['read_text_file', { path: at('large.txt') }],
    ['read_media_file', { path: at('dot.png') }],
    ['read_multiple_files', { paths: [at('plain.txt'), at('missing.txt'), at('folder/letters.txt')] }],
    ['list_directory', { path: world.files }],
    ['list_directory_with_sizes', { path: world.files, sortBy: 'size' }],
    ['directory_tree', { path: world.files }],
    ['search_files', { path: world.files, pattern: '**/*.txt' }],
    ['get_file_info', { path: at('plain.txt') }],
    ['list_allowed_directories', {}],
    // What goes wrong in a read is the server's to say as well.
    ['read_text_file', { path: at('missing.txt') }],
    ['read_text_file', { path: '/etc/hostname' }],
    ['read_text_file', { path: at('plain.txt'), head: 1, tail: 1 }],
    ['read_text_file', {}],
    ['read_text_file', { path: 7 }],
    ['search_files', { path: at('missing'), pattern: '*' }],
  ];
  for (const [index, [tool, args]] of READS.entries()) {
    test(`the answer of ${tool} is unchanged byte for byte (${Object.keys(args).join(', ') || 'no arguments'}, ${index})`, async () => {
      const answers = await both(index, request(index, 'tools/call', { name: tool, arguments: args }));
      expect(answers.gateway).toBe(answers.direct);
    });
  }

  const FRAMES: readonly (readonly [string, string])[] = [
    ['a method that it does not have', '"method":"resources/list","params":{}'],
    ['another one', '"method":"prompts/list"'],
    ['resources/read', '"method":"resources/read","params":{"uri":"file:///a"}'],
    ['completion/complete', '"method":"completion/complete","params":{}'],
    ['ping', '"method":"ping"'],
    ['a method that nobody has', '"method":"no/such/method","params":{"deep":[[[[]]]]}'],
    [
      'a read whose arguments hold a number that is not exact',
      `"method":"tools/call","params":{"name":"read_text_file","arguments":{"path":${JSON.stringify(at('plain.txt'))},"head":2,"note":9007199254740993}}`,
    ],
    [
      'a read with a member of its arguments twice',
      `"method":"tools/call","params":{"name":"read_text_file","arguments":{"path":"/nowhere","path":${JSON.stringify(at('plain.txt'))}}}`,
    ],
    [
      'a read with members of _meta that are not ours, one of them a number that is not exact',
      `"method":"tools/call","params":{"_meta":{"trace":12345678901234567890,"progressToken":7},"name":"read_text_file","arguments":{"path":${JSON.stringify(at('plain.txt'))}}}`,
    ],
    [
      'a read written with escapes',
      `"method":"tools\\/call","params":{"name":"read\\u005ftext_file","arguments":{"path":${JSON.stringify(at('plain.txt'))}}}`,
    ],
    ['a read without arguments', '"method":"tools/call","params":{"name":"list_allowed_directories"}'],
    [
      'a read whose arguments are null',
      '"method":"tools/call","params":{"name":"list_allowed_directories","arguments":null}',
    ],
  ];
  for (const [index, [what, members]] of FRAMES.entries()) {
    test(`the answer to ${what} is unchanged byte for byte`, async () => {
      const id = 500 + index;
      const answers = await both(id, `{"jsonrpc":"2.0","id":${id},${members}}`);
      expect(answers.gateway).toBe(answers.direct);
    });
  }

  test('nothing of all this was recorded', async () => {
    expect(await world.operations()).toEqual([]);
  });
});

describe('a server that asks its client', () => {
  const cleanUps = new CleanUps();
  afterAll(cleanUps.run);

  test('is heard and answered through the gateway as without it', async () => {
    const world = setup(cleanUps);
    const heard: string[] = [];
    for (const process of [world.direct(), world.gateway()]) {
      await process.request('initialize', { ...INITIALIZE, capabilities: { roots: {} } });
      process.notify('notifications/initialized');
      const asked = await untilAsync(
        async () => process.lines.find(({ message }) => message?.method === 'roots/list'),
        'the question for roots',
      );
      heard.push(asked.text);
      const roots = [{ uri: `file://${world.files}`, name: 'files' }];
      process.send(JSON.stringify({ jsonrpc: '2.0', id: asked.message?.id, result: { roots } }));
      const allowed = await process.call('list_allowed_directories');
      expect(textOf(allowed)).toContain(world.files);
    }
    expect(heard[1]).toBe(heard[0]);
  });
});

describe('writes to files', () => {
  const cleanUps = new CleanUps();
  afterEach(cleanUps.run);

  async function connected() {
    const world = setup(cleanUps);
    const gateway = world.gateway();
    await gateway.initialize();
    return { ...world, gateway };
  }

  /** The five mistakes that models make every day, and the call that puts each right. */
  const MISTAKES = [
    {
      mistake: 'the text to be edited is not there',
      tool: 'edit_file',
      wrong: (at: (name: string) => string) => ({
        path: at('a.txt'),
        edits: [{ oldText: 'absent', newText: 'x' }],
      }),
      right: (at: (name: string) => string) => ({
        path: at('a.txt'),
        edits: [{ oldText: 'present', newText: 'changed' }],
      }),
    },
    {
      mistake: 'the path is not allowed',
      tool: 'write_file',
      wrong: () => ({ path: '/etc/counterfoil.txt', content: 'x' }),
      right: (at: (name: string) => string) => ({ path: at('new.txt'), content: 'x' }),
    },
    {
      mistake: 'an argument is missing',
      tool: 'write_file',
      wrong: (at: (name: string) => string) => ({ path: at('new.txt') }),
      right: (at: (name: string) => string) => ({ path: at('new.txt'), content: 'x' }),
    },
    {
      mistake: 'the file is not there',
      tool: 'edit_file',
      wrong: (at: (name: string) => string) => ({
        path: at('b.txt'),
        edits: [{ oldText: 'present', newText: 'changed' }],
      }),
      right: (at: (name: string) => string) => ({
        path: at('a.txt'),
        edits: [{ oldText: 'present', newText: 'changed' }],
      }),
    },
    {
      mistake: 'an argument is of another type',
      tool: 'edit_file',
      wrong: (at: (name: string) => string) => ({ path: at('a.txt'), edits: 'present -> again' }),
      right: (at: (name: string) => string) => ({
        path: at('a.txt'),
        edits: [{ oldText: 'present', newText: 'again' }],
      }),
    },
  ];
  test('[S29] the five ordinary mistakes are answered as without a gateway, nothing is parked, and the corrected call goes through', async () => {
    const { gateway, direct, path, operations, files } = await connected();
    const alone = direct();
    await alone.initialize();
    for (const { mistake, tool, wrong, right } of MISTAKES) {
      writeFileSync(path('a.txt'), 'present\n');
      const params = { name: tool, arguments: wrong(path) };
      const [own, through] = [
        await alone.request('tools/call', params),
        await gateway.request('tools/call', params),
      ];
      expect(memberText(through.text, 'result'), mistake).toBe(memberText(own.text, 'result'));
      expect(through.message.result?.isError, mistake).toBe(true);
      const corrected = await gateway.call(tool, right(path));
      expect(corrected.isError, `${mistake}, corrected: ${textOf(corrected)}`).toBeUndefined();
    }
    const all = await operations();
    expect(all.map(({ stage, effect }) => `${stage} ${effect}`)).toEqual([
      'closed rejected',
      'closed accepted',
      'closed rejected',
      'closed verified',
      'closed rejected',
      // The same write as after the second mistake: it was done before, and the file still holds it.
      'closed rejected',
      'closed accepted',
      'closed rejected',
      'closed accepted',
    ]);
    expect(readdirSync(files).sort()).toEqual(['a.txt', 'new.txt']);
    gateway.expectPure();
  });

  test('write_file is read back, and its first answer is the server’s own, byte for byte', async () => {
    const { gateway, direct, path, data, operations } = await connected();
    const alone = direct();
    await alone.initialize();
    const params = { name: 'write_file', arguments: { path: path('a.txt'), content: 'Grüße\n' } };
    const own = await alone.request('tools/call', params);
    const through = await gateway.request('tools/call', params);
    expect(memberText(through.text, 'result')).toBe(memberText(own.text, 'result'));
    const [operation] = await operations();
    expect(operation).toMatchObject({ stage: 'closed', effect: 'verified', toolClass: 'ordinary' });
    const shown = await counterfoil(['show', '--last', '--data', data]);
    expect(shown.code).toBe(0);
    expect(shown.stdout).toMatch(/Verified at \d\d:\d\d:\d\d/);
    expect(shown.stdout).toContain('We read the changed record back and it matched.');
    expect(shown.stdout).toContain('attempt 1 recorded as started, before anything was sent');
  });

  test('an edit that is only tried out passes as a read', async () => {
    const { gateway, direct, path, operations } = await connected();
    const alone = direct();
    await alone.initialize();
    writeFileSync(path('a.txt'), 'present\n');
    const edits = [{ oldText: 'present', newText: 'changed' }];
    const params = { name: 'edit_file', arguments: { path: path('a.txt'), edits, dryRun: true } };
    const own = await alone.request('tools/call', params);
    const through = await gateway.request('tools/call', params);
    expect(through.text).toBe(own.text);
    expect(readFileSync(path('a.txt'), 'utf8')).toBe('present\n');
    expect(await operations()).toEqual([]);
  });

  test('A, then B, then A again: each is written; A once more is answered with the last', async () => {
    const { gateway, path, operations } = await connected();
    const write = (content: string) => gateway.call('write_file', { path: path('a.txt'), content });
    for (const content of ['A', 'B', 'A']) {
      expect((await write(content)).isError).toBeUndefined();
      expect(readFileSync(path('a.txt'), 'utf8')).toBe(content);
    }
    const modifiedMs = statSync(path('a.txt')).mtimeMs;
    const again = await write('A');
    expect(textOf(again)).toMatch(/^ALREADY_EXISTS — /);
    expect(again.structuredContent).toEqual((await write('A')).structuredContent);
    expect(statSync(path('a.txt')).mtimeMs).toBe(modifiedMs);
    const all = await operations();
    expect(all.map(({ effect }) => effect)).toEqual(['verified', 'verified', 'verified']);
    expect(all[2]?.previous).toEqual({ operation: all[0]?.id, relation: 'occurrence' });
    expect(operationOf(again)).toBe(all[2]?.id);
  });

  test('a file that somebody else has changed or removed since is written again by the equal call', async () => {
    const { gateway, path, operations } = await connected();
    const write = () => gateway.call('write_file', { path: path('a.txt'), content: 'ours' });
    await write();
    writeFileSync(path('a.txt'), 'theirs');
    expect(textOf(await write())).toMatch(/^Successfully wrote/);
    expect(readFileSync(path('a.txt'), 'utf8')).toBe('ours');
    execFileSync('rm', [path('a.txt')]);
    expect(textOf(await write())).toMatch(/^Successfully wrote/);
    expect(readFileSync(path('a.txt'), 'utf8')).toBe('ours');
    expect((await operations()).map(({ effect }) => effect)).toEqual(['verified', 'verified', 'verified']);
  });

  test('of two writes to one file at once the second is told which one it waits for, and is sent after it by itself', async () => {
    const { gateway, path, operations } = await connected();
    await gateway.request('tools/list');
    const [server] = childrenOf(gateway.pid);
    if (server === undefined) throw new Error('The gateway has no child.');
    // The server stands still while it has the first write, as it would on a slow disk.
    process.kill(server, 'SIGSTOP');
    const first = gateway.ask('tools/call', {
      name: 'write_file',
      arguments: { path: path('a.txt'), content: 'first' },
    });
    const holder = await untilAsync(
      async () => (await operations()).find(({ stage }) => stage === 'sending'),
      'the first write to be on its way',
    );
    const told = await gateway.call('write_file', { path: path('a.txt'), content: 'second' });
    expect(told.isError).toBe(true);
    expect(told.structuredContent).toBeUndefined();
    expect(textOf(told)).toContain(`NOT SENT YET — waits for ${holder.id}`);
    process.kill(server, 'SIGCONT');
    expect(textOf((await gateway.answer(first)).message.result ?? {})).toMatch(/^Successfully wrote/);
    const second = await untilAsync(
      async () =>
        (await operations()).find(({ id, stage }) => id === operationOf(told) && stage === 'closed'),
      'the second write to be sent by itself',
    );
    expect(second.effect).toBe('verified');
    expect(readFileSync(path('a.txt'), 'utf8')).toBe('second');
    // Its result was delivered to nobody yet: the first equal call is given it unchanged.
    const given = await gateway.call('write_file', { path: path('a.txt'), content: 'second' });
    expect(textOf(given)).toMatch(/^Successfully wrote/);
    expect(await operations()).toHaveLength(2);
  });

  test('an edit, a write and another edit of one file, one after the other, do not wait for each other', async () => {
    const { gateway, path, operations } = await connected();
    writeFileSync(path('a.txt'), 'one\n');
    const edit = (oldText: string, newText: string) =>
      gateway.call('edit_file', { path: path('a.txt'), edits: [{ oldText, newText }] });
    expect(textOf(await edit('one', 'two'))).toMatch(/^```diff/);
    const written = await gateway.call('write_file', { path: path('a.txt'), content: 'three\n' });
    expect(textOf(written)).toMatch(/^Successfully wrote/);
    expect(textOf(await edit('three', 'four'))).toMatch(/^```diff/);
    expect(textOf(await edit('four', 'three'))).toMatch(/^```diff/);
    expect(textOf(await edit('three', 'four'))).toMatch(/^```diff/);
    expect(readFileSync(path('a.txt'), 'utf8')).toBe('four\n');
    expect(await operations()).toHaveLength(5);
  });

  test('making a directory twice and moving a file are told truthfully', async () => {
    const { gateway, path, files } = await connected();
    expect(textOf(await gateway.call('create_directory', { path: path('d') }))).toMatch(/^Successfully/);
    expect(textOf(await gateway.call('create_directory', { path: path('d') }))).toMatch(/^ALREADY_EXISTS/);
    writeFileSync(path('a.txt'), 'x');
    const move = { source: path('a.txt'), destination: path('d/a.txt') };
    expect(textOf(await gateway.call('move_file', move))).toMatch(/^Successfully moved/);
    expect(textOf(await gateway.call('move_file', move))).toMatch(/^ALREADY_EXISTS/);
    writeFileSync(path('a.txt'), 'y');
    expect(readdirSync(files).sort()).toEqual(['a.txt', 'd']);
  });
});

describe('two gateways of two clients on one data directory', () => {
  const cleanUps = new CleanUps();
  afterAll(cleanUps.run);

  test('work at once: 50 writes each arrive once, and an equal write of both is one operation', async () => {
    const { data, server, path, files, operations } = setup(cleanUps);
    const clients = await Promise.all(
      ['one', 'two'].map(async (name) => {
        const client = new Client({ name, version: '1' });
        const config = 'destination: files\nlimits: {writes_per_hour: 1000}\n';
        const args = gatewayArguments({ data, server, config });
        await client.connect(new StdioClientTransport({ command: process.execPath, args, stderr: 'ignore' }));
        cleanUps.add(() => client.close());
        await client.listTools();
        return { name, client };
      }),
    );
    const answers = await Promise.all(
      clients.flatMap(({ name, client }) => [
        ...Array.from({ length: 50 }, (_, index) =>
          client.callTool({
            name: 'write_file',
            arguments: { path: path(`${name}-${index}.txt`), content: `${name} ${index}` },
          }),
        ),
        client.callTool({ name: 'write_file', arguments: { path: path('shared.txt'), content: 'shared' } }),
      ]),
    );
    const texts = answers.map((answer) => textOf(answer as never));
    const written = texts.filter((text) => text.startsWith('Successfully wrote'));
    const other = texts.filter((text) => !text.startsWith('Successfully wrote'));
    // The client that comes second with the shared write is told of the first.
    expect(written.length, other.join('\n')).toBeGreaterThanOrEqual(101);
    for (const text of other) expect(text).toMatch(/^ALREADY_EXISTS/);
    const names = readdirSync(files);
    expect(names).toHaveLength(101);
    for (const { name } of clients) {
      for (let index = 0; index < 50; index += 1) {
        expect(readFileSync(path(`${name}-${index}.txt`), 'utf8')).toBe(`${name} ${index}`);
      }
    }
    const all = await operations();
    expect(all).toHaveLength(101);
    expect(all.every(({ effect }) => effect === 'verified')).toBe(true);
  });
});
