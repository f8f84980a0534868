// By which of its names an operation is found: ids of ours whole or from their beginning, and the names that a
// destination, an orchestrator or a tracer gave.

import type { Operation } from './operation.ts';

/** Where the words that were looked for stand. */
export type FoundBy =
  | 'operation'
  | 'run'
  | 'review'
  | 'attempt'
  | 'record'
  | 'call'
  | 'reference'
  | 'digest'
  | 'target'
  | 'content';

/** Shorter beginnings of an id would fit too much. */
const PREFIX_MIN = 4;
const DIGEST_PREFIX_MIN = 12;
const OUR_ID = /^(op|rev|att)_[0-9A-Za-z]*$/i;

/** @param words what was typed; an address is taken apart, because a record may be named by its last part */
export function foundBy(operation: Operation, words: string): FoundBy | undefined {
  const wanted = words.trim();
  if (wanted === '') return undefined;
  if (OUR_ID.test(wanted) && wanted.length >= PREFIX_MIN) {
    const isPrefixOf = (id: string): boolean => id.toLowerCase().startsWith(wanted.toLowerCase());
    if (isPrefixOf(operation.id)) return 'operation';
    if (operation.review !== undefined && isPrefixOf(operation.review.id)) return 'review';
    return operation.attempts.some(({ id }) => isPrefixOf(id)) ? 'attempt' : undefined;
  }
  if (operation.run.id === wanted) return 'run';
  const record = operation.record?.id;
  if (record !== undefined && [wanted, lastPart(wanted)].includes(record)) return 'record';
  if (operation.replays.some((replay) => afterKind(replay) === wanted)) return 'call';
  const references = operation.references ?? [];
  if (references.some((reference) => afterKind(reference) === traceOf(wanted))) return 'reference';
  const isDigest = wanted.length >= DIGEST_PREFIX_MIN && /^[0-9a-f]+$/.test(wanted);
  return isDigest && operation.digest.startsWith(wanted) ? 'digest' : undefined;
}

/** What of an operation's content holds the words: its target's name, or anything that was sent or answered. */
export function foundInContent(
  words: string,
  content: { readonly target: readonly string[]; readonly texts: readonly string[] },
): FoundBy | undefined {
  const wanted = words.trim();
  if (wanted === '') return undefined;
  if (content.target.some((id) => id === wanted || id === lastPart(wanted))) return 'target';
  // As it stands in JSON text, where some characters are written otherwise.
  const written = JSON.stringify(wanted).slice(1, -1);
  return content.texts.some((text) => text.includes(wanted) || text.includes(written))
    ? 'content'
    : undefined;
}

/** The last part of an address, without query and fragment; '' of what is no address. */
function lastPart(words: string): string {
  const path = /^[a-z][a-z0-9+.-]*:\/\/[^/?#]*(\/[^?#]*)/i.exec(words)?.[1];
  const last = path?.split('/').findLast((part) => part !== '') ?? '';
  try {
    return decodeURIComponent(last);
  } catch {
    return last;
  }
}

/** `call:toolu_1` → `toolu_1`. */
function afterKind(name: string): string {
  return name.slice(name.indexOf(':') + 1);
}

const TRACE_PARENT = /^[0-9a-f]{2}-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}$/;

/** The trace id of a W3C `traceparent`; any other words as they are. */
export function traceOf(words: string): string {
  return TRACE_PARENT.exec(words)?.[1] ?? words;
}
