// `counterfoil init` as a person has it first: real files in a home, real servers, the command as it is installed.

import {
  chmodSync,
  chownSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, describe, expect, test } from 'vitest';
import { CleanUps, COUNTERFOIL, LineProcess, TOOLS_SERVER } from '../gateway/processes.ts';
import { cursorFile, filesystemEntry, Home, type JsonOutput, type JsonServer } from './home.ts';

const cleanUps = new CleanUps();
afterEach(cleanUps.run);

const CURSOR = '.cursor/mcp.json';

/** A home with one server, which starts quickly. */
function notesHome(): Home {
  const home = new Home(cleanUps);
  home.write(CURSOR, cursorFile({ notes: home.toolsEntry() }));
  return home;
}

function serverOf(output: JsonOutput, name: string): JsonServer {
  const found = (output.files ?? [])
    .flatMap(({ servers }) => servers ?? [])
    .find((each) => each.name === name);
  if (found === undefined) throw new Error(`There is no server ${name} in ${JSON.stringify(output)}`);
  return found;
}

/** Starts what a configuration says, as its client does. */
function asClient(home: Home, file: string, name: string): LineProcess {
  const { mcpServers } = JSON.parse(home.read(file)) as {
    readonly mcpServers: {
      readonly [name: string]: { readonly command: string; readonly args: readonly string[] };
    };
  };
  const entry = mcpServers[name];
  if (entry === undefined) throw new Error(`There is no ${name}.`);
  // A desktop app starts it without the user's PATH.
  return cleanUps.started(
    new LineProcess(entry.command, entry.args, { env: { ...home.env, PATH: '/nowhere' } }),
  );
}

describe('a server is put behind us', () => {
  test('with every tool shown by class and source, and its client then writes through us', async () => {
    const home = new Home(cleanUps);
    mkdirSync(home.path('notes'));
    home.write(CURSOR, cursorFile({ notes: filesystemEntry(home.path('notes')) }));
    const { code, stdout } = await home.run(['init', '--yes']);
    expect(code).toBe(0);
    expect(stdout).toMatch(/^ +reads +10 .*source: the shipped binding for this server$/m);
    expect(stdout).toMatch(
      /^ +ordinary +4 .*source: the shipped binding for this server\n +write_file, edit_file\*, /m,
    );
    expect(stdout).toContain('Mode: guard.');
    const client = asClient(home, CURSOR, 'notes');
    await client.initialize();
    const path = home.path('notes', 'a.txt');
    await client.call('write_file', { path, content: 'hello' });
    expect(readFileSync(path, 'utf8')).toBe('hello');
    await client.end();
    const shown = await home.run(['show', '--last', '--json']);
    expect(JSON.parse(shown.stdout).operation).toMatchObject({ destination: 'notes', tool: 'write_file' });
  });

  test('by this Node and this installation, by their paths, with everything else of the entry kept', async () => {
    const home = new Home(cleanUps);
    const entry = {
      type: 'stdio',
      ...filesystemEntry(home.folder),
      env: { K: 'v' },
      alwaysAllow: ['read_file'],
    };
    home.write(CURSOR, cursorFile({ notes: entry }));
    await home.run(['init', '--yes']);
    const after = JSON.parse(home.read(CURSOR)).mcpServers.notes;
    expect(after).toMatchObject({ type: 'stdio', env: { K: 'v' }, alwaysAllow: ['read_file'] });
    const own = [COUNTERFOIL, 'mcp', '--name', 'notes', '--'];
    expect(after.args).toEqual([...own, entry.command, ...entry.args]);
    expect(statSync(after.command).ino).toBe(statSync(process.execPath).ino);
  });

  test('by npx with this version where that is asked for, and with the data directory where it is another', async () => {
    const home = notesHome();
    const data = home.path('elsewhere');
    await home.run(['init', '--yes', '--via', 'npx', '--data', data]);
    const { command, args } = JSON.parse(home.read(CURSOR)).mcpServers.notes;
    const { version } = JSON.parse(readFileSync(join(dirname(COUNTERFOIL), '../../package.json'), 'utf8'));
    expect([command, ...args.slice(0, 8)]).toEqual([
      'npx',
      '-y',
      `counterfoil@${version}`,
      'mcp',
      '--name',
      'notes',
      '--data',
      data,
      '--',
    ]);
  });

  test('and a second time nothing is left to write', async () => {
    const home = notesHome();
    await home.run(['init', '--yes']);
    const before = home.files();
    const { code, stdout } = await home.run(['init', '--yes']);
    expect([code, stdout]).toEqual([0, expect.stringContaining('notes  is guarded already, as notes')]);
    expect(stdout).toContain('Nothing is to be written.');
    expect(home.files()).toEqual(before);
  });

  test('the same server in two clients is one destination, another of the same name is another', async () => {
    const home = new Home(cleanUps);
    const one = home.toolsEntry();
    const two = { ...one, env: { ACCOUNT: 'another' } };
    home.write(CURSOR, cursorFile({ notes: one }));
    home.write(
      '.claude.json',
      JSON.stringify({
        mcpServers: { notes: one, others: two },
        projects: { [home.project]: { mcpServers: { notes: two } } },
      }),
    );
    const { files = [] } = await home.json(['init', '--yes']);
    const names = files.map(({ client, servers }) => [
      client,
      servers?.map(({ destination }) => destination),
    ]);
    expect(names).toEqual([
      ['claude-code', ['notes', 'others', 'notes-2']],
      ['cursor', ['notes']],
    ]);
  });

  test('a tool that says it only reads is a read on its own word, others are unclassified', async () => {
    const home = new Home(cleanUps);
    const tools = [
      { name: 'look', inputSchema: { type: 'object' }, annotations: { readOnlyHint: true } },
      { name: 'drop', inputSchema: { type: 'object' }, annotations: { destructiveHint: true } },
    ];
    home.write(CURSOR, cursorFile({ t: home.toolsEntry(tools) }));
    expect(serverOf(await home.json(['init', '--dry-run']), 't').tools).toEqual([
      { name: 'look', class: 'read', source: 'hint' },
      { name: 'drop', class: 'unclassified', source: 'nobody' },
    ]);
    const { stdout } = await home.run(['init', '--dry-run']);
    expect(stdout).toContain("pass, and are not recorded; source: the server's own word (readOnlyHint)");
    expect(stdout).toContain('the first call asks a person what the tool is; source: nobody has said');
  });
});

