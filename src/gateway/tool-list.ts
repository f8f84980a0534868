// The tools that the server lists: what each takes and gives, by what digest a confirmed class is kept, and the
// list as the client is shown it (our references left out, one helper tool added).

import { toolDefinition, toolDigest } from '../contracts/compile.ts';
import type { JsonObject, JsonValue } from '../core/canonical.ts';
import { scanMembers } from '../core/json-frame.ts';
import { HELPER_TOOL_NAME, helperToolText } from './status-tool.ts';
import { asTaskable } from './task-shapes.ts';

export interface ListedTool {
  readonly name: string;
  readonly digest: string;
  /** What the digest is over, as canonical JSON; '' where it has no exact form. */
  readonly definition: string;
  readonly readOnlyHint: boolean;
  readonly inputSchema: JsonObject | undefined;
  readonly outputSchema: JsonObject | undefined;
  /** Whether its server runs calls of it as tasks alone (2025-11-25). */
  readonly needsTask: boolean;
}

/** Asks the server one page of its list: the raw `result`, or why there is none. */
export type ListPage = (
  cursor: string | undefined,
) => Promise<{ readonly result: string } | { readonly problem: string }>;

/** Why a tool that is listed cannot be called now; `undefined` where it can. */
export type CallProblem = (tool: string) => string | undefined;

const PAGES_MAX = 64;

export class ToolList {
  readonly #listPage: ListPage;
  /** Such a tool is shown to no client. */
  readonly callProblem: CallProblem;
  #tools: ReadonlyMap<string, ListedTool> | undefined;
  /** Counts what was heard of changes, and up to which of them the list is known. */
  #changes = 1;
  #known = 0;
  #refreshing: Promise<string | undefined> | undefined;

  constructor(listPage: ListPage, callProblem: CallProblem = () => undefined) {
    this.#listPage = listPage;
    this.callProblem = callProblem;
  }

  /** True once the server has listed its tools; the last list stays known while the server is away. */
  get isKnown(): boolean {
    return this.#tools !== undefined;
  }

  /** True while nothing was heard that could have changed the list since it was read. */
  get isFresh(): boolean {
    return this.#known === this.#changes;
  }

  get(tool: string): ListedTool | undefined {
    return this.#tools?.get(tool);
  }

  /** Every tool of the list as it was read last, in the server's order; another object once it was read anew. */
  get all(): ReadonlyMap<string, ListedTool> | undefined {
    return this.#tools;
  }

  /** The server says that its list has changed, or it was started anew. */
  markStale(): void {
    this.#changes += 1;
  }

  /** Lists when needed. Gives the reason when there is no list at all; an older list is better than none. */
  async ensure(): Promise<string | undefined> {
    if (this.isFresh) return undefined;
    this.#refreshing ??= this.#refresh().finally(() => {
      this.#refreshing = undefined;
    });
    const problem = await this.#refreshing;
    return this.#tools === undefined ? problem : undefined;
  }

  async #refresh(): Promise<string | undefined> {
    const upTo = this.#changes;
    const tools = new Map<string, ListedTool>();
    let cursor: string | undefined;
    for (let page = 0; page < PAGES_MAX; page += 1) {
      const listed = await this.#listPage(cursor);
      if ('problem' in listed) return listed.problem;
      const read = readPage(listed.result);
      for (const tool of read.tools) tools.set(tool.name, tool);
      cursor = read.nextCursor;
      if (cursor === undefined) break;
    }
    this.#tools = tools;
    // A change that was told while the pages came may not be in them.
    this.#known = upTo;
    return undefined;
  }

  /** The helper tool's name, which gives way to a tool of the server that has it already. */
  get helperName(): string {
    let name = HELPER_TOOL_NAME;
    for (let suffix = 2; this.#tools?.has(name) === true; suffix += 1) name = `${HELPER_TOOL_NAME}_${suffix}`;
    return name;
  }

  /**
   * A page of the list as the client is shown it. Every byte of the server's that need not change stays; what cannot
   * be called is left out; the helper tool comes last, on the last page.
   * @param isTaskable whether the client is told that calls of a tool may be run as tasks
   */
  shown(
    result: string,
    stampOf: (tool: string) => string | undefined,
    isTaskable: (tool: string) => boolean = () => false,
  ): string {
    const range = scanMembers(result)?.values.get('tools');
    if (range === undefined) return result;
    const parsed = parsedObject(result);
    const tools = Array.isArray(parsed['tools']) ? (parsed['tools'] as readonly JsonValue[]) : undefined;
    if (tools === undefined) return result;
    const isLast = nextCursorOf(parsed) === undefined;
    const texts = elementTexts(result.slice(range.start, range.end));
    const shown = tools.flatMap((tool, index) => {
      const name = nameOf(tool) ?? '';
      if (this.callProblem(name) !== undefined) return [];
      const stamp = stampOf(name);
      const text = stamp === undefined ? (texts[index] ?? '') : JSON.stringify(withoutArgument(tool, stamp));
      return [isTaskable(name) ? asTaskable(text) : text];
    });
    if (isLast) shown.push(helperToolText(this.helperName));
    return `${result.slice(0, range.start)}[${shown.join(',')}]${result.slice(range.end)}`;
  }
}

