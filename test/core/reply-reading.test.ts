import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type {
  Comparison,
  ContractOperation,
  Lookup,
  OutcomeRule,
  ReadBack,
  Signal,
} from '../../src/core/contract.ts';
import type { ReadableReply } from '../../src/core/reply-places.ts';
import {
  classifyReply,
  compare,
  matchesSignal,
  readLookup,
  readPlace,
  readReadBack,
} from '../../src/core/reply-reading.ts';
import { jsonValue, spelledValue } from './json-arbitraries.ts';

function result(structuredContent: unknown, text = 'done'): ReadableReply {
  const body = { content: [{ type: 'text', text }], structuredContent, isError: false };
  return { kind: 'result', body: JSON.stringify(body) };
}

function toolError(text: string): ReadableReply {
  return { kind: 'tool_error', body: JSON.stringify({ content: [{ type: 'text', text }], isError: true }) };
}

const TRUSTED = { grade: 'documented' } as const;
const UNTRUSTED = { grade: 'reported' } as const;

function operation(
  outcomes: readonly OutcomeRule[],
  more: Partial<ContractOperation> = {},
): ContractOperation {
  return {
    id: 'task.create',
    match: ['create_task'],
    effect: 'create',
    completion: { kind: 'synchronous' },
    guards: [],
    lookups: [],
    outcomes,
    reversals: [{ kind: 'none', evidence: TRUSTED }],
    ...more,
  };
}

const REFUSES: OutcomeRule = {
  when: { kind: ['tool_error'], text_starts: ['Quota: '] },
  means: 'not_applied',
  evidence: TRUSTED,
};

