// The way of one operation from *ready* to *closed*: claim and record the attempt, send, record what came
// back, look up, read back. Read → decide → store → touch the world, each beat in its own line.

import { canonicalJson, type JsonObject } from '../core/canonical.ts';
import type { ToolFacts } from '../core/contract.ts';
import type { Evidence, Finding } from '../core/evidence.ts';
import { lockedBy } from '../core/locks.ts';
import { isUnsettled, type Operation } from '../core/operation.ts';
import { isAbsenceProof, usableLookups } from '../core/repeatability.ts';
import { classifyReply, readLookup, readReadBack } from '../core/reply-reading.ts';
import { fillTemplate, type TemplateValues } from '../core/template.ts';
import type { AskReport, Destination, LateReply, Reply, SendReport } from '../destination/port.ts';
import { type ContentDocument, StoreFault } from '../store/port.ts';
import { encodeReply } from './answers.ts';
import { type EngineContext, newId, SALT_BYTES } from './context.ts';
import { readPayload, type StoredPayload } from './payload.ts';
import { contentDocument, type LockRecords, type OperationRecord, readOperation } from './records.ts';
import { replyTimeoutMs } from './settings.ts';
import { takeStep } from './steps.ts';

/** An attempt that this process has recorded as started and may now hand over. */
export interface StartedAttempt {
  readonly record: OperationRecord;
  readonly attempt: string;
  readonly payload: string;
  readonly facts: ToolFacts;
  /** The monotonic instant noted before the claiming transaction (D8). */
  readonly notedAt: number;
  readonly meta?: string;
}

const OUTCOME_RETRY_FIRST_MS = 100;
const OUTCOME_RETRY_MAX_MS = 5_000;

export class Sender {
  readonly #context: EngineContext;
  /** Operations that this process is carrying on with right now. */
  readonly #carried = new Set<string>();
  /** Attempts that were given to a destination; of any other attempt of ours it is proven that nothing left. */
  readonly #handedOver = new Set<string>();
  readonly #timers = new Set<() => void>();
  #closing = false;
  /** Called with operations that may have become sendable by what was done here. */
  onFreed: (operations: readonly string[]) => void = () => {};

  constructor(context: EngineContext) {
    this.#context = context;
    for (const destination of context.destinations.values()) {
      destination.onLateReply = (late) => void this.#late(destination, late);
    }
  }

  get carried(): ReadonlySet<string> {
    return this.#carried;
  }

