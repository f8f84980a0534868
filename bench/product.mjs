// The product as a program uses it: the library's front door, in front of a destination made of one function
// that sends the frozen payload by the client that every leg uses.

import { join } from 'node:path';
import { functionDestination, openLedger } from '../dist/index.js';
import { ReopeningStore } from '../dist/store/reopening-store.js';
import { openSqliteStore } from '../dist/store/sqlite/sqlite-store.js';
import { payload } from './payloads.mjs';

const DESTINATION = 'records';

/** What a contract states of a destination that can be read back; without it, an answer settles the write. */
const READ_BACK = {
  id: 'create_record',
  match: ['create_record'],
  effect: 'create',
  completion: { kind: 'synchronous' },
  guards: [],
  lookups: [],
  readback: {
    tool: { name: 'get_record', arguments: { key: '{key}' } },
    matches: [{ from: 'json', path: '/title', equals: '{title}' }],
    evidence: { grade: 'documented', source: 'bench/destination.mjs' },
  },
  outcomes: [],
  reversals: [{ kind: 'none', evidence: { grade: 'documented', source: 'bench/destination.mjs' } }],
};

function facts(withReadBack) {
  return {
    destination: DESTINATION,
    tool: 'create_record',
    class: 'ordinary',
    classSource: 'configuration',
    repeat: 'unique',
    checksArguments: false,
    ...(withReadBack ? { operation: READ_BACK } : {}),
    digest: (withReadBack ? 'b' : 'a').repeat(64),
  };
}

/**
 * @param {{ data: string, client: { post(text: string): Promise<unknown>, record(key: string): Promise<unknown> },
 *   withReadBack?: boolean, driver?: object }} options `driver`: the SQLite engine, when it is not the usual one
 */
export async function openProduct({ data, client, withReadBack = false, driver }) {
  const file = join(data, 'ledger.sqlite');
  // What `openLedger` makes by itself; made here because only the store counts its commits. It opens when it is
  // first used, after `openLedger` has made the key.
  const store = new ReopeningStore(() =>
    openSqliteStore({ file, ...(driver === undefined ? {} : { driver }) }),
  );
  const known = facts(withReadBack);
  const ledger = await openLedger({
    data,
    store,
    destinations: [
      functionDestination({
        name: DESTINATION,
        tools: { create_record: (_args, context) => client.post(context.payload) },
        asks: { get_record: ({ key }) => client.record(key) },
      }),
    ],
    factsFor: () => known,
    report: (message) => console.error(message),
  });
  const expected = withReadBack ? 'verified' : 'accepted';
  const run = { id: 'bench' };
  return {
    file,
    store,
    ledger,
    /** One operation, from its proposal until its caller has the answer and the ledger knows that it has. */
    async operation(key) {
      const answer = await ledger.write({
        destination: DESTINATION,
        tool: 'create_record',
        arguments: payload(key),
        requester: 'bench',
        run,
      });
      const found = answer.kind === 'reply' ? answer.operation.effect : answer.kind;
      if (found !== expected)
        throw new Error(`The operation of ${key} came out as ${found}, not ${expected}.`);
    },
    close: () => ledger.close(),
  };
}
