// The table of bad input: for each case one clear sentence, the exit code, nothing on stdout but JSON-RPC, and
// nothing lost that was recorded.

import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import {
  CleanUps,
  COUNTERFOIL,
  callsOf,
  counterfoil,
  gatewayArguments,
  LineProcess,
  logOf,
  operationOf,
  operationsIn,
  startGateway,
  textOf,
  toolsServer,
  until,
  untilAsync,
} from '../gateway/processes.ts';

/** Nobody's account, which may write nothing that root has not given it. */
const NOBODY = 65_534;
/** Whether commands can be run by it here: only root can, and only from a checkout that it may read. */
const canBeNobody = process.getuid?.() === 0 && isReadableByAll(COUNTERFOIL);

function isReadableByAll(path: string): boolean {
  const stat = statSync(path);
  const above = dirname(path);
  return (stat.mode & (stat.isDirectory() ? 0o1 : 0o4)) !== 0 && (above === path || isReadableByAll(above));
}

const TOOLS = [
  { name: 'look', inputSchema: { type: 'object' }, annotations: { readOnlyHint: true } },
  {
    name: 'note',
    inputSchema: { type: 'object', properties: { text: { type: 'string' } }, required: ['text'] },
  },
  { name: 'pay', inputSchema: { type: 'object' } },
];
const CONFIG = `
destination: fixture
tools:
  note: {class: ordinary, repeat: free}
  pay: {class: ordinary, repeat: unique}
`;

function setup(cleanUps: CleanUps, plan: object = {}) {
  const folder = cleanUps.folder();
  const data = join(folder, 'data');
  writeFileSync(join(folder, 'tools.json'), JSON.stringify(TOOLS));
  writeFileSync(join(folder, 'plan.json'), JSON.stringify(plan));
  return {
    folder,
    data,
    gateway: (
      options: { readonly flags?: readonly string[]; readonly config?: string; readonly uid?: number } = {},
    ) =>
      cleanUps.started(
        startGateway({
          data,
          server: toolsServer(folder, ...(options.flags ?? [])),
          config: options.config ?? CONFIG,
          ...(options.uid === undefined ? {} : { uid: options.uid }),
        }),
      ),
    calls: (tool: string) => callsOf(folder, tool),
    operations: () => operationsIn(data),
    release: () => writeFileSync(join(folder, 'release'), ''),
  };
}

// ── The command line ─────────────────────────────────────────────────────────────────────────────────────────

