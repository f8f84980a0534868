// `counterfoil contract trust`: a named person says that a guard counts again which its destination has passed over.

import type { LostTrust } from '../engine/guard-trust.ts';
import { localAccount } from './account.ts';
import { withLedger } from './data-directory.ts';
import { checkPersonName } from './decide.ts';
import { instant, printable } from './lines.ts';
import { CommandFault, EXIT, print, printJson } from './output.ts';
import { askPassphrase } from './passphrase.ts';
import { toType } from './starter.ts';

export interface TrustOptions {
  readonly data?: string;
  readonly json?: boolean;
  readonly by?: string;
}

/** What was seen at the destination. */
export const LOST_TRUST: { readonly [because in LostTrust]: string } = {
  not_proven: 'an answer lacked what shows that the key was honoured',
  two_records: 'a repeat under the same key left a second record',
};

export async function trustGuard(name: string, options: TrustOptions): Promise<number> {
  const by = options.by ?? localAccount();
  checkPersonName(by);
  return withLedger(options.data, async (ledger) => {
    const lost = await ledger.guards.list();
    const standing = lost.find(({ destination, tool }) => `${destination}/${tool}` === name);
    if (standing === undefined) {
      const others = lost.map(({ destination, tool }) => printable(`${destination}/${tool}`));
      const known = others.length === 0 ? 'No guard is.' : `Those that are: ${others.join(', ')}.`;
      throw new CommandFault(
        EXIT.notFound,
        `Nothing was changed: no guard of ${printable(name)} was passed over. ${known}`,
      );
    }
    const { at, because, destination, operation, tool } = standing;
    await askPassphrase(ledger, options.data, 'Counting on a guard again', [
      `To be counted on again: the guard of ${printable(name)}.`,
      `It was passed over at ${instant(at)}: ${LOST_TRUST[because]} (${operation}).`,
      'From then on a reply that is lost is again followed by a repeat under the same key, by itself.',
    ]);
    await ledger.guards.restore(destination, tool, by, 'passphrase');
    const left = await ledger.guards.list();
    if (options.json === true) printJson({ restored: { destination, tool, by }, guards: left });
    else {
      print(`The guard of ${printable(name)} counts again, by the word of ${printable(by)}.`);
      print(`What it left behind is still to be looked at: ${toType(`show ${operation}`)}`);
    }
    return EXIT.done;
  });
}
