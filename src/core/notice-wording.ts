// What people are told of the queue in a chat or by mail: one line for each cause, in the words of the queue, and nothing
// of content. Nothing in it decides.

import type { Cause, CauseCounts } from './cause.ts';
import { causeHeading, causeSentence, countsWords } from './queue-wording.ts';

export interface ToldNotice {
  readonly type: 'cause.opened' | 'cause.changed' | 'cause.closed';
  readonly cause: Cause;
  readonly counts: CauseCounts;
}

const FIRST = { 'cause.opened': 'New', 'cause.changed': 'Now', 'cause.closed': 'Over' } as const;

export function noticeLine({ cause, counts, type }: ToldNotice): string {
  const first = `${FIRST[type]}: ${causeHeading(cause)}`;
  return type === 'cause.closed' ? `${first}.` : `${first} — ${countsWords(counts)}. ${causeSentence(cause)}`;
}

/** Of one cause only what is newest is told, where several notices of it go in one message. */
export function noticeLines(notices: readonly ToldNotice[]): readonly string[] {
  const newest = new Map(notices.map((notice) => [notice.cause.id, notice]));
  const began = new Set(notices.flatMap(({ cause, type }) => (type === 'cause.opened' ? [cause.id] : [])));
  return [...newest.values()].map((notice) =>
    // It is news to whoever reads this message, also where its counts have changed since.
    noticeLine(
      notice.type === 'cause.changed' && began.has(notice.cause.id)
        ? { ...notice, type: 'cause.opened' }
        : notice,
    ),
  );
}

/** The subject of a mail, or the first line of a message. */
export function noticeSubject(notices: readonly ToldNotice[]): string {
  const causes = new Set(notices.map(({ cause }) => cause.id)).size;
  return `Counterfoil: ${causes === 1 ? 'news of one cause' : `news of ${causes} causes`} in the queue`;
}

/** Where decisions are made: never here. */
export const NOTICE_FOOT = 'To look and to decide: counterfoil queue, where the ledger is.';
