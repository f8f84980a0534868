import { describe, expect, test } from 'vitest';
import { toolDigest as digestOf } from '../../src/contracts/compile.ts';
import { loadBinding, loadContract } from '../../src/contracts/load.ts';
import type { JsonObject } from '../../src/core/canonical.ts';
import type { Operation } from '../../src/core/operation.ts';
import type { Reply } from '../../src/destination/port.ts';
import type { Answer } from '../../src/engine/answers.ts';
import { type AnswerDoor, answerFrame, errorFrame } from '../../src/gateway/answer-frame.ts';
import { readToolCall } from '../../src/gateway/call.ts';
import { OpenRequests, requestKey } from '../../src/gateway/open-requests.ts';
import { SchemaChecks } from '../../src/gateway/schema-checks.ts';
import { HELPER_TOOL_NAME, helperToolText, readStatusQuestion } from '../../src/gateway/status-tool.ts';
import { type GatewayRules, ServerFacts } from '../../src/gateway/tool-facts.ts';
import { schemaWithout, ToolList } from '../../src/gateway/tool-list.ts';
import { BINDING, CONTRACT, changed } from '../contracts/texts.ts';
import {
  ABSENT,
  ACCEPTED,
  ERROR,
  factsOf,
  factsWithLookup,
  LOST,
  setup as operationSetup,
  PRESENT,
  REJECTED,
  setupLost,
} from '../core/fixtures.ts';
import type { ToolResult } from './processes.ts';

