// "Is this the same intended write?" — the intent key, and what an equal call is answered with (D6).

import { canonicalJson } from './canonical.ts';
import type { RepeatClass } from './contract.ts';
import { hmacSha256Hex, sha256Hex } from './digest.ts';
import { isUnsettled, type Operation, type RunReference, wasEndedByWill } from './operation.ts';

type JsonValue = Parameters<typeof canonicalJson>[0];

const HOUR_MS = 3_600_000;
const HOUR_DIGITS = 8;
/** So much of the cross-run hash is in an intent key. */
const CROSS_RUN_DIGITS = 16;

/** The hour, 4 bytes as hex: it leads every key, so that keys of one time share index pages. */
function hourPrefix(at: number): string {
  return Math.floor(at / HOUR_MS)
    .toString(16)
    .padStart(HOUR_DIGITS, '0');
}

export interface IntentParts {
  readonly tenant: string;
  readonly run: RunReference;
  /** When the run's row was first committed, read back from the store; never computed from a caller's id. */
  readonly runBeganAt: number;
  readonly tool: string;
  readonly destination: string;
  /** The arguments that make the intent, in their canonical text. */
  readonly businessText: string;
  /** 0 unless an orchestrator or a person declared another. */
  readonly occurrence: number;
}

/**
 * 20 bytes as hex: the hour in which the run began, then 8 bytes of the cross-run hash and 8 of a keyed hash over
 * everything. So equal intents of all runs that began in that hour lie together, and are found by what they have
 * in common.
 */
export function intentKey(
  secret: Uint8Array,
  parts: IntentParts,
  crossRun: string = crossRunHash(secret, parts),
): string {
  const { tenant, run, tool, destination, occurrence } = parts;
  const { id, step = null, weak } = run;
  const named = canonicalJson(['intent', tenant, weak, id, step, tool, destination, occurrence]);
  return (
    hourPrefix(parts.runBeganAt) +
    crossRun.slice(0, CROSS_RUN_DIGITS) +
    hashed(secret, named, parts.businessText).slice(0, 16)
  );
}

/** 16 bytes as hex. No canonical text holds a line break, so that it ends the names for certain. */
function hashed(secret: Uint8Array, named: string, businessText: string): string {
  return hmacSha256Hex(secret, `${named}\n${businessText}`).slice(0, 32);
}

/** The same without run and step, as hex: what equal intents of different runs have in common. */
export function crossRunHash(
  secret: Uint8Array,
  parts: Pick<IntentParts, 'tenant' | 'tool' | 'destination' | 'businessText'>,
): string {
  const named = canonicalJson(['cross_run', parts.tenant, parts.tool, parts.destination]);
  return hashed(secret, named, parts.businessText);
}

/**
 * What the keys of equal intents begin with, whatever their runs: an hour and the first 8 bytes of that hash. The
 * present hour first, then those before it until `windowMs` ago. Another intent may have the same 8 bytes: who
 * finds an operation by them compares its whole hash.
 */
export function crossRunPrefixes(hash: string, at: number, windowMs: number): readonly string[] {
  const prefixes: string[] = [];
  for (let hour = at; hour > at - windowMs - HOUR_MS; hour -= HOUR_MS) {
    prefixes.push(hourPrefix(hour) + hash.slice(0, CROSS_RUN_DIGITS));
  }
  return prefixes;
}

/**
 * The key of an entry under which an operation of this hash is found by the hour of its proposal; `undefined` where
 * its claim is found so, because its run began in the same hour.
 */
export function crossRunKey(hash: string, at: number, claim: string): string | undefined {
  const key = hourPrefix(at) + hash;
  return claim.startsWith(key.slice(0, HOUR_DIGITS + CROSS_RUN_DIGITS)) ? undefined : key;
}

const OPEN_HOUR = 'ffffffff';

/** No hour begins with it: the key under which open work of an intent is found, however old it is. */
export function openKey(hash: string): string {
  return OPEN_HOUR + hash;
}

export function openPrefix(hash: string): string {
  return OPEN_HOUR + hash.slice(0, CROSS_RUN_DIGITS);
}

/** The name of a target's lock: a keyed hash, so that the store's keys do not tell what is changed. */
export function lockName(
  secret: Uint8Array,
  tenant: string,
  destination: string,
  type: string,
  id: string,
): string {
  return `lock:${hmacSha256Hex(secret, canonicalJson(['lock', tenant, destination, type, id])).slice(0, 32)}`;
}

/** The name under which the latest proposal of a declared step is found. */
export function stepName(
  secret: Uint8Array,
  tenant: string,
  run: RunReference,
  tool: string,
  locks: readonly string[],
): string | undefined {
  if (run.step === undefined) return undefined;
  // A `single` step makes one write, whatever it is; on any other, tool and target tell the writes apart.
  if (run.single !== true && locks.length === 0) return undefined;
  const parts = run.single === true ? [] : [tool, ...[...locks].sort()];
  return `step:${hmacSha256Hex(secret, canonicalJson(['step', tenant, run.id, run.step, ...parts])).slice(0, 32)}`;
}

