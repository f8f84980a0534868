// Nothing that may be a secret is printed; what says which program is started still is.

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { readEntries } from '../../src/clients/entries.ts';
import {
  MASK,
  maskArguments,
  maskConfiguration,
  secretsOf,
  shownAddress,
  withoutSecrets,
} from '../../src/clients/masking.ts';

describe('arguments are shown', () => {
  test.each([
    [
      '-y @modelcontextprotocol/server-filesystem /srv/notes',
      '-y @modelcontextprotocol/server-filesystem /srv/notes',
    ],
    ['run --rm -i ghcr.io/github/github-mcp-server', 'run --rm -i ghcr.io/github/github-mcp-server'],
    ['--port 8080 --read-only', '--port 8080 --read-only'],
    ['--api-key ${KEY} --token=${T}', '--api-key ${KEY} --token=${T}'],
    ['--api-key abc', `--api-key ${MASK}`],
    ['--api-key=abc', `--api-key=${MASK}`],
    ['-H X:y --header Authorization:z', `-H ${MASK} --header ${MASK}`],
    ['-e GITHUB_TOKEN=abc TOKEN=x', `-e GITHUB_TOKEN=${MASK} TOKEN=${MASK}`],
    ['postgres://u:p@db.example/x', `postgres://db.example/${MASK}`],
    ['--url=https://h/mcp/abc?k=1', `--url=https://h/${MASK}`],
    ['sk-live_abcdefgh', MASK],
    ['x ghp_abcdefghij', `x ${MASK}`],
    ['a1b2c3d4e5f6a7b8c9d0e1f2', MASK],
    ['/tmp/a1b2c3d4e5f6a7b8c9d0e1f2/x', `/tmp/${MASK}/x`],
    ['--password --verbose', '--password --verbose'],
  ])('%s', (line, shown) => {
    expect(maskArguments(line.split(' ')).join(' ')).toBe(shown);
  });
});

test.each([
  ['https://h.example', 'https://h.example'],
  ['https://h.example:8443/', 'https://h.example:8443'],
  ['https://u:p@h.example/', `https://h.example/${MASK}`],
  ['https://h.example/mcp', `https://h.example/${MASK}`],
  ['no address', MASK],
])('an address is shown up to its host: %s', (address, shown) => {
  expect(shownAddress(address)).toBe(shown);
});

test('a configuration is shown with its lines and names, and without its values', () => {
  const text = `{
  // the old key was k-0ld
  "account": {"id": 12345, "mail": "ada@example.org", "beta": true},
  /* two
     lines */
  "mcpServers": {
    "notes": {
      "command": "npx", "args": ["--key", "k-arg"], "cwd": "/srv",
      "env": {"NOTES_KEY": "k-env", "FROM": "\${NOTES_KEY}"}
    },
    "web": {"type": "http", "url": "https://h/k-path", "headers": {"Authorization": "Bearer k-head"}}
  }
}`;
  expect(maskConfiguration(text)).toBe(`{
  // …
  "account": {"id": "•••", "mail": "•••", "beta": true},
  /* … 
 … */
  "mcpServers": {
    "notes": {
      "command": "npx", "args": ["--key", "•••"], "cwd": "/srv",
      "env": {"NOTES_KEY": "•••", "FROM": "\${NOTES_KEY}"}
    },
    "web": {"type": "http", "url": "https://h/•••", "headers": {"Authorization": "•••"}}
  }
}`);
});

const secret = fc.stringMatching(/^canary[a-z]{6}$/);

test('whatever is in environments, headers, inputs, comments and elsewhere is not shown', () => {
  fc.assert(
    fc.property(secret, fc.constantFrom(undefined, 2, '\t'), (canary, indent) => {
      const value = {
        any: [canary, { deep: canary }],
        mcpServers: {
          a: {
            command: 'x',
            args: ['--token', canary, `--secret=${canary}`, `K=${canary}`],
            env: { K: canary },
          },
          b: { url: `https://h/${canary}?x=${canary}`, headers: { H: canary }, other: canary },
        },
        inputs: [{ id: 'x', default: canary }],
      };
      const text = `// ${canary}\n${JSON.stringify(value, null, indent)} /* ${canary} */`;
      const shown = maskConfiguration(text);
      expect(shown).not.toContain(canary);
      expect(shown.split('\n')).toHaveLength(text.split('\n').length);
    }),
  );
});

test('what a server says is shown without the values that its entry gives it', () => {
  const text = JSON.stringify({
    mcpServers: {
      a: { command: 'x', args: ['--db=postgres://u:hunter22@h/x'], env: { K: 'k-secret', N: '1' } },
    },
  });
  const read = readEntries(text, { client: 'cursor', member: 'mcpServers' });
  const [entry] = read.ok ? read.entries : [];
  if (entry === undefined) throw new Error('There is no entry.');
  const said = 'Error 1: key k-secret refused by postgres://u:hunter22@h/x (sk-proj-abcdefgh)';
  expect(withoutSecrets(said, secretsOf(entry))).toBe(
    `Error 1: key ${MASK} refused by ${MASK}://u:${MASK}@h/x (${MASK})`,
  );
});

test('of a server that is behind us by its address the host and the names are shown, and nothing else', () => {
  const entry = {
    command: 'node',
    args: [
      'c.js',
      'mcp',
      '--url-env',
      'UPSTREAM_URL',
      '--header-env',
      'Authorization:UPSTREAM_AUTHORIZATION',
    ],
    env: { UPSTREAM_URL: 'https://h.example/k-path?k=k-query', UPSTREAM_AUTHORIZATION: 'Bearer k-header' },
  };
  const shown = maskConfiguration(JSON.stringify({ mcpServers: { a: entry } }));
  expect(JSON.parse(shown).mcpServers.a).toEqual({
    ...entry,
    env: { UPSTREAM_URL: `https://h.example/${MASK}`, UPSTREAM_AUTHORIZATION: MASK },
  });
});
