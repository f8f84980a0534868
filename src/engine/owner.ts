// The owner's passphrase in the ledger: when it was set, and each try counted before it is judged, so that two
// processes cannot guess side by side.

import { isOwnersFile, type OwnerState, pauseBeforeTry } from '../core/owner.ts';
import type { Json } from '../store/port.ts';
import type { EngineContext } from './context.ts';

const STREAM = 'owner:passphrase';

export type TryPermit = { readonly may: true } | { readonly may: false; readonly waitMs: number };

export class Owner {
  readonly #context: EngineContext;

  constructor(context: EngineContext) {
    this.#context = context;
  }

  /** `undefined` where no passphrase was ever set. */
  async state(): Promise<OwnerState | undefined> {
    return (await this.#read()).state;
  }

  /** Whether the passphrase may be tried now; the try is counted as a wrong one until `right` is told. */
  async beginTry(): Promise<TryPermit> {
    for (;;) {
      const { state, version } = await this.#read();
      if (state === undefined) throw new Error('Assertion: a passphrase is tried that was never set.');
      const at = this.#context.environment.now();
      const waitMs = pauseBeforeTry(state, at);
      if (waitMs > 0) return { may: false, waitMs };
      const next = { ...state, wrong: state.wrong + 1, triedAt: at };
      if (await this.#write(next, version, { type: 'passphrase_tried', at })) return { may: true };
    }
  }

  /** The last try was right. */
  async right(): Promise<void> {
    for (;;) {
      const { state, version } = await this.#read();
      if (state === undefined || state.wrong === 0) return;
      const at = this.#context.environment.now();
      if (await this.#write({ ...state, wrong: 0 }, version, { type: 'passphrase_right', at })) return;
    }
  }

  /** Another file is about to take the place of this one. @returns false when that is not the owner's any more */
  async announce(next: string, replaces: string): Promise<boolean> {
    const { state, version } = await this.#read();
    if (state === undefined || !isOwnersFile(state, replaces)) return false;
    const at = this.#context.environment.now();
    return this.#write({ ...state, file: replaces, next }, version, { type: 'passphrase_changes', at });
  }

  /**
   * @param file SHA-256 of the file that holds it
   * @param replaces the file that it takes the place of; `undefined` for the first
   * @returns false when it is not that one any more
   */
  async set(file: string, by: string, replaces: string | undefined): Promise<boolean> {
    const { state, version } = await this.#read();
    if (
      state === undefined ? replaces !== undefined : replaces === undefined || !isOwnersFile(state, replaces)
    ) {
      return false;
    }
    const at = this.#context.environment.now();
    const type = replaces === undefined ? 'passphrase_set' : 'passphrase_changed';
    return this.#write({ file, setBy: by, setAt: at, wrong: 0, triedAt: at }, version, { type, at, by });
  }

  async #read(): Promise<{ readonly state: OwnerState | undefined; readonly version: number }> {
    const [record] = await this.#context.store.read(this.#context.tenant, [STREAM]);
    return { state: record?.state as unknown as OwnerState | undefined, version: record?.version ?? 0 };
  }

  async #write(
    state: OwnerState,
    expectedVersion: number,
    event: { readonly [name: string]: Json },
  ): Promise<boolean> {
    const { environment, store, tenant } = this.#context;
    const write = { stream: STREAM, expectedVersion, events: [event], state: state as unknown as Json };
    const [result] = await store.commit([{ tenant, at: environment.now(), writes: [write] }]);
    return result?.outcome === 'stored';
  }
}
