// From contracts, a binding, the owner's words and a server's hint to the facts about one call of one tool (D9).

import { canonicalJson, type JsonValue } from '../core/canonical.ts';
import {
  type Contract,
  type ContractOperation,
  isTrusted,
  type Mode,
  type RepeatClass,
  type ToolClass,
  type ToolFacts,
} from '../core/contract.ts';
import { sha256Hex } from '../core/digest.ts';
import { type Binding, type BindingRow, type DeclaredClass, hasConditions, rowFor } from './binding.ts';
import { splitName } from './check-together.ts';
import { declarationOf, type GatewayConfig, type ToolDeclaration } from './gateway-config.ts';
import { listed } from './problem.ts';
import { isIrreversible, repeatOf } from './write-facts.ts';

/** A class that the owner confirmed for a tool; it counts while the tool's digest is the one that was confirmed. */
export interface OwnerRule {
  readonly tool: string;
  readonly toolDigest: string;
  readonly class: DeclaredClass;
}

export interface FactsQuery {
  readonly destination: string;
  readonly tool: string;
  readonly arguments: JsonValue;
  readonly binding?: Binding | undefined;
  readonly contracts: readonly Contract[];
  readonly config?: GatewayConfig | undefined;
  /** The tool's annotations, only of a server that the owner started; of any other leave them out. */
  readonly hints: { readonly readOnlyHint?: boolean | undefined } | undefined;
  readonly ownerRules: readonly OwnerRule[];
  /** From `toolDigest`; '' fits no rule. */
  readonly toolDigest: string;
  /** The tool as it was first seen; absent where that is not known. */
  readonly pinned?: { readonly digest: string; readonly readOnlyHint: boolean } | undefined;
}

/**
 * The facts about one call. Equal queries are given the same frozen value: what is compiled once is kept for as
 * long as the binding, the contracts and the configuration it came from. Hand in the same objects each time.
 *
 * Whoever says most decides the class: the configuration, then the owner's confirmed rule, then the binding, then
 * `readOnlyHint: true`; else it is unclassified. A write that a contract describes is never a read, and one that
 * is declared irreversible by its binding, or is destructive without a way back, is never less (the floor of D9).
 *
 * A class that names a tool was given for the tool as it was then. Of one whose schema or annotations have changed
 * since, nobody has said what it is now: it asks again, and what was irreversible stays so. A binding names the
 * versions of the server that it holds for, and is not asked about.
 */
export function compileToolFacts(query: FactsQuery): ToolFacts {
  const { tool, binding } = query;
  const row = binding === undefined ? undefined : rowFor(binding, tool, query.arguments);
  const rule = confirmedRule(query);
  const isReadOnly = query.hints?.readOnlyHint === true;
  const kept = keptFacts(query);
  const change = changeOf(query, rule);
  const key = JSON.stringify([query.destination, tool, row ?? null, rule?.class ?? null, isReadOnly, change]);
  const known = kept.get(key);
  if (known !== undefined) return known;
  const facts = assemble(query, row, rule, isReadOnly, change);
  // Names of tools come from callers, so that what is kept must have a bound.
  if (kept.size >= KEPT_MAX) kept.clear();
  kept.set(key, facts);
  return facts;
}

/** Whether the arguments of a call may change the facts about it. */
export function dependsOnArguments(binding: Binding | undefined, tool: string): boolean {
  return binding !== undefined && hasConditions(binding, tool);
}

const KEPT_MAX = 4096;
const NOTHING = {};
const keptBySource = new WeakMap<object, WeakMap<object, WeakMap<object, Map<string, ToolFacts>>>>();

function keptFacts({ contracts, binding, config }: FactsQuery): Map<string, ToolFacts> {
  const byBinding = getOrAdd(keptBySource, contracts, () => new WeakMap());
  const byConfig = getOrAdd(byBinding, binding ?? NOTHING, () => new WeakMap());
  return getOrAdd(byConfig, config ?? NOTHING, () => new Map());
}

function getOrAdd<Value>(map: WeakMap<object, Value>, key: object, make: () => Value): Value {
  let value = map.get(key);
  if (value === undefined) {
    value = make();
    map.set(key, value);
  }
  return value;
}

function confirmedRule({ ownerRules, tool, toolDigest }: FactsQuery): OwnerRule | undefined {
  if (toolDigest === '') return undefined;
  return ownerRules.findLast((rule) => rule.tool === tool && rule.toolDigest === toolDigest);
}

/** How the tool differs from what its class was given for. */
interface ToolChange {
  /** What an owner or the configuration had said of it. */
  readonly before?: DeclaredClass | undefined;
  readonly by?: 'owner' | 'configuration';
  /** It did not say that it only reads when it was first seen. */
  readonly isNewlyRead: boolean;
  /** Its present version was confirmed, which says more than a configuration that was written for another. */
  readonly isConfirmed: boolean;
}

