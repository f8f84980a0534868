// The four classes of contracts that every fault is done to, as the files that an owner would write.
//
// R0: no guard and no look-up. R1: a reference of ours is written, and looked for. R2: the destination honours a key,
// and can be asked by it, without proof of what is absent. R3: the wanted state is written as a whole, and can be read back.

export const CLASSES = ['R0', 'R1', 'R2', 'R3'];

const EVIDENCE = { grade: 'drilled', source: 'wire-faults/destination.mjs' };

/** @returns {object} one contract, as JSON; `polls`: an answer 202 is work that is asked about */
export function contractOf(name, polls) {
  return {
    contract: 1,
    id: `wire-${name.toLowerCase()}`,
    revision: 1,
    destination: { name: 'tickets', protocol: 'http' },
    ownership: { owner: 'tests', reviewed_on: '2026-11-01', review_by: '2099-12-31' },
    operations: [{ ...OPERATIONS[name], ...(polls ? { completion: POLLED } : {}) }],
  };
}

const COMMON = {
  completion: { kind: 'synchronous' },
  outcomes: [
    { when: { status: [422] }, means: 'not_applied', evidence: EVIDENCE },
    { when: { status: [429] }, means: 'not_applied_temporary', evidence: EVIDENCE },
    {
      when: { marker: { in: 'body', name: 'error.code', value: 'refused' } },
      means: 'not_applied',
      evidence: EVIDENCE,
    },
  ],
  reversals: [{ kind: 'delete', restores: 'nothing', evidence: EVIDENCE }],
  limits: { late_arrival: 'PT0S' },
};

const POLLED = {
  kind: 'accepted_then_poll',
  handle: { in: 'body', name: '/job/id' },
  done: ['done'],
  failed: ['failed'],
  http: {
    path: '/jobs/{$record}',
    state: '/state',
    record: '/ticket/id',
    failed_means: 'not_applied',
    evidence: EVIDENCE,
  },
};

const CREATE = {
  ...COMMON,
  id: 'ticket.create',
  match: ['POST /tickets'],
  effect: 'create',
  acknowledgement: { record: { from: 'json', path: '/id' } },
};

const LISTED = {
  found: { items: { from: 'json', path: '/tickets' }, record: '/id' },
  consistency: { kind: 'read_after_write' },
  unique: 'yes',
  proves: { present: 'applied', absent: 'not_applied' },
  evidence: EVIDENCE,
};

const BY_PAGE = { next: { link: 'next' }, pages_max: 3 };

const OPERATIONS = {
  R0: {
    ...CREATE,
    http: {
      method: 'POST',
      path: '/tickets',
      body: { title: '{title}' },
      answer: { echoes: [{ path: '/title', equals: '{title}' }] },
    },
    guards: [],
    lookups: [],
  },
  R1: {
    ...CREATE,
    stamp: { argument: 'reference' },
    http: {
      method: 'POST',
      path: '/tickets',
      body: { title: '{title}', reference: '{$stamp}' },
      answer: { echoes: [{ path: '/reference', equals: '{$stamp}' }] },
    },
    guards: [],
    lookups: [
      {
        ...LISTED,
        by: 'client_reference',
        http: { path: '/tickets', query: { reference: '{$stamp}' }, pages: BY_PAGE },
        found: { ...LISTED.found, where: [{ path: '/reference', equals: '{$stamp}' }] },
      },
    ],
  },
  R2: {
    ...CREATE,
    http: {
      method: 'POST',
      path: '/tickets',
      body: { title: '{title}' },
      answer: { echoes: [{ path: '/title', equals: '{title}' }] },
    },
    guards: [
      {
        kind: 'request_key',
        carrier: { in: 'header', name: 'Idempotency-Key', encoding: 'opaque' },
        scope: ['account'],
        window: { kind: 'duration', at_least: 'P1D', from: 'first_accept', after: 'executes_again' },
        same: { result: 'replays_original' },
        different: { result: 'replays_original' },
        in_flight: { result: 'waits' },
        strength: 'enforced',
        evidence: EVIDENCE,
      },
    ],
    lookups: [
      {
        ...LISTED,
        by: 'request_key',
        http: { path: '/tickets', query: { key: '{$key}' }, pages: BY_PAGE },
        found: { ...LISTED.found, where: [{ path: '/key', equals: '{$key}' }] },
        // It finds what is there, and lags nobody knows how long: only the key makes a repeat harmless.
        consistency: { kind: 'unknown' },
        proves: { present: 'applied', absent: 'nothing' },
      },
    ],
  },
  R3: {
    ...COMMON,
    id: 'ticket.create',
    match: ['PUT /items/{title}'],
    effect: 'replace',
    target: { type: 'item', id: '{title}' },
    acknowledgement: { record: { from: 'json', path: '/id' }, version: { from: 'json', path: '/version' } },
    http: {
      method: 'PUT',
      path: '/items/{title}',
      body: { title: '{title}', state: 'open' },
      answer: { echoes: [{ path: '/title', equals: '{title}' }] },
    },
    guards: [
      {
        kind: 'desired_state',
        carrier: { in: 'body', encoding: 'full_state' },
        scope: ['resource'],
        window: { kind: 'resource_lifetime' },
        same: { result: 'converges' },
        different: { result: 'overwrites' },
        in_flight: { result: 'serialised' },
        strength: 'enforced',
        evidence: EVIDENCE,
      },
    ],
    lookups: [
      {
        by: 'client_identity',
        http: { path: '/items/{title}' },
        found: {
          record: '/id',
          version: '/version',
          where: [{ path: '/id', equals: '{title}' }],
          content: [{ path: '/state', equals: 'open' }],
        },
        absent_when: { status: [404] },
        consistency: { kind: 'read_after_write' },
        unique: 'yes',
        proves: { present: 'applied_if_content_matches', absent: 'not_applied' },
        evidence: EVIDENCE,
      },
    ],
    readback: {
      http: { path: '/items/{title}' },
      matches: [{ path: '/state', equals: 'open' }],
      version: { from: 'json', path: '/version' },
      evidence: EVIDENCE,
    },
  },
};
