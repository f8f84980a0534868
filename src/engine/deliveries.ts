// Which answers have reached their callers. The mark travels with the next commit or after a moment: losing it
// only means that an equal call is given the original result once more, never a second write (D6, "Delivered").

import { StoreFault } from '../store/port.ts';
import type { EngineContext } from './context.ts';
import type { OperationRecord } from './records.ts';
import { describe } from './reports.ts';
import { takeStep } from './steps.ts';
import type { AnswersOut } from './waiters.ts';

const FLUSH_MS = 50;

export class Deliveries {
  readonly #context: EngineContext;
  readonly #pending: AnswersOut['delivered'];
  #cancelTimer: (() => void) | undefined;

  constructor(context: EngineContext) {
    this.#context = context;
    this.#pending = context.answersOut.delivered;
  }

  has(operation: string): boolean {
    return this.#pending.has(operation);
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
    const batch = [...this.#pending];
    await Promise.all(
      batch.map(async ([id, from]) => {
        try {
          await takeStep(this.#context, { id, from, command: () => ({ type: 'deliver' }) });
        } catch (cause) {
          if (!(cause instanceof StoreFault)) throw cause;
          this.#context.report(`That ${id} was answered could not be recorded: ${describe(cause)}`);
        } finally {
          this.#pending.delete(id);
        }
      }),
    );
  }
}
