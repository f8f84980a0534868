// The configuration of one destination over HTTP: where it is, by which contract, and what its owner decides.

import type { JsonObject } from '../core/canonical.ts';
import {
  type Contract,
  type ContractOperation,
  durationMs,
  type Mode,
  type ToolFacts,
} from '../core/contract.ts';
import { compileToolFacts } from './compile.ts';
import type {
  GatewayConfig,
  RecoveryRoute,
  SendingLimits,
  ToolDeclaration,
  Waiver,
} from './gateway-config.ts';
import { closest, type Finding, listed } from './problem.ts';

/** Where a secret lies; its value is in no file of ours. */
export type SecretReference = { readonly env: string } | { readonly file: string };

export interface HttpDestinationConfig {
  readonly destination: string;
  /** The base address, below which all paths of the contract lie. */
  readonly url: string;
  /** A file, from the folder of the configuration. */
  readonly contract: string;
  readonly mode?: Mode;
  /** Sent with each request: texts with names of secrets in braces. */
  readonly headers?: { readonly [name: string]: string };
  readonly secrets?: { readonly [name: string]: SecretReference };
  /** ISO 8601 durations. */
  readonly timeouts?: {
    readonly connect?: string;
    readonly queue?: string;
    readonly headers?: string;
    readonly body?: string;
    readonly late?: string;
  };
  readonly pool?: { readonly connections?: number; readonly keep_alive?: string };
  readonly reply_max_bytes?: number;
  readonly tls?: { readonly ca?: string };
  readonly notices?: { readonly secret: string; readonly tolerance?: string };
  readonly tools?: { readonly [operation: string]: ToolDeclaration };
  readonly sending?: SendingLimits;
  readonly owner?: string;
  readonly recovery?: RecoveryRoute;
  readonly may_stop?: readonly string[];
  readonly waivers?: readonly Waiver[];
}

/** The same as what an owner decides about any server: each operation that can be sent is a tool. */
export function asGatewayConfig(config: HttpDestinationConfig, contract: Contract): GatewayConfig {
  const { destination, may_stop: mayStop, mode, owner, recovery, sending, waivers } = config;
  const sent = contract.operations.filter(({ http }) => http !== undefined);
  return {
    destination,
    ...(mode === undefined ? {} : { mode }),
    ...(owner === undefined ? {} : { owner }),
    ...(recovery === undefined ? {} : { recovery }),
    ...(mayStop === undefined ? {} : { may_stop: mayStop }),
    ...(waivers === undefined ? {} : { waivers }),
    ...(sending === undefined ? {} : { sending }),
    tools: Object.fromEntries(
      sent.map(({ id }) => {
        const own = Object.hasOwn(config.tools ?? {}, id) ? config.tools?.[id] : undefined;
        return [id, { ...own, contract_operation: `${contract.id}/${id}` }];
      }),
    ),
  };
}

const LOOPBACK = /^(localhost|127(?:\.\d+){3}|\[::1\])$/i;

/** What the schema cannot say about one configuration. */
export function checkHttpDestination(config: HttpDestinationConfig): readonly Finding[] {
  const findings: Finding[] = [];
  const secrets = Object.keys(config.secrets ?? {});
  const url = URL.canParse(config.url) ? new URL(config.url) : undefined;
  if (url === undefined) findings.push({ path: ['url'], sentence: 'url is no address.' });
  if (url?.protocol === 'http:' && !LOOPBACK.test(url.hostname) && secrets.length > 0) {
    findings.push({
      path: ['url'],
      sentence: `url is an http address of another machine, and the secrets ${listed(secrets)} would travel to it in the clear; https is needed.`,
    });
  }
  for (const [name, text] of Object.entries(config.headers ?? {})) {
    for (const [, used = ''] of text.matchAll(/\{([^{}]*)\}/g)) {
      if (!secrets.includes(used))
        findings.push(noSecret(['headers', name], `The header ${name}`, used, secrets));
    }
    if (OURS.has(name.toLowerCase())) {
      findings.push({
        path: ['headers', name],
        at: 'key',
        sentence: `The header ${name} is written by us; it cannot be given.`,
      });
    }
  }
  const signing = config.notices?.secret;
  if (signing !== undefined && !secrets.includes(signing)) {
    findings.push(noSecret(['notices', 'secret'], 'The signature of notices', signing, secrets));
  }
  return findings;
}

