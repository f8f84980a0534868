// The names under which callers come back for the answer to one call (tasks, in the words of MCP): each is a row of the
// store, so that it outlives its connection and its process, and is found only by the principal that made the call.

import type { JsonObject } from '../core/canonical.ts';
import { sha256Hex } from '../core/digest.ts';
import type { Operation } from '../core/operation.ts';
import { type TaskEnd, type TaskStatus, taskEndOf } from '../core/task-status.ts';
import type { Reply } from '../destination/port.ts';
import type { Json } from '../store/port.ts';
import { type AnswerFacts, closedAnswer, isAnswered, type OperationAnswer } from './answers.ts';
import { type EngineContext, newId } from './context.ts';
import type { Readings } from './readings.ts';

export interface Task {
  readonly id: string;
  readonly operation: string;
  readonly requester: string;
  readonly destination: string;
  readonly tool: string;
  /** ms since the epoch: when the call came. */
  readonly createdAt: number;
  /** Whether this call made the operation; others were answered with it. */
  readonly isFirst: boolean;
  readonly notApplied: readonly string[];
  readonly otherRun?: string;
  /** An end that was told is never taken back, wherever the operation goes from there. */
  readonly ended?: { readonly status: TaskEnd; readonly at: number; readonly gives: 'reply' | 'words' };
}

/** What an answer depends on beside the operation: which call it was. */
type CallFacts = Pick<Task, 'requester' | 'isFirst' | 'notApplied' | 'otherRun'>;

/** A task and its operation as they are now. */
export interface TaskLook {
  readonly task: Task;
  readonly status: TaskStatus;
  /** What its call would be answered with now. */
  readonly answer: OperationAnswer;
}

/** How often a task that somebody waits for is looked at, should no news of it come. */
const LOOK_AGAIN_MS = 60_000;
const ID = /^tsk_[0-9A-HJKMNP-TV-Z]{26}$/;

export function isTaskId(text: string): boolean {
  return ID.test(text);
}

export class Tasks {
  readonly #context: EngineContext;
  readonly #readings: Readings;
  readonly #isGiven: (operation: Operation) => boolean;

  constructor(context: EngineContext, readings: Readings, isGiven: (operation: Operation) => boolean) {
    this.#context = context;
    this.#readings = readings;
    this.#isGiven = isGiven;
  }

