import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { reportContract } from '../../src/contracts/contract-report.ts';
import { type Draft } from '../../src/contracts/draft.ts';
import { draftFromOpenApi } from '../../src/contracts/draft-openapi.ts';
import { draftFromTools } from '../../src/contracts/draft-tools.ts';
import { type Refused } from '../../src/contracts/load.ts';
import { formatProblem } from '../../src/contracts/problem.ts';
import { answersFor } from '../../src/contracts/situations.ts';
import { writeRequest } from '../../src/core/http-request.ts';
import { FilesystemServer } from './filesystem-server.ts';

const OPTIONS = { today: '2026-12-01' };

function drafted(draft: Draft | Refused): Draft {
  if (!draft.ok) throw new Error(draft.problems.map(formatProblem).join('\n'));
  return draft;
}

function said(draft: Draft | Refused): readonly string[] {
  return draft.ok ? [] : draft.problems.map(formatProblem);
}

const ORDERS = `openapi: 3.1.0
info: {title: Orders API, version: 2.3.0}
servers: [{url: 'https://orders.example/v2'}]
paths:
  /orders:
    parameters:
      - {name: Idempotency-Key, in: header, required: true, schema: {type: string, maxLength: 64}}
    get: {responses: {'200': {description: a list}}}
    post:
      operationId: createOrder
      requestBody: {$ref: '#/components/requestBodies/Order'}
      responses: {'201': {description: made}, '400': {description: wrong}, '409': {description: clash}, '429': {description: later}, '503': {description: down}}
  /orders/{order_id}:
    get: {responses: {'200': {description: one, headers: {ETag: {schema: {type: string}}}}}}
    put:
      parameters: [{name: If-Match, in: header, schema: {type: string}}]
      responses: {'200': {description: written, headers: {ETag: {schema: {type: string}}}}}
    delete: {responses: {'204': {description: gone}}}
  /orders/{order_id}/cancel:
    post: {responses: {'202': {description: taken}}}
components:
  requestBodies:
    Order:
      content:
        application/json:
          schema: {$ref: '#/components/schemas/Order'}
  schemas:
    Order: {type: object, required: [total], properties: {id: {type: string, readOnly: true}, total: {type: number}, note: {type: string}, client_token: {type: string}, maximum: {type: integer, maximum: 9223372036854775807}}}
`;

/** Names that stand in no template, headers that nobody chooses, a body in two forms. */
const ODD = {
  parameters: [
    ...['q', 'a b', 'filter[x]', '{y}', '__proto__'].map((name) => ({ name, in: 'query', required: true })),
    ...['X-A', 'Host', 'Authorization', 'If-None-Match', 'Idempotency-Key', 'a b'].map((name) => ({
      name,
      in: 'header',
      required: true,
    })),
  ],
  requestBody: {
    content: {
      'application/x-www-form-urlencoded': { schema: { properties: { form: {} } } },
      'application/json': {
        schema: { properties: { x: {}, 'a/b': {}, constructor: {}, dedup_key: {} }, required: ['x'] },
      },
    },
  },
  responses: { 201: {}, 422: {} },
};

