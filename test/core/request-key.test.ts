import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { CarrierEncoding, GuardCarrier } from '../../src/core/contract.ts';
import { formatId, ID_RANDOM_BYTES } from '../../src/core/ids.ts';
import { requestKey } from '../../src/core/request-key.ts';

const ID = 'op_01JC3V9R7T5N2QX8W4M6K0ZABC';

test.each<[GuardCarrier, string]>([
  [{ in: 'header' }, ID],
  [{ in: 'header', encoding: 'opaque', max_length: 64 }, ID],
  [{ in: 'header', encoding: 'sf_string' }, `"${ID}"`],
])('a carrier %j takes the id itself', (carrier, key) => {
  expect(requestKey(ID, carrier)).toBe(key);
});

test.each<[GuardCarrier, number]>([
  [{ in: 'header', encoding: 'opaque', max_length: 28 }, 28],
  [{ in: 'header', encoding: 'base32hex', max_length: 26 }, 26],
  [{ in: 'path', encoding: 'identifier', max_length: 60 }, 35],
])('a carrier %j takes what is derived from it, no longer than it may be', (carrier, length) => {
  expect(requestKey(ID, carrier)).toHaveLength(length);
});

test.each<[GuardCarrier]>([
  [{ in: 'header', encoding: 'etag' }],
  [{ in: 'body', encoding: 'full_state' }],
  [{ in: 'header', max_length: 16 }],
  [{ in: 'header', encoding: 'uuid', max_length: 32 }],
  [{ in: 'header', pattern: '^\\d+$' }],
])('a carrier %j takes none', (carrier) => {
  expect(requestKey(ID, carrier)).toBeUndefined();
});

const ids = fc
  .tuple(fc.integer({ min: 0, max: 2 ** 45 }), fc.uint8Array({ minLength: 10, maxLength: 10 }))
  .map(([at, random]) => formatId('op', at, random));

test('every id has one key in each form, and two ids have two', () => {
  const forms: readonly [CarrierEncoding, RegExp][] = [
    ['opaque', /^op_[0-9A-Z]{26}$/],
    ['sf_string', /^"op_[0-9A-Z]{26}"$/],
    ['uuid_v4', /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/],
    ['base32hex', /^[0-9a-v]{32}$/],
    // Amazon RDS: a letter first, letters, digits and single hyphens.
    ['identifier', /^[a-z][a-z0-9]*(-[a-z0-9]+)*$/],
  ];
  expect(ID_RANDOM_BYTES).toBe(10);
  fc.assert(
    fc.property(ids, ids, (one, other) => {
      for (const [encoding, form] of forms) {
        const key = requestKey(one, { in: 'header', encoding });
        expect(key).toMatch(form);
        expect(requestKey(one, { in: 'header', encoding })).toBe(key);
        expect(requestKey(other, { in: 'header', encoding }) === key).toBe(one === other);
      }
    }),
  );
});
