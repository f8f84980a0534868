// Configurations of clients as people write them, and as they break them.

import { describe, expect, test } from 'vitest';
import { readEntries, type ServerEntry } from '../../src/clients/entries.ts';

const CURSOR = { client: 'cursor', member: 'mcpServers' } as const;
const VSCODE = { client: 'vscode', member: 'servers' } as const;
const CODE = { client: 'claude-code', member: 'mcpServers' } as const;

function entriesOf(text: string, place: Parameters<typeof readEntries>[1] = CURSOR): readonly ServerEntry[] {
  const read = readEntries(text, place);
  if (!read.ok) throw new Error(read.problem);
  return read.entries;
}

const only = (text: string, place?: Parameters<typeof readEntries>[1]): ServerEntry => {
  const [entry, ...others] = entriesOf(text, place);
  if (entry === undefined || others.length > 0) throw new Error('There is not exactly one entry.');
  return entry;
};

describe('a file is read', () => {
  test('with comments, trailing commas and tabs', () => {
    const text = `{
\t// mine
\t"mcpServers": {
\t\t"notes": { "command": "npx", /* pinned */ "args": ["-y", "notes@1",], },
\t},
}`;
    const { server, name } = only(text);
    expect(name).toBe('notes');
    expect(server).toMatchObject({ kind: 'stdio', launch: { command: 'npx', args: ['-y', 'notes@1'] } });
  });

  test('in the shape of VS Code, where other members stand beside the servers', () => {
    const text =
      '{"inputs":[{"id":"k"}],"servers":{"n":{"type":"stdio","command":"n","envFile":".env","cwd":"/x"}}}';
    expect(only(text, VSCODE).server).toMatchObject({ launch: { envFile: '.env', cwd: '/x', args: [] } });
  });

  test('of Claude Code with the servers of each project, which know their folder', () => {
    const text =
      '{"mcpServers":{"a":{"command":"a"}},"projects":{"/p":{"mcpServers":{"b":{"command":"b"}}},"/q":{}}}';
    expect(entriesOf(text, CODE).map(({ path, workspace }) => [path, workspace])).toEqual([
      [['mcpServers', 'a'], undefined],
      [['projects', '/p', 'mcpServers', 'b'], '/p'],
    ]);
  });

  test.each([
    ['an empty one', ''],
    ['one of white space', ' \n'],
    ['one without servers', '{}'],
    ['one whose servers are null', '{"mcpServers":null}'],
    ['one of another shape', '{"servers":{"a":{"command":"a"}}}'],
  ])('%s names no server', (_what, text) => {
    expect(entriesOf(text)).toEqual([]);
  });

  test('keeps each entry exactly as it is written', () => {
    expect(only('{"mcpServers":{"a": {"command" : "x" } }}').text).toBe('{"command" : "x" }');
  });

  test('numbers and truth values in an environment are texts, as clients make them', () => {
    const { server } = only('{"mcpServers":{"a":{"command":"x","env":{"A":1,"B":true,"C":null}}}}');
    expect(server).toMatchObject({ launch: { env: { A: '1', B: 'true' } } });
  });
});

describe('a file that cannot be used has one sentence', () => {
  test.each([
    ['no JSON', 'hello', /^it is not JSON \(line 1, column 1: invalid symbol\)$/],
    [
      'a missing brace',
      '{\n  "mcpServers": {',
      /^it is not JSON \(line 2, column 18: close brace expected\)$/,
    ],
    ['a list', '[]', /^it is JSON, but no object$/],
    ['servers in a list', '{"mcpServers":[]}', /^its mcpServers is no object/],
    ['the servers twice', '{"mcpServers":{},"mcpServers":{}}', /^it has mcpServers twice$/],
    ['two texts after each other', '{}{}', /^it is not JSON/],
  ])('%s', (_what, text, sentence) => {
    const read = readEntries(text, CURSOR);
    expect(read.ok ? '' : read.problem).toMatch(sentence);
  });
});

