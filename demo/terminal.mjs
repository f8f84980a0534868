// A command with a controlling terminal: what it asks there is seen, and answered by typing.

import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { constants, tmpdir } from 'node:os';
import { join } from 'node:path';
import { spawn } from '@lydell/node-pty';

/** What waits for an answer ends like this, and nothing comes after it. */
const PROMPT = /: $/;

/**
 * Runs `node` in a session of its own whose terminal is a new one. Standard output and standard error go to files,
 * so that only what is asked on the terminal itself is on the screen.
 * @param {readonly string[]} args for `node`
 * @param {readonly string[]} answers typed one after the other, each at the next prompt
 * @param {{ env?: Record<string, string | undefined>, timeoutMs?: number }} [options]
 * @returns {Promise<{ code: number, signal: string | null, stdout: string, stderr: string, screen: string }>}
 */
export function runOnTerminal(args, answers, { env = process.env, timeoutMs = 25_000 } = {}) {
  const folder = mkdtempSync(join(tmpdir(), 'counterfoil-terminal-'));
  const [out, err] = ['stdout', 'stderr'].map((name) => join(folder, name));
  const script = 'out=$1; err=$2; shift 2; exec "$@" >"$out" 2>"$err"';
  const terminal = spawn('/bin/sh', ['-c', script, 'sh', out, err, process.execPath, ...args], {
    cols: 200,
    rows: 50,
    env,
  });
  let screen = '';
  let answered = 0;
  let seen = 0;
  return new Promise((resolve) => {
    const timer = setTimeout(() => terminal.kill('SIGKILL'), timeoutMs);
    terminal.onData((data) => {
      screen += data;
      if (answered >= answers.length || !PROMPT.test(screen.slice(seen))) return;
      seen = screen.length;
      terminal.write(`${answers[answered]}\r`);
      answered += 1;
    });
    terminal.onExit(({ exitCode, signal }) => {
      clearTimeout(timer);
      const [stdout, stderr] = [out, err].map((file) => readFileSync(file, 'utf8'));
      rmSync(folder, { recursive: true, force: true });
      const [name = null] = Object.entries(constants.signals).find(([, number]) => number === signal) ?? [];
      resolve({ code: exitCode, signal: name, stdout, stderr, screen });
    });
  });
}
