import { describe, expect, test } from 'vitest';
import type { ContractOperation, Grade, Guard, Lookup } from '../../src/core/contract.ts';
import { isScopeKept, usableGuard, usableUntil } from '../../src/core/guarded-repeat.ts';
import { DEFAULT_BOUNDS, nextStep } from '../../src/core/repeatability.ts';
import {
  ABSENT,
  ACCEPTED,
  contractOf,
  factsOf,
  HOUR_MS,
  INCONCLUSIVE,
  LOST,
  lookupOf,
  MINUTE_MS,
  NOT_FOUND,
  NOT_LEFT,
  PRESENT,
  REJECTED,
  SECOND_MS,
  type Setup,
  setup,
  T0,
  TWO_FOUND,
} from './fixtures.ts';

/** Everything that a repeat needs, on documented evidence: what the tests take away from. */
const KEY: Guard = {
  kind: 'request_key',
  carrier: { in: 'header', name: 'Idempotency-Key' },
  scope: ['credential', 'endpoint'],
  window: { kind: 'duration', at_least: 'PT24H', from: 'first_accept', after: 'executes_again' },
  same: { result: 'replays_original' },
  different: { result: 'rejected' },
  in_flight: { result: 'rejected_in_progress' },
  strength: 'enforced',
  evidence: { grade: 'documented' },
};
const HTTP = { method: 'POST', path: '/tasks' } as const;

function written(guard: Partial<Guard>, more: Partial<ContractOperation> = {}): ContractOperation {
  return contractOf({ http: HTTP, guards: [{ ...KEY, ...guard }], ...more });
}

function factsWith(guard: Partial<Guard> = {}, more: Partial<ContractOperation> = {}) {
  return factsOf({
    contract: { id: 'tasks', revision: 3, reviewBy: '2026-12-31' },
    operation: written(guard, more),
  });
}

function lost(guard: Partial<Guard> = {}, more: Partial<ContractOperation> = {}): Setup {
  const bundle = setup({ facts: factsWith(guard, more) });
  bundle.start({ scope: 'here' });
  bundle.comesBack(LOST);
  return bundle;
}

/** Whether a reply that was lost is followed by a repeat, at this time and as far as anything is known. */
function repeats(
  guard: Partial<Guard>,
  {
    at = T0 + MINUTE_MS,
    isAbsent = false,
    more,
  }: { at?: number; isAbsent?: boolean; more?: Partial<ContractOperation> } = {},
): boolean {
  const bundle = setup({ facts: factsOf() });
  bundle.start();
  bundle.comesBack(LOST);
  return usableGuard(bundle.operation, factsWith(guard, more ?? {}), { at, isAbsent }) !== undefined;
}

