// What waits for approval in one run, as a list that a person decides on as one. It is stored when it is shown, under its
// digest: what is decided later is decided on that list, and not on what the run has become since.

import { mayBeListed } from '../core/authority.ts';
import { type FrozenList, frozenList, type ListedOperation } from '../core/frozen-list.ts';
import type { Operation } from '../core/operation.ts';
import type { Json, StreamRecord } from '../store/port.ts';
import type { EngineContext } from './context.ts';
import { asRecord, type OperationRecord } from './records.ts';

/** What is kept of a list: what was shown, and the one decision on it, once there is one. */
export interface ShownList {
  readonly run: string;
  readonly shownAt: number;
  readonly operations: readonly ListedOperation[];
  readonly decision?: Json;
}

export interface RunList extends FrozenList {
  readonly run: string;
  readonly records: readonly OperationRecord[];
  /** They wait for a person too, and are asked something else than whether to send: each wants an answer of its own. */
  readonly apart: readonly Operation[];
  /** More wait than a list may hold; these are the oldest. */
  readonly isCut: boolean;
}

const LISTED_MAX = 500;
const LOOKED_AT_MAX = 10_000;

export class RunLists {
  readonly #context: EngineContext;

  constructor(context: EngineContext) {
    this.#context = context;
  }

  /** The run's list as it is now, kept for whoever decides on it. */
  async show(run: string): Promise<RunList> {
    const waiting = await this.#waiting(run);
    const records = waiting.filter(({ operation }) => isListed(operation));
    const listed = records.slice(0, LISTED_MAX);
    const list = frozenList(listed.map(({ operation, version }) => ({ operation: operation.id, version })));
    if (listed.length > 0) await this.#keep(run, list);
    return {
      ...list,
      run,
      records: listed,
      apart: waiting.flatMap(({ operation }) => (isListed(operation) ? [] : [operation])),
      isCut: records.length > listed.length,
    };
  }

  /** A list of this run that was shown, by at least the beginning of its digest; `undefined` where none was. */
  async shown(run: string, digest: string): Promise<FrozenList | undefined> {
    const { store, tenant } = this.#context;
    // In the order of their names: the first that is not before it, if it begins with it.
    const [exact] = await store.read(tenant, [listStream(digest)]);
    const [next] = await store.streams({ tenant, kind: KIND, after: listStream(digest), limit: 1 });
    const record = exact ?? next;
    if (record?.stream.startsWith(listStream(digest)) !== true) return undefined;
    const { operations, run: its } = shownIn(record);
    return its === run ? frozenList(operations) : undefined;
  }

  /** Of this run, and not in the list: they came since, or were asked something else. */
  async since(run: string, list: FrozenList): Promise<readonly Operation[]> {
    const listed = new Set(list.operations.map(({ operation }) => operation));
    const waiting = await this.#waiting(run);
    return waiting.flatMap(({ operation }) => (listed.has(operation.id) ? [] : [operation]));
  }

  async #waiting(run: string): Promise<readonly OperationRecord[]> {
    const { store, tenant } = this.#context;
    const rows = await store.live({ tenant, stages: ['awaiting_approval'], limit: LOOKED_AT_MAX });
    const records = await store.read(
      tenant,
      rows.map(({ stream }) => stream),
    );
    return records
      .flatMap((record) => (record === undefined ? [] : [asRecord(record)]))
      .filter(({ operation }) => operation.run.id === run && operation.stage === 'awaiting_approval')
      .toSorted((one, other) => (one.operation.id < other.operation.id ? -1 : 1));
  }

  async #keep(run: string, { digest, operations }: FrozenList): Promise<void> {
    const { environment, store, tenant } = this.#context;
    const at = environment.now();
    const state: ShownList = { run, shownAt: at, operations };
    // Where it was shown before, it is there.
    await store.commit([
      {
        tenant,
        at,
        writes: [
          {
            stream: listStream(digest),
            expectedVersion: 0,
            events: [{ type: 'list_shown', run, operations } as unknown as Json],
            state: state as unknown as Json,
          },
        ],
      },
    ]);
  }
}

const KIND = 'shown';

export function listStream(digest: string): string {
  return `${KIND}:${digest}`;
}

export function shownIn(record: StreamRecord): ShownList {
  return record.state as unknown as ShownList;
}

function isListed({ review }: Operation): boolean {
  return review !== undefined && mayBeListed(review.question);
}
