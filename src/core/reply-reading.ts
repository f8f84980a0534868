// What a reply says, by what a contract states: what an answer to a write means, what a look-up found, whether
// a read-back matches (D7, D8).
//
// What cannot be read is never taken for an answer: it makes a write unknown, and a look-up or a read-back
// inconclusive. Nothing here throws, whatever the reply is.

import type { JsonValue } from './canonical.ts';
import {
  type Comparison,
  type ContractOperation,
  isTrusted,
  type Lookup,
  type OutcomeRule,
  type ReadBack,
  type ReplyPlace,
  type Signal,
  type WorkStatus,
} from './contract.ts';
import { nextLink } from './next-link.ts';
import {
  type ComparisonReading,
  compareIn,
  isRounded,
  type OpenedReply,
  openReply,
  type PlaceReading,
  placeIn,
  type ReadableReply,
  type ReplyDoubt,
  reading,
  wholeOf,
} from './reply-places.ts';
import { type TemplateValues, valueAt } from './template.ts';

export { compare, readPlace } from './reply-places.ts';
export { fillTemplate } from './template.ts';

/**
 * - `applied`: it says that it is done. `accepted`: it took the write, and nothing says more.
 * - `in_progress`: it took the write and goes on working.
 * - `rejected`, `rejected_temporary`: it did not apply it, on trusted evidence.
 * - `error`: it answered with an error that establishes nothing. `unknown`: not even that can be told.
 */
export type ReplyMeaning =
  | 'applied'
  | 'accepted'
  | 'in_progress'
  | 'rejected'
  | 'rejected_temporary'
  | 'error'
  | 'unknown';

export interface ReplyReading {
  readonly means: ReplyMeaning;
  /** The destination's own id for the record, and the version that our write made. */
  readonly record?: string;
  readonly version?: string;
  /** The outcome of the contract that decided, counted from 0. */
  readonly rule?: number;
  /** True only where that outcome rests on evidence that may drive a decision. */
  readonly trusted: boolean;
}

/**
 * What a complete answer to a write means: the first outcome of the contract whose marks it bears, else what its
 * kind says. A refusal counts only on trusted evidence, and text that no outcome names never makes one.
 */
export function classifyReply(reply: ReadableReply, operation: ContractOperation | undefined): ReplyReading {
  const opened = openReply(reply);
  for (const [index, rule] of (operation?.outcomes ?? []).entries()) {
    if (reply.doubt !== undefined && !isMeantFor(rule.when, reply.doubt)) continue;
    const bears = readSignal(opened, rule.when);
    if (bears === 'differs') continue;
    // This outcome may be the one that counts: a reply that cannot be read does not show that it is not.
    if (bears === 'unreadable') return { means: byKind(opened, 'unknown'), trusted: false };
    const trusted = rule.evidence !== undefined && isTrusted(rule.evidence);
    const means = byRule(rule, trusted, opened, operation);
    return { means, ...acknowledged(opened, operation, means), rule: index, trusted };
  }
  if (reply.doubt !== undefined) return { means: 'unknown', trusted: false };
  const isAnswer = (opened.isJson && hasItsRecord(opened, operation)) || opened.truncated;
  const means = byKind(opened, isAnswer ? takenOrDone(operation) : 'unknown');
  return { means, ...acknowledged(opened, operation, means), trusted: false };
}

/** Over HTTP many a success carries an error in its body: without the record that it is to name it is no acknowledgement. */
function hasItsRecord(opened: OpenedReply, operation: ContractOperation | undefined): boolean {
  const place = operation?.acknowledgement?.record;
  if (opened.headers === undefined || place === undefined) return true;
  return asName(placeIn(opened, place)) !== undefined;
}

/**
 * Whether an outcome was written down with such a reply in mind: a page by its text, what something in between may
 * answer by its status or text. Of another request's answer none is.
 */
function isMeantFor(when: Signal, doubt: ReplyDoubt): boolean {
  const isByText = when.text_starts !== undefined || when.text_contains !== undefined;
  if (doubt === 'other' || isByText) return doubt !== 'other';
  return doubt !== 'page' && (when.status !== undefined || when.code !== undefined);
}

function byRule(
  rule: OutcomeRule,
  trusted: boolean,
  opened: OpenedReply,
  operation: ContractOperation | undefined,
): ReplyMeaning {
  switch (rule.means) {
    case 'not_applied':
      return trusted ? 'rejected' : 'error';
    case 'not_applied_temporary':
      return trusted ? 'rejected_temporary' : 'error';
    case 'applied':
      return trusted ? 'applied' : byKind(opened, takenOrDone(operation));
    case 'already_applied':
      // An error that says "it exists" does not say whose it is: that is for a look-up to find out.
      return opened.kind === 'result' ? byKind(opened, takenOrDone(operation)) : 'unknown';
    case 'accepted':
      return takenOrDone(operation);
    case 'in_progress':
    case 'unknown':
      return rule.means;
  }
}

