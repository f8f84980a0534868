// The legs of calls that a client of 2026-07-28 is asked back in: which call an answer goes on with, and what the
// client is given to come back with.

import { canonicalJson, type JsonValue } from '../core/canonical.ts';
import { memberText, scanMembers } from '../core/json-frame.ts';
import type { Question } from '../destination/mcp/asking.ts';
import { withoutMembers } from '../destination/mcp/json-edit.ts';
import type { Ledger } from '../engine/ledger.ts';
import { textResult } from './answer-frame.ts';
import { RUN_KEYS } from './call.ts';
import { ANSWER_MAX_MS, Conversation } from './conversation.ts';
import { boundTo, isSealed, type LegState, seal, unseal } from './sealed-state.ts';
import { statusResult } from './status-tool.ts';
import type { GuardedServer } from './upstream.ts';

export interface LegsParts {
  readonly ledger: Ledger;
  readonly server: GuardedServer;
  readonly where: string;
  readonly report: (message: string) => void;
}

export interface Asked {
  readonly requester: string;
  readonly method: string;
  /** Raw JSON text. */
  readonly params: string;
}

export type Resumed =
  | { readonly kind: 'conversation'; readonly conversation: Conversation }
  /** What is known of the write, as a result. */
  | { readonly kind: 'known'; readonly result: string }
  | { readonly kind: 'refused'; readonly message: string };

interface Begun {
  readonly conversation: Conversation;
  readonly call: string;
  /** What an equal call has in common with it (D6). */
  readonly intent: string;
}

const KEY = 'requestState';

export class Legs {
  readonly #parts: LegsParts;
  readonly #conversations = new Map<string, Begun>();

  constructor(parts: LegsParts) {
    this.#parts = parts;
  }

  /** @param call the key by which the server's connection knows the call; the conversation's own where absent */
  begin(asked: Asked, call?: string): Conversation {
    const conversation: Conversation = new Conversation(asked.method, boundOf(asked), () =>
      this.#conversations.delete(conversation.id),
    );
    conversation.answerUnasked(answersOf(asked.params));
    this.#conversations.set(conversation.id, {
      conversation,
      call: call ?? conversation.id,
      intent: intentOf(asked),
    });
    return conversation;
  }

  /**
   * The write that an equal call finds while its question is open: it is that operation as it stands (D6), so that the
   * question is put again, unless the call brings the answer.
   */
  equalOf(asked: Asked): Conversation | undefined {
    if (asked.method !== 'tools/call') return undefined;
    const intent = intentOf(asked);
    for (const { conversation, call, intent: other } of this.#conversations.values()) {
      const isOpen = conversation.isAsking && this.#parts.server.operationOf(call) !== undefined;
      if (!isOpen || other !== intent) continue;
      conversation.answerUnasked(answersOf(asked.params));
      return conversation;
    }
    return undefined;
  }

  /** The result that puts questions to the client; `undefined` while no key can be had to seal its state. */
  inputRequired(conversation: Conversation, questions: readonly Question[]): string | undefined {
    const call = this.#conversations.get(conversation.id)?.call ?? conversation.id;
    const operation = this.#parts.server.operationOf(call) ?? questions[0]?.about;
    const state: LegState = {
      conversation: conversation.id,
      leg: conversation.leg,
      bound: conversation.bound,
      expiresAt: Date.now() + ANSWER_MAX_MS,
      ...(operation === undefined ? {} : { operation }),
    };
    let sealed: string;
    try {
      sealed = seal(this.#parts.ledger.keyFor(KEY), state);
    } catch (cause) {
      this.#parts.report(`A question could not be put to the client: ${String(cause)}`);
      return undefined;
    }
    const requests = questions.length === 0 ? '' : `"inputRequests":${inputRequests(questions)},`;
    return `{"resultType":"input_required",${requests}"requestState":${JSON.stringify(sealed)}}`;
  }

  /** `undefined` when the request does not come back with a state of ours. Takes the answers, once. */
  async resume(asked: Asked): Promise<Resumed | undefined> {
    const text = textOf(memberText(asked.params, 'requestState'));
    if (!isSealed(text)) return undefined;
    let state: LegState | undefined;
    try {
      state = unseal(this.#parts.ledger.keyFor(KEY), text);
    } catch {
      return refused('The requestState cannot be read now: the ledger cannot be opened.');
    }
    if (state === undefined || state.bound !== boundOf(asked)) {
      return refused('The requestState is not one that was given for this request.');
    }
    if (state.expiresAt < Date.now()) {
      return refused('The requestState is too old: its question is not waited for any more.');
    }
    const { conversation } = this.#conversations.get(state.conversation) ?? {};
    // A state alone wants no answer; that its client has come back is told under no name.
    if (conversation?.resume(state.leg, answersOf(asked.params).set('', '{}')) === true) {
      return { kind: 'conversation', conversation };
    }
    // It was used before, or the process that asked is gone: what is known of the write is still known.
    const result = state.operation === undefined ? undefined : await this.#status(state.operation);
    return result === undefined
      ? refused('The requestState has been used, or its question is not waited for any more.')
      : { kind: 'known', result };
  }

  async #status(operation: string): Promise<string | undefined> {
    const { ledger, server, where } = this.#parts;
    try {
      const found = await ledger.status(operation, 0);
      const reading = found && (await ledger.readings.reading(found));
      return reading && statusResult(reading, { helperTool: server.tools.helperName, where });
    } catch {
      return textResult(
        'The ledger cannot be read now. What is recorded stays recorded; ask again later.',
        true,
      );
    }
  }
}

function refused(message: string): Resumed {
  return { kind: 'refused', message };
}

/** A leg repeats the request, but for the members that carry the legs and that say who asks. */
function boundOf({ requester, method, params }: Asked): string {
  const salient = withoutMembers(params, ['_meta', 'requestState', 'inputResponses']);
  let canonical = salient;
  try {
    canonical = canonicalJson(JSON.parse(salient) as JsonValue);
  } catch {
    // What cannot be represented is bound as it was spelled.
  }
  return boundTo(requester, method, canonical);
}

/** The same request in the same run; where no run is given, the principal's. */
function intentOf(asked: Asked): string {
  const meta = memberText(asked.params, '_meta') ?? '{}';
  const run = RUN_KEYS.map((key) => memberText(meta, key) ?? '');
  return JSON.stringify([boundOf(asked), run]);
}

/** The questions as the member of that name has them, by their keys. */
export function inputRequests(questions: readonly Question[]): string {
  const requests = questions.map(({ key, method, params }) => {
    const given = params === undefined ? '' : `,"params":${params}`;
    return `${JSON.stringify(key)}:{"method":${JSON.stringify(method)}${given}}`;
  });
  return `{${requests.join(',')}}`;
}

export function answersOf(params: string): Map<string, string> {
  const text = memberText(params, 'inputResponses') ?? '{}';
  const members = [...(scanMembers(text)?.values ?? [])];
  return new Map(members.map(([key, { start, end }]) => [key, text.slice(start, end)]));
}

function textOf(text: string | undefined): string {
  try {
    const value: unknown = JSON.parse(text ?? '""');
    return typeof value === 'string' ? value : '';
  } catch {
    return '';
  }
}