function changeOf(query: FactsQuery, rule: OwnerRule | undefined): ToolChange {
  const { config, ownerRules, pinned, tool, toolDigest: digest } = query;
  const isOther = pinned !== undefined && pinned.digest !== digest;
  const isNewlyRead = isOther && !pinned.readOnlyHint;
  if (rule !== undefined) return { isNewlyRead, isConfirmed: isOther };
  const stale = ownerRules.findLast((other) => other.tool === tool);
  if (stale !== undefined) return { before: stale.class, by: 'owner', isNewlyRead, isConfirmed: false };
  const declared = isOther ? declarationOf(config, tool)?.class : undefined;
  if (declared === undefined) return { isNewlyRead, isConfirmed: false };
  return { before: declared, by: 'configuration', isNewlyRead, isConfirmed: false };
}

function assemble(
  query: FactsQuery,
  rowIndex: number | undefined,
  rule: OwnerRule | undefined,
  isReadOnly: boolean,
  change: ToolChange,
): ToolFacts {
  const { destination, tool, binding, config } = query;
  const mode = config?.mode ?? 'guard';
  const row = rowIndex === undefined ? undefined : binding?.tools[rowIndex];
  const declaration = declarationOf(config, tool);
  const bound = boundOperation(query, row, declaration);
  // A hint is about the whole tool; where rows tell its calls apart, one that fits none is not known as a read.
  const isHintedRead = isReadOnly && rowIndex === undefined && !change.isNewlyRead;
  const classified = classify({
    declared: declaration?.class,
    rule,
    row,
    isHintedRead,
    operation: bound?.operation,
    change,
  });
  const checks = binding?.checks_arguments;
  const facts: Omit<ToolFacts, 'digest'> = {
    destination,
    tool,
    ...classified,
    ...(change.before === undefined ? {} : { changedFrom: change.before }),
    ...(mode === 'guard' || classified.class === 'read' ? {} : { mode }),
    ...writeFacts(classified.class, declaration, bound?.operation, mode),
    checksArguments: checks !== undefined && checks.value && isTrusted(checks.evidence),
    ...(classified.class === 'read' || bound === undefined ? {} : describe(bound)),
  };
  const digest = sha256Hex(canonicalJson(facts as unknown as JsonValue));
  return Object.freeze({ ...facts, digest });
}

interface BoundOperation {
  readonly contract: Contract;
  readonly operation: ContractOperation;
}

function boundOperation(
  { contracts, binding, tool }: FactsQuery,
  row: BindingRow | undefined,
  declaration: ToolDeclaration | undefined,
): BoundOperation | undefined {
  // A configuration names the write that a tool is; calls that its binding knows as reads stay what they are.
  if (row?.class === 'read' && declaration?.class === undefined) return undefined;
  const named = declaration?.contract_operation;
  if (named === undefined && (row?.operation === undefined || binding === undefined)) return undefined;
  const [contractId, operationId] =
    named === undefined ? [binding?.contract, row?.operation] : splitName(named);
  const contract = contracts.find(({ id }) => id === contractId);
  const operation = contract?.operations.find(({ id }) => id === operationId);
  if (contract === undefined || operation === undefined) {
    throw new Error(`Assertion: ${tool} is bound to ${contractId}/${operationId}, which is not loaded.`);
  }
  return { contract, operation: withLimits(contract, operation) };
}

/** What a contract says of all its operations holds where one says nothing of its own. */
function withLimits(contract: Contract, operation: ContractOperation): ContractOperation {
  return contract.limits === undefined
    ? operation
    : { ...operation, limits: { ...contract.limits, ...operation.limits } };
}

type Classified = Pick<ToolFacts, 'class' | 'classSource'>;

function classify(said: {
  readonly declared: DeclaredClass | undefined;
  readonly rule: OwnerRule | undefined;
  readonly row: BindingRow | undefined;
  readonly isHintedRead: boolean;
  readonly operation: ContractOperation | undefined;
  readonly change: ToolChange;
}): Classified {
  const { change, declared, rule, row, isHintedRead, operation } = said;
  if (operation !== undefined && isIrreversible(operation)) {
    return { class: 'irreversible', classSource: 'contract' };
  }
  if (row?.class === 'irreversible') return { class: 'irreversible', classSource: 'binding' };
  if (change.before !== undefined && change.by !== undefined) {
    return change.before === 'irreversible'
      ? { class: 'irreversible', classSource: change.by }
      : { class: 'unclassified', classSource: 'nobody' };
  }
  const voices: readonly [DeclaredClass | undefined, ToolFacts['classSource']][] = [
    [change.isConfirmed ? rule?.class : declared, change.isConfirmed ? 'owner' : 'configuration'],
    [rule?.class, 'owner'],
    [row?.class, 'binding'],
    [isHintedRead ? 'read' : undefined, 'hint'],
  ];
  for (const [voice, classSource] of voices) {
    if (voice === undefined || (voice === 'read' && operation !== undefined)) continue;
    return { class: voice, classSource };
  }
  return { class: 'unclassified', classSource: 'nobody' };
}

