// The configuration of `counterfoil serve`: which servers are stood in front of, and where it listens.

import { type Finding, listed } from './problem.ts';

export interface ServedServer {
  /** Over stdio. */
  readonly command?: string;
  readonly args?: readonly string[];
  /** Beside the environment of this process. */
  readonly env?: { readonly [name: string]: string };
  readonly cwd?: string;
  /** Over Streamable HTTP. */
  readonly url?: string;
  readonly headers?: { readonly [name: string]: string };
  /** The file of what its owner decides (`GatewayConfig`), from the folder of this configuration. */
  readonly config?: string;
}

export interface ServeConfig {
  readonly listen?: {
    readonly host?: string;
    readonly port?: number;
    readonly names?: readonly string[];
  };
  readonly servers: { readonly [name: string]: ServedServer };
}

/** What the schema cannot say about one configuration. */
export function checkServeConfig({ servers }: ServeConfig): readonly Finding[] {
  return Object.entries(servers).flatMap(([name, server]) => checkServer(name, server));
}

const OF_COMMAND = ['args', 'env', 'cwd'] as const;

function checkServer(name: string, server: ServedServer): readonly Finding[] {
  const path = ['servers', name];
  const { command, url } = server;
  if (command === undefined && url === undefined) {
    return [{ path, sentence: `servers.${name} says neither command nor url; one of them is needed.` }];
  }
  if (command !== undefined && url !== undefined) {
    return [{ path, sentence: `servers.${name} says both command and url; only one of them can be meant.` }];
  }
  const misplaced =
    url === undefined
      ? (['headers'] as const).filter((member) => server[member] !== undefined)
      : OF_COMMAND.filter((member) => server[member] !== undefined);
  if (misplaced.length === 0) return [];
  const of = url === undefined ? 'a server that is reached by url' : 'a server that is started by command';
  return [
    {
      path: [...path, misplaced[0] ?? ''],
      sentence: `servers.${name} says ${listed(misplaced)}, which only ${of} has.`,
    },
  ];
}
