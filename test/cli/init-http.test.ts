// `init`, `leave` and `doctor` with servers that are reached by an address: real clients' files, a real server over HTTP.

import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, test } from 'vitest';
import { CleanUps, childrenOf, LineProcess, operationOf, untilAsync } from '../gateway/processes.ts';
import { cursorFile, Home, type JsonOutput } from './home.ts';
import { startHttpServer } from './http-server.ts';

const cleanUps = new CleanUps();
afterEach(cleanUps.run);

const CURSOR = '.cursor/mcp.json';
const SECRET = 'k-secret-41';

interface StdioEntry {
  readonly type?: string;
  readonly command: string;
  readonly args: readonly string[];
  readonly env: { readonly [name: string]: string };
}

function entryIn(text: string, name: string): StdioEntry {
  const { mcpServers, servers } = JSON.parse(text) as {
    readonly [group: string]: { readonly [name: string]: StdioEntry };
  };
  const entry = (mcpServers ?? servers)?.[name];
  if (entry === undefined) throw new Error(`There is no ${name}.`);
  return entry;
}

/** Starts what the configuration says, as its client does: with the variables of its environment filled in. */
function asClient(home: Home, file: string, name: string, values: NodeJS.ProcessEnv = {}): LineProcess {
  const { args, command, env } = entryIn(home.read(file), name);
  const filled = Object.entries(env).map(([variable, text]) => [
    variable,
    text.replace(/\$\{(?:env:|input:)?(\w+)\}/g, (whole, inside: string) => values[inside] ?? whole),
  ]);
  return cleanUps.started(
    new LineProcess(command, args, { env: { ...home.env, ...Object.fromEntries(filled) } }),
  );
}

const foundIn = ({ checks = [] }: JsonOutput, name: string): readonly string[] =>
  checks.map(({ found }) => found).filter((found) => found.includes(name));

/** Files of the data directory that hold a text. */
function filesWith(folder: string, text: string): readonly string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .filter((path) => readFileSync(path, 'latin1').includes(text));
}

