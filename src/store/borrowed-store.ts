// A store that several ledgers of one process work on: none of them closes it.

import type { Change, ChangeResult, Durability, Store } from './port.ts';

export class BorrowedStore implements Store {
  readonly #store: Store;

  constructor(store: Store) {
    this.#store = store;
  }

  get durability(): Durability {
    return this.#store.durability;
  }

  get commits(): number {
    return this.#store.commits;
  }

  commit(changes: readonly Change[]): Promise<readonly ChangeResult[]> {
    return this.#store.commit(changes);
  }

  read(...args: Parameters<Store['read']>): ReturnType<Store['read']> {
    return this.#store.read(...args);
  }

  latestClaims(...args: Parameters<Store['latestClaims']>): ReturnType<Store['latestClaims']> {
    return this.#store.latestClaims(...args);
  }

  crossRun(...args: Parameters<Store['crossRun']>): ReturnType<Store['crossRun']> {
    return this.#store.crossRun(...args);
  }

  history(...args: Parameters<Store['history']>): ReturnType<Store['history']> {
    return this.#store.history(...args);
  }

  live(...args: Parameters<Store['live']>): ReturnType<Store['live']> {
    return this.#store.live(...args);
  }

  streams(...args: Parameters<Store['streams']>): ReturnType<Store['streams']> {
    return this.#store.streams(...args);
  }

  documents(...args: Parameters<Store['documents']>): ReturnType<Store['documents']> {
    return this.#store.documents(...args);
  }

  foreignCommits(): Promise<number> {
    return this.#store.foreignCommits();
  }

  /** Its owner closes it. */
  async close(): Promise<void> {}
}
