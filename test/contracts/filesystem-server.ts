// The real server for files, as another process over stdio, with a folder of its own.

import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync, statSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { ReadableReply } from '../../src/core/reply-places.ts';

export interface ServerTool {
  readonly name: string;
  readonly inputSchema: unknown;
  readonly annotations?: { readonly readOnlyHint?: boolean };
}

interface Message {
  readonly id?: number;
  readonly result?: { readonly [member: string]: unknown };
  readonly error?: { readonly code: number };
}

export class FilesystemServer {
  readonly folder = realpathSync(mkdtempSync(join(tmpdir(), 'counterfoil-files-')));
  readonly #process: ChildProcessWithoutNullStreams;
  readonly #waiting = new Map<number, (message: Message) => void>();
  #lastId = 0;
  serverInfo = { name: '', version: '' };

  private constructor() {
    const program = createRequire(import.meta.url).resolve(
      '@modelcontextprotocol/server-filesystem/dist/index.js',
    );
    this.#process = spawn(process.execPath, [program, this.folder], { stdio: 'pipe' });
    this.#process.stderr.resume();
    createInterface({ input: this.#process.stdout }).on('line', (line) => {
      const message = JSON.parse(line) as Message;
      if (message.id !== undefined) this.#waiting.get(message.id)?.(message);
    });
  }

  static async start(): Promise<FilesystemServer> {
    const server = new FilesystemServer();
    const { result } = await server.#request('initialize', {
      protocolVersion: '2025-11-25',
      capabilities: {},
      clientInfo: { name: 'counterfoil-tests', version: '0' },
    });
    server.serverInfo = result?.serverInfo as typeof server.serverInfo;
    server.#write({ method: 'notifications/initialized' });
    return server;
  }

  async tools(): Promise<readonly ServerTool[]> {
    const { result } = await this.#request('tools/list', {});
    return result?.tools as readonly ServerTool[];
  }

  async call(name: string, args: object): Promise<ReadableReply> {
    const { result, error } = await this.#request('tools/call', { name, arguments: args });
    if (error !== undefined) return { kind: 'protocol_error', body: JSON.stringify(error), code: error.code };
    return { kind: result?.isError === true ? 'tool_error' : 'result', body: JSON.stringify(result) };
  }

  path(...names: string[]): string {
    return join(this.folder, ...names);
  }

  /** Everything that is in the folder: what the destination holds. */
  contents(folder = this.folder): { [path: string]: string } {
    const found: { [path: string]: string } = {};
    for (const name of readdirSync(folder)) {
      const path = join(folder, name);
      if (statSync(path).isDirectory()) Object.assign(found, { [path]: 'directory' }, this.contents(path));
      else found[path] = readFileSync(path, 'utf8');
    }
    return found;
  }

  async stop(): Promise<void> {
    const ended = once(this.#process, 'exit');
    this.#process.kill();
    await ended;
    rmSync(this.folder, { recursive: true });
  }

  #request(method: string, params: object): Promise<Message> {
    const id = ++this.#lastId;
    return new Promise((resolve) => {
      this.#waiting.set(id, resolve);
      this.#write({ id, method, params });
    });
  }

  #write(message: object): void {
    this.#process.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
  }
}
