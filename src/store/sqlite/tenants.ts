// Tenants by number: the bucket of the name in the high bits, the tenant's place in the bucket in the low ones.
//
// A partitioned engine leads its keys with bucket, then tenant, so that all rows of one operation share a
// partition. Here the two are one integer of three bytes that leads the keys in the same order.

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import type { Statements } from './statements.ts';

const BUCKETS = 128;
const TENANTS_PER_BUCKET = 65_536;

/** A number that no tenant has: a name that is not known reads as a tenant without rows. */
export const NO_TENANT = 0;

export class Tenants {
  readonly #statements: Statements;
  readonly #numbers = new Map<string, number>();

  constructor(statements: Statements) {
    this.#statements = statements;
  }

  find(name: string): number {
    const known = this.#numbers.get(name);
    if (known !== undefined) return known;
    const row = this.#statements.findTenant.get(name) as readonly [number] | undefined;
    if (row === undefined) return NO_TENANT;
    this.#numbers.set(name, row[0]);
    return row[0];
  }

  /** The number of a tenant that is about to get its first rows; inside a writing transaction. */
  add(name: string): number {
    const first = bucketOf(name) * TENANTS_PER_BUCKET + 1;
    const last = first + TENANTS_PER_BUCKET - 2;
    const [highest] = this.#statements.highestTenant.get(first, last) as readonly [number | null];
    const number = highest === null ? first : highest + 1;
    assert(number <= last, `The bucket of tenant '${name}' is full: it has ${TENANTS_PER_BUCKET} tenants.`);
    this.#statements.insertTenant.run(number, name);
    this.#numbers.set(name, number);
    return number;
  }

  /** After a rollback: numbers given out in that transaction are not the tenants' own. */
  forget(): void {
    this.#numbers.clear();
  }
}

function bucketOf(name: string): number {
  return createHash('sha256').update(name).digest().readUInt8(0) % BUCKETS;
}
