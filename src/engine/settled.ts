// Which operations of one requester have settled since it was last looked: found by their ids, which are in order of time,
// and kept until they settle, so that none is missed by a restart.

import { idInstant } from '../core/ids.ts';
import { isUnsettled, type Operation, type OperationId } from '../core/operation.ts';
import type { EngineContext } from './context.ts';
import { asRecord, streamOf } from './records.ts';

export interface Settling {
  /** Everything up to this one has been looked at, once and for all. */
  readonly after: OperationId | null;
  /** Not settled yet, in order of arrival. */
  readonly open: readonly OperationId[];
  /** Told, of those that are looked at again. */
  readonly told: readonly OperationId[];
}

/** Processes do not have the same clock: what is younger is looked at again. */
const AGAIN_MS = 60_000;
const PAGE = 200;
/** Of one requester so many are waited for; of older ones it is not told. */
const OPEN_MAX = 1_000;

/** `undefined` where nothing is new. What there was before anybody was to be told is not told. */
export async function settledSince(
  context: EngineContext,
  requester: string,
  known: Settling | undefined,
  now: number,
): Promise<{ readonly settling: Settling; readonly settled: readonly Operation[] } | undefined> {
  const { store, tenant } = context;
  if (known === undefined) {
    const [newest] = await store.streams({ tenant, kind: 'op', newest: true, limit: 1 });
    const after = newest === undefined ? null : asRecord(newest).operation.id;
    return { settling: { after, open: [], told: [] }, settled: [] };
  }
  let { after } = known;
  const seen = new Set([...known.open, ...known.told]);
  const open = [...known.open];
  for (let from = after; ; ) {
    const page = await store.streams({
      tenant,
      kind: 'op',
      limit: PAGE,
      ...(from === null ? {} : { after: streamOf(from) }),
    });
    for (const record of page) {
      const { id, requester: whose } = asRecord(record).operation;
      from = id;
      if ((idInstant(id) ?? now) < now - AGAIN_MS) after = id;
      if (whose === requester && !seen.has(id)) open.push(id);
    }
    if (page.length < PAGE) break;
  }
  const settled = (await read(context, open)).filter(isSettled);
  const done = new Set(settled.map(({ id }) => id));
  const isYoung = (id: OperationId): boolean => after === null || id > after;
  const settling: Settling = {
    after,
    open: open.filter((id) => !done.has(id)).slice(-OPEN_MAX),
    told: [...known.told, ...done].filter(isYoung),
  };
  const isSame = JSON.stringify(settling) === JSON.stringify(known);
  return isSame ? undefined : { settling, settled };
}

async function read(context: EngineContext, ids: readonly OperationId[]): Promise<readonly Operation[]> {
  if (ids.length === 0) return [];
  const records = await context.store.read(context.tenant, ids.map(streamOf));
  return records.flatMap((record) => (record === undefined ? [] : [asRecord(record).operation]));
}

/** Closed, and what became of it is established; what a person closed as unknown has not settled. */
function isSettled(operation: Operation): boolean {
  return operation.stage === 'closed' && !isUnsettled(operation) && operation.effect !== 'diverged';
}