describe('an answer as a frame', () => {
  const RESULT: Reply = {
    kind: 'result',
    body: '{ "content":[ {"type":"text","text":"made"} ],"structuredContent":{"n":1.0},"more":12345678901234567890 }',
  };
  const REFUSED: Reply = {
    kind: 'tool_error',
    body: '{"content":[{"type":"text","text":"no such project"}],"isError":true}',
  };
  const door = (fits: boolean): AnswerDoor => ({
    helperTool: HELPER_TOOL_NAME,
    where: 'here',
    fits: async () => fits,
  });
  const framed = async (answer: Answer, fits = true): Promise<ToolResult> => {
    const text = await answerFrame('7', answer, door(fits));
    const frame = JSON.parse(text) as {
      readonly jsonrpc: string;
      readonly id: number;
      readonly result: ToolResult;
    };
    expect(frame).toMatchObject({ jsonrpc: '2.0', id: 7 });
    expect(text).not.toContain('\n');
    return frame.result;
  };
  const done = (): Operation => {
    const bundle = operationSetup();
    bundle.start();
    bundle.comesBack(ACCEPTED);
    return bundle.operation;
  };
  const closedBy = (finding: typeof ERROR): Operation => {
    const bundle = operationSetup();
    bundle.start();
    bundle.comesBack(finding);
    return bundle.operation;
  };

  test('the first reply is the destination’s own, byte for byte, with the id as it was spelled', async () => {
    const reply: Answer = { kind: 'reply', operation: done(), notApplied: [], reply: RESULT };
    expect(await answerFrame('"a\\u0062"', reply, door(false))).toBe(
      `{"jsonrpc":"2.0","id":"a\\u0062","result":${RESULT.body}}`,
    );
    const error: Reply = { kind: 'protocol_error', code: -32_000, body: '{"code":-32000, "message":"no"}' };
    const refused: Answer = { ...reply, reply: error };
    expect(await answerFrame('1', refused, door(false))).toBe(
      `{"jsonrpc":"2.0","id":1,"error":${error.body}}`,
    );
  });

  test('done before: the words, then the original content; structured content where it still fits', async () => {
    const answer: Answer = {
      kind: 'already_exists',
      operation: done(),
      notApplied: ['title'],
      reply: RESULT,
    };
    const result = await framed(answer);
    expect(result.content?.map(({ text }) => text?.split(' ')[0])).toEqual(['ALREADY_EXISTS', 'made']);
    expect(result.content?.[0]?.text).toContain('NOT applied: title');
    expect(result.structuredContent).toEqual({ n: 1 });
    expect(result.isError).toBeUndefined();
    const misfit = await framed(answer, false);
    expect(misfit.content).toHaveLength(2);
    expect(misfit.structuredContent).toBeUndefined();
    expect(misfit.isError).toBe(true);
  });

  test('done before, and the original was cut, lost, or an error of the protocol: the words alone', async () => {
    const replies: readonly (Reply | undefined)[] = [
      undefined,
      { ...RESULT, truncated: true },
      { kind: 'protocol_error', body: '{"code":1,"message":"x"}' },
      { kind: 'result', body: '[1]' },
      { kind: 'result', body: 'not JSON' },
      { kind: 'result', body: '{"content":"a text"}' },
    ];
    for (const reply of replies) {
      const result = await framed({
        kind: 'already_exists',
        operation: done(),
        notApplied: [],
        ...(reply === undefined ? {} : { reply }),
      });
      expect(result.content).toHaveLength(1);
      expect(result.structuredContent).toBeUndefined();
    }
  });

  test('found by look-up: the record, and no result of its own', async () => {
    const lost = setupLost({ facts: factsWithLookup() });
    lost.learn(PRESENT);
    const result = await framed({ kind: 'found', operation: lost.operation, notApplied: [] });
    expect(result.content?.[0]?.text).toMatch(
      /^ALREADY_EXISTS — .*its answer was lost, and the record was found/,
    );
    expect(result.isError).toBeUndefined();
  });

  test('everything else is an error without structured content, which every client accepts', async () => {
    const asked = operationSetup({ facts: factsOf({ class: 'irreversible' }) });
    const denied = operationSetup({ facts: factsOf({ class: 'irreversible' }) });
    denied.decides('denied');
    const absent = setupLost({ facts: factsWithLookup() });
    absent.pass(120_000);
    absent.learn(ABSENT);
    const operations: readonly (readonly [Operation, RegExp])[] = [
      [asked.operation, /^NOT SENT YET — /],
      [denied.operation, /^NOT SENT — denied/],
      [operationSetup().operation, /^NOT SENT YET — /],
      [setupLost().operation, /^OUTCOME UNKNOWN — /],
      [absent.operation, /^(NOT THERE|NOT SENT|OUTCOME UNKNOWN)/],
    ];
    for (const [operation, words] of operations) {
      const result = await framed({ kind: 'state', operation, notApplied: [] }, false);
      expect(result.content).toHaveLength(1);
      expect(result.content?.[0]?.text).toMatch(words);
      expect(result.isError).toBe(true);
      expect(result.structuredContent).toBeUndefined();
      expect(result._meta?.['counterfoil/operation']).toMatchObject({
        operation: 'op_9K3',
        stage: operation.stage,
        effect: operation.effect,
      });
    }
    const down = await framed({ kind: 'not_recorded', detail: 'the disk is full' });
    expect(down).toEqual({
      content: [{ type: 'text', text: expect.stringMatching(/^NOT RECORDED, NOT SENT — /) }],
      isError: true,
    });
    expect(down.content?.[0]?.text).not.toContain('disk');
  });

  test('what the destination itself has said comes first, unchanged', async () => {
    for (const finding of [ERROR, REJECTED]) {
      const answer: Answer = { kind: 'state', operation: closedBy(finding), notApplied: [], reply: REFUSED };
      const result = await framed(answer);
      expect(result.content?.[0]).toEqual({ type: 'text', text: 'no such project' });
      expect(result.content?.[1]?.text).toMatch(/tasks-eu (answered with an error|refused this)/);
      expect(result.isError).toBe(true);
    }
  });

  test('_meta holds names, states and instants only', async () => {
    const operation: Operation = { ...closedBy(LOST), record: { id: '1042' } };
    const result = await framed({
      kind: 'state',
      operation,
      notApplied: [],
      target: 'file secret.txt',
      quote: 'secret',
    });
    expect(JSON.stringify(result._meta)).not.toContain('secret');
    expect(result._meta?.['counterfoil/operation']).toMatchObject({ record: '1042', run: 'run-1' });
  });

  test('an error of our own says whose it is, outside the codes that the protocols keep', () => {
    expect(JSON.parse(errorFrame('1', 7001, 'a "b"\n'))).toEqual({
      jsonrpc: '2.0',
      id: 1,
      error: { code: 7001, message: 'a "b"\n', data: { origin: 'counterfoil' } },
    });
  });
});

