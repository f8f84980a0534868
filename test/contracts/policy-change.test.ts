import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { loadGatewaySetup } from '../../src/contracts/load.ts';
import { loosenedBy } from '../../src/contracts/policy-change.ts';
import { BINDING, CONTRACT, changed } from './texts.ts';

function setupOf(text: string) {
  const loaded = loadGatewaySetup(`destination: d\n${text}`, 'gateway.yaml', {
    readText: () => ({ reason: 'none' }),
  });
  if (!loaded.ok) throw new Error(loaded.problems.map(({ sentence }) => sentence).join());
  return loaded;
}
const loosens = (next: string, before: string) => loosenedBy(setupOf(next), setupOf(before));

describe('what a configuration loosens', () => {
  test.each([
    ['mode: observe', 'mode: guard', 'The mode is observe, and was guard.'],
    ['', 'mode: strict', 'The mode is guard, and was strict.'],
    ['tools: {t: {class: read}}', 'tools: {t: {class: ordinary}}', 't is read, and was ordinary.'],
    [
      'tools: {t: {repeat: free}}',
      'tools: {t: {class: irreversible}}',
      't is unclassified, and was irreversible.',
    ],
    [
      'tools: {t: {class: ordinary, repeat: state}}',
      'tools: {t: {class: ordinary, repeat: unique}}',
      't: repeat is not as before.',
    ],
    [
      'tools: {t: {class: ordinary}}',
      "tools: {t: {class: ordinary, target: {type: page, id: '{p}'}}}",
      't: target is not as before.',
    ],
    [
      'tools: {t: {class: ordinary, repeat: free, identity: [a, b]}}',
      'tools: {t: {class: ordinary, repeat: unique, identity: [a]}}',
      't: repeat and identity are not as before.',
    ],
    ['limits: {writes_per_hour: 100}', '', 'limits.writes_per_hour is 100, and was 50.'],
    ['limits: {approval_lifetime: P1D}', '', 'limits.approval_lifetime is P1D, and was PT8H.'],
    [
      'review_url: https://a.example/{operation}',
      '',
      'review_url is https://a.example/{operation}, and was not given.',
    ],
  ])('%j after %j', (next, before, sentence) => {
    expect(loosens(next, before)).toEqual([sentence]);
    // The other way about it is more careful, unless nobody can tell.
    if (!sentence.includes('identity')) expect(loosens(before, next)).toEqual([]);
  });

  test('another page on which reviews are decided', () => {
    const url = (host: string): string => `review_url: https://${host}/{operation}`;
    expect(loosens(url('b.example'), url('a.example'))).toEqual([
      'review_url is https://b.example/{operation}, and was https://a.example/{operation}.',
    ]);
    expect(loosens(url('a.example'), url('a.example'))).toEqual([]);
  });

  test('nothing, where it says the same in other words or is more careful in everything', () => {
    expect(loosens('# a remark\nmode: guard', '')).toEqual([]);
    expect(
      loosens('tools: {t: {class: irreversible}}', 'tools: {t: {class: ordinary, repeat: unique}}'),
    ).toEqual([]);
    expect(loosens('tools: {t: {class: interactive}}', 'tools: {t: {class: ordinary}}')).toEqual([]);
    expect(loosens('limits: {writes_per_hour: 1, approval_lifetime: PT1H}', '')).toEqual([]);
  });

  test('no configuration loosens itself, and what loosens one step loosens the way there', () => {
    const part = fc.record({
      mode: fc.constantFrom('observe', 'guard', 'strict'),
      class: fc.constantFrom('read', 'ordinary', 'irreversible'),
      writes: fc.integer({ min: 1, max: 100 }),
    });
    const text = (value: { mode: string; class: string; writes: number }): string =>
      `mode: ${value.mode}\ntools: {t: {class: ${value.class}}}\nlimits: {writes_per_hour: ${value.writes}}`;
    fc.assert(
      fc.property(part, part, part, (a, b, c) => {
        expect(loosens(text(a), text(a))).toEqual([]);
        const isCareful = loosens(text(b), text(a)).length === 0 && loosens(text(c), text(b)).length === 0;
        if (isCareful) expect(loosens(text(c), text(a))).toEqual([]);
      }),
      { numRuns: 60 },
    );
  });
});

describe('what a binding that the configuration names loosens', () => {
  const MEASURED = (...digits: string[]) =>
    `measured:\n${digits
      .map(
        (digit) =>
          `  - {package: t, version: '1', on: 2026-11-30, tools: {create_task: ${digit.repeat(64)}}}\n`,
      )
      .join('')}`;
  const ROWS = (...rows: string[]) =>
    changed(
      BINDING,
      '  - {tool: find_tasks, class: read}\n',
      ['{tool: find_tasks, class: read}', ...rows].map((row) => `  - ${row}\n`).join(''),
    );
  const setupWith = (binding: string) => {
    const files: { [name: string]: string } = { 'c.yaml': CONTRACT, 'b.yaml': binding };
    const text = 'destination: d\ncontracts: [c.yaml]\nbindings: [b.yaml]\n';
    const loaded = loadGatewaySetup(text, 'gateway.yaml', {
      readText: (name) => ({ text: files[name] ?? '' }),
    });
    if (!loaded.ok) throw new Error(loaded.problems.map(({ sentence }) => sentence).join());
    return loaded;
  };
  const told = (next: string, before: string) => loosenedBy(setupWith(next), setupWith(before));
  const notAsBefore = (tool: string) => [
    `${tool}: the versions or calls that its binding speaks of are not as before.`,
  ];

  test('another version of a tool, or every version of it; a version less is more careful', () => {
    const [one, both] = [BINDING + MEASURED('a'), BINDING + MEASURED('a', 'b')];
    expect(told(both, one)).toEqual(notAsBefore('create_task'));
    expect(told(BINDING, one)).toEqual(notAsBefore('create_task'));
    expect(told(changed(both, 'id: tasks-server', 'id: other'), one)).toEqual(notAsBefore('create_task'));
    expect(told(one, both)).toEqual([]);
    expect(told(one, BINDING)).toEqual([]);
  });

  test('other versions of the server', () => {
    const wider = changed(BINDING, "'>=1.2 <2'", "'*'");
    expect(told(wider, BINDING)).toEqual(expect.arrayContaining(notAsBefore('create_task')));
  });

  test('a row that only some calls fit: its class, its conditions, its end', () => {
    const interactive = ROWS('{tool: shot, unless: [file], class: read}', '{tool: shot, class: interactive}');
    const read = ROWS('{tool: shot, unless: [file], class: read}', '{tool: shot, class: read}');
    expect(told(read, interactive)).toEqual(['shot is read, and was interactive.']);
    expect(told(interactive, read)).toEqual([]);
    const other = ROWS('{tool: shot, unless: [path], class: read}', '{tool: shot, class: interactive}');
    expect(told(other, interactive)).toEqual(expect.arrayContaining(notAsBefore('shot')));
    const writes = ROWS('{tool: shot, when: {save: true}, class: interactive}', '{tool: shot, class: read}');
    expect(told(ROWS('{tool: shot, class: read}'), writes)).toEqual(notAsBefore('shot'));
  });
});
