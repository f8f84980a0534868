// Starts the destination and speaks to it: one undici pool of 64 connections, the same for every leg.

import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { Pool, request } from 'undici';

const CONNECTIONS = 64;

export async function startDestination({ delayMs }) {
  const child = fork(fileURLToPath(new URL('destination.mjs', import.meta.url)), [String(delayMs)]);
  const [{ port }] = await once(child, 'message');
  const client = destinationClient(port);
  return {
    ...client,
    port,
    pids: () => [child.pid],
    async close() {
      await client.close();
      child.disconnect();
      await once(child, 'exit');
    },
  };
}

/** The same destination, from any process that knows its port. */
export function destinationClient(port) {
  const origin = `http://127.0.0.1:${port}`;
  const dispatcher = new Pool(origin, { connections: CONNECTIONS, pipelining: 1 });
  const headers = { 'content-type': 'application/json' };

  const ask = async (method, path, body) => {
    const response = await request(origin + path, { method, body, headers, dispatcher });
    const value = await response.body.json();
    if (response.statusCode !== 200) throw new Error(`The destination answered ${response.statusCode}.`);
    return value;
  };
  return {
    /** One write. Every leg sends by this function and no other. */
    post: (text) => ask('POST', '/records', text),
    record: (key) => ask('GET', `/records/${encodeURIComponent(key)}`),
    count: () => ask('GET', '/count'),
    reset: () => ask('POST', '/reset'),
    close: () => dispatcher.close(),
  };
}
