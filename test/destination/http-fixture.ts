// The destination of the wire-fault table for tests of the adapter: a process of its own, its log, and an adapter.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import {
  type HttpDestinationOptions,
  openHttpDestination,
} from '../../src/destination/http/http-destination.ts';
import { Secrets } from '../../src/destination/http/secrets.ts';
import type { SendRequest } from '../../src/destination/port.ts';

const SERVER = fileURLToPath(new URL('../../wire-faults/destination.mjs', import.meta.url));
export const PLENTY_MS = 20_000;

export interface LogEntry {
  readonly cell: string;
  readonly event: 'write' | 'record' | 'fired' | 'question';
  readonly headers?: Readonly<Record<string, string>>;
  readonly path?: string;
}

export interface HttpFixture {
  readonly origin: string;
  readonly folder: string;
  /** The address of a cell that does this to its first write. */
  url(fault?: string): string;
  log(event?: LogEntry['event']): readonly LogEntry[];
  stop(): Promise<void>;
}

export async function startDestination(): Promise<HttpFixture> {
  const folder = mkdtempSync(join(tmpdir(), 'counterfoil-http-'));
  const logPath = join(folder, 'log');
  const child: ChildProcess = spawn(process.execPath, [SERVER, logPath], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const [line] = (await once(child.stdout ?? process.stdin, 'data')) as [Buffer];
  const origin = `http://127.0.0.1:${line.toString().trim()}`;
  let cells = 0;
  return {
    origin,
    folder,
    url: (fault = 'none') => `${origin}/w/cell-${(cells += 1)}/${fault}`,
    log: (event) =>
      (existsSync(logPath) ? readFileSync(logPath, 'utf8') : '')
        .split('\n')
        .filter((text) => text !== '')
        .map((text) => JSON.parse(text) as LogEntry)
        .filter((entry) => event === undefined || entry.event === event),
    stop: async () => {
      if (child.exitCode === null && child.signalCode === null) {
        child.kill('SIGKILL');
        await once(child, 'exit');
      }
      rmSync(folder, { recursive: true, force: true, maxRetries: 10 });
    },
  };
}

export const TIMEOUTS = { connectMs: 2_000, queueMs: 500, headersMs: 10_000, bodyMs: 10_000, lateMs: 5_000 };

export function openAt(url: string, options: Partial<HttpDestinationOptions> = {}) {
  return openHttpDestination({
    name: 'tickets',
    url,
    secrets: new Secrets({}, {}),
    timeouts: TIMEOUTS,
    ...options,
  });
}

/** A frozen write of one ticket. */
export function frozen(title: string, headers: Readonly<Record<string, string>> = {}): string {
  return JSON.stringify({
    arguments: { title },
    request: {
      method: 'POST',
      target: '/tickets',
      headers: { 'content-type': 'application/json', ...headers },
      body: JSON.stringify({ title }),
    },
  });
}

export function sendRequest(payload: string, overrides: Partial<SendRequest> = {}): SendRequest {
  return {
    operation: 'op_1',
    attempt: 'att_1',
    tool: 'ticket.create',
    payload,
    replyTimeoutMs: PLENTY_MS,
    mayLeave: () => true,
    ...overrides,
  };
}

/** An address at which nobody listens. */
export async function deadUrl(): Promise<string> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as { readonly port: number };
  await new Promise((resolve) => server.close(resolve));
  return `http://127.0.0.1:${port}`;
}
