// Writes that are run as tasks: the operation is what the task holds. It is begun when the operation is on record, asked
// after by any connection of the principal that called, and ends with the answer that the call would have been given.

import { cancelText, statusText } from '../core/answer-wording.ts';
import type { JsonObject } from '../core/canonical.ts';
import { memberText } from '../core/json-frame.ts';
import { withMember, withMembers } from '../destination/mcp/json-edit.ts';
import { CODE_MISSING_CAPABILITY, TASKS_EXTENSION } from '../destination/mcp/mcp-headers.ts';
import type { AnswerFacts } from '../engine/answers.ts';
import type { Ledger } from '../engine/ledger.ts';
import { isTaskId, type Task, type TaskLook } from '../engine/tasks.ts';
import { StoreFault } from '../store/port.ts';
import { type AnswerDoorParts, answerDoor } from './answer-door.ts';
import { type AnswerMember, answerMember, operationMeta, ownError, surroundings } from './answer-frame.ts';
import { modernResult } from './dialect.ts';
import type { TaskQuestions } from './task-questions.ts';
import { IMMEDIATE_RESPONSE, RELATED_TASK, type TaskGeneration, taskFields } from './task-shapes.ts';

export interface TaskDoorParts extends AnswerDoorParts {
  readonly ledger: Ledger;
  readonly requester: string;
  readonly report: (message: string) => void;
  /** What is asked in the calls behind tasks, of clients of 2026-07-28 of this door. */
  readonly questions?: TaskQuestions;
}

/** One request about tasks. */
export interface TaskAsked {
  readonly method: string;
  /** Raw JSON text. */
  readonly params: string;
  readonly generation: TaskGeneration;
  /** Whether its client has said that it knows tasks; only the stateless generation must. */
  readonly isDeclared: boolean;
  /** Aborted when the client takes the request back or is gone. */
  readonly signal: AbortSignal;
}

export interface TaskAnswer extends AnswerMember {
  /** The operation whose outcome is in it: told as delivered once it was written. */
  readonly outcomeOf?: string;
}

/** Which of the requests about tasks each generation has. */
const METHODS: Readonly<Record<TaskGeneration, readonly string[]>> = {
  sessions: ['tasks/get', 'tasks/result', 'tasks/cancel', 'tasks/list'],
  stateless: ['tasks/get', 'tasks/update', 'tasks/cancel'],
};
const CODE_INVALID_PARAMS = -32602;
const CODE_STORE_DOWN = 7005;
const PAGE = 50;
/** Our own cursors; the server's list, where it has one, comes behind ours. */
const CURSOR = 'counterfoil:';
const AT_SERVER = `${CURSOR}server`;

/**
 * Whether a request is about a task of ours, by its name alone.
 * @param isAlone whether the server has no tasks, so that every request about one is ours
 */
export function isAboutOurTask(
  generation: TaskGeneration,
  { method, params }: Pick<TaskAsked, 'method' | 'params'>,
  isAlone: boolean,
): boolean {
  if (!METHODS[generation].includes(method)) return false;
  if (isAlone) return true;
  if (method !== 'tasks/list') return isTaskId(stringIn(params, 'taskId') ?? '');
  const cursor = stringIn(params, 'cursor');
  return cursor === undefined || (cursor.startsWith(CURSOR) && cursor !== AT_SERVER);
}

/** The params of a `tasks/list` as the server is asked for its own; others stay as they are. */
export function paramsForServer(method: string, params: string): string {
  const isFirst = method === 'tasks/list' && stringIn(params, 'cursor') === AT_SERVER;
  return isFirst ? withMember(params, 'cursor', undefined) : params;
}

export class TaskDoor {
  readonly #parts: TaskDoorParts;

  constructor(parts: TaskDoorParts) {
    this.#parts = parts;
  }

