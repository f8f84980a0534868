// A request over HTTP, from a template of a contract and the arguments of a call: each value in the form of its place.
//
// A template is parted first (`partedTemplate`) and filled then, so that a value can never become more of an address
// than its one segment. What a write is frozen as is made here once, before it is reviewed, and sent as it is.

import { canonicalJson, type JsonObject, type JsonValue } from './canonical.ts';
import type { ContractOperation, Guard, HttpMethod, HttpTemplate } from './contract.ts';
import { keyGuard, requestKey } from './request-key.ts';
import { argumentAt, fillTemplate, type TemplateValues, templateNames } from './template.ts';

/** A request as it leaves, the base address and what the configuration adds apart. */
export interface HttpRequest {
  readonly method: HttpMethod;
  /** Path and query below the base address, encoded; or an address that must be of the same origin. */
  readonly target: string;
  /** Names in small letters. */
  readonly headers: { readonly [name: string]: string };
  /** The exact text of the body. */
  readonly body?: string;
  /** The header that carries the instant of the first sending, the same on each repeat; written when it is sent. */
  readonly firstSent?: string;
}

export type MadeRequest =
  | { readonly ok: true; readonly request: HttpRequest }
  /** A sentence: why no request can be made of it. */
  | { readonly ok: false; readonly problem: string };

/** What is stored, reviewed and sent of a write over HTTP. */
export interface FrozenWrite {
  readonly arguments: JsonObject;
  readonly request: HttpRequest;
}

/** The write of an operation: with its key in the place of its guard, and nothing of the model's in it. */
export function writeRequest(operation: ContractOperation, args: JsonObject, id: string): MadeRequest {
  const { http } = operation;
  if (http === undefined) return refuse(`${operation.id} has no request over HTTP`);
  const guard = keyGuard(operation);
  const key = guard === undefined ? undefined : requestKey(id, guard.carrier);
  const [firstSent, headers] = partedHeaders(http);
  const template = withGuard(partedTemplate({ ...http, ...(headers && { headers }) }), guard);
  const made = requestFrom(template, { arguments: args, stamp: id, key }, operation.guards);
  if (!made.ok || firstSent === undefined) return made;
  return { ok: true, request: { ...made.request, firstSent: firstSent.toLowerCase() } };
}

/** As repeatable requests have it: which header says when the request was first sent. */
export const FIRST_SENT = '{$first_sent}';

/** The header of the first sending, and all others: that instant is known only when the first byte leaves. */
function partedHeaders({ headers }: HttpTemplate): readonly [string | undefined, HttpTemplate['headers']] {
  const entries = Object.entries(headers ?? {});
  const named = entries.find(([, value]) => value === FIRST_SENT)?.[0];
  if (named === undefined) return [undefined, headers];
  return [named, Object.fromEntries(entries.filter(([name]) => name !== named))];
}

/** The values that templates of one operation are filled from, its arguments and record apart. */
export function keyOf(operation: ContractOperation | undefined, id: string): string | undefined {
  const guard = operation === undefined ? undefined : keyGuard(operation);
  return guard === undefined ? undefined : requestKey(id, guard.carrier);
}

// ── Templates ──────────────────────────────────────────────────────────────────────────────────────────────

/** A template whose path is parted at its slashes, those within braces apart; plain data that `fillTemplate` fills. */
export function partedTemplate(template: HttpTemplate): JsonObject {
  const { body, content, headers, method = 'GET', path, query } = template;
  const isWhole = WHOLE.test(path);
  return {
    method,
    path: isWhole ? path : partsOf(path),
    // Apart from the parts, so that a value of nothing is never taken for the slash at the end.
    ...(!isWhole && path.endsWith('/') ? { ends_in_slash: true } : {}),
    ...(query === undefined ? {} : { query: query as JsonObject }),
    ...(headers === undefined ? {} : { headers }),
    ...(body === undefined ? {} : { body: body as JsonValue }),
    ...(content === undefined ? {} : { content }),
  };
}

const WHOLE = /^\{[^{}]+\}$/;

