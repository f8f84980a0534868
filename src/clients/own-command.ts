// Our own command in a client's configuration: how it is written there, and how it is known again.
//
// A server behind an address is named by variables of the entry's environment: addresses and headers carry secrets,
// and every process of the machine may read a command line.

import { posix, win32 } from 'node:path';

/** What starts a server, as a client's configuration has it. */
export interface Command {
  readonly command: string;
  readonly args: readonly string[];
}

/** How a server is reached where no program is started for it. */
export interface Address {
  readonly url: string;
  readonly headers: { readonly [name: string]: string };
}

/** How an entry names us. */
export interface Starter {
  /** Program and first arguments, up to but not with `mcp`. */
  readonly words: readonly [string, ...string[]];
}

/** The variables of an environment that hold how a server is reached. */
export interface AddressVariables {
  readonly url: string;
  readonly headers: readonly HeaderVariable[];
}

export interface HeaderVariable {
  readonly name: string;
  readonly variable: string;
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
  /** What we reach in turn; absent where it is a command. */
  readonly address: OwnAddress | undefined;
  /** How many words, of the program and its arguments, stand before `inner`. */
  readonly ownWords: number;
}

export interface OwnAddress {
  /** The address as it stands there; absent where a variable holds it. */
  readonly text: string | undefined;
  readonly variable: string | undefined;
  readonly headers: readonly HeaderVariable[];
}

export const URL_VARIABLE = 'UPSTREAM_URL';

/** Names that say what they hold, none of them twice: on Windows case does not count. */
export function addressVariables(headerNames: readonly string[]): AddressVariables {
  const taken = new Set([URL_VARIABLE]);
  const headers = headerNames.map((name) => {
    const plain = `UPSTREAM_${name.toUpperCase().replace(/[^A-Z0-9]+/g, '_')}`;
    let variable = plain;
    for (let count = 2; taken.has(variable); count += 1) variable = `${plain}_${count}`;
    taken.add(variable);
    return { name, variable };
  });
  return { url: URL_VARIABLE, headers };
}

/** The words that stand before a server's own command, or in the place of its address. */
export function ownWords(
  { words }: Starter,
  {
    name,
    data,
    address,
  }: {
    readonly name: string;
    readonly data?: string | undefined;
    readonly address?: AddressVariables | undefined;
  },
): readonly string[] {
  const own = [...words, 'mcp', '--name', name, ...(data === undefined ? [] : ['--data', data])];
  if (address === undefined) return [...own, '--'];
  const headers = address.headers.flatMap((header) => ['--header-env', `${header.name}:${header.variable}`]);
  return [...own, '--url-env', address.url, ...headers];
}

/** `undefined` where a command does not start us. */
export function findOwnCommand({ command, args }: Command): OwnCommand | undefined {
  const words = [command, ...args];
  const end = words.indexOf('--');
  const own = end < 0 ? words : words.slice(0, end);
  const verb = own.findIndex((word, index) => index > 0 && word === 'mcp' && isOurName(own[index - 1] ?? ''));
  if (verb < 0) return undefined;
  const [program, ...rest] = end < 0 ? [] : words.slice(end + 1);
  const option = (name: string): string | undefined => optionsIn(own.slice(verb), name)[0];
  return {
    name: option('--name'),
    data: option('--data'),
    files: own.slice(0, verb).filter((word) => posix.isAbsolute(word) || win32.isAbsolute(word)),
    inner: program === undefined ? undefined : { command: program, args: rest },
    address: program === undefined ? findAddress(own.slice(verb)) : undefined,
    ownWords: end + 1,
  };
}

function findAddress(words: readonly string[]): OwnAddress | undefined {
  const [text] = optionsIn(words, '--url');
  const [variable] = optionsIn(words, '--url-env');
  if (text === undefined && variable === undefined) return undefined;
  return { text, variable, headers: optionsIn(words, '--header-env').flatMap(readHeaderVariable) };
}

/** `Name:VARIABLE`, as `--header-env` has it; nothing where it is something else. */
export function readHeaderVariable(text: string): readonly HeaderVariable[] {
  // A field name is a token (RFC 9110, 5.1 and 5.6.2).
  const [, name, variable] = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+):\s*([A-Za-z_]\w*)$/.exec(text) ?? [];
  return name === undefined || variable === undefined ? [] : [{ name, variable }];
}

/** How a server is reached, from the variables that hold it; the name of one that is not there. */
export function addressFrom(
  own: OwnAddress,
  valueOf: (variable: string) => string | undefined,
): Address | { readonly missing: string } {
  const { variable, headers } = own;
  const url = own.text ?? (variable === undefined ? undefined : valueOf(variable));
  if (url === undefined) return { missing: variable ?? '' };
  const values: { [name: string]: string } = {};
  for (const header of headers) {
    const value = valueOf(header.variable);
    if (value === undefined) return { missing: header.variable };
    values[header.name] = value;
  }
  return { url, headers: values };
}

/** `counterfoil`, `counterfoil.js`, `counterfoil.cmd`, `counterfoil@0.1.0`, with or without a folder. */
function isOurName(word: string): boolean {
  const last = word.split(/[\\/]/).at(-1) ?? '';
  return /^counterfoil(@[\w.-]+)?(\.(js|ts|cmd|exe|ps1))?$/.test(last);
}

/** Every value of an option, as `--option value` or `--option=value`. */
function optionsIn(words: readonly string[], option: string): readonly string[] {
  return words.flatMap((word, index) => {
    if (word.startsWith(`${option}=`)) return [word.slice(option.length + 1)];
    const value = words[index + 1];
    return word === option && value !== undefined ? [value] : [];
  });
}
