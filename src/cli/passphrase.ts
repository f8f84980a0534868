// `counterfoil passphrase set` and `change`, and the one place where a command asks for the owner's passphrase.

import { setTimeout as pause } from 'node:timers/promises';
import { isPassphrase, PASSPHRASE_LENGTH_MIN, passphraseProblem, verifierFor } from '../access/passphrase.ts';
import {
  PASSPHRASE_FILE,
  readVerifierFile,
  verifierText,
  writeVerifierFile,
} from '../access/passphrase-file.ts';
import { sha256Hex } from '../core/digest.ts';
import { isOwnersFile, type OwnerState } from '../core/owner.ts';
import type { Ledger } from '../engine/ledger.ts';
import { localAccount } from './account.ts';
import { dataDirectory, withLedger } from './data-directory.ts';
import { instant, printable } from './lines.ts';
import { CommandFault, EXIT, print, printJson } from './output.ts';
import { toType } from './starter.ts';
import { openTerminal, type Terminal } from './terminal.ts';

export interface PassphraseOptions {
  readonly data?: string;
  readonly json?: boolean;
}

const PROMPT = 'Passphrase of the owner: ';
const PROMPTS_MAX = 3;

export async function setPassphrase(options: PassphraseOptions): Promise<number> {
  const directory = dataDirectory(options.data);
  return withLedger(
    options.data,
    async (ledger) => {
      const known = await ledger.owner.state();
      const file = await readVerifierFile(directory);
      if (known !== undefined) {
        throw new CommandFault(
          EXIT.conflict,
          `Nothing was changed: a passphrase was set by ${printable(known.setBy)} at ${instant(known.setAt)}. To change it: ${toType('passphrase change')}`,
        );
      }
      if (file.found || file.problem !== undefined) {
        throw new CommandFault(
          EXIT.conflict,
          `Nothing was set: ${PASSPHRASE_FILE} lies in ${printable(directory)} already, and this ledger knows of no passphrase. It was left by a set-up that was broken off, or put there by somebody else. Remove it, and set the passphrase again.`,
        );
      }
      const terminal = openTerminal('Setting it');
      try {
        const text = await writeVerifierFile(directory, await verifierFor(await askNew(terminal)), false);
        const isSet =
          text !== undefined && (await ledger.owner.set(sha256Hex(text), localAccount(), undefined));
        if (!isSet)
          throw new CommandFault(EXIT.conflict, 'Nothing was changed: another passphrase was set meanwhile.');
      } finally {
        terminal.close();
      }
      return told(options, 'set', directory);
    },
    { mayCreate: true },
  );
}

export async function changePassphrase(options: PassphraseOptions): Promise<number> {
  const directory = dataDirectory(options.data);
  return withLedger(options.data, async (ledger) => {
    const owner = await requireOwner(ledger, directory);
    const terminal = openTerminal('Changing it');
    try {
      await askOn(terminal, ledger, owner);
      const verifier = await verifierFor(await askNew(terminal));
      const next = sha256Hex(verifierText(verifier));
      // Both files are the owner's until the change is complete: broken off, neither shuts the owner out.
      const isAnnounced = await ledger.owner.announce(next, owner.file);
      if (isAnnounced) await writeVerifierFile(directory, verifier, true);
      if (!isAnnounced || !(await ledger.owner.set(next, localAccount(), owner.file))) {
        throw new CommandFault(
          EXIT.conflict,
          `Another change of the passphrase came at the same time. Look which of the two holds: ${toType('passphrase change')}`,
        );
      }
    } finally {
      terminal.close();
    }
    return told(options, 'changed', directory);
  });
}

function told(options: PassphraseOptions, what: 'set' | 'changed', directory: string): number {
  if (options.json === true) printJson({ passphrase: what, by: localAccount() });
  else {
    print(
      `The passphrase is ${what}. What is kept of it lies in ${printable(directory)}/${PASSPHRASE_FILE}.`,
    );
    print(
      'It is asked on the terminal for every approval from now on, and for every change that loosens a rule. Nobody can tell it from what is kept: write it down where the agent cannot read it.',
    );
  }
  return EXIT.done;
}

