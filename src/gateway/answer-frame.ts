// Answers as MCP results: the destination's own bytes where it answered, one shape that every client accepts
// where we speak ourselves (D14).

import { answerText, fateUnknownText, foundText, statusText, storeDownText } from '../core/answer-wording.ts';
import type { JsonObject, JsonValue } from '../core/canonical.ts';
import { isFoundByLookUp } from '../core/known-facts.ts';
import type { Operation } from '../core/operation.ts';
import { type Surroundings } from '../core/wording.ts';
import type { Reply } from '../destination/port.ts';
import type { Answer, AnswerFacts, OperationAnswer } from '../engine/answers.ts';

export const OPERATION_META = 'counterfoil/operation';

export interface AnswerDoor {
  readonly helperTool: string;
  readonly where: string;
  /** Whether structured content still fits what the tool says it gives; `false` where a schema asks for some. */
  readonly fits: (structured: JsonValue | undefined) => Promise<boolean>;
}

/** The one member, beside its id, by which a request is answered; `text` is JSON. */
export interface AnswerMember {
  readonly member: 'result' | 'error';
  readonly text: string;
}

/** The frame that answers the request whose id is `id` (raw JSON text). */
export async function answerFrame(id: string, answer: Answer, door: AnswerDoor): Promise<string> {
  return memberFrame(id, await answerMember(answer, door));
}

/** The destination's `result` or `error`, byte for byte, or our own words. */
export async function answerMember(answer: Answer, door: AnswerDoor): Promise<AnswerMember> {
  if (answer.kind === 'pass') throw new Error('Assertion: what passes is answered by its destination.');
  if (answer.kind !== 'reply')
    return { member: 'result', text: JSON.stringify(await ownResult(answer, door)) };
  const { body, kind } = answer.reply;
  return { member: kind === 'protocol_error' ? 'error' : 'result', text: body };
}

export function memberFrame(id: string, { member, text }: AnswerMember): string {
  return `{"jsonrpc":"2.0","id":${id},"${member}":${text}}`;
}

export function resultFrame(id: string, result: string): string {
  return `{"jsonrpc":"2.0","id":${id},"result":${result}}`;
}

/** An error of the gateway itself; its code lies outside what JSON-RPC and MCP reserve. */
export function errorFrame(id: string, code: number, message: string): string {
  return memberFrame(id, ownError(code, message));
}

export function ownError(code: number, message: string): AnswerMember {
  return { member: 'error', text: JSON.stringify({ code, message, data: { origin: 'counterfoil' } }) };
}

/** Words alone, as the result of a tool that could not do what was asked. */
export function textResult(text: string, isError: boolean): string {
  return JSON.stringify({ content: [{ type: 'text', text }], ...(isError ? { isError: true } : {}) });
}

async function ownResult(
  answer: Exclude<Answer, { kind: 'reply' | 'pass' }>,
  door: AnswerDoor,
): Promise<JsonValue> {
  if (answer.kind === 'not_recorded') return { content: [text(storeDownText())], isError: true };
  if (answer.kind === 'fate_unknown') {
    return { content: [text(fateUnknownText(answer.operation))], isError: true };
  }
  const words = surroundings(answer, door);
  const meta = operationMeta(answer.operation);
  if (answer.kind === 'state') {
    // What the destination itself said comes first, unchanged; it is why the operation is closed.
    const said = contentOf(answer.reply);
    return { content: [...said, text(answerText(answer.operation, words))], isError: true, ...meta };
  }
  const first = text(firstWords(answer, words));
  const original = answer.kind === 'already_exists' ? resultOf(answer.reply) : undefined;
  const structured = original?.['structuredContent'];
  const content = [first, ...contentOf(answer.kind === 'already_exists' ? answer.reply : undefined)];
  if (!(await door.fits(structured))) return { content, isError: true, ...meta };
  return { content, ...(structured === undefined ? {} : { structuredContent: structured }), ...meta };
}

function firstWords(
  { kind, operation }: Exclude<OperationAnswer, { kind: 'reply' }>,
  words: Surroundings,
): string {
  if (kind !== 'found') return answerText(operation, words);
  // Acknowledged, in an answer that was longer than is passed on.
  return isFoundByLookUp(operation) ? foundText(operation, words) : statusText(operation, words);
}

export function surroundings(
  answer: AnswerFacts,
  door: Pick<AnswerDoor, 'helperTool' | 'where'>,
): Surroundings {
  return {
    helperTool: door.helperTool,
    where: door.where,
    notApplied: answer.notApplied,
    ...(answer.target === undefined ? {} : { target: answer.target }),
    ...(answer.quote === undefined ? {} : { quote: answer.quote }),
    ...(answer.otherRun === undefined ? {} : { otherRun: answer.otherRun }),
  };
}

/** The same facts for programs. Names, states and instants only; no content. */
export function operationMeta(operation: Operation): { readonly _meta: JsonObject } {
  return {
    _meta: {
      [OPERATION_META]: {
        operation: operation.id,
        stage: operation.stage,
        effect: operation.effect,
        ...(operation.why === undefined ? {} : { cause: operation.why.code }),
        ...(operation.resolution === undefined ? {} : { resolution: operation.resolution.resolution }),
        destination: operation.destination,
        tool: operation.tool,
        run: operation.run.id,
        ...(operation.record?.id === undefined ? {} : { record: operation.record.id }),
      },
    },
  };
}

function text(words: string): JsonObject {
  return { type: 'text', text: words };
}

function resultOf(reply: Reply | undefined): JsonObject | undefined {
  if (reply === undefined || reply.kind === 'protocol_error' || reply.truncated === true) return undefined;
  try {
    const parsed = JSON.parse(reply.body) as JsonValue;
    return typeof parsed === 'object' && parsed !== null && !Array.isArray(parsed)
      ? (parsed as JsonObject)
      : undefined;
  } catch {
    return undefined;
  }
}

/** What the destination said to its caller, where that was kept whole. */
export function contentOf(reply: Reply | undefined): readonly JsonValue[] {
  const content = resultOf(reply)?.['content'];
  return Array.isArray(content) ? (content as readonly JsonValue[]) : [];
}