describe('a command that is called wrongly says what is wrong in one sentence and ends with its code', () => {
  const cleanUps = new CleanUps();
  const folder = cleanUps.folder();
  const empty = join(folder, 'empty');
  mkdirSync(empty);
  writeFileSync(join(folder, 'file'), '');
  afterAll(cleanUps.run);
  const NO_LEDGER = /^counterfoil: There is no ledger in .*empty: no write has been recorded there\./;

  const CASES: readonly (readonly [string, readonly string[], number, RegExp])[] = [
    ['an unknown command', ['undo'], 2, /^error: unknown command 'undo'$/m],
    ['an unknown flag', ['show', '--all', '--data', empty], 2, /^error: unknown option '--all'$/m],
    [
      'an unknown flag of mcp',
      ['mcp', '--mode', 'observe', '--', 'node'],
      2,
      /^error: unknown option '--mode'$/m,
    ],
    ['a flag without its value', ['show', '--last', '--data'], 2, /argument missing/],
    ['a flag twice', ['show', '--last', '--data', empty, '--data', folder], 2, /--data.*given twice/],
    ['an empty data directory', ['show', '--last', '--data', ''], 2, /--data.*empty/],
    ['mcp without a server', ['mcp', '--data', empty], 2, /missing required argument 'command'/],
    [
      'a server whose own flags do not come after --',
      ['mcp', 'npx', '-y', 'some-server'],
      2,
      /unknown option '-y'[^]*come after --: counterfoil mcp -- COMMAND ARGS/,
    ],
    ['an empty run', ['mcp', '--run', '', '--data', empty, '--', 'node'], 2, /--run.*is empty/],
    [
      'a run with a line feed in it',
      ['mcp', '--run', 'a\nb', '--data', empty, '--', 'node'],
      2,
      /^counterfoil: --run "a\\nb" is not a name of 1 to 256 characters/,
    ],
    [
      'show without an operation',
      ['show', '--data', empty],
      2,
      /^counterfoil: Name the operation to show \(op_…\), or say --last for the newest\.$/m,
    ],
    [
      'show with both',
      ['show', 'op_1', '--last', '--data', empty],
      2,
      /^counterfoil: Both op_1 and --last were given: name one of them\.$/m,
    ],
    ['show of two', ['show', 'op_1', 'op_2', '--data', empty], 2, /too many arguments/],
    ['show where no ledger is', ['show', '--last', '--data', empty], 3, NO_LEDGER],
    [
      'show in a file',
      ['show', '--last', '--data', join(folder, 'file')],
      3,
      /There is no ledger in .*file: no write has been recorded there/,
    ],
    ['queue where no ledger is', ['queue', '--data', empty], 3, NO_LEDGER],
    ['policy show where no ledger is', ['policy', 'show', '--data', empty], 3, NO_LEDGER],
    [
      'approve without a digest',
      ['approve', 'op_1', '--data', empty],
      2,
      /^counterfoil: --digest is missing: the digest that was shown, or at least its first 12 digits\.$/m,
    ],
    [
      'approve with a digest that is none',
      ['approve', 'op_1', '--digest', 'latest', '--data', empty],
      2,
      /--digest wants at least the first 12 digits of the digest that was shown \(0-9, a-f\), and was given "latest"\./,
    ],
    [
      'approve with too little of a digest',
      ['approve', 'op_1', '--digest', 'abc123', '--data', empty],
      2,
      /at least the first 12 digits/,
    ],
    [
      'deny with a digest in capitals',
      ['deny', 'op_1', '--digest', 'ABCDEF012345', '--data', empty],
      2,
      /0-9, a-f/,
    ],
    [
      'approve by nobody',
      ['approve', 'op_1', '--digest', 'abcdef012345', '--by', ' ', '--data', empty],
      2,
      /--by.*is empty/,
    ],
    [
      'a class that is none',
      ['approve', 'op_1', '--digest', 'abcdef012345', '--class', 'harmless', '--data', empty],
      2,
      /Allowed choices are read, ordinary, irreversible, interactive/,
    ],
    [
      'a drill at a point that is none',
      ['mcp', '--data', empty, '--', 'node'],
      2,
      /COUNTERFOIL_DRILL_CRASH_AT names no stopping point: lunch/,
    ],
  ];
  for (const [what, args, code, sentence] of CASES) {
    test(what, async () => {
      const env = what.startsWith('a drill') ? { COUNTERFOIL_DRILL_CRASH_AT: 'lunch' } : {};
      const ran = await counterfoil(args, { env });
      expect(ran.stderr).toMatch(sentence);
      expect(ran.stderr).not.toMatch(/^\s+at /m);
      expect(ran.stdout).toBe('');
      expect(ran.code).toBe(code);
      expect(readdirSync(empty)).toEqual([]);
    });
  }

  test('a name that would write to the terminal is shown as escapes', async () => {
    const ran = await counterfoil(['show', 'op_\u001b[2J', '--last', '--data', empty]);
    expect(ran.stderr).toContain('op_\\u{1b}[2J');
    expect(ran.stderr).not.toContain('\u001b');
  });
});

// ── Configuration ────────────────────────────────────────────────────────────────────────────────────────────

describe('a configuration that cannot be meant starts nothing', () => {
  const cleanUps = new CleanUps();
  const folder = cleanUps.folder();
  const file = join(folder, 'gateway.yaml');
  mkdirSync(join(folder, 'directory'));
  const started = join(folder, 'started');
  afterAll(cleanUps.run);

  const CASES: readonly (readonly [string, string, readonly string[], RegExp])[] = [
    ['an unknown key', 'destination: d\nmodus: observe\n', [], /gateway\.yaml:2:1: .*modus/],
    ['a mode that is none', 'destination: d\nmode: watch\n', [], /gateway\.yaml:2:7: .*observe, guard/],
    [
      'an unknown key of a tool',
      'destination: d\ntools:\n  t: {class: ordinary, approve: never}\n',
      [],
      /gateway\.yaml:3:.*approve/,
    ],
    [
      'a class that is none',
      'destination: d\ntools:\n  t: {class: harmless}\n',
      [],
      /read, ordinary, irreversible/,
    ],
    ['no destination', 'run: r\n', [], /destination/],
    ['nothing at all', '', [], /gateway\.yaml/],
    ['text that is no YAML', 'destination: [d\n', [], /gateway\.yaml:\d+:\d+: /],
    ['a key twice', 'destination: d\ndestination: e\n', [], /gateway\.yaml:2:1: .*keys must be unique/],
    [
      'a read with a repeat class',
      'destination: d\ntools:\n  t: {class: read, repeat: unique}\n',
      [],
      /t is declared a read, and repeat is given for it, which only a write has\./,
    ],
    [
      'bounds that contradict each other',
      'destination: d\nlimits: {elapsed: PT10S, reply_timeout: PT30S}\n',
      [],
      /limits\.elapsed is PT10S, which is shorter than the PT30S/,
    ],
    [
      'a bound of no time',
      'destination: d\nlimits: {approval_lifetime: PT1S}\n',
      [],
      /limits\.approval_lifetime is PT1S; at least PT1M is allowed\./,
    ],
    [
      'a contract that is not there',
      'destination: d\ncontracts: [missing.yaml]\n',
      [],
      /The file missing\.yaml cannot be read: there is no such file\./,
    ],
    [
      'an operation of no contract',
      'destination: d\ntools:\n  t: {contract_operation: a/b}\n',
      [],
      /t is declared to be/,
    ],
    [
      'two runs',
      'destination: d\nrun: monday\n',
      ['--run', 'tuesday'],
      /Two runs are named: --run tuesday, and run: monday in /,
    ],
    [
      'two destinations',
      'destination: d\n',
      ['--name', 'e'],
      /Two destinations are named: --name e, and destination: d in /,
    ],
    [
      'a name that is none',
      'destination: d\n',
      ['--name', 'my notes'],
      /--name "my notes" is not a stable name of/,
    ],
  ];
  for (const [what, text, more, sentence] of CASES) {
    test(what, async () => {
      writeFileSync(file, text);
      const ran = await refused(file, more);
      expect(ran.stderr).toMatch(sentence);
    });
  }
  test('a configuration that is not there', async () => {
    const ran = await refused(join(folder, 'missing.yaml'));
    expect(ran.stderr).toMatch(/The configuration .*missing\.yaml cannot be read: there is no such file\./);
  });
  test('a configuration that is a directory', async () => {
    const ran = await refused(join(folder, 'directory'));
    expect(ran.stderr).toMatch(/The configuration .*directory cannot be read: it is a directory\./);
  });

  async function refused(config: string, more: readonly string[] = []) {
    const data = join(folder, 'data');
    const server = ['node', '-e', `require("fs").writeFileSync(${JSON.stringify(started)},"")`];
    const ran = await counterfoil(['mcp', '--config', config, '--data', data, ...more, '--', ...server]);
    expect(ran.code, ran.stderr).toBe(2);
    expect(ran.stdout).toBe('');
    expect(ran.stderr).not.toMatch(/^\s+at /m);
    expect(existsSync(started)).toBe(false);
    expect(existsSync(data)).toBe(false);
    return ran;
  }
});

