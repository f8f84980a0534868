import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Client } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { memberText } from '../../src/core/json-frame.ts';
import { HELPER_TOOL_NAME } from '../../src/gateway/status-tool.ts';
import {
  CleanUps,
  counterfoil,
  gatewayArguments,
  LineProcess,
  operationOf,
  operationsIn,
  ownerOf,
  startGateway,
  type ToolResult,
  textOf,
  untilAsync,
} from './processes.ts';

const here = (name: string): string => fileURLToPath(new URL(name, import.meta.url));
const MEMORY_SERVER = here('../../node_modules/@modelcontextprotocol/server-memory/dist/index.js');
const STANDS_BETWEEN = here('./fixtures/stands-between.mjs');

const MARA = { name: 'Mara', entityType: 'person', observations: ['Approves the cutover.'] };
const BILLING = { name: 'billing', entityType: 'service', observations: [] };
const OWNS = { from: 'Mara', to: 'billing', relationType: 'owns' };

/** The unmodified server for a memory: by itself, and behind a gateway, each with its own process on one file. */
function setup(cleanUps: CleanUps) {
  const folder = cleanUps.folder();
  const memory = join(folder, 'memory.jsonl');
  const data = join(folder, 'data');
  const env = { MEMORY_FILE_PATH: memory };
  const lines = (name: string): readonly string[] => {
    const file = join(folder, name);
    return existsSync(file) ? readFileSync(file, 'utf8').split('\n').filter(Boolean) : [];
  };
  const server = [process.execPath, STANDS_BETWEEN, folder, process.execPath, MEMORY_SERVER];
  return {
    folder,
    data,
    env,
    server,
    gateway: (): LineProcess => cleanUps.started(startGateway({ data, server, env })),
    direct: (): LineProcess => cleanUps.started(new LineProcess(process.execPath, [MEMORY_SERVER], { env })),
    /** What the memory holds, from its file. */
    records: (): readonly unknown[] => lines('memory.jsonl').map((line) => JSON.parse(line)),
    put: (...records: readonly object[]): void =>
      writeFileSync(memory, records.map((record) => JSON.stringify(record)).join('\n')),
    /** Has the next answer to a call of this tool lost, with the server. */
    lose: (tool: string): void => writeFileSync(join(folder, 'lose'), tool),
    /** Has these tools listed with one more argument than they have. */
    alter: (...tools: readonly string[]): void => writeFileSync(join(folder, 'alter'), tools.join('\n')),
    lost: (): readonly string[] => lines('lost'),
    callsOf: (tool: string): number => lines('calls').filter((line) => line === tool).length,
    operations: () => operationsIn(data),
    command: (...args: readonly string[]) => counterfoil([...args, '--data', data]),
    owner: ownerOf(data),
  };
}

const entity = (record: object): object => ({ type: 'entity', ...record });
const relation = (record: object): object => ({ type: 'relation', ...record });

describe('what is no write passes as if no gateway were there', () => {
  const cleanUps = new CleanUps();
  const world = setup(cleanUps);
  let direct: LineProcess;
  let gateway: LineProcess;
  beforeAll(async () => {
    world.put(entity(MARA), entity(BILLING), relation(OWNS));
    direct = world.direct();
    gateway = world.gateway();
    for (const process of [direct, gateway]) await process.initialize();
  });
  afterAll(async () => {
    gateway.expectPure();
    await cleanUps.run();
  });

  const READS: readonly (readonly [string, object])[] = [
    ['read_graph', {}],
    ['search_nodes', { query: 'cutover' }],
    ['search_nodes', { query: 'nobody' }],
    ['open_nodes', { names: ['Mara', 'billing'] }],
    ['open_nodes', { names: [] }],
    // What goes wrong in a read is the server's to say as well.
    ['open_nodes', {}],
    ['search_nodes', { query: 7 }],
  ];
  for (const [index, [name, args]] of READS.entries()) {
    test(`the answer of ${name} is unchanged byte for byte (${JSON.stringify(args)})`, async () => {
      const line = JSON.stringify({
        jsonrpc: '2.0',
        id: 100 + index,
        method: 'tools/call',
        params: { name, arguments: args },
      });
      for (const process of [direct, gateway]) process.send(line);
      const [own, through] = [await direct.answer(100 + index), await gateway.answer(100 + index)];
      expect(through.text).toBe(own.text);
    });
  }

  test('so is that of a resource, which is no tool', async () => {
    const params = { uri: 'memory://knowledge-graph' };
    const [own, through] = [
      await direct.request('resources/read', params),
      await gateway.request('resources/read', params),
    ];
    expect(memberText(through.text, 'result')).toBe(memberText(own.text, 'result'));
    expect(textOf(through.message.result ?? {})).toBe('');
  });

  test('nothing of all this was recorded', async () => {
    expect(await world.operations()).toEqual([]);
  });
});

