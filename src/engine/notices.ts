// Callbacks of destinations: checked for whose they are, and recorded as evidence about the operation that they name.
// They may come late, twice, before the answer itself, or about what nobody here has sent.

import type { JsonValue } from '../core/canonical.ts';
import type { NoticeRule, ToolFacts } from '../core/contract.ts';
import { isTrusted } from '../core/contract.ts';
import type { Finding } from '../core/evidence.ts';
import { keyOf } from '../core/http-request.ts';
import { sentAttempts } from '../core/known-facts.ts';
import type { Operation, OperationId } from '../core/operation.ts';
import { compare, type ReadableReply } from '../core/reply-places.ts';
import { type TemplateValues, valueAt } from '../core/template.ts';
import type { NoticeName } from '../destination/port.ts';
import { encodeReply } from './answers.ts';
import type { EngineContext } from './context.ts';
import { readPayload } from './payload.ts';
import type { Readings } from './readings.ts';
import type { Recorder } from './recorder.ts';
import { type OperationRecord, readOperation } from './records.ts';
import { factsUnknown } from './reports.ts';

/** A callback as a door hands it in: names of headers in whatever letters, the exact bytes of the body. */
export interface Notice {
  readonly destination: string;
  readonly headers: { readonly [name: string]: string | readonly string[] | undefined };
  readonly body: Uint8Array;
}

export type NoticeResult =
  /** `again`: it had come before, and was not recorded twice. */
  | { readonly recorded: true; readonly operation: OperationId; readonly again: boolean }
  | {
      readonly recorded: false;
      /** `refused`: not shown to be the destination's own; whoever sent it is told no more than that. */
      readonly because: 'refused' | 'names_nothing' | 'says_nothing';
      readonly why: string;
    };

interface Found {
  readonly record: OperationRecord;
  readonly name: NoticeName;
}

/** How far back an operation is looked for by the destination's own id, beside all that is open. */
const RECENT_MAX = 1_000;

export class Notices {
  readonly #context: EngineContext;
  readonly #readings: Readings;
  readonly #recorder: Recorder;

  constructor(context: EngineContext, readings: Readings, recorder: Recorder) {
    this.#context = context;
    this.#readings = readings;
    this.#recorder = recorder;
  }

  /** @returns the result, and the operation where there is something to go on with. @throws {StoreFault} */
  async receive(
    notice: Notice,
  ): Promise<{ readonly result: NoticeResult; readonly record?: OperationRecord }> {
    const destination = this.#context.destinations.get(notice.destination);
    const given = {
      headers: oneEach(notice.headers),
      body: notice.body,
      at: this.#context.environment.now(),
    };
    const report = destination?.readNotice?.(given);
    if (report === undefined) return refused('refused', `${notice.destination} sends no notices here`);
    if (!report.genuine) return refused('refused', report.why);
    const found = await this.#find(notice.destination, report.names);
    if (found === undefined) return refused('names_nothing', 'it names no operation that was sent from here');
    const { operation } = found.record;
    const result: NoticeResult = { recorded: true, operation: operation.id, again: true };
    if (operation.evidence.some((piece) => piece.kind === 'notice' && piece.id === report.id))
      return { result };
    const payload = await readPayload(this.#context, operation);
    const facts =
      this.#context.factsFor(operation.destination, operation.tool, payload.arguments) ??
      factsUnknown(operation);
    // A notice is no answer to a request, and is read like one.
    const body: ReadableReply = { kind: 'result', body: report.body, headers: {} };
    const means = meaningOf(body, found, facts, {
      arguments: payload.arguments,
      ...namesOf(operation, facts),
    });
    if (means === undefined) return refused('says_nothing', 'the contract says nothing of such a notice');
    const finding: Finding = { kind: 'notice', means, id: report.id };
    const record = await this.#recorder.record(found.record, finding, facts, {
      attempt: onlyTry(operation),
      observedAt: Math.min(report.sentAt, given.at),
      documents: [
        this.#recorder.document('evidence', operation.id, encodeReply({ kind: 'result', body: report.body })),
      ],
    });
    return { result: { ...result, again: false }, ...(record === undefined ? {} : { record }) };
  }

  async #find(destination: string, names: readonly NoticeName[]): Promise<Found | undefined> {
    for (const name of names) {
      const record =
        name.by === 'record'
          ? await this.#byRecord(destination, name.value)
          : await readOperation(this.#context, name.value);
      const operation = record?.operation;
      if (record === undefined || operation?.destination !== destination) continue;
      if (operation.attempts.length > 0) return { record, name };
    }
    return undefined;
  }

  async #byRecord(destination: string, id: string): Promise<OperationRecord | undefined> {
    const isIt = (operation: Operation): boolean =>
      operation.destination === destination && operation.record?.id === id;
    const open = await this.#readings.open({ queues: [destination], limit: RECENT_MAX });
    const found = open.find(isIt) ?? (await this.#readings.recent(RECENT_MAX)).find(isIt);
    return found === undefined ? undefined : this.#readings.record(found.id);
  }
}

/** It names the operation and no try: of several that may have left it may be about any, and settles none of them. */
function onlyTry(operation: Operation): string | undefined {
  const [first, ...others] = sentAttempts(operation);
  return others.length > 0 ? undefined : (first ?? operation.attempts.at(-1))?.id;
}

function refused(because: 'refused' | 'names_nothing' | 'says_nothing', why: string) {
  return { result: { recorded: false, because, why } as const };
}

function oneEach(headers: Notice['headers']): { readonly [name: string]: string | undefined } {
  return Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [name.toLowerCase(), [value].flat().join(' ')]),
  );
}

function namesOf(operation: Operation, facts: ToolFacts): Pick<TemplateValues, 'stamp' | 'key' | 'record'> {
  return {
    stamp: operation.stamp,
    key: keyOf(facts.operation, operation.id),
    record: operation.record?.id,
  };
}

function nameAt(body: JsonValue, path: string): string | undefined {
  const value = valueAt(body, path);
  return typeof value === 'string' || typeof value === 'number' ? String(value) : undefined;
}

/** By the first rule of the operation's own contract that names it so and fits; a refusal only on trusted evidence. */
function meaningOf(
  body: ReadableReply,
  { name }: Found,
  { operation }: ToolFacts,
  values: TemplateValues,
): 'accepted' | 'rejected' | undefined {
  const whole = JSON.parse(body.body) as JsonValue;
  const fits = ({ names, when = [] }: NoticeRule): boolean =>
    names.by === name.by &&
    nameAt(whole, names.path) === name.value &&
    when.every((one) => compare(body, one, values) === 'agrees');
  const rule = operation?.notices?.find(fits);
  if (rule === undefined) return undefined;
  if (rule.means === 'applied') return 'accepted';
  return isTrusted(rule.evidence) ? 'rejected' : undefined;
}
