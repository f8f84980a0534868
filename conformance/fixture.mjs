// What the fixture server serves: the tools, resources, templates and prompts that the scenarios of the suite name.

import { randomBytes } from 'node:crypto';
import {
  acceptedContent,
  createRequestStateCodec,
  fromJsonSchema,
  inputRequired,
  McpServer,
  ResourceTemplate,
} from '@modelcontextprotocol/server';
import { IMAGE } from './fixture-media.mjs';
import { schemaOf, TOOLS } from './fixture-tools.mjs';

const CACHE = { ttlMs: 1_000, cacheScope: 'public' };
const TEXTS = { 'test://static-text': 'A text that does not change.', 'test://watched-resource': 'Watched.' };

/** Signs what clients hand back, for as long as this process lives. */
const { mint, verify } = createRequestStateCodec({ key: randomBytes(32) });

/**
 * One server object, for one session or one request.
 * @param {{ changed?: { tools(): void, prompts(): void } }} [options] `changed`: tells the subscribers of 2026-07-28;
 *   without it the session's own client is told
 */
export function makeServer({ changed } = {}) {
  const server = new McpServer(
    { name: 'counterfoil-conformance-fixture', version: '1.0.0' },
    {
      capabilities: {
        tools: { listChanged: true },
        prompts: { listChanged: true },
        resources: { subscribe: true, listChanged: true },
        completions: {},
        logging: {},
      },
      cacheHints: {
        'tools/list': CACHE,
        'prompts/list': CACHE,
        'resources/list': CACHE,
        'resources/templates/list': CACHE,
        'resources/read': CACHE,
      },
      requestState: { verify },
    },
  );
  const around = {
    mint,
    changed: changed ?? {
      tools: () => server.sendToolListChanged(),
      prompts: () => server.sendPromptListChanged(),
    },
  };
  for (const { name, description, call, ...rest } of TOOLS) {
    const inputSchema = fromJsonSchema(schemaOf(rest));
    server.registerTool(name, { description, inputSchema }, (args, context) => call(args, context, around));
  }
  registerResources(server);
  registerPrompts(server);
  return server;
}

function registerResources(server) {
  for (const [uri, text] of Object.entries(TEXTS)) {
    const about = { description: 'A text.', mimeType: 'text/plain' };
    server.registerResource(uri.slice('test://'.length), uri, about, () => ({
      contents: [{ uri, mimeType: 'text/plain', text }],
    }));
  }
  const binary = 'test://static-binary';
  const about = { description: 'An image.', mimeType: IMAGE.mimeType };
  server.registerResource('static-binary', binary, about, () => ({
    contents: [{ uri: binary, mimeType: IMAGE.mimeType, blob: IMAGE.data }],
  }));
  const template = new ResourceTemplate('test://template/{id}/data', { list: undefined });
  const row = { description: 'A row by its id.', mimeType: 'application/json' };
  server.registerResource('template', template, row, (uri, { id }) => ({
    contents: [{ uri: uri.href, mimeType: 'application/json', text: JSON.stringify({ row: id }) }],
  }));
  // The SDK keeps no subscriptions itself: what is watched here never changes.
  server.server.setRequestHandler('resources/subscribe', () => ({}));
  server.server.setRequestHandler('resources/unsubscribe', () => ({}));
}

function registerPrompts(server) {
  const user = (content) => ({ role: 'user', content });
  const text = (words) => user({ type: 'text', text: words });
  const strings = (...names) =>
    fromJsonSchema({
      type: 'object',
      properties: Object.fromEntries(names.map((name) => [name, { type: 'string' }])),
      required: names,
    });

  server.registerPrompt('test_simple_prompt', { description: 'One sentence.' }, () => ({
    messages: [text('Say one sentence.')],
  }));
  server.registerPrompt(
    'test_prompt_with_arguments',
    { description: 'Two arguments.', argsSchema: strings('arg1', 'arg2') },
    ({ arg1, arg2 }) => ({ messages: [text(`First ${arg1}, then ${arg2}.`)] }),
  );
  server.registerPrompt(
    'test_prompt_with_embedded_resource',
    { description: 'A resource inside.', argsSchema: strings('resourceUri') },
    ({ resourceUri }) => ({
      messages: [
        user({ type: 'resource', resource: { uri: resourceUri, mimeType: 'text/plain', text: 'Inside.' } }),
        text('Read what lies above.'),
      ],
    }),
  );
  server.registerPrompt('test_prompt_with_image', { description: 'An image inside.' }, () => ({
    messages: [user({ type: 'image', ...IMAGE }), text('Say what colour this is.')],
  }));
  server.registerPrompt(
    'test_input_required_result_prompt',
    { description: 'Asks before it answers.' },
    ({ mcpReq }) => {
      const given = acceptedContent(mcpReq.inputResponses, 'user_context')?.context;
      if (typeof given === 'string') return { messages: [text(`Answer for ${given}.`)] };
      const requestedSchema = {
        type: 'object',
        properties: { context: { type: 'string' } },
        required: ['context'],
      };
      const user_context = inputRequired.elicit({ message: 'What is it for?', requestedSchema });
      return inputRequired({ inputRequests: { user_context } });
    },
  );
  server.server.setRequestHandler('completion/complete', ({ params }) => {
    const values = ['test', 'testing'].filter((word) => word.startsWith(params.argument.value));
    return { completion: { values, total: values.length, hasMore: false } };
  });
}
