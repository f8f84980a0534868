// The journal of what was changed in other programs' files: kept before the change, readable after a crash.

import { appendFileSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import {
  type GuardedEntry,
  JOURNAL_FILE,
  keepBackup,
  readJournal,
  recordGuarded,
  recordLeft,
} from '../../src/clients/journal.ts';
import { CleanUps } from '../gateway/processes.ts';

const cleanUps = new CleanUps();
afterEach(cleanUps.run);

const entry = (name: string): Omit<GuardedEntry, 'id'> => ({
  path: ['mcpServers', name],
  before: '{"command":"x"}',
  after: '{"command":"y"}',
  at: 1,
  client: 'cursor',
  title: 'Cursor',
  file: '/c/mcp.json',
  name,
  launch: `launch of ${name}`,
  backup: '/b',
});
const namesIn = async (data: string): Promise<readonly string[]> =>
  (await readJournal(data)).guarded.map(({ name }) => name);

test('what was guarded is known until it is left, and its name after that', async () => {
  const data = join(cleanUps.folder(), 'data');
  expect((await readJournal(data)).guarded).toEqual([]);
  await recordGuarded(data, [entry('a'), entry('b')]);
  const { guarded } = await readJournal(data);
  await recordLeft(data, [guarded[0]?.id ?? ''], 2);
  const journal = await readJournal(data);
  expect(journal.guarded.map(({ name }) => name)).toEqual(['b']);
  expect([...journal.names]).toEqual([
    ['a', 'launch of a'],
    ['b', 'launch of b'],
  ]);
});

test('a line that a crash has cut is told, and takes no other with it', async () => {
  const data = join(cleanUps.folder(), 'data');
  await recordGuarded(data, [entry('a')]);
  appendFileSync(join(data, JOURNAL_FILE), '{"event":"guarded","id":"c');
  await recordGuarded(data, [entry('b')]);
  expect(await namesIn(data)).toEqual(['a', 'b']);
  expect((await readJournal(data)).unreadable).toBe(1);
});

test.each(['{}', '7', 'null', '{"event":"guarded","id":"x"}', '{"event":"else","id":"x"}'])(
  'a line that says something else is counted and not used: %s',
  async (line) => {
    const data = cleanUps.folder();
    writeFileSync(join(data, JOURNAL_FILE), `${line}\n`);
    expect(await readJournal(data)).toMatchObject({ guarded: [], unreadable: 1 });
  },
);

test('several at once lose nothing', async () => {
  const data = join(cleanUps.folder(), 'data');
  const names = Array.from({ length: 20 }, (_, index) => `s${index}`);
  await Promise.all(names.map((name) => recordGuarded(data, [entry(name)])));
  expect((await namesIn(data)).toSorted()).toEqual(names.toSorted());
});

test('journal and copies are this account’s alone, and a copy has every byte', async () => {
  const data = join(cleanUps.folder(), 'data');
  await recordGuarded(data, [entry('a')]);
  const bytes = Buffer.from([0xef, 0xbb, 0xbf, 0x7b, 0x7d, 0x0d, 0x0a]);
  const copy = await keepBackup(data, '/c/mcp.json', bytes, 0);
  expect(readFileSync(copy).equals(bytes)).toBe(true);
  const modes = [data, join(data, JOURNAL_FILE), join(copy, '..'), copy].map(
    (path) => statSync(path).mode & 0o777,
  );
  expect(modes).toEqual([0o700, 0o600, 0o700, 0o600]);
  expect(await keepBackup(data, '/c/mcp.json', bytes, 0)).not.toBe(copy);
});
