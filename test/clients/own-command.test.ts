// Our own command in somebody's configuration is known again, in every form in which people and init write it.

import { describe, expect, test } from 'vitest';
import { addressFrom, addressVariables, findOwnCommand, ownWords } from '../../src/clients/own-command.ts';

const split = (line: string) => {
  const [command = '', ...args] = line.split(' ');
  return { command, args };
};

describe('a command is ours', () => {
  test.each([
    ['counterfoil mcp -- npx -y s', 'npx -y s'],
    ['npx -y counterfoil mcp -- s', 's'],
    ['npx -y counterfoil@0.1.0 mcp --data /d -- s --flag', 's --flag'],
    ['/usr/bin/node /opt/counterfoil/dist/cli/counterfoil.js mcp --name n -- s', 's'],
    ['cmd /c npx -y counterfoil@0.1.0 mcp --name n -- cmd /c npx s', 'cmd /c npx s'],
    ['C:\\n\\node.exe C:\\x\\counterfoil.js mcp --name n -- s -- t', 's -- t'],
  ])('%s', (line, inner) => {
    expect(findOwnCommand(split(line))?.inner).toEqual(split(inner));
  });

  test('with the words that stand before the server’s own', () => {
    const words = ownWords({ words: ['node', '/x/counterfoil.js'] }, { name: 'n', data: '/d' });
    const [command, ...args] = [...words, 's', 'a'];
    expect(findOwnCommand({ command, args })).toEqual({
      name: 'n',
      data: '/d',
      files: ['/x/counterfoil.js'],
      inner: { command: 's', args: ['a'] },
      address: undefined,
      ownWords: words.length,
    });
  });

  test('also where it starts no command', () => {
    expect(findOwnCommand(split('counterfoil mcp --name=n --url https://h'))).toMatchObject({
      name: 'n',
      inner: undefined,
      address: { text: 'https://h', variable: undefined, headers: [] },
    });
  });

  test('with the variables that hold an address and its headers', () => {
    const variables = addressVariables(['Authorization', 'X-Api.Key', 'x_api-key', 'Url']);
    const names = ['UPSTREAM_AUTHORIZATION', 'UPSTREAM_X_API_KEY', 'UPSTREAM_X_API_KEY_2', 'UPSTREAM_URL_2'];
    expect(variables.headers.map(({ variable }) => variable)).toEqual(names);
    const words = ownWords({ words: ['node', '/x/counterfoil.js'] }, { name: 'n', address: variables });
    const [command = '', ...args] = words;
    expect(findOwnCommand({ command, args })).toMatchObject({
      inner: undefined,
      address: { text: undefined, variable: 'UPSTREAM_URL', headers: variables.headers },
    });
  });
});

test('an address is what its variables hold, and the one that is missing is named', () => {
  const own = { text: undefined, variable: 'U', headers: [{ name: 'A', variable: 'V' }] };
  const values: { readonly [name: string]: string } = { U: 'http://h', V: 'v' };
  expect(addressFrom(own, (name) => values[name])).toEqual({ url: 'http://h', headers: { A: 'v' } });
  expect(addressFrom(own, (name) => (name === 'U' ? 'http://h' : undefined))).toEqual({ missing: 'V' });
  expect(addressFrom(own, () => undefined)).toEqual({ missing: 'U' });
});

test.each([
  'npx -y counterfoil-notes mcp -- s',
  'npx -y some-server mcp',
  'counterfoil show --last',
  'npx s -- counterfoil mcp',
  'mcp',
])('a command is not ours: %s', (line) => {
  expect(findOwnCommand(split(line))).toBeUndefined();
});
