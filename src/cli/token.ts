// `counterfoil token`: who may ask at `counterfoil serve`, by name. A token is shown once and kept as a hash.

import { randomBytes } from 'node:crypto';
import {
  hashOfToken,
  principalOf,
  TOKEN_BYTES,
  type TokenAccess,
  type TokenRow,
  tokenText,
} from '../access/tokens.ts';
import { composeLedger } from '../compose.ts';
import { durationMs } from '../core/contract.ts';
import type { Ledger } from '../engine/ledger.ts';
import { StoreFault } from '../store/port.ts';
import { localAccount } from './account.ts';
import { withLedger } from './data-directory.ts';
import { dataDirectory } from './data-place.ts';
import { instant, printable } from './lines.ts';
import { CommandFault, EXIT, print, printJson, say } from './output.ts';
import { toType } from './starter.ts';

const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;
const DAY_MS = 24 * 3_600_000;

export interface CreateOptions {
  readonly data?: string;
  readonly json?: boolean;
  readonly server?: readonly string[];
  readonly readOnly?: boolean;
  readonly expires?: string;
}

export async function createToken(name: string, options: CreateOptions): Promise<number> {
  for (const [what, text] of [['token', name], ...(options.server ?? []).map((each) => ['server', each])]) {
    if (NAME.test(text ?? '')) continue;
    throw new CommandFault(
      EXIT.usage,
      `${printable(JSON.stringify(text))} is no name of a ${what}: at most 64 letters, digits, dots, hyphens and underscores.`,
    );
  }
  const lifetimeMs = lifetimeOf(options.expires);
  const ledger = await openLedger(dataDirectory(options.data));
  try {
    const text = tokenText(randomBytes(TOKEN_BYTES));
    const createdAt = Date.now();
    const access: TokenAccess = options.readOnly === true ? 'read' : 'write';
    const row: TokenRow = {
      name,
      hash: hashOfToken(text),
      access,
      createdAt,
      createdBy: localAccount(),
      ...(options.server === undefined ? {} : { servers: options.server }),
      ...(lifetimeMs === undefined ? {} : { expiresAt: createdAt + lifetimeMs }),
    };
    const { created } = await ledger.tokens.create(row);
    if (!created) {
      throw new CommandFault(
        EXIT.conflict,
        `There is a token ${name}, or there was: what it did is recorded under its name. Give another name.`,
      );
    }
    if (options.json === true) printJson({ ...shown(row, createdAt), token: text });
    else {
      say(`counterfoil: ${tokenLine(row, createdAt)}`);
      say(
        'counterfoil: The token is shown this once; only its hash is kept. As a header: Authorization: Bearer TOKEN',
      );
      print(text);
    }
    return EXIT.done;
  } finally {
    await ledger.close();
  }
}

/** A team's tokens are made before its gateway has run. */
async function openLedger(data: string): Promise<Ledger> {
  return composeLedger({ data }).catch((cause: unknown) => {
    if (cause instanceof StoreFault) throw new CommandFault(EXIT.internal, cause.message);
    throw cause;
  });
}

/** `30d`, `12h`, or a duration of ISO 8601. */
export function lifetimeOf(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const [, count, unit] = /^(\d{1,5})([dh])$/.exec(text) ?? [];
  const lifetimeMs =
    count === undefined ? durationMs(text) : Number(count) * (unit === 'd' ? DAY_MS : DAY_MS / 24);
  if (lifetimeMs !== undefined && lifetimeMs > 0) return lifetimeMs;
  throw new CommandFault(EXIT.usage, `--expires ${printable(text)} is no time such as 30d, 12h or P30D.`);
}

export async function listTokens(options: {
  readonly data?: string;
  readonly json?: boolean;
}): Promise<number> {
  return withLedger(options.data, async (ledger) => {
    const rows = await ledger.tokens.all();
    const now = Date.now();
    if (options.json === true) printJson({ tokens: rows.map((row) => shown(row, now)) });
    else if (rows.length === 0) print('No token has been made.');
    else for (const row of rows) print(tokenLine(row, now));
    return EXIT.done;
  });
}

export async function revokeToken(name: string, options: { readonly data?: string }): Promise<number> {
  return withLedger(options.data, async (ledger) => {
    if (!(await ledger.tokens.revoke(name, localAccount()))) {
      throw new CommandFault(
        EXIT.notFound,
        `There is no token ${printable(name)} in force. List them: ${toType('token list')}`,
      );
    }
    print(`${name}  revoked: its next request is refused, and what is open of it is cut off.`);
    return EXIT.done;
  });
}

function shown(row: TokenRow, now: number): object {
  const { name, access, createdAt, createdBy, expiresAt = null, revokedAt = null, servers = null } = row;
  const state = stateOf(row, now);
  return {
    name,
    principal: principalOf(row),
    state,
    access,
    servers,
    createdAt,
    createdBy,
    expiresAt,
    revokedAt,
  };
}

function stateOf({ expiresAt, revokedAt }: TokenRow, now: number): 'in force' | 'revoked' | 'expired' {
  if (revokedAt !== undefined) return 'revoked';
  return expiresAt !== undefined && now >= expiresAt ? 'expired' : 'in force';
}

function tokenLine(row: TokenRow, now: number): string {
  const where = row.servers === undefined ? 'every server' : row.servers.join(', ');
  const until = row.expiresAt === undefined ? 'until it is revoked' : `until ${instant(row.expiresAt)}`;
  const state = stateOf(row, now);
  return `${row.name}  ${state === 'in force' ? until : state}: ${row.access === 'read' ? 'reads' : 'reads and writes'} at ${where}, made by ${printable(row.createdBy)} at ${instant(row.createdAt)}`;
}
