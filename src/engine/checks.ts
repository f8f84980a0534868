// Asking the destination what became of a write: look-ups and read-backs, by tools that only read.

import { askableNow } from '../core/askable.ts';
import { canonicalJson, type JsonObject } from '../core/canonical.ts';
import type { Lookup, ToolFacts } from '../core/contract.ts';
import type { Finding } from '../core/evidence.ts';
import { keyOf, presentMembers } from '../core/http-request.ts';
import type { Operation } from '../core/operation.ts';
import { isAbsenceProof, usableLookups } from '../core/repeatability.ts';
import { readLookup, readReadBack } from '../core/reply-reading.ts';
import type { SeenState } from '../core/review-text.ts';
import { fillTemplate, type TemplateValues } from '../core/template.ts';
import { presentQuestion, readTouched } from '../core/touched-state.ts';
import { unlikeMeans } from '../core/written-version.ts';
import type { AskReport, Destination, Reply } from '../destination/port.ts';
import { encodeReply } from './answers.ts';
import { type Circuits, isItsOwn } from './circuits.ts';
import type { EngineContext } from './context.ts';
import { readPayload } from './payload.ts';
import type { Recorder } from './recorder.ts';
import type { OperationRecord } from './records.ts';
import { factsUnknown, type ReportReading, readWork, recordOf } from './reports.ts';
import { takeStep } from './steps.ts';

/** What was asked, and when: an answer tells of the moment at which the question left, or of a later one. */
type Asked =
  | { readonly answered: true; readonly askedAt: number; readonly reply: Reply }
  | { readonly answered: false };

export class Checks {
  readonly #context: EngineContext;
  readonly #recorder: Recorder;
  readonly #circuits: Circuits;

  constructor(context: EngineContext, recorder: Recorder, circuits: Circuits) {
    this.#context = context;
    this.#recorder = recorder;
    this.#circuits = circuits;
  }

  /**
   * The look-up or read-back that is due. `later`: the tool is not known yet, because its server does not
   * answer; there is nothing to record.
   */
  async check(
    record: OperationRecord,
    destination: Destination,
  ): Promise<OperationRecord | 'later' | undefined> {
    const context = this.#context;
    const { operation } = record;
    const { arguments: args } = await readPayload(context, operation);
    let facts = context.factsFor(operation.destination, operation.tool, args);
    if (facts === undefined) {
      // Connecting makes the server list its tools; one that is still missing then can be asked nothing.
      const connection = await destination.connect('question');
      if (!connection.connected) return 'later';
      facts = context.factsFor(operation.destination, operation.tool, args) ?? factsUnknown(operation);
    }
    if (operation.why?.code === 'reading_back') {
      if (facts.operation?.readback !== undefined) return this.#readBack(record, destination, facts, args);
    } else {
      facts = askableNow(facts, operation);
      const [lookup] = usableLookups(facts.operation);
      if (lookup !== undefined) return this.#lookUp(record, destination, facts, lookup, args);
    }
    return this.#reconsidered(record, facts);
  }

  /** What was to be asked can be asked no more: a contract has changed, or a tool is gone. */
  async #reconsidered(record: OperationRecord, facts: ToolFacts): Promise<OperationRecord> {
    const result = await takeStep(this.#context, {
      id: record.operation.id,
      from: record,
      command: () => ({ type: 'reconsider', facts, bounds: this.#context.settings.bounds }),
    });
    if (result.stored) this.#recorder.onFreed(result.freed);
    return result.record;
  }

