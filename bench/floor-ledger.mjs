// The floor: the least that a ledger of durable writes can be, written by hand.
//
// The same SQLite engine, file settings and fsync as the product; group commit per turn of the event loop; two
// commits per operation: the claim by a unique key with the payload, then, after the POST, the outcome in the same
// row, found by the key. The key is a hash that is led by its hour, as keys of intents are. The rows have as many
// bytes as the product's, and their texts are made for each operation, as every ledger must make them: JSON of
// members and values. `isAppendOnly` writes the outcome to a table of its own in place of the UPDATE: no ledger that
// answers for one operation by one row, and cheaper still.

import { createHash } from 'node:crypto';
import { loadSqliteDriver } from '../dist/store/sqlite/driver.js';
import { openDatabase } from '../dist/store/sqlite/open-database.js';
import { payload } from './payloads.mjs';

const TABLES = `
CREATE TABLE floor_operation (
  id INTEGER PRIMARY KEY, key BLOB NOT NULL UNIQUE, payload TEXT NOT NULL, record TEXT NOT NULL,
  status INTEGER NOT NULL, reply TEXT, settled TEXT
) STRICT;
CREATE TABLE floor_outcome (operation INTEGER PRIMARY KEY, reply TEXT NOT NULL, settled TEXT NOT NULL) STRICT;
`;

const KEY_BYTES = 20;
/** Of one member of a record, name and punctuation included: what the product's have in the mean. */
const MEMBER_BYTES = 40;

/** Members enough that the text of a record has as many bytes, those of a record's head apart. */
function factsOf(key, bytes) {
  const head = JSON.stringify({ key, at: Date.now(), facts: {} }).length;
  const facts = {};
  for (let left = bytes - head; left > 0; left -= MEMBER_BYTES) {
    const name = `fact_${String(Object.keys(facts).length).padStart(2, '0')}`;
    facts[name] = '-'.repeat(Math.max(1, Math.min(MEMBER_BYTES, left) - name.length - 6));
  }
  return facts;
}

/**
 * @param {{ file: string, client: { post(text: string): Promise<unknown> },
 *   rowBytes: { claim: number, outcome: number }, isAppendOnly?: boolean }} options
 */
export async function openFloorLedger({ file, client, rowBytes, isAppendOnly = false }) {
  const driver = await loadSqliteDriver();
  const { connection, settings } = await openDatabase({ file, driver, lockWaitMs: 1_000 });
  connection.exec(TABLES);
  const begin = connection.prepare('BEGIN IMMEDIATE');
  const commit = connection.prepare('COMMIT');
  const claim = connection.prepare(
    'INSERT INTO floor_operation (key, payload, record, status) VALUES (?, ?, ?, 0) ON CONFLICT (key) DO NOTHING',
  );
  const settle = connection.prepare(
    isAppendOnly
      ? 'INSERT INTO floor_outcome (reply, settled, operation) VALUES (?, ?, ?)'
      : 'UPDATE floor_operation SET status = 2, reply = ?, settled = ? WHERE key = ?',
  );

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

  let claimFacts;
  let outcomeFacts;

  return {
    settings,
    get commits() {
      return commits;
    },
    async operation(key) {
      const text = JSON.stringify(payload(key));
      // Keys and payloads all have one length, replies nearly so.
      claimFacts ??= factsOf(key, rowBytes.claim - KEY_BYTES - Buffer.byteLength(text));
      const claimed = JSON.stringify({ key, at: Date.now(), facts: claimFacts });
      const binaryKey = claimKey(key);
      const { changes, lastInsertRowid } = await write(() => claim.run(binaryKey, text, claimed));
      if (changes !== 1) throw new Error(`The key ${key} was claimed twice.`);
      const reply = JSON.stringify(await client.post(text));
      outcomeFacts ??= factsOf(key, rowBytes.outcome - Buffer.byteLength(reply));
      const settled = JSON.stringify({ key, at: Date.now(), facts: outcomeFacts });
      await write(() => settle.run(reply, settled, isAppendOnly ? lastInsertRowid : binaryKey));
    },
    close: () => connection.close(),
  };
}
