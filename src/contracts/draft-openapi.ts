// A draft of a contract from an OpenAPI description (2.0, 3.0 and 3.1): methods, paths, headers and status codes.

import type { JsonObject } from '../core/canonical.ts';
import type {
  ContractOperation,
  Guard,
  GuardCarrier,
  Lookup,
  OutcomeRule,
  Reversal,
} from '../core/contract.ts';
import { placed, readDocument } from './document.ts';
import {
  assumed,
  contractId,
  type Draft,
  type DraftOptions,
  finishDraft,
  KEY_NAME,
  openQuestions,
  operationId,
  unknownKey,
} from './draft.ts';
import { writeTemplate } from './draft-request.ts';
import type { Refused } from './load.ts';
import { bodyProperties, type Described, resolved } from './openapi-parts.ts';
import type { Path } from './problem.ts';
import { isObject } from './tool-listing.ts';

/** Descriptions of whole clouds are larger than any contract. */
const TEXT_LENGTH_MAX = 16 * 1024 * 1024;
const WRITES_MAX = 1_000;
const METHODS = ['post', 'put', 'patch', 'delete'] as const;

export function draftFromOpenApi(text: string, file: string, options: DraftOptions): Draft | Refused {
  const read = readDocument(text, file, { isExact: false, lengthMax: TEXT_LENGTH_MAX });
  if (!read.ok) return read;
  const refuse = (path: Path, sentence: string): Refused => ({
    ok: false,
    problems: placed([{ path, sentence }], read.source),
  });
  const { value } = read;
  const version = isObject(value) ? (value.openapi ?? value.swagger) : undefined;
  if (!isObject(value) || version === undefined || !isObject(value.paths)) {
    return refuse([], 'This is no OpenAPI description: openapi (or swagger) and paths are expected.');
  }
  const found = operationsIn(value, options);
  if (found.length === 0) {
    return refuse(['paths'], 'No POST, PUT, PATCH or DELETE is described: there is no write.');
  }
  if (found.length > WRITES_MAX) {
    return refuse(
      ['paths'],
      `${found.length} writes are described; at most ${WRITES_MAX} make one contract. Describe the part that is used.`,
    );
  }
  const info = isObject(value.info) ? value.info : {};
  const title = typeof info.title === 'string' && info.title !== '' ? info.title : file;
  const base = baseOf(value);
  return finishDraft(
    {
      id: options.id ?? contractId(title),
      name: title,
      protocol: 'http',
      ...(base === undefined ? {} : { base }),
      ...(typeof info.version === 'string' && info.version !== '' ? { apiVersion: info.version } : {}),
      operations: found,
      madeOf: `the description ${JSON.stringify(title)} (OpenAPI ${JSON.stringify(version)})`,
    },
    options,
  );
}

function baseOf(description: JsonObject): string | undefined {
  const { basePath, host, servers } = description;
  const first = Array.isArray(servers) ? servers[0] : undefined;
  if (isObject(first) && typeof first.url === 'string' && first.url !== '') return first.url;
  if (typeof host === 'string') return `${host}${typeof basePath === 'string' ? basePath : ''}`;
  return typeof basePath === 'string' && basePath !== '' ? basePath : undefined;
}

function operationsIn(description: JsonObject, options: DraftOptions): readonly ContractOperation[] {
  const paths = description.paths as JsonObject;
  const itemOf = (path: string): JsonObject => {
    const item = Object.hasOwn(paths, path) ? resolved(description, paths[path]) : undefined;
    return item ?? {};
  };
  const methodsAt = (path: string): readonly string[] => Object.keys(itemOf(path));
  return Object.keys(paths).flatMap((path) => {
    const item = itemOf(path);
    const below = `${path.replace(/\/$/, '')}/`;
    const recordPath = Object.keys(paths).find(
      (other) => other.startsWith(below) && /^\{[^/]*\}[^/]*$/.test(other.slice(below.length)),
    );
    return METHODS.flatMap((method) => {
      const operation = resolved(description, item[method]);
      if (operation === undefined) return [];
      const listed = [item.parameters, operation.parameters].flatMap((some) =>
        Array.isArray(some) ? some : [],
      );
      const parameters = listed
        .map((parameter) => resolved(description, parameter))
        .filter((parameter) => parameter !== undefined);
      const evidence = assumed(`OpenAPI, ${method.toUpperCase()} ${path}`, options);
      const described = { description, method, path, operation, parameters, methodsAt, evidence };
      return draftOperation({ ...described, ...(recordPath === undefined ? {} : { recordPath }) });
    });
  });
}

