import { describe, expect, test } from 'vitest';
import type { Operation } from '../../src/core/operation.ts';
import { reportOf } from '../../src/core/report.ts';
import { suggestClasses } from '../../src/core/suggestion.ts';
import { ACCEPTED, factsOf, NOT_LEFT, setup, setupLost } from './fixtures.ts';

let count = 0;
function named(operation: Operation, overrides: Partial<Operation> = {}): Operation {
  count += 1;
  return { ...operation, id: `op_${String(count).padStart(4, '0')}`, ...overrides };
}

const done = (overrides: Partial<Operation> = {}): Operation => {
  const one = setup();
  one.start();
  one.comesBack(ACCEPTED);
  return named(one.operation, overrides);
};
const asked = (overrides: Partial<Operation> = {}): Operation =>
  named(setup({ facts: factsOf({ class: 'irreversible' }) }).operation, overrides);
const unclassified = (overrides: Partial<Operation> = {}): Operation =>
  named(setup({ facts: factsOf({ class: 'unclassified' }) }).operation, overrides);

describe('the report', () => {
  test('of nothing is empty', () => {
    expect(reportOf([])).toEqual({
      operations: 0,
      tools: [],
      asked: { observe: 0, guard: 0, strict: 0 },
      unclear: [],
      waiting: 0,
      observed: 0,
      observedRepeats: 0,
    });
  });

  test('guard asks each time for what is irreversible, once for each version of what nobody has classified, strict for all', () => {
    const operations = [
      done(),
      done(),
      asked(),
      asked(),
      unclassified({ toolDigest: 'a' }),
      unclassified({ toolDigest: 'a' }),
      unclassified({ toolDigest: 'b' }),
    ];
    expect(reportOf(operations).asked).toEqual({ observe: 0, guard: 4, strict: 7 });
  });

  test('what was observed and would have been answered with another is asked about by no mode', () => {
    const first = done({ toolClass: 'irreversible', observed: { guard: 'ask', question: 'irreversible' } });
    const repeat = done({ toolClass: 'irreversible', observed: { guard: 'answer', operation: first.id } });
    const report = reportOf([first, repeat]);
    expect(report).toMatchObject({
      observed: 2,
      observedRepeats: 1,
      asked: { observe: 0, guard: 1, strict: 1 },
    });
  });

  test('what is unclear is what nobody knows, and nothing that is known', () => {
    const unknown = named(setupLost().operation);
    const late = named(setupLost().operation);
    const notSent = setup();
    notSent.start();
    notSent.comesBack(NOT_LEFT);
    const known = [done(), named(notSent.operation), asked()];
    expect(reportOf([late, ...known, unknown]).unclear.map(({ id }) => id)).toEqual(
      [unknown.id, late.id].sort(),
    );
  });
});

describe('a suggestion', () => {
  const decided = (kind: 'approved' | 'denied'): Operation => {
    const one = setup({ facts: factsOf({ class: 'unclassified' }) });
    one.decides(kind);
    return named(one.operation);
  };

  test('is never a read, and never less than irreversible for what is so', () => {
    const all = [asked(), asked(), decided('approved'), decided('approved'), decided('approved'), done()];
    const classes = [...suggestClasses(all), ...suggestClasses([asked()])].map(
      (suggestion) => suggestion.class,
    );
    expect(classes).not.toContain('read');
    expect(suggestClasses([asked(), asked()])[0]?.class).toBeUndefined();
  });

  test('rests on decisions: three yeses make it ordinary, one no irreversible, two say nothing', () => {
    const yes = () => decided('approved');
    expect(suggestClasses([yes(), yes()])[0]).toMatchObject({ present: 'unclassified', because: [] });
    expect(suggestClasses([yes(), yes(), yes()])[0]).toMatchObject({
      class: 'ordinary',
      because: ['all 3 decisions on it were a yes'],
    });
    expect(suggestClasses([yes(), yes(), yes(), decided('denied')])[0]).toMatchObject({
      class: 'irreversible',
      because: ['1 of 4 decisions on it were a no'],
    });
  });

  test('equal calls that were sent again suggest that the tool is unique', () => {
    const free = { repeat: 'free' } as const;
    const [first, second] = [done(free), done(free)];
    const linked = { ...second, previous: { operation: first.id, relation: 'occurrence' as const } };
    expect(suggestClasses([first, linked])[0]).toMatchObject({ repeat: 'unique' });
    expect(suggestClasses([first])[0]?.repeat).toBeUndefined();
  });
});
