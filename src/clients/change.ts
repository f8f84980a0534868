// The change to one configuration as a value: which bytes, and what takes their place. Nothing else in the file
// is touched, so that comments, order, indentation and line ends stay.

import { applyEdits, type Edit, getNodeValue, modify, type Node } from 'jsonc-parser';
import { guardAddressEdits, takeOutAddress } from './change-address.ts';
import { type EntryPath, findNode, parseConfiguration, textOf } from './entries.ts';
import { gapBefore, gapBetween, member } from './layout.ts';
import { type AddressVariables, type Command, findOwnCommand, type OwnCommand } from './own-command.ts';

export interface Change {
  /** The text after it. */
  readonly text: string;
  /** In the order of the text before it; none overlaps another. */
  readonly edits: readonly Edit[];
}

/** What one entry was, and what we have made of it; both exactly as written. */
export interface EntryChange {
  readonly path: EntryPath;
  readonly before: string;
  readonly after: string;
}

export interface Guarding extends Change {
  readonly entries: readonly EntryChange[];
}

/** One entry that is to be started through us. */
export interface EntryToGuard {
  readonly path: EntryPath;
  /** The entry as it was when it was shown. */
  readonly text: string;
  /** What stands before its own command or in the place of its address, from `ownWords`. */
  readonly words: readonly string[];
  /** The variables that take up how it is reached; absent where it is started by a command. */
  readonly address?: AddressVariables | undefined;
}

/**
 * @returns the change, or the entry that is no longer as it was shown: then nothing in this file is to be written
 */
export function guardEntries(
  text: string,
  wanted: readonly EntryToGuard[],
): Guarding | { readonly differs: EntryPath } {
  const edits: Edit[] = [];
  for (const { path, text: shown, words, address } of wanted) {
    const node = nodeAt(text, path);
    if (node === undefined || textOf(text, node) !== shown) return { differs: path };
    edits.push(
      ...(address === undefined
        ? guardEdits(text, node, words)
        : guardAddressEdits(text, node, { words, address })),
    );
  }
  const changed = withEdits(text, edits);
  const entries = wanted.map(({ path, text: before }) => {
    const node = nodeAt(changed.text, path);
    if (node === undefined)
      throw new Error('Assertion: an entry is still there after its command was changed.');
    return { path, before, after: textOf(changed.text, node) };
  });
  return { ...changed, entries };
}

function withEdits(text: string, edits: readonly Edit[]): Change {
  const ordered = [...edits].sort((a, b) => a.offset - b.offset);
  return { text: applyEdits(text, ordered), edits: ordered };
}

function nodeAt(text: string, path: EntryPath): Node | undefined {
  const parsed = parseConfiguration(text);
  if (!parsed.ok) return undefined;
  const found = findNode(parsed.root, path);
  return typeof found === 'string' ? undefined : found;
}

/** The first word becomes the command; the others, and the command that was there, come before its arguments. */
function guardEdits(text: string, entry: Node, words: readonly string[]): readonly Edit[] {
  const command = member(entry, 'command');
  const args = member(entry, 'args');
  const [program, ...rest] = words;
  if (command === undefined || program === undefined) throw new Error('Assertion: a server has a command.');
  const items = [...rest, String(command.value)].map((word) => JSON.stringify(word));
  const edits: Edit[] = [
    { offset: command.offset, length: command.length, content: JSON.stringify(program) },
  ];
  const first = args?.children?.[0];
  if (args === undefined) {
    const content = `,${gapBefore(text, entry, command)}"args": [${items.join(', ')}]`;
    edits.push({ offset: command.offset + command.length, length: 0, content });
  } else if (first === undefined) {
    edits.push({ offset: args.offset + 1, length: 0, content: items.join(', ') });
  } else {
    // Each word on its own line where the others are.
    const separator = `,${gapBetween(text, args, first)}`;
    edits.push({ offset: first.offset, length: 0, content: items.map((item) => item + separator).join('') });
  }
  return edits;
}

