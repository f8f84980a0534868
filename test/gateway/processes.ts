// Real processes for the tests of the gateway and of the commands: the command as it is installed, spoken to
// line by line, in front of servers that keep their own log.

import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { setTimeout as pass } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { expect } from 'vitest';
import { runOnTerminal } from '../../demo/terminal.mjs';
import { composeLedger, LEDGER_FILES } from '../../src/compose.ts';
import type { Operation } from '../../src/core/operation.ts';

const here = (name: string): string => fileURLToPath(new URL(name, import.meta.url));

export const COUNTERFOIL = here('../../dist/cli/counterfoil.js');
export const FILESYSTEM_SERVER = here(
  '../../node_modules/@modelcontextprotocol/server-filesystem/dist/index.js',
);
export const TOOLS_SERVER = here('./fixtures/tools-server.mjs');

/** What takes longer than this is a fault: tests wait on signals. */
export const PLENTY_MS = 25_000;
const POLL_MS = 5;

/** Things to be ended or removed after a test, the last first. */
export class CleanUps {
  readonly #all: (() => Promise<void> | void)[] = [];

  add(cleanUp: () => Promise<void> | void): void {
    this.#all.push(cleanUp);
  }

  readonly run = async (): Promise<void> => {
    for (const cleanUp of this.#all.splice(0).reverse()) await cleanUp();
  };

  folder(): string {
    const path = mkdtempSync(join(tmpdir(), 'counterfoil-gateway-'));
    this.add(() => rmSync(path, { recursive: true, force: true, maxRetries: 10 }));
    return path;
  }

  started(process: LineProcess): LineProcess {
    this.add(() => process.stop());
    return process;
  }
}

/** Resolves as soon as `look` gives something; what other processes do is looked at, not waited for by time. */
export async function until<Found>(look: () => Found | undefined | false, what: string): Promise<Found> {
  const deadline = performance.now() + PLENTY_MS;
  for (;;) {
    const found = look();
    if (found !== undefined && found !== false) return found;
    if (performance.now() > deadline) throw new Error(`It did not come about in time: ${what}`);
    await pass(POLL_MS);
  }
}

export async function untilAsync<Found>(
  look: () => Promise<Found | undefined | false>,
  what: string,
): Promise<Found> {
  const deadline = performance.now() + PLENTY_MS;
  for (;;) {
    const found = await look();
    if (found !== undefined && found !== false) return found;
    if (performance.now() > deadline) throw new Error(`It did not come about in time: ${what}`);
    await pass(POLL_MS);
  }
}

/** Not one that has ended and that nobody has asked about yet. */
export function isRunning(pid: number): boolean {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    // The first thread is a zombie before the others have ended, which still hold what the process had open.
    return fields[0] !== 'Z' || Number(fields[THREADS_AFTER_STATE]) > 1;
  } catch {
    return false;
  }
}

/** `num_threads` is the twentieth field of proc_pid_stat(5), the state the third. */
const THREADS_AFTER_STATE = 17;

/**
 * Whether its parent has been told that it ended. A parent that is ours knows of it then, before it reads anything
 * that is sent to it later.
 */
export function isReaped(pid: number): boolean {
  return !existsSync(`/proc/${pid}`);
}

/** The processes that a process has started and that still run. */
export function childrenOf(pid: number): number[] {
  return readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8')
    .trim()
    .split(' ')
    .filter((text) => text !== '')
    .map(Number);
}

export interface Message {
  readonly jsonrpc?: unknown;
  readonly id?: unknown;
  readonly method?: unknown;
  readonly params?: unknown;
  readonly result?: ToolResult;
  readonly error?: { readonly code: number; readonly message: string; readonly data?: unknown };
}

export interface ToolResult {
  readonly content?: readonly { readonly type: string; readonly text?: string }[];
  readonly isError?: boolean;
  readonly structuredContent?: unknown;
  readonly tools?: readonly { readonly name: string }[];
  readonly _meta?: {
    readonly 'counterfoil/operation'?: {
      readonly operation: string;
      readonly stage: string;
      readonly effect: string;
    };
  };
}

export interface Line {
  readonly text: string;
  /** `undefined` when the line is not JSON. */
  readonly message: Message | undefined;
}

export interface Exit {
  readonly code: number | null;
  readonly signal: string | null;
}

/** One process that speaks JSON-RPC in lines, and the client of it. */
export class LineProcess {
  readonly lines: Line[] = [];
  /** The process is gone, and all that it has written was read. */
  readonly exited: Promise<Exit>;
  /** The process is gone; a child of it may still have its standard error. */
  readonly died: Promise<void>;
  exit: Exit | undefined;
  stderr = '';
  #rest = '';
  #id = 0;
  readonly #child: ChildProcess;

