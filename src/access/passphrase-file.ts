// Where the owner's verifier lies: a file of its own beside the ledger, which only this account may read.

import { randomBytes } from 'node:crypto';
import { link, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { readVerifier, type Verifier } from './passphrase.ts';

export const PASSPHRASE_FILE = 'owner.passphrase';

export type VerifierReading =
  | { readonly found: true; readonly verifier: Verifier; readonly text: string }
  | { readonly found: false; readonly problem?: string };

/** @param directory the data directory. `problem`: there is a file, and it is not what was written. */
export async function readVerifierFile(directory: string): Promise<VerifierReading> {
  let text: string;
  try {
    text = await readFile(join(directory, PASSPHRASE_FILE), 'utf8');
  } catch (cause) {
    const { code, message } = cause as NodeJS.ErrnoException;
    return code === 'ENOENT' ? { found: false } : { found: false, problem: message };
  }
  const verifier = readVerifier(text);
  if (verifier === undefined) return { found: false, problem: 'it does not hold what was written there' };
  return { found: true, verifier, text };
}

/** The text that such a file holds. */
export function verifierText(verifier: Verifier): string {
  return `${JSON.stringify(verifier)}\n`;
}

/**
 * @param replaces whether an earlier file is to give way; else the first one stays
 * @returns the text that lies there now; `undefined` when another one was there first
 */
export async function writeVerifierFile(
  directory: string,
  verifier: Verifier,
  replaces: boolean,
): Promise<string | undefined> {
  const file = join(directory, PASSPHRASE_FILE);
  const fresh = `${file}.${randomBytes(6).toString('hex')}`;
  const text = verifierText(verifier);
  await writeFile(fresh, text, { mode: 0o600, flag: 'wx', flush: true });
  try {
    if (replaces) await rename(fresh, file);
    else await link(fresh, file);
    return text;
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === 'EEXIST') return undefined;
    throw cause;
  } finally {
    await rm(fresh, { force: true });
  }
}
