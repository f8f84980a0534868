// A store that is opened again after a fault: a poisoned handle is thrown away, and the next call works on a
// new connection. While the store cannot be opened every call fails with the reason, and nothing is recorded.

import { type Change, type ChangeResult, type Durability, type Store, StoreFault } from './port.ts';

export class ReopeningStore implements Store {
  readonly #open: () => Promise<Store>;
  #opening: Promise<Store> | undefined;
  #store: Store | undefined;
  #durability: Durability | undefined;
  #commitsBefore = 0;
  #isClosed = false;

  constructor(open: () => Promise<Store>) {
    this.#open = open;
  }

  /** Opens the store now, to learn of a fault early. @throws {StoreFault} */
  async ensureOpen(): Promise<void> {
    await this.#current();
  }

  get durability(): Durability {
    if (this.#durability === undefined) {
      throw new StoreFault('ERR_STORE_UNAVAILABLE', 'The store has not been opened yet.', {
        fate: 'not_stored',
      });
    }
    return this.#durability;
  }

  get commits(): number {
    return this.#commitsBefore + (this.#store?.commits ?? 0);
  }

  commit(changes: readonly Change[]): Promise<readonly ChangeResult[]> {
    return this.#use((store) => store.commit(changes));
  }

  read(...args: Parameters<Store['read']>): ReturnType<Store['read']> {
    return this.#use((store) => store.read(...args));
  }

  latestClaims(...args: Parameters<Store['latestClaims']>): ReturnType<Store['latestClaims']> {
    return this.#use((store) => store.latestClaims(...args));
  }

  crossRun(...args: Parameters<Store['crossRun']>): ReturnType<Store['crossRun']> {
    return this.#use((store) => store.crossRun(...args));
  }

  history(...args: Parameters<Store['history']>): ReturnType<Store['history']> {
    return this.#use((store) => store.history(...args));
  }

  live(...args: Parameters<Store['live']>): ReturnType<Store['live']> {
    return this.#use((store) => store.live(...args));
  }

  streams(...args: Parameters<Store['streams']>): ReturnType<Store['streams']> {
    return this.#use((store) => store.streams(...args));
  }

  documents(...args: Parameters<Store['documents']>): ReturnType<Store['documents']> {
    return this.#use((store) => store.documents(...args));
  }

  foreignCommits(): Promise<number> {
    return this.#use((store) => store.foreignCommits());
  }

  /** For good: a later call opens nothing. */
  async close(): Promise<void> {
    this.#isClosed = true;
    const store = this.#store ?? (await this.#opening?.catch(() => undefined));
    await store?.close();
  }

  async #use<Result>(call: (store: Store) => Promise<Result>): Promise<Result> {
    const store = this.#store ?? (await this.#current());
    try {
      return await call(store);
    } catch (cause) {
      if (cause instanceof StoreFault && (cause.fate === 'unknown' || cause.code === 'ERR_STORE_POISONED')) {
        await this.#discard(store);
      }
      throw cause;
    }
  }

  async #current(): Promise<Store> {
    if (this.#isClosed) {
      throw new StoreFault('ERR_STORE_UNAVAILABLE', 'The store was not asked: it is closed.', {
        fate: 'not_stored',
      });
    }
    if (this.#store !== undefined) return this.#store;
    this.#opening ??= this.#open().finally(() => {
      this.#opening = undefined;
    });
    const store = await this.#opening;
    this.#store = store;
    this.#durability = store.durability;
    return store;
  }

  async #discard(store: Store): Promise<void> {
    if (this.#store !== store) return;
    this.#store = undefined;
    this.#commitsBefore += store.commits;
    try {
      await store.close();
    } catch {
      // A poisoned handle may not close cleanly; what matters is that it is never used again.
    }
  }
}
