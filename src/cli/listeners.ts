// Who is told, with the secrets that their configuration names, read from where they are kept.

import { existsSync, readFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { loadNotifyConfig } from '../contracts/load.ts';
import { isToldSafely, type KeptElsewhere, type NotifyEntry } from '../contracts/notify-config.ts';
import { formatProblem } from '../contracts/problem.ts';
import type { WebhookConfig } from '../contracts/serve-config.ts';
import { durationMs } from '../core/contract.ts';
import type { Listener } from '../engine/webhooks.ts';
import { type ListenerParts, listenerOf } from '../listeners.ts';
import { reasonOf } from './gateway-setup.ts';
import { printable } from './lines.ts';
import { CommandFault, EXIT } from './output.ts';

const NOTIFY_FILE = 'notify.yaml';
const EVERY_CHAT_MS = 60_000;
const EVERY_MAIL_MS = 300_000;

/**
 * Everybody who is told by a gateway on this ledger.
 * @param file a file in the place of `notify.yaml` beside the ledger
 * @throws {CommandFault} where something of it cannot be used; nobody is told then, and nothing is started
 */
export function listenersOf(data: string, file?: string): readonly Listener[] {
  const name = file ?? join(data, NOTIFY_FILE);
  if (file === undefined && !existsSync(name)) return [];
  const loaded = loadNotifyConfig(textOf(name, 'Who is told'), name);
  if (!loaded.ok) throw refused(loaded.problems.map(formatProblem).join('\n'));
  const { callbacks = [], notify = [] } = loaded.config;
  const parts: readonly ListenerParts[] = [
    ...notify.map((entry) => toldParts(entry, name)),
    ...callbacks.map(({ requester, secret, url }): ListenerParts => {
      return { kind: 'webhook', requester, url, secret: signingSecret(secret, name) };
    }),
  ];
  return parts.map(listenerOf);
}

/** The webhooks of `counterfoil serve`. @throws {CommandFault} where a secret cannot be read, or is none */
export function webhooksOf(webhooks: readonly WebhookConfig[], configFile: string): readonly Listener[] {
  return webhooks.map(({ secret, url }) =>
    listenerOf({ kind: 'webhook', url, secret: signingSecret(secret, configFile) }),
  );
}

function toldParts(entry: NotifyEntry, file: string): ListenerParts {
  const { every, from = '', kind, smtp, to = [], url } = entry;
  const everyMs = durationMs(every);
  if (kind === 'email') {
    const address = kept(smtp, file, 'the address of the mail server');
    if (!URL.canParse(address) || !/^smtps?:$/.test(new URL(address).protocol)) {
      throw refused(`The address of the mail server in ${placeOf(smtp)} is not smtp:// or smtps://.`);
    }
    return { kind, smtp: address, from, to, everyMs: everyMs ?? EVERY_MAIL_MS };
  }
  const address = kept(url, file, `the address of ${kind}`);
  if (!URL.canParse(address) || !isToldSafely(address)) {
    throw refused(`The address of ${kind} in ${placeOf(url)} is not https (or http on this machine).`);
  }
  return { kind, url: address, everyMs: everyMs ?? EVERY_CHAT_MS };
}

const SECRET = /^whsec_([A-Za-z0-9+/]+={0,2})$/;
/** What Standard Webhooks recommends (spec 1.0, "Signature scheme"). */
const SECRET_BYTES_MIN = 24;
const SECRET_BYTES_MAX = 64;

function signingSecret(from: KeptElsewhere, file: string): string {
  const secret = kept(from, file, 'the secret of a webhook');
  const [, encoded = ''] = SECRET.exec(secret) ?? [];
  const { length } = Buffer.from(encoded, 'base64');
  if (length >= SECRET_BYTES_MIN && length <= SECRET_BYTES_MAX) return secret;
  throw refused(
    `The secret of a webhook in ${placeOf(from)} is not whsec_ and then 24 to 64 bytes in base64.`,
    ' To make one: echo whsec_$(openssl rand -base64 32)',
  );
}

function kept(from: KeptElsewhere | undefined, file: string, what: string): string {
  if (from === undefined) throw new Error('Assertion: the configuration was checked.');
  if ('file' in from)
    return textOf(resolve(dirname(resolve(file)), from.file), upper(what), from.file).trim();
  const value = process.env[from.env];
  if (value !== undefined && value !== '') return value.trim();
  throw refused(`The variable ${from.env}, which holds ${what}, is not set.`);
}

function placeOf(from: KeptElsewhere | undefined): string {
  if (from === undefined) return 'the configuration';
  return 'env' in from ? `the variable ${from.env}` : printable(from.file);
}

function textOf(name: string, what: string, shown = name): string {
  try {
    return readFileSync(name, 'utf8');
  } catch (cause) {
    throw refused(`${what} in ${printable(shown)} cannot be read: ${reasonOf(cause)}.`);
  }
}

function upper(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

function refused(sentence: string, more = ''): CommandFault {
  return new CommandFault(EXIT.usage, `${sentence} Nothing was started.${more}`);
}