describe('a guard is counted on', () => {
  test('where everything is stated on trusted evidence', () => {
    expect(repeats({})).toBe(true);
    const grades: readonly Grade[] = [
      'documented',
      'source',
      'drilled',
      'reported',
      'assumed',
      'not_documented',
    ];
    expect(grades.filter((grade) => repeats({ evidence: { grade } }))).toEqual([
      'documented',
      'source',
      'drilled',
    ]);
  });

  test('only where it is enforced, and a repeat brings no second mail or charge', () => {
    const { strength: _unsaid, ...rest } = KEY;
    expect(repeats({ strength: 'best_effort' })).toBe(false);
    expect(repeats({ strength: 'unknown' })).toBe(false);
    const bundle = lost();
    const facts = factsOf({ ...factsWith(), operation: { ...written({}), guards: [rest] } });
    expect(usableGuard(bundle.operation, facts, { at: T0, isAbsent: false })).toBeUndefined();
    expect(repeats({ same: { ...KEY.same, side_effects: 'once' } })).toBe(true);
    expect(repeats({ same: { ...KEY.same, side_effects: 'again' } })).toBe(false);
    expect(repeats({ same: { ...KEY.same, side_effects: 'unknown' } })).toBe(false);
  });

  test.each<[Guard['same']['result'], boolean]>([
    ['replays_original', true],
    ['replays_current', true],
    ['conflict', false],
    ['converges', false],
    ['silently_dropped', false],
    ['appends_note', false],
    ['executes_again', false],
    ['unknown', false],
  ])('of a request key whose repeat %s: %s', (result, expected) => {
    expect(repeats({ same: { result } })).toBe(expected);
  });

  test('until the contract is due for review, and no day longer', () => {
    const facts = factsWith();
    const { operation } = lost();
    const at = Date.parse('2026-12-31T20:00:00Z');
    const lasting = { ...factsWith({ window: { kind: 'resource_lifetime' } }) };
    expect(usableGuard(operation, lasting, { at, isAbsent: false })).toBeDefined();
    expect(usableGuard(operation, lasting, { at: at + 5 * HOUR_MS, isAbsent: false })).toBeUndefined();
    expect(
      usableGuard(operation, { ...facts, contract: undefined } as never, { at: T0, isAbsent: false }),
    ).toBeUndefined();
  });

  test('for four fifths of the time that is promised, from the first try on', () => {
    const at = T0 + 24 * HOUR_MS * 0.8;
    expect(repeats({}, { at: at - SECOND_MS })).toBe(true);
    expect(repeats({}, { at })).toBe(false);
    const { operation } = lost();
    expect(usableUntil(KEY, operation, factsWith())).toBe(at);
  });

  test('for no longer than leaves its bytes the time to land within what is promised', () => {
    const window = { kind: 'duration', at_least: 'PT50S', from: 'first_accept' } as const;
    const { operation } = lost({ window });
    const { sendByMs } = DEFAULT_BOUNDS;
    // Late arrival is 30 s here, and the first byte of a repeat may leave until `sendBy`.
    const at = T0 + 50 * SECOND_MS - 30 * SECOND_MS - sendByMs;
    expect(usableUntil({ ...KEY, window }, operation, factsWith({ window }))).toBe(at);
    expect(repeats({ window }, { at: at - 1 })).toBe(true);
    expect(repeats({ window }, { at })).toBe(false);
    // Of a silent contract 15 minutes count, which is more than is promised here.
    const more = { limits: {} };
    const short = { window: { ...window, at_least: 'PT10M' } };
    expect(repeats(short, { at: T0 + SECOND_MS })).toBe(true);
    expect(repeats(short, { at: T0 + SECOND_MS, more })).toBe(false);
  });

  test.each<[Guard['window'], boolean]>([
    [{ kind: 'resource_lifetime' }, true],
    [{ kind: 'duration', at_most: 'P7D' }, false],
    [{ kind: 'while_state', while: 'open' }, false],
    [{ kind: 'session' }, false],
    [{ kind: 'none' }, false],
    [{ kind: 'unknown' }, false],
    // It would be refused, which shows nothing of the first try.
    [{ kind: 'duration', at_least: 'PT10S', after: 'rejected' }, false],
  ])('with the window %j: %s', (window, expected) => {
    expect(repeats({ window })).toBe(expected);
  });

  test.each<[Guard['in_flight']['result'], boolean]>([
    ['rejected_in_progress', true],
    ['waits', true],
    ['serialised', true],
    ['not_applicable', true],
    ['executes_again', false],
    ['unknown', false],
  ])('while the first try may be under way, where two at once give %s: %s', (result, expected) => {
    const landed = T0 + DEFAULT_BOUNDS.sendByMs + 30 * SECOND_MS;
    expect(repeats({ in_flight: { result } }, { at: landed - 1 })).toBe(expected);
    expect(repeats({ in_flight: { result } }, { at: landed })).toBe(true);
  });

  test('only where its value is in the frozen bytes', () => {
    const plain = { operation: { ...written({}), http: undefined } } as never;
    const { operation } = lost();
    const ask = (facts: object) =>
      usableGuard(operation, { ...factsWith(), ...facts }, { at: T0 + MINUTE_MS, isAbsent: false }) !==
      undefined;
    expect(ask(plain)).toBe(false);
    expect(ask({ ...(plain as object), stamp: { argument: 'Idempotency-Key' } })).toBe(true);
    expect(ask({ ...(plain as object), stamp: { argument: 'note' } })).toBe(false);
    // No key of ours has this form.
    expect(repeats({ carrier: { in: 'header', name: 'Key', pattern: '^[0-9]{6}$' } })).toBe(false);
  });

  test('of a key, only where the request that is frozen bears it', () => {
    const inBody: Partial<Guard> = { carrier: { in: 'body', name: 'key' } };
    const bears = (body: unknown, guard = inBody) => repeats(guard, { more: { http: { ...HTTP, body } } });
    expect(bears({ title: '{title}' })).toBe(true);
    expect(bears([{ title: '{title}', id: '{$key}' }])).toBe(true);
    // There is no place for it in a list, and none was named.
    expect(bears(['{title}'])).toBe(false);
    expect(bears({ title: '{title}' }, { carrier: { in: 'body' } })).toBe(false);
    // What the caller gives there is no key of ours.
    expect(bears({ key: '{title}' })).toBe(false);
  });

  test('of a name that the caller gives, only where it is never left out', () => {
    const named: Partial<Guard> = {
      kind: 'client_identity',
      carrier: { in: 'body', name: 'name' },
      same: { result: 'conflict' },
      after_delete: 'blocked',
      window: { kind: 'resource_lifetime' },
    };
    const more = (http: object) => ({ more: { lookups: [lookupOf()], http: { ...HTTP, ...http } } });
    expect(repeats(named, more({ body: { name: '{name}' } }))).toBe(true);
    expect(repeats(named, more({ body: { name: '{name?}' } }))).toBe(false);
    const inPath = { ...named, carrier: { in: 'path' } } as const;
    expect(repeats(inPath, more({ path: '/tasks/{name}' }))).toBe(true);
    expect(repeats(inPath, more({ path: '/tasks' }))).toBe(false);
    // A place that another argument fills names another thing, and what is the same for all names nothing.
    const byName = (name: string) => ({ ...named, carrier: { in: 'path', name } }) as const;
    expect(repeats(byName('name'), more({ path: '/tasks/{name}' }))).toBe(true);
    expect(repeats(byName('{name}.ics'), more({ path: '/tasks/{name}.ics' }))).toBe(true);
    expect(repeats(byName('name'), more({ path: '/lists/{list}/tasks' }))).toBe(false);
    expect(repeats(named, more({ body: { name: 'task' } }))).toBe(false);
  });

  test('of a precondition, only where each such write sends it', () => {
    const guard: Partial<Guard> = {
      kind: 'precondition',
      carrier: { in: 'header', name: 'If-Match' },
      same: { result: 'conflict' },
      window: { kind: 'resource_lifetime' },
    };
    const sends = (headers?: { readonly [name: string]: string }, carrier = guard.carrier) =>
      repeats(
        { ...guard, ...(carrier === undefined ? {} : { carrier }) },
        {
          more: {
            effect: 'update',
            lookups: [lookupOf()],
            http: { ...HTTP, ...(headers === undefined ? {} : { headers }) },
          },
        },
      );
    expect(sends({ 'if-match': '{version}' })).toBe(true);
    expect(sends({ 'If-None-Match': '*' }, { in: 'header', name: 'if-none-match' })).toBe(true);
    // Without its argument this header is not there, and nothing guards the write.
    expect(sends({ 'If-Match': '{version?}' })).toBe(false);
    expect(sends({ 'X-Other': '{version}' })).toBe(false);
    // Every version meets this one.
    expect(sends({ 'If-Match': '*' })).toBe(false);
    expect(sends()).toBe(false);
    expect(sends({ 'If-Match': '{version}' }, { in: 'body', name: 'If-Match' })).toBe(false);
  });

  test('of an identity, while its name is not free again or nothing is there', () => {
    const lookups = [lookupOf()];
    const identity = (after_delete: NonNullable<Guard['after_delete']>): Partial<Guard> => ({
      kind: 'client_identity',
      after_delete,
      same: { result: 'conflict' },
      window: { kind: 'resource_lifetime' },
    });
    expect(repeats(identity('blocked'), { more: { lookups } })).toBe(true);
    expect(repeats(identity('blocked'))).toBe(false);
    for (const reuse of ['allowed', 'blocked_for_a_time', 'unknown'] as const) {
      expect([reuse, repeats(identity(reuse), { more: { lookups } })]).toEqual([reuse, false]);
      expect([reuse, repeats(identity(reuse), { isAbsent: true, more: { lookups } })]).toEqual([reuse, true]);
    }
  });

  test('of a desired state, only where it makes a record that is not there', () => {
    const state: Partial<Guard> = {
      kind: 'desired_state',
      same: { result: 'converges' },
      window: { kind: 'resource_lifetime' },
    };
    expect(repeats(state)).toBe(false);
    expect(repeats(state, { isAbsent: true })).toBe(true);
    expect(repeats(state, { isAbsent: true, more: { effect: 'update' } })).toBe(false);
    expect(repeats({ ...state, kind: 'sequence' }, { isAbsent: true })).toBe(false);
  });
});