  constructor(
    command: string,
    args: readonly string[],
    options: { readonly env?: NodeJS.ProcessEnv; readonly uid?: number } = {},
  ) {
    this.#child = spawn(command, args, {
      stdio: ['pipe', 'pipe', 'pipe'],
      env: { ...process.env, ...options.env },
      ...(options.uid === undefined ? {} : { uid: options.uid, gid: options.uid }),
    });
    this.#child.stdout?.setEncoding('utf8').on('data', (chunk: string) => this.#read(chunk));
    this.#child.stderr?.setEncoding('utf8').on('data', (chunk: string) => {
      this.stderr += chunk;
    });
    this.#child.stdin?.on('error', () => {});
    this.died = new Promise((resolve) => {
      this.#child.once('error', () => resolve());
      this.#child.once('exit', () => resolve());
    });
    this.exited = new Promise((resolve) => {
      this.#child.once('error', () => resolve({ code: null, signal: null }));
      this.#child.once('close', (code, signal) => {
        this.exit = { code, signal };
        resolve(this.exit);
      });
    });
  }

  #read(chunk: string): void {
    const pieces = (this.#rest + chunk).split('\n');
    this.#rest = pieces.pop() ?? '';
    for (const text of pieces) this.lines.push({ text, message: parsed(text) });
  }

  get pid(): number {
    if (this.#child.pid === undefined) throw new Error('The process could not be started.');
    return this.#child.pid;
  }

  /** One line as it is, with its terminator. */
  send(line: string | Buffer): void {
    this.#child.stdin?.write(Buffer.concat([Buffer.from(line), Buffer.from('\n')]));
  }

  write(bytes: string | Buffer): void {
    this.#child.stdin?.write(bytes);
  }

  notify(method: string, params: object = {}): void {
    this.send(JSON.stringify({ jsonrpc: '2.0', method, params }));
  }

  /** A request with an id of its own; its answer is waited for with `answer`. */
  ask(method: string, params: unknown = {}): number {
    this.#id += 1;
    this.send(JSON.stringify({ jsonrpc: '2.0', id: this.#id, method, params }));
    return this.#id;
  }

  async answer(id: unknown): Promise<Line & { readonly message: Message }> {
    const line = await until(
      () =>
        this.lines.find(({ message }) => message?.method === undefined && message?.id === id) ??
        (this.exit === undefined ? undefined : { text: '', message: undefined }),
      `the answer to ${JSON.stringify(id)}; on stderr: ${this.stderr}`,
    );
    if (line.message === undefined) throw new Error(`The process ended before it answered: ${this.stderr}`);
    return { text: line.text, message: line.message };
  }

  request(method: string, params: unknown = {}): Promise<Line & { readonly message: Message }> {
    return this.answer(this.ask(method, params));
  }

  /** A call of a tool, and its result. */
  async call(name: string, args: unknown = {}, meta?: object): Promise<ToolResult> {
    const { message } = await this.request('tools/call', {
      name,
      arguments: args,
      ...(meta === undefined ? {} : { _meta: meta }),
    });
    if (message.result === undefined) throw new Error(`An error came: ${JSON.stringify(message.error)}`);
    return message.result;
  }

  async initialize(): Promise<Line> {
    const answer = await this.request('initialize', INITIALIZE);
    this.notify('notifications/initialized');
    return answer;
  }

  /** Resolves once standard error holds the text. */
  async says(text: string | RegExp): Promise<void> {
    await until(
      () => (typeof text === 'string' ? this.stderr.includes(text) : text.test(this.stderr)) || undefined,
      `standard error to hold ${String(text)}; it holds: ${this.stderr}`,
    );
  }

  /** Closes the client's end and waits for the process. */
  end(): Promise<Exit> {
    this.#child.stdin?.end();
    return this.exited;
  }

  kill(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }

  /** The client is gone at once: nobody reads or writes any more. */
  drop(): void {
    this.#child.stdin?.destroy();
    this.#child.stdout?.destroy();
    this.#child.stderr?.destroy();
  }

  async stop(): Promise<void> {
    if (this.exit !== undefined) return;
    this.#child.stdin?.end();
    const timer = setTimeout(() => this.#child.kill('SIGKILL'), 5_000);
    await this.died;
    clearTimeout(timer);
  }

  /** Every line that came is one JSON-RPC message (the promise of `counterfoil mcp`). */
  expectPure(): void {
    expect(this.#rest).toBe('');
    for (const { text, message } of this.lines) expect(message?.jsonrpc, text).toBe('2.0');
  }
}

export const INITIALIZE = {
  protocolVersion: '2025-11-25',
  capabilities: {},
  clientInfo: { name: 'test', version: '1' },
};

function parsed(text: string): Message | undefined {
  try {
    return JSON.parse(text) as Message;
  } catch {
    return undefined;
  }
}

export interface GatewayOptions {
  readonly data: string;
  readonly server: readonly string[];
  /** Text of the configuration, or none. */
  readonly config?: string;
  readonly run?: string;
  readonly env?: NodeJS.ProcessEnv;
  readonly uid?: number;
  /** True: a pipe to the resident process of the data directory. */
  readonly resident?: boolean;
}

let configCount = 0;

/** The arguments of `node` that start a gateway. */
export function gatewayArguments({ data, server, config, run, resident }: GatewayOptions): string[] {
  // A process of its own, whose end is the gateway's.
  const options = [...(resident === true ? [] : ['--no-resident']), '--data', data];
  if (config !== undefined) {
    configCount += 1;
    const file = join(dirname(data), `config-${configCount}.yaml`);
    writeFileSync(file, config);
    options.push('--config', file);
  }
  if (run !== undefined) options.push('--run', run);
  return [COUNTERFOIL, 'mcp', ...options, '--', ...server];
}

export function startGateway(options: GatewayOptions): LineProcess {
  return new LineProcess(process.execPath, gatewayArguments(options), options);
}

export function toolsServer(folder: string, ...flags: string[]): string[] {
  return [process.execPath, TOOLS_SERVER, folder, ...flags];
}

export interface LogEntry {
  readonly event: string;
  readonly pid?: number;
  readonly tool?: string;
  readonly arguments?: unknown;
  readonly line?: string;
  readonly message?: Message;
}

/** What the tools server has noted in its folder. */
export function logOf(folder: string): readonly LogEntry[] {
  const file = join(folder, 'log');
  if (!existsSync(file)) return [];
  return readFileSync(file, 'utf8')
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line) as LogEntry);
}

export function callsOf(folder: string, tool: string): readonly LogEntry[] {
  return logOf(folder).filter((entry) => entry.event === 'call' && entry.tool === tool);
}

export interface Ran {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs one command to its end. `detached`: in a session of its own, which has no terminal. */
export function counterfoil(
  args: readonly string[],
  options: {
    readonly env?: NodeJS.ProcessEnv;
    readonly uid?: number;
    readonly cwd?: string;
    readonly input?: string;
    readonly detached?: boolean;
  } = {},
): Promise<Ran> {
  const { input, env, uid, ...rest } = options;
  return new Promise((resolve) => {
    const child = spawn(process.execPath, [COUNTERFOIL, ...args], {
      ...rest,
      env: { ...process.env, ...env },
      timeout: PLENTY_MS,
      ...(uid === undefined ? {} : { uid, gid: uid }),
    });
    const texts = { stdout: '', stderr: '' };
    for (const name of ['stdout', 'stderr'] as const) {
      child[name].setEncoding('utf8').on('data', (chunk: string) => {
        texts[name] += chunk;
      });
    }
    child.stdin.on('error', () => {});
    child.stdin.end(input);
    child.once('error', () => resolve({ code: -1, ...texts }));
    child.once('close', (code) => resolve({ code: code ?? -1, ...texts }));
  });
}

export const PASSPHRASE = 'correct horse battery';

export type RanOnTerminal = Ran & { readonly screen: string };

/** Runs one command with a controlling terminal, on which the answers are typed. */
export async function onTerminal(
  args: readonly string[],
  answers: readonly string[],
): Promise<RanOnTerminal> {
  return runOnTerminal([COUNTERFOIL, ...args], answers, { timeoutMs: PLENTY_MS });
}

/** The owner of a ledger, who sets a passphrase before the first approval and types it from then on. */
export function ownerOf(data: string) {
  let isSet: Promise<RanOnTerminal> | undefined;
  const run = async (...args: string[]): Promise<RanOnTerminal> => {
    isSet ??= onTerminal(['passphrase', 'set', '--data', data], [PASSPHRASE, PASSPHRASE]);
    expect((await isSet).stderr).toBe('');
    return onTerminal([...args, '--data', data], [PASSPHRASE]);
  };
  return { run, approve: (...args: string[]) => run('approve', ...args) };
}

/** Every operation that a data directory holds, the oldest first. */
export async function operationsIn(data: string): Promise<readonly Operation[]> {
  if (!LEDGER_FILES.some((name) => existsSync(join(data, name)))) return [];
  const ledger = await composeLedger({ data });
  try {
    return (await ledger.readings.recent(1_000)).toReversed();
  } finally {
    await ledger.close();
  }
}

export function textOf(result: ToolResult): string {
  return (result.content ?? []).map(({ text }) => text ?? '').join('\n');
}

export function operationOf(result: ToolResult): string {
  const id = result._meta?.['counterfoil/operation']?.operation;
  if (id === undefined) throw new Error(`The answer names no operation: ${textOf(result)}`);
  return id;
}
