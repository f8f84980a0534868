// Everything that is agreed about the tools of one destination, on one page: what makes a call the same, who approves,
// what guards it, what follows an unknown outcome, who owns it, which way back is taken, who may stop, and what is missing.

import type { Contract, Mode, ToolClass, ToolFacts } from '../core/contract.ts';
import type { Binding, BindingRow } from './binding.ts';
import { compileToolFacts, type OwnerRule } from './compile.ts';
import { type Lint, lintContract, type Pauses } from './contract-lints.ts';
import { explainOperation, guardLines } from './explain-contract.ts';
import { type GatewayConfig, type RecoveryRoute, WRITES_PER_HOUR_DEFAULT } from './gateway-config.ts';
import { agreementFor, lintAgreement, ROUTES, waiverFor } from './going-live.ts';
import { listed } from './problem.ts';
import type { SituationId } from './situations.ts';

export interface ToolBlueprint {
  readonly tool: string;
  /** With which arguments, where they tell its calls apart. */
  readonly calls?: string;
  readonly class: ToolClass;
  readonly classSource: ToolFacts['classSource'];
  /** `contract/operation, revision N`; absent where no contract describes it. */
  readonly write?: string;
  readonly identity: string;
  readonly approver: string;
  readonly guards: readonly string[];
  readonly afterUnknown: readonly string[];
  readonly owner?: string;
  readonly recovery: RecoveryRoute;
  readonly mayStop: readonly string[];
  /** What is missing, in words; what was waived says by whom. */
  readonly gaps: readonly string[];
}

export interface DestinationBlueprint {
  readonly destination: string;
  readonly mode: Mode;
  /** Names only: they pass, and nothing is kept of them. */
  readonly reads: readonly string[];
  readonly tools: readonly ToolBlueprint[];
}

export interface BlueprintParts {
  readonly destination: string;
  readonly contracts: readonly Contract[];
  readonly bindings: readonly Binding[];
  readonly config?: GatewayConfig | undefined;
  /** Classes that an owner confirmed and that are in force. */
  readonly rules: readonly OwnerRule[];
  readonly pauses: Pauses;
  readonly today: string;
}

export function blueprintOf(parts: BlueprintParts): DestinationBlueprint {
  const calls = callsOf(parts);
  const reads = calls.filter(({ facts }) => facts.class === 'read').map(({ tool }) => tool);
  const tools = calls.filter(({ facts }) => facts.class !== 'read');
  return {
    destination: parts.destination,
    mode: parts.config?.mode ?? 'guard',
    reads: [...new Set(reads)].filter((read) => !tools.some(({ tool }) => tool === read)),
    tools: tools.map((call) => toolBlueprint(parts, call)),
  };
}

interface Call {
  readonly tool: string;
  readonly calls?: string;
  readonly facts: ToolFacts;
}

/** Each tool that anybody has said something of; a row of a binding that holds for some calls only, by itself. */
function callsOf(parts: BlueprintParts): readonly Call[] {
  const { bindings, config, contracts, destination, rules } = parts;
  const compile = (tool: string, binding: Binding | undefined): ToolFacts => {
    const rule = rules.findLast((other) => other.tool === tool);
    return compileToolFacts({
      destination,
      tool,
      arguments: {},
      binding,
      contracts,
      config,
      hints: undefined,
      ownerRules: rules,
      toolDigest: rule?.toolDigest ?? '',
    });
  };
  const bound = bindings.flatMap((binding) =>
    binding.tools.map((row): Call => {
      const { unless: _unless, when: _when, ...always } = row;
      const calls = conditionsOf(row);
      return {
        tool: row.tool,
        ...(calls === '' ? {} : { calls }),
        facts: compile(row.tool, { ...binding, tools: [always] }),
      };
    }),
  );
  const named = [...Object.keys(config?.tools ?? {}), ...rules.map(({ tool }) => tool)];
  const others = [...new Set(named)].filter((tool) => !bound.some((call) => call.tool === tool));
  return [...bound, ...others.map((tool) => ({ tool, facts: compile(tool, undefined) }))];
}

function conditionsOf({ unless = [], when = {} }: BindingRow): string {
  const given = Object.entries(when).map(([name, value]) => `${name}: ${JSON.stringify(value)}`);
  return [
    ...(given.length === 0 ? [] : [`with ${given.join(', ')}`]),
    ...(unless.length === 0 ? [] : [`without ${unless.join(', ')}`]),
  ].join(' ');
}

