// A name for each destination: stable, plain, and never that of another server.

import { describe, expect, test } from 'vitest';
import { addressText, destinationName, launchText } from '../../src/clients/names.ts';

const LAUNCH = { command: 'x', args: ['y'], env: { A: '1', B: '2' }, cwd: undefined, envFile: undefined };

describe('a destination’s name', () => {
  test.each([
    ['notes', 'notes'],
    ['My Notes (work)', 'My-Notes-work'],
    ['Übersicht', 'U-bersicht'],
    ['…', 'server'],
    ['_x', 'x'],
    ['n'.repeat(80), 'n'.repeat(64)],
  ])('of %s', (entry, name) => {
    const given = destinationName(entry, 'l', new Map());
    expect(given).toBe(name);
    expect(given).toMatch(/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/);
  });

  test('is shared by the same server, and by no other', () => {
    const taken = new Map<string, string>();
    const give = (entry: string, launch: string): string => destinationName(entry, launch, taken);
    expect([give('a', '1'), give('a', '2'), give('a', '1'), give('a', '2'), give('a', '3')]).toEqual([
      'a',
      'a-2',
      'a',
      'a-2',
      'a-3',
    ]);
  });

  test('keeps its length where a number comes behind it', () => {
    const long = 'n'.repeat(80);
    const taken = new Map([[destinationName(long, '1', new Map()), '1']]);
    expect(destinationName(long, '2', taken)).toBe(`${'n'.repeat(62)}-2`);
  });
});

describe('two servers are the same', () => {
  const base = launchText(LAUNCH, undefined);

  test('when all that they are started with is equal, in whatever order', () => {
    expect(launchText({ ...LAUNCH, env: { B: '2', A: '1' } }, undefined)).toBe(base);
  });

  test.each([
    ['another argument', { ...LAUNCH, args: ['z'] }, undefined],
    ['another account', { ...LAUNCH, env: { A: '9', B: '2' } }, undefined],
    ['another folder', { ...LAUNCH, cwd: '/x' }, undefined],
    ['another project', LAUNCH, '/p'],
  ])('and not with %s', (_what, launch, workspace) => {
    expect(launchText(launch, workspace)).not.toBe(base);
  });
});

test('two addresses are the same with the same headers, in whatever order, and not with another account', () => {
  const base = addressText({ url: 'http://h/x', headers: { A: '1', B: '2' } });
  expect(addressText({ url: 'http://h/x', headers: { B: '2', A: '1' } })).toBe(base);
  expect(addressText({ url: 'http://h/x', headers: { A: '9', B: '2' } })).not.toBe(base);
  expect(addressText({ url: 'http://h/y', headers: { A: '1', B: '2' } })).not.toBe(base);
});
