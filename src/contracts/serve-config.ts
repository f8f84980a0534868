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

/** Who is told of causes in the queue, signed with a secret that is named here and kept elsewhere. */
export interface WebhookConfig {
  readonly url: string;
  /** A variable of the environment, or a file (from the folder of this configuration), that holds `whsec_…`. */
  readonly secret: { readonly env: string } | { readonly file: string };
}

export interface ServeConfig {
  readonly listen?: {
    readonly host?: string;
    readonly port?: number;
    readonly names?: readonly string[];
  };
  readonly servers: { readonly [name: string]: ServedServer };
  readonly webhooks?: readonly WebhookConfig[];
}

/** What the schema cannot say about one configuration. */
export function checkServeConfig({ servers, webhooks = [] }: ServeConfig): readonly Finding[] {
  return [
    ...Object.entries(servers).flatMap(([name, server]) => checkServer(name, server)),
    ...webhooks.flatMap((webhook, index) => [
      ...checkWebhookUrl(webhook.url, index),
      ...checkSecret(webhook.secret, index),
    ]),
  ];
}

const LOOPBACK_HOST = /^(localhost|127(\.\d{1,3}){3}|\[::1\])$/;

/** What is told is signed and not secret, and yet nobody between shall read or swallow it. */
function checkWebhookUrl(url: string, index: number): readonly Finding[] {
  const path = ['webhooks', index, 'url'];
  const name = `webhooks[${index}].url`;
  if (!URL.canParse(url)) return [{ path, sentence: `${name} is no address.` }];
  const { hostname, protocol } = new URL(url);
  if (protocol === 'https:' || LOOPBACK_HOST.test(hostname)) return [];
  return [{ path, sentence: `${name} is an http address of another machine; only https is allowed there.` }];
}

/** Whatever stands there may be the secret itself, and is not repeated. */
function checkSecret(secret: unknown, index: number): readonly Finding[] {
  const members = typeof secret === 'object' && secret !== null ? Object.entries(secret) : [];
  const [[kind, value] = []] = members;
  const isNamed = (kind === 'env' || kind === 'file') && typeof value === 'string' && value !== '';
  if (isNamed && members.length === 1) return [];
  return [
    {
      path: ['webhooks', index, 'secret'],
      sentence: `webhooks[${index}].secret says where the secret is kept: {env: VARIABLE} or {file: NAME}, one of them and nothing else.`,
    },
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
