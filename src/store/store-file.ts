// The file in a data directory that names a store elsewhere: then the ledger is there, and its key here.

import { readFileSync } from 'node:fs';
import { mkdir, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { StoreFault } from './port.ts';
import { isPostgresAddress } from './postgres/address.ts';
import { WAIVABLE, type Waivable } from './postgres/settings.ts';

export const STORE_FILE = 'store.json';

export interface NamedStore {
  /** `postgres://user@host:port/database`. */
  readonly url: string;
  /** The ledger that was there when it was named. */
  readonly ledger?: string;
  /** Settings of the server that may be unsafe. */
  readonly waived?: readonly Waivable[];
}

/**
 * `undefined` where the directory names none.
 * @throws {StoreFault} for a file that cannot be used: there is no telling where the ledger is then
 */
export function readStoreFile(data: string): NamedStore | undefined {
  const file = join(data, STORE_FILE);
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    // Without a directory, and in the place of memory, there is no such file.
    if (code === 'ENOENT' || code === 'ENOTDIR') return undefined;
    throw unusable(file, `it cannot be read (${code ?? 'unknown'})`, cause);
  }
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    // The parser would repeat what it has read.
    throw unusable(file, 'it is not JSON');
  }
  const problem = findProblem(value);
  if (problem !== undefined) throw unusable(file, problem);
  return value as NamedStore;
}

function findProblem(value: unknown): string | undefined {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return 'it is no object';
  const { url, ledger, waived = [], ...others } = value as { readonly [name: string]: unknown };
  const [unknown] = Object.keys(others);
  if (unknown !== undefined) return `it has "${unknown}", which is unknown`;
  if (typeof url !== 'string' || !isPostgresAddress(url)) return 'its url does not begin with postgres://';
  if (ledger !== undefined && typeof ledger !== 'string') return 'its ledger is no text';
  const isKnown = (name: unknown) => WAIVABLE.some((known) => known === name);
  if (!Array.isArray(waived) || !waived.every(isKnown))
    return `it waives something else than ${WAIVABLE.join(', ')}`;
  return undefined;
}

function unusable(file: string, why: string, cause?: unknown): StoreFault {
  return new StoreFault('ERR_STORE_UNAVAILABLE', `The store was not opened: ${file} names it, and ${why}.`, {
    fate: 'not_stored',
    cause,
  });
}

/** A password may be in it: nobody else reads it. */
export async function writeStoreFile(data: string, named: NamedStore): Promise<void> {
  await mkdir(data, { recursive: true, mode: 0o700 });
  const file = join(data, STORE_FILE);
  await writeFile(`${file}.new`, `${JSON.stringify(named, undefined, 2)}\n`, { mode: 0o600, flush: true });
  await rename(`${file}.new`, file);
}
