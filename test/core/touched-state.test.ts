import { describe, expect, test } from 'vitest';
import { presentQuestion, readTouched, targetChange } from '../../src/core/touched-state.ts';
import { contractOf, READ_BACK } from './fixtures.ts';

const DOCUMENTED = { grade: 'documented' } as const;
const READBACK = {
  tool: { name: 'get', arguments: {} },
  matches: [
    { from: 'json', path: '/due', equals: '{due}' },
    { path: '/state', equals: 'open' },
    { from: 'json', path: '/tags', contains: 'urgent' },
  ],
  version: { from: 'json', path: '/version' },
  evidence: DOCUMENTED,
} as const;
const VALUES = { arguments: { due: 'Mon' } };

function reply(record: unknown) {
  const content = [{ type: 'text', text: JSON.stringify(record) }];
  return { kind: 'result', body: JSON.stringify({ content }) } as const;
}

describe('the fields that a write touches', () => {
  test('are those of the read-back, as they are now and as the write makes them', () => {
    expect(readTouched(reply({ due: 'Fri', state: 'open', version: 11 }), READBACK, VALUES)).toEqual({
      fields: [
        { at: 'due', now: 'Fri', will: 'Mon' },
        { at: 'state', now: 'open', will: 'open' },
        { at: 'tags' },
      ],
      version: '11',
    });
  });

  test('cannot be told from an error, from what was cut, or from what may be another answer', () => {
    const { body } = reply({});
    expect(readTouched({ kind: 'tool_error', body }, READBACK, VALUES)).toBeUndefined();
    expect(readTouched({ kind: 'result', body, truncated: true }, READBACK, VALUES)).toBeUndefined();
    expect(readTouched({ kind: 'result', body, doubt: 'page' }, READBACK, VALUES)).toBeUndefined();
  });

  test('are asked for only where something is there before the write', () => {
    const matches = [{ path: '/due', equals: '{due}' }];
    const readback = { ...READ_BACK, matches };
    expect(presentQuestion(contractOf({ effect: 'update', readback }))).toBe(readback);
    expect(presentQuestion(contractOf({ effect: 'delete', readback }))).toBe(readback);
    expect(presentQuestion(contractOf({ effect: 'create', readback }))).toBeUndefined();
    expect(presentQuestion(contractOf({ effect: 'update' }))).toBeUndefined();
    expect(presentQuestion(undefined)).toBeUndefined();
  });
});

describe('what has changed', () => {
  const state = (due: string | undefined, version?: string) => ({
    fields: [{ at: 'due', ...(due === undefined ? {} : { now: due }) }],
    ...(version === undefined ? {} : { version }),
  });

  test('is told by value and by version, also when the value is back as it was', () => {
    expect(targetChange(state('Fri', '11'), state('Fri', '11'))).toBeUndefined();
    expect(targetChange(state('Fri'), state('Tue'))).toEqual({ code: 'target_changed', fields: ['due'] });
    const away = { code: 'target_changed', fields: [], was: '11', is: '13' };
    expect(targetChange(state('Fri', '11'), state('Fri', '13'))).toEqual(away);
    expect(targetChange(state('Fri', '11'), state(undefined))).toEqual({
      code: 'target_changed',
      fields: ['due'],
      was: '11',
    });
  });
});