function writeFacts(
  toolClass: ToolClass,
  declaration: ToolDeclaration | undefined,
  operation: ContractOperation | undefined,
  mode: Mode,
): Pick<ToolFacts, 'repeat' | 'identity' | 'target' | 'stamp'> {
  if (toolClass === 'read') return { repeat: 'free' };
  const identity = declaration?.identity ?? operation?.identity;
  const target = declaration?.target ?? operation?.target;
  // Nothing is filled in where nothing is guarded: the call goes out as it came.
  const stamp = mode === 'observe' ? undefined : operation?.stamp;
  return {
    repeat: declaration?.repeat ?? statedRepeat(toolClass, operation),
    ...(identity && { identity }),
    ...(target && { target: { type: target.type, id: [target.id].flat() } }),
    ...(stamp && { stamp }),
  };
}

/** An interactive tool is free unless its contract says otherwise; what nobody described is free. */
function statedRepeat(toolClass: ToolClass, operation: ContractOperation | undefined): RepeatClass {
  if (operation === undefined) return 'free';
  return toolClass === 'interactive' ? (operation.repeat ?? 'free') : repeatOf(operation);
}

function describe({ contract, operation }: BoundOperation): Pick<ToolFacts, 'contract' | 'operation'> {
  const { id, revision, ownership } = contract;
  return { contract: { id, revision, reviewBy: ownership.review_by }, operation };
}

/**
 * What a class is confirmed for, as canonical JSON: the tool's name, the schema of its arguments, its annotations.
 * '' where they have no exact form: then no rule fits.
 */
export function toolDefinition(tool: {
  readonly name: string;
  readonly inputSchema?: unknown;
  readonly annotations?: unknown;
}): string {
  const { name, inputSchema = null, annotations = null } = tool;
  try {
    return canonicalJson({ name, inputSchema, annotations } as JsonValue);
  } catch {
    return '';
  }
}

/** SHA-256 over its definition: a tool in which anything of it changes is asked about again. '' where it has none. */
export function toolDigest(tool: Parameters<typeof toolDefinition>[0]): string {
  const definition = toolDefinition(tool);
  return definition === '' ? '' : sha256Hex(definition);
}

const CLASSES: { readonly [toolClass in ToolClass]: string } = {
  read: 'a read',
  ordinary: 'an ordinary write',
  irreversible: 'an irreversible write, which waits for a person each time',
  interactive: 'an interactive tool',
  unclassified: 'not classified',
};

const CLASS_SOURCES: { readonly [source in ToolFacts['classSource']]: string } = {
  configuration: 'the configuration says so',
  owner: 'its owner confirmed so for this version of the tool',
  binding: 'the binding of its server says so',
  contract: 'its contract states that it destroys something and cannot be taken back',
  hint: 'its server, which the owner started, marks it as reading only',
  nobody: 'nobody has said yet how it is to be treated',
};

const REPEATS: { readonly [repeat in RepeatClass]: string } = {
  unique:
    'An equal call in the same run is answered with the earlier operation; a second one needs a person.',
  state:
    'An equal call in the same run is answered with the earlier operation, unless something was written to its target since.',
  free: 'An equal call after an answer that arrived is an operation of its own.',
};

/** The facts in sentences, for whoever asks why a call is treated as it is. */
export function explainFacts(facts: ToolFacts): string[] {
  const { tool, destination, identity, target, stamp, contract, operation } = facts;
  const sentences = [
    `${tool} on ${destination} is ${CLASSES[facts.class]}: ${CLASS_SOURCES[facts.classSource]}.`,
  ];
  if (facts.changedFrom !== undefined) {
    sentences.push(`It was called ${CLASSES[facts.changedFrom]}, and has changed since.`);
  }
  if (facts.class === 'read') return [...sentences, 'It passes unrecorded.'];
  sentences.push(REPEATS[facts.repeat]);
  sentences.push(
    identity === undefined
      ? 'All its arguments make it the same intended write.'
      : `Its ${noun('argument', identity.length)} ${listed(identity)} ${identity.length > 1 ? 'make' : 'makes'} it the same intended write; other arguments may differ.`,
  );
  sentences.push(
    target === undefined
      ? 'No target is declared, so that other writes do not wait for it.'
      : `It changes the ${target.type} named by ${listed(target.id)}; another write to it waits until this one is settled.`,
  );
  if (stamp !== undefined)
    sentences.push(`Its argument ${stamp.argument} is filled by us, with a reference to look for.`);
  sentences.push(
    facts.checksArguments
      ? 'The server refuses arguments that do not fit by itself, before it changes anything.'
      : 'Arguments are checked here, because the server is not known to check them itself.',
  );
  if (contract === undefined || operation === undefined) {
    return [...sentences, 'No contract describes it: nothing is repeated or looked up by us.'];
  }
  sentences.push(
    `The contract ${contract.id}, revision ${contract.revision}, describes it as ${operation.id}; it is to be reviewed by ${contract.reviewBy}.`,
  );
  sentences.push(
    operation.lookups.length === 0
      ? 'After a lost reply there is no look-up: a person is asked.'
      : `After a lost reply it is looked up ${listed(
          operation.lookups.map(({ by }) => `by ${by.replaceAll('_', ' ')}`),
          'then',
        )}.`,
  );
  if (operation.readback !== undefined) sentences.push('What it changed is read back.');
  return sentences;
}

function noun(word: string, count: number): string {
  return count > 1 ? `${word}s` : word;
}
