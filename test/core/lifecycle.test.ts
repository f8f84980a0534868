import { describe, expect, test } from 'vitest';
import {
  EFFECTS,
  type EventType,
  isAllowedPair,
  mayFollow,
  STAGES,
  type Stage,
  stageAfter,
  TRANSITIONS,
} from '../../src/core/lifecycle.ts';
import { allowance } from './fixtures.ts';

const ANYWHERE = STAGES;
const OPEN: readonly Stage[] = [
  'proposed',
  'awaiting_approval',
  'held',
  'ready',
  'sending',
  'checking',
  'parked',
];

/** Where each event may arrive, and where it leads: written from D4, D8, D10. `undefined`: it stays. */
const EXPECTED: {
  readonly [type in EventType]: { readonly at: readonly (Stage | undefined)[]; readonly then?: Stage };
} = {
  proposed: { at: [undefined], then: 'proposed' },
  allowed: { at: ['proposed'], then: 'ready' },
  // "held → awaiting_approval by itself, with a fresh review over the present facts".
  review_opened: { at: ['proposed', 'held'], then: 'awaiting_approval' },
  approved: { at: ['awaiting_approval'], then: 'ready' },
  // "Quorum: n distinct persons on the same digest": it waits for the others.
  approved_in_part: { at: ['awaiting_approval'] },
  denied: { at: ['awaiting_approval'], then: 'closed' },
  // Taken back at any time while something may still be sent under it; what has left goes on to be known (D9).
  revoked: { at: ['ready', 'sending', 'checking', 'parked'] },
  // "Wait", "Hold" and the claim are judged before an attempt, so only of what is ready (D8).
  waiting: { at: ['ready'] },
  held: { at: ['ready'], then: 'held' },
  attempt_started: { at: ['ready'], then: 'sending' },
  // Contradicting evidence parks an operation while a later attempt is out, and a person may close it then.
  leg_recorded: { at: ['sending'] },
  attempt_fenced: { at: ['sending', 'parked', 'closed'] },
  // "Evidence merges whenever it arrives."
  evidence_recorded: { at: ANYWHERE },
  checking: { at: ['sending', 'checking'], then: 'checking' },
  sending_again: { at: ['sending', 'checking'], then: 'ready' },
  // Diverged is "always parked", also after closing.
  parked: { at: ANYWHERE, then: 'parked' },
  closed: { at: OPEN, then: 'closed' },
  reopened: { at: ['closed'], then: 'proposed' },
  ordered_again: { at: ['parked', 'closed'], then: 'proposed' },
  // "Look it up again now": of what is not established, also when its look-ups were exhausted.
  look_up_ordered: { at: ['checking', 'parked'], then: 'checking' },
  stated: { at: ['parked', 'closed'] },
  cancel_requested: { at: ANYWHERE },
  // "Lifting … for new work only (default)": what waits is closed, and what is out is not sent again.
  sending_ended: { at: ['sending', 'checking'] },
  delivered: { at: ANYWHERE },
  replay_seen: { at: ANYWHERE },
  superseded: { at: ANYWHERE },
};

const EVENT_TYPES = Object.keys(TRANSITIONS) as EventType[];

describe('the two columns (D4)', () => {
  for (const stage of STAGES) {
    for (const effect of EFFECTS) {
      const expected = allowance(stage, effect);
      test(`${stage} with ${effect}: ${expected}`, () => {
        expect(isAllowedPair(stage, effect, false)).toBe(expected === 'yes');
        expect(isAllowedPair(stage, effect, true)).toBe(expected !== 'no');
      });
    }
  }

  test('every stage may show some effect, and every effect has a stage', () => {
    for (const stage of STAGES)
      expect(EFFECTS.some((effect) => isAllowedPair(stage, effect, false))).toBe(true);
    for (const effect of EFFECTS)
      expect(STAGES.some((stage) => isAllowedPair(stage, effect, true))).toBe(true);
  });
});

describe('the events', () => {
  test('are all named in the expectations', () => {
    expect(EVENT_TYPES.toSorted()).toEqual(Object.keys(EXPECTED).toSorted());
  });

  for (const type of EVENT_TYPES) {
    test(`${type} may follow where the domain says, and leads where it says`, () => {
      const { at, then } = EXPECTED[type];
      for (const stage of [undefined, ...STAGES]) {
        const label = `${type} at ${stage ?? 'nothing'}`;
        expect(mayFollow(type, stage), label).toBe(at.includes(stage));
        if (at.includes(stage)) expect(stageAfter(type, stage), label).toBe(then ?? stage);
      }
    });
  }

  test('of one kind begin a history, and it is "proposed"', () => {
    expect(EVENT_TYPES.filter((type) => mayFollow(type, undefined))).toEqual(['proposed']);
    expect(() => stageAfter('delivered', undefined)).toThrow('cannot begin');
  });

  test('lead away from closed only into a new round or, with contradicting evidence, to a person', () => {
    const leading = EVENT_TYPES.filter(
      (type) => mayFollow(type, 'closed') && stageAfter(type, 'closed') !== 'closed',
    );
    expect(leading.toSorted()).toEqual(['ordered_again', 'parked', 'reopened']);
  });

  test('reach sending only by an attempt that is recorded as started (I1)', () => {
    for (const type of EVENT_TYPES) {
      for (const stage of STAGES.filter((from) => from !== 'sending' && mayFollow(type, from))) {
        if (stageAfter(type, stage) === 'sending') expect(type).toBe('attempt_started');
      }
    }
  });
});
