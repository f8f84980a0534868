// Several processes on one file. They run the built package, as they would anywhere else.

import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { loadSqliteDriver } from '../../src/store/sqlite/driver.ts';
import { openSqliteStore } from '../../src/store/sqlite/sqlite-store.ts';
import { change, key, put, TENANT, write } from '../../src/testing/store-cases/bench.ts';
import { temporaryDirectory } from './fixtures/temporary-place.ts';

const fixture = (name: string) => fileURLToPath(new URL(`./fixtures/${name}`, import.meta.url));

beforeAll(() => {
  const built = fileURLToPath(new URL('../../dist/store/sqlite/sqlite-store.js', import.meta.url));
  if (!existsSync(built))
    throw new Error('These tests run the built package: npm run build comes before them.');
});

interface Racer {
  readonly process: ChildProcess;
  readonly won: number[];
  readonly ended: Promise<unknown>;
}

/** Starts a racer; `onWin` hears of each win as the racer says it. Resolves when the racer is ready to go. */
async function startRacer(
  options: { readonly file: string; readonly name: string; readonly keys: number; readonly start: number },
  onWin: (racer: Racer) => void = () => undefined,
): Promise<Racer> {
  const { file, name, keys, start } = options;
  const child = spawn(
    process.execPath,
    [fixture('claim-racer.mjs'), file, name, String(keys), String(start)],
    {
      stdio: ['pipe', 'pipe', 'inherit'],
    },
  );
  onTestFinished(() => void child.kill('SIGKILL'));
  const racer: Racer = { process: child, won: [], ended: once(child, 'close') };
  const lines = createInterface({ input: child.stdout });
  const ready = once(lines, 'line');
  lines.on('line', (line) => {
    if (!line.startsWith('won ')) return;
    racer.won.push(Number(line.slice('won '.length)));
    onWin(racer);
  });
  await ready;
  return racer;
}

test('processes race for claims and one is killed: no claim has two holders, and none that was acknowledged is lost', async () => {
  const file = join(temporaryDirectory(), 'ledger.db');
  const keys = 1_200;
  const killAfter = (racer: Racer) => {
    if (racer.won.length === 60) racer.process.kill('SIGKILL');
  };
  // The killed one starts in a part of the keys of its own, so that it is sure to win some.
  const racers = [
    await startRacer({ file, name: 'killed', keys, start: 600 }, killAfter),
    await startRacer({ file, name: 'one', keys, start: 0 }),
    await startRacer({ file, name: 'two', keys, start: 0 }),
  ];
  for (const racer of racers) racer.process.stdin?.write('go\n');
  const ends = await Promise.all(racers.map((racer) => racer.ended));
  expect(ends).toEqual([
    [null, 'SIGKILL'],
    [0, null],
    [0, null],
  ]);

  const store = await openSqliteStore({ file });
  const numbers = Array.from({ length: keys }, (_, number) => number);
  const held = await store.latestClaims(TENANT, numbers.map(key));
  const holders = held.map((claim) => claim?.holder);
  const acknowledged = racers.flatMap((racer, index) =>
    racer.won.map((number) => ({ number, holder: `op:${['killed', 'one', 'two'][index]}-${number}` })),
  );
  expect(new Set(acknowledged.map(({ number }) => number)).size).toBe(acknowledged.length);
  expect(acknowledged.filter(({ number, holder }) => holders[number] !== holder)).toEqual([]);
  // What was stored is exactly one operation per key: the loser of a claim left nothing, and the killed
  // process left whole changes only, some of which it could not acknowledge any more.
  const streams = await store.streams({ tenant: TENANT, kind: 'op', limit: 10_000 });
  expect(new Set(streams.map((record) => record.stream))).toEqual(new Set(holders));
  expect(streams).toHaveLength(keys);
  expect(acknowledged.length).toBeLessThanOrEqual(keys);
  await store.close();

  const connection = (await loadSqliteDriver()).open(file);
  expect(connection.prepare('PRAGMA integrity_check').all()).toEqual([{ integrity_check: 'ok' }]);
  expect(connection.prepare('PRAGMA foreign_key_check').all()).toEqual([]);
  connection.close();
}, 60_000);

describe.skipIf(process.platform === 'win32')('a user who may not write', () => {
  const report = (file: string): unknown =>
    JSON.parse(execFileSync(process.execPath, [fixture('open-and-report.mjs'), file], { encoding: 'utf8' }));
  const unusable = (file: string, problem: string) => ({
    name: 'StoreFault',
    code: 'ERR_STORE_UNAVAILABLE',
    fate: 'not_stored',
    message: `The store at ${file} could not be opened: ${problem}.`,
  });

  test('in a directory is told so in one sentence', () => {
    const parent = temporaryDirectory();
    chmodSync(parent, 0o755);
    const directory = join(parent, 'data');
    mkdirSync(directory);
    chmodSync(directory, 0o555);
    const file = join(directory, 'ledger.db');
    expect(report(file)).toEqual(unusable(file, `this user may not write in ${directory}`));
    const deeper = join(directory, 'deeper');
    const inside = join(deeper, 'ledger.db');
    expect(report(inside)).toEqual(unusable(inside, `this user may not create ${deeper}`));
    chmodSync(directory, 0o755);
  });

  test('to a file that is there is told so in one sentence', async () => {
    const parent = temporaryDirectory();
    chmodSync(parent, 0o755);
    const file = join(parent, 'ledger.db');
    const store = await openSqliteStore({ file });
    await put(store, change([write('op:a', 0)]));
    await store.close();
    chmodSync(file, 0o444);
    expect(report(file)).toEqual(unusable(file, `this user may not write ${file}`));
  });
});
