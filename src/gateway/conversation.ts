// One request of a stateless client that may be asked back: each leg is an HTTP request of its own, and behind them is
// one call that goes on. Whoever waits now is told what comes next, a question or the outcome.

import { randomUUID } from 'node:crypto';
import type { Answers, Question } from '../destination/mcp/asking.ts';

/** The request that waits on this leg. */
export interface Waiter {
  /** A message of the server before the answer. */
  message(frame: string): void;
  asks(questions: readonly Question[]): void;
  /** `member`: `result` or `error`, `text`: its value. */
  ends(member: 'result' | 'error', text: string, written: (isWritten: boolean) => void): void;
  /** Somebody else answers. */
  dropped?(): void;
}

interface Asked {
  readonly question: Question;
  readonly tell: (result: string | undefined) => void;
}

interface Outcome {
  readonly member: 'result' | 'error';
  readonly text: string;
  readonly written: (isWritten: boolean) => void;
}

/** For how long an answer is waited for, and an outcome is kept for a client that comes back. */
export const ANSWER_MAX_MS = 10 * 60_000;

/** How soon a server is come back to that only wants to be asked again. */
const COME_BACK_MS = 1_000;

export class Conversation {
  readonly id = randomUUID();
  readonly method: string;
  readonly bound: string;
  readonly #cancelled = new AbortController();
  readonly #onEnd: () => void;
  readonly #asked = new Map<string, Asked>();
  /** Answers to the first question, before it is asked. */
  #ahead: ReadonlyMap<string, string> = new Map();
  #waiter: Waiter | undefined;
  #outcome: Outcome | undefined;
  #leg = 1;
  #expiry: NodeJS.Timeout | undefined;
  #isEnded = false;
  /** Its client was given a task: nobody waits, and what is asked is found in that task. */
  #isTask = false;

  constructor(method: string, bound: string, onEnd: () => void) {
    this.method = method;
    this.bound = bound;
    this.#onEnd = onEnd;
  }

  /** Aborted when the client has taken the call back. */
  get signal(): AbortSignal {
    return this.#cancelled.signal;
  }

  /** The leg that is under way, or that the next answer will be. */
  get leg(): number {
    return this.#leg;
  }

  /** Whether a question is out and nobody waits, so that an equal call may be asked it in place of this one. */
  get isAsking(): boolean {
    return this.#asked.size > 0 && this.#waiter === undefined && !this.#isEnded && !this.#isTask;
  }

  get isSettled(): boolean {
    return this.#outcome !== undefined || this.#isEnded;
  }

