// Cases about several changes: those of one call are decided in order, those of many calls do not disturb
// each other.

import assert from 'node:assert/strict';
import type { ChangeResult } from '../../store/port.ts';
import {
  assertUntouched,
  type CaseDefinition,
  change,
  eventsOf,
  key,
  put,
  STORED,
  TENANT,
  versionOf,
  write,
} from './bench.ts';

export const callCases: readonly CaseDefinition[] = [
  {
    name: 'a call without changes has no results',
    async run({ store }) {
      assert.deepEqual(await store.commit([]), []);
    },
  },
  {
    name: 'the same claim twice in one call goes to the first change',
    async run({ store }) {
      const taking = (holder: string) =>
        change([write(holder, 0)], { claims: [{ key: key(1), sequence: 0, holder }] });
      assert.deepEqual(await store.commit([taking('op:a'), taking('op:b'), taking('op:c')]), [
        STORED,
        { outcome: 'taken', key: key(1), sequence: 0, by: 'op:a' },
        { outcome: 'taken', key: key(1), sequence: 0, by: 'op:a' },
      ]);
      await assertUntouched(store, 'op:b', 0);
      await assertUntouched(store, 'op:c', 0);
    },
  },
  {
    name: 'the same stream twice in one call: the second change sees the first',
    async run({ store }) {
      await put(store, change([write('op:a', 0)]));
      assert.deepEqual(await store.commit([change([write('op:a', 1)]), change([write('op:a', 1)])]), [
        STORED,
        { outcome: 'stale', stream: 'op:a', version: 2 },
      ]);
      assert.equal((await eventsOf(store, 'op:a')).length, 2);
      assert.deepEqual(await store.commit([change([write('op:a', 2)]), change([write('op:a', 3)])]), [
        STORED,
        STORED,
      ]);
      assert.equal(await versionOf(store, 'op:a'), 4);
    },
  },
  {
    name: 'what changes of one call require is looked at by each of them, also when one between them has written it',
    async run({ store }) {
      await put(store, change([write('rule:a', 0)]));
      const requiring = (stream: string, version: number) =>
        change([write(stream, 0)], { requires: [{ stream: 'rule:a', version }] });
      const results = await store.commit([
        requiring('op:a', 1),
        requiring('op:b', 1),
        change([write('rule:a', 1)]),
        requiring('op:c', 1),
        requiring('op:d', 2),
      ]);
      const stale = { outcome: 'stale', stream: 'rule:a', version: 2 };
      assert.deepEqual(results, [STORED, STORED, STORED, stale, STORED]);
      await assertUntouched(store, 'op:c', 0);
    },
  },
  {
    name: 'a lock is handed over inside one call',
    async run({ store }) {
      const lock = (expectedVersion: number, holder: string | null) =>
        write('lock:crm/7', expectedVersion, { state: { holder }, events: [] });
      await put(store, change([lock(0, 'op:a'), write('op:a', 0)]), change([write('op:b', 0)]));
      const results = await store.commit([
        change([write('op:b', 1), lock(1, 'op:b')], { requires: [{ stream: 'op:a', version: 2 }] }),
        change([write('op:a', 1), lock(1, null)]),
        change([write('op:b', 1), lock(2, 'op:b')], { requires: [{ stream: 'op:a', version: 2 }] }),
        change([write('op:c', 0), lock(2, 'op:c')]),
      ]);
      assert.deepEqual(results, [
        { outcome: 'stale', stream: 'op:a', version: 1 },
        STORED,
        STORED,
        { outcome: 'stale', stream: 'lock:crm/7', version: 3 },
      ]);
      const [held] = await store.read(TENANT, ['lock:crm/7']);
      assert.deepEqual(held?.state, { holder: 'op:b' });
      await assertUntouched(store, 'op:c', 0);
    },
  },
  {
    name: 'a stale change between two good neighbours disturbs neither',
    async run({ store }) {
      await put(store, change([write('op:b', 0)]));
      const results = await store.commit([
        change([write('op:a', 0)], { claims: [{ key: key(1), sequence: 0, holder: 'op:a' }] }),
        change([write('op:b', 0), write('op:x', 0)]),
        change([write('op:c', 0)], { claims: [{ key: key(2), sequence: 0, holder: 'op:c' }] }),
      ]);
      assert.deepEqual(results, [STORED, { outcome: 'stale', stream: 'op:b', version: 1 }, STORED]);
      assert.deepEqual(
        await Promise.all(['op:a', 'op:b', 'op:c', 'op:x'].map((stream) => versionOf(store, stream))),
        [1, 1, 1, 0],
      );
      const claims = await store.latestClaims(TENANT, [key(1), key(2)]);
      assert.deepEqual(
        claims.map((claim) => claim?.holder),
        ['op:a', 'op:c'],
      );
      assert.equal((await eventsOf(store, 'op:c')).length, 1);
    },
  },
  {
    name: 'results come in the order of the changes',
    async run({ store }) {
      await put(
        store,
        change([write('op:old', 0)], { claims: [{ key: key(0), sequence: 0, holder: 'op:old' }] }),
      );
      const changes = [];
      const expected: ChangeResult[] = [];
      for (let index = 0; index < 60; index += 1) {
        const stream = `op:${index}`;
        if (index % 3 === 0) {
          changes.push(change([write(stream, 0)]));
          expected.push(STORED);
        } else if (index % 3 === 1) {
          changes.push(change([write(stream, index)]));
          expected.push({ outcome: 'stale', stream, version: 0 });
        } else {
          changes.push(
            change([write(stream, 0)], { claims: [{ key: key(0), sequence: 0, holder: stream }] }),
          );
          expected.push({ outcome: 'taken', key: key(0), sequence: 0, by: 'op:old' });
        }
      }
      assert.deepEqual(await store.commit(changes), expected);
    },
  },
  {
    name: 'of many calls in one turn each gets its own results, and one stream has one winner',
    async run({ store }) {
      await put(store, change([write('op:shared', 0)]));
      const results = await Promise.all(
        Array.from({ length: 50 }, (_, index) =>
          store.commit([
            change([write(`op:${index}`, 0)]),
            change([write('op:shared', 1, { state: { winner: index } })]),
          ]),
        ),
      );
      assert(results.every(([own]) => own?.outcome === 'stored'));
      const winners = results.flatMap(([, shared], index) => (shared?.outcome === 'stored' ? [index] : []));
      assert.equal(winners.length, 1);
      const [record] = await store.read(TENANT, ['op:shared']);
      assert.deepEqual(record, { stream: 'op:shared', version: 2, state: { winner: winners[0] } });
      assert.equal((await eventsOf(store, 'op:49')).length, 1);
    },
  },
];