/** The texts of an array's elements, as they were written; `array` is JSON. */
function elementTexts(array: string): readonly string[] {
  const texts: string[] = [];
  let depth = 0;
  let from = 1;
  for (const { 0: token, index } of array.matchAll(/"(?:[^"\\]|\\.)*"|[[\]{},]/g)) {
    if (token === '[' || token === '{') depth += 1;
    else if (token === ']' || token === '}') depth -= 1;
    const isEnd = (token === ',' && depth === 1) || depth === 0;
    if (!isEnd) continue;
    texts.push(array.slice(from, index).trim());
    from = index + 1;
  }
  return texts;
}

function readPage(result: string): {
  readonly tools: readonly ListedTool[];
  readonly nextCursor: string | undefined;
} {
  const parsed = parsedObject(result);
  const tools = Array.isArray(parsed['tools']) ? (parsed['tools'] as readonly JsonValue[]) : [];
  return {
    tools: tools.flatMap((tool) => {
      const name = nameOf(tool);
      return name === undefined ? [] : [listed(name, tool as JsonObject)];
    }),
    nextCursor: nextCursorOf(parsed),
  };
}

/** Some servers end with an empty cursor, which clients take for the end as well. */
function nextCursorOf(page: JsonObject): string | undefined {
  const cursor = page['nextCursor'];
  return typeof cursor === 'string' && cursor !== '' ? cursor : undefined;
}

function listed(name: string, tool: JsonObject): ListedTool {
  const annotations = isObject(tool['annotations']) ? tool['annotations'] : undefined;
  const described = { name, inputSchema: tool['inputSchema'], annotations: tool['annotations'] };
  return {
    name,
    digest: toolDigest(described),
    definition: toolDefinition(described),
    readOnlyHint: annotations?.['readOnlyHint'] === true,
    inputSchema: isObject(tool['inputSchema']) ? tool['inputSchema'] : undefined,
    outputSchema: isObject(tool['outputSchema']) ? tool['outputSchema'] : undefined,
    needsTask: isObject(tool['execution']) && tool['execution']['taskSupport'] === 'required',
  };
}

function parsedObject(text: string): JsonObject {
  try {
    const value = JSON.parse(text) as JsonValue;
    return isObject(value) ? value : {};
  } catch {
    return {};
  }
}

function isObject(value: JsonValue | undefined): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function nameOf(tool: JsonValue): string | undefined {
  return isObject(tool) && typeof tool['name'] === 'string' ? tool['name'] : undefined;
}

/** A tool without the argument that is ours to fill (I13: no model sees it). */
export function withoutArgument(tool: JsonValue, argument: string | undefined): JsonValue {
  if (argument === undefined || !isObject(tool)) return tool;
  const schema = tool['inputSchema'];
  return { ...tool, inputSchema: schemaWithout(isObject(schema) ? schema : {}, argument) };
}

export function schemaWithout(schema: JsonObject, argument: string): JsonObject {
  const properties = isObject(schema['properties']) ? schema['properties'] : undefined;
  const required = Array.isArray(schema['required'])
    ? (schema['required'] as readonly JsonValue[])
    : undefined;
  return {
    ...schema,
    ...(properties === undefined
      ? {}
      : { properties: Object.fromEntries(Object.entries(properties).filter(([name]) => name !== argument)) }),
    ...(required === undefined ? {} : { required: required.filter((name) => name !== argument) }),
  };
}
