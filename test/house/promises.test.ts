import { describe, expect, test } from 'vitest';
import {
  type Citation,
  citationsInDemo,
  citationsInTests,
  findBrokenPromises,
  type Manifest,
  type PromiseState,
  readCitations,
  readManifest,
} from './promises.ts';
import { ROOT } from './source.ts';

const manifest = readManifest(ROOT);

test('no promise is claimed without a test that cites it, and none is cited that is not made', () => {
  expect(findBrokenPromises(manifest, readCitations(ROOT))).toEqual([]);
});

describe('the gate itself', () => {
  const cited = (text: string): readonly Citation[] => citationsInTests(new Map([['planted.test.ts', text]]));
  const claim = (id: string, state: PromiseState): Manifest => ({
    rows: manifest.rows.map((row) => {
      if (row.variants === undefined) return { ...row, state: row.id === id ? state : 'planned' };
      const variants = row.variants.map((each) => ({
        ...each,
        state: each.id === id ? state : ('planned' as const),
      }));
      return { ...row, variants };
    }),
  });

  test('lets a claim pass that a test cites', () => {
    expect(
      findBrokenPromises(claim('S1', 'core'), cited(`test('[S1] the reply is lost', () => {})`)),
    ).toEqual([]);
  });

  test.each(['core', 'kept'] as const)('notices a claim of "%s" that no test cites', (state) => {
    expect(findBrokenPromises(claim('S1', state), cited(`test('S1 without brackets')`))).toEqual([
      `S1 is claimed as "${state}", and no test that runs has [S1] in its title.`,
    ]);
  });

  test('notices a claimed variant when only another variant or the row is cited', () => {
    const citations = cited(`test('[S16a] retry', f); test('[S16] all of it', f);`);
    expect(findBrokenPromises(claim('S16a', 'core'), citations)).toEqual([]);
    expect(findBrokenPromises(claim('S16c', 'core'), citations)).toHaveLength(1);
  });

  test('notices the citation of what is no promise', () => {
    expect(findBrokenPromises(claim('', 'planned'), cited(`test('[S44] more', f)`))).toEqual([
      'planted.test.ts cites S44, which is no promise of the manifest.',
    ]);
    const demo = citationsInDemo(new Map([['demo.mjs', `const stories = [{ id: 'S99', title: 'x' }];`]]));
    expect(findBrokenPromises(claim('', 'planned'), demo)).toHaveLength(1);
  });

  test('does not take a story of the demonstration for a test', () => {
    const demo = citationsInDemo(new Map([['demo.mjs', `const story = { id: 'S1' };`]]));
    expect(findBrokenPromises(claim('S1', 'core'), demo)).toHaveLength(1);
  });

  test('notices a manifest that lost a row, a state, or the order of its letters', () => {
    // Nothing is claimed here, so that only the shape can be wrong.
    const [first, ...others] = manifest.rows.map(unclaimed);
    expect(findBrokenPromises({ rows: others }, [])).toHaveLength(1);
    expect(findBrokenPromises({ rows: [{ id: 'S1', story: '', shows: '' }, ...others] }, [])).toHaveLength(1);
    const variants = [{ id: 'S1b', story: '', state: 'planned' as const }];
    expect(
      findBrokenPromises({ rows: [{ id: 'S1', story: '', shows: '', variants }, ...others] }, []),
    ).toHaveLength(1);
    expect(findBrokenPromises({ rows: [{ ...first, state: 'done' } as never, ...others] }, [])).toHaveLength(
      2,
    );
  });

  test.each([
    [`it('[S1] a title', f)`, ['S1']],
    [`test.concurrent('[S1] and [S21] in one', f)`, ['S1', 'S21']],
    ['test(`[S4] killed at ${point}`, f)', ['S4']],
    [`for (const x of y) test.each([1, 2])('[S2] %s', f)`, ['S2']],
    [`test.each([['[S16a] retry'], ['[S16c] reworded']])('%s', f)`, ['S16a', 'S16c']],
    [`describe('[S3a] parked', () => { test('x', f); test('y', f); })`, ['S3a', 'S3a']],
    [`describe('[S3a] an empty group', () => {})`, []],
    [`test('a note', () => { expect('[S1]').toBe('[S1]'); }) // [S2]`, []],
    [`console.log('[S1]')`, []],
  ])('finds in %s the ids %j', (text, ids) => {
    expect(cited(text).map(({ id }) => id)).toEqual(ids);
  });

  test.each([
    `test.skip('[S1] later', f)`,
    `test.todo('[S1] later')`,
    `describe.skip('group', () => { test('[S1] x', f); })`,
    `describe.skip('[S1] group', () => { test('x', f); })`,
  ])('does not count %s', (text) => {
    expect(cited(text).map(({ id, by }) => [id, by])).toEqual([['S1', 'skipped']]);
    expect(findBrokenPromises(claim('S1', 'core'), cited(text))).toHaveLength(1);
  });
});

/** A row that claims nothing. */
function unclaimed(row: (typeof manifest.rows)[number]): (typeof manifest.rows)[number] {
  const text = JSON.stringify(row).replaceAll(/"state":"(core|kept)"/g, '"state":"planned"');
  return JSON.parse(text) as (typeof manifest.rows)[number];
}