describe('classifyReply', () => {
  it('takes a plain result for an acknowledgement, with or without a contract', () => {
    expect(classifyReply(result({ id: 'T-1' }), undefined)).toEqual({ means: 'accepted', trusted: false });
    expect(classifyReply(result({ id: 'T-1' }), operation([REFUSES]))).toEqual({
      means: 'accepted',
      trusted: false,
    });
  });

  it('takes an error without an outcome for an error that establishes nothing', () => {
    expect(classifyReply(toolError('not found, nothing was created'), undefined).means).toBe('error');
    expect(classifyReply(toolError('not found, nothing was created'), operation([REFUSES])).means).toBe(
      'error',
    );
    const fault: ReadableReply = {
      kind: 'protocol_error',
      code: -32603,
      body: '{"code":-32603,"message":"Internal"}',
    };
    expect(classifyReply(fault, operation([REFUSES])).means).toBe('error');
  });

  it('takes a refusal that the contract names, on trusted evidence only', () => {
    const reply = toolError('Quota: 3 tasks a day');
    expect(classifyReply(reply, operation([REFUSES]))).toEqual({ means: 'rejected', rule: 0, trusted: true });
    for (const evidence of [UNTRUSTED, { grade: 'assumed' }, { grade: 'not_documented' }] as const) {
      expect(classifyReply(reply, operation([{ ...REFUSES, evidence }]))).toEqual({
        means: 'error',
        rule: 0,
        trusted: false,
      });
    }
    const { evidence: _, ...without } = REFUSES;
    expect(classifyReply(reply, operation([without])).means).toBe('error');
  });

  it('takes the first outcome whose marks the reply bears', () => {
    const busy: OutcomeRule = {
      when: { kind: ['tool_error'], text_contains: ['busy'] },
      means: 'not_applied_temporary',
      evidence: TRUSTED,
    };
    const unsure: OutcomeRule = { when: { kind: ['tool_error'] }, means: 'unknown' };
    const outcomes = [REFUSES, busy, unsure];
    const means = (text: string) => classifyReply(toolError(text), operation(outcomes));
    expect(means('Quota: busy')).toMatchObject({ means: 'rejected', rule: 0 });
    expect(means('too busy')).toMatchObject({ means: 'rejected_temporary', rule: 1, trusted: true });
    expect(means('boom')).toMatchObject({ means: 'unknown', rule: 2 });
    expect(classifyReply(toolError('busy'), operation([{ ...busy, evidence: UNTRUSTED }])).means).toBe(
      'error',
    );
  });

  it.each<[OutcomeRule['means'], OutcomeRule['evidence'], string, string]>([
    ['applied', TRUSTED, 'applied', 'applied'],
    ['applied', UNTRUSTED, 'accepted', 'error'],
    ['already_applied', TRUSTED, 'accepted', 'unknown'],
    ['accepted', undefined, 'accepted', 'accepted'],
    ['in_progress', undefined, 'in_progress', 'in_progress'],
    ['unknown', undefined, 'unknown', 'unknown'],
    ['not_applied', TRUSTED, 'rejected', 'rejected'],
    ['not_applied', UNTRUSTED, 'error', 'error'],
  ])('an outcome %s on %j: a result is %s, an error is %s', (means, evidence, ofResult, ofError) => {
    const rule = { when: { text_contains: ['x'] }, means, ...(evidence && { evidence }) };
    expect(classifyReply(result({}, 'x'), operation([rule])).means).toBe(ofResult);
    expect(classifyReply(toolError('x'), operation([rule])).means).toBe(ofError);
  });

  it('knows that a destination that answers before it is done goes on working', () => {
    const slow = { completion: { kind: 'accepted_then_poll' } } as const;
    expect(classifyReply(result({}), operation([], slow)).means).toBe('in_progress');
    const rule: OutcomeRule = { when: { status: [202] }, means: 'accepted' };
    expect(classifyReply({ ...result({}), code: 202 }, operation([rule], slow)).means).toBe('in_progress');
    expect(
      classifyReply(result({}), operation([], { completion: { kind: 'accepted_no_handle' } })).means,
    ).toBe('accepted');
  });

  it('reads record and version of an acknowledgement, from texts and exact numbers', () => {
    const acknowledgement = {
      record: { from: 'structured', path: '/id' },
      version: { from: 'structured', path: '/rev' },
    } as const;
    const read = (structured: unknown) =>
      classifyReply(result(structured), operation([], { acknowledgement }));
    expect(read({ id: 'T-1', rev: 4 })).toEqual({
      means: 'accepted',
      record: 'T-1',
      version: '4',
      trusted: false,
    });
    expect(read({ id: 1e21, rev: '' })).toEqual({ means: 'accepted', trusted: false });
    expect(read({ id: { a: 1 }, rev: 'x'.repeat(1025) })).toEqual({ means: 'accepted', trusted: false });
    expect(read(undefined)).toEqual({ means: 'accepted', trusted: false });
    expect(
      classifyReply(toolError('T-1'), operation([], { acknowledgement: { record: { from: 'text' } } })),
    ).toEqual({ means: 'error', trusted: false });
  });

  it('does not make a result of an error whose kind an adapter overlooked', () => {
    const overlooked: ReadableReply = { ...toolError('Quota: 0'), kind: 'result' };
    expect(classifyReply(overlooked, undefined).means).toBe('error');
    expect(classifyReply(overlooked, operation([REFUSES])).means).toBe('rejected');
  });

  it('never takes what it cannot read for an answer', () => {
    const broken: ReadableReply = { kind: 'result', body: '{"content":[' };
    expect(classifyReply(broken, undefined).means).toBe('unknown');
    expect(classifyReply({ ...broken, kind: 'tool_error' }, operation([REFUSES])).means).toBe('error');
    // Cut when it was recorded: it was a complete answer, of which the text is not known.
    const cut: ReadableReply = { kind: 'result', body: '{"content":[', truncated: true };
    expect(classifyReply(cut, operation([REFUSES])).means).toBe('accepted');
    const anyKind: OutcomeRule = {
      when: { kind: ['result'], text_starts: ['Denied'] },
      means: 'not_applied',
      evidence: TRUSTED,
    };
    expect(classifyReply(cut, operation([anyKind])).means).toBe('unknown');
  });

  it('takes any answer of a destination that is no MCP server', () => {
    for (const body of ['42', 'null', '[]', '{"id":"T-1"}', '"done"']) {
      expect(classifyReply({ kind: 'result', body }, undefined).means).toBe('accepted');
    }
    const rule: OutcomeRule = {
      when: { kind: ['tool_error'], text_starts: ['Quota'] },
      means: 'not_applied',
      evidence: TRUSTED,
    };
    for (const body of ['"Quota: 0"', '{"message":"Quota: 0"}']) {
      expect(classifyReply({ kind: 'tool_error', body }, operation([rule])).means).toBe('rejected');
    }
  });

  const kinds = fc.constantFrom<ReadableReply['kind']>('result', 'tool_error', 'protocol_error');
  const oddBody = fc.oneof(
    fc.string(),
    spelledValue.map(({ text }) => text),
    fc
      .record({ content: jsonValue, structuredContent: jsonValue, isError: jsonValue }, { requiredKeys: [] })
      .map((body) => JSON.stringify(body)),
    fc
      .array(
        fc.record(
          { type: fc.constantFrom('text', 'image', 7), text: fc.oneof(fc.string(), jsonValue) },
          { requiredKeys: [] },
        ),
      )
      .map((content) => JSON.stringify({ content })),
  );
  const oddReply = fc.record({
    kind: kinds,
    body: oddBody,
    code: fc.option(fc.double(), { nil: undefined }),
    truncated: fc.boolean(),
  });

  it('never throws, and no text that no outcome names makes a refusal', () => {
    const evidence = fc.constantFrom(TRUSTED, UNTRUSTED, undefined);
    fc.assert(
      fc.property(oddReply, fc.string({ minLength: 1 }), evidence, (reply, text, grade) => {
        const rule: OutcomeRule = {
          when: { kind: ['tool_error'], text_starts: [text] },
          means: 'not_applied',
          ...(grade && { evidence: grade }),
        };
        const { means } = classifyReply(reply, operation([rule]));
        if (means === 'rejected') {
          expect(grade).toBe(TRUSTED);
          expect(matchesSignal(reply, rule.when)).toBe(true);
        }
        expect(['rejected', 'rejected_temporary']).not.toContain(classifyReply(reply, operation([])).means);
        expect(['rejected', 'rejected_temporary']).not.toContain(classifyReply(reply, undefined).means);
      }),
      { numRuns: 2_000 },
    );
  });

  it('never throws in a look-up or a read-back, and an odd reply is never absent unless a list says so', () => {
    const comparison: fc.Arbitrary<Comparison> = fc.record(
      {
        from: fc.constantFrom('text', 'json', 'structured'),
        path: fc.constantFrom('', '/id', '/0', '/a~1b'),
        equals: jsonValue,
        contains: jsonValue,
        contains_all: jsonValue,
        exists: fc.boolean(),
      },
      { requiredKeys: [] },
    );
    fc.assert(
      fc.property(oddReply, fc.array(comparison, { maxLength: 3 }), jsonValue, (reply, comparisons, args) => {
        const values = { arguments: args };
        const matches = readReadBack(
          reply,
          { tool: { name: 'x', arguments: {} }, matches: comparisons, evidence: TRUSTED },
          values,
        );
        if (reply.kind !== 'result') expect(matches).toEqual({ matches: 'inconclusive' });
        const found = readLookup(
          reply,
          { ...LOOKUP, found: { items: { from: 'structured', path: '/items' }, where: comparisons } },
          values,
        );
        if (reply.truncated || reply.kind !== 'result') expect(found.found).toBe('inconclusive');
        for (const one of comparisons) compare(reply, one, values);
      }),
      { numRuns: 2_000 },
    );
  });
});

