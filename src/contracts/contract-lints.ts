// What is not wrong in a contract and still leaves something open: said as notes, each with a code by which it is waived.

import {
  type Contract,
  type ContractOperation,
  durationMs,
  type FactEvidence,
  type Guard,
  isTrusted,
} from '../core/contract.ts';
import { requestKey } from '../core/request-key.ts';
import { templateNames } from '../core/template.ts';
import type { Finding, Path } from './problem.ts';
import { listed } from './problem.ts';
import { isWithin } from './write-facts.ts';

export type LintCode =
  | 'stamp_not_in_payload'
  | 'stamp_not_looked_for'
  | 'key_does_not_fit'
  | 'business_parameter_left_out'
  | 'window_shorter_than_pause'
  | 'review_due'
  | 'owner_missing'
  | 'route_missing'
  | 'reversal_missing'
  | 'grades_permit_nothing'
  | 'fact_not_graded'
  | 'items_not_told'
  | 'no_target';

export interface Lint extends Finding {
  readonly code: LintCode;
  /** The operation, where it is about one. */
  readonly operation?: string;
}

/** How long work may pause: what windows are compared with (D7). */
export interface Pauses {
  /** ISO 8601, or `unbounded`. */
  readonly resumeWindow: string;
  readonly approvalLifetime: string;
}

export interface LintOptions {
  readonly today?: string | undefined;
  readonly pauses: Pauses;
  /** The arguments that the tool of an operation has, where they are known. */
  readonly argumentsOf?: (operation: ContractOperation) => readonly string[] | undefined;
}

/** In the order of the file. */
export function lintContract(contract: Contract, options: LintOptions): readonly Lint[] {
  return [
    ...lintOwnership(contract, options.today),
    ...contract.operations.flatMap((operation, index) => {
      const path = ['operations', index];
      return [
        ...lintStamps(contract, operation, path),
        ...lintKeys(operation, path),
        ...lintParameters(operation, path, options.argumentsOf?.(operation)),
        ...lintWindows(operation, path, options.pauses),
        ...lintReversals(operation, path),
        ...lintGrades(operation, path),
        ...lintEvidence(operation, path),
        ...lintItems(operation, path),
        ...lintTarget(operation, path),
      ];
    }),
  ];
}

const DAY_MS = 24 * 3_600_000;
const DUE_SOON_DAYS = 30;
const NOBODY = /^(unassigned|unknown|nobody|none|tbd|todo|n\/a|-|\?)$/i;

/** Whether an owner is only a word for nobody. */
export function isNobody(owner: string | undefined): boolean {
  return owner === undefined || NOBODY.test(owner.trim());
}

function lintOwnership({ id, ownership }: Contract, today: string | undefined): readonly Lint[] {
  const lints: Lint[] = [];
  if (isNobody(ownership.owner)) {
    lints.push({
      code: 'owner_missing',
      path: ['ownership', 'owner'],
      sentence: `${id} has no owner (${ownership.owner}): nobody answers when an outcome stays open.`,
    });
  }
  if (today === undefined) return lints;
  const leftMs = Date.parse(ownership.review_by) - Date.parse(today);
  if (leftMs >= 0 && leftMs <= DUE_SOON_DAYS * DAY_MS) {
    lints.push({
      code: 'review_due',
      path: ['ownership', 'review_by'],
      sentence: `${id} is to be reviewed by ${ownership.review_by}; after that day nothing is repeated on its word.`,
    });
  }
  return lints;
}

/** A reference that no payload carries is found by no look-up (D2: the payload is frozen with the stamp in it). */
function lintStamps(contract: Contract, operation: ContractOperation, path: Path): readonly Lint[] {
  const { guards, id, lookups, stamp } = operation;
  const lints: Lint[] = [];
  const template = operation.http;
  const isWritten = stamp !== undefined || /\{\$(stamp|key)\}/.test(JSON.stringify(template ?? null));
  // A key of ours that the destination keeps is a reference as well.
  const isKey = (name: string | undefined) => guards.some(({ carrier }) => carrier.name === name);
  const wanting = isWritten
    ? -1
    : lookups.findIndex((lookup) => lookup.stamp !== undefined && !isKey(lookup.stamp.name));
  if (wanting >= 0) {
    const place = lookups[wanting]?.stamp;
    const missing =
      template === undefined
        ? 'no template of its payload is stated'
        : 'the template of its payload does not have it';
    lints.push({
      code: 'stamp_not_in_payload',
      operation: id,
      path: [...path, 'lookups', wanting, 'stamp'],
      sentence: `A look-up of ${id} finds it by our reference in ${place?.name ?? place?.in}, and ${missing}: what is sent does not carry the reference.`,
    });
  }
  // What an answer echoes is told from the answer to another request.
  if (stamp !== undefined && !templateNames([lookups, operation.http?.answer]).includes('$stamp')) {
    lints.push({
      code: 'stamp_not_looked_for',
      operation: id,
      path: [...path, 'stamp'],
      sentence: `${id} carries our reference in ${stamp.argument}, and no look-up of ${contract.id} asks for it.`,
    });
  }
  return lints;
}

