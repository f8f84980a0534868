// Who asks at the HTTP door: the holder of a local token, or, while no token was ever made, the account that runs it.

import type { IncomingMessage } from 'node:http';
import { checkToken, opensServer, principalOf, type TokenCheck, type TokenRow } from '../../access/tokens.ts';
import { StoreFault } from '../../store/port.ts';
import type { Authentication } from './http-door.ts';
import { headerOf } from './refusals.ts';
import { refused } from './request-guard.ts';

export interface BearerParts {
  /** Every token of the ledger. @throws {StoreFault} */
  readonly tokens: () => Promise<readonly TokenRow[]>;
  /** Who asks without one, where that is allowed at all. */
  readonly localPrincipal: string | undefined;
  readonly now: () => number;
}

const REALM = 'Bearer realm="counterfoil"';
const WHY: { readonly [why in Extract<TokenCheck, { known: false }>['why']]: string } = {
  malformed:
    'The token is none of this gateway: one begins with cft_ and is made by counterfoil token create.',
  unknown: 'The token is not known here: make one with counterfoil token create.',
  revoked: 'The token was revoked: make another with counterfoil token create.',
  expired: 'The token has expired: make another with counterfoil token create.',
};

/**
 * Once a token has been made, each request needs one, on loopback too: were it otherwise, revoking the last one would
 * open the door.
 */
export async function authenticateBearer(
  { localPrincipal, now, tokens }: BearerParts,
  request: IncomingMessage,
  server: string,
): Promise<Authentication> {
  let rows: readonly TokenRow[];
  try {
    rows = await tokens();
  } catch (cause) {
    if (!(cause instanceof StoreFault)) throw cause;
    return { refusal: refused(503, 'Who may ask cannot be read now. Nothing was handled; ask again later.') };
  }
  const authorization = headerOf(request, 'authorization');
  if (authorization === undefined) {
    if (rows.length === 0 && localPrincipal !== undefined) return { principal: localPrincipal };
    return unauthorized(
      'A token is needed: Authorization: Bearer, with one that counterfoil token create has made.',
    );
  }
  const text = /^Bearer +(\S+)$/i.exec(authorization)?.[1];
  if (text === undefined)
    return unauthorized('The Authorization header holds no Bearer token.', 'invalid_request');
  const check = checkToken(text, rows, now());
  if (!check.known) return unauthorized(WHY[check.why], 'invalid_token');
  if (opensServer(check.row, server)) return { principal: principalOf(check.row) };
  const challenge = `${REALM}, error="insufficient_scope"`;
  return {
    refusal: refused(403, `The token ${check.row.name} does not open the server ${server}.`, {
      'www-authenticate': challenge,
    }),
  };
}

/** As RFC 6750 wants it: a challenge without an error where nothing was given. */
function unauthorized(message: string, error?: string): Authentication {
  const challenge = error === undefined ? REALM : `${REALM}, error="${error}"`;
  return { refusal: refused(401, message, { 'www-authenticate': challenge }) };
}
