// The headers and the `_meta` members by which protocol 2026-07-28 says in each request what a session said once
// (specification 2026-07-28: basic/index "Per-request protocol fields", basic/transports/streamable-http "Request
// Metadata").

import type { JsonObject, JsonValue } from '../../core/canonical.ts';
import { memberText } from '../../core/json-frame.ts';

export const MODERN_VERSION = '2026-07-28';
/** The versions that a session can have, the oldest first. */
export const LEGACY_VERSIONS: readonly string[] = ['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25'];

export const META = {
  protocolVersion: 'io.modelcontextprotocol/protocolVersion',
  clientInfo: 'io.modelcontextprotocol/clientInfo',
  clientCapabilities: 'io.modelcontextprotocol/clientCapabilities',
  logLevel: 'io.modelcontextprotocol/logLevel',
  serverInfo: 'io.modelcontextprotocol/serverInfo',
  subscriptionId: 'io.modelcontextprotocol/subscriptionId',
} as const;

/** The extension of 2026-07-28 by which a call may be answered with a task. */
export const TASKS_EXTENSION = 'io.modelcontextprotocol/tasks';

/** Errors that only a server of this generation gives: by them it is known for one. */
export const CODE_HEADER_MISMATCH = -32020;
export const CODE_MISSING_CAPABILITY = -32021;
export const CODE_UNSUPPORTED_VERSION = -32022;

/** What `Mcp-Name` mirrors, by method. */
const NAMED_BY: ReadonlyMap<string, string> = new Map([
  ['tools/call', 'name'],
  ['prompts/get', 'name'],
  ['resources/read', 'uri'],
  ['tasks/get', 'taskId'],
  ['tasks/update', 'taskId'],
  ['tasks/cancel', 'taskId'],
]);

/** The methods whose `Mcp-Name` the specification itself requires; the extension of tasks asks for the others. */
export const NAME_REQUIRED: readonly string[] = ['tools/call', 'prompts/get', 'resources/read'];

/** The value that `Mcp-Name` must have for a request; `undefined` where it has none. */
export function nameOfRequest(method: string, params: string): string | undefined {
  const member = NAMED_BY.get(method);
  const text = member === undefined ? undefined : memberText(params, member);
  if (text === undefined) return undefined;
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'string' ? value : undefined;
  } catch {
    return undefined;
  }
}

const SENTINEL = /^=\?base64\?(.*)\?=$/s;
const PLAIN = /^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/;

/** A value as a header can carry it. */
export function encodeHeaderValue(value: string): string {
  if (PLAIN.test(value) && !SENTINEL.test(value)) return value;
  return `=?base64?${Buffer.from(value, 'utf8').toString('base64')}?=`;
}

const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;

/** `undefined` for what no client may send. */
export function decodeHeaderValue(header: string): string | undefined {
  const encoded = SENTINEL.exec(header)?.[1];
  if (encoded === undefined) return /^[\x20-\x7e\t]*$/.test(header) ? header : undefined;
  if (!BASE64.test(encoded)) return undefined;
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(Buffer.from(encoded, 'base64'));
  } catch {
    return undefined;
  }
}

/** One argument of a tool that its schema mirrors into a header. */
export interface ParamHeader {
  /** In lower case, as Node gives names. */
  readonly header: string;
  readonly path: readonly string[];
}

const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
const MIRRORED = 'x-mcp-header';
const DEPTH_MAX = 32;

/** The arguments that are mirrored; `undefined` where the schema says so of what cannot be. */
export function paramHeadersOf(inputSchema: JsonObject | undefined): readonly ParamHeader[] | undefined {
  const found: ParamHeader[] = [];
  const seen = new Set<string>();
  const visit = (schema: JsonValue | undefined, path: readonly string[], isReachable: boolean): boolean => {
    if (typeof schema !== 'object' || schema === null) return true;
    if (path.length > DEPTH_MAX) return false;
    if (Array.isArray(schema)) return schema.every((one: JsonValue) => visit(one, path, false));
    const object = schema as JsonObject;
    const name = object[MIRRORED];
    if (name !== undefined) {
      const isFit = isReachable && path.length > 0 && isMirrorable(object['type']);
      if (!isFit || typeof name !== 'string' || !TOKEN.test(name) || seen.has(name.toLowerCase()))
        return false;
      seen.add(name.toLowerCase());
      found.push({ header: `mcp-param-${name.toLowerCase()}`, path });
    }
    return Object.entries(object).every(([key, value]) => {
      if (key !== 'properties') return visit(value, path, false);
      if (typeof value !== 'object' || value === null || Array.isArray(value)) return true;
      return Object.entries(value).every(([property, one]) => visit(one, [...path, property], isReachable));
    });
  };
  return visit(inputSchema, [], true) ? found : undefined;
}

function isMirrorable(type: JsonValue | undefined): boolean {
  return type === 'string' || type === 'integer' || type === 'boolean';
}

/** The text that an argument has in its header; `undefined` where it is not given. */
export function mirroredText(args: JsonValue, path: readonly string[]): string | undefined {
  let at: JsonValue | undefined = args;
  for (const step of path) {
    if (typeof at !== 'object' || at === null || Array.isArray(at) || !Object.hasOwn(at, step))
      return undefined;
    at = (at as JsonObject)[step];
  }
  if (typeof at === 'string') return at;
  return typeof at === 'number' || typeof at === 'boolean' ? String(at) : undefined;
}