describe('an entry that cannot be guarded has its sentence while the others are read', () => {
  test.each([
    ['no object', '"x"', /^it is no object$/],
    ['nothing to start', '{}', /^it has neither a command nor a url$/],
    ['both', '{"command":"x","url":"http://x"}', /^it has both/],
    ['an empty command', '{"command":""}', /^its command is no text$/],
    ['a command in a list', '{"command":["x"]}', /^its command is no text$/],
    ['arguments in one text', '{"command":"x","args":"-y z"}', /^its args are no list of texts$/],
    ['a number as argument', '{"command":"x","args":[1]}', /^its args are no list of texts$/],
    ['an environment in a list', '{"command":"x","env":[]}', /^its env is no object$/],
    ['a folder that is no text', '{"command":"x","cwd":1}', /^its cwd is no text$/],
    ['another type', '{"command":"x","type":"sse"}', /its type is not stdio$/],
    ['a member twice', '{"command":"x","command":"y"}', /^it has the member command twice$/],
    ['a sandbox', '{"command":"x","sandboxEnabled":true}', /sandbox/],
    ['the older transport', '{"type":"sse","url":"http://x"}', /^it is of the type sse, the older transport/],
    [
      'an address of another type',
      '{"type":"ws","url":"http://x"}',
      /^it has a url, and its type is not http$/,
    ],
    ['two addresses', '{"url":"http://x","serverUrl":"http://y"}', /^it has both a url and a serverUrl$/],
    ['an address that is no text', '{"url":7}', /^its url is no text$/],
    ['a socket', '{"url":"unix:///run/x"}', /^its url is no http or https address$/],
    ['a sign-in', '{"url":"http://x","oauth":{}}', /^its client signs in for it \(oauth\)/],
    ['an environment for nothing', '{"url":"http://x","env":{}}', /^it has env beside a url/],
    ['headers in a list', '{"url":"http://x","headers":[]}', /^its headers are no object of texts$/],
    [
      'a header that is no text',
      '{"url":"http://x","headers":{"A":{}}}',
      /^its headers are no object of texts$/,
    ],
  ])('%s', (_what, value, sentence) => {
    const entries = entriesOf(`{"mcpServers":{"bad":${value},"good":{"command":"g"}}}`);
    expect(entries[0]?.server).toMatchObject({ kind: 'unknown', problem: expect.stringMatching(sentence) });
    expect(entries[1]?.server.kind).toBe('stdio');
  });

  test('two of one name: neither, because nobody knows which one counts', () => {
    const entries = entriesOf('{"mcpServers":{"a":{"command":"x"},"a":{"command":"y"},"b":{"command":"z"}}}');
    expect(entries.map(({ server }) => server.kind)).toEqual(['unknown', 'unknown', 'stdio']);
  });
});

test.each([
  ['disabled', '{"command":"x","disabled":true}', true],
  ['not enabled', '{"command":"x","enabled":false}', true],
  ['on', '{"command":"x","disabled":false}', false],
])('an entry is known as switched off: %s', (_what, value, isOff) => {
  expect(only(`{"mcpServers":{"a":${value}}}`).isOff).toBe(isOff);
});

test.each([
  ['an address', '{"url":"https://h/x","headers":{"Authorization":"Bearer t"}}'],
  ['an address with its type', '{"type":"http","url":"https://h/x","headers":{"Authorization":"Bearer t"}}'],
  ['another name for it', '{"serverUrl":"https://h/x","headers":{"Authorization":"Bearer t"}}'],
])('a server behind %s is told apart', (_what, value) => {
  expect(only(`{"mcpServers":{"a":${value}}}`).server).toEqual({
    kind: 'http',
    url: 'https://h/x',
    headers: { Authorization: 'Bearer t' },
  });
});

test('an entry that starts us is known, with what it starts in turn', () => {
  const { server } = only(
    '{"mcpServers":{"a":{"command":"/n/node","args":["/x/counterfoil.js","mcp","--name","a","--","npx","-y","s"]}}}',
  );
  expect(server).toMatchObject({
    own: { name: 'a', files: ['/n/node', '/x/counterfoil.js'], inner: { command: 'npx', args: ['-y', 's'] } },
  });
});
