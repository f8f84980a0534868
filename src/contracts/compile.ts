// From contracts, a binding, the owner's words and a server's hint to the facts about one call of one tool (D9).

import { canonicalJson, type JsonValue } from '../core/canonical.ts';
import {
  type Contract,
  type ContractOperation,
  durationMs,
  isTrusted,
  type Mode,
  type RepeatClass,
  type ToolClass,
  type ToolFacts,
  type ToolQuestion,
} from '../core/contract.ts';
import { sha256Hex } from '../core/digest.ts';
import { type Binding, type BindingRow, type DeclaredClass, hasConditions, rowFor } from './binding.ts';
import { executable } from './executable.ts';
import { declarationOf, type GatewayConfig, type ToolDeclaration } from './gateway-config.ts';
import { compiledPolicy } from './policy-config.ts';
import { listed } from './problem.ts';
import type { ToolChanges } from './tool-changes.ts';
import { isIrreversible, repeatOf, splitName } from './write-facts.ts';

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
  /** Tools that are not those of which something was said; absent where nothing is known of how they were. */
  readonly changes?: ToolChanges | undefined;
}

/**
 * The facts about one call. Equal queries are given the same frozen value: what is compiled once is kept for as
 * long as the binding, the contracts and the configuration it came from. Hand in the same objects each time.
 *
 * Whoever says most decides the class: the configuration, then the owner's confirmed rule, then the binding, then
 * `readOnlyHint: true`; else it is unclassified. A write that a contract describes is never a read, and one that
 * is declared irreversible by its binding, or is destructive without a way back, is never less (the floor of D9).
 *
 * A class was given for the tool as it was then: an owner's for the version that was confirmed, a configuration's for
 * the one that was first seen, a binding's for those that it was measured with (where it states none, for the versions
 * of the server that it names). Of another one nobody has said what it is: it asks again, and what was irreversible
 * stays so.
 */
