// The gateway in front of a server, as its user starts it: `counterfoil serve` with a configuration of its own.

import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { openLedger } from '../dist/index.js';
import { startListener } from './listener.mjs';

const OPERATIONS_MAX = 10_000;
const COUNTERFOIL = fileURLToPath(new URL('../dist/cli/counterfoil.js', import.meta.url));

/** How tools are declared. Equal calls, which different scenarios make, are operations of their own. */
export const DECLARED = {
  reads: { class: 'read' },
  writes: { class: 'ordinary', repeat: 'free' },
};

/**
 * @param {{ folder: string, server: { url: string } | { command: string, args: readonly string[] },
 *   tools: readonly string[], declared: object }} options `folder`: a new one, for its configuration and its data;
 *   `declared`: one of `DECLARED`, for each of the tools
 * @returns {Promise<{ url: string, pid: number, said(): string, close(): Promise<void>, operations(): Promise<readonly object[]> }>}
 *   `said`: its standard error; `operations`: what its ledger holds, once it is closed
 * @throws {Error} when it ends or does not listen in time
 */
export async function startGateway({ folder, server, tools, declared }) {
  mkdirSync(folder, { recursive: true });
  // JSON is YAML: a file that a program writes needs no other form.
  const write = (name, value) => {
    writeFileSync(join(folder, name), JSON.stringify(value, undefined, 2));
    return join(folder, name);
  };
  write('server.yaml', {
    destination: 'server',
    tools: Object.fromEntries(tools.map((tool) => [tool, declared])),
    // What a run asks for in minutes an agent would not in an hour: nobody is to be asked whether it may go on.
    limits: { writes_per_hour: 1_000_000 },
  });
  const config = write('serve.yaml', { servers: { server: { ...server, config: 'server.yaml' } } });
  const data = join(folder, 'data');
  const listener = await startListener('counterfoil serve', (port) => [
    COUNTERFOIL,
    'serve',
    '--config',
    config,
    '--data',
    data,
    '--port',
    String(port),
  ]);
  return { ...listener, operations: () => operationsIn(data) };
}

async function operationsIn(data) {
  const ledger = await openLedger({ data });
  try {
    return await ledger.readings.recent(OPERATIONS_MAX);
  } finally {
    await ledger.close();
  }
}
