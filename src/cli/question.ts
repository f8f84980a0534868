// A question to the person at the terminal. Whoever is not at one must have answered on the command line.

import { createInterface } from 'node:readline';
import { CommandFault, EXIT } from './output.ts';

/** Whether somebody is there to answer. */
export function canAsk(): boolean {
  return process.stdin.isTTY && process.stderr.isTTY;
}

/**
 * @throws {CommandFault} where there is no terminal: nothing is taken for a yes there
 * @returns true only for `y` or `yes`; an end of input is a no
 */
export async function agreed(
  question: string,
  { flag, notDone }: { readonly flag: string; readonly notDone: string },
): Promise<boolean> {
  const { stdin: input, stderr: output } = process;
  if (!canAsk()) {
    throw new CommandFault(
      EXIT.usage,
      `${notDone} There is no terminal to ask at: look at what is shown, and say ${flag}.`,
    );
  }
  const terminal = createInterface({ input, output });
  try {
    const answer = await new Promise<string>((resolve) => {
      terminal.once('close', () => resolve(''));
      terminal.question(`${question} [y/N] `, resolve);
    });
    return /^y(es)?$/i.test(answer.trim());
  } finally {
    terminal.close();
  }
}
