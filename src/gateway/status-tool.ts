// The one tool that the gateway adds: it tells what became of an operation, and can wait for news.

import { cancelText, statusText } from '../core/answer-wording.ts';
import type { Acknowledgements } from '../core/cancellation.ts';
import type { JsonObject } from '../core/canonical.ts';
import { acknowledgementLines } from '../core/stop-wording.ts';
import { type Surroundings } from '../core/wording.ts';
import type { OperationReading } from '../engine/readings.ts';
import { contentOf, operationMeta } from './answer-frame.ts';

export const HELPER_TOOL_NAME = 'counterfoil_operation_status';

/** Longer waits outlast the patience of clients. */
export const STATUS_WAIT_MAX_S = 45;

const REASON_MAX = 500;

const DESCRIPTION =
  'Tells what is known about a write that was recorded by Counterfoil: not sent, waiting for a person, sent, accepted, verified, or outcome unknown. It never sends anything. Give the reference that an answer named (op_…). With wait_s it waits for news first. With again: true and a reason it asks a person whether a second one, equal to a finished write, is really wanted.';

/** The tool as JSON text, for the list. */
export function helperToolText(name: string): string {
  return JSON.stringify({
    name,
    description: DESCRIPTION,
    inputSchema: {
      type: 'object',
      properties: {
        operation: { type: 'string', description: 'The reference of the operation, beginning with op_.' },
        wait_s: {
          type: 'integer',
          minimum: 0,
          maximum: STATUS_WAIT_MAX_S,
          description: 'Seconds to wait for news before answering.',
        },
        again: {
          type: 'boolean',
          description: 'True only when the user really wants the same write once more; a person is asked.',
        },
        reason: {
          type: 'string',
          minLength: 1,
          maxLength: REASON_MAX,
          description: 'With again: why a second one is wanted. A person reads it.',
        },
      },
      required: ['operation'],
      additionalProperties: false,
    },
    annotations: { readOnlyHint: false, destructiveHint: false, idempotentHint: true, openWorldHint: false },
  });
}

const ARGUMENTS = ['operation', 'wait_s', 'again', 'reason'];
const REFERENCE = /^op_[0-9A-Za-z]{1,64}$/;

export type StatusQuestion =
  | {
      readonly ok: true;
      readonly operation: string;
      readonly waitMs: number;
      /** Set when a second one is asked for. */
      readonly reason?: string;
    }
  | { readonly ok: false; readonly problem: string };

export function readStatusQuestion(args: JsonObject): StatusQuestion {
  const unknown = Object.keys(args).find((name) => !ARGUMENTS.includes(name));
  if (unknown !== undefined) return { ok: false, problem: `"${unknown}" is not an argument of this tool` };
  const operation = args['operation'];
  if (operation === undefined) return { ok: false, problem: '"operation" is required' };
  if (typeof operation !== 'string' || !REFERENCE.test(operation.trim())) {
    return {
      ok: false,
      problem: '"operation" must be the reference that an answer named, such as op_01ARYZ…',
    };
  }
  const wait = args['wait_s'] ?? 0;
  if (typeof wait !== 'number' || !Number.isInteger(wait) || wait < 0 || wait > STATUS_WAIT_MAX_S) {
    return { ok: false, problem: `wait_s must be a whole number from 0 to ${STATUS_WAIT_MAX_S}` };
  }
  const again = args['again'] ?? false;
  const reason = args['reason'];
  if (typeof again !== 'boolean') return { ok: false, problem: '"again" must be true or false' };
  if (!again && reason !== undefined) return { ok: false, problem: '"reason" belongs to again: true' };
  if (!again) return { ok: true, operation: operation.trim(), waitMs: wait * 1_000 };
  if (typeof reason !== 'string' || reason.trim() === '' || reason.length > REASON_MAX) {
    return {
      ok: false,
      problem: `again wants a "reason" of 1 to ${REASON_MAX} characters, which a person reads`,
    };
  }
  return { ok: true, operation: operation.trim(), waitMs: wait * 1_000, reason: reason.trim() };
}

/** What is known of an operation, as the tool's result; what the destination itself said follows, unchanged. */
export function statusResult(
  { operation, quote, reply, target }: OperationReading,
  words: Pick<Surroundings, 'helperTool' | 'where'>,
  cancelled?: Acknowledgements,
): string {
  const isOpen = operation.stage !== 'closed';
  const say = cancelled !== undefined && isOpen ? cancelText : statusText;
  const told = say(operation, {
    ...words,
    ...(target === undefined ? {} : { target }),
    ...(quote === undefined ? {} : { quote }),
  });
  const said = operation.stage === 'closed' ? contentOf(reply) : [];
  // How far a cancel has come, each part with its time.
  const parts =
    cancelled === undefined
      ? []
      : [{ type: 'text', text: acknowledgementLines(cancelled, 'Cancel requested').join(' ') }];
  const content = [{ type: 'text', text: told }, ...parts, ...said];
  return JSON.stringify({ content, ...operationMeta(operation) });
}
