import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { isStrongEnough } from '../../src/core/authority.ts';
import { pauseBeforeTry } from '../../src/core/owner.ts';
import { T0 } from './fixtures.ts';

describe('wrong tries of the passphrase are slowed', () => {
  test('three cost nothing, then the pause doubles up to five minutes', () => {
    const pauses = [0, 1, 2, 3, 4, 5, 6, 20, 5_000].map((wrong) =>
      pauseBeforeTry({ wrong, triedAt: T0 }, T0),
    );
    expect(pauses).toEqual([0, 0, 0, 1_000, 2_000, 4_000, 8_000, 300_000, 300_000]);
  });

  test('it is over when it is over, and a clock that was set back never makes it endless', () => {
    fc.assert(
      fc.property(fc.nat(40), fc.integer({ min: -1e12, max: 1e12 }), (wrong, passed) => {
        const pause = pauseBeforeTry({ wrong, triedAt: T0 }, T0 + passed);
        expect(pause).toBeGreaterThanOrEqual(0);
        expect(pause).toBeLessThanOrEqual(300_000);
        if (passed >= 300_000) expect(pause).toBe(0);
      }),
    );
  });
});

describe('the strength of an approval', () => {
  test('the same account is too little for what cannot be taken back, and for nothing else', () => {
    const weak = (['read', 'ordinary', 'interactive', 'unclassified', 'irreversible'] as const).filter(
      (toolClass) => !isStrongEnough('same_account', toolClass),
    );
    expect(weak).toEqual(['irreversible']);
    expect(isStrongEnough('passphrase', 'irreversible')).toBe(true);
    expect(isStrongEnough('sso', 'irreversible')).toBe(true);
  });
});
