// `counterfoil doctor`: what breaks a promise is a problem and exit code 1; what is worth knowing is a note.

import { appendFileSync, chmodSync, mkdirSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, test } from 'vitest';
import { CleanUps, COUNTERFOIL, LineProcess } from '../gateway/processes.ts';
import { cursorFile, filesystemEntry, Home, type JsonOutput } from './home.ts';

const cleanUps = new CleanUps();
afterEach(cleanUps.run);

const CURSOR = '.cursor/mcp.json';

function toolsHome(tools: readonly object[] = []): Home {
  const home = new Home(cleanUps);
  home.write(CURSOR, cursorFile({ shop: home.toolsEntry(tools) }));
  return home;
}

async function guarded(tools: readonly object[] = []): Promise<Home> {
  const home = toolsHome(tools);
  await home.run(['init', '--yes']);
  return home;
}

async function asClient(home: Home, use: (client: LineProcess) => Promise<void>): Promise<void> {
  const { command, args } = JSON.parse(home.read(CURSOR)).mcpServers.shop;
  const client = cleanUps.started(new LineProcess(command, args, { env: home.env }));
  await client.initialize();
  await use(client);
  await client.end();
}

function linesOf({ checks = [] }: JsonOutput, level: string): readonly string[] {
  return checks.filter((check) => check.level === level).map(({ area, found }) => `${area}: ${found}`);
}

test('a machine on which all is well ends with 0, and says what was read back', async () => {
  const home = await guarded();
  await asClient(home, async () => {});
  const output = await home.json(['doctor']);
  expect(linesOf(output, 'problem')).toEqual([]);
  expect(linesOf(output, 'ok')).toEqual([
    `node: Node ${process.versions.node}`,
    expect.stringMatching(/^store: SQLite \d.*read back: synchronous full, journal wal$/),
    `data: ${home.data} is this account's alone`,
    expect.stringMatching(/^clock: the clock says .*, and nothing is recorded after that$/),
    'approvals: nothing waits for a person',
    `clients: ${home.path(CURSOR)}: shop is behind us, as shop`,
  ]);
  const { code, stdout } = await home.run(['doctor']);
  expect(code).toBe(0);
  expect(stdout).toMatch(/^6 ok, \d+ notes, 0 problems$/m);
});

test('before anything is recorded no ledger is made by looking', async () => {
  const home = toolsHome();
  const before = home.files();
  const { code, stdout } = await home.run(['doctor']);
  expect([code, stdout]).toEqual([0, expect.stringContaining('its durability could not be read back')]);
  expect(home.files()).toEqual(before);
});

test('each server that is not behind us is named, with what to do', async () => {
  const home = toolsHome();
  home.write('project/.mcp.json', cursorFile({ web: { url: 'https://h/x' } }));
  const { stdout, code } = await home.run(['doctor']);
  expect(code).toBe(0);
  expect(stdout).toMatch(
    /shop is not behind us: its client starts it itself\n +→ counterfoil init --server shop$/m,
  );
  expect(stdout).toMatch(
    /web is not behind us: its client reaches it itself\n +→ counterfoil init --server web$/m,
  );
});

test('reads on the server’s own word, unclassified tools, and what passes unguarded are named', async () => {
  const home = await guarded([
    { name: 'look', inputSchema: { type: 'object' }, annotations: { readOnlyHint: true } },
    { name: 'pay', inputSchema: { type: 'object' } },
  ]);
  const notes = linesOf(await home.json(['doctor']), 'note').join('\n');
  expect(notes).toContain('shop: 1 tool passes as reads on its own word alone (readOnlyHint): look');
  expect(notes).toContain('shop: nobody has said what pay is; the first call asks');
  const offers = new Home(cleanUps);
  const everything = `
    const lines = require('node:readline').createInterface({ input: process.stdin });
    lines.on('line', (line) => {
      const { id, method } = JSON.parse(line);
      if (id === undefined) return;
      const result = method === 'initialize'
        ? { protocolVersion: '2025-11-25', capabilities: { resources: {}, prompts: {} }, serverInfo: { name: 's', version: '1' } }
        : {};
      console.log(JSON.stringify({ jsonrpc: '2.0', id, result }));
    });`;
  const program = offers.write('server.cjs', everything);
  offers.write(CURSOR, cursorFile({ library: { command: process.execPath, args: [program] } }));
  await offers.run(['init', '--yes']);
  expect(linesOf(await offers.json(['doctor']), 'note')).toContain(
    'tools: library: what it offers as resources, prompts passes unguarded and is not recorded',
  );
});

