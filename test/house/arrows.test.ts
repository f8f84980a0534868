import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { FILES, findBrokenArrows, findCircles, type HouseRules, PROCESS, ROOMS } from './arrows.ts';
import { ROOT, readSources } from './source.ts';

const sources = readSources(join(ROOT, 'src'), /\.ts$/);

test('src keeps to the permitted arrows, without a circle', () => {
  expect(sources.size).toBeGreaterThan(0);
  expect(findBrokenArrows(sources, { rooms: ROOMS, files: FILES, process: PROCESS })).toEqual([]);
});

describe('the check itself notices', () => {
  const rules: HouseRules = {
    rooms: {
      core: { arrows: [], node: [], packages: [] },
      store: { arrows: ['core'], node: ['fs'], packages: [] },
      engine: {
        arrows: ['core', 'store/port.ts', { to: 'store/sqlite.ts', as: 'types', because: 'planted' }],
        node: [],
        packages: ['ajv'],
      },
    },
    files: { 'core/digest.ts': { node: ['crypto'], because: 'planted' } },
    process: { 'engine/presence.ts': { members: ['pid'], because: 'planted' } },
  };
  /** Uses every exception, and breaks nothing. */
  const sound = {
    'core/digest.ts': `import { hash } from 'node:crypto';`,
    'core/json.ts': `import type { Hash } from './digest.ts';`,
    'store/port.ts': `import { something } from '../core/json.ts'; import { promises } from 'node:fs/promises';`,
    'store/sqlite.ts': `export * from './port.ts';`,
    'engine/presence.ts': `
      import Ajv from 'ajv/dist/2020.js';
      import type { Port } from '../store/port.ts';
      import type { Sqlite } from '../store/sqlite.ts';
      export const state = { process: process.pid }; // process.exit in a comment
      export const text = 'process.exit()';
      state.process += 1;`,
  };
  const check = (planted: { readonly [file: string]: string }) =>
    findBrokenArrows(new Map(Object.entries({ ...sound, ...planted })), rules);

  test('nothing in a sound house', () => {
    expect(check({})).toEqual([]);
  });

  const planted: readonly (readonly [string, string, string, string])[] = [
    ['an import upwards', 'core/a.ts', `import { x } from '../store/port.ts';`, '../store/port.ts'],
    ['a type that is imported upwards', 'core/a.ts', `import type { X } from '../store/port.ts';`, '(types)'],
    ['an inline type', 'core/a.ts', `type X = import('../store/port.ts').X;`, '(types)'],
    ['a re-export upwards', 'core/a.ts', `export { x } from '../store/port.ts';`, '../store/port.ts'],
    ['an export of everything', 'core/a.ts', `export * from '../store/port.ts';`, '../store/port.ts'],
    ['an import when it runs', 'core/a.ts', `const x = import('../store/port.ts');`, '../store/port.ts'],
    ['a require', 'core/a.ts', `const x = require('node:fs');`, 'node:fs'],
    ['an import for its effects', 'core/a.ts', `import '../store/port.ts';`, '../store/port.ts'],
    ['an adapter in the engine', 'engine/a.ts', `import { Sqlite } from '../store/sqlite.ts';`, 'sqlite.ts'],
    [
      'a module of Node',
      'core/a.ts',
      `import { hash } from 'node:crypto';`,
      'core/a.ts:1 imports node:crypto',
    ],
    ['a module of Node by its old name', 'store/a.ts', `import { readFile } from 'fs';`, 'imports fs'],
    ['a package', 'store/a.ts', `import Ajv from 'ajv';`, 'imports ajv'],
    ['a room without an entry', 'cellar/a.ts', ``, '"cellar" has no entry'],
    ['an import of a room without an entry', 'engine/a.ts', `import '../cellar/a.ts';`, '../cellar/a.ts'],
    [
      'process',
      'engine/a.ts',
      `export const x = process.env['HOME'];`,
      'engine/a.ts:1 touches process (env)',
    ],
    [
      'another member',
      'engine/presence.ts',
      `export const x = process['exit'](1);`,
      'touches process (exit)',
    ],
    ['process handed on', 'store/a.ts', `export const x = [process];`, 'touches process (itself)'],
    ['process by way of globalThis', 'store/a.ts', `globalThis.process.exit();`, 'touches process'],
    ['an exception that is not used', 'core/digest.ts', ``, 'core/digest.ts: an exception'],
    [
      'a circle',
      'core/digest.ts',
      `import 'node:crypto'; import type { J } from './json.ts';`,
      'in a circle',
    ],
    ['a file that imports itself', 'core/a.ts', `import { x } from './a.ts';`, 'core/a.ts: these files'],
  ];
  test.each(planted)('%s', (_what, file, text, sentence) => {
    expect(check({ [file]: text })).toContainEqual(expect.stringContaining(sentence));
  });

  test('a circle of three among files that are fine, once', () => {
    const graph = new Map([
      ['a', ['b', 'd']],
      ['b', ['c']],
      ['c', ['a']],
      ['d', ['e']],
      ['e', []],
    ]);
    expect(findCircles(graph)).toEqual(['a, b, c: these files import each other in a circle.']);
  });

  test('an import that nobody can read before it runs', () => {
    expect(() => check({ 'core/a.ts': 'const x = import(name);' })).toThrow('core/a.ts:1');
  });
});
