// The address of a review, given to the person at a client that can open addresses: once for each call that waits for a
// person, and never more than an address. What the client answers decides nothing (D9).

import { memberText } from '../core/json-frame.ts';
import type { Operation } from '../core/operation.ts';
import { reviewLinkText } from '../core/wording.ts';
import type { Answers, Question } from '../destination/mcp/asking.ts';
import type { Answer } from '../engine/answers.ts';
import type { Ledger } from '../engine/ledger.ts';
import { StoreFault } from '../store/port.ts';
import { RELATED_TASK } from './task-shapes.ts';
import type { ServerFacts } from './tool-facts.ts';

export interface ReviewLinkParts {
  readonly ledger: Ledger;
  readonly facts: ServerFacts;
  readonly requester: string;
  readonly report: (message: string) => void;
}

/** The call of a client, while it is open; `declaresTasks` is of clients of 2026-07-28 alone. */
export interface LinkedCall {
  readonly signal: AbortSignal;
  readonly declaresTasks?: boolean;
}

export type AskLink<Call> = (call: Call, question: Question) => Promise<Answers> | undefined;

const KEY = 'review';

/** Whether a client has said that it can be given addresses; `capabilities` is JSON text. */
export function canOpenLinks(capabilities: string | undefined): boolean {
  return capabilities !== undefined && memberText(capabilities, 'elicitation', 'url') !== undefined;
}

export class ReviewLinks<Call extends LinkedCall> {
  readonly #parts: ReviewLinkParts;
  readonly #ask: AskLink<Call>;

  constructor(parts: ReviewLinkParts, ask: AskLink<Call>) {
    this.#parts = parts;
    this.#ask = ask;
  }

  /**
   * Offers the address before the call is answered, and waits for the client as long as any caller waits for news. The
   * answer that the call is given is what is known then: a decision that was taken meanwhile was taken on that page, or
   * elsewhere.
   */
  async before(answer: Answer, call: Call): Promise<Answer> {
    const asked = this.#offered(answer, call);
    if (asked === undefined || answer.kind !== 'state') return answer;
    const { callerWaitMs } = this.#parts.ledger;
    await settledWithin(asked, callerWaitMs, call.signal);
    if (call.signal.aborted) return answer;
    const { operation } = answer;
    const { ledger, report, requester } = this.#parts;
    try {
      const now = await ledger.status(operation.id, 0);
      if (now === undefined || now.stage === operation.stage) return answer;
      await ledger.status(operation.id, callerWaitMs, call.signal);
      return await ledger.tasks.answerNow(requester, answer);
    } catch (cause) {
      if (!(cause instanceof StoreFault)) throw cause;
      report(`Whether a review was decided could not be read: ${cause.message}`);
      return answer;
    }
  }

  /** Offers the address of a call that was answered with its task, and waits for nothing. */
  async offer(answer: Answer, call: Call, task: string): Promise<void> {
    await this.#offered(answer, call, task)?.catch(() => undefined);
  }

  #offered(answer: Answer, call: Call, task?: string): Promise<unknown> | undefined {
    if (answer.kind !== 'state' || answer.otherRun !== undefined || call.signal.aborted) return undefined;
    const { operation } = answer;
    const { facts, requester } = this.#parts;
    const url = facts.reviewUrl(operation.id);
    if (url === undefined || operation.requester !== requester || !isAsked(operation)) return undefined;
    const target = answer.target === undefined ? {} : { target: answer.target };
    const params = {
      mode: 'url',
      message: reviewLinkText(operation, target),
      url,
      // What the earlier generation calls it by; the later one has no such name.
      ...(call.declaresTasks === undefined ? { elicitationId: operation.review?.id } : {}),
      ...(task === undefined ? {} : { _meta: { [RELATED_TASK]: { taskId: task } } }),
    };
    return this.#ask(call, {
      key: KEY,
      method: 'elicitation/create',
      params: JSON.stringify(params),
      about: operation.id,
    });
  }
}

/** Whether a person has been asked and has not decided. */
function isAsked({ review, stage }: Operation): boolean {
  return stage === 'awaiting_approval' && review !== undefined && review.decision === undefined;
}

function settledWithin(work: Promise<unknown>, waitMs: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      clearTimeout(timer);
      signal.removeEventListener('abort', done);
      resolve();
    };
    const timer = setTimeout(done, waitMs);
    signal.addEventListener('abort', done, { once: true });
    work.then(done, done);
  });
}
