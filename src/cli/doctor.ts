// `counterfoil doctor`: what was looked at, what was found, what to do.

import { checkClients } from './check-clients.ts';
import { checkDestinations } from './check-destinations.ts';
import {
  type Check,
  checkApprovals,
  checkClock,
  checkData,
  checkJournal,
  checkNode,
  checkStore,
  ifLedger,
} from './check-machine.ts';
import { checkOwner } from './check-owner.ts';
import { dataDirectory } from './data-directory.ts';
import { printable } from './lines.ts';
import { EXIT, print, printJson } from './output.ts';

const LOOK_TIMEOUT_MS = 30_000;

export async function doctor(options: { readonly data?: string; readonly json?: boolean }): Promise<number> {
  const data = dataDirectory(options.data);
  const checks: Check[] = [checkNode(process.versions.node), await checkStore(data)];
  const { journal, checks: journalChecks } = await checkJournal(data);
  checks.push(...(await checkData(data, process.platform === 'win32')), ...journalChecks);
  const ledger = await ifLedger(data, async (ledger) => ({
    checks: [
      await checkClock(ledger, Date.now()),
      await checkApprovals(ledger),
      ...(await checkOwner(ledger, data)),
      ...(await checkDestinations(ledger)),
    ],
    ownerRules: await ledger.rules(),
  }));
  const isRead = ledger !== undefined && 'checks' in ledger;
  // A store that cannot be opened has been told of already.
  if (isRead) checks.push(...ledger.checks);
  else if (ledger !== undefined && checks.every(({ level, area }) => area !== 'store' || level !== 'problem'))
    checks.push(ledger.problem);
  const ownerRules = isRead ? ledger.ownerRules : [];
  checks.push(...(await checkClients({ data, journal, ownerRules, timeoutMs: LOOK_TIMEOUT_MS })));
  const isWell = checks.every(({ level }) => level !== 'problem');
  if (options.json === true) printJson({ ok: isWell, checks });
  else printChecks(checks);
  return isWell ? EXIT.done : EXIT.internal;
}

function printChecks(checks: readonly Check[]): void {
  for (const { level, area, found, fix } of checks) {
    print(`${level.padEnd(8)}${area.padEnd(10)} ${printable(found)}`);
    if (fix !== undefined) print(`${' '.repeat(19)}→ ${printable(fix)}`);
  }
  const count = (wanted: Check['level']): number => checks.filter(({ level }) => level === wanted).length;
  print(`${count('ok')} ok, ${count('note')} notes, ${count('problem')} problems`);
}
