// The facts about the tools of one server, for the engine's decisions: from the configuration, the owner's
// confirmed rules, the binding (the owner's, else the shipped one for this server), and the server's own list.

import { type Binding, isForServer } from '../contracts/binding.ts';
import { findShippedFacts } from '../contracts/catalogue.ts';
import { checkTogether, type Loaded } from '../contracts/check-together.ts';
import { checkToolArguments } from '../contracts/check-tool.ts';
import { compileToolFacts, dependsOnArguments } from '../contracts/compile.ts';
import { declarationOf, type GatewayConfig, reviewUrl } from '../contracts/gateway-config.ts';
import { formatProblem } from '../contracts/problem.ts';
import {
  type ChangedSince,
  changedSentence,
  type FirstSeen,
  type ToolChanges,
  toolChanges,
} from '../contracts/tool-changes.ts';
import type { JsonObject } from '../core/canonical.ts';
import type { Contract, Mode, ToolFacts } from '../core/contract.ts';
import type { OwnerRule } from '../engine/ledger.ts';
import type { ListedTool, ToolList } from './tool-list.ts';

export interface ServerIdentity {
  readonly name: string;
  readonly version: string;
}

/** What the owner has written down, as loaded and checked. */
export interface GatewayRules {
  readonly config: Loaded<GatewayConfig> | undefined;
  readonly contracts: readonly Loaded<Contract>[];
  readonly bindings: readonly Loaded<Binding>[];
}

/** What of a list has changed, for as long as list, binding and what was first seen are the same. */
interface KnownChanges {
  readonly binding: Binding | undefined;
  readonly list: ReadonlyMap<string, ListedTool>;
  readonly firstSeen: ReadonlyMap<string, FirstSeen>;
  readonly changes: ToolChanges;
}

export class ServerFacts {
  readonly #destination: string;
  #rules: GatewayRules;
  readonly #tools: ToolList;
  readonly #report: (message: string) => void;
  #binding: Binding | undefined;
  #contracts: readonly Contract[];
  #ownerRules: readonly OwnerRule[] = [];
  #identity: ServerIdentity | undefined;
  #contradictions: readonly string[] = [];
  #changes: KnownChanges | undefined;
  #firstSeen: ReadonlyMap<string, FirstSeen> = new Map();
  readonly #told = new Set<string>();

  constructor(destination: string, rules: GatewayRules, tools: ToolList, report: (message: string) => void) {
    this.#destination = destination;
    this.#rules = rules;
    this.#tools = tools;
    this.#report = report;
    this.#contracts = rules.contracts.map(({ value }) => value);
  }

  /** How far this server's writes are guarded. */
  get mode(): Mode {
    return this.#rules.config?.value.mode ?? 'guard';
  }

  /** Where a person finds the review of an operation, where the owner has said so. */
  reviewUrl(operation: string): string | undefined {
    const template = this.#rules.config?.value.review_url;
    return template === undefined ? undefined : reviewUrl(template, operation);
  }

  get rules(): GatewayRules {
    return this.#rules;
  }

