// The files that `init` changes: what is to be written in each, and writing it so that all can be taken back.

import { type Change, type EntryToGuard, type Guarding, guardEntries } from '../clients/change.ts';
import {
  type ClientFile,
  encoded,
  findWriteObstacle,
  readClientFile,
  replaceClientFile,
} from '../clients/client-file.ts';
import { keepBackup, recordGuarded } from '../clients/journal.ts';
import { addressVariables, ownWords } from '../clients/own-command.ts';
import { printable } from './lines.ts';
import { CommandFault, EXIT } from './output.ts';
import { dataForEntry, type StarterHere, toType } from './starter.ts';
import type { SurveyedServer } from './survey.ts';

export interface FilePlan {
  readonly file: ClientFile;
  readonly servers: readonly SurveyedServer[];
  readonly wanted: readonly EntryToGuard[];
  /** Absent where the file cannot be written. */
  readonly change: Change | undefined;
  readonly problem: string | undefined;
}

export async function planFiles(
  servers: readonly SurveyedServer[],
  starter: StarterHere,
  data: string,
): Promise<readonly FilePlan[]> {
  const plans: FilePlan[] = [];
  for (const file of new Set(servers.map((server) => server.file))) {
    const ofFile = servers.filter((server) => server.file === file);
    const wanted = ofFile.map(({ entry, standing }): EntryToGuard => {
      const name = standing.kind === 'open' ? standing.name : entry.name;
      const { server, path, text } = entry;
      const address = server.kind === 'http' ? addressVariables(Object.keys(server.headers)) : undefined;
      return { path, text, address, words: ownWords(starter, { name, data: dataForEntry(data), address }) };
    });
    const problem = await findWriteObstacle(file.target);
    const change = problem === undefined ? guardEntries(file.text, wanted) : undefined;
    if (change !== undefined && 'differs' in change)
      throw new Error('Assertion: the text has just been read.');
    plans.push({ file, servers: ofFile, wanted, change, problem });
  }
  return plans;
}

export type Written = { readonly plan: FilePlan } & (
  | { readonly isWritten: true; readonly backup: string }
  | { readonly isWritten: false; readonly exitCode: number; readonly problem: string }
);

export async function writeFiles(plans: readonly FilePlan[], data: string): Promise<readonly Written[]> {
  const written: Written[] = [];
  for (const plan of plans) {
    if (plan.change !== undefined) written.push(await writeOne(plan, data));
  }
  return written;
}

/** Clients write their files too: what was shown is then put into the newer text, where its entries are as shown. */
const NEWER_MAX = 5;

async function writeOne(plan: FilePlan, data: string): Promise<Written> {
  const refused = (exitCode: number, problem: string): Written => ({
    plan,
    isWritten: false,
    exitCode,
    problem,
  });
  for (let count = 0; count < NEWER_MAX; count += 1) {
    const read = await readClientFile(plan.file.path);
    if (read.found !== 'file') {
      return refused(EXIT.conflict, read.found === 'nothing' ? 'it is gone' : read.problem);
    }
    const { file } = read;
    const change = guardEntries(file.text, plan.wanted);
    if ('differs' in change) {
      return refused(
        EXIT.conflict,
        `${change.differs.at(-1)} was changed since it was shown. Look again: ${toType('init')}`,
      );
    }
    const backup = await keepWhatWas(plan, file, change, data);
    const result = await replaceClientFile({ file, bytes: encoded(change.text, file) });
    if (result.replaced) return { plan, isWritten: true, backup };
    if (result.reason === 'obstacle') return refused(EXIT.notAllowed, result.problem);
  }
  return refused(EXIT.conflict, 'its client keeps writing it. Close the client, and call again');
}

/**
 * On the disk before the client's file is touched, so that everything that is written can be taken back.
 * @returns where the file is kept as it was
 */
async function keepWhatWas(
  plan: FilePlan,
  file: ClientFile,
  change: Guarding,
  data: string,
): Promise<string> {
  const at = Date.now();
  const byPath = new Map(plan.servers.map((server) => [server.entry.path, server]));
  try {
    const backup = await keepBackup(data, file.target, file.bytes, at);
    await recordGuarded(
      data,
      change.entries.flatMap((entry) => {
        const server = byPath.get(entry.path);
        if (server?.standing.kind !== 'open') return [];
        const { client, title } = server.place;
        const { name, launch } = server.standing;
        return [{ ...entry, at, client, title, file: file.path, name, launch, backup }];
      }),
    );
    return backup;
  } catch (cause) {
    throw new CommandFault(
      EXIT.notAllowed,
      `${printable(file.path)} was not written, because what it was cannot be kept in ${printable(data)}: ${(cause as Error).message}. Name another directory with --data.`,
    );
  }
}
