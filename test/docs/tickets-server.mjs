// The server of docs/writing-a-binding.md: an MCP server over stdio with tickets in a file, one JSON object a line.
//
// node tickets-server.mjs FILE    where FILE.die exists, the server ends after its next write, before it answers

import { appendFileSync, existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createInterface } from 'node:readline';

const [file] = process.argv.slice(2);
const QUEUES = ['billing', 'network'];
const text = { type: 'string' };
const tool = (name, names, readOnlyHint) => ({
  name,
  inputSchema: {
    type: 'object',
    properties: Object.fromEntries(names.map((each) => [each, text])),
    required: names,
  },
  annotations: { readOnlyHint },
});
const tools = [
  tool('create_ticket', ['queue', 'title'], false),
  tool('find_tickets', ['queue'], true),
  tool('purge_queue', ['queue'], false),
];

const held = () =>
  existsSync(file)
    ? readFileSync(file, 'utf8')
        .split('\n')
        .filter(Boolean)
        .map((line) => JSON.parse(line))
    : [];

function call({ name, arguments: { queue, title } }) {
  if (!QUEUES.includes(queue)) return failure(`No such queue: ${queue}`);
  if (name === 'find_tickets') return success({ tickets: held().filter((ticket) => ticket.queue === queue) });
  if (name === 'create_ticket') {
    const ticket = { id: `T-${held().length + 1}`, queue, title };
    appendFileSync(file, `${JSON.stringify(ticket)}\n`);
    return written({ id: ticket.id });
  }
  const rest = held().filter((ticket) => ticket.queue !== queue);
  writeFileSync(file, rest.map((ticket) => `${JSON.stringify(ticket)}\n`).join(''));
  return written({ left: rest.length });
}

function written(structuredContent) {
  if (existsSync(`${file}.die`)) {
    rmSync(`${file}.die`);
    process.exit(1);
  }
  return success(structuredContent);
}

const success = (structuredContent) => ({
  content: [{ type: 'text', text: JSON.stringify(structuredContent) }],
  structuredContent,
});
const failure = (message) => ({ content: [{ type: 'text', text: message }], isError: true });

const answers = {
  initialize: ({ protocolVersion }) => ({
    protocolVersion,
    capabilities: { tools: {} },
    serverInfo: { name: 'tickets', version: '1.4.0' },
  }),
  'tools/list': () => ({ tools }),
  'tools/call': call,
  ping: () => ({}),
};

for await (const line of createInterface({ input: process.stdin })) {
  const { id, method, params } = JSON.parse(line);
  if (id === undefined) continue;
  const answer = answers[method];
  const body =
    answer === undefined
      ? { error: { code: -32601, message: `There is no ${method} here.` } }
      : { result: answer(params) };
  process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', id, ...body })}\n`);
}
