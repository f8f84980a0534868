// The seam where somebody else will say who asks: what one principal began is nobody else's.

import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, expect, test } from 'vitest';
import { composeHttpGateway } from '../../../src/compose.ts';
import { loadGatewaySetup } from '../../../src/contracts/load.ts';
import { CleanUps, INITIALIZE, operationsIn, until } from '../processes.ts';

const MODERN_SERVER = fileURLToPath(new URL('fixtures/modern-server.mjs', import.meta.url));
const LEGACY_SERVER = fileURLToPath(new URL('fixtures/legacy-server.mjs', import.meta.url));
const cleanUps = new CleanUps();
afterEach(cleanUps.run);

async function setup(file: string) {
  const folder = cleanUps.folder();
  const data = join(folder, 'data');
  const text = 'destination: offer\ntools: {make: {class: ordinary}, make_asked: {class: ordinary}}\n';
  const loaded = loadGatewaySetup(text, 'offer.yaml', { readText: () => ({ reason: 'there is none' }) });
  if (!loaded.ok) throw new Error('The configuration of this test is wrong.');
  const { config, contracts, bindings } = loaded;
  const args = [file, join(folder, 'log'), 'stdio'];
  const gateway = await composeHttpGateway({
    data,
    servers: [
      {
        name: 'offer',
        destination: 'offer',
        reach: { command: process.execPath, args },
        rules: { config, contracts, bindings },
        run: undefined,
      },
    ],
    host: '127.0.0.1',
    port: 0,
    hostNames: [],
    authenticate: async ({ headers }) => {
      const name = /^Bearer (\w+)$/.exec(headers.authorization ?? '')?.[1];
      if (name !== undefined) return { principal: name };
      const message = 'A bearer token is needed.';
      return { refusal: { status: 401, code: 7003, message, headers: { 'www-authenticate': 'Bearer' } } };
    },
    settings: {},
    where: 'here',
    report: () => {},
    reached: () => {},
    version: '0',
  });
  cleanUps.add(() => gateway.close());
  const post = (who: string | undefined, message: object, headers: Record<string, string> = {}) =>
    fetch(`http://127.0.0.1:${gateway.port}/mcp`, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
        ...(who === undefined ? {} : { authorization: `Bearer ${who}` }),
        ...headers,
      },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, ...message }),
    });
  const log = (): string =>
    existsSync(join(folder, 'log')) ? readFileSync(join(folder, 'log'), 'utf8') : '';
  return { data, gateway, log, post };
}

const stateless = (name: string, more: object = {}) =>
  [
    {
      method: 'tools/call',
      params: {
        name,
        arguments: { title: 'x' },
        _meta: {
          'io.modelcontextprotocol/protocolVersion': '2026-07-28',
          'io.modelcontextprotocol/clientCapabilities': { elicitation: {} },
        },
        ...more,
      },
    },
    { 'mcp-protocol-version': '2026-07-28', 'mcp-method': 'tools/call', 'mcp-name': name },
  ] as const;

test('who does not say who asks is told how to, and reaches nothing', async () => {
  const { post } = await setup(MODERN_SERVER);
  const refused = await post(undefined, { method: 'initialize', params: INITIALIZE });
  expect(refused.status).toBe(401);
  expect(refused.headers.get('www-authenticate')).toBe('Bearer');
  expect(await refused.json()).toMatchObject({ id: null, error: { message: 'A bearer token is needed.' } });
});

test('a session of somebody else is as unknown as one that never was', async () => {
  const { data, post } = await setup(LEGACY_SERVER);
  const begun = await post('ada', { method: 'initialize', params: INITIALIZE });
  const session = { 'mcp-session-id': begun.headers.get('mcp-session-id') ?? '' };
  await begun.text();
  await post('ada', { id: undefined, method: 'notifications/initialized' }, session);
  const call = { method: 'tools/call', params: { name: 'make', arguments: { title: 'x' } } };
  expect((await post('bob', call, session)).status).toBe(404);
  expect((await post('ada', call, session)).status).toBe(200);
  expect(await operationsIn(data)).toMatchObject([{ requester: 'ada', tool: 'make' }]);
});

test('a state of somebody else is none', async () => {
  const { data, post } = await setup(MODERN_SERVER);
  const asked = (await (await post('ada', ...stateless('make_asked'))).json()) as {
    result: { requestState: string };
  };
  const { requestState } = asked.result;
  const inputResponses = { name: { action: 'accept', content: { name: 'Bob' } } };
  const more = { requestState, inputResponses };
  const stolen = await post('bob', ...stateless('make_asked', more));
  expect(stolen.status).toBe(400);
  const own = await post('ada', ...stateless('make_asked', more));
  expect(await own.text()).toContain('made x for Bob');
  expect(await operationsIn(data)).toMatchObject([{ requester: 'ada', attempts: [{ legs: 2 }] }]);
});

test('over stdio, with several calls open, nobody is asked what somebody else’s call may have asked', async () => {
  const { gateway, log, post } = await setup(LEGACY_SERVER);
  const waiting = post('ada', ...stateless('wait')).catch(() => undefined);
  await until(() => log().includes('"event":"waiting"'), 'the first call to arrive');
  // The same principal and the same capabilities: one connection.
  const asking = await post('ada', ...stateless('ask_name'));
  const text = await asking.text();
  if (text.includes('input_required')) throw new Error(`It was asked of somebody: ${text}`);
  expect(text).toMatch(/cannot be told/);
  await gateway.close();
  await waiting;
});
