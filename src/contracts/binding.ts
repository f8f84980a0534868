// A binding: which operation of a contract each tool of an MCP server is, and how its calls are treated.

import { canonicalJson, type JsonValue } from '../core/canonical.ts';
import type { FactEvidence, ToolClass } from '../core/contract.ts';
import { argumentAt } from '../core/template.ts';
import type { Finding } from './problem.ts';
import { fitsVersion, isBrokenRange } from './server-versions.ts';

export type DeclaredClass = Exclude<ToolClass, 'unclassified'>;

/** One row: of the rows for a tool, the first whose conditions all hold is the one that counts. */
export interface BindingRow {
  readonly tool: string;
  /** Arguments, by name or pointer, with the values that they must have. */
  readonly when?: { readonly [argument: string]: JsonValue };
  /** Arguments, by name or pointer, of which none is given; what is given as null is given. */
  readonly unless?: readonly string[];
  /** Left out for reads. */
  readonly operation?: string;
  readonly class: DeclaredClass;
  /** Why, in a sentence; each irreversible tool of a shipped binding has one. */
  readonly reason?: string;
  /** The server's own hints that this row contradicts, with the values that they have there. */
  readonly corrects?: { readonly [hint in ToolHint]?: boolean };
  readonly evidence?: FactEvidence;
}

export type ToolHint = 'readOnlyHint' | 'destructiveHint' | 'idempotentHint';

/** A list of tools that was seen: what one version of a package lists, with the digest of each (`toolDigest`). */
export interface MeasuredTools {
  readonly package: string;
  readonly version: string;
  readonly on: string;
  readonly note?: string;
  readonly tools: { readonly [tool: string]: string };
}

export interface Binding {
  readonly binding: 1;
  readonly id: string;
  readonly revision?: number;
  readonly contract: string;
  readonly server: { readonly name: readonly string[]; readonly versions: string | readonly string[] };
  /** Rows of a tool that is named here count only while its digest is one of these. */
  readonly measured?: readonly MeasuredTools[];
  readonly checks_arguments?: { readonly value: boolean; readonly evidence: FactEvidence };
  /** How it is known what the tools do. */
  readonly evidence?: FactEvidence;
  readonly tools: readonly BindingRow[];
}

/** Whether a binding is for the server that answered, by what it calls itself in the handshake. */
export function isForServer(
  { server }: Binding,
  serverInfo: { readonly name: string; readonly version: string },
): boolean {
  return server.name.includes(serverInfo.name) && fitsVersion(server.versions, serverInfo.version);
}

/** Tools that are no longer, or not yet, those that the binding was written for, by the digests that it states. */
export function changedTools(
  { measured = [] }: Binding,
  listed: Iterable<{ readonly name: string; readonly digest: string }>,
): readonly string[] {
  const changed: string[] = [];
  for (const { name, digest } of listed) {
    const known = measured.flatMap(({ tools }) => (Object.hasOwn(tools, name) ? [tools[name]] : []));
    if (known.length > 0 && !known.includes(digest)) changed.push(name);
  }
  return changed;
}

/** The index of the row that counts for a call; -1 where rows name the tool and none fits; else `undefined`. */
export function rowFor(binding: Binding, tool: string, args: JsonValue): number | undefined {
  let isNamed = false;
  for (const [index, row] of binding.tools.entries()) {
    if (row.tool !== tool) continue;
    isNamed = true;
    if (doConditionsHold(row, args)) return index;
  }
  return isNamed ? -1 : undefined;
}

/** Whether which row counts may depend on the arguments. */
export function hasConditions(binding: Binding, tool: string): boolean {
  return binding.tools.some(
    (row) => row.tool === tool && (row.when !== undefined || row.unless !== undefined),
  );
}

function doConditionsHold(row: BindingRow, args: JsonValue): boolean {
  for (const [argument, wanted] of Object.entries(row.when ?? {})) {
    const value = argumentAt(args, argument);
    if (value === undefined || !isSame(value, wanted)) return false;
  }
  return (row.unless ?? []).every((argument) => argumentAt(args, argument) === undefined);
}

function isSame(a: JsonValue, b: JsonValue): boolean {
  if (typeof a !== 'object' || typeof b !== 'object') return a === b;
  return canonicalJson(a) === canonicalJson(b);
}

/** What the schema cannot say about one binding. */
export function checkBinding(binding: Binding): readonly Finding[] {
  return [...checkVersions(binding), ...binding.tools.flatMap((row, index) => checkRow(binding, row, index))];
}

function checkVersions({ server: { versions } }: Binding): readonly Finding[] {
  const isList = typeof versions !== 'string';
  return [versions].flat().flatMap((entry, index) => {
    if (!isBrokenRange(entry)) return [];
    const path = ['server', 'versions', ...(isList ? [index] : [])];
    const sentence = `${JSON.stringify(entry)} is no range of versions; allowed is '*', or one such as '>=1.2 <2'.`;
    return [{ path, sentence }];
  });
}

function checkRow(binding: Binding, row: BindingRow, index: number): readonly Finding[] {
  const findings: Finding[] = [];
  const path = ['tools', index];
  if (row.class === 'read' && row.operation !== undefined) {
    findings.push({
      path: [...path, 'operation'],
      sentence: `${row.tool} is declared a read, and is mapped to the write ${row.operation}; it can be only one of them.`,
    });
  }
  if ((row.class === 'ordinary' || row.class === 'irreversible') && row.operation === undefined) {
    findings.push({
      path,
      sentence: `${row.tool} is declared ${row.class}, and no operation of the contract is named for it; only reads and interactive tools go without.`,
    });
  }
  const earlier = binding.tools.findIndex((other, at) => at < index && hidesRow(other, row));
  if (earlier >= 0) {
    findings.push({
      path,
      sentence: `This row for ${row.tool} can never count, because tools[${earlier}] fits whenever it does and stands before it.`,
    });
  }
  return findings;
}

function hidesRow(earlier: BindingRow, later: BindingRow): boolean {
  if (earlier.tool !== later.tool) return false;
  const { when = {}, unless = [] } = later;
  return (
    (earlier.unless ?? []).every((argument) => unless.includes(argument)) &&
    Object.entries(earlier.when ?? {}).every(
      ([argument, value]) => Object.hasOwn(when, argument) && isSame(when[argument] as JsonValue, value),
    )
  );
}
