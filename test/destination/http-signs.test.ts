// What a server over HTTP shows beside the protocol: real servers, in processes of their own.

import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, test } from 'vitest';
import { offersSignIn, speaksOlderTransport } from '../../src/destination/mcp/http-signs.ts';
import { startHttpServer } from '../cli/http-server.ts';
import { CleanUps } from '../gateway/processes.ts';

const cleanUps = new CleanUps();
afterEach(cleanUps.run);

describe('a sign-in is seen', () => {
  test.each([
    [['--offers-sign-in'], true],
    [['--bearer', 'k'], false],
    [[], false],
  ])('of a server %j: %s', async (flags, expected) => {
    const { log, url } = await startHttpServer(cleanUps, ...flags);
    expect(await offersSignIn(url)).toBe(expected);
    // At the server's own path first, and then at the root.
    expect(log('metadata')).toHaveLength(expected ? 1 : 2);
  });

  test.each([
    ['a page', 200, 'text/html', '<h1>Welcome</h1>'],
    ['no servers', 200, 'application/json', '{"resource":"x","authorization_servers":[]}'],
    ['a redirect', 302, 'text/plain', ''],
  ])('and not in %s', async (_what, status, type, text) => {
    const server = createServer((_request, response) => {
      response.writeHead(status, { 'content-type': type, location: 'http://127.0.0.1:9/' }).end(text);
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    cleanUps.add(() => new Promise<void>((resolve) => server.close(() => resolve())));
    const { port } = server.address() as AddressInfo;
    expect(await offersSignIn(`http://127.0.0.1:${port}/mcp`)).toBe(false);
    server.closeAllConnections();
  });

  test('and not where nobody is', async () => {
    expect(await offersSignIn('http://127.0.0.1:9/mcp')).toBe(false);
    expect(await speaksOlderTransport('http://127.0.0.1:9/mcp', {})).toBe(false);
  });
});

test.each([
  [['--older-transport'], true],
  [['--no-get'], false],
])('the older transport is seen by its first event (%j: %s)', async (flags, expected) => {
  const { url } = await startHttpServer(cleanUps, ...flags);
  expect(await speaksOlderTransport(url, { authorization: 'Bearer k' })).toBe(expected);
});
