// How every command speaks: data on stdout, talk on stderr, one object with `--json`, and an exit code that a
// script can act on without repeating what is unknown.

import type { Operation } from '../core/operation.ts';

/** Exit codes. 10 and above say where an operation stands; a script must not read them as "try again". */
export const EXIT = {
  done: 0,
  internal: 1,
  usage: 2,
  notFound: 3,
  notAllowed: 4,
  conflict: 5,
  waitingForApproval: 10,
  acceptedNotChecked: 11,
  outcomeUnknown: 12,
  refused: 13,
  stopped: 14,
} as const;

/** A command that cannot be carried out: one clear sentence, and the code to end with. */
export class CommandFault extends Error {
  override readonly name = 'CommandFault';
  readonly exitCode: number;
  constructor(exitCode: number, message: string) {
    super(message);
    this.exitCode = exitCode;
  }
}

export function say(message: string): void {
  process.stderr.write(`${message}\n`);
}

export function print(text: string): void {
  process.stdout.write(`${text}\n`);
}

export function printJson(value: unknown): void {
  process.stdout.write(`${JSON.stringify(value)}\n`);
}

/** Resolves when what was printed is out: a pipe takes 64 KiB at once, and the rest goes with the process. */
export function printed(): Promise<void> {
  return new Promise((resolve) => {
    process.stdout.write('', () => resolve());
  });
}

/** The code that tells where an operation stands. */
export function exitCodeOf(operation: Operation): number {
  switch (operation.stage) {
    case 'proposed':
    case 'awaiting_approval':
    case 'held':
    case 'ready':
      if (operation.why?.code === 'stopped') return EXIT.stopped;
      return operation.effect === 'unknown' ? EXIT.outcomeUnknown : EXIT.waitingForApproval;
    case 'sending':
    case 'checking':
      return operation.effect === 'accepted' ? EXIT.acceptedNotChecked : EXIT.outcomeUnknown;
    case 'parked':
      return operation.effect === 'not_sent' || operation.effect === 'rejected'
        ? EXIT.refused
        : EXIT.outcomeUnknown;
    case 'closed':
      return closedExitCode(operation);
  }
}

function closedExitCode(operation: Operation): number {
  switch (operation.effect) {
    case 'verified':
      return EXIT.done;
    case 'accepted':
      return EXIT.acceptedNotChecked;
    case 'not_sent':
    case 'rejected':
    case 'absent':
      return operation.why?.code === 'stopped' ? EXIT.stopped : EXIT.refused;
    case 'unknown':
    case 'diverged':
    case 'error_reported':
      return EXIT.outcomeUnknown;
  }
}
