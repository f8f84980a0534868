// The ledger of a data directory, opened for one command.

import { existsSync } from 'node:fs';
import { access } from 'node:fs/promises';
import { join } from 'node:path';
import { type Journal, readJournal } from '../clients/journal.ts';
import { composeLedger, LEDGER_FILE, LEDGER_FILES } from '../compose.ts';
import type { LedgerSettings } from '../engine/context.ts';
import type { Ledger, OwnerRule } from '../engine/ledger.ts';
import { StoreFault } from '../store/port.ts';
import { dataDirectory } from './data-place.ts';
import { drillPoint } from './drill-point.ts';
import { printable } from './lines.ts';
import { CommandFault, EXIT } from './output.ts';

export { dataDirectory };

/**
 * Opens a ledger for a command.
 * @param options.mayCreate an owner may prepare one before anything is written through it
 * @throws {CommandFault} when there is none, or it cannot be read
 */
export async function withLedger<Result>(
  data: string | undefined,
  use: (ledger: Ledger) => Promise<Result>,
  options: { readonly mayCreate?: boolean; readonly settings?: Partial<LedgerSettings> } = {},
): Promise<Result> {
  const directory = dataDirectory(data);
  try {
    if (options.mayCreate !== true && !hasLedger(directory)) await access(join(directory, LEDGER_FILE));
  } catch (cause) {
    throw noLedger(directory, cause as NodeJS.ErrnoException);
  }
  const ledger = await composeLedger({
    data: directory,
    settings: options.settings ?? {},
    reached: drillPoint(process.env['COUNTERFOIL_DRILL_CRASH_AT']),
  }).catch((cause: unknown) => {
    if (cause instanceof StoreFault) throw new CommandFault(EXIT.internal, cause.message);
    throw cause;
  });
  try {
    return await use(ledger);
  } finally {
    await ledger.close();
  }
}

/** Whether a data directory has a ledger, there or in the store that it names. */
export function hasLedger(directory: string): boolean {
  return LEDGER_FILES.some((name) => existsSync(join(directory, name)));
}

/** The classes that were confirmed in a data directory; none where there is no ledger yet. */
export async function rulesIn(data: string): Promise<readonly OwnerRule[]> {
  try {
    return await withLedger(data, (ledger) => ledger.rules());
  } catch (cause) {
    if (cause instanceof CommandFault && cause.exitCode === EXIT.notFound) return [];
    throw cause;
  }
}

/** What `init` has changed so far. @throws {CommandFault} when that cannot be read */
export async function journalIn(data: string): Promise<Journal> {
  try {
    return await readJournal(data);
  } catch (cause) {
    throw new CommandFault(
      EXIT.internal,
      `What was changed in clients' files before cannot be read in ${printable(data)}: ${(cause as Error).message}. Nothing was changed.`,
    );
  }
}

function noLedger(directory: string, { code, message }: NodeJS.ErrnoException): CommandFault {
  const shown = printable(directory);
  if (code === 'ENOENT' || code === 'ENOTDIR') {
    return new CommandFault(
      EXIT.notFound,
      `There is no ledger in ${shown}: no write has been recorded there. Name another directory with --data.`,
    );
  }
  const reason = code === 'EACCES' ? 'this account may not look into it' : message;
  return new CommandFault(EXIT.internal, `The ledger in ${shown} cannot be read: ${reason}.`);
}
