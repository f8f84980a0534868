// One MCP server as a child process: frames in, frames out, and its end noticed at once.
//
// It is our own process and is ended by its own id. Nothing here listens to signals of the host process.

import { type ChildProcess, spawn } from 'node:child_process';
import type { Socket } from 'node:net';
import type { Readable, Writable } from 'node:stream';
import { LineFraming, type UnreadableLine } from './line-framing.ts';

/** Where the child's stderr goes; never to our stdout, which may be a protocol stream. */
export type StderrSink = 'inherit' | 'ignore' | ((chunk: Buffer) => void);

export interface StdioCommand {
  readonly command: string;
  readonly args?: readonly string[] | undefined;
  /** The child's whole environment. Default: the environment of this process. */
  readonly env?: Readonly<Record<string, string>> | undefined;
  readonly cwd?: string | undefined;
  /** Default `inherit`. */
  readonly stderr?: StderrSink | undefined;
}

export interface StdioChildOptions extends StdioCommand {
  readonly frameMaxBytes?: number | undefined;
  readonly killGraceMs: number;
  readonly onFrame: (frame: Buffer) => void;
  readonly onUnreadable: (line: UnreadableLine) => void;
  /** Once: no answer can come any more. */
  readonly onCut: (detail: string) => void;
  /** Once, after `onCut`: the process is gone. */
  readonly onExit: (exit: ChildExit) => void;
}

export interface ChildExit {
  readonly code: number | null;
  readonly signal: string | null;
  readonly detail: string;
}

/**
 * How long output may follow the exit. Normally its end comes within a millisecond; a grandchild that
 * inherited the pipe can hold it open for ever.
 */
const OUTPUT_AFTER_EXIT_MS = 250;

export class StdioChild {
  readonly #options: StdioChildOptions;
  readonly #process: ChildProcess | undefined;
  readonly #stdin: Writable | undefined;
  readonly #stdout: Readable | undefined;
  readonly #framing: LineFraming;
  readonly #whenExited: Promise<void>;
  #resolveExited: () => void = () => {};
  #flushWaiters: (() => void)[] = [];
  #endingDetail: string | undefined;
  #isCut = false;
  #exit: ChildExit | undefined;
  #killTimer: NodeJS.Timeout | undefined;
  #cutTimer: NodeJS.Timeout | undefined;
  #isTerminating = false;

