// Drafts of contracts: what a machine-readable description lets one assume, written down as assumed and nothing more.

import { createRequire } from 'node:module';
import type { Contract, ContractOperation, FactEvidence, Guard } from '../core/contract.ts';
import { loadContract, type Refused } from './load.ts';

export interface DraftOptions {
  /** A day such as 2026-11-30. */
  readonly today: string;
  readonly id?: string;
}

export interface Draft {
  readonly ok: true;
  readonly contract: Contract;
  /** The same as YAML, with a comment at its head. */
  readonly text: string;
}

const require = createRequire(import.meta.url);
const REVIEW_DAYS = 180;

export interface DraftParts {
  readonly id: string;
  readonly name: string;
  readonly protocol: string;
  readonly base?: string;
  readonly apiVersion?: string;
  readonly operations: readonly ContractOperation[];
  /** What it was made of, for the comment at its head. */
  readonly madeOf: string;
}

/** A contract that is right as a file; its facts are still to be found out. */
export function finishDraft(parts: DraftParts, { today }: DraftOptions): Draft | Refused {
  const { apiVersion, base, id, madeOf, name, operations, protocol } = parts;
  const contract = {
    contract: 1 as const,
    id,
    revision: 1,
    destination: {
      name,
      protocol,
      ...(base === undefined ? {} : { base }),
      ...(apiVersion === undefined ? {} : { api_version: apiVersion }),
    },
    ownership: { owner: 'unassigned', reviewed_on: today, review_by: addDays(today, REVIEW_DAYS) },
    operations: named(operations),
  };
  const { stringify }: typeof import('yaml') = require('yaml');
  const head = [
    `# A draft of ${today}, made of ${madeOf}.`,
    '# Everything in it is assumed: nothing is repeated on its word, and no absence counts. Answer the open questions,',
    '# give each fact its grade, source and day, and name an owner.',
  ];
  const text = `${head.join('\n')}\n${stringify(contract, { lineWidth: 118, aliasDuplicateObjects: false })}`;
  const loaded = loadContract(text, `${id}.contract.yaml`);
  return loaded.ok ? { ok: true, contract: loaded.contract, text } : loaded;
}

/** Two of the same name are told apart by a number. */
function named(operations: readonly ContractOperation[]): readonly ContractOperation[] {
  const seen = new Map<string, number>();
  return operations.map((operation) => {
    const count = (seen.get(operation.id) ?? 0) + 1;
    seen.set(operation.id, count);
    return count === 1 ? operation : { ...operation, id: `${operation.id}.${count}` };
  });
}

export function addDays(day: string, days: number): string {
  return new Date(Date.parse(day) + days * 24 * 3_600_000).toISOString().slice(0, 10);
}

/** An id of a contract out of whatever a thing is called. */
export function contractId(name: string): string {
  const id = name
    .toLowerCase()
    .replace(/[^a-z0-9.]+/g, '-')
    .replace(/^[-.]+|[-.]+$/g, '')
    .slice(0, 64);
  return id === '' ? 'draft' : id;
}

export function operationId(name: string): string {
  const id = name.replace(/[^A-Za-z0-9._-]+/g, '.').replace(/^[-._]+|[-._]+$/g, '');
  return id === '' ? 'write' : id.slice(0, 80);
}

export function assumed(source: string, { today }: DraftOptions, note?: string): FactEvidence {
  return { grade: 'assumed', source, checked_on: today, ...(note === undefined ? {} : { note }) };
}

/** A key of which only the place is known. */
export function unknownKey(carrier: Guard['carrier'], evidence: FactEvidence): Guard {
  return {
    kind: 'request_key',
    carrier,
    scope: [],
    window: { kind: 'unknown', after: 'unknown' },
    same: { result: 'unknown', side_effects: 'unknown' },
    different: { result: 'unknown' },
    in_flight: { result: 'unknown' },
    after_delete: 'unknown',
    strength: 'unknown',
    evidence,
  };
}

/** A name that looks like that of a key against repeats; what it does is for its owner to say. */
export const KEY_NAME =
  /^(x-)?(idempotenc[ey](-?_?(key|token))?|idempotent-?_?key|client-?_?token|client-?_?request-?_?id|repeatability-?_?request-?_?id|transaction-?_?id|dedup(lication)?-?_?(id|key)|[a-z]+-request-id)$/i;

/** What has to be found out of every write, by what is not known of it. */
export function openQuestions(operation: {
  readonly id: string;
  readonly effect: ContractOperation['effect'];
  readonly guards: readonly Guard[];
  readonly isFound: boolean;
}): string[] {
  const { effect, guards, isFound } = operation;
  return [
    guards.some(({ kind }) => kind === 'request_key')
      ? 'For how long is the key known, what does it belong to, what does a repeat get, and do mails or triggers go out again?'
      : 'Is there a key or a name of ours by which the destination knows a repeat?',
    isFound
      ? 'How soon does the look-up show a new write, and is it current enough for an absence to count?'
      : 'By what is it found again when its reply was lost?',
    'Which errors prove that nothing was changed, and which are only for now?',
    ...(['update', 'replace', 'upsert', 'delete'].includes(effect)
      ? [
          'Is there a version, is it refused when it has moved, and does it come back after a change away and back?',
        ]
      : []),
    'Who is told of it (mails, webhooks, rules), and what of that stays when it is taken back?',
    'How is it taken back while nobody has acted on it, and what once somebody has?',
  ];
}
