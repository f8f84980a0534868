// The home of somebody who has three MCP clients and four servers, and has never heard of us.

import { execFile } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { parse } from 'jsonc-parser';
import { runOnTerminal } from '../demo/terminal.mjs';
import { ENTITIES, NOTES } from './calls.mjs';

const PLENTY_MS = 60_000;

export class NewHome {
  /**
   * @param {string} folder a new one
   * @param {{ app: string, servers: string, notionUrl: string }} installed the folders of the package and the servers,
   *   and where Notion's server finds its service
   */
  constructor(folder, { app, servers, notionUrl }) {
    this.folder = folder;
    this.project = join(folder, 'garden-site');
    this.notes = join(folder, 'notes');
    this.memoryFile = join(folder, 'memory.jsonl');
    this.command = join(app, 'node_modules/.bin/counterfoil');
    // What a shell has at least, and nothing that would lead out of this home.
    this.env = { HOME: folder, PATH: process.env.PATH, NO_COLOR: '1' };
    for (const [name, text] of Object.entries(NOTES)) this.#write(join('notes', name), text);
    this.#write(
      'memory.jsonl',
      ENTITIES.map((entity) => JSON.stringify({ type: 'entity', ...entity })).join('\n'),
    );
    this.clientFiles = this.#writeClientFiles(join(servers, 'node_modules'), notionUrl);
  }

  /** Each in the style of its client, so that what is put in and taken out again has to fit. */
  #writeClientFiles(modules, notionUrl) {
    const node = JSON.stringify(process.execPath);
    const path = (...names) => JSON.stringify(join(...names));
    const desktop = {
      mcpServers: {
        files: {
          command: process.execPath,
          args: [join(modules, '@modelcontextprotocol/server-filesystem/dist/index.js'), this.notes],
        },
        notion: {
          command: process.execPath,
          args: [join(modules, '@notionhq/notion-mcp-server/bin/cli.mjs')],
          env: { NOTION_TOKEN: 'ntn_of_nobody', BASE_URL: notionUrl },
        },
      },
      globalShortcut: 'Alt+Space',
    };
    const vscode = [
      '// Servers that I use everywhere.',
      '{',
      '\t"servers": {',
      '\t\t/* what it should remember */ "memory": {',
      '\t\t\t"type": "stdio",',
      `\t\t\t"command": ${node}, // the Node of this machine`,
      `\t\t\t"args": [${path(modules, '@modelcontextprotocol/server-memory/dist/index.js')}],`,
      `\t\t\t"env": {"MEMORY_FILE_PATH": ${path(this.memoryFile)}},`,
      '\t\t},',
      '\t},',
      '}',
      '',
    ].join('\r\n');
    const project = `{"mcpServers":{"playwright":{"command":${node},"args":[${path(modules, '@playwright/mcp/cli.js')},"--headless","--executable-path",${path(this.folder, 'no-browser')}]}}}`;
    const cursor = { mcpServers: { team: { url: 'http://127.0.0.1:9/mcp' } } };
    return [
      this.#write('.config/Claude/claude_desktop_config.json', JSON.stringify(desktop, null, 2)),
      this.#write('.config/Code/User/mcp.json', vscode),
      this.#write('garden-site/.mcp.json', project),
      this.#write('.cursor/mcp.json', `${JSON.stringify(cursor, null, 4)}\n`),
    ];
  }

  #write(name, text) {
    const path = join(this.folder, name);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, text, { mode: 0o600 });
    return path;
  }

  /** How a server is started by the client that has it, as its file says now. */
  entry(name) {
    for (const file of this.clientFiles) {
      const { mcpServers, servers } = parse(readFileSync(file, 'utf8'), [], { allowTrailingComma: true });
      const entry = (mcpServers ?? servers)[name];
      if (entry !== undefined) return entry;
    }
    throw new Error(`No client has a server ${name}.`);
  }

  /** The clients' files and what lies beside them: bytes, and who may read them. */
  clients() {
    const folders = [...new Set(this.clientFiles.map((file) => dirname(file)))];
    return Object.fromEntries(
      folders
        .flatMap((folder) => readdirSync(folder, { withFileTypes: true }))
        .filter((each) => each.isFile())
        .map((each) => join(each.parentPath, each.name))
        .map((file) => [
          relative(this.folder, file),
          `${(statSync(file).mode & 0o777).toString(8)} ${readFileSync(file, 'base64')}`,
        ]),
    );
  }

  /** What the agent's notes are on the disk. */
  notesNow() {
    const entries = readdirSync(this.notes, { recursive: true, withFileTypes: true });
    return Object.fromEntries(
      entries
        .filter((each) => each.isFile())
        .map((each) => join(each.parentPath, each.name))
        .map((file) => [relative(this.notes, file), readFileSync(file, 'utf8')]),
    );
  }

  memoryNow() {
    return readFileSync(this.memoryFile, 'utf8')
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line));
  }

  /** The installed command to its end, called in the project's folder, where nobody can be asked. */
  run(...args) {
    return new Promise((resolve) => {
      const options = { cwd: this.project, env: this.env, timeout: PLENTY_MS };
      execFile(process.execPath, [this.command, ...args], options, (error, stdout, stderr) =>
        resolve({ code: error === null ? 0 : error.code, stdout, stderr }),
      );
    });
  }

  /** The same before a person, who types the answers. */
  onTerminal(args, answers) {
    return runOnTerminal([this.command, ...args], answers, { env: this.env, timeoutMs: PLENTY_MS });
  }
}