// ── Servers that are not right ───────────────────────────────────────────────────────────────────────────────

describe('a server that is not right', () => {
  const cleanUps = new CleanUps();
  afterEach(cleanUps.run);
  const HELLO = {
    protocolVersion: '2025-11-25',
    capabilities: {},
    clientInfo: { name: 'test', version: '1' },
  };

  test('one that does not exist: the client is told in its own protocol, and the gateway ends with it', async () => {
    const { data } = setup(cleanUps);
    const gateway = cleanUps.started(startGateway({ data, server: ['/nonexistent/server'] }));
    const { message } = await gateway.request('initialize', HELLO);
    expect(message.error?.message).toMatch(
      /^The MCP server behind this gateway cannot be reached: the MCP server could not be started: .*ENOENT\. The request was not passed on\.$/,
    );
    const write = await gateway.call('note', { text: 'x' });
    expect(textOf(write)).toMatch(
      /^NOT SENT — the tools of nonexistent-\w+ are not known yet: "the MCP server could not be started: .*ENOENT"\. Nothing was recorded\./,
    );
    expect(await gateway.end()).toEqual({ code: 0, signal: null });
    gateway.expectPure();
  });

  test('one that ends at once', async () => {
    const { gateway: start } = setup(cleanUps);
    const gateway = start({ flags: ['exit'] });
    const { message } = await gateway.request('initialize', HELLO);
    expect(message.error?.message).toMatch(
      /ended before it answered: the MCP server ended with exit code 3\.|cannot be reached: .*exit code 3\./,
    );
    expect(await gateway.end()).toEqual({ code: 0, signal: null });
    gateway.expectPure();
  });

  test('one that prints lines which are no messages: they are dropped, told once, and made harmless', async () => {
    const { gateway: start, calls } = setup(cleanUps);
    const gateway = start({ flags: ['babble'] });
    await gateway.initialize();
    expect(textOf(await gateway.call('note', { text: 'x' }))).toBe('did note');
    await gateway.end();
    gateway.expectPure();
    expect(gateway.stderr).toContain(
      'The server printed a line that is not JSON-RPC, which was dropped: Welcome!\\u{1b}[2J',
    );
    expect(gateway.stderr).not.toContain('\u001b');
    expect(calls('note')).toHaveLength(1);
  });

  test('one that never answers initialize: the gateway ends with its client and leaves no process behind', async () => {
    const { gateway: start, folder } = setup(cleanUps);
    const gateway = start({ flags: ['mute'] });
    gateway.ask('initialize', HELLO);
    const started = await until(() => logOf(folder).find(({ event }) => event === 'started'), 'the server');
    expect(await gateway.end()).toEqual({ code: 0, signal: null });
    expect(() => process.kill(started.pid ?? 0, 0)).toThrow('ESRCH');
    gateway.expectPure();
  });

  test('one that dies in mid-call: a write is unknown and never sent again, a read is an error', async () => {
    const {
      gateway: start,
      calls,
      operations,
    } = setup(cleanUps, {
      pay: { does: 'die_done' },
      look: { does: 'die' },
    });
    const gateway = start();
    await gateway.initialize();
    const write = await gateway.call('pay', { amount: 3 });
    expect(textOf(write)).toMatch(/^OUTCOME UNKNOWN — /);
    expect(write.isError).toBe(true);
    const { message } = await gateway.request('tools/call', { name: 'look', arguments: {} });
    expect(message.error?.message).toMatch(
      /^The MCP server behind this gateway ended before it answered: the MCP server ended with signal SIGKILL\.$/,
    );
    const again = await gateway.call('pay', { amount: 3 });
    expect(operationOf(again)).toBe(operationOf(write));
    expect(textOf(again)).toMatch(/^OUTCOME UNKNOWN — /);
    expect(calls('pay')).toHaveLength(1);
    expect(calls('look')).toHaveLength(1);
    const [operation] = await operations();
    expect(operation).toMatchObject({ stage: 'parked', effect: 'unknown' });
    gateway.expectPure();
  });

  test('one that lists no tools: nobody knows what is a write, so that no call is passed on', async () => {
    const { gateway: start, calls } = setup(cleanUps);
    const gateway = start({ flags: ['listless'] });
    await gateway.initialize();
    expect(textOf(await gateway.call('look'))).toMatch(
      /^NOT SENT — the tools of fixture are not known yet: "tools\/list was answered with .*no list today.*"\. Nothing was recorded\. Tell the user; it may be called again\.$/,
    );
    expect(calls('look')).toHaveLength(0);
  });

  test('one that answers a call before it was made: what the ledger knows is told', async () => {
    const { gateway: start } = setup(cleanUps, { note: { forges: 1_000 } });
    const gateway = start();
    await gateway.initialize();
    gateway.send(
      '{"jsonrpc":"2.0","id":1000,"method":"tools/call","params":{"name":"note","arguments":{"text":"x"}}}',
    );
    const { message } = await gateway.answer(1_000);
    expect(textOf(message.result ?? {})).toBe('did note');
    await gateway.says(
      'The server answered the call 1000, which it was not asked under that id; it was dropped.',
    );
    expect(gateway.lines.filter((line) => line.message?.id === 1_000)).toHaveLength(1);
  });

  test('one whose answer is longer than is kept: the write is told as accepted, and as done before from then on', async () => {
    const { gateway: start, calls, operations } = setup(cleanUps, { pay: { flood: 17 * 1024 * 1024 } });
    const gateway = start();
    await gateway.initialize();
    const first = textOf(await gateway.call('pay', { amount: 3 }));
    expect(first).toMatch(/^ACCEPTED, NOT CHECKED \(op_\w+\)\. fixture has it: accepted /);
    expect(first).not.toContain('ALREADY_EXISTS');
    expect(textOf(await gateway.call('pay', { amount: 3 }))).toMatch(/^ALREADY_EXISTS — /);
    expect(calls('pay')).toHaveLength(1);
    expect(await operations()).toMatchObject([{ stage: 'closed', effect: 'accepted' }]);
  });

  test('one whose answer to a write cannot be read: unknown', async () => {
    const { gateway: start, operations } = setup(cleanUps, { pay: { does: 'garble' } });
    const gateway = start();
    await gateway.initialize();
    expect(textOf(await gateway.call('pay', {}))).toMatch(/^OUTCOME UNKNOWN — /);
    expect(await operations()).toMatchObject([{ effect: 'unknown' }]);
    await gateway.end();
    gateway.expectPure();
  });
});

