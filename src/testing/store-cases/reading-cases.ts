// Cases about what comes back: order, pages, exact values, and nothing of another tenant.

import assert from 'node:assert/strict';
import type { Json, LiveQuery, Store } from '../../store/port.ts';
import {
  AT,
  assertIsBug,
  type CaseDefinition,
  change,
  document,
  key,
  live,
  prefix,
  put,
  STORED,
  TENANT,
  write,
} from './bench.ts';

export const readingCases: readonly CaseDefinition[] = [
  {
    name: 'streams are read in the order asked, with undefined for those that do not exist',
    async run({ store }) {
      await put(store, change([write('op:a', 0), write('run:b', 0)]));
      const records = await store.read(TENANT, ['run:b', 'op:none', 'op:a', 'run:b']);
      assert.deepEqual(
        records.map((record) => record?.stream),
        ['run:b', undefined, 'op:a', 'run:b'],
      );
      assert.deepEqual(await store.read('nobody', ['op:a']), [undefined]);
      assert.deepEqual(await store.read(TENANT, []), []);
    },
  },
  {
    name: 'a history comes in order, each event with its version and instant',
    async run({ store }) {
      await put(
        store,
        change([write('op:a', 0, { events: ['one', 'two', 'three'] }), write('op:b', 0)], { at: AT + 5 }),
        change([write('op:a', 1, { events: [] })], { at: AT + 6 }),
        change([write('op:a', 2, { events: [{ n: 4 }, ['five']] })], { at: AT + 3 }),
      );
      const row = (version: number, recordedAt: number, event: Json) => ({
        stream: 'op:a',
        version,
        recordedAt,
        event,
      });
      assert.deepEqual(await store.history(TENANT, 'op:a'), [
        row(1, AT + 5, 'one'),
        row(1, AT + 5, 'two'),
        row(1, AT + 5, 'three'),
        row(3, AT + 3, { n: 4 }),
        row(3, AT + 3, ['five']),
      ]);
      assert.deepEqual(await store.history(TENANT, 'op:none'), []);
    },
  },
  {
    name: 'a live row comes with its stream, is replaced, is left alone, and goes',
    async run({ store }) {
      const rows = async () => store.live({ tenant: TENANT, limit: 10 });
      const first = live('a', { worker: 'w1' });
      await put(store, change([write('op:a', 0, { live: first })]));
      assert.deepEqual(await rows(), [{ stream: 'op:a', ...first }]);
      await put(store, change([write('op:a', 1)]));
      assert.deepEqual(await rows(), [{ stream: 'op:a', ...first }]);
      const second = live('a2', { queue: 'mail', stage: 'checking', dueAt: AT + 9 });
      await put(store, change([write('op:a', 2, { live: second })]));
      assert.deepEqual(await rows(), [{ stream: 'op:a', ...second }]);
      assert.deepEqual(await store.live({ tenant: TENANT, worker: 'w1', limit: 10 }), []);
      await put(
        store,
        change([write('op:a', 3, { live: null })]),
        change([write('op:b', 0, { live: null })]),
      );
      assert.deepEqual(await rows(), []);
    },
  },
  {
    name: 'live work is found by queue, stage, due time and worker, and pages in order of arrival',
    async run({ store }) {
      const stages = ['ready', 'sending', 'parked'];
      for (let index = 0; index < 12; index += 1) {
        // Stored against the order of arrival, with equal due times among them.
        const arrival = 11 - index;
        const row = live(`o${String(arrival).padStart(2, '0')}`, {
          queue: arrival % 2 === 0 ? 'crm' : 'mail',
          stage: stages[arrival % 3] as string,
          dueAt: AT + (arrival % 4) * 10,
          worker: arrival % 3 === 1 ? `w${arrival % 2}` : null,
        });
        await put(store, change([write(`op:${arrival}`, 0, { live: row })]));
      }
      const found = async (query: Partial<LiveQuery>) => {
        const rows = await store.live({ tenant: TENANT, limit: 100, ...query });
        return rows.map((row) => Number(row.order.slice(1)));
      };
      assert.deepEqual(await found({}), [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]);
      assert.deepEqual(await found({ queues: ['mail'] }), [1, 3, 5, 7, 9, 11]);
      assert.deepEqual(await found({ queues: ['mail', 'crm', 'mail'], limit: 3 }), [0, 1, 2]);
      assert.deepEqual(await found({ queues: [] }), []);
      assert.deepEqual(await found({ stages: ['parked', 'ready'], queues: ['crm'] }), [0, 2, 6, 8]);
      assert.deepEqual(await found({ stages: [] }), []);
      assert.deepEqual(await found({ dueBy: AT + 10 }), [0, 4, 8, 1, 5, 9]);
      assert.deepEqual(
        await found({ dueBy: AT + 20, queues: ['crm', 'mail'], limit: 7 }),
        [0, 4, 8, 1, 5, 9, 2],
      );
      assert.deepEqual(await found({ dueBy: AT - 1 }), []);
      assert.deepEqual(await found({ worker: 'w1' }), [1, 7]);
      assert.deepEqual(await found({ worker: 'w0', queues: ['mail'] }), []);
      assert.deepEqual(await found({ after: 'o03', limit: 4 }), [4, 5, 6, 7]);
      assert.deepEqual(await found({ after: 'o03', queues: ['crm'], limit: 2 }), [4, 6]);
      assert.deepEqual(await found({ after: 'o11' }), []);
    },
  },
  {
    name: 'streams are listed by id within their kind, page by page, from either end',
    async run({ store }) {
      const names = ['op:a', 'op:b', 'op:c', 'op:d', 'op:e'];
      const others = ['o:b', 'opa:b', 'run:b'];
      await put(store, ...[...names, ...others].toReversed().map((stream) => change([write(stream, 0)])));
      const page = async (more: { readonly after?: string; readonly newest?: boolean }, limit: number) =>
        (await store.streams({ tenant: TENANT, kind: 'op', limit, ...more })).map((record) => record.stream);
      assert.deepEqual(await page({}, 10), names);
      assert.deepEqual(await page({}, 2), ['op:a', 'op:b']);
      assert.deepEqual(await page({ after: 'op:b' }, 2), ['op:c', 'op:d']);
      assert.deepEqual(await page({ after: 'op:d' }, 2), ['op:e']);
      assert.deepEqual(await page({ newest: true }, 2), ['op:e', 'op:d']);
      assert.deepEqual(await page({ newest: true, after: 'op:c' }, 9), ['op:b', 'op:a']);
      const [record] = await store.streams({ tenant: TENANT, kind: 'run', limit: 5 });
      assert.deepEqual(record, { stream: 'run:b', version: 1, state: { of: 'run:b', version: 1 } });
    },
  },
  {
    name: 'the latest claim of a key is the one with the highest sequence',
    async run({ store }) {
      const taking = (holder: string, number: number, sequence: number) =>
        change([write(holder, 0)], { claims: [{ key: key(number), sequence, holder }] });
      await put(
        store,
        taking('op:a', 1, 0),
        taking('op:b', 1, 1),
        taking('op:c', 1, 10),
        taking('op:d', 1, 2),
      );
      await put(store, taking('op:e', 2, 0));
      assert.deepEqual(await store.latestClaims(TENANT, [key(2), key(3), key(1)]), [
        { key: key(2), sequence: 0, holder: 'op:e' },
        undefined,
        { key: key(1), sequence: 10, holder: 'op:c' },
      ]);
    },
  },
  {
    name: 'streams that share the beginning of a key come newest first under each, once, and stop at the limit',
    async run({ store }) {
      const entry = (stream: string, ...numbers: number[]) =>
        change([write(stream, 0)], { crossRun: numbers.map((number) => ({ key: key(number), stream })) });
      await put(store, entry('op:b', 1), entry('op:c', 1, 2), entry('op:a', 1));
      const found = async (numbers: readonly number[], limit: number) =>
        store.crossRun(
          TENANT,
          numbers.map((number) => prefix(key(number))),
          limit,
        );
      assert.deepEqual(await found([2, 1, 9], 10), ['op:c', 'op:b', 'op:a']);
      assert.deepEqual(await found([1, 2], 2), ['op:c', 'op:b']);
      assert.deepEqual(await found([2, 1], 1), ['op:c']);
      assert.deepEqual(await found([9], 10), []);
      const again = change([write('op:a', 1)], { crossRun: [{ key: key(1), stream: 'op:a' }] });
      assert.deepEqual(await store.commit([again]), [STORED]);
      assert.equal((await found([1], 10)).length, 3);
    },
  },
  {
    name: 'claims are found by the beginning of their key beside cross-run entries, and by nothing less',
    async run({ store }) {
      const begin = prefix(key(3));
      const ends = ['0000000000000000', '7f00000000000001', 'ffffffffffffffff'] as const;
      await put(
        store,
        ...ends.map((end, index) =>
          change([write(`op:${index}`, 0)], {
            claims: [0, 1].map((sequence) => ({ key: begin + end, sequence, holder: `op:${index}` })),
          }),
        ),
        change([write('op:entry', 0)], { crossRun: [{ key: begin + ends[1], stream: 'op:entry' }] }),
        change([write('op:other', 0)], { claims: [{ key: key(4), sequence: 0, holder: 'op:other' }] }),
      );
      assert.deepEqual(await store.crossRun(TENANT, [begin], 10), ['op:entry', 'op:2', 'op:1', 'op:0']);
      assert.deepEqual(await store.crossRun(TENANT, [prefix(key(4)), begin], 2), ['op:other', 'op:entry']);
      const [claim] = await store.latestClaims(TENANT, [begin + ends[1]]);
      assert.equal(claim?.holder, 'op:1');
      await assertIsBug(store.crossRun(TENANT, [key(3)], 10), 'a whole key in the place of its beginning');
    },
  },
  {
    name: 'documents come back byte for byte, by owner and digest together',
    async run({ store }) {
      const everyByte = Uint8Array.from({ length: 256 }, (_, index) => index);
      const documents = [
        document('op:a', everyByte, 'payload'),
        document('op:a', new Uint8Array(0), 'result'),
        document('op:b', 'shown to a person', 'review'),
      ];
      await put(store, change([write('op:a', 0), write('op:b', 0)], { documents }));
      const reversed = documents.toReversed();
      assert.deepEqual((await store.documents(TENANT, reversed)).map(plain), reversed.map(plain));
      const [first] = documents;
      assert(first);
      assert.deepEqual(await store.documents(TENANT, [{ owner: 'op:b', digest: first.digest }]), [undefined]);
      assert.deepEqual(await store.documents(TENANT, [{ owner: 'op:none', digest: first.digest }]), [
        undefined,
      ]);
      // The same document once more, on its own, is no error and no second document.
      assert.deepEqual(await store.commit([change([], { documents: [first] })]), [STORED]);
      assert.deepEqual((await store.documents(TENANT, [first])).map(plain), [plain(first)]);
    },
  },
  {
    name: 'any JSON, any writing system and a document of a megabyte come back equal',
    async run({ store }) {
      const values: Json = {
        text: 'Grüße, Ελλάδα, 日本, 🜂, \u00e9 and e\u0301, \u0000 \u2028 " \\ \ud800',
        numbers: [0, -1.5, 1e21, 9_007_199_254_740_991],
        nested: [[[{}]], null, true, ''],
        'ключ 🗝': { a: 1 },
      };
      const state = JSON.parse(`{"__proto__":{"x":1},"values":${JSON.stringify(values)}}`) as Json;
      const large = document(
        'op:日本/🜂',
        new Uint8Array(1_048_576).map((_, index) => index * 31),
      );
      const long = 'ü'.repeat(300_000);
      await put(
        store,
        change(
          [write('op:日本/🜂', 0, { state, events: [values, long], live: live('z', { queue: 'Büro' }) })],
          {
            documents: [large],
          },
        ),
      );
      const [record] = await store.read(TENANT, ['op:日本/🜂']);
      assert.equal(JSON.stringify(record?.state), JSON.stringify(state));
      const history = await store.history(TENANT, 'op:日本/🜂');
      assert.deepEqual(
        history.map((stored) => stored.event),
        [values, long],
      );
      assert.deepEqual((await store.documents(TENANT, [large])).map(plain), [plain(large)]);
      const [row] = await store.live({ tenant: TENANT, queues: ['Büro'], limit: 1 });
      assert.equal(row?.stream, 'op:日本/🜂');
    },
  },
  {
    name: 'tenants do not see each other, though they use the same names',
    async run({ store }) {
      const documents = [document('op:a', 'of acme')];
      const everything = {
        claims: [{ key: key(1), sequence: 0, holder: 'op:a' }],
        crossRun: [{ key: key(1), stream: 'op:a' }],
      };
      await put(store, change([write('op:a', 0, { live: live('a') })], { ...everything, documents }));
      assert.deepEqual(await readAll(store, 'globex', documents), nothing);
      const theirs = change([write('op:a', 0, { state: 'theirs', live: live('b') })], {
        ...everything,
        tenant: 'globex',
      });
      assert.deepEqual(await store.commit([theirs]), [STORED]);
      const [record] = await store.read(TENANT, ['op:a']);
      assert.deepEqual(record?.state, { of: 'op:a', version: 1 });
      const requiring = change([write('op:b', 0)], { requires: [{ stream: 'op:c', version: 1 }] });
      await put(store, change([write('op:c', 0)], { tenant: 'globex' }));
      assert.deepEqual(await store.commit([requiring]), [{ outcome: 'stale', stream: 'op:c', version: 0 }]);
      const rows = await store.live({ tenant: TENANT, limit: 10 });
      assert.deepEqual(
        rows.map((row) => row.order),
        ['a'],
      );
      assert.equal((await store.crossRun(TENANT, [prefix(key(1))], 10)).length, 1);
      await assertIsBug(store.read(`${TENANT}\0`, ['op:a']), 'a tenant whose name holds NUL');
    },
  },
];

const nothing = {
  read: [undefined],
  claims: [undefined],
  crossRun: [],
  history: [],
  live: [],
  streams: [],
  documents: [undefined],
};

async function readAll(store: Store, tenant: string, documents: Parameters<Store['documents']>[1]) {
  return {
    read: await store.read(tenant, ['op:a']),
    claims: await store.latestClaims(tenant, [key(1)]),
    crossRun: await store.crossRun(tenant, [prefix(key(1))], 10),
    history: await store.history(tenant, 'op:a'),
    live: await store.live({ tenant, limit: 10 }),
    streams: await store.streams({ tenant, kind: 'op', limit: 10 }),
    documents: await store.documents(tenant, documents),
  };
}

/** Buffers and arrays of the same bytes are equal here. */
function plain(found: Awaited<ReturnType<Store['documents']>>[number]): unknown {
  if (found === undefined) return undefined;
  const { salt, bytes, ...rest } = found;
  return { ...rest, salt: Buffer.from(salt).toString('hex'), bytes: Buffer.from(bytes).toString('hex') };
}
