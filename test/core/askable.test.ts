import { expect, test } from 'vitest';
import { askableNow } from '../../src/core/askable.ts';
import type { Lookup } from '../../src/core/contract.ts';
import { contractOf, factsOf, IN_PROGRESS, lookupOf, setup, setupLost } from './fixtures.ts';

const BY_STAMP = lookupOf({ by: 'client_reference' });
const BY_HANDLE = lookupOf({
  by: 'operation_handle',
  tool: { name: 'GET /jobs/{$record}', arguments: { path: ['jobs', '{$record}'] } },
  status: { state: { from: 'json', path: '/state' }, done: ['done'], failed: [] },
});

function factsWith(...lookups: Lookup[]) {
  return factsOf({ operation: contractOf({ completion: { kind: 'accepted_then_poll' }, lookups }) });
}

test('without the destination’s own id only what needs none is asked', () => {
  const { operation } = setupLost({ facts: factsWith(BY_STAMP, BY_HANDLE) });
  expect(askableNow(factsWith(BY_STAMP, BY_HANDLE), operation).operation?.lookups).toEqual([BY_STAMP]);
});

test('nothing can be asked where every look-up needs the id, and there is none', () => {
  const { operation } = setupLost({ facts: factsWith(BY_HANDLE) });
  expect(askableNow(factsWith(BY_HANDLE), operation).operation?.lookups).toEqual([]);
});

test('while work goes on, the resource that tells of it is asked before all others', () => {
  const facts = factsWith(BY_STAMP, BY_HANDLE);
  const bundle = setup({ facts });
  bundle.start();
  bundle.comesBack(IN_PROGRESS);
  const operation = { ...bundle.operation, record: { id: 'job-1' } };
  expect(operation.why?.code).toBe('destination_still_working');
  expect(askableNow(facts, operation).operation?.lookups).toEqual([BY_HANDLE, BY_STAMP]);
});

test('facts of which no look-up needs the id stay what they are', () => {
  const facts = factsWith(BY_STAMP);
  expect(askableNow(facts, setupLost({ facts }).operation)).toBe(facts);
});
