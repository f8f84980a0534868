// `counterfoil principal`: persons, agents and services by name, until when each may act, and the end of its access. What
// was approved and has not left is held when whoever asked for it or approved it may act no more.

import { checkStanding, type PrincipalKind, type PrincipalRow } from '../access/standing.ts';
import type { Ledger } from '../engine/ledger.ts';
import { localAccount } from './account.ts';
import { withLedger } from './data-directory.ts';
import { instant, printable } from './lines.ts';
import { CommandFault, EXIT, print, printJson } from './output.ts';
import { askPassphrase } from './passphrase.ts';
import { toType } from './starter.ts';
import { lifetimeOf } from './token.ts';

export interface PrincipalOptions {
  readonly data?: string;
  readonly json?: boolean;
  readonly kind?: string;
  readonly expires?: string;
}

/** As rules name principals: how it is known who they are, and a name. */
const NAME = /^[A-Za-z][A-Za-z0-9._-]{0,63}:[^\p{C}]{1,256}$/u;
const KINDS: readonly string[] = ['person', 'agent', 'service'] satisfies readonly PrincipalKind[];

export async function addPrincipal(name: string, options: PrincipalOptions): Promise<number> {
  checkName(name);
  const { kind = 'person' } = options;
  if (!KINDS.includes(kind))
    throw new CommandFault(
      EXIT.usage,
      `--kind wants person, agent or service, and was given ${printable(kind)}.`,
    );
  const lifetimeMs = lifetimeOf(options.expires);
  const expiresAt = lifetimeMs === undefined ? undefined : Date.now() + lifetimeMs;
  return withLedger(
    options.data,
    async (ledger) => {
      const given = { name, kind: kind as PrincipalKind, ...(expiresAt === undefined ? {} : { expiresAt }) };
      if (!(await ledger.principals.add(given, localAccount())))
        throw new CommandFault(
          EXIT.conflict,
          `${printable(name)} is known already. See: ${toType('principal list')}`,
        );
      return shown(ledger, name, options);
    },
    { mayCreate: true },
  );
}

export async function removePrincipal(name: string, options: PrincipalOptions): Promise<number> {
  checkName(name);
  return withLedger(options.data, async (ledger) => {
    if (!(await ledger.principals.remove(name, localAccount())))
      throw new CommandFault(EXIT.conflict, `The access of ${printable(name)} was removed before.`);
    return shown(ledger, name, options);
  });
}

/** It loosens something, so that the passphrase is asked. */
export async function restorePrincipal(name: string, options: PrincipalOptions): Promise<number> {
  checkName(name);
  return withLedger(options.data, async (ledger) => {
    const row = (await ledger.principals.all()).get(name);
    if (row?.removedAt === undefined)
      throw new CommandFault(EXIT.notFound, `The access of ${printable(name)} was not removed here.`);
    await askPassphrase(ledger, options.data, 'Loosening a rule', [
      `To be restored: the access of ${printable(name)}, removed by ${printable(row.removedBy ?? 'somebody')} at ${instant(row.removedAt)}.`,
    ]);
    await ledger.principals.restore(name, localAccount());
    return shown(ledger, name, options);
  });
}

export async function listPrincipals(options: PrincipalOptions): Promise<number> {
  return withLedger(options.data, async (ledger) => {
    const rows = [...(await ledger.principals.all()).values()];
    if (options.json === true) printJson({ principals: rows.map(asJson) });
    else if (rows.length === 0)
      print('Nothing is recorded of any principal. Tokens are listed by themselves.');
    else for (const row of rows) print(lineOf(row));
    return EXIT.done;
  });
}

function checkName(name: string): void {
  if (NAME.test(name)) return;
  throw new CommandFault(
    EXIT.usage,
    `${printable(JSON.stringify(name))} is no principal; one is named like token:planner or local:mara.`,
  );
}

async function shown(ledger: Ledger, name: string, options: PrincipalOptions): Promise<number> {
  const row = (await ledger.principals.all()).get(name);
  if (row === undefined) throw new Error(`Assertion: ${name} was recorded.`);
  if (options.json === true) printJson(asJson(row));
  else print(lineOf(row));
  return EXIT.done;
}

const STANDING = { removed: 'removed', expired: 'expired', not_confirmed: 'not confirmed' } as const;

function standingOf(row: PrincipalRow): string {
  const lost = checkStanding(row.name, { row, tokens: [] }, Date.now());
  return lost === undefined ? 'has access' : STANDING[lost];
}

function asJson(row: PrincipalRow): object {
  return { ...row, standing: standingOf(row) };
}

function lineOf(row: PrincipalRow): string {
  const { confirmedAt, expiresAt, kind, name, removedAt, removedBy } = row;
  const parts = [
    removedAt === undefined
      ? standingOf(row)
      : `removed by ${printable(removedBy ?? 'somebody')} at ${instant(removedAt)}: what it asked for or approved is held`,
    ...(expiresAt === undefined ? [] : [`until ${instant(expiresAt)}`]),
    ...(confirmedAt === undefined ? [] : [`confirmed at ${instant(confirmedAt)}`]),
  ];
  return `${printable(name)}  ${kind === 'unknown' ? '' : `${kind}, `}${parts.join(', ')}`;
}