/** SHA-256 over what is decided on, bound, and recomputed before each send (D2, "digest"). */
export function operationDigest(parts: {
  readonly tenant: string;
  readonly destination: string;
  readonly tool: string;
  readonly payloadSha256: string;
  readonly target: JsonValue;
  readonly expectedVersion: string | null;
  readonly preconditions: JsonValue;
  readonly requester: string;
}): string {
  return sha256Hex(canonicalJson({ ...parts }));
}

/** What the judge has to know beside the earlier operation itself. */
export interface EqualCall {
  readonly at: number;
  /** Call id and position of the new call, when the framework gives them. */
  readonly replays: readonly string[];
  readonly repeat: RepeatClass;
  /** How long `unique` writes of this run are answered with the earlier one. */
  readonly resumeWindowMs: number;
  /**
   * `state` only: whether something of ours settled on the target since, and whether what is there is still
   * ours; `undefined` where it cannot be read.
   */
  readonly settledSince: boolean;
  readonly stillOurs: boolean | undefined;
  /** `unique` after an error: whether a look-up has found nothing since. */
  readonly lookedUpAbsent?: boolean;
}

/**
 * - `attach`: answered with that operation as it stands.
 * - `reopen`: the same operation begins a new round.
 * - `already_exists`: the goal is reached; nothing is sent.
 * - `next_occurrence`: a legitimate repeat, linked.
 * - `look_up`: the earlier one must be looked up before this can be judged.
 * - `ask`: a person must say.
 */
export type Judgement =
  | { readonly answer: 'attach' }
  | { readonly answer: 'reopen' }
  | { readonly answer: 'already_exists' }
  | { readonly answer: 'next_occurrence' }
  | { readonly answer: 'look_up' }
  | { readonly answer: 'ask'; readonly question: 'error_reported' | 'too_old' };

/** In the same run (D6, first table). */
export function judgeEqualCall(earlier: Operation, call: EqualCall): Judgement {
  if (earlier.stage !== 'closed') return { answer: 'attach' };
  // The caller took its own call back: there is no answer that it could have missed.
  if (earlier.why?.code === 'withdrawn_by_caller') {
    return earlier.observed === undefined ? { answer: 'reopen' } : { answer: 'next_occurrence' };
  }
  if (earlier.deliveredAt === undefined || isReplay(earlier, call)) return { answer: 'attach' };
  switch (earlier.effect) {
    case 'unknown':
    case 'diverged':
      return { answer: 'attach' };
    case 'not_sent':
    case 'rejected':
    case 'absent':
      if (wasEndedByWill(earlier)) return { answer: 'attach' };
      // What was only observed is not carried on: a new round would be as unguarded as the first.
      return earlier.round < ROUNDS_MAX && earlier.observed === undefined
        ? { answer: 'reopen' }
        : { answer: 'next_occurrence' };
    case 'error_reported':
      return judgeAfterError(call);
    case 'accepted':
    case 'verified':
      return judgeAfterPresence(earlier, call);
  }
}

/** How often one operation is asked for anew before an equal call begins another, linked (I14). */
const ROUNDS_MAX = 20;

function isReplay(earlier: Operation, call: EqualCall): boolean {
  return call.replays.some((replay) => earlier.replays.includes(replay));
}

function judgeAfterError(call: EqualCall): Judgement {
  if (call.repeat !== 'unique') return { answer: 'next_occurrence' };
  if (call.lookedUpAbsent === undefined) return { answer: 'look_up' };
  return call.lookedUpAbsent ? { answer: 'next_occurrence' } : { answer: 'ask', question: 'error_reported' };
}

const WEAK_WINDOW_MS = 24 * HOUR_MS;

function judgeAfterPresence(earlier: Operation, call: EqualCall): Judgement {
  switch (call.repeat) {
    case 'free':
      return { answer: 'next_occurrence' };
    case 'unique': {
      const windowMs = earlier.run.weak ? WEAK_WINDOW_MS : call.resumeWindowMs;
      if (call.at - earlier.since <= windowMs) return { answer: 'already_exists' };
      return earlier.run.weak ? { answer: 'next_occurrence' } : { answer: 'ask', question: 'too_old' };
    }
    case 'state':
      // Without a declared target nobody can tell whether it was changed since: the repeat goes through.
      if (earlier.target === undefined || call.settledSince || call.stillOurs === false) {
        return { answer: 'next_occurrence' };
      }
      return { answer: 'already_exists' };
  }
}

export type OtherRunJudgement =
  | { readonly answer: 'attach' }
  | { readonly answer: 'already_exists' }
  | { readonly answer: 'ask'; readonly question: 'same_work' }
  | { readonly answer: 'new_and_linked' };

/** In another run (D6, "Another run, same intent"). The index is advice; the lock protects the target. */
export function judgeOtherRun(earlier: Operation, call: EqualCall, windowMs: number): OtherRunJudgement {
  if (earlier.stage !== 'closed' || isUnsettled(earlier)) return { answer: 'attach' };
  if (earlier.effect !== 'accepted' && earlier.effect !== 'verified') return { answer: 'new_and_linked' };
  if (call.repeat === 'unique' && call.at - earlier.since <= windowMs) {
    return { answer: 'ask', question: 'same_work' };
  }
  if (
    call.repeat === 'state' &&
    earlier.target !== undefined &&
    !call.settledSince &&
    call.stillOurs !== false
  ) {
    return { answer: 'already_exists' };
  }
  return { answer: 'new_and_linked' };
}
