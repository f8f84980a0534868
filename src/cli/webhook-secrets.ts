// The secrets of webhooks: named in the configuration, and read from where they are kept.

import { readFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import type { WebhookConfig } from '../contracts/serve-config.ts';
import type { WebhookEndpoint } from '../engine/webhooks.ts';
import { reasonOf } from './gateway-setup.ts';
import { printable } from './lines.ts';
import { CommandFault, EXIT } from './output.ts';

/** @throws {CommandFault} where one cannot be read, or is none; nothing of it is told */
export function webhookEndpoints(
  webhooks: readonly WebhookConfig[],
  configFile: string,
): readonly WebhookEndpoint[] {
  return webhooks.map(({ secret: from, url }) => {
    const place = 'env' in from ? `the variable ${from.env}` : printable(from.file);
    const secret = readSecret(from, configFile).trim();
    if (!isSecret(secret)) {
      throw new CommandFault(
        EXIT.usage,
        `The secret of a webhook in ${place} is not whsec_ and then 24 to 64 bytes in base64. Nothing was started. To make one: echo whsec_$(openssl rand -base64 32)`,
      );
    }
    return { url, secret };
  });
}

const SECRET = /^whsec_([A-Za-z0-9+/]+={0,2})$/;
/** What Standard Webhooks recommends (spec 1.0, "Signature scheme"). */
const SECRET_BYTES_MIN = 24;
const SECRET_BYTES_MAX = 64;

function isSecret(text: string): boolean {
  const [, encoded] = SECRET.exec(text) ?? [];
  if (encoded === undefined) return false;
  const { length } = Buffer.from(encoded, 'base64');
  return length >= SECRET_BYTES_MIN && length <= SECRET_BYTES_MAX;
}

function readSecret(from: WebhookConfig['secret'], configFile: string): string {
  if ('env' in from) {
    const value = process.env[from.env];
    if (value !== undefined && value !== '') return value;
    throw new CommandFault(
      EXIT.usage,
      `The variable ${from.env}, which holds the secret of a webhook, is not set. Nothing was started.`,
    );
  }
  try {
    return readFileSync(resolve(dirname(resolve(configFile)), from.file), 'utf8');
  } catch (cause) {
    throw new CommandFault(
      EXIT.usage,
      `The secret of a webhook in ${printable(from.file)} cannot be read: ${reasonOf(cause)}. Nothing was started.`,
    );
  }
}
