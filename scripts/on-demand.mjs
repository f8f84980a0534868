// Packages that only one command needs, and that are too large to be installed for everybody: installed when that
// command runs, in a folder of their own.

import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { npm, ROOT } from './processes.mjs';

const FLAGS = ['--no-save', '--no-package-lock', '--no-audit', '--no-fund', '--ignore-scripts'];

/**
 * Installs into a folder that the caller removes again.
 * @param {readonly string[]} packages each with its exact version: `name@1.2.3`
 * @throws {Error} with what npm said
 */
export function installInto(folder, packages) {
  mkdirSync(folder, { recursive: true });
  const { status, stdout, stderr, error } = npm(
    ['install', ...FLAGS, '--prefix', folder, ...packages],
    folder,
  );
  if (status === 0) return;
  process.stderr.write(`${stdout ?? ''}${stderr ?? ''}`);
  const ended = error === undefined ? `ended with ${status}` : `could not be started (${error.message})`;
  throw new Error(
    `"npm install" of ${packages.join(', ')} ${ended}. Check that the npm registry can be reached, then run the same command again.`,
  );
}

/**
 * Installs once, and keeps it with the other packages of the checkout until those are installed anew.
 * @param {readonly string[]} packages each with its exact version
 * @returns {string} the folder whose `node_modules` has them
 */
export function installedOnce(packages) {
  const stamp = `${packages.join('\n')}\n${process.platform}-${process.arch}\n`;
  const name = createHash('sha256').update(stamp).digest('hex').slice(0, 16);
  const folder = join(ROOT, 'node_modules/.on-demand', name);
  const stampFile = join(folder, 'installed');
  if (existsSync(stampFile) && readFileSync(stampFile, 'utf8') === stamp) return folder;
  rmSync(folder, { recursive: true, force: true });
  installInto(folder, packages);
  writeFileSync(stampFile, stamp);
  return folder;
}
