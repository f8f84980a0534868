// `init` and `leave` are killed while they write: the client's file is what it was, or what it was to be.

import { type ChildProcess, spawn } from 'node:child_process';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { setImmediate as turn } from 'node:timers/promises';
import { afterEach, expect, test } from 'vitest';
import { CleanUps, COUNTERFOIL } from '../gateway/processes.ts';
import { cursorFile, Home } from './home.ts';

const cleanUps = new CleanUps();
afterEach(cleanUps.run);

const CURSOR = '.cursor/mcp.json';
const STAGING = '.counterfoil-staging-';

/** Large enough that writing it takes a while. */
function bigHome(): Home {
  const home = new Home(cleanUps);
  const servers = { s: home.toolsEntry() };
  home.write(CURSOR, `{"filler":"${'x'.repeat(24 * 1024 * 1024)}",${cursorFile(servers).slice(1)}`);
  return home;
}

/** Kills a process when something is seen. @returns whether it was killed before it ended by itself */
async function killedWhen(child: ChildProcess, isSeen: () => boolean): Promise<boolean> {
  const over = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  while (child.exitCode === null && !isSeen()) await turn();
  child.kill('SIGKILL');
  await over;
  return child.signalCode === 'SIGKILL';
}

const stagings = (path: string): readonly string[] =>
  readdirSync(dirname(path)).filter((name) => name.startsWith(STAGING));

test('killed while the new file is written, either command leaves a whole one, and both can be called again', async () => {
  const home = bigHome();
  const before = home.read(CURSOR);
  const env = { ...process.env, ...home.env };
  const kill = (command: string): Promise<boolean> => {
    const known = stagings(home.path(CURSOR)).length;
    const child = spawn(process.execPath, [COUNTERFOIL, command, '--yes'], {
      cwd: home.project,
      env,
      stdio: 'ignore',
    });
    return killedWhen(child, () => stagings(home.path(CURSOR)).length > known);
  };
  let fired = 0;
  for (let round = 0; round < 3; round += 1) {
    if (await kill('init')) fired += 1;
    const isWhole = home.read(CURSOR) === before || home.read(CURSOR).includes('counterfoil.js');
    expect(isWhole && JSON.parse(home.read(CURSOR)) !== null).toBe(true);
  }
  expect(fired).toBeGreaterThan(0);
  await home.run(['init', '--yes']);
  const ours = home.read(CURSOR);
  expect(JSON.parse(ours).mcpServers.s.args).toContain(COUNTERFOIL);
  if (await kill('leave')) fired += 1;
  expect([before, ours]).toContain(home.read(CURSOR));
  await home.run(['leave', '--yes']);
  expect(home.read(CURSOR)).toBe(before);
}, 60_000);

test('control: a file that is written in its place is torn by the same kill', async () => {
  const path = join(cleanUps.folder(), 'mcp.json');
  writeFileSync(path, '{"old":true}');
  const program = `
    const fs = require('node:fs');
    const file = fs.openSync(${JSON.stringify(path)}, 'w');
    for (let count = 0; count < 1e6; count += 1) fs.writeSync(file, '{"new":[' + 'x'.repeat(1024));`;
  const child = spawn(process.execPath, ['-e', program], { stdio: 'ignore' });
  expect(await killedWhen(child, () => readFileSync(path).length > 64 * 1024)).toBe(true);
  expect(() => JSON.parse(readFileSync(path, 'utf8'))).toThrow(/JSON/);
});
