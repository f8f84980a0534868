// What a server is and which tools it has, asked once without a client: for people who decide about it.

import type { ToolFacts } from '../core/contract.ts';
import type { McpUpstream } from '../destination/mcp/upstream.ts';
import type { OwnerRule } from '../engine/ledger.ts';
import { type GatewayRules, ServerFacts, type ServerIdentity } from './tool-facts.ts';
import { GuardedServer, serverIdentity } from './upstream.ts';

export interface InspectedTool {
  readonly name: string;
  readonly digest: string;
  readonly class: ToolFacts['class'];
  readonly classSource: ToolFacts['classSource'];
  /** The class is that of a call without arguments; others may have another. */
  readonly dependsOnArguments: boolean;
}

export type ServerInspection =
  | {
      readonly answered: true;
      readonly identity: ServerIdentity | undefined;
      readonly tools: readonly InspectedTool[];
      /** What it offers beside tools, by the names of the protocol: none of it is guarded. */
      readonly unguarded: readonly string[];
    }
  | { readonly answered: false; readonly detail: string };

const NO_RULES: GatewayRules = { config: undefined, contracts: [], bindings: [] };
/** Offers of a server by which something can be reached without a call of a tool. */
const UNGUARDED = ['resources', 'prompts', 'completions', 'tasks'] as const;

export async function inspectServer(
  upstream: McpUpstream,
  options: { readonly destination: string; readonly ownerRules: readonly OwnerRule[] },
): Promise<ServerInspection> {
  const server = new GuardedServer({ own: upstream, isGreetedByClient: false });
  const connection = await upstream.connect();
  if (!connection.connected) return { answered: false, detail: connection.detail };
  const result = upstream.handshake?.result;
  const offers = capabilitiesOf(result);
  const identity = serverIdentity(result);
  if (offers.includes('tools')) {
    const problem = await server.tools.ensure();
    if (problem !== undefined) return { answered: false, detail: problem };
  }
  const facts = new ServerFacts(options.destination, NO_RULES, server.tools, () => {});
  if (identity !== undefined) facts.identify(identity);
  facts.confirm(options.ownerRules);
  return {
    answered: true,
    identity,
    tools: [...(server.tools.all?.values() ?? [])].map(({ name, digest }) => {
      const found = facts.for(options.destination, name, {});
      return {
        name,
        digest,
        class: found?.class ?? 'unclassified',
        classSource: found?.classSource ?? 'nobody',
        dependsOnArguments: facts.dependsOnArguments(name),
      };
    }),
    unguarded: UNGUARDED.filter((offer) => offers.includes(offer)),
  };
}

function capabilitiesOf(result: string | undefined): readonly string[] {
  try {
    const { capabilities } = JSON.parse(result ?? '{}') as { readonly capabilities?: unknown };
    return typeof capabilities === 'object' && capabilities !== null ? Object.keys(capabilities) : [];
  } catch {
    return [];
  }
}
