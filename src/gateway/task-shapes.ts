// Tasks as each generation spells them: the experimental part of protocol 2025-11-25 (specification 2025-11-25,
// basic/utilities/tasks), and the extension `io.modelcontextprotocol/tasks` of 2026-07-28 (ext-tasks, 2026-07-28).

import type { JsonObject } from '../core/canonical.ts';
import { memberText } from '../core/json-frame.ts';
import type { TaskStatus } from '../core/task-status.ts';
import { withMember, withMembers } from '../destination/mcp/json-edit.ts';
import { META, TASKS_EXTENSION } from '../destination/mcp/mcp-headers.ts';
import type { McpUpstream } from '../destination/mcp/upstream.ts';
import type { Task } from '../engine/tasks.ts';

/** `sessions`: the client asks for a task with its call. `stateless`: it says that it can be given one. */
export type TaskGeneration = 'sessions' | 'stateless';

export const RELATED_TASK = 'io.modelcontextprotocol/related-task';
/** What a model may be told in place of a result that is still to come. */
export const IMMEDIATE_RESPONSE = 'io.modelcontextprotocol/model-immediate-response';

/** How soon it is worth asking again: an answer is on its way, or a person is awaited. */
const POLL_SOON_MS = 500;
const POLL_LATER_MS = 2_000;

export interface TaskState {
  readonly task: Task;
  readonly status: TaskStatus | 'input_required';
  readonly message: string;
  readonly updatedAt: number;
  readonly isOnItsWay: boolean;
}

/** Never deleted by time: what it names is on record, and so is its answer. */
export function taskFields(generation: TaskGeneration, state: TaskState): JsonObject {
  const { task, status, message, updatedAt } = state;
  const poll = state.isOnItsWay ? POLL_SOON_MS : POLL_LATER_MS;
  return {
    taskId: task.id,
    status,
    statusMessage: message,
    createdAt: instant(task.createdAt),
    lastUpdatedAt: instant(Math.max(updatedAt, task.createdAt)),
    ...(generation === 'sessions'
      ? { ttl: null, pollInterval: poll }
      : { ttlMs: null, pollIntervalMs: poll }),
  };
}

function instant(at: number): string {
  return new Date(at).toISOString();
}

/** Whether a client or a server of 2026-07-28 says that it knows tasks; `capabilities` is JSON text. */
export function declaresTasks(capabilities: string | undefined): boolean {
  return capabilities !== undefined && memberText(capabilities, 'extensions', TASKS_EXTENSION) !== undefined;
}

/** The same of a request with its envelope; `params` is JSON text. */
export function declaresTasksIn(params: string): boolean {
  return declaresTasks(memberText(params, '_meta', META.clientCapabilities));
}

/** Whether a server has tasks of its own that clients of a generation can ask after. */
export function hasTasks({ handshake }: McpUpstream, generation: TaskGeneration): boolean {
  const { method, result } = handshake ?? {};
  const capabilities = memberText(result ?? '{}', 'capabilities') ?? '{}';
  return generation === 'sessions'
    ? method === 'initialize' && memberText(capabilities, 'tasks') !== undefined
    : method === 'server/discover' && declaresTasks(capabilities);
}

/** The result of `initialize`, with what we can do beside what the server says of itself. */
export function withTaskCapability(result: string): string {
  const capabilities = memberText(result, 'capabilities') ?? '{}';
  let tasks = withMembers(memberText(capabilities, 'tasks') ?? '{}', { list: '{}', cancel: '{}' });
  const requests = memberText(tasks, 'requests') ?? '{}';
  const tools = withMembers(memberText(requests, 'tools') ?? '{}', { call: '{}' });
  tasks = withMember(tasks, 'requests', withMember(requests, 'tools', tools));
  return withMember(result, 'capabilities', withMember(capabilities, 'tasks', tasks));
}

/** The result of `server/discover`, likewise. */
export function withTaskExtension(result: string): string {
  const capabilities = memberText(result, 'capabilities') ?? '{}';
  const extensions = withMembers(memberText(capabilities, 'extensions') ?? '{}', { [TASKS_EXTENSION]: '{}' });
  return withMember(result, 'capabilities', withMember(capabilities, 'extensions', extensions));
}

/** A listed tool, as JSON text, whose calls may be run as tasks; what it says itself of that stays where it can. */
export function asTaskable(tool: string): string {
  const execution = memberText(tool, 'execution') ?? '{}';
  if (memberText(execution, 'taskSupport') === '"required"') return tool;
  return withMember(tool, 'execution', withMember(execution, 'taskSupport', '"optional"'));
}