describe('the list of tools', () => {
  const page = (tools: string, more = ''): string => `{"tools":${tools}${more}}`;
  const A =
    '{"name":"a","inputSchema":{"type":"object","properties":{"1":{},"0":{}}},"n":12345678901234567890}';
  const B =
    '{ "name" : "b,]}\\"[", "inputSchema":{"type":"object","properties":{"ref":{},"x":{}},"required":["ref","x"]} }';
  const HELPER = helperToolText(HELPER_TOOL_NAME);

  async function listOf(...pages: readonly string[]) {
    const asked: (string | undefined)[] = [];
    const list = new ToolList(async (cursor) => {
      asked.push(cursor);
      return { result: pages[Math.min(asked.length, pages.length) - 1] ?? '' };
    });
    return { list, asked, problem: await list.ensure() };
  }

  test('is shown with every byte of the server’s, and the helper tool last', async () => {
    const { list } = await listOf(page(`[${A},${B}]`));
    const result = `{ "tools" : [ ${A} , ${B} ] , "_meta":{"x":1.0} }`;
    expect(list.shown(result, () => undefined)).toBe(
      `{ "tools" : [${A},${B},${HELPER}] , "_meta":{"x":1.0} }`,
    );
    expect(list.shown(page('[ ]'), () => undefined)).toBe(page(`[${HELPER}]`));
  });

  test('is shown without the argument that is ours, and every other tool keeps its bytes', async () => {
    const { list } = await listOf(page(`[${A},${B}]`));
    const shown = list.shown(page(`[${A},${B}]`), (tool) => (tool === 'a' ? undefined : 'ref'));
    expect(shown.startsWith(`{"tools":[${A},`)).toBe(true);
    const tools = (JSON.parse(shown) as { readonly tools: readonly JsonObject[] }).tools;
    expect(tools[1]).toEqual({
      name: 'b,]}"[',
      inputSchema: { type: 'object', properties: { x: {} }, required: ['x'] },
    });
  });

  test('comes in pages: the helper tool is on the last, which some servers mark by null or an empty cursor', async () => {
    const { list, asked } = await listOf(
      page(`[${A}]`, ',"nextCursor":"two"'),
      page(`[${B}]`, ',"nextCursor":""'),
    );
    expect(asked).toEqual([undefined, 'two']);
    expect(list.get('a')?.name).toBe('a');
    expect(list.get('b,]}"[')?.name).toBe('b,]}"[');
    expect(list.shown(page('[]', ',"nextCursor":"two"'), () => undefined)).toBe(
      page('[]', ',"nextCursor":"two"'),
    );
    for (const end of ['', ',"nextCursor":null', ',"nextCursor":""']) {
      expect(list.shown(page('[]', end), () => undefined)).toBe(page(`[${HELPER}]`, end));
    }
  });

  test('that never ends is given up after 64 pages', async () => {
    const { asked, problem } = await listOf(page(`[${A}]`, ',"nextCursor":"again"'));
    expect(asked).toHaveLength(64);
    expect(problem).toBeUndefined();
  });

  test('that is no list is shown as it is', async () => {
    const { list } = await listOf(page('[]'));
    for (const result of ['{}', '{"tools":{}}', '{"tools":null}', '[]', 'x']) {
      expect(list.shown(result, () => undefined)).toBe(result);
    }
  });

  test('whose entries are nothing that we know keeps them', async () => {
    const { list } = await listOf(page('[7,null,{"title":"no name"},{"name":5},{"name":"a"}]'));
    expect(list.get('a')).toMatchObject({ readOnlyHint: false, inputSchema: undefined });
    expect(list.shown(page('[7,null,"],["]'), () => undefined)).toBe(page(`[7,null,"],[",${HELPER}]`));
  });

  test('counts as a read only where the hint is true', async () => {
    const tools = ['true', '"true"', '1', 'false'].map(
      (hint, index) => `{"name":"t${index}","annotations":{"readOnlyHint":${hint}}}`,
    );
    const { list } = await listOf(page(`[${tools.join(',')}]`));
    expect(tools.map((_, index) => list.get(`t${index}`)?.readOnlyHint)).toEqual([true, false, false, false]);
  });

  test('is read again after it may have changed, also when that was told while it was being read', async () => {
    let version = 1;
    const list: ToolList = new ToolList(async () => {
      const result = page(`[{"name":"v${version}"}]`);
      if (version === 2) {
        version = 3;
        list.markStale();
      }
      return { result };
    });
    await list.ensure();
    expect(list.isFresh).toBe(true);
    version = 2;
    list.markStale();
    expect(list.isFresh).toBe(false);
    expect(list.get('v1')).toBeDefined();
    await list.ensure();
    expect(list.isFresh).toBe(false);
    await list.ensure();
    expect(list.isFresh).toBe(true);
    expect(list.get('v3')).toBeDefined();
  });

  test('is asked for once by many; an older one is better than none', async () => {
    let asked = 0;
    let isDown = false;
    const list = new ToolList(async () => {
      asked += 1;
      return isDown ? { problem: 'away' } : { result: page(`[${A}]`) };
    });
    expect(await Promise.all([list.ensure(), list.ensure(), list.ensure()])).toEqual([
      undefined,
      undefined,
      undefined,
    ]);
    expect(asked).toBe(1);
    isDown = true;
    list.markStale();
    expect(await list.ensure()).toBeUndefined();
    expect(list.isKnown).toBe(true);
    expect(list.isFresh).toBe(false);
    const never = new ToolList(async () => ({ problem: 'away' }));
    expect(await never.ensure()).toBe('away');
    expect(never.isKnown).toBe(false);
  });

  test('names the helper tool so that it hides none of the server’s', async () => {
    const taken = [HELPER_TOOL_NAME, `${HELPER_TOOL_NAME}_2`].map((name) => `{"name":"${name}"}`);
    expect((await listOf(page(`[${taken.join(',')}]`))).list.helperName).toBe(`${HELPER_TOOL_NAME}_3`);
  });

  test('schemas lose only the argument that is named', () => {
    expect(schemaWithout({ type: 'object' }, 'ref')).toEqual({ type: 'object' });
    expect(schemaWithout({ properties: { ref: {} }, required: ['ref'], $defs: { ref: {} } }, 'ref')).toEqual({
      properties: {},
      required: [],
      $defs: { ref: {} },
    });
  });
});

