// A draft of a contract from what an MCP server lists: names, arguments and hints, which prove nothing by themselves.

import type { ContractOperation, FactEvidence, Guard } from '../core/contract.ts';
import { placed, readDocument } from './document.ts';
import {
  assumed,
  contractId,
  type Draft,
  type DraftOptions,
  finishDraft,
  KEY_NAME,
  openQuestions,
  operationId,
  unknownKey,
} from './draft.ts';
import type { Refused } from './load.ts';
import { argumentNames, isObject, type ListedTool, readToolList } from './tool-listing.ts';

export function draftFromTools(text: string, file: string, options: DraftOptions): Draft | Refused {
  const listing = readToolList(text, file);
  if (!listing.ok) return listing;
  const { tools } = listing;
  const writes = tools.filter((tool) => hint(tool, 'readOnlyHint') !== true);
  if (writes.length === 0)
    return refuse(
      text,
      file,
      'Every tool of the list says that it only reads: there is no write to describe.',
    );
  const reads = tools.filter((tool) => !writes.includes(tool));
  const name = file.replace(/^.*[\\/]/, '').replace(/\.(json|ya?ml)$/i, '');
  return finishDraft(
    {
      id: options.id ?? contractId(name),
      name,
      protocol: 'mcp',
      operations: writes.map((tool) => draftTool(tool, reads, options)),
      madeOf: `what tools/list gave (${tools.length} tools, of which ${reads.length} say that they only read)`,
    },
    options,
  );
}

function refuse(text: string, file: string, sentence: string): Refused {
  const read = readDocument(text, file);
  const problems = read.ok ? placed([{ path: [], sentence }], read.source) : read.problems;
  return { ok: false, problems };
}

function hint({ annotations }: ListedTool, name: string): boolean | undefined {
  const value = isObject(annotations) ? annotations[name] : undefined;
  return typeof value === 'boolean' ? value : undefined;
}

const EFFECTS: readonly (readonly [ContractOperation['effect'], RegExp])[] = [
  ['message', /^(send|post|notify|publish|reply|mail|email|message)$/],
  ['delete', /^(delete|remove|destroy|drop|purge|clear|erase|trash)$/],
  ['upsert', /^(upsert|put|save|sync)$/],
  ['update', /^(update|edit|set|patch|change|rename|move|assign|modify|close|reopen|merge)$/],
  ['create', /^(create|add|new|insert|open|make|register|fork|upload|write|push)$/],
];

/** By the words of its name; the first that says anything counts. */
function effectOf({ name }: ListedTool): ContractOperation['effect'] {
  for (const word of wordsOf(name)) {
    const effect = EFFECTS.find(([, words]) => words.test(word))?.[0];
    if (effect !== undefined) return effect;
  }
  return 'action';
}

function wordsOf(name: string): readonly string[] {
  return name
    .replace(/([a-z0-9])([A-Z])/g, '$1 $2')
    .toLowerCase()
    .split(/[^a-z0-9]+/)
    .filter((word) => word !== '');
}

function draftTool(tool: ListedTool, reads: readonly ListedTool[], options: DraftOptions): ContractOperation {
  const effect = effectOf(tool);
  const evidence = assumed(`tools/list, ${tool.name}`, options);
  const guards = guardsOf(tool, evidence);
  const id = operationId(tool.name);
  const readers = reads.filter((read) => sharesNoun(read, tool)).map(({ name }) => name);
  return {
    id,
    match: [tool.name],
    effect,
    // A hint never makes a write irreversible; what it is called may, until its owner has looked.
    ...(effect === 'delete' ? { destructive: true } : {}),
    completion: { kind: 'synchronous' },
    batch: 'single',
    guards,
    lookups: [],
    outcomes: [],
    reversals: [{ kind: 'none', restores: 'nothing', evidence }],
    evidence,
    open_questions: [
      `Its effect is taken from its name (${effect}): is that so?`,
      ...(readers.length === 0
        ? []
        : [`Does ${readers.join(' or ')} find it again when its reply was lost?`]),
      ...hintQuestions(tool),
      ...openQuestions({ id, effect, guards, isFound: false }),
    ],
  };
}

function guardsOf(tool: ListedTool, evidence: FactEvidence): readonly Guard[] {
  const keys = argumentNames(tool).filter((name) => KEY_NAME.test(name));
  const converges: readonly Guard[] =
    hint(tool, 'idempotentHint') === true
      ? [
          {
            ...unknownKey({ in: 'body', encoding: 'full_state' }, evidence),
            kind: 'desired_state',
            same: { result: 'converges', side_effects: 'unknown' },
          },
        ]
      : [];
  return [
    ...keys.map((name) => unknownKey({ in: 'body', name, encoding: 'opaque' }, evidence)),
    ...converges,
  ];
}

function hintQuestions(tool: ListedTool): readonly string[] {
  const questions: string[] = [];
  if (hint(tool, 'idempotentHint') === true) {
    questions.push(
      'Its server hints that a repeat changes nothing more: does it, and are people told again?',
    );
  }
  if (hint(tool, 'destructiveHint') === false && effectOf(tool) === 'delete') {
    questions.push(
      'Its server hints that it destroys nothing, and its name says that it removes something: which holds?',
    );
  }
  return questions;
}

/** Whether two names speak of one thing: `list_issues` and `create_issue`. */
function sharesNoun(read: ListedTool, write: ListedTool): boolean {
  const nouns = (name: string) => wordsOf(name).map((word) => word.replace(/(ies|s)$/, ''));
  const [, ...rest] = nouns(write.name);
  return nouns(read.name).some((word) => rest.includes(word));
}
