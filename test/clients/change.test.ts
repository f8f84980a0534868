// What is written into a client's file, and that taking it back leaves the file as it was, byte for byte.

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type EntryChange, guardEntries, releaseEntries } from '../../src/clients/change.ts';
import { readEntries, type ServerEntry } from '../../src/clients/entries.ts';
import { addressFrom, addressVariables } from '../../src/clients/own-command.ts';

const CURSOR = { client: 'cursor', member: 'mcpServers' } as const;
const WORDS = ['/n/node', '/x/counterfoil.js', 'mcp', '--name', 'n', '--'];

function allEntries(text: string): readonly ServerEntry[] {
  const read = readEntries(text, CURSOR);
  if (!read.ok) throw new Error(read.problem);
  return read.entries;
}

function stdioEntries(text: string) {
  return allEntries(text).filter(({ server }) => server.kind === 'stdio');
}

function guarded(text: string): { readonly text: string; readonly entries: readonly EntryChange[] } {
  const change = guardEntries(
    text,
    stdioEntries(text).map((entry) => ({ path: entry.path, text: entry.text, words: WORDS })),
  );
  if ('differs' in change) throw new Error(`${change.differs.join('.')} differs`);
  return change;
}

/** What a client starts, by name. */
const commandsOf = (text: string) =>
  Object.fromEntries(
    stdioEntries(text).map(({ name, server }) => [
      name,
      server.kind === 'stdio' ? [server.launch.command, ...server.launch.args] : [],
    ]),
  );

const TEXTS: readonly (readonly [string, string])[] = [
  ['one line', '{"mcpServers":{"a":{"command":"npx","args":["-y","s"]}}}'],
  ['no arguments', '{"mcpServers":{"a":{"command":"srv"}}}'],
  ['no arguments, on lines', '{\n  "mcpServers": {\n    "a": {\n      "command": "srv"\n    }\n  }\n}\n'],
  ['an empty list', '{"mcpServers":{"a":{"command":"srv","args":[ ]}}}'],
  ['arguments first', '{"mcpServers":{"a":{"args":["-y"],"command":"srv","env":{"K":"v"}}}}'],
  [
    'comments in every place, and trailing commas',
    `// top
{ /* in */ "mcpServers": { // group
    "a": { // entry
      "command": /* why */ "npx", // after
      "args": [ // args
        // first
        "-y", /* the name */ "s", // end
      ],
    }, // done
    /* "old": {"command": "x"} */
  },
}
// bottom`,
  ],
  [
    'tabs',
    '{\n\t"mcpServers": {\n\t\t"a": {\n\t\t\t"command": "npx",\n\t\t\t"args": [\n\t\t\t\t"s"\n\t\t\t]\n\t\t}\n\t}\n}',
  ],
  [
    'CRLF',
    '{\r\n  "mcpServers": {\r\n    "a": {\r\n      "command": "npx",\r\n      "args": [\r\n        "s"\r\n      ]\r\n    }\r\n  }\r\n}\r\n',
  ],
  [
    'escapes that nobody else would write',
    '{"mcpServers":{"\\u0061":{"command":"n\\u0070x","args":["\\/s"]}}}',
  ],
  [
    'several servers',
    '{"mcpServers":{"b":{"command":"1"},"a":{"command":"2","args":["x"]},"h":{"url":"http://x"}}}',
  ],
];

