// The fixture server: what the scenarios of the suite name is there, for both generations.

import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { afterAll, beforeAll, expect, test } from 'vitest';

const SERVER = fileURLToPath(new URL('../../conformance/fixture-server.mjs', import.meta.url));

const TOOLS = [
  'json_schema_2020_12_tool',
  'test_audio_content',
  'test_elicitation',
  'test_elicitation_sep1034_defaults',
  'test_elicitation_sep1330_enums',
  'test_embedded_resource',
  'test_error_handling',
  'test_image_content',
  'test_input_required_result_capabilities',
  'test_input_required_result_elicitation',
  'test_input_required_result_list_roots',
  'test_input_required_result_multi_round',
  'test_input_required_result_multiple_inputs',
  'test_input_required_result_request_state',
  'test_input_required_result_sampling',
  'test_input_required_result_tampered_state',
  'test_logging_tool',
  'test_missing_capability',
  'test_multiple_content_types',
  'test_parameter_in_header',
  'test_reconnection',
  'test_sampling',
  'test_simple_text',
  'test_streaming_elicitation',
  'test_tool_with_logging',
  'test_tool_with_progress',
  'test_trigger_prompt_change',
  'test_trigger_tool_change',
];
const PROMPTS = [
  'test_input_required_result_prompt',
  'test_prompt_with_arguments',
  'test_prompt_with_embedded_resource',
  'test_prompt_with_image',
  'test_simple_prompt',
];
const RESOURCES = ['test://static-binary', 'test://static-text', 'test://watched-resource'];

let server: ReturnType<typeof fork>;
let url: URL;

beforeAll(async () => {
  server = fork(SERVER);
  const [{ port }] = (await once(server, 'message')) as [{ port: number }];
  url = new URL(`http://127.0.0.1:${port}/mcp`);
});
afterAll(async () => {
  server.disconnect();
  await once(server, 'exit');
});

const sorted = (names: readonly string[]): string[] => names.toSorted((a, b) => (a < b ? -1 : 1));

test('a client of 2025-11-25 finds each tool, prompt and resource that a scenario names', async () => {
  const client = new Client({ name: 'test', version: '1.0.0' });
  await client.connect(new StreamableHTTPClientTransport(url));
  const { tools } = await client.listTools();
  const { prompts } = await client.listPrompts();
  const { resources } = await client.listResources();
  const { resourceTemplates } = await client.listResourceTemplates();
  await client.close();
  expect(sorted(tools.map(({ name }) => name))).toEqual(TOOLS);
  expect(sorted(prompts.map(({ name }) => name))).toEqual(PROMPTS);
  expect(sorted(resources.map(({ uri }) => uri))).toEqual(RESOURCES);
  expect(resourceTemplates.map(({ uriTemplate }) => uriTemplate)).toEqual(['test://template/{id}/data']);
});

test('so does a client of 2026-07-28, which shakes no hands', async () => {
  const generation = '2026-07-28';
  const response = await fetch(url, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      'mcp-protocol-version': generation,
      'mcp-method': 'tools/list',
    },
    body: JSON.stringify({
      jsonrpc: '2.0',
      id: 1,
      method: 'tools/list',
      params: {
        _meta: {
          'io.modelcontextprotocol/protocolVersion': generation,
          'io.modelcontextprotocol/clientCapabilities': {},
        },
      },
    }),
  });
  const { result } = (await response.json()) as {
    readonly result: { readonly resultType: string; readonly tools: readonly { readonly name: string }[] };
  };
  expect(result.resultType).toBe('complete');
  expect(sorted(result.tools.map(({ name }) => name))).toEqual(TOOLS);
});

test('who names another host is refused', async () => {
  const response = await fetch(url, { method: 'POST', headers: { origin: 'http://elsewhere.example' } });
  expect(response.status).toBe(403);
});
