// What SQLite's error codes mean for a store: whether to try again, to give up this call, or to trust nothing more.

/** SQLite's primary result code, where the error is the engine's. */
export function sqliteCode(error: unknown): number | undefined {
  const code = (error as { readonly errcode?: unknown } | null | undefined)?.errcode;
  return typeof code === 'number' ? code & 0xff : undefined;
}

const BUSY = 5;
const PROTOCOL = 15;
const IOERR = 10;
const CORRUPT = 11;
const NOTADB = 26;

/** Another process holds a lock that it will let go of; nothing was done. */
export function isBusy(error: unknown): boolean {
  const code = sqliteCode(error);
  return code === BUSY || code === PROTOCOL;
}

/**
 * After these the connection is not to be believed. After a failed fsync the kernel may have marked pages
 * clean that never reached the disk, and SQLite goes on over them; a transaction that was reported as failed
 * has been found present after opening again.
 */
export function isPoisonous(error: unknown): boolean {
  const code = sqliteCode(error);
  return code === IOERR || code === CORRUPT || code === NOTADB;
}

const CAUSES: ReadonlyMap<number, string> = new Map([
  [BUSY, 'another process holds its lock'],
  [7, 'there is not enough memory'],
  [8, 'it may not be written'],
  [IOERR, 'the disk reported an error'],
  [CORRUPT, 'the file is damaged'],
  [13, 'the disk is full'],
  [14, 'the file cannot be opened'],
  [PROTOCOL, 'another process holds its lock'],
  [18, 'a value is too large'],
  [23, 'access was refused'],
  [NOTADB, 'the file is not a SQLite database'],
]);

/** A clause that completes "… because": the meaning of the code, then the engine's own words. */
export function causeOf(error: unknown): string {
  const words = error instanceof Error ? error.message : String(error);
  const code = sqliteCode(error);
  const cause = code === undefined ? undefined : CAUSES.get(code);
  return cause === undefined ? words : `${cause} (SQLite ${code}: ${words})`;
}