describe('an entry is put behind us, and taken back', () => {
  test.each(TEXTS)('%s', (_what, text) => {
    const change = guarded(text);
    const before = commandsOf(text);
    expect(commandsOf(change.text)).toEqual(
      Object.fromEntries(Object.entries(before).map(([name, words]) => [name, [...WORDS, ...words]])),
    );
    const release = releaseEntries(change.text, change.entries);
    expect(release.text).toBe(text);
    expect(new Set(release.released)).toEqual(new Set(['restored']));
  });

  test('each word comes on a line of its own where the others do, with the file’s own line ends', () => {
    const text = '{"mcpServers":{"a":{\r\n "command": "npx",\r\n "args": [\r\n  "s"]}}}';
    expect(guarded(text).text).toContain('"args": [\r\n  "/x/counterfoil.js",\r\n  "mcp",\r\n');
  });

  test('comments, order and all other members stay', () => {
    const [, text = ''] = TEXTS.find(([what]) => what.startsWith('comments')) ?? [];
    const after = guarded(text).text;
    for (const comment of text.match(/\/\/.*|\/\*.*?\*\//g) ?? []) expect(after).toContain(comment);
  });
});

test('an entry that is no longer as it was shown changes nothing', () => {
  const text = '{"mcpServers":{"a":{"command":"x"}}}';
  const [entry] = stdioEntries(text);
  if (entry === undefined) throw new Error('There is no entry.');
  const wanted = [{ path: entry.path, text: entry.text, words: WORDS }];
  expect(guardEntries(text.replace('"x"', '"y"'), wanted)).toEqual({ differs: ['mcpServers', 'a'] });
  expect(guardEntries('{}', wanted)).toEqual({ differs: ['mcpServers', 'a'] });
  expect(guardEntries(`{"theme":1,${text.slice(1)}`, wanted)).toMatchObject({
    text: expect.stringContaining('"theme":1'),
  });
});

describe('what somebody has changed since stays', () => {
  const TEXT = '{"mcpServers":{"a":{"command":"npx","args":["-y","s"]},"b":{"command":"t"}}}';

  test.each([
    ['another member of the file', (text: string) => text.replace('{"mcp', '{"theme":"dark","mcp')],
    ['another server', (text: string) => text.replace('"b":', '"new":{"command":"z"},"b":')],
    ['white space', (text: string) => text.replace('{"mcp', '{\n\n  "mcp')],
  ])('%s', (_what, edit) => {
    const change = guarded(TEXT);
    const release = releaseEntries(edit(change.text), change.entries);
    expect(release.text).toBe(edit(TEXT));
    expect(release.released).toEqual(['restored', 'restored']);
  });

  test('a member of our entry: only our words are taken out', () => {
    const change = guarded(TEXT);
    const edited = change.text.replace('"args":["/x', '"env":{"K":"v"},"args":["/x');
    const release = releaseEntries(edited, change.entries);
    expect(release.released).toEqual(['taken_out', 'restored']);
    expect(release.text).toBe(TEXT.replace('"args"', '"env":{"K":"v"},"args"'));
  });

  test('the whole file, written anew by its client', () => {
    const change = guarded(TEXT);
    const rewritten = JSON.stringify(JSON.parse(change.text), null, 2);
    const release = releaseEntries(rewritten, change.entries);
    expect(JSON.parse(release.text)).toEqual({
      mcpServers: { a: { command: 'npx', args: ['-y', 's'] }, b: { command: 't' } },
    });
    expect(release.released).toEqual(['taken_out', 'taken_out']);
  });

  test('an argument that was added to the server’s own', () => {
    const change = guarded(TEXT);
    const release = releaseEntries(change.text.replace('"s"]', '"s","--more"]'), change.entries);
    expect(commandsOf(release.text)['a']).toEqual(['npx', '-y', 's', '--more']);
  });

  test('a list of arguments that was empty is empty again, and one that was not there is gone', () => {
    const text = '{"mcpServers":{"a":{"args":[],"command":"s"},"b":{"command":"t"}}}';
    const change = guarded(text);
    const release = releaseEntries(JSON.stringify(JSON.parse(change.text), null, 1), change.entries);
    expect(JSON.parse(release.text)).toEqual(JSON.parse(text));
  });

  test.each([
    ['an entry that is gone', '{"mcpServers":{}}', 'missing'],
    ['an empty file', '', 'missing'],
    ['an entry that starts its server itself again', TEXT, 'not_ours'],
    [
      'an entry that starts us with something else',
      '{"mcpServers":{"a":{"command":"counterfoil","args":["mcp","--url","http://x"]},"b":{"command":"counterfoil","args":["mcp"]}}}',
      'no_command',
    ],
    ['an entry that became something else', '{"mcpServers":{"a":{"url":"http://x"},"b":7}}', 'not_ours'],
  ])('%s is left as it is', (_what, now, how) => {
    const release = releaseEntries(now, guarded(TEXT).entries);
    expect(release.text).toBe(now);
    expect(release.released).toEqual([how, how]);
  });

  test('a file that is no JSON any more is not touched, and says so', () => {
    const release = releaseEntries('{"mcp', guarded(TEXT).entries);
    expect(release).toMatchObject({ text: '{"mcp', edits: [], problem: expect.stringContaining('not JSON') });
  });
});

const name = fc
  .string({ unit: 'grapheme', minLength: 1, maxLength: 8 })
  .filter((each) => each !== '__proto__');
const word = fc.string({ unit: 'grapheme', maxLength: 12 });
const server = fc.record(
  {
    command: fc.string({ unit: 'grapheme', minLength: 1, maxLength: 12 }),
    args: fc.array(word, { maxLength: 4 }),
    env: fc.dictionary(name, word, { maxKeys: 2 }),
    note: fc.jsonValue({ maxDepth: 1 }),
  },
  { requiredKeys: ['command'] },
);
const configuration = fc.record({
  first: fc.jsonValue({ maxDepth: 2 }),
  mcpServers: fc.dictionary(name, server, { maxKeys: 4 }),
  last: fc.jsonValue({ maxDepth: 2 }),
});
const layout = fc.constantFrom<(value: unknown) => string>(
  (value) => JSON.stringify(value),
  (value) => JSON.stringify(value, null, 2),
  (value) => JSON.stringify(value, null, '\t').replaceAll('\n', '\r\n'),
  (value) => JSON.stringify(value, null, 1).replaceAll('\n', ' // x\n'),
);

test('whatever is in a configuration, and however it is laid out, taking back gives the same bytes', () => {
  fc.assert(
    fc.property(configuration, layout, (value, write) => {
      const text = write(value);
      const change = guarded(text);
      for (const [server, words] of Object.entries(commandsOf(text))) {
        expect(commandsOf(change.text)[server]).toEqual([...WORDS, ...words]);
      }
      expect(releaseEntries(change.text, change.entries).text).toBe(text);
    }),
    { numRuns: 300 },
  );
});

// ── Servers that are reached by an address ─────────────────────────────────────────────────────────────────────

const ADDRESS_WORDS = ['/n/node', '/x/counterfoil.js', 'mcp', '--name', 'n'];

function addressGuarded(text: string): { readonly text: string; readonly entries: readonly EntryChange[] } {
  const wanted = allEntries(text).flatMap(({ path, server, text: entry }) => {
    if (server.kind !== 'http') return [];
    const address = addressVariables(Object.keys(server.headers));
    const headers = address.headers.flatMap((header) => [
      '--header-env',
      `${header.name}:${header.variable}`,
    ]);
    return [{ path, text: entry, address, words: [...ADDRESS_WORDS, '--url-env', address.url, ...headers] }];
  });
  const change = guardEntries(text, wanted);
  if ('differs' in change) throw new Error(`${change.differs.join('.')} differs`);
  return change;
}

/** What a client reaches, by name: directly, or through us. */
const addressesOf = (text: string) =>
  Object.fromEntries(
    allEntries(text).flatMap(({ name, server }) => {
      if (server.kind === 'http') return [[name, { url: server.url, headers: server.headers }]];
      if (server.kind === 'unknown' || server.own?.address === undefined) return [];
      return [[name, addressFrom(server.own.address, (variable) => server.launch.env[variable])]];
    }),
  );

const ADDRESS_TEXTS: readonly (readonly [string, string])[] = [
  ['one line', '{"mcpServers":{"a":{"type":"http","url":"http://x/y","headers":{"A":"b","X-K":"${K}"}}}}'],
  ['no headers', '{"mcpServers":{"a":{"url":"http://x"}}}'],
  ['no headers, on lines', '{\n  "mcpServers": {\n    "a": {\n      "url": "http://x"\n    }\n  }\n}\n'],
  ['empty headers', '{"mcpServers":{"a":{"headers":{ },"url":"http://x"}}}'],
  [
    'another name for the address',
    '{"mcpServers":{"a":{"serverUrl":"http:\\/\\/x","headers":{"\\u0041":"b"}}}}',
  ],
  ['a number as a header', '{"mcpServers":{"a":{"url":"http://x","headers":{"X-Tenant":7}}}}'],
  [
    'comments, tabs and trailing commas',
    `{
\t"mcpServers": { // group
\t\t"a": {
\t\t\t// the address
\t\t\t"url": /* eu */ "http://x", // here
\t\t\t"headers": {
\t\t\t\t// a key
\t\t\t\t"Authorization": "Bearer \\u0062", // until May
\t\t\t\t"X-Team": "blue",
\t\t\t},
\t\t\t"disabled": false,
\t\t},
\t},
}`,
  ],
  [
    'CRLF',
    '{\r\n "mcpServers": {\r\n  "a": {\r\n   "url": "http://x",\r\n   "headers": {\r\n    "A": "b"\r\n   }\r\n  }\r\n }\r\n}',
  ],
];

describe('an entry with an address is put behind us, and taken back', () => {
  test.each(ADDRESS_TEXTS)('%s', (_what, text) => {
    const change = addressGuarded(text);
    expect(stdioEntries(change.text)).toHaveLength(1);
    expect(addressesOf(change.text)).toEqual(addressesOf(text));
    const release = releaseEntries(change.text, change.entries);
    expect(release.text).toBe(text);
    expect(release.released).toEqual(['restored']);
  });

  test.each(ADDRESS_TEXTS)('%s, also where its client has written the file anew', (_what, text) => {
    const change = addressGuarded(text);
    const [entry] = stdioEntries(change.text);
    const server = entry?.server;
    if (server?.kind !== 'stdio') throw new Error('There is no entry.');
    const { args, command, env } = server.launch;
    const plain = { type: 'stdio', command, args, env };
    const release = releaseEntries(JSON.stringify({ mcpServers: { a: plain } }), change.entries);
    expect(release.released).toEqual(['taken_out']);
    expect(addressesOf(release.text)).toEqual(addressesOf(text));
    expect(release.text).not.toContain('UPSTREAM');
  });

  test('what somebody has added to the environment stays, and so does a secret that was changed', () => {
    const text = '{"mcpServers":{"a":{"url":"http://x","headers":{"A":"old"}}}}';
    const change = addressGuarded(text);
    const edited = change.text.replace('"old"', '"new","NODE_OPTIONS":"-x"');
    const release = releaseEntries(edited, change.entries);
    expect(JSON.parse(release.text)).toEqual({
      mcpServers: { a: { url: 'http://x', headers: { A: 'new' }, env: { NODE_OPTIONS: '-x' } } },
    });
  });

  test.each([
    ['an address that is not in the entry any more', '"env":{}', 'no_command'],
    ['an entry without an environment', '"note":1', 'no_command'],
  ])('%s is left as it is', (_what, member, how) => {
    const { entries } = addressGuarded('{"mcpServers":{"a":{"url":"http://x"}}}');
    const now = `{"mcpServers":{"a":{"command":"counterfoil","args":["mcp","--url-env","UPSTREAM_URL"],${member}}}}`;
    const release = releaseEntries(now, entries);
    expect(release.text).toBe(now);
    expect(release.released).toEqual([how]);
  });
});

const headerName = fc.stringMatching(/^[A-Za-z][A-Za-z0-9_.-]{0,8}$/).filter((each) => each !== '__proto__');
const addressed = fc.record(
  {
    type: fc.constantFrom('http', 'streamable-http'),
    url: fc.webUrl(),
    headers: fc.dictionary(headerName, word, { maxKeys: 3 }),
    note: fc.jsonValue({ maxDepth: 1 }),
  },
  { requiredKeys: ['url'] },
);
const withAddresses = fc.record({
  first: fc.jsonValue({ maxDepth: 2 }),
  mcpServers: fc.dictionary(name, fc.oneof(addressed, server), { maxKeys: 4 }),
});

test('whatever stands beside an address, it is reached as before and taking back gives the same bytes', () => {
  fc.assert(
    fc.property(withAddresses, layout, (value, write) => {
      const text = write(value);
      const change = addressGuarded(text);
      expect(addressesOf(change.text)).toEqual(addressesOf(text));
      expect(releaseEntries(change.text, change.entries).text).toBe(text);
    }),
    { numRuns: 300 },
  );
});
