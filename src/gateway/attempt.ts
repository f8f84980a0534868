// One attempt of a write at a server: as many legs as the server asks questions, each answer recorded before it leaves
// (D8); and where the server answers with a task of its own, that task followed to its end. Its outcome is the attempt's.

import { type Answers, answerMembers, type Question, readInputRequired } from '../destination/mcp/asking.ts';
import type { McpUpstream } from '../destination/mcp/upstream.ts';
import type { Reply, SendReport, SendRequest } from '../destination/port.ts';
import { asServerTask, readServerTask, type ServerTask } from './server-task.ts';

/** How often a server may ask back in one attempt. */
const LEGS_MAX = 16;
/** As for the first byte of an attempt (D8): what was recorded leaves at once or not at all. */
const LEG_SEND_BY_MS = 2_000;
/** How often a task is asked after, where its server does not say; and at most, whatever it says. */
const POLL_DEFAULT_MS = 1_000;
const POLL_MIN_MS = 50;

export interface AttemptParts {
  readonly upstream: McpUpstream;
  readonly request: SendRequest;
  /** Whether the server runs calls of this tool as tasks alone (2025-11-25). */
  readonly needsTask: boolean;
  /** Whether a server of 2026-07-28 may answer with a task, because it is followed. */
  readonly followsTasks: boolean;
  readonly ask: (questions: readonly Question[]) => Promise<Answers>;
}

type Unknown = Extract<SendReport, { left: 'maybe' }>;
/** An answer that may leave, recorded; or why there is none. */
type Answered = { readonly answers: ReadonlyMap<string, string> } | { readonly none: Unknown };

export class Attempt {
  readonly #parts: AttemptParts;
  readonly #endsAt: number;
  #leg = 1;

  constructor(parts: AttemptParts) {
    this.#parts = parts;
    this.#endsAt = performance.now() + parts.request.replyTimeoutMs;
  }

  async send(): Promise<SendReport> {
    const { followsTasks, needsTask, request, upstream } = this.#parts;
    const first = { ...request, followsTasks };
    let report = await upstream.send(needsTask ? asServerTask(first) : first);
    for (;;) {
      const reply = report.left === 'maybe' && report.reply?.kind === 'result' ? report.reply : undefined;
      const task = reply && readServerTask(reply.body, upstream);
      if (task !== undefined) return this.#follow(task);
      const asked = reply && readInputRequired(reply.body);
      if (asked === undefined) return report;
      const answered = await this.#answers(asked.questions);
      if ('none' in answered) return answered.none;
      const recordedAt = performance.now();
      report = await upstream.send({
        ...first,
        more: answerMembers(answered.answers, asked.requestState),
        mayLeave: () => performance.now() - recordedAt <= LEG_SEND_BY_MS,
      });
      // What has left before stays out.
      if (report.left === 'no')
        return unknown('cut', `it asked back, and the answer did not leave: ${report.detail}`);
    }
  }

  async #answers(questions: readonly Question[]): Promise<Answered> {
    const { ask, request } = this.#parts;
    this.#leg += 1;
    const answers = this.#leg > LEGS_MAX ? undefined : await ask(questions);
    if (answers === undefined) return { none: unknown('timeout', 'it asked back, and was given no answer') };
    if ((await request.recordLeg?.(this.#leg)) === true) return { answers };
    return {
      none: unknown('aborted', 'it asked back, and the answer could not be recorded; it was not sent'),
    };
  }

  /** Whatever becomes of the task, the write has left: what is not read as its end is unknown. */
  async #follow(task: ServerTask): Promise<SendReport> {
    let pollMs = task.pollMs;
    const isAnswered = new Set<string>();
    for (;;) {
      await pause(Math.min(Math.max(pollMs ?? POLL_DEFAULT_MS, POLL_MIN_MS), this.#leftMs));
      if (this.#leftMs <= 0) return unknown('timeout', `the server’s task ${task.id} has no end yet`);
      const got = await this.#ask('tasks/get', task);
      if ('none' in got) return got.none;
      const state = task.read(got.reply.body);
      pollMs = state.pollMs ?? pollMs;
      switch (state.status) {
        case 'completed':
        case 'failed':
          return task.isInline ? ended(state.outcome) : this.#result(task, state.status);
        case 'cancelled':
          return unknown('aborted', `the server has cancelled its task ${task.id}`);
        case 'input_required': {
          // A session is asked its questions while its result is waited for, each by a request of its own.
          if (!task.isInline) return this.#result(task, 'completed');
          const problem = await this.#update(task, state.questions, isAnswered);
          if (problem !== undefined) return problem;
          break;
        }
        default:
      }
    }
  }

  async #update(
    task: ServerTask,
    questions: readonly Question[],
    isAnswered: Set<string>,
  ): Promise<Unknown | undefined> {
    const open = questions.filter(({ key }) => !isAnswered.has(key));
    if (open.length === 0) return undefined;
    for (const { key } of open) isAnswered.add(key);
    const answered = await this.#answers(open);
    if ('none' in answered) return answered.none;
    const got = await this.#ask('tasks/update', task, answerMembers(answered.answers, undefined));
    return 'none' in got ? got.none : undefined;
  }

  /** @param status `failed`: an error of the protocol is what the call itself was answered with */
  async #result(task: ServerTask, status: 'completed' | 'failed'): Promise<SendReport> {
    const got = await this.#ask('tasks/result', task);
    if ('reply' in got) return ended(got.reply);
    return status === 'failed' && got.error !== undefined ? ended(got.error) : got.none;
  }

  async #ask(
    method: string,
    task: ServerTask,
    more: Readonly<Record<string, string>> = {},
  ): Promise<{ readonly reply: Reply } | { readonly none: Unknown; readonly error?: Reply }> {
    const { upstream } = this.#parts;
    const report = await upstream.request(method, task.params(more), Math.max(this.#leftMs, 1));
    if (!report.answered)
      return {
        none: unknown('cut', `the server’s task ${task.id} has no end that was told: ${report.detail}`),
      };
    const { reply } = report;
    if (reply.kind !== 'protocol_error') return { reply };
    const detail = `${method} of the server’s task ${task.id} was answered with ${reply.body.slice(0, 200)}`;
    return { none: unknown('unreadable', detail), error: reply };
  }

  get #leftMs(): number {
    return this.#endsAt - performance.now();
  }
}

function ended(reply: Reply | undefined): SendReport {
  return reply === undefined
    ? unknown('unreadable', 'the server’s task has ended without a result')
    : { left: 'maybe', ended: 'reply', reply, detail: 'the MCP server answered with the end of its task' };
}

function unknown(how: 'timeout' | 'aborted' | 'cut' | 'unreadable', detail: string): Unknown {
  return { left: 'maybe', ended: how, detail };
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, Math.max(ms, 0));
  });
}
