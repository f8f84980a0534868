// A hint is something that a person can type: under npx there is no `counterfoil` in anybody's PATH.

import { join } from 'node:path';
import { expect, test } from 'vitest';
import { lineOf, ROOT, readSources, visitSource } from './source.ts';

const sources = readSources(join(ROOT, 'src/cli'), /\.ts$/);
const commands = ['counterfoil.ts', 'queue-commands.ts'].flatMap((file) =>
  [...(sources.get(file) ?? '').matchAll(/\.command\('(\w+)'\)/g)].map(([, name]) => name),
);
const HINT = new RegExp(`\\bcounterfoil (${commands.join('|')})\\b`);

/** Hints that are spelled out in a text; a description of what a command does is none. */
function spelledOut(path: string, text: string): readonly string[] {
  const found: string[] = [];
  visitSource(path, text, (node, [parent]) => {
    const value =
      node.type === 'TemplateElement' ? (node['value'] as { cooked: string }).cooked : node['value'];
    if ((node.type !== 'TemplateElement' && node.type !== 'Literal') || typeof value !== 'string') return;
    const around = parent === undefined ? '' : text.slice(parent.node.start, node.start);
    if (HINT.test(value) && !/\.description\(\s*$/.test(around)) {
      found.push(`${path}:${lineOf(text, node.start)}: ${value}`);
    }
  });
  return found;
}

test('every hint of the command line is written by what knows how we were called', () => {
  expect(commands.length).toBeGreaterThan(20);
  expect([...sources].flatMap(([path, text]) => spelledOut(path, text))).toEqual([]);
});

test.each([
  ["print('See: counterfoil queue');", 1],
  ['print(`See: counterfoil show ${id}`);', 1],
  ["root.description('what counterfoil serve listens for');", 0],
  ["print(toType('queue'));", 0],
  ["say('counterfoil: nothing is open');", 0],
])('the check sees in %s %i of them', (text, count) => {
  expect(spelledOut('planted.ts', text)).toHaveLength(count);
});