const SAMPLE_IDENTITIES = ['op_00000000000000000000000000', 'op_7ZZZZZZZZZZZZZZZZZZZZZZZZZ'];

/** Our key in the form that the carrier asks for: its length and pattern have to admit it. */
function lintKeys({ guards, id }: ContractOperation, path: Path): readonly Lint[] {
  return guards.flatMap((guard, index) => {
    if (guard.kind !== 'request_key' && guard.kind !== 'client_identity') return [];
    const problem = keyProblem(guard);
    if (problem === undefined) return [];
    return {
      code: 'key_does_not_fit' as const,
      operation: id,
      path: [...path, 'guards', index, 'carrier'],
      sentence: `Our key for the ${guard.kind.replaceAll('_', ' ')} of ${id} ${problem}; the guard cannot be used.`,
    };
  });
}

function keyProblem({ carrier }: Guard): string | undefined {
  const fits = SAMPLE_IDENTITIES.every((identity) => requestKey(identity, carrier) !== undefined);
  if (fits) return undefined;
  const { encoding = 'opaque', max_length: lengthMax, pattern } = carrier;
  const asked = [
    `encoding ${encoding}`,
    ...(lengthMax === undefined ? [] : [`at most ${lengthMax} characters`]),
    ...(pattern === undefined ? [] : [`the pattern ${pattern}`]),
  ];
  return `cannot be made to fit its carrier (${listed(asked)})`;
}

const ROLE_NAMES: readonly (readonly [role: string, names: RegExp])[] = [
  [
    'recipient',
    /^(to|cc|bcc|recipients?|emails?|phones?|channels?(_id)?|users?(_id)?|attendees?|assignees?|account)$/i,
  ],
  ['amount', /^(amount|price|total|quantity|count|currency|cost|sum)$/i],
  ['record', /^(id|.*(_id|Id|ID)|number|issue_number|path|name|key|url|uri)$/],
];

/** Where the contract gives no roles, what an argument is called is all there is to go by. */
function lintParameters(
  { id, identity, lookups, readback, roles, stamp, target }: ContractOperation,
  path: Path,
  known: readonly string[] | undefined,
): readonly Lint[] {
  if (identity === undefined || roles !== undefined) return [];
  const named = [
    ...templateNames([target?.id, lookups, readback?.http ?? readback?.tool?.arguments, readback?.matches]),
    ...(known ?? []),
  ].filter((name) => !name.startsWith('$') && name !== stamp?.argument);
  return [...new Set(named)].flatMap((name) => {
    if (identity.some((entry) => isWithin(name, entry) || isWithin(entry, name))) return [];
    const last = name.split('/').at(-1) ?? name;
    const role = ROLE_NAMES.find(([, names]) => names.test(last))?.[0];
    if (role === undefined) return [];
    return {
      code: 'business_parameter_left_out' as const,
      operation: id,
      path: [...path, 'identity'],
      sentence: `The identity of ${id} leaves out ${name}, which by its name is a ${role}; recipient, record and amount are always business parameters. If it is none, say so with roles.`,
    };
  });
}

/** Beyond the window there is no repeat: what comes then must be a look-up or a person. */
function lintWindows(
  { guards, id, lookups }: ContractOperation,
  path: Path,
  pauses: Pauses,
): readonly Lint[] {
  const { approvalLifetime, resumeWindow } = pauses;
  const resumeMs = durationMs(resumeWindow) ?? Number.POSITIVE_INFINITY;
  const pauseMs = Math.max(resumeMs, durationMs(approvalLifetime) ?? 0);
  // What is told in words alone is asked by people.
  const isAsked = lookups.some(({ http, tool }) => http !== undefined || tool !== undefined);
  const after = isAsked ? 'a look-up is made, and then a person decides' : 'a person decides';
  return guards.flatMap(({ kind, window }, index) => {
    if (window.kind !== 'duration' && window.kind !== 'unknown') return [];
    const leastMs = durationMs(window.at_least);
    if (leastMs !== undefined && leastMs >= pauseMs) return [];
    const known =
      window.at_least === undefined
        ? 'for a time that nobody has promised'
        : `for at least ${window.at_least}`;
    return {
      code: 'window_shorter_than_pause' as const,
      operation: id,
      path: [...path, 'guards', index, 'window'],
      sentence: `The ${kind.replaceAll('_', ' ')} of ${id} is known ${known}; work may pause for ${resumeWindow} and an approval lasts ${approvalLifetime}. Beyond it nothing is repeated: ${after}.`,
    };
  });
}

