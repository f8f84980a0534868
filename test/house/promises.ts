// The promises manifest and its gate: nobody may claim a row of it without a test that cites the row.

import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  constantText,
  isSyntaxNode,
  nameOf,
  type Parent,
  readSources,
  type Sources,
  type SyntaxNode,
  visitSource,
} from './source.ts';

/**
 * `planned`: not claimed. `core`: through a real door, counted at the destination, on every store that exists.
 * `kept`: also told the same by API, CLI and console.
 */
export const STATES = ['planned', 'core', 'kept'] as const;
export type PromiseState = (typeof STATES)[number];

export interface Manifest {
  readonly rows: readonly PromiseRow[];
}

/** A row has a state of its own, or variants with one each; then it has the lowest of theirs. */
export interface PromiseRow {
  readonly id: string;
  readonly story: string;
  readonly shows: string;
  readonly state?: PromiseState;
  readonly variants?: readonly {
    readonly id: string;
    readonly story: string;
    readonly state: PromiseState;
  }[];
}

export interface Citation {
  readonly id: string;
  readonly file: string;
  /** `test`: the title of a test, or of a group around it. `skipped`: of one that does not run. */
  readonly by: 'test' | 'skipped' | 'demo';
}

const ROW_COUNT = 43;

/** @returns one sentence for each fault: in the manifest, of a claim, of a citation */
export function findBrokenPromises(manifest: Manifest, citations: readonly Citation[]): readonly string[] {
  const problems = findMalformed(manifest);
  const claims = claimsOf(manifest);
  const known = new Set([...claims.keys(), ...manifest.rows.map(({ id }) => id)]);
  for (const { id, file } of citations) {
    if (!known.has(id)) problems.push(`${file} cites ${id}, which is no promise of the manifest.`);
  }
  for (const [id, state] of claims) {
    const isShown = citations.some((citation) => citation.id === id && citation.by === 'test');
    if (state !== 'planned' && !isShown) {
      problems.push(`${id} is claimed as "${state}", and no test that runs has [${id}] in its title.`);
    }
  }
  return problems;
}

/** Id → what is claimed: of rows that are not split, and of variants. */
export function claimsOf({ rows }: Manifest): ReadonlyMap<string, PromiseState> {
  return new Map(
    rows.flatMap(({ id, state, variants }) =>
      (variants ?? [{ id, state: state ?? 'planned' }]).map((each) => [each.id, each.state] as const),
    ),
  );
}

function findMalformed({ rows }: Manifest): string[] {
  const problems: string[] = [];
  const wanted = Array.from({ length: ROW_COUNT }, (_, index) => `S${index + 1}`);
  if (rows.map(({ id }) => id).join() !== wanted.join()) {
    problems.push(`The manifest does not hold the rows S1 to S${ROW_COUNT}, each once and in order.`);
  }
  for (const row of rows) {
    if ((row.state === undefined) === (row.variants === undefined)) {
      problems.push(`${row.id} needs either a state or variants.`);
    }
    for (const [index, { id }] of (row.variants ?? []).entries()) {
      const expected = `${row.id}${String.fromCharCode(97 + index)}`;
      if (id !== expected) problems.push(`${row.id} has a variant "${id}" where "${expected}" is due.`);
    }
  }
  for (const [id, state] of claimsOf({ rows })) {
    if (!STATES.includes(state)) problems.push(`${id} has the state "${state}", which does not exist.`);
  }
  return problems;
}

/** Every citation in a checkout. The tests of the house are left out: what they cite is planted. */
export function readCitations(root: string): readonly Citation[] {
  const tests = [...readSources(join(root, 'test'), /\.test\.ts$/)].filter(
    ([file]) => !file.startsWith('house/'),
  );
  const demo = join(root, 'demo');
  return [
    ...citationsInTests(new Map(tests.map(([file, text]) => [`test/${file}`, text]))),
    ...(existsSync(demo) ? citationsInDemo(readSources(demo, /\.mjs$/)) : []),
  ];
}

