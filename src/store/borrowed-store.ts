// A store that several ledgers of one process work on: none of them closes it.

import { DelegatingStore } from './delegating-store.ts';

export class BorrowedStore extends DelegatingStore {
  /** Its owner closes it. */
  override async close(): Promise<void> {}
}