describe('matchesSignal', () => {
  const reply: ReadableReply = { ...toolError('ENOENT: no such file'), code: 404 };

  it.each<[Signal, boolean]>([
    [{ kind: ['tool_error', 'result'] }, true],
    [{ kind: ['result'] }, false],
    [{ status: [404] }, true],
    [{ status: [400] }, false],
    [{ code: ['404'] }, true],
    [{ code: [404, 'x'] }, true],
    [{ code: ['NotFound'] }, false],
    [{ text_starts: ['EACCES', 'ENOENT:'] }, true],
    [{ text_starts: ['no such'] }, false],
    [{ text_contains: ['no such'] }, true],
    [{ kind: ['tool_error'], status: [404], text_starts: ['ENOENT'] }, true],
    [{ kind: ['tool_error'], status: [500], text_starts: ['ENOENT'] }, false],
    [{ kind: [] }, false],
    [{}, false],
    [{ kind: ['tool_error'], marker: { in: 'header', name: 'x' } }, false],
  ])('%j: %j', (signal, matches) => {
    expect(matchesSignal(reply, signal)).toBe(matches);
  });

  it('reads the first text block, and the message of an error of the protocol', () => {
    const blocks = [
      { type: 'image', data: '' },
      { type: 'text', text: 'first' },
      { type: 'text', text: 'second' },
    ];
    const several: ReadableReply = { kind: 'result', body: JSON.stringify({ content: blocks }) };
    expect(matchesSignal(several, { text_starts: ['first'] })).toBe(true);
    expect(matchesSignal(several, { text_contains: ['second'] })).toBe(false);
    const fault: ReadableReply = {
      kind: 'protocol_error',
      code: -32602,
      body: '{"code":-32602,"message":"Unknown tool"}',
    };
    expect(matchesSignal(fault, { code: [-32602], text_starts: ['Unknown tool'] })).toBe(true);
    expect(matchesSignal({ kind: 'result', body: '{"content":[]}' }, { text_contains: [''] })).toBe(false);
  });
});