describe('the facts about the tools of a server', () => {
  async function factsWith(
    binding: string,
    report: (message: string) => void = () => {},
  ): Promise<ServerFacts> {
    const tools = ['find_tasks', 'get_task', 'create_task', 'purge_task', 'other'];
    const list = new ToolList(async () => ({
      result: JSON.stringify({ tools: tools.map((name) => ({ name, inputSchema: { type: 'object' } })) }),
    }));
    await list.ensure();
    const contract = loadContract(CONTRACT, 'tasks.contract.yaml');
    const loaded = loadBinding(binding, 'tasks.binding.yaml');
    if (!contract.ok || !loaded.ok) throw new Error('The texts are right as they stand.');
    const rules: GatewayRules = {
      config: undefined,
      contracts: [{ value: contract.contract, source: contract.source }],
      bindings: [{ value: loaded.binding, source: loaded.source }],
    };
    const facts = new ServerFacts('tasks-eu', rules, list, report);
    facts.identify({ name: 'tasks-mcp', version: '1.2.0' });
    return facts;
  }
  const CONDITIONAL = changed(
    changed(
      BINDING,
      '{tool: create_task, when: {preview: true}, class: read}',
      '{tool: create_task, when: {send: true}, operation: task.create, class: ordinary}',
    ),
    '{tool: create_task, operation: task.create, class: ordinary}',
    '{tool: create_task, class: read}',
  );

  test('a tool is a read as a whole only where no call of it may be a write', async () => {
    const facts = await factsWith(BINDING);
    expect(['find_tasks', 'create_task', 'purge_task', 'other'].map((tool) => facts.isRead(tool))).toEqual([
      true,
      false,
      false,
      false,
    ]);
    // A call whose arguments have two meanings could be either.
    expect((await factsWith(CONDITIONAL)).isRead('create_task')).toBe(false);
  });

  test('the argument that is ours is known in whichever of its calls it is filled', async () => {
    expect((await factsWith(BINDING)).stampOf('create_task')).toBe('reference');
    expect((await factsWith(CONDITIONAL)).stampOf('create_task')).toBe('reference');
    expect((await factsWith(BINDING)).stampOf('find_tasks')).toBeUndefined();
  });

  test('a tool that is not the one that the binding was written for is told of once, and judged without it', async () => {
    const digest = digestOf({ name: 'find_tasks', inputSchema: { type: 'object' } });
    const measured = [
      {
        package: 'tasks',
        version: '1.2.0',
        on: '2026-11-30',
        tools: { find_tasks: digest, create_task: 'e'.repeat(64) },
      },
    ];
    const told: string[] = [];
    const facts = await factsWith(`${BINDING}measured: ${JSON.stringify(measured)}\n`, (text) =>
      told.push(text),
    );
    const classOf = (tool: string) => facts.for('tasks-eu', tool, {})?.class;
    expect(['find_tasks', 'create_task', 'purge_task', 'get_task'].map(classOf)).toEqual([
      'read',
      'unclassified',
      'irreversible',
      'read',
    ]);
    expect(facts.stampOf('create_task')).toBeUndefined();
    expect(told).toEqual([
      'create_task is not the tool that the binding tasks-server was written for: its schema or its hints are others. What was said of it counts only where that is more careful.',
    ]);
  });

  test('classes that persons have confirmed count for this destination, while they are in force', async () => {
    const facts = await factsWith(BINDING);
    const toolDigest = digestOf({ name: 'other', inputSchema: { type: 'object' } });
    const rule = {
      destination: 'tasks-eu',
      tool: 'other',
      toolDigest,
      class: 'ordinary',
      by: 'Mara',
      at: 1,
    } as const;
    const classWith = (...rules: Parameters<ServerFacts['confirm']>[0]) => {
      facts.confirm(rules);
      return facts.for('tasks-eu', 'other', {})?.class;
    };
    expect(classWith()).toBe('unclassified');
    expect(classWith(rule)).toBe('ordinary');
    expect(classWith({ ...rule, revokedAt: 2 })).toBe('unclassified');
    expect(classWith({ ...rule, destination: 'tasks-us' })).toBe('unclassified');
    expect(classWith({ ...rule, toolDigest: 'of another version' })).toBe('unclassified');
    expect(facts.for('tasks-us', 'other', {})).toBeUndefined();
    expect(facts.for('tasks-eu', 'unlisted', {})).toBeUndefined();
  });
});