function draftOperation(described: Described): ContractOperation {
  const { evidence, method, operation, path } = described;
  const effect = effectOf(described);
  const id = operationId(
    typeof operation.operationId === 'string' && operation.operationId !== ''
      ? operation.operationId
      : `${method}.${path}`,
  );
  const guards = guardsOf(described);
  const lookups = lookupsOf(described);
  const target = targetOf(described);
  const outcomes = outcomesOf(described);
  const http = writeTemplate(described, guards);
  const isAsynchronous = outcomes.some(({ means }) => means === 'accepted');
  return {
    id,
    match: [`${method.toUpperCase()} ${path}`],
    effect,
    ...(effect === 'delete' ? { destructive: true } : {}),
    ...(target === undefined ? {} : { target }),
    ...(http === undefined ? {} : { http }),
    completion: { kind: isAsynchronous ? 'accepted_no_handle' : 'synchronous' },
    batch: 'single',
    guards,
    lookups,
    ...(hasVersion(described)
      ? {
          version: {
            kind: 'opaque' as const,
            read: { in: 'header' as const, name: 'ETag' },
            aba_safe: 'unknown' as const,
            enforced: 'unknown' as const,
            evidence,
          },
        }
      : {}),
    outcomes,
    reversals: [reversalOf(described, effect)],
    evidence,
    open_questions: [
      ...(isAsynchronous ? ['It answers before it is done: where is the state of its work read?'] : []),
      ...(method === 'put' || method === 'delete'
        ? ['By its method a repeat means the same; does it overwrite what others wrote in between?']
        : []),
      ...openQuestions({ id, effect, guards, isFound: lookups.length > 0 }),
    ],
  };
}

/** Words with which the last part of a path begins where it does something to the record before it. */
const VERB =
  /^(add|remove|set|unset|insert|cancel|close|reopen|retry|start|stop|send|run|execute|activate|deactivate|archive|unarchive|restore|approve|reject|merge|move|duplicate|publish|assign|transition|instantiate|verify|refund|capture|void)(?![a-z])/;

/** POST to a collection creates; POST below one record, with a verb, does something to it. */
function effectOf({ method, path }: Described): ContractOperation['effect'] {
  if (method !== 'post') return ({ put: 'replace', patch: 'update', delete: 'delete' } as const)[method];
  const segments = path.split('/').filter((segment) => segment !== '');
  const last = segments.at(-1) ?? '';
  const isBelowRecord = segments.at(-2)?.includes('{') === true;
  return last.includes('{') || (isBelowRecord && VERB.test(last)) ? 'action' : 'create';
}

function guardsOf({ description, evidence, operation, parameters }: Described): readonly Guard[] {
  const guards: Guard[] = [];
  for (const { in: place, name, required, schema } of parameters) {
    if (typeof name !== 'string' || (place !== 'header' && place !== 'query')) continue;
    if (KEY_NAME.test(name)) {
      const lengthMax = isObject(schema) ? schema.maxLength : undefined;
      const carrier: GuardCarrier = {
        in: place,
        name,
        encoding: 'opaque',
        ...(Number.isInteger(lengthMax) && Number(lengthMax) > 0 ? { max_length: Number(lengthMax) } : {}),
      };
      const guard = unknownKey(carrier, evidence);
      guards.push(required === true ? { ...guard, required: 'always' } : guard);
    } else if (/^if-(none-)?match$/i.test(name)) {
      guards.push({
        ...unknownKey({ in: 'header', name, encoding: 'etag' }, evidence),
        kind: 'precondition',
      });
    }
  }
  const body = bodyProperties({ description, operation, parameters })
    .map(({ name }) => name)
    .filter((name) => KEY_NAME.test(name));
  return [...guards, ...body.map((name) => unknownKey({ in: 'body', name, encoding: 'opaque' }, evidence))];
}

