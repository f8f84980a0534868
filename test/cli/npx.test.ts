// Called by npx: nothing of us is in anybody's PATH, and every hint must be one that can be typed.

import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import { CleanUps, COUNTERFOIL, LineProcess, textOf, toolsServer } from '../gateway/processes.ts';
import { cursorFile, Home } from './home.ts';

/** It starts several processes; on a busy machine they take their time. */
const PATIENT = { timeout: 90_000 };

const cleanUps = new CleanUps();
afterEach(cleanUps.run);

/** This build where npx would have put it: in its cache, beside what it needs. */
function inNpxCache(home: Home): string {
  const checkout = join(dirname(COUNTERFOIL), '../..');
  const modules = home.path('.npm/_npx/0a1b2c3d4e5f6071/node_modules');
  const own = join(modules, 'counterfoil');
  mkdirSync(own, { recursive: true });
  cpSync(join(checkout, 'dist'), join(own, 'dist'), { recursive: true });
  cpSync(join(checkout, 'package.json'), join(own, 'package.json'));
  const { dependencies } = JSON.parse(readFileSync(join(checkout, 'package.json'), 'utf8')) as {
    readonly dependencies: { readonly [name: string]: string };
  };
  for (const name of Object.keys(dependencies)) {
    mkdirSync(dirname(join(modules, name)), { recursive: true });
    symlinkSync(join(checkout, 'node_modules', name), join(modules, name));
  }
  expect(readdirSync(modules)).toContain('counterfoil');
  return join(own, 'dist/cli/counterfoil.js');
}

test(
  'init writes entries that start us by npx, and tells a person to call us so, as the model is told',
  PATIENT,
  async () => {
    const home = new Home(cleanUps);
    const command = inNpxCache(home);
    home.write('.cursor/mcp.json', cursorFile({ notes: home.toolsEntry() }));
    const { stdout } = spawnSync(process.execPath, [command, 'init', '--yes'], {
      cwd: home.project,
      env: { ...process.env, ...home.env },
      encoding: 'utf8',
    });
    expect(stdout).toContain('counterfoil is not in your PATH: say npx counterfoil in its place.\n');
    expect(stdout).toContain(
      'What waits for a person: npx counterfoil queue. To take all of this back: npx ',
    );
    expect(JSON.parse(home.read('.cursor/mcp.json')).mcpServers.notes.command).toBe('npx');

    const folder = cleanUps.folder();
    writeFileSync(
      join(folder, 'tools.json'),
      JSON.stringify([{ name: 'erase', inputSchema: { type: 'object' } }]),
    );
    const config = join(folder, 'gateway.yaml');
    writeFileSync(config, 'destination: fixture\ntools:\n  erase: {class: irreversible}\n');
    const gateway = cleanUps.started(
      new LineProcess(process.execPath, [
        ...[command, 'mcp', '--config', config, '--data', join(folder, 'data')],
        ...['--', ...toolsServer(folder)],
      ]),
    );
    await gateway.initialize();
    expect(textOf(await gateway.call('erase', { thing: 7 }))).toContain('where (npx counterfoil queue)');
    const queue = spawnSync(process.execPath, [command, 'queue', '--data', join(folder, 'data')], {
      encoding: 'utf8',
    });
    expect(queue.stdout).toMatch(/To decide: npx counterfoil approve op_\w+ --digest [0-9a-f]{12} /);
    expect(queue.stdout).toMatch(/Set it first, in a terminal: npx counterfoil passphrase set\n/);
    expect(queue.stdout).not.toMatch(/(?<!npx )counterfoil (approve|passphrase)/);
  },
);