function toolBlueprint(parts: BlueprintParts, { calls, facts, tool }: Call): ToolBlueprint {
  const contract = parts.contracts.find(({ id }) => id === facts.contract?.id);
  const operation = contract?.operations.find(({ id }) => id === facts.operation?.id);
  const { mayStop, owner, recovery } = agreementFor(parts.config, tool, contract);
  const isDescribed = contract !== undefined && operation !== undefined;
  return {
    tool,
    ...(calls === undefined ? {} : { calls }),
    class: facts.class,
    classSource: facts.classSource,
    ...(isDescribed ? { write: `${contract.id}/${operation.id}, revision ${contract.revision}` } : {}),
    identity: identityWords(facts),
    approver: approverWords(facts, parts.config),
    guards: isDescribed ? guardLines(operation) : [],
    afterUnknown: isDescribed
      ? explainOperation(contract, operation)
          .filter(({ situation }) => AFTER_UNKNOWN.includes(situation))
          .map(({ sentence }) => sentence)
      : ['No contract describes it: nothing is looked up or repeated by us, and a person is asked.'],
    ...(owner === undefined ? {} : { owner }),
    recovery,
    mayStop,
    gaps: gapsOf(parts, { facts, tool }, contract),
  };
}

const AFTER_UNKNOWN: readonly SituationId[] = [
  'lost',
  'found',
  'not_found_late',
  'two_found',
  'window_over',
  'overdue',
];

const REPEATS = {
  unique: 'an equal call of its run is answered with the first',
  state: 'an equal call is answered with the first, unless its target was written to since',
  free: 'an equal call after its answer arrived is another one',
} as const;

function identityWords({ identity, repeat, target }: ToolFacts): string {
  const same = identity === undefined ? 'all its arguments' : listed(identity);
  const on =
    target === undefined ? 'no target is declared' : `its target is the ${target.type} ${listed(target.id)}`;
  return `${same}; ${REPEATS[repeat]}; ${on}`;
}

function approverWords(facts: ToolFacts, config: GatewayConfig | undefined): string {
  const mode = config?.mode ?? 'guard';
  if (mode === 'observe') return 'nobody: in observe each call is sent as it comes';
  if (facts.class === 'irreversible') return 'its owner, on each call, with the passphrase';
  if (mode === 'strict') return 'a person of this account, on each call (strict)';
  switch (facts.class) {
    case 'unclassified':
      return 'a person, once: the answer is a rule from then on';
    case 'interactive':
    case 'read':
      return 'nobody';
    case 'ordinary': {
      const writes = config?.limits?.writes_per_hour ?? WRITES_PER_HOUR_DEFAULT;
      return `nobody on each call; after ${writes} writes within an hour a person is asked once whether to go on`;
    }
  }
}

function gapsOf(
  { config, contracts, pauses, today }: BlueprintParts,
  { facts, tool }: Pick<Call, 'facts' | 'tool'>,
  contract: Contract | undefined,
): readonly string[] {
  const lints: Lint[] = [];
  if (contract === undefined) {
    lints.push({
      code: 'grades_permit_nothing',
      path: [],
      sentence: `No contract describes ${tool}.`,
    });
  } else {
    const own = lintContract(contract, { today, pauses }).filter(
      ({ code, operation }) =>
        (operation ?? facts.operation?.id) === facts.operation?.id && code !== 'owner_missing',
    );
    lints.push(...own);
  }
  lints.push(...lintAgreement(config ?? { destination: facts.destination }, tool, contract));
  const words = lints.map(({ code, sentence }) => {
    const waiver = waiverFor(config, code, tool);
    return waiver === undefined
      ? sentence
      : `${sentence} Waived by ${waiver.by} on ${waiver.on}: ${waiver.because}`;
  });
  const open = contracts
    .find(({ id }) => id === contract?.id)
    ?.operations.find(({ id }) => id === facts.operation?.id)?.open_questions;
  const { mayStop } = agreementFor(config, tool, contract);
  return [
    ...(facts.class === 'unclassified' ? [`Nobody has said yet what ${tool} is.`] : []),
    ...words,
    ...(mayStop.length === 0 ? [`Nobody is named who may stop ${tool} (may_stop).`] : []),
    ...(open ?? []).map((question) => `Not known: ${question}`),
  ];
}

/** The situations of a way back, as they are named on a page. */
export function routeLines(recovery: RecoveryRoute): readonly string[] {
  return (Object.entries(ROUTES) as [keyof RecoveryRoute, string][]).map(
    ([situation, words]) => `${words}: ${recovery[situation] ?? 'nothing is agreed'}`,
  );
}
