// Drives our upstream half through one client scenario of the suite: the adapter by which the gateway reaches servers
// over HTTP, with what a client in front of the gateway would have asked.
//
// The suite appends the address of its server, and names the scenario and its generation in the environment.

import { readMcpFrame } from '../dist/destination/mcp/frame.js';
import { openHttpUpstream } from '../dist/destination/mcp/http-upstream.js';

const CALL_MS = 10_000;

const url = process.argv.at(-1);
const scenario = process.env['MCP_CONFORMANCE_SCENARIO'] ?? '';
const isModern = process.env['MCP_CONFORMANCE_PROTOCOL_VERSION'] === '2026-07-28';
const context = JSON.parse(process.env['MCP_CONFORMANCE_CONTEXT'] ?? '{}');

const upstream = openHttpUpstream({
  name: 'conformance',
  url,
  prefers: isModern ? 'modern' : 'legacy',
  clientCapabilities: JSON.stringify({ elicitation: { form: {} } }),
});
let forwarded = 0;

// ── What the gateway does by itself ────────────────────────────────────────────────────────────────────────────

async function ask(method, params = {}) {
  const report = await upstream.request(method, JSON.stringify(params), CALL_MS);
  if (!report.answered) throw new Error(`${method} was not answered: ${report.detail}`);
  if (report.reply.kind === 'protocol_error') throw new Error(`${method}: ${report.reply.body}`);
  return JSON.parse(report.reply.body);
}

/** A write, as the engine sends one. `undefined` where nothing has left. */
async function send(tool, args = {}) {
  forwarded += 1;
  const report = await upstream.send({
    operation: `op_${forwarded}`,
    attempt: 'attempt_1',
    tool,
    payload: JSON.stringify(args),
    replyTimeoutMs: CALL_MS,
    mayLeave: () => true,
  });
  if (report.left === 'no') return undefined;
  if (report.reply === undefined) throw new Error(`${tool} was not answered: ${report.detail}`);
  return JSON.parse(report.reply.body);
}

// ── What passes through it from a client ───────────────────────────────────────────────────────────────────────

const answers = new Map();
upstream.onFrame = (frame) => {
  const message = JSON.parse(frame.text);
  if (message.method === 'elicitation/create') answerForm(message);
  else answers.get(message.id)?.(message);
};

function forward(message) {
  const report = upstream.forward(readMcpFrame(Buffer.from(JSON.stringify({ jsonrpc: '2.0', ...message }))));
  if (report === 'not_connected') throw new Error(`The adapter did not take ${message.method}.`);
}

/** A request of a client of 2026-07-28, which says in each what it is and can do. */
async function pass(method, params) {
  forwarded += 1;
  const id = `client-${forwarded}`;
  const answered = new Promise((resolve) => answers.set(id, resolve));
  const _meta = {
    'io.modelcontextprotocol/protocolVersion': '2026-07-28',
    'io.modelcontextprotocol/clientInfo': { name: 'conformance-driver', version: '1.0.0' },
    'io.modelcontextprotocol/clientCapabilities': { elicitation: {} },
  };
  forward({ id, method, params: { ...params, _meta } });
  const { result, error } = await answered;
  if (error !== undefined) throw new Error(`${method}: ${error.message}`);
  return result;
}

/** The person agrees to what the form proposes. */
function answerForm({ id, params }) {
  const fields = Object.entries(params.requestedSchema.properties);
  const content = Object.fromEntries(fields.map(([name, field]) => [name, field.default]));
  forward({ id, result: { action: 'accept', content } });
}

/** Calls a tool, and once more with what it asks for. */
async function passWithRounds(name) {
  const first = await pass('tools/call', { name, arguments: {} });
  if (first.resultType !== 'input_required') return;
  await pass('tools/call', { name: 'test_mrtr_unrelated', arguments: {} });
  const inputResponses = Object.fromEntries(
    Object.keys(first.inputRequests).map((key) => [key, { action: 'accept', content: { confirmed: true } }]),
  );
  const state = first.requestState === undefined ? {} : { requestState: first.requestState };
  await pass('tools/call', { name, arguments: {}, inputResponses, ...state });
}

// ── The scenarios ──────────────────────────────────────────────────────────────────────────────────────────────

const SCENARIOS = {
  async initialize() {
    await ask('tools/list');
  },
  async tools_call() {
    await ask('tools/list');
    await send('add_numbers', { a: 2, b: 3 });
  },
  async 'elicitation-sep1034-client-defaults'() {
    await ask('tools/list');
    await send('test_client_elicitation_defaults');
  },
  async 'sse-retry'() {
    await ask('tools/list');
    await send('test_reconnection');
  },
  async 'request-metadata'() {
    await ask('tools/list');
    await send('anything');
  },
  async 'sep-2322-client-request-state'() {
    await ask('tools/list');
    for (const tool of ['test_mrtr_echo_state', 'test_mrtr_no_state', 'test_mrtr_no_result_type']) {
      await passWithRounds(tool);
    }
  },
  async 'http-standard-headers'() {
    const { tools } = await ask('tools/list');
    for (const { name } of tools) await send(name);
    const { resources } = await ask('resources/list');
    for (const { uri } of resources) await ask('resources/read', { uri });
    const { prompts } = await ask('prompts/list');
    for (const { name } of prompts) await ask('prompts/get', { name });
  },
  async 'http-custom-headers'() {
    await ask('tools/list');
    for (const { name, arguments: args } of context.toolCalls) await send(name, args);
  },
  // A client calls whatever it is told of: what may not be called, the adapter keeps back.
  async 'http-invalid-tool-headers'() {
    const { tools } = await ask('tools/list');
    for (const { name, inputSchema } of tools) {
      await send(name, Object.fromEntries(inputSchema.required.map((argument) => [argument, 'eu-1'])));
    }
  },
  async 'json-schema-ref-no-deref'() {
    await ask('tools/list');
  },
};

const act = SCENARIOS[scenario];
if (act === undefined) {
  console.error(`The driver does not know the scenario ${scenario}.`);
  process.exitCode = 2;
} else {
  const connection = await upstream.connect();
  if (!connection.connected) throw new Error(`It did not connect: ${connection.detail}`);
  await act();
}
await upstream.close();
