// Checking a value against one of our schemas, and saying what is wrong in a sentence per fault.
//
// The schemas are the published ones, beside this file; each is read and compiled on first use, because that
// takes far longer than everything else that happens when a gateway starts.

import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { ErrorObject, ValidateFunction } from 'ajv';
import type { JsonValue } from '../core/canonical.ts';
import { closest, type Finding, formatPath, listed, type Path, shown } from './problem.ts';

export type SchemaName = 'contract' | 'binding' | 'gateway-config';

/** The faults of a value by the published schema of that name; none when it fits. */
export function validate(schema: SchemaName, value: JsonValue): readonly Finding[] {
  const validateValue = compiled(schema);
  if (validateValue(value)) return [];
  return findingsOf(validateValue.errors ?? [], value);
}

const require = createRequire(import.meta.url);
const validators = new Map<SchemaName, ValidateFunction>();

function compiled(name: SchemaName): ValidateFunction {
  const known = validators.get(name);
  if (known !== undefined) return known;
  const { Ajv2020 }: typeof import('ajv/dist/2020.js') = require('ajv/dist/2020.js');
  const addFormats: typeof import('ajv-formats') = require('ajv-formats');
  // `verbose` keeps the failing part of the schema, whose description is the second half of our sentence.
  const ajv = new Ajv2020({ allErrors: true, verbose: true, allowUnionTypes: true, inlineRefs: false });
  addFormats.default(ajv, ['date']);
  const text = readFileSync(new URL(`./schema/${name}.schema.yaml`, import.meta.url), 'utf8');
  const { parse }: typeof import('yaml') = require('yaml');
  const validator = ajv.compile(parse(text));
  validators.set(name, validator);
  return validator;
}

function findingsOf(errors: readonly ErrorObject[], root: JsonValue): readonly Finding[] {
  const findings = errors
    .filter((error) => !isBranch(error, errors))
    .map((error) => findingOf(error, pathOf(error.instancePath, root)));
  const sentences = new Set<string>();
  return findings.filter(({ path, sentence }) => {
    const key = `${formatPath(path)}: ${sentence}`;
    return sentences.has(key) ? false : sentences.add(key);
  });
}

/** A fault of one branch of an alternative; the alternative itself tells it better. */
function isBranch(error: ErrorObject, errors: readonly ErrorObject[]): boolean {
  return errors.some(
    (other) =>
      (other.keyword === 'oneOf' || other.keyword === 'anyOf') &&
      other !== error &&
      error.schemaPath.startsWith(`${other.schemaPath}/`) &&
      error.instancePath.startsWith(other.instancePath),
  );
}

/** Indexes as numbers, so that they are told from keys. */
function pathOf(pointer: string, root: JsonValue): Path {
  let at: JsonValue | undefined = root;
  return pointer
    .split('/')
    .slice(1)
    .map((raw) => {
      const token = raw.replaceAll('~1', '/').replaceAll('~0', '~');
      const isIndex = Array.isArray(at);
      at = typeof at === 'object' && at !== null ? (at as Record<string, JsonValue>)[token] : undefined;
      return isIndex ? Number(token) : token;
    });
}

function findingOf(error: ErrorObject, path: Path): Finding {
  const { params, parentSchema = {}, data } = error;
  const place = formatPath(path);
  const description = typeof parentSchema.description === 'string' ? parentSchema.description : undefined;
  switch (error.keyword) {
    case 'additionalProperties': {
      const key = String(params.additionalProperty);
      return { path: [...path, key], at: 'key', sentence: unknownKey(key, path, parentSchema) };
    }
    case 'propertyNames':
      return {
        path: [...path, String(params.propertyName)],
        at: 'key',
        sentence: `${place} has the key ${shown(params.propertyName)}, which does not fit.`,
      };
    case 'required':
      return { path, sentence: `${shown(params.missingProperty)} is missing from ${place}.` };
    case 'enum':
      return { path, sentence: notAllowed(place, data, (params.allowedValues as unknown[]).map(String)) };
    case 'const':
      return { path, sentence: `${place} is ${shown(data)}; allowed is ${shown(params.allowedValue)}.` };
    case 'type':
      return {
        path,
        sentence: `${place} is ${kindOf(data)}; allowed is ${description ?? typeNames(params.type)}.`,
      };
    case 'minItems':
    case 'minProperties':
      return { path, sentence: `${place} is empty; allowed is ${description ?? 'at least one entry'}.` };
    case 'uniqueItems':
      return {
        path: [...path, Number(params.i)],
        sentence: `${place} holds ${shown((data as unknown[])[params.i])} twice.`,
      };
    case 'minimum':
    case 'maximum': {
      const bound = error.keyword === 'minimum' ? 'at least' : 'at most';
      return { path, sentence: `${place} is ${shown(data)}; ${bound} ${params.limit} is allowed.` };
    }
    default:
      return {
        path,
        sentence: `${place} is ${shown(data)}; allowed is ${description ?? error.message ?? 'something else'}.`,
      };
  }
}

function unknownKey(key: string, path: Path, parent: Record<string, unknown>): string {
  const allowed = Object.keys((parent.properties as object | undefined) ?? {});
  const near = closest(key, allowed);
  const where = path.length === 0 ? '' : ` in ${formatPath(path)}`;
  const instead = near === undefined ? `allowed are ${listed(allowed)}` : `did you mean ${near}?`;
  return `The key ${shown(key)} is not known${where}; ${instead}${near === undefined ? '.' : ''}`;
}

function notAllowed(place: string, value: unknown, allowed: readonly string[]): string {
  const near = typeof value === 'string' ? closest(value, allowed) : undefined;
  const hint = near === undefined ? '' : ` (did you mean ${near}?)`;
  return `${place} is ${shown(value)}; allowed are ${listed(allowed)}${hint}.`;
}

function kindOf(value: unknown): string {
  if (value === null) return 'empty';
  if (Array.isArray(value)) return 'a list';
  if (typeof value === 'object') return 'a map';
  return `${shown(value)}, which is ${typeof value === 'string' ? 'a text' : `a ${typeof value}`}`;
}

const TYPE_NAMES: { readonly [type: string]: string } = {
  string: 'a text',
  array: 'a list',
  object: 'a map of keys and values',
  integer: 'a whole number',
  number: 'a number',
  boolean: 'true or false',
};

function typeNames(type: string | readonly string[]): string {
  return listed(
    [type].flat().map((name) => TYPE_NAMES[name] ?? name),
    'or',
  );
}