describe('writes to a memory', () => {
  const cleanUps = new CleanUps();
  afterEach(cleanUps.run);

  async function connected() {
    const world = setup(cleanUps);
    const gateway = world.gateway();
    await gateway.initialize();
    return { ...world, gateway };
  }

  test('an entity is recorded, sent, read back, and answered in the server’s own bytes; an equal call is done before', async () => {
    const { gateway, records, operations, callsOf, command } = await connected();
    const alone = setup(cleanUps).direct();
    await alone.initialize();
    const params = { name: 'create_entities', arguments: { entities: [MARA] } };
    const own = await alone.request('tools/call', params);
    const through = await gateway.request('tools/call', params);
    expect(memberText(through.text, 'result')).toBe(memberText(own.text, 'result'));
    const again = await gateway.call('create_entities', { entities: [MARA] });
    expect(textOf(again)).toMatch(/^ALREADY_EXISTS — /);
    const [operation, ...others] = await operations();
    expect(others).toEqual([]);
    expect(operation).toMatchObject({ stage: 'closed', effect: 'verified', toolClass: 'ordinary' });
    expect(operationOf(again)).toBe(operation?.id);
    expect(callsOf('create_entities')).toBe(1);
    expect(records()).toEqual([entity(MARA)]);
    const shown = await command('show', '--last');
    expect(shown.stdout).toContain('We read the changed record back and it matched.');
  });

  test('a reply that is lost is found by look-up, and the equal call after it is answered with that', async () => {
    const { gateway, records, operations, callsOf, lose, lost } = await connected();
    lose('create_entities');
    const told = await gateway.call('create_entities', { entities: [MARA, BILLING] });
    const again = await gateway.call('create_entities', { entities: [MARA, BILLING] });
    expect(lost()).toEqual(['create_entities']);
    expect(textOf(told)).toMatch(/^ALREADY_EXISTS — .* its answer was lost, and the record was found/);
    expect(textOf(again)).toMatch(/^ALREADY_EXISTS — /);
    expect(callsOf('create_entities')).toBe(1);
    expect(records()).toEqual([entity(MARA), entity(BILLING)]);
    const [operation, ...others] = await operations();
    expect(others).toEqual([]);
    expect(operation?.attempts).toHaveLength(1);
    expect(operation?.evidence.map(({ kind }) => kind)).toEqual(
      expect.arrayContaining(['transport', 'lookup', 'readback']),
    );
  });

  test('relations whose reply is lost are found as well, and a lost deletion is seen to be done', async () => {
    const { gateway, records, operations, command, lose, lost, callsOf, owner } = await connected();
    await gateway.call('create_entities', { entities: [MARA, BILLING] });
    lose('create_relations');
    expect(textOf(await gateway.call('create_relations', { relations: [OWNS] }))).toMatch(
      /^ALREADY_EXISTS — .* its answer was lost, and the record was found/,
    );
    expect(records()).toEqual([entity(MARA), entity(BILLING), relation(OWNS)]);

    const asked = await gateway.call('delete_entities', { entityNames: ['billing'] });
    expect(textOf(asked)).toMatch(/^NOT SENT YET — waiting for a person's approval/);
    expect(callsOf('delete_entities')).toBe(0);
    lose('delete_entities');
    const id = operationOf(asked);
    const [digest = ''] =
      /[0-9a-f]{12}/.exec((await command('show', id)).stdout.split('igest')[1] ?? '') ?? [];
    expect((await owner.approve(id, '--digest', digest, '--by', 'Mara')).code).toBe(0);
    const closed = await untilAsync(
      async () => (await operations()).find((each) => each.id === id && each.stage === 'closed'),
      'the deletion to be looked up',
    );
    expect(lost()).toEqual(['create_relations', 'delete_entities']);
    expect(closed.effect).toBe('verified');
    expect(closed.attempts).toHaveLength(1);
    expect(callsOf('delete_entities')).toBe(1);
    expect(records()).toEqual([entity(MARA)]);
  });

  test('the ordinary mistakes are answered as without a gateway, and the corrected call goes through', async () => {
    const { gateway, direct, records, operations } = await connected();
    const alone = direct();
    await alone.initialize();
    const contents = ['Owned by Mara.'];
    const mistakes: readonly (readonly [string, object])[] = [
      ['add_observations', { observations: [{ entityName: 'nobody', contents }] }],
      ['create_entities', { entities: [{ name: 'billing', entityType: 'service' }] }],
      ['create_entities', { entities: 'billing' }],
      ['create_relations', {}],
    ];
    for (const [name, args] of mistakes) {
      const params = { name, arguments: args };
      const [own, through] = [
        await alone.request('tools/call', params),
        await gateway.request('tools/call', params),
      ];
      expect(memberText(through.text, 'result'), name).toBe(memberText(own.text, 'result'));
      expect(through.message.result?.isError, name).toBe(true);
    }
    expect(records()).toEqual([]);
    await gateway.call('create_entities', { entities: [BILLING] });
    const added = await gateway.call('add_observations', {
      observations: [{ entityName: 'billing', contents }],
    });
    expect(added.isError).toBeUndefined();
    expect(records()).toEqual([entity({ ...BILLING, observations: contents })]);
    expect((await operations()).map(({ stage, effect }) => `${stage} ${effect}`)).toEqual([
      'closed rejected',
      'closed rejected',
      'closed rejected',
      'closed rejected',
      'closed verified',
      'closed accepted',
    ]);
  });

  test('an entity that was there already with other words is told truthfully: accepted, and not what was asked for', async () => {
    const { gateway, put, records, operations } = await connected();
    put(entity({ ...MARA, observations: ['Somebody else wrote this.'] }));
    const answer = await gateway.call('create_entities', { entities: [MARA] });
    expect(answer.structuredContent).toEqual({ entities: [] });
    expect((await operations())[0]).toMatchObject({ effect: 'accepted' });
    expect(records()).toEqual([entity({ ...MARA, observations: ['Somebody else wrote this.'] })]);
  });

  test('writes at once go one after the other, so that none of them is lost in the file', async () => {
    const { gateway, records, operations } = await connected();
    const names = Array.from({ length: 8 }, (_, index) => `entity ${index}`);
    const asked = names.map((name) =>
      gateway.ask('tools/call', {
        name: 'create_entities',
        arguments: { entities: [{ name, entityType: 'thing', observations: [] }] },
      }),
    );
    for (const id of asked) await gateway.answer(id);
    await untilAsync(
      async () => (await operations()).every(({ stage }) => stage === 'closed'),
      'all of them to be sent',
    );
    const held = records().map((record) => (record as { readonly name: string }).name);
    expect(held.toSorted()).toEqual(names);
    expect((await operations()).map(({ effect }) => effect)).toEqual(names.map(() => 'verified'));
  });

  test('a tool that is not the one that was measured asks; the others go on, and nothing is asked through it', async () => {
    const world = setup(cleanUps);
    world.alter('create_entities', 'delete_entities', 'read_graph');
    const gateway = world.gateway();
    await gateway.initialize();
    // By its hint, as any tool of a server that its owner started.
    expect((await gateway.call('read_graph')).isError).toBeUndefined();
    const asked = await gateway.call('create_entities', { entities: [MARA] });
    expect(asked.isError).toBe(true);
    expect(textOf(asked)).toMatch(/^NOT SENT YET — /);
    expect(textOf(await gateway.call('delete_entities', { entityNames: ['Mara'] }))).toMatch(
      /^NOT SENT YET — /,
    );
    const related = await gateway.call('create_relations', { relations: [OWNS] });
    expect(related.isError).toBeUndefined();
    const all = await world.operations();
    expect(all.map(({ toolClass, effect }) => `${toolClass} ${effect}`)).toEqual([
      'unclassified not_sent',
      'irreversible not_sent',
      // Not read back: it was read through a tool of which nobody knows any more what it does.
      'ordinary accepted',
    ]);
    await gateway.says('create_entities is not the tool that the binding server-memory was written for');
  });
});

describe('a client of the second generation of the SDK', () => {
  const cleanUps = new CleanUps();
  afterAll(cleanUps.run);

  test('speaks the protocol of the first with the gateway: it lists, reads, writes, repeats, and asks what became of it', async () => {
    const world = setup(cleanUps);
    const client = new Client({ name: 'test', version: '1' }, { versionNegotiation: { mode: 'legacy' } });
    const args = gatewayArguments({ data: world.data, server: world.server });
    await client.connect(
      new StdioClientTransport({ command: process.execPath, args, env: world.env, stderr: 'ignore' }),
    );
    cleanUps.add(() => client.close());

    const { tools } = await client.listTools();
    expect(tools).toHaveLength(10);
    const written = await client.callTool({ name: 'create_entities', arguments: { entities: [MARA] } });
    expect(written.structuredContent).toEqual({ entities: [MARA] });
    const again = await client.callTool({ name: 'create_entities', arguments: { entities: [MARA] } });
    expect(textOf(again as ToolResult)).toMatch(/^ALREADY_EXISTS — /);
    const graph = await client.callTool({ name: 'read_graph', arguments: {} });
    expect(graph.structuredContent).toEqual({ entities: [MARA], relations: [] });
    const waiting = await client.callTool({
      name: 'delete_entities',
      arguments: { entityNames: ['Mara'] },
    });
    expect(waiting.isError).toBe(true);
    const status = await client.callTool({
      name: HELPER_TOOL_NAME,
      arguments: { operation: operationOf(again as ToolResult) },
    });
    expect(textOf(status as ToolResult)).toContain('VERIFIED');
    expect(world.callsOf('create_entities')).toBe(1);
    expect(world.records()).toEqual([entity(MARA)]);
  });
});
