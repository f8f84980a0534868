import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import { takeProcessLock } from '../../src/store/sqlite/process-lock.ts';
import { until } from '../gateway/processes.ts';

const folder = mkdtempSync(join(tmpdir(), 'counterfoil-lock-'));
afterEach(() => rmSync(folder, { recursive: true, force: true }));

test('a lock is one process’s, and free again as soon as that is killed', async () => {
  const file = join(folder, 'lock.sqlite');
  const module = new URL('../../dist/store/sqlite/process-lock.js', import.meta.url).href;
  const holder = spawn(process.execPath, [
    '--input-type=module',
    '-e',
    `import { takeProcessLock } from ${JSON.stringify(module)};
     console.log((await takeProcessLock(${JSON.stringify(file)})) === undefined ? 'taken' : 'held');
     setInterval(() => {}, 1000);`,
  ]);
  let said = '';
  holder.stdout.setEncoding('utf8').on('data', (chunk: string) => {
    said += chunk;
  });
  await until(() => said === 'held\n', 'the other process to have it');
  expect(await takeProcessLock(file)).toBeUndefined();
  const gone = new Promise((resolve) => holder.once('exit', resolve));
  holder.kill('SIGKILL');
  await gone;
  const lock = await takeProcessLock(file);
  expect(lock).toBeDefined();
  lock?.release();
  const again = await takeProcessLock(file);
  expect(again).toBeDefined();
  again?.release();
});