/** A result means what is given; an error without an outcome means only that there was one. */
function byKind(opened: OpenedReply, result: ReplyMeaning): ReplyMeaning {
  return opened.kind === 'result' ? result : 'error';
}

/** A destination that answers before it is done goes on working after it took the write (D4). */
function takenOrDone(operation: ContractOperation | undefined): 'accepted' | 'in_progress' {
  return operation?.completion.kind === 'accepted_then_poll' ? 'in_progress' : 'accepted';
}

function acknowledged(
  opened: OpenedReply,
  operation: ContractOperation | undefined,
  means: ReplyMeaning,
): Names {
  if (means !== 'applied' && means !== 'accepted' && means !== 'in_progress') return {};
  const { record, version } = operation?.acknowledgement ?? {};
  return named(record && placeIn(opened, record), version && placeIn(opened, version));
}

/** Whether a reply bears every mark that is given. A mark that is not known here is never borne. */
export function matchesSignal(reply: ReadableReply, signal: Signal): boolean {
  return readSignal(openReply(reply), signal) === 'agrees';
}

function readSignal(opened: OpenedReply, signal: Signal): ComparisonReading {
  const { marker, ...listed } = signal;
  const marks = Object.entries(listed) as [Exclude<keyof Signal, 'marker'>, readonly (string | number)[]][];
  const readings = marks.map(([mark, values]) => readMark(opened, mark, values));
  if (marker !== undefined) readings.push(readMarker(opened, marker));
  let result: ComparisonReading = readings.length === 0 ? 'differs' : 'agrees';
  for (const one of readings) {
    if (one === 'differs') return 'differs';
    if (one === 'unreadable') result = 'unreadable';
  }
  return result;
}

function readMark(
  { kind, code, text, isJson }: OpenedReply,
  mark: Exclude<keyof Signal, 'marker'>,
  values: readonly (string | number)[],
): ComparisonReading {
  switch (mark) {
    case 'kind':
      return agreesIf(values.includes(kind));
    case 'status':
    case 'code':
      return agreesIf(code !== undefined && values.some((value) => String(value) === String(code)));
    case 'text_starts':
      if (text === undefined) return isJson ? 'differs' : 'unreadable';
      return agreesIf(values.some((value) => text.startsWith(String(value))));
    case 'text_contains':
      if (text === undefined) return isJson ? 'differs' : 'unreadable';
      return agreesIf(values.some((value) => text.includes(String(value))));
    default:
      return 'differs';
  }
}

/** A place of an HTTP reply. A name with dots, as documents write it, is a path as well. */
function readMarker(opened: OpenedReply, marker: NonNullable<Signal['marker']>): ComparisonReading {
  const { in: where, name = '', value } = marker;
  if (where === 'status') return agreesIf(String(opened.code) === value);
  if (where !== 'header' && where !== 'body') return 'differs';
  const path = name.startsWith('/') ? name : `/${name.replaceAll('.', '/')}`;
  const place: ReplyPlace =
    where === 'header' ? { from: 'headers', path: `/${name}` } : { from: 'json', path };
  const found = placeIn(opened, place);
  if (!found.found) return found.why === 'unreadable' ? 'unreadable' : 'differs';
  return agreesIf(value === undefined || textOf(found.value) === value);
}

function textOf(value: JsonValue): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}

function agreesIf(condition: boolean): ComparisonReading {
  return condition ? 'agrees' : 'differs';
}

export interface LookupReading {
  /**
   * `present` only where the contract lets this route prove it: not while the content must match and does not.
   * `absent` is what this answer says; whether it proves anything is for the contract and the clock to say.
   */
  readonly found: 'present' | 'absent' | 'several' | 'inconclusive';
  readonly count: number;
  readonly record?: string;
  readonly version?: string;
  /** Of several: the destination's own ids, as far as the contract says where they stand; at most ten. */
  readonly records?: readonly string[];
  /** Left out where the contract compares nothing, and where nobody can tell. */
  readonly contentMatches?: boolean;
}

/**
 * What the answer to a look-up says. Only a list that was read, or a reply that the contract names, says `absent`;
 * every other error is inconclusive, and so is a list in which no entry has the place that is compared.
 */
export function readLookup(reply: ReadableReply, lookup: Lookup, values: TemplateValues): LookupReading {
  const opened = openReply(reply);
  if (!opened.isJson) return INCONCLUSIVE;
  if (lookup.absent_when !== undefined && readSignal(opened, lookup.absent_when) === 'agrees') return ABSENT;
  const { found } = lookup;
  if (opened.kind !== 'result' || found === undefined) return INCONCLUSIVE;
  const meant = recordsMeant(opened, found, values);
  const record = meant?.[0];
  if (meant === undefined) return INCONCLUSIVE;
  // It says itself that it goes on: what is not on this page may be on the next one.
  if (record === undefined) return nextLink(opened.headers?.['link']) === undefined ? ABSENT : INCONCLUSIVE;
  if (meant.length > 1) return { found: 'several', count: meant.length, ...idsOf(meant, found) };
  const names = namesIn(record, found);
  // Nothing else shows that the answer is a record at all.
  if (found.where === undefined && found.record !== undefined && names.record === undefined)
    return INCONCLUSIVE;
  const contentMatches = doAllAgree(opened, record, found.content ?? [], values);
  const proves = lookup.proves.present === 'applied' || contentMatches === true;
  return {
    found: proves ? 'present' : 'inconclusive',
    count: 1,
    ...(proves ? names : {}),
    ...(contentMatches === undefined ? {} : { contentMatches }),
  };
}

