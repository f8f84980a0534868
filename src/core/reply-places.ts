// Places in replies: reading a reply once, finding a value in it, and comparing it with what was sent.
//
// A reply comes from outside and may be anything, so that nothing here throws: what is not there is `missing`,
// and what cannot be read at all is `unreadable`, which is never the same as a difference.

import type { JsonObject, JsonValue } from './canonical.ts';
import type { Comparison, ReplyPlace } from './contract.ts';
import { fillTemplate, type TemplateValues, valueAt } from './template.ts';

/** A complete reply as the destination port reports it. */
export interface ReadableReply {
  readonly kind: 'result' | 'tool_error' | 'protocol_error';
  /** The raw JSON text of the result or of the error. */
  readonly body: string;
  readonly code?: number | undefined;
  /** True when the body was cut when it was recorded; then nothing in it is read. */
  readonly truncated?: boolean | undefined;
  /** Of an HTTP reply: the headers that are kept, names in small letters. */
  readonly headers?: { readonly [name: string]: string } | undefined;
  /** Why it need not be the destination's own answer to this request. */
  readonly doubt?: ReplyDoubt | undefined;
}

/**
 * `redirect`: it points elsewhere. `gateway`: what stands in between answers so as well. `page`: it is not of the form
 * of an answer (a login page). `empty`: nothing came where something was to come. `other`: it names another request.
 */
export type ReplyDoubt = 'redirect' | 'gateway' | 'page' | 'empty' | 'other';

/** `missing`: the reply was read, and the place is not there. `unreadable`: it was cut, or is not JSON. */
export type PlaceReading =
  | { readonly found: true; readonly value: JsonValue }
  | { readonly found: false; readonly why: 'missing' | 'unreadable' };

/** `unreadable`: nobody can tell, because the place, or a value to compare it with, is not there. */
export type ComparisonReading = 'agrees' | 'differs' | 'unreadable';

/** The value at a place of a reply. */
export function readPlace(reply: ReadableReply, place: ReplyPlace): PlaceReading {
  return placeIn(openReply(reply), place);
}

/** One comparison with a reply; without a `from` its path leads into the whole of it (`wholeOf`). */
export function compare(
  reply: ReadableReply,
  comparison: Comparison,
  values: TemplateValues,
): ComparisonReading {
  const opened = openReply(reply);
  const whole = wholeOf(opened);
  return whole.found ? compareIn(opened, whole.value, comparison, values) : 'unreadable';
}

/** A reply whose body was read once. */
export interface OpenedReply {
  readonly kind: ReadableReply['kind'];
  readonly code: number | undefined;
  readonly truncated: boolean;
  /** False where the body was cut or is not JSON: then there is no text and no content. */
  readonly isJson: boolean;
  /** The first text block of a tool's result, or the message of an error. */
  readonly text: string | undefined;
  readonly structured: JsonValue | undefined;
  readonly headers: { readonly [name: string]: string } | undefined;
  /** The text read as JSON, or the body itself where it is not the result of a tool. */
  readonly json: () => JsonValue | undefined;
}

export function openReply(reply: ReadableReply): OpenedReply {
  const { kind, code, headers, truncated = false } = reply;
  const body = truncated ? undefined : parse(reply.body);
  if (body === undefined) {
    return {
      kind,
      code,
      truncated,
      isJson: false,
      text: undefined,
      structured: undefined,
      headers,
      json: () => undefined,
    };
  }
  // Only a reply over HTTP has headers, and none of those is the result of a tool.
  const content = headers === undefined ? contentBlocks(body) : undefined;
  if (content === undefined) {
    // An error of the protocol, or the answer of a destination that is no MCP server: the body is the content.
    const text = typeof body === 'string' ? body : stringAt(body, '/message');
    return { kind, code, truncated, isJson: true, text, structured: body, headers, json: () => body };
  }
  const text = firstText(content);
  let json: JsonValue | undefined;
  return {
    // An adapter that overlooked the mark must not make a result of an error.
    kind: kind === 'result' && valueAt(body, '/isError') === true ? 'tool_error' : kind,
    code,
    truncated,
    isJson: true,
    text,
    structured: valueAt(body, '/structuredContent'),
    headers,
    json: () => {
      json ??= text === undefined ? undefined : parse(text);
      return json;
    },
  };
}

