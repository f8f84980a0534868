// The address of a server over HTTP and the headers for it, as `counterfoil mcp` is given them: secrets by the names of
// variables alone, because every process of the machine may read a command line. None of their values is ever shown.

import { type Address, addressFrom, readHeaderVariable } from '../clients/own-command.ts';
import { printable } from './lines.ts';
import { CommandFault, EXIT } from './output.ts';

interface AddressOptions {
  readonly url?: string;
  readonly urlEnv?: string;
  readonly headerEnv?: readonly string[];
}

/** `undefined` where none is given. @throws {CommandFault} */
export function addressOf(
  { url, urlEnv, headerEnv = [] }: AddressOptions,
  environment: { readonly [name: string]: string | undefined },
): Address | undefined {
  if (url !== undefined && urlEnv !== undefined) {
    throw usage('--url and --url-env are both given; only one of them can be meant.');
  }
  if (url === undefined && urlEnv === undefined) {
    if (headerEnv.length === 0) return undefined;
    throw usage('--header-env is for a server over HTTP: give its address with --url or --url-env.');
  }
  const headers = headerEnv.map((text) => {
    const [header] = readHeaderVariable(text);
    if (header !== undefined) return header;
    throw usage(
      `--header-env ${shownOption(text)} does not name a header and a variable, as in --header-env Authorization:TICKETS_AUTH. The value itself is never given here.`,
    );
  });
  const valueOf = (name: string): string | undefined => {
    const value = environment[name];
    return value === '' ? undefined : value;
  };
  const address = addressFrom({ text: url, variable: urlEnv, headers }, valueOf);
  if ('missing' in address) {
    throw usage(`The variable ${printable(address.missing)}, which is to hold it, is not set or empty.`);
  }
  checkUrl(
    address.url,
    url === undefined ? `The variable ${printable(urlEnv ?? '')}` : `--url ${printable(url)}`,
  );
  for (const { name, variable } of headers) checkValue(name, variable, address.headers[name] ?? '');
  return address;
}

function usage(sentence: string): CommandFault {
  return new CommandFault(EXIT.usage, sentence);
}

/** What stands behind the first colon may be the secret itself, given by mistake. */
function shownOption(text: string): string {
  return printable(text.includes(':') ? `${text.slice(0, text.indexOf(':'))}:…` : '…');
}

function checkUrl(url: string, what: string): void {
  const { protocol } = URL.canParse(url) ? new URL(url) : { protocol: '' };
  if (protocol !== 'http:' && protocol !== 'https:') throw usage(`${what} is no http or https address.`);
}

function checkValue(name: string, variable: string, value: string): void {
  const about = `The variable ${printable(variable)}, for the header ${printable(name)},`;
  // Some clients leave a variable that they do not know as it is; sent on, it would be a wrong credential.
  const left = /\$\{([^{}]*)\}/.exec(value)?.[1];
  if (left !== undefined) {
    throw usage(
      `${about} still has \${${printable(left)}} in it, which its client was to fill in: set it where the client is started.`,
    );
  }
  // RFC 9110, 5.5: visible characters, spaces and tabs.
  if (!/^[\t\x20-\x7e\x80-\xff]*$/.test(value)) {
    throw usage(`${about} holds what no header can: line ends, or characters beyond Latin-1.`);
  }
}
