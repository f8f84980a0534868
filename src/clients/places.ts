// Where MCP clients keep their configuration, per operating system: facts, each with the page that states it.

import { posix, win32 } from 'node:path';

export const CLIENTS = ['claude-desktop', 'claude-code', 'cursor', 'vscode', 'portable'] as const;
export type ClientId = (typeof CLIENTS)[number];

/** What is read of the machine; nothing else decides where is looked. */
export interface Surroundings {
  /** As Node names it: `darwin`, `win32`, `linux`, … */
  readonly platform: string;
  readonly home: string;
  /** The folder whose own files are looked at: the one that the command is called in. */
  readonly project: string;
  readonly environment: { readonly [name: string]: string | undefined };
}

export interface Place {
  readonly client: ClientId;
  /** The client as people call it. */
  readonly title: string;
  /** What is in a `project` file came with the project, and need not be its reader's own choice. */
  readonly scope: 'user' | 'project';
  /** One `*` stands for any rest of one folder's name. */
  readonly path: string;
  /** The member that holds the servers. */
  readonly member: 'mcpServers' | 'servers';
}

/** Every file that may be there, in the order in which they are shown. */
export function placesOf(surroundings: Surroundings): readonly Place[] {
  return [...userPlaces(surroundings), ...projectPlaces(surroundings)];
}

function userPlaces(surroundings: Surroundings): readonly Place[] {
  const { environment, home, platform } = surroundings;
  const { join } = platform === 'win32' ? win32 : posix;
  const place = (client: ClientId, title: string, ...path: string[]): Place => ({
    client,
    title,
    scope: 'user',
    path: join(...path),
    member: client === 'vscode' ? 'servers' : 'mcpServers',
  });
  const applications = applicationFolder(surroundings);
  const desktop = 'claude_desktop_config.json';
  return [
    // modelcontextprotocol.io/quickstart/user. There is no official one for Linux; its builds by others use this.
    place('claude-desktop', 'Claude Desktop', applications, 'Claude', desktop),
    // The packaged app for Windows is shown another folder in place of that one (anthropics/claude-code#26073).
    ...(platform === 'win32'
      ? [place('claude-desktop', 'Claude Desktop', packaged(surroundings), desktop)]
      : []),
    // code.claude.com/docs/en/mcp: user and local scope; code.claude.com/docs/en/env-vars: CLAUDE_CONFIG_DIR.
    place('claude-code', 'Claude Code', given(environment, 'CLAUDE_CONFIG_DIR') ?? home, '.claude.json'),
    // cursor.com/docs/context/mcp
    place('cursor', 'Cursor', home, '.cursor', 'mcp.json'),
    // code.visualstudio.com/docs/agents/reference/mcp-configuration, and its page on profiles for the folder.
    place('vscode', 'VS Code', applications, 'Code', 'User', 'mcp.json'),
    place('vscode', 'VS Code, a profile', applications, 'Code', 'User', 'profiles', '*', 'mcp.json'),
    place('vscode', 'VS Code Insiders', applications, 'Code - Insiders', 'User', 'mcp.json'),
  ];
}

function projectPlaces({ platform, project }: Surroundings): readonly Place[] {
  const { join } = platform === 'win32' ? win32 : posix;
  const scope = 'project';
  return [
    // code.claude.com/docs/en/mcp; VS Code's reference calls it the portable format.
    {
      client: 'portable',
      title: 'This project',
      scope,
      path: join(project, '.mcp.json'),
      member: 'mcpServers',
    },
    {
      client: 'cursor',
      title: 'Cursor, this project',
      scope,
      path: join(project, '.cursor', 'mcp.json'),
      member: 'mcpServers',
    },
    {
      client: 'vscode',
      title: 'VS Code, this project',
      scope,
      path: join(project, '.vscode', 'mcp.json'),
      member: 'servers',
    },
  ];
}

/** Where applications keep what belongs to one user. */
function applicationFolder({ platform, home, environment }: Surroundings): string {
  if (platform === 'darwin') return posix.join(home, 'Library', 'Application Support');
  if (platform === 'win32') return given(environment, 'APPDATA') ?? win32.join(home, 'AppData', 'Roaming');
  return given(environment, 'XDG_CONFIG_HOME') ?? posix.join(home, '.config');
}

function packaged({ home, environment }: Surroundings): string {
  const local = given(environment, 'LOCALAPPDATA') ?? win32.join(home, 'AppData', 'Local');
  return win32.join(local, 'Packages', 'Claude_*', 'LocalCache', 'Roaming', 'Claude');
}

function given(environment: Surroundings['environment'], name: string): string | undefined {
  const value = environment[name];
  return value === '' ? undefined : value;
}
