// The commands of the checkout: what they say when there is nothing to do, and when something is missing.

import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { loadStore, SetUpError } from '../../scripts/setup.mjs';
import { constantText, ROOT, readSources, visitSource } from './source.ts';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'counterfoil-house-'));
});
afterEach(() => {
  rmSync(folder, { recursive: true });
});

describe('set-up', () => {
  test('names the store that it has opened', async () => {
    const { name, version } = await loadStore(ROOT);
    expect(name).toMatch(/sqlite/);
    expect(version).toMatch(/^3\.\d+\.\d+$/);
  });

  test('fails aloud, in one sentence, when no store loads', async () => {
    mkdirSync(join(folder, 'dist/store/sqlite'), { recursive: true });
    writeFileSync(
      join(folder, 'dist/store/sqlite/driver.js'),
      'exports.loadSqliteDriver = async () => { throw new Error("planted: no engine\\nwith a second line"); };',
    );
    await expect(loadStore(folder)).rejects.toThrow(SetUpError);
    await expect(loadStore(folder)).rejects.toThrow(/^No store loads, .*: planted: no engine$/);
  });
});

test('what cannot be installed for a command is told in one sentence', () => {
  const install = `import { installInto } from '${ROOT}/scripts/on-demand.mjs';
    try { installInto(process.argv[1], ['./planted-and-absent']); } catch (error) { console.log(error.message); }`;
  const { stdout, stderr } = spawnSync(process.execPath, ['--input-type=module', '--eval', install, folder], {
    encoding: 'utf8',
  });
  expect(stdout).toMatch(/^"npm install" of \.\/planted-and-absent ended with \d+\. Check that .*\.\n$/);
  expect(stderr).toContain('planted-and-absent');
});

const scripts = [...readSources(join(ROOT, 'scripts'), /\.mjs$/)];

test.each(scripts)(
  '%s needs only what Node itself has: it runs before anything is installed',
  (name, text) => {
    const needed: unknown[] = [];
    visitSource(name, text, (node) => {
      if (node.type === 'ImportDeclaration') needed.push(constantText(node['source']));
    });
    expect(
      needed.filter((specifier) => !/^(node:[a-z_/]+|\.\/[a-z-]+\.mjs)$/.test(String(specifier))),
    ).toEqual([]);
  },
);

test('the servers of the first minutes are those that the shipped bindings were measured with', () => {
  const script = readFileSync(join(ROOT, 'scripts/first-minutes.mjs'), 'utf8');
  const bindings = readFileSync(join(ROOT, 'docs/bindings.md'), 'utf8');
  const servers = [...script.matchAll(/'(@[\w-]+\/[\w-]+)@([\d.]+)'/g)];
  expect(servers).toHaveLength(4);
  for (const [, name = '', version = ''] of servers) {
    expect(bindings).toMatch(
      new RegExp(`\\| \\[${name}\\]\\(#[\\w-]+\\) \\| ${version.replaceAll('.', '\\.')}, `),
    );
  }
});

test('.ci/run is a script that a shell can read', () => {
  execFileSync('bash', ['-n', join(ROOT, '.ci/run')]);
});

test('a script works from any folder', () => {
  const { status, stderr } = spawnSync(process.execPath, [join(ROOT, 'scripts/docs.mjs'), '--check'], {
    cwd: folder,
    encoding: 'utf8',
  });
  expect(stderr).toMatch(/^set-up: /);
  expect(status, stderr).toBe(0);
});
