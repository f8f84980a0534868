// A change as a unified diff, for people: with the values masked that may be secrets.

import type { Edit } from 'jsonc-parser';
import { maskConfiguration } from './masking.ts';

const CONTEXT = 3;

/** Lines from and up to, not with, counted from 0; in the text before and in the text after. */
interface ChangedLines {
  readonly before: readonly [number, number];
  readonly after: readonly [number, number];
}

/** @param edits of the text before, in its order */
export function unifiedDiff(change: {
  readonly file: string;
  readonly before: string;
  readonly after: string;
  readonly edits: readonly Edit[];
}): readonly string[] {
  const { file, before, after, edits } = change;
  if (edits.length === 0) return [];
  // Masking keeps the lines: a line has the same number in the text as it is and as it is shown.
  const shownBefore = linesOf(maskConfiguration(before));
  const shownAfter = linesOf(maskConfiguration(after));
  const lines = [`--- ${file}`, `+++ ${file}`];
  const changes = changedLines(before, after, edits).map((lines) =>
    trimmed(lines, linesOf(before), linesOf(after)),
  );
  for (const hunk of hunksOf(changes)) {
    lines.push(...hunkLines(hunk, shownBefore, shownAfter));
  }
  return lines;
}

function linesOf(text: string): readonly string[] {
  const lines = text.split('\n').map((line) => line.replace(/\r$/, ''));
  // What follows the last line's end is no line.
  return lines.at(-1) === '' ? lines.slice(0, -1) : lines;
}

function changedLines(before: string, after: string, edits: readonly Edit[]): readonly ChangedLines[] {
  const merged: ChangedLines[] = [];
  let moved = 0;
  for (const { offset, length, content } of edits) {
    const from = offset + moved;
    moved += content.length - length;
    const lines: ChangedLines = {
      before: [lineAt(before, offset), lineAt(before, offset + length) + 1],
      after: [lineAt(after, from), lineAt(after, from + content.length) + 1],
    };
    const last = merged.at(-1);
    if (last !== undefined && lines.before[0] < last.before[1]) {
      merged[merged.length - 1] = {
        before: [last.before[0], Math.max(last.before[1], lines.before[1])],
        after: [last.after[0], Math.max(last.after[1], lines.after[1])],
      };
    } else merged.push(lines);
  }
  return merged;
}

/** Without the lines at either end that are the same in both texts. */
function trimmed(lines: ChangedLines, before: readonly string[], after: readonly string[]): ChangedLines {
  let [from, to] = lines.before;
  let [afterFrom, afterTo] = lines.after;
  while (from < to && afterFrom < afterTo && before[from] === after[afterFrom]) {
    from += 1;
    afterFrom += 1;
  }
  while (from < to && afterFrom < afterTo && before[to - 1] === after[afterTo - 1]) {
    to -= 1;
    afterTo -= 1;
  }
  return { before: [from, to], after: [afterFrom, afterTo] };
}

function lineAt(text: string, offset: number): number {
  let line = 0;
  for (let at = text.indexOf('\n'); at >= 0 && at < offset; at = text.indexOf('\n', at + 1)) line += 1;
  return line;
}

/** Changes whose surroundings touch are shown together. */
function hunksOf(changes: readonly ChangedLines[]): readonly (readonly ChangedLines[])[] {
  const hunks: ChangedLines[][] = [];
  for (const change of changes) {
    const last = hunks.at(-1)?.at(-1);
    if (last !== undefined && change.before[0] - last.before[1] <= 2 * CONTEXT) hunks.at(-1)?.push(change);
    else hunks.push([change]);
  }
  return hunks;
}

function hunkLines(
  hunk: readonly ChangedLines[],
  before: readonly string[],
  after: readonly string[],
): readonly string[] {
  const first = hunk[0];
  const last = hunk.at(-1);
  if (first === undefined || last === undefined) return [];
  const lead = Math.min(CONTEXT, first.before[0]);
  const from = first.before[0] - lead;
  const to = Math.min(before.length, last.before[1] + CONTEXT);
  const afterFrom = first.after[0] - lead;
  const afterTo = Math.min(after.length, last.after[1] + CONTEXT);
  const lines = [`@@ -${from + 1},${to - from} +${afterFrom + 1},${afterTo - afterFrom} @@`];
  const show = (sign: string, all: readonly string[], range: readonly [number, number]): void => {
    for (const line of all.slice(...range)) lines.push(sign + line);
  };
  let at = from;
  for (const change of hunk) {
    show(' ', before, [at, change.before[0]]);
    show('-', before, change.before);
    show('+', after, change.after);
    at = change.before[1];
  }
  show(' ', before, [at, to]);
  return lines;
}
