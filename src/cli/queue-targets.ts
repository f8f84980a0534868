// What an act on the queue is about: operations that were named, a cause with the digest of its list, or a list that
// was kept in a file.

import { readFileSync } from 'node:fs';
import { type FrozenList, frozenList, type ListedOperation } from '../core/frozen-list.ts';
import { isCauseId } from '../core/queue-wording.ts';
import type { Ledger } from '../engine/ledger.ts';
import type { ActTarget } from '../engine/queue-acts.ts';
import { reasonOf } from './gateway-setup.ts';
import { printable } from './lines.ts';
import { CommandFault, EXIT } from './output.ts';
import { listOf, noSuchCause } from './queue.ts';
import { toType } from './starter.ts';

export interface TargetOptions {
  readonly digest?: string;
  readonly list?: string;
}

export interface Targets {
  readonly targets: readonly ActTarget[];
  /** True for a list: what of it an act is not about is not told one by one. */
  readonly isList: boolean;
}

export const NAMED = /^(op_[0-9A-Z]{1,40})(?:@(\d{1,15}))?$/;
const LIST_MAX_BYTES = 16 * 1024 * 1024;

/** @throws {CommandFault} where nothing is named, or a list is not what was looked at */
export async function targetsOf(
  ledger: Ledger,
  named: readonly string[],
  options: TargetOptions,
): Promise<Targets> {
  const [first] = named;
  if (options.list !== undefined) {
    if (first !== undefined) {
      throw new CommandFault(EXIT.usage, `Both ${printable(first)} and --list were given: name one of them.`);
    }
    return { targets: readList(options.list).operations, isList: true };
  }
  if (first === undefined) {
    throw new CommandFault(
      EXIT.usage,
      'Name operations (op_…), a cause (cause_…), or a list with --list FILE.',
    );
  }
  if (!isCauseId(first)) return { targets: named.map(namedOperation), isList: false };
  if (named.length > 1) {
    throw new CommandFault(EXIT.usage, `${printable(first)} stands for its list: name nothing beside it.`);
  }
  return { targets: (await causeList(ledger, first, options.digest)).operations, isList: true };
}

function namedOperation(text: string): ActTarget {
  const [, operation, version] = NAMED.exec(text) ?? [];
  if (operation === undefined) {
    throw new CommandFault(
      EXIT.usage,
      `${printable(JSON.stringify(text))} is neither an operation (op_…, or op_…@VERSION as it was shown) nor a cause (cause_…).`,
    );
  }
  return version === undefined ? { operation } : { operation, version: Number(version) };
}

/** The cause's list, where it still is the one that was looked at. */
async function causeList(ledger: Ledger, id: string, digest: string | undefined): Promise<FrozenList> {
  const { groups } = await ledger.queue.read();
  const group = groups.find(({ cause }) => cause.id === id);
  if (group === undefined) throw noSuchCause(id);
  const list = listOf(group);
  if (digest === undefined || !/^[0-9a-f]{12,64}$/.test(digest)) {
    throw new CommandFault(
      EXIT.usage,
      `An act on ${printable(id)} wants the digest of the list that was looked at (at least its first 12 digits): ${toType(`queue show ${printable(id)}`)}, then --digest. Or give the list itself: --list FILE.`,
    );
  }
  if (!list.digest.startsWith(digest)) {
    throw new CommandFault(
      EXIT.conflict,
      `Nothing was done: the list of ${printable(id)} is not the one with that digest any more. Look again (${toType(`queue show ${printable(id)}`)}), or give the list that you looked at with --list FILE: what has changed is left out then.`,
    );
  }
  return list;
}

/** A list as `queue show --json` or `queue export` gave it. @throws {CommandFault} */
function readList(file: string): FrozenList {
  const listed = parsedList(readListText(file));
  if (listed === undefined || listed.length === 0) {
    throw new CommandFault(
      EXIT.usage,
      `${printable(file)} holds no list of operations with their versions, as ${toType('queue show CAUSE --json')} prints one.`,
    );
  }
  return frozenList(listed);
}

/** @throws {CommandFault} */
export function readListText(file: string): string {
  try {
    const bytes = readFileSync(file === '-' ? 0 : file);
    if (bytes.length > LIST_MAX_BYTES) throw new Error('it is longer than 16 MiB');
    return bytes.toString('utf8');
  } catch (cause) {
    throw new CommandFault(EXIT.usage, `The list ${printable(file)} cannot be read: ${reasonOf(cause)}.`);
  }
}

function parsedList(text: string): readonly ListedOperation[] | undefined {
  try {
    const value = JSON.parse(text) as {
      readonly list?: { readonly operations?: unknown };
      operations?: unknown;
    };
    const rows = value.list?.operations ?? value.operations;
    if (!Array.isArray(rows)) return undefined;
    return rows.map((row: unknown) => {
      const { operation, version } = row as { readonly operation?: unknown; readonly version?: unknown };
      if (typeof operation !== 'string' || !NAMED.test(operation)) throw new Error('no operation');
      if (!Number.isSafeInteger(version) || (version as number) < 1) throw new Error('no version');
      return { operation, version: version as number };
    });
  } catch {
    return undefined;
  }
}
