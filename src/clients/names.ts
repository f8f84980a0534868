// Names of destinations for servers that their owner has named in a client, in whatever characters.

import type { Launch } from './entries.ts';
import type { Address } from './own-command.ts';

const NAME_MAX = 64;

/**
 * A name for one server. The same server, named equally in two clients, is one destination; another server of the
 * same name is another destination.
 * @param taken names that were given, each with the digest of the launch that has it; the new one is added
 */
export function destinationName(entryName: string, launch: string, taken: Map<string, string>): string {
  const plain = plainName(entryName);
  for (let count = 1; ; count += 1) {
    const suffix = count === 1 ? '' : `-${count}`;
    const name = `${plain.slice(0, NAME_MAX - suffix.length)}${suffix}`;
    const holder = taken.get(name);
    if (holder === undefined) taken.set(name, launch);
    if (holder === undefined || holder === launch) return name;
  }
}

/** As the configuration of a gateway allows it: letters, digits, dots, hyphens and underscores. */
function plainName(name: string): string {
  const plain = name
    .normalize('NFKD')
    .replace(/[^A-Za-z0-9._-]+/g, '-')
    .replace(/^[^A-Za-z0-9]+/, '')
    .replace(/-+$/, '');
  return plain === '' ? 'server' : plain;
}

/** All that makes a server the one that it is, as a text to be hashed; secrets are in it. */
export function launchText(
  { command, args, env, cwd, envFile }: Launch,
  workspace: string | undefined,
): string {
  // Without a folder of its own a server runs in its client's, and relative names are others there.
  return JSON.stringify([
    command,
    args,
    Object.entries(env).sort(([a], [b]) => (a < b ? -1 : 1)),
    cwd ?? workspace ?? null,
    envFile ?? null,
  ]);
}

/** The same of a server that is reached by an address. */
export function addressText({ url, headers }: Address): string {
  return JSON.stringify(['http', url, Object.entries(headers).sort(([a], [b]) => (a < b ? -1 : 1))]);
}
