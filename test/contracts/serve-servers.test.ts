import { describe, expect, test } from 'vitest';
import { type ListedServer, readServersFile } from '../../src/contracts/serve-servers.ts';

const environment = { SET: 'value', EMPTY: '', COUNTERFOIL_INPUT_API_KEY: 'typed' };

function read(text: string, more: Record<string, string> = {}): readonly ListedServer[] {
  const file = readServersFile(text, 'mcp.json', {
    environment: { ...environment, ...more },
    home: '/folk/mara',
  });
  if (!file.ok) throw new Error(JSON.stringify(file.problems));
  return file.servers;
}

const one = (entry: object): ListedServer | undefined =>
  read(JSON.stringify({ mcpServers: { one: entry } }))[0];

describe('files of MCP clients', () => {
  test('mcpServers, as Claude and Cursor have it, beside whatever else is in the file', () => {
    const text = JSON.stringify({
      numStartups: 12,
      mcpServers: {
        files: { type: 'stdio', command: 'npx', args: ['-y', 'server'], env: { KEY: '${SET}', N: 3 } },
        web: {
          type: 'http',
          url: 'https://mcp.example.com/mcp',
          headers: { Authorization: 'Bearer ${SET}' },
        },
      },
    });
    expect(read(text)).toEqual([
      { name: 'files', server: { command: 'npx', args: ['-y', 'server'], env: { KEY: 'value', N: '3' } } },
      {
        name: 'web',
        server: { url: 'https://mcp.example.com/mcp', headers: { Authorization: 'Bearer value' } },
      },
    ]);
  });

  test('servers with inputs, as VS Code has it, with comments and a comma too many', () => {
    const text = `// of the project
    {
      "inputs": [{ "type": "promptString", "id": "api-key", "password": true }],
      "servers": {
        "the server": { /* started */ "type": "stdio", "command": "\${userHome}/bin/it", "args": ["--key=\${input:api-key}", "http://x//y"], },
        "other": { "type": "stdio", "command": "it", "args": ["\${input:who}"] }
      }
    }`;
    expect(read(text)).toEqual([
      {
        name: 'the-server',
        server: { command: '/folk/mara/bin/it', args: ['--key=typed', 'http://x//y'], env: {} },
      },
      {
        name: 'other',
        problem: 'It asks for the input who: set COUNTERFOIL_INPUT_WHO in its place.',
      },
    ]);
  });

  test('our own file is as strict as before, and its variables are filled in', () => {
    const own = readServersFile('servers: {a: {command: it, colour: red}}', 'serve.yaml', {
      environment,
      home: '/',
    });
    expect(own.ok).toBe(false);
    expect(read('servers: {a: {command: "${SET}"}, b: {command: "${UNSET}"}}')).toEqual([
      { name: 'a', server: { command: 'value' } },
      { name: 'b', problem: 'It uses the variable UNSET, which is not set.' },
    ]);
  });

  const REFUSED: readonly (readonly [string, object, RegExp])[] = [
    [
      'a variable that is not set',
      { command: '${UNSET}' },
      /^It uses the variable UNSET, which is not set\.$/,
    ],
    [
      'two that are not set, and one of them twice',
      { command: '${UNSET}', args: ['${env:OTHER}', '${UNSET}'] },
      /^It uses the variable UNSET, which is not set and uses the variable OTHER, which is not set\.$/,
    ],
    [
      'the folder of a workspace',
      { command: '${workspaceFolder}/x' },
      /uses \$\{workspaceFolder\}, which only its client/,
    ],
    [
      'a setting of its client',
      { command: '${config:a.b}' },
      /uses \$\{config:a\.b\}, which only its client/,
    ],
    ['neither command nor url', { args: [] }, /neither command nor url/],
    ['both', { command: 'a', url: 'http://b' }, /both command and url/],
    ['the older transport', { type: 'sse', url: 'http://b' }, /type sse/],
    ['an address that is none', { url: 'ftp://secret' }, /^Its url is no http or https address\.$/],
    ['an entry that is switched off', { command: 'a', disabled: true }, /switched off/],
    ['args that are no texts', { command: 'a', args: [1] }, /args are no list of texts/],
    ['an envFile', { command: 'a', envFile: '.env' }, /envFile/],
    [
      'a server that is behind us already',
      { command: 'npx', args: ['-y', 'counterfoil', 'mcp', '--', 'it'] },
      /behind counterfoil already/,
    ],
    [
      'the same, by its file',
      { command: 'node', args: ['/x/dist/cli/counterfoil.js', 'mcp', '--', 'it'] },
      /behind counterfoil already/,
    ],
  ];
  for (const [what, entry, sentence] of REFUSED) {
    test(`${what} is told of that server alone`, () => {
      expect(one(entry)?.problem).toMatch(sentence);
      const beside = read(JSON.stringify({ mcpServers: { one: entry, good: { command: 'it' } } }));
      expect(beside[1]).toEqual({ name: 'good', server: { command: 'it', args: [], env: {} } });
    });
  }

  test('a variable has another value where it is not set, and where it is empty', () => {
    expect(one({ command: '${UNSET:-x}${EMPTY:-y}${SET:-z}${EMPTY}${UNSET:-}${env:SET}' })?.server).toEqual({
      command: 'xyvaluevalue',
      args: [],
      env: {},
    });
  });

  test('a value is not looked through for variables again', () => {
    const [server] = read(JSON.stringify({ mcpServers: { one: { command: '${TRICK}' } } }), {
      TRICK: '${SET}',
    });
    expect(server?.server?.command).toBe('${SET}');
  });

  test('two names that are one in an address are told apart', () => {
    const [first, second] = read(
      JSON.stringify({ mcpServers: { 'my server': { command: 'a' }, 'my/server': { command: 'b' } } }),
    );
    expect(first?.name).toBe('my-server');
    expect(second?.problem).toBe('In an address its name would be my-server, as that of my server is.');
  });
});
