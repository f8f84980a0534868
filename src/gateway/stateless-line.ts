// A client of 2026-07-28 on a line, in front of a server that knows sessions alone: what each request says of itself is
// checked, and its answers and messages go back on the one line.

import { memberText, scanMembers } from '../core/json-frame.ts';
import type { McpFrame } from '../destination/mcp/frame.ts';
import { CODE_UNSUPPORTED_VERSION, META, MODERN_VERSION } from '../destination/mcp/mcp-headers.ts';
import { memberFrame, ownError } from './answer-frame.ts';
import { type Refusal, readClientMessage, unusableId, usedId } from './client-frame.ts';
import type { ClientPort } from './client-port.ts';
import { requestKey } from './open-requests.ts';
import {
  type StatelessAnswer,
  type StatelessParts,
  type StatelessRefusal,
  StatelessRequests,
} from './stateless-requests.ts';

export interface StatelessLineParts extends Omit<StatelessParts, 'line'> {
  readonly requester: string;
  readonly client: ClientPort;
}

const CODE_INVALID_PARAMS = -32602;

/** What the first frame of a client says of itself, where it is of 2026-07-28; `undefined`: it begins a session. */
export function readStatelessGreeting({
  head,
  text,
}: McpFrame): { readonly capabilities: string } | undefined {
  if (head?.method === undefined || head.method === 'initialize' || head.params === undefined)
    return undefined;
  const params = text.slice(head.params.start, head.params.end);
  if (memberText(params, '_meta', META.protocolVersion) === undefined) return undefined;
  return { capabilities: memberText(params, '_meta', META.clientCapabilities) ?? '{}' };
}

export class StatelessLine {
  readonly #parts: StatelessLineParts;
  readonly #requests: StatelessRequests;
  readonly #open = new Map<string, LineAnswer>();
  readonly #ended = new AbortController();

  constructor(parts: StatelessLineParts) {
    this.#parts = parts;
    this.#requests = new StatelessRequests({ ...parts, line: { ended: this.#ended.signal } });
  }

  /** Handles one frame; not awaited to its answer, because many requests are open at once. */
  async receive(frame: McpFrame): Promise<void> {
    const message = readClientMessage(frame, (key) => this.#open.has(key));
    if (message.kind === 'refused') this.refuse(message);
    else if (message.kind === 'notification') this.#notification(message.method, paramsOf(frame));
    else if (message.kind === 'request') this.#request(message, paramsOf(frame));
    // This generation has no answers from clients, because no request is made to them.
  }

  refuse({ id, code, message }: Refusal): void {
    this.#parts.client.answer(undefined, memberFrame(id, ownError(code, message)));
  }

  /** A closed end ends the wait for news, not the work (D10): resolves when what was called is answered. */
  async end(): Promise<void> {
    this.#ended.abort();
    await this.#requests.settled();
    await this.#requests.close();
  }

  #notification(method: string, params: string): void {
    if (method !== 'notifications/cancelled') return;
    const key = requestKey(memberText(params, 'requestId'));
    const answer = key === undefined ? undefined : this.#open.get(key);
    answer?.takeBack();
  }

  #request(
    { id, key, method }: { readonly id: string; readonly key: string | undefined; readonly method: string },
    params: string,
  ): void {
    if (key === undefined) this.refuse(unusableId());
    else if (this.#open.has(key)) this.refuse(usedId(id));
    else {
      const answer = new LineAnswer(this.#parts.client, id, key, () => this.#open.delete(key));
      this.#open.set(key, answer);
      const problem = envelopeProblem(params);
      if (problem !== undefined) {
        answer.refuse(problem);
        return;
      }
      const asked = {
        id,
        key,
        method,
        params,
        capabilities: memberText(params, '_meta', META.clientCapabilities) ?? '{}',
        logLevel: memberText(params, '_meta', META.logLevel),
      };
      this.#requests.serve(asked, this.#parts.requester, answer).catch((cause: unknown) => {
        this.#parts.report(`A request could not be handled: ${String(cause)}`);
        const { text } = ownError(CODE_FAULT, 'The gateway met a fault of its own.');
        answer.end(id, 'error', text);
      });
    }
  }
}

const CODE_FAULT = 7002;

/** What stands against the members that each request of this generation must have. */
function envelopeProblem(params: string): StatelessRefusal | undefined {
  const refused = (code: number, message: string, data?: unknown): StatelessRefusal => ({
    status: 400,
    code,
    message,
    ...(data === undefined ? {} : { data }),
  });
  const meta = memberText(params, '_meta');
  if (
    scanMembers(params)?.duplicate === true ||
    (meta !== undefined && scanMembers(meta)?.duplicate === true)
  )
    return refused(CODE_INVALID_PARAMS, 'A member of its params or of their _meta is there twice.');
  const version = meta && memberText(meta, META.protocolVersion);
  const capabilities = meta && memberText(meta, META.clientCapabilities);
  if (version === undefined)
    return refused(CODE_INVALID_PARAMS, `The request lacks ${META.protocolVersion} in its _meta.`);
  if (capabilities === undefined || scanMembers(capabilities) === undefined)
    return refused(CODE_INVALID_PARAMS, `The request lacks ${META.clientCapabilities} in its _meta.`);
  if (version === `"${MODERN_VERSION}"`) return undefined;
  const data = { supported: [MODERN_VERSION], requested: version.replaceAll('"', '') };
  return refused(CODE_UNSUPPORTED_VERSION, 'Unsupported protocol version', data);
}

/** How one request is answered on the line. */
class LineAnswer implements StatelessAnswer {
  onGone: () => void = () => {};
  readonly #client: ClientPort;
  readonly #id: string;
  readonly #key: string;
  readonly #onDone: () => void;
  #isDone = false;

  constructor(client: ClientPort, id: string, key: string, onDone: () => void) {
    this.#client = client;
    this.#id = id;
    this.#key = key;
    this.#onDone = onDone;
  }

  /** The client has taken the request back: it is told nothing more (specification 2026-07-28, "Cancellation"). */
  takeBack(): void {
    if (this.#isDone) return;
    this.#done();
    this.onGone();
  }

  open(): void {
    // A line is open from the beginning.
  }

  message(frame: string): void {
    if (!this.#isDone) this.#client.answer(undefined, frame);
  }

  refuse({ code, data, message }: StatelessRefusal): void {
    const error = { code, message, data: data ?? { origin: 'counterfoil' } };
    this.end(this.#id, 'error', JSON.stringify(error));
  }

  end(
    id: string,
    member: 'result' | 'error',
    text: string,
    written: (isWritten: boolean) => void = () => {},
  ): void {
    if (this.#isDone) {
      written(false);
      return;
    }
    this.#done();
    this.#client.answer(this.#key, memberFrame(id, { member, text }), written);
  }

  #done(): void {
    this.#isDone = true;
    this.#onDone();
  }
}

function paramsOf({ head, text }: McpFrame): string {
  return head?.params === undefined ? '{}' : text.slice(head.params.start, head.params.end);
}