/**
 * `restored`: exactly what it was. `taken_out`: somebody has changed the entry since, so only our words were taken
 * out of it. `not_ours`: it does not start us any more. `no_command`: somebody has made it start us with something else
 * than a command. `missing`: the entry is gone.
 */
export type Release = 'restored' | 'taken_out' | 'not_ours' | 'no_command' | 'missing';

export interface Releasing extends Change {
  /** In the order in which they were asked for. */
  readonly released: readonly Release[];
  /** The end of a sentence: the file as a whole cannot be read, and nothing is to be changed in it. */
  readonly problem?: string;
}

/** Takes back what `guardEntries` has done to some entries, whatever else was changed in the file since. */
export function releaseEntries(text: string, entries: readonly EntryChange[]): Releasing {
  if (text.trim() !== '') {
    const parsed = parseConfiguration(text);
    if (!parsed.ok) return { text, edits: [], released: [], problem: parsed.problem };
  }
  const edits: Edit[] = [];
  const released = entries.map((entry): Release => {
    const node = nodeAt(text, entry.path);
    if (node === undefined) return 'missing';
    if (textOf(text, node) === entry.after) {
      edits.push({ offset: node.offset, length: node.length, content: entry.before });
      return 'restored';
    }
    const command = commandOf(node);
    const own = command === undefined ? undefined : findOwnCommand(command);
    if (own === undefined) return 'not_ours';
    const content =
      own.inner === undefined ? withAddress(text, node, entry, own) : withoutUs(textOf(text, node), entry);
    if (content === undefined) return 'no_command';
    edits.push({ offset: node.offset, length: node.length, content });
    return 'taken_out';
  });
  return { ...withEdits(text, edits), released };
}

function commandOf(entry: Node): Command | undefined {
  const command: unknown = member(entry, 'command')?.value;
  const args = member(entry, 'args');
  const values: unknown = args === undefined ? [] : getNodeValue(args);
  if (typeof command !== 'string' || !Array.isArray(values)) return undefined;
  if (!values.every((value): value is string => typeof value === 'string')) return undefined;
  return { command, args: values };
}

/** An entry's text with its server's address again; `undefined` where it never had one, or does not say it any more. */
function withAddress(text: string, node: Node, { before }: EntryChange, own: OwnCommand): string | undefined {
  const original = nodeAt(before, []);
  if (original === undefined || own.address === undefined) return undefined;
  return takeOutAddress(textOf(text, node), original, own.address);
}

/** An entry's text with its server's own command again, and all else as it is now. */
function withoutUs(text: string, { before }: EntryChange): string {
  const entry = nodeAt(text, []);
  const command = entry === undefined ? undefined : commandOf(entry);
  const own = command === undefined ? undefined : findOwnCommand(command);
  const commandNode = entry === undefined ? undefined : member(entry, 'command');
  const args = entry === undefined ? undefined : member(entry, 'args');
  if (own?.inner === undefined || commandNode === undefined || args === undefined)
    throw new Error('Assertion: the entry starts us.');
  const program: Edit = {
    offset: commandNode.offset,
    length: commandNode.length,
    content: JSON.stringify(own.inner.command),
  };
  const left = args.children?.[own.ownWords];
  const first = args.children?.[0];
  if (left !== undefined && first !== undefined) {
    const ours: Edit = { offset: first.offset, length: left.offset - first.offset, content: '' };
    return applyEdits(text, [program, ours]);
  }
  const original = nodeAt(before, []);
  const hadArgs = original !== undefined && member(original, 'args') !== undefined;
  const noArgs = modify(text, ['args'], hadArgs ? [] : undefined, {});
  return applyEdits(applyEdits(text, noArgs), offsetOf(program, noArgs));
}

/** The command may stand behind the arguments, and then it has moved. */
function offsetOf(edit: Edit, earlier: readonly Edit[]): Edit[] {
  const moved = earlier
    .filter(({ offset }) => offset < edit.offset)
    .reduce((sum, { length, content }) => sum + content.length - length, 0);
  return [{ ...edit, offset: edit.offset + moved }];
}
