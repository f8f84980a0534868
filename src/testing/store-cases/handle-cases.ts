// Cases about handles: what a store says of itself, and what closing one means.

import assert from 'node:assert/strict';
import {
  type Bench,
  type CaseDefinition,
  change,
  document,
  key,
  live,
  prefix,
  put,
  TENANT,
  versionOf,
  write,
} from './bench.ts';

export const handleCases: readonly CaseDefinition[] = [
  {
    name: 'a store says which engine it is, in which version, and with which settings',
    async run({ store }) {
      const { engine, version, settings } = store.durability;
      assert(engine !== '' && version !== '');
      assert(Object.keys(settings).length > 0);
    },
  },
  {
    name: 'the changes of one call and of one turn share a transaction',
    async run({ store }) {
      const before = store.commits;
      await put(store, change([write('op:a', 0)]), change([write('op:b', 0)]));
      assert.equal(store.commits, before + 1);
      await Promise.all(['op:c', 'op:d', 'op:e'].map((stream) => put(store, change([write(stream, 0)]))));
      assert.equal(store.commits, before + 2);
    },
  },
  {
    name: 'closing waits for the calls already made, and calls after it fail',
    async run({ store }) {
      const stored = put(store, change([write('op:a', 0)]));
      await store.close();
      await stored;
      const closed = { name: 'StoreFault', code: 'ERR_STORE_UNAVAILABLE', fate: 'not_stored' };
      await assert.rejects(store.commit([change([write('op:b', 0)])]), closed);
      await assert.rejects(store.read(TENANT, ['op:a']), closed);
      await store.close();
    },
  },
];

/** For stores whose data outlives a handle and is shared by several. */
export const sharedCases: readonly CaseDefinition[] = [
  {
    name: 'opening again finds everything as it was',
    async run({ store, open }) {
      const documents = [document('op:a', 'kept')];
      await put(
        store,
        change([write('op:a', 0, { live: live('a') })], {
          documents,
          claims: [{ key: key(1), sequence: 4, holder: 'op:a' }],
          crossRun: [{ key: key(2), stream: 'op:a' }],
        }),
      );
      const all = async (from: Bench['store']) => ({
        read: await from.read(TENANT, ['op:a']),
        history: await from.history(TENANT, 'op:a'),
        live: await from.live({ tenant: TENANT, limit: 10 }),
        claims: await from.latestClaims(TENANT, [key(1)]),
        crossRun: await from.crossRun(TENANT, [prefix(key(2))], 10),
        documents: await from.documents(TENANT, documents),
      });
      const before = await all(store);
      assert.equal(before.claims[0]?.sequence, 4);
      await put(store, change([write('op:last', 0)]));
      await store.close();
      const again = await open();
      assert.deepEqual(await all(again), before);
      assert.equal(await versionOf(again, 'op:last'), 1);
      await put(again, change([write('op:a', 1)]));
    },
  },
  {
    name: 'a second handle sees what was stored, and is told that something was',
    async run({ store, open }) {
      await put(store, change([write('op:a', 0)]));
      const other = await open();
      assert.equal(await versionOf(other, 'op:a'), 1);
      const before = await other.foreignCommits();
      assert.equal(await other.foreignCommits(), before);
      await put(store, change([write('op:a', 1)]));
      assert.notEqual(await other.foreignCommits(), before);
      assert.equal(await versionOf(other, 'op:a'), 2);
      assert.deepEqual(await other.commit([change([write('op:a', 1)])]), [
        { outcome: 'stale', stream: 'op:a', version: 2 },
      ]);
    },
  },
  {
    name: 'two handles race for two hundred claims, and each claim has exactly one winner',
    async run({ store, open }) {
      const handles = [store, await open()];
      const numbers = Array.from({ length: 200 }, (_, number) => number);
      const wins = await Promise.all(
        handles.map(async (handle, racer) => {
          // From opposite ends, so that each handle wins some and they meet in the middle.
          const order = racer === 0 ? numbers : numbers.toReversed();
          const won = new Set<number>();
          for (let start = 0; start < order.length; start += 10) {
            const batch = order.slice(start, start + 10);
            const results = await Promise.all(
              batch.map((number) => {
                const holder = `op:${racer}-${number}`;
                const claims = [{ key: key(number), sequence: 0, holder }];
                return handle.commit([change([write(holder, 0)], { claims })]);
              }),
            );
            for (const [index, [result]] of results.entries()) {
              const number = batch[index] as number;
              if (result?.outcome === 'stored') won.add(number);
              else
                assert.deepEqual(result, {
                  outcome: 'taken',
                  key: key(number),
                  sequence: 0,
                  by: `op:${1 - racer}-${number}`,
                });
            }
          }
          return won;
        }),
      );
      const [ours, theirs] = wins as [Set<number>, Set<number>];
      for (const number of numbers) {
        assert.equal(
          Number(ours.has(number)) + Number(theirs.has(number)),
          1,
          `key ${number} has not one winner`,
        );
      }
      const held = await store.latestClaims(TENANT, numbers.map(key));
      assert.deepEqual(
        held.map((claim) => claim?.holder),
        numbers.map((number) => `op:${ours.has(number) ? 0 : 1}-${number}`),
      );
      const losers = numbers.map((number) => `op:${ours.has(number) ? 1 : 0}-${number}`);
      assert((await store.read(TENANT, losers)).every((record) => record === undefined));
    },
  },
  {
    name: 'two handles count up one stream, and no step is lost or made twice',
    async run({ store, open }) {
      const count = async (handle: Bench['store']): Promise<number> => {
        let stored = 0;
        while (stored < 40) {
          const version = await versionOf(handle, 'lock:counter');
          const [result] = await handle.commit([change([write('lock:counter', version)])]);
          if (result?.outcome === 'stored') stored += 1;
        }
        return stored;
      };
      const steps = await Promise.all([store, await open()].map(count));
      assert.deepEqual(steps, [40, 40]);
      assert.equal(await versionOf(store, 'lock:counter'), 80);
      const history = await store.history(TENANT, 'lock:counter');
      assert.deepEqual(
        history.map((stored) => stored.version),
        Array.from({ length: 80 }, (_, index) => index + 1),
      );
    },
  },
];
