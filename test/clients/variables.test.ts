// Variables are filled in as the entry's own client fills them in, or the server is not started.

import { describe, expect, test } from 'vitest';
import { readEntries } from '../../src/clients/entries.ts';
import type { ClientId } from '../../src/clients/places.ts';
import { fillIn } from '../../src/clients/variables.ts';

const SURROUNDINGS = {
  platform: 'linux',
  home: '/h',
  project: '/p',
  environment: { HOST: 'h.example', EMPTY: '' },
};

function filled(argument: string, client: ClientId, workspace?: string) {
  const text = JSON.stringify({ mcpServers: { a: { command: 'x', args: [argument] } } });
  const read = readEntries(text, { client, member: 'mcpServers' }, workspace);
  const [entry] = read.ok ? read.entries : [];
  if (entry === undefined) throw new Error('There is no entry.');
  const result = fillIn(entry, client, SURROUNDINGS);
  return result.ok ? result.launch?.args[0] : { problem: result.problem };
}

describe('a variable', () => {
  test.each<readonly [ClientId, string, string]>([
    ['claude-code', '${HOST}', 'h.example'],
    ['claude-code', 'a${HOST}b${HOST}', 'ah.examplebh.example'],
    ['claude-code', '${NONE:-else}', 'else'],
    ['claude-code', '${HOST:-else}', 'h.example'],
    ['claude-code', '${NONE:-}', ''],
    ['claude-code', '${EMPTY}', ''],
    ['portable', '${HOST}', 'h.example'],
    ['cursor', '${env:HOST}', 'h.example'],
    ['cursor', '${userHome}/x', '/h/x'],
    ['cursor', '${workspaceFolder}${pathSeparator}x', '/w/x'],
    ['vscode', '${workspaceFolderBasename}${/}x', 'w/x'],
    // What a client does not know it leaves as it is.
    ['claude-code', '$HOST', '$HOST'],
    ['claude-code', '${env:HOST}', '${env:HOST}'],
    ['claude-desktop', '${HOST}', '${HOST}'],
    ['cursor', '${HOST}', '${HOST}'],
  ])('for %s: %s', (client, text, value) => {
    expect(filled(text, client, '/w')).toBe(value);
  });

  test.each<readonly [ClientId, string, RegExp]>([
    ['claude-code', '${NONE}', /^uses the variable NONE, which is not set here$/],
    ['vscode', '${env:NONE}', /^uses the variable NONE/],
    ['vscode', '${input:token}', /^asks for the input token, which only its client can ask for$/],
    ['vscode', '${command:x.y}', /only its client can fill in$/],
    ['cursor', '${workspaceFolder}', /^names the folder of a workspace, and none is open here$/],
  ])('that has no value here is told, for %s: %s', (client, text, problem) => {
    expect(filled(text, client)).toEqual({ problem: expect.stringMatching(problem) });
  });
});

test('a server of a project runs in the project’s folder, unless its entry names another', () => {
  const read = readEntries(
    '{"mcpServers":{"a":{"command":"x"},"b":{"command":"x","cwd":"/c"}}}',
    {
      client: 'portable',
      member: 'mcpServers',
    },
    '/p',
  );
  const folders = (read.ok ? read.entries : []).map((entry) => {
    const result = fillIn(entry, 'portable', SURROUNDINGS);
    return result.ok ? result.launch?.cwd : result.problem;
  });
  expect(folders).toEqual(['/p', '/c']);
});

describe('a server that is reached by an address', () => {
  const address = (value: object, client: ClientId = 'claude-code') => {
    const read = readEntries(JSON.stringify({ mcpServers: { a: value } }), { client, member: 'mcpServers' });
    const [entry] = read.ok ? read.entries : [];
    if (entry === undefined) throw new Error('There is no entry.');
    const result = fillIn(entry, client, SURROUNDINGS);
    return result.ok ? result.address : result.problem;
  };
  const own = (env: object) => ({
    command: 'counterfoil',
    args: ['mcp', '--url-env', 'U', '--header-env', 'A:V'],
    env,
  });

  test('has its variables filled in, before it is behind us and after', () => {
    const reached = { url: 'http://h.example/x', headers: { A: 'b h.example' } };
    expect(address({ url: 'http://${HOST}/x', headers: { A: 'b ${HOST}' } })).toEqual(reached);
    expect(address(own({ U: 'http://${HOST}/x', V: 'b ${HOST}' }))).toEqual(reached);
    // What its entry does not set, its process has from its client.
    expect(
      address({ ...own({ U: 'http://h' }), args: ['mcp', '--url-env', 'U', '--header-env', 'A:HOST'] }),
    ).toEqual({
      url: 'http://h',
      headers: { A: 'h.example' },
    });
  });

  test('is not asked where one of them has no value', () => {
    expect(address({ url: 'http://h', headers: { A: '${NONE}' } })).toMatch(/^uses the variable NONE/);
    expect(address(own({ U: 'http://h' }))).toBe('uses the variable V, which is not set here');
    expect(address({ url: 'http://h', headers: { A: '${input:t}' } }, 'vscode')).toMatch(
      /^asks for the input t/,
    );
  });
});
