// A small MCP server over stdio, without the SDK, so that what is measured is the gateway: one read-only tool.

import { createInterface } from 'node:readline';

const TOOL = {
  name: 'get_record',
  description: 'Reads one change request.',
  inputSchema: { type: 'object', properties: { key: { type: 'string' } }, required: ['key'] },
  annotations: { readOnlyHint: true },
};

const RECORD = {
  title: 'Rotate edge certificate for zone eu-1',
  assignee: 'mara@example.test',
  due: '2026-12-24',
  description:
    'Change request raised by the cutover agent after approval; bound to the exact reviewed action. ',
  labels: ['infra', 'agent', 'cutover'],
};

const answers = {
  initialize: ({ protocolVersion }) => ({
    protocolVersion,
    capabilities: { tools: {} },
    serverInfo: { name: 'bench-records', version: '1.0.0' },
  }),
  ping: () => ({}),
  'tools/list': () => ({ tools: [TOOL] }),
  'tools/call': ({ arguments: { key } }) => ({
    content: [{ type: 'text', text: JSON.stringify({ key, ...RECORD }) }],
  }),
};

createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method, params } = JSON.parse(line);
  if (id === undefined) return;
  const answer = answers[method];
  const body =
    answer === undefined
      ? { error: { code: -32601, message: 'Method not found' } }
      : { result: answer(params ?? {}) };
  process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', id, ...body })}\n`);
});
