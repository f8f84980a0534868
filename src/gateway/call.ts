// One `tools/call` of a client, read strictly: which tool, which arguments, which run — or why it cannot be read.

import { unrepresentableText } from '../core/answer-wording.ts';
import type { JsonObject, JsonValue } from '../core/canonical.ts';
import { memberText, scanMembers } from '../core/json-frame.ts';
import { readStrictJson } from '../core/json-text.ts';
import { traceOf } from '../core/search.ts';
import type { GivenRun } from '../engine/runs.ts';

export interface ToolCall {
  readonly tool: string;
  /** `refusal`, in words for the caller, where they cannot be represented exactly. */
  readonly arguments:
    | { readonly ok: true; readonly value: JsonObject }
    | { readonly ok: false; readonly refusal: string };
  /** Whether it asks to be run as a task (2025-11-25, experimental). */
  readonly isTask: boolean;
  /** The raw `_meta`, passed on as it is. */
  readonly meta: string | undefined;
  /** What its `_meta` says of where it comes from. Only a write needs it: a read passes whatever is there. */
  readonly origin: CallOrigin;
}

export type CallOrigin =
  | {
      readonly ok: true;
      readonly run: GivenRun | undefined;
      /** Call ids that prove a replay when they come again. */
      readonly replays: readonly string[];
      /** Names of threads and traces, by which others may look for what it became. */
      readonly references?: readonly string[];
    }
  | { readonly ok: false; readonly problem: string };

export type CallReading =
  | { readonly ok: true; readonly call: ToolCall }
  | { readonly ok: false; readonly problem: string };

/** Members of `_meta` by which frameworks name the call of the model, never the JSON-RPC request. */
const CALL_ID_KEYS = ['counterfoil/call', 'claudecode/toolUseId'] as const;
/** Members of `_meta` by which a framework names the position of the call. */
const POSITION_KEYS = ['counterfoil/position'] as const;
/** Members of `_meta` that say which run a call belongs to, and where in it. */
export const RUN_KEYS = [
  'counterfoil/run',
  'counterfoil/step',
  'counterfoil/single',
  'counterfoil/occurrence',
] as const;
/** Members of `_meta` by which others know the work: W3C Trace Context, as MCP carries it, and names of threads. */
const TRACE_KEY = 'traceparent';
const THREAD_KEYS = ['counterfoil/thread', 'thread_id', 'threadId'] as const;
const OUR_KEYS = [...RUN_KEYS, ...CALL_ID_KEYS, ...POSITION_KEYS] as const;
const OTHERS_KEYS = [TRACE_KEY, ...THREAD_KEYS] as const;

/**
 * @param params the raw text of the request's `params`
 * @param defaultRun the run that the gateway was started for, when it was
 */
export function readToolCall(params: string | undefined, defaultRun: string | undefined): CallReading {
  if (params === undefined) return unreadable('it has no params');
  const members = scanMembers(params);
  if (members === undefined) return unreadable('its params are not an object');
  if (members.duplicate) return unreadable('a member of its params is there twice');
  const name = readStrictJson(memberText(params, 'name') ?? '');
  if (!name.ok || typeof name.value !== 'string') return unreadable('it names no tool');
  const meta = memberText(params, '_meta');
  return {
    ok: true,
    call: {
      tool: name.value,
      arguments: readArguments(memberText(params, 'arguments')),
      isTask: members.values.has('task'),
      meta,
      origin: readOrigin(meta, defaultRun),
    },
  };
}

/** Other people's members of `_meta` are not looked at: they are only passed on. */
function readOrigin(metaText: string | undefined, defaultRun: string | undefined): CallOrigin {
  const members = scanMembers(metaText ?? '{}');
  if (members === undefined) return { ok: false, problem: 'its _meta is not an object' };
  if (members.duplicate) return { ok: false, problem: 'a member of its _meta is there twice' };
  const meta: Record<string, JsonValue> = {};
  for (const key of OUR_KEYS) {
    const range = members.values.get(key);
    if (range === undefined) continue;
    const read = readStrictJson((metaText ?? '').slice(range.start, range.end));
    if (!read.ok) return { ok: false, problem: `${key} in its _meta cannot be read` };
    meta[key] = read.value;
  }
  const run = readRun(meta, defaultRun);
  if ('problem' in run) return { ok: false, ...run };
  const others = new Map<string, JsonValue>();
  for (const key of OTHERS_KEYS) {
    const range = members.values.get(key);
    const read =
      range === undefined ? undefined : readStrictJson((metaText ?? '').slice(range.start, range.end));
    // They are other people's: what cannot be read is passed on like everything else.
    if (read?.ok === true) others.set(key, read.value);
  }
  const references = referencesOf(others);
  return {
    ok: true,
    run: run.run,
    replays: replaysOf(meta),
    ...(references.length === 0 ? {} : { references }),
  };
}