function lookupsOf({ evidence, method, methodsAt, path }: Described): readonly Lookup[] {
  if (!methodsAt(path).includes('get')) return [];
  const isOwn = method !== 'post';
  return [
    {
      by: isOwn ? 'client_identity' : 'list_scan',
      request: `GET ${path}`,
      consistency: { kind: 'unknown' },
      unique: isOwn ? 'yes' : 'unknown',
      // That something is gone is what a DELETE wanted, whoever removed it.
      proves: { present: 'applied_if_content_matches', absent: 'nothing' },
      evidence,
    },
  ];
}

/** The record that the path names, for what changes one. */
function targetOf({ method, path }: Described): ContractOperation['target'] {
  const names = [...path.matchAll(/\{([^{}/$]+)\}/g)].map(([, name = '']) => name);
  if (method === 'post' || names.length === 0) return undefined;
  const type = path
    .split('/')
    .findLast((segment) => segment !== '' && !segment.includes('{'))
    ?.replace(/[^\w-]+/g, '');
  return {
    type: type === undefined || type === '' ? 'record' : type,
    id: names.map((name) => `{${name}}`).join('/'),
  };
}

function hasVersion({ description, operation }: Described): boolean {
  const responses = resolved(description, operation.responses) ?? {};
  return Object.values(responses).some((response) => {
    const headers = resolved(description, response)?.headers;
    return isObject(headers) && Object.keys(headers).some((name) => /^etag$/i.test(name));
  });
}

const MEANINGS: readonly (readonly [
  test: (status: number) => boolean,
  means: OutcomeRule['means'],
  next: OutcomeRule['next'],
])[] = [
  [(status) => status === 202, 'accepted', 'look_up'],
  [(status) => status >= 200 && status < 300, 'applied', 'done'],
  [(status) => status === 409 || status === 412, 'unknown', 'look_up'],
  [(status) => status === 429, 'not_applied_temporary', 'stop'],
  [(status) => status >= 400 && status < 500, 'not_applied', 'stop'],
  [(status) => status >= 500, 'unknown', 'look_up'],
];

/** Each meaning once, with the codes that are described; the more special ones before. */
function outcomesOf({ description, evidence, operation }: Described): readonly OutcomeRule[] {
  const responses = resolved(description, operation.responses) ?? {};
  const statuses = Object.keys(responses)
    .filter((status) => /^[1-5]\d\d$/.test(status))
    .map(Number);
  const left = new Set(statuses);
  return MEANINGS.flatMap(([test, means, next]) => {
    const fitting = [...left].filter(test);
    for (const status of fitting) left.delete(status);
    return fitting.length === 0
      ? []
      : [{ when: { status: fitting }, means, ...(next === undefined ? {} : { next }), evidence }];
  });
}

function reversalOf(
  { evidence, methodsAt, recordPath }: Described,
  effect: ContractOperation['effect'],
): Reversal {
  const unknown = { version_checked: 'unknown', history: 'unknown', evidence } as const;
  if (effect === 'create' && recordPath !== undefined && methodsAt(recordPath).includes('delete')) {
    return { kind: 'delete', operation: `DELETE ${recordPath}`, restores: 'state_only', ...unknown };
  }
  if (effect === 'replace' || effect === 'update') {
    return { kind: 'correct', operation: 'write what was there before', restores: 'partial', ...unknown };
  }
  return { kind: 'none', restores: 'nothing', evidence };
}
