// Questions that a client of the session generation is asked by requests of the gateway's own: a server of 2026-07-28
// asks them in a result, and this client knows only requests.

import { randomBytes } from 'node:crypto';
import type { Answers, Question } from '../destination/mcp/asking.ts';
import { type McpFrame, readMcpFrame } from '../destination/mcp/frame.ts';
import { requestKey } from '../destination/mcp/request-key.ts';
import type { ClientPort } from './client-port.ts';

/** A person may have to be found. */
const ANSWER_MAX_MS = 10 * 60_000;

export class ClientQuestions {
  readonly #client: ClientPort;
  readonly #idPrefix = `counterfoil:${randomBytes(4).toString('hex')}:q`;
  readonly #waiting = new Map<string, (result: string | undefined) => void>();
  #count = 0;
  #isClosed = false;

  constructor(client: ClientPort) {
    this.#client = client;
  }

  /** `undefined` as soon as one of them is refused or stays without an answer. */
  async ask(call: string, questions: readonly Question[]): Promise<Answers> {
    const results = await Promise.all(questions.map((question) => this.#askOne(call, question)));
    const answers = new Map<string, string>();
    for (const [index, { key }] of questions.entries()) {
      const result = results[index];
      if (result === undefined) return undefined;
      answers.set(key, result);
    }
    return answers;
  }

  /** True when the frame answers one of ours. */
  answer({ head, text }: McpFrame): boolean {
    const key = requestKey(head?.id && text.slice(head.id.start, head.id.end));
    const tell = key === undefined ? undefined : this.#waiting.get(key);
    if (tell === undefined) return false;
    tell(head?.result && text.slice(head.result.start, head.result.end));
    return true;
  }

  /** The client is gone. */
  close(): void {
    this.#isClosed = true;
    for (const tell of [...this.#waiting.values()]) tell(undefined);
  }

  #askOne(call: string, { method, params }: Question): Promise<string | undefined> {
    if (this.#isClosed) return Promise.resolve(undefined);
    this.#count += 1;
    const id = JSON.stringify(`${this.#idPrefix}${this.#count}`);
    return new Promise((resolve) => {
      const tell = (result: string | undefined): void => {
        clearTimeout(timer);
        this.#waiting.delete(id);
        resolve(result);
      };
      const timer = setTimeout(() => tell(undefined), ANSWER_MAX_MS);
      this.#waiting.set(id, tell);
      const given = params === undefined ? '' : `,"params":${params}`;
      const text = `{"jsonrpc":"2.0","id":${id},"method":${JSON.stringify(method)}${given}}`;
      this.#client.pass(readMcpFrame(Buffer.from(text)), call);
    });
  }
}
