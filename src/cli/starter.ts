// How an entry of a client's configuration names us, so that a desktop app that knows nobody's PATH can start us.

import { existsSync, realpathSync } from 'node:fs';
import { homedir } from 'node:os';
import { delimiter, join, resolve } from 'node:path';
import type { Starter } from '../clients/own-command.ts';
import { packageVersion } from './version.ts';

export const VIAS = ['node', 'npx'] as const;
export type Via = (typeof VIAS)[number];

export interface StarterHere extends Starter {
  readonly via: Via;
}

/** See the decision on clients' files: this Node and this installation by absolute path, unless they lie in a cache that is cleared. */
export function starterHere(asked: Via | undefined): StarterHere {
  const script = resolve(process.argv[1] ?? '');
  const via = asked ?? (isInCache(script) ? 'npx' : 'node');
  if (via === 'node') return { via, words: [stableNode(), script] };
  const npx = ['-y', `counterfoil@${packageVersion()}`] as const;
  return { via, words: process.platform === 'win32' ? ['cmd', '/c', 'npx', ...npx] : ['npx', ...npx] };
}

export const OUR_NAME = 'counterfoil';

/** What a person types here to call us: our name where a shell finds it, also after this call. */
export function commandHere(): string {
  const script = resolve(process.argv[1] ?? '');
  const names = process.platform === 'win32' ? [`${OUR_NAME}.cmd`, `${OUR_NAME}.exe`] : [OUR_NAME];
  const isFound = (folder: string): boolean =>
    names.some((name) =>
      process.platform === 'win32'
        ? existsSync(join(folder, name))
        : realPath(join(folder, name)) === realPath(script),
    );
  if (lastingFolders().some(isFound)) return OUR_NAME;
  return isInCache(script) ? nameHere() : script;
}

/** The same where the PATH of this process is not that of a person, as that of a client's server is not. */
export function nameHere(): string {
  return isInCache(resolve(process.argv[1] ?? '')) ? `npx ${OUR_NAME}` : OUR_NAME;
}

/** What a person types to have a command of ours carried out: every hint is written by it. */
export function toType(words: string): string {
  return `${nameHere()} ${words}`;
}

/** What npx has fetched for one call lies here until its cache is cleared. */
function isInCache(script: string): boolean {
  return /[\\/]_npx[\\/]/.test(realPath(script));
}

/** The path of this Node that survives its update, where one is in PATH: package managers link to a version. */
function stableNode(): string {
  const here = process.execPath;
  const name = process.platform === 'win32' ? 'node.exe' : 'node';
  const found = lastingFolders()
    .map((folder) => join(folder, name))
    .find((path) => realPath(path) === realPath(here));
  return found ?? here;
}

function lastingFolders(): readonly string[] {
  return (process.env['PATH'] ?? '')
    .split(delimiter)
    .filter((folder) => folder !== '' && resolve(folder) === folder && !isOfOneShell(folder));
}

/** fnm makes a folder of links for each shell, and `npm run` puts the project's own first. */
function isOfOneShell(folder: string): boolean {
  return folder.includes('fnm_multishells') || folder.includes('node_modules');
}

function realPath(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return path;
  }
}

/** The data directory as an entry must name it: left out where everybody would look anyway. */
export function dataForEntry(data: string): string | undefined {
  return data === join(homedir(), '.local', 'share', 'counterfoil') ? undefined : data;
}