/** Headers that HTTP itself is made of: another value in them is another request than the one that was reviewed. */
export const OURS: ReadonlySet<string> = new Set([
  'accept-encoding',
  'connection',
  'content-length',
  'expect',
  'host',
  'keep-alive',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]);

function noSecret(path: Finding['path'], what: string, used: string, secrets: readonly string[]): Finding {
  const near = closest(used, secrets);
  const known =
    near !== undefined
      ? ` (did you mean ${near}?)`
      : secrets.length === 0
        ? '; there are none under secrets'
        : `; known are ${listed(secrets)}`;
  return { path, sentence: `${what} uses the secret ${used}, which is not known${known}.` };
}

/** What contradicts what, between a configuration and its contract. */
export function checkWithContract(
  { contract: file, headers = {}, tools = {} }: HttpDestinationConfig,
  contract: Contract,
): readonly Finding[] {
  const findings: Finding[] = [];
  for (const name of Object.keys(headers)) {
    const writer = contract.operations.find((operation) => headersOf(operation).has(name.toLowerCase()));
    if (writer === undefined) continue;
    findings.push({
      path: ['headers', name],
      at: 'key',
      sentence: `The header ${name} is written by ${writer.id} of the contract ${contract.id}, whose request is frozen when it is reviewed; it cannot be given here.`,
    });
  }
  const callable = contract.operations.filter(({ http }) => http !== undefined).map(({ id }) => id);
  if (contract.destination.protocol !== 'http') {
    findings.push({
      path: ['contract'],
      sentence: `The contract ${contract.id} is for the protocol ${contract.destination.protocol}; a destination over HTTP needs one for http.`,
    });
  } else if (callable.length === 0) {
    findings.push({
      path: ['contract'],
      sentence: `No operation of the contract ${contract.id} (${file}) says by http how it is sent, so that nothing can be sent.`,
    });
  }
  for (const name of Object.keys(tools)) {
    if (callable.includes(name)) continue;
    const near = closest(name, callable);
    findings.push({
      path: ['tools', name],
      at: 'key',
      sentence: `tools names ${name}, which the contract ${contract.id} does not say how to send; ${near === undefined ? `known are ${listed(callable)}` : `did you mean ${near}?`}.`,
    });
  }
  return findings;
}

/** The headers that an operation's request has by its contract, its key among them; in small letters. */
function headersOf({ guards, http }: ContractOperation): ReadonlySet<string> {
  if (http === undefined) return new Set();
  const keys = guards.flatMap(({ carrier }) => (carrier.in === 'header' ? [carrier.name ?? ''] : []));
  return new Set([...Object.keys(http.headers ?? {}), ...keys].map((name) => name.toLowerCase()));
}

/** The facts about each operation that the contract says how to send, as the engine asks for them. */
export function httpFacts(
  config: HttpDestinationConfig,
  contract: Contract,
): (destination: string, tool: string, args: JsonObject) => ToolFacts | undefined {
  const contracts = [contract];
  const rules = asGatewayConfig(config, contract);
  const known = new Set(Object.keys(rules.tools ?? {}));
  return (destination, tool, args) => {
    if (destination !== config.destination || !known.has(tool)) return undefined;
    const query = { hints: undefined, ownerRules: [], toolDigest: '' };
    return compileToolFacts({ ...query, destination, tool, arguments: args, contracts, config: rules });
  };
}

/** The time-outs in milliseconds, each with its default. */
export function timeoutsOf({ timeouts = {} }: HttpDestinationConfig) {
  return {
    connectMs: durationMs(timeouts.connect) ?? 5_000,
    queueMs: durationMs(timeouts.queue) ?? 2_000,
    headersMs: durationMs(timeouts.headers) ?? 60_000,
    bodyMs: durationMs(timeouts.body) ?? 30_000,
    lateMs: durationMs(timeouts.late) ?? 60_000,
  };
}
