// Asking whoever knows whether a principal still has access: a command of the owner's, to which the name is given.

import { execFile } from 'node:child_process';

/** What came of asking; `detail` is a clause. */
export type AccessAnswer =
  | { readonly answered: true; readonly hasAccess: boolean }
  | { readonly answered: false; readonly detail: string };

const PATIENCE_MS = 10_000;
const ANSWER_BYTES_MAX = 4_096;

/**
 * Runs `command PRINCIPAL` without a shell. Only an exit code of 0 with `{"access": true}` or `{"access": false}` on
 * standard output is an answer; whatever else happens is none, and nobody's access follows from it.
 */
export function askSource(command: readonly string[], principal: string): Promise<AccessAnswer> {
  const [program = '', ...args] = command;
  return new Promise((resolve) => {
    execFile(
      program,
      [...args, principal],
      { timeout: PATIENCE_MS, maxBuffer: ANSWER_BYTES_MAX, windowsHide: true },
      (error, stdout) =>
        resolve(error === null ? answerOf(stdout) : { answered: false, detail: reasonOf(error) }),
    );
  });
}

function answerOf(stdout: string): AccessAnswer {
  try {
    const { access } = JSON.parse(stdout) as { readonly access?: unknown };
    if (typeof access === 'boolean') return { answered: true, hasAccess: access };
  } catch {
    // What follows says so.
  }
  return { answered: false, detail: 'it did not print {"access": true} or {"access": false}' };
}

function reasonOf(error: Parameters<NonNullable<Parameters<typeof execFile>[3]>>[0]): string {
  if (error?.killed === true) return `it gave no answer in ${PATIENCE_MS / 1000} seconds`;
  return typeof error?.code === 'number'
    ? `it ended with ${error.code}`
    : `it could not be run (${error?.code})`;
}
