// Our own command in a client's configuration: how it is written there, and how it is known again.

import { posix, win32 } from 'node:path';

/** What starts a server, as a client's configuration has it. */
export interface Command {
  readonly command: string;
  readonly args: readonly string[];
}

/** How an entry names us. */
export interface Starter {
  /** Program and first arguments, up to but not with `mcp`. */
  readonly words: readonly [string, ...string[]];
}

/** An entry that starts us already. */
export interface OwnCommand {
  /** The name of the destination, where the entry gives one. */
  readonly name: string | undefined;
  readonly data: string | undefined;
  /** The program that is started to start us, and the script that it is given, as far as they are paths. */
  readonly files: readonly string[];
  /** What we start in turn; absent where it is not a command. */
  readonly inner: Command | undefined;
  /** How many words, of the program and its arguments, stand before `inner`. */
  readonly ownWords: number;
}

/** The words that stand before a server's own command. */
export function ownWords(
  { words }: Starter,
  { name, data }: { readonly name: string; readonly data?: string | undefined },
): readonly string[] {
  return [...words, 'mcp', '--name', name, ...(data === undefined ? [] : ['--data', data]), '--'];
}

/** `undefined` where a command does not start us. */
export function findOwnCommand({ command, args }: Command): OwnCommand | undefined {
  const words = [command, ...args];
  const end = words.indexOf('--');
  const own = end < 0 ? words : words.slice(0, end);
  const verb = own.findIndex((word, index) => index > 0 && word === 'mcp' && isOurName(own[index - 1] ?? ''));
  if (verb < 0) return undefined;
  const [program, ...rest] = end < 0 ? [] : words.slice(end + 1);
  return {
    name: optionIn(own, '--name'),
    data: optionIn(own, '--data'),
    files: own.slice(0, verb).filter((word) => posix.isAbsolute(word) || win32.isAbsolute(word)),
    inner: program === undefined ? undefined : { command: program, args: rest },
    ownWords: end + 1,
  };
}

/** `counterfoil`, `counterfoil.js`, `counterfoil.cmd`, `counterfoil@0.1.0`, with or without a folder. */
function isOurName(word: string): boolean {
  const last = word.split(/[\\/]/).at(-1) ?? '';
  return /^counterfoil(@[\w.-]+)?(\.(js|ts|cmd|exe|ps1))?$/.test(last);
}

function optionIn(words: readonly string[], option: string): string | undefined {
  const at = words.indexOf(option);
  if (at >= 0) return words[at + 1];
  return words.find((word) => word.startsWith(`${option}=`))?.slice(option.length + 1);
}
