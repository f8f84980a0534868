import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { canonicalJson, type JsonObject } from '../../src/core/canonical.ts';
import type { RepeatClass } from '../../src/core/contract.ts';
import {
  crossRunHash,
  crossRunKey,
  crossRunPrefixes,
  type EqualCall,
  type IntentParts,
  intentKey,
  judgeEqualCall,
  judgeOtherRun,
  lockName,
  openKey,
  openPrefix,
  operationDigest,
  stepName,
} from '../../src/core/intent.ts';
import { type Effect, STAGES } from '../../src/core/lifecycle.ts';
import type { Operation, Why } from '../../src/core/operation.ts';
import { factsOf, HOUR_MS, LOST, setup, setupLost, T0 } from './fixtures.ts';

const SECRET = new Uint8Array(32).fill(7);
const OTHER_SECRET = new Uint8Array(32).fill(8);
const RESUME_WINDOW_MS = 96 * HOUR_MS;
const CROSS_RUN_WINDOW_MS = HOUR_MS;
const REPEATS: readonly RepeatClass[] = ['unique', 'state', 'free'];

const TARGET = { locks: ['lock:443'], document: 'sha256:target' };

/** A closed and delivered operation, an hour old; told apart from a real one by nothing that is judged here. */
function earlierOf(effect: Effect, overrides: Partial<Operation> = {}): Operation {
  const { operation } = setup({ proposal: { target: TARGET } });
  const since = T0 + HOUR_MS;
  return { ...operation, stage: 'closed', effect, since, deliveredAt: since, ...overrides };
}

function callOf(repeat: RepeatClass, overrides: Partial<EqualCall> = {}): EqualCall {
  return {
    at: T0 + 2 * HOUR_MS,
    replays: ['call-2'],
    repeat,
    resumeWindowMs: RESUME_WINDOW_MS,
    settledSince: false,
    stillOurs: undefined,
    ...overrides,
  };
}

/** The answer, and the question where a person is asked, as one text. */
function answerTo(earlier: Operation, call: EqualCall): string {
  const judgement = judgeEqualCall(earlier, call);
  return judgement.answer === 'ask' ? `ask ${judgement.question}` : judgement.answer;
}

