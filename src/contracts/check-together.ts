// What contradicts what, between contracts, bindings and an owner's configuration; both sides are named.

import {
  type Contract,
  type ContractOperation,
  durationMs,
  isTrusted,
  type ToolQuestion,
} from '../core/contract.ts';
import { type Binding, type BindingRow, rowFor } from './binding.ts';
import { boundTools } from './bound-tools.ts';
import { placed, type SourceText } from './document.ts';
import {
  declarationOf,
  type GatewayConfig,
  RESUME_WINDOW_DEFAULT,
  resumeWindowMs,
  type ToolDeclaration,
} from './gateway-config.ts';
import { checkPolicyFloor } from './policy-floor.ts';
import { closest, type Finding, listed, type Path, type Problem } from './problem.ts';
import { mayOverlap } from './server-versions.ts';
import { identityFindings, isIrreversible, repeatOf, splitName } from './write-facts.ts';

/** What was loaded from one file. */
export interface Loaded<Value> {
  readonly value: Value;
  readonly source: SourceText;
}

export interface Setup {
  readonly contracts: readonly Loaded<Contract>[];
  readonly bindings: readonly Loaded<Binding>[];
  readonly config?: Loaded<GatewayConfig> | undefined;
}

/**
 * The contradictions of files that are each right by themselves. Run it when a configuration is loaded, and again
 * when a shipped binding is found for the server that answered: its facts count then as well.
 */
export function checkTogether(setup: Setup): readonly Problem[] {
  return [
    ...checkContractIds(setup),
    ...setup.bindings.flatMap((binding, index) => [
      ...checkServer(setup, binding, index),
      ...placed(checkRows(setup, binding.value), binding.source),
    ]),
    ...(setup.config === undefined
      ? []
      : placed(checkConfig(setup, setup.config.value), setup.config.source)),
  ];
}

function checkContractIds({ contracts }: Setup): readonly Problem[] {
  return contracts.flatMap(({ value, source }, index) => {
    const first = contracts.find((other) => other.value.id === value.id);
    if (first === undefined || first === contracts[index]) return [];
    const sentence = `This contract and ${first.source.file} are both called ${value.id}; each needs a name of its own.`;
    return placed([{ path: ['id'], sentence }], source);
  });
}

function checkServer(
  { bindings }: Setup,
  { value, source }: Loaded<Binding>,
  index: number,
): readonly Problem[] {
  const other = bindings
    .slice(0, index)
    .find(
      ({ value: earlier }) =>
        earlier.server.name.some((name) => value.server.name.includes(name)) &&
        mayOverlap(earlier.server.versions, value.server.versions),
    );
  if (other === undefined) return [];
  const sentence = `The bindings ${value.id} and ${other.value.id} (${other.source.file}) are for the same server; only one can count.`;
  return placed([{ path: ['server'], sentence }], source);
}

function checkRows(setup: Setup, binding: Binding): readonly Finding[] {
  const contract = setup.contracts.find(({ value }) => value.id === binding.contract)?.value;
  if (contract === undefined) {
    const sentence = `The binding ${binding.id} names the contract ${binding.contract}, ${loadedContracts(setup)}.`;
    return [{ path: ['contract'], sentence }];
  }
  return binding.tools.flatMap((row, index) => {
    if (row.operation === undefined) return [];
    const operation = contract.operations.find(({ id }) => id === row.operation);
    const path = ['tools', index];
    if (operation === undefined) {
      return {
        path: [...path, 'operation'],
        sentence: `${row.tool} is mapped to ${noSuchOperation(contract, row.operation)}.`,
      };
    }
    return [
      ...checkRow(contract, row, operation, path),
      ...checkQuestions(setup, binding, operation, [...path, 'operation']),
    ];
  });
}

function checkRow(
  contract: Contract,
  row: BindingRow,
  operation: ContractOperation,
  path: Path,
): readonly Finding[] {
  const findings: Finding[] = [];
  if (row.class !== 'irreversible' && isIrreversible(operation)) {
    findings.push({
      path: [...path, 'class'],
      sentence: belowFloor(row.tool, row.class, contract, operation),
    });
  }
  if (contract.destination.protocol === 'mcp' && !operation.match.includes(row.tool)) {
    findings.push({
      path: [...path, 'tool'],
      sentence: `${row.tool} is mapped to ${operation.id}, which the contract ${contract.id} states for ${listed(operation.match)}.`,
    });
  }
  return findings;
}