export function readManifest(root: string): Manifest {
  return JSON.parse(readFileSync(join(root, 'test/house/promises.json'), 'utf8')) as Manifest;
}

// ── Citations ──────────────────────────────────────────────────────────────────────────────────────────────

/** From titles such as `test('[S1] the reply is lost …')`; ids count in groups and in tables of `each` too. */
export function citationsInTests(sources: Sources): readonly Citation[] {
  const found: Citation[] = [];
  for (const [file, text] of sources) {
    visitSource(file, text, (node, parents) => {
      const call = readTestCall(node);
      if (call === undefined || call.isGroup) return;
      const around = parents.map((parent) => readTestCall(parent.node)).filter((each) => each !== undefined);
      const isSkipped = [call, ...around].some((each) => each.isSkipped);
      for (const id of [call, ...around].flatMap((each) => each.ids)) {
        found.push({ id, file, by: isSkipped ? 'skipped' : 'test' });
      }
    });
  }
  return found;
}

/** From the stories of the demonstration: `{ id: 'S1', … }`. */
export function citationsInDemo(sources: Sources): readonly Citation[] {
  const found: Citation[] = [];
  for (const [file, text] of sources) {
    visitSource(file, text, (node, [parent]) => {
      const id = isStoryId(node, parent) ? constantText(node) : undefined;
      if (id !== undefined && /^S\d+[a-z]?$/.test(id)) found.push({ id, file, by: 'demo' });
    });
  }
  return found;
}

function isStoryId(node: SyntaxNode, parent: Parent | undefined): boolean {
  return node.type === 'Literal' && parent?.member === 'value' && nameOf(parent.node['key']) === 'id';
}

interface TestCall {
  readonly ids: readonly string[];
  readonly isGroup: boolean;
  readonly isSkipped: boolean;
}

/** `test(…)`, `it.only(…)`, `describe.each(table)(…)` and their like; `undefined` for any other node. */
function readTestCall(node: SyntaxNode): TestCall | undefined {
  if (node.type !== 'CallExpression') return undefined;
  const [title] = node['arguments'] as readonly SyntaxNode[];
  const texts = titleTexts(title);
  const modifiers: string[] = [];
  let callee: unknown = node['callee'];
  while (isSyntaxNode(callee) && callee.type !== 'Identifier') {
    if (callee.type === 'MemberExpression') {
      modifiers.push(nameOf(callee['property']) ?? '');
      callee = callee['object'];
    } else if (callee.type === 'CallExpression') {
      texts.push(...(callee['arguments'] as readonly SyntaxNode[]).flatMap(tableTexts));
      callee = callee['callee'];
    } else {
      return undefined;
    }
  }
  const root = nameOf(callee);
  if (root !== 'test' && root !== 'it' && root !== 'describe') return undefined;
  // The call of `each(table)` alone is no test; the call of what it gives is.
  if (modifiers[0] === 'each' && isSyntaxNode(node['callee']) && node['callee'].type === 'MemberExpression') {
    return undefined;
  }
  return {
    ids: texts.flatMap((text) => [...text.matchAll(/\[(S\d+[a-z]?)\]/g)].map(([, id]) => id ?? '')),
    isGroup: root === 'describe',
    isSkipped: modifiers.some((modifier) => modifier === 'skip' || modifier === 'todo'),
  };
}

function titleTexts(title: SyntaxNode | undefined): string[] {
  if (title?.type === 'TemplateLiteral') {
    const quasis = title['quasis'] as readonly { readonly value: { readonly cooked: string } }[];
    return quasis.map(({ value }) => value.cooked);
  }
  const text = constantText(title);
  return text === undefined ? [] : [text];
}

function tableTexts(node: SyntaxNode): string[] {
  const own = titleTexts(node);
  const below = Object.values(node).flatMap((value) => (Array.isArray(value) ? value : [value]));
  return [...own, ...below.filter(isSyntaxNode).flatMap(tableTexts)];
}
