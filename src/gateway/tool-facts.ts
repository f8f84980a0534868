// The facts about the tools of one server, for the engine's decisions: from the configuration, the owner's
// confirmed rules, the binding (the owner's, else the shipped one for this server), and the server's own list.

import { type Binding } from '../contracts/binding.ts';
import { findShippedFacts } from '../contracts/catalogue.ts';
import { compileToolFacts, type OwnerRule } from '../contracts/compile.ts';
import type { GatewayConfig } from '../contracts/gateway-config.ts';
import type { JsonObject } from '../core/canonical.ts';
import type { Contract, ToolFacts } from '../core/contract.ts';
import type { ToolList } from './tool-list.ts';

export interface ServerIdentity {
  readonly name: string;
  readonly version: string;
}

export interface GatewayRules {
  readonly config: GatewayConfig | undefined;
  readonly contracts: readonly Contract[];
  readonly bindings: readonly Binding[];
}

export class ServerFacts {
  readonly #destination: string;
  readonly #rules: GatewayRules;
  readonly #tools: ToolList;
  #binding: Binding | undefined;
  #contracts: readonly Contract[];
  #ownerRules: readonly OwnerRule[] = [];
  #identity: ServerIdentity | undefined;

  constructor(destination: string, rules: GatewayRules, tools: ToolList) {
    this.#destination = destination;
    this.#rules = rules;
    this.#tools = tools;
    this.#contracts = rules.contracts;
  }

  /** Told by the server's handshake: which binding counts. */
  identify(identity: ServerIdentity): void {
    if (identity.name === this.#identity?.name && identity.version === this.#identity.version) return;
    this.#identity = identity;
    const own = this.#rules.bindings.find((binding) => binding.server.name.includes(identity.name));
    const shipped = own === undefined ? findShippedFacts(identity) : undefined;
    this.#binding = own ?? shipped?.binding.value;
    this.#contracts =
      shipped === undefined ? this.#rules.contracts : [...this.#rules.contracts, shipped.contract.value];
  }

  /** Classes that an owner has confirmed, as the ledger holds them now. */
  confirm(rules: readonly OwnerRule[]): void {
    this.#ownerRules = rules;
  }

  /** `undefined` for another destination, or a tool that its server does not list. */
  for(destination: string, tool: string, args: JsonObject): ToolFacts | undefined {
    const listed = this.#tools.get(tool);
    if (destination !== this.#destination || listed === undefined) return undefined;
    return compileToolFacts({
      destination,
      tool,
      arguments: args,
      binding: this.#binding,
      contracts: this.#contracts,
      config: this.#rules.config,
      hints: { readOnlyHint: listed.readOnlyHint },
      ownerRules: this.#ownerRules,
      toolDigest: listed.digest,
    });
  }

  /** The argument of a tool that is ours to fill, whatever else it is called with. */
  stampOf(tool: string): string | undefined {
    return this.for(this.#destination, tool, {})?.stamp?.argument;
  }
}
