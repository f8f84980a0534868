// How the scripts start other programs, and how a script knows that it is the one that was called.

import { spawn, spawnSync } from 'node:child_process';
import { realpathSync } from 'node:fs';
import { constants } from 'node:os';
import { fileURLToPath } from 'node:url';

/** The checkout, wherever the command was called from. */
export const ROOT = fileURLToPath(new URL('..', import.meta.url));

/** Whether the module at this address is the program, and not imported by it. */
export function isProgram(url) {
  return process.argv[1] !== undefined && realpathSync(process.argv[1]) === realpathSync(fileURLToPath(url));
}

/** Runs npm and waits: by npm's own file where npm called us, else by its name. */
export function npm(args, cwd) {
  const own = process.env.npm_execpath;
  const isScript = own !== undefined && /npm-cli\.[cm]?js$/.test(own);
  const [command, before] = isScript ? [process.execPath, [own]] : ['npm', []];
  return spawnSync(command, [...before, ...args], {
    cwd,
    encoding: 'utf8',
    maxBuffer: 64 * 1024 * 1024,
    // Only on Windows is npm a batch file, which needs a shell.
    shell: !isScript && process.platform === 'win32',
  });
}

/**
 * Runs a Node program in the checkout with this process's own input and output. The person's interrupt reaches
 * it directly, as a member of the same terminal group; a signal that was sent to us alone is passed on.
 * @param {readonly string[]} args for `node`
 * @returns {Promise<number>} its exit code, 128 + n when signal n ended it
 */
export function runNode(args) {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, args, { cwd: ROOT, stdio: 'inherit' });
    const passOn = (signal) => child.kill(signal);
    const ignore = () => {};
    process.on('SIGTERM', passOn);
    process.on('SIGINT', ignore);
    child.once('error', reject);
    child.once('close', (code, signal) => {
      process.off('SIGTERM', passOn);
      process.off('SIGINT', ignore);
      resolve(code ?? 128 + (constants.signals[signal] ?? 0));
    });
  });
}
