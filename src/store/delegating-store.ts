// A store in front of another one: what a class of this kind does not do in its own way, the other one does.

import type { Change, ChangeResult, Durability, Store } from './port.ts';

export abstract class DelegatingStore implements Store {
  protected readonly inner: Store;

  constructor(inner: Store) {
    this.inner = inner;
  }

  get durability(): Durability {
    return this.inner.durability;
  }

  get commits(): number {
    return this.inner.commits;
  }

  commit(changes: readonly Change[]): Promise<readonly ChangeResult[]> {
    return this.inner.commit(changes);
  }

  read(...args: Parameters<Store['read']>): ReturnType<Store['read']> {
    return this.inner.read(...args);
  }

  latestClaims(...args: Parameters<Store['latestClaims']>): ReturnType<Store['latestClaims']> {
    return this.inner.latestClaims(...args);
  }

  crossRun(...args: Parameters<Store['crossRun']>): ReturnType<Store['crossRun']> {
    return this.inner.crossRun(...args);
  }

  history(...args: Parameters<Store['history']>): ReturnType<Store['history']> {
    return this.inner.history(...args);
  }

  live(...args: Parameters<Store['live']>): ReturnType<Store['live']> {
    return this.inner.live(...args);
  }

  streams(...args: Parameters<Store['streams']>): ReturnType<Store['streams']> {
    return this.inner.streams(...args);
  }

  documents(...args: Parameters<Store['documents']>): ReturnType<Store['documents']> {
    return this.inner.documents(...args);
  }

  foreignCommits(): Promise<number> {
    return this.inner.foreignCommits();
  }

  close(): Promise<void> {
    return this.inner.close();
  }
}
