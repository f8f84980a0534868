// Cases about one change: it is stored wholly, or refused with the reason and leaves nothing.

import assert from 'node:assert/strict';
import type { Change } from '../../store/port.ts';
import {
  AT,
  assertIsBug,
  assertUntouched,
  type CaseDefinition,
  change,
  document,
  eventsOf,
  key,
  live,
  put,
  STORED,
  TENANT,
  versionOf,
  write,
} from './bench.ts';

export const changeCases: readonly CaseDefinition[] = [
  {
    name: 'a stream starts at version 1, and each commit that names its version appends to it',
    async run({ store }) {
      await put(store, change([write('op:a', 0)]));
      assert.deepEqual(await store.read(TENANT, ['op:a']), [
        { stream: 'op:a', version: 1, state: { of: 'op:a', version: 1 } },
      ]);
      await put(store, change([write('op:a', 1)]), change([write('op:a', 2)]));
      assert.deepEqual(await store.read(TENANT, ['op:a']), [
        { stream: 'op:a', version: 3, state: { of: 'op:a', version: 3 } },
      ]);
      assert.deepEqual(
        await eventsOf(store, 'op:a'),
        [1, 2, 3].map((version) => ({ type: 'written', of: 'op:a', version })),
      );
    },
  },
  {
    name: 'a mark is read with the version that it is about, is no history, and goes with the next write',
    async run({ store }) {
      await put(store, change([write('op:a', 0), write('op:b', 0)]));
      const marks = [
        { stream: 'op:a', version: 1 },
        // Of another version, and of nothing: not made, and no obstacle to the others.
        { stream: 'op:b', version: 2 },
        { stream: 'op:none', version: 1 },
      ];
      await put(store, change([], { at: AT + 5, marks }));
      const marked = { stream: 'op:a', version: 1, state: { of: 'op:a', version: 1 }, markedAt: AT + 5 };
      const unmarked = { stream: 'op:b', version: 1, state: { of: 'op:b', version: 1 } };
      assert.deepEqual(await store.read(TENANT, ['op:a', 'op:b', 'op:none']), [marked, unmarked, undefined]);
      for (const newest of [false, true]) {
        const listed = await store.streams({ tenant: TENANT, kind: 'op', newest, limit: 10 });
        assert.deepEqual(
          [...listed].sort((a, b) => (a.stream < b.stream ? -1 : 1)),
          [marked, unmarked],
        );
      }
      // The first one stays.
      await put(store, change([], { at: AT + 6, marks: [{ stream: 'op:a', version: 1 }] }));
      assert.deepEqual(await store.read(TENANT, ['op:a']), [marked]);
      assert.equal((await store.history(TENANT, 'op:a')).length, 1);
      await put(store, change([write('op:a', 1, { live: live('a') })]), change([write('op:b', 1)]));
      const after = await store.read(TENANT, ['op:a', 'op:b']);
      assert.deepEqual(
        after.map((record) => record?.markedAt),
        [undefined, undefined],
      );
      await put(
        store,
        change([write('op:a', 2)], { marks: [{ stream: 'op:a', version: 3 }] }),
        change([], { marks: [{ stream: 'op:b', version: 2 }] }),
        change([write('op:b', 2)]),
      );
      const together = await store.read(TENANT, ['op:a', 'op:b']);
      assert.deepEqual(
        together.map((record) => [record?.version, record?.markedAt]),
        [
          [3, AT],
          [3, undefined],
        ],
      );
      const [refused] = await store.commit([
        change([write('op:a', 1)], { marks: [{ stream: 'op:b', version: 3 }] }),
      ]);
      assert.equal(refused?.outcome, 'stale');
      assert.equal((await store.read(TENANT, ['op:b']))[0]?.markedAt, undefined);
    },
  },
  {
    name: 'what is fixed comes back with every reading of the stream, as it was at first',
    async run({ store }) {
      const fixed = { who: 'mara', parts: [1, 'two', null] };
      await put(store, change([write('op:a', 0, { fixed })]), change([write('op:b', 0)]));
      await put(store, change([write('op:a', 1)]));
      const [record, other] = await store.read(TENANT, ['op:a', 'op:b']);
      assert.deepEqual(record, { stream: 'op:a', version: 2, state: { of: 'op:a', version: 2 }, fixed });
      assert.deepEqual(other, { stream: 'op:b', version: 1, state: { of: 'op:b', version: 1 } });
      for (const newest of [false, true]) {
        const listed = await store.streams({ tenant: TENANT, kind: 'op', newest, limit: 10 });
        assert.deepEqual(listed.find(({ stream }) => stream === 'op:a')?.fixed, fixed);
      }
      const history = await store.history(TENANT, 'op:a');
      assert.deepEqual(
        history.map((stored) => stored.fixed),
        [fixed, undefined],
      );
      await assertIsBug(store.commit([change([write('op:a', 2, { fixed })])]), 'a second fixed part');
      await assertIsBug(
        store.commit([change([write('op:c', 0, { fixed, events: [] })])]),
        'a fixed part without events',
      );
    },
  },
  {
    name: 'a stale change is told the present version and writes nothing',
    async run({ store }) {
      await put(store, change([write('op:a', 0)]), change([write('op:a', 1)]));
      const stale = { outcome: 'stale', stream: 'op:a', version: 2 };
      const late = write('op:a', 1, { live: live('a'), state: 'late' });
      const extra = {
        documents: [document('op:a', 'late')],
        claims: [{ key: key(1), sequence: 0, holder: 'op:a' }],
      };
      assert.deepEqual(await store.commit([change([late], extra)]), [stale]);
      assert.deepEqual(await store.commit([change([write('op:a', 7)])]), [stale]);
      await assertUntouched(store, 'op:a', 2);
      assert.deepEqual(await store.live({ tenant: TENANT, limit: 10 }), []);
      assert.deepEqual(await store.latestClaims(TENANT, [key(1)]), [undefined]);
      const [reference] = extra.documents;
      assert(reference);
      assert.deepEqual(await store.documents(TENANT, [reference]), [undefined]);
    },
  },
  {
    name: 'a stream that must not exist yet is refused where it exists, and one that must is where it does not',
    async run({ store }) {
      await put(store, change([write('op:a', 0)]));
      assert.deepEqual(await store.commit([change([write('op:a', 0)])]), [
        { outcome: 'stale', stream: 'op:a', version: 1 },
      ]);
      assert.deepEqual(await store.commit([change([write('op:b', 1)])]), [
        { outcome: 'stale', stream: 'op:b', version: 0 },
      ]);
      await assertUntouched(store, 'op:b', 0);
    },
  },
  {
    name: 'a change of two streams of which one is stale writes neither',
    async run({ store }) {
      await put(store, change([write('op:a', 0)]), change([write('op:b', 0)]), change([write('op:b', 1)]));
      assert.deepEqual(await store.commit([change([write('op:a', 1), write('op:b', 1)])]), [
        { outcome: 'stale', stream: 'op:b', version: 2 },
      ]);
      assert.deepEqual(await store.commit([change([write('op:b', 0), write('op:c', 0)])]), [
        { outcome: 'stale', stream: 'op:b', version: 2 },
      ]);
      await assertUntouched(store, 'op:a', 1);
      await assertUntouched(store, 'op:b', 2);
      await assertUntouched(store, 'op:c', 0);
    },
  },
  {
    name: 'a claim is kept by its first taker, against itself as well',
    async run({ store }) {
      const claims = (holder: string) => ({ claims: [{ key: key(1), sequence: 0, holder }] });
      await put(store, change([write('op:a', 0)], claims('op:a')));
      const taken = { outcome: 'taken', key: key(1), sequence: 0, by: 'op:a' };
      assert.deepEqual(await store.commit([change([write('op:b', 0)], claims('op:b'))]), [taken]);
      assert.deepEqual(await store.commit([change([write('op:a', 1)], claims('op:a'))]), [taken]);
      await assertUntouched(store, 'op:a', 1);
      await assertUntouched(store, 'op:b', 0);
    },
  },
  {
    name: 'a change that wins one claim and loses another gives up the one it won',
    async run({ store }) {
      const claim = (number: number, holder: string) => ({ key: key(number), sequence: 0, holder });
      await put(
        store,
        change([write('op:a', 0)], { claims: [claim(2, 'op:a')] }),
        change([write('op:b', 0)]),
        change([write('op:c', 0)]),
      );
      const both = change([write('op:b', 1)], { claims: [claim(1, 'op:b'), claim(2, 'op:b')] });
      assert.deepEqual(await store.commit([both]), [
        { outcome: 'taken', key: key(2), sequence: 0, by: 'op:a' },
      ]);
      await assertUntouched(store, 'op:b', 1);
      assert.deepEqual(await store.latestClaims(TENANT, [key(1)]), [undefined]);
      await put(store, change([write('op:c', 1)], { claims: [claim(1, 'op:c')] }));
    },
  },
  {
    name: 'a requirement that no longer holds refuses the change, and one that holds is left as it was',
    async run({ store }) {
      await put(store, change([write('rule:a', 0)]));
      const requiring = (version: number, stream = 'rule:a') => ({ requires: [{ stream, version }] });
      assert.deepEqual(await store.commit([change([write('op:a', 0)], requiring(1))]), [STORED]);
      await put(store, change([write('rule:a', 1)]));
      assert.deepEqual(await store.commit([change([write('op:b', 0)], requiring(1))]), [
        { outcome: 'stale', stream: 'rule:a', version: 2 },
      ]);
      assert.deepEqual(await store.commit([change([write('op:b', 0)], requiring(0))]), [
        { outcome: 'stale', stream: 'rule:a', version: 2 },
      ]);
      assert.deepEqual(await store.commit([change([write('op:b', 0)], requiring(1, 'rule:none'))]), [
        { outcome: 'stale', stream: 'rule:none', version: 0 },
      ]);
      await assertUntouched(store, 'op:b', 0);
      assert.deepEqual(await store.commit([change([write('op:b', 0)], requiring(0, 'rule:none'))]), [STORED]);
      assert.equal(await versionOf(store, 'rule:a'), 2);
      await assertUntouched(store, 'rule:none', 0);
    },
  },
  {
    name: 'the first that differs is named: writes, then requirements, then claims',
    async run({ store }) {
      await put(
        store,
        change([write('op:a', 0)], { claims: [{ key: key(1), sequence: 0, holder: 'op:a' }] }),
      );
      const requires = [{ stream: 'rule:a', version: 3 }];
      const claims = [{ key: key(1), sequence: 0, holder: 'op:b' }];
      const writes = [write('op:b', 0), write('op:a', 0), write('op:c', 9)];
      const [byWrite, byRequirement, byClaim] = await store.commit([
        change(writes, { requires, claims }),
        change([write('op:b', 0)], { requires, claims }),
        change([write('op:b', 0)], { claims }),
      ]);
      assert.deepEqual(byWrite, { outcome: 'stale', stream: 'op:a', version: 1 });
      assert.deepEqual(byRequirement, { outcome: 'stale', stream: 'rule:a', version: 0 });
      assert.deepEqual(byClaim, { outcome: 'taken', key: key(1), sequence: 0, by: 'op:a' });
    },
  },
  {
    name: 'a stream named as holder, owner or cross-run stream must exist or be written by the same change',
    async run({ store }) {
      const missing = { outcome: 'stale', stream: 'op:none', version: 0 };
      const named: Partial<Change>[] = [
        { claims: [{ key: key(1), sequence: 0, holder: 'op:none' }] },
        { documents: [document('op:none', 'x')] },
        { crossRun: [{ key: key(1), stream: 'op:none' }] },
      ];
      for (const more of named) {
        assert.deepEqual(await store.commit([change([write('op:a', 0)], more)]), [missing]);
      }
      await assertUntouched(store, 'op:a', 0);
      await put(store, change([write('op:none', 0)]));
      const claims = [{ key: key(1), sequence: 0, holder: 'op:none' }];
      assert.deepEqual(await store.commit([change([], { claims })]), [STORED]);
      const [held] = await store.latestClaims(TENANT, [key(1)]);
      assert.equal(held?.holder, 'op:none');
    },
  },
  {
    name: 'a change writes at most 16 streams, each once, and is never empty',
    async run({ store }) {
      const many = (count: number) => Array.from({ length: count }, (_, index) => write(`op:${index}`, 0));
      await assertIsBug(store.commit([change(many(17))]), 'a change of 17 writes');
      await assertIsBug(
        store.commit([change([write('op:a', 0), write('op:a', 1)])]),
        'a stream written twice',
      );
      await assertIsBug(store.commit([change([])]), 'an empty change');
      await assertIsBug(
        store.commit([change([write('op:a', 0)]), change(many(17))]),
        'a call of which one change is a bug',
      );
      await assertUntouched(store, 'op:0', 0);
      await assertUntouched(store, 'op:a', 0);
      await put(store, change(many(16)));
      assert.equal(await versionOf(store, 'op:15'), 1);
    },
  },
  {
    name: 'a name that could be mistaken for another, and a key that is none, are refused as bugs',
    async run({ store }) {
      const claims = (claimKey: string) => ({ claims: [{ key: claimKey, sequence: 0, holder: 'op:a' }] });
      const bugs: Change[] = [
        change([write('op:a\0b', 0)]),
        change([write('op:\ud800', 0)]),
        change([write('a', 0)]),
        change([write('op:a', 0)], { tenant: `${TENANT}\0` }),
        change([write('op:a', 0)], { at: AT + 0.5 }),
        change([write('op:a', 0)], claims('abc')),
        change([write('op:a', 0)], claims(key(10).toUpperCase())),
        change([write('op:a', 0)], { claims: [...claims(key(1)).claims, ...claims(key(1)).claims] }),
        change([write('op:a', 0)], { documents: [{ ...document('op:a', 'x'), digest: 'sha256:x' }] }),
      ];
      for (const bug of bugs) await assertIsBug(store.commit([bug]), JSON.stringify(bug));
      await assertUntouched(store, 'op:a', 0);
    },
  },
];
