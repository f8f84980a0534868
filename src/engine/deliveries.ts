// Which answers have reached their callers. The mark travels with the next commit or after a moment: losing it
// only means that an equal call is given the original result once more, never a second write (D6, "Delivered").

import { decide } from '../core/decide.ts';
import { StoreFault } from '../store/port.ts';
import type { EngineContext } from './context.ts';
import { asRecord, type OperationRecord, streamOf } from './records.ts';
import { describe } from './reports.ts';
import type { AnswersOut } from './waiters.ts';

const FLUSH_MS = 50;
/** A transaction that is no longer than those of many callers. */
const MARKS_PER_CHANGE = 512;

export class Deliveries {
  readonly #context: EngineContext;
  readonly #pending: AnswersOut['delivered'];
  #cancelTimer: (() => void) | undefined;

  constructor(context: EngineContext) {
    this.#context = context;
    this.#pending = context.answersOut.delivered;
  }

  /** @param record the operation as it was answered, where it is at hand: it saves reading it again */
  add(operation: string, record?: OperationRecord): void {
    this.#pending.set(operation, record);
    this.#cancelTimer ??= this.#context.environment.after(FLUSH_MS, () => {
      this.#cancelTimer = undefined;
      void this.flush();
    });
  }

  /** A new round has an answer that has yet to be given. */
  forget(operation: string): void {
    this.#pending.delete(operation);
  }

  /** Stores what is pending; what cannot be stored now is dropped, which is safe. */
  async flush(): Promise<void> {
    this.#cancelTimer?.();
    this.#cancelTimer = undefined;
    if (this.#pending.size === 0) return;
    const batch = [...this.#pending];
    try {
      await this.#mark(await this.#records(batch));
    } catch (cause) {
      if (!(cause instanceof StoreFault)) throw cause;
      this.#context.report(
        `That ${batch.length} answers were given could not be recorded: ${describe(cause)}`,
      );
    } finally {
      for (const [id] of batch) this.#pending.delete(id);
    }
  }

  async #records(
    batch: readonly (readonly [string, OperationRecord | undefined])[],
  ): Promise<readonly OperationRecord[]> {
    const { store, tenant } = this.#context;
    const unread = batch.flatMap(([id, record]) => (record === undefined ? [streamOf(id)] : []));
    const read = unread.length === 0 ? [] : await store.read(tenant, unread);
    return [
      ...batch.flatMap(([, record]) => record ?? []),
      ...read.flatMap((record) => (record === undefined ? [] : [asRecord(record)])),
    ];
  }

  async #mark(records: readonly OperationRecord[]): Promise<void> {
    const { environment, store, tenant } = this.#context;
    const at = environment.now();
    const marks = records
      .filter(({ operation }) => decide(operation, { type: 'deliver' }, at).events !== undefined)
      .map(({ operation, version }) => ({ stream: streamOf(operation.id), version }));
    for (let from = 0; from < marks.length; from += MARKS_PER_CHANGE) {
      await store.commit([{ tenant, at, writes: [], marks: marks.slice(from, from + MARKS_PER_CHANGE) }]);
    }
  }
}
