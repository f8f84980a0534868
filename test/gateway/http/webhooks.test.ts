import { createHmac } from 'node:crypto';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, test } from 'vitest';
import { fixtureWorld } from '../fixture-world.ts';
import { CleanUps, type ToolResult, toolsServer, until } from '../processes.ts';
import { type Serving, sdkClient, startServing } from './serving.ts';

const KEY = Buffer.alloc(32, 5);
const SECRET = `whsec_${KEY.toString('base64')}`;
const CONFIG = { tools: { note: { class: 'ordinary', repeat: 'unique' } } };
const CAUSE = 'cause_no_answer@fixture';

/** Each of them starts several processes; on a busy machine they take their time. */
const PATIENT = { timeout: 60_000 };

const cleanUps = new CleanUps();
afterEach(cleanUps.run);

interface Received {
  readonly id: string;
  readonly isSigned: boolean;
  readonly text: string;
  readonly body: { readonly type: string; readonly data: { readonly [member: string]: unknown } };
}

/** Somebody who takes webhooks, and checks what they were signed with by code of its own. */
async function receiver(statuses: number[] = []) {
  const received: Received[] = [];
  const server = createServer((request, response) => {
    let text = '';
    request.setEncoding('utf8').on('data', (chunk: string) => {
      text += chunk;
    });
    request.on('end', () => {
      const { headers } = request;
      const id = String(headers['webhook-id']);
      const signed = `${id}.${String(headers['webhook-timestamp'])}.${text}`;
      const expected = `v1,${createHmac('sha256', KEY).update(signed).digest('base64')}`;
      received.push({
        id,
        text,
        isSigned: headers['webhook-signature'] === expected,
        body: JSON.parse(text) as Received['body'],
      });
      response.writeHead(statuses.shift() ?? 204, { location: '/elsewhere' }).end();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const close = (): void => {
    server.closeAllConnections();
    server.close();
  };
  cleanUps.add(close);
  return { received, close, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook?key=1` };
}

async function serving(url: string) {
  const world = fixtureWorld(cleanUps, [{ name: 'note' }], { note: { does: 'die_done' } });
  const served: Serving = await startServing(
    cleanUps,
    { fixture: { command: toolsServer(world.folder), config: CONFIG } },
    {
      data: world.data,
      env: { HOOK_SECRET: SECRET },
      more: { webhooks: [{ url, secret: { env: 'HOOK_SECRET' } }] },
    },
  );
  const { client } = await sdkClient(cleanUps, served.url());
  const note = async (page: string): Promise<ToolResult> =>
    (await client.callTool({ name: 'note', arguments: { page } })) as ToolResult;
  return { ...world, note, served };
}

const typesOf = (received: readonly Received[]): readonly string[] => received.map(({ body }) => body.type);

describe('a webhook', PATIENT, () => {
  test('is told when a cause opens, changes and closes: signed, again under the same id where it was not taken, and without content', async () => {
    // A redirect is no taking, and is not followed.
    const { received, url } = await receiver([503, 307]);
    const { command, note } = await serving(url);
    await note('a secret page');
    await until(() => received.length >= 3, 'the opening to be told three times');
    await note('another page');
    await until(() => typesOf(received).includes('cause.changed'), 'the change');
    const { causes } = JSON.parse((await command('queue', '--json')).stdout) as {
      readonly causes: readonly { readonly list: { readonly digest: string } }[];
    };
    await command('queue', 'close-unknown', CAUSE, '--digest', causes[0]?.list.digest ?? '');
    await until(() => typesOf(received).includes('cause.closed'), 'the closing');

    expect(typesOf(received)).toEqual([
      'cause.opened',
      'cause.opened',
      'cause.opened',
      'cause.changed',
      'cause.closed',
    ]);
    expect(new Set(received.slice(0, 3).map(({ id }) => id)).size).toBe(1);
    expect(new Set(received.map(({ id }) => id)).size).toBe(3);
    expect(received.every(({ isSigned }) => isSigned)).toBe(true);
    expect(received.map(({ body }) => body.data['needs_person'])).toEqual([1, 1, 1, 2, 0]);
    expect(received[0]?.body.data).toMatchObject({ cause: CAUSE, destination: 'fixture', found: 0 });
    for (const { text } of received) expect(text).not.toContain('page');
  });

  test('that nobody takes disturbs no write, and is told by the next process what waited', async () => {
    const away = await receiver();
    away.close();
    const { calls, folder, data, note, operations, served } = await serving(away.url);
    await note('p-1');
    await served.process.says(/A webhook has not taken what is new/);
    await note('p-2');
    expect(calls('note')).toHaveLength(2);
    expect((await operations()).map(({ stage, effect }) => [stage, effect])).toEqual([
      ['parked', 'unknown'],
      ['parked', 'unknown'],
    ]);
    served.process.kill('SIGTERM');
    expect((await served.process.exited).code).toBe(0);
    const port = Number(new URL(away.url).port);
    const received: string[] = [];
    const server = createServer((request, response) => {
      received.push(String(request.headers['webhook-id']));
      request.resume();
      response.writeHead(200).end();
    });
    await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
    cleanUps.add(() => {
      server.closeAllConnections();
      server.close();
    });
    await startServing(
      cleanUps,
      { fixture: { command: toolsServer(folder), config: CONFIG } },
      {
        data,
        env: { HOOK_SECRET: SECRET },
        more: { webhooks: [{ url: away.url, secret: { env: 'HOOK_SECRET' } }] },
      },
    );
    await until(() => received.length > 0, 'what waited');
  });
});
