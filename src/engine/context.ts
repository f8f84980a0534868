// What every part of the engine works with: the ports, the injected world, and the ledger's own settings.

import type { AccessAnswer } from '../access/ask-source.ts';
import type { JsonObject } from '../core/canonical.ts';
import type { ToolFacts } from '../core/contract.ts';
import { hmacSha256Hex } from '../core/digest.ts';
import { formatId, ID_RANDOM_BYTES, type IdKind } from '../core/ids.ts';
import type { Bounds } from '../core/repeatability.ts';
import type { Reached } from '../core/stopping-points.ts';
import type { Destination } from '../destination/port.ts';
import type { Store } from '../store/port.ts';
import type { Environment } from './environment.ts';
import type { StopsInForce } from './stops-in-force.ts';
import type { AnswersOut, Waiters } from './waiters.ts';

/**
 * The facts about one tool for one call. `undefined`: this process does not know the tool (its server has not
 * listed it), so it neither classifies nor sends.
 */
export type FactsSource = (destination: string, tool: string, args: JsonObject) => ToolFacts | undefined;

export interface LedgerSettings {
  readonly bounds: Bounds;
  readonly approvalLifetimeMs: number;
  /** The owner's own word; where absent the contract's counts, else `REPLY_TIMEOUT_DEFAULT_MS`. */
  readonly replyTimeoutMs?: number;
  /** How long a caller that meets its operation on its way waits for the outcome. */
  readonly callerWaitMs: number;
  readonly readBackTimeoutMs: number;
  readonly lookUpTimeoutMs: number;
  /** How long `unique` writes of a given run are answered with the earlier one. */
  readonly resumeWindowMs: number;
  readonly crossRunWindowMs: number;
  /** Ordinary writes of one requester to one destination within an hour, before a person is asked; absent: no end. */
  readonly writesPerHourMax?: number;
  /** Added to `sendBy` before "no more will be sent" is said of a stop: what a process may need to hand over. */
  readonly stopMarginMs: number;
  /** A worker whose beat stands still for this long, on the watcher's clock, has lost its claims. */
  readonly leaseMs: number;
}

export interface EngineContext {
  readonly store: Store;
  readonly tenant: string;
  /** Opens what could not be opened before; `undefined` when nothing is missing. @throws {StoreFault} */
  readonly whenReady: () => Promise<void> | undefined;
  /** Keys intents and lock names; kept outside the store. */
  readonly secret: Uint8Array;
  readonly environment: Environment;
  readonly destinations: ReadonlyMap<string, Destination>;
  readonly factsFor: FactsSource;
  /** Brings the facts up to date with what persons have decided since: work that has waited is judged by them. */
  readonly refreshFacts: () => Promise<void>;
  /** Whether a principal still has access, by the command that a policy names. Never rejects. */
  readonly askAccess: (command: readonly string[], principal: string) => Promise<AccessAnswer>;
  readonly settings: LedgerSettings;
  readonly reached: Reached;
  /** This process, as claims name it. */
  readonly worker: string;
  readonly waiters: Waiters;
  readonly answersOut: AnswersOut;
  readonly stops: StopsInForce;
  /** Told about things that a person running the process should see; never content. */
  readonly report: (message: string) => void;
}

export function newId(context: EngineContext, kind: IdKind): string {
  const { environment } = context;
  return formatId(kind, environment.now(), environment.random(ID_RANDOM_BYTES));
}

/** Identity and end of a review, should a decision open one. */
export function newReview(
  context: EngineContext,
  at: number,
): { readonly id: string; readonly expiresAt: number } {
  return { id: newId(context, 'rev'), expiresAt: at + context.settings.approvalLifetimeMs };
}

/** What a key belongs to at this destination now, as attempts keep it; absent where the tool has no guard at all. */
export function scopeNow(
  { destinations, secret }: EngineContext,
  { destination, operation }: ToolFacts,
): string | undefined {
  if (operation === undefined || operation.guards.length === 0) return undefined;
  const scope = destinations.get(destination)?.scope?.();
  return scope === undefined ? undefined : hmacSha256Hex(secret, `scope\n${scope}`).slice(0, 32);
}

export const SALT_BYTES = 16;
