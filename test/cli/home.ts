// A home of its own for the tests of `init`, `leave` and `doctor`: clients' files, servers, the command as installed.

import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { spawn } from '@lydell/node-pty';
import {
  type CleanUps,
  COUNTERFOIL,
  counterfoil,
  FILESYSTEM_SERVER,
  type Ran,
  TOOLS_SERVER,
  until,
} from '../gateway/processes.ts';

/** What would lead a command out of the home of a test. */
const LEADS_ELSEWHERE = ['XDG_CONFIG_HOME', 'XDG_DATA_HOME', 'COUNTERFOIL_DATA', 'CLAUDE_CONFIG_DIR'];

export class Home {
  readonly folder: string;
  readonly project: string;
  readonly data: string;
  readonly env: NodeJS.ProcessEnv;

  constructor(cleanUps: CleanUps) {
    this.folder = cleanUps.folder();
    this.project = join(this.folder, 'project');
    this.data = join(this.folder, '.local', 'share', 'counterfoil');
    mkdirSync(this.project);
    this.env = { ...Object.fromEntries(LEADS_ELSEWHERE.map((name) => [name, undefined])), HOME: this.folder };
  }

  path(...names: readonly string[]): string {
    return join(this.folder, ...names);
  }

  write(name: string, text: string | Buffer): string {
    const path = this.path(name);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, text);
    return path;
  }

  read(name: string): string {
    return readFileSync(this.path(name), 'utf8');
  }

  /** The command to its end, called in the project's folder, where nobody can be asked. */
  run(
    args: readonly string[],
    options: { readonly uid?: number; readonly env?: NodeJS.ProcessEnv } = {},
  ): Promise<Ran> {
    return counterfoil(args, { ...options, env: { ...this.env, ...options.env }, cwd: this.project });
  }

  async json(args: readonly string[]): Promise<JsonOutput> {
    const { stdout, stderr } = await this.run([...args, '--json']);
    if (stdout === '') throw new Error(stderr);
    return JSON.parse(stdout) as JsonOutput;
  }

  /** The command at a terminal: each answer is typed (or found) once its question is there. */
  async atTerminal(
    args: readonly string[],
    answers: readonly (readonly [question: string, answer: string | (() => string)])[],
  ): Promise<{ readonly code: number; readonly shown: string }> {
    // A variable without a value would be one that says "undefined" there.
    const env = Object.fromEntries(
      Object.entries({ ...process.env, ...this.env }).filter(([, value]) => value !== undefined),
    );
    const terminal = spawn(process.execPath, [COUNTERFOIL, ...args], {
      cols: 400,
      rows: 50,
      cwd: this.project,
      env,
    });
    let shown = '';
    let code: number | undefined;
    terminal.onData((text) => {
      shown += text;
    });
    terminal.onExit(({ exitCode }) => {
      code = exitCode;
    });
    let from = 0;
    for (const [question, answer] of answers) {
      const at = await until(() => {
        const found = shown.indexOf(question, from);
        if (found < 0 && code !== undefined) throw new Error(`It ended without asking ${question}: ${shown}`);
        return found < 0 ? undefined : { found };
      }, `the question ${question}`);
      from = at.found + question.length;
      terminal.write(typeof answer === 'string' ? answer : answer());
    }
    const ended = await until(
      () => (code === undefined ? undefined : { code }),
      `the end; shown is: ${shown}`,
    );
    return { code: ended.code, shown };
  }

  /** An entry that starts a server quickly, with these tools. */
  toolsEntry(tools: readonly object[] = []): { readonly command: string; readonly args: readonly string[] } {
    this.write('server/tools.json', JSON.stringify(tools));
    return { command: process.execPath, args: [TOOLS_SERVER, this.path('server')] };
  }

  /** Whether that server was ever started. */
  get hasStartedServer(): boolean {
    return existsSync(this.path('server', 'log'));
  }

  /** Every file of the home with its bytes, without what is in the data directory and the server's own. */
  files(): { readonly [path: string]: string } {
    const found: { [path: string]: string } = {};
    for (const entry of readdirSync(this.folder, { recursive: true, withFileTypes: true })) {
      const path = join(entry.parentPath, entry.name);
      if (!entry.isFile() || path.startsWith(this.data) || path.startsWith(this.path('server'))) continue;
      found[path] = readFileSync(path, 'latin1');
    }
    return found;
  }
}

export interface JsonOutput {
  readonly ok?: boolean;
  readonly checks?: readonly {
    readonly area: string;
    readonly level: string;
    readonly found: string;
    readonly fix?: string;
  }[];
  readonly files?: readonly {
    readonly client: string;
    readonly path: string;
    readonly problem: string | null;
    readonly servers?: readonly JsonServer[];
    readonly entries?: readonly { readonly path: readonly string[]; readonly release: string | null }[];
  }[];
  readonly changes?: readonly {
    readonly path: string;
    readonly written: boolean;
    readonly diff: readonly string[];
    readonly problem: string | null;
    readonly backup: string | null;
  }[];
  readonly not_by_init?: readonly string[];
  readonly export?: { readonly file: string; readonly operations: number } | null;
  readonly open?: readonly { readonly operation: string; readonly label: string }[];
}

export interface JsonServer {
  readonly name: string;
  readonly standing: string;
  readonly destination: string | null;
  readonly problem: string | null;
  readonly tools:
    | readonly { readonly name: string; readonly class: string; readonly source: string }[]
    | null;
  readonly unguarded: readonly string[] | null;
}

export const filesystemEntry = (
  folder: string,
): { readonly command: string; readonly args: readonly string[] } => ({
  command: process.execPath,
  args: [FILESYSTEM_SERVER, folder],
});

export const cursorFile = (servers: object): string =>
  `${JSON.stringify({ mcpServers: servers }, null, 2)}\n`;
