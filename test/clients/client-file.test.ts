// Somebody else's file is replaced whole or not at all: real files, real links, real accounts.

import {
  chmodSync,
  chownSync,
  linkSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, test } from 'vitest';
import {
  type ClientFile,
  encoded,
  findLeftovers,
  findWriteObstacle,
  readClientFile,
  replaceClientFile,
} from '../../src/clients/client-file.ts';
import { CleanUps } from '../gateway/processes.ts';

const isRoot = process.getuid?.() === 0;
const cleanUps = new CleanUps();
afterEach(cleanUps.run);

function written(text: string | Buffer, name = 'mcp.json'): string {
  const path = join(cleanUps.folder(), name);
  writeFileSync(path, text);
  return path;
}

async function read(path: string): Promise<ClientFile> {
  const found = await readClientFile(path);
  if (found.found !== 'file') throw new Error(JSON.stringify(found));
  return found.file;
}

const replace = async (path: string, text: string, staged?: () => void) => {
  const file = await read(path);
  return replaceClientFile({ file, bytes: encoded(text, file), ...(staged === undefined ? {} : { staged }) });
};

describe('reading', () => {
  test('keeps the mark at a file’s start apart, and puts it back', async () => {
    const bytes = Buffer.from('\uFEFF{}\r\n', 'utf8');
    const file = await read(written(bytes));
    expect(file.text).toBe('{}\r\n');
    expect(encoded(file.text, file).equals(bytes)).toBe(true);
  });

  test.each([
    ['nothing', (folder: string) => join(folder, 'none'), { found: 'nothing' }],
    ['nothing, because a folder above is a file', () => join(written(''), 'mcp.json'), { found: 'nothing' }],
    ['a folder', (folder: string) => folder, { found: 'obstacle', problem: 'it is no file' }],
    [
      'another encoding',
      () => written(Buffer.from('{"a":1}', 'utf16le').fill(0xff, 0, 1)),
      { found: 'obstacle', problem: 'it is not text in UTF-8' },
    ],
    [
      'a link to nothing',
      (folder: string) => {
        symlinkSync(join(folder, 'none'), join(folder, 'link'));
        return join(folder, 'link');
      },
      { found: 'obstacle', problem: 'it is a link to a file that does not exist' },
    ],
    [
      'a link to itself',
      (folder: string) => {
        symlinkSync('link', join(folder, 'link'));
        return join(folder, 'link');
      },
      { found: 'obstacle', problem: 'it is a link that leads to itself' },
    ],
  ])('%s is told in a sentence’s end', async (_what, make, expected) => {
    expect(await readClientFile(make(cleanUps.folder()))).toEqual(expected);
  });
});

describe('replacing', () => {
  test('keeps mode and owner', async () => {
    const path = written('old');
    chmodSync(path, 0o640);
    if (isRoot) chownSync(path, 65_534, 65_534);
    expect(await replace(path, 'new')).toEqual({ replaced: true });
    const { mode, uid } = statSync(path);
    expect([readFileSync(path, 'utf8'), mode & 0o7777]).toEqual(['new', 0o640]);
    expect(uid).toBe(isRoot ? 65_534 : process.getuid?.());
  });

  test('writes what a link leads to, and the links stay', async () => {
    const target = written('old', 'real.json');
    const folder = cleanUps.folder();
    symlinkSync(target, join(folder, 'second'));
    symlinkSync('second', join(folder, 'first'));
    await replace(join(folder, 'first'), 'new');
    expect(readFileSync(target, 'utf8')).toBe('new');
    expect(lstatSync(join(folder, 'first')).isSymbolicLink()).toBe(true);
    expect(readlinkSync(join(folder, 'second'))).toBe(target);
    expect(readdirSync(folder).toSorted()).toEqual(['first', 'second']);
  });

  test('the old file is there, whole, until the new one is; others cannot read the new one before', async () => {
    const path = written('old');
    chmodSync(path, 0o600);
    const seen: unknown[] = [];
    await replace(path, 'new', () => {
      const staging = readdirSync(join(path, '..')).find((name) => name.startsWith('.counterfoil-staging-'));
      seen.push(readFileSync(path, 'utf8'), readFileSync(join(path, '..', staging ?? ''), 'utf8'));
      seen.push(statSync(join(path, '..', staging ?? '')).mode & 0o777);
    });
    expect(seen).toEqual(['old', 'new', 0o600]);
    expect(readdirSync(join(path, '..'))).toEqual(['mcp.json']);
  });

  test('what dies in the middle leaves the old file, and what it left is removed by the next write', async () => {
    const path = written('old');
    await expect(
      replace(path, 'new', () => {
        throw Object.assign(new Error('the power went'), { code: 'EIO' });
      }),
    ).resolves.toMatchObject({ replaced: false, problem: 'the power went' });
    expect(readFileSync(path, 'utf8')).toBe('old');
    const left = join(path, '..', '.counterfoil-staging-0123456789ab-mcp.json');
    const young = join(path, '..', '.counterfoil-staging-ba9876543210-mcp.json');
    const foreign = join(path, '..', '.counterfoil-staging-0123456789ab-other.json');
    for (const file of [left, young, foreign]) writeFileSync(file, '{"mcpSer');
    for (const file of [left, foreign]) utimesSync(file, 1, 1);
    expect(await findLeftovers(path)).toEqual([left]);
    expect(await replace(path, 'new')).toEqual({ replaced: true });
    expect(readdirSync(join(path, '..')).toSorted()).toEqual(
      [foreign, young, path].map((file) => file.slice(join(path, '..').length + 1)).toSorted(),
    );
  });

  test('a file that somebody has changed since it was read keeps their text', async () => {
    const path = written('old');
    const result = await replace(path, 'new', () => writeFileSync(path, 'theirs'));
    expect(result).toEqual({ replaced: false, reason: 'changed' });
    expect(readFileSync(path, 'utf8')).toBe('theirs');
    expect(readdirSync(join(path, '..'))).toEqual(['mcp.json']);
  });

  test('a file with a second name is not replaced: the other name would keep the old text', async () => {
    const path = written('old');
    linkSync(path, join(path, '..', 'second'));
    expect(await replace(path, 'new')).toMatchObject({ problem: expect.stringContaining('hard link') });
    expect(readFileSync(path, 'utf8')).toBe('old');
  });

  test('a file that is gone by then is not made anew', async () => {
    const path = written('old');
    const file = await read(path);
    mkdirSync(join(path, '..', 'moved'));
    rmSync(path);
    expect(await replaceClientFile({ file, bytes: Buffer.from('new') })).toMatchObject({ replaced: false });
    expect(readdirSync(join(path, '..'))).toEqual(['moved']);
  });
});

test.skipIf(isRoot)(
  'a file that its owner has closed, or whose folder is closed, is not replaced',
  async () => {
    const path = written('old');
    chmodSync(path, 0o400);
    expect(await findWriteObstacle(path)).toBe('this account may not write it');
    chmodSync(path, 0o600);
    chmodSync(join(path, '..'), 0o500);
    expect(await findWriteObstacle(path)).toBe('this account may not write in its folder');
    chmodSync(join(path, '..'), 0o700);
  },
);