describe('readPlace', () => {
  const reply = result({ task: { id: 'T-1' } }, '{"task":{"id":"T-2"}}');

  it.each<[Parameters<typeof readPlace>[1], unknown]>([
    [
      { from: 'structured', path: '/task/id' },
      { found: true, value: 'T-1' },
    ],
    [
      { from: 'json', path: '/task/id' },
      { found: true, value: 'T-2' },
    ],
    [{ from: 'text' }, { found: true, value: '{"task":{"id":"T-2"}}' }],
    [
      { from: 'json', path: '/task/name' },
      { found: false, why: 'missing' },
    ],
  ])('%j', (place, reading) => {
    expect(readPlace(reply, place)).toEqual(reading);
  });

  it('tells what is missing from what cannot be read', () => {
    expect(readPlace(result(undefined, 'no JSON'), { from: 'json' })).toEqual({
      found: false,
      why: 'missing',
    });
    expect(readPlace(result(undefined), { from: 'structured' })).toEqual({ found: false, why: 'missing' });
    expect(readPlace({ ...reply, truncated: true }, { from: 'text' })).toEqual({
      found: false,
      why: 'unreadable',
    });
    expect(readPlace({ kind: 'result', body: 'x' }, { from: 'text' })).toEqual({
      found: false,
      why: 'unreadable',
    });
  });
});

describe('compare', () => {
  const reply = result({ title: 'Move', tags: ['a', { b: 1 }], due: null, size: 2 ** 53 + 2 });
  const values = { arguments: { title: 'Move', tag: { b: 1 }, both: [{ b: 1 }, 'a'] } };

  it.each<[Comparison, string]>([
    [{ path: '/title', equals: '{title}' }, 'agrees'],
    [{ path: '/title', equals: 'move' }, 'differs'],
    [{ path: '/title', contains: 'ov' }, 'agrees'],
    [{ path: '/title', contains: 'x' }, 'differs'],
    [{ path: '/tags', contains: '{tag}' }, 'agrees'],
    [{ path: '/tags', equals: ['a', { b: 1 }] }, 'agrees'],
    [{ path: '/tags', equals: { 0: 'a' } }, 'differs'],
    [{ path: '/tags', contains: 'b' }, 'differs'],
    [{ path: '/tags', contains_all: '{both}' }, 'agrees'],
    [{ path: '/tags', contains_all: ['{tag}'] }, 'agrees'],
    [{ path: '/tags', contains_all: [] }, 'agrees'],
    [{ path: '/tags', contains_all: ['a', 'b'] }, 'differs'],
    [{ path: '/tags', contains_all: [{ b: 1, c: 2 }] }, 'differs'],
    // What is no list holds nothing, and is not asked for as one.
    [{ path: '/tags', contains_all: 'a' }, 'differs'],
    [{ path: '/title', contains_all: ['Mo'] }, 'differs'],
    [{ path: '/gone', contains_all: [] }, 'unreadable'],
    [{ path: '/tags', contains_all: '{gone}' }, 'unreadable'],
    [{ path: '/due', equals: null }, 'agrees'],
    [{ path: '/due', exists: true }, 'agrees'],
    [{ path: '/gone', exists: false }, 'agrees'],
    [{ path: '/gone', exists: true }, 'differs'],
    [{ path: '/gone', equals: 'x' }, 'unreadable'],
    [{ path: '/title', equals: '{gone}' }, 'unreadable'],
    [{ path: '/title', equals: 'Move', contains: 'x' }, 'differs'],
    [{ path: '/size', equals: 2 ** 53 + 2 }, 'unreadable'],
    [{ from: 'text', equals: 'done' }, 'agrees'],
  ])('%j: %s', (comparison, reading) => {
    expect(compare(reply, comparison, values)).toBe(reading);
  });
});

