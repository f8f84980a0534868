// What `init` has changed in other programs' files, kept in the data directory before each change is made, so that
// `leave` can take it back. Lines are only ever added.

import { randomBytes } from 'node:crypto';
import { mkdir, open, readFile, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import type { EntryChange } from './change.ts';
import type { ClientId } from './places.ts';

/** One entry that `init` was about to change; whether it did is seen in the file. */
export interface GuardedEntry extends EntryChange {
  readonly id: string;
  /** Milliseconds since 1970. */
  readonly at: number;
  readonly client: ClientId;
  readonly title: string;
  /** The file as it was looked for: links are followed again. */
  readonly file: string;
  /** The destination's name. */
  readonly name: string;
  /** From `launchDigest`: the same server is given the same name again. */
  readonly launch: string;
  /** The file as it was, whole, in the data directory. */
  readonly backup: string;
}

type Line =
  | ({ readonly event: 'guarded' } & GuardedEntry)
  | { readonly event: 'left'; readonly id: string; readonly at: number };

export const JOURNAL_FILE = 'clients.jsonl';
const BACKUP_FOLDER = 'client-backups';

export interface Journal {
  /** In the order in which they were guarded; those that were left are not among them. */
  readonly guarded: readonly GuardedEntry[];
  /** Every name that was ever given, with the launch that it was given for. */
  readonly names: ReadonlyMap<string, string>;
  /** Lines that cannot be read: one was cut by a crash, or somebody has edited the file. */
  readonly unreadable: number;
}

/** @throws when the journal exists and cannot be read */
export async function readJournal(data: string): Promise<Journal> {
  const guarded = new Map<string, GuardedEntry>();
  const names = new Map<string, string>();
  let unreadable = 0;
  for (const text of (await journalText(data)).split('\n')) {
    if (text === '') continue;
    const line = parseLine(text);
    if (line === undefined) unreadable += 1;
    else if (line.event === 'left') guarded.delete(line.id);
    else {
      const { event: _, ...entry } = line;
      guarded.set(entry.id, entry);
      names.set(entry.name, entry.launch);
    }
  }
  return { guarded: [...guarded.values()], names, unreadable };
}

async function journalText(data: string): Promise<string> {
  try {
    return await readFile(join(data, JOURNAL_FILE), 'utf8');
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === 'ENOENT') return '';
    throw cause;
  }
}

function parseLine(text: string): Line | undefined {
  try {
    const line = JSON.parse(text) as Line;
    if (typeof line.id !== 'string') return undefined;
    if (line.event === 'left') return line;
    const { path, before, after, file, name } = line;
    const isWhole =
      Array.isArray(path) && [before, after, file, name].every((each) => typeof each === 'string');
    return line.event === 'guarded' && isWhole ? line : undefined;
  } catch {
    return undefined;
  }
}

export async function recordGuarded(
  data: string,
  entries: readonly Omit<GuardedEntry, 'id'>[],
): Promise<void> {
  await append(
    data,
    entries.map((entry) => ({ event: 'guarded', id: randomBytes(8).toString('hex'), ...entry })),
  );
}

export async function recordLeft(data: string, ids: readonly string[], at: number): Promise<void> {
  await append(
    data,
    ids.map((id) => ({ event: 'left', id, at })),
  );
}

/** Two commands at once add their lines one after the other; on the disk before anything else is done. */
async function append(data: string, lines: readonly Line[]): Promise<void> {
  await mkdir(data, { recursive: true, mode: 0o700 });
  const handle = await open(join(data, JOURNAL_FILE), 'a', 0o600);
  try {
    // A line that a crash has cut must not take the next one with it: each begins on a line of its own.
    await handle.appendFile(lines.map((line) => `\n${JSON.stringify(line)}`).join('') + '\n');
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/** Keeps the bytes of a file as they are. @returns where */
export async function keepBackup(data: string, file: string, bytes: Buffer, at: number): Promise<string> {
  const folder = join(data, BACKUP_FOLDER);
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const stamp = new Date(at).toISOString().replace(/[:.]/g, '');
  const path = join(folder, `${stamp}-${randomBytes(3).toString('hex')}-${basename(file)}`);
  await writeFile(path, bytes, { mode: 0o600, flag: 'wx', flush: true });
  return path;
}
