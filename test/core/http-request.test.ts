import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { JsonObject } from '../../src/core/canonical.ts';
import type { ContractOperation, Guard, HttpWrite } from '../../src/core/contract.ts';
import { partedTemplate, requestFrom, writeRequest } from '../../src/core/http-request.ts';

const ID = 'op_01JC3V9R7T5N2QX8W4M6K0ZABC';
const EVIDENCE = { grade: 'documented' } as const;

function operationOf(http: HttpWrite, guards: readonly Guard[] = []): ContractOperation {
  return {
    id: 'ticket.create',
    match: ['POST /tickets'],
    effect: 'create',
    completion: { kind: 'synchronous' },
    http,
    guards,
    lookups: [],
    outcomes: [],
    reversals: [{ kind: 'none', evidence: EVIDENCE }],
  };
}

function made(http: HttpWrite, args: JsonObject, guards: readonly Guard[] = []) {
  const result = writeRequest(operationOf(http, guards), args, ID);
  return result.ok ? result.request : result.problem;
}

function keyed(carrier: Guard['carrier'], kind: Guard['kind'] = 'request_key'): Guard {
  return {
    kind,
    carrier,
    scope: [],
    window: { kind: 'unknown' },
    same: { result: 'unknown' },
    different: { result: 'unknown' },
    in_flight: { result: 'unknown' },
    evidence: EVIDENCE,
  };
}

describe('the parts of a request', () => {
  test('each value stands in its place, in the form of its place', () => {
    const http: HttpWrite = {
      method: 'POST',
      path: '/queues/{queue}/tickets:open',
      query: { notify: 'false', tag: '{tags}' },
      headers: { 'X-Caller': '{caller}' },
      body: { title: '{title}', amount: '{amount}', note: '{note?}', by: { ref: '{$stamp}' } },
    };
    const args = { queue: 'a/b c', caller: 'ada', title: 'Ä', amount: 12.5, tags: ['x&y', 'z'] };
    expect(made(http, args)).toEqual({
      method: 'POST',
      target: '/queues/a%2Fb%20c/tickets:open?notify=false&tag=x%26y&tag=z',
      headers: { 'content-type': 'application/json', 'x-caller': 'ada' },
      body: `{"amount":12.5,"by":{"ref":"${ID}"},"title":"Ä"}`,
    });
  });

  test('a form is written as browsers write it', () => {
    const http: HttpWrite = {
      method: 'POST',
      path: '/charges',
      content: 'form',
      body: { text: '{text}', n: 3 },
    };
    expect(made(http, { text: 'a b&c' })).toMatchObject({
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
      body: 'text=a+b%26c&n=3',
    });
  });

  test.each<[string, HttpWrite, JsonObject, string]>([
    [
      'a missing argument',
      { method: 'POST', path: '/t', body: { title: '{title}' } },
      {},
      'the request cannot be made: {title} has no value here',
    ],
    [
      'a path that leads elsewhere',
      { method: 'DELETE', path: '/t/{id}' },
      { id: '..' },
      'the address would have the part ..',
    ],
    [
      'an empty part',
      { method: 'DELETE', path: '/t/{id}/x' },
      { id: '' },
      'the address would have an empty part',
    ],
    [
      'an empty last part, which would be the address of the whole list',
      { method: 'DELETE', path: '/t/{id}' },
      { id: '' },
      'the address would have an empty part',
    ],
    [
      'an object in the address',
      { method: 'DELETE', path: '/t/{id}' },
      { id: { a: 1 } },
      'the address can carry a text, a number or a truth value, and was given something else',
    ],
    [
      'a second header in a value',
      { method: 'DELETE', path: '/t', headers: { 'X-A': '{a}' } },
      { a: 'x\r\nX-B: y' },
      'the header X-A cannot carry its value, which is empty or not plain ASCII',
    ],
    [
      'a weak version',
      { method: 'PUT', path: '/t', headers: { 'If-Match': '{version}' } },
      { version: 'W/"5"' },
      'the header If-Match needs a strong version, and W/"5" is none',
    ],
    [
      'a condition that every version meets',
      { method: 'PUT', path: '/t', headers: { 'If-Match': '{version}' } },
      { version: '*' },
      'the header If-Match needs a version, and * is every one',
    ],
  ])('%s is refused in a sentence', (_what, http, args, problem) => {
    const guards = [keyed({ in: 'header', name: 'If-Match', encoding: 'etag' }, 'precondition')];
    expect(made(http, args, guards)).toBe(problem);
  });

  test.each([
    ['5', '"5"'],
    ['"5"', '"5"'],
  ])('a precondition with the version %s is sent as %s', (version, sent) => {
    const guards = [keyed({ in: 'header', name: 'If-Match', encoding: 'etag' }, 'precondition')];
    const http: HttpWrite = { method: 'PUT', path: '/t', headers: { 'If-Match': '{version}' } };
    expect(made(http, { version }, guards)).toMatchObject({ headers: { 'if-match': sent } });
  });

  test('that nothing is there yet is a condition of its own', () => {
    const guards = [keyed({ in: 'header', name: 'If-None-Match' }, 'precondition')];
    const http: HttpWrite = { method: 'PUT', path: '/t', headers: { 'If-None-Match': '*' } };
    expect(made(http, {}, guards)).toMatchObject({ headers: { 'if-none-match': '*' } });
  });

  test.each([
    ['/', '/'],
    ['/t', '/t'],
    ['/t/', '/t/'],
    ['/t/{id}/', '/t/x/'],
  ])('the path %s is sent as %s: a slash at its end stays', (path, target) => {
    expect(made({ method: 'DELETE', path }, { id: 'x' })).toMatchObject({ target });
  });

  test('no value of an argument ever becomes more than one part of the address', () => {
    const template = partedTemplate({ path: '/a/{x}/b' });
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (x) => {
        const result = requestFrom(template, { arguments: { x } });
        if (!result.ok) return;
        const url = new URL(`https://host/base${result.request.target}`);
        expect(url.pathname.split('/')).toHaveLength(5);
        expect(url.search + url.hash).toBe('');
        expect(url.pathname.startsWith('/base/a/')).toBe(true);
      }),
    );
  });
});

