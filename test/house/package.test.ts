// What is published: every address of the exports map leads to a file, and nothing else is in the package.

import { execFileSync } from 'node:child_process';
import { accessSync, constants, existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { ROOT } from './source.ts';

const manifest = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));
const subpaths = Object.entries<string | { readonly [condition: string]: string }>(manifest.exports);

describe('after a build', () => {
  test.each(subpaths)('%s leads to files that exist', (_subpath, target) => {
    for (const file of typeof target === 'string' ? [target] : Object.values(target)) {
      expect(existsSync(join(ROOT, file)), file).toBe(true);
    }
  });

  test.each(subpaths.filter(([, target]) => typeof target !== 'string'))(
    '%s can be imported by its name',
    (subpath) => {
      const name = `${manifest.name}${subpath.slice(1)}`;
      const program = `console.log(Object.keys(await import(${JSON.stringify(name)})).length)`;
      const count = execFileSync(process.execPath, ['--input-type=module', '--eval', program], { cwd: ROOT });
      expect(Number(count)).toBeGreaterThan(0);
    },
  );

  test('the command is a program, and says its version', () => {
    const file = join(ROOT, manifest.bin.counterfoil);
    expect(readFileSync(file, 'utf8').split('\n')[0]).toBe('#!/usr/bin/env node');
    if (process.platform !== 'win32') accessSync(file, constants.X_OK);
    expect(execFileSync(process.execPath, [file, '--version'], { encoding: 'utf8' }).trim()).toContain(
      manifest.version,
    );
  });

  test('the data files of the contracts are beside the code that reads them', () => {
    const source = listPackage().filter((file) => file.endsWith('.yaml'));
    expect(source).toContain('dist/contracts/schema/contract.schema.yaml');
  });

  test('the package holds what a user needs, and nothing of the workshop', () => {
    const files = listPackage();
    for (const wanted of [
      'LICENSE',
      'README.md',
      'CHANGELOG.md',
      'package.json',
      'dist/index.js',
      'dist/index.d.ts',
    ]) {
      expect(files).toContain(wanted);
    }
    const others = files.filter(
      (file) => !/^(LICENSE|README\.md|CHANGELOG\.md|package\.json|dist\/.+\.(js|d\.ts|yaml))$/.test(file),
    );
    expect(others).toEqual([]);
  });
});

function listPackage(): readonly string[] {
  // Without scripts: packing would build, while other tests use what is built.
  const listed = execFileSync('npm', ['pack', '--dry-run', '--json', '--ignore-scripts'], {
    cwd: ROOT,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
    shell: process.platform === 'win32',
  });
  const [{ files }] = JSON.parse(listed) as [{ readonly files: readonly { readonly path: string }[] }];
  return files.map(({ path }) => path);
}

test('the changelog begins with this version', () => {
  const [, version] = /^## (\S+)/m.exec(readFileSync(join(ROOT, 'CHANGELOG.md'), 'utf8')) ?? [];
  expect(version).toBe(manifest.version);
});

test('each dependency has its line, with the reason, in docs/dependencies.md', () => {
  const text = readFileSync(join(ROOT, 'docs/dependencies.md'), 'utf8');
  const listed = [...text.matchAll(/^- `([^`]+)` .{20,}$/gm)].map(([, name]) => name ?? '');
  const names = [...Object.keys(manifest.dependencies), ...Object.keys(manifest.devDependencies)];
  expect(listed.toSorted()).toEqual(names.toSorted());
});