function referencesOf(others: ReadonlyMap<string, JsonValue>): readonly string[] {
  const parent = others.get(TRACE_KEY);
  const trace = isName(parent) ? traceOf(parent) : undefined;
  const threads = THREAD_KEYS.flatMap((key) => {
    const thread = others.get(key);
    return isName(thread) ? [`thread:${thread}`] : [];
  });
  return [...(trace === undefined || trace === parent ? [] : [`trace:${trace}`]), ...new Set(threads)];
}

function unreadable(problem: string): CallReading {
  return { ok: false, problem };
}

function readArguments(text: string | undefined): ToolCall['arguments'] {
  const read = readStrictJson(text ?? '{}');
  if (!read.ok) {
    const { at, message } = read.reason;
    return { ok: false, refusal: unrepresentableText(`${message}${at === '' ? '' : ` (at ${at})`}`) };
  }
  const value = asObject(read);
  return value === undefined ? { ok: false, refusal: NOT_AN_OBJECT } : { ok: true, value };
}

const NOT_AN_OBJECT = 'NOT SENT — the arguments are not a JSON object. Correct and call again.';

function asObject(read: ReturnType<typeof readStrictJson>): JsonObject | undefined {
  if (!read.ok || typeof read.value !== 'object' || read.value === null || Array.isArray(read.value))
    return undefined;
  return read.value as JsonObject;
}

function readRun(
  meta: JsonObject,
  defaultRun: string | undefined,
): { readonly run: GivenRun | undefined } | { readonly problem: string } {
  const id = own(meta, 'counterfoil/run') ?? defaultRun;
  const step = own(meta, 'counterfoil/step');
  const single = own(meta, 'counterfoil/single');
  const occurrence = own(meta, 'counterfoil/occurrence');
  if (id !== undefined && !isRunName(id))
    return { problem: `counterfoil/run in its _meta is not ${A_RUN_NAME}` };
  if (step !== undefined && !isName(step)) return { problem: 'counterfoil/step in its _meta is not a name' };
  if (single !== undefined && typeof single !== 'boolean') {
    return { problem: 'counterfoil/single in its _meta is neither true nor false' };
  }
  if (occurrence !== undefined && !isCount(occurrence)) {
    return { problem: 'counterfoil/occurrence in its _meta is not a whole number from 0' };
  }
  if (id === undefined) {
    const orphan = step !== undefined || single !== undefined || occurrence !== undefined;
    return orphan
      ? { problem: 'its _meta names a step, single or occurrence without counterfoil/run' }
      : { run: undefined };
  }
  if (single === true && step === undefined)
    return { problem: 'its _meta says single without counterfoil/step' };
  return {
    run: {
      id,
      ...(step === undefined ? {} : { step }),
      ...(single === undefined ? {} : { single }),
      ...(occurrence === undefined ? {} : { occurrence }),
    },
  };
}

function replaysOf(meta: JsonObject): readonly string[] {
  const named = (keys: readonly string[], kind: string): string[] =>
    keys.flatMap((key) => {
      const value = own(meta, key);
      return isName(value) ? [`${kind}:${value}`] : [];
    });
  return [...named(CALL_ID_KEYS, 'call'), ...named(POSITION_KEYS, 'position')];
}

function own(meta: JsonObject, key: string): JsonValue | undefined {
  return Object.hasOwn(meta, key) ? meta[key] : undefined;
}

const NAME_MAX = 256;
const CONTROL = /\p{Cc}/u;
/** Calls without a run are kept under names of this kind. */
const WEAK_RUN = 'weak/';

/** What a run may be called, to complete "… is not …". */
export const A_RUN_NAME = `a name of 1 to ${NAME_MAX} characters without control characters, or begins with ${WEAK_RUN}`;

export function isRunName(value: JsonValue | undefined): value is string {
  return isName(value) && !value.startsWith(WEAK_RUN);
}

function isName(value: JsonValue | undefined): value is string {
  return typeof value === 'string' && value.trim() !== '' && value.length <= NAME_MAX && !CONTROL.test(value);
}

function isCount(value: JsonValue): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0;
}
