// One call, frozen and understood before anything is decided about it: its payload, its intent, its target.

import { canonicalJson, type JsonObject, type JsonValue } from '../core/canonical.ts';
import type { ContractOperation, ToolFacts } from '../core/contract.ts';
import { sha256Hex } from '../core/digest.ts';
import { type FrozenWrite, writeRequest } from '../core/http-request.ts';
import { crossRunHash, intentKey, lockName } from '../core/intent.ts';
import type { Operation } from '../core/operation.ts';
import { fillTemplate } from '../core/template.ts';
import type { EngineContext } from './context.ts';
import type { StoredPayload, TargetDocument } from './payload.ts';
import { factsUnknown } from './reports.ts';
import type { GivenRun, ResolvedRun } from './runs.ts';

/** A write as a door hands it in. `arguments` must be a plain, representable JSON object that nobody changes. */
export interface WriteCall {
  readonly destination: string;
  readonly tool: string;
  readonly arguments: JsonObject;
  /** Who asks: the authenticated principal, or the local account's name. */
  readonly requester: string;
  readonly run?: GivenRun;
  /** The framework's tool-call id and position: stored, prove replays, never hashed. */
  readonly replays?: readonly string[];
  /** For the wire beside the arguments, as JSON text; never hashed. */
  readonly meta?: string;
  /** The caller's own connection to the destination, as the door names it; of use only while the caller is there. */
  readonly via?: string;
  /** A digest of the tool as its server lists it, by which a confirmed class is kept. */
  readonly toolDigest?: string;
  /** What that digest is over; kept where a person is asked what the tool is. */
  readonly toolDefinition?: string;
  /** Names that others know the call by, for finding it. */
  readonly references?: readonly string[];
  /** What the tool's own schema says against the arguments, in words; absent when they fit. */
  readonly schemaProblem?: string;
  /** Aborted when the caller takes its call back or is gone. It never stops what has left. */
  readonly signal?: AbortSignal;
  /** Whether the caller has closed its end: another one that waits for the same result is given it then. */
  readonly hasLeft?: () => boolean;
  /**
   * `assumed` (the default): the answer has reached its caller when `write` returns it, as for a caller in the
   * same process. `told`: the door says so itself, by `delivered` or `undelivered`.
   */
  readonly delivery?: 'assumed' | 'told';
  /** How long the caller waits for an outcome that is on its way; the default is the reply's time-out. */
  readonly waitMs?: number;
}

export interface Draft {
  readonly call: WriteCall;
  readonly facts: ToolFacts;
  /** The arguments in their canonical text, printed once for all that is hashed from it. */
  readonly argumentsText: string;
  readonly argumentsDigest: string;
  readonly businessText: string;
  readonly crossRunHash: string;
  readonly target: TargetDocument | undefined;
  readonly locks: readonly string[];
  /** Why no request can be made of the arguments, in words; absent where one can. */
  readonly problem: string | undefined;
}

/** Everything about a call that does not depend on time, store or run. */
export function draftCall(context: EngineContext, call: WriteCall, facts: ToolFacts): Draft {
  const args = withoutStamp(call.arguments, facts);
  const target = targetOf(facts, args);
  const { tenant, secret } = context;
  const { tool, destination } = call;
  const argumentsText = canonicalJson(args);
  const businessText =
    facts.identity === undefined ? argumentsText : canonicalJson(picked(args, facts.identity));
  return {
    call: args === call.arguments ? call : { ...call, arguments: args },
    facts,
    argumentsText,
    argumentsDigest: sha256Hex(argumentsText),
    businessText,
    crossRunHash: crossRunHash(secret, { tenant, tool, destination, businessText }),
    target,
    problem: requestProblem(facts, args),
    locks: (target?.ids ?? []).map((id) => lockName(secret, tenant, destination, target?.type ?? '', id)),
  };
}

/**
 * The same call once more, from its record: where the tool is not known here, as in a command that runs no gateway. It
 * is held against what is known of the tool then when it is sent.
 */
export function draftFromRecord(
  context: EngineContext,
  { operation, payload, call }: { operation: Operation; payload: StoredPayload; call: WriteCall },
  toolClass: ToolFacts['class'],
): Draft {
  const { crossRunHash, stamp, target } = operation;
  // Our own reference has its place in the payload, and is like nothing else there.
  const argument = Object.keys(payload.arguments).find((name) => payload.arguments[name] === stamp);
  const facts: ToolFacts = {
    ...factsUnknown(operation),
    class: toolClass,
    ...(stamp === undefined || argument === undefined ? {} : { stamp: { argument } }),
  };
  const draft = draftCall(context, call, facts);
  return { ...draft, crossRunHash, target: payload.target, locks: target?.locks ?? [] };
}