function belowFloor(tool: string, declared: string, contract: Contract, { id }: ContractOperation): string {
  const subject = declared === 'irreversible' ? tool : `${tool} is declared ${declared}`;
  return `${subject}, and the contract ${contract.id} states that ${id} is destructive and has no reversal; such a write is irreversible and waits for a person each time.`;
}

/** A look-up may go out while everything else is stopped, so that it has to be known as a read. */
function checkQuestions(
  setup: Setup,
  binding: Binding,
  operation: ContractOperation,
  path: Path,
): readonly Finding[] {
  const questions: [string, ToolQuestion | undefined][] = [
    ...operation.lookups.map(({ tool }): [string, ToolQuestion | undefined] => ['look-up', tool]),
    ['read-back', operation.readback?.tool],
  ];
  return questions.flatMap(([what, question]) => {
    if (question === undefined || isKnownRead(setup, binding, question)) return [];
    const sentence = `A ${what} of ${operation.id} asks through ${question.name}, and the binding ${binding.id} does not list that call as a read.`;
    return { path, sentence };
  });
}

function isKnownRead(setup: Setup, binding: Binding, question: ToolQuestion): boolean {
  const declared = declarationOf(setup.config?.value, question.name)?.class;
  if (declared !== undefined) return declared === 'read';
  // A condition on an argument that is filled from the call cannot hold here: braces are no value of it.
  const row = rowFor(binding, question.name, question.arguments as Parameters<typeof rowFor>[2]);
  return row !== undefined && binding.tools[row]?.class === 'read';
}

function checkConfig(setup: Setup, config: GatewayConfig): readonly Finding[] {
  return [
    ...Object.entries(config.tools ?? {}).flatMap(([tool, declaration]) =>
      checkDeclaration(setup, tool, declaration),
    ),
    ...checkResumeWindow(setup, config),
    ...checkElapsed(setup, config),
    ...checkPolicyFloor(config.policy, (tool) => irreversibleBy(setup, tool)),
  ];
}

interface BoundOperation {
  readonly contract: Contract;
  readonly operation: ContractOperation;
}

function checkDeclaration(setup: Setup, tool: string, declaration: ToolDeclaration): readonly Finding[] {
  const path = ['tools', tool];
  const missing = missingOperation(setup, declaration);
  if (missing !== undefined) {
    return [{ path: [...path, 'contract_operation'], sentence: `${tool} is declared to be ${missing}.` }];
  }
  const bound = operationsOf(setup, tool, declaration);
  return [
    ...checkClass(setup, tool, declaration, bound, [...path, 'class']),
    ...bound.flatMap(({ operation }) => {
      if (declaration.identity === undefined && declaration.target === undefined) return [];
      return identityFindings({
        identity: declaration.identity ?? operation.identity,
        target: declaration.target ?? operation.target,
        stamp: operation.stamp?.argument,
        name: tool,
        path: [...path, 'identity'],
        targetPath: [...path, 'target'],
      });
    }),
  ];
}

function checkClass(
  setup: Setup,
  tool: string,
  declaration: ToolDeclaration,
  bound: readonly BoundOperation[],
  path: Path,
): readonly Finding[] {
  const { class: declared } = declaration;
  if (declared === undefined || declared === 'irreversible') return [];
  const floor = bound.find(({ operation }) => isIrreversible(operation));
  if (floor !== undefined) {
    return [{ path, sentence: belowFloor(tool, declared, floor.contract, floor.operation) }];
  }
  const strict = setup.bindings.find(({ value }) =>
    value.tools.some((row) => row.tool === tool && row.class === 'irreversible'),
  );
  if (strict !== undefined) {
    const sentence = `${tool} is declared ${declared}, and the binding ${strict.value.id} declares it irreversible; that is not lowered.`;
    return [{ path, sentence }];
  }
  const [write] = bound;
  // With `contract_operation` in the same declaration, that it is no read was told with the declaration alone.
  if (declared !== 'read' || write === undefined || declaration.contract_operation !== undefined) return [];
  const sentence = `${tool} is declared a read, and it is mapped to the write ${write.operation.id} of the contract ${write.contract.id}.`;
  return [{ path, sentence }];
}

/** Who says that a tool's writes cannot be taken back; `undefined` where nobody does. */
function irreversibleBy(setup: Setup, tool: string): string | undefined {
  const declaration = declarationOf(setup.config?.value, tool);
  if (declaration?.class === 'irreversible') return 'this configuration';
  const floor = operationsOf(setup, tool, declaration).find(({ operation }) => isIrreversible(operation));
  if (floor !== undefined) return `the contract ${floor.contract.id}`;
  const bound = setup.bindings.find(({ value }) =>
    value.tools.some((row) => row.tool === tool && row.class === 'irreversible'),
  );
  return bound === undefined ? undefined : `the binding ${bound.value.id}`;
}

