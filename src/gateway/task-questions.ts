// What servers ask in the middle of calls that run behind tasks of clients of 2026-07-28: it is read in the task, and
// answered through it (ext-tasks, 2026-07-28, "Task Update Requests").

import type { Conversation } from './conversation.ts';
import { answersOf, inputRequests } from './legs.ts';

export class TaskQuestions {
  readonly #conversations = new Map<string, Conversation>();

  /** Until the call behind it is known, which `end` tells. */
  begin(task: string, conversation: Conversation): void {
    this.#conversations.set(task, conversation);
  }

  end(conversation: Conversation): void {
    for (const [task, one] of this.#conversations) {
      if (one === conversation) this.#conversations.delete(task);
    }
  }

  /** The member `inputRequests` as JSON text; `undefined` while nothing is asked. */
  asked(task: string): string | undefined {
    const questions = this.#conversations.get(task)?.questionsOfTask ?? [];
    return questions.length === 0 ? undefined : inputRequests(questions);
  }

  /** The client of the task asks for a cancel, and so does not answer any more. */
  leave(task: string): void {
    this.#conversations.get(task)?.leaveTask();
  }

  /** @param params of `tasks/update`, as JSON text */
  answer(task: string, params: string): void {
    this.#conversations.get(task)?.answerTask(answersOf(params));
  }
}
