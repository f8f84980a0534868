// `counterfoil leave`: the clients' files are what they were, and nothing that was recorded is lost.

import { existsSync, mkdirSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, test } from 'vitest';
import { CleanUps, LineProcess, TOOLS_SERVER } from '../gateway/processes.ts';
import { cursorFile, filesystemEntry, Home } from './home.ts';

const cleanUps = new CleanUps();
afterEach(cleanUps.run);

const CURSOR = '.cursor/mcp.json';
const BOM = '\uFEFF';

function notesHome(): Home {
  const home = new Home(cleanUps);
  home.write(CURSOR, cursorFile({ notes: home.toolsEntry() }));
  return home;
}

describe('after leave every file is byte for byte what it was before init', () => {
  test('with comments, tabs, CRLF, a mark at the start, one line, links, and several clients', async () => {
    const home = new Home(cleanUps);
    const entry = JSON.stringify(home.toolsEntry());
    const program = JSON.stringify(process.execPath);
    home.write(
      CURSOR,
      `${BOM}{\r\n\t// mine\r\n\t"mcpServers": {\r\n\t\t"a": ${entry}, /* b */\r\n\t\t"w": {"url": "http://x"},\r\n\t},\r\n}\r\n`,
    );
    home.write(
      'dotfiles/claude.json',
      `{"mcpServers":{"a":${entry}},"projects":{"/p":{"mcpServers":{"a":${entry}}}}}`,
    );
    symlinkSync(home.path('dotfiles/claude.json'), home.path('.claude.json'));
    home.write(
      '.config/Code/User/mcp.json',
      `{ "servers": {\n  "s": { "args": [ // all\n    ${JSON.stringify(TOOLS_SERVER)},\n    ${JSON.stringify(home.path('server'))} ],\n  "command": ${program} } } }`,
    );
    home.write('.config/Claude/claude_desktop_config.json', `{"mcpServers":{"a":${entry}}}\n\n`);
    home.write('project/.mcp.json', cursorFile({ a: JSON.parse(entry) }));
    const before = home.files();
    await home.run(['init', '--yes']);
    const between = home.files();
    const changed = Object.keys(before).filter((path) => before[path] !== between[path]);
    expect(changed).toHaveLength(5);
    const { code, stdout } = await home.run(['leave', '--yes']);
    expect(code).toBe(0);
    expect(stdout).toMatch(
      /^Restart what has these servers open, or it goes on as before: .*Cursor.*; VS Code/m,
    );
    expect(home.files()).toEqual(before);
  });

  test('also after init was called more than once, for one server and then for the other', async () => {
    const home = new Home(cleanUps);
    home.write(CURSOR, cursorFile({ a: home.toolsEntry(), b: home.toolsEntry() }));
    const before = home.files();
    await home.run(['init', '--yes', '--server', 'a']);
    await home.run(['init', '--yes', '--server', 'b']);
    await home.run(['leave', '--yes']);
    expect(home.files()).toEqual(before);
    await home.run(['init', '--yes']);
    await home.run(['leave', '--yes']);
    expect(home.files()).toEqual(before);
  });

  test('and what somebody has edited in between stays', async () => {
    const home = notesHome();
    const before = home.read(CURSOR);
    await home.run(['init', '--yes']);
    const edit = (text: string): string =>
      text
        .replace('{\n', '{\n  // by hand\n  "theme": "dark",\n')
        .replace(/\n {4}\}\n/, '\n    },\n    "new": {"url":"http://x"}\n');
    writeFileSync(home.path(CURSOR), edit(home.read(CURSOR)));
    const { files } = await home.json(['leave', '--yes']);
    expect(files?.[0]?.entries).toMatchObject([{ path: ['mcpServers', 'notes'], release: 'restored' }]);
    expect(home.read(CURSOR)).toBe(edit(before));
  });
});

describe('what cannot be taken back is told', () => {
  test.each([
    [
      'an entry that was deleted',
      (home: Home) => home.write(CURSOR, '{"mcpServers":{}}'),
      /notes is not in the file any more/,
    ],
    [
      'a file that was deleted',
      (home: Home) => rmSync(home.path(CURSOR)),
      /notes is not in the file any more/,
    ],
    [
      'an entry that somebody has put back by hand',
      (home: Home) => home.write(CURSOR, cursorFile({ notes: filesystemEntry('/x') })),
      /notes was already started without us, and is left as it is/,
    ],
  ])('%s', async (_what, change, words) => {
    const home = notesHome();
    await home.run(['init', '--yes']);
    change(home);
    const before = home.files();
    const { code, stdout } = await home.run(['leave', '--yes']);
    expect([code, stdout]).toEqual([0, expect.stringMatching(words)]);
    expect(stdout).not.toContain('Restart');
    expect(home.files()).toEqual(before);
    expect((await home.run(['leave', '--yes'])).stdout).toContain(
      'init has changed no file that is not back already',
    );
  });

  test('a file that is no JSON now is not touched, and can be left later', async () => {
    const home = notesHome();
    const before = home.read(CURSOR);
    await home.run(['init', '--yes']);
    const ours = home.read(CURSOR);
    home.write(CURSOR, `${ours} x`);
    const { code, stdout } = await home.run(['leave', '--yes']);
    expect([code, stdout]).toEqual([4, expect.stringMatching(/It is still as init left it: it is not JSON/)]);
    expect(home.read(CURSOR)).toBe(`${ours} x`);
    home.write(CURSOR, ours);
    expect((await home.run(['leave', '--yes'])).code).toBe(0);
    expect(home.read(CURSOR)).toBe(before);
  });

  test('an entry that starts us and was written by somebody stays, and is named', async () => {
    const home = new Home(cleanUps);
    home.write(
      CURSOR,
      cursorFile({ own: { command: 'npx', args: ['-y', 'counterfoil', 'mcp', '--', 'x'] } }),
    );
    const before = home.files();
    const { code, stdout } = await home.run(['leave', '--yes']);
    expect([code, stdout]).toEqual([
      0,
      expect.stringContaining('Still starts us, and was not written by init: own in '),
    ]);
    expect(home.files()).toEqual(before);
  });
});

