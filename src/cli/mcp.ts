// `counterfoil mcp`: the gateway in front of one MCP server over stdio. Every line on stdout is JSON-RPC.
//
// It is a pipe to the process that serves all clients of this account, or that process's work done here, alone.
// Everything heavy is loaded by who needs it: each client that a person has open pays for a pipe.

import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { sha256Hex } from '../core/digest.ts';
import { type PipeEnd, runPipe } from '../resident/pipe.ts';
import { residentPlace } from '../resident/place.ts';
import { dataDirectory } from './data-place.ts';
import { printable } from './lines.ts';
import type { McpOptions } from './mcp-alone.ts';
import { CommandFault, EXIT, say } from './output.ts';
import { addressOf } from './server-address.ts';
import { checkName, type NamedServer, nameOf, nameOfAddress } from './server-name.ts';
import { toType } from './starter.ts';
import { packageVersion } from './version.ts';

export async function mcp(command: readonly string[], options: McpOptions): Promise<number> {
  const server = namedServer(command, options);
  if (!options.resident) return alone(server, options);
  const { name, run } = options;
  const config = options.config === undefined ? undefined : resolve(options.config);
  const data = dataDirectory(options.data);
  const end = await runPipe({
    place: residentPlace(data),
    version: packageVersion(),
    server: {
      ...server,
      cwd: process.cwd(),
      env: environment(),
      ...(config === undefined ? {} : { config, ...readDigest(config) }),
      ...(run === undefined ? {} : { run }),
    },
    start: {
      command: [
        process.execPath,
        ownProgram(),
        'resident',
        '--data',
        data,
        ...(config === undefined ? [] : ['--config', config]),
        ...(name === undefined ? [] : ['--name', name]),
        ...(run === undefined ? [] : ['--run', run]),
      ],
      env: residentEnvironment(),
    },
    input: process.stdin,
    output: process.stdout,
    talk: process.stderr,
  });
  return ended(end, server, options);
}

async function ended(end: PipeEnd, server: NamedServer, options: McpOptions): Promise<number> {
  switch (end.ended) {
    case 'client':
    case 'client_gone':
      return EXIT.done;
    case 'resident':
      say(
        'counterfoil: the process that serves the clients of this account has ended. What was under way is recorded; start this server again in your client.',
      );
      return EXIT.internal;
    case 'refused':
      throw new CommandFault(end.exitCode, end.sentence);
    case 'alone':
      if (end.reason !== undefined) {
        say(`counterfoil: this client is served by a process of its own: ${printable(end.reason)}.`);
      }
      return alone(server, options);
  }
}

async function alone(server: NamedServer, options: McpOptions): Promise<number> {
  return (await import('./mcp-alone.ts')).mcpAlone(server, options);
}

function namedServer(command: readonly string[], options: McpOptions): NamedServer {
  const { name } = options;
  if (name !== undefined) checkName(name);
  const named = { isNamed: name !== undefined };
  const address = addressOf(options, process.env);
  if (command.length > 0 && address !== undefined) {
    throw new CommandFault(
      EXIT.usage,
      'A command and an address are both given; only one of them can be meant.',
    );
  }
  if (address !== undefined) return { ...named, name: name ?? nameOfAddress(address.url), ...address };
  if (command.length > 0) return { ...named, name: name ?? nameOf(command), command };
  throw new CommandFault(
    EXIT.usage,
    `missing required argument 'command': name the server to stand in front of, ${toType('mcp -- COMMAND ARGS…')} or ${toType('mcp --url ADDRESS')}`,
  );
}

/** Of the text as it is read here: who reads another one under the same name is not the one to serve this client. */
function readDigest(file: string): { readonly configDigest?: string } {
  try {
    return { configDigest: sha256Hex(readFileSync(file, 'utf8')) };
  } catch {
    // Whoever uses it says what is wrong with it.
    return {};
  }
}

function ownProgram(): string {
  return process.argv[1] ?? '';
}

function environment(): Record<string, string> {
  return Object.fromEntries(
    Object.entries(process.env).filter((entry): entry is [string, string] => entry[1] !== undefined),
  );
}

/**
 * The resident outlives this client and serves others: what only this one was given, secrets above all, is not
 * its own. Each server is started with the environment of the client that named it.
 */
const KEPT =
  /^(PATH|HOME|USER|LOGNAME|LANG|LC_\w+|TZ|TMPDIR|TEMP|TMP|XDG_\w+|COUNTERFOIL_\w+|NODE_EXTRA_CA_CERTS|SSL_CERT_\w+|SystemRoot|USERNAME|USERPROFILE|APPDATA|LOCALAPPDATA|PATHEXT|ComSpec)$/i;

function residentEnvironment(): Record<string, string> {
  return Object.fromEntries(Object.entries(environment()).filter(([name]) => KEPT.test(name)));
}