describe('a server over HTTP is put behind us', () => {
  test('its credential stays in the file, reaches the server alone, and is on no command line and in no record', async () => {
    const server = await startHttpServer(cleanUps, '--bearer', SECRET);
    const home = new Home(cleanUps);
    const before = cursorFile({
      tickets: { url: server.url, headers: { Authorization: `Bearer ${SECRET}`, 'X-Team': 'blue' } },
    });
    home.write(CURSOR, before);
    const said = await home.run(['init', '--yes']);
    expect(said.stderr).toContain('Asking the server to list the tools');
    expect(said.stdout).toContain('tickets  is to be guarded as tickets');
    expect(said.stdout + said.stderr).not.toContain(SECRET);
    const entry = entryIn(home.read(CURSOR), 'tickets');
    expect(entry.args.slice(1)).toEqual([
      ...['mcp', '--name', 'tickets', '--url-env', 'UPSTREAM_URL'],
      ...['--header-env', 'Authorization:UPSTREAM_AUTHORIZATION', '--header-env', 'X-Team:UPSTREAM_X_TEAM'],
    ]);
    expect(entry.env).toEqual({
      UPSTREAM_URL: server.url,
      UPSTREAM_AUTHORIZATION: `Bearer ${SECRET}`,
      UPSTREAM_X_TEAM: 'blue',
    });

    const client = asClient(home, CURSOR, 'tickets');
    await client.initialize();
    const waiting = operationOf(await client.call('act', { fault: 'answer', mark: 'm' }));
    const { stdout } = await home.run(['show', waiting, '--json']);
    const { digest } = JSON.parse(stdout).operation as { readonly digest: string };
    await home.run(['approve', waiting, '--digest', digest, '--class', 'ordinary']);
    await untilAsync(async () => server.log('record').length === 1, 'the write at the server');
    expect(server.log('record')[0]?.headers).toMatchObject({
      authorization: `Bearer ${SECRET}`,
      'x-team': 'blue',
    });
    const log = readFileSync(join(home.data, 'resident', 'log'), 'utf8');
    const resident = Number(/process (\d+) of version/.exec(log)?.[1]);
    for (const pid of [client.pid, resident, ...childrenOf(resident)]) {
      expect(readFileSync(`/proc/${pid}/cmdline`, 'utf8')).not.toContain(SECRET);
    }
    // The process that outlives its client has no secret of it as its own.
    expect(readFileSync(`/proc/${resident}/environ`, 'utf8')).not.toContain(SECRET);
    await client.end();
    const kept = filesWith(home.data, SECRET);
    expect(kept.filter((path) => !/clients\.jsonl$|client-backups/.test(path))).toEqual([]);
    for (const path of kept) expect(statSync(path).mode & 0o777).toBe(0o600);

    const left = await home.run(['leave', '--yes']);
    expect(left.stdout).toContain('tickets is exactly as it was before init');
    expect(left.stdout + left.stderr).not.toContain(SECRET);
    expect(home.read(CURSOR)).toBe(before);
  });

  test.each([
    ['Cursor', CURSOR, 'mcpServers', {}, '${env:TICKETS_TOKEN}'],
    ['Claude Code', '.claude.json', 'mcpServers', { type: 'http' }, '${TICKETS_TOKEN}'],
    ['VS Code', '.config/Code/User/mcp.json', 'servers', { type: 'http' }, '${env:TICKETS_TOKEN}'],
    ['a project', 'project/.mcp.json', 'mcpServers', { type: 'streamable-http' }, '${TICKETS_TOKEN}'],
  ] as const)(
    'of %s, whose variables are filled in by the client as before, and back byte for byte',
    async (_client, file, group, type, variable) => {
      const server = await startHttpServer(cleanUps, '--bearer', SECRET);
      const home = new Home(cleanUps);
      const entry = { ...type, url: server.url, headers: { Authorization: `Bearer ${variable}` } };
      const before = `${JSON.stringify({ theme: 1, [group]: { tickets: entry } }, null, '\t')}\n`;
      home.write(file, before);
      const values = { TICKETS_TOKEN: SECRET };
      const { code, stdout } = await home.run(['init', '--yes'], { env: values });
      expect([code, stdout]).toEqual([0, expect.stringContaining('reads')]);
      expect(home.read(file)).not.toContain(SECRET);
      expect(entryIn(home.read(file), 'tickets').type).toBe('type' in type ? 'stdio' : undefined);
      const client = asClient(home, file, 'tickets', values);
      await client.initialize();
      const { message } = await client.request('tools/call', { name: 'look', arguments: {} });
      expect(message.result?.content?.[0]?.text).toBe('nothing found');
      await client.end();
      expect(filesWith(home.data, SECRET)).toEqual([]);
      await home.run(['leave', '--yes']);
      expect(home.read(file)).toBe(before);
    },
  );

  test('what a client has to ask for is not asked here; by name it is guarded, and its client fills it in', async () => {
    const server = await startHttpServer(cleanUps, '--bearer', SECRET);
    const home = new Home(cleanUps);
    const file = '.config/Code/User/mcp.json';
    const inputs = [{ type: 'promptString', id: 'token', password: true }];
    const tickets = { type: 'http', url: server.url, headers: { Authorization: 'Bearer ${input:token}' } };
    home.write(file, JSON.stringify({ inputs, servers: { tickets } }));
    const { stdout } = await home.run(['init', '--yes']);
    expect(stdout).toContain(
      'tickets  was not asked: it asks for the input token, which only its client can',
    );
    await home.run(['init', '--yes', '--server', 'tickets']);
    const client = asClient(home, file, 'tickets', { token: SECRET });
    await client.initialize();
    await client.request('tools/call', { name: 'look', arguments: {} });
    expect(server.log('look')).toHaveLength(1);
  });

  test('a second time nothing is left to write, and another client with the same server has the same name', async () => {
    const { url } = await startHttpServer(cleanUps);
    const home = new Home(cleanUps);
    home.write(CURSOR, cursorFile({ tickets: { url, headers: {} } }));
    await home.run(['init', '--yes']);
    home.write('.claude.json', cursorFile({ tickets: { type: 'http', url }, others: { url: `${url}?a=1` } }));
    const { stdout } = await home.run(['init', '--dry-run']);
    expect(stdout).toContain('tickets  is guarded already, as tickets');
    expect(stdout).toContain('tickets  is to be guarded as tickets\n');
    expect(foundIn(await home.json(['doctor']), 'tickets is behind us')).toHaveLength(1);
  });

  test('an entry that was edited since gets its address back with what is there now', async () => {
    const { url } = await startHttpServer(cleanUps);
    const home = new Home(cleanUps);
    home.write(CURSOR, cursorFile({ tickets: { url, headers: { 'X-Team': 'blue' } } }));
    await home.run(['init', '--yes']);
    home.write(CURSOR, home.read(CURSOR).replace('"blue"', '"red"'));
    const { stdout } = await home.run(['leave', '--yes']);
    expect(stdout).toContain('tickets starts its server itself again; what else was changed');
    expect(JSON.parse(home.read(CURSOR))).toEqual({
      mcpServers: { tickets: { url, headers: { 'X-Team': 'red' } } },
    });
  });
});