const LOOKUP: Lookup = {
  by: 'client_reference',
  tool: { name: 'find_tasks', arguments: {} },
  consistency: { kind: 'read_after_write' },
  proves: { present: 'applied', absent: 'not_applied' },
  evidence: TRUSTED,
};

describe('readLookup', () => {
  const values = { arguments: { title: 'Move' }, stamp: 'op_1' };
  const lookup: Lookup = {
    ...LOOKUP,
    found: {
      items: { from: 'structured', path: '/tasks' },
      where: [{ path: '/reference', equals: '{$stamp}' }],
      record: '/id',
      version: '/rev',
      content: [{ path: '/title', equals: '{title}' }],
    },
    absent_when: { kind: ['tool_error'], text_starts: ['No such project'] },
  };
  const ours = { id: 'T-1', rev: 4, reference: 'op_1', title: 'Move' };
  const read = (tasks: unknown, how = lookup) => readLookup(result({ tasks }), how, values);

  it('finds the one record that is meant', () => {
    expect(read([{ id: 'T-0', reference: 'other' }, ours, { id: 'T-2' }])).toEqual({
      found: 'present',
      count: 1,
      record: 'T-1',
      version: '4',
      contentMatches: true,
    });
    expect(read(ours)).toMatchObject({ found: 'present', record: 'T-1' });
  });

  it('tells content that differs, and content of which nobody can tell', () => {
    expect(read([{ ...ours, title: 'Stay' }])).toMatchObject({ found: 'present', contentMatches: false });
    expect(read([{ id: 'T-1', reference: 'op_1' }])).toEqual({ found: 'present', count: 1, record: 'T-1' });
  });

  it('proves nothing by a record whose content must match and does not', () => {
    const must: Lookup = { ...lookup, proves: { present: 'applied_if_content_matches', absent: 'nothing' } };
    expect(read([ours], must)).toMatchObject({ found: 'present', record: 'T-1' });
    expect(read([{ ...ours, title: 'Stay' }], must)).toEqual({
      found: 'inconclusive',
      count: 1,
      contentMatches: false,
    });
    expect(read([{ id: 'T-1', reference: 'op_1' }], must)).toEqual({ found: 'inconclusive', count: 1 });
  });

  it('counts several', () => {
    expect(read([ours, { ...ours, id: 'T-2' }])).toEqual({
      found: 'several',
      count: 2,
      records: ['T-1', 'T-2'],
    });
  });

  it('says absent only for a list that was read, or a reply that the contract names', () => {
    expect(read([])).toEqual({ found: 'absent', count: 0 });
    expect(read([{ id: 'T-0', reference: 'other' }])).toEqual({ found: 'absent', count: 0 });
    expect(readLookup(toolError('No such project: x'), lookup, values)).toEqual({
      found: 'absent',
      count: 0,
    });
  });

  it('takes the first page of a longer list for no more than it is', () => {
    const page = (tasks: unknown, link: string): ReadableReply => ({
      kind: 'result',
      body: JSON.stringify({ tasks }),
      headers: { link },
    });
    const over = { ...lookup, found: { ...lookup.found, items: { from: 'json', path: '/tasks' } } } as Lookup;
    const next = '</tasks?page=2>; rel="next"';
    expect(readLookup(page([{ id: 'T-0', reference: 'other' }], next), over, values)).toEqual({
      found: 'inconclusive',
      count: 0,
    });
    expect(readLookup(page([], next), over, values)).toMatchObject({ found: 'inconclusive' });
    expect(readLookup(page([ours], next), over, values)).toMatchObject({ found: 'present', record: 'T-1' });
    expect(readLookup(page([], '</tasks>; rel="first"'), over, values)).toMatchObject({ found: 'absent' });
  });

  it.each<[string, ReadableReply]>([
    ['another error', toolError('Try later')],
    ['no list', result({ items: [] })],
    ['null in place of a list', result({ tasks: null })],
    ['a text in place of a list', result({ tasks: 'none' })],
    ['no structured content', result(undefined)],
    ['a list in which no entry has the compared place', result({ tasks: [{ id: 'T-1' }, { id: 'T-2' }] })],
    ['a list that was cut', { ...result({ tasks: [] }), truncated: true }],
    ['no JSON', { kind: 'result', body: '{' }],
    [
      'an error of the protocol',
      { kind: 'protocol_error', body: '{"code":-32603,"message":"No such project"}' },
    ],
  ])('is inconclusive for %s', (_, reply) => {
    expect(readLookup(reply, lookup, values)).toEqual({ found: 'inconclusive', count: 0 });
  });

  it('is inconclusive where the stamp is not known', () => {
    expect(readLookup(result({ tasks: [ours] }), lookup, { arguments: {} }).found).toBe('inconclusive');
  });

  it('reads one record that is the whole answer', () => {
    const whole: Lookup = {
      ...LOOKUP,
      found: { record: '/id', content: [{ path: '/title', equals: '{title}' }] },
    };
    expect(readLookup(result(ours), whole, values)).toEqual({
      found: 'present',
      count: 1,
      record: 'T-1',
      contentMatches: true,
    });
    expect(readLookup(result(undefined, JSON.stringify(ours)), whole, values)).toMatchObject({
      found: 'present',
    });
    expect(readLookup(result({ message: 'nothing' }), whole, values).found).toBe('inconclusive');
    expect(readLookup(result(null), whole, values).found).toBe('inconclusive');
  });

  it('needs to be told how the answer is read', () => {
    expect(readLookup(result(ours), LOOKUP, values).found).toBe('inconclusive');
  });
});

