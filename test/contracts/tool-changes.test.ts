import { describe, expect, it } from 'vitest';
import { loadBinding } from '../../src/contracts/load.ts';
import { changedSentence, toolChanges } from '../../src/contracts/tool-changes.ts';
import { BINDING } from './texts.ts';

const digest = (digit: string) => digit.repeat(64);
const listed = (tools: { [name: string]: string }) =>
  Object.entries(tools).map(([name, value]) => ({ name, digest: digest(value) }));

function bindingMeasuredWith(tools: { [name: string]: string }) {
  const measured = [{ package: 'tasks', version: '1', on: '2026-11-30', tools }];
  const loaded = loadBinding(`${BINDING}measured: ${JSON.stringify(measured)}\n`, 'binding');
  if (!loaded.ok) throw new Error(JSON.stringify(loaded.problems));
  return loaded.binding;
}

describe('which tools are not those of which something was said', () => {
  const binding = bindingMeasuredWith({ a: digest('1'), b: digest('1') });
  const first = { digest: digest('1'), readOnlyHint: false };
  const firstSeen = new Map([
    ['a', first],
    ['b', first],
    ['c', first],
  ]);

  it('is told for the binding and for what was seen first, each by itself', () => {
    const changes = toolChanges(listed({ a: '1', b: '2', c: '2', d: '1' }), binding, firstSeen);
    expect(changes.sinceBinding).toEqual(new Set(['b']));
    expect(changes.sinceSeen).toEqual(
      new Map([
        ['b', first],
        ['c', first],
      ]),
    );
  });

  it('is told of none where nothing is known of how they were', () => {
    const changes = toolChanges(listed({ a: '2', b: '2' }), undefined, new Map());
    expect(changes).toEqual({ sinceBinding: new Set(), sinceSeen: new Map() });
  });
});

it('one sentence tells of it, whoever had said what the tool is', () => {
  const rest =
    'its schema or its hints are others. What was said of it counts only where that is more careful.';
  expect(changedSentence('t', { binding: 'b' })).toBe(
    `t is not the tool that the binding b was written for: ${rest}`,
  );
  expect(changedSentence('t', 'configuration')).toBe(
    `t is not the tool that the configuration was written for: ${rest}`,
  );
  expect(changedSentence('t', 'owner')).toBe(`t is not the tool of which its owner said what it is: ${rest}`);
});
