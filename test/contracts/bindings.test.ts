import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import type { Binding, BindingRow, ToolHint } from '../../src/contracts/binding.ts';
import { findShippedFacts, readShipped, shippedFiles } from '../../src/contracts/catalogue.ts';
import { checkToolArguments } from '../../src/contracts/check-tool.ts';
import { compileToolFacts } from '../../src/contracts/compile.ts';
import { loadBinding, loadContract } from '../../src/contracts/load.ts';
import type { Contract, ContractOperation, ToolQuestion } from '../../src/core/contract.ts';

/** The tools of a server as `scripts/record-tools.mjs` has seen them. */
interface RecordedTools {
  readonly package: string;
  readonly version: string;
  readonly on: string;
  readonly serverInfo: { readonly name: string; readonly version: string };
  readonly tools: readonly RecordedTool[];
}

interface RecordedTool {
  readonly name: string;
  readonly digest: string;
  readonly hints: { readonly [hint in ToolHint]?: boolean };
  readonly arguments: readonly string[];
  readonly required: readonly string[];
}

const RECORDED = new URL('./recorded/', import.meta.url);
const ids = readdirSync(RECORDED).map((file) => file.replace('.json', ''));

function setup(id: string) {
  const record = JSON.parse(readFileSync(new URL(`${id}.json`, RECORDED), 'utf8')) as RecordedTools;
  const binding = loadBinding(readShipped(`${id}.binding.yaml`), id);
  if (!binding.ok) throw new Error(JSON.stringify(binding.problems));
  const contract = loadContract(readShipped(`${binding.binding.contract}.contract.yaml`), id);
  if (!contract.ok) throw new Error(JSON.stringify(contract.problems));
  const rows = binding.binding.tools;
  const tool = (name: string): RecordedTool => {
    const found = record.tools.find((each) => each.name === name);
    if (found === undefined) throw new Error(`${id} lists no tool ${name}.`);
    return found;
  };
  const operationOf = (row: BindingRow): ContractOperation | undefined =>
    contract.contract.operations.find((operation) => operation.id === row.operation);
  return { record, binding: binding.binding, contract: contract.contract, rows, tool, operationOf };
}

function factsOf(binding: Binding, contract: Contract, row: BindingRow) {
  return compileToolFacts({
    destination: 'd',
    tool: row.tool,
    arguments: row.when ?? {},
    binding,
    contracts: [contract],
    hints: undefined,
    ownerRules: [],
    toolDigest: '',
  });
}

it('there is a record of the tools of each server that a binding is shipped for', () => {
  expect(ids.map((id) => `${id}.binding.yaml`).toSorted()).toEqual(shippedFiles('binding'));
  expect(ids.length).toBeGreaterThanOrEqual(10);
});