describe('an equal call in the same run (D6)', () => {
  /** Closed, delivered, no replay, inside every window, nothing changed since. */
  const ROWS: readonly (readonly [Effect, { readonly [repeat in RepeatClass]: string }])[] = [
    ['not_sent', { unique: 'reopen', state: 'reopen', free: 'reopen' }],
    ['rejected', { unique: 'reopen', state: 'reopen', free: 'reopen' }],
    ['absent', { unique: 'reopen', state: 'reopen', free: 'reopen' }],
    ['unknown', { unique: 'attach', state: 'attach', free: 'attach' }],
    ['diverged', { unique: 'attach', state: 'attach', free: 'attach' }],
    ['accepted', { unique: 'already_exists', state: 'already_exists', free: 'next_occurrence' }],
    ['verified', { unique: 'already_exists', state: 'already_exists', free: 'next_occurrence' }],
    ['error_reported', { unique: 'look_up', state: 'next_occurrence', free: 'next_occurrence' }],
  ];
  for (const [effect, answers] of ROWS) {
    for (const repeat of REPEATS) {
      for (const weak of [false, true]) {
        test(`${effect}, ${repeat}, ${weak ? 'weak' : 'given'} run: ${answers[repeat]}`, () => {
          const earlier = earlierOf(effect, { run: { id: 'run-1', weak } });
          expect(answerTo(earlier, callOf(repeat))).toBe(answers[repeat]);
        });
      }
      test(`${effect}, ${repeat}, not delivered: that operation`, () => {
        const { deliveredAt: _, ...undelivered } = earlierOf(effect);
        expect(answerTo(undelivered, callOf(repeat))).toBe('attach');
      });
      test(`${effect}, ${repeat}, a proven replay: that operation`, () => {
        const earlier = earlierOf(effect, { replays: ['call-1', 'step-7'] });
        expect(answerTo(earlier, callOf(repeat, { replays: ['call-9', 'step-7'] }))).toBe('attach');
        const late = callOf(repeat, { replays: ['call-1'], at: T0 + 1_000 * HOUR_MS, settledSince: true });
        expect(answerTo(earlier, late)).toBe('attach');
      });
    }
  }

  test('what is not closed is answered as it stands, whatever the class', () => {
    for (const stage of STAGES.filter((one) => one !== 'closed')) {
      for (const repeat of REPEATS) {
        for (const effect of ['not_sent', 'unknown', 'accepted', 'absent'] as const) {
          const call = callOf(repeat, { at: T0 + 1_000 * HOUR_MS, settledSince: true, stillOurs: false });
          expect(answerTo(earlierOf(effect, { stage }), call)).toBe('attach');
        }
      }
    }
  });

  describe('unique, done before', () => {
    const ROWS_OF_TIME: readonly (readonly [string, boolean, number, string])[] = [
      ['a given run, at the end of its resume window', false, RESUME_WINDOW_MS, 'already_exists'],
      ['a given run, after it', false, RESUME_WINDOW_MS + 1, 'ask too_old'],
      ['a weak run, at 24 h', true, 24 * HOUR_MS, 'already_exists'],
      ['a weak run, after 24 h', true, 24 * HOUR_MS + 1, 'next_occurrence'],
    ];
    for (const [given, weak, ageMs, answer] of ROWS_OF_TIME) {
      for (const effect of ['accepted', 'verified'] as const) {
        test(`${given}, ${effect}: ${answer}`, () => {
          const earlier = earlierOf(effect, { run: { id: 'run-1', weak } });
          expect(answerTo(earlier, callOf('unique', { at: earlier.since + ageMs }))).toBe(answer);
        });
      }
    }

    test('a longer resume window does not lengthen a weak run', () => {
      const earlier = earlierOf('accepted', { run: { id: 'run-1', weak: true } });
      const call = callOf('unique', { at: earlier.since + 25 * HOUR_MS, resumeWindowMs: 1_000 * HOUR_MS });
      expect(answerTo(earlier, call)).toBe('next_occurrence');
    });

    test('what has happened to the object since does not make another one', () => {
      const call = callOf('unique', { settledSince: true, stillOurs: false });
      expect(answerTo(earlierOf('verified'), call)).toBe('already_exists');
    });
  });

  describe('state, done before', () => {
    const ROWS_OF_STATE: readonly (readonly [string, Partial<EqualCall>, string])[] = [
      ['its version still ours', { stillOurs: true }, 'already_exists'],
      ['its version not readable', { stillOurs: undefined }, 'already_exists'],
      ['its version no longer ours', { stillOurs: false }, 'next_occurrence'],
      ['something of ours settled on the target since', { settledSince: true }, 'next_occurrence'],
      ['both', { settledSince: true, stillOurs: true }, 'next_occurrence'],
    ];
    for (const [given, call, answer] of ROWS_OF_STATE) {
      test(`${given}: ${answer}`, () => {
        expect(answerTo(earlierOf('verified'), callOf('state', call))).toBe(answer);
      });
    }

    test('there is no window: a state that is still ours is reached, however long ago', () => {
      const call = callOf('state', { at: T0 + 10_000 * HOUR_MS, stillOurs: true });
      expect(answerTo(earlierOf('verified'), call)).toBe('already_exists');
    });

    test('without a declared target nobody can tell, and the repeat goes through (A→B→A)', () => {
      const { target: _, ...untargeted } = earlierOf('verified');
      expect(answerTo(untargeted, callOf('state', { stillOurs: true }))).toBe('next_occurrence');
    });
  });

  describe('unique, answered with an error', () => {
    test('is the next occurrence after a look-up that found nothing', () => {
      expect(answerTo(earlierOf('error_reported'), callOf('unique', { lookedUpAbsent: true }))).toBe(
        'next_occurrence',
      );
    });

    test('else a person says', () => {
      expect(answerTo(earlierOf('error_reported'), callOf('unique', { lookedUpAbsent: false }))).toBe(
        'ask error_reported',
      );
    });
  });

  describe('closed without having happened', () => {
    const ROWS_OF_WHY: readonly (readonly [Why, string])[] = [
      [{ code: 'answered' }, 'reopen'],
      [{ code: 'review_undecided' }, 'reopen'],
      [{ code: 'arguments', problem: 'sha256:problem' }, 'reopen'],
      [{ code: 'withdrawn_by_caller' }, 'reopen'],
      [{ code: 'denied' }, 'attach'],
      [{ code: 'replaced', by: 'op_9K6' }, 'attach'],
      [{ code: 'given_up', by: 'Mara' }, 'attach'],
    ];
    for (const [why, answer] of ROWS_OF_WHY) {
      test(`${why.code}: ${answer === 'reopen' ? 'a new round' : 'only a person begins one'}`, () => {
        for (const effect of ['not_sent', 'rejected', 'absent'] as const) {
          for (const repeat of REPEATS)
            expect(answerTo(earlierOf(effect, { why }), callOf(repeat))).toBe(answer);
        }
      });
    }

    test('after twenty rounds an equal call begins another operation, linked (I14)', () => {
      for (const effect of ['not_sent', 'rejected', 'absent'] as const) {
        expect(answerTo(earlierOf(effect, { round: 19 }), callOf('unique'))).toBe('reopen');
        expect(answerTo(earlierOf(effect, { round: 20 }), callOf('unique'))).toBe('next_occurrence');
        const denied = earlierOf(effect, { round: 20, why: { code: 'denied' } });
        expect(answerTo(denied, callOf('unique'))).toBe('attach');
      }
    });

    test('a call that its own caller took back missed no answer, so that its repeat is sent', () => {
      const waiting = setup();
      waiting.start({ lockedBy: 'op_9K1' });
      waiting.cancel();
      expect(waiting.operation.deliveredAt).toBeUndefined();
      expect(answerTo(waiting.operation, callOf('unique'))).toBe('reopen');
    });
  });

  test('after giving up on the unknown, an equal call is answered with it, and sends nothing', () => {
    const lost = setupLost();
    lost.giveUp();
    lost.deliver();
    for (const repeat of REPEATS) expect(answerTo(lost.operation, callOf(repeat))).toBe('attach');
  });

  test('a result that became known later is given to the first equal call, also of a free tool', () => {
    const lost = setupLost({ facts: factsOf({ repeat: 'free' }) });
    lost.giveUp();
    lost.deliver();
    lost.learn({ kind: 'notice', means: 'accepted' });
    expect(answerTo(lost.operation, callOf('free'))).toBe('attach');
    lost.deliver();
    expect(answerTo(lost.operation, callOf('free'))).toBe('next_occurrence');
  });
});

