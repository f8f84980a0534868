import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { keepsInvariants, MACHINE, plan } from './random-histories.ts';
describe('for any history', () => {
  test('the invariants hold after every step, and no command throws', () => {
    fc.assert(fc.property(plan, keepsInvariants(MACHINE)), { numRuns: 100000 });
  });
});
