// A gateway in front of the scripted tools server, in a folder of its own, with whatever configuration a test gives.

import { renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Operation } from '../../src/core/operation.ts';
import {
  type CleanUps,
  callsOf,
  counterfoil,
  type LineProcess,
  operationsIn,
  ownerOf,
  startGateway,
  toolsServer,
  untilAsync,
} from './processes.ts';

export const DONE = { content: [{ type: 'text', text: 'done' }] };

export interface FixtureTool {
  readonly name: string;
  readonly inputSchema?: object;
  readonly annotations?: object;
}

export function fixtureWorld(cleanUps: CleanUps, tools: readonly FixtureTool[], plan: object = {}) {
  const folder = cleanUps.folder();
  const data = join(folder, 'data');
  const write = (name: string, value: object): void => {
    writeFileSync(join(folder, `${name}.new`), JSON.stringify(value));
    renameSync(join(folder, `${name}.new`), join(folder, name));
  };
  const list = (listed: readonly FixtureTool[]): void =>
    write(
      'tools.json',
      listed.map((tool) => ({ inputSchema: { type: 'object' }, ...tool })),
    );
  list(tools);
  write('plan.json', { ...Object.fromEntries(tools.map(({ name }) => [name, { result: DONE }])), ...plan });
  const owner = ownerOf(data);
  const operations = (): Promise<readonly Operation[]> => operationsIn(data);
  return {
    folder,
    data,
    list,
    plan: (next: object) => write('plan.json', next),
    owner,
    start: async (config: string, env: NodeJS.ProcessEnv = {}): Promise<LineProcess> => {
      const gateway = cleanUps.started(startGateway({ data, server: toolsServer(folder), config, env }));
      await gateway.initialize();
      return gateway;
    },
    calls: (tool: string) => callsOf(folder, tool),
    operations,
    newest: async (): Promise<Operation> => {
      const last = (await operations()).at(-1);
      if (last === undefined) throw new Error('nothing is recorded');
      return last;
    },
    /** An operation as soon as it is at that stage. */
    operation: (id: string, stage: string) =>
      untilAsync(
        async () => (await operations()).find((one) => one.id === id && one.stage === stage),
        `${id} to be ${stage}`,
      ),
    command: (...args: string[]) => counterfoil([...args, '--data', data]),
    approve: async (id: string, ...more: string[]) => {
      const found = (await operations()).find((one) => one.id === id);
      return owner.approve(id, '--digest', found?.digest ?? '', ...more);
    },
  };
}
