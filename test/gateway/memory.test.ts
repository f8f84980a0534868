import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { memberText } from '../../src/core/json-frame.ts';
import {
  CleanUps,
  counterfoil,
  LineProcess,
  operationOf,
  operationsIn,
  startGateway,
  textOf,
} from './processes.ts';

const here = (name: string): string => fileURLToPath(new URL(name, import.meta.url));
const MEMORY_SERVER = here('../../node_modules/@modelcontextprotocol/server-memory/dist/index.js');
const LOSES_REPLIES = here('./fixtures/loses-replies.mjs');

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
  const server = [process.execPath, LOSES_REPLIES, folder, process.execPath, MEMORY_SERVER];
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
    lost: (): readonly string[] => lines('lost'),
    callsOf: (tool: string): number => lines('calls').filter((line) => line === tool).length,
    operations: () => operationsIn(data),
    command: (...args: readonly string[]) => counterfoil([...args, '--data', data]),
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
});
