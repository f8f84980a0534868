import { randomBytes } from 'node:crypto';
import { expect, test } from 'vitest';
import { modernError, modernResult } from '../../src/gateway/dialect.ts';
import { boundTo, isSealed, seal, unseal } from '../../src/gateway/sealed-state.ts';

const KEY = randomBytes(32);
const STATE = { conversation: 'c', leg: 1, operation: 'op_1', bound: 'b', expiresAt: 1 };

test('a state is opened by its key alone, and not when any character of it was changed', () => {
  const sealed = seal(KEY, STATE);
  expect(isSealed(sealed)).toBe(true);
  expect(unseal(KEY, sealed)).toEqual(STATE);
  expect(unseal(randomBytes(32), sealed)).toBeUndefined();
  expect(seal(KEY, STATE)).not.toBe(sealed);
  const bytes = Buffer.from(sealed.slice(4), 'base64url');
  for (let at = 0; at < bytes.length; at += 1) {
    const changed = Buffer.from(bytes);
    changed[at] = (changed[at] ?? 0) ^ 1;
    expect(unseal(KEY, `cf1.${changed.toString('base64url')}`)).toBeUndefined();
  }
  for (const text of ['', 'cf1.', 'cf1.AAAA', sealed.slice(4), `cf2.${sealed.slice(4)}`]) {
    expect(unseal(KEY, text)).toBeUndefined();
  }
});

test('it is bound to who asks, how, and what', () => {
  const all = [
    boundTo('a', 'tools/call', '{}'),
    boundTo('b', 'tools/call', '{}'),
    boundTo('a', 'prompts/get', '{}'),
    boundTo('a', 'tools/call', '{"x":1}'),
  ];
  expect(new Set(all).size).toBe(4);
});

test('a client of 2026-07-28 is given what its generation requires, where it is not there, and no more', () => {
  expect(modernResult('tools/call', '{"content":[]}')).toBe('{"resultType":"complete","content":[]}');
  expect(modernResult('tools/list', '{ "tools":[]}')).toBe(
    '{"resultType":"complete","ttlMs":0,"cacheScope":"private", "tools":[]}',
  );
  const whole = '{"tools":[],"resultType":"complete","ttlMs":5,"cacheScope":"public"}';
  expect(modernResult('tools/list', whole)).toBe(whole);
  const asks = '{"resultType":"input_required","requestState":"s"}';
  expect(modernResult('resources/read', asks)).toBe(asks);
  expect(modernError('{"code":-32002,"message":"no such resource"}')).toBe(
    '{"code":-32602,"message":"no such resource"}',
  );
  expect(modernError('{"code":-32000,"message":"x"}')).toBe('{"code":-32000,"message":"x"}');
});