describe('what comes next is said', () => {
  const MEMORY = fileURLToPath(
    new URL('../../node_modules/@modelcontextprotocol/server-memory/dist/index.js', import.meta.url),
  );
  const PASSPHRASE_HINT =
    'What is irreversible is approved with a passphrase of yours, and none is set yet: counterfoil passphrase set';

  test('a passphrase where a tool cannot be taken back, and what is to be restarted', async () => {
    const home = new Home(cleanUps);
    const memory = {
      command: process.execPath,
      args: [MEMORY],
      env: { MEMORY_FILE_PATH: home.path('m.json') },
    };
    home.write(CURSOR, cursorFile({ memory }));
    const { stdout } = await home.run(['init', '--yes']);
    expect(stdout).toContain(PASSPHRASE_HINT);
    expect(stdout).toContain('Restart what has these servers open, or it goes on as before: Cursor.\n');
  });

  test('no passphrase where no tool needs one', async () => {
    expect((await notesHome().run(['init', '--yes'])).stdout).not.toContain('passphrase');
  });

  test('how we are called, where the shell does not find us by our name', async () => {
    const hint = `counterfoil is not in your PATH: say ${COUNTERFOIL} in its place.`;
    expect((await notesHome().run(['init', '--yes'])).stdout).toContain(hint);
    const home = notesHome();
    mkdirSync(home.path('bin'));
    symlinkSync(COUNTERFOIL, home.path('bin', 'counterfoil'));
    const { stdout } = await home.run(['init', '--yes'], { env: { PATH: home.path('bin') } });
    expect(stdout).not.toContain('PATH');
  });
});

describe('nothing is written', () => {
  test.each([
    ['with --dry-run', ['--dry-run'], 0],
    ['without a terminal and without --yes', [], 2],
  ])('%s, and the change is shown', async (_what, flags, expected) => {
    const home = notesHome();
    const before = home.files();
    const { code, stdout, stderr } = await home.run(['init', ...flags]);
    expect(code).toBe(expected);
    expect(stdout).toContain('+++ ');
    if (expected === 2) expect(stderr).toContain('Nothing was written. There is no terminal to ask at');
    expect(home.files()).toEqual(before);
  });

  test('where a person at a terminal says no, or says nothing', async () => {
    const home = notesHome();
    const before = home.files();
    for (const answer of ['n\r', '\r', '\u0004']) {
      const { code, shown } = await home.atTerminal(['init'], [['Write this change? [y/N]', answer]]);
      expect([code, shown]).toEqual([0, expect.stringContaining('Nothing was written.')]);
      expect(home.files()).toEqual(before);
    }
  });

  test('and it is written where that person says yes', async () => {
    const home = notesHome();
    const { code, shown } = await home.atTerminal(['init'], [['Write this change? [y/N]', 'y\r']]);
    expect([code, shown]).toEqual([0, expect.stringContaining('is written: notes.')]);
    expect(home.read(CURSOR)).toContain('"--name"');
  });

  test.each([
    ['an unknown client', ['--client', 'curser'], 2, /There is no client curser here; did you mean cursor\?/],
    ['a server that nobody names', ['--server', 'x'], 3, /names a server x\. There are: notes\./],
    ['a client that has no file', ['--client', 'vscode'], 3, /No configuration of an MCP client was found/],
    ['--json without a decision', ['--json'], 2, /say --dry-run to look, or --yes to write/],
    ['another way to start us', ['--via', 'brew'], 2, /Allowed choices are node, npx/],
  ])('%s is told in one sentence', async (_what, flags, expected, sentence) => {
    const home = notesHome();
    const { code, stderr } = await home.run(['init', ...flags]);
    expect([code, stderr]).toEqual([expected, expect.stringMatching(sentence)]);
  });
});