describe('what cannot be guarded is listed with its sentence, and left as it is', () => {
  test.each([
    [
      'one that asks for a sign-in',
      ['--bearer', SECRET],
      {},
      /^asks for a sign-in \(OAuth\), and only its client/,
    ],
    [
      'one that refuses its credential',
      ['--bearer', SECRET],
      { Authorization: 'Bearer k-old-0' },
      /^does not take the credential in its headers/,
    ],
    [
      'one of the older transport',
      ['--older-transport'],
      {},
      /^does not speak Streamable HTTP, and the older/,
    ],
  ])('%s, also where it is asked for by name; doctor says the same', async (_what, flags, headers, words) => {
    const server = await startHttpServer(cleanUps, ...flags);
    const home = new Home(cleanUps);
    home.write(CURSOR, cursorFile({ web: { url: server.url, headers }, notes: home.toolsEntry() }));
    const before = home.read(CURSOR);
    const output = await home.json(['init', '--yes', '--server', 'web']);
    expect(output.files?.[0]?.servers?.[0]?.problem).toMatch(words);
    expect(home.read(CURSOR)).toBe(before);
    const { stdout } = await home.run(['init', '--dry-run']);
    expect(stdout).toMatch(/web {2}[^\n]*it cannot be guarded[^\n]*It is left as it is\n/);
    expect(stdout).toContain('notes  is to be guarded as notes');
    const [found] = foundIn(await home.json(['doctor']), 'web is not behind us');
    expect(found?.replace(/^.* is not behind us, and /, '')).toMatch(words);
    expect(server.log('record')).toEqual([]);
  });

  test.each([
    [{ type: 'sse', url: 'http://127.0.0.1:9/sse' }, 'it is of the type sse, the older transport'],
    [{ url: 'http://127.0.0.1:9', auth: { CLIENT_ID: 'x' } }, 'its client signs in for it (auth)'],
    [{ url: 'http://127.0.0.1:9', headersHelper: 'x' }, 'its client signs in for it (headersHelper)'],
    [{ url: 'unix:///run/x' }, 'its url is no http or https address'],
  ])('one that its entry alone tells of: %j', async (entry, words) => {
    const home = new Home(cleanUps);
    home.write(CURSOR, cursorFile({ web: entry }));
    const { stdout } = await home.run(['init', '--yes']);
    expect(stdout).toContain(`web  cannot be guarded: ${words}`);
    expect(stdout).toContain('Nothing is to be written.');
    const [found] = foundIn(await home.json(['doctor']), 'web is not behind us');
    expect(found).toContain(`and cannot be guarded: ${words}`);
  });

  test('one that answers everybody and offers a sign-in is left, and taken where it is asked for by name', async () => {
    const { url } = await startHttpServer(cleanUps, '--offers-sign-in');
    const home = new Home(cleanUps);
    home.write(CURSOR, cursorFile({ web: { url } }));
    const { stdout } = await home.run(['init', '--yes']);
    expect(stdout).toMatch(/web {2}offers a sign-in \(OAuth\).*--server takes it all the same/);
    expect(stdout).toContain('Nothing is to be written.');
    await home.run(['init', '--yes', '--server', 'web']);
    expect(entryIn(home.read(CURSOR), 'web').args).toContain('--url-env');
  });
});

test('a server that comes with a project is not asked, and given no credential, before its reader has agreed', async () => {
  const server = await startHttpServer(cleanUps);
  const home = new Home(cleanUps);
  const headers = { Authorization: 'Bearer ${TICKETS_TOKEN}' };
  home.write('project/.mcp.json', cursorFile({ theirs: { type: 'http', url: server.url, headers } }));
  const env = { TICKETS_TOKEN: SECRET };
  const { stdout } = await home.run(['init', '--dry-run'], { env });
  expect(stdout).toContain('theirs  comes with the project, and was not asked; it is left as it is');
  expect(foundIn(await home.json(['doctor']), 'theirs')[0]).toContain('its client reaches it itself');
  expect(server.log()).toEqual([]);
  const { shown } = await home.atTerminal(['init'], [['Ask them? [y/N]', 'n\r']]);
  expect(shown).toContain(`theirs: ${new URL(server.url).origin}/••• with the headers Authorization`);
  expect(server.log()).toEqual([]);
});