describe('the same intent in another run (D6)', () => {
  function otherRun(earlier: Operation, call: EqualCall): string {
    const judgement = judgeOtherRun(earlier, call, CROSS_RUN_WINDOW_MS);
    return judgement.answer === 'ask' ? `ask ${judgement.question}` : judgement.answer;
  }

  /** Just closed; nothing changed since. */
  const ROWS: readonly (readonly [Effect, { readonly [repeat in RepeatClass]: string }])[] = [
    ['not_sent', { unique: 'new_and_linked', state: 'new_and_linked', free: 'new_and_linked' }],
    ['rejected', { unique: 'new_and_linked', state: 'new_and_linked', free: 'new_and_linked' }],
    ['absent', { unique: 'new_and_linked', state: 'new_and_linked', free: 'new_and_linked' }],
    ['error_reported', { unique: 'new_and_linked', state: 'new_and_linked', free: 'new_and_linked' }],
    ['diverged', { unique: 'new_and_linked', state: 'new_and_linked', free: 'new_and_linked' }],
    ['unknown', { unique: 'attach', state: 'attach', free: 'attach' }],
    ['accepted', { unique: 'ask same_work', state: 'already_exists', free: 'new_and_linked' }],
    ['verified', { unique: 'ask same_work', state: 'already_exists', free: 'new_and_linked' }],
  ];
  for (const [effect, answers] of ROWS) {
    for (const repeat of REPEATS) {
      test(`${effect}, ${repeat}: ${answers[repeat]}`, () => {
        const earlier = earlierOf(effect);
        expect(otherRun(earlier, callOf(repeat, { at: earlier.since }))).toBe(answers[repeat]);
      });
    }
  }

  test('what is not closed, or closed as unknown, is answered with that operation', () => {
    for (const stage of STAGES.filter((one) => one !== 'closed')) {
      expect(otherRun(earlierOf('not_sent', { stage }), callOf('unique'))).toBe('attach');
    }
    const lost = setupLost();
    lost.giveUp();
    expect(otherRun(lost.operation, callOf('unique'))).toBe('attach');
  });

  test('a person is asked only within the window', () => {
    const earlier = earlierOf('accepted');
    const at = (ageMs: number) => callOf('unique', { at: earlier.since + ageMs });
    expect(otherRun(earlier, at(CROSS_RUN_WINDOW_MS))).toBe('ask same_work');
    expect(otherRun(earlier, at(CROSS_RUN_WINDOW_MS + 1))).toBe('new_and_linked');
  });

  test('a state counts as reached only while it is still ours on a declared target', () => {
    const earlier = earlierOf('verified');
    expect(otherRun(earlier, callOf('state', { stillOurs: true }))).toBe('already_exists');
    expect(otherRun(earlier, callOf('state', { stillOurs: false }))).toBe('new_and_linked');
    expect(otherRun(earlier, callOf('state', { settledSince: true }))).toBe('new_and_linked');
    const { target: _, ...untargeted } = earlier;
    expect(otherRun(untargeted, callOf('state', { stillOurs: true }))).toBe('new_and_linked');
  });

  test('an incident that is still out is answered with that operation', () => {
    const again = setupLost();
    again.states('stated_not_happened');
    again.orderAgain();
    again.decides('approved');
    again.start();
    again.learn({ kind: 'lookup', found: 'several', count: 2 });
    again.giveUp();
    expect(again.state).toBe('closed diverged');
    expect(otherRun(again.operation, callOf('unique'))).toBe('attach');
    again.comesBack(LOST);
    expect(otherRun(again.operation, callOf('unique'))).toBe('new_and_linked');
  });
});