async function askNew(terminal: Terminal): Promise<string> {
  for (let left = PROMPTS_MAX; left > 0; left -= 1) {
    const typed = await terminal.askSecret(`New passphrase (at least ${PASSPHRASE_LENGTH_MIN} characters): `);
    const problem = passphraseProblem(typed);
    if (problem !== undefined) {
      terminal.print(`That cannot be a passphrase: ${problem}.`);
      continue;
    }
    if ((await terminal.askSecret('The same again: ')) === typed) return typed;
    terminal.print('The two are not the same.');
  }
  throw new CommandFault(EXIT.usage, 'Nothing was changed: no passphrase was given twice alike.');
}

interface KnownOwner {
  readonly state: OwnerState;
  /** SHA-256 of the file that lies there now. */
  readonly file: string;
  readonly verifier: Parameters<typeof isPassphrase>[1];
}

/** Whether the owner of this ledger has set a passphrase. @throws {CommandFault} when its file is not the owner's */
export async function knownOwner(ledger: Ledger, directory: string): Promise<KnownOwner | undefined> {
  const state = await ledger.owner.state();
  const file = await readVerifierFile(directory);
  if (state === undefined && !file.found && file.problem === undefined) return undefined;
  const digest = file.found ? sha256Hex(file.text) : undefined;
  if (state === undefined || digest === undefined || !file.found || !isOwnersFile(state, digest)) {
    throw strangeFile(directory);
  }
  return { state, file: digest, verifier: file.verifier };
}

/** For a hint alone: a file that is not the owner's is told of where the passphrase is asked, and by `doctor`. */
export async function isPassphraseSet(ledger: Ledger, directory: string): Promise<boolean> {
  try {
    return (await knownOwner(ledger, directory)) !== undefined;
  } catch (cause) {
    if (cause instanceof CommandFault) return true;
    throw cause;
  }
}

function strangeFile(directory: string): CommandFault {
  return new CommandFault(
    EXIT.notAllowed,
    `The passphrase cannot be asked: ${PASSPHRASE_FILE} in ${printable(directory)} is not the file that was written when it was set. Put it back from a copy of the directory; with another one anybody could approve.`,
  );
}

async function requireOwner(ledger: Ledger, directory: string): Promise<KnownOwner> {
  const owner = await knownOwner(ledger, directory);
  if (owner !== undefined) return owner;
  throw new CommandFault(
    EXIT.notAllowed,
    `No passphrase is set yet. Set one in a terminal: ${toType('passphrase set')}`,
  );
}

/**
 * Asks for the passphrase on the terminal, having shown there what it is asked for.
 * @param shown lines that say what is decided
 * @throws {CommandFault} when there is no passphrase, no terminal, or it is not given
 */
export async function askPassphrase(
  ledger: Ledger,
  data: string | undefined,
  purpose: string,
  shown: readonly string[],
): Promise<void> {
  const owner = await requireOwner(ledger, dataDirectory(data));
  const terminal = openTerminal(purpose);
  try {
    for (const line of shown) terminal.print(line);
    await askOn(terminal, ledger, owner);
  } finally {
    terminal.close();
  }
}

async function askOn(terminal: Terminal, ledger: Ledger, { verifier }: KnownOwner): Promise<void> {
  for (let left = PROMPTS_MAX; left > 0; left -= 1) {
    const typed = await terminal.askSecret(PROMPT);
    await waitedFor(terminal, ledger);
    if (await isPassphrase(typed, verifier)) {
      await ledger.owner.right();
      return;
    }
    terminal.print('That is not the passphrase.');
  }
  throw new CommandFault(EXIT.notAllowed, 'Nothing was decided: the passphrase was not given.');
}

/** Wrong tries are slowed, whichever process made them. */
async function waitedFor(terminal: Terminal, ledger: Ledger): Promise<void> {
  for (;;) {
    const permit = await ledger.owner.beginTry();
    if (permit.may) return;
    terminal.print(`There were wrong tries. The next one counts in ${Math.ceil(permit.waitMs / 1_000)} s …`);
    await pause(permit.waitMs);
  }
}
