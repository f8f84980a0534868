// Storing what the world has answered: it must not be lost by a store that is down for a moment.

import type { ToolFacts } from '../core/contract.ts';
import type { Evidence, Finding } from '../core/evidence.ts';
import type { Operation } from '../core/operation.ts';
import type { Reply } from '../destination/port.ts';
import { type ContentDocument, StoreFault } from '../store/port.ts';
import { type EngineContext, SALT_BYTES } from './context.ts';
import type { GuardTrust } from './guard-trust.ts';
import { contentDocument, nextInLine, type OperationRecord, readLocks, readOperation } from './records.ts';
import { takeStep } from './steps.ts';

export interface FindingDetails {
  readonly closes?: string;
  readonly attempt?: string | undefined;
  /** The instant that the finding is about; now, when absent. */
  readonly observedAt?: number;
  readonly documents?: readonly ContentDocument[];
  /** What becomes the operation's result; the first of the documents holds it. */
  readonly reply?: Reply | undefined;
  readonly found?: Operation['record'] | undefined;
}

const RETRY_FIRST_MS = 100;
const RETRY_MAX_MS = 5_000;

export class Recorder {
  readonly #context: EngineContext;
  readonly #trust: GuardTrust;
  #closing = false;
  /** Called with operations that may have become sendable by what was recorded. */
  onFreed: (operations: readonly string[]) => void = () => {};

  constructor(context: EngineContext, trust: GuardTrust) {
    this.#context = context;
    this.#trust = trust;
  }

  /** What cannot be stored now is given up from here on: the sweep finds its open attempt. */
  close(): void {
    this.#closing = true;
  }

  /**
   * Tried again until it is stored or this process ends; `undefined` only then.
   * @throws an assertion, when what is to be stored may not follow: a bug
   */
  async record(
    record: OperationRecord,
    finding: Finding,
    facts: ToolFacts,
    beside: FindingDetails,
  ): Promise<OperationRecord | undefined> {
    const context = this.#context;
    const observedAt = beside.observedAt ?? context.environment.now();
    const material = beside.documents?.[0]?.digest;
    context.reached('before_outcome_commit');
    let from: OperationRecord | undefined = record;
    let isFateUnknown = false;
    for (let pause = RETRY_FIRST_MS; ; pause = Math.min(pause * 2, RETRY_MAX_MS)) {
      try {
        const stored = isFateUnknown ? await this.#stored(record, finding, observedAt, beside) : undefined;
        if (stored !== undefined) return stored;
        const result = await takeStep(context, {
          id: record.operation.id,
          from,
          documents: beside.documents ?? [],
          reply: beside.reply,
          command: () => {
            const evidence: Evidence = {
              observer: context.worker,
              observedAt,
              recordedAt: context.environment.now(),
              // Spread last: V8 takes a microsecond for each member that it adds to a copy.
              ...finding,
              ...(beside.attempt === undefined ? {} : { attempt: beside.attempt }),
              ...(material === undefined ? {} : { material }),
            };
            return {
              type: 'record_evidence',
              evidence,
              facts,
              bounds: context.settings.bounds,
              ...(beside.closes === undefined ? {} : { closes: beside.closes }),
              ...(beside.reply !== undefined && material !== undefined ? { result: material } : {}),
              ...(isEmpty(beside.found) ? {} : { record: beside.found }),
            };
          },
        });
        context.reached('outcome_recorded');
        if (finding.kind === 'lookup' && finding.found === 'several')
          await this.#noticeTwo(result.record.operation);
        if (result.stored) this.onFreed(result.freed);
        return result.record;
      } catch (cause) {
        if (!(cause instanceof StoreFault)) throw cause;
        context.report(
          `The outcome of ${record.operation.id} could not be recorded and is tried again in ${pause} ms: ${cause.message}`,
        );
        if (this.#closing) return undefined;
        isFateUnknown ||= cause.fate === 'unknown';
        await new Promise<void>((resolve) => context.environment.after(pause, resolve));
        from = undefined;
      }
    }
  }

  /** One write of ours was repeated under a guard, and left more than one record. */
  async #noticeTwo({ attempts, destination, id, tool }: Operation): Promise<void> {
    if (!attempts.some(({ under }) => under !== undefined)) return;
    await this.#trust.lower({ destination, tool, operation: id, because: 'two_records' });
  }

  /** After a COMMIT of unknown fate: the operation, where the finding is in it after all. One is not told twice. */
  async #stored(
    { operation: { id } }: OperationRecord,
    { kind }: Finding,
    observedAt: number,
    { attempt, reply }: FindingDetails,
  ): Promise<OperationRecord | undefined> {
    const { store, tenant, waiters, worker } = this.#context;
    const present = await readOperation(this.#context, id);
    const isIn = present?.operation.evidence.some(
      (piece) =>
        piece.kind === kind &&
        piece.attempt === attempt &&
        piece.observer === worker &&
        piece.observedAt === observedAt,
    );
    if (present === undefined || isIn !== true) return undefined;
    const record: OperationRecord = { ...present, reply };
    const locks = await readLocks(store, tenant, record.operation.target?.locks);
    waiters.publish(record);
    this.onFreed(nextInLine(locks, record.operation));
    return record;
  }

  document(label: string, owner: string, bytes: Uint8Array): ContentDocument {
    return contentDocument(label, owner, bytes, this.#context.environment.random(SALT_BYTES));
  }
}

function isEmpty(found: Operation['record'] | undefined): found is undefined {
  return found === undefined || (found.id === undefined && found.version === undefined);
}