  /** Stored when it resolves: only then may its id be told. @throws {StoreFault} */
  async begin(requester: string, { isFirst, notApplied, operation, otherRun }: AnswerFacts): Promise<Task> {
    const { environment } = this.#context;
    const task: Task = {
      id: newId(this.#context, 'tsk'),
      operation: operation.id,
      requester,
      destination: operation.destination,
      tool: operation.tool,
      createdAt: environment.now(),
      isFirst: isFirst === true,
      notApplied,
      ...(otherRun === undefined ? {} : { otherRun }),
    };
    const began = { type: 'begun', operation: task.operation, at: task.createdAt };
    if (!(await this.#write(task, 0, began)))
      throw new Error(`Assertion: the name ${task.id} was given twice.`);
    return task;
  }

  /** `undefined` also for a task of another principal, or of another server. @throws {StoreFault} */
  async find(destination: string, requester: string, id: string): Promise<Task | undefined> {
    return (await this.#record(destination, requester, id))?.task;
  }

  /** The newest first; with `before`, those that are older than that one. @throws {StoreFault} */
  async list(
    destination: string,
    requester: string,
    { before, limit }: { readonly before: string | undefined; readonly limit: number },
  ): Promise<readonly Task[]> {
    const { store, tenant } = this.#context;
    const first = streamOf(destination, requester, '');
    // '0' follows '/', so that these two bound every task of the principal.
    const after = before === undefined ? `${first.slice(0, -1)}0` : streamOf(destination, requester, before);
    const records = await store.streams({ tenant, kind: 'task', newest: true, after, limit });
    return records
      .filter(({ stream }) => stream.startsWith(first))
      .map(({ state }) => state as unknown as Task);
  }

  /** An end is stored before it is told. @throws {StoreFault} */
  async look(task: Task): Promise<TaskLook> {
    const record = await this.#readings.record(task.operation);
    if (record === undefined) throw new Error(`Assertion: operation ${task.operation} is not in the ledger.`);
    const { operation } = record;
    const reply = operation.stage === 'closed' ? await this.#readings.reply(operation) : undefined;
    const end = task.ended?.status ?? taskEndOf(operation, reply?.kind === 'protocol_error');
    if (end !== undefined && task.ended === undefined) {
      const at = this.#context.environment.now();
      const gives = task.isFirst || !this.#isGiven(operation) ? 'reply' : 'words';
      return this.look(await this.#end(task, { status: end, at, gives }));
    }
    const answer = await this.#answer(task, operation, reply, task.ended?.gives === 'reply');
    return { task, status: end ?? 'working', answer };
  }

  /** What a call that was answered with `facts` would be answered with now. @throws {StoreFault} */
  async answerNow(requester: string, given: AnswerFacts): Promise<OperationAnswer> {
    const { isFirst = false, notApplied, otherRun } = given;
    const operation = (await this.#readings.record(given.operation.id))?.operation ?? given.operation;
    const reply = operation.stage === 'closed' ? await this.#readings.reply(operation) : undefined;
    const call = { requester, isFirst, notApplied, ...(otherRun === undefined ? {} : { otherRun }) };
    return this.#answer(call, operation, reply, !this.#isGiven(operation));
  }

  async #answer(
    call: CallFacts,
    operation: Operation,
    reply: Reply | undefined,
    mayGive: boolean,
  ): Promise<OperationAnswer> {
    const facts = await this.#facts(call, operation);
    if (operation.stage !== 'closed') return { ...facts, kind: 'state' };
    const isGivenHere = isAnswered(operation) && call.otherRun === undefined && call.notApplied.length === 0;
    if (isGivenHere && reply !== undefined && mayGive) return { ...facts, kind: 'reply', reply };
    const isRequester = operation.requester === call.requester;
    return closedAnswer(facts, reply, { isFirst: call.isFirst, isRequester });
  }

  /** Waits until the task has ended, or `signal` lets it no longer. @throws {StoreFault} */
  async settled(
    task: Task,
    signal: AbortSignal,
    status: (operation: string, waitMs: number, signal: AbortSignal) => Promise<unknown>,
  ): Promise<TaskLook> {
    for (let look = await this.look(task); ; look = await this.look(look.task)) {
      if (look.status !== 'working' || signal.aborted) return look;
      await status(task.operation, LOOK_AGAIN_MS, signal);
    }
  }

  async #facts(call: CallFacts, present: Operation): Promise<AnswerFacts> {
    const { operation, quote, target } = await this.#readings.reading(present);
    const isRequester = operation.requester === call.requester;
    return {
      operation,
      notApplied: call.notApplied,
      isFirst: call.isFirst,
      ...(target === undefined ? {} : { target }),
      ...(quote === undefined || !isRequester ? {} : { quote }),
      ...(call.otherRun === undefined ? {} : { otherRun: call.otherRun }),
    };
  }

  /** Of two who see the end at once, the first has said how it is told. */
  async #end(task: Task, ended: NonNullable<Task['ended']>): Promise<Task> {
    for (;;) {
      const record = await this.#record(task.destination, task.requester, task.id);
      if (record === undefined) throw new Error(`Assertion: task ${task.id} is not in the ledger.`);
      if (record.task.ended !== undefined) return record.task;
      const next: Task = { ...record.task, ended };
      if (await this.#write(next, record.version, { type: 'ended', ...ended })) return next;
    }
  }

  async #record(
    destination: string,
    requester: string,
    id: string,
  ): Promise<{ readonly task: Task; readonly version: number } | undefined> {
    const { store, tenant } = this.#context;
    const [record] = await store.read(tenant, [streamOf(destination, requester, id)]);
    return record === undefined
      ? undefined
      : { task: record.state as unknown as Task, version: record.version };
  }

  async #write(task: Task, expectedVersion: number, event: JsonObject): Promise<boolean> {
    const { environment, store, tenant } = this.#context;
    const stream = streamOf(task.destination, task.requester, task.id);
    const writes = [{ stream, expectedVersion, events: [event], state: task as unknown as Json }];
    const [result] = await store.commit([{ tenant, at: environment.now(), writes }]);
    return result?.outcome === 'stored';
  }
}

const OWNER_DIGITS = 32;

/** Whose task it is stands in its name: nobody else's look finds it. */
function streamOf(destination: string, requester: string, id: string): string {
  const owner = sha256Hex(JSON.stringify([destination, requester])).slice(0, OWNER_DIGITS);
  return `task:${owner}/${id}`;
}
