// The parts of an OpenAPI description that drafts are made of, with what they refer to.

import type { JsonObject, JsonValue } from '../core/canonical.ts';
import type { FactEvidence } from '../core/contract.ts';
import { isObject } from './tool-listing.ts';

/** One write as it is described, with what its path shares with other methods. */
export interface Described {
  readonly description: JsonObject;
  readonly method: 'post' | 'put' | 'patch' | 'delete';
  readonly path: string;
  readonly operation: JsonObject;
  readonly parameters: readonly JsonObject[];
  readonly methodsAt: (path: string) => readonly string[];
  /** The path of one record below this one, where there is one. */
  readonly recordPath?: string;
  readonly evidence: FactEvidence;
}

/** A part, or what it refers to within the same document; references of references end after a few. */
export function resolved(
  description: JsonObject,
  part: JsonValue | undefined,
  depth = 0,
): JsonObject | undefined {
  if (!isObject(part)) return undefined;
  const { $ref: reference } = part;
  if (typeof reference !== 'string') return part;
  if (!reference.startsWith('#/') || depth > 8) return undefined;
  let at: JsonValue | undefined = description;
  for (const token of reference.slice(2).split('/')) {
    const name = token.replaceAll('~1', '/').replaceAll('~0', '~');
    at = isObject(at) && Object.hasOwn(at, name) ? at[name] : undefined;
  }
  return resolved(description, at, depth + 1);
}

/** A member at the top of a JSON body or of a form. */
export interface BodyProperty {
  readonly name: string;
  readonly isRequired: boolean;
}

/** The members of the body, where the description lists them; what a server fills itself is left out. */
export function bodyProperties({
  description,
  operation,
  parameters,
}: Pick<Described, 'description' | 'operation' | 'parameters'>): readonly BodyProperty[] {
  const schemas = [
    ...mediaOf(description, operation).map(([, media]) => media.schema),
    ...parameters.filter((parameter) => parameter.in === 'body').map(({ schema }) => schema),
  ];
  return schemas.flatMap((part) => {
    const schema = resolved(description, part);
    const properties = isObject(schema?.properties) ? schema.properties : {};
    const required = Array.isArray(schema?.required) ? schema.required : [];
    return Object.entries(properties)
      .filter(([, property]) => resolved(description, property)?.readOnly !== true)
      .map(([name]) => ({ name, isRequired: required.includes(name) }));
  });
}

/** The forms in which a body is taken that can be written: JSON, or a form. */
export function mediaOf(
  description: JsonObject,
  operation: JsonObject,
): readonly (readonly [type: 'json' | 'form', media: JsonObject])[] {
  const content = resolved(description, operation.requestBody)?.content;
  if (!isObject(content)) return [];
  const known = Object.entries(content).flatMap(([type, media]) => {
    const form = /json/i.test(type) ? 'json' : /x-www-form-urlencoded/i.test(type) ? 'form' : undefined;
    return form === undefined || !isObject(media) ? [] : [[form, media] as const];
  });
  // One is enough, and JSON carries every value.
  return known.toSorted(([a], [b]) => b.localeCompare(a)).slice(0, 1);
}
