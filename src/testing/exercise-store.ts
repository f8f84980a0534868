// The one suite that every store adapter passes, for any test runner.
//
// ```ts
// for (const { name, run } of exerciseStore({ name: 'sqlite', open, isDurable: true })) test(name, run);
// ```

import { randomUUID } from 'node:crypto';
import type { Store } from '../store/port.ts';
import type { CaseDefinition } from './store-cases/bench.ts';
import { callCases } from './store-cases/call-cases.ts';
import { changeCases } from './store-cases/change-cases.ts';
import { handleCases, sharedCases } from './store-cases/handle-cases.ts';
import { readingCases } from './store-cases/reading-cases.ts';

export interface StoreUnderTest {
  /** Leads the names of the places. */
  readonly name: string;
  /**
   * Opens one more handle on a place (a file, a schema …, as the adapter likes). Each case uses a place of its
   * own, which is empty at first; the suite closes every handle.
   */
  readonly open: (place: string) => Promise<Store>;
  /**
   * Whether what is stored at a place outlives its handles and is shared by them. Where it is not, the cases
   * about opening again and about two handles are left out.
   */
  readonly isDurable: boolean;
  /** Removes a place after its handles were closed. */
  readonly remove?: (place: string) => Promise<void>;
}

export interface StoreCase {
  /** A sentence. */
  readonly name: string;
  /** Rejects where the store breaks what the sentence says. */
  readonly run: () => Promise<void>;
}

/** The cases for this store. They may run in any order, and beside each other. */
export function exerciseStore(subject: StoreUnderTest): readonly StoreCase[] {
  const cases = [...changeCases, ...callCases, ...readingCases, ...handleCases];
  if (subject.isDurable) cases.push(...sharedCases);
  return cases.map((definition) => ({ name: definition.name, run: () => runCase(subject, definition) }));
}

async function runCase(subject: StoreUnderTest, definition: CaseDefinition): Promise<void> {
  const place = `${subject.name}-${randomUUID()}`;
  const handles: Store[] = [];
  const open = async () => {
    const handle = await subject.open(place);
    handles.push(handle);
    return handle;
  };
  try {
    await definition.run({ store: await open(), open });
  } finally {
    for (const handle of handles) await handle.close();
    await subject.remove?.(place);
  }
}
