// One step of one operation: decide, store by compare-and-append, tell those who wait. Everything that changes
// an operation after its proposal goes through here.

import { type Command, decide, type RefusalCode } from '../core/decide.ts';
import type { Operation } from '../core/operation.ts';
import type { Reply } from '../destination/port.ts';
import type { ContentDocument, Requirement, StreamWrite } from '../store/port.ts';
import type { EngineContext } from './context.ts';
import {
  type LockRecords,
  nextInLine,
  type OperationRecord,
  openEntries,
  readLocks,
  readOperation,
  withDelivery,
  writesOf,
} from './records.ts';
import { STOPS_STREAM } from './stops-in-force.ts';

export type StepResult =
  | { readonly stored: true; readonly record: OperationRecord; readonly freed: readonly string[] }
  | { readonly stored: false; readonly refusal: RefusalCode; readonly record: OperationRecord };

export interface Step {
  readonly id: string;
  /** The state to start from, when the caller has it; it is read when absent or no longer the present one. */
  readonly from?: OperationRecord | undefined;
  /** Built anew for each state that it is decided on, with the locks as they are then. */
  readonly command: (operation: Operation, locks: LockRecords) => Command;
  readonly documents?: readonly ContentDocument[];
  /** The reply that becomes the operation's result by this step. */
  readonly reply?: Reply | undefined;
  /** The only version that it may be decided on: what a person had seen. Another one refuses as `changed`. */
  readonly onlyAt?: number;
  /** What it was decided by beside the operation: where that has changed, it refuses as `changed`. */
  readonly requires?: readonly Requirement[];
  /** Other streams that change in the same commit. */
  readonly beside?: () => Promise<readonly StreamWrite[]>;
  /** Something leaves after it: only while no stop has come that was not known when it was decided (I8). */
  readonly isSending?: boolean;
}

/** After this many tries a step makes room for those that overtake it. */
const PATIENT_TRIES = 20;
const PAUSE_MS = 5;

/** @throws {StoreFault} as the store gives it; nothing was decided for the caller then. */
export async function takeStep(context: EngineContext, step: Step): Promise<StepResult> {
  const { store, tenant, environment } = context;
  let from = step.from;
  // Without end: what a destination has answered must be recorded, however often others come first.
  for (let tries = 1; ; tries += 1) {
    if (tries > PATIENT_TRIES)
      await new Promise<void>((resolve) => environment.after(PAUSE_MS, resolve, true));
    from ??= await readOperation(context, step.id);
    if (from === undefined) throw new Error(`Assertion: operation ${step.id} is not in the ledger.`);
    if (step.onlyAt !== undefined && from.version !== step.onlyAt) {
      return { stored: false, refusal: 'changed', record: from };
    }
    const at = environment.now();
    // Else the mark would come too late for the version that it is about.
    from = withDelivery(context, from);
    const locks = await readLocks(store, tenant, from.operation.target?.locks);
    // The stops that it is decided under, whatever is heard of them before it is stored.
    const stops = step.isSending === true ? [context.stops.requirement] : [];
    const requires = [...stops, ...(step.requires ?? [])];
    const decision = decide(from.operation, step.command(from.operation, locks), at);
    if (decision.events === undefined) return { stored: false, refusal: decision.refusal, record: from };
    const { operation, writes } = writesOf({
      before: from,
      events: decision.events,
      locks,
      worker: context.worker,
    });
    const [result] = await store.commit([
      {
        tenant,
        at,
        crossRun: openEntries(from.operation, operation),
        writes: step.beside === undefined ? writes : [...writes, ...(await step.beside())],
        ...(requires.length === 0 ? {} : { requires }),
        ...(step.documents === undefined ? {} : { documents: step.documents }),
      },
    ]);
    if (result?.outcome === 'stored') {
      const record: OperationRecord = {
        version: from.version + 1,
        operation,
        reply: step.reply ?? from.reply,
      };
      context.waiters.publish(record);
      return { stored: true, record, freed: nextInLine(locks, operation) };
    }
    if (result?.outcome === 'stale' && result.stream === STOPS_STREAM) await context.stops.refresh();
    if (result?.outcome === 'stale' && step.requires?.some(({ stream }) => stream === result.stream)) {
      return { stored: false, refusal: 'changed', record: from };
    }
    from = undefined;
  }
}
