import { describe, expect, test } from 'vitest';
import { type CauseGroup, groupByCause } from '../../src/core/cause.ts';
import { noticesOf, type ToldCauses } from '../../src/core/cause-notices.ts';
import { setup, setupLost, T0 } from './fixtures.ts';

const CAUSE = 'cause_no_answer@tasks-eu';

const groupsOf = (...ids: readonly string[]): readonly CauseGroup[] =>
  groupByCause(ids.map((id) => ({ operation: setupLost({ proposal: { id } }).operation, version: 1 })));

/** What is told when one look after the other finds these operations in the cause. */
function look(looks: readonly (readonly string[])[], everyMs = 10_000) {
  let told: ToldCauses = {};
  let lasting: ReadonlySet<string> = new Set();
  return looks.map((ids, index) => {
    const groups = groupsOf(...ids);
    const looked = noticesOf(told, groups, lasting, T0 + index * everyMs);
    told = looked.told;
    lasting = new Set(groups.map(({ cause }) => cause.id));
    return looked.notices.map(({ cause, told: one, type }) => [
      type,
      cause,
      one.counts.needsPerson,
      (one.openedAt - T0) / everyMs,
    ]);
  });
}

describe('a cause is told', () => {
  test('when it lasts, when its counts change, and when nothing of it is left', () => {
    expect(look([['op_1'], ['op_1'], ['op_1'], ['op_1', 'op_2'], [], []])).toEqual([
      [],
      [['cause.opened', CAUSE, 1, 1]],
      [],
      [['cause.changed', CAUSE, 2, 1]],
      [['cause.closed', CAUSE, 0, 1]],
      [],
    ]);
  });

  test('not when it has gone by itself at once', () => {
    expect(look([['op_1'], [], ['op_2'], []])).toEqual([[], [], [], []]);
  });

  test('in its counts not more often than every five seconds, and then as it is by then', () => {
    const all = ['op_1', 'op_2', 'op_3', 'op_4'];
    const growing = [['op_1'], ...all.map((_, index) => all.slice(0, index + 1)), all, all, all];
    expect(look(growing, 2_000).map((each) => each.map(([type, , count]) => [type, count]))).toEqual([
      [],
      [['cause.opened', 1]],
      [],
      [],
      [['cause.changed', 4]],
      [],
      [],
      [],
    ]);
  });

  test('as over only where all that is open was looked at', () => {
    const lasting = new Set([CAUSE]);
    const { told } = noticesOf({}, groupsOf('op_1'), lasting, T0);
    const cut = noticesOf(told, [], lasting, T0 + 10_000, true);
    expect([cut.notices, cut.told]).toEqual([[], told]);
    const whole = noticesOf(cut.told, [], lasting, T0 + 20_000);
    expect(whole.notices.map(({ type }) => type)).toEqual(['cause.closed']);
  });

  test('again when it comes back', () => {
    expect(
      look([['op_1'], ['op_1'], [], ['op_1'], ['op_1']]).map((each) => each.map(([type]) => type)),
    ).toEqual([[], ['cause.opened'], ['cause.closed'], [], ['cause.opened']]);
  });
});

test('what goes on by itself is nobody’s news', () => {
  const groups = groupByCause([{ operation: setup().operation, version: 1 }]);
  const [group] = groups;
  expect(group?.cause.kind).toBe('on_its_way');
  expect(noticesOf({}, groups, new Set([group?.cause.id ?? '']), T0).notices).toEqual([]);
});