  /** A task for a call, with the result that names it in place of an outcome. @throws {StoreFault} */
  async begin(
    generation: TaskGeneration,
    facts: AnswerFacts,
  ): Promise<{ readonly id: string; readonly result: string }> {
    const task = await this.#parts.ledger.tasks.begin(this.#parts.requester, facts);
    const { operation } = facts;
    const message = statusText(operation, surroundings(facts, this.#words));
    const fields = taskFields(generation, {
      task,
      status: 'working',
      message,
      updatedAt: operation.since,
      isOnItsWay: operation.stage === 'sending',
    });
    const { _meta: meta } = operationMeta(operation);
    const created =
      generation === 'sessions'
        ? { task: fields, _meta: { ...meta, [IMMEDIATE_RESPONSE]: message } }
        : { resultType: 'task', ...fields, _meta: meta };
    return { id: task.id, result: JSON.stringify(created) };
  }

  /** @param hasServerList whether the server has tasks of its own to list */
  async answer(asked: TaskAsked, hasServerList: boolean): Promise<TaskAnswer> {
    if (asked.generation === 'stateless' && !asked.isDeclared) return missingCapability();
    try {
      if (asked.method === 'tasks/list') return await this.#list(asked.params, hasServerList);
      const { ledger, requester, server } = this.#parts;
      const task = await ledger.tasks.find(server.name, requester, stringIn(asked.params, 'taskId') ?? '');
      if (task === undefined) return refused('There is no such task here.');
      return await this.#about(task, asked);
    } catch (cause) {
      if (!(cause instanceof StoreFault)) throw cause;
      this.#parts.report(`A task could not be read: ${cause.message}`);
      const words = 'The ledger cannot be read now. What is recorded stays recorded; ask again later.';
      return ownError(CODE_STORE_DOWN, words);
    }
  }

  async #about(task: Task, { generation, method, params, signal }: TaskAsked): Promise<TaskAnswer> {
    const { ledger, questions } = this.#parts;
    switch (method) {
      case 'tasks/cancel':
        return this.#cancel(task, generation);
      case 'tasks/result': {
        const look = await ledger.tasks.settled(task, signal, (id, waitMs, until) =>
          ledger.status(id, waitMs, until),
        );
        return this.#outcome(look, task.id);
      }
      case 'tasks/update':
        questions?.answer(task.id, params);
        return complete({});
      default: {
        const look = await ledger.tasks.look(task);
        return generation === 'sessions' ? result(this.#fields('sessions', look)) : this.#detailed(look);
      }
    }
  }

  /** The answer that the call would have been given, with the name of the task that it belongs to. */
  async #outcome(look: TaskLook, id: string): Promise<TaskAnswer> {
    const { member, text, ...more } = await this.#member(look);
    if (member === 'error') return { member, text, ...more };
    const meta = withMembers(memberText(text, '_meta') ?? '{}', {
      [RELATED_TASK]: JSON.stringify({ taskId: id }),
    });
    return { member, text: withMember(text, '_meta', meta), ...more };
  }

  /** In 2026-07-28 the outcome lies in the task itself. */
  async #detailed(look: TaskLook): Promise<TaskAnswer> {
    const asked = look.status === 'working' ? this.#parts.questions?.asked(look.task.id) : undefined;
    const known = { resultType: 'complete', ...this.#fields('stateless', look) };
    if (asked !== undefined) {
      const asking = JSON.stringify({ ...known, status: 'input_required' });
      return { member: 'result', text: withMember(asking, 'inputRequests', asked) };
    }
    const fields = JSON.stringify(known);
    if (look.status === 'working' || look.status === 'cancelled') return { member: 'result', text: fields };
    const { member, text, ...more } = await this.#member(look);
    const given = member === 'result' ? modernResult('tools/call', text) : text;
    return { member: 'result', text: withMember(fields, member, given), ...more };
  }

  async #member({ answer, status, task }: TaskLook): Promise<TaskAnswer> {
    const { server } = this.#parts;
    const member = await answerMember(answer, answerDoor(this.#parts, server.tools.get(task.tool)));
    const isOutcome = status !== 'working' && answer.operation.stage === 'closed';
    return isOutcome && task.otherRun === undefined ? { ...member, outcomeOf: answer.operation.id } : member;
  }

  async #cancel(task: Task, generation: TaskGeneration): Promise<TaskAnswer> {
    const { ledger } = this.#parts;
    const before = await ledger.tasks.look(task);
    if (before.status !== 'working') {
      return generation === 'stateless'
        ? complete({})
        : refused(`The task has ended: it is ${before.status}.`);
    }
    // Somebody else's operation is not this caller's to take back.
    if (task.otherRun === undefined) await ledger.takeBack(task.operation);
    this.#parts.questions?.leave(task.id);
    if (generation === 'stateless') return complete({});
    const look = await ledger.tasks.look(task);
    return result(this.#fields('sessions', look, cancelText));
  }

  async #list(params: string, hasServerList: boolean): Promise<TaskAnswer> {
    const { ledger, requester, server } = this.#parts;
    const cursor = stringIn(params, 'cursor');
    const before = cursor?.slice(CURSOR.length);
    if (before !== undefined && (!isTaskId(before) || cursor?.startsWith(CURSOR) !== true))
      return refused('There is no such page of tasks.');
    const page = await ledger.tasks.list(server.name, requester, { before, limit: PAGE });
    const looks = await Promise.all(page.map((task) => ledger.tasks.look(task)));
    const next = page.length === PAGE ? `${CURSOR}${page.at(-1)?.id ?? ''}` : AT_SERVER;
    return result({
      tasks: looks.map((look) => this.#fields('sessions', look)),
      ...(next === AT_SERVER && !hasServerList ? {} : { nextCursor: next }),
    });
  }

  #fields(
    generation: TaskGeneration,
    { answer, status, task }: TaskLook,
    words?: typeof cancelText,
  ): JsonObject {
    const { operation } = answer;
    const isCancelAsked = operation.cancelRequestedAt !== undefined && status === 'working';
    const say = words ?? (isCancelAsked ? cancelText : statusText);
    return taskFields(generation, {
      task,
      status,
      message: say(operation, surroundings(answer, this.#words)),
      updatedAt: operation.since,
      isOnItsWay: operation.stage === 'sending' || operation.stage === 'ready',
    });
  }

  get #words(): { readonly helperTool: string; readonly where: string } {
    const { server, where } = this.#parts;
    return { helperTool: server.tools.helperName, where };
  }
}

function result(value: JsonObject): TaskAnswer {
  return { member: 'result', text: JSON.stringify(value) };
}

function complete(value: JsonObject): TaskAnswer {
  return result({ resultType: 'complete', ...value });
}

function refused(message: string): TaskAnswer {
  return ownError(CODE_INVALID_PARAMS, message);
}

function missingCapability(): TaskAnswer {
  const data = { requiredCapabilities: { extensions: { [TASKS_EXTENSION]: {} } } };
  const message = 'Missing required client capability';
  return { member: 'error', text: JSON.stringify({ code: CODE_MISSING_CAPABILITY, message, data }) };
}

function stringIn(params: string, member: string): string | undefined {
  try {
    const value: unknown = JSON.parse(memberText(params, member) ?? 'null');
    return typeof value === 'string' ? value : undefined;
  } catch {
    return undefined;
  }
}
