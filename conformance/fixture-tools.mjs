// The tools of the fixture server: one for each tool that a scenario of the suite names.
//
// A handler is written once and serves both generations: what it needs from the client it asks for by
// `inputRequired`, which the SDK turns into a request to the client where the client speaks 2025-11-25.

import { setTimeout as delay } from 'node:timers/promises';
import { acceptedContent, inputRequired, inputResponse } from '@modelcontextprotocol/server';
import { AUDIO, IMAGE } from './fixture-media.mjs';

const STEP_MS = 20;

const nothing = { type: 'object', properties: {} };
const said = (text) => ({ content: [{ type: 'text', text }] });
const image = { type: 'image', ...IMAGE };

/** What a tool is given beside its arguments. @typedef {{ mint(state: unknown): Promise<string>, changed: { tools(): void, prompts(): void } }} Around */

/** @returns {readonly { name: string, description: string, inputSchema?: object, call(args: object, context: object, around: Around): unknown }[]} */
export const TOOLS = [
  // ── Content of every kind ──────────────────────────────────────────────────────────────────────────────────
  {
    name: 'test_simple_text',
    description: 'Answers with one sentence.',
    call: () => said('One sentence, and no more.'),
  },
  {
    name: 'test_image_content',
    description: 'Answers with an image.',
    call: () => ({ content: [image] }),
  },
  {
    name: 'test_audio_content',
    description: 'Answers with a sound.',
    call: () => ({ content: [{ type: 'audio', ...AUDIO }] }),
  },
  {
    name: 'test_embedded_resource',
    description: 'Answers with a resource inside.',
    call: () => ({
      content: [embedded('test://embedded-resource', 'A resource that came with the answer.')],
    }),
  },
  {
    name: 'test_multiple_content_types',
    description: 'Answers with a text, an image and a resource.',
    call: () => ({
      content: [
        { type: 'text', text: 'Three kinds of content follow each other.' },
        image,
        embedded('test://mixed-content-resource', '{"kinds":3}', 'application/json'),
      ],
    }),
  },
  {
    name: 'test_error_handling',
    description: 'Always fails, and says so in its result.',
    call: () => {
      throw new Error('This tool was made to fail.');
    },
  },

  // ── While a call runs ──────────────────────────────────────────────────────────────────────────────────────
  {
    name: 'test_tool_with_logging',
    description: 'Logs three lines while it runs.',
    call: logThreeLines,
  },
  { name: 'test_logging_tool', description: 'Logs three lines while it runs.', call: logThreeLines },
  {
    name: 'test_tool_with_progress',
    description: 'Reports its progress three times, where the caller gave a token.',
    async call(_args, { mcpReq }) {
      const progressToken = mcpReq._meta?.progressToken;
      for (const progress of [0, 50, 100]) {
        if (progressToken !== undefined) {
          const params = { progressToken, progress, total: 100, message: `${progress} of 100` };
          await mcpReq.notify({ method: 'notifications/progress', params });
        }
        await delay(STEP_MS);
      }
      return said('All three parts are done.');
    },
  },
  {
    name: 'test_reconnection',
    description: 'Closes the stream of its own answer, so that the client has to come back for it.',
    async call(_args, { http }) {
      http?.closeSSE?.();
      await delay(STEP_MS);
      return said('This answer was there when the client came back.');
    },
  },
  {
    name: 'test_trigger_tool_change',
    description: 'Tells that the list of tools has changed.',
    call: (_args, _context, { changed }) => {
      changed.tools();
      return said('Told.');
    },
  },
  {
    name: 'test_trigger_prompt_change',
    description: 'Tells that the list of prompts has changed.',
    call: (_args, _context, { changed }) => {
      changed.prompts();
      return said('Told.');
    },
  },

  // ── What the client is asked for ───────────────────────────────────────────────────────────────────────────
  {
    name: 'test_sampling',
    description: 'Asks the model of the client.',
    inputSchema: { type: 'object', properties: { prompt: { type: 'string' } }, required: ['prompt'] },
    call: ({ prompt }, { mcpReq }) => askModel(mcpReq, 'model', prompt),
  },
  {
    name: 'test_elicitation',
    description: 'Asks the person at the client.',
    inputSchema: { type: 'object', properties: { message: { type: 'string' } }, required: ['message'] },
    call: ({ message }, context) =>
      askOnce(context, 'person', message, {
        username: { type: 'string', description: 'How the person is called' },
        email: { type: 'string', description: 'Where the person is written to' },
      }),
  },
  {
    name: 'test_elicitation_sep1034_defaults',
    description: 'Asks with a form whose every field has a default.',
    call: (_args, context) =>
      askOnce(context, 'form', 'Please look through the form.', {
        name: { type: 'string', default: 'John Doe' },
        age: { type: 'integer', default: 30 },
        score: { type: 'number', default: 95.5 },
        status: { type: 'string', enum: ['active', 'inactive', 'pending'], default: 'active' },
        verified: { type: 'boolean', default: true },
      }),
  },
  {
    name: 'test_elicitation_sep1330_enums',
    description: 'Asks with a form that has each kind of choice.',
    call: (_args, context) =>
      askOnce(context, 'form', 'Please choose.', {
        untitledSingle: { type: 'string', enum: ['option1', 'option2', 'option3'] },
        titledSingle: { type: 'string', oneOf: titled },
        legacyEnum: {
          type: 'string',
          enum: ['opt1', 'opt2', 'opt3'],
          enumNames: ['Number one', 'Number two', 'Number three'],
        },
        untitledMulti: { type: 'array', items: { type: 'string', enum: ['option1', 'option2', 'option3'] } },
        titledMulti: { type: 'array', items: { anyOf: titled } },
      }),
  },
  {
    name: 'test_missing_capability',
    description: 'Needs a client that lets its model be asked.',
    // To a client that has not declared it the SDK answers that a capability is missing.
    call: (_args, { mcpReq }) => askModel(mcpReq, 'model', 'Are you there?'),
  },
  {
    name: 'test_streaming_elicitation',
    description: 'Reports progress, then asks the person at the client.',
    async call(_args, context) {
      await context.mcpReq.log('info', 'about to ask');
      return askOnce(context, 'person', 'Who is there?', { name: { type: 'string' } });
    },
  },

  // ── Several rounds (2026-07-28) ────────────────────────────────────────────────────────────────────────────
  {
    name: 'test_input_required_result_elicitation',
    description: 'Asks for a name, and greets.',
    call: (_args, { mcpReq }) => {
      const given = acceptedContent(mcpReq.inputResponses, 'user_name');
      if (typeof given?.name === 'string') return said(`Good day, ${given.name}.`);
      return inputRequired({ inputRequests: { user_name: nameAsked } });
    },
  },
  {
    name: 'test_input_required_result_sampling',
    description: 'Asks the model of the client for a capital.',
    call: (_args, { mcpReq }) => askModel(mcpReq, 'capital_question', 'Which city is the capital of France?'),
  },
  {
    name: 'test_input_required_result_list_roots',
    description: 'Asks for the roots of the client.',
    call: (_args, { mcpReq }) => {
      const answer = inputResponse(mcpReq.inputResponses, 'client_roots');
      if (answer.kind === 'roots') return said(`Roots: ${answer.roots.map(({ uri }) => uri).join(', ')}`);
      return inputRequired({ inputRequests: { client_roots: inputRequired.listRoots() } });
    },
  },
  {
    name: 'test_input_required_result_request_state',
    description: 'Asks to confirm, and keeps its place in the state that goes along.',
    call: confirmWithState,
  },
  {
    name: 'test_input_required_result_tampered_state',
    description: 'Asks to confirm, and refuses a state that is not its own.',
    call: confirmWithState,
  },
  {
    name: 'test_input_required_result_multiple_inputs',
    description: 'Asks the person, the model and for the roots in one round.',
    async call(_args, { mcpReq }, { mint }) {
      const answers = ['user_name', 'greeting', 'client_roots'].map(
        (key) => inputResponse(mcpReq.inputResponses, key).kind,
      );
      if (answers.join() === 'elicit,sampling,roots') return said('All three have answered.');
      return inputRequired({
        inputRequests: {
          user_name: nameAsked,
          greeting: sampled('Write a greeting.', 50),
          client_roots: inputRequired.listRoots(),
        },
        requestState: await mint({ asked: 3 }),
      });
    },
  },
  {
    name: 'test_input_required_result_multi_round',
    description: 'Asks for a name, then for a colour.',
    async call(_args, { mcpReq }, { mint }) {
      const { name } = mcpReq.requestState() ?? {};
      const colour = acceptedContent(mcpReq.inputResponses, 'step2')?.color;
      if (name !== undefined && typeof colour === 'string') return said(`${name} likes ${colour}.`);
      const given = acceptedContent(mcpReq.inputResponses, 'step1')?.name;
      if (given === undefined) {
        const step1 = asked('What is your name?', { name: { type: 'string' } });
        return inputRequired({ inputRequests: { step1 }, requestState: await mint({}) });
      }
      const step2 = asked('Which colour do you like?', { color: { type: 'string' } });
      return inputRequired({ inputRequests: { step2 }, requestState: await mint({ name: given }) });
    },
  },
  {
    name: 'test_input_required_result_capabilities',
    description: 'Asks only for what the client has declared.',
    call: (_args, { mcpReq }) => {
      if (mcpReq.inputResponses !== undefined) return said('Answered.');
      const { elicitation, sampling, roots } = capabilitiesOf(mcpReq);
      return inputRequired({
        inputRequests: {
          ...(elicitation === undefined ? {} : { person: nameAsked }),
          ...(sampling === undefined ? {} : { model: sampled('Write a greeting.', 50) }),
          ...(roots === undefined ? {} : { roots: inputRequired.listRoots() }),
        },
      });
    },
  },

  // ── Schemas and headers ────────────────────────────────────────────────────────────────────────────────────
  {
    name: 'json_schema_2020_12_tool',
    description: 'Has a schema with the keywords of JSON Schema 2020-12.',
    inputSchema: {
      $schema: 'https://json-schema.org/draft/2020-12/schema',
      type: 'object',
      properties: {
        item: { type: 'string' },
        delivery: { enum: ['by_post', 'collected'] },
        to: { $ref: '#/$defs/address' },
        shop: { type: 'string' },
      },
      required: ['item'],
      allOf: [{ anyOf: [{ required: ['to'] }, { required: ['shop'] }] }],
      if: { properties: { delivery: { const: 'by_post' } }, required: ['delivery'] },
      // A keyword of JSON Schema.
      then: { required: ['to'] },
      else: { required: ['shop'] },
      additionalProperties: false,
      $defs: {
        address: { $anchor: 'address', type: 'object', properties: { lines: { type: 'array' } } },
      },
    },
    call: (args) => said(JSON.stringify(args)),
  },
  {
    name: 'test_parameter_in_header',
    description: 'Has a parameter that the client repeats in a header.',
    inputSchema: {
      type: 'object',
      properties: { region: { type: 'string', 'x-mcp-header': 'Region' } },
      required: ['region'],
    },
    call: ({ region }) => said(`Region ${region}.`),
  },
];

