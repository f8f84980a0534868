// A small MCP server, built with the SDK as most are: one tool, over stdio or over Streamable HTTP with JSON answers.
//
//   node bench/mcp-server.mjs stdio
//   node bench/mcp-server.mjs http PORT

import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import { NodeStreamableHTTPServerTransport } from '@modelcontextprotocol/node';
import { fromJsonSchema, McpServer } from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';

const RECORD = {
  title: 'Rotate edge certificate for zone eu-1',
  assignee: 'mara@example.test',
  due: '2026-12-24',
  labels: ['infra', 'agent', 'cutover'],
};
const inputSchema = fromJsonSchema({
  type: 'object',
  properties: { key: { type: 'string' }, description: { type: 'string' } },
  required: ['key'],
});

/** What this process was asked for, by any session. */
let calls = 0;

function makeServer() {
  const server = new McpServer({ name: 'bench-records', version: '1.0.0' });
  server.registerTool('record', { description: 'One record by its key.', inputSchema }, ({ key }) => {
    calls += 1;
    return { content: [{ type: 'text', text: JSON.stringify({ key, ...RECORD }) }] };
  });
  server.registerTool('calls', { description: 'How often the other tool was called.' }, () => ({
    content: [{ type: 'text', text: JSON.stringify({ calls }) }],
  }));
  return server;
}

const [, , transport, port] = process.argv;
if (transport === 'stdio') serveStdio(makeServer);
else serveHttp(Number(port));

function serveHttp(onPort) {
  /** @type {Map<string, NodeStreamableHTTPServerTransport>} */
  const sessions = new Map();
  createServer((request, response) => {
    serve(request, response).catch(() => response.destroy());
  }).listen(onPort, '127.0.0.1');

  async function serve(request, response) {
    const id = request.headers['mcp-session-id'];
    const known = sessions.get(id);
    if (id !== undefined && known === undefined) {
      response.writeHead(404).end();
      return;
    }
    await (known ?? (await open())).handleRequest(request, response);
  }

  async function open() {
    const opened = new NodeStreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      enableJsonResponse: true,
      onsessioninitialized: (given) => void sessions.set(given, opened),
    });
    await makeServer().connect(opened);
    return opened;
  }
}
