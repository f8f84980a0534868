// The tasks of servers, as the client that we are to them: in what words a call may be answered with one, and what is
// read of its state, in both generations.

import { memberText } from '../core/json-frame.ts';
import { type Question, readInputRequired } from '../destination/mcp/asking.ts';
import { withMember, withMembers } from '../destination/mcp/json-edit.ts';
import type { McpUpstream } from '../destination/mcp/upstream.ts';
import type { Reply, SendRequest } from '../destination/port.ts';

export interface ServerTaskState {
  readonly status: string;
  readonly pollMs: number | undefined;
  /** Of a task that is asking (2026-07-28). */
  readonly questions: readonly Question[];
  /** Of one that has ended, where its end lies in its state (2026-07-28). */
  readonly outcome: Reply | undefined;
}

export interface ServerTask {
  readonly id: string;
  readonly pollMs: number | undefined;
  /** True of 2026-07-28: questions and outcome are in the state of the task; false: `tasks/result` has them. */
  readonly isInline: boolean;
  /** The params of a request about it. */
  params(more: Readonly<Record<string, string>>): string;
  read(result: string): ServerTaskState;
}

/** A call that a server of 2025-11-25 is to run as a task of its own. */
export function asServerTask(request: SendRequest): SendRequest {
  return { ...request, more: { ...request.more, task: '{}' } };
}

/** The task that a result names in place of an outcome; `undefined` for every other result. */
export function readServerTask(result: string, { handshake }: McpUpstream): ServerTask | undefined {
  const isInline = handshake?.method === 'server/discover';
  // Looked for as text first: most results are outcomes, and are not read twice.
  if (!result.includes(isInline ? '"task"' : '"taskId"')) return undefined;
  const isTask = isInline ? memberText(result, 'resultType') === '"task"' : isCreated(result);
  const task = isInline ? result : (memberText(result, 'task') ?? '{}');
  const id = memberText(task, 'taskId');
  if (!isTask || id === undefined || !id.startsWith('"')) return undefined;
  return {
    id: String(JSON.parse(id)).slice(0, SHOWN_MAX),
    pollMs: pollOf(task),
    isInline,
    params: (more) => withMembers('{}', { taskId: id, ...more }),
    read: (state) => ({
      status: String(JSON.parse(memberText(state, 'status') ?? '""')),
      pollMs: pollOf(state),
      questions: readInputRequired(withMember(state, 'resultType', '"input_required"'))?.questions ?? [],
      outcome: outcomeIn(state),
    }),
  };
}

const SHOWN_MAX = 128;

/** A result of a tool may have a member of that name: one without content is none. */
function isCreated(result: string): boolean {
  return (
    memberText(result, 'task', 'status') !== undefined &&
    memberText(result, 'content') === undefined &&
    memberText(result, 'structuredContent') === undefined
  );
}

function pollOf(task: string): number | undefined {
  const text = memberText(task, 'pollIntervalMs') ?? memberText(task, 'pollInterval');
  const ms = Number(text ?? Number.NaN);
  return Number.isFinite(ms) ? ms : undefined;
}

function outcomeIn(state: string): Reply | undefined {
  const body = memberText(state, 'result');
  if (body !== undefined)
    return { kind: memberText(body, 'isError') === 'true' ? 'tool_error' : 'result', body };
  const error = memberText(state, 'error');
  if (error === undefined) return undefined;
  const code = Number(memberText(error, 'code'));
  return { kind: 'protocol_error', body: error, ...(Number.isInteger(code) ? { code } : {}) };
}