export function schemaOf({ inputSchema = nothing }) {
  return inputSchema;
}

const nameAsked = asked('What is your name?', { name: { type: 'string' } });

const titled = [
  { const: 'value1', title: 'The first' },
  { const: 'value2', title: 'The second' },
  { const: 'value3', title: 'The third' },
];

function asked(message, properties) {
  const requestedSchema = { type: 'object', properties, required: Object.keys(properties) };
  return inputRequired.elicit({ message, requestedSchema });
}

function sampled(text, maxTokens) {
  return inputRequired.createMessage({
    messages: [{ role: 'user', content: { type: 'text', text } }],
    maxTokens,
  });
}

function askModel({ inputResponses }, key, text) {
  const answer = inputResponse(inputResponses, key);
  if (answer.kind === 'sampling') return said(`The model said: ${JSON.stringify(answer.result.content)}`);
  return inputRequired({ inputRequests: { [key]: sampled(text, 100) } });
}

function askOnce({ mcpReq }, key, message, properties) {
  const answer = inputResponse(mcpReq.inputResponses, key);
  if (answer.kind === 'elicit') {
    return said(`The person's answer: ${answer.action} ${JSON.stringify(answer.content ?? {})}`);
  }
  return inputRequired({ inputRequests: { [key]: asked(message, properties) } });
}

async function confirmWithState(_args, { mcpReq }, { mint }) {
  const isConfirmed = acceptedContent(mcpReq.inputResponses, 'confirm')?.ok === true;
  if (isConfirmed && mcpReq.requestState()?.place === 'confirm') return said('Confirmed: state-ok');
  return inputRequired({
    inputRequests: { confirm: asked('Shall it be so?', { ok: { type: 'boolean' } }) },
    requestState: await mint({ place: 'confirm' }),
  });
}

async function logThreeLines(_args, { mcpReq }) {
  for (const line of ['begun', 'in the middle', 'done']) {
    await mcpReq.log('info', line);
    await delay(STEP_MS);
  }
  return said('Three lines were logged.');
}

/** What the client has declared with this request (2026-07-28). */
function capabilitiesOf({ envelope }) {
  return envelope?.['io.modelcontextprotocol/clientCapabilities'] ?? {};
}

function embedded(uri, text, mimeType = 'text/plain') {
  return { type: 'resource', resource: { uri, mimeType, text } };
}
