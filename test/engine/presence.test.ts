import { expect, test } from 'vitest';
import type { EngineContext } from '../../src/engine/context.ts';
import { Presence } from '../../src/engine/presence.ts';
import { DEFAULT_SETTINGS } from '../../src/engine/settings.ts';
import type { Store } from '../../src/store/port.ts';
import { memoryStore, storeFault } from './stores.ts';

const { leaseMs } = DEFAULT_SETTINGS;

/** Presence on a clock that stands still until it is moved. */
function presenceOn(store: Store, worker: string) {
  const clock = { ms: 0 };
  const environment = { now: () => 1_780_000_000_000, monotonic: () => clock.ms };
  const context = { environment, settings: DEFAULT_SETTINGS, store, tenant: 'acme', worker };
  return { presence: new Presence(context as unknown as EngineContext), clock };
}

test('a beat that was reported lost and yet stored is followed by one that a watcher sees as new (I6)', async () => {
  let isLost = false;
  const store = await memoryStore((inner) => ({
    async commit(changes) {
      const results = await inner.commit(changes);
      if (isLost) throw storeFault('unknown');
      return results;
    },
  }));
  const { presence } = presenceOn(store, 'wrk_one');
  const watcher = presenceOn(store, 'wrk_other');
  await presence.beat();
  isLost = true;
  await expect(presence.beat()).rejects.toThrow('The disk does not answer.');
  isLost = false;
  expect(await watcher.presence.goneBy('wrk_one', 'att_1/1')).toBeUndefined();
  watcher.clock.ms += leaseMs;
  await presence.beat();
  watcher.clock.ms += 1;
  expect(await watcher.presence.goneBy('wrk_one', 'att_1/1')).toBeUndefined();
});

test('how long a beat has stood still is counted to when it was asked for, not to when the answer was read (I6)', async () => {
  let onRead = (): void => {};
  const store = await memoryStore((inner) => ({
    async read(tenant, streams) {
      const rows = await inner.read(tenant, streams);
      onRead();
      return rows;
    },
  }));
  const { presence } = presenceOn(store, 'wrk_one');
  const watcher = presenceOn(store, 'wrk_other');
  await presence.beat();
  expect(await watcher.presence.goneBy('wrk_one', 'att_1/1')).toBeUndefined();
  // The watcher is frozen between the two; meanwhile the other may have gone on beating.
  onRead = () => {
    watcher.clock.ms += 2 * leaseMs;
  };
  expect(await watcher.presence.goneBy('wrk_one', 'att_1/1')).toBeUndefined();
  onRead = () => {};
  expect(await watcher.presence.goneBy('wrk_one', 'att_1/1')).toEqual({
    stream: 'worker:wrk_one',
    version: 1,
  });
});
