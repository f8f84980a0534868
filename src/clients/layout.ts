// How a configuration is laid out, so that what is put into it looks like the rest.

import type { Node } from 'jsonc-parser';
import { propertiesOf } from './entries.ts';

/** The value of a member. */
export function member(entry: Node, name: string): Node | undefined {
  return propertiesOf(entry).find((each) => each.name === name)?.value;
}

/** What separates a new member from the one before: a line of its own where that has one. */
export function gapBefore(text: string, entry: Node, value: Node): string {
  return gapTo(text, entry, value.parent?.offset ?? value.offset);
}

/** The same for a list or an object and its first item. */
export function gapBetween(text: string, whole: Node, first: Node): string {
  return gapTo(text, whole, first.offset);
}

function gapTo(text: string, whole: Node, offset: number): string {
  const gap = /\n[ \t]*$/.exec(text.slice(whole.offset + 1, offset));
  return gap === null ? ' ' : `${lineEndOf(text)}${gap[0].slice(1)}`;
}

function lineEndOf(text: string): string {
  return text.includes('\r\n') ? '\r\n' : '\n';
}
