import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Guard } from '../../src/core/contract.ts';
import { DEFAULT_BOUNDS } from '../../src/core/repeatability.ts';
import { indented, type ReviewParts, reviewText } from '../../src/core/review-text.ts';
import { contractOf, factsOf, lookupOf, setup, T0 } from './fixtures.ts';

const IRREVERSIBLE = factsOf({ class: 'irreversible' });

function shown(payload: object | string, overrides: Partial<ReviewParts> = {}): string {
  const { operation } = setup({ facts: IRREVERSIBLE });
  return reviewText({
    operation,
    payload: typeof payload === 'string' ? payload : JSON.stringify(payload),
    target: 'task 443',
    facts: IRREVERSIBLE,
    seen: { read: false, why: 'no_contract' },
    bounds: DEFAULT_BOUNDS,
    at: T0,
    ...overrides,
  }).join('\n');
}

describe('the payload in a review', () => {
  test('is every character of the frozen bytes, numbers as they are written', () => {
    const text = '{"amount":1.50,"big":123456789012345678901,"list":[1,{}],"text":"a, {b}: \\"c\\""}';
    expect(indented(text)).toEqual([
      '{',
      '  "amount": 1.50,',
      '  "big": 123456789012345678901,',
      '  "list": [',
      '    1,',
      '    {',
      '    }',
      '  ],',
      '  "text": "a, {b}: \\"c\\""',
      '}',
    ]);
  });

  test('loses and adds nothing but space between its parts', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        const text = JSON.stringify(value);
        expect(JSON.parse(indented(text).join('\n'))).toEqual(JSON.parse(text));
      }),
    );
  });

  test('that was altered to something that is no JSON is shown as it is', () => {
    expect(shown('{"vm": "a"')).toContain('"vm"');
  });
});

describe('what cannot be seen, or is taken for something else', () => {
  test('hidden and reordering characters are written out and named, wherever they are', () => {
    const text = shown({ note: 'pay\u202e evil\u200b' }, { facts: factsOf({ identity: ['to'] }) });
    expect(text).toContain('"note": "pay\\u{202e} evil\\u{200b}"');
    expect(text).toContain('/note holds characters that are not seen or reorder others: U+202E, U+200B');
    expect(text).not.toMatch(/[\u202e\u200b]/);
  });

  test('of a recipient, record or amount everything that is not plain ASCII is named, of other words it is not', () => {
    const facts = factsOf({
      operation: contractOf({ roles: { recipient: ['to'] } }),
      target: { type: 'account', id: ['{account}'] },
    });
    const text = shown({ to: '\u0430cme', account: 'caf\u00e9', note: 'caf\u00e9' }, { facts });
    expect(text).toContain('/to holds characters that are not plain ASCII: U+0430');
    expect(text).toContain('/account holds characters that are not plain ASCII: U+00E9');
    expect(text).not.toContain('/note holds');
  });

  test('where nobody has said which arguments count, all do, and names of arguments too', () => {
    const text = shown({ 't\u043e': 'x', note: 'caf\u00e9' });
    expect(text).toContain('the name t\u043e in / holds characters that are not plain ASCII: U+043E');
    expect(text).toContain('/note holds characters that are not plain ASCII: U+00E9');
    expect(shown({ to: 'acme' })).not.toContain('Look closely');
  });

  test('no line of it has a character that hides or reorders, whatever the payload, target and requester are', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (words) => {
        const text = shown({ [words]: words }, { target: words });
        expect(text.split('\n').join('')).not.toMatch(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u);
      }),
    );
  });
});

describe('what follows', () => {
  test('what is there stands beside what it becomes, with the instant, the version and the gap', () => {
    const fields = [
      { at: 'due', now: 'Fri', will: 'Mon' },
      { at: 'owner', now: 'Mara', will: 'Mara' },
      { at: 'note' },
    ];
    const text = shown({}, { seen: { read: true, at: T0, state: { fields, version: '11' } } });
    expect(text).toContain('At tasks-eu, read at 2026-03-06 14:00:00 UTC and read again before it is sent:');
    expect(text).toContain(
      'due: "Fri" → "Mon"\n    owner: "Mara", and stays so\n    note: nothing\n    version 11',
    );
    expect(text).toContain(
      'somebody else may still change it: tasks-eu is not asked to refuse the write then.',
    );
  });

  test('where the request bears what the destination enforces, it says that instead of the gap', () => {
    const evidence = { grade: 'documented' } as const;
    const carrier = { in: 'header', name: 'If-Match' } as const;
    const guard = {
      ...{
        kind: 'precondition',
        carrier,
        scope: [],
        window: { kind: 'while_state' },
        strength: 'enforced',
        evidence,
      },
      ...{
        same: { result: 'conflict' },
        different: { result: 'conflict' },
        in_flight: { result: 'conflict' },
      },
    } as unknown as Guard;
    const written = (headers: { readonly [name: string]: string }): string =>
      shown(
        {},
        {
          seen: { read: true, at: T0, state: { fields: [] } },
          facts: {
            ...IRREVERSIBLE,
            operation: contractOf({ guards: [guard], http: { method: 'PUT', path: '/tasks/{id}', headers } }),
          },
        },
      );
    expect(written({ 'If-Match': '{etag}' })).toContain(
      'tasks-eu itself refuses the write where the record is not as the request names it.',
    );
    expect(written({ 'If-Match': '{etag?}' })).toContain('is not asked to refuse the write then.');
  });

  test('what could not be read is said, with why', () => {
    for (const [why, words] of [
      ['no_contract', 'no contract says how it is read'],
      ['no_answer', 'it was asked and did not answer'],
      ['unreadable', 'its answer was none that the contract describes'],
      ['not_asked', 'nothing was connected that could ask'],
    ] as const) {
      expect(shown({}, { seen: { read: false, why } })).toContain(
        `was not read: ${words}. It is not checked again`,
      );
    }
  });

  test('reversal and lost reply are as the contract says, and unknown without one', () => {
    expect(shown({})).toContain('Taking it back: not known; no contract describes this tool.');
    expect(shown({})).toContain('nothing can look it up, and a person must find out.');
    const documented = { grade: 'documented' } as const;
    const operation = contractOf({
      lookups: [lookupOf()],
      side_effects: ['a mail is sent'],
      reversals: [
        { kind: 'restore', restores: 'state_only', leaves: ['who has read it'], evidence: documented },
      ],
    });
    const text = shown({}, { facts: { ...IRREVERSIBLE, operation } });
    expect(text).toContain(
      'Taking it back: restore, which restores state only (documented). What stays in any case: a mail is sent; who has read it.',
    );
    expect(text).toContain('it is looked up at the destination before anything else.');
    const none = contractOf({ reversals: [{ kind: 'none', evidence: documented }] });
    expect(shown({}, { facts: { ...IRREVERSIBLE, operation: none } })).toContain(
      'impossible, as the contract states.',
    );
  });
});