const IDS_MAX = 10;

function idsOf(records: readonly JsonValue[], found: Found): { readonly records?: readonly string[] } {
  const ids = records.slice(0, IDS_MAX).flatMap((record) => namesIn(record, found).record ?? []);
  return ids.length === 0 ? {} : { records: ids };
}

const INCONCLUSIVE: LookupReading = { found: 'inconclusive', count: 0 };
const ABSENT: LookupReading = { found: 'absent', count: 0 };

type Found = NonNullable<Lookup['found']>;

/** The records that the look-up asks for; `undefined` where the answer is not the one that the contract describes. */
function recordsMeant(
  opened: OpenedReply,
  found: Found,
  values: TemplateValues,
): readonly JsonValue[] | undefined {
  const records = recordsIn(opened, found.items);
  if (records === undefined || records.length === 0) return records;
  const meant: JsonValue[] = [];
  let isDescribed = false;
  for (const record of records) {
    const readings = (found.where ?? []).map((where) => compareIn(opened, record, where, values));
    if (readings.every((one) => one === 'agrees')) meant.push(record);
    if (!readings.includes('unreadable')) isDescribed = true;
  }
  return isDescribed ? meant : undefined;
}

function recordsIn(opened: OpenedReply, items: ReplyPlace | undefined): readonly JsonValue[] | undefined {
  const place = items === undefined ? wholeOf(opened) : placeIn(opened, items);
  if (!place.found || place.value === null) return undefined;
  if (items === undefined) return [place.value];
  if (Array.isArray(place.value)) return place.value;
  return typeof place.value === 'object' ? [place.value] : undefined;
}

function namesIn(record: JsonValue, found: Found): Names {
  const at = (pointer: string | undefined) =>
    pointer === undefined ? undefined : reading(valueAt(record, pointer));
  return named(at(found.record), at(found.version));
}

/** False as soon as one place differs; `undefined` where nothing is compared or nobody can tell. */
function doAllAgree(
  opened: OpenedReply,
  record: JsonValue,
  comparisons: readonly Comparison[],
  values: TemplateValues,
): boolean | undefined {
  if (comparisons.length === 0) return undefined;
  const readings = comparisons.map((comparison) => compareIn(opened, record, comparison, values));
  if (readings.includes('differs')) return false;
  return readings.includes('unreadable') ? undefined : true;
}

export interface StatusReading {
  readonly state: 'done' | 'failed' | 'working' | 'inconclusive';
  readonly record?: string;
}

/** How far work has come, by a resource that tells. A state that the contract does not name is work that goes on. */
export function readStatus(reply: ReadableReply, status: WorkStatus): StatusReading {
  const opened = openReply(reply);
  if (opened.kind !== 'result' || reply.doubt !== undefined) return { state: 'inconclusive' };
  const place = placeIn(opened, status.state);
  if (!place.found || typeof place.value === 'object') return { state: 'inconclusive' };
  const state = String(place.value);
  if (status.failed.includes(state)) return { state: 'failed' };
  if (!status.done.includes(state)) return { state: 'working' };
  return { state: 'done', ...named(status.record && placeIn(opened, status.record), undefined) };
}

export interface ReadBackReading {
  readonly matches: true | false | 'inconclusive';
  readonly version?: string;
}

/** Whether what was read again is what was written; an error, or a place that is not there, is inconclusive. */
export function readReadBack(
  reply: ReadableReply,
  readback: ReadBack,
  values: TemplateValues,
): ReadBackReading {
  const opened = openReply(reply);
  const whole = wholeOf(opened);
  if (opened.kind !== 'result' || !whole.found) return { matches: 'inconclusive' };
  const matches = doAllAgree(opened, whole.value, readback.matches, values) ?? 'inconclusive';
  return { matches, ...named(undefined, readback.version && placeIn(opened, readback.version)) };
}

interface Names {
  readonly record?: string;
  readonly version?: string;
}

function named(record: PlaceReading | undefined, version: PlaceReading | undefined): Names {
  const id = asName(record);
  const revision = asName(version);
  return {
    ...(id === undefined ? {} : { record: id }),
    ...(revision === undefined ? {} : { version: revision }),
  };
}

// Ids and versions are kept in histories and shown to people; what is longer is not one.
const NAME_LENGTH_MAX = 1024;

function asName(place: PlaceReading | undefined): string | undefined {
  if (place === undefined || !place.found || isRounded(place.value)) return undefined;
  const { value } = place;
  if (typeof value === 'number') return String(value);
  return typeof value === 'string' && value !== '' && value.length <= NAME_LENGTH_MAX ? value : undefined;
}
