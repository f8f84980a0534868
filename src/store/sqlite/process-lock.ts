// One process of those that share a data directory, by a lock that the operating system takes back when its
// process ends in whatever way: an exclusive transaction on an empty database.

import { loadSqliteDriver } from './driver.ts';
import { isBusy } from './faults.ts';

export interface ProcessLock {
  release(): void;
}

/**
 * @returns `undefined` where another process has it
 * @throws where the file cannot be made or read
 */
export async function takeProcessLock(file: string): Promise<ProcessLock | undefined> {
  const driver = await loadSqliteDriver();
  const connection = driver.open(file);
  try {
    connection.exec('PRAGMA busy_timeout = 0');
    connection.exec('BEGIN EXCLUSIVE');
  } catch (cause) {
    connection.close();
    if (isBusy(cause)) return undefined;
    throw cause;
  }
  return { release: () => connection.close() };
}
