// A condition of a rule, in CEL (the Common Expression Language): parsed and checked when a configuration is read, and
// judged for each call. What it cannot be judged for is no answer; the core makes that a question to a person.
//
// `matches` of the library tries all ways to match, so that one argument could keep a process busy for seconds (measured:
// 6.9 s for 28 characters). It is refused, and `fits` takes its place: the same syntax, in time linear in the text.

import { createRequire } from 'node:module';
import type { ASTNode, ParseResult } from '@marcbachmann/cel-js';
import type { PolicyCall, PolicyCondition } from '../core/policy.ts';

export type ReadCondition =
  | { readonly ok: true; readonly condition: PolicyCondition }
  /** The rest of a sentence whose subject is the condition. */
  | { readonly ok: false; readonly problem: string };

const TEXT_LENGTH_MAX = 2_000;
const PATTERN_LENGTH_MAX = 512;
const PATTERNS_KEPT_MAX = 64;
const LIMITS = {
  maxAstNodes: 256,
  maxDepth: 24,
  maxListElements: 256,
  maxMapEntries: 32,
  maxCallArguments: 8,
};
/** Each goes through a list; one within another multiplies the time by the length of what it goes through. */
const MACROS: ReadonlySet<string> = new Set(['all', 'exists', 'exists_one', 'filter', 'map']);

const require = createRequire(import.meta.url);
let environment: import('@marcbachmann/cel-js').Environment | undefined;

/** Loaded on first use: most configurations have no condition. */
function cel(): import('@marcbachmann/cel-js').Environment {
  if (environment !== undefined) return environment;
  const { Environment }: typeof import('@marcbachmann/cel-js') = require('@marcbachmann/cel-js');
  const { RE2JS }: typeof import('re2js') = require('re2js');
  const kept = new Map<string, import('re2js').RE2JS>();
  const fits = (text: string, source: string): boolean => {
    let pattern = kept.get(source);
    if (pattern === undefined) {
      if (source.length > PATTERN_LENGTH_MAX) throw new Error('the pattern is too long');
      pattern = RE2JS.compile(source);
      if (kept.size >= PATTERNS_KEPT_MAX) kept.clear();
      kept.set(source, pattern);
    }
    return pattern.matcher(text).find();
  };
  environment = new Environment({ unlistedVariablesAreDyn: false, limits: LIMITS })
    .registerVariable('args', 'map')
    .registerVariable('run', 'map')
    .registerVariable('requester', 'string')
    .registerVariable('destination', 'string')
    .registerVariable('tool', 'string')
    .registerVariable('class', 'string')
    .registerFunction('fits(string, string): bool', fits);
  return environment;
}

export function readCondition(text: string): ReadCondition {
  if (text.length > TEXT_LENGTH_MAX) {
    return refuse(`has ${text.length} characters; at most ${TEXT_LENGTH_MAX} are allowed`);
  }
  let parsed: ParseResult;
  try {
    parsed = cel().parse(text);
  } catch (cause) {
    return refuse(`cannot be read as CEL: ${wordsOf(cause)}`);
  }
  const used = usedIn(parsed.ast);
  if (used.calls.has('matches')) {
    return refuse('uses matches, which may take for ever on some texts; write fits(text, pattern) instead');
  }
  if (used.isNested) return refuse('goes through a list within a list, which may take too long');
  if (used.isMade) return refuse('uses fits with a pattern that is not written out in it');
  const checked = parsed.check();
  if (!checked.valid) return refuse(`is no condition: ${wordsOf(checked.error)}`);
  if (checked.type !== 'bool' && checked.type !== 'dyn') {
    return refuse(`gives ${checked.type}, and a condition gives true or false`);
  }
  for (const pattern of used.patterns) {
    const problem = patternProblem(pattern);
    if (problem !== undefined) return refuse(problem);
  }
  return { ok: true, condition: { text, judge: (call) => judged(parsed, call) } };
}

function refuse(problem: string): ReadCondition {
  return { ok: false, problem };
}

function judged(parsed: ParseResult, call: PolicyCall): boolean | undefined {
  const { arguments: args, class: toolClass, destination, requester, run, tool } = call;
  try {
    const value: unknown = parsed({ args, requester, run, destination, tool, class: toolClass });
    return typeof value === 'boolean' ? value : undefined;
  } catch {
    return undefined;
  }
}

function wordsOf(cause: unknown): string {
  const { summary } = cause as { readonly summary?: string };
  const text = summary ?? (cause instanceof Error ? cause.message : String(cause));
  return text.split('\n', 1)[0]?.replace(/[.\s]+$/, '') ?? '';
}

function patternProblem(source: string): string | undefined {
  if (source.length > PATTERN_LENGTH_MAX)
    return `has a pattern of ${source.length} characters; at most ${PATTERN_LENGTH_MAX} are allowed`;
  const { RE2JS }: typeof import('re2js') = require('re2js');
  try {
    RE2JS.compile(source);
    return undefined;
  } catch (cause) {
    return `has a pattern that cannot be read: ${wordsOf(cause)}`;
  }
}

interface Used {
  readonly calls: Set<string>;
  /** Patterns that are written out. */
  readonly patterns: string[];
  isNested: boolean;
  /** A pattern is made of something, so that a caller might have a part in it. */
  isMade: boolean;
}

function usedIn(root: ASTNode): Used {
  const used: Used = { calls: new Set(), patterns: [], isNested: false, isMade: false };
  visit(root, used, 0);
  return used;
}

function visit(value: unknown, used: Used, lists: number): void {
  if (Array.isArray(value)) {
    for (const one of value) visit(one, used, lists);
    return;
  }
  if (typeof value !== 'object' || value === null || !('op' in value) || !('args' in value)) return;
  const node = value as ASTNode;
  if (node.op === 'call') {
    const [name, given] = node.args;
    used.calls.add(name);
    const pattern = given[1];
    if (name === 'fits' && pattern?.op === 'value' && typeof pattern.args === 'string')
      used.patterns.push(pattern.args);
    else if (name === 'fits') used.isMade = true;
  }
  if (node.op !== 'rcall') return visit(node.args, used, lists);
  const [name, receiver, given] = node.args;
  used.calls.add(name);
  const within = MACROS.has(name) ? lists + 1 : lists;
  if (within > 1) used.isNested = true;
  visit(receiver, used, lists);
  visit(given, used, within);
}