// ── Data directories that are not right ──────────────────────────────────────────────────────────────────────

describe('a data directory that cannot be used', () => {
  const cleanUps = new CleanUps();
  afterEach(cleanUps.run);

  test.runIf(canBeNobody)(
    'read-only: it is said at the start, reads pass, writes are neither recorded nor sent',
    async () => {
      const { data, folder, gateway: start, calls } = setup(cleanUps);
      mkdirSync(data, { mode: 0o755 });
      for (const path of [folder, join(folder, 'log')]) {
        if (path !== folder) writeFileSync(path, '');
        chownSync(path, NOBODY, NOBODY);
      }
      chmodSync(data, 0o555);
      const gateway = start({ uid: NOBODY });
      await gateway.initialize();
      expect(textOf(await gateway.call('look'))).toBe('did look');
      const write = await gateway.call('note', { text: 'x' });
      expect(textOf(write)).toMatch(
        /^NOT RECORDED, NOT SENT — the ledger cannot record writes now\. Reads still work\./,
      );
      expect(write.isError).toBe(true);
      await gateway.end();
      gateway.expectPure();
      expect(gateway.stderr).toMatch(
        /The ledger in .*data cannot be used: .*Give a directory that this account may write to, with --data\./,
      );
      expect(gateway.stderr).not.toContain('are recorded in');
      expect(calls('note')).toHaveLength(0);
      expect(calls('look')).toHaveLength(1);
    },
  );

  test('a file: the same', async () => {
    const { data, gateway: start, calls } = setup(cleanUps);
    writeFileSync(data, 'not a directory');
    const gateway = start();
    await gateway.initialize();
    expect(textOf(await gateway.call('note', { text: 'x' }))).toMatch(/^NOT RECORDED, NOT SENT — /);
    await gateway.end();
    expect(gateway.stderr).toMatch(/The ledger in .*data cannot be used/);
    expect(gateway.stderr).not.toContain('are recorded in');
    expect(calls('note')).toHaveLength(0);
  });

  test('a ledger whose key is gone is not used with a new one: equal writes could not be told any more', async () => {
    const { data, gateway: start, calls, operations } = setup(cleanUps);
    const first = start();
    await first.initialize();
    await first.call('pay', { amount: 3 });
    await first.end();
    renameSync(join(data, 'intent.key'), join(data, 'intent.key.away'));
    const second = start();
    await second.initialize();
    expect(textOf(await second.call('pay', { amount: 3 }))).toMatch(/^NOT RECORDED, NOT SENT — /);
    expect(second.stderr).toMatch(/intent\.key is missing.*Put it back/);
    const shown = await counterfoil(['show', '--last', '--data', data]);
    expect(shown.code).toBe(1);
    expect(shown.stderr).toMatch(/intent\.key is missing/);
    renameSync(join(data, 'intent.key.away'), join(data, 'intent.key'));
    // The same gateway goes on once the key is back.
    const third = await untilAsync(async () => {
      const answer = textOf(await second.call('pay', { amount: 3 }));
      return !answer.startsWith('NOT RECORDED') && answer;
    }, 'the store to be used again');
    expect(third).toMatch(/^ALREADY_EXISTS — /);
    expect(calls('pay')).toHaveLength(1);
    expect(await operations()).toHaveLength(1);
  });

  test.runIf(canBeNobody)(
    'one that this account may not read: no command says that nothing was recorded there',
    async () => {
      const { data, folder } = setup(cleanUps);
      chmodSync(folder, 0o755);
      mkdirSync(data, { mode: 0o700 });
      writeFileSync(join(data, 'ledger.sqlite'), '', { mode: 0o600 });
      const ran = await counterfoil(['show', '--last', '--data', data], { uid: NOBODY });
      expect(ran.stderr).toMatch(/^counterfoil: The ledger in .*data cannot be read: this account may not/);
      expect(ran.stderr).not.toContain('no write has been recorded');
      expect(ran.code).toBe(1);
    },
  );
});