describe('nothing is written', () => {
  test('without a terminal and without --yes', async () => {
    const home = notesHome();
    await home.run(['init', '--yes']);
    const before = home.files();
    const { code, stdout, stderr } = await home.run(['leave']);
    expect([code, stderr]).toEqual([2, expect.stringContaining('Nothing was written.')]);
    expect(stdout).toMatch(/^- .*counterfoil\.js"/m);
    expect(home.files()).toEqual(before);
  });

  test('where a person says no, and all of it where that person says yes', async () => {
    const home = notesHome();
    const before = home.files();
    await home.run(['init', '--yes']);
    const between = home.files();
    const refused = await home.atTerminal(['leave'], [['Write this? [y/N]', 'no\r']]);
    expect([refused.code, refused.shown]).toEqual([0, expect.stringContaining('Nothing was written.')]);
    expect(home.files()).toEqual(between);
    await home.atTerminal(['leave'], [['Write this? [y/N]', 'yes\r']]);
    expect(home.files()).toEqual(before);
  });

  test('where the records cannot be exported to the file that was named', async () => {
    const home = await withOpenWrite();
    const before = home.files();
    const { code, stderr } = await home.run(['leave', '--yes', '--export', home.path(CURSOR)]);
    expect([code, stderr]).toEqual([
      2,
      expect.stringMatching(/Nothing was changed.*it exists already.*--export/),
    ]);
    expect(home.files()).toEqual(before);
  });
});

/** A home whose client has asked for one write that waits for a person, and made one that is settled. */
async function withOpenWrite(): Promise<Home> {
  const home = new Home(cleanUps);
  mkdirSync(home.path('notes'));
  home.write(
    CURSOR,
    cursorFile({
      notes: filesystemEntry(home.path('notes')),
      shop: home.toolsEntry([{ name: 'pay', inputSchema: { type: 'object' } }]),
    }),
  );
  await home.run(['init', '--yes']);
  const { mcpServers } = JSON.parse(home.read(CURSOR));
  for (const [name, tool, args] of [
    ['notes', 'write_file', { path: home.path('notes', 'a.txt'), content: 'x' }],
    ['shop', 'pay', { sum: 7 }],
  ] as const) {
    const { command, args: words } = mcpServers[name];
    const client = cleanUps.started(new LineProcess(command, words, { env: home.env }));
    await client.initialize();
    await client.call(tool, args);
    await client.end();
  }
  return home;
}

test('what is open is listed, all is exported as lines of JSON, and the ledger stays', async () => {
  const home = await withOpenWrite();
  const file = home.path('records.jsonl');
  const { stdout, code } = await home.run(['leave', '--yes', '--export', file]);
  expect(code).toBe(0);
  expect(stdout).toMatch(/^Open \(1\): .*\n {2}op_\S+ {2}Waiting for approval\. /m);
  expect(stdout).toContain(`2 operations were exported to ${file}`);
  expect(stdout).toContain(`They stay recorded in ${home.data} as well: nothing was deleted.`);
  const lines = readFileSync(file, 'utf8')
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line));
  expect(lines).toMatchObject([
    { operation: { tool: 'write_file', effect: 'verified' }, intact: true, reply: { kind: 'result' } },
    { operation: { tool: 'pay', stage: 'awaiting_approval' }, payload: '{"sum":7}', reply: null },
  ]);
  for (const { history } of lines) expect(history[0].event.type).toBe('proposed');
  expect(statSync(file).mode & 0o777).toBe(0o600);
  const shown = await home.run(['queue', '--json']);
  expect(JSON.parse(shown.stdout).operations).toHaveLength(1);
});

test('a ledger that cannot be read keeps nobody from leaving', async () => {
  const home = await withOpenWrite();
  const before = home.read(CURSOR);
  rmSync(join(home.data, 'intent.key'));
  const { code, stdout } = await home.run(['leave', '--yes']);
  expect([code, stdout]).toEqual([1, expect.stringMatching(/Nothing was exported: .*key file/)]);
  expect(home.read(CURSOR)).not.toBe(before);
  expect(home.read(CURSOR)).not.toContain('counterfoil.js');
});

test('where nothing was ever recorded there is nothing to export, and no ledger is made', async () => {
  const home = notesHome();
  await home.run(['init', '--yes']);
  const { export: exported } = await home.json(['leave', '--yes']);
  expect(exported).toBeNull();
  expect(existsSync(join(home.data, 'ledger.sqlite'))).toBe(false);
});
