// One request of 2026-07-28, checked: what its headers say is what its body says, and it says in `_meta` what each
// request must (specification 2026-07-28, basic/index "Per-request protocol fields", streamable-http "Server
// Validation").

import type { IncomingMessage } from 'node:http';
import type { JsonValue } from '../../core/canonical.ts';
import { memberText, scanMembers } from '../../core/json-frame.ts';
import type { McpFrame } from '../../destination/mcp/frame.ts';
import {
  CODE_HEADER_MISMATCH,
  CODE_UNSUPPORTED_VERSION,
  decodeHeaderValue,
  META,
  MODERN_VERSION,
  mirroredText,
  NAME_REQUIRED,
  nameOfRequest,
  type ParamHeader,
} from '../../destination/mcp/mcp-headers.ts';
import type { ClientMessage } from '../client-frame.ts';
import type { StatelessRequest } from '../stateless-requests.ts';
import { type HttpRefusal, headerOf } from './refusals.ts';

const CODE_INVALID_PARAMS = -32602;
const VERSION = /^\d{4}-\d{2}-\d{2}$/;

/** Whether a POST is meant for the generation without sessions, by its header or its body. */
export function isModern(request: IncomingMessage, { head, text }: McpFrame): boolean {
  const header = headerOf(request, 'mcp-protocol-version')?.trim();
  // Versions are days, so that they are ordered as texts are.
  if (header !== undefined && (!VERSION.test(header) || header >= MODERN_VERSION)) {
    return headerOf(request, 'mcp-session-id') === undefined;
  }
  if (head?.params === undefined || head.method === 'initialize') return false;
  const params = text.slice(head.params.start, head.params.end);
  return memberText(params, '_meta', META.protocolVersion) !== undefined;
}

export function readModernRequest(
  request: IncomingMessage,
  frame: McpFrame,
  message: Extract<ClientMessage, { kind: 'request' }> & { readonly key: string },
):
  | { readonly ok: true; readonly request: StatelessRequest }
  | { readonly ok: false; readonly refusal: HttpRefusal } {
  const { id, key, method } = message;
  const { head, text } = frame;
  const params = head?.params === undefined ? '{}' : text.slice(head.params.start, head.params.end);
  const refusal = problemOf(request, id, method, params);
  if (refusal !== undefined) return { ok: false, refusal };
  return {
    ok: true,
    request: {
      id,
      key,
      method,
      params,
      capabilities: memberText(params, '_meta', META.clientCapabilities) ?? '{}',
      logLevel: memberText(params, '_meta', META.logLevel),
    },
  };
}

function problemOf(
  request: IncomingMessage,
  id: string,
  method: string,
  params: string,
): HttpRefusal | undefined {
  const refused = (code: number, message: string, data?: unknown): HttpRefusal => ({
    status: 400,
    id,
    code,
    message,
    ...(data === undefined ? {} : { data }),
  });
  const members = scanMembers(params);
  const meta = members === undefined ? undefined : memberText(params, '_meta');
  if (members?.duplicate === true || (meta !== undefined && scanMembers(meta)?.duplicate === true)) {
    return refused(CODE_INVALID_PARAMS, 'A member of its params or of their _meta is there twice.');
  }
  const version = stringIn(meta, META.protocolVersion);
  const capabilities = meta === undefined ? undefined : memberText(meta, META.clientCapabilities);
  if (version === undefined) {
    return refused(CODE_INVALID_PARAMS, `The request lacks ${META.protocolVersion} in its _meta.`);
  }
  if (capabilities === undefined || scanMembers(capabilities) === undefined) {
    return refused(CODE_INVALID_PARAMS, `The request lacks ${META.clientCapabilities} in its _meta.`);
  }
  const given = headerOf(request, 'mcp-protocol-version')?.trim();
  if (given !== version)
    return refused(CODE_HEADER_MISMATCH, mismatch('MCP-Protocol-Version', given, version));
  if (version !== MODERN_VERSION) {
    const data = { supported: [MODERN_VERSION], requested: version };
    return refused(CODE_UNSUPPORTED_VERSION, 'Unsupported protocol version', data);
  }
  const givenMethod = headerOf(request, 'mcp-method')?.trim();
  if (givenMethod !== method)
    return refused(CODE_HEADER_MISMATCH, mismatch('Mcp-Method', givenMethod, method));
  const name = nameOfRequest(method, params);
  const rawName = headerOf(request, 'mcp-name')?.trim();
  const givenName = rawName === undefined ? undefined : decodeHeaderValue(rawName);
  const isNameDue = name !== undefined && (NAME_REQUIRED.includes(method) || rawName !== undefined);
  if (isNameDue && givenName !== name)
    return refused(CODE_HEADER_MISMATCH, mismatch('Mcp-Name', rawName, name));
  return undefined;
}

/** What the headers of mirrored arguments say against the call. */
export function mirrorProblem(
  request: IncomingMessage,
  { id, params }: StatelessRequest,
  headers: readonly ParamHeader[],
): HttpRefusal | undefined {
  if (headers.length === 0) return undefined;
  let args: JsonValue = {};
  try {
    args = JSON.parse(memberText(params, 'arguments') ?? '{}') as JsonValue;
  } catch {
    return undefined;
  }
  for (const { header, path } of headers) {
    const expected = mirroredText(args, path);
    const raw = headerOf(request, header)?.trim();
    const given = raw === undefined ? undefined : decodeHeaderValue(raw);
    if (raw === undefined && expected === undefined) continue;
    const isSame = given !== undefined && expected !== undefined && isEqual(given, expected);
    if (!isSame) {
      return {
        status: 400,
        id,
        code: CODE_HEADER_MISMATCH,
        message: mismatch(header, raw, expected ?? 'nothing'),
      };
    }
  }
  return undefined;
}

/** Whole numbers are compared as numbers: 42.0 is 42. */
function isEqual(given: string, expected: string): boolean {
  if (given === expected) return true;
  const isNumber = /^-?\d+(?:\.0+)?$/;
  return isNumber.test(given) && isNumber.test(expected) && Number(given) === Number(expected);
}

const SHOWN_MAX = 100;

function mismatch(header: string, given: string | undefined, expected: string): string {
  const body = JSON.stringify(expected.slice(0, SHOWN_MAX));
  if (given === undefined) return `Header mismatch: ${header} is missing; the body says ${body}.`;
  return `Header mismatch: ${header} says ${JSON.stringify(given.slice(0, SHOWN_MAX))}, the body ${body}.`;
}

function stringIn(object: string | undefined, member: string): string | undefined {
  const text = object === undefined ? undefined : memberText(object, member);
  try {
    const value: unknown = JSON.parse(text ?? 'null');
    return typeof value === 'string' ? value : undefined;
  } catch {
    return undefined;
  }
}
