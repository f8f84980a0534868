// The controlling terminal of the person who runs a command: asked there, never through standard input, an argument
// or the environment, so that what a program pipes in is no answer of a person.

import { closeSync, openSync, writeSync } from 'node:fs';
import { constants } from 'node:os';
import { ReadStream } from 'node:tty';
import { CommandFault, EXIT } from './output.ts';

/** Long enough for any line that a person types. */
const LINE_MAX = 4_096;

/** Resolves with the line that was typed; nothing of it is shown. */
export interface Terminal {
  print(text: string): void;
  askSecret(prompt: string): Promise<string>;
  close(): void;
}

/** @throws {CommandFault} when this process has no controlling terminal, as one that an agent started has none */
export function openTerminal(purpose: string): Terminal {
  let output: number;
  let input: ReadStream;
  try {
    output = openSync('/dev/tty', 'r+');
    input = new ReadStream(openSync('/dev/tty', 'r+'));
  } catch {
    throw new CommandFault(
      EXIT.notAllowed,
      `${purpose} needs the owner's passphrase, which is asked on the terminal of a person, and this command has none. Run it in a terminal.`,
    );
  }
  const lines = new SecretLines(input);
  return {
    print: (text) => void writeSync(output, `${text}\n`),
    async askSecret(prompt) {
      writeSync(output, prompt);
      try {
        return await lines.next();
      } finally {
        writeSync(output, '\n');
      }
    },
    close() {
      lines.close();
      closeSync(output);
    },
  };
}

const ENTER = /[\r\n]/;
const END_OF_INPUT = '\u0004';
const INTERRUPT = '\u0003';
const ERASE = /[\u007f\b]/;
const ERASE_LINE = '\u0015';

class SecretLines {
  readonly #input: ReadStream;
  #typed = '';

  constructor(input: ReadStream) {
    this.#input = input;
    input.setRawMode(true);
    input.setEncoding('utf8');
    input.pause();
  }

  next(): Promise<string> {
    return new Promise((resolve, reject) => {
      const done = (act: () => void): void => {
        this.#input.off('data', read);
        this.#input.pause();
        act();
      };
      const read = (chunk: string | Buffer): void => {
        for (const character of String(chunk)) {
          if (ENTER.test(character)) {
            const line = this.#typed;
            this.#typed = '';
            done(() => resolve(line));
            return;
          }
          if (character === INTERRUPT || character === END_OF_INPUT) {
            done(() =>
              reject(
                new CommandFault(128 + constants.signals.SIGINT, 'Nothing was done: it was broken off.'),
              ),
            );
            return;
          }
          if (ERASE.test(character)) this.#typed = Array.from(this.#typed).slice(0, -1).join('');
          else if (character === ERASE_LINE) this.#typed = '';
          else if (this.#typed.length < LINE_MAX) this.#typed += character;
        }
      };
      this.#input.on('data', read);
      this.#input.once('end', () =>
        done(() => reject(new CommandFault(EXIT.notAllowed, 'The terminal was closed.'))),
      );
      this.#input.resume();
    });
  }

  close(): void {
    this.#input.setRawMode(false);
    this.#input.destroy();
  }
}
