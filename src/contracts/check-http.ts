// What a schema cannot say about the part of a contract that is executed over HTTP.

import type { ContractOperation, Guard, HttpTemplate, HttpWrite, NoticeRule } from '../core/contract.ts';
import { FIRST_SENT } from '../core/http-request.ts';
import { keyGuard, requestKey } from '../core/request-key.ts';
import { templateNames } from '../core/template.ts';
import { boundedPattern } from './bounded-pattern.ts';
import { OURS } from './http-destination-config.ts';
import type { Finding, Path } from './problem.ts';

export function checkHttpOperation(
  operation: ContractOperation,
  protocol: string,
  path: Path,
): readonly Finding[] {
  const { completion, http, lookups, notices = [], readback } = operation;
  const asked: [HttpTemplate | undefined, Path][] = [
    ...lookups.map((lookup, index): [HttpTemplate | undefined, Path] => [
      lookup.http,
      ['lookups', index, 'http'],
    ]),
    [readback?.http, ['readback', 'http']],
    [completion.http, ['completion', 'http']],
  ];
  return [
    ...asked.flatMap(([template, at]) =>
      template === undefined ? [] : checkHeaders(operation, template, [...path, ...at]),
    ),
    ...checkPages(operation, path),
    ...checkStatus(operation, [...path, 'completion']),
    ...notices.flatMap((notice, index) => checkNotice(operation, notice, [...path, 'notices', index])),
    ...(http === undefined ? [] : checkWrite(operation, http, protocol, path)),
  ];
}

function checkWrite(
  operation: ContractOperation,
  http: HttpWrite,
  protocol: string,
  path: Path,
): readonly Finding[] {
  const at = [...path, 'http'];
  const findings: Finding[] = [...checkHeaders(operation, http, at)];
  if (protocol !== 'http') {
    findings.push({
      path: at,
      sentence: `${operation.id} says by http how it is sent, and the destination's protocol is ${protocol}.`,
    });
  }
  const headers = Object.values(http.headers ?? {}).filter((value) => value !== FIRST_SENT);
  for (const name of templateNames([http.path, http.query, headers, http.body])) {
    const sentence = nameProblem(operation, name);
    if (sentence !== undefined) findings.push({ path: at, sentence });
  }
  return [...findings, ...checkKey(operation, http, path), ...checkPrecondition(operation, http, path)];
}

function nameProblem({ guards, id, stamp }: ContractOperation, name: string): string | undefined {
  if (!name.startsWith('$')) return undefined;
  if (name === '$stamp') {
    return stamp === undefined
      ? `The request of ${id} uses {$stamp}, and the operation has no stamp.`
      : undefined;
  }
  if (name === '$first_sent') {
    return `The request of ${id} uses {$first_sent}, which is the whole value of one header, and stands nowhere else.`;
  }
  if (name === '$key') {
    return guards.some(isKeyed)
      ? undefined
      : `The request of ${id} uses {$key}, and no guard of it is a request_key or a client_identity.`;
  }
  return `The request of ${id} uses {${name}}, which is known only after sending; allowed are arguments of the call, {$stamp} and {$key}.`;
}

function isKeyed({ kind }: Guard): boolean {
  return kind === 'request_key' || kind === 'client_identity';
}

/** A sample as long as every id of ours. */
const SOME_ID = `op_${'0'.repeat(26)}`;

/** A guard's value is ours: a place that the arguments fill as well would let a model choose it (I13). */
function checkKey(operation: ContractOperation, http: HttpWrite, path: Path): readonly Finding[] {
  const guard = keyGuard(operation);
  if (guard === undefined) return [];
  const { encoding = 'opaque', in: where, name = '', pattern } = guard.carrier;
  const at = [...path, 'guards', operation.guards.indexOf(guard), 'carrier'];
  const isPlaced = JSON.stringify([http.path, http.query, http.headers, http.body]).includes('{$key}');
  if (guard.kind === 'client_identity' && !isPlaced && where === 'path') return [];
  // Such a pattern is told of by itself, and nothing is tried by it.
  if (pattern !== undefined && !boundedPattern(pattern).ok) return [];
  if (requestKey(SOME_ID, guard.carrier) === undefined) {
    return [
      {
        path: at,
        sentence: `The guard of ${operation.id} takes no key of ours: its encoding is ${encoding}, with ${guard.carrier.max_length ?? 'any number of'} characters at most${pattern === undefined ? '' : ` and the pattern ${pattern}`}; opaque, sf_string, uuid, base32hex and identifier are made, of 24 characters or more.`,
      },
    ];
  }
  if (isPlaced) return [];
  if (where === 'path' || where.startsWith('graphql') || where === 'message_header') {
    return [
      {
        path: at,
        sentence: `The guard of ${operation.id} is carried in ${where}, and the request does not say by {$key} where it stands.`,
      },
    ];
  }
  const part = where === 'header' ? http.headers : where === 'query' ? http.query : http.body;
  const taken = Object.keys(part ?? {}).find((other) => other.toLowerCase() === name.toLowerCase());
  if (taken === undefined || guard.kind === 'client_identity') return [];
  return [
    {
      path: [...path, 'http'],
      sentence: `The request of ${operation.id} fills ${taken} by itself, which is the place of its guard's key; what a caller gives must not be the key, so use {$key} there or leave it out.`,
    },
  ];
}