  /** No first byte leaves after this; what is out goes on to be recorded. */
  close(): void {
    this.#closing = true;
    for (const cancel of this.#timers) cancel();
  }

  /** Hands over an attempt that was recorded in the commit of its proposal, and carries on from there. */
  async sendStarted(started: StartedAttempt): Promise<void> {
    const { id } = started.record.operation;
    this.#carried.add(id);
    try {
      await this.#carryOn(await this.#send(started));
    } finally {
      this.#carried.delete(id);
    }
  }

  /** Does what is due for an operation, until nothing is or somebody else must act. */
  async carryOn(record: OperationRecord): Promise<void> {
    const { id } = record.operation;
    if (this.#carried.has(id)) return;
    this.#carried.add(id);
    try {
      await this.#carryOn(record);
    } finally {
      this.#carried.delete(id);
    }
  }

  async #carryOn(from: OperationRecord | undefined): Promise<void> {
    let record: OperationRecord | undefined = from;
    while (record !== undefined && !this.#closing) {
      const { operation }: OperationRecord = record;
      if (operation.stage === 'ready') record = await this.#startAndSend(record);
      else if (operation.stage === 'checking') record = await this.#check(record);
      else return;
    }
  }

  // ── Sending ──────────────────────────────────────────────────────────────────────────────────────────────

  async #startAndSend(record: OperationRecord): Promise<OperationRecord | undefined> {
    const { operation } = record;
    if (operation.why?.code === 'waits_until' && this.#later(record, operation.why.until)) return undefined;
    const destination = this.#context.destinations.get(operation.destination);
    if (destination === undefined) return undefined;
    const connection = destination.isConnected()
      ? ({ connected: true } as const)
      : await destination.connect();
    const payload = await readPayload(this.#context, operation);
    await this.#context.refreshFacts();
    const facts = this.#context.factsFor(operation.destination, operation.tool, payload.arguments);
    if (facts === undefined && connection.connected) return undefined;
    const started = await this.#start(record, payload, facts, connection.connected ? '' : connection.detail);
    if (started === undefined) return undefined;
    return 'attempt' in started ? this.#send(started) : started;
  }

  /** The claim: D8's conditions, the locks and the attempt's start in one commit. */
  async #start(
    record: OperationRecord,
    payload: StoredPayload,
    facts: ToolFacts | undefined,
    connectionDetail: string,
  ): Promise<StartedAttempt | OperationRecord | undefined> {
    const context = this.#context;
    const { environment, settings } = context;
    const usedFacts = facts ?? factsUnknown(record.operation);
    const attempt = newId(context, 'att');
    const predecessor = await this.#unsettledPredecessor(record.operation);
    context.reached('before_attempt_commit');
    const notedAt = environment.monotonic();
    const at = environment.now();
    const result = await takeStep(context, {
      id: record.operation.id,
      from: record,
      command: (operation, locks) => ({
        type: 'start_attempt',
        attempt: {
          id: attempt,
          worker: context.worker,
          startedAt: at,
          sendBy: at + settings.bounds.sendByMs,
        },
        newReview: { id: newId(context, 'rev'), expiresAt: at + settings.approvalLifetimeMs },
        conditions: {
          at,
          facts: usedFacts,
          bounds: settings.bounds,
          digest: payload.digest,
          connected: facts !== undefined && connectionDetail === '',
          connectionDetail,
          lockedBy: firstLock(locks, operation.id),
          unsettledPredecessor: predecessor,
        },
      }),
    });
    this.onFreed(result.stored ? result.freed : []);
    if (!result.stored || result.record.operation.stage !== 'sending') return undefined;
    return { record: result.record, attempt, payload: payload.text, facts: usedFacts, notedAt };
  }

  async #unsettledPredecessor(operation: Operation): Promise<string | undefined> {
    if (operation.supersedes === undefined) return undefined;
    const earlier = await readOperation(this.#context.store, this.#context.tenant, operation.supersedes);
    if (earlier === undefined) return undefined;
    const isOpen = isUnsettled(earlier.operation) && earlier.operation.resolution === undefined;
    return isOpen && earlier.operation.stage !== 'closed' ? operation.supersedes : undefined;
  }

  async #send(started: StartedAttempt): Promise<OperationRecord | undefined> {
    const context = this.#context;
    const { operation } = started.record;
    const destination = context.destinations.get(operation.destination);
    context.reached('attempt_recorded');
    if (destination === undefined)
      throw new Error('Assertion: an attempt was started without a destination.');
    this.#handedOver.add(started.attempt);
    const sent = destination.send({
      operation: operation.id,
      attempt: started.attempt,
      tool: operation.tool,
      payload: started.payload,
      replyTimeoutMs: replyTimeoutMs(context.settings, started.facts),
      mayLeave: () =>
        !this.#closing &&
        context.environment.monotonic() - started.notedAt <= context.settings.bounds.sendByMs,
      ...(started.meta === undefined ? {} : { meta: started.meta }),
    });
    context.reached('bytes_left');
    const report = await sent;
    context.reached('reply_received');
    const recorded = await this.#recordReport(started, report);
    this.#handedOver.delete(started.attempt);
    return recorded;
  }

