// The real store with a test between it and the engine: what is stored is real, what is reported may not be.

import { type Change, type Store, StoreFault } from '../../src/store/port.ts';
import { ReopeningStore } from '../../src/store/reopening-store.ts';
import { openSqliteStore } from '../../src/store/sqlite/sqlite-store.ts';
import { openStoreIn } from './places.ts';

export type Verbs = Partial<Omit<Store, 'durability' | 'commits'>>;

/** `verbs` gets the store itself and stands in for what it names. */
export function between(store: Store, verbs: (inner: Store) => Verbs): Store {
  const own = verbs(store);
  return new Proxy(store, {
    get(target, name) {
      const replaced: unknown = Reflect.get(own, name);
      if (replaced !== undefined) return replaced;
      const member: unknown = Reflect.get(target, name, target);
      return typeof member === 'function' ? member.bind(target) : member;
    },
  });
}

export async function memoryStore(verbs: (inner: Store) => Verbs): Promise<Store> {
  return between(await openSqliteStore({ file: ':memory:' }), verbs);
}

/** One more connection to the ledger of a data directory. */
export async function storeIn(data: string, verbs: (inner: Store) => Verbs): Promise<Store> {
  return between(await openStoreIn(data), verbs);
}

/** The same, opened again after each fault of unknown fate, as a running ledger's is. */
export function reopeningStoreIn(data: string, verbs: (inner: Store) => Verbs): Store {
  return new ReopeningStore(() => storeIn(data, verbs));
}

/** Work is looked through in every tick, as if others committed all the time: tests need not wait for a scan. */
export function inEveryTick(): Verbs {
  let commits = 0;
  return { foreignCommits: async () => (commits += 1) };
}

export function storeFault(fate: StoreFault['fate']): StoreFault {
  return new StoreFault('ERR_STORE_UNAVAILABLE', 'The disk does not answer.', { fate });
}

/** Whether these are the first change of an operation. */
export function isProposal(changes: readonly Change[]): boolean {
  return changes.some((change) => (change.claims ?? []).length > 0);
}

/** Whether these show that a worker lives. */
export function isBeat(changes: readonly Change[]): boolean {
  return changes.some((change) => change.writes.some((write) => write.stream.startsWith('worker:')));
}

/** Resolves when it is so; looks every few milliseconds, and fails after ten seconds. */
export async function eventually(isSo: () => boolean | Promise<boolean>, what: string): Promise<void> {
  const endsAt = Date.now() + 10_000;
  while (!(await isSo())) {
    if (Date.now() > endsAt) throw new Error(`It did not come to this: ${what}.`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}
