// The suite is itself tested: each fault below is planted in a working store, and the case that is named for it
// must go red. A suite that passes a broken adapter would promise what it does not check.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import type { Change, ChangeResult, Store } from '../../src/store/port.ts';
import { loadSqliteDriver } from '../../src/store/sqlite/driver.ts';
import { openSqliteStore } from '../../src/store/sqlite/sqlite-store.ts';
import { exerciseStore } from '../../src/testing/exercise-store.ts';

const driver = await loadSqliteDriver();
const directory = mkdtempSync(join(tmpdir(), 'counterfoil-control-'));
afterAll(() => rmSync(directory, { recursive: true, force: true }));

/** A working store with some verbs replaced. */
function withVerbs(store: Store, verbs: Partial<Store>): Store {
  return new Proxy(store, {
    get(target, name) {
      if (name in verbs) return verbs[name as keyof Store];
      const own = Reflect.get(target, name, target) as unknown;
      return typeof own === 'function' ? own.bind(target) : own;
    },
  });
}

const rewriting = (rewrite: (change: Change) => Change) => (store: Store) =>
  withVerbs(store, { commit: (changes) => store.commit(changes.map(rewrite)) });

const STORED: ChangeResult = { outcome: 'stored' };

interface PlantedFault {
  readonly fault: string;
  readonly plant: (store: Store) => Store;
  /** A case that must go red. */
  readonly caughtBy: string;
}

