// The owner's passphrase as the ledger knows it: that one was set, which file holds it, and how fast it may be tried.

/** The state of the stream `owner:passphrase`. The passphrase and its hash are elsewhere. */
export interface OwnerState {
  /** SHA-256 of the file that was written: another file is not the owner's. */
  readonly file: string;
  /** Another file that is being put in its place: a change may be broken off between the two. */
  readonly next?: string;
  readonly setBy: string;
  readonly setAt: number;
  /** Tries since the last right one. A try counts as wrong until it has proved to be right. */
  readonly wrong: number;
  readonly triedAt: number;
}

/** Whether a file with this SHA-256 is the owner's. */
export function isOwnersFile(state: OwnerState, file: string): boolean {
  return file === state.file || file === state.next;
}

const FREE_TRIES = 3;
const FIRST_PAUSE_MS = 1_000;
const PAUSE_MAX_MS = 5 * 60_000;

/**
 * How long the next try has to wait, in ms. Three mistakes cost nothing; then each doubles the pause, up to five
 * minutes. A clock that was set back only makes it longer.
 */
export function pauseBeforeTry(
  { wrong, triedAt }: Pick<OwnerState, 'wrong' | 'triedAt'>,
  at: number,
): number {
  if (wrong < FREE_TRIES) return 0;
  const pauseMs = Math.min(FIRST_PAUSE_MS * 2 ** (wrong - FREE_TRIES), PAUSE_MAX_MS);
  return Math.min(Math.max(triedAt + pauseMs - at, 0), PAUSE_MAX_MS);
}