describe('a call is read strictly', () => {
  const read = (params: string | undefined, run?: string) => readToolCall(params, run);

  test('its tool and arguments', () => {
    expect(read('{"arguments":{"b":1,"a":2},"name":"t"}')).toMatchObject({
      ok: true,
      call: { tool: 't', arguments: { ok: true, value: { a: 2, b: 1 } }, meta: undefined },
    });
    expect(read('{"name":"t"}')).toMatchObject({ ok: true, call: { arguments: { ok: true, value: {} } } });
    expect(read(undefined)).toEqual({ ok: false, problem: 'it has no params' });
    for (const params of ['[]', '7', '"t"', 'null', '{"name":"t"', '{"name":"t"}x']) {
      expect(read(params)).toEqual({ ok: false, problem: 'its params are not an object' });
    }
    for (const params of ['{}', '{"name":7}', '{"name":"\\ud800"}', '{"name":["t"]}']) {
      expect(read(params)).toEqual({ ok: false, problem: 'it names no tool' });
    }
  });

  test('its run: what the orchestrator gives, else what the gateway was started for', () => {
    const origin = (meta: string, run?: string) => {
      const reading = read(`{"name":"t","_meta":${meta}}`, run);
      return reading.ok ? reading.call.origin : reading;
    };
    expect(origin('{}')).toEqual({ ok: true, run: undefined, replays: [] });
    expect(origin('{}', 'monday')).toMatchObject({ run: { id: 'monday' } });
    expect(origin('{"counterfoil/run":"r"}', 'monday')).toMatchObject({ run: { id: 'r' } });
    expect(
      origin(
        '{"counterfoil/run":"r","counterfoil/step":"s","counterfoil/single":true,"counterfoil/occurrence":2}',
      ),
    ).toMatchObject({ run: { id: 'r', step: 's', single: true, occurrence: 2 } });
    expect(origin('{"counterfoil/step":"s"}', 'monday')).toMatchObject({ run: { id: 'monday', step: 's' } });
    expect(
      origin('{"claudecode/toolUseId":"u1","counterfoil/call":"c1","counterfoil/position":"p1"}'),
    ).toMatchObject({
      replays: ['call:c1', 'call:u1', 'position:p1'],
    });
    // Not ours, and not looked at.
    expect(origin('{"progressToken":1.5,"trace":12345678901234567890,"__proto__":{"x":1}}')).toMatchObject({
      ok: true,
    });
    expect(origin('{"counterfoil/run":12345678901234567890}')).toMatchObject({
      ok: false,
      problem: 'counterfoil/run in its _meta cannot be read',
    });
    expect(origin('null')).toEqual({ ok: false, problem: 'its _meta is not an object' });
  });

  test('a question for an operation', () => {
    expect(readStatusQuestion({ operation: ' op_01ABC ', wait_s: 45 })).toEqual({
      ok: true,
      operation: 'op_01ABC',
      waitMs: 45_000,
    });
    for (const args of [
      {},
      { operation: '' },
      { operation: 'rev_1' },
      { operation: 'op_1', wait_s: 0.5 },
      { operation: 'op_1', wait_s: -1 },
    ]) {
      expect(readStatusQuestion(args)).toMatchObject({ ok: false });
    }
  });
});

