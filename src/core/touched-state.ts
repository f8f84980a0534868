// The fields that a write touches, as they stand at the destination before it: what a reviewer compares, and what may not
// have changed when it is sent. Which fields these are, and how they are read, is what the contract's read-back states.

import { canonicalJson, type JsonValue } from './canonical.ts';
import type { ContractOperation, ReadBack } from './contract.ts';
import type { Why } from './operation.ts';
import { openReply, placeIn, type ReadableReply, wholeOf } from './reply-places.ts';
import { fillTemplate, type TemplateValues, valueAt } from './template.ts';

export interface TouchedField {
  /** Its place in the answer, as a JSON pointer without the leading slash. */
  readonly at: string;
  /** Absent where nothing is there. */
  readonly now?: JsonValue;
  /** What the write makes of it, where the contract says so by the arguments. */
  readonly will?: JsonValue;
}

export interface TouchedState {
  readonly fields: readonly TouchedField[];
  readonly version?: string;
}

/** A question whose answer tells of the target as it is; of what is only made by the write there is none. */
export function presentQuestion(operation: ContractOperation | undefined): ReadBack | undefined {
  if (operation === undefined || operation.effect === 'create' || operation.effect === 'message')
    return undefined;
  const { readback } = operation;
  return readback?.tool === undefined || readback.matches.length === 0 ? undefined : readback;
}

/** What an answer says of them; `undefined` where it is none that the contract describes. */
export function readTouched(
  reply: ReadableReply,
  { matches, version: versionPlace }: ReadBack,
  values: TemplateValues,
): TouchedState | undefined {
  const opened = openReply(reply);
  const whole = wholeOf(opened);
  if (opened.kind !== 'result' || reply.doubt !== undefined || !whole.found) return undefined;
  const fields = matches.map(({ equals, from, path = '' }): TouchedField => {
    const place =
      from === undefined ? valueAt(whole.value, path) : foundValue(placeIn(opened, { from, path }));
    const will = equals === undefined ? undefined : fillTemplate(equals, values);
    return {
      at: path.replace(/^\//, ''),
      ...(place === undefined ? {} : { now: place }),
      ...(will?.ok === true ? { will: will.value } : {}),
    };
  });
  const version = versionPlace && foundValue(placeIn(opened, versionPlace));
  const isName = typeof version === 'string' || typeof version === 'number';
  return { fields, ...(isName ? { version: String(version) } : {}) };
}

function foundValue(place: ReturnType<typeof placeIn>): JsonValue | undefined {
  return place.found ? place.value : undefined;
}

/** What has changed between the review and now, by version and by value; `undefined` where nothing has. */
export function targetChange(
  reviewed: TouchedState,
  now: TouchedState,
): Extract<Why, { readonly code: 'target_changed' }> | undefined {
  const fields = reviewed.fields
    .filter((field, index) => text(field.now) !== text(now.fields[index]?.now))
    .map(({ at }) => at);
  const isOtherVersion = reviewed.version !== now.version;
  if (fields.length === 0 && !isOtherVersion) return undefined;
  return {
    code: 'target_changed',
    fields,
    ...(isOtherVersion && reviewed.version !== undefined ? { was: reviewed.version } : {}),
    ...(isOtherVersion && now.version !== undefined ? { is: now.version } : {}),
  };
}

function text(value: JsonValue | undefined): string {
  return value === undefined ? '' : canonicalJson(value);
}
