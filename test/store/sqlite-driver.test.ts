import { spawnSync } from 'node:child_process';
import { describe, expect, test } from 'vitest';
import {
  type DriverSource,
  isRecentEnough,
  loadSqliteDriver,
  type SqliteModule,
} from '../../src/store/sqlite/driver.ts';

/** An engine that answers with a version and can do nothing else. */
function source(name: string, version: string): DriverSource {
  const statement = { get: () => ({ version }) };
  const DatabaseSync = class {
    prepare = () => statement;
    close = () => undefined;
  };
  return { name, load: async () => ({ DatabaseSync }) as unknown as SqliteModule };
}

const absent: DriverSource = { name: 'node:sqlite', load: async () => undefined };
const broken: DriverSource = {
  name: 'package',
  load: async () => {
    throw new Error('No native build was found\nfor this platform');
  },
};

describe('the engine', () => {
  test('is of a version that is known not to lose pages', async () => {
    const driver = await loadSqliteDriver();
    expect(isRecentEnough(driver.version)).toBe(true);
    const connection = driver.open(':memory:');
    expect(connection.prepare('SELECT sqlite_version() AS version').get()).toEqual({
      version: driver.version,
    });
    expect(connection.isTransaction).toBe(false);
    connection.close();
  });

  test('is the first source that is recent enough', async () => {
    const chosen = await loadSqliteDriver([source('old', '3.51.2'), source('new', '3.51.3'), broken]);
    expect(chosen).toMatchObject({ name: 'new', version: '3.51.3' });
    expect((await loadSqliteDriver([absent, broken, source('last', '4.0.0')])).name).toBe('last');
  });

  test('that does not load is a fault that says what was tried and what to do', async () => {
    await expect(loadSqliteDriver([absent, broken])).rejects.toMatchObject({
      name: 'StoreFault',
      code: 'ERR_STORE_UNAVAILABLE',
      fate: 'not_stored',
      message: expect.stringMatching(
        /^No SQLite of version 3\.51\.3 or later could be loaded \(node:sqlite: not part of Node \S+; package: No native build was found\)\. Use Node 24 or later, or install/,
      ),
    });
  });

  test('that is too old is refused with its version', async () => {
    await expect(loadSqliteDriver([source('node:sqlite', '3.51.2'), broken])).rejects.toMatchObject({
      code: 'ERR_STORE_VERSION',
      message: expect.stringContaining('node:sqlite: carries SQLite 3.51.2'),
    });
  });

  test.each([
    ['3.51.3', true],
    ['3.52.0', true],
    ['4.0.0', true],
    ['3.51.2', false],
    ['3.6.23', false],
    ['2.99.99', false],
    ['3.51', false],
    ['', false],
    ['unknown', false],
  ])('version %s is recent enough: %s', (version, expected) => {
    expect(isRecentEnough(version)).toBe(expected);
  });

  test('is loaded without a line on stderr, and without keeping other warnings back', () => {
    const script = `
      const { loadSqliteDriver } = await import('./dist/store/sqlite/driver.js');
      const before = process.emitWarning;
      await loadSqliteDriver();
      if (process.emitWarning !== before) throw new Error('emitWarning was not put back');
      await new Promise((resolve) => {
        process.on('warning', (warning) => warning.message === 'ours' && resolve());
        process.emitWarning('ours');
      });
      console.log('done');`;
    const { stdout, stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', script], {
      encoding: 'utf8',
      env: { ...process.env, NODE_NO_WARNINGS: '', NODE_OPTIONS: '' },
    });
    expect(stdout).toBe('done\n');
    expect(stderr).toContain('Warning: ours');
    expect(stderr).not.toContain('SQLite');
  });
});