test('a confirmed rule whose tool has changed since, or is gone, is named; one that still fits is not', async () => {
  const tool = (description: string) => ({ name: 'pay', inputSchema: { type: 'object', description } });
  const home = await guarded([tool('one')]);
  await asClient(home, async (client) => {
    await client.call('pay', {});
  });
  const queue = JSON.parse((await home.run(['queue', '--json'])).stdout);
  expect(linesOf(await home.json(['doctor']), 'note')).toContain('approvals: 1 operation waits for a person');
  const { operation, digest } = queue.operations[0];
  await home.run(['approve', operation.id, '--digest', digest]);
  const about = async (): Promise<readonly string[]> =>
    linesOf(await home.json(['doctor']), 'note').filter((line) => line.includes('was confirmed'));
  expect(await about()).toEqual([]);
  home.write('server/tools.json', JSON.stringify([tool('two')]));
  expect(await about()).toEqual([
    'tools: shop/pay was confirmed as ordinary, and has changed since: the rule does not count',
  ]);
  home.write('server/tools.json', '[]');
  expect(await about()).toEqual([
    'tools: shop/pay was confirmed as ordinary, and is not listed by its server any more: the rule does not count',
  ]);
});

describe('a problem ends with 1, and with what to do', () => {
  const CASES: readonly (readonly [string, (home: Home) => void, RegExp, RegExp])[] = [
    [
      'a data directory that others may read',
      (home) => chmodSync(home.data, 0o755),
      /counterfoil can be read or written by other accounts \(mode 755\)/,
      /^chmod 700 /,
    ],
    [
      'a ledger whose key is lost',
      (home) => rmSync(join(home.data, 'intent.key')),
      /key file intent\.key is missing/,
      /reads pass and writes are refused/,
    ],
    [
      'a configuration that is no JSON',
      (home) => appendFileSync(home.path(CURSOR), 'x'),
      /mcp\.json cannot be used: it is not JSON/,
      /Mend it/,
    ],
    [
      'an entry of ours whose program is gone',
      (home) =>
        home.write(CURSOR, home.read(CURSOR).replace(/"[^"]*counterfoil\.js"/, '"/gone/counterfoil.js"')),
      /shop starts us by \/gone\/counterfoil\.js, which is not there any more/,
      /counterfoil leave, then counterfoil init/,
    ],
    [
      'an entry that somebody has taken back by hand',
      (home) => home.write(CURSOR, cursorFile({ shop: filesystemEntry(home.folder) })),
      /shop was guarded by init, and does not start us any more/,
      /counterfoil init --server shop/,
    ],
    [
      'a journal that cannot be read',
      (home) => {
        rmSync(join(home.data, 'clients.jsonl'));
        mkdirSync(join(home.data, 'clients.jsonl'), { mode: 0o700 });
      },
      /clients\.jsonl cannot be read: EISDIR/,
      /leave cannot take back/,
    ],
    [
      'a server that does not start',
      (home) => home.write('server/down', ''),
      /shop is behind us, as shop, and did not answer: .*exit code 3/,
      /mend its own command/,
    ],
  ];
  test.each(CASES)('%s', async (_what, harm, found, fix) => {
    const home = await guarded();
    await asClient(home, async () => {});
    harm(home);
    const { code, stdout } = await home.run(['doctor', '--json']);
    const { ok, checks = [] } = JSON.parse(stdout) as JsonOutput;
    const problems = checks.filter(({ level }) => level === 'problem');
    expect(code).toBe(1);
    expect(ok).toBe(false);
    expect(problems.map((each) => each.found)).toContainEqual(expect.stringMatching(found));
    expect(problems.map((each) => each.fix)).toContainEqual(expect.stringMatching(fix));
  });

  test('a clock that stands before what is recorded', async () => {
    const home = await guarded([{ name: 'pay', inputSchema: { type: 'object' } }]);
    await asClient(home, async (client) => {
      await client.call('pay', {});
    });
    const early = join(home.folder, 'early.mjs');
    writeFileSync(early, 'const now = Date.now; Date.now = () => now() - 3_600_000;');
    const { code, stdout } = await home.run(['doctor'], { env: { NODE_OPTIONS: `--import ${early}` } });
    expect([code, stdout]).toEqual([
      1,
      expect.stringMatching(/^problem +clock +the clock says .* is recorded at /m),
    ]);
  });
});

test('half-written files of a run that died, and a line of the journal that cannot be read, are named', async () => {
  const home = await guarded();
  const left = home.write('.cursor/.counterfoil-staging-0123456789ab-mcp.json', '{"mc');
  utimesSync(left, 1, 1);
  appendFileSync(join(home.data, 'clients.jsonl'), '{"event":"gua');
  const notes = linesOf(await home.json(['doctor']), 'note').join('\n');
  expect(notes).toContain(`${left} was left half-written by a run of ours that died; nothing reads it`);
  expect(notes).toContain('1 line of ');
});

test('what came with a project is not started by looking, even where it looks like ours', async () => {
  const home = new Home(cleanUps);
  const trap = home.path('trap.mjs');
  writeFileSync(
    trap,
    `import { writeFileSync } from 'node:fs'; writeFileSync(${JSON.stringify(home.path('sprung'))}, '');`,
  );
  const words = ['counterfoil', 'mcp', '--', process.execPath, trap];
  home.write('project/.mcp.json', cursorFile({ t: { command: 'npx', args: words } }));
  mkdirSync(home.path('.cursor'));
  const before = home.files();
  const { stdout } = await home.run(['doctor']);
  expect(stdout).toContain('t is behind us, as t, and came with the project: it was not started');
  expect(home.files()).toEqual(before);
});

test('a missing passphrase, a server in observe and a configuration that waits are named', async () => {
  const home = toolsHome();
  const started = async (text: string): Promise<void> => {
    const file = home.write('shop.yaml', text);
    const { args } = home.toolsEntry([]);
    const client = cleanUps.started(
      new LineProcess(
        process.execPath,
        [
          COUNTERFOIL,
          'mcp',
          '--no-resident',
          '--config',
          file,
          '--data',
          home.data,
          '--',
          process.execPath,
          ...args,
        ],
        { env: home.env },
      ),
    );
    await client.initialize();
    await client.end();
  };
  await started('destination: shop\nmode: observe\nlimits: {writes_per_hour: 5}\n');
  await started('destination: shop\nmode: observe\nlimits: {writes_per_hour: 6}\n');
  const notes = linesOf(await home.json(['doctor']), 'note');
  expect(notes).toContain(
    'passphrase: none is set, and without one what cannot be taken back cannot be approved',
  );
  expect(notes).toContain(
    'policy: shop is in observe: each call is sent as it comes, and nothing is guarded',
  );
  expect(notes).toContain(
    'policy: a configuration of shop loosens the one in force, and waits to be confirmed',
  );
  // To be more careful needs nobody, and nothing waits then.
  await started('destination: shop\nlimits: {writes_per_hour: 4}\n');
  const after = linesOf(await home.json(['doctor']), 'note');
  expect(after.filter((line) => line.startsWith('policy'))).toEqual([]);
});
