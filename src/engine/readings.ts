// What can be read of the ledger: one operation with its words, the queue, recent operations, a history.

import type { Operation, OperationEvent, OperationId, Review } from '../core/operation.ts';
import type { Reply } from '../destination/port.ts';
import type { StoredEvent } from '../store/port.ts';
import { decodeReply } from './answers.ts';
import type { EngineContext } from './context.ts';
import { asItWaits, type Holders } from './holders.ts';
import { readPayload, type StoredPayload, targetWords } from './payload.ts';
import { asEvent, asRecord, isUnaltered, type OperationRecord, readOperation, streamOf } from './records.ts';
import { stopStream } from './stops-in-force.ts';

/** An operation with the content that belongs beside it. */
export interface OperationReading {
  readonly operation: Operation;
  readonly payload: StoredPayload;
  readonly target: string | undefined;
  /** The reviewer's reason, what the schema said, or why an operator has stopped sending. */
  readonly quote: string | undefined;
  readonly reply: Reply | undefined;
  /** Why its caller wants a second one, in its words. */
  readonly reason: string | undefined;
  /** Where the person looked who stated a finding, in their words. */
  readonly looked: string | undefined;
  /** The review as it is shown, line by line; absent where none was stored, or what is stored is not what was. */
  readonly shown: readonly string[] | undefined;
  /** False when what is stored is no longer what was decided on. */
  readonly isIntact: boolean;
}

export interface HistoryEntry {
  readonly version: number;
  readonly recordedAt: number;
  readonly event: OperationEvent;
}

export class Readings {
  readonly #context: EngineContext;
  readonly #holders: Holders;

  constructor(context: EngineContext, holders: Holders) {
    this.#context = context;
    this.#holders = holders;
  }

  record(id: OperationId): Promise<OperationRecord | undefined> {
    return readOperation(this.#context, id);
  }

  async operation(id: OperationId): Promise<OperationReading | undefined> {
    const record = await this.record(id);
    return record === undefined ? undefined : this.reading(record.operation);
  }

  async reading(operation: Operation): Promise<OperationReading> {
    const payload = await readPayload(this.#context, operation);
    return {
      operation: await this.asItWaits(operation),
      payload,
      target: targetWords(payload.target),
      quote: await this.#quote(operation),
      reply: await this.reply(operation),
      reason: await this.#text(operation, operation.reason),
      looked: await this.#text(operation, operation.resolution?.looked),
      shown: await this.#shown(operation),
      isIntact: payload.digest === operation.digest,
    };
  }

  async asItWaits(operation: Operation): Promise<Operation> {
    const { stops } = this.#context;
    if (operation.stage === 'ready') await stops.refresh();
    return asItWaits(operation, stops, (destination) => this.#holders.isHeld(destination));
  }

  /** The destination's reply as it came, where it was kept whole. */
  async reply(operation: Operation): Promise<Reply | undefined> {
    if (operation.result === undefined) return undefined;
    const [document] = await this.#context.store.documents(this.#context.tenant, [
      { owner: streamOf(operation.id), digest: operation.result },
    ]);
    return document === undefined ? undefined : decodeReply(document.bytes);
  }

  /** The tool as it was listed when a person was asked what it is, as canonical JSON. */
  toolDefinition(operation: Operation): Promise<string | undefined> {
    return this.#text(operation, operation.toolDocument);
  }

  /** Open work, in order of arrival: what waits for a person first is the caller's to choose. */
  async open(options: {
    readonly stages?: readonly string[];
    /** Destinations; all of them where absent. */
    readonly queues?: readonly string[];
    readonly limit: number;
  }): Promise<readonly Operation[]> {
    const { store, tenant } = this.#context;
    const rows = await store.live({
      tenant,
      limit: options.limit,
      ...(options.stages === undefined ? {} : { stages: options.stages }),
      ...(options.queues === undefined ? {} : { queues: options.queues }),
    });
    const records = await store.read(
      tenant,
      rows.map((row) => row.stream),
    );
    return records.flatMap((record) => (record === undefined ? [] : [asRecord(record).operation]));
  }

  /** The newest first; with `before`, those that are older than that operation. */
  async recent(limit: number, before?: OperationId): Promise<readonly Operation[]> {
    const { store, tenant } = this.#context;
    const records = await store.streams({
      tenant,
      kind: 'op',
      newest: true,
      limit,
      ...(before === undefined ? {} : { after: streamOf(before) }),
    });
    return records.map((record) => asRecord(record).operation);
  }

  async history(id: OperationId): Promise<readonly HistoryEntry[]> {
    const events: readonly StoredEvent[] = await this.#context.store.history(
      this.#context.tenant,
      streamOf(id),
    );
    const entries = events.map(
      (stored): HistoryEntry => ({
        version: stored.version,
        recordedAt: stored.recordedAt,
        event: asEvent(stored),
      }),
    );
    const marked = await this.record(id);
    const at = marked?.deliveryMarkedAt;
    if (marked === undefined || at === undefined || marked.version !== entries.at(-1)?.version)
      return entries;
    return [...entries, { version: marked.version, recordedAt: at, event: { type: 'delivered', at } }];
  }

  /** The reviewer's reason, what the schema said, or why an operator has stopped sending. */
  async #quote(operation: Operation): Promise<string | undefined> {
    const { why } = operation;
    if (why?.code !== 'stopped' || why.reason === undefined)
      return this.#text(operation, quoteDigest(operation));
    return this.#document(stopStream(why.stop), why.reason);
  }

  async #shown({ id, review }: Operation): Promise<readonly string[] | undefined> {
    if (review?.shown === undefined) return undefined;
    const { store, tenant } = this.#context;
    const [document] = await store.documents(tenant, [{ owner: streamOf(id), digest: review.shown }]);
    if (document === undefined || !isUnaltered(document)) return undefined;
    return Buffer.from(document.bytes).toString('utf8').split('\n');
  }

  async #text(operation: Operation, digest: string | undefined): Promise<string | undefined> {
    return digest === undefined ? undefined : this.#document(streamOf(operation.id), digest);
  }

  async #document(owner: string, digest: string): Promise<string | undefined> {
    const { store, tenant } = this.#context;
    const [document] = await store.documents(tenant, [{ owner, digest }]);
    return document === undefined ? undefined : Buffer.from(document.bytes).toString('utf8');
  }
}

function quoteDigest(operation: Operation): string | undefined {
  if (operation.why?.code === 'arguments') return operation.why.problem;
  const review: Review | undefined = operation.review;
  return review?.decision?.kind === 'denied' ? review.decision.comment : undefined;
}