function partsOf(path: string): readonly string[] {
  return (path.match(/(?:\{[^{}]*\}|[^/{}])+|\//g) ?? []).filter((part) => part !== '/');
}

/** A template without the members whose `{name?}` has no argument, at any depth. */
export function presentMembers(template: JsonObject, args: JsonValue): JsonValue {
  return withoutMissing(template, args) ?? {};
}

function withoutMissing(template: JsonValue, args: JsonValue): JsonValue | undefined {
  if (typeof template === 'string') {
    const [, name] = OPTIONAL.exec(template) ?? [];
    if (name === undefined) return template;
    return argumentAt(args, name) === undefined ? undefined : `{${name}}`;
  }
  if (Array.isArray(template)) {
    return template.flatMap((item) => {
      const kept = withoutMissing(item, args);
      return kept === undefined ? [] : [kept];
    });
  }
  if (typeof template !== 'object' || template === null) return template;
  const kept = Object.entries(template).flatMap(([name, member]): [string, JsonValue][] => {
    const value = withoutMissing(member, args);
    return value === undefined ? [] : [[name, value]];
  });
  return Object.fromEntries(kept);
}

const OPTIONAL = /^\{([^{}$][^{}]*)\?\}$/;

/** Whether each request that is made of this template bears the guard's value, so that a repeat bears it too. */
export function bearsKey({ http }: ContractOperation, guard: Guard): boolean {
  if (http === undefined) return false;
  const template = withGuard(partedTemplate(http), guard);
  if (JSON.stringify(template).includes('{$key}')) return true;
  // The caller's own name for the record is in the frozen bytes; one that may be left out is none.
  const { in: where, name = '' } = guard.carrier;
  if (guard.kind !== 'client_identity') return false;
  if (where === 'path') return isNamed(template['path'] ?? [], guard.carrier.name);
  const part = { header: 'headers', query: 'query', body: 'body' }[where as string] ?? '';
  const value = memberAt(template[part] ?? {}, where === 'body' ? name.split('.') : [name]);
  // What is the same for every write names none of them.
  const text = JSON.stringify(value ?? null);
  return text.includes('{') && !text.includes('?}');
}

/** Whether the argument that gives the name stands in the path; any, where it is not said which one does. */
function isNamed(path: JsonValue, name: string | undefined): boolean {
  const names = templateNames(path);
  return name === undefined
    ? names.length > 0
    : names.some((each) => name === each || name.includes(`{${each}}`));
}

/** What stands at a place of a template, as documents write it: names with dots between them, in any case. */
function memberAt(template: JsonValue, names: readonly string[]): JsonValue | undefined {
  let value: JsonValue | undefined = template;
  for (const name of names) {
    if (value === undefined || !isMap(value)) return undefined;
    value = Object.entries(value).find(([member]) => member.toLowerCase() === name.toLowerCase())?.[1];
  }
  return value;
}

/** The guard's place, filled with its key where the template has not put it anywhere. */
function withGuard(template: JsonObject, guard: Guard | undefined): JsonObject {
  if (guard === undefined || JSON.stringify(template).includes('{$key}')) return template;
  const { in: where, name } = guard.carrier;
  if (name === undefined) return template;
  if (where === 'header') return withMember(template, 'headers', name.toLowerCase());
  if (where === 'query') return withMember(template, 'query', name);
  // A name with dots is a place further in, which only the template can say.
  return where === 'body' && !name.includes('.') ? withMember(template, 'body', name) : template;
}

function withMember(template: JsonObject, part: string, name: string): JsonObject {
  const present = template[part] ?? {};
  if (!isMap(present)) return template;
  const isThere = Object.keys(present).some((other) => other.toLowerCase() === name.toLowerCase());
  return isThere ? template : { ...template, [part]: { ...present, [name]: '{$key}' } };
}

function isMap(value: JsonValue): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** A filled request of a template: each value where it stands, or the sentence that says why not. */
export function requestFrom(
  template: JsonObject,
  values: TemplateValues,
  guards: readonly Guard[] = [],
): MadeRequest {
  const filled = fillTemplate(presentMembers(template, values.arguments), values);
  if (!filled.ok) return refuse(`the request cannot be made: ${filled.problem}`);
  return madeFrom(filled.value as JsonObject, guards);
}

/** The same of a template that is filled already. */
export function madeFrom(filled: JsonObject, guards: readonly Guard[] = []): MadeRequest {
  try {
    const { body, content = 'json', headers = {}, method = 'GET', path, query = {} } = filled;
    const address = `${pathOf(path ?? [])}${filled['ends_in_slash'] === true ? '/' : ''}`;
    const fields = headersOf(headers as JsonObject, guards);
    const text = body === undefined ? undefined : bodyOf(body, content === 'form');
    const type = content === 'form' ? 'application/x-www-form-urlencoded' : 'application/json';
    return {
      ok: true,
      request: {
        method: method as HttpMethod,
        target: `${address}${queryOf(query as JsonObject)}`,
        headers: text === undefined ? fields : { 'content-type': type, ...fields },
        ...(text === undefined ? {} : { body: text }),
      },
    };
  } catch (cause) {
    if (cause instanceof Unfit) return refuse(cause.message);
    throw cause;
  }
}

/** A value that has no form in its place; never leaves this file. */
class Unfit extends Error {}

function refuse(problem: string): MadeRequest {
  return { ok: false, problem };
}

// ── Places ─────────────────────────────────────────────────────────────────────────────────────────────────

function pathOf(path: JsonValue): string {
  if (!Array.isArray(path)) {
    if (typeof path === 'string' && path !== '') return path;
    throw new Unfit('the request has no address');
  }
  return path.map((part) => `/${segmentOf(part)}`).join('');
}

/** One segment: never empty, and none of those that lead elsewhere. */
function segmentOf(part: JsonValue): string {
  const text = textOf(part, 'the address');
  if (text === '.' || text === '..') throw new Unfit(`the address would have the part ${text}`);
  if (text === '') throw new Unfit('the address would have an empty part');
  return encodeURIComponent(wellFormed(text)).replace(
    /%(?:21|24|26|27|28|29|2A|2B|2C|3A|3B|3D|40)/g,
    (code) => decodeURIComponent(code),
  );
}

function queryOf(query: JsonObject): string {
  const pairs = Object.entries(query).flatMap(([name, value]) =>
    (Array.isArray(value) ? value : [value]).map((one) => pairOf(name, one)),
  );
  return pairs.length === 0 ? '' : `?${pairs.join('&')}`;
}

function pairOf(name: string, value: JsonValue): string {
  const text = textOf(value, `the parameter ${name}`);
  return `${encodeURIComponent(wellFormed(name))}=${encodeURIComponent(wellFormed(text))}`;
}

/** RFC 9110: visible characters, spaces and tabs within. What is beyond ASCII is read differently by each server. */
const HEADER_VALUE = /^[\x21-\x7e](?:[\t\x20-\x7e]*[\x21-\x7e])?$/;

function headersOf(headers: JsonObject, guards: readonly Guard[]): { readonly [name: string]: string } {
  return Object.fromEntries(
    Object.entries(headers).map(([name, value]) => {
      const small = name.toLowerCase();
      const text = textOf(value, `the header ${name}`);
      if (!HEADER_VALUE.test(text)) {
        throw new Unfit(`the header ${name} cannot carry its value, which is empty or not plain ASCII`);
      }
      const isTag = guards.some(
        ({ kind, carrier }) => kind === 'precondition' && carrier.name?.toLowerCase() === small,
      );
      return [small, isTag ? entityTag(name, text) : text];
    }),
  );
}

/** RFC 9110: an entity tag is quoted, and a weak one never fits If-Match. */
function entityTag(name: string, text: string): string {
  if (text === '*' && /^if-match$/i.test(name)) {
    throw new Unfit(`the header ${name} needs a version, and * is every one`);
  }
  if (!/^if-(none-)?match$/i.test(name) || text === '*' || /^"[^"]*"$/.test(text)) return text;
  if (text.startsWith('W/') || text.includes('"')) {
    throw new Unfit(`the header ${name} needs a strong version, and ${text} is none`);
  }
  return `"${text}"`;
}

function bodyOf(body: JsonValue, isForm: boolean): string {
  if (!isForm) return canonicalJson(body);
  if (!isMap(body)) throw new Unfit('the body has no form: it is no map of texts');
  return queryOf(body).slice(1).replaceAll('%20', '+');
}

function textOf(value: JsonValue, where: string): string {
  if (typeof value === 'string') return value;
  if (typeof value === 'number' || typeof value === 'boolean') return String(value);
  throw new Unfit(`${where} can carry a text, a number or a truth value, and was given something else`);
}

/** Lone surrogates have no bytes; the arguments were checked for them, and what a destination gave was not. */
function wellFormed(text: string): string {
  return text.replace(/[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g, '\ufffd');
}
