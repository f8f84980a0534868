// The recorded operations that a command looks through, the newest first, in pages and up to a bound that is told.

import { idInstant } from '../core/ids.ts';
import type { Operation } from '../core/operation.ts';
import type { Ledger } from '../engine/ledger.ts';
import { say } from './output.ts';

const PAGE = 500;
const OPERATIONS_MAX = 20_000;

/** @param since instant (ms since the epoch) of the oldest that is wanted */
export async function readOperations(
  ledger: Ledger,
  since = 0,
): Promise<{ readonly operations: readonly Operation[]; readonly isCut: boolean }> {
  const operations: Operation[] = [];
  for (let before: string | undefined; ; ) {
    const page = await ledger.readings.recent(PAGE, before);
    for (const operation of page) {
      if ((idInstant(operation.id) ?? 0) < since) return { operations, isCut: false };
      operations.push(operation);
    }
    before = page.at(-1)?.id;
    if (page.length < PAGE) return { operations, isCut: false };
    if (operations.length >= OPERATIONS_MAX) {
      say(`counterfoil: Only the ${operations.length} newest operations were looked at; there are more.`);
      return { operations, isCut: true };
    }
  }
}