// ── Frames that are not right ────────────────────────────────────────────────────────────────────────────────

describe('a message that cannot be meant', () => {
  const cleanUps = new CleanUps();
  const world = setup(cleanUps, { pay: { does: 'hold' } });
  let gateway: LineProcess;
  let count = 0;
  beforeAll(async () => {
    gateway = world.gateway();
    await gateway.initialize();
    await gateway.call('note', { text: 'the first' });
  });
  afterAll(async () => {
    gateway.expectPure();
    // Whatever came in, what was recorded before is as it was, and only what was meant was sent.
    expect((await world.operations())[0]).toMatchObject({ stage: 'closed', effect: 'accepted' });
    await cleanUps.run();
  });

  const notes = () => world.calls('note').length;

  /** Sends a line, then a ping: whatever the line is answered with has come before the ping's answer. */
  async function after(line: string | Buffer) {
    const before = gateway.lines.length;
    gateway.send(line);
    await gateway.request('ping');
    return gateway.lines.slice(before, -1).map(({ message }) => message);
  }

  const unrepresentable: readonly (readonly [string, string, RegExp])[] = [
    ['a member twice', '{"text":"a","text":"b"}', /twice/],
    ['a member twice, spelled differently', '{"text":"a","t\\u0065xt":"b"}', /twice/],
    ['a member twice, deeper', '{"text":"a","more":{"x":1,"x":2}}', /twice.*\/more\/x/],
    ['an integer that is not exact', '{"text":"a","n":9007199254740993}', /9007199254740993/],
    ['a number beyond all', '{"text":"a","n":1e400}', /1e400/],
    ['half of a character', '{"text":"\\ud83d"}', /surrogate/],
    ['half of a character in a name', '{"text":"a","\\udc00":1}', /surrogate/],
    ['the key __proto__', '{"text":"a","__proto__":{"isAdmin":true}}', /__proto__/],
    [
      'too much depth',
      `{"text":"a","deep":${'['.repeat(5_000)}${']'.repeat(5_000)}}`,
      /lie within each other/,
    ],
    ['no object', '"text"', /^NOT SENT — the arguments are not a JSON object\. Correct and call again\.$/],
    ['a list', '[{"text":"a"}]', /are not a JSON object/],
    ['null', 'null', /are not a JSON object/],
    ['broken JSON', '{"text":"a",}', /NOT SENT/],
  ];
  for (const [what, args, sentence] of unrepresentable) {
    test(`arguments with ${what} are refused with the reason, and nothing is sent or recorded`, async () => {
      const [sent, recorded] = [notes(), (await world.operations()).length];
      count += 1;
      const id = `a${count}`;
      gateway.send(
        `{"jsonrpc":"2.0","id":"${id}","method":"tools/call","params":{"name":"note","arguments":${args}}}`,
      );
      const { message } = await gateway.answer(id);
      const words = message.result === undefined ? (message.error?.message ?? '') : textOf(message.result);
      expect(words).toMatch(sentence);
      if (message.result !== undefined) {
        expect(words).toMatch(/^NOT SENT — the arguments (cannot be represented exactly: |are not )/);
        expect(message.result.isError).toBe(true);
      }
      expect(notes()).toBe(sent);
      expect(await world.operations()).toHaveLength(recorded);
      expect(({} as { isAdmin?: boolean }).isAdmin).toBeUndefined();
    });
  }

  test('bytes that are not UTF-8 are refused: they would be recorded as something else', async () => {
    const sent = notes();
    const line = Buffer.from(
      '{"jsonrpc":"2.0","id":"utf","method":"tools/call","params":{"name":"note","arguments":{"text":"?"}}}',
    );
    line[line.lastIndexOf('?')] = 0xff;
    const [answer] = await after(line);
    expect(textOf(answer?.result ?? {})).toMatch(
      /^NOT SENT — the arguments cannot be represented exactly: They hold bytes that are not UTF-8\./,
    );
    expect(notes()).toBe(sent);
  });

  const FRAMES: readonly (readonly [string, string, RegExp])[] = [
    [
      'a batch',
      '[{"jsonrpc":"2.0","id":"b","method":"tools/call","params":{"name":"note","arguments":{"text":"b"}}}]',
      /^Batches are not accepted: send each request by itself\.$/,
    ],
    ['no JSON at all', 'hello', /^The message is not a JSON-RPC object\.$/],
    ['a number', '17', /^The message is not a JSON-RPC object\.$/],
    [
      'JSON with a comment',
      '{"jsonrpc":"2.0",/*"*/"id":"c","method":"tools/call","params":{"name":"note","arguments":{"text":"c"}}}',
      /^The message is not a JSON-RPC object\.$/,
    ],
    [
      'a method twice, the call first',
      '{"jsonrpc":"2.0","id":"m1","method":"tools/call","method":"ping","params":{"name":"note","arguments":{"text":"m"}}}',
      /is there twice/,
    ],
    [
      'a method twice, the call last',
      '{"jsonrpc":"2.0","id":"m2","method":"ping","method":"tools/call","params":{"name":"note","arguments":{"text":"m"}}}',
      /is there twice/,
    ],
    [
      'a method twice, spelled differently',
      '{"jsonrpc":"2.0","id":"m3","m\\u0065thod":"tools\\/call","method":"ping","params":{"name":"note","arguments":{"text":"m"}}}',
      /is there twice/,
    ],
    [
      'params twice',
      '{"jsonrpc":"2.0","id":"p","method":"tools/call","params":{"name":"look"},"params":{"name":"note","arguments":{"text":"p"}}}',
      /is there twice/,
    ],
    [
      'a tool twice',
      '{"jsonrpc":"2.0","id":"t","method":"tools/call","params":{"name":"look","name":"note","arguments":{"text":"p"}}}',
      /a member of its params is there twice/,
    ],
    [
      'no tool',
      '{"jsonrpc":"2.0","id":"n","method":"tools/call","params":{"arguments":{}}}',
      /it names no tool/,
    ],
    [
      'a tool that is a number',
      '{"jsonrpc":"2.0","id":"n2","method":"tools/call","params":{"name":7}}',
      /it names no tool/,
    ],
    ['no params', '{"jsonrpc":"2.0","id":"n3","method":"tools/call"}', /it has no params/],
    [
      'params that are a list',
      '{"jsonrpc":"2.0","id":"n4","method":"tools/call","params":["note"]}',
      /its params are not an object/,
    ],
    [
      'an id that is null',
      '{"jsonrpc":"2.0","id":null,"method":"tools/call","params":{"name":"note","arguments":{"text":"i"}}}',
      /id.*string or a whole number/,
    ],
    [
      'an id that is no whole number',
      '{"jsonrpc":"2.0","id":1.5,"method":"tools/call","params":{"name":"note","arguments":{"text":"i"}}}',
      /id.*string or a whole number/,
    ],
    [
      'an id that is an object',
      '{"jsonrpc":"2.0","id":{"a":1},"method":"tools/call","params":{"name":"note","arguments":{"text":"i"}}}',
      /id.*string or a whole number/,
    ],
    [
      'an id that is not JSON',
      '{"jsonrpc":"2.0","id":"\\q","method":"tools/call","params":{"name":"note","arguments":{"text":"i"}}}',
      /id.*string or a whole number/,
    ],
  ];
  for (const [what, line, sentence] of FRAMES) {
    test(`${what}: one clear sentence, and nothing is sent or recorded`, async () => {
      const [sent, recorded] = [notes(), (await world.operations()).length];
      const [answer, ...more] = await after(line);
      expect(answer?.error?.message).toMatch(sentence);
      expect(more).toEqual([]);
      expect(notes()).toBe(sent);
      expect(await world.operations()).toHaveLength(recorded);
    });
  }

  const META: readonly (readonly [string, string, RegExp])[] = [
    ['a run that is a number', '{"counterfoil/run":7}', /counterfoil\/run in its _meta is not a name/],
    ['a run that is empty', '{"counterfoil/run":""}', /counterfoil\/run in its _meta is not a name/],
    [
      'a run that is too long',
      `{"counterfoil/run":"${'r'.repeat(257)}"}`,
      /counterfoil\/run in its _meta is not a name/,
    ],
    ['a run with NUL in it', '{"counterfoil/run":"r\\u0000"}', /counterfoil\/run in its _meta is not a name/],
    [
      'a run that calls itself weak',
      '{"counterfoil/run":"weak/local:root/fixture"}',
      /counterfoil\/run in its _meta is not a name .*or begins with weak\//,
    ],
    ['a step without a run', '{"counterfoil/step":"s"}', /without counterfoil\/run/],
    [
      'single without a step',
      '{"counterfoil/run":"r","counterfoil/single":true}',
      /single without counterfoil\/step/,
    ],
    [
      'single that is a text',
      '{"counterfoil/run":"r","counterfoil/step":"s","counterfoil/single":"yes"}',
      /neither true nor false/,
    ],
    [
      'an occurrence below 0',
      '{"counterfoil/run":"r","counterfoil/occurrence":-1}',
      /not a whole number from 0/,
    ],
    ['a run twice', '{"counterfoil/run":"r","counterfoil/run":"s"}', /a member of its _meta is there twice/],
    ['_meta that is a list', '[]', /its _meta is not an object/],
  ];
  for (const [what, meta, sentence] of META) {
    test(`${what}: a write is refused with the reason, a read passes`, async () => {
      const sent = notes();
      const frame = (id: string, tool: string): string =>
        `{"jsonrpc":"2.0","id":"${id}","method":"tools/call","params":{"_meta":${meta},"name":"${tool}","arguments":{"text":"x"}}}`;
      count += 1;
      gateway.send(frame(`w${count}`, 'note'));
      const write = await gateway.answer(`w${count}`);
      expect(write.message.error?.message).toMatch(sentence);
      gateway.send(frame(`r${count}`, 'look'));
      const read = await gateway.answer(`r${count}`);
      expect(textOf(read.message.result ?? {})).toBe('did look');
      expect(notes()).toBe(sent);
    });
  }

  test('a call that asks for no answer is dropped, and said so', async () => {
    const sent = notes();
    expect(
      await after(
        '{"jsonrpc":"2.0","method":"tools/call","params":{"name":"note","arguments":{"text":"x"}}}',
      ),
    ).toEqual([]);
    await gateway.says('A tools/call without an id was dropped: nobody could be told what became of it.');
    expect(notes()).toBe(sent);
  });

  test('a message longer than any that is read is refused, and what comes behind it is read', async () => {
    gateway.write(Buffer.alloc(64 * 1024 * 1024 + 10, 'x'));
    const [answer] = await after('');
    expect(answer?.error?.message).toBe('The message is longer than this gateway reads.');
  });

  test('arguments of more bytes than are recorded are refused with the number', async () => {
    const text = 'x'.repeat(17 * 1024 * 1024);
    const result = await gateway.call('note', { text });
    expect(textOf(result)).toMatch(/^NOT SENT — .*more than 16777216 bytes/);
  });

  test('a tool that the server does not list is not sent, and its name is quoted', async () => {
    const result = await gateway.call('no\u001b[2J"tool');
    expect(textOf(result)).toMatch(
      /^NOT SENT — fixture lists no tool "no.*tool"\. Nothing was recorded\. Correct and call again\.$/,
    );
    expect(textOf(result)).not.toContain('\u001b');
  });

  test('arguments that do not fit the tool are not sent, and the corrected call is', async () => {
    const wrong = await gateway.call('note', { text: 7 });
    expect(textOf(wrong)).toMatch(/^NOT SENT — arguments do not fit the tool: text must be string \(op_/);
    expect(textOf(await gateway.call('note', {}))).toMatch(/"text" is required/);
    expect(textOf(await gateway.call('note', { text: 'right' }))).toBe('did note');
  });

  test('an id that is still open is not taken a second time: no answer can be mistaken for another', async () => {
    const frame = (id: number, amount: number, tool = 'pay'): string =>
      `{"jsonrpc":"2.0","id":${id},"method":"tools/call","params":{"name":"${tool}","arguments":{"amount":${amount}}}}`;
    gateway.send(frame(90_001, 1));
    await until(() => world.calls('pay').length === 1, 'the first call');
    for (const second of [
      frame(90_001, 2),
      frame(90_001, 2, 'look'),
      '{"jsonrpc":"2.0","id":90001,"method":"ping"}',
    ]) {
      const [answer] = await after(second);
      expect(answer?.id).toBeNull();
      expect(answer?.error?.message).toBe(
        'The id 90001 belongs to a call that is still open: the second message with it was not handled.',
      );
    }
    world.release();
    const first = await gateway.answer(90_001);
    expect(textOf(first.message.result ?? {})).toBe('did pay');
    expect(gateway.lines.filter(({ message }) => message?.id === 90_001)).toHaveLength(1);
    expect(world.calls('pay').map(({ arguments: args }) => args)).toEqual([{ amount: 1 }]);
  });
});

// ── Calls that are taken back ────────────────────────────────────────────────────────────────────────────────

describe('a call that the client takes back', () => {
  const cleanUps = new CleanUps();
  afterEach(cleanUps.run);

  test('a write that is out: its result is given unchanged to the next equal call, and it is sent once', async () => {
    const { data, folder, calls, operations, release } = setup(cleanUps, { pay: { does: 'hold' } });
    const client = new Client({ name: 'impatient', version: '1' });
    const args = gatewayArguments({ data, server: toolsServer(folder), config: CONFIG });
    await client.connect(new StdioClientTransport({ command: process.execPath, args, stderr: 'ignore' }));
    cleanUps.add(() => client.close());
    const call = { name: 'pay', arguments: { amount: 3 } };
    const impatient = client.callTool(call, undefined, { timeout: 300 });
    await expect(impatient).rejects.toMatchObject({ code: -32_001 });
    await untilAsync(
      async () => (await operations()).find(({ cancelRequestedAt }) => cancelRequestedAt !== undefined),
      'the wish to cancel to be recorded',
    );
    release();
    await untilAsync(async () => (await operations()).find(({ stage }) => stage === 'closed'), 'the outcome');
    expect(textOf((await client.callTool(call)) as never)).toBe('did pay');
    expect(textOf((await client.callTool(call)) as never)).toMatch(/^ALREADY_EXISTS — /);
    expect(calls('pay')).toHaveLength(1);
    expect(logOf(folder).filter(({ message }) => message?.method === 'notifications/cancelled')).toEqual([]);
  });

  test('a read: the server hears of it as without a gateway', async () => {
    const { gateway: start, folder, calls } = setup(cleanUps, { look: { does: 'hold' } });
    const gateway = start();
    await gateway.initialize();
    const id = gateway.ask('tools/call', { name: 'look', arguments: {} });
    await until(() => calls('look').length === 1, 'the read');
    gateway.notify('notifications/cancelled', { requestId: id, reason: 'enough' });
    const heard = await until(
      () => logOf(folder).find(({ message }) => message?.method === 'notifications/cancelled'),
      'the cancel at the server',
    );
    expect(heard.message?.params).toEqual({ requestId: id, reason: 'enough' });
  });

  test('a read and a write that are taken back in the same breath are not made', async () => {
    const { gateway: start, folder, calls, operations } = setup(cleanUps);
    // Nothing is known of the tools yet: both calls wait for the list, and are taken back before it came.
    writeFileSync(join(folder, 'unlisted'), '');
    const gateway = start();
    await gateway.initialize();
    const frames = ['look', 'note'].flatMap((tool, index) => [
      {
        jsonrpc: '2.0',
        id: 700 + index,
        method: 'tools/call',
        params: { name: tool, arguments: { text: 'x' } },
      },
      { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 700 + index } },
    ]);
    gateway.write(`${frames.map((frame) => JSON.stringify(frame)).join('\n')}\n`);
    // Frames are handled in their order: with the answer to this one, all before it were.
    await gateway.answer(gateway.ask('ping', {}));
    rmSync(join(folder, 'unlisted'));
    await gateway.call('look', { text: 'marker' });
    await gateway.call('note', { text: 'marker' });
    expect(calls('look').map(({ arguments: args }) => args)).toEqual([{ text: 'marker' }]);
    expect(calls('note').map(({ arguments: args }) => args)).toEqual([{ text: 'marker' }]);
    expect((await operations()).filter(({ effect }) => effect !== 'not_sent')).toHaveLength(1);
    expect(gateway.lines.filter(({ message }) => message?.id === 700 || message?.id === 701)).toEqual([]);
  });
});
