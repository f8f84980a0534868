// What a read-back that shows something else means, by the versions alone (D4): that our write did not take effect, that
// somebody wrote after it, or neither.

import { isTrusted, type ToolFacts } from './contract.ts';
import type { Finding } from './evidence.ts';
import type { Operation } from './operation.ts';

export type UnlikeMeans = NonNullable<Extract<Finding, { kind: 'readback' }>['otherwise']>;

/**
 * @param seen the version that was read beside the fields that differ
 * @returns `cannot_tell` wherever the contract does not state that the version moves on with every change, and never back
 */
export function unlikeMeans(operation: Operation, facts: ToolFacts, seen: string | undefined): UnlikeMeans {
  const written = writtenVersion(operation, facts);
  if (written === undefined || seen === undefined) return 'cannot_tell';
  const [ours, theirs] = [bare(written), bare(seen)];
  if (ours === theirs) return 'nobody_wrote';
  // An older one is an answer from before our write; of two that are no numbers nobody can tell which came first.
  return isLater(theirs, ours) ? 'later_writer' : 'cannot_tell';
}

/** The version that our write made, by the destination's own acknowledgement of it. One that was found is only seen. */
function writtenVersion(operation: Operation, { operation: stated }: ToolFacts): string | undefined {
  const { attempts, evidence, record } = operation;
  const facts = stated?.version;
  if (stated?.acknowledgement?.version === undefined || facts === undefined) return undefined;
  if (facts.kind !== 'revision' || facts.aba_safe !== 'yes' || !isTrusted(facts.evidence)) return undefined;
  const isAcknowledged = evidence.some(
    (piece) => piece.kind === 'acknowledgement' && piece.means === 'accepted',
  );
  const isFound = evidence.some((piece) => piece.kind === 'lookup' && piece.found === 'present');
  // A repeat may be answered with the version of now.
  const isRepeated = attempts.some((attempt) => attempt.under !== undefined);
  return isAcknowledged && !isFound && !isRepeated ? record?.version : undefined;
}

/** An entity tag has quotes, and a mark where it is weak; the same version in a body has neither. */
function bare(version: string): string {
  return version.replace(/^(?:W\/)?"(.*)"$/, '$1');
}

const NUMBER = /^\d{1,40}$/;

function isLater(version: string, than: string): boolean {
  return NUMBER.test(version) && NUMBER.test(than) && BigInt(version) > BigInt(than);
}
