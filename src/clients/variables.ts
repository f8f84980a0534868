// Variables in a client's configuration, filled in as that client does it, where we start a server ourselves.
//
// One that has no value stays literal in Claude Code (code.claude.com/docs/en/mcp) and becomes nothing in VS Code
// (code.visualstudio.com/docs/reference/variables-reference). Here it is a reason not to start the server.

import { posix, win32 } from 'node:path';
import type { EntryServer, ServerEntry } from './entries.ts';
import { type Address, addressFrom, type OwnAddress } from './own-command.ts';
import type { ClientId, Surroundings } from './places.ts';

/** A server as it can be started. */
export interface ReadyLaunch {
  readonly command: string;
  readonly args: readonly string[];
  /** Beside the environment of this process. */
  readonly env: { readonly [name: string]: string };
  readonly cwd: string | undefined;
  readonly envFile: string | undefined;
}

export type FilledIn =
  | { readonly ok: true; readonly launch: ReadyLaunch; readonly address?: undefined }
  /** Nothing is started: it is asked at its address. */
  | { readonly ok: true; readonly address: Address; readonly launch?: undefined }
  /** A sentence without its subject: why it cannot be started from here. */
  | { readonly ok: false; readonly problem: string };

export function fillIn(entry: ServerEntry, client: ClientId, surroundings: Surroundings): FilledIn {
  const { server, workspace } = entry;
  if (server.kind === 'unknown') return { ok: false, problem: 'has neither a command nor an address' };
  const problems: string[] = [];
  const fill = (text: string): string =>
    text.replace(/\$\{([^{}]*)\}/g, (whole, inside: string) => {
      const value = valueOf(inside, client, workspace, surroundings);
      if (value === undefined) return whole;
      if (typeof value === 'string') return value;
      problems.push(value.problem);
      return whole;
    });
  const filled = reachOf(server, fill, workspace, surroundings);
  const [problem] = problems;
  return problem === undefined ? filled : { ok: false, problem };
}

function reachOf(
  server: Exclude<EntryServer, { readonly kind: 'unknown' }>,
  fill: (text: string) => string,
  workspace: string | undefined,
  surroundings: Surroundings,
): FilledIn {
  const filled = (texts: { readonly [name: string]: string }): Record<string, string> =>
    Object.fromEntries(Object.entries(texts).map(([name, value]) => [name, fill(value)]));
  if (server.kind === 'http') {
    return { ok: true, address: { url: fill(server.url), headers: filled(server.headers) } };
  }
  const { own, launch } = server;
  const env = filled(launch.env);
  if (own?.address !== undefined) return ownAddress(own.address, fill, env, surroundings);
  const { command, args } = own?.inner ?? launch;
  const { cwd, envFile } = launch;
  const ready: ReadyLaunch = {
    command: fill(command),
    args: args.map(fill),
    env,
    cwd: cwd === undefined ? workspace : fill(cwd),
    envFile: envFile === undefined ? undefined : fill(envFile),
  };
  return { ok: true, launch: ready };
}

/** What our own command is told, as its process would read it. */
function ownAddress(
  own: OwnAddress,
  fill: (text: string) => string,
  env: { readonly [name: string]: string },
  { environment }: Surroundings,
): FilledIn {
  const written = { ...own, text: own.text === undefined ? undefined : fill(own.text) };
  const address = addressFrom(written, (variable) => env[variable] ?? environment[variable]);
  return 'missing' in address
    ? { ok: false, problem: unset(address.missing).problem }
    : { ok: true, address };
}

interface Problem {
  readonly problem: string;
}

/** A value, or why there is none; `undefined` where the client does not know the form and leaves it as it is. */
function valueOf(
  inside: string,
  client: ClientId,
  workspace: string | undefined,
  { environment, home, platform }: Surroundings,
): string | Problem | undefined {
  const plain = /^([A-Za-z_]\w*)(?::-(.*))?$/s.exec(inside);
  if (client === 'claude-desktop') return undefined;
  if (client === 'claude-code' || client === 'portable') {
    if (plain === null) return undefined;
    const [, name = '', otherwise] = plain;
    return environment[name] ?? otherwise ?? unset(name);
  }
  // Cursor and VS Code have the same predefined names; Cursor's list is on cursor.com/docs/context/mcp.
  const { basename, sep } = platform === 'win32' ? win32 : posix;
  const [kind, rest] = inside.split(/:(.*)/s);
  switch (kind) {
    case 'env':
      return environment[rest ?? ''] ?? unset(rest ?? '');
    case 'userHome':
      return home;
    case 'workspaceFolder':
      return workspace ?? { problem: 'names the folder of a workspace, and none is open here' };
    case 'workspaceFolderBasename':
      return workspace === undefined
        ? { problem: 'names the folder of a workspace, and none is open here' }
        : basename(workspace);
    case 'pathSeparator':
    case '/':
      return sep;
    case 'input':
      return { problem: `asks for the input ${rest ?? ''}, which only its client can ask for` };
    case 'command':
    case 'config':
      return { problem: `uses \${${kind}:…}, which only its client can fill in` };
    default:
      return undefined;
  }
}

function unset(name: string): Problem {
  return { problem: `uses the variable ${name}, which is not set here` };
}