describe('readReadBack', () => {
  const values = { arguments: { title: 'Move', due: 'Monday' } };
  const readback: ReadBack = {
    tool: { name: 'get_task', arguments: {} },
    matches: [
      { from: 'structured', path: '/title', equals: '{title}' },
      { path: '/due', equals: '{due}' },
    ],
    version: { from: 'structured', path: '/rev' },
    evidence: TRUSTED,
  };
  const read = (task: unknown) => readReadBack(result(task), readback, values);

  it('matches when all places do, and gives the version', () => {
    expect(read({ title: 'Move', due: 'Monday', rev: 5 })).toEqual({ matches: true, version: '5' });
  });

  it('does not match when one place differs', () => {
    expect(read({ title: 'Move', due: 'Friday', rev: 6 })).toEqual({ matches: false, version: '6' });
    expect(read({ due: 'Friday' })).toEqual({ matches: false });
  });

  it('is inconclusive for an error, for places that are not there, and for what cannot be read', () => {
    expect(read({ title: 'Move' })).toEqual({ matches: 'inconclusive' });
    expect(read({})).toEqual({ matches: 'inconclusive' });
    expect(readReadBack(toolError('gone'), readback, values)).toEqual({ matches: 'inconclusive' });
    expect(readReadBack({ kind: 'result', body: '' }, readback, values)).toEqual({ matches: 'inconclusive' });
    expect(
      readReadBack(result({ title: 'Move', due: 'Monday' }), { ...readback, matches: [] }, values),
    ).toEqual({ matches: 'inconclusive' });
  });
});
