// Reading and replacing one file that belongs to somebody else: whole or not at all, and with nothing lost.

import { randomBytes } from 'node:crypto';
import { constants } from 'node:fs';
import {
  access,
  chmod,
  chown,
  lstat,
  open,
  readdir,
  readFile,
  realpath,
  rename,
  rm,
  stat,
} from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';

const BYTES_MAX = 64 * 1024 * 1024;
const BOM = '\uFEFF';

export interface ClientFile {
  /** As it was looked for. */
  readonly path: string;
  /** The file itself, behind any links: this one is written, and the links stay. */
  readonly target: string;
  readonly bytes: Buffer;
  /** Without the mark at its start that some editors leave; `encoded` puts it back. */
  readonly text: string;
  readonly hasBom: boolean;
}

export type ReadFileResult =
  | { readonly found: 'file'; readonly file: ClientFile }
  | { readonly found: 'nothing' }
  /** It is there, and cannot be used: the end of a sentence. */
  | { readonly found: 'obstacle'; readonly problem: string };

export async function readClientFile(path: string): Promise<ReadFileResult> {
  try {
    const target = await realpath(path);
    const about = await stat(target);
    if (!about.isFile()) return { found: 'obstacle', problem: 'it is no file' };
    if (about.size > BYTES_MAX) return { found: 'obstacle', problem: 'it is larger than 64 MiB' };
    const bytes = await readFile(target);
    const decoded = decode(bytes);
    if (decoded === undefined) return { found: 'obstacle', problem: 'it is not text in UTF-8' };
    return { found: 'file', file: { path, target, bytes, ...decoded } };
  } catch (cause) {
    return readObstacle(path, cause as NodeJS.ErrnoException);
  }
}

async function readObstacle(path: string, cause: NodeJS.ErrnoException): Promise<ReadFileResult> {
  switch (cause.code) {
    case 'ENOENT':
    case 'ENOTDIR':
      return (await isLink(path))
        ? { found: 'obstacle', problem: 'it is a link to a file that does not exist' }
        : { found: 'nothing' };
    case 'EACCES':
    case 'EPERM':
      return { found: 'obstacle', problem: 'this account may not read it' };
    case 'ELOOP':
      return { found: 'obstacle', problem: 'it is a link that leads to itself' };
    default:
      return { found: 'obstacle', problem: cause.message };
  }
}

async function isLink(path: string): Promise<boolean> {
  try {
    return (await lstat(path)).isSymbolicLink();
  } catch {
    return false;
  }
}

function decode(bytes: Buffer): { readonly text: string; readonly hasBom: boolean } | undefined {
  try {
    const text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
    return text.startsWith(BOM) ? { text: text.slice(1), hasBom: true } : { text, hasBom: false };
  } catch {
    return undefined;
  }
}

export function encoded(text: string, { hasBom }: Pick<ClientFile, 'hasBom'>): Buffer {
  return Buffer.from(hasBom ? BOM + text : text, 'utf8');
}

/** Why a file could not be replaced now, as the end of a sentence; `undefined` where nothing is in the way. */
export async function findWriteObstacle(target: string): Promise<string | undefined> {
  // Replacing needs the folder's permission alone; a file that its owner has closed stays as it is all the same.
  if (!(await mayWrite(target))) return 'this account may not write it';
  if (!(await mayWrite(dirname(target)))) return 'this account may not write in its folder';
  const { nlink } = await stat(target);
  if (nlink > 1) return 'it has a second name (a hard link), under which the old text would stay';
  return undefined;
}

async function mayWrite(path: string): Promise<boolean> {
  try {
    await access(path, constants.W_OK);
    return true;
  } catch {
    return false;
  }
}

export type ReplaceResult =
  | { readonly replaced: true }
  | { readonly replaced: false; readonly reason: 'changed' }
  | { readonly replaced: false; readonly reason: 'obstacle'; readonly problem: string };

export interface Replacement {
  readonly file: ClientFile;
  readonly bytes: Buffer;
  /** Tests only: called when the new file is complete beside the old one. */
  readonly staged?: () => Promise<void> | void;
}

/**
 * Puts new bytes in the place of the file as it was read. A reader sees the old file or the new one, and a crash
 * leaves one of them whole. Mode and owner stay; access lists and extended attributes of the old file do not.
 */
export async function replaceClientFile({ file, bytes, staged }: Replacement): Promise<ReplaceResult> {
  const { target } = file;
  const staging = join(dirname(target), stagingName(basename(target)));
  try {
    const problem = await findWriteObstacle(target);
    if (problem !== undefined) return { replaced: false, reason: 'obstacle', problem };
    await removeLeftovers(target);
    const about = await stat(target);
    // Nobody else may read it before it has the mode of the file that it replaces: secrets are in there.
    const handle = await open(staging, 'wx', 0o600);
    try {
      await handle.writeFile(bytes);
      await handle.sync();
    } finally {
      await handle.close();
    }
    const made = await stat(staging);
    if (made.uid !== about.uid || made.gid !== about.gid) await chown(staging, about.uid, about.gid);
    await chmod(staging, about.mode & 0o7777);
    await staged?.();
    // The moment between this look and the rename is the only one in which another's change could be lost.
    if (!(await readFile(target)).equals(file.bytes)) return { replaced: false, reason: 'changed' };
    await rename(staging, target);
    await syncFolder(dirname(target));
    return { replaced: true };
  } catch (cause) {
    return { replaced: false, reason: 'obstacle', problem: writeProblem(cause as NodeJS.ErrnoException) };
  } finally {
    await rm(staging, { force: true });
  }
}

function writeProblem({ code, message }: NodeJS.ErrnoException): string {
  switch (code) {
    case 'EACCES':
    case 'EPERM':
      return 'this account may not replace it with its owner and mode kept';
    case 'ENOSPC':
    case 'EDQUOT':
      return 'the disk is full';
    case 'EROFS':
      return 'the file system is read-only';
    case 'ENOENT':
      return 'it is gone';
    default:
      return message;
  }
}

const STAGING_PREFIX = '.counterfoil-staging';

function stagingName(name: string): string {
  return `${STAGING_PREFIX}-${randomBytes(6).toString('hex')}-${name}`;
}

/** A write takes a moment; what is older was left by a process that died, is never read, and may hold secrets. */
const LEFTOVER_AGE_MS = 600_000;

async function removeLeftovers(target: string): Promise<void> {
  for (const path of await findLeftovers(target)) await rm(path, { force: true });
}

/** Half-written files of earlier runs that died. */
export async function findLeftovers(target: string): Promise<readonly string[]> {
  const folder = dirname(target);
  const found: string[] = [];
  for (const name of await readdir(folder)) {
    if (!name.startsWith(`${STAGING_PREFIX}-`) || !name.endsWith(`-${basename(target)}`)) continue;
    const about = await stat(join(folder, name)).catch(() => undefined);
    if (about !== undefined && Date.now() - about.mtimeMs > LEFTOVER_AGE_MS) found.push(join(folder, name));
  }
  return found;
}

/** The new name itself is on the disk only when its folder is. Windows has no such call. */
async function syncFolder(folder: string): Promise<void> {
  try {
    const handle = await open(folder, 'r');
    try {
      await handle.sync();
    } finally {
      await handle.close();
    }
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    if (code !== 'EISDIR' && code !== 'EPERM' && code !== 'EINVAL' && code !== 'EACCES') throw cause;
  }
}