describe('a draft from an OpenAPI description', () => {
  const { contract, text } = drafted(draftFromOpenApi(ORDERS, 'orders.yaml', OPTIONS));

  it('has each write, by its method and path', () => {
    expect(contract).toMatchObject({
      id: 'orders-api',
      destination: {
        name: 'Orders API',
        protocol: 'http',
        base: 'https://orders.example/v2',
        api_version: '2.3.0',
      },
      ownership: { owner: 'unassigned', reviewed_on: '2026-12-01' },
    });
    expect(contract.operations.map(({ effect, match }) => [match[0], effect])).toEqual([
      ['POST /orders', 'create'],
      ['PUT /orders/{order_id}', 'replace'],
      ['DELETE /orders/{order_id}', 'delete'],
      ['POST /orders/{order_id}/cancel', 'action'],
    ]);
  });

  it('takes down what is there, and what it means as assumed', () => {
    const [create, put, remove, cancel] = contract.operations;
    expect(
      create?.guards.map(({ carrier, kind, window }) => [kind, carrier.in, carrier.name, window.kind]),
    ).toEqual([
      ['request_key', 'header', 'Idempotency-Key', 'unknown'],
      ['request_key', 'body', 'client_token', 'unknown'],
    ]);
    expect(create?.guards[0]).toMatchObject({ required: 'always', carrier: { max_length: 64 } });
    expect(create?.outcomes.map(({ means, when }) => [means, when.status])).toEqual([
      ['applied', [201]],
      ['unknown', [409]],
      ['not_applied_temporary', [429]],
      ['not_applied', [400]],
      ['unknown', [503]],
    ]);
    expect(create?.reversals[0]).toMatchObject({ kind: 'delete', operation: 'DELETE /orders/{order_id}' });
    expect(put).toMatchObject({ target: { type: 'orders', id: '{order_id}' }, version: { kind: 'opaque' } });
    expect(put?.guards[0]).toMatchObject({ kind: 'precondition', carrier: { name: 'If-Match' } });
    expect(remove).toMatchObject({ destructive: true, lookups: [{ request: 'GET /orders/{order_id}' }] });
    expect(cancel?.completion.kind).toBe('accepted_no_handle');
  });

  it('says how each is sent, with its key and its condition in their places and nothing of ours as an argument', () => {
    const [create, put] = contract.operations;
    expect(create?.http).toEqual({
      method: 'POST',
      path: '/orders',
      body: { total: '{total}', note: '{note?}', maximum: '{maximum?}' },
    });
    if (create === undefined || put === undefined) throw new Error('They are drafted.');
    const made = writeRequest(create, { total: 12 }, 'op_01JC3V9R7T5N2QX8W4M6K0ZABC');
    expect(made).toMatchObject({
      ok: true,
      request: {
        target: '/orders',
        body: '{"total":12}',
        headers: { 'idempotency-key': 'op_01JC3V9R7T5N2QX8W4M6K0ZABC' },
      },
    });
    expect(writeRequest(put, { order_id: 'o 7', version: 'v1' }, 'op_1')).toMatchObject({
      request: { target: '/orders/o%207', headers: { 'if-match': '"v1"' } },
    });
  });

  it('is right as a file, asks what is to be found out, and lets nothing happen by itself after a lost reply', () => {
    const report = reportContract(text, 'orders-api.contract.yaml', {
      today: '2026-12-01',
      pauses: { resumeWindow: 'PT96H', approvalLifetime: 'PT8H' },
    });
    expect(report.problems).toEqual([]);
    for (const operation of contract.operations) {
      expect(operation.open_questions?.length).toBeGreaterThan(3);
      const lost = answersFor(contract, operation).find(({ situation }) => situation === 'lost');
      expect([operation.id, lost?.step?.step]).toEqual([operation.id, 'park']);
    }
    expect(text).toMatch(
      /^# A draft of 2026-12-01, made of the description "Orders API" \(OpenAPI "3\.1\.0"\)\.\n/,
    );
  });

  it.each([
    ['a: 1', 'f:1:1: This is no OpenAPI description: openapi (or swagger) and paths are expected.'],
    ['openapi: 3.0.0\npaths: {}', 'f:2:8: No POST, PUT, PATCH or DELETE is described: there is no write.'],
    ['swagger: "2.0"\npaths: [', /^f:2:9: This cannot be read as YAML: /],
    ['openapi: 3.0.0\npaths: {/x: {post: {$ref: "#/paths/~1x/post"}}}', /there is no write/],
  ])('%j: one sentence', (text, sentence) => {
    const [first = ''] = said(draftFromOpenApi(text, 'f', OPTIONS));
    if (typeof sentence === 'string') expect(first).toBe(sentence);
    else expect(first).toMatch(sentence);
  });

  it('is right, or refused in a sentence, whatever is described', () => {
    const name = fc.oneof(
      fc.constantFrom('/a', '/a/{b}', '/{}', '//', '/x y', '/a/{b'),
      fc.string({ maxLength: 8 }),
    );
    const part = fc.oneof(
      fc.constantFrom({}, [], null, 7, 'x', { responses: { 200: {}, default: {} } }, ODD, {
        parameters: [{ name: 'if-match', in: 'header' }],
      }),
      fc.record({ operationId: fc.string(), responses: fc.object({ maxDepth: 1 }) }),
    );
    const item = fc.dictionary(fc.constantFrom('get', 'post', 'put', 'delete', 'parameters'), part, {
      maxKeys: 4,
    });
    fc.assert(
      fc.property(fc.dictionary(name, item, { maxKeys: 4 }), fc.string(), (paths, title) => {
        const text = JSON.stringify({ openapi: '3.0.0', info: { title, version: title }, paths });
        const draft = draftFromOpenApi(text, 'f', OPTIONS);
        if (draft.ok) expect(draft.contract.operations.length).toBeGreaterThan(0);
        else for (const problem of draft.problems) expect(problem.sentence).toMatch(/no write|no OpenAPI/);
      }),
    );
  });
});