describe('the scope of a key', () => {
  test('is kept while credential and place are the same, and known', () => {
    const { operation } = lost();
    expect(isScopeKept(KEY, operation, 'here')).toBe(true);
    expect(isScopeKept(KEY, operation, 'elsewhere')).toBe(false);
    expect(isScopeKept(KEY, operation, undefined)).toBe(false);
    // All of it stands in the bytes.
    expect(isScopeKept({ ...KEY, scope: ['resource', 'method'] }, operation, undefined)).toBe(true);
  });

  test('counts at the moment of sending: another credential, and a person decides', () => {
    const bundle = lost();
    expect(bundle.state).toBe('ready unknown');
    bundle.pass(SECOND_MS);
    bundle.start({ scope: 'elsewhere' });
    expect(bundle.state).toBe('parked unknown');
    expect(bundle.operation.why).toEqual({ code: 'guard_lost', lost: 'scope' });
    expect(bundle.operation.attempts).toHaveLength(1);
  });
});

describe('a reply that was lost, under a guard', () => {
  const lookups = (overrides: Partial<Lookup> = {}) => ({ lookups: [lookupOf(overrides)] });

  test('without a look-up is sent again by itself, the same bytes under the same key, until it is answered', () => {
    const bundle = lost();
    expect(bundle.state).toBe('ready unknown');
    expect(bundle.operation.under).toBe('request_key');
    bundle.pass(SECOND_MS);
    bundle.start({ scope: 'here' });
    expect(bundle.state).toBe('sending unknown');
    expect(bundle.operation.attempts.map(({ number, under }) => [number, under])).toEqual([
      [1, undefined],
      [2, 'request_key'],
    ]);
    bundle.comesBack(ACCEPTED);
    expect(bundle.state).toBe('closed accepted');
  });

  test('stays unknown when the repeat never left, or was refused', () => {
    const bundle = lost();
    bundle.pass(SECOND_MS);
    bundle.start({ scope: 'here' });
    bundle.comesBack(NOT_LEFT);
    expect(bundle.state).toBe('ready unknown');
    bundle.pass(SECOND_MS);
    bundle.start({ scope: 'here' });
    bundle.comesBack(REJECTED);
    // That a repeat is refused says nothing about the first try.
    expect(bundle.state).toBe('parked unknown');
  });

  test('is looked up first, and repeated when nothing more can be found out so', () => {
    const bundle = lost({}, lookups({ proves: { present: 'applied', absent: 'nothing' } }));
    expect(bundle.state).toBe('checking unknown');
    bundle.learn(NOT_FOUND);
    expect(bundle.state).toBe('checking unknown');
    bundle.pass(MINUTE_MS);
    bundle.learn(NOT_FOUND);
    expect(bundle.state).toBe('ready unknown');
  });

  test('is repeated at once where the window would close before an absence counts', () => {
    const window = { kind: 'duration', at_least: 'PT40S', from: 'first_accept' } as const;
    expect(lost({ window }, lookups()).state).toBe('ready unknown');
    expect(lost({}, lookups()).state).toBe('checking unknown');
  });

  test('is sent again under the guard when it is proven absent, also where no absence alone would do', () => {
    const eventual = lookups({
      consistency: { kind: 'eventual', settle: 'PT5S' },
      proves: { present: 'applied', absent: 'not_applied_after_settle' },
    });
    const bundle = lost({}, eventual);
    bundle.pass(MINUTE_MS);
    bundle.learn(ABSENT);
    expect([bundle.state, bundle.operation.under]).toEqual(['ready absent', 'request_key']);
    const unguarded = lost({ strength: 'unknown' }, eventual);
    unguarded.pass(MINUTE_MS);
    unguarded.learn(ABSENT);
    expect(unguarded.state).toBe('parked absent');
  });

  test('is counted after the repeat, by a look-up that can see both: two records are never green', () => {
    const read = lookups({
      proves: { present: 'applied', absent: 'nothing' },
      consistency: { kind: 'eventual', settle: 'PT20S' },
    });
    const bundle = lost({}, read);
    bundle.pass(MINUTE_MS);
    bundle.learn(NOT_FOUND);
    bundle.pass(SECOND_MS);
    bundle.start({ scope: 'here' });
    bundle.comesBack(ACCEPTED);
    expect(bundle.state).toBe('checking accepted');
    // Too early to have seen both.
    bundle.learn(PRESENT);
    expect(bundle.operation.why).toEqual({
      code: 'looking_up',
      nextAt: bundle.now + DEFAULT_BOUNDS.sendByMs + 20 * SECOND_MS,
    });
    bundle.pass(22 * SECOND_MS);
    bundle.learn(TWO_FOUND);
    expect(bundle.state).toBe('parked diverged');
  });

  test('is not counted for ever where the destination does not answer', () => {
    const bundle = lost({}, lookups({ proves: { present: 'applied', absent: 'nothing' } }));
    bundle.pass(MINUTE_MS);
    bundle.learn(NOT_FOUND);
    bundle.pass(SECOND_MS);
    bundle.start({ scope: 'here' });
    bundle.comesBack(ACCEPTED);
    for (let asked = 0; asked < 12 && bundle.operation.stage === 'checking'; asked += 1) {
      bundle.pass(MINUTE_MS);
      bundle.learn(INCONCLUSIVE);
    }
    expect(bundle.state).toBe('closed accepted');
  });

  test('is not repeated once somebody took it back, replaced it, or its approval is over', () => {
    const cancelled = lost({}, lookups({ proves: { present: 'applied', absent: 'nothing' } }));
    cancelled.cancel();
    cancelled.pass(MINUTE_MS);
    cancelled.learn(NOT_FOUND);
    expect(cancelled.state).toBe('parked unknown');
    const expired = setup({ facts: { ...factsWith(), class: 'irreversible' } });
    expired.decides('approved');
    expired.start({ scope: 'here' });
    expired.comesBack(LOST);
    expect(expired.state).toBe('ready unknown');
    expired.pass(9 * HOUR_MS);
    expired.start({ scope: 'here' });
    expect([expired.state, expired.operation.why?.code]).toEqual(['parked unknown', 'approval_expired']);
  });

  test('is bounded, and waits for nobody once its window is over', () => {
    const bundle = lost();
    for (let tries = 2; tries <= 9 && bundle.operation.stage === 'ready'; tries += 1) {
      bundle.pass(MINUTE_MS);
      bundle.start({ scope: 'here' });
      bundle.comesBack(LOST);
    }
    expect(bundle.state).toBe('parked unknown');
    expect(bundle.operation.attempts).toHaveLength(DEFAULT_BOUNDS.attemptsMax);
    const late = lost();
    late.start({ scope: 'here', connected: false });
    expect([late.state, late.operation.why?.code]).toEqual(['ready unknown', 'waits_for_destination']);
    late.pass(20 * HOUR_MS);
    late.start({ scope: 'here' });
    expect(late.operation.why).toEqual({ code: 'guard_lost', lost: 'window' });
    const distrusted = lost();
    distrusted.start({ scope: 'here', isDistrusted: true });
    expect(distrusted.operation.why).toEqual({ code: 'guard_lost', lost: 'distrusted' });
  });

  test('in `observe` is left to a person: nothing leaves but what its caller sent itself', () => {
    const facts = { ...factsWith(), mode: 'observe' as const };
    const bundle = setup({ facts, proposal: { observed: { guard: 'send' } } });
    bundle.start({ scope: 'here' });
    bundle.comesBack(LOST);
    expect(bundle.state).toBe('parked unknown');
  });

  test('without a contract, or with none of its guards, is a person\u2019s', () => {
    const { operation } = lost();
    const step = nextStep(operation, factsOf(), DEFAULT_BOUNDS, T0 + SECOND_MS);
    expect(step).toEqual({ step: 'park', why: { code: 'no_lookup' } });
  });
});
