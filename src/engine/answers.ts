// What a caller is answered, as a value; doors turn it into their own form with the words of `core/wording`.

import { isFoundByLookUp } from '../core/known-facts.ts';
import type { Effect } from '../core/lifecycle.ts';
import type { Operation } from '../core/operation.ts';
import type { Reply } from '../destination/port.ts';

/** Content that belongs beside the words; each door decides how to show it. */
export interface AnswerFacts {
  readonly operation: Operation;
  /** The target in words, when one is declared. */
  readonly target?: string;
  /** Other people's words about this state: a reviewer's reason, a schema problem. */
  readonly quote?: string;
  /** Top-level arguments that this call gave differently and that were not sent. */
  readonly notApplied: readonly string[];
  /** The requester of another run, when the operation belongs to one. */
  readonly otherRun?: string;
  /** Whether the operation was made by this call, and not by an equal one before it. */
  readonly isFirst?: boolean;
}

export type Answer =
  /** The destination's own reply, passed on unchanged: a first result, or one that had not been delivered. */
  | (AnswerFacts & { readonly kind: 'reply'; readonly reply: Reply })
  /** Done before; the original reply where it was kept whole. */
  | (AnswerFacts & { readonly kind: 'already_exists'; readonly reply?: Reply })
  /** This caller's own answer was lost and the record found by look-up, or it was too long to be kept whole. */
  | (AnswerFacts & { readonly kind: 'found' })
  /** Everything else: the words for the operation's state, after what the destination said when it closed it. */
  | (AnswerFacts & { readonly kind: 'state'; readonly reply?: Reply })
  /** A commit whose fate is unknown, and a store that cannot be read: it may be recorded, and sent later. */
  | { readonly kind: 'fate_unknown'; readonly operation: string }
  /** In `observe`: it was not recorded, and goes to the destination as it came. */
  | { readonly kind: 'pass'; readonly detail: string }
  /** The store cannot record: nothing was sent, and there is no operation. */
  | { readonly kind: 'not_recorded'; readonly detail: string };

/** Answers about an operation, as opposed to those that could not record one. */
export type OperationAnswer = Exclude<Answer, { kind: 'not_recorded' | 'fate_unknown' | 'pass' }>;

/** Whether the answer is about one of this caller's own: only then is its delivery the operation's. */
export function ownOperation(answer: Answer): Operation | undefined {
  if (answer.kind === 'not_recorded' || answer.kind === 'fate_unknown' || answer.kind === 'pass') {
    return undefined;
  }
  return answer.otherRun === undefined ? answer.operation : undefined;
}

/** Whether the destination has answered, with whatever; only then is there a reply to be given. */
export function isAnswered({ effect }: Operation): boolean {
  return isLanded(effect) || effect === 'rejected' || effect === 'error_reported';
}

function isLanded(effect: Effect): boolean {
  return effect === 'accepted' || effect === 'verified';
}

/** The answer about a closed operation to a caller who is not given the reply itself. */
export function closedAnswer(
  facts: AnswerFacts,
  reply: Reply | undefined,
  caller: { readonly isFirst: boolean; readonly isRequester: boolean },
): OperationAnswer {
  const { operation, otherRun } = facts;
  if (!isLanded(operation.effect)) {
    const isTold = isAnswered(operation) && reply !== undefined && otherRun === undefined;
    return { ...facts, kind: 'state', ...(isTold ? { reply } : {}) };
  }
  if (!caller.isRequester) return { ...facts, kind: 'already_exists' };
  if (caller.isFirst && (reply === undefined || isFoundByLookUp(operation)))
    return { ...facts, kind: 'found' };
  return { ...facts, kind: 'already_exists', ...(reply === undefined ? {} : { reply }) };
}

/** The stored form of a reply: its kind and code beside the raw text. */
export function encodeReply(reply: Reply): Uint8Array {
  const head = JSON.stringify({
    kind: reply.kind,
    ...(reply.code === undefined ? {} : { code: reply.code }),
    ...(reply.truncated === undefined ? {} : { truncated: reply.truncated }),
    ...(reply.headers === undefined ? {} : { headers: reply.headers }),
    ...(reply.doubt === undefined ? {} : { doubt: reply.doubt }),
  });
  return Buffer.from(`${head}\n${reply.body}`, 'utf8');
}

export function decodeReply(bytes: Uint8Array): Reply {
  const text = Buffer.from(bytes).toString('utf8');
  const end = text.indexOf('\n');
  const head = JSON.parse(text.slice(0, end)) as Omit<Reply, 'body'>;
  return { ...head, body: text.slice(end + 1) };
}