/** The blocks of an MCP tool's result, or `undefined` for a body of another shape. */
function contentBlocks(body: JsonValue): readonly JsonValue[] | undefined {
  const content = valueAt(body, '/content');
  if (content === undefined) return valueAt(body, '/structuredContent') === undefined ? undefined : [];
  if (!Array.isArray(content)) return undefined;
  return content.every((block) => stringAt(block, '/type') !== undefined) ? content : undefined;
}

function firstText(blocks: readonly JsonValue[]): string | undefined {
  for (const block of blocks) {
    if (valueAt(block, '/type') === 'text') return stringAt(block, '/text');
  }
  return undefined;
}

function stringAt(value: JsonValue, pointer: string): string | undefined {
  const found = valueAt(value, pointer);
  return typeof found === 'string' ? found : undefined;
}

function parse(text: string): JsonValue | undefined {
  try {
    return JSON.parse(text) as JsonValue;
  } catch {
    return undefined;
  }
}

export function placeIn(opened: OpenedReply, { from, path = '' }: ReplyPlace): PlaceReading {
  if (from === 'headers') {
    return opened.headers === undefined ? MISSING : reading(valueAt(opened.headers, path.toLowerCase()));
  }
  if (!opened.isJson) return UNREADABLE;
  const whole = from === 'text' ? opened.text : from === 'structured' ? opened.structured : opened.json();
  return whole === undefined ? MISSING : reading(valueAt(whole, path));
}

/** The whole of a reply: its structured content, else its text read as JSON, else its text. */
export function wholeOf(opened: OpenedReply): PlaceReading {
  return opened.isJson ? reading(opened.structured ?? opened.json() ?? opened.text) : UNREADABLE;
}

const MISSING: PlaceReading = { found: false, why: 'missing' };
const UNREADABLE: PlaceReading = { found: false, why: 'unreadable' };

export function reading(value: JsonValue | undefined): PlaceReading {
  return value === undefined ? MISSING : { found: true, value };
}

/** A comparison inside one record of a reply; with a `from` its place is in the reply as a whole. */
export function compareIn(
  opened: OpenedReply,
  record: JsonValue,
  comparison: Comparison,
  values: TemplateValues,
): ComparisonReading {
  const { from, path = '' } = comparison;
  const place = from === undefined ? reading(valueAt(record, path)) : placeIn(opened, { from, path });
  if (!place.found && place.why === 'unreadable') return 'unreadable';
  if (comparison.exists !== undefined && place.found !== comparison.exists) return 'differs';
  let result: ComparisonReading = 'agrees';
  for (const how of ['equals', 'contains', 'contains_all'] as const) {
    if (comparison[how] === undefined) continue;
    const wanted = fillTemplate(comparison[how], values);
    if (!place.found || !wanted.ok || isRounded(place.value)) {
      result = 'unreadable';
    } else if (!COMPARE[how](place.value, wanted.value)) {
      return 'differs';
    }
  }
  return result;
}

const COMPARE: {
  readonly [how in 'equals' | 'contains' | 'contains_all']: (value: JsonValue, wanted: JsonValue) => boolean;
} = { equals: isEqual, contains: doesContain, contains_all: doesContainAll };

/** An integer of which digits may have been lost when it was read; two of them may only seem equal. */
export function isRounded(value: JsonValue): boolean {
  return typeof value === 'number' && Math.abs(value) > Number.MAX_SAFE_INTEGER;
}

function doesContain(value: JsonValue, wanted: JsonValue): boolean {
  if (Array.isArray(value)) return value.some((item) => isEqual(item, wanted));
  return typeof value === 'string' && typeof wanted === 'string' && value.includes(wanted);
}

/** Of nothing that is wanted nothing can be missing: an empty list proves no more than that there is a list. */
function doesContainAll(value: JsonValue, wanted: JsonValue): boolean {
  if (!Array.isArray(value) || !Array.isArray(wanted)) return false;
  return wanted.every((item) => doesContain(value, item));
}

/** Recurses no deeper than `wanted`, which is a template of a contract, filled with checked arguments. */
function isEqual(value: JsonValue, wanted: JsonValue): boolean {
  if (typeof wanted !== 'object' || wanted === null) return value === wanted;
  if (typeof value !== 'object' || value === null || Array.isArray(value) !== Array.isArray(wanted)) {
    return false;
  }
  const keys = Object.keys(wanted);
  if (Object.keys(value).length !== keys.length) return false;
  return keys.every((key) => {
    if (!Object.hasOwn(value, key)) return false;
    return isEqual((value as JsonObject)[key] as JsonValue, (wanted as JsonObject)[key] as JsonValue);
  });
}
