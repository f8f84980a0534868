// What `doctor` looks at on this machine: Node, the store and how durable it is, the data directory, the clock.

import { stat, statfs } from 'node:fs/promises';
import { join } from 'node:path';
import { PASSPHRASE_FILE } from '../access/passphrase-file.ts';
import { JOURNAL_FILE, type Journal, readJournal } from '../clients/journal.ts';
import { LEDGER_FILES, readDurability } from '../compose.ts';
import type { Ledger } from '../engine/ledger.ts';
import { StoreFault } from '../store/port.ts';
import { withLedger } from './data-directory.ts';
import { instant } from './lines.ts';
import { CommandFault, EXIT } from './output.ts';
import { toType } from './starter.ts';

/** One thing that was looked at. A `note` is worth knowing; a `problem` breaks a promise until it is mended. */
export interface Check {
  readonly area:
    | 'node'
    | 'store'
    | 'data'
    | 'clock'
    | 'clients'
    | 'approvals'
    | 'passphrase'
    | 'policy'
    | 'tools'
    | 'circuit'
    | 'guard';
  readonly level: 'ok' | 'note' | 'problem';
  readonly found: string;
  /** What to do; absent where there is nothing to do. */
  readonly fix?: string;
}

const NODE_MIN = [20, 19] as const;

export function checkNode(version: string): Check {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  const isEnough = major > NODE_MIN[0] || (major === NODE_MIN[0] && minor >= NODE_MIN[1]);
  return isEnough
    ? { area: 'node', level: 'ok', found: `Node ${version}` }
    : {
        area: 'node',
        level: 'problem',
        found: `Node ${version} is too old: ${NODE_MIN.join('.')} is the oldest that is supported`,
        fix: `Install a newer Node, and write the entries anew: ${toType('leave')}, then ${toType('init')}.`,
      };
}

/** What is read back of a server. */
const WAIVABLE = ['fsync', 'full_page_writes', 'synchronous_commit'] as const;
const WRITES_REFUSED = 'Until this is mended reads pass and writes are refused.';

export async function checkStore(data: string): Promise<Check> {
  try {
    const { engine: name, version, settings, isLedger } = await readDurability(data);
    const isShared = name === 'postgres';
    const engine = isShared ? `PostgreSQL ${version}` : `SQLite ${version} (${settings['driver']})`;
    const readBack = isShared
      ? WAIVABLE.map((setting) => `${setting} ${settings[setting]}`).join(', ')
      : `synchronous ${settings['synchronous']}, journal ${settings['journal_mode']}`;
    return isLedger
      ? { area: 'store', level: 'ok', found: `${engine}; read back: ${readBack}` }
      : {
          area: 'store',
          level: 'note',
          found: `${engine}; there is no ledger in ${data} yet, so its durability could not be read back`,
          fix: 'The first gateway that starts makes it. Call doctor again then.',
        };
  } catch (cause) {
    if (!(cause instanceof StoreFault)) throw cause;
    return {
      area: 'store',
      level: 'problem',
      found: cause.message,
      fix: WRITES_REFUSED,
    };
  }
}

const MIB = 1024 * 1024;
const FREE_MIN_BYTES = 200 * MIB;
/** Linux's numbers for file systems over a network (statfs(2)), on which locks and syncs cannot be relied on. */
const NETWORK_TYPES = new Map([
  [0x6969, 'NFS'],
  [0x517b, 'SMB'],
  [0xff534d42, 'CIFS'],
  [0xfe534d42, 'SMB2'],
  [0x01021997, '9P'],
]);

export async function checkData(data: string, isWindows: boolean): Promise<readonly Check[]> {
  const about = await statOf(data);
  if (about === undefined) return [];
  const checks: Check[] = [];
  const own = [...LEDGER_FILES, JOURNAL_FILE, PASSPHRASE_FILE].map((name) => join(data, name));
  for (const file of isWindows ? [] : [data, ...own]) {
    const mode = (await statOf(file))?.mode;
    if (mode === undefined || (mode & 0o077) === 0) continue;
    const wanted = file === data ? '700' : '600';
    checks.push({
      area: 'data',
      level: 'problem',
      found: `${file} can be read or written by other accounts (mode ${(mode & 0o777).toString(8)})`,
      fix: `chmod ${wanted} ${file}`,
    });
  }
  if (checks.length === 0)
    checks.push({ area: 'data', level: 'ok', found: `${data} is this account's alone` });
  return [...checks, ...(await checkDisk(data))];
}

