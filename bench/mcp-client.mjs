// A client of Streamable HTTP that costs little, so that what is measured is what it talks to: one session, and one
// undici pool of 64 connections for every leg alike.

import { Pool } from 'undici';

const CONNECTIONS = 64;
const PROTOCOL_VERSION = '2025-11-25';
const DESCRIPTION =
  'Change request raised by the cutover agent after approval; bound to the exact reviewed action.';

/**
 * @param {string} url
 * @returns {Promise<{ record(key: string): Promise<void>, calls(): Promise<number>, close(): Promise<void> }>}
 *   `record` throws unless the answer is that of its key
 */
export async function connectMcp(url) {
  const { origin, pathname } = new URL(url);
  const pool = new Pool(origin, { connections: CONNECTIONS, pipelining: 1 });
  const headers = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' };
  let ids = 0;

  async function send(message) {
    const body = JSON.stringify({ jsonrpc: '2.0', ...message });
    const response = await pool.request({ path: pathname, method: 'POST', headers, body });
    const text = await response.body.text();
    if (response.statusCode >= 300) throw new Error(`${url} answered ${response.statusCode}: ${text}`);
    return { text, session: response.headers['mcp-session-id'] };
  }
  function ask(method, params) {
    ids += 1;
    return send({ id: ids, method, params });
  }
  const call = async (name, args) => (await ask('tools/call', { name, arguments: args })).text;

  const clientInfo = { name: 'bench', version: '1.0.0' };
  const { session } = await ask('initialize', {
    protocolVersion: PROTOCOL_VERSION,
    capabilities: {},
    clientInfo,
  });
  if (session !== undefined) headers['mcp-session-id'] = session;
  headers['mcp-protocol-version'] = PROTOCOL_VERSION;
  await send({ method: 'notifications/initialized' });
  await ask('tools/list', {});

  return {
    async record(key) {
      const text = await call('record', { key, description: DESCRIPTION });
      if (!text.includes(`\\"key\\":\\"${key}\\"`))
        throw new Error(`${url}: another answer for ${key}: ${text}`);
    },
    async calls() {
      const text = await call('calls', {});
      return Number(/\\"calls\\":(\d+)/.exec(text)?.[1]);
    },
    close: () => pool.close(),
  };
}