describe('requests that are open', () => {
  test('are known by what their id means, not by how it is spelled', () => {
    expect(requestKey('"a\\u0062"')).toBe(requestKey('"ab"'));
    expect(requestKey('1e2')).toBe(requestKey('100'));
    expect(requestKey('"1"')).not.toBe(requestKey('1'));
    for (const id of [undefined, 'null', '1.5', '9007199254740993', '{}', '[1]', 'true', '"\\q"', '']) {
      expect(requestKey(id), String(id)).toBeUndefined();
    }
  });

  test('are owed by the server or by the gateway; only the gateway’s are taken back here', () => {
    const open = new OpenRequests();
    const signal = open.take('1');
    open.pass('2', '2', 'list');
    open.pass('3', '3', 'plain');
    expect(open.takeBack('2')).toBe(false);
    expect(open.takeBack('9')).toBe(false);
    expect(open.answered('2')).toBe('list');
    expect(open.answered('2')).toBe('plain');
    expect(open.answered('1')).toBe('owed_by_gateway');
    expect(open.takeFromServer()).toEqual(['3']);
    expect(open.takeBack('1')).toBe(true);
    expect(signal.aborted).toBe(true);
    open.settle('1', signal);
    expect(open.has('1')).toBe(false);
  });

  test('a call that turned out to be the server’s is not forgotten when the gateway is done with it', () => {
    const open = new OpenRequests();
    const signal = open.take('1');
    open.pass('1', '1', 'plain');
    open.settle('1', signal);
    expect(open.takeFromServer()).toEqual(['1']);
  });
});

