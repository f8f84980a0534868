// Where the open file lies. A database that was moved, removed or replaced under an open connection takes
// commits that nobody finds again: it must take none.

import { statSync } from 'node:fs';
import { StoreFault } from '../port.ts';

/** Device and inode: what a file is, whatever it is called. */
export type FileIdentity = string;

/** `undefined` when nothing lies there. */
export function fileIdentity(file: string): FileIdentity | undefined {
  const found = statSync(file, { bigint: true, throwIfNoEntry: false });
  return found === undefined ? undefined : `${found.dev}:${found.ino}`;
}

export class Place {
  readonly #file: string;
  readonly #identity: FileIdentity | undefined;

  /** @param file an open database file, or `:memory:`, which lies nowhere */
  constructor(file: string, isInMemory: boolean) {
    this.#file = file;
    this.#identity = isInMemory ? undefined : fileIdentity(file);
  }

  /** @throws {StoreFault} when the path does not lead to the file that was opened */
  assertSame(): void {
    if (this.#identity === undefined || fileIdentity(this.#file) === this.#identity) return;
    throw movedStore(this.#file);
  }
}

export function movedStore(file: string): StoreFault {
  return new StoreFault(
    'ERR_STORE_UNAVAILABLE',
    `The store at ${file} was moved, removed or replaced while it was in use. Nothing was stored. Put the same file back, or start again.`,
    { fate: 'not_stored' },
  );
}
