// A gateway in this process, in front of a server in another one: the test owns its clock.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { composeStdioGateway } from '../../src/compose.ts';
import { loadGatewaySetup } from '../../src/contracts/load.ts';
import type { LedgerSettings } from '../../src/engine/context.ts';
import type { Environment } from '../../src/engine/environment.ts';
import { type CleanUps, INITIALIZE, type Message, type ToolResult, until } from './processes.ts';

export async function inProcess(options: {
  readonly data: string;
  readonly server: readonly string[];
  readonly environment: Environment;
  readonly config: string;
  /** The folder of the contracts and bindings that the configuration names. */
  readonly folder?: string;
  readonly cleanUps: CleanUps;
  readonly settings?: Partial<LedgerSettings>;
}) {
  const [command = '', ...args] = options.server;
  const input = new PassThrough();
  const output = new PassThrough();
  const setup = loadGatewaySetup(options.config, 'gateway.yaml', {
    readText: (file) => ({ text: readFileSync(join(options.folder ?? '.', file), 'utf8') }),
  });
  if (!setup.ok) throw new Error(`The configuration is right: ${JSON.stringify(setup.problems)}`);
  const gateway = await composeStdioGateway({
    data: options.data,
    destination: setup.config.value.destination,
    command,
    args,
    rules: { config: setup.config, contracts: setup.contracts, bindings: setup.bindings },
    settings: { approvalLifetimeMs: 60_000, ...options.settings },
    requester: 'local:test',
    run: undefined,
    where: 'here',
    input,
    output,
    report: () => {},
    reached: () => {},
    version: '0',
    environment: options.environment,
  });
  const serving = gateway.serve();
  options.cleanUps.add(async () => {
    input.end();
    await serving;
    await gateway.close();
  });
  let text = '';
  output.setEncoding('utf8').on('data', (chunk: string) => {
    text += chunk;
  });
  let count = 0;
  const send = (method: string, params: object): number => {
    count += 1;
    input.write(`${JSON.stringify({ jsonrpc: '2.0', id: count, method, params })}\n`);
    return count;
  };
  const answer = async (id: number): Promise<ToolResult> => {
    const message = await until(
      () =>
        text
          .split('\n')
          .slice(0, -1)
          .map((line) => JSON.parse(line) as Message)
          .find((one) => one.id === id),
      `the answer to ${id}`,
    );
    return message.result ?? {};
  };
  await answer(send('initialize', INITIALIZE));
  input.write(`${JSON.stringify({ jsonrpc: '2.0', method: 'notifications/initialized' })}\n`);
  return {
    answer,
    input: (name: string, args: object): number => send('tools/call', { name, arguments: args }),
    /** A call with what a framework says of it, and its answer. */
    call: (name: string, args: object, meta: object = {}): Promise<ToolResult> =>
      answer(send('tools/call', { name, arguments: args, _meta: meta })),
  };
}