  constructor(options: StdioChildOptions) {
    this.#options = options;
    this.#whenExited = new Promise((resolve) => {
      this.#resolveExited = resolve;
    });
    this.#framing = new LineFraming({
      ...(options.frameMaxBytes === undefined ? {} : { frameMaxBytes: options.frameMaxBytes }),
      onFrame: options.onFrame,
      onUnreadable: options.onUnreadable,
    });
    try {
      this.#process = this.#spawn();
    } catch (error) {
      // Node throws some failures to start and emits others; both are told in a later turn.
      process.nextTick(() => this.#failToStart(error as Error));
      return;
    }
    const { stdin, stdout } = this.#process;
    if (stdin !== null && stdout !== null) {
      this.#stdin = stdin;
      this.#stdout = stdout;
      this.#watch(this.#process, stdin, stdout);
    }
  }

  get hasStarted(): boolean {
    return this.#process?.pid !== undefined;
  }

  get pid(): number | undefined {
    return this.#process?.pid;
  }

  /** Whether a frame can be written now and an answer could still come. */
  get isOpen(): boolean {
    return this.hasStarted && this.#endingDetail === undefined && this.#stdin?.writable === true;
  }

  /** Whether everything written so far is out of this process. */
  get isFlushed(): boolean {
    return (this.#stdin?.writableLength ?? 0) === 0;
  }

  /** Hands a complete line to the pipe. False: it should be followed by a wait for `flushed`. */
  write(line: string | Buffer): boolean {
    return this.#stdin?.write(line, this.#onWritten) ?? false;
  }

  /** Resolves when `isFlushed` or when the pipe is gone. */
  flushed(): Promise<void> {
    if (this.isFlushed || !this.isOpen) return Promise.resolve();
    return new Promise((resolve) => this.#flushWaiters.push(resolve));
  }

  /** Ends the process: its input first, as the protocol wants it, then SIGTERM, then SIGKILL. Resolves at its exit. */
  terminate(): Promise<void> {
    if (!this.#isTerminating && this.#exit === undefined) {
      this.#isTerminating = true;
      this.#endingDetail ??= 'it was told to end';
      this.#releaseFlushWaiters();
      this.#stdin?.end();
      this.#killAfterGrace('SIGTERM', () => this.#killAfterGrace('SIGKILL', () => {}));
    }
    return this.#whenExited;
  }

  #killAfterGrace(signal: 'SIGTERM' | 'SIGKILL', next: () => void): void {
    this.#killTimer = setTimeout(() => {
      this.#process?.kill(signal);
      next();
    }, this.#options.killGraceMs);
  }

  #spawn(): ChildProcess {
    const { command, args = [], env, cwd, stderr = 'inherit' } = this.#options;
    return spawn(command, args, {
      ...(env === undefined ? {} : { env }),
      ...(cwd === undefined ? {} : { cwd }),
      stdio: ['pipe', 'pipe', typeof stderr === 'string' ? stderr : 'pipe'],
      windowsHide: true,
    });
  }

  #watch(child: ChildProcess, stdin: Writable, stdout: Readable): void {
    const { stderr } = this.#options;
    if (typeof stderr === 'function') child.stderr?.on('data', stderr);
    child.on('error', (error) => {
      // The same event tells of a failed `kill`, which changes nothing.
      if (child.pid === undefined) this.#failToStart(error);
    });
    child.on('exit', (code, signal) => this.#onProcessExit(code, signal));
    stdin.on('error', () => this.#beginEnding('its input was closed'));
    stdin.on('close', () => this.#releaseFlushWaiters());
    stdout.on('data', (chunk: Buffer) => this.#framing.push(chunk));
    stdout.on('error', () => this.#cut('its output broke'));
    stdout.on('end', () => this.#cut('its output ended'));
    stdout.on('close', () => this.#cut('its output ended'));
  }

  readonly #onWritten = (): void => {
    if (this.isFlushed) this.#releaseFlushWaiters();
  };

  #releaseFlushWaiters(): void {
    const waiters = this.#flushWaiters;
    this.#flushWaiters = [];
    for (const resolve of waiters) resolve();
  }

  #failToStart(error: Error): void {
    const detail = `the MCP server could not be started: ${error.message}`;
    this.#endingDetail = detail;
    this.#cut(detail);
    this.#finish({ code: null, signal: null, detail });
  }

  #onProcessExit(code: number | null, signal: NodeJS.Signals | null): void {
    clearTimeout(this.#killTimer);
    const how = signal === null ? `exit code ${code}` : `signal ${signal}`;
    const exit = { code, signal, detail: `the MCP server ended with ${how}` };
    this.#exit = exit;
    this.#beginEnding(`it ended with ${how}`);
    if (this.#isCut) this.#finish(exit);
  }

  /** Something has ended, but an answer may still lie in the pipe: it is read before the rest is called cut. */
  #beginEnding(detail: string): void {
    this.#endingDetail ??= detail;
    this.#releaseFlushWaiters();
    if (!this.#isCut) this.#cutTimer ??= setTimeout(() => this.#cut(detail), OUTPUT_AFTER_EXIT_MS);
  }

  #cut(detail: string): void {
    if (this.#isCut) return;
    this.#isCut = true;
    clearTimeout(this.#cutTimer);
    const leftBytes = this.#framing.end();
    const reason = this.#exit?.detail ?? `the MCP server's connection ended: ${this.#endingDetail ?? detail}`;
    this.#endingDetail ??= detail;
    this.#releaseFlushWaiters();
    this.#options.onCut(
      leftBytes === 0 ? reason : `${reason}; ${leftBytes} bytes of an unfinished reply came`,
    );
    this.#stdout?.destroy();
    if (this.#exit !== undefined) this.#finish(this.#exit);
    else if (this.hasStarted) void this.terminate();
  }

  #finish(exit: ChildExit): void {
    clearTimeout(this.#killTimer);
    this.#exit = exit;
    this.#stdin?.destroy();
    // Its last words may still lie in the pipe; they are read, but must not keep this process alive.
    (this.#process?.stderr as Socket | null | undefined)?.unref();
    this.#options.onExit(exit);
    this.#resolveExited();
  }
}
