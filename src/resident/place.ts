// Where the resident process of a data directory is met: a folder that only this account can look into, and in it
// the socket, the lock and the log.

import { createHash } from 'node:crypto';
import { lstatSync, mkdirSync, type Stats } from 'node:fs';
import { tmpdir, userInfo } from 'node:os';
import { join, resolve } from 'node:path';

export interface ResidentPlace {
  readonly folder: string;
  /** A Unix domain socket; on Windows a named pipe. */
  readonly socket: string;
  /** The folder of the socket, where the socket's name would be too long in `folder`. */
  readonly socketFolder: string;
  readonly lock: string;
  readonly log: string;
}

/** A Unix socket's name has room for 104 bytes on macOS and 108 on Linux, the last of them zero (`sys/un.h`). */
const SOCKET_NAME_MAX = 100;
const PRIVATE = 0o700;
const OTHERS = 0o077;

export function residentPlace(data: string, platform: NodeJS.Platform = process.platform): ResidentPlace {
  const folder = join(resolve(data), 'resident');
  const lock = join(folder, 'lock.sqlite');
  const log = join(folder, 'log');
  if (platform === 'win32') {
    return { folder, lock, log, socketFolder: folder, socket: `\\\\.\\pipe\\counterfoil-${nameFor(folder)}` };
  }
  const inside = join(folder, 'socket');
  if (Buffer.byteLength(inside) <= SOCKET_NAME_MAX) {
    return { folder, lock, log, socketFolder: folder, socket: inside };
  }
  const socketFolder = join(tmpdir(), `counterfoil-${userInfo().uid}-${nameFor(folder)}`);
  return { folder, lock, log, socketFolder, socket: join(socketFolder, 'socket') };
}

function nameFor(folder: string): string {
  return createHash('sha256').update(`${userInfo().username}\n${folder}`).digest('hex').slice(0, 16);
}

/** Makes the folders. @returns the end of a sentence where they cannot be used */
export function makePlace(place: ResidentPlace): string | undefined {
  for (const folder of foldersOf(place)) {
    try {
      mkdirSync(folder, { recursive: true, mode: PRIVATE });
    } catch (cause) {
      return `${folder} cannot be used: ${(cause as Error).message}`;
    }
  }
  return findPlaceObstacle(place);
}

/**
 * Whoever can connect is given what this account may do, and what is told there holds whole environments: so nobody
 * else may be able to put a socket in its place, or reach the one that is there. Folders that are not there yet
 * are no obstacle.
 * @returns the end of a sentence where a folder cannot be relied on
 */
export function findPlaceObstacle(place: ResidentPlace): string | undefined {
  for (const folder of foldersOf(place)) {
    let about: Stats | undefined;
    try {
      about = lstatSync(folder, { throwIfNoEntry: false });
    } catch (cause) {
      return `${folder} cannot be used: ${(cause as Error).message}`;
    }
    if (about === undefined) continue;
    if (!about.isDirectory()) return `${folder} is no folder`;
    const { uid } = userInfo();
    // Windows has neither: -1, and modes that say nothing.
    if (uid === -1) continue;
    if (about.uid !== uid) return `${folder} belongs to another account`;
    if ((about.mode & OTHERS) !== 0) return `other accounts may look into ${folder}`;
  }
  return undefined;
}

function foldersOf({ folder, socketFolder }: ResidentPlace): ReadonlySet<string> {
  return new Set([folder, socketFolder]);
}
