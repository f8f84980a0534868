// A list of operations as a person saw it: each at one version of its history, the whole under one digest.

import { canonicalJson } from './canonical.ts';
import { sha256Hex } from './digest.ts';
import type { OperationId } from './operation.ts';

export interface ListedOperation {
  readonly operation: OperationId;
  /** The version of its history that was seen. */
  readonly version: number;
}

export interface FrozenList {
  /** In the order of their ids, each once. */
  readonly operations: readonly ListedOperation[];
  readonly digest: string;
}

/** SHA-256 over the canonical form of ids and versions; a version stands for payload, digest and state. */
export function frozenList(listed: readonly ListedOperation[]): FrozenList {
  const byId = new Map(listed.map(({ operation, version }) => [operation, { operation, version }]));
  const operations = [...byId.values()].toSorted((one, other) => (one.operation < other.operation ? -1 : 1));
  return { operations, digest: sha256Hex(canonicalJson(operations)) };
}
