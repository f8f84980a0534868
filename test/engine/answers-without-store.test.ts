import { afterEach, expect, test } from 'vitest';
import { type Store, StoreFault } from '../../src/store/port.ts';
import { openSqliteStore } from '../../src/store/sqlite/sqlite-store.ts';
import { type Fixture, setup } from './setup.ts';

let fixture: Fixture | undefined;
afterEach(async () => {
  await fixture?.close();
});

/** The real store, of which documents cannot be read from some moment on. */
async function withoutDocuments() {
  const store = await openSqliteStore({ file: ':memory:' });
  let isBroken = false;
  const broken: Store = new Proxy(store, {
    get(target, name) {
      if (name === 'documents' && isBroken) {
        return async () => {
          throw new StoreFault('ERR_STORE_UNAVAILABLE', 'The disk does not answer.', { fate: 'not_stored' });
        };
      }
      const member: unknown = Reflect.get(target, name, target);
      return typeof member === 'function' ? member.bind(target) : member;
    },
  });
  return {
    store: broken,
    breakNow: () => {
      isBroken = true;
    },
  };
}

test('what is recorded is never answered as not recorded because details of the answer cannot be read', async () => {
  fixture = await setup();
  const { store, breakNow } = await withoutDocuments();
  const ledger = await fixture.open({ store });
  breakNow();
  const write = (tool: string) =>
    ledger.write({ destination: 'cab', tool, arguments: { id: 'a' }, requester: 'agent' });
  const asked = await write('destroy');
  expect(asked).toMatchObject({ kind: 'state', operation: { stage: 'awaiting_approval' } });
  fixture.faults.push('lose_reply');
  const lost = await write('create');
  expect(lost).toMatchObject({ kind: 'state', operation: { stage: 'parked', effect: 'unknown' } });
  const done = await write('append');
  expect(done).toMatchObject({ kind: 'reply', operation: { effect: 'accepted' } });
  const again = await write('create');
  expect(again).toMatchObject({ kind: 'state', operation: { effect: 'unknown' } });
  expect(fixture.records).toHaveLength(2);
});
