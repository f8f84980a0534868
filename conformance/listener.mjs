// A program of Node in a process of its own that serves MCP at /mcp on a free port of loopback.

import { spawn } from 'node:child_process';
import { connect, createServer } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';

const START_MS = 20_000;
const STOP_MS = 5_000;
const POLL_MS = 20;
const SAID_MAX = 4_000;

/**
 * @param {string} name as in what is said when it does not start
 * @param {(port: number) => readonly string[]} argumentsFor for `node`
 * @returns {Promise<{ url: string, pid: number, said(): string, close(): Promise<void> }>} `said`: the end of its
 *   standard error
 * @throws {Error} when it ends or does not listen in time
 */
export async function startListener(name, argumentsFor) {
  const port = await freePort();
  const child = spawn(process.execPath, argumentsFor(port), { stdio: ['ignore', 'ignore', 'pipe'] });
  let said = '';
  child.stderr.setEncoding('utf8').on('data', (chunk) => {
    said = (said + chunk).slice(-SAID_MAX);
  });
  const ended = new Promise((resolve) => child.once('close', resolve));
  const close = async () => {
    child.kill('SIGTERM');
    const timer = setTimeout(() => child.kill('SIGKILL'), STOP_MS);
    await ended;
    clearTimeout(timer);
  };
  const deadline = performance.now() + START_MS;
  while (!(await accepts(port))) {
    const is = child.exitCode === null ? undefined : `ended with ${child.exitCode}`;
    if (is !== undefined || performance.now() > deadline) {
      await close();
      throw new Error(`${name} ${is ?? `does not listen after ${START_MS / 1_000} s`}: ${said.trim()}`);
    }
    await delay(POLL_MS);
  }
  return { url: `http://127.0.0.1:${port}/mcp`, pid: child.pid, said: () => said, close };
}

function accepts(port) {
  return new Promise((resolve) => {
    const socket = connect({ port, host: '127.0.0.1' });
    const tell = (is) => {
      socket.destroy();
      resolve(is);
    };
    socket.once('connect', () => tell(true));
    socket.once('error', () => tell(false));
  });
}

async function freePort() {
  const server = createServer();
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address();
  await new Promise((resolve) => server.close(resolve));
  return port;
}