  /** What is asked now of a client that was given a task, under names that no other question of it has. */
  get questionsOfTask(): readonly Question[] {
    if (!this.#isTask || this.#isEnded) return [];
    return [...this.#asked.values()].map(({ question }) => ({
      ...question,
      key: this.#nameOf(question.key),
    }));
  }

  /** Takes answers to what is asked; others are for nobody. */
  answerTask(answers: ReadonlyMap<string, string>): void {
    const told = [...this.#asked.values()].flatMap(({ question, tell }) => {
      const result = answers.get(this.#nameOf(question.key));
      return result === undefined ? [] : [(): void => tell(result)];
    });
    for (const tell of told) tell();
    if (told.length === 0 || this.#asked.size > 0) return;
    clearTimeout(this.#expiry);
    this.#leg += 1;
  }

  /** Its client asks for a cancel: it answers no question any more. */
  leaveTask(): void {
    if (!this.#isTask) return;
    clearTimeout(this.#expiry);
    for (const { tell } of [...this.#asked.values()]) tell(undefined);
  }

  #nameOf(key: string): string {
    return `${this.#leg}.${key}`;
  }

  /** Waits for what comes next. */
  wait(waiter: Waiter): void {
    clearTimeout(this.#expiry);
    this.#waiter = waiter;
    if (this.#outcome !== undefined) this.#deliver(this.#outcome);
    else if (this.#asked.size > 0) this.#askNow();
  }

  /** The client has gone while its request waited, which takes the call back. */
  leave(waiter: Waiter): void {
    if (this.#waiter !== waiter) return;
    this.#waiter = undefined;
    this.#cancelled.abort();
    for (const { tell } of [...this.#asked.values()]) tell(undefined);
  }

  /**
   * Takes the answers of one leg, once.
   * @returns false when the leg is not the one that is waited for
   */
  resume(leg: number, answers: ReadonlyMap<string, string>): boolean {
    if (leg !== this.#leg || this.#waiter !== undefined || this.#isEnded || this.#isTask) return false;
    clearTimeout(this.#expiry);
    this.#leg += 1;
    for (const [key, result] of answers) this.#asked.get(key)?.tell(result);
    return true;
  }

  /**
   * Takes answers that a call brings without a state of ours. Nothing says which question they are to, so that they
   * count for the first alone, whether it was asked already or not: a later one of the same name may be another.
   */
  answerUnasked(answers: ReadonlyMap<string, string>): void {
    if (this.#asked.size === 0) this.#ahead = answers;
    else if (this.#leg === 1 && this.#fits(answers)) this.resume(this.#leg, answers);
  }

  // ── What the call behind it tells ────────────────────────────────────────────────────────────────────────

  message(frame: string): void {
    this.#waiter?.message(frame);
  }

  /** `undefined` when the client does not come back with all answers in time. */
  async ask(questions: readonly Question[]): Promise<Answers> {
    if (this.signal.aborted || this.#isEnded) return undefined;
    const results = Promise.all(questions.map((question) => this.#askOne(question)));
    // A state alone wants no answer: the client comes back with it.
    if (questions.length === 0) return this.#isTask ? this.#comeBack() : this.#askNothing();
    this.#answerAhead();
    if (this.#asked.size > 0) this.#askNow();
    if (this.#isTask) this.#expectAnswers();
    const answers = new Map<string, string>();
    for (const [index, result] of (await results).entries()) {
      if (result === undefined) return undefined;
      answers.set(questions[index]?.key ?? '', result);
    }
    return answers;
  }

  settle(member: 'result' | 'error', text: string, written: (isWritten: boolean) => void = () => {}): void {
    if (this.#outcome !== undefined || this.#isEnded) {
      written(false);
      return;
    }
    const outcome = { member, text, written };
    if (this.#waiter !== undefined) this.#deliver(outcome);
    else if (this.signal.aborted) {
      written(false);
      this.#end();
    } else {
      this.#outcome = outcome;
      this.#expireLater(() => written(false));
    }
  }

  /** The client is given a task in place of an outcome: the call goes on behind it, and so may its questions. */
  giveTask(text: string): void {
    const waiter = this.#waiter;
    this.#waiter = undefined;
    this.#isTask = true;
    waiter?.ends('result', text, () => {});
  }

  /** The call is answered on another way. */
  drop(): void {
    const waiter = this.#waiter;
    this.#waiter = undefined;
    this.#end();
    waiter?.dropped?.();
  }

  #answerAhead(): void {
    const answers = this.#ahead;
    this.#ahead = new Map();
    if (this.#leg > 1 || !this.#fits(answers)) return;
    this.#leg += 1;
    for (const [key, result] of answers) this.#asked.get(key)?.tell(result);
  }

  #fits(answers: ReadonlyMap<string, string>): boolean {
    return [...answers.keys()].some((key) => key !== '' && this.#asked.has(key));
  }

  #askOne(question: Question): Promise<string | undefined> {
    return new Promise((resolve) => {
      const tell = (result: string | undefined): void => {
        this.#asked.delete(question.key);
        resolve(result);
      };
      this.#asked.set(question.key, { question, tell });
    });
  }

  #askNothing(): Promise<Answers> {
    const key = '';
    const done = this.#askOne({ key, method: '', params: undefined });
    this.#askNow();
    return done.then((result) => (result === undefined ? undefined : new Map()));
  }

  /** Behind a task nobody comes back with a state alone: the call does by itself, as a client would. */
  #comeBack(): Promise<Answers> {
    return new Promise((resolve) => {
      setTimeout(() => resolve(new Map()), COME_BACK_MS).unref();
    });
  }

  #askNow(): void {
    const waiter = this.#waiter;
    if (waiter === undefined) return;
    this.#waiter = undefined;
    waiter.asks([...this.#asked.values()].map(({ question }) => question).filter(({ key }) => key !== ''));
    this.#expectAnswers();
  }

  #expectAnswers(): void {
    this.#expireLater(() => {
      for (const { tell } of [...this.#asked.values()]) tell(undefined);
    });
  }

  #expireLater(told: () => void): void {
    clearTimeout(this.#expiry);
    this.#expiry = setTimeout(() => {
      told();
      this.#end();
    }, ANSWER_MAX_MS);
    this.#expiry.unref();
  }

  #deliver({ member, text, written }: Outcome): void {
    const waiter = this.#waiter;
    this.#waiter = undefined;
    waiter?.ends(member, text, written);
    this.#end();
  }

  #end(): void {
    this.#isEnded = true;
    clearTimeout(this.#expiry);
    this.#onEnd();
  }
}
