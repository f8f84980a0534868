// A name for a server that nobody has named.

import { existsSync } from 'node:fs';
import { basename, isAbsolute, resolve } from 'node:path';
import { sha256Hex } from '../core/digest.ts';
import { printable } from './lines.ts';
import { CommandFault, EXIT } from './output.ts';

/** The server that was named on the command line. */
export type NamedServer = {
  readonly name: string;
  /** Whether a person has given the name, by `--name`. */
  readonly isNamed: boolean;
} & (
  | { readonly command: readonly string[]; readonly url?: undefined; readonly headers?: undefined }
  | {
      readonly url: string;
      /** Sent with each request; secrets are in them. */
      readonly headers: { readonly [name: string]: string };
      readonly command?: undefined;
    }
);

/** @throws {CommandFault} */
export function checkName(name: string): void {
  if (/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/.test(name)) return;
  throw new CommandFault(
    EXIT.usage,
    `--name ${printable(JSON.stringify(name))} is not a stable name of at most 64 letters, digits, dots, hyphens and underscores.`,
  );
}

/** Programs that only start others: the name that matters comes after them. */
const STARTERS = new Set([
  'node',
  'npx',
  'npm',
  'exec',
  'pnpm',
  'dlx',
  'yarn',
  'bun',
  'bunx',
  'uv',
  'uvx',
  'run',
  'python',
  'python3',
  'deno',
  'env',
  'sh',
  'bash',
]);
/** Names of entry files that say nothing about what they are part of. */
const ENTRIES = new Set(['index', 'main', 'server', 'cli', 'dist', 'build', 'bin', 'src', 'lib', 'out']);

/**
 * A stable name for a server that nobody has named: a word from its command line, and a few digits of all of
 * it, so that two servers that differ only in an argument, or in the directory that one names, are two destinations.
 */
export function nameOf(command: readonly string[]): string {
  // What is given as NAME=VALUE may be a secret, and names are shown everywhere.
  const isWord = (part: string): boolean =>
    !part.startsWith('-') && !part.includes('=') && !STARTERS.has(basename(part));
  const first = command.find(isWord) ?? 'server';
  const segments = first.split(/[\\/]/).filter((segment) => segment !== '');
  const words = segments.map((segment) =>
    segment.replace(/\.[cm]?[jt]s$|\.py$/, '').replace(/(?<=.)@[^@]*$/, ''),
  );
  const word = words.findLast((segment) => !ENTRIES.has(segment)) ?? 'server';
  const plain = word
    .replace(/[^A-Za-z0-9._-]+/g, '-')
    .replace(/^[^A-Za-z0-9]+/, '')
    .slice(0, 48);
  const whole = command.map((part) => (isRelativePath(part) ? resolve(part) : part));
  return `${plain === '' ? 'server' : plain}-${sha256Hex(JSON.stringify(whole)).slice(0, 6)}`;
}

/** The host alone is shown: paths and queries carry keys. */
export function nameOfAddress(url: string): string {
  const { hostname } = new URL(url);
  const plain = hostname.replace(/[^A-Za-z0-9.-]+/g, '').slice(0, 48);
  return `${plain === '' ? 'server' : plain}-${sha256Hex(url).slice(0, 6)}`;
}

/** The same relative path is another one in another directory, and so is the server that is given it. */
function isRelativePath(part: string): boolean {
  return !part.startsWith('-') && !isAbsolute(part) && existsSync(part);
}
