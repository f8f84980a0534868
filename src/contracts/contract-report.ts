// Everything that `contract check` says of one file: what is wrong, what may happen by itself, what is left open.

import type { Contract, ContractOperation } from '../core/contract.ts';
import { checkToolArguments } from './check-tool.ts';
import { type Lint, type LintCode, type LintOptions, lintContract } from './contract-lints.ts';
import { placed, type SourceText } from './document.ts';
import { type Explained, explainOperation, guardLines } from './explain-contract.ts';
import { loadContract } from './load.ts';
import type { Finding, Problem } from './problem.ts';
import { factsOf } from './situations.ts';
import type { ListedTool } from './tool-listing.ts';

export interface Note extends Problem {
  readonly code: LintCode | 'review_overdue';
  readonly operation?: string;
}

export interface OperationReport {
  readonly id: string;
  readonly match: readonly string[];
  readonly guards: readonly string[];
  readonly explained: readonly Explained[];
  readonly openQuestions: readonly string[];
}

export interface ContractReport {
  readonly file: string;
  /** Absent where the file is refused. */
  readonly contract?: Contract;
  readonly source?: SourceText;
  readonly operations: readonly OperationReport[];
  readonly problems: readonly Problem[];
  readonly notes: readonly Note[];
}

export interface ReportOptions extends LintOptions {
  /** The tools that are there, where a list of them was given. */
  readonly tools?: readonly ListedTool[];
}

export function reportContract(text: string, file: string, options: ReportOptions): ContractReport {
  const loaded = loadContract(text, file, options.today === undefined ? {} : { today: options.today });
  if (!loaded.ok) return { file, operations: [], problems: loaded.problems, notes: [] };
  const { contract, source } = loaded;
  return {
    file,
    contract,
    source,
    operations: contract.operations.map((operation) => reportOperation(contract, operation)),
    problems: placed(missingArguments(contract, options.tools ?? []), source),
    notes: inOrder([
      ...loaded.notes.map((note) => ({ ...note, code: 'review_overdue' as const })),
      ...placeLints(lintContract(contract, options), source),
    ]),
  };
}

/** A template that names an argument which the tool does not have would ask about another record, or about none. */
function missingArguments(contract: Contract, tools: readonly ListedTool[]): readonly Finding[] {
  return contract.operations.flatMap((operation, index) =>
    tools
      .filter(({ name }) => operation.match.includes(name))
      .flatMap(({ inputSchema, name }) =>
        checkToolArguments(factsOf(contract, operation, name), inputSchema).map((sentence) => ({
          path: ['operations', index],
          sentence,
        })),
      ),
  );
}

function reportOperation(contract: Contract, operation: ContractOperation): OperationReport {
  return {
    id: operation.id,
    match: operation.match,
    guards: guardLines(operation),
    explained: explainOperation(contract, operation),
    openQuestions: operation.open_questions ?? [],
  };
}

/** Each lint as a note with its place and its code. */
export function placeLints(lints: readonly Lint[], source: SourceText): readonly Note[] {
  return lints.flatMap(({ code, operation, ...finding }) =>
    placed([{ ...finding, severity: 'note' }], source).map((problem) => ({
      ...problem,
      code,
      ...(operation === undefined ? {} : { operation }),
    })),
  );
}

function inOrder(notes: readonly Note[]): readonly Note[] {
  return notes.toSorted((a, b) => a.line - b.line || a.column - b.column);
}