async function checkDisk(data: string): Promise<readonly Check[]> {
  const { bavail, bsize, type } = await statfs(data);
  const checks: Check[] = [];
  const free = bavail * bsize;
  if (free < FREE_MIN_BYTES) {
    checks.push({
      area: 'data',
      level: 'problem',
      found: `${data} has ${Math.floor(free / MIB)} MiB left; when it is full, writes are refused`,
      fix: 'Make room, or name a directory on another disk with --data.',
    });
  }
  const network = NETWORK_TYPES.get(type);
  if (network !== undefined) {
    checks.push({
      area: 'data',
      level: 'problem',
      found: `${data} lies on a network file system (${network}), where a commit may not survive`,
      fix: 'Name a directory on a local disk with --data, for init as well.',
    });
  }
  return checks;
}

async function statOf(file: string) {
  return stat(file).catch(() => undefined);
}

/** A reading of the ledger where there is one; why there is none, where it cannot be opened. */
export async function ifLedger<Result>(
  data: string,
  use: (ledger: Ledger) => Promise<Result>,
): Promise<Result | { readonly problem: Check } | undefined> {
  try {
    return await withLedger(data, use);
  } catch (cause) {
    if (!(cause instanceof CommandFault)) throw cause;
    if (cause.exitCode === EXIT.notFound) return undefined;
    return { problem: { area: 'store', level: 'problem', found: cause.message, fix: WRITES_REFUSED } };
  }
}

/** Two processes of one machine may read the clock a moment apart. */
const CLOCK_MARGIN_MS = 5_000;

export async function checkClock(ledger: Ledger, now: number): Promise<Check> {
  const [newest] = await ledger.readings.recent(1);
  const ahead = (newest?.since ?? 0) - now;
  return ahead <= CLOCK_MARGIN_MS
    ? {
        area: 'clock',
        level: 'ok',
        found: `the clock says ${instant(now)}, and nothing is recorded after that`,
      }
    : {
        area: 'clock',
        level: 'problem',
        found: `the clock says ${instant(now)}, and ${newest?.id} is recorded at ${instant(newest?.since ?? 0)}`,
        fix: 'Set the clock. Until then windows and approvals are measured from the later of the two.',
      };
}

const WAITING = ['awaiting_approval', 'held', 'parked'] as const;
const COUNTED_MAX = 1_000;

export async function checkApprovals(ledger: Ledger): Promise<Check> {
  const waiting = await ledger.readings.open({ stages: WAITING, limit: COUNTED_MAX });
  return waiting.length === 0
    ? { area: 'approvals', level: 'ok', found: 'nothing waits for a person' }
    : {
        area: 'approvals',
        level: 'note',
        found: `${waiting.length === COUNTED_MAX ? 'at least ' : ''}${waiting.length} ${waiting.length === 1 ? 'operation waits' : 'operations wait'} for a person`,
        fix: toType('queue'),
      };
}

/** The journal of what `init` has changed, and what is wrong with it. */
export async function checkJournal(
  data: string,
): Promise<{ readonly journal: Journal; readonly checks: readonly Check[] }> {
  const file = join(data, JOURNAL_FILE);
  try {
    const journal = await readJournal(data);
    const { unreadable } = journal;
    if (unreadable === 0) return { journal, checks: [] };
    const lines = unreadable === 1 ? '1 line' : `${unreadable} lines`;
    const found = `${lines} of ${file} cannot be read: what they say of clients' files is not known to leave`;
    const fix = `If an entry still starts us after ${toType('leave')}, take it from client-backups in the same folder.`;
    return { journal, checks: [{ area: 'data', level: 'note', found, fix }] };
  } catch (cause) {
    const found = `${file} cannot be read: ${(cause as Error).message}`;
    const fix = 'Until it can be, leave cannot take back what init has changed.';
    return {
      journal: { guarded: [], names: new Map(), unreadable: 0 },
      checks: [{ area: 'data', level: 'problem', found, fix }],
    };
  }
}
