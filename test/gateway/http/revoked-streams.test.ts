// A token is revoked while streams of its holder are open: they are cut within moments, and nobody else's are.

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, test } from 'vitest';
import {
  CleanUps,
  callsOf,
  counterfoil,
  INITIALIZE,
  operationsIn,
  toolsServer,
  until,
  untilAsync,
} from '../processes.ts';
import { startServing } from './serving.ts';

const cleanUps = new CleanUps();
afterEach(cleanUps.run);

/** The door looks each second; a busy machine takes its time. */
const BOUND_MS = 10_000;
const MODERN = '2026-07-28';

interface Stream {
  readonly status: number;
  readonly text: () => string;
  readonly isOver: () => boolean;
}

async function world() {
  const folder = cleanUps.folder();
  writeFileSync(join(folder, 'tools.json'), '[{"name":"note","inputSchema":{"type":"object"}}]');
  writeFileSync(join(folder, 'plan.json'), '{"note":{"does":"hold"}}');
  const data = join(folder, 'data');
  const token = async (name: string, ...more: string[]): Promise<string> =>
    (await counterfoil(['token', 'create', name, '--data', data, ...more])).stdout.trim();
  const config = { tools: { note: { class: 'ordinary', repeat: 'unique' } } };
  const serve = async () => {
    const { url } = await startServing(cleanUps, { one: { command: toolsServer(folder), config } }, { data });
    return url('/mcp/one');
  };
  return {
    folder,
    data,
    token,
    serve,
    revoke: (name: string) => counterfoil(['token', 'revoke', name, '--data', data]),
    release: () => writeFileSync(join(folder, 'release'), ''),
  };
}

/** Reads a response for as long as it lasts. */
function reading(response: Response): Stream {
  let text = '';
  let isOver = false;
  const decoder = new TextDecoder();
  void (async () => {
    try {
      for await (const chunk of response.body ?? [])
        text += decoder.decode(chunk as Uint8Array, { stream: true });
    } catch {
      // Cut.
    }
    isOver = true;
  })();
  return { status: response.status, text: () => text, isOver: () => isOver };
}

function asker(url: URL, token?: string) {
  const own = {
    'content-type': 'application/json',
    accept: 'application/json, text/event-stream',
    ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
  };
  const post = (body: object, headers: Record<string, string> = {}): Promise<Response> =>
    fetch(url, {
      method: 'POST',
      headers: { ...own, ...headers },
      body: JSON.stringify({ jsonrpc: '2.0', ...body }),
    });
  const modern = (id: number, method: string, params: object = {}, name?: string): Promise<Response> =>
    post(
      {
        id,
        method,
        params: {
          ...params,
          _meta: {
            'io.modelcontextprotocol/protocolVersion': MODERN,
            'io.modelcontextprotocol/clientInfo': { name: 'test', version: '1' },
            'io.modelcontextprotocol/clientCapabilities': {},
          },
        },
      },
      {
        'mcp-protocol-version': MODERN,
        'mcp-method': method,
        ...(name === undefined ? {} : { 'mcp-name': name }),
      },
    );
  return {
    post,
    modern,
    /** A session of 2025-11-25 with its standing stream. */
    async session() {
      const begun = await post({ id: 1, method: 'initialize', params: INITIALIZE });
      expect(begun.status).toBe(200);
      const headers = { 'mcp-session-id': begun.headers.get('mcp-session-id') ?? '' };
      await post({ method: 'notifications/initialized' }, headers);
      const stream = reading(await fetch(url, { headers: { ...own, ...headers } }));
      expect(stream.status).toBe(200);
      return { headers, stream };
    },
    async subscription() {
      const params = { notifications: { toolsListChanged: true } };
      const stream = reading(await modern(7, 'subscriptions/listen', params));
      expect(stream.status).toBe(200);
      await until(() => stream.text() !== '', 'the subscription to begin');
      return stream;
    },
  };
}

async function cutWithin(streams: readonly Stream[], sinceMs: number): Promise<void> {
  await until(() => streams.every(({ isOver }) => isOver()), 'the streams to be cut');
  expect(performance.now() - sinceMs).toBeLessThan(BOUND_MS);
}

describe('the streams of a token that may ask no more', () => {
  test('are cut when it is revoked, in both generations; those of another token go on', async () => {
    const { token, serve, revoke } = await world();
    const [gone, stays] = [await token('gone'), await token('stays')];
    const url = await serve();
    const [hers, his] = [asker(url, gone), asker(url, stays)];
    const cut = [(await hers.session()).stream, await hers.subscription()];
    const kept = [(await his.session()).stream, await his.subscription()];
    const sinceMs = performance.now();
    expect((await revoke('gone')).code).toBe(0);
    await cutWithin(cut, sinceMs);
    expect(kept.map(({ isOver }) => isOver())).toEqual([false, false]);
    expect((await hers.modern(9, 'tools/list')).status).toBe(401);
    expect((await his.modern(9, 'tools/list')).status).toBe(200);
    // The door has looked again once another one is cut.
    const another = [(await asker(url, await token('another')).session()).stream];
    await revoke('another');
    await cutWithin(another, performance.now());
    expect(kept.map(({ isOver }) => isOver())).toEqual([false, false]);
  });

  test('are cut when it expires', async () => {
    const { token, serve } = await world();
    const url = await serve();
    const short = asker(url, await token('short', '--expires', 'PT8S'));
    const sinceMs = performance.now();
    await cutWithin([(await short.session()).stream], sinceMs);
  });

  test('and a call that waits is refused, while its write is followed to its end', async () => {
    const { data, folder, token, serve, revoke, release } = await world();
    const gone = await token('gone');
    const hers = asker(await serve(), gone);
    const { headers } = await hers.session();
    const params = { name: 'note', arguments: { n: 1 } };
    const call = hers.post({ id: 2, method: 'tools/call', params }, headers);
    const newer = hers.modern(3, 'tools/call', { name: 'note', arguments: { n: 2 } }, 'note');
    await until(() => callsOf(folder, 'note').length === 2, 'both writes to be out');
    const sinceMs = performance.now();
    await revoke('gone');
    for (const response of await Promise.all([call, newer])) {
      expect(response.status).toBe(401);
      expect(await response.text()).toContain('The token was revoked');
    }
    expect(performance.now() - sinceMs).toBeLessThan(BOUND_MS);
    release();
    const settled = await untilAsync(async () => {
      const operations = await operationsIn(data);
      return operations.every(({ stage }) => stage === 'closed') && operations;
    }, 'both writes to be recorded');
    expect(settled.map(({ effect, requester }) => [effect, requester])).toEqual([
      ['accepted', 'token:gone'],
      ['accepted', 'token:gone'],
    ]);
    expect(settled.map(({ deliveredAt }) => deliveredAt)).toEqual([undefined, undefined]);
  });

  test('of nobody in particular are cut once the first token is made: from then on each needs one', async () => {
    const { token, serve } = await world();
    const anybody = asker(await serve());
    const stream = (await anybody.session()).stream;
    const sinceMs = performance.now();
    await token('first');
    await cutWithin([stream], sinceMs);
  });
});
