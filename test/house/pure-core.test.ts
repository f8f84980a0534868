// The core is handed every instant, id and answer: it has no clock, no randomness, no timers, no promises.

import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { lineOf, nameUsesOf, ROOT, readSources, type SyntaxNode, visitSource } from './source.ts';

/** Names of the platform that the core may not use at all. */
const FORBIDDEN = new Set([
  'AbortController',
  'AbortSignal',
  'Atomics',
  'Buffer',
  'Intl',
  'Promise',
  'clearImmediate',
  'clearInterval',
  'clearTimeout',
  'console',
  'crypto',
  'fetch',
  'globalThis',
  'performance',
  'process',
  'queueMicrotask',
  'require',
  'setImmediate',
  'setInterval',
  'setTimeout',
]);

/** What answers differently from one machine, zone or language to the next. */
const BY_LOCALE =
  /^(toLocale\w*|localeCompare|get(Date|Day|FullYear|Hours|Minutes|Month|Seconds|TimezoneOffset))$/;

function findImpurities(path: string, text: string): readonly string[] {
  const problems: string[] = [];
  for (const { name, member, line, as, argumentCount } of nameUsesOf(path, text)) {
    const isBareDate = member === undefined && (as === 'called' || (as === 'made' && argumentCount === 0));
    const isClock = name === 'Date' && (member === 'now' || isBareDate);
    const isRandom = name === 'Math' && member === 'random';
    if (FORBIDDEN.has(name) || isClock || isRandom) {
      problems.push(`${path}:${line} uses ${name}${member === undefined ? '' : `.${member}`}`);
    }
  }
  visitSource(path, text, (node) => {
    const found = impurityOf(node);
    if (found !== undefined) problems.push(`${path}:${lineOf(text, node.start)} ${found}`);
  });
  return problems;
}

function impurityOf(node: SyntaxNode): string | undefined {
  if (node.type === 'AwaitExpression' || node.type === 'ImportExpression') return 'waits';
  if (node['async'] === true) return 'waits';
  if (node.type !== 'MemberExpression') return undefined;
  const name = (node['property'] as SyntaxNode)['name'];
  return typeof name === 'string' && BY_LOCALE.test(name)
    ? `uses ${name}, which differs by place`
    : undefined;
}

test('the core has no clock, no randomness, no timers and no promises', () => {
  const sources = readSources(join(ROOT, 'src/core'), /\.ts$/);
  expect(sources.size).toBeGreaterThan(0);
  expect([...sources].flatMap(([path, text]) => findImpurities(path, text))).toEqual([]);
});

describe('the check itself', () => {
  test.each([
    'const at = Date.now();',
    'const at = new Date();',
    'const at = Date();',
    'const at = new Date().toISOString();',
    'const id = Math.random();',
    'const id = crypto.randomUUID();',
    'setTimeout(() => {}, 1);',
    'const home = process.env;',
    'const now = performance.now();',
    'const now = globalThis["Date"].now();',
    'const f = async () => {};',
    'async function f() {}',
    'const later = Promise.resolve();',
    'const text = new Date(0).toLocaleString();',
    'const order = ["b", "a"].sort((a, b) => a.localeCompare(b));',
    'const hour = new Date(0).getHours();',
  ])('notices %s', (text) => {
    expect(findImpurities('planted.ts', text)).not.toEqual([]);
  });

  test.each([
    'const text = new Date(at).toISOString();',
    'const ms = Date.UTC(2026, 0, 1) + Date.parse(text);',
    'const least = Math.min(1, 2);',
    'const state = { process: 1, Promise: 2 }; state.process += 1;',
    'type Late = { readonly performance: number };',
    '// Date.now() in a comment\nconst text = "Math.random()";',
  ])('lets %s pass', (text) => {
    expect(findImpurities('planted.ts', text)).toEqual([]);
  });
});
