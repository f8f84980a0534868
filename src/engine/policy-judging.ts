// What the policy is asked about one operation: when it is proposed, with what its run has written before, and again
// before each attempt, with whose access is lost and which earlier write is not known to have happened.

import type { SendingConditions } from '../core/authority.ts';
import type { JsonObject } from '../core/canonical.ts';
import { canonicalJson } from '../core/canonical.ts';
import type { ToolFacts } from '../core/contract.ts';
import { hmacSha256Hex } from '../core/digest.ts';
import { approversOf, type Operation, type OperationId, type RunReference } from '../core/operation.ts';
import {
  judgePolicy,
  meetsPrerequisite,
  type Policy,
  type PolicyCall,
  type Prerequisite,
  spokenOf,
  type Verdict,
} from '../core/policy.ts';
import type { StreamWrite } from '../store/port.ts';
import type { EngineContext } from './context.ts';
import type { Draft } from './draft.ts';
import type { Principals } from './principals.ts';
import { readOperation } from './records.ts';

export interface JudgedProposal {
  readonly verdict: Verdict;
  /** What a later write of the run may be asked about this one, in the commit of its proposal. */
  readonly writes: (operation: OperationId) => readonly StreamWrite[];
}

/** `undefined` where there is no policy. @throws {StoreFault} */
export async function judgeProposal(
  context: EngineContext,
  { call, facts }: Pick<Draft, 'call' | 'facts'>,
  run: RunReference,
): Promise<JudgedProposal | undefined> {
  const { policy } = facts;
  if (policy === undefined) return undefined;
  const policyCall = callOf({ ...call, run, class: facts.class });
  const counters = spokenOf(policy, policyCall)
    .filter(({ rule }) => rule.perRun !== undefined)
    .map(({ rule }) => ({ rule: rule.name, stream: counterOf(context, run, call.destination, rule.name) }));
  const rows = await keptRows<{ readonly writes: number }>(
    context,
    counters.map(({ stream }) => stream),
  );
  const counts = Object.fromEntries(
    counters.map(({ rule, stream }) => [rule, rows.get(stream)?.state.writes ?? 0]),
  );
  const verdict = judgePolicy(policy, policyCall, counts);
  if (verdict.outcome === 'refuse') return { verdict, writes: () => [] };
  const made = madeStreams(context, policy, policyCall);
  const earlier = await keptRows<{ readonly operations: readonly string[] }>(context, made);
  return {
    verdict,
    writes: (operation) => [
      ...counters.map(({ rule, stream }) => ({
        stream,
        expectedVersion: rows.get(stream)?.version ?? 0,
        events: [],
        state: { writes: (counts[rule] ?? 0) + 1 },
      })),
      ...made.map((stream) => ({
        stream,
        expectedVersion: earlier.get(stream)?.version ?? 0,
        events: [],
        state: {
          operations: [operation, ...(earlier.get(stream)?.state.operations ?? [])].slice(0, MADE_KEPT_MAX),
        },
      })),
    ],
  };
}

/** The newest that may be asked about; an older one that is not settled holds nothing back for ever. */
const MADE_KEPT_MAX = 16;

/** What the rules say of it alone, with nothing counted. */
export function verdictOf(
  { call, facts }: Pick<Draft, 'call' | 'facts'>,
  run: RunReference,
): Verdict | undefined {
  return facts.policy === undefined
    ? undefined
    : judgePolicy(facts.policy, callOf({ ...call, run, class: facts.class }));
}

/** The policy's part of D8's conditions, as it is at this moment. @throws {StoreFault} */
export async function judgeSendingNow(
  context: EngineContext,
  principals: Principals,
  operation: Operation,
  args: JsonObject,
  facts: ToolFacts | undefined,
): Promise<Pick<SendingConditions, 'verdict' | 'accessLost' | 'prerequisite'>> {
  // In `observe` everything has been sent as it came.
  if (operation.observed !== undefined) return {};
  const accessLost = await lostAccess(principals, operation, facts?.policy);
  if (facts?.policy === undefined) return { accessLost };
  const call = callOf({ ...operation, arguments: args, class: facts.class });
  const verdict = judgePolicy(facts.policy, call);
  const prerequisite = await missingPrerequisite(context, verdict, call);
  return { verdict, accessLost, prerequisite };
}

