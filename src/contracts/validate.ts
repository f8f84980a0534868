// Checking a value against one of our schemas, and saying what is wrong in a sentence per fault.
//
// The schemas are the published ones, beside this file; each is read and compiled on first use, because that
// takes far longer than everything else that happens when a gateway starts.

import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { ErrorObject, ValidateFunction } from 'ajv';
import type { JsonValue } from '../core/canonical.ts';
import { closest, type Finding, formatPath, listed, type Path, shown } from './problem.ts';

export type SchemaName =
  | 'contract'
  | 'binding'
  | 'gateway-config'
  | 'http-destination'
  | 'serve-config'
  | 'notify-config';

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
  const ajv = new Ajv2020({
    allErrors: true,
    // Keeps the failing part of the schema, whose description is the second half of our sentence.
    verbose: true,
    allowUnionTypes: true,
    // Compiling takes half as long without these; that the schemas themselves are right is tested.
    validateSchema: false,
    meta: false,
    inlineRefs: false,
    code: { optimize: false },
  });
  addFormats.default(ajv, ['date']);
  const text = readFileSync(new URL(`./schema/${name}.schema.yaml`, import.meta.url), 'utf8');
  const { parse }: typeof import('yaml') = require('yaml');
  const validator = ajv.compile(parse(text));
  validators.set(name, validator);
  return validator;
}

function findingsOf(errors: readonly ErrorObject[], root: JsonValue): readonly Finding[] {
  const findings = errors
    // Of a key that does not fit, the fault within it is told.
    .filter((error) => !isToldByAnother(error, errors) && error.keyword !== 'propertyNames')
    .map((error) => findingOf(error, pathOf(error.instancePath, root)));
  const sentences = new Set<string>();
  return findings.filter(({ path, sentence }) => {
    const key = `${formatPath(path)}: ${sentence}`;
    return sentences.has(key) ? false : sentences.add(key);
  });
}

/**
 * A fault of one branch of an alternative, which the alternative itself tells better; and an alternative that fails
 * beside a key that is not known, which was probably meant to be the one that is missing.
 */
function isToldByAnother(error: ErrorObject, errors: readonly ErrorObject[]): boolean {
  return errors.some((other) => {
    if (isAlternative(error)) {
      return other.keyword === 'additionalProperties' && other.instancePath === error.instancePath;
    }
    return isAlternative(other) && error.schemaPath.startsWith(`${other.schemaPath}/`);
  });
}

function isAlternative({ keyword }: ErrorObject): boolean {
  return keyword === 'oneOf' || keyword === 'anyOf';
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
  const description = describe(parentSchema, error.message);
  const { propertyName } = error;
  if (propertyName !== undefined) {
    const sentence = `${place} has the key ${shown(propertyName)}; allowed is ${description}.`;
    return { path: [...path, propertyName], at: 'key', sentence };
  }
  switch (error.keyword) {
    case 'additionalProperties': {
      const key = String(params.additionalProperty);
      return { path: [...path, key], at: 'key', sentence: unknownKey(key, path, parentSchema) };
    }
    case 'required':
      return { path, sentence: `${shown(params.missingProperty)} is missing from ${place}.` };
    case 'enum':
      return { path, sentence: notAllowed(place, data, (params.allowedValues as unknown[]).map(String)) };
    case 'const':
      return { path, sentence: `${place} is ${shown(data)}; allowed is ${shown(params.allowedValue)}.` };
    case 'type': {
      // What is said about a map tells what it is for; that it should be one is what is missing here.
      const allowed =
        params.type === 'object' ? TYPE_NAMES.object : describe(parentSchema, typeNames(params.type));
      return { path, sentence: `${place} is ${kindOf(data)}; allowed is ${allowed}.` };
    }
    case 'minItems':
    case 'minProperties': {
      const allowed = describe(parentSchema, 'at least one entry');
      return { path, sentence: `${place} is empty; allowed is ${allowed}.` };
    }
    case 'oneOf':
    case 'anyOf':
      return { path, sentence: `${place} has the wrong members; allowed is ${description}.` };
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
      return { path, sentence: `${place} is ${shown(data)}; allowed is ${description}.` };
  }
}

/** What our schemas say about a member completes "allowed is …". */
function describe({ description }: Readonly<Record<string, unknown>>, otherwise = 'something else'): string {
  return typeof description === 'string' ? description.trim() : otherwise;
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
