// Looks at every place where a client may keep its configuration, and reads what is there.

import { readdir } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { type ClientFile, readClientFile } from './client-file.ts';
import { readEntries, type ServerEntry } from './entries.ts';
import { type Place, placesOf, type Surroundings } from './places.ts';

export type Found = { readonly place: Place; readonly path: string } & (
  | { readonly readable: true; readonly file: ClientFile; readonly entries: readonly ServerEntry[] }
  /** The end of a sentence that begins with the file. */
  | { readonly readable: false; readonly problem: string }
);

/** Every configuration that exists, in the order of the places; a file that two places lead to comes once. */
export async function findConfigurations(surroundings: Surroundings): Promise<readonly Found[]> {
  const found: Found[] = [];
  const targets = new Set<string>();
  for (const place of placesOf(surroundings)) {
    for (const path of await pathsOf(place.path)) {
      const read = await readClientFile(path);
      if (read.found === 'nothing') continue;
      if (read.found === 'obstacle') {
        found.push({ place, path, readable: false, problem: read.problem });
        continue;
      }
      if (targets.has(read.file.target)) continue;
      targets.add(read.file.target);
      found.push(foundIn(place, read.file, surroundings));
    }
  }
  return found;
}

function foundIn(place: Place, file: ClientFile, { project }: Surroundings): Found {
  const workspace = place.scope === 'project' ? project : undefined;
  const read = readEntries(file.text, place, workspace);
  const { path } = file;
  return read.ok
    ? { place, path, readable: true, file, entries: read.entries }
    : { place, path, readable: false, problem: read.problem };
}

/** A `*` in one folder's name stands for any rest of it. */
async function pathsOf(path: string): Promise<readonly string[]> {
  let folder = path;
  const rest: string[] = [];
  while (!basename(folder).includes('*')) {
    const above = dirname(folder);
    if (above === folder) return [path];
    rest.unshift(basename(folder));
    folder = above;
  }
  const [start = ''] = basename(folder).split('*');
  try {
    const names = await readdir(dirname(folder));
    return names
      .filter((name) => name.startsWith(start))
      .toSorted()
      .map((name) => join(dirname(folder), name, ...rest));
  } catch {
    return [];
  }
}
