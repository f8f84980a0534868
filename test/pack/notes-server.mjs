// A destination of one tool: an MCP server over stdio that appends each note to the file it is given.

import { appendFileSync } from 'node:fs';
import { createInterface } from 'node:readline';

const [log] = process.argv.slice(2);
const tools = [
  {
    name: 'create_note',
    description: 'Writes a note.',
    inputSchema: { type: 'object', properties: { title: { type: 'string' } }, required: ['title'] },
  },
];
let count = 0;

const answers = {
  initialize: ({ protocolVersion }) => ({
    protocolVersion,
    capabilities: { tools: {} },
    serverInfo: { name: 'notes', version: '1.0.0' },
  }),
  'tools/list': () => ({ tools }),
  'tools/call': ({ arguments: { title } }) => {
    count += 1;
    appendFileSync(log, `${JSON.stringify({ id: `note-${count}`, title })}\n`);
    return { content: [{ type: 'text', text: `Written as note-${count}.` }] };
  },
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
