// What somebody who asked for it is told of causes: opened, changed, closed. Ids and counts, and nothing of content.

import type { CauseCounts, CauseGroup, CauseKind } from './cause.ts';

export type NoticeType = 'cause.opened' | 'cause.changed' | 'cause.closed';

/** What was told last of a cause. */
export interface ToldCause {
  readonly kind: CauseKind;
  readonly destination: string;
  /** The instant at which it was first told. */
  readonly openedAt: number;
  /** The instant of the last notice about it. */
  readonly toldAt: number;
  readonly counts: CauseCounts;
}

export type ToldCauses = { readonly [cause: string]: ToldCause };

export interface CauseNotice {
  readonly type: NoticeType;
  readonly cause: string;
  readonly told: ToldCause;
}

/** They come and go with every write, and nobody has to do anything about them. */
const NOT_TOLD: readonly CauseKind[] = ['on_its_way', 'other_first', 'limit'];

export function isTold({ cause }: CauseGroup): boolean {
  return !NOT_TOLD.includes(cause.kind);
}

/** An outage catches one operation after the other: its counts are told this often at most. */
const CHANGED_PAUSE_MS = 5_000;

/**
 * @param told what was told before
 * @param isCut true where more is open than was looked at: then what was not seen is not over
 * @param lasting ids of causes that were there a moment ago too: one that has gone by itself at once opens nothing
 */
export function noticesOf(
  told: ToldCauses,
  groups: readonly CauseGroup[],
  lasting: ReadonlySet<string>,
  at: number,
  isCut = false,
): {
  readonly notices: readonly CauseNotice[];
  readonly told: ToldCauses;
  /** Whether something has changed that is not told yet. */
  readonly isBehind: boolean;
} {
  const notices: CauseNotice[] = [];
  let isBehind = false;
  const next: { [cause: string]: ToldCause } = {};
  for (const { cause, counts } of groups.filter(isTold)) {
    const { destination, id, kind } = cause;
    const before = Object.hasOwn(told, id) ? told[id] : undefined;
    if (before === undefined && !lasting.has(id)) continue;
    const now: ToldCause = { kind, destination, openedAt: before?.openedAt ?? at, toldAt: at, counts };
    if (before === undefined) {
      next[id] = now;
      notices.push({ type: 'cause.opened', cause: id, told: now });
      continue;
    }
    const hasChanged = !isSame(before.counts, counts);
    const isTooSoon = at - before.toldAt < CHANGED_PAUSE_MS;
    next[id] = hasChanged && !isTooSoon ? now : before;
    isBehind ||= hasChanged && isTooSoon;
    if (hasChanged && !isTooSoon) notices.push({ type: 'cause.changed', cause: id, told: now });
  }
  for (const [id, before] of Object.entries(told)) {
    if (Object.hasOwn(next, id) || groups.some(({ cause }) => cause.id === id)) continue;
    if (isCut) {
      next[id] = before;
      continue;
    }
    notices.push({ type: 'cause.closed', cause: id, told: { ...before, counts: NONE } });
  }
  return { notices, told: next, isBehind };
}

const NONE: CauseCounts = { neverSent: 0, found: 0, needsPerson: 0, goesOn: 0, approvalsExpired: 0 };

function isSame(one: CauseCounts, other: CauseCounts): boolean {
  return (Object.keys(NONE) as (keyof CauseCounts)[]).every((count) => one[count] === other[count]);
}