describe.each(ids)('the binding %s', (id) => {
  const { record, binding, contract, rows, tool, operationOf } = setup(id);

  it('is found by what the server calls itself, and states the digests that were recorded', () => {
    expect(findShippedFacts(record.serverInfo)?.binding.value).toEqual(binding);
    const { package: name, version, on, tools } = record;
    expect(binding.measured).toContainEqual(
      expect.objectContaining({
        package: name,
        version,
        on,
        tools: Object.fromEntries(tools.map((each) => [each.name, each.digest])),
      }),
    );
  });

  it('has a class for each tool of the server, and no row for another', () => {
    const named = [...new Set(rows.map((row) => row.tool))];
    expect(named.toSorted()).toEqual(record.tools.map(({ name }) => name).toSorted());
    // Whatever the arguments are: the last row of a tool has no condition.
    for (const name of named) {
      expect(rows.findLast((row) => row.tool === name)).not.toMatchObject({ when: expect.anything() });
      expect(rows.findLast((row) => row.tool === name)).not.toMatchObject({ unless: expect.anything() });
    }
  });

  it('says why each irreversible tool is one', () => {
    const silent = rows.filter((row) => row.class === 'irreversible' && row.reason === undefined);
    expect(silent).toEqual([]);
  });

  it('names only arguments that the tools have, in conditions, identity, target and questions', () => {
    const problems = rows.flatMap((row) => {
      const known = tool(row.tool).arguments;
      const properties = Object.fromEntries(known.map((name) => [name, {}]));
      const named = [...Object.keys(row.when ?? {}), ...(row.unless ?? [])];
      const conditions = named.filter((name) => !known.includes(name));
      return [...conditions, ...checkToolArguments(factsOf(binding, contract, row), { properties })];
    });
    expect(problems).toEqual([]);
  });

  it('asks reading tools, with arguments that they have and all that they need', () => {
    const questions = contract.operations.flatMap(({ lookups, readback }): readonly ToolQuestion[] => [
      ...lookups.flatMap((lookup) => (lookup.tool === undefined ? [] : [lookup.tool])),
      ...(readback?.tool === undefined ? [] : [readback.tool]),
    ]);
    for (const { name, arguments: args } of questions) {
      const asked = tool(name);
      const asking = rows.filter((row) => row.tool === name);
      expect([name, ...asking.map((row) => row.class)]).toEqual([name, 'read']);
      expect(asked.arguments, name).toEqual(expect.arrayContaining(Object.keys(args)));
      expect(Object.keys(args), name).toEqual(expect.arrayContaining([...asked.required]));
    }
  });

  it('names each hint of the server that it contradicts, and no other', () => {
    for (const row of rows) {
      const { hints } = tool(row.tool);
      const said = { tool: row.tool, corrects: row.corrects ?? {} };
      expect(said).toEqual({ tool: row.tool, corrects: contradicted(row, hints, operationOf(row)) });
    }
  });

  it('uses each operation of its contract, and every operation is one of the tools that it names', () => {
    const used = new Set(rows.flatMap((row) => row.operation ?? []));
    expect([...used].toSorted()).toEqual(contract.operations.map((operation) => operation.id).toSorted());
    for (const { match, id: name } of contract.operations) {
      const tools = rows.filter((row) => row.operation === name).map((row) => row.tool);
      expect([...match].toSorted(), name).toEqual([...new Set(tools)].toSorted());
    }
  });

  it('states of each fact that was looked up where and when', () => {
    const bare = evidenceIn({ binding, contract }).filter(
      ({ grade, source, checked_on: day }) =>
        grade !== 'assumed' && grade !== 'not_documented' && (source === undefined || day === undefined),
    );
    expect(bare).toEqual([]);
    expect(contract.operations.filter((operation) => operation.evidence === undefined)).toEqual([]);
    expect(binding.evidence).toBeDefined();
  });
});

/** Which of the hints a row cannot be true beside. */
function contradicted(
  row: BindingRow,
  hints: RecordedTool['hints'],
  operation: ContractOperation | undefined,
): { [hint in ToolHint]?: boolean } {
  const { readOnlyHint, destructiveHint, idempotentHint } = hints;
  const isRead = row.class === 'read';
  // Only a contract that says so of a repeat contradicts; that nothing is said of it does not.
  const converges = (operation?.guards ?? []).some(
    (guard) => guard.kind === 'desired_state' && guard.same.result === 'converges',
  );
  return {
    ...(readOnlyHint !== undefined && readOnlyHint !== isRead && (isRead || readOnlyHint)
      ? { readOnlyHint }
      : {}),
    ...((isRead && destructiveHint === true) || (row.class === 'irreversible' && destructiveHint === false)
      ? { destructiveHint }
      : {}),
    ...((converges && idempotentHint === false) || (operation?.repeat === 'free' && idempotentHint === true)
      ? { idempotentHint }
      : {}),
  };
}

interface StatedEvidence {
  readonly grade: string;
  readonly source?: string;
  readonly checked_on?: string;
}

function evidenceIn(value: unknown): readonly StatedEvidence[] {
  if (typeof value !== 'object' || value === null) return [];
  const own = 'grade' in value ? [value as StatedEvidence] : [];
  return [...own, ...Object.values(value).flatMap(evidenceIn)];
}

describe('these tests', () => {
  it('would see a hint that is contradicted in silence, and one that is corrected for nothing', () => {
    const row: BindingRow = { tool: 't', class: 'ordinary' };
    expect(contradicted(row, { readOnlyHint: true }, undefined)).toEqual({ readOnlyHint: true });
    expect(contradicted(row, { readOnlyHint: false, destructiveHint: true }, undefined)).toEqual({});
    const read: BindingRow = { tool: 't', class: 'read' };
    expect(contradicted(read, { readOnlyHint: false, destructiveHint: true }, undefined)).toEqual({
      readOnlyHint: false,
      destructiveHint: true,
    });
    expect(contradicted(read, {}, undefined)).toEqual({});
  });
});