async function lostAccess(
  principals: Principals,
  { requester, review }: Operation,
  policy: Policy | undefined,
): Promise<SendingConditions['accessLost']> {
  const approvers = review?.decision?.kind === 'approved' ? approversOf(review) : [];
  const asked = [
    { who: 'requester', principal: requester },
    ...approvers.map((principal) => ({ who: 'approver', principal }) as const),
  ] as const;
  for (const { principal, who } of asked) {
    const how = await principals.lostNow(principal, policy?.access);
    if (how !== undefined) return { code: 'access_lost', who, principal, how };
  }
  return undefined;
}

async function missingPrerequisite(
  context: EngineContext,
  { requires }: Verdict,
  call: PolicyCall,
): Promise<SendingConditions['prerequisite']> {
  for (const prerequisite of requires) {
    const stream = madeOf(context, call, prerequisite.tool, sameOf(prerequisite, call.arguments));
    const rows = await keptRows<{ readonly operations: readonly string[] }>(context, [stream]);
    const { operations = [] } = rows.get(stream)?.state ?? {};
    if (await isMet(context, prerequisite, operations)) continue;
    const { effect, rule, tool } = prerequisite;
    const [latest] = operations;
    return {
      code: 'waits_for_prerequisite',
      rule,
      tool,
      effect,
      ...(latest === undefined ? {} : { operation: latest }),
    };
  }
  return undefined;
}

async function isMet(
  context: EngineContext,
  prerequisite: Prerequisite,
  operations: readonly string[],
): Promise<boolean> {
  for (const id of operations) {
    const record = await readOperation(context, id);
    if (record !== undefined && meetsPrerequisite(prerequisite, record.operation.effect)) return true;
  }
  return false;
}

function callOf(
  parts: Omit<PolicyCall, 'run'> & { readonly run: Pick<RunReference, 'id' | 'step'> },
): PolicyCall {
  const { destination, requester, run, tool } = parts;
  return {
    arguments: parts.arguments,
    requester,
    run: { id: run.id, ...(run.step === undefined ? {} : { step: run.step }) },
    destination,
    tool,
    class: parts.class,
  };
}

// ── Rows that later writes of a run are judged by ──────────────────────────────────────────────────────────

interface KeptRow<State> {
  readonly version: number;
  readonly state: State;
}

async function keptRows<State>(
  { store, tenant }: EngineContext,
  streams: readonly string[],
): Promise<ReadonlyMap<string, KeptRow<State>>> {
  if (streams.length === 0) return new Map();
  const records = await store.read(tenant, streams);
  return new Map(
    streams.flatMap((stream, index) => {
      const record = records[index];
      return record === undefined
        ? []
        : [[stream, { version: record.version, state: record.state as State }] as const];
    }),
  );
}

function counterOf(context: EngineContext, run: RunReference, destination: string, rule: string): string {
  return `runwrites:${keyed(context, ['count', run.id, destination, rule])}`;
}

/** Under each of these a later write of the run would look for this one. */
function madeStreams(context: EngineContext, policy: Policy, call: PolicyCall): readonly string[] {
  const streams = policy.rules.flatMap(({ requires = [] }) =>
    requires.flatMap(({ same, tool }) => {
      if (tool !== call.tool) return [];
      const names = Object.values(same);
      return madeOf(
        context,
        call,
        tool,
        names.map((name) => [name, valueOf(call.arguments, name)]),
      );
    }),
  );
  return [...new Set(streams)];
}

function sameOf({ same }: Prerequisite, args: JsonObject): readonly (readonly [string, string])[] {
  return Object.entries(same).map(([own, other]) => [other, valueOf(args, own)]);
}

function madeOf(
  context: EngineContext,
  { destination, run }: PolicyCall,
  tool: string,
  values: readonly (readonly [string, string])[],
): string {
  const sorted = values.toSorted(([a], [b]) => (a < b ? -1 : 1));
  return `runmade:${keyed(context, ['made', run.id, destination, tool, JSON.stringify(sorted)])}`;
}

/** An argument that is not there is like no value, so that nothing is the same as it by chance. */
function valueOf(args: JsonObject, name: string): string {
  const value = Object.hasOwn(args, name) ? args[name] : undefined;
  return value === undefined ? '' : canonicalJson(value);
}

function keyed({ secret, tenant }: EngineContext, parts: readonly string[]): string {
  return hmacSha256Hex(secret, JSON.stringify([tenant, ...parts])).slice(0, 40);
}
