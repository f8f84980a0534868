import { describe, expect, test } from 'vitest';
import type { ContractOperation, VersionFacts } from '../../src/core/contract.ts';
import { unlikeMeans } from '../../src/core/written-version.ts';
import { ACCEPTED, contractOf, factsOf, LOST, PRESENT, READ_BACK, SECOND_MS, setup } from './fixtures.ts';

const REVISION: VersionFacts = {
  kind: 'revision',
  aba_safe: 'yes',
  enforced: 'none',
  evidence: { grade: 'documented' },
};

function factsWith(version: Partial<VersionFacts> = {}, more: Partial<ContractOperation> = {}) {
  return factsOf({
    operation: contractOf({
      acknowledgement: { version: { from: 'json', path: '/version' } },
      readback: READ_BACK,
      version: { ...REVISION, ...version },
      ...more,
    }),
  });
}

/** What a different record means that was read at a version, after our write was acknowledged with `written`. */
function means(written: string | undefined, seen: string | undefined, facts = factsWith()) {
  const bundle = setup({ facts });
  bundle.start();
  bundle.comesBack(ACCEPTED);
  const operation = { ...bundle.operation, record: written === undefined ? {} : { version: written } };
  return unlikeMeans(operation, facts, seen);
}

describe('a record that was read back and differs', () => {
  test.each([
    ['7', '7', 'nobody_wrote'],
    ['rev-a', 'rev-a', 'nobody_wrote'],
    ['"7"', '7', 'nobody_wrote'],
    ['W/"7"', '"7"', 'nobody_wrote'],
    ['7', '8', 'later_writer'],
    ['9', '10', 'later_writer'],
    ['9007199254740992', '9007199254740993', 'later_writer'],
    // From before our write: an answer that lags.
    ['8', '7', 'cannot_tell'],
    ['10', '9', 'cannot_tell'],
    // No numbers: which came first is not to be seen.
    ['rev-a', 'rev-b', 'cannot_tell'],
    ['7', undefined, 'cannot_tell'],
    [undefined, '7', 'cannot_tell'],
  ] as const)('written at %s and read at %s: %s', (written, seen, expected) => {
    expect(means(written, seen)).toBe(expected);
  });

  test.each<[string, ReturnType<typeof factsWith>]>([
    ['a hash of the content, which comes back', factsWith({ kind: 'content_hash' })],
    ['an instant of some grain', factsWith({ kind: 'timestamp' })],
    ['a version that may come back', factsWith({ aba_safe: 'no' })],
    ['a version of which that is not known', factsWith({ aba_safe: 'unknown' })],
    ['evidence that may not drive anything', factsWith({ evidence: { grade: 'reported' } })],
    ['an acknowledgement that gives no version', factsWith({}, { acknowledgement: {} })],
    ['no facts about a version', factsOf({ operation: contractOf({ readback: READ_BACK }) })],
    ['no contract', factsOf()],
  ])('tells nothing by %s', (_what, facts) => {
    expect(means('7', '7', facts)).toBe('cannot_tell');
    expect(means('7', '8', facts)).toBe('cannot_tell');
  });

  test('tells nothing by a version that was only seen: it may be another writer\u2019s', () => {
    const facts = factsWith();
    const bundle = setup({ facts });
    bundle.start();
    bundle.comesBack(LOST);
    bundle.pass(SECOND_MS);
    bundle.learn(PRESENT);
    expect(unlikeMeans({ ...bundle.operation, record: { version: '7' } }, facts, '7')).toBe('cannot_tell');
  });

  test('tells nothing after a repeat, which may be answered with the version of now', () => {
    const facts = factsWith();
    const bundle = setup({ facts });
    bundle.start();
    bundle.comesBack(ACCEPTED);
    const { attempts, ...rest } = bundle.operation;
    const repeated = attempts.map((attempt) => ({ ...attempt, under: 'request_key' as const }));
    const operation = { ...rest, attempts: repeated, record: { version: '7' } };
    expect(unlikeMeans(operation, facts, '7')).toBe('cannot_tell');
  });
});