  async #recordReport(started: StartedAttempt, report: SendReport): Promise<OperationRecord | undefined> {
    const { operation } = started.record;
    const reading = readReport(report, started.facts);
    const reply = report.left === 'maybe' ? report.reply : undefined;
    const documents = reply === undefined ? [] : [this.#document('result', operation.id, encodeReply(reply))];
    return this.#record(started.record, reading.finding, started.facts, {
      closes: started.attempt,
      attempt: started.attempt,
      documents,
      reply: reply?.truncated === true ? undefined : reply,
      found: reading.found,
    });
  }

  /** A reply that came after its attempt had been given up as lost: evidence, whoever holds the claim now. */
  async #late(destination: Destination, late: LateReply): Promise<void> {
    const context = this.#context;
    try {
      const record = await readOperation(context.store, context.tenant, late.operation);
      if (record === undefined) return;
      const payload = await readPayload(context, record.operation);
      const facts = context.factsFor(destination.name, record.operation.tool, payload.arguments);
      if (facts === undefined) return;
      const reading = readReport({ left: 'maybe', ended: 'reply', reply: late.reply, detail: '' }, facts);
      const documents = [this.#document('result', late.operation, encodeReply(late.reply))];
      const stored = await this.#record(record, reading.finding, facts, {
        closes: late.attempt,
        attempt: late.attempt,
        documents,
        reply: late.reply.truncated === true ? undefined : late.reply,
        found: reading.found,
      });
      if (stored !== undefined) await this.carryOn(stored);
    } catch (cause) {
      context.report(
        `A late reply of ${destination.name} to ${late.operation} was not recorded: ${describe(cause)}`,
      );
    }
  }

  // ── Looking up and reading back ──────────────────────────────────────────────────────────────────────────

  async #check(record: OperationRecord): Promise<OperationRecord | undefined> {
    const { operation } = record;
    const context = this.#context;
    if (
      operation.why !== undefined &&
      'nextAt' in operation.why &&
      this.#later(record, operation.why.nextAt)
    ) {
      return undefined;
    }
    const destination = context.destinations.get(operation.destination);
    if (destination === undefined) return undefined;
    const payload = await readPayload(context, operation);
    const facts = context.factsFor(operation.destination, operation.tool, payload.arguments);
    if (facts === undefined) {
      // The server has not listed its tools yet; connecting makes it do so.
      await destination.connect();
      this.#later(record, context.environment.now() + OUTCOME_RETRY_FIRST_MS);
      return undefined;
    }
    return operation.why?.code === 'reading_back'
      ? this.#readBack(record, destination, facts, payload.arguments)
      : this.#lookUp(record, destination, facts, payload.arguments);
  }

  async #lookUp(
    record: OperationRecord,
    destination: Destination,
    facts: ToolFacts,
    args: JsonObject,
  ): Promise<OperationRecord | undefined> {
    const context = this.#context;
    const { operation } = record;
    const [lookup] = usableLookups(facts.operation);
    if (lookup?.tool === undefined) throw new Error(`Assertion: ${operation.id} has no look-up to make.`);
    context.reached('before_lookup');
    const values = templateValues(operation, args);
    const asked = await this.#ask(destination, lookup.tool, values, context.settings.lookUpTimeoutMs);
    context.reached('lookup_answered');
    const at = context.environment.now();
    if (!asked.answered) {
      return this.#record(record, { kind: 'lookup', found: 'inconclusive' }, facts, {
        attempt: operation.attempts.at(-1)?.id,
      });
    }
    const read = readLookup(asked.reply, lookup, values);
    const found =
      read.found === 'absent' && !isAbsenceProof(operation, lookup, facts, at) ? 'not_found' : read.found;
    const finding: Finding = {
      kind: 'lookup',
      found,
      ...(read.count === undefined ? {} : { count: read.count }),
    };
    return this.#record(record, finding, facts, {
      attempt: operation.attempts.at(-1)?.id,
      documents: [this.#document('evidence', operation.id, encodeReply(asked.reply))],
      found: {
        ...(read.record === undefined ? {} : { id: read.record }),
        ...(read.version === undefined ? {} : { version: read.version }),
      },
    });
  }

  async #readBack(
    record: OperationRecord,
    destination: Destination,
    facts: ToolFacts,
    args: JsonObject,
  ): Promise<OperationRecord | undefined> {
    const context = this.#context;
    const { operation } = record;
    const readback = facts.operation?.readback;
    if (readback === undefined) throw new Error(`Assertion: ${operation.id} has no read-back to make.`);
    context.reached('before_readback');
    const values = templateValues(operation, args);
    const asked = await this.#ask(destination, readback.tool, values, context.settings.readBackTimeoutMs);
    context.reached('readback_answered');
    const attempt = operation.attempts.at(-1)?.id;
    if (!asked.answered) {
      return this.#record(record, { kind: 'readback', matches: 'inconclusive' }, facts, { attempt });
    }
    const read = readReadBack(asked.reply, readback, values);
    const finding: Finding = {
      kind: 'readback',
      matches: read.matches,
      ...(read.matches === false ? { otherwise: 'cannot_tell' as const } : {}),
      ...(read.version === undefined ? {} : { version: read.version }),
    };
    return this.#record(record, finding, facts, {
      attempt,
      documents: [this.#document('after', operation.id, encodeReply(asked.reply))],
    });
  }

  /**
   * An attempt of this process that nobody carries on: the commit that started it was reported lost and yet
   * stored, or its way ended in a fault. Where it was never given to a destination, that is the proof that
   * nothing left; else its outcome is unknown.
   */
  async reclaim(record: OperationRecord): Promise<void> {
    const { operation } = record;
    const attempt = operation.attempts.find((one) => one.open && one.worker === this.#context.worker);
    if (attempt === undefined || this.#carried.has(operation.id)) return;
    const payload = await readPayload(this.#context, operation);
    const facts =
      this.#context.factsFor(operation.destination, operation.tool, payload.arguments) ??
      factsUnknown(operation);
    const left = this.#handedOver.has(attempt.id) ? 'maybe' : 'no';
    const finding: Finding = {
      kind: 'transport',
      left,
      what: left === 'no' ? 'never_handed_over' : 'abandoned',
    };
    const stored = await this.#record(record, finding, facts, { closes: attempt.id, attempt: attempt.id });
    this.#handedOver.delete(attempt.id);
    if (stored !== undefined) await this.carryOn(stored);
  }

  /** The claim of a worker that is gone: what it had out is unknown from now on, and looked up by us (I6). */
  async takeOver(record: OperationRecord): Promise<void> {
    const context = this.#context;
    const { operation } = record;
    const open = operation.attempts.filter((attempt) => attempt.open);
    let present: OperationRecord = record;
    for (const attempt of open) {
      const payload = await readPayload(context, operation);
      const facts = context.factsFor(operation.destination, operation.tool, payload.arguments);
      if (facts === undefined) return;
      const result = await takeStep(context, {
        id: operation.id,
        command: () => ({
          type: 'fence_attempt',
          attempt: attempt.id,
          by: context.worker,
          facts,
          bounds: context.settings.bounds,
        }),
      });
      present = result.record;
      if (result.stored) this.onFreed(result.freed);
    }
    await this.carryOn(present);
  }

  /**
   * `state` writes: whether what is at the target now is still what the operation wrote. `undefined` where
   * that cannot be read.
   */
  async isStillOurs(operation: Operation, facts: ToolFacts, args: JsonObject): Promise<boolean | undefined> {
    const destination = this.#context.destinations.get(operation.destination);
    const readback = facts.operation?.readback;
    if (destination === undefined || readback === undefined) return undefined;
    const values = templateValues(operation, args);
    const asked = await this.#ask(
      destination,
      readback.tool,
      values,
      this.#context.settings.readBackTimeoutMs,
    );
    if (!asked.answered) return undefined;
    // A complete answer that the record cannot be read is an answer: it is not there as we left it.
    if (asked.reply.kind !== 'result') return false;
    const { matches } = readReadBack(asked.reply, readback, values);
    return matches === 'inconclusive' ? undefined : matches;
  }

  async #ask(
    destination: Destination,
    question: { readonly name: string; readonly arguments: { readonly [argument: string]: unknown } },
    values: TemplateValues,
    timeoutMs: number,
  ): Promise<AskReport> {
    const filled = fillTemplate(question.arguments, values);
    if (!filled.ok) return { answered: false, detail: `no value for {${filled.missing}}` };
    if (!destination.isConnected()) {
      const connection = await destination.connect();
      if (!connection.connected) return { answered: false, detail: connection.detail };
    }
    return destination.ask({ tool: question.name, payload: canonicalJson(filled.value), timeoutMs });
  }

  // ── Recording ────────────────────────────────────────────────────────────────────────────────────────────

  /**
   * Stores a finding. What the world has answered must not be lost by a store that is down for a moment: it is
   * tried again until it is stored or this process ends (then the sweep finds the open attempt).
   */
  async #record(
    record: OperationRecord,
    finding: Finding,
    facts: ToolFacts,
    beside: {
      readonly closes?: string;
      readonly attempt?: string | undefined;
      readonly documents?: readonly ContentDocument[];
      /** What becomes the operation's result; the first of the documents holds it. */
      readonly reply?: Reply | undefined;
      readonly found?: Operation['record'] | undefined;
    },
  ): Promise<OperationRecord | undefined> {
    const context = this.#context;
    const observedAt = context.environment.now();
    const material = beside.documents?.[0]?.digest;
    context.reached('before_outcome_commit');
    for (let pause = OUTCOME_RETRY_FIRST_MS; ; pause = Math.min(pause * 2, OUTCOME_RETRY_MAX_MS)) {
      try {
        const result = await takeStep(context, {
          id: record.operation.id,
          from: pause === OUTCOME_RETRY_FIRST_MS ? record : undefined,
          documents: beside.documents ?? [],
          reply: beside.reply,
          command: () => {
            const evidence: Evidence = {
              ...finding,
              ...(beside.attempt === undefined ? {} : { attempt: beside.attempt }),
              ...(material === undefined ? {} : { material }),
              observer: context.worker,
              observedAt,
              recordedAt: context.environment.now(),
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
        if (result.stored) this.onFreed(result.freed);
        return result.record;
      } catch (cause) {
        if (!(cause instanceof StoreFault)) throw cause;
        context.report(
          `The outcome of ${record.operation.id} could not be recorded and is tried again in ${pause} ms: ${cause.message}`,
        );
        if (this.#closing) return undefined;
        await new Promise<void>((resolve) => context.environment.after(pause, resolve));
      }
    }
  }

  #document(label: string, owner: string, bytes: Uint8Array): ContentDocument {
    return contentDocument(label, owner, bytes, this.#context.environment.random(SALT_BYTES));
  }

  /** True when the instant is still to come; then this process looks again by itself at that instant. */
  #later(record: OperationRecord, at: number): boolean {
    const { environment } = this.#context;
    const ms = at - environment.now();
    if (ms <= 0) return false;
    const cancel = environment.after(ms, () => {
      this.#timers.delete(cancel);
      void this.#again(record.operation.id);
    });
    this.#timers.add(cancel);
    return true;
  }

  async #again(id: string): Promise<void> {
    try {
      const record = await readOperation(this.#context.store, this.#context.tenant, id);
      if (record !== undefined && !this.#closing) await this.carryOn(record);
    } catch (cause) {
      this.#context.report(`Operation ${id} could not be carried on: ${describe(cause)}`);
    }
  }
}

function isEmpty(found: Operation['record'] | undefined): found is undefined {
  return found === undefined || (found.id === undefined && found.version === undefined);
}

function firstLock(locks: LockRecords, operation: string): string | undefined {
  for (const lock of locks) {
    const holder = lockedBy(lock.state, operation);
    if (holder !== undefined) return holder;
  }
  return undefined;
}

function templateValues(operation: Operation, args: JsonObject): TemplateValues {
  return {
    arguments: args,
    ...(operation.stamp === undefined ? {} : { stamp: operation.stamp }),
    ...(operation.record?.id === undefined ? {} : { record: operation.record.id }),
  };
}

/** Only while the destination cannot be connected: nothing is decided from these but to wait. */
function factsUnknown(operation: Operation): ToolFacts {
  return {
    destination: operation.destination,
    tool: operation.tool,
    class: operation.toolClass,
    classSource: 'nobody',
    repeat: operation.repeat,
    checksArguments: false,
    digest: operation.factsDigest,
  };
}

/** What a report says, in the contract's words. */
function readReport(
  report: SendReport,
  facts: ToolFacts,
): { readonly finding: Finding; readonly found?: Operation['record'] } {
  if (report.left === 'no') return { finding: { kind: 'transport', left: 'no', what: report.proof } };
  if (report.reply === undefined)
    return { finding: { kind: 'transport', left: 'maybe', what: report.ended } };
  return readReply(report.reply, facts);
}

function readReply(
  reply: Reply,
  facts: ToolFacts,
): { readonly finding: Finding; readonly found?: Operation['record'] } {
  const read = classifyReply(reply, facts.operation);
  const found = {
    ...(read.record === undefined ? {} : { id: read.record }),
    ...(read.version === undefined ? {} : { version: read.version }),
  };
  switch (read.means) {
    case 'applied':
    case 'accepted':
      return { finding: { kind: 'acknowledgement', means: 'accepted' }, found };
    case 'in_progress':
      return { finding: { kind: 'acknowledgement', means: 'in_progress' }, found };
    case 'rejected':
      return { finding: { kind: 'acknowledgement', means: 'rejected' } };
    case 'rejected_temporary':
      return { finding: { kind: 'acknowledgement', means: 'rejected_temporary' } };
    case 'error':
      return { finding: { kind: 'acknowledgement', means: 'error' } };
    case 'unknown':
      return { finding: { kind: 'transport', left: 'maybe', what: 'reply_without_outcome' } };
  }
}

export function describe(cause: unknown): string {
  return cause instanceof Error ? cause.message : String(cause);
}