// ── Keys ───────────────────────────────────────────────────────────────────────────────────────────────────

const PARTS: IntentParts = {
  tenant: 'acme',
  run: { id: 'run-1', weak: false, step: 'open the request' },
  runBeganAt: T0,
  tool: 'create_task',
  destination: 'tasks-eu',
  businessText: canonicalJson({ project: 'web', title: 'Freeze window' }),
  occurrence: 0,
};

describe('the intent key', () => {
  test('is 20 bytes, led by the hour in which the run began', () => {
    const key = intentKey(SECRET, PARTS);
    expect(key).toMatch(/^[0-9a-f]{40}$/);
    expect(Number.parseInt(key.slice(0, 8), 16)).toBe(Math.floor(T0 / HOUR_MS));
  });

  test('is the same for the same parts, at any time of the run and from any worker', () => {
    expect(intentKey(SECRET, structuredClone(PARTS))).toBe(intentKey(SECRET, PARTS));
    expect(intentKey(new Uint8Array(SECRET), PARTS)).toBe(intentKey(SECRET, PARTS));
  });

  const OTHERS: readonly (readonly [string, Partial<IntentParts>])[] = [
    ['tenant', { tenant: 'other' }],
    ['run', { run: { ...PARTS.run, id: 'run-2' } }],
    ['step', { run: { ...PARTS.run, step: 'close the request' } }],
    ['absence of a step', { run: { id: 'run-1', weak: false } }],
    ['tool', { tool: 'update_task' }],
    ['destination', { destination: 'tasks-us' }],
    ['a business parameter', { businessText: canonicalJson({ project: 'web', title: 'Freeze windows' }) }],
    [
      'one business parameter more',
      { businessText: canonicalJson({ project: 'web', title: 'Freeze window', due: null }) },
    ],
    ['occurrence', { occurrence: 1 }],
  ];
  for (const [part, change] of OTHERS) {
    test(`differs by ${part}`, () => {
      expect(intentKey(SECRET, { ...PARTS, ...change }).slice(8)).not.toBe(intentKey(SECRET, PARTS).slice(8));
    });
  }

  test('differs by the secret, so that nobody else can tell an intent from its key', () => {
    expect(intentKey(OTHER_SECRET, PARTS).slice(8)).not.toBe(intentKey(SECRET, PARTS).slice(8));
  });

  test('does not depend on what is outside the business parameters', () => {
    const identity = ['project', 'title'] as const;
    const keyOf = (args: JsonObject) => {
      const picked = Object.fromEntries(identity.map((name) => [name, args[name] ?? null]));
      return intentKey(SECRET, { ...PARTS, businessText: canonicalJson(picked) });
    };
    const one = keyOf({ project: 'web', title: 'Freeze window', description: 'As agreed on Monday.' });
    expect(keyOf({ description: 'As we agreed.', title: 'Freeze window', project: 'web' })).toBe(one);
    expect(keyOf({ project: 'web', title: 'Freeze', description: 'As agreed on Monday.' })).not.toBe(one);
  });

  test('does not depend on whether the step is single', () => {
    expect(intentKey(SECRET, { ...PARTS, run: { ...PARTS.run, single: true } })).toBe(
      intentKey(SECRET, PARTS),
    );
  });

  test('is another for a weak run of the same name: nobody can give a run the name of a weak one', () => {
    expect(intentKey(SECRET, { ...PARTS, run: { ...PARTS.run, weak: true } })).not.toBe(
      intentKey(SECRET, PARTS),
    );
  });

  const text = fc.string({ maxLength: 6 });
  const parts = fc.record({
    tenant: text,
    run: fc.oneof(
      fc.record({ id: text, weak: fc.boolean() }),
      fc.record({ id: text, weak: fc.boolean(), step: text }),
    ),
    runBeganAt: fc.integer({ min: 0, max: 4_102_444_800_000 }),
    tool: text,
    destination: text,
    businessText: fc
      .dictionary(fc.constantFrom('a', 'b', 'c'), fc.oneof(text, fc.integer()))
      .map(canonicalJson),
    occurrence: fc.nat({ max: 2 }),
  });

  test('no two different intents share a key, wherever one part ends and the next begins', () => {
    const intent = ({ businessText, destination, occurrence, run, tenant, tool }: IntentParts) =>
      JSON.stringify([
        tenant,
        run.weak,
        run.id,
        run.step ?? null,
        tool,
        destination,
        businessText,
        occurrence,
      ]);
    fc.assert(
      fc.property(parts, parts, (one, other) => {
        const same = intentKey(SECRET, one).slice(8) === intentKey(SECRET, other).slice(8);
        expect(same).toBe(intent(one) === intent(other));
      }),
      { numRuns: 2_000 },
    );
    // A part that moves over a border is another intent.
    const left = intentKey(SECRET, { ...PARTS, tool: 'ab', destination: 'c' });
    expect(intentKey(SECRET, { ...PARTS, tool: 'a', destination: 'bc' })).not.toBe(left);
  });

  test('keys of one hour stand together, those of a later hour behind them', () => {
    fc.assert(
      fc.property(parts, parts, (one, other) => {
        const hours = [one, other].map(({ runBeganAt }) => Math.floor(runBeganAt / HOUR_MS));
        fc.pre(hours[0] !== hours[1]);
        const isBefore = intentKey(SECRET, one) < intentKey(SECRET, other);
        expect(isBefore).toBe((hours[0] ?? 0) < (hours[1] ?? 0));
      }),
    );
  });
});

