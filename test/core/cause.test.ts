import { describe, expect, test } from 'vitest';
import { type CauseGroup, causeOf, groupByCause, type Queued } from '../../src/core/cause.ts';
import { causeHeading, countsWords, isCauseId } from '../../src/core/queue-wording.ts';
import { sentenceOf } from '../../src/core/wording.ts';
import {
  ACCEPTED,
  CANNOT_TELL,
  factsOf,
  factsWithLookup,
  HOUR_MS,
  INCONCLUSIVE,
  LOST,
  NOT_LEFT,
  PRESENT,
  READ_BACK,
  SECOND_MS,
  type Setup,
  setup,
  setupLost,
  TWO_FOUND,
} from './fixtures.ts';

const IRREVERSIBLE = factsOf({ class: 'irreversible' });
const AWAY = { connected: false, connectionDetail: 'connection refused' };

const kindOf = ({ operation }: Setup): string | undefined => causeOf(operation)?.kind;
const queued = ({ operation }: Setup): Queued => ({ operation, version: 1 });

/** A lost answer, with a look-up that the destination does not answer. */
function lookingUp(id: string): Setup {
  const bundle = setup({ facts: factsWithLookup(), proposal: { id } });
  bundle.start();
  bundle.comesBack(LOST);
  bundle.learn(INCONCLUSIVE);
  return bundle;
}

describe('a destination that gives no answer is one cause', () => {
  test('for what waits to be sent to it', () => {
    const waiting = setup();
    waiting.start(AWAY);
    expect(kindOf(waiting)).toBe('no_answer');
  });

  test('for what could not reach it, and is tried again', () => {
    const refused = setup();
    refused.start();
    refused.comesBack(NOT_LEFT);
    expect(refused.state).toBe('ready not_sent');
    expect(kindOf(refused)).toBe('no_answer');
  });

  test('for what is looked up, and for what nobody can look up', () => {
    expect(kindOf(lookingUp('op_1'))).toBe('no_answer');
    // As it is read while no process runs that could ask: the obstacle is the same, and no instant is promised.
    const alone = { ...lookingUp('op_1').operation, why: { code: 'waits_for_gateway' } } as const;
    expect(groupByCause([{ operation: alone, version: 1 }])).toMatchObject([
      { cause: { kind: 'no_answer' } },
    ]);
    expect(groupByCause([{ operation: alone, version: 1 }])[0]?.nextAt).toBeUndefined();
    expect(sentenceOf(alone)).toBe(
      'To be checked when a gateway to tasks-eu runs; none runs now. It may or may not have happened. Do not repeat it.',
    );
    expect(kindOf(setupLost())).toBe('no_answer');
  });

  test('for an approval that has expired while it waited, and for bounds that were used up so', () => {
    const approved = setup({ facts: IRREVERSIBLE });
    approved.decides('approved');
    approved.start(AWAY);
    approved.pass(9 * HOUR_MS);
    approved.start(AWAY);
    expect(approved.state).toBe('awaiting_approval not_sent');
    expect(kindOf(approved)).toBe('no_answer');
    const ordinary = setup();
    ordinary.start(AWAY);
    ordinary.pass(25 * HOUR_MS);
    ordinary.start(AWAY);
    expect(ordinary.state).toBe('parked not_sent');
    expect(kindOf(ordinary)).toBe('no_answer');
  });
});

