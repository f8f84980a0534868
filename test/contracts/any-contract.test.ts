// Whatever a contract that is right may say: it is explained, noted and put on a page, and nothing throws.

import fc from 'fast-check';
import { expect, it } from 'vitest';
import { blueprintOf } from '../../src/contracts/blueprint.ts';
import { lintContract } from '../../src/contracts/contract-lints.ts';
import { explainOperation, guardLines } from '../../src/contracts/explain-contract.ts';
import { loadContract } from '../../src/contracts/load.ts';
import { answersFor } from '../../src/contracts/situations.ts';

const PAUSES = { resumeWindow: 'unbounded', approvalLifetime: 'PT8H' };

const grade = fc.constantFrom('documented', 'source', 'drilled', 'reported', 'assumed', 'not_documented');
const evidence = fc.record({ grade }, { requiredKeys: ['grade'] });
const duration = fc.constantFrom('PT1S', 'PT5M', 'PT2H', 'P1D', 'P45D');
const tri = fc.constantFrom('yes', 'no', 'unknown');
const signal = fc.oneof(
  fc.record({ status: fc.constantFrom([409], [503], [200, 201]) }),
  fc.record({ kind: fc.constant(['tool_error']), text_starts: fc.constant(['Quota: ']) }),
);

const window = fc.oneof(
  fc.record({
    kind: fc.constant('duration'),
    at_least: duration,
    after: fc.constantFrom('executes_again', 'rejected', 'unknown'),
  }),
  fc.record({ kind: fc.constantFrom('resource_lifetime', 'session', 'none', 'unknown') }),
  fc.record({ kind: fc.constant('while_state'), while: fc.constant('it is open') }),
);

const guard = fc.record(
  {
    kind: fc.constantFrom('request_key', 'client_identity', 'precondition', 'desired_state', 'sequence'),
    carrier: fc.record(
      {
        in: fc.constantFrom('header', 'body', 'path', 'graphql_input'),
        name: fc.constant('Key'),
        encoding: fc.constantFrom(
          'opaque',
          'sf_string',
          'uuid_v4',
          'base32hex',
          'identifier',
          'etag',
          'counter',
        ),
        max_length: fc.integer({ min: 1, max: 300 }),
        pattern: fc.constantFrom('^[a-z]', '^[0-9a-f-]{36}$', 'x'),
      },
      { requiredKeys: ['in'] },
    ),
    scope: fc.subarray(['account', 'credential', 'endpoint', 'region', 'container'] as const),
    window,
    same: fc.record(
      {
        result: fc.constantFrom(
          'replays_original',
          'replays_current',
          'conflict',
          'converges',
          'executes_again',
          'unknown',
        ),
        side_effects: fc.constantFrom('once', 'again', 'unknown'),
      },
      { requiredKeys: ['result'] },
    ),
    different: fc.record({ result: fc.constantFrom('rejected', 'overwrites', 'unknown') }),
    in_flight: fc.record({ result: fc.constantFrom('rejected_in_progress', 'waits', 'unknown') }),
    after_delete: fc.constantFrom('blocked', 'allowed', 'unknown'),
    strength: fc.constantFrom('enforced', 'best_effort', 'unknown'),
    evidence,
  },
  { requiredKeys: ['kind', 'carrier', 'scope', 'window', 'same', 'different', 'in_flight', 'evidence'] },
);

const lookup = fc.record({
  by: fc.constantFrom('request_key', 'client_reference', 'natural_fields', 'list_scan'),
  asked: fc.boolean(),
  consistency: fc.record(
    { kind: fc.constantFrom('read_after_write', 'eventual', 'unknown'), settle: duration },
    { requiredKeys: ['kind'] },
  ),
  proves: fc.record({
    present: fc.constant('applied'),
    absent: fc.constantFrom('not_applied', 'not_applied_after_settle', 'nothing'),
  }),
  evidence,
});

const operation = fc.record(
  {
    id: fc.constant('write'),
    match: fc.constant(['write']),
    effect: fc.constantFrom('create', 'update', 'replace', 'upsert', 'delete', 'action', 'message'),
    destructive: fc.boolean(),
    repeat: fc.constantFrom('unique', 'state', 'free'),
    completion: fc.record({
      kind: fc.constantFrom('synchronous', 'accepted_then_poll', 'accepted_no_handle'),
    }),
    batch: fc.constantFrom('single', 'atomic', 'per_item', 'partial_possible'),
    guards: fc.array(guard, { maxLength: 3 }),
    lookups: fc.array(lookup, { maxLength: 2 }).map((some) =>
      some.map(({ asked, ...each }) => ({
        ...each,
        ...(asked ? { tool: { name: 'find', arguments: {} } } : { request: 'in words' }),
      })),
    ),
    version: fc.record({
      kind: fc.constantFrom('revision', 'content_hash', 'none', 'unknown'),
      aba_safe: tri,
      enforced: fc.constantFrom('atomic', 'read_then_write', 'none'),
      evidence,
    }),
    outcomes: fc.uniqueArray(
      fc.record(
        {
          when: signal,
          means: fc.constantFrom('applied', 'not_applied', 'not_applied_temporary', 'in_progress', 'unknown'),
          evidence,
        },
        { requiredKeys: ['when', 'means'] },
      ),
      { maxLength: 3, selector: ({ when }) => JSON.stringify(when) },
    ),
    reversals: fc.array(
      fc.record({
        kind: fc.constantFrom('cancel', 'delete', 'none'),
        restores: fc.constant('partial'),
        evidence,
      }),
      { minLength: 1, maxLength: 1 },
    ),
    limits: fc.record({ late_arrival: duration }),
  },
  { requiredKeys: ['id', 'match', 'effect', 'completion', 'guards', 'lookups', 'outcomes', 'reversals'] },
);

it('is explained in sentences, in every situation, and nothing is sent again by us where two were found', () => {
  let right = 0;
  fc.assert(
    fc.property(operation, (one) => {
      const contract = {
        contract: 1,
        id: 'any',
        destination: { name: 'Any', protocol: 'http' },
        ownership: { owner: 'ops', reviewed_on: '2026-11-01', review_by: '2027-05-01' },
        operations: [one],
      };
      const loaded = loadContract(JSON.stringify(contract), 'f');
      if (!loaded.ok) return;
      right += 1;
      const [write] = loaded.contract.operations;
      if (write === undefined) throw new Error('It has one.');
      const answers = answersFor(loaded.contract, write);
      const stepOf = (id: string) => answers.find(({ situation }) => situation === id)?.step?.step;
      expect(['park', undefined]).toContain(stepOf('two_found'));
      expect(stepOf('error')).toBe('close');
      const sentences = [
        ...explainOperation(loaded.contract, write).map(({ sentence }) => sentence),
        ...lintContract(loaded.contract, { today: '2026-12-01', pauses: PAUSES }).map(
          ({ sentence }) => sentence,
        ),
      ];
      for (const sentence of [...sentences, ...guardLines(write)]) {
        expect(sentence).not.toMatch(/undefined|NaN|\[object/);
      }
      for (const sentence of sentences) expect(sentence).toMatch(/^\S.*\.$/s);
      const page = blueprintOf({
        destination: 'any',
        contracts: [loaded.contract],
        bindings: [],
        config: { destination: 'any', tools: { write: { contract_operation: 'any/write' } } },
        rules: [],
        pauses: PAUSES,
        today: '2026-12-01',
      });
      expect(page.tools).toHaveLength(1);
    }),
    { numRuns: 300 },
  );
  // Most of what is made here is right: a check that takes nothing would show nothing.
  expect(right).toBeGreaterThan(60);
});
