// The floor: the least that a ledger of durable writes can be, written by hand.
//
// The same SQLite engine, file settings and fsync as the product; group commit per turn of the event loop; two
// commits per operation: the claim by a unique key with the payload, then, after the POST, the outcome. The key
// is a hash that is led by its hour, as keys of intents are. The rows have as many bytes as the product's, padded
// with a constant text, and are only ever appended: that is the cheapest way to write them, so the product is
// compared with no straw man.

import { createHash } from 'node:crypto';
import { loadSqliteDriver } from '../dist/store/sqlite/driver.js';
import { openDatabase } from '../dist/store/sqlite/open-database.js';
import { payload } from './payloads.mjs';

const TABLES = `
CREATE TABLE floor_claim (id INTEGER PRIMARY KEY, key BLOB NOT NULL UNIQUE, payload TEXT NOT NULL, record TEXT NOT NULL) STRICT;
CREATE TABLE floor_outcome (claim INTEGER PRIMARY KEY, reply TEXT NOT NULL, record TEXT NOT NULL) STRICT;
`;

const KEY_BYTES = 20;

/** @param {{ file: string, client: { post(text: string): Promise<unknown> }, rowBytes: { claim: number, outcome: number } }} options */
export async function openFloorLedger({ file, client, rowBytes }) {
  const driver = await loadSqliteDriver();
  const { connection, settings } = await openDatabase({ file, driver, lockWaitMs: 1_000 });
  connection.exec(TABLES);
  const begin = connection.prepare('BEGIN IMMEDIATE');
  const commit = connection.prepare('COMMIT');
  const claim = connection.prepare(
    'INSERT INTO floor_claim (key, payload, record) VALUES (?, ?, ?) ON CONFLICT (key) DO NOTHING',
  );
  const settle = connection.prepare('INSERT INTO floor_outcome (claim, reply, record) VALUES (?, ?, ?)');

  let waiting = [];
  let commits = 0;
  const flush = () => {
    const batch = waiting;
    waiting = [];
    begin.run();
    const results = batch.map(({ run }) => run());
    commit.run();
    commits += 1;
    for (const [index, { resolve }] of batch.entries()) resolve(results[index]);
  };
  const write = (run) =>
    new Promise((resolve) => {
      if (waiting.length === 0) setImmediate(flush);
      waiting.push({ run, resolve });
    });

  const hour = Buffer.alloc(4);
  hour.writeUInt32BE(Math.floor(Date.now() / 3_600_000));
  const claimKey = (key) => Buffer.concat([hour, createHash('sha256').update(key).digest()], KEY_BYTES);

  const padding = (bytes, used) => '-'.repeat(Math.max(0, bytes - used));
  let claimPadding;
  let outcomePadding;

  return {
    settings,
    get commits() {
      return commits;
    },
    async operation(key) {
      const text = JSON.stringify(payload(key));
      // Keys and payloads all have one length, replies nearly so.
      claimPadding ??= padding(rowBytes.claim, KEY_BYTES + Buffer.byteLength(text));
      const { changes, lastInsertRowid } = await write(() => claim.run(claimKey(key), text, claimPadding));
      if (changes !== 1) throw new Error(`The key ${key} was claimed twice.`);
      const reply = JSON.stringify(await client.post(text));
      outcomePadding ??= padding(rowBytes.outcome, Buffer.byteLength(reply));
      await write(() => settle.run(lastInsertRowid, reply, outcomePadding));
    },
    close: () => connection.close(),
  };
}
