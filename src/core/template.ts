// Templates of contracts: a value in which `{path}` stands for an argument of the call, `{$stamp}` for our own
// reference, `{$key}` for the value of the guard that we fill, `{$record}` for the record id that the destination gave,
// and `{$record_number}` for the same as a number.

import type { JsonObject, JsonValue } from './canonical.ts';

export interface TemplateValues {
  readonly arguments: JsonValue;
  /** The reference of ours that was written at send time. */
  readonly stamp?: string | undefined;
  /** The id that the destination gave in an earlier reply. */
  readonly record?: string | undefined;
  /** What the destination knows this write by, under its guard. */
  readonly key?: string | undefined;
}

export type Filled =
  | { readonly ok: true; readonly value: JsonValue }
  /** `missing`: the placeholder that could not be filled; `problem` says so in a sentence's second half. */
  | { readonly ok: false; readonly missing: string; readonly problem: string };

// `{{` and `}}` stand for the braces themselves, so that JSON inside a text can be written down.
const PIECES = /\{\{|\}\}|\{([^{}]+)\}/g;
const WHOLE = /^\{([^{}]+)\}$/;

/**
 * A text that is one placeholder becomes the argument's own value, whatever its type; inside a longer text only
 * texts, numbers and booleans have a place. What cannot be filled is refused, so that no question is asked about
 * another record than the one that is meant.
 */
export function fillTemplate(template: unknown, values: TemplateValues): Filled {
  if (typeof template === 'string') return fillText(template, values);
  if (Array.isArray(template)) {
    const filled: JsonValue[] = [];
    for (const item of template) {
      const result = fillTemplate(item, values);
      if (!result.ok) return result;
      filled.push(result.value);
    }
    return { ok: true, value: filled };
  }
  if (typeof template === 'object' && template !== null) {
    const members: [string, JsonValue][] = [];
    for (const [key, member] of Object.entries(template)) {
      const result = fillTemplate(member, values);
      if (!result.ok) return result;
      members.push([key, result.value]);
    }
    // `fromEntries` defines its members, so that a key such as `__proto__` stays a key.
    return { ok: true, value: Object.fromEntries(members) };
  }
  if (template === null || typeof template === 'number' || typeof template === 'boolean') {
    return { ok: true, value: template };
  }
  return refuse(typeof template, 'is no part of a template');
}

function refuse(missing: string, why: string): Filled {
  return { ok: false, missing, problem: `{${missing}} ${why}` };
}

function fillText(template: string, values: TemplateValues): Filled {
  if (!template.includes('{') && !template.includes('}')) return { ok: true, value: template };
  const [, whole] = WHOLE.exec(template) ?? [];
  if (whole !== undefined) {
    const value = lookUpName(whole, values);
    return value === undefined ? refuse(whole, 'has no value here') : { ok: true, value };
  }
  let missing: string | undefined;
  const text = template.replace(PIECES, (piece, name: string | undefined) => {
    if (name === undefined) return piece.charAt(0);
    const value = lookUpName(name, values);
    if (value === undefined || typeof value === 'object') {
      missing ??= name;
      return '';
    }
    return String(value);
  });
  return missing === undefined
    ? { ok: true, value: text }
    : refuse(missing, 'has no value here that fits into a text');
}

function lookUpName(name: string, values: TemplateValues): JsonValue | undefined {
  if (name === '$stamp') return values.stamp;
  if (name === '$key') return values.key;
  if (name === '$record') return values.record;
  if (name === '$record_number') return asNumber(values.record);
  if (name.startsWith('$')) return undefined;
  return argumentAt(values.arguments, name);
}

const WHOLE_NUMBER = /^(0|[1-9]\d{0,14})$/;

/** Ids are kept as texts; a tool that takes a number takes no text. What is none has no value. */
function asNumber(record: string | undefined): number | undefined {
  return record !== undefined && WHOLE_NUMBER.test(record) ? Number(record) : undefined;
}

/** The names between the braces of a template, in order, each once. */
export function templateNames(template: unknown): readonly string[] {
  const names = new Set<string>();
  collectNames(template, names);
  return [...names];
}

function collectNames(template: unknown, names: Set<string>): void {
  if (typeof template === 'string') {
    for (const [, name] of template.matchAll(PIECES)) if (name !== undefined) names.add(name);
  } else if (Array.isArray(template)) {
    for (const item of template) collectNames(item, names);
  } else if (typeof template === 'object' && template !== null) {
    for (const member of Object.values(template)) collectNames(member, names);
  }
}

/** An argument by its name, or by a JSON pointer into the arguments without its first slash. */
export function argumentAt(args: JsonValue, name: string): JsonValue | undefined {
  return valueAt(args, `/${name}`);
}

/** The value under a JSON pointer (RFC 6901); only own members and elements are found. */
export function valueAt(value: JsonValue, pointer: string): JsonValue | undefined {
  if (pointer === '') return value;
  if (!pointer.startsWith('/')) return undefined;
  let at: JsonValue | undefined = value;
  for (const token of pointer.slice(1).split('/')) {
    at = memberOf(at, token.replaceAll('~1', '/').replaceAll('~0', '~'));
    if (at === undefined) return undefined;
  }
  return at;
}

const INDEX = /^(0|[1-9]\d{0,8})$/;

function memberOf(container: JsonValue, token: string): JsonValue | undefined {
  if (typeof container !== 'object' || container === null) return undefined;
  if (Array.isArray(container)) return INDEX.test(token) ? container[Number(token)] : undefined;
  return Object.hasOwn(container, token) ? (container as JsonObject)[token] : undefined;
}
