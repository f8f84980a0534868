// Compiles src into dist, beside the data files that are read at run time; nothing of an earlier build stays.

import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
} from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { isProgram, ROOT } from './processes.mjs';

const SHEBANG = '#!/usr/bin/env node\n';
const COMMAND = 'cli/counterfoil.js';

/**
 * Builds into a folder of its own and then puts it in place of dist, so that a failed build leaves the one before.
 * @param {string} root the checkout
 * @returns {{ ok: boolean, output: string }} what the compiler or a check had to say
 */
export function build(root) {
  const fresh = join(root, `node_modules/.counterfoil-build.${process.pid}`);
  try {
    const compiled = compile(root, fresh);
    if (!compiled.ok) return compiled;
    copyData(join(root, 'src/contracts'), join(fresh, 'contracts'));
    const problem = prepareCommand(fresh);
    if (problem !== undefined) return { ok: false, output: `${problem}\n` };
    putInPlace(fresh, join(root, 'dist'));
    return { ok: true, output: '' };
  } finally {
    rmSync(fresh, { recursive: true, force: true });
  }
}

function compile(root, outDir) {
  const compiler = join(root, 'node_modules/typescript/bin/tsc');
  // Not incremental: the state of an incremental build would lie in dist and be published with it.
  const options = [
    '-p',
    'tsconfig.build.json',
    '--outDir',
    outDir,
    '--incremental',
    'false',
    '--tsBuildInfoFile',
    'null',
  ];
  const { status, stdout, stderr, error } = spawnSync(process.execPath, [compiler, ...options], {
    cwd: root,
    encoding: 'utf8',
  });
  return {
    ok: status === 0,
    output: `${stdout ?? ''}${stderr ?? ''}${error === undefined ? '' : `${error.message}\n`}`,
  };
}

/** Contracts, bindings and their schemas are data: the compiler does not copy them. */
function copyData(from, to) {
  for (const entry of readdirSync(from, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile() || !entry.name.endsWith('.yaml')) continue;
    const source = join(entry.parentPath, entry.name);
    const target = join(to, relative(from, source));
    mkdirSync(dirname(target), { recursive: true });
    cpSync(source, target);
  }
}

/** @returns what is wrong with the command's file, or `undefined` */
function prepareCommand(dist) {
  const file = join(dist, COMMAND);
  if (!existsSync(file))
    return `src/${COMMAND.replace(/js$/, 'ts')} is missing: the package would have no command.`;
  if (!readFileSync(file, 'utf8').startsWith(SHEBANG)) {
    return `dist/${COMMAND} does not begin with "${SHEBANG.trim()}": a shell could not run it.`;
  }
  chmodSync(file, 0o755);
  return undefined;
}

/** Two builds may end at once: the later one replaces the earlier. */
function putInPlace(fresh, dist) {
  const old = `${fresh}.old`;
  for (let attemptsLeft = 5; ; attemptsLeft -= 1) {
    try {
      if (existsSync(dist)) renameSync(dist, old);
      renameSync(fresh, dist);
      return;
    } catch (error) {
      if (attemptsLeft === 0) throw error;
    } finally {
      rmSync(old, { recursive: true, force: true });
    }
  }
}

if (isProgram(import.meta.url)) {
  const { ok, output } = build(ROOT);
  process.stderr.write(output);
  process.exit(ok ? 0 : 1);
}