function lintReversals({ id, reversals }: ContractOperation, path: Path): readonly Lint[] {
  if (reversals.some(({ evidence }) => isTrusted(evidence))) return [];
  const [first] = reversals;
  const grades = [...new Set(reversals.map(({ evidence }) => evidence.grade))];
  const sentence =
    first?.kind === 'none'
      ? `${id} has no reversal that is known (${listed(grades)}): what it did is put right by hand.`
      : `The reversals of ${id} rest on ${listed(grades)}: no recovery is planned on their word.`;
  return [{ code: 'reversal_missing', operation: id, path: [...path, 'reversals'], sentence }];
}

/** Only documented, source and drilled may drive a repeat, or let an absence count. */
function lintGrades({ guards, id, lookups }: ContractOperation, path: Path): readonly Lint[] {
  const facts: readonly (readonly [string, FactEvidence])[] = [
    ...guards.map(({ evidence, kind }) => [`its ${kind.replaceAll('_', ' ')}`, evidence] as const),
    ...lookups.map(({ by, evidence }) => [`its look-up by ${by.replaceAll('_', ' ')}`, evidence] as const),
  ];
  if (facts.length === 0 || facts.some(([, evidence]) => isTrusted(evidence))) return [];
  const weak = facts.map(([what, { grade }]) => `${what} (${grade})`);
  return [
    {
      code: 'grades_permit_nothing',
      operation: id,
      path,
      sentence: `Nothing that ${id} states permits a repeat, or lets an absence count: ${listed(weak)}. Only documented, source and drilled do.`,
    },
  ];
}

/** Each fact with its grade, its source and its day. */
function lintEvidence(operation: ContractOperation, path: Path): readonly Lint[] {
  const lints: Lint[] = [];
  const say = (at: Path, sentence: string) =>
    lints.push({ code: 'fact_not_graded', operation: operation.id, path: at, sentence });
  for (const [index, { evidence }] of operation.outcomes.entries()) {
    if (evidence !== undefined) continue;
    say([...path, 'outcomes', index], `outcomes[${index}] of ${operation.id} has no evidence.`);
  }
  for (const [at, evidence] of evidenceIn(operation, path)) {
    const missing = [
      ...(evidence.source === undefined && evidence.grade !== 'assumed' ? ['source'] : []),
      ...(evidence.checked_on === undefined && evidence.grade !== 'assumed' ? ['day'] : []),
    ];
    if (missing.length === 0) continue;
    say(at, `A fact of ${operation.id} is ${evidence.grade} and has no ${listed(missing, 'and no')}.`);
  }
  return lints;
}

/** Every piece of evidence, by where it stands. */
export function evidenceIn(value: unknown, path: Path = []): readonly (readonly [Path, FactEvidence])[] {
  if (typeof value !== 'object' || value === null) return [];
  if ('grade' in value) return [[path, value as FactEvidence]];
  return Object.entries(value).flatMap(([key, member]) =>
    evidenceIn(member, [...path, Array.isArray(value) ? Number(key) : key]),
  );
}

function lintItems({ batch, id, items }: ContractOperation, path: Path): readonly Lint[] {
  const isSeveral = batch === 'per_item' || batch === 'partial_possible';
  if (!isSeveral || items !== undefined) return [];
  const sentence = `${id} may be done in part (${batch}), and items does not say how its parts are told apart: it has the least certain effect of them all.`;
  return [{ code: 'items_not_told', operation: id, path: [...path, 'batch'], sentence }];
}

const CHANGING = ['update', 'replace', 'upsert', 'delete'];

function lintTarget({ effect, id, target }: ContractOperation, path: Path): readonly Lint[] {
  if (target !== undefined || !CHANGING.includes(effect)) return [];
  const sentence = `${id} changes what is there (${effect}), and declares no target: another write to the same record does not wait for it.`;
  return [{ code: 'no_target', operation: id, path: [...path, 'effect'], sentence }];
}