  async #lookUp(
    record: OperationRecord,
    destination: Destination,
    facts: ToolFacts,
    lookup: Lookup,
    args: JsonObject,
  ): Promise<OperationRecord | undefined> {
    const context = this.#context;
    const { operation } = record;
    context.reached('before_lookup');
    const asked = await this.#askLookup(operation, destination, lookup, args, facts);
    context.reached('lookup_answered');
    const attempt = operation.attempts.at(-1)?.id;
    if (!asked.answered) {
      return this.#recorder.record(record, { kind: 'lookup', found: 'inconclusive' }, facts, { attempt });
    }
    const { finding, found } = this.#reading(asked, record.operation, lookup, facts, args);
    return this.#recorder.record(record, finding, facts, {
      attempt,
      observedAt: asked.askedAt,
      documents: [this.#recorder.document('evidence', operation.id, encodeReply(asked.reply))],
      found,
    });
  }

  /** What the answer to a look-up says, as evidence. */
  #reading(
    asked: Asked & { readonly answered: true },
    operation: Operation,
    lookup: Lookup,
    facts: ToolFacts,
    args: JsonObject,
  ): ReportReading {
    if (lookup.status !== undefined) return readWork(asked.reply, lookup.status);
    const read = readLookup(asked.reply, lookup, templateValues(operation, args, facts));
    // Counted from when it was asked: what lands while the answer is on its way is not in it.
    const isProof = isAbsenceProof(operation, lookup, facts, asked.askedAt);
    return {
      finding: {
        kind: 'lookup',
        found: read.found === 'absent' && !isProof ? 'not_found' : read.found,
        count: read.count,
        ...(read.records === undefined ? {} : { records: read.records }),
      },
      found: recordOf(read),
    };
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
    if (readback?.tool === undefined) throw new Error(`Assertion: ${operation.id} has no read-back to make.`);
    context.reached('before_readback');
    const values = templateValues(operation, args, facts);
    const asked = await this.#ask(destination, readback.tool, values, context.settings.readBackTimeoutMs);
    context.reached('readback_answered');
    const attempt = operation.attempts.at(-1)?.id;
    if (!asked.answered) {
      return this.#recorder.record(record, { kind: 'readback', matches: 'inconclusive' }, facts, { attempt });
    }
    const read = readReadBack(asked.reply, readback, values);
    const finding: Finding = {
      kind: 'readback',
      matches: read.matches,
      ...(read.matches === false ? { otherwise: unlikeMeans(operation, facts, read.version) } : {}),
      ...(read.version === undefined ? {} : { version: read.version }),
    };
    return this.#recorder.record(record, finding, facts, {
      attempt,
      observedAt: asked.askedAt,
      documents: [this.#recorder.document('after', operation.id, encodeReply(asked.reply))],
    });
  }

  /**
   * `state` writes: whether what is at the target now is still what the operation wrote. `undefined` where
   * that cannot be read.
   */
  async isStillOurs(operation: Operation, facts: ToolFacts, args: JsonObject): Promise<boolean | undefined> {
    const destination = this.#context.destinations.get(operation.destination);
    const readback = facts.operation?.readback;
    if (destination === undefined || readback?.tool === undefined) return undefined;
    const values = templateValues(operation, args, facts);
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

  /** How the target of a write stands now, before it is written. */
  async present(facts: ToolFacts, args: JsonObject): Promise<SeenState> {
    const question = presentQuestion(facts.operation);
    const destination = this.#context.destinations.get(facts.destination);
    if (question?.tool === undefined) return { read: false, why: 'no_contract' };
    if (destination?.isConnected() !== true) return { read: false, why: 'not_asked' };
    const values = { arguments: args };
    // What is found by our own reference, or by the record that the write makes, cannot be read before it.
    if (!fillTemplate(question.tool.arguments, values).ok) return { read: false, why: 'no_contract' };
    const asked = await this.#ask(
      destination,
      question.tool,
      values,
      this.#context.settings.readBackTimeoutMs,
    );
    if (!asked.answered) return { read: false, why: 'no_answer' };
    const state = readTouched(asked.reply, question, values);
    return state === undefined
      ? { read: false, why: 'unreadable' }
      : { read: true, at: asked.askedAt, state };
  }

  /** `unique` writes after an error: whether a look-up, made now, proves that the earlier one did not happen. */
  async isProvenAbsent(operation: Operation, facts: ToolFacts, args: JsonObject): Promise<boolean> {
    const destination = this.#context.destinations.get(operation.destination);
    const [lookup] = usableLookups(askableNow(facts, operation).operation);
    if (destination === undefined || lookup === undefined || lookup.status !== undefined) return false;
    const asked = await this.#askLookup(operation, destination, lookup, args, facts);
    if (!asked.answered) return false;
    const { found } = readLookup(asked.reply, lookup, templateValues(operation, args, facts));
    return found === 'absent' && isAbsenceProof(operation, lookup, facts, asked.askedAt);
  }

  async #askLookup(
    operation: Operation,
    destination: Destination,
    lookup: Lookup,
    args: JsonObject,
    facts: ToolFacts,
  ): Promise<Asked> {
    if (lookup.tool === undefined) throw new Error(`Assertion: ${operation.id} has no look-up to make.`);
    const values = templateValues(operation, args, facts);
    return this.#ask(destination, lookup.tool, values, this.#context.settings.lookUpTimeoutMs);
  }

  async #ask(
    destination: Destination,
    question: { readonly name: string; readonly arguments: { readonly [argument: string]: unknown } },
    values: TemplateValues,
    timeoutMs: number,
  ): Promise<Asked> {
    const filled = fillTemplate(presentMembers(question.arguments as JsonObject, values.arguments), values);
    if (!filled.ok) return { answered: false };
    if (!(destination.isAskable?.() ?? destination.isConnected())) {
      const connection = await destination.connect('question');
      if (!connection.connected) {
        if (connection.isAway !== false) await this.#circuits.failed(destination.name);
        return { answered: false };
      }
    }
    const askedAt = this.#context.environment.now();
    const report = await destination.ask({
      tool: question.name,
      payload: canonicalJson(filled.value),
      timeoutMs,
    });
    await this.#noticeHealth(destination.name, report);
    return report.answered ? { answered: true, askedAt, reply: report.reply } : { answered: false };
  }

  /** What cannot be used is an answer all the same: it must not keep back what others have for the destination. */
  async #noticeHealth(destination: string, report: AskReport): Promise<void> {
    if (!report.answered && report.because === 'not_asked') return;
    const hasAnswered = report.answered ? isItsOwn(report.reply) : report.because === 'unusable';
    await (hasAnswered ? this.#circuits.answered(destination) : this.#circuits.failed(destination));
  }
}

function templateValues(operation: Operation, args: JsonObject, facts: ToolFacts): TemplateValues {
  const key = keyOf(facts.operation, operation.id);
  return {
    arguments: args,
    ...(key === undefined ? {} : { key }),
    ...(operation.stamp === undefined ? {} : { stamp: operation.stamp }),
    ...(operation.record?.id === undefined ? {} : { record: operation.record.id }),
  };
}
