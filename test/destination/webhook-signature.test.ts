import { describe, expect, test } from 'vitest';
import { signatureOf, verifySignature } from '../../src/destination/http/webhook-signature.ts';

// The vector of the specification's own libraries (standard-webhooks/standard-webhooks).
const SECRET = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw';
const BODY = Buffer.from('{"test": 2432232314}');
const HEADERS = {
  'webhook-id': 'msg_p5jXN8AQM9LWM0D4loKWxJek',
  'webhook-timestamp': '1614265330',
  'webhook-signature': 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=',
};
const CLOCK = { at: 1_614_265_330_000, toleranceMs: 300_000 };

test('the vector of the specification is genuine', () => {
  expect(verifySignature({ headers: HEADERS, body: BODY }, SECRET, CLOCK)).toEqual({
    ok: true,
    id: HEADERS['webhook-id'],
    sentAt: CLOCK.at,
  });
});

test('of several signatures and of several secrets any may fit', () => {
  const signatures = `v1,AAAA v1a,BBBB ${HEADERS['webhook-signature']}`;
  const headers = { ...HEADERS, 'webhook-signature': signatures };
  expect(verifySignature({ headers, body: BODY }, `whsec_b2xk ${SECRET}`, CLOCK).ok).toBe(true);
});

describe('what is not genuine', () => {
  test.each([
    ['another body', { body: Buffer.from('{"test": 2432232315}') }, 'its signature is not of our secret'],
    ['another id', { headers: { 'webhook-id': 'msg_2' } }, 'its signature is not of our secret'],
    ['no id', { headers: { 'webhook-id': undefined } }, 'its header webhook-id is missing'],
    ['no signature', { headers: { 'webhook-signature': '' } }, 'its header webhook-signature is missing'],
    [
      'a version that is not known',
      { headers: { 'webhook-signature': HEADERS['webhook-signature'].replace('v1', 'v0') } },
      'its signature is not of our secret',
    ],
    ['an odd time', { headers: { 'webhook-timestamp': '1e9' } }, 'its timestamp is no number of seconds'],
    ['an old one, again', { clock: CLOCK.at + 300_001 }, 'it was signed too long ago'],
    ['one of the future', { clock: CLOCK.at - 300_001 }, 'it was signed in the future'],
    ['a secret that is none', { secret: 'hunter2' }, 'no secret to check it by begins with whsec_'],
  ])('%s', (_what, change, why) => {
    const {
      body = BODY,
      clock = CLOCK.at,
      headers = {},
      secret = SECRET,
    } = change as {
      readonly body?: Buffer;
      readonly clock?: number;
      readonly headers?: object;
      readonly secret?: string;
    };
    const given = { headers: { ...HEADERS, ...headers }, body };
    expect(verifySignature(given, secret, { ...CLOCK, at: clock })).toEqual({ ok: false, why });
  });
});

test('a time that is not signed is not looked at: its sender learns nothing of our clock', () => {
  const headers = { ...HEADERS, 'webhook-timestamp': '1' };
  expect(verifySignature({ headers, body: BODY }, SECRET, CLOCK)).toEqual({
    ok: false,
    why: 'its signature is not of our secret',
  });
  const signature = `v1,${signatureOf(SECRET, HEADERS['webhook-id'], '1', BODY)}`;
  const signed = { ...headers, 'webhook-signature': signature };
  expect(verifySignature({ headers: signed, body: BODY }, SECRET, CLOCK)).toMatchObject({
    why: 'it was signed too long ago',
  });
});
