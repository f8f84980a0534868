// The address and the headers of a server for `counterfoil mcp`: by the names of variables, and no value is ever shown.

import { join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import { CleanUps, COUNTERFOIL, counterfoil, LineProcess } from '../gateway/processes.ts';
import { startHttpServer } from './http-server.ts';

const cleanUps = new CleanUps();
afterEach(cleanUps.run);

const SECRET = 'k-secret-41';
const URL_GIVEN = ['--url', 'http://127.0.0.1:9'];

test.each([
  ['a header without an address', ['--header-env', 'A:V'], /give its address with --url or --url-env/],
  ['two addresses', [...URL_GIVEN, '--url-env', 'V'], /--url and --url-env are both given/],
  ['an address and a command', [...URL_GIVEN, '--', 'x'], /A command and an address are both given/],
  ['a variable that is not set', ['--url-env', 'NONE'], /The variable NONE, which is to hold it, is not set/],
  ['a variable that is empty', ['--url-env', 'EMPTY'], /The variable EMPTY, .* is not set or empty/],
  ['no address in it', ['--url-env', 'V'], /The variable V is no http or https address/],
  ['another scheme', ['--url', 'ftp://x'], /--url ftp:\/\/x is no http or https address/],
  [
    'a value in place of a variable',
    [...URL_GIVEN, '--header-env', `A:Bearer ${SECRET}`],
    /--header-env A:… does/,
  ],
  ['no name of a header', [...URL_GIVEN, '--header-env', SECRET], /--header-env … does not name a header/],
  ['a header without its variable', [...URL_GIVEN, '--header-env', 'A:NONE'], /The variable NONE, which/],
  [
    'a variable that its client left',
    [...URL_GIVEN, '--header-env', 'A:LEFT'],
    /still has \$\{TOKEN\} in it/,
  ],
  ['a line end in a value', [...URL_GIVEN, '--header-env', 'A:LINES'], /holds what no header can/],
])('%s is told in one sentence', async (_what, args, sentence) => {
  const data = join(cleanUps.folder(), 'data');
  const env = { V: SECRET, EMPTY: '', LEFT: 'Bearer ${TOKEN}', LINES: `${SECRET}\nX: y` };
  const { code, stdout, stderr } = await counterfoil(['mcp', '--data', data, ...args], { env });
  expect([code, stdout, stderr]).toEqual([2, '', expect.stringMatching(sentence)]);
  expect(stderr).not.toContain(SECRET);
});

test.each([['--no-resident'], []])(
  'the server is asked with its headers, and named by its host alone (%s)',
  async (...flags) => {
    const server = await startHttpServer(cleanUps, '--bearer', SECRET);
    const data = join(cleanUps.folder(), 'data');
    const env = {
      TICKETS_URL: `${server.url}/k-path?key=k-query`,
      TICKETS_AUTH: `Bearer ${SECRET}`,
      COUNTERFOIL_RESIDENT_IDLE: 'PT0.1S',
    };
    const args = ['mcp', '--data', data, ...flags, '--url-env', 'TICKETS_URL'];
    const headers = ['--header-env', 'authorization:TICKETS_AUTH'];
    const gateway = cleanUps.started(
      new LineProcess(process.execPath, [COUNTERFOIL, ...args, ...headers], { env }),
    );
    await gateway.initialize();
    await gateway.request('tools/call', { name: 'look', arguments: {} });
    expect(server.log('look')).toHaveLength(1);
    expect(server.log('refused')).toEqual([]);
    expect(gateway.stderr).toMatch(/writes to 127\.0\.0\.1-[0-9a-f]{6} are recorded in/);
    expect(gateway.stderr).not.toMatch(/k-path|k-query|k-secret/);
    await gateway.end();
  },
);