  /** Whether these are the rules that count here. */
  isUnder({ bindings, config, contracts }: GatewayRules): boolean {
    const valuesOf = (rules: GatewayRules): string =>
      JSON.stringify(
        [rules.config, ...rules.contracts, ...rules.bindings].map((loaded) => loaded?.value ?? null),
      );
    return valuesOf({ bindings, config, contracts }) === valuesOf(this.#rules);
  }

  /** Other rules count from now on, for clients that are there too. */
  follow({ bindings, config, contracts }: GatewayRules): void {
    this.#rules = { bindings, config, contracts };
    const identity = this.#identity;
    this.#identity = undefined;
    this.#binding = undefined;
    this.#contradictions = [];
    this.#contracts = contracts.map(({ value }) => value);
    this.#changes = undefined;
    if (identity !== undefined) this.identify(identity);
  }

  /** The tools as they were when they were first seen here. */
  pin(firstSeen: ReadonlyMap<string, FirstSeen>): void {
    this.#firstSeen = firstSeen;
  }

  /**
   * Told by the server's handshake: which binding counts. Facts of ours that were not there when the
   * configuration was read count from now on, so that both are held against each other again.
   */
  identify(identity: ServerIdentity): void {
    if (identity.name === this.#identity?.name && identity.version === this.#identity.version) return;
    this.#identity = identity;
    const own = this.#rules.bindings.find(({ value }) => isForServer(value, identity));
    const shipped = own === undefined ? findShippedFacts(identity) : undefined;
    const contracts = [...this.#rules.contracts, ...(shipped === undefined ? [] : [shipped.contract])];
    const bindings = [...this.#rules.bindings, ...(shipped === undefined ? [] : [shipped.binding])];
    const problems =
      shipped === undefined ? [] : checkTogether({ config: this.#rules.config, contracts, bindings });
    this.#contradictions = problems.map(formatProblem);
    for (const problem of this.#contradictions) {
      this.#report(`No write is sent until this is corrected, and the gateway started again: ${problem}`);
    }
    this.#binding = (own ?? shipped?.binding)?.value;
    this.#contracts = contracts.map(({ value }) => value);
  }

  /** Why writes of this tool cannot be judged: what was written down about it does not fit what it is. */
  obstacle(tool: string, args: JsonObject): string | undefined {
    if (this.#contradictions.length > 0) return this.#contradictions[0];
    const listed = this.#tools.get(tool);
    const facts = this.for(this.#destination, tool, args);
    if (listed === undefined || facts === undefined) return undefined;
    return checkToolArguments(facts, listed.inputSchema)[0];
  }

  /** Classes that an owner has confirmed, as the ledger holds them now. */
  confirm(rules: readonly OwnerRule[]): void {
    this.#ownerRules = rules.filter(
      (rule) => rule.destination === this.#destination && rule.revokedAt === undefined,
    );
    for (const { tool, toolDigest } of this.#ownerRules) {
      const listed = this.#tools.get(tool);
      if (listed !== undefined && listed.digest !== toolDigest)
        this.#tellOnce(changedSentence(tool, 'owner'));
    }
  }

  /** `undefined` for another destination, or a tool that its server does not list. */
  for(destination: string, tool: string, args: JsonObject): ToolFacts | undefined {
    const listed = this.#tools.get(tool);
    if (destination !== this.#destination || listed === undefined || this.#contradictions.length > 0)
      return undefined;
    return compileToolFacts({
      destination,
      tool,
      arguments: args,
      binding: this.#binding,
      contracts: this.#contracts,
      config: this.#rules.config?.value,
      hints: { readOnlyHint: listed.readOnlyHint },
      ownerRules: this.#ownerRules,
      toolDigest: listed.digest,
      changes: this.#changesNow(),
    });
  }

  /** Which tools are not those of which something was said; looked at once for each list. */
  #changesNow(): ToolChanges | undefined {
    const binding = this.#binding;
    const firstSeen = this.#firstSeen;
    const list = this.#tools.all;
    if (list === undefined) return undefined;
    const known = this.#changes;
    if (known?.binding === binding && known?.list === list && known.firstSeen === firstSeen) {
      return known.changes;
    }
    const changes = toolChanges([...list.values()], binding, firstSeen);
    this.#changes = { binding, list, firstSeen, changes };
    this.#tellChanges(changes);
    return changes;
  }

  #tellChanges({ sinceBinding, sinceSeen }: ToolChanges): void {
    const tell = (tool: string, since: ChangedSince): void => this.#tellOnce(changedSentence(tool, since));
    const binding = this.#binding?.id;
    if (binding !== undefined) for (const tool of sinceBinding) tell(tool, { binding });
    for (const tool of sinceSeen.keys()) {
      if (declarationOf(this.#rules.config?.value, tool)?.class !== undefined) tell(tool, 'configuration');
    }
  }

  /** Tools that no client is shown: without a word they would only be missing. */
  tellUnusable(): void {
    for (const name of this.#tools.all?.keys() ?? []) {
      const problem = this.#tools.callProblem(name);
      if (problem !== undefined) this.#tellOnce(`${name} is not shown and cannot be called: ${problem}.`);
    }
  }

  /** A server lists its tools again and again. */
  #tellOnce(message: string): void {
    if (this.#told.has(message)) return;
    this.#told.add(message);
    this.#report(message);
  }

  /** Whether every call of the tool is a read, whatever is known of its writes. */
  isRead(tool: string): boolean {
    const listed = this.#tools.get(tool);
    if (this.#contradictions.length > 0) return listed?.readOnlyHint === true;
    // Calls that rows tell apart by their arguments are not reads because one without arguments would be.
    if (this.dependsOnArguments(tool)) return false;
    return this.for(this.#destination, tool, {})?.class === 'read';
  }

  /** Whether which class a call has may depend on its arguments. */
  dependsOnArguments(tool: string): boolean {
    return dependsOnArguments(this.#binding, tool);
  }

  /** The argument of a tool that is ours to fill, in whichever of its calls (I13: no model sees it). */
  stampOf(tool: string): string | undefined {
    const conditions = (this.#binding?.tools ?? []).flatMap((row) =>
      row.tool === tool && row.when !== undefined ? [row.when] : [],
    );
    for (const args of [{}, ...conditions]) {
      const stamp = this.for(this.#destination, tool, args)?.stamp?.argument;
      if (stamp !== undefined) return stamp;
    }
    return undefined;
  }
}