describe('the index of equal intents in other runs', () => {
  const HASH = crossRunHash(SECRET, PARTS);

  test('is led by the present hour, newest first, and reaches back over the whole window', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: T0, max: T0 + 10 * HOUR_MS }),
        fc.integer({ min: 0, max: 30 * HOUR_MS }),
        fc.integer({ min: 0, max: 30 * HOUR_MS }),
        (at, windowMs, ageMs) => {
          const prefixes = crossRunPrefixes(HASH, at, windowMs);
          const [recorded = ''] = crossRunPrefixes(HASH, at - ageMs, windowMs);
          expect(recorded).toMatch(/^[0-9a-f]{24}$/);
          if (ageMs <= windowMs) expect(prefixes).toContain(recorded);
          if (ageMs > windowMs + 2 * HOUR_MS) expect(prefixes).not.toContain(recorded);
          expect(prefixes).toEqual(prefixes.toSorted().toReversed());
        },
      ),
    );
  });

  test('an operation is found by the hour of its proposal: by its claim, or by an entry beside it', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: T0, max: T0 + 10 * HOUR_MS }),
        fc.integer({ min: 0, max: 10 * HOUR_MS }),
        (runBeganAt, later) => {
          const at = runBeganAt + later;
          const claim = intentKey(SECRET, { ...PARTS, runBeganAt });
          const hash = crossRunHash(SECRET, PARTS);
          const [present = ''] = crossRunPrefixes(hash, at, 0);
          const entry = crossRunKey(hash, at, claim);
          expect((entry ?? claim).startsWith(present)).toBe(true);
          const isSameHour = Math.floor(at / HOUR_MS) === Math.floor(runBeganAt / HOUR_MS);
          expect(entry === undefined).toBe(isSameHour);
          if (entry !== undefined) expect(entry).toMatch(/^[0-9a-f]{40}$/);
        },
      ),
    );
  });

  test('the place of open work is under no hour, and found by its prefix', () => {
    expect(openKey(HASH)).toBe(`ffffffff${HASH}`);
    expect(openKey(HASH).startsWith(openPrefix(HASH))).toBe(true);
    expect(openPrefix(HASH)).toMatch(/^[0-9a-f]{24}$/);
  });

  test('does not know runs, steps and occurrences, and is not the intent key', () => {
    expect(crossRunHash(SECRET, { ...PARTS, ...{ run: { id: 'run-2', weak: true }, occurrence: 3 } })).toBe(
      HASH,
    );
    expect(intentKey(SECRET, PARTS).slice(8)).not.toBe(HASH);
    expect(crossRunHash(OTHER_SECRET, PARTS)).not.toBe(HASH);
  });

  test('differs by tenant, tool, destination and business parameters', () => {
    for (const change of [
      { tenant: 'other' },
      { tool: 'update_task' },
      { destination: 'tasks-us' },
      { businessText: '{}' },
    ]) {
      expect(crossRunHash(SECRET, { ...PARTS, ...change })).not.toBe(HASH);
    }
  });
});

