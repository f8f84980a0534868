// How many bytes the product has its store write for one operation, measured at the engine: the values that are
// bound to INSERT and UPDATE, in the size in which SQLite stores them, commit by commit. Index entries and
// deleted rows are not counted.

import { mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { loadSqliteDriver } from '../dist/store/sqlite/driver.js';
import { median } from './figures.mjs';
import { nextKey } from './payloads.mjs';
import { openProduct } from './product.mjs';

const OPERATIONS = 40;

/** The median over a few lone operations: what the claiming commit and the outcome's commit write. */
export async function measureRowBytes({ directory, client }) {
  const commits = [];
  let bytes = 0;
  const driver = watchedDriver(await loadSqliteDriver(), {
    onWrite: (values) => {
      for (const value of values) bytes += storedSize(value);
    },
    onCommit: () => {
      if (bytes > 0) commits.push(bytes);
      bytes = 0;
    },
  });
  const data = await mkdtemp(join(directory, 'rows-'));
  const product = await openProduct({ data, client, driver });
  const claims = [];
  const outcomes = [];
  for (let made = 0; made < OPERATIONS; made += 1) {
    commits.length = 0;
    await product.operation(nextKey());
    // Beside an operation's own two, a commit of the worker's beat or of delivery marks may fall between.
    if (commits.length !== 2) continue;
    claims.push(commits[0]);
    outcomes.push(commits[1]);
  }
  await product.close();
  await rm(data, { recursive: true });
  if (claims.length < OPERATIONS / 2)
    throw new Error('The rows could not be measured: no operation made two commits.');
  return { claim: median(claims), outcome: median(outcomes), measuredOver: claims.length };
}

function watchedDriver(driver, { onWrite, onCommit }) {
  const watchStatement = (statement, sql) => {
    const isWrite = /^\s*(INSERT|UPDATE)/.test(sql);
    // A store may execute by any of the three, whether or not it wants what they give.
    const watched =
      (method) =>
      (...values) => {
        if (isWrite) onWrite(values);
        const result = statement[method](...values);
        if (sql === 'COMMIT') onCommit();
        return result;
      };
    return {
      run: watched('run'),
      get: watched('get'),
      all: watched('all'),
      setReturnArrays: (enabled) => statement.setReturnArrays(enabled),
    };
  };
  return {
    ...driver,
    open(file) {
      const connection = driver.open(file);
      return {
        get isTransaction() {
          return connection.isTransaction;
        },
        exec: (sql) => connection.exec(sql),
        prepare: (sql) => watchStatement(connection.prepare(sql), sql),
        close: () => connection.close(),
      };
    },
  };
}

/** https://sqlite.org/fileformat.html, "Record Format": the content of a value, without its one-byte type. */
function storedSize(value) {
  if (value === null) return 0;
  if (typeof value === 'string') return Buffer.byteLength(value);
  if (typeof value !== 'number') return value.byteLength;
  const magnitude = value < 0 ? -value - 1 : value;
  if (magnitude <= 1) return 0;
  if (magnitude < 2 ** 7) return 1;
  if (magnitude < 2 ** 15) return 2;
  if (magnitude < 2 ** 23) return 3;
  if (magnitude < 2 ** 31) return 4;
  return magnitude < 2 ** 47 ? 6 : 8;
}