describe('schemas of a server', () => {
  function checks() {
    const reports: string[] = [];
    const schemas = new SchemaChecks((message) => reports.push(message));
    const problem = (schema: JsonObject, value: JsonObject) => schemas.problem(schema, value, 'the tool t');
    return { reports, problem };
  }

  test('say what does not fit, in words', async () => {
    const { problem, reports } = checks();
    const schema: JsonObject = {
      type: 'object',
      properties: {
        a: { type: 'object', properties: { b: { type: 'integer', minimum: 1 } }, required: ['b'] },
      },
      required: ['a'],
      additionalProperties: false,
    };
    expect(await problem(schema, { a: { b: 1 } })).toBeUndefined();
    expect(await problem(schema, {})).toBe('"a" is required');
    expect(await problem(schema, { a: {} })).toBe('a "b" is required');
    expect(await problem(schema, { a: { b: 0 } })).toBe('a.b must be >= 1');
    expect(await problem(schema, { a: { b: 1 }, c: 1 })).toBe('"c" is not an argument of this tool');
    expect(reports).toEqual([]);
  });

  test('of draft 7 and of 2020-12 are each read as what they are', async () => {
    const { problem, reports } = checks();
    const tuple = { type: 'array', items: [{ type: 'string' }], additionalItems: false };
    const draft7 = (uri: string): JsonObject => ({ $schema: uri, type: 'object', properties: { a: tuple } });
    for (const uri of ['http://json-schema.org/draft-07/schema#', 'http://json-schema.org/draft-07/schema']) {
      expect(await problem(draft7(uri), { a: ['x'] })).toBeUndefined();
      expect(await problem(draft7(uri), { a: ['x', 'y'] })).toMatch(/must NOT have more than 1 items/);
    }
    const modern: JsonObject = {
      $schema: 'https://json-schema.org/draft/2020-12/schema',
      type: 'object',
      properties: { a: { prefixItems: [{ type: 'string' }], items: false } },
    };
    expect(await problem(modern, { a: ['x', 'y'] })).toMatch(/must NOT have more than 1 items/);
    expect(reports).toEqual([]);
  });

  const USELESS: readonly (readonly [string, JsonObject, JsonObject])[] = [
    ['a type that is none', { type: 'thing' }, {}],
    ['a reference to nowhere', { $ref: '#/$defs/missing' }, {}],
    ['a reference to another machine', { $ref: 'https://example.com/schema.json' }, {}],
    ['a draft that is not known', { $schema: 'http://json-schema.org/draft-04/schema#', type: 'object' }, {}],
    ['a pattern that is none', { properties: { a: { type: 'string', pattern: '(' } } }, { a: 'x' }],
    ['more text than is read', { description: 'x'.repeat(300_000) }, {}],
    ['a reference to itself', { $ref: '#' }, {}],
    ['a wish to be waited for', { $async: true, type: 'object', required: ['a'] }, {}],
    [
      'a pattern that takes for ever',
      { properties: { a: { type: 'string', pattern: '^(a+)+$' } } },
      { a: `${'a'.repeat(60)}!` },
    ],
  ];
  for (const [what, schema, value] of USELESS) {
    test(`with ${what} check nothing, which is told once`, async () => {
      const { problem, reports } = checks();
      expect(await problem(schema, value)).toBeUndefined();
      const since = performance.now();
      expect(await problem(schema, value)).toBeUndefined();
      expect(performance.now() - since).toBeLessThan(200);
      expect(reports).toHaveLength(1);
      expect(reports[0]).toMatch(
        /^The schema of the tool t cannot be used to check calls, so that its server alone checks them: /,
      );
    });
  }
});