describe('the name of a lock', () => {
  test('differs by each part of the target and by tenant, and tells none of them', () => {
    const name = lockName(SECRET, 'acme', 'tasks-eu', 'task', '443');
    expect(name).toMatch(/^lock:[0-9a-f]{32}$/);
    const others = [
      lockName(SECRET, 'other', 'tasks-eu', 'task', '443'),
      lockName(SECRET, 'acme', 'tasks-us', 'task', '443'),
      lockName(SECRET, 'acme', 'tasks-eu', 'event', '443'),
      lockName(SECRET, 'acme', 'tasks-eu', 'task', '444'),
      lockName(SECRET, 'acme', 'tasks-eu', 'task4', '43'),
      lockName(OTHER_SECRET, 'acme', 'tasks-eu', 'task', '443'),
    ];
    expect(new Set([name, ...others]).size).toBe(others.length + 1);
  });
});

describe('the name of a declared step', () => {
  const single = { id: 'run-1', weak: false, step: 'open the request', single: true } as const;
  const declared = { id: 'run-1', weak: false, step: 'open the request' } as const;
  const named = (run: IntentParts['run'], tool: string, ...locks: readonly string[]) =>
    stepName(SECRET, 'acme', run, tool, locks);

  test('exists only for a step that the author declared', () => {
    expect(named({ id: 'run-1', weak: false }, 'create_task', 'lock:1')).toBeUndefined();
  });

  test('of a single step is one, whatever it writes and where', () => {
    expect(named(single, 'create_task', 'lock:1')).toMatch(/^step:[0-9a-f]{32}$/);
    expect(named(single, 'update_task', 'lock:2')).toBe(named(single, 'create_task', 'lock:1'));
    expect(named(single, 'create_task')).toBe(named(single, 'create_task', 'lock:1'));
  });

  test('of any other step is told by tool and target, and there is none without a target', () => {
    const one = named(declared, 'update_task', 'lock:1');
    expect(one).toBeDefined();
    expect(named(declared, 'delete_task', 'lock:1')).not.toBe(one);
    expect(named(declared, 'update_task', 'lock:2')).not.toBe(one);
    expect(named(declared, 'update_task')).toBeUndefined();
  });

  test('does not depend on the order in which several targets are given', () => {
    expect(named(declared, 'move', 'lock:1', 'lock:2')).toBe(named(declared, 'move', 'lock:2', 'lock:1'));
  });

  test('differs by run and step', () => {
    const one = named(single, 'create_task');
    expect(named({ ...single, id: 'run-2' }, 'create_task')).not.toBe(one);
    expect(named({ ...single, step: 'another' }, 'create_task')).not.toBe(one);
  });
});

describe('the digest that is decided on', () => {
  const DECIDED = {
    tenant: 'acme',
    destination: 'tasks-eu',
    tool: 'create_task',
    payloadSha256: 'aa',
    target: { type: 'task', ids: ['443'] },
    expectedVersion: '11',
    preconditions: null,
    requester: 'agent:planner',
  };

  test('is a SHA-256 over every part of it', () => {
    const digest = operationDigest(DECIDED);
    expect(digest).toMatch(/^[0-9a-f]{64}$/);
    expect(operationDigest(structuredClone(DECIDED))).toBe(digest);
    for (const part of Object.keys(DECIDED)) {
      expect(operationDigest({ ...DECIDED, [part]: 'another' }), part).not.toBe(digest);
    }
    expect(operationDigest({ ...DECIDED, expectedVersion: null })).not.toBe(digest);
  });
});
