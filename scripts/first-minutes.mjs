// `npm run first-minutes`: packs this checkout, installs the package into an empty folder as a stranger would, and four
// servers that are not ours beside it; then runs the first minutes. Standard output is the run's own.

import { mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { installedOnce } from './on-demand.mjs';
import { npm, ROOT, runNode } from './processes.mjs';
import { setUpOrExit } from './setup.mjs';
import { figuresLine } from './test.mjs';

/** As they were measured for the shipped bindings: docs/bindings.md. */
const SERVERS = [
  '@modelcontextprotocol/server-filesystem@2026.8.31',
  '@modelcontextprotocol/server-memory@2026.8.31',
  '@playwright/mcp@0.0.83',
  '@notionhq/notion-mcp-server@2.5.2',
];

const figures = figuresLine({ passed: 0, failed: 1 });
await setUpOrExit({ figures });
const folder = mkdtempSync(join(tmpdir(), 'counterfoil-first-minutes-'));
try {
  const where = ['--servers', installedOnce(SERVERS), '--app', installPacked(join(folder, 'app'))];
  process.exitCode = await runNode(['first-minutes/first-minutes.mjs', ...where, ...process.argv.slice(2)]);
} catch (error) {
  process.stderr.write(`${error.message}\n`);
  process.stdout.write(`${figures}\n`);
  process.exitCode = 1;
} finally {
  rmSync(folder, { recursive: true, force: true });
}

/** What is published, where nothing else is. @returns {string} the folder that it is installed in */
function installPacked(app) {
  mkdirSync(app);
  // Set up is done already, and what it builds must not change while others use it.
  run(['pack', '--silent', '--ignore-scripts', '--pack-destination', app], ROOT);
  const [archive] = readdirSync(app);
  run(['install', '--prefix', app, '--no-audit', '--no-fund', join(app, archive)], app);
  return app;
}

function run(args, cwd) {
  const { status, stdout, stderr } = npm(args, cwd);
  if (status === 0) return;
  process.stderr.write(`${stdout ?? ''}${stderr ?? ''}`);
  throw new Error(`"npm ${args[0]}" ended with ${status}; its output is above.`);
}