describe('a draft from what a server lists', () => {
  let server: FilesystemServer;
  let listing: string;
  beforeAll(async () => {
    server = await FilesystemServer.start();
    listing = JSON.stringify({ jsonrpc: '2.0', id: 1, result: { tools: await server.tools() } });
  });
  afterAll(() => server.stop());

  it('has the tools that do not say that they only read', () => {
    const { contract } = drafted(draftFromTools(listing, '/x/files.json', OPTIONS));
    expect(contract.id).toBe('files');
    expect(contract.operations.map(({ effect, match }) => [match[0], effect])).toEqual([
      ['write_file', 'create'],
      ['edit_file', 'update'],
      ['create_directory', 'create'],
      ['move_file', 'update'],
    ]);
    const grades = contract.operations.flatMap(({ evidence, reversals }) => [
      evidence?.grade,
      ...reversals.map((reversal) => reversal.evidence.grade),
    ]);
    expect([...new Set(grades)]).toEqual(['assumed']);
  });

  it('asks about a hint, and never takes one for a fact', () => {
    const { contract } = drafted(draftFromTools(listing, 'files.json', OPTIONS));
    const write = contract.operations.find(({ id }) => id === 'write_file');
    expect(write?.guards.map(({ evidence, kind, strength }) => [kind, strength, evidence.grade])).toEqual([
      ['desired_state', 'unknown', 'assumed'],
    ]);
    expect(write?.open_questions).toEqual(
      expect.arrayContaining([
        'Its server hints that a repeat changes nothing more: does it, and are people told again?',
      ]),
    );
  });

  it('finds a key by the name of an argument', () => {
    const tools = [
      { name: 'list_payments', annotations: { readOnlyHint: true } },
      { name: 'create_payment', inputSchema: { properties: { to: {}, amount: {}, idempotency_key: {} } } },
      { name: 'remove_payment', annotations: { destructiveHint: false } },
    ];
    const { contract } = drafted(draftFromTools(JSON.stringify({ tools }), 'pay', { ...OPTIONS, id: 'pay' }));
    const [create, remove] = contract.operations;
    expect(create?.guards[0]).toMatchObject({ kind: 'request_key', carrier: { name: 'idempotency_key' } });
    expect(create?.open_questions?.[1]).toBe('Does list_payments find it again when its reply was lost?');
    expect(remove).toMatchObject({ effect: 'delete', destructive: true });
  });

  it.each([
    [
      '{}',
      'f:1:1: No list of tools is here; what tools/list answers with is expected: {"tools": [{"name": …, "inputSchema": …}]}.',
    ],
    ['{"tools": []}', 'f:1:11: The list of tools is empty.'],
    ['{"tools": [7]}', 'f:1:12: tools[0] is no map of keys and values.'],
    ['[{"name": "a"}, {"name": "a"}]', 'f:1:17: tools[1] is called "a", as an earlier one is.'],
    [
      '[{"name": "a", "annotations": {"readOnlyHint": true}}]',
      'f:1:1: Every tool of the list says that it only reads: there is no write to describe.',
    ],
  ])('%s: one sentence', (text, sentence) => {
    expect(said(draftFromTools(text, 'f', OPTIONS))).toEqual([sentence]);
  });
});