/** The operations that a tool's calls may be. */
function operationsOf(
  setup: Setup,
  tool: string,
  declaration: ToolDeclaration | undefined,
): readonly BoundOperation[] {
  const named = declaration?.contract_operation;
  const pairs =
    named === undefined
      ? setup.bindings.flatMap(({ value }) =>
          value.tools
            .filter((row) => row.tool === tool)
            .map((row) => [value.contract, row.operation] as const),
        )
      : [splitName(named)];
  return pairs.flatMap(([contractId, operationId]) => {
    const contract = setup.contracts.find(({ value }) => value.id === contractId)?.value;
    const operation = contract?.operations.find(({ id }) => id === operationId);
    return contract === undefined || operation === undefined ? [] : { contract, operation };
  });
}

function missingOperation(setup: Setup, declaration: ToolDeclaration): string | undefined {
  if (declaration.contract_operation === undefined) return undefined;
  const [contractId, operationId] = splitName(declaration.contract_operation);
  const contract = setup.contracts.find(({ value }) => value.id === contractId)?.value;
  if (contract === undefined)
    return `${declaration.contract_operation}, of the contract ${contractId}, ${loadedContracts(setup)}`;
  return contract.operations.some(({ id }) => id === operationId)
    ? undefined
    : noSuchOperation(contract, operationId);
}

function loadedContracts({ contracts }: Setup): string {
  const ids = contracts.map(({ value }) => value.id);
  return `which is not loaded; loaded ${ids.length === 0 ? 'is none' : `${ids.length === 1 ? 'is' : 'are'} ${listed(ids)}`}`;
}

function noSuchOperation(contract: Contract, operation: string): string {
  const ids = contract.operations.map(({ id }) => id);
  const near = closest(operation, ids);
  const hint = near === undefined ? `it has ${listed(ids)}` : `did you mean ${near}?`;
  return `the operation ${operation}, which the contract ${contract.id} does not have (${hint})`;
}

function checkResumeWindow(setup: Setup, config: GatewayConfig): readonly Finding[] {
  const needed = resumeWindowMs(undefined);
  if (config.resume_window === undefined || resumeWindowMs(config) >= needed) return [];
  const tool = firstUniqueTool(setup, config);
  if (tool === undefined) return [];
  const sentence = `resume_window is ${config.resume_window}, and the unique tool ${tool} answers an equal call of its run with the earlier one for ${RESUME_WINDOW_DEFAULT}; at least ${RESUME_WINDOW_DEFAULT} is allowed while a tool is unique.`;
  return [{ path: ['resume_window'], sentence }];
}

function firstUniqueTool(setup: Setup, config: GatewayConfig): string | undefined {
  const bound = setup.bindings.flatMap(({ value }) => value.tools.map((row) => row.tool));
  const tools = new Set([...Object.keys(config.tools ?? {}), ...bound]);
  return [...tools].find((tool) => {
    const declaration = declarationOf(config, tool);
    if (declaration?.repeat !== undefined) return declaration.repeat === 'unique';
    return operationsOf(setup, tool, declaration).some(({ operation }) => repeatOf(operation) === 'unique');
  });
}

/**
 * Tries that go on for longer than a key is known would rest on a promise that nobody gave (D7): beyond the window comes
 * a look-up, or a person.
 */
function checkElapsed(setup: Setup, config: GatewayConfig): readonly Finding[] {
  const elapsed = config.limits?.elapsed;
  const elapsedMs = durationMs(elapsed);
  if (elapsedMs === undefined) return [];
  return boundTools(setup).flatMap(({ contract, operation, tool }) =>
    (operation?.guards ?? []).flatMap((guard): readonly Finding[] => {
      const { at_least: least, kind } = guard.window;
      const leastMs = durationMs(least);
      const isPromise = isTrusted(guard.evidence) && guard.strength === 'enforced' && kind === 'duration';
      if (guard.kind !== 'request_key' || !isPromise || leastMs === undefined) return [];
      if (elapsedMs <= leastMs) return [];
      const sentence = `limits.elapsed lets tries go on for ${elapsed}, and the contract ${contract?.id} promises that the key of ${tool} is known for ${least}; at most ${least} is allowed, because after it there is no repeat but a look-up or a person.`;
      return [{ path: ['limits', 'elapsed'], sentence }];
    }),
  );
}
