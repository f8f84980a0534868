// The configuration of `counterfoil serve`: which servers are stood in front of, and where it listens.

import { checkKept, checkToldUrl, type KeptElsewhere } from './notify-config.ts';
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

/** Who is told of causes in the queue, signed with a secret that is named here and kept elsewhere. */
export interface WebhookConfig {
  readonly url: string;
  /** A variable of the environment, or a file (from the folder of this configuration), that holds `whsec_…`. */
  readonly secret: KeptElsewhere;
}

export interface ServeConfig {
  readonly listen?: {
    readonly host?: string;
    readonly port?: number;
    readonly names?: readonly string[];
  };
  readonly servers: { readonly [name: string]: ServedServer };
  readonly webhooks?: readonly WebhookConfig[];
  /** The file that says who else is told, from the folder of this one; `notify.yaml` beside the ledger, when absent. */
  readonly notify?: string;
}

/** What the schema cannot say about one configuration. */
export function checkServeConfig({ servers, webhooks = [] }: ServeConfig): readonly Finding[] {
  return [
    ...Object.entries(servers).flatMap(([name, server]) => checkServer(name, server)),
    ...webhooks.flatMap((webhook, index) => [
      ...checkToldUrl(webhook.url, ['webhooks', index, 'url']),
      ...checkKept(webhook.secret, ['webhooks', index, 'secret']),
    ]),
  ];
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