describe('other causes', () => {
  test('an approval that has expired for another reason is its own', () => {
    const approved = setup({ facts: IRREVERSIBLE });
    approved.decides('approved');
    approved.pass(9 * HOUR_MS);
    approved.start();
    expect(kindOf(approved)).toBe('approval_expired');
  });

  test('a first approval, a stricter rule, a lock, an end of the gateway, a contradiction, a changed payload', () => {
    expect(kindOf(setup({ facts: IRREVERSIBLE }))).toBe('approval');
    const stricter = setup();
    stricter.changeFacts({ class: 'irreversible' });
    stricter.start();
    expect(kindOf(stricter)).toBe('rule_stricter');
    const limited = setup();
    limited.start({
      noRoom: { code: 'waits_for_rate', writes: 2, perMs: HOUR_MS, until: limited.now + HOUR_MS },
    });
    expect(kindOf(limited)).toBe('limit');
    expect(groupByCause([queued(limited)])[0]?.nextAt).toBe(limited.now + HOUR_MS);
    const locked = setup();
    locked.start({ lockedBy: 'op_9K1' });
    expect(kindOf(locked)).toBe('other_first');
    const ended = setup();
    ended.start();
    ended.fence();
    expect(kindOf(ended)).toBe('gateway_ended');
    const several = lookingUp('op_1');
    several.learn(TWO_FOUND);
    expect(kindOf(several)).toBe('contradiction');
    const altered = setup();
    altered.start({ digest: 'another' });
    expect(kindOf(altered)).toBe('digest_mismatch');
  });

  test('what is ready, out, or being read back is on its way; what is closed has none', () => {
    const bundle = setup();
    expect(kindOf(bundle)).toBe('on_its_way');
    bundle.start();
    expect(kindOf(bundle)).toBe('on_its_way');
    bundle.comesBack(ACCEPTED);
    expect(bundle.state).toBe('closed accepted');
    expect(kindOf(bundle)).toBeUndefined();
  });

  test('closed, and read back as something else, is one to look at', () => {
    const facts = factsWithLookup({}, {});
    const bundle = setup({
      facts: {
        ...facts,
        ...(facts.operation === undefined ? {} : { operation: { ...facts.operation, readback: READ_BACK } }),
      },
    });
    bundle.start();
    bundle.comesBack(ACCEPTED);
    bundle.learn(CANNOT_TELL);
    expect(bundle.state).toBe('closed accepted');
    expect(kindOf(bundle)).toBe('read_back_differs');
  });

  test('a statement of a person does not change the cause', () => {
    const lost = setupLost();
    lost.states('stated_not_happened');
    expect(kindOf(lost)).toBe('no_answer');
    lost.orderAgain();
    expect(kindOf(lost)).toBe('approval');
  });
});

describe('a group', () => {
  const found = lookingUp('op_2');
  const earlier = lookingUp('op_0');
  found.pass(SECOND_MS);
  found.learn(PRESENT);
  earlier.learn(PRESENT);
  const waiting = setup({ proposal: { id: 'op_3' } });
  waiting.start(AWAY);
  const parked = setupLost({ proposal: { id: 'op_4' } });
  const checking = lookingUp('op_5');
  const [group] = groupByCause([waiting, parked, checking].map(queued), [found.operation]) as [CauseGroup];

  test('counts each once, and what was found since', () => {
    expect(group.cause).toEqual({
      id: 'cause_no_answer@tasks-eu',
      kind: 'no_answer',
      destination: 'tasks-eu',
    });
    expect(group.counts).toEqual({ neverSent: 1, found: 1, needsPerson: 1, goesOn: 1, approvalsExpired: 0 });
    expect(group.members.map(({ operation }) => operation.id)).toEqual(['op_3', 'op_4', 'op_5']);
    const { why } = checking.operation;
    expect(group.nextAt).toBe(why?.code === 'looking_up' ? why.nextAt : undefined);
  });

  test('what was settled before the obstacle met any of them is not its own', () => {
    const later = setup({ proposal: { id: 'op_6' } });
    later.pass(HOUR_MS);
    later.start();
    later.comesBack(LOST);
    const [one] = groupByCause([later].map(queued), [earlier.operation]) as [CauseGroup];
    expect(one.counts.found).toBe(0);
  });

  test('destinations are kept apart, and what is wrong comes before what goes on by itself', () => {
    const other = setup({ proposal: { id: 'op_7', destination: 'tasks-us' } });
    const several = lookingUp('op_8');
    several.learn(TWO_FOUND);
    const ids = groupByCause([other, waiting, several].map(queued)).map(({ cause }) => cause.id);
    expect(ids).toEqual([
      'cause_contradiction@tasks-eu',
      'cause_no_answer@tasks-eu',
      'cause_on_its_way@tasks-us',
    ]);
    expect(ids.every(isCauseId)).toBe(true);
  });

  test('has words', () => {
    expect(causeHeading(group.cause)).toBe('No answer from tasks-eu');
    expect(countsWords(group.counts)).toBe(
      '1 never sent · 1 found since · 1 needs a person · 1 goes on by itself',
    );
    expect(countsWords({ neverSent: 3, found: 0, needsPerson: 2, goesOn: 2, approvalsExpired: 1 })).toBe(
      '3 never sent (1 of them with an approval that has expired) · 2 need a person · 2 go on by themselves',
    );
  });
});
