// Tasks towards one client on one connection: whether they are offered, which of its requests are about ours, and what
// passes to the server's own.

import { memberText } from '../core/json-frame.ts';
import { type McpFrame, readMcpFrame } from '../destination/mcp/frame.ts';
import { withMember } from '../destination/mcp/json-edit.ts';
import { META } from '../destination/mcp/mcp-headers.ts';
import type { McpUpstream } from '../destination/mcp/upstream.ts';
import { isAboutOurTask, paramsForServer, type TaskAnswer, TaskDoor } from './task-door.ts';
import type { TaskQuestions } from './task-questions.ts';
import { declaresTasksIn, hasTasks, withTaskCapability, withTaskExtension } from './task-shapes.ts';
import type { CallParts } from './tool-calls.ts';

/** The version of the session generation that has tasks. */
const TASKS_SINCE = '2025-11-25';

export interface SessionTaskRequest {
  answer(signal: AbortSignal): Promise<TaskAnswer>;
}

export interface SessionTasksParts extends CallParts {
  readonly questions: TaskQuestions;
  readonly upstream: McpUpstream;
}

export class SessionTasks {
  readonly #parts: SessionTasksParts;
  readonly #door: TaskDoor;
  #isDeclared = false;
  #isOffered = false;

  constructor(parts: SessionTasksParts) {
    this.#parts = parts;
    this.#door = new TaskDoor(parts);
  }

  /** Whether the client was told that writes may be run as tasks. */
  get isOffered(): boolean {
    return this.#isOffered;
  }

  /** The client's handshake is about to pass. */
  greeted(method: 'initialize' | 'server/discover', params: string): void {
    this.#isOffered = false;
    this.#isDeclared =
      method === 'initialize'
        ? memberText(params, 'capabilities', 'tasks') !== undefined
        : declaresTasksIn(params);
  }

  /**
   * The server's answer to it, as the client is given it: one that says that it knows tasks is told that we do. To
   * others it passes as it came, and so it does where a server is only observed.
   */
  greeting(asked: 'handshake' | 'discovery', result: string): string {
    if (!this.#isDeclared || this.#parts.facts.mode === 'observe') return result;
    if (asked === 'discovery') return withTaskExtension(result);
    this.#isOffered = memberText(result, 'protocolVersion') === `"${TASKS_SINCE}"`;
    return this.#isOffered ? withTaskCapability(result) : result;
  }

  /** A request about tasks of ours; `undefined`: it is the server's to answer. */
  asked(method: string, params: string): SessionTaskRequest | undefined {
    if (!method.startsWith('tasks/') || this.#parts.facts.mode === 'observe') return undefined;
    const isStateless = memberText(params, '_meta', META.protocolVersion) !== undefined;
    const generation = isStateless ? 'stateless' : 'sessions';
    const isDeclared = isStateless ? declaresTasksIn(params) : this.#isOffered;
    const { upstream } = this.#parts;
    const isAlone = isDeclared && !hasTasks(upstream, generation);
    if (!isAboutOurTask(generation, { method, params }, isAlone)) return undefined;
    const server = upstream.handshake?.result ?? '{}';
    const hasServerList = memberText(server, 'capabilities', 'tasks', 'list') !== undefined;
    return {
      answer: (signal) =>
        this.#door.answer({ method, params, generation, isDeclared, signal }, hasServerList),
    };
  }

  /** The frame as the server is given it: its own list of tasks begins where ours ends. */
  forServer(frame: McpFrame): McpFrame {
    const { head, text } = frame;
    if (head?.method !== 'tasks/list' || head.params === undefined) return frame;
    const params = text.slice(head.params.start, head.params.end);
    const given = paramsForServer('tasks/list', params);
    return given === params ? frame : readMcpFrame(Buffer.from(withMember(text, 'params', given)));
  }
}
