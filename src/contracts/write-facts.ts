// Rules about one write that hold wherever its facts come from: a contract, a binding or an owner.

import type { ContractOperation, RepeatClass } from '../core/contract.ts';
import { templateNames } from '../core/template.ts';
import type { Finding, Path } from './problem.ts';

export interface IdentityFacts {
  readonly identity: readonly string[] | undefined;
  readonly target: { readonly id: string | readonly string[] } | undefined;
  /** The argument that we fill ourselves. */
  readonly stamp?: string | undefined;
  /** What the facts are about, as it is named in sentences. */
  readonly name: string;
  /** Where the identity stands, and where the target does. */
  readonly path: Path;
  readonly targetPath: Path;
}

/**
 * The identity holds the arguments that name the target, because two writes to two objects are never one intent.
 * It leaves out the stamp, which differs in every operation.
 */
export function identityFindings(facts: IdentityFacts): readonly Finding[] {
  const { identity, stamp, name, path, targetPath } = facts;
  const findings: Finding[] = [];
  const names = templateNames([facts.target?.id ?? []]);
  const given = names.find((argument) => argument.startsWith('$'));
  if (given !== undefined) {
    findings.push({
      path: targetPath,
      sentence: `The target of ${name} is named by {${given}}, which is known only after sending; only arguments of the call are allowed there.`,
    });
  }
  const named = names.filter((argument) => !argument.startsWith('$'));
  const left = named.find((argument) => !(identity ?? [argument]).some((entry) => isWithin(argument, entry)));
  if (left !== undefined) {
    findings.push({
      path,
      sentence: `The identity of ${name} leaves out the argument ${left}, which names its target; calls for two targets would be taken for one.`,
    });
  }
  if (stamp === undefined) return findings;
  const at = (identity ?? []).findIndex((entry) => isWithin(stamp, entry) || isWithin(entry, stamp));
  if (at >= 0) {
    findings.push({
      path: [...path, at],
      sentence: `The identity of ${name} holds ${identity?.[at]}, and the stamp fills ${stamp}; what we fill ourselves cannot tell calls apart.`,
    });
  }
  if (named.some((argument) => isWithin(argument, stamp) || isWithin(stamp, argument))) {
    findings.push({
      path: targetPath,
      sentence: `The target of ${name} is named by ${stamp}, and the stamp fills that argument; a target must be known before we fill anything.`,
    });
  }
  return findings;
}

/** Whether the argument `inner` is `outer` or lies within it. */
export function isWithin(inner: string, outer: string): boolean {
  return inner === outer || inner.startsWith(`${outer}/`);
}

/**
 * The floor of D9: destructive, and no way back. Such a write needs a person's decision each time, whatever a
 * binding, a configuration or a rule says.
 */
export function isIrreversible({ destructive, reversals }: ContractOperation): boolean {
  return destructive === true && reversals.every(({ kind }) => kind === 'none');
}

const REPEAT_BY_EFFECT: { readonly [effect in ContractOperation['effect']]: RepeatClass } = {
  create: 'unique',
  message: 'unique',
  update: 'state',
  replace: 'state',
  upsert: 'state',
  delete: 'state',
  action: 'free',
};

/** What an equal call is taken for (D6): as the contract states it, else by what the write does. */
export function repeatOf({ repeat, effect }: ContractOperation): RepeatClass {
  return repeat ?? REPEAT_BY_EFFECT[effect];
}

/** `contract-id/operation-id`; neither part holds a slash. */
export function splitName(name: string): readonly [contract: string, operation: string] {
  const slash = name.indexOf('/');
  return [name.slice(0, slash), name.slice(slash + 1)];
}
