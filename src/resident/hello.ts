// What a pipe and the resident tell each other before the client's bytes pass: one JSON line each way.

import type { Readable } from 'node:stream';

/** The server that a client has named, as the pipe was started for it. */
export interface ServerSpec {
  /** The destination's name where the configuration gives none. */
  readonly name: string;
  /** Whether a person has given it: then a configuration may not give another one. */
  readonly isNamed: boolean;
  readonly command?: readonly string[] | undefined;
  readonly url?: string | undefined;
  /** For each request to `url`. */
  readonly headers?: { readonly [name: string]: string } | undefined;
  readonly cwd: string;
  readonly env: { readonly [name: string]: string };
  /** The whole path of the owner's configuration. */
  readonly config?: string;
  /** SHA-256 of its text as the pipe reads it; absent where it cannot. */
  readonly configDigest?: string;
  readonly run?: string;
}

export type Hello =
  /** This connection carries what the client's log shows of the session: one way, from the resident. */
  | { readonly version: string; readonly session: string; readonly carries: 'talk' }
  /** This connection carries the client's bytes. */
  | {
      readonly version: string;
      readonly session: string;
      readonly carries: 'client';
      readonly server: ServerSpec;
    };

/** The first line that a resident prints for who has started it. */
export type FirstWord =
  | { readonly word: 'listening' }
  /** Another one has the lock: it listens, or is about to. */
  | { readonly word: 'taken' }
  /** What the client has asked for cannot be meant; nothing was made. */
  | { readonly word: 'refused'; readonly exitCode: number; readonly sentence: string }
  /** The client is to have a process of its own. */
  | { readonly word: 'alone' }
  /** The end of a sentence. */
  | { readonly word: 'obstacle'; readonly reason: string };

export type Welcome =
  | { readonly served: true }
  /** `alone`: nothing is wrong with what was asked; this client is better served by a process of its own. */
  | { readonly served: false; readonly alone: true; readonly reason?: string }
  | { readonly served: false; readonly alone: false; readonly exitCode: number; readonly sentence: string };

/** Environments are in it; the kernel's own limit for those is a few MiB. */
const LINE_MAX_BYTES = 8 * 1024 * 1024;
const LINE_FEED = 0x0a;

export function line(message: Hello | Welcome | FirstWord): string {
  return `${JSON.stringify(message)}\n`;
}

/**
 * Reads one line and leaves what comes after it in the stream. `undefined`: it ended before, or is too long.
 */
export function readLine(stream: Readable): Promise<string | undefined> {
  return new Promise((resolve) => {
    const pieces: Buffer[] = [];
    let bytes = 0;
    const done = (text: string | undefined): void => {
      stream.off('readable', onReadable);
      for (const event of ENDS) stream.off(event, onEnd);
      resolve(text);
    };
    const onEnd = (): void => done(undefined);
    const onReadable = (): void => {
      for (;;) {
        const chunk = stream.read() as Buffer | null;
        if (chunk === null) return;
        const end = chunk.indexOf(LINE_FEED);
        pieces.push(end === -1 ? chunk : chunk.subarray(0, end));
        bytes += chunk.length;
        if (end !== -1) {
          if (end + 1 < chunk.length) stream.unshift(chunk.subarray(end + 1));
          done(Buffer.concat(pieces).toString('utf8'));
          return;
        }
        if (bytes > LINE_MAX_BYTES) {
          done(undefined);
          return;
        }
      }
    };
    stream.on('readable', onReadable);
    for (const event of ENDS) stream.on(event, onEnd);
  });
}

const ENDS = ['end', 'close', 'error'] as const;

export function readWelcome(text: string): Welcome | undefined {
  const read = readObject(text) as Partial<Welcome> | undefined;
  return typeof read?.served === 'boolean' ? (read as Welcome) : undefined;
}

export function readFirstWord(text: string): FirstWord | undefined {
  const read = readObject(text) as Partial<FirstWord> | undefined;
  return typeof read?.word === 'string' ? (read as FirstWord) : undefined;
}

/** What cannot be acted on, beside the version of who says it. */
export interface Unclear {
  readonly version: string;
  readonly carries: 'unclear';
}

/** Strict in what the resident acts on; a pipe of another version is told so before anything else is looked at. */
export function readHello(text: string): Hello | Unclear | undefined {
  const read = readObject(text);
  if (typeof read?.['version'] !== 'string') return undefined;
  const { version, session, carries, server } = read;
  const unclear: Unclear = { version, carries: 'unclear' };
  if (typeof session !== 'string' || session === '') return unclear;
  if (carries === 'talk') return { version, session, carries };
  if (carries !== 'client' || !isServer(server)) return unclear;
  return { version, session, carries, server };
}

function readObject(text: string): { readonly [member: string]: unknown } | undefined {
  try {
    const read: unknown = JSON.parse(text);
    return typeof read === 'object' && read !== null ? (read as { [member: string]: unknown }) : undefined;
  } catch {
    return undefined;
  }
}

function isServer(value: unknown): value is ServerSpec {
  if (typeof value !== 'object' || value === null) return false;
  const {
    name,
    isNamed,
    command,
    url,
    headers = {},
    cwd,
    env,
    config,
    configDigest,
    run,
  } = value as {
    [member: string]: unknown;
  };
  const isText = (text: unknown): boolean => typeof text === 'string' && text !== '';
  const hasReach =
    url === undefined
      ? Array.isArray(command) && command.length > 0 && command.every((part) => typeof part === 'string')
      : isText(url);
  const isTexts = (map: unknown): boolean =>
    typeof map === 'object' && map !== null && Object.values(map).every((each) => typeof each === 'string');
  return (
    isText(name) &&
    typeof isNamed === 'boolean' &&
    isText(cwd) &&
    hasReach &&
    isTexts(env) &&
    isTexts(headers) &&
    [config, configDigest, run].every((each) => each === undefined || isText(each))
  );
}
