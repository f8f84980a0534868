// What lies in the tree, and what must not: addresses that packages came from, paths of somebody's machine.

import { readdirSync, readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join, relative } from 'node:path';
import { describe, expect, test } from 'vitest';
import { ROOT } from './source.ts';

const NOT_OURS = new Set(['node_modules', 'dist', 'coverage', '.git', '.counterfoil']);

function filesBelow(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) return NOT_OURS.has(entry.name) ? [] : filesBelow(path);
    return entry.isFile() ? [path] : [];
  });
}

/** Homes of people, and the two folders that this machine has of its own. */
function foreignPaths(text: string, own: readonly string[]): readonly string[] {
  const homes = text.match(/(?:\/home|\/Users)\/[A-Za-z][\w.-]*\/|[A-Z]:\\+Users\\+\w+/g) ?? [];
  return [...homes, ...own.filter((folder) => folder.length > 2 && text.includes(folder))];
}

test('the lockfile says nothing about where packages were fetched from', () => {
  const lockfile = readFileSync(join(ROOT, 'package-lock.json'), 'utf8');
  expect(lockfile).not.toContain('"resolved"');
  expect(lockfile).not.toMatch(/https?:\/\/[^"]*\.tgz/);
});

test('every version is pinned', () => {
  const { dependencies, devDependencies } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));
  const loose = Object.entries({ ...dependencies, ...devDependencies }).filter(
    ([, version]) => !/^\d+\.\d+\.\d+$/.test(String(version)),
  );
  expect(loose).toEqual([]);
});

test('no path of a developer’s machine is in the tree', () => {
  const own = [ROOT, `${homedir()}/`];
  const found = filesBelow(ROOT)
    .filter((file) => relative(ROOT, file) !== 'test/house/tree.test.ts')
    .flatMap((file) =>
      foreignPaths(readFileSync(file, 'utf8'), own).map((path) => `${relative(ROOT, file)}: ${path}`),
    );
  expect(found).toEqual([]);
});

describe('the check for paths', () => {
  test.each([
    'see /home/ada/project/x.ts',
    '/Users/ada/x',
    'C:\\\\Users\\\\ada',
    'C:\\Users\\ada',
    '/own/place/x',
  ])('notices %s', (text) => {
    expect(foreignPaths(text, ['/own/place/'])).toHaveLength(1);
  });

  test.each(['GET /home/', 'src/users/list.ts', '~/.local/share', '/tmp/x'])('lets %s pass', (text) => {
    expect(foreignPaths(text, ['/own/place/'])).toEqual([]);
  });
});

test('each disabled lint rule has its reason on the line above', () => {
  const lines = readFileSync(join(ROOT, '.oxlintrc.json'), 'utf8').split('\n');
  const withoutReason = lines.filter((line, index) => {
    if (!line.includes('"off"')) return false;
    // A group of rules may share the reason above the first of them.
    const above = lines.slice(0, index).findLast((each) => !each.includes('"off"'));
    return above?.trim().startsWith('//') !== true;
  });
  expect(withoutReason).toEqual([]);
});