const faults: readonly PlantedFault[] = [
  {
    fault: 'ignores what a change requires',
    plant: rewriting(({ requires: _ignored, ...change }) => change),
    caughtBy: 'a requirement that no longer holds refuses the change, and one that holds is left as it was',
  },
  {
    fault: 'ignores requirements of a stream that must not exist',
    plant: rewriting((change) => ({
      ...change,
      requires: (change.requires ?? []).filter((requirement) => requirement.version > 0),
    })),
    caughtBy: 'a requirement that no longer holds refuses the change, and one that holds is left as it was',
  },
  {
    fault: 'takes whatever version is present for the expected one',
    plant: (store) =>
      withVerbs(store, {
        async commit(changes) {
          const results: ChangeResult[] = [];
          for (const change of changes) {
            const present = await store.read(
              change.tenant,
              change.writes.map((write) => write.stream),
            );
            const writes = change.writes.map((write, index) => ({
              ...write,
              expectedVersion: present[index]?.version ?? 0,
            }));
            results.push(...(await store.commit([{ ...change, writes }])));
          }
          return results;
        },
      }),
    caughtBy: 'a stale change is told the present version and writes nothing',
  },
  {
    fault: 'keeps the claims that a losing change won',
    plant: (store) =>
      withVerbs(store, {
        async commit(changes) {
          const results = await store.commit(changes);
          for (const [index, result] of results.entries()) {
            const { tenant, at, claims = [] } = changes[index] as Change;
            if (result.outcome !== 'taken') continue;
            for (const claim of claims) await store.commit([{ tenant, at, writes: [], claims: [claim] }]);
          }
          return results;
        },
      }),
    caughtBy: 'a change that wins one claim and loses another gives up the one it won',
  },
  {
    fault: 'stores the good half of a change of two streams',
    plant: (store) =>
      withVerbs(store, {
        async commit(changes) {
          const results: ChangeResult[] = [];
          for (const change of changes) {
            if (change.writes.length < 2) {
              results.push(...(await store.commit([change])));
              continue;
            }
            const parts = change.writes.map((write, index) =>
              index === 0
                ? { ...change, writes: [write] }
                : { tenant: change.tenant, at: change.at, writes: [write] },
            );
            const outcomes = await store.commit(parts);
            results.push(outcomes.find((result) => result.outcome !== 'stored') ?? STORED);
          }
          return results;
        },
      }),
    caughtBy: 'a change of two streams of which one is stale writes neither',
  },
  {
    fault: 'drops the changes after a stale one, and calls them stored',
    plant: (store) =>
      withVerbs(store, {
        async commit(changes) {
          const results: ChangeResult[] = [];
          for (const change of changes) {
            const isBehindStale = results.some((result) => result.outcome === 'stale');
            results.push(...(isBehindStale ? [STORED] : await store.commit([change])));
          }
          return results;
        },
      }),
    caughtBy: 'a stale change between two good neighbours disturbs neither',
  },
  {
    fault: "stores a neighbour's state in place of a change's own",
    plant: (store) =>
      withVerbs(store, {
        commit: (changes) =>
          store.commit(
            changes.map((change, index) => {
              const neighbour = changes[index - 1]?.writes[0];
              return neighbour === undefined
                ? change
                : { ...change, writes: change.writes.map((write) => ({ ...write, state: neighbour.state })) };
            }),
          ),
      }),
    caughtBy: 'a stream starts at version 1, and each commit that names its version appends to it',
  },
  {
    fault: 'gives results in the order in which it liked to work',
    plant: (store) =>
      withVerbs(store, { commit: async (changes) => (await store.commit(changes)).toReversed() }),
    caughtBy: 'results come in the order of the changes',
  },
  {
    fault: 'decides the changes of a call against what was there before the call',
    plant: (store) =>
      withVerbs(store, {
        async commit(changes) {
          const results = await store.commit(changes);
          const versions = new Map<string, number>();
          for (const change of changes) {
            for (const { stream, expectedVersion } of change.writes) {
              versions.set(stream, Math.min(versions.get(stream) ?? expectedVersion, expectedVersion));
            }
          }
          return results.map((result, index) => {
            const [write] = (changes[index] as Change).writes;
            const isSecond =
              result.outcome === 'stale' && write && versions.get(write.stream) === write.expectedVersion;
            return isSecond && result.version === write.expectedVersion + 1 ? STORED : result;
          });
        },
      }),
    caughtBy: 'the same stream twice in one call: the second change sees the first',
  },
  {
    fault: 'calls a claim taken twice in one call stored twice',
    plant: (store) =>
      withVerbs(store, {
        async commit(changes) {
          const results = await store.commit(changes);
          return results.map((result) => {
            const isOfThisCall = changes.some((change) =>
              change.claims?.some((claim) => result.outcome === 'taken' && claim.holder === result.by),
            );
            return isOfThisCall ? STORED : result;
          });
        },
      }),
    caughtBy: 'the same claim twice in one call goes to the first change',
  },
  {
    fault: 'gives a claim to its holder again',
    plant: (store) =>
      withVerbs(store, {
        async commit(changes) {
          const results = await store.commit(changes);
          return Promise.all(
            results.map(async (result, index) => {
              const change = changes[index] as Change;
              if (result.outcome !== 'taken' || change.claims?.[0]?.holder !== result.by) return result;
              const { claims: _held, ...rest } = change;
              const [again] = await store.commit([rest]);
              return again as ChangeResult;
            }),
          );
        },
      }),
    caughtBy: 'a claim is kept by its first taker, against itself as well',
  },
  {
    fault: 'knows one claim per key, whatever its sequence',
    plant: rewriting((change) => ({
      ...change,
      ...(change.claims && { claims: change.claims.map((claim) => ({ ...claim, sequence: 0 })) }),
    })),
    caughtBy: 'the latest claim of a key is the one with the highest sequence',
  },
  {
    fault: 'lets a document in whose owner does not exist',
    plant: (store) =>
      withVerbs(store, {
        async commit(changes) {
          const results = await store.commit(changes);
          const isMissing = (result: ChangeResult) =>
            result.outcome === 'stale' && result.stream === 'op:none';
          return results.map((result) => (isMissing(result) ? STORED : result));
        },
      }),
    caughtBy:
      'a stream named as holder, owner or cross-run stream must exist or be written by the same change',
  },
  {
    fault: 'takes seventeen writes and more, in pieces',
    plant: (store) =>
      withVerbs(store, {
        commit: (changes) =>
          store.commit(
            changes.flatMap((change) =>
              change.writes.length > 16
                ? [
                    { ...change, writes: change.writes.slice(0, 16) },
                    { ...change, writes: change.writes.slice(16) },
                  ]
                : [change],
            ),
          ),
      }),
    caughtBy: 'a change writes at most 16 streams, each once, and is never empty',
  },
  {
    fault: 'cuts names at the first NUL, as some drivers do',
    plant: rewriting((change) => ({
      ...change,
      tenant: change.tenant.split('\0')[0] as string,
      writes: change.writes.map((write) => ({ ...write, stream: write.stream.split('\0')[0] as string })),
    })),
    caughtBy: 'a name that could be mistaken for another, and a key that is none, are refused as bugs',
  },
  {
    fault: 'keeps one row for all tenants',
    plant: (store) =>
      withVerbs(store, {
        commit: (changes) => store.commit(changes.map((change) => ({ ...change, tenant: 'all' }))),
        read: (_tenant, streams) => store.read('all', streams),
        latestClaims: (_tenant, keys) => store.latestClaims('all', keys),
      }),
    caughtBy: 'tenants do not see each other, though they use the same names',
  },
  {
    fault: 'looks up what a change requires under any tenant',
    plant: (store) =>
      withVerbs(store, {
        async commit(changes) {
          const results = await store.commit(changes);
          return results.map((result) =>
            result.outcome === 'stale' && result.stream === 'op:c' ? STORED : result,
          );
        },
      }),
    caughtBy: 'tenants do not see each other, though they use the same names',
  },
  {
    fault: 'gives a history newest first',
    plant: (store) =>
      withVerbs(store, { history: async (...args) => (await store.history(...args)).toReversed() }),
    caughtBy: 'a history comes in order, each event with its version and instant',
  },
  {
    fault: 'keeps the last event of a commit only',
    plant: rewriting((change) => ({
      ...change,
      writes: change.writes.map((write) => ({ ...write, events: write.events.slice(-1) })),
    })),
    caughtBy: 'a history comes in order, each event with its version and instant',
  },
  {
    fault: 'leaves live rows behind',
    plant: rewriting((change) => ({
      ...change,
      writes: change.writes.map(({ live, ...write }) => (live ? { ...write, live } : write)),
    })),
    caughtBy: 'a live row comes with its stream, is replaced, is left alone, and goes',
  },
  {
    fault: 'pages live work by due time',
    plant: (store) =>
      withVerbs(store, {
        live: async (query) => [...(await store.live(query))].sort((a, b) => a.dueAt - b.dueAt),
      }),
    caughtBy: 'live work is found by queue, stage, due time and worker, and pages in order of arrival',
  },
  {
    fault: 'counts the limit of live work before it looks at the stage',
    plant: (store) =>
      withVerbs(store, {
        async live({ stages, ...query }) {
          const rows = await store.live({ ...query, limit: Math.min(query.limit, 8) });
          return stages === undefined ? rows : rows.filter((row) => stages.includes(row.stage));
        },
      }),
    caughtBy: 'live work is found by queue, stage, due time and worker, and pages in order of arrival',
  },
  {
    fault: 'includes the stream that a page goes on after',
    plant: (store) =>
      withVerbs(store, {
        async streams(query) {
          const page = await store.streams(query);
          const [after] = query.after === undefined ? [] : await store.read(query.tenant, [query.after]);
          return after === undefined ? page : [after, ...page].slice(0, query.limit);
        },
      }),
    caughtBy: 'streams are listed by id within their kind, page by page, from either end',
  },
  {
    fault: 'finds the first claim of a key in place of the latest',
    plant: (store) =>
      withVerbs(store, {
        latestClaims: async (...args) =>
          (await store.latestClaims(...args)).map((claim) => claim && { ...claim, sequence: 0 }),
      }),
    caughtBy: 'the latest claim of a key is the one with the highest sequence',
  },
  {
    fault: 'counts the limit of equal intents for each prefix',
    plant: (store) =>
      withVerbs(store, {
        crossRun: async (tenant, prefixes, limit) =>
          (await Promise.all(prefixes.map((prefix) => store.crossRun(tenant, [prefix], limit)))).flat(),
      }),
    caughtBy:
      'streams that share the beginning of a key come newest first under each, once, and stop at the limit',
  },
  {
    fault: 'forgets what is fixed with the next write',
    plant: (store) =>
      withVerbs(store, {
        read: async (...args) =>
          (await store.read(...args)).map((record) => {
            if (record === undefined || record.version === 1) return record;
            const { fixed: _forgotten, ...rest } = record;
            return rest;
          }),
      }),
    caughtBy: 'what is fixed comes back with every reading of the stream, as it was at first',
  },
  {
    fault: 'finds claims by a whole key alone',
    plant: (store) => {
      const entries: { readonly key: string; readonly stream: string }[] = [];
      return withVerbs(store, {
        async commit(changes) {
          for (const { crossRun = [] } of changes) entries.push(...crossRun);
          return store.commit(changes);
        },
        async crossRun(tenant, prefixes, limit) {
          const found = await store.crossRun(tenant, prefixes, limit);
          return found.filter((stream) =>
            entries.some((entry) => entry.stream === stream && prefixes.includes(entry.key.slice(0, 24))),
          );
        },
      });
    },
    caughtBy: 'claims are found by the beginning of their key beside cross-run entries, and by nothing less',
  },
  {
    fault: 'keeps documents as text',
    plant: (store) =>
      withVerbs(store, {
        documents: async (...args) =>
          (await store.documents(...args)).map(
            (document) =>
              document && {
                ...document,
                bytes: new TextEncoder().encode(new TextDecoder().decode(document.bytes)),
              },
          ),
      }),
    caughtBy: 'documents come back byte for byte, by owner and digest together',
  },
  {
    fault: 'cuts documents at 64 KiB',
    plant: (store) =>
      withVerbs(store, {
        documents: async (...args) =>
          (await store.documents(...args)).map(
            (document) => document && { ...document, bytes: document.bytes.slice(0, 65_536) },
          ),
      }),
    caughtBy: 'any JSON, any writing system and a document of a megabyte come back equal',
  },
  {
    fault: 'normalises text',
    plant: (store) =>
      withVerbs(store, {
        history: async (...args) =>
          (await store.history(...args)).map((stored) => JSON.parse(JSON.stringify(stored).normalize('NFC'))),
      }),
    caughtBy: 'any JSON, any writing system and a document of a megabyte come back equal',
  },
  {
    fault: 'answers before it has stored, and forgets what it still had to store',
    plant(store) {
      let waiting: (() => Promise<unknown>)[] = [];
      const flush = async () => {
        for (const work of waiting.splice(0)) await work();
      };
      return withVerbs(store, {
        async commit(changes) {
          await flush();
          waiting.push(() => store.commit(changes));
          return changes.map(() => STORED);
        },
        async read(...args) {
          await flush();
          return store.read(...args);
        },
        async close() {
          waiting = [];
          await store.close();
        },
      });
    },
    caughtBy: 'opening again finds everything as it was',
  },
  {
    fault: 'does not notice what others store',
    plant: (store) => withVerbs(store, { foreignCommits: async () => 1 }),
    caughtBy: 'a second handle sees what was stored, and is told that something was',
  },
  {
    fault: 'claims by looking first and writing afterwards',
    plant: (store) =>
      withVerbs(store, {
        async commit(changes) {
          const free: Change[] = [];
          const results = new Map<Change, ChangeResult>();
          for (const change of changes) {
            const held = await store.latestClaims(
              change.tenant,
              (change.claims ?? []).map((claim) => claim.key),
            );
            const taken = held.find((claim) => claim !== undefined);
            if (taken === undefined) free.push(change);
            else results.set(change, { outcome: 'taken', key: taken.key, sequence: 0, by: taken.holder });
          }
          // The gap between the two, as wide as a busy process makes it.
          await new Promise((resolve) => setTimeout(resolve, 30));
          const written = await store.commit(free.map(({ claims: _looked, ...change }) => change));
          for (const change of free) {
            const claims = change.claims ?? [];
            if (claims.length > 0)
              await store.commit([{ tenant: change.tenant, at: change.at, writes: [], claims }]);
          }
          for (const [index, change] of free.entries()) results.set(change, written[index] as ChangeResult);
          return changes.map((change) => results.get(change) as ChangeResult);
        },
      }),
    caughtBy: 'two handles race for two hundred claims, and each claim has exactly one winner',
  },
  {
    fault: 'says stored when somebody else was first',
    plant: (store) =>
      withVerbs(store, {
        async commit(changes) {
          const results = await store.commit(changes);
          const isStep = (index: number) => changes[index]?.writes[0]?.stream === 'lock:counter';
          return results.map((result, index) => (isStep(index) ? STORED : result));
        },
      }),
    caughtBy: 'two handles count up one stream, and no step is lost or made twice',
  },
  {
    fault: 'works the changes of a call from the back',
    plant: (store) =>
      withVerbs(store, {
        commit: async (changes) => (await store.commit(changes.toReversed())).toReversed(),
      }),
    caughtBy: 'a lock is handed over inside one call',
  },
  {
    fault: 'looks once in a call at what several changes of it require',
    plant: (store) =>
      withVerbs(store, {
        commit: (changes) => {
          const seen = new Set<string>();
          return store.commit(
            changes.map((one) => ({
              ...one,
              requires: (one.requires ?? []).filter(({ stream }) => !seen.has(stream) && seen.add(stream)),
            })),
          );
        },
      }),
    caughtBy:
      'what changes of one call require is looked at by each of them, also when one between them has written it',
  },
  {
    fault: 'skips streams that do not exist',
    plant: (store) =>
      withVerbs(store, {
        read: async (...args) => (await store.read(...args)).filter((record) => record !== undefined),
      }),
    caughtBy: 'streams are read in the order asked, with undefined for those that do not exist',
  },
  {
    fault: 'gives one caller the results of another',
    plant(store) {
      let shared: Promise<readonly ChangeResult[]> | undefined;
      return withVerbs(store, {
        async commit(changes) {
          const own = store.commit(changes);
          shared ??= own;
          await own;
          return changes.length > 1 ? shared : own;
        },
      });
    },
    caughtBy: 'of many calls in one turn each gets its own results, and one stream has one winner',
  },
  {
    fault: 'names the claim that was lost before the stream that was stale',
    plant: (store) =>
      withVerbs(store, {
        async commit(changes) {
          const results = await store.commit(changes);
          return Promise.all(
            results.map(async (result, index) => {
              const { tenant, claims = [] } = changes[index] as Change;
              const held = await store.latestClaims(
                tenant,
                claims.map((claim) => claim.key),
              );
              const taken = held.find((claim) => claim !== undefined);
              return result.outcome === 'stale' && taken
                ? { outcome: 'taken', key: taken.key, sequence: taken.sequence, by: taken.holder }
                : result;
            }),
          );
        },
      }),
    caughtBy: 'the first that differs is named: writes, then requirements, then claims',
  },
  {
    fault: 'calls a stream that is not there stale at the version that was expected',
    plant: (store) =>
      withVerbs(store, {
        commit: async (changes) =>
          (await store.commit(changes)).map((result, index) =>
            result.outcome === 'stale' && result.version === 0
              ? { ...result, version: changes[index]?.writes[0]?.expectedVersion ?? 0 }
              : result,
          ),
      }),
    caughtBy:
      'a stream that must not exist yet is refused where it exists, and one that must is where it does not',
  },
  {
    fault: 'keeps no marks',
    plant: (store) =>
      withVerbs(store, {
        read: async (tenant, streams) =>
          (await store.read(tenant, streams)).map((record) => {
            if (record === undefined) return undefined;
            const { markedAt: _dropped, ...rest } = record;
            return rest;
          }),
      }),
    caughtBy: 'a mark is read with the version that it is about, is no history, and goes with the next write',
  },
  {
    fault: 'lets a mark outlive the version that it is about',
    plant: (store) => {
      const marks = new Map<string, number>();
      return withVerbs(store, {
        async read(tenant, streams) {
          const records = await store.read(tenant, streams);
          return records.map((record) => {
            if (record?.markedAt !== undefined) marks.set(record.stream, record.markedAt);
            const markedAt = record && marks.get(record.stream);
            return record === undefined || markedAt === undefined ? record : { ...record, markedAt };
          });
        },
      });
    },
    caughtBy: 'a mark is read with the version that it is about, is no history, and goes with the next write',
  },
  {
    fault: 'answers as if it were empty once it was closed',
    plant: (store) =>
      withVerbs(store, {
        read: (tenant, streams) => store.read(tenant, streams).catch(() => streams.map(() => undefined)),
      }),
    caughtBy: 'closing waits for the calls already made, and calls after it fail',
  },
  {
    fault: 'makes a transaction of each change',
    plant: (store) =>
      withVerbs(store, {
        async commit(changes) {
          const results: ChangeResult[] = [];
          for (const change of changes) results.push(...(await store.commit([change])));
          return results;
        },
      }),
    caughtBy: 'the changes of one call and of one turn share a transaction',
  },
];

