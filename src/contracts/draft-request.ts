// A template of a request from an OpenAPI description, so that a draft can be sent once its owner has looked at it.

import type { Guard, HttpWrite } from '../core/contract.ts';
import { KEY_NAME } from './draft.ts';
import { OURS } from './http-destination-config.ts';
import { bodyProperties, type Described, mediaOf, resolved } from './openapi-parts.ts';

/** A name that can stand in a template as it is. */
const PLAIN = /^[A-Za-z_][\w.-]*$/;
const PATH = /^\/(?:[^?#\s{}]|\{[A-Za-z_][\w.-]*\})*$/;

/** Names of headers that a caller does not choose: who asks, and in which form. */
const NOT_CHOSEN = new Set(['authorization', 'cookie', 'proxy-authorization', 'accept', 'content-type']);

/** `undefined` where the path or the body has no form that a template can have. */
export function writeTemplate(described: Described, guards: readonly Guard[]): HttpWrite | undefined {
  const { method, path } = described;
  if (!PATH.test(path)) return undefined;
  const [media] = mediaOf(described.description, described.operation);
  const query = queryOf(described);
  const headers = headersOf(described, guards);
  const body = bodyOf(described);
  return {
    method: ({ post: 'POST', put: 'PUT', patch: 'PATCH', delete: 'DELETE' } as const)[method],
    path,
    ...(Object.keys(query).length === 0 ? {} : { query }),
    ...(Object.keys(headers).length === 0 ? {} : { headers }),
    ...(body === undefined ? {} : { body }),
    ...(body !== undefined && media?.[0] === 'form' ? { content: 'form' as const } : {}),
  };
}

function queryOf({ parameters }: Described): { [name: string]: string } {
  const query: { [name: string]: string } = {};
  for (const { in: place, name, required } of parameters) {
    if (place !== 'query' || typeof name !== 'string' || !PLAIN.test(name) || KEY_NAME.test(name)) continue;
    query[name] = `{${name}${required === true ? '' : '?'}}`;
  }
  return query;
}

/** The conditions that guard it, and what the destination cannot do without. */
function headersOf({ parameters }: Described, guards: readonly Guard[]): { [name: string]: string } {
  const headers: { [name: string]: string } = {};
  for (const { carrier, kind } of guards) {
    if (kind !== 'precondition' || carrier.name === undefined) continue;
    headers[carrier.name] = /^if-none-match$/i.test(carrier.name) ? '*' : '{version}';
  }
  for (const { in: place, name, required } of parameters) {
    if (place !== 'header' || required !== true || typeof name !== 'string' || !PLAIN.test(name)) continue;
    const small = name.toLowerCase();
    const isOurs = NOT_CHOSEN.has(small) || OURS.has(small) || KEY_NAME.test(name);
    if (!isOurs && headers[name] === undefined) headers[name] = `{${name}}`;
  }
  return headers;
}

/** Each member by its name; a body that the description does not list is one argument. */
function bodyOf(described: Described): unknown {
  const { description, operation, parameters } = described;
  const hasBody =
    resolved(description, operation.requestBody) !== undefined ||
    parameters.some(({ in: place }) => place === 'body');
  if (!hasBody) return undefined;
  // A place that our key has is filled by us.
  const members = bodyProperties(described).filter(({ name }) => PLAIN.test(name) && !KEY_NAME.test(name));
  if (members.length === 0) return '{body}';
  return Object.fromEntries(
    members.map(({ isRequired, name }) => [name, `{${name}${isRequired ? '' : '?'}}`]),
  );
}