/** A precondition that is not sent guards nothing. */
function checkPrecondition(
  { guards, id }: ContractOperation,
  http: HttpWrite,
  path: Path,
): readonly Finding[] {
  return guards.flatMap(({ carrier, kind }, index) => {
    const { in: where, name = '' } = carrier;
    if (kind !== 'precondition' || where !== 'header') return [];
    const sent = Object.entries(http.headers ?? {}).find(
      ([other]) => other.toLowerCase() === name.toLowerCase(),
    );
    const [, value] = sent ?? [];
    if (value === undefined) {
      return {
        path: [...path, 'guards', index],
        sentence: `${id} is guarded by the header ${name}, and its request does not send that header.`,
      };
    }
    if (value.includes('{') || name.toLowerCase() === 'if-none-match') return [];
    return {
      path: [...path, 'http', 'headers'],
      sentence: `${id} is guarded by the header ${name}, and its request sends the same value each time, which every version meets; it needs the version, such as {version}.`,
    };
  });
}

const CREDENTIALS: readonly string[] = ['authorization', 'cookie', 'proxy-authorization'];

function checkHeaders(
  { id }: ContractOperation,
  { headers = {} }: HttpTemplate,
  path: Path,
): readonly Finding[] {
  return Object.keys(headers).flatMap((name) => {
    const small = name.toLowerCase();
    if (CREDENTIALS.includes(small)) {
      return {
        path: [...path, 'headers', name],
        sentence: `${id} sends the header ${name}; credentials belong into the destination's configuration, as secrets by reference.`,
      };
    }
    if (!OURS.has(small)) return [];
    return {
      path: [...path, 'headers', name],
      sentence: `${id} sends the header ${name}, which is written by us.`,
    };
  });
}

function checkPages({ id, lookups }: ContractOperation, path: Path): readonly Finding[] {
  return lookups.flatMap(({ found, http }, index) => {
    if (http?.pages === undefined || found?.items?.from === 'json') return [];
    return {
      path: [...path, 'lookups', index, 'http', 'pages'],
      sentence: `A look-up of ${id} reads several pages, and found.items does not say, from json, where the list in each of them is.`,
    };
  });
}

function checkStatus(operation: ContractOperation, path: Path): readonly Finding[] {
  const { acknowledgement, completion, id } = operation;
  const { done = [], failed = [], handle, http, kind } = completion;
  if (http === undefined) return [];
  const findings: Finding[] = [];
  const say = (at: string, sentence: string): void => void findings.push({ path: [...path, at], sentence });
  if (kind !== 'accepted_then_poll') {
    say(
      'http',
      `${id} is asked how far it has come, and its completion is ${kind}; that needs accepted_then_poll.`,
    );
  }
  if (done.length === 0)
    say('http', `${id} is asked how far it has come, and done names no state that ends the work.`);
  const both = done.find((state) => failed.includes(state));
  if (both !== undefined)
    say('failed', `${both} is a state of done and of failed in the completion of ${id}.`);
  const names = templateNames([http.path, http.query, http.headers]);
  const needsHandle = names.includes('$record') || names.includes('$record_number');
  if (needsHandle && handle === undefined && acknowledgement?.record === undefined) {
    say(
      'http',
      `${id} is asked by {$record}, and neither handle nor acknowledgement.record says where one is found.`,
    );
  }
  return findings;
}

function checkNotice(operation: ContractOperation, notice: NoticeRule, path: Path): readonly Finding[] {
  const { acknowledgement, completion, id, stamp } = operation;
  const at = [...path, 'names'];
  const { by } = notice.names;
  if (by === 'stamp' && stamp === undefined) {
    return [{ path: at, sentence: `A notice names ${id} by its stamp, and the operation has no stamp.` }];
  }
  if (by === 'request_key' && keyGuard(operation)?.carrier.encoding !== 'opaque') {
    return [
      {
        path: at,
        sentence: `A notice names ${id} by its key, which is found again only where its encoding is opaque.`,
      },
    ];
  }
  if (by === 'record' && acknowledgement?.record === undefined && completion.handle === undefined) {
    return [
      {
        path: at,
        sentence: `A notice names ${id} by its record, and acknowledgement.record does not say where one is found.`,
      },
    ];
  }
  return [];
}
