import { describe, expect, test } from 'vitest';
import { loadContract, loadHttpDestination } from '../../src/contracts/load.ts';
import type { JsonObject } from '../../src/core/canonical.ts';
import { contractOf, TICKET } from '../engine/http-world.ts';

const CONFIG = { destination: 'tickets', url: 'https://tickets.example/api', contract: 'tickets.yaml' };

/** The sentences that a configuration is refused with. */
function refusedConfig(changes: object, operation: JsonObject = TICKET): readonly string[] {
  const readText = (file: string) =>
    file === 'tickets.yaml' ? { text: JSON.stringify(contractOf(operation)) } : { reason: 'it is not there' };
  const loaded = loadHttpDestination(JSON.stringify({ ...CONFIG, ...changes }), 'destination.yaml', {
    readText,
  });
  return loaded.ok ? [] : loaded.problems.map(({ sentence }) => sentence);
}

/** The sentences that a contract of one operation is refused with. */
function refusedContract(changes: JsonObject): readonly string[] {
  const loaded = loadContract(JSON.stringify(contractOf({ ...TICKET, ...changes })), 'tickets.yaml');
  return loaded.ok ? [] : loaded.problems.map(({ sentence }) => sentence);
}

const GUARD = {
  kind: 'request_key',
  carrier: { in: 'header', name: 'Idempotency-Key' },
  scope: ['account'],
  window: { kind: 'duration', at_least: 'P1D' },
  same: { result: 'replays_original' },
  different: { result: 'rejected' },
  in_flight: { result: 'waits' },
  evidence: { grade: 'documented' },
};
const HTTP = { method: 'POST', path: '/tickets', body: { title: '{title}' } };

test('a whole configuration is taken', () => {
  const changes = {
    mode: 'guard',
    headers: { Authorization: 'Bearer {token}' },
    secrets: { token: { env: 'TOKEN' }, signing: { file: 'signing.txt' } },
    timeouts: { connect: 'PT2S', queue: 'PT1S', headers: 'PT30S', body: 'PT10S', late: 'PT1M' },
    pool: { connections: 4, keep_alive: 'PT1S' },
    reply_max_bytes: 65_536,
    notices: { secret: 'signing', tolerance: 'PT5M' },
    tools: { 'ticket.create': { class: 'ordinary' } },
  };
  expect(refusedConfig(changes)).toEqual([]);
});

describe('a configuration is refused in a sentence', () => {
  test.each<[string, object, string]>([
    ['a key that is not known', { header: {} }, 'The key "header" is not known; did you mean headers?'],
    [
      'a wrong type',
      { pool: { connections: 'many' } },
      'pool.connections is "many", which is a text; allowed is a whole number.',
    ],
    [
      'credentials in the address',
      { url: 'https://ada:secret@tickets.example/api' },
      'url is "https://ada:secret@tickets.example/api"; allowed is an http or https address without credentials, query and fragment.',
    ],
    [
      'a secret that is written down',
      { secrets: { token: 'abc' } },
      'secrets.token is "abc", which is a text; allowed is a map of keys and values.',
    ],
    [
      'a secret that is not known',
      { headers: { Authorization: 'Bearer {tokn}' }, secrets: { token: { env: 'T' } } },
      'The header Authorization uses the secret tokn, which is not known (did you mean token?).',
    ],
    [
      'secrets in the clear',
      { url: 'http://tickets.example', secrets: { token: { env: 'T' } } },
      'url is an http address of another machine, and the secrets token would travel to it in the clear; https is needed.',
    ],
    ['a header of ours', { headers: { Host: 'x' } }, 'The header Host is written by us; it cannot be given.'],
    [
      "a header in the place of a guard's key, which would be the same for every write",
      { headers: { 'idempotency-key': 'always' } },
      'The header idempotency-key is written by ticket.create of the contract tickets, whose request is frozen when it is reviewed; it cannot be given here.',
    ],
    [
      'a header that a request of the contract sends',
      { headers: { 'x-caller': 'us' } },
      'The header x-caller is written by ticket.create of the contract tickets, whose request is frozen when it is reviewed; it cannot be given here.',
    ],
    [
      'a contract that is not there',
      { contract: 'no.yaml' },
      'The file no.yaml cannot be read: it is not there.',
    ],
    [
      'an operation that is not there',
      { tools: { 'ticket.crate': { class: 'ordinary' } } },
      'tools names ticket.crate, which the contract tickets does not say how to send; did you mean ticket.create?.',
    ],
  ])('%s', (_what, changes, sentence) => {
    const http = { ...(TICKET['http'] as JsonObject), headers: { 'X-Caller': '{caller}' } };
    expect(refusedConfig(changes, { ...TICKET, http, guards: [GUARD] })).toContain(sentence);
  });

  test('a contract of which nothing can be sent', () => {
    const { http: _http, ...described } = TICKET;
    expect(refusedConfig({}, described)).toEqual([
      'No operation of the contract tickets (tickets.yaml) says by http how it is sent, so that nothing can be sent.',
    ]);
  });
});

