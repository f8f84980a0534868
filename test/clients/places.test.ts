// Where configurations are looked for, on each operating system.

import { describe, expect, test } from 'vitest';
import { placesOf, type Surroundings } from '../../src/clients/places.ts';

const pathsOf = (surroundings: Partial<Surroundings>, client: string): string[] =>
  placesOf({ platform: 'linux', home: '/h', project: '/p', environment: {}, ...surroundings })
    .filter((place) => place.client === client && place.scope === 'user')
    .map(({ path }) => path);

const MAC = { platform: 'darwin', home: '/h' };
const WINDOWS = { platform: 'win32', home: 'C:\\h', project: 'C:\\p' };

describe('the user’s own configuration', () => {
  test.each([
    ['linux', 'claude-desktop', {}, ['/h/.config/Claude/claude_desktop_config.json']],
    ['linux', 'claude-code', {}, ['/h/.claude.json']],
    ['linux', 'cursor', {}, ['/h/.cursor/mcp.json']],
    [
      'linux',
      'vscode',
      {},
      [
        '/h/.config/Code/User/mcp.json',
        '/h/.config/Code/User/profiles/*/mcp.json',
        '/h/.config/Code - Insiders/User/mcp.json',
      ],
    ],
    ['macOS', 'claude-desktop', MAC, ['/h/Library/Application Support/Claude/claude_desktop_config.json']],
    [
      'macOS',
      'vscode',
      MAC,
      [
        '/h/Library/Application Support/Code/User/mcp.json',
        '/h/Library/Application Support/Code/User/profiles/*/mcp.json',
        '/h/Library/Application Support/Code - Insiders/User/mcp.json',
      ],
    ],
    [
      'Windows, where the packaged app has a folder of its own',
      'claude-desktop',
      WINDOWS,
      [
        'C:\\h\\AppData\\Roaming\\Claude\\claude_desktop_config.json',
        'C:\\h\\AppData\\Local\\Packages\\Claude_*\\LocalCache\\Roaming\\Claude\\claude_desktop_config.json',
      ],
    ],
    ['Windows', 'cursor', WINDOWS, ['C:\\h\\.cursor\\mcp.json']],
    [
      'a Claude Code that was told where',
      'claude-code',
      { environment: { CLAUDE_CONFIG_DIR: '/elsewhere' } },
      ['/elsewhere/.claude.json'],
    ],
    [
      'a Linux with another folder for configurations',
      'claude-desktop',
      { environment: { XDG_CONFIG_HOME: '/conf' } },
      ['/conf/Claude/claude_desktop_config.json'],
    ],
    [
      'a Windows with another folder for applications',
      'claude-desktop',
      { ...WINDOWS, environment: { APPDATA: 'D:\\roam', LOCALAPPDATA: 'D:\\local' } },
      [
        'D:\\roam\\Claude\\claude_desktop_config.json',
        'D:\\local\\Packages\\Claude_*\\LocalCache\\Roaming\\Claude\\claude_desktop_config.json',
      ],
    ],
    [
      'a variable that is set to nothing',
      'claude-code',
      { environment: { CLAUDE_CONFIG_DIR: '' } },
      ['/h/.claude.json'],
    ],
  ] as const)('%s: %s', (_system, client, surroundings, paths) => {
    expect(pathsOf(surroundings, client)).toEqual(paths);
  });
});

test('a project has up to three files, and they are known as the project’s', () => {
  const places = placesOf({ platform: 'linux', home: '/h', project: '/p', environment: {} });
  expect(places.filter(({ scope }) => scope === 'project').map(({ path, member }) => [path, member])).toEqual(
    [
      ['/p/.mcp.json', 'mcpServers'],
      ['/p/.cursor/mcp.json', 'mcpServers'],
      ['/p/.vscode/mcp.json', 'servers'],
    ],
  );
});