describe('the key of the guard', () => {
  const http: HttpWrite = { method: 'POST', path: '/t', query: { a: '1' }, body: { title: '{title}' } };
  test.each<[Guard['carrier'], object]>([
    [{ in: 'header', name: 'Idempotency-Key' }, { headers: { 'idempotency-key': ID } }],
    [{ in: 'query', name: 'token' }, { target: `/t?a=1&token=${ID}` }],
    [{ in: 'body', name: 'ClientToken' }, { body: `{"ClientToken":"${ID}","title":"x"}` }],
  ])('is put where its carrier %j is', (carrier, part) => {
    expect(made(http, { title: 'x' }, [keyed(carrier)])).toMatchObject(part);
  });

  test('is put where the template says, and there alone', () => {
    const guards = [keyed({ in: 'path', name: 'id', encoding: 'identifier' }, 'client_identity')];
    const result = made({ ...http, method: 'PUT', path: '/t/{$key}' }, { title: 'x' }, guards);
    expect(result).toMatchObject({ target: expect.stringMatching(/^\/t\/op-[0-9a-v]{32}\?a=1$/) });
  });

  test('nothing that a caller gives is in its place', () => {
    const guards = [keyed({ in: 'body', name: 'key' })];
    const result = made({ ...http, body: { title: '{title}' } }, { title: 'x', key: 'mine' }, guards);
    expect(result).toMatchObject({ body: `{"key":"${ID}","title":"x"}` });
  });

  test('the header of the first sending is named, and has no value until then', () => {
    const guards = [keyed({ in: 'header', name: 'Repeatability-Request-ID', encoding: 'uuid' })];
    const headers = { 'Repeatability-First-Sent': '{$first_sent}', 'X-A': 'b' };
    const result = made({ ...http, headers }, { title: 'x' }, guards);
    expect(result).toMatchObject({ firstSent: 'repeatability-first-sent' });
    expect(Object.keys(typeof result === 'string' ? {} : result.headers)).toEqual([
      'content-type',
      'x-a',
      'repeatability-request-id',
    ]);
  });

  test('a repeat of an operation has the same request, byte for byte', () => {
    const guards = [keyed({ in: 'header', name: 'Idempotency-Key', encoding: 'sf_string' })];
    expect(made(http, { title: 'x' }, guards)).toEqual(made(http, { title: 'x' }, guards));
  });
});