describe('a server that comes with a project', () => {
  const inProject = (): Home => {
    const home = new Home(cleanUps);
    home.write('project/.mcp.json', cursorFile({ theirs: home.toolsEntry() }));
    return home;
  };
  test('is not started where nobody was asked', async () => {
    const home = inProject();
    const { stdout } = await home.run(['init', '--dry-run']);
    expect(stdout).toContain('theirs  comes with the project, and was not started; it is left as it is');
    expect(home.hasStartedServer).toBe(false);
  });

  test('is started once its reader has seen the command and agreed', async () => {
    const home = inProject();
    const refused = await home.atTerminal(['init'], [['Start them? [y/N]', 'n\r']]);
    expect(refused.shown).toContain(`theirs: ${process.execPath} ${TOOLS_SERVER}`);
    expect(home.hasStartedServer).toBe(false);
    await home.atTerminal(
      ['init'],
      [
        ['Start them? [y/N]', 'y\r'],
        ['Write this change? [y/N]', 'y\r'],
      ],
    );
    expect(home.hasStartedServer).toBe(true);
    expect(home.read('project/.mcp.json')).toContain('counterfoil.js');
  });
});

describe('one that cannot be served is listed with its sentence, and the others work', () => {
  const SECRETS = ['hunter22', 'k-path', 'k-query', 'k-header', 'k-env', 'k-arg', 'k-said', 'k-comment'];

  function mixedHome(): Home {
    const home = notesHome();
    const servers = {
      notes: home.toolsEntry(),
      gone: { command: '/nowhere/server', args: ['--token', 'k-arg'] },
      mute: {
        command: process.execPath,
        args: ['-e', "console.error('bad key ' + process.env.A); process.exit(3)", 'x'],
        env: { A: 'k-said' },
      },
      web: {
        url: 'http://ada:hunter22@127.0.0.1:9/k-path?k=k-query',
        headers: { Authorization: 'Bearer k-header' },
      },
      odd: { args: ['x'] },
      lost: { ...home.toolsEntry(), cwd: '/nowhere' },
      off: { ...home.toolsEntry(), disabled: true, env: { KEY: 'k-env' } },
    };
    home.write(CURSOR, `// k-comment\n${cursorFile(servers)}`);
    const inputs = '{"servers":{"asks":{"command":"x","args":["${input:key}"]}},"inputs":[{"id":"key"}]}';
    home.write('.config/Code/User/mcp.json', inputs);
    home.write('.claude.json', 'not JSON');
    return home;
  }

  test('of every kind', async () => {
    const home = mixedHome();
    const output = await home.json(['init', '--yes']);
    expect(serverOf(output, 'notes').problem).toBeNull();
    expect(serverOf(output, 'gone').problem).toMatch(/^did not answer: .*ENOENT/);
    expect(serverOf(output, 'mute').problem).toMatch(
      /^did not answer: .*exit code 3.*; it said: bad key •••; all of it is in /,
    );
    expect(serverOf(output, 'web').problem).toMatch(/^did not answer: /);
    expect(serverOf(output, 'lost').problem).toBe('was not started: its folder /nowhere is not there');
    expect(serverOf(output, 'odd').problem).toBe('cannot be guarded: it has neither a command nor a url');
    expect(serverOf(output, 'asks').problem).toMatch(/^was not started: it asks for the input key/);
    expect(output.files?.find(({ client }) => client === 'claude-code')?.problem).toMatch(/^it is not JSON/);
    expect(output.changes?.map(({ path, written }) => [path, written])).toEqual([[home.path(CURSOR), true]]);
    const guarded = Object.entries(JSON.parse(home.read(CURSOR).slice(13)).mcpServers as object)
      .filter(([, entry]) => JSON.stringify(entry).includes('counterfoil.js'))
      .map(([name]) => name);
    expect(guarded).toEqual(['notes']);
  });

  test('and no secret is shown, in text or JSON; what a server said is kept for its owner alone', async () => {
    const home = mixedHome();
    const runs = [
      await home.run(['init', '--dry-run']),
      await home.run(['init', '--dry-run', '--json']),
      await home.run(['init', '--yes', '--server', 'off', '--server', 'gone', '--server', 'mute']),
      await home.run(['doctor']),
      await home.run(['doctor', '--json']),
      await home.run(['leave', '--yes']),
    ];
    for (const { stdout, stderr } of runs) {
      for (const secret of SECRETS) expect(stdout + stderr).not.toContain(secret);
    }
    const log = join(home.data, 'server-words', 'mute.log');
    expect(readFileSync(log, 'utf8')).toContain('bad key k-said');
    expect(statSync(log).mode & 0o777).toBe(0o600);
  });

  test('one that was asked for by name is guarded all the same', async () => {
    const home = mixedHome();
    await home.run(['init', '--yes', '--server', 'off']);
    expect(home.read(CURSOR)).toMatch(
      /"off": \{\s+"command": "[^"]+",\s+"args": \[\s+"[^"]*counterfoil\.js",\s+"mcp",\s+"--name",\s+"off"/,
    );
  });
});

describe('the file', () => {
  test('behind a link is written, with its mode, and the link stays', async () => {
    const home = new Home(cleanUps);
    const real = home.write('dotfiles/cursor.json', cursorFile({ notes: home.toolsEntry() }));
    chmodSync(real, 0o640);
    mkdirSync(home.path('.cursor'));
    symlinkSync('../dotfiles/cursor.json', home.path(CURSOR));
    await home.run(['init', '--yes']);
    expect(lstatSync(home.path(CURSOR)).isSymbolicLink()).toBe(true);
    expect(readFileSync(real, 'utf8')).toContain('counterfoil.js');
    expect(statSync(real).mode & 0o777).toBe(0o640);
  });

  test('as it was is kept, whole, and for its owner alone', async () => {
    const home = notesHome();
    const before = readFileSync(home.path(CURSOR));
    const { changes = [] } = await home.json(['init', '--yes']);
    const backup = changes[0]?.backup ?? '';
    expect(readFileSync(backup).equals(before)).toBe(true);
    expect(statSync(backup).mode & 0o777).toBe(0o600);
  });

  test('that was changed elsewhere while its change was shown gets the change beside the other one', async () => {
    const home = notesHome();
    const answer = (): string => {
      writeFileSync(home.path(CURSOR), home.read(CURSOR).replace('{', '{\n  "theme": "dark",'));
      return 'y\r';
    };
    const { code } = await home.atTerminal(['init'], [['Write this change? [y/N]', answer]]);
    expect(code).toBe(0);
    expect(JSON.parse(home.read(CURSOR))).toMatchObject({
      theme: 'dark',
      mcpServers: { notes: { args: expect.arrayContaining([COUNTERFOIL]) } },
    });
  });

  test('whose entry was changed while its change was shown is not written', async () => {
    const home = notesHome();
    const changed = home.read(CURSOR).replace('/server"', '/others"');
    const answer = (): string => {
      writeFileSync(home.path(CURSOR), changed);
      return 'y\r';
    };
    const { code, shown } = await home.atTerminal(['init'], [['Write this change? [y/N]', answer]]);
    expect([code, shown]).toEqual([
      5,
      expect.stringContaining('was not written: notes was changed since it was shown.'),
    ]);
    expect(home.read(CURSOR)).toBe(changed);
  });
});

const isRoot = process.getuid?.() === 0;
const NOBODY = 65_534;

test.each([
  [
    'its folder is a file',
    'client-backups',
    4,
    /was not written, because what it was cannot be kept in .*data: /,
  ],
  [
    'the data directory is a file',
    '',
    1,
    /What was changed in clients' files before cannot be read in .*Nothing was changed/,
  ],
])(
  'where what a file was cannot be kept, because %s, the file is not written',
  async (_why, taken, expected, words) => {
    const home = notesHome();
    const before = home.read(CURSOR);
    home.write(join('data', taken), '');
    const { code, stderr } = await home.run(['init', '--yes', '--data', home.path('data')]);
    expect([code, stderr]).toEqual([expected, expect.stringMatching(words)]);
    expect(home.read(CURSOR)).toBe(before);
  },
);

test.skipIf(!isRoot).each([
  ['that its owner has closed', CURSOR, 0o444, 'this account may not write it'],
  ['in a folder that is closed', '.cursor', 0o555, 'this account may not write in its folder'],
])('a file %s is left, and the exit code says so', async (_what, closed, mode, words) => {
  const home = notesHome();
  for (const name of ['', '.cursor', CURSOR, 'server', 'project']) {
    chownSync(home.path(name), NOBODY, NOBODY);
    if (name !== CURSOR) chmodSync(home.path(name), 0o755);
  }
  chmodSync(home.path(closed), mode);
  const before = home.files();
  const { code, stdout } = await home.run(['init', '--yes'], { uid: NOBODY });
  expect([code, stdout]).toEqual([4, expect.stringContaining(`is left as it is: ${words}.`)]);
  expect(home.files()).toEqual(before);
});