describe('a contract is refused in a sentence', () => {
  test.each<[string, JsonObject, string]>([
    [
      'an unknown place in the request',
      { http: { ...HTTP, path: '/tickets/{$record}' } },
      'The request of ticket.create uses {$record}, which is known only after sending; allowed are arguments of the call, {$stamp} and {$key}.',
    ],
    [
      'a key without a guard',
      { http: { ...HTTP, headers: { 'X-Key': '{$key}' } } },
      'The request of ticket.create uses {$key}, and no guard of it is a request_key or a client_identity.',
    ],
    [
      'a key that its caller could choose',
      { guards: [GUARD], http: { ...HTTP, headers: { 'idempotency-key': '{key}' } } },
      "The request of ticket.create fills idempotency-key by itself, which is the place of its guard's key; what a caller gives must not be the key, so use {$key} there or leave it out.",
    ],
    [
      'a guard that takes no key of ours',
      { guards: [{ ...GUARD, carrier: { ...GUARD.carrier, max_length: 12 } }], http: HTTP },
      'The guard of ticket.create takes no key of ours: its encoding is opaque, with 12 characters at most; opaque, sf_string, uuid, base32hex and identifier are made, of 24 characters or more.',
    ],
    [
      'a credential',
      { http: { ...HTTP, headers: { Authorization: 'Bearer x' } } },
      "ticket.create sends the header Authorization; credentials belong into the destination's configuration, as secrets by reference.",
    ],
    [
      'a precondition that is not sent',
      {
        guards: [
          { ...GUARD, kind: 'precondition', carrier: { in: 'header', name: 'If-Match', encoding: 'etag' } },
        ],
        http: HTTP,
      },
      'ticket.create is guarded by the header If-Match, and its request does not send that header.',
    ],
    [
      'a precondition that every version meets',
      {
        guards: [
          { ...GUARD, kind: 'precondition', carrier: { in: 'header', name: 'If-Match', encoding: 'etag' } },
        ],
        http: { ...HTTP, headers: { 'If-Match': '*' } },
      },
      'ticket.create is guarded by the header If-Match, and its request sends the same value each time, which every version meets; it needs the version, such as {version}.',
    ],
    [
      'a query in the path',
      { http: { ...HTTP, path: '/tickets?a=1' } },
      'operations[0].http.path is "/tickets?a=1"; allowed is a path that begins with a slash and has no query, such as /tickets/{id}.',
    ],
    [
      'work that never ends',
      {
        completion: {
          kind: 'accepted_then_poll',
          handle: { in: 'body', name: '/job' },
          http: { path: '/jobs/{$record}', state: '/state', evidence: { grade: 'documented' } },
        },
      },
      'ticket.create is asked how far it has come, and done names no state that ends the work.',
    ],
    [
      'a notice by a name that is not written',
      {
        stamp: { argument: 'reference' },
        notices: [
          { names: { by: 'request_key', path: '/key' }, means: 'applied', evidence: { grade: 'documented' } },
        ],
      },
      'A notice names ticket.create by its key, which is found again only where its encoding is opaque.',
    ],
  ])('%s', (_what, changes, sentence) => {
    expect(refusedContract(changes)).toContain(sentence);
  });

  test('pages of which nobody says where their list is', () => {
    const [lookup] = TICKET['lookups'] as readonly JsonObject[];
    const { found: _found, ...rest } = lookup ?? {};
    const http = { path: '/tickets', pages: { next: { link: 'next' } } };
    expect(refusedContract({ lookups: [{ ...rest, http }] })).toEqual([
      'A look-up of ticket.create reads several pages, and found.items does not say, from json, where the list in each of them is.',
    ]);
  });
});
