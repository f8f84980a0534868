// Whether a principal may still act: by its own row, and by the token that it came with.

import type { AccessLost } from '../core/operation.ts';
import { principalOf, type TokenRow } from './tokens.ts';

/** `unknown`: nobody has said; it is known by what happened to its access alone. */
export type PrincipalKind = 'person' | 'agent' | 'service' | 'unknown';

export interface PrincipalRow {
  /** As operations and decisions name it, such as `token:planner` or `local:mara`. */
  readonly name: string;
  readonly kind: PrincipalKind;
  readonly expiresAt?: number;
  readonly removedAt?: number;
  readonly removedBy?: string;
  /** When whoever knows was asked last, and said that it has access. */
  readonly confirmedAt?: number;
}

/** @returns why it may act no more; `undefined` where nothing says so */
export function checkStanding(
  principal: string,
  known: { readonly row: PrincipalRow | undefined; readonly tokens: readonly TokenRow[] },
  at: number,
): AccessLost | undefined {
  const { row, tokens } = known;
  const token = tokens.find((one) => principalOf(one) === principal);
  if (row?.removedAt !== undefined || token?.revokedAt !== undefined) return 'removed';
  const ends = [row?.expiresAt, token?.expiresAt];
  return ends.some((end) => end !== undefined && at >= end) ? 'expired' : undefined;
}
