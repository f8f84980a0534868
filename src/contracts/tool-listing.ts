// What `tools/list` gave, from a file: the bare result, the whole answer, or a list of tools.

import type { JsonObject, JsonValue } from '../core/canonical.ts';
import type { ContractOperation } from '../core/contract.ts';
import { placed, readDocument } from './document.ts';
import type { Refused } from './load.ts';
import type { Path } from './problem.ts';

export interface ListedTool {
  readonly name: string;
  readonly description?: string;
  readonly inputSchema?: JsonObject;
  readonly annotations?: JsonObject;
}

export interface ToolListing {
  readonly ok: true;
  readonly tools: readonly ListedTool[];
}

/** Tools beyond this number are no list of one server. */
const TOOLS_MAX = 2_000;

export function readToolList(text: string, file: string): ToolListing | Refused {
  const read = readDocument(text, file);
  if (!read.ok) return read;
  const refuse = (path: Path, sentence: string): Refused => ({
    ok: false,
    problems: placed([{ path, sentence }], read.source),
  });
  const found = toolsIn(read.value);
  if (found === undefined) {
    return refuse(
      [],
      'No list of tools is here; what tools/list answers with is expected: {"tools": [{"name": …, "inputSchema": …}]}.',
    );
  }
  const { path, tools } = found;
  if (tools.length === 0) return refuse(path, 'The list of tools is empty.');
  if (tools.length > TOOLS_MAX) {
    return refuse(path, `The list has ${tools.length} tools; at most ${TOOLS_MAX} are read.`);
  }
  const listed: ListedTool[] = [];
  for (const [index, tool] of tools.entries()) {
    const at = [...path, index];
    if (!isObject(tool)) return refuse(at, `tools[${index}] is no map of keys and values.`);
    const { annotations, description, inputSchema, name } = tool;
    if (typeof name !== 'string' || name === '') return refuse(at, `tools[${index}] has no name.`);
    if (listed.some((other) => other.name === name)) {
      return refuse(at, `tools[${index}] is called ${JSON.stringify(name)}, as an earlier one is.`);
    }
    listed.push({
      name,
      ...(typeof description === 'string' ? { description } : {}),
      ...(isObject(inputSchema) ? { inputSchema } : {}),
      ...(isObject(annotations) ? { annotations } : {}),
    });
  }
  return { ok: true, tools: listed };
}

function toolsIn(
  value: JsonValue,
): { readonly path: Path; readonly tools: readonly JsonValue[] } | undefined {
  if (Array.isArray(value)) return { path: [], tools: value };
  if (!isObject(value)) return undefined;
  if (Array.isArray(value.tools)) return { path: ['tools'], tools: value.tools };
  const { result } = value;
  if (isObject(result) && Array.isArray(result.tools)) {
    return { path: ['result', 'tools'], tools: result.tools };
  }
  return undefined;
}

export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The names of a tool's arguments, where its schema lists them. */
export function argumentNames({ inputSchema }: ListedTool): readonly string[] {
  const properties = inputSchema?.properties;
  return isObject(properties) ? Object.keys(properties) : [];
}

/** The arguments of the tools that an operation is stated for. */
export function argumentsOfTools({ tools }: ToolListing) {
  return ({ match }: ContractOperation): readonly string[] | undefined => {
    const matching = tools.filter(({ name }) => match.includes(name));
    return matching.length === 0 ? undefined : [...new Set(matching.flatMap(argumentNames))];
  };
}
