// Opens the database file so that a commit means what the port says, and reads each setting back.
//
// A setting that is not in force is refused: a store that only believes itself durable is the fault that this
// program exists to prevent.

import { closeSync, existsSync, fsyncSync, mkdirSync, openSync } from 'node:fs';
import { dirname } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { StoreFault } from '../port.ts';
import type { SqliteConnection, SqliteDriver } from './driver.ts';
import { causeOf, isBusy } from './faults.ts';
import { lockPauseMs } from './handle.ts';
import { ensureSchema } from './schema.ts';

export const IN_MEMORY = ':memory:';

/**
 * How long one call may sleep inside SQLite for a lock. The event loop stands still for that time, so it is
 * short, and the rest of the waiting is done outside.
 */
const BUSY_TIMEOUT_MS = 10;

/**
 * SQLite's own. Half of what a commit writes are leaves of the claims, of which each claim dirties another one; with
 * 8 KiB a lone caller's operation takes 7 % longer, sixteen callers' 5 %, and those of 64 as long.
 */
const PAGE_BYTES = 4_096;

/**
 * A checkpoint is due when the write-ahead log has this many pages (4 MiB). The log is then written over from
 * its start and never cut: blocks that exist are synced in half the time of blocks that must be allocated, so
 * there is no journal_size_limit and no truncating checkpoint. A larger figure was measured to give the same
 * mean cost and longer slowest commits.
 */
const CHECKPOINT_PAGES = 1_000;

/**
 * Pages that stay in memory. A full transaction dirties some 6 MiB; with SQLite's default of 2 MiB it spills,
 * and writes a tenth more pages and reads two thirds more.
 */
const CACHE_KIB = 16_384;

interface Setting {
  readonly name: string;
  readonly value: string | number;
  /** What reading it back must give, where that differs from the value that was set. */
  readonly reads?: string | number;
  readonly words?: string;
}

function settingsFor(file: string): readonly Setting[] {
  const settings: Setting[] = [
    { name: 'busy_timeout', value: BUSY_TIMEOUT_MS },
    { name: 'journal_mode', value: file === IN_MEMORY ? 'memory' : 'wal' },
    { name: 'synchronous', value: 'FULL', reads: 2, words: 'full' },
    { name: 'foreign_keys', value: 'ON', reads: 1, words: 'on' },
    { name: 'trusted_schema', value: 'OFF', reads: 0, words: 'off' },
    { name: 'wal_autocheckpoint', value: CHECKPOINT_PAGES },
    { name: 'cache_size', value: -CACHE_KIB },
  ];
  // Reading through a memory map turns an I/O error into a crash, and a stray write into a damaged file.
  if (file !== IN_MEMORY) settings.push({ name: 'mmap_size', value: 0 });
  // fsync on macOS does not reach the medium.
  if (process.platform === 'darwin') {
    for (const name of ['fullfsync', 'checkpoint_fullfsync']) {
      settings.push({ name, value: 'ON', reads: 1, words: 'on' });
    }
  }
  return settings;
}

export interface OpenedDatabase {
  readonly connection: SqliteConnection;
  /** Each setting as it was read back, in words. */
  readonly settings: { readonly [name: string]: string };
}

/**
 * Creates directory, file and tables where they are absent.
 * @throws {StoreFault} `ERR_STORE_UNAVAILABLE` where the place cannot be used, `ERR_STORE_UNSAFE` where a
 *   setting is not in force, `ERR_STORE_VERSION` where the file needs newer code. Each names the path.
 */
export async function openDatabase(options: {
  readonly file: string;
  readonly driver: SqliteDriver;
  readonly lockWaitMs: number;
}): Promise<OpenedDatabase> {
  const { file, driver, lockWaitMs } = options;
  if (file !== IN_MEMORY) preparePlace(file);
  let connection: SqliteConnection | undefined;
  try {
    const opened = driver.open(file);
    connection = opened;
    const deadline = performance.now() + lockWaitMs;
    const settings = await whenNotBusy(deadline, () => applySettings(opened, file));
    await whenNotBusy(deadline, () => ensureSchema(opened, file));
    return { connection, settings };
  } catch (error) {
    connection?.close();
    throw error instanceof StoreFault ? error : unusable(file, causeOf(error), error);
  }
}

function applySettings(connection: SqliteConnection, file: string): { readonly [name: string]: string } {
  // It counts while a file has no page yet; one that has keeps its own, which is not wrong.
  connection.exec(`PRAGMA page_size = ${PAGE_BYTES}`);
  const readBack: Record<string, string> = {};
  for (const { name, value, reads = value, words = String(reads) } of settingsFor(file)) {
    connection.exec(`PRAGMA ${name} = ${value}`);
    const row = connection.prepare(`PRAGMA ${name}`).get() as Record<string, unknown> | undefined;
    const found = row === undefined ? undefined : Object.values(row)[0];
    if (found !== reads) {
      throw new StoreFault(
        'ERR_STORE_UNSAFE',
        `The store at ${file} was not opened: ${name} should be ${words} and reads back as ${String(found)}, ` +
          'so a commit might not survive a power loss. Move the store to a local disk.',
        { fate: 'not_stored' },
      );
    }
    readBack[name] = words;
  }
  return readBack;
}

async function whenNotBusy<T>(deadline: number, work: () => T): Promise<T> {
  for (;;) {
    try {
      return work();
    } catch (error) {
      if (!isBusy(error) || performance.now() >= deadline) throw error;
      await delay(lockPauseMs());
    }
  }
}

/** A directory and a file that only their owner can read; SQLite gives its log the file's own mode. */
function preparePlace(file: string): void {
  const directory = dirname(file);
  try {
    const created = mkdirSync(directory, { recursive: true, mode: 0o700 });
    if (created !== undefined) syncDirectory(dirname(created));
    const isNew = !existsSync(file);
    closeSync(openSync(file, 'a', 0o600));
    if (isNew) syncDirectory(directory);
  } catch (error) {
    throw unusable(file, placeProblem(file, directory, error as NodeJS.ErrnoException), error);
  }
}

/** A new name survives a power loss only once its directory was synced. Windows cannot, and need not. */
function syncDirectory(directory: string): void {
  if (process.platform === 'win32') return;
  const descriptor = openSync(directory, 'r');
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

function placeProblem(file: string, directory: string, error: NodeJS.ErrnoException): string {
  switch (error.code) {
    case 'EACCES':
    case 'EPERM':
      if (existsSync(file)) return `this user may not write ${file}`;
      return existsSync(directory)
        ? `this user may not write in ${directory}`
        : `this user may not create ${directory}`;
    case 'EROFS':
      return `${directory} is on a file system that is read-only`;
    case 'EEXIST':
    case 'ENOTDIR':
      return `a part of ${directory} is a file, not a directory`;
    case 'EISDIR':
      return `${file} is a directory, not a file`;
    case 'ENOSPC':
    case 'EDQUOT':
      return 'the disk is full';
    default:
      return error.message;
  }
}

function unusable(file: string, problem: string, cause: unknown): StoreFault {
  return new StoreFault('ERR_STORE_UNAVAILABLE', `The store at ${file} could not be opened: ${problem}.`, {
    fate: 'not_stored',
    cause,
  });
}
