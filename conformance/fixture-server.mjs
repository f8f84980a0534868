// The server that the suite is run against: Streamable HTTP at /mcp for both generations, with the SDK.
//
// Started by `fork`, it tells its parent the port that it was given and, when asked, how many messages of calls have
// come: each call of a tool, and each answer to what a call has asked back. It ends when the parent is gone.

import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import {
  localhostHostValidation,
  localhostOriginValidation,
  NodeStreamableHTTPServerTransport,
  toNodeHandler,
  toWebRequest,
} from '@modelcontextprotocol/node';
import { createMcpHandler, isLegacyRequest } from '@modelcontextprotocol/server';
import { EventLog } from './event-log.mjs';
import { makeServer } from './fixture.mjs';

const RETRY_MS = 100;

const modern = createMcpHandler(
  () =>
    makeServer({
      changed: { tools: () => modern.notify.toolsChanged(), prompts: () => modern.notify.promptsChanged() },
    }),
  { legacy: 'reject' },
);
const serveModern = toNodeHandler(modern);
/** @type {Map<string, NodeStreamableHTTPServerTransport>} by session id (2025-11-25) */
const sessions = new Map();
let ofCalls = 0;
const isHostOurs = localhostHostValidation();
const isOriginOurs = localhostOriginValidation();

const server = createServer((request, response) => {
  serve(request, response).catch((/** @type {unknown} */ error) => {
    console.error(error);
    if (!response.headersSent) response.writeHead(500);
    response.end();
  });
});
server.listen(Number(process.argv[2] ?? 0), '127.0.0.1', () => {
  const { port } = server.address();
  if (process.send === undefined) console.log(`http://127.0.0.1:${port}/mcp`);
  else process.send({ port });
});
process.on('message', () => process.send({ ofCalls }));
process.once('disconnect', () => process.exit(0));

async function serve(request, response) {
  if (!isHostOurs(request, response) || !isOriginOurs(request, response)) return;
  if (request.url !== '/mcp') {
    response.writeHead(404).end();
    return;
  }
  const text = await textOf(request);
  const body = parsed(text);
  if (isOfCall(body)) ofCalls += 1;
  const asked = await toWebRequest(request, body ?? text);
  if (!(await isLegacyRequest(asked, body))) {
    await serveModern(request, response, body ?? text);
    return;
  }
  const transport = await sessionOf(request, response);
  await transport?.handleRequest(request, response, body);
}

function isOfCall(message) {
  const isAnswer = message?.method === undefined && message?.id !== undefined;
  return isAnswer || message?.method === 'tools/call';
}

/** The session that a request of 2025-11-25 belongs to, or a new one; none when it was refused. */
async function sessionOf({ headers }, response) {
  const id = headers['mcp-session-id'];
  const known = sessions.get(id);
  if (known !== undefined) return known;
  if (id !== undefined) {
    const error = { code: -32001, message: 'No such session.' };
    response.writeHead(404, { 'content-type': 'application/json' });
    response.end(JSON.stringify({ jsonrpc: '2.0', id: null, error }));
    return undefined;
  }
  const transport = new NodeStreamableHTTPServerTransport({
    sessionIdGenerator: randomUUID,
    onsessioninitialized: (given) => void sessions.set(given, transport),
    onsessionclosed: (given) => void sessions.delete(given),
    eventStore: new EventLog(),
    retryInterval: RETRY_MS,
  });
  await makeServer().connect(transport);
  return transport;
}

async function textOf(request) {
  const chunks = [];
  for await (const chunk of request) chunks.push(chunk);
  return Buffer.concat(chunks).toString('utf8');
}

function parsed(text) {
  if (text === '') return undefined;
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