/** A model never supplies a key (I13): what it gives in the place of our reference is dropped. */
function withoutStamp(args: JsonObject, facts: ToolFacts): JsonObject {
  const name = facts.stamp?.argument;
  if (name === undefined || !Object.hasOwn(args, name)) return args;
  return Object.fromEntries(Object.entries(args).filter(([argument]) => argument !== name));
}

/** The canonical payload of an operation: its arguments with our reference in its place, or the request over HTTP. */
export function payloadText({ argumentsText, call, facts }: Draft, id: string): string {
  const args = stamped(call.arguments, facts, id);
  if (facts.operation?.http !== undefined) return frozenWrite(facts.operation, args, id);
  return args === call.arguments ? argumentsText : canonicalJson(args);
}

function stamped(args: JsonObject, facts: ToolFacts, id: string): JsonObject {
  const name = facts.stamp?.argument;
  return name === undefined ? args : { ...args, [name]: id };
}

function frozenWrite(operation: ContractOperation, args: JsonObject, id: string): string {
  const made = writeRequest(operation, args, id);
  // Of arguments of which none can be made an operation is recorded that is never sent.
  if (!made.ok) return canonicalJson({ arguments: args });
  const frozen: FrozenWrite = { arguments: args, request: made.request };
  return canonicalJson(frozen as unknown as JsonObject);
}

/** As long as every id of ours is, so that a key of it fits where every other does. */
const SOME_ID = `op_${'0'.repeat(26)}`;

function requestProblem(facts: ToolFacts, args: JsonObject): string | undefined {
  if (facts.operation?.http === undefined) return undefined;
  const made = writeRequest(facts.operation, stamped(args, facts, SOME_ID), SOME_ID);
  return made.ok ? undefined : made.problem;
}

function picked(args: JsonObject, identity: readonly string[]): JsonValue {
  const parts: [string, JsonValue][] = [];
  for (const pointer of identity) {
    const value = valueAt(args, pointer);
    if (value !== undefined) parts.push([pointer, value]);
  }
  return Object.fromEntries(parts);
}

function valueAt(args: JsonObject, pointer: string): JsonValue | undefined {
  let value: JsonValue | undefined = args;
  for (const name of pointer.split('/')) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, name)) return undefined;
    value = (value as { readonly [member: string]: JsonValue })[name];
  }
  return value;
}

/** A target whose id cannot be filled in is none: nothing is locked under a made-up name. */
function targetOf(facts: ToolFacts, args: JsonObject): TargetDocument | undefined {
  if (facts.target === undefined) return undefined;
  const ids: string[] = [];
  for (const template of facts.target.id) {
    const filled = fillTemplate(template, { arguments: args });
    if (!filled.ok || (typeof filled.value !== 'string' && typeof filled.value !== 'number'))
      return undefined;
    const id = String(filled.value);
    if (!ids.includes(id)) ids.push(id);
  }
  return { type: facts.target.type, ids };
}

/** The intent key in this run, and, for a weak run that has just rolled over, in the one before. */
export function keysOf(context: EngineContext, draft: Draft, run: ResolvedRun): readonly string[] {
  const runs = run.previous === undefined ? [run] : [run, run.previous];
  return runs.map(({ reference, beganAt }) =>
    intentKey(
      context.secret,
      {
        tenant: context.tenant,
        run: reference,
        runBeganAt: beganAt,
        tool: draft.call.tool,
        destination: draft.call.destination,
        businessText: draft.businessText,
        occurrence: draft.call.run?.occurrence ?? 0,
      },
      draft.crossRunHash,
    ),
  );
}

/** Top-level arguments of a call that an earlier payload has differently, our own reference apart. */
export function notApplied(
  earlier: JsonObject,
  args: JsonObject,
  stampArgument: string | undefined,
): readonly string[] {
  const names = new Set([...Object.keys(earlier), ...Object.keys(args)]);
  if (stampArgument !== undefined) names.delete(stampArgument);
  return [...names].filter((name) => {
    const one = earlier[name];
    const other = args[name];
    if (one === undefined || other === undefined) return true;
    return canonicalJson(one) !== canonicalJson(other);
  });
}