export function compileToolFacts(query: FactsQuery): ToolFacts {
  const { tool } = query;
  const counted = countedRow(query);
  const rule = confirmedRule(query);
  const isReadOnly = query.hints?.readOnlyHint === true;
  const kept = keptFacts(query);
  const change = changeOf(query, rule);
  const key = JSON.stringify([
    query.destination,
    tool,
    counted.index ?? null,
    rule?.class ?? null,
    isReadOnly,
    change,
    ...(query.changes?.sinceBinding ?? []),
  ]);
  const known = kept.get(key);
  if (known !== undefined) return known;
  const facts = assemble(query, counted, rule, isReadOnly, change);
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

interface CountedRow {
  /** -1 where the binding names the tool and no row fits; `undefined` where it has nothing to say of it. */
  readonly index: number | undefined;
  readonly row?: BindingRow | undefined;
}

/**
 * Of a tool that the binding was not measured with no row counts. What it knew to write is not made a read by its hint
 * alone; what it knew to read goes by its hint, as any tool of a server that its owner started.
 */
function countedRow({ binding, tool, arguments: args, changes }: FactsQuery): CountedRow {
  if (binding === undefined) return { index: undefined };
  if (changes?.sinceBinding.has(tool) === true) {
    return { index: classBound(binding, tool) === undefined ? undefined : -1 };
  }
  const index = rowFor(binding, tool, args);
  return { index, row: index === undefined ? undefined : binding.tools[index] };
}

/** The most careful class that the binding gives any call of the tool; `undefined` where it knows no write of it. */
function classBound({ tools }: Binding, tool: string): DeclaredClass | undefined {
  const classes = tools.flatMap((row) => (row.tool === tool ? [row.class] : []));
  return (['irreversible', 'ordinary', 'interactive'] as const).find((one) => classes.includes(one));
}

/** How the tool differs from what its class was given for. */
interface ToolChange {
  /** What was said of the tool as it was. */
  readonly before?: DeclaredClass | undefined;
  readonly by?: 'owner' | 'configuration' | 'binding';
  /** It did not say that it only reads when it was first seen. */
  readonly isNewlyRead: boolean;
  /** Its present version was confirmed, which says more than a configuration that was written for another. */
  readonly isConfirmed: boolean;
}

function changeOf(query: FactsQuery, rule: OwnerRule | undefined): ToolChange {
  const first = query.changes?.sinceSeen.get(query.tool);
  return {
    ...saidBefore(query, rule),
    isNewlyRead: first?.readOnlyHint === false,
    isConfirmed: first !== undefined && rule !== undefined,
  };
}

/**
 * What was said of the tool as it was, by whoever says most, where nobody who says as much has said anything of it as
 * it is. That a binding called it irreversible stays, whatever is said of it now.
 */
function saidBefore(
  { binding, changes, config, ownerRules, tool }: FactsQuery,
  rule: OwnerRule | undefined,
): Pick<ToolChange, 'before' | 'by'> {
  const bound =
    binding !== undefined && changes?.sinceBinding.has(tool) === true ? classBound(binding, tool) : undefined;
  if (bound === 'irreversible') return { before: bound, by: 'binding' };
  if (rule !== undefined) return {};
  const stale = ownerRules.findLast((other) => other.tool === tool);
  if (stale !== undefined) return { before: stale.class, by: 'owner' };
  const declared = declarationOf(config, tool)?.class;
  if (declared !== undefined) {
    return changes?.sinceSeen.has(tool) === true ? { before: declared, by: 'configuration' } : {};
  }
  return bound === undefined ? {} : { before: bound, by: 'binding' };
}

function assemble(
  query: FactsQuery,
  { index, row }: CountedRow,
  rule: OwnerRule | undefined,
  isReadOnly: boolean,
  change: ToolChange,
): ToolFacts {
  const { destination, tool, binding, config } = query;
  const mode = config?.mode ?? 'guard';
  const declaration = declarationOf(config, tool);
  const bound = boundOperation(query, row, declaration);
  // A hint is about the whole tool; where rows tell its calls apart, one that fits none is not known as a read.
  const isHintedRead = isReadOnly && index === undefined && !change.isNewlyRead;
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
  const sending = sendingOf(config);
  const policy = config?.policy === undefined ? undefined : compiledPolicy(config.policy);
  // In `observe` everything is sent as it comes, and says so.
  const isJudged = policy !== undefined && mode !== 'observe' && facts.class !== 'read';
  return Object.freeze({
    ...facts,
    ...(sending === undefined ? {} : { sending }),
    ...(isJudged ? { policy } : {}),
    digest,
  });
}

function sendingOf(config: GatewayConfig | undefined): ToolFacts['sending'] {
  const { concurrency, rate } = config?.sending ?? {};
  const perMs = durationMs(rate?.per);
  if (concurrency === undefined && perMs === undefined) return undefined;
  return {
    ...(concurrency === undefined ? {} : { concurrency }),
    ...(rate === undefined || perMs === undefined ? {} : { rate: { writes: rate.writes, perMs } }),
  };
}

interface BoundOperation {
  readonly contract: Contract;
  readonly operation: ContractOperation;
}

function boundOperation(
  { contracts, binding, tool, changes }: FactsQuery,
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
  return { contract, operation: askingOnly(withLimits(contract, executable(operation)), changes) };
}

/** Nothing is asked through a tool of which nobody knows any more what it does. */
function askingOnly(operation: ContractOperation, changes: ToolChanges | undefined): ContractOperation {
  if (changes === undefined || changes.sinceBinding.size === 0) return operation;
  const { readback, lookups, ...rest } = operation;
  const isKnown = ({ tool }: { readonly tool?: ToolQuestion }) => !changes.sinceBinding.has(tool?.name ?? '');
  return {
    ...rest,
    lookups: lookups.filter(isKnown),
    ...(readback !== undefined && isKnown(readback) ? { readback } : {}),
  };
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
