// What a server asks back in the middle of a call (elicitation, sampling, roots), in the one form that both
// generations have: named questions, and answers under the same names.

import { memberText, scanMembers } from '../../core/json-frame.ts';

/** `params` is raw JSON text; absent where the server gave none. */
export interface Question {
  readonly key: string;
  readonly method: string;
  readonly params: string | undefined;
  /** The operation that it is about, where the gateway asks by itself. */
  readonly about?: string;
}

/** The client's results by the questions' keys, as raw JSON text. `undefined`: nobody answers. */
export type Answers = ReadonlyMap<string, string> | undefined;

/** What a result of 2026-07-28 that is no outcome asks for. */
export interface InputRequired {
  readonly questions: readonly Question[];
  /** Raw JSON text; goes back as it came. */
  readonly requestState: string | undefined;
}

/** `undefined` for every result that is an outcome. */
export function readInputRequired(result: string): InputRequired | undefined {
  if (!result.includes('input_required')) return undefined;
  if (memberText(result, 'resultType') !== '"input_required"') return undefined;
  const requests = memberText(result, 'inputRequests') ?? '{}';
  const questions = [...(scanMembers(requests)?.values ?? [])].map(([key, { start, end }]): Question => {
    const text = requests.slice(start, end);
    return { key, method: textOf(memberText(text, 'method')), params: memberText(text, 'params') };
  });
  return { questions, requestState: memberText(result, 'requestState') };
}

/** The members that carry answers back, as JSON texts. */
export function answerMembers(
  answers: ReadonlyMap<string, string>,
  requestState: string | undefined,
): Readonly<Record<string, string>> {
  const responses = [...answers].map(([key, value]) => `${JSON.stringify(key)}:${value}`);
  return {
    inputResponses: `{${responses.join(',')}}`,
    ...(requestState === undefined ? {} : { requestState }),
  };
}

function textOf(text: string | undefined): string {
  try {
    return String(JSON.parse(text ?? '""'));
  } catch {
    return '';
  }
}
