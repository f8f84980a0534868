// What is different between two definitions of one tool: what a person looks at before saying what it is now.

import type { JsonObject, JsonValue } from './canonical.ts';

/** One place where they differ; `undefined` where it is not there. */
export interface ToolDifference {
  /** Such as `inputSchema/properties/bcc`. */
  readonly at: string;
  readonly before: JsonValue | undefined;
  readonly after: JsonValue | undefined;
}

const DIFFERENCES_MAX = 100;

/** @param before and `after`: definitions as canonical JSON. In the order of their places; at most a hundred. */
export function toolDifference(before: string, after: string): readonly ToolDifference[] {
  const found: ToolDifference[] = [];
  compare('', JSON.parse(before) as JsonValue, JSON.parse(after) as JsonValue, found);
  return found;
}

function compare(
  at: string,
  before: JsonValue | undefined,
  after: JsonValue | undefined,
  found: ToolDifference[],
): void {
  if (found.length >= DIFFERENCES_MAX || JSON.stringify(before) === JSON.stringify(after)) return;
  if (!isObject(before) || !isObject(after)) {
    found.push({ at, before, after });
    return;
  }
  for (const name of [...new Set([...Object.keys(before), ...Object.keys(after)])].sort()) {
    const place = name.replaceAll('~', '~0').replaceAll('/', '~1');
    compare(at === '' ? place : `${at}/${place}`, own(before, name), own(after, name), found);
  }
}

function own(value: JsonObject, name: string): JsonValue | undefined {
  return Object.hasOwn(value, name) ? value[name] : undefined;
}

function isObject(value: JsonValue | undefined): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
