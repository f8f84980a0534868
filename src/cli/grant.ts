// `counterfoil grant`: a kind of write that need not be asked about in one run, for a time. A rule by name, and no approval.

import { GRANT_MAX_MS, type Grant, type GrantResult } from '../engine/grants.ts';
import type { Ledger } from '../engine/ledger.ts';
import { localAccount } from './account.ts';
import { withLedger } from './data-directory.ts';
import { checkDigest, checkPersonName } from './decide.ts';
import { instant, printable } from './lines.ts';
import { CommandFault, EXIT, print, printJson } from './output.ts';
import { askPassphrase } from './passphrase.ts';
import { timeOf } from './queue-claim.ts';
import { toType } from './starter.ts';

export interface GrantOptions {
  readonly data?: string;
  readonly json?: boolean;
  readonly by?: string;
}

export async function giveGrant(
  id: string,
  options: GrantOptions & { readonly digest: string; readonly for: string },
): Promise<number> {
  checkDigest(options.digest);
  const by = options.by ?? localAccount();
  checkPersonName(by);
  const forMs = timeOf(options.for);
  return withLedger(options.data, async (ledger) => {
    const ask = {
      operation: id,
      digest: options.digest,
      until: Date.now() + forMs,
      by,
      strength: 'passphrase',
    } as const;
    const refused = await ledger.grants.refusalOf(ask);
    if (refused?.granted === false) throw refusal(id, refused);
    const reading = await ledger.readings.operation(id);
    if (reading === undefined) throw refusal(id, { granted: false, refusal: 'not_found' });
    const { destination, run, tool } = reading.operation;
    await askPassphrase(ledger, options.data, 'Loosening a rule', [
      `To be granted: ${ruleWords({ destination, run: run.id, tool, until: ask.until })}`,
      'Whatever its arguments are. It can be ended at any time, and never covers what cannot be taken back.',
    ]);
    const result = await ledger.grants.give(ask);
    if (!result.granted) throw refusal(id, result);
    if (options.json === true) printJson(result.grant);
    else
      for (const line of [
        `${result.grant.id}  ${ruleWords(result.grant)}`,
        `Given by ${printable(by)} (strength: passphrase). ${id} itself still waits: it is decided by itself.`,
        `To end it: ${toType(`grant revoke ${result.grant.id}`)}`,
      ])
        print(line);
    return EXIT.done;
  });
}

/** The rule in words. */
function ruleWords({
  destination,
  run,
  tool,
  until,
}: Pick<Grant, 'destination' | 'run' | 'tool' | 'until'>): string {
  return `${printable(tool)} on ${printable(destination)} is sent without asking in the run ${printable(JSON.stringify(run))}, until ${instant(until)}`;
}

function refusal(id: string, { refusal: why }: Extract<GrantResult, { granted: false }>): CommandFault {
  const shown = printable(id);
  switch (why) {
    case 'not_found':
      return new CommandFault(EXIT.notFound, `Nothing was granted: no operation ${shown} is recorded here.`);
    case 'digest_differs':
      return new CommandFault(
        EXIT.conflict,
        `Nothing was granted: the digest given is not that of ${shown}. Look at it again (${toType(`show ${shown}`)}).`,
      );
    case 'never_granted':
      return new CommandFault(
        EXIT.notAllowed,
        `Nothing was granted: ${shown} is not asked about because every write to its server waits, but for itself: what cannot be taken back, and what nobody has classified, is decided each time.`,
      );
    case 'strength_too_low':
      return new CommandFault(
        EXIT.notAllowed,
        'Nothing was granted: that needs the passphrase of the owner.',
      );
    case 'too_long':
      return new CommandFault(
        EXIT.usage,
        `Nothing was granted: --for wants at most ${GRANT_MAX_MS / 3_600_000}h. What is to hold for longer is for the configuration.`,
      );
  }
}

export async function listGrants(options: GrantOptions): Promise<number> {
  return withLedger(options.data, async (ledger) => {
    const grants = await ledger.grants.list();
    if (options.json === true)
      printJson({ grants: grants.map((grant) => ({ ...grant, state: stateOf(ledger, grant) })) });
    else if (grants.length === 0) print('Nothing has been granted.');
    else
      for (const grant of grants)
        print(
          `${grant.id}  ${stateOf(ledger, grant)}: ${ruleWords(grant)}; given by ${printable(grant.by)} at ${instant(grant.at)} (strength: ${grant.strength})`,
        );
    return EXIT.done;
  });
}

function stateOf(ledger: Ledger, grant: Grant): string {
  if (grant.revoked !== undefined)
    return `revoked by ${printable(grant.revoked.by)} at ${instant(grant.revoked.at)}`;
  return ledger.grants.isInForce(grant) ? 'in force' : 'over';
}

export async function revokeGrant(id: string, options: GrantOptions): Promise<number> {
  const by = options.by ?? localAccount();
  checkPersonName(by);
  return withLedger(options.data, async (ledger) => {
    const grant = /^grant_[0-9a-f]{16}$/.test(id) ? await ledger.grants.revoke(id, by) : undefined;
    if (grant === undefined) {
      throw new CommandFault(
        EXIT.notFound,
        `There is no grant ${printable(id)} to end. Those that there are: ${toType('grant list')}`,
      );
    }
    if (options.json === true) printJson(grant);
    else
      print(
        `${grant.id}  ${stateOf(ledger, grant)}. What it has let through is not taken back; what has not left is held.`,
      );
    return EXIT.done;
  });
}
