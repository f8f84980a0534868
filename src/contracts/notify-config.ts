// Who is told: people, of causes in the queue; and requesters, of what has settled. Addresses that hold a secret are named
// here and kept elsewhere.

import type { Finding, Path } from './problem.ts';

/** A variable of the environment, or a file (from the folder of the configuration). */
export type KeptElsewhere = { readonly env: string } | { readonly file: string };

export interface NotifyEntry {
  readonly kind: 'slack' | 'teams' | 'email';
  /** ISO 8601; a minute in chats and five by mail, when absent. */
  readonly every?: string;
  /** Of a chat: its incoming webhook, which is a secret. */
  readonly url?: KeptElsewhere;
  /** Of mail: `smtps://user:password@host:port`. */
  readonly smtp?: KeptElsewhere;
  readonly from?: string;
  readonly to?: readonly string[];
}

export interface CallbackEntry {
  readonly requester: string;
  readonly url: string;
  readonly secret: KeptElsewhere;
}

export interface NotifyConfig {
  readonly notify?: readonly NotifyEntry[];
  readonly callbacks?: readonly CallbackEntry[];
}

/** What the schema cannot say about one configuration. */
export function checkNotifyConfig({ callbacks = [], notify = [] }: NotifyConfig): readonly Finding[] {
  return [
    ...notify.flatMap((entry, index) => checkEntry(entry, ['notify', index])),
    ...callbacks.flatMap(({ secret, url }, index) => [
      ...checkToldUrl(url, ['callbacks', index, 'url']),
      ...checkKept(secret, ['callbacks', index, 'secret']),
    ]),
  ];
}

const OF_CHAT = ['url'] as const;
const OF_MAIL = ['smtp', 'from', 'to'] as const;

function checkEntry(entry: NotifyEntry, path: Path): readonly Finding[] {
  const isMail = entry.kind === 'email';
  const name = pathName(path);
  const wanted = isMail ? OF_MAIL : OF_CHAT;
  const missing = wanted.filter((member) => entry[member] === undefined);
  const misplaced = (isMail ? OF_CHAT : OF_MAIL).filter((member) => entry[member] !== undefined);
  return [
    ...missing.map((member) => ({ path, sentence: `${name} is ${entry.kind} and says no ${member}.` })),
    ...misplaced.map((member) => ({
      path: [...path, member],
      sentence: `${name} is ${entry.kind}, which has no ${member}.`,
    })),
    ...(entry.url === undefined ? [] : checkKept(entry.url, [...path, 'url'])),
    ...(entry.smtp === undefined ? [] : checkKept(entry.smtp, [...path, 'smtp'])),
  ];
}

const LOOPBACK_HOST = /^(localhost|127(\.\d{1,3}){3}|\[::1\])$/;

/** What is told is signed and not secret, and yet nobody between shall read or swallow it. */
export function checkToldUrl(url: string, path: Path): readonly Finding[] {
  const name = pathName(path);
  if (!URL.canParse(url)) return [{ path, sentence: `${name} is no address.` }];
  if (isToldSafely(url)) return [];
  return [{ path, sentence: `${name} is an http address of another machine; only https is allowed there.` }];
}

export function isToldSafely(url: string): boolean {
  const { hostname, protocol } = new URL(url);
  return protocol === 'https:' || (protocol === 'http:' && LOOPBACK_HOST.test(hostname));
}

/** Whatever stands there may be the secret itself, and is not repeated. */
export function checkKept(value: unknown, path: Path): readonly Finding[] {
  const members = typeof value === 'object' && value !== null ? Object.entries(value) : [];
  const [[kind, where] = []] = members;
  const isNamed = (kind === 'env' || kind === 'file') && typeof where === 'string' && where !== '';
  if (isNamed && members.length === 1) return [];
  const what = path.at(-1) === 'secret' ? 'the secret' : 'it';
  return [
    {
      path,
      sentence: `${pathName(path)} says where ${what} is kept: {env: VARIABLE} or {file: NAME}, one of them and nothing else.`,
    },
  ];
}

function pathName(path: Path): string {
  return path
    .map((part, index) => (typeof part === 'number' ? `[${part}]` : `${index === 0 ? '' : '.'}${part}`))
    .join('');
}
