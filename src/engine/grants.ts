// Standing permissions: one kind of write, in one run, until an instant. They are rules that a named person has given and
// can end, and never approvals; what the floor protects is out of their reach (D2, D9).

import { isStrongEnough, mayBeGranted } from '../core/authority.ts';
import { canonicalJson } from '../core/canonical.ts';
import type { ToolFacts } from '../core/contract.ts';
import { sha256Hex } from '../core/digest.ts';
import type { DecisionStrength, OperationId } from '../core/operation.ts';
import type { Json, StreamRecord } from '../store/port.ts';
import type { EngineContext } from './context.ts';
import { DIGEST_PREFIX_MIN } from './given-digest.ts';
import { readOperation } from './records.ts';

/** The calls of a tool that need not be asked about in this run. */
export interface Grant {
  readonly id: string;
  readonly destination: string;
  readonly tool: string;
  readonly run: string;
  readonly by: string;
  readonly strength: DecisionStrength;
  readonly at: number;
  /** The last instant at which it counts. */
  readonly until: number;
  readonly revoked?: { readonly by: string; readonly at: number };
}

export interface GrantAsk {
  /** An operation of the kind, as it waits for a person: it says which tool and which run. */
  readonly operation: OperationId;
  readonly digest: string;
  readonly until: number;
  readonly by: string;
  readonly strength: DecisionStrength;
}

export type GrantResult =
  | { readonly granted: true; readonly grant: Grant }
  | {
      readonly granted: false;
      readonly refusal: 'not_found' | 'digest_differs' | 'never_granted' | 'strength_too_low' | 'too_long';
    };

/** A grant is for the work at hand; what is to hold for longer is for the configuration. */
export const GRANT_MAX_MS = 24 * 3_600_000;
const LISTED_MAX = 1_000;
const KIND = 'grant';

export class Grants {
  readonly #context: EngineContext;

  constructor(context: EngineContext) {
    this.#context = context;
  }

  /** Why it would not be given as things stand; `undefined` where it would be. Nothing is changed. */
  async refusalOf({ digest, operation: id, strength, until }: GrantAsk): Promise<GrantResult | undefined> {
    const record = await readOperation(this.#context, id);
    if (record === undefined) return { granted: false, refusal: 'not_found' };
    const { operation } = record;
    if (digest.length < DIGEST_PREFIX_MIN || !operation.digest.startsWith(digest))
      return { granted: false, refusal: 'digest_differs' };
    const isAskedForMode = operation.review?.question === 'strict';
    if (!mayBeGranted(operation.toolClass) || !isAskedForMode)
      return { granted: false, refusal: 'never_granted' };
    // It lets more through than before: somebody who may be the agent is not enough.
    if (!isStrongEnough(strength, 'irreversible')) return { granted: false, refusal: 'strength_too_low' };
    const now = this.#context.environment.now();
    return until <= now || until > now + GRANT_MAX_MS ? { granted: false, refusal: 'too_long' } : undefined;
  }

  /** From now on; what waits already is decided by itself. A later one takes the place of an earlier one. */
  async give(ask: GrantAsk): Promise<GrantResult> {
    const { environment, store, tenant } = this.#context;
    const refused = await this.refusalOf(ask);
    const record = await readOperation(this.#context, ask.operation);
    if (refused !== undefined || record === undefined)
      return refused ?? { granted: false, refusal: 'not_found' };
    const { destination, run, tool } = record.operation;
    const at = environment.now();
    const { by, strength, until } = ask;
    const stream = grantStream(destination, tool, run.id);
    const grant: Grant = { id: idOf(stream), destination, tool, run: run.id, by, strength, at, until };
    const [before] = await store.read(tenant, [stream]);
    const [result] = await store.commit([
      {
        tenant,
        at,
        writes: [
          {
            stream,
            expectedVersion: before?.version ?? 0,
            events: [{ type: 'granted', ...grant }],
            state: grant as unknown as Json,
          },
        ],
      },
    ]);
    return result?.outcome === 'stored' ? { granted: true, grant } : this.give(ask);
  }

  /** Ends it at once, for whoever asks: that only makes less happen. `undefined`: there is none. */
  async revoke(id: string, by: string): Promise<Grant | undefined> {
    const { environment, store, tenant } = this.#context;
    const [record] = await store.read(tenant, [`${KIND}:${id.replace(/^grant_/, '')}`]);
    const grant = record && grantIn(record);
    if (record === undefined || grant === undefined || grant.revoked !== undefined) return grant;
    const at = environment.now();
    const revoked: Grant = { ...grant, revoked: { by, at } };
    const [result] = await store.commit([
      {
        tenant,
        at,
        writes: [
          {
            stream: record.stream,
            expectedVersion: record.version,
            events: [{ type: 'revoked', by, at }],
            state: revoked as unknown as Json,
          },
        ],
      },
    ]);
    return result?.outcome === 'stored' ? revoked : this.revoke(id, by);
  }

  /** All that were given, with those that have ended. */
  async list(): Promise<readonly Grant[]> {
    const { store, tenant } = this.#context;
    const records = await store.streams({ tenant, kind: KIND, limit: LISTED_MAX });
    return records.map(grantIn);
  }

  isInForce({ revoked, until }: Grant): boolean {
    return revoked === undefined && this.#context.environment.now() <= until;
  }

  /** The facts with the grant that is in force for them in this run. Only where every write waits is one looked for. */
  async applied(facts: ToolFacts, run: string): Promise<ToolFacts> {
    if (facts.mode !== 'strict' || !mayBeGranted(facts.class)) return facts;
    const { store, tenant } = this.#context;
    const [record] = await store.read(tenant, [grantStream(facts.destination, facts.tool, run)]);
    const grant = record && grantIn(record);
    if (grant === undefined || !this.isInForce(grant)) return facts;
    return { ...facts, granted: { id: grant.id, by: grant.by } };
  }
}

/** One for each tool and run, so that it is found by what a call says. */
function grantStream(destination: string, tool: string, run: string): string {
  return `${KIND}:${sha256Hex(canonicalJson([destination, tool, run])).slice(0, 16)}`;
}

function idOf(stream: string): string {
  return `grant_${stream.slice(KIND.length + 1)}`;
}

function grantIn(record: StreamRecord): Grant {
  return record.state as unknown as Grant;
}
