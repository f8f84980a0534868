import { describe, expect, test } from 'vitest';
import type { Store } from '../../src/store/port.ts';
import { openPostgresStore } from '../../src/store/postgres/postgres-store.ts';
import { TABLES } from '../../src/store/postgres/schema.ts';
import { exerciseStore } from '../../src/testing/exercise-store.ts';
import { change, key, put, TENANT, versionOf, write } from '../../src/testing/store-cases/bench.ts';
import { testDatabase } from './fixtures/postgres.ts';

const database = await testDatabase();

const lanes = [
  ['read committed', {}],
  ['serializable', { options: '-c default_transaction_isolation=serializable' }],
] as const;

describe.skipIf(database === undefined).each(lanes)('the store suite, %s', (lane, parameters) => {
  // Emptied after each case in place of a new one: to make tables is dear, and no two cases run at once.
  const schema = lane.replaceAll(' ', '_');
  const url = database?.address({ parameters: { ...parameters, schema } }) ?? '';
  const suite = exerciseStore({
    name: schema,
    open: () => openPostgresStore({ url }),
    isDurable: true,
    remove: async () => {
      await database?.ask(TABLES.map((table) => `DELETE FROM ${schema}.${table}`).join(';'));
    },
  });
  for (const { name, run } of suite) test(name, run);

  test('is what the server says', async () => {
    const store = await openPostgresStore({ url });
    expect(store.durability).toMatchObject({ engine: 'postgres', settings: { isolation: lane } });
    await store.close();
  });
});

/** Opens stores of one schema, and closes them after the work. */
async function withStores<Result>(
  {
    count,
    schema,
    parameters = {},
  }: { readonly count: number; readonly schema: string; readonly parameters?: object },
  work: (stores: readonly Store[]) => Promise<Result>,
): Promise<Result> {
  const url = database?.address({ parameters: { ...parameters, schema } }) ?? '';
  const stores = await Promise.all(Array.from({ length: count }, () => openPostgresStore({ url })));
  try {
    return await work(stores);
  } finally {
    await Promise.all(stores.map((store) => store.close()));
  }
}

describe.skipIf(database === undefined)('several processes at once', () => {
  test('may open an empty database at the same moment', () =>
    withStores({ count: 8, schema: 'opened_at_once' }, async (stores) => {
      for (const [index, store] of stores.entries()) await put(store, change([write(`op:${index}`, 0)]));
      expect(await versionOf(stores[0] as Store, 'op:7')).toBe(1);
    }));

  test.each(lanes)(
    'create one stream, %s: each time one of them does, and the others are told',
    (_, parameters) =>
      withStores({ count: 4, schema: 'created', parameters }, async (stores) => {
        for (let round = 0; round < 20; round += 1) {
          const stream = `op:${Object.keys(parameters).length}-${round}`;
          const results = await Promise.all(
            stores.map((store) => store.commit([change([write(stream, 0)]), change([write(stream, 1)])])),
          );
          const outcomes = results.map((both) => both.map(({ outcome }) => outcome).join());
          // The second change of a loser may itself be the one that comes next.
          expect(outcomes.filter((each) => each.startsWith('stored'))).toHaveLength(1);
          expect((await (stores[0] as Store).history(TENANT, stream)).map(({ version }) => version)).toEqual([
            1, 2,
          ]);
        }
      }),
  );

  test('take streams and claims in opposite orders without coming to a standstill', () =>
    withStores({ count: 2, schema: 'crossed' }, async (stores) => {
      const names = Array.from({ length: 40 }, (_, index) => `op:${String(index).padStart(2, '0')}`);
      await put(stores[0] as Store, ...names.map((name) => change([write(name, 0)])));
      const stored = await Promise.all(
        stores.map(async (store, racer) => {
          let count = 0;
          for (let version = 1; version <= 10; version += 1) {
            const order = racer === 0 ? names : names.toReversed();
            const results = await store.commit(
              order.map((name, index) =>
                change([write(name, version)], {
                  claims: [
                    {
                      key: key(version * 100 + (racer === 0 ? index : 39 - index)),
                      sequence: 0,
                      holder: name,
                    },
                  ],
                }),
              ),
            );
            count += results.filter(({ outcome }) => outcome === 'stored').length;
          }
          return count;
        }),
      );
      expect(stored.reduce((sum, count) => sum + count)).toBe(400);
    }));

  test('a stream that must not exist is kept from existing until the change that requires so is stored', () =>
    withStores({ count: 2, schema: 'absent' }, async ([one, other]) => {
      // Few rounds: two that wait for each other are told so by the server after a second.
      for (let round = 0; round < 3; round += 1) {
        const stop = `rule:${round}`;
        const [required, made] = await Promise.all([
          (one as Store).commit([
            change([write(`op:${round}`, 0)], { requires: [{ stream: stop, version: 0 }] }),
          ]),
          (other as Store).commit([
            change([write(stop, 0)], { requires: [{ stream: `op:${round}`, version: 0 }] }),
          ]),
        ]);
        const both = [...required, ...made].map(({ outcome }) => outcome).toSorted();
        // Each forbids the other: in whatever order they are stored, only one can be.
        expect(both).toEqual(['stale', 'stored']);
      }
    }));
});
