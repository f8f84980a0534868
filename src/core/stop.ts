// A stop: the operator's order that no more is sent at a scope; and the cancel of a run, which is one until all of the
// run's open work has ended. Which operations they cover, as values (D10).

import type { ContentDigest } from './attempt.ts';
import type { DecisionStrength, Why } from './operation.ts';

export type StopScope =
  | { readonly kind: 'everything' }
  | { readonly kind: 'destination'; readonly destination: string }
  | { readonly kind: 'tool'; readonly destination: string; readonly tool: string }
  | { readonly kind: 'run'; readonly run: string }
  | { readonly kind: 'requester'; readonly requester: string };

/** As every sender knows it: what it needs to leave an operation alone, and to say why. */
export interface StopInForce {
  readonly id: string;
  readonly kind: 'stop' | 'cancel';
  readonly scope: StopScope;
  readonly by: string;
  readonly at: number;
  /** The operator's words, as a content document of the stop. */
  readonly reason?: ContentDigest;
  readonly strength?: DecisionStrength;
}

/** What of an operation a scope may name. */
export interface Stoppable {
  readonly destination: string;
  readonly tool: string;
  readonly requester: string;
  readonly run: { readonly id: string };
}

export function isCovered(scope: StopScope, { destination, requester, run, tool }: Stoppable): boolean {
  switch (scope.kind) {
    case 'everything':
      return true;
    case 'destination':
      return scope.destination === destination;
    case 'tool':
      return scope.destination === destination && scope.tool === tool;
    case 'run':
      return scope.run === run.id;
    case 'requester':
      return scope.requester === requester;
  }
}

/** What stands against sending it; a cancel before a stop, because it is not lifted. */
export function stopOver(stops: readonly StopInForce[], operation: Stoppable): StopInForce | undefined {
  if (stops.length === 0) return undefined;
  const over = stops.filter(({ scope }) => isCovered(scope, operation));
  return over.find(({ kind }) => kind === 'cancel') ?? over[0];
}

export function isSameScope(one: StopScope, other: StopScope): boolean {
  return scopeName(one) === scopeName(other);
}

/** One scope has one name, whatever is in its parts. */
function scopeName(scope: StopScope): string {
  switch (scope.kind) {
    case 'everything':
      return 'everything';
    case 'destination':
      return JSON.stringify([scope.kind, scope.destination]);
    case 'tool':
      return JSON.stringify([scope.kind, scope.destination, scope.tool]);
    case 'run':
      return JSON.stringify([scope.kind, scope.run]);
    case 'requester':
      return JSON.stringify([scope.kind, scope.requester]);
  }
}

/** Why an operation under it is not sent. */
export function whyOf({ at, by, id, kind, reason, scope, strength }: StopInForce): Ending {
  if (kind === 'cancel')
    return { code: 'cancelled', by, at, ...(strength === undefined ? {} : { strength }) };
  return {
    code: 'stopped',
    stop: id,
    since: at,
    scope: scope.kind,
    ...(reason === undefined ? {} : { reason }),
  };
}

/** By a person's will or order nothing more of it is sent; what is out goes on to be known. */
export type Ending = Extract<Why, { readonly code: 'cancelled' | 'stopped' }>;