function suiteOn(plant: (store: Store) => Store) {
  const open = async (place: string) =>
    plant(await openSqliteStore({ file: join(directory, place), driver }));
  return exerciseStore({ name: 'control', open, isDurable: true });
}

/** What a case ended with: `green`, or the name of the error. */
async function colourOf(cases: ReturnType<typeof suiteOn>, name: string): Promise<string> {
  const named = cases.find((one) => one.name === name);
  if (named === undefined) throw new Error(`The suite has no case '${name}'.`);
  return named.run().then(
    () => 'green',
    (error: unknown) => (error instanceof Error ? error.name : typeof error),
  );
}

describe('the store suite goes red for a store that', () => {
  test.each(faults)('$fault', async ({ plant, caughtBy }) => {
    expect(await colourOf(suiteOn(plant), caughtBy)).toBe('AssertionError');
  });

  test('none of these, because nothing was planted: then every case is green', async () => {
    const cases = suiteOn((store) => withVerbs(store, {}));
    const colours = new Set<string>();
    for (const { name } of cases) colours.add(await colourOf(cases, name));
    expect([...colours]).toEqual(['green']);
  });
});

test('every case of the suite has a fault planted for it, but for the two that hold no promise about data', () => {
  const caught = new Set(faults.map((planted) => planted.caughtBy));
  const uncaught = suiteOn((store) => store)
    .map(({ name }) => name)
    .filter((name) => !caught.has(name));
  expect(uncaught).toEqual([
    'a call without changes has no results',
    'a store says which engine it is, in which version, and with which settings',
  ]);
});
