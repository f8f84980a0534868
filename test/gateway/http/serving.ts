// `counterfoil serve` as it is installed, in a process of its own, with clients that nobody here wrote.

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { stringify } from 'yaml';
import { type CleanUps, COUNTERFOIL, LineProcess, until } from '../processes.ts';

export interface ServedEntry {
  readonly command?: readonly string[];
  readonly url?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Of the gateway's configuration: `tools`, `limits`… */
  readonly config?: object;
}

export interface Serving {
  readonly process: LineProcess;
  readonly data: string;
  readonly port: number;
  url(path?: string): URL;
}

let servingCount = 0;

/** Starts `counterfoil serve` on a free port. The folder is the data directory's parent. `more`: of its configuration. */
export async function startServing(
  cleanUps: CleanUps,
  servers: Readonly<Record<string, ServedEntry>>,
  options: { readonly data?: string; readonly env?: NodeJS.ProcessEnv; readonly more?: object } = {},
): Promise<Serving> {
  const folder = cleanUps.folder();
  const data = options.data ?? join(folder, 'data');
  servingCount += 1;
  const entries = Object.entries(servers).map(([name, { command, config, ...more }]) => {
    const [program, ...args] = command ?? [];
    const file = `${name}-${servingCount}.yaml`;
    if (config !== undefined) writeFileSync(join(folder, file), stringify({ destination: name, ...config }));
    const started = program === undefined ? {} : { command: program, args };
    return [name, { ...started, ...more, ...(config === undefined ? {} : { config: file }) }] as const;
  });
  const file = join(folder, `serve-${servingCount}.yaml`);
  writeFileSync(file, stringify({ servers: Object.fromEntries(entries), ...options.more }));
  const process_ = cleanUps.started(
    new LineProcess(
      process.execPath,
      [COUNTERFOIL, 'serve', '--config', file, '--data', data, '--port', '0'],
      options.env === undefined ? {} : { env: options.env },
    ),
  );
  cleanUps.add(() => process_.kill('SIGTERM'));
  await process_.says(/(are recorded in|until they can be recorded)/);
  const port = Number(/http:\/\/127\.0\.0\.1:(\d+)\//.exec(process_.stderr)?.[1]);
  return {
    process: process_,
    data,
    port,
    url: (path = '/mcp') => new URL(`http://127.0.0.1:${port}${path}`),
  };
}

export interface ConnectedClient {
  readonly client: Client;
  readonly transport: StreamableHTTPClientTransport;
}

/** A client of the SDK's first line, connected. */
export async function sdkClient(
  cleanUps: CleanUps,
  url: URL,
  prepare: (client: Client) => void = () => {},
  capabilities: object = {},
): Promise<ConnectedClient> {
  const client = new Client({ name: 'test', version: '1' }, { capabilities });
  prepare(client);
  const transport = new StreamableHTTPClientTransport(url);
  await client.connect(transport);
  cleanUps.add(() => client.close());
  return { client, transport };
}

export { until };
