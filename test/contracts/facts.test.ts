import { describe, expect, it } from 'vitest';
import { boundedPattern } from '../../src/contracts/bounded-pattern.ts';
import { loadContract } from '../../src/contracts/load.ts';
import { formatProblem } from '../../src/contracts/problem.ts';
import { CONTRACT, changed, positionIn } from './texts.ts';

/** The contract of `texts.ts`, with a guard and all that may be said beside it. */
const FULL = changed(
  CONTRACT,
  '    guards: []\n    lookups:\n',
  `    batch: per_item
    items: {argument: project, matched_by: key, key: /id, evidence: {grade: documented}}
    roles: {record: [project], recipient: [title]}
    guards:
      - kind: request_key
        carrier: {in: body, name: key, encoding: uuid_v4, max_length: 36, pattern: '^[0-9a-f-]{36}$'}
        scope: [account]
        window: {kind: duration, at_least: PT2H, at_most: PT4H, after: executes_again}
        same: {result: replays_original, side_effects: once}
        different: {result: rejected}
        in_flight: {result: unknown}
        strength: enforced
        evidence: {grade: documented}
    change_feed: {since: cursor, request: GET /changes, evidence: {grade: documented}}
    lookups:
`,
);

function said(text: string): readonly string[] {
  const loaded = loadContract(text, 'f');
  return loaded.ok ? [] : loaded.problems.map(formatProblem);
}

describe('the facts beside a look-up', () => {
  it('are right as they stand here, with what a repeat does to side effects', () => {
    const loaded = loadContract(FULL, 'f');
    if (!loaded.ok) expect.fail(loaded.problems.map(formatProblem).join('\n'));
    expect(loaded.contract.operations[0]).toMatchObject({
      guards: [{ window: { at_least: 'PT2H' }, same: { side_effects: 'once' } }],
      change_feed: { since: 'cursor' },
      items: { matched_by: 'key' },
      roles: { record: ['project'] },
    });
  });

  it.each([
    [
      'at_least: PT2H, at_most: PT4H',
      'at_least: PT8H, at_most: PT4H',
      'PT8H',
      'The window of task.create is at least PT8H and at most PT4H, which cannot both hold.',
    ],
    [
      'at_least: PT2H, at_most: PT4H',
      'at_least: PT0S',
      'PT0S',
      'The window of task.create has at_least PT0S, which is no time at all.',
    ],
    [
      'kind: duration, at_least: PT2H, at_most: PT4H',
      'kind: session, at_most: PT4H',
      'PT4H',
      'The window of task.create is session, and at_most is PT4H; only a duration has a length by the clock.',
    ],
    [
      'kind: duration, at_least: PT2H, at_most: PT4H',
      'kind: duration',
      'duration, after',
      'The window of task.create is a duration, and neither at_least nor at_most says how long it is.',
    ],
    [
      'kind: duration, at_least: PT2H, at_most: PT4H',
      'kind: while_state',
      'while_state',
      'The window of task.create lasts while the record is in a state, and while does not say in which.',
    ],
    [
      'kind: duration, at_least: PT2H, at_most: PT4H',
      'kind: session, while: it is open',
      'it is open',
      'The window of task.create names the state "it is open", and its kind is session; that needs while_state.',
    ],
    [
      'at_least: PT2H',
      'at_least: 2 hours',
      '2 hours',
      'operations[0].guards[0].window.at_least is "2 hours"; allowed is an ISO 8601 duration of days, hours, minutes and seconds, such as PT30S or P1DT12H.',
    ],
    [
      'side_effects: once',
      'side_effects: twice',
      'twice',
      'operations[0].guards[0].same.side_effects is "twice"; allowed are once, again and unknown.',
    ],
    [
      'consistency: {kind: eventual, settle: PT10S}',
      'consistency: {kind: eventual, settle: PT10S}\n        available_for: PT5M',
      'PT5M',
      'A look-up of task.create can be asked for PT5M, and an absence first counts after 910 s; it can never prove one.',
    ],
    [
      'since: cursor, request: GET /changes',
      'since: cursor',
      '{since',
      'The feed of changes of task.create has neither a request nor a tool by which it is asked.',
    ],
    [
      'since: cursor, request: GET /changes',
      'since: none, request: GET /changes',
      'none, request',
      'task.create has no feed of changes (since is none), and says how one is asked or what it tells.',
    ],
    [
      'batch: per_item',
      'batch: atomic',
      '{argument: project',
      'task.create has items with effects of their own, and its batch is atomic; that needs per_item or partial_possible.',
    ],
    [
      'matched_by: key, key: /id',
      'matched_by: key',
      'key, evidence',
      'The items of task.create are matched by a key, and key does not say where it stands.',
    ],
    [
      'matched_by: key, key: /id',
      'matched_by: position, key: /id',
      '/id, evidence',
      'The items of task.create have a key, and are matched by position.',
    ],
    [
      'items: {argument: project',
      'items: {argument: rows',
      '[project, title]',
      'The identity of task.create leaves out rows, which lists its items; calls for other items would be taken for one.',
    ],
    [
      'recipient: [title]',
      'recipient: [assignee]',
      'assignee',
      'The identity of task.create leaves out assignee, which is its recipient; recipient, record and amount are always business parameters.',
    ],
    [
      'recipient: [title]',
      'recipient: [reference]',
      'reference]}\n    guards',
      'reference of task.create is called its recipient, and the stamp fills it; what we fill ourselves says nothing of the intent.',
    ],
    [
      "pattern: '^[0-9a-f-]{36}$'",
      "pattern: '^([0-9a-f]+)+$'",
      "'^([0-9a-f]+)+$'",
      'The pattern for the request_key of task.create repeats a part that may itself match in more than one way, which may take for ever.',
    ],
    [
      "pattern: '^[0-9a-f-]{36}$'",
      "pattern: '[0-9'",
      "'[0-9'",
      'The pattern for the request_key of task.create is no regular expression: unterminated character class.',
    ],
  ])('%s → %s: one sentence, where it is', (from, to, at, sentence) => {
    const text = changed(FULL, from, to);
    expect(said(text)).toEqual([`f:${positionIn(text, at)}: ${sentence}`]);
  });
});

describe('a pattern of a file', () => {
  it.each([
    '^[a-v0-9]{5,1024}$',
    '^[A-Za-z](?!.*--)[A-Za-z0-9-]*[A-Za-z0-9]$',
    '^[a-z]([-a-z0-9]*[a-z0-9])?$',
    '(ab)*c',
  ])('%s is tried', (source) => {
    expect(boundedPattern(source)).toMatchObject({ ok: true });
  });

  it.each([
    '(a+)+b',
    '(a*)*b',
    '(a|a)*b',
    '(a?){40}a{40}',
    '((a{4096}){4096}){4096}',
    'a*a*a*a*a*b',
    '(?:a+b?)+c',
    '(\\d+)\\1*x(x+x+)+y',
    'a{100000}',
    `${'a?'.repeat(40)}${'a'.repeat(40)}`,
    'x'.repeat(600),
  ])('%s is not', (source) => {
    expect(boundedPattern(source)).toMatchObject({ ok: false });
  });

  it('that is tried ends at once, whatever it is tried on', () => {
    const began = performance.now();
    for (const source of ['.*.*.*.*x', '^[A-Za-z](?!.*--)[A-Za-z0-9-]*[A-Za-z0-9]$']) {
      const bounded = boundedPattern(source);
      if (!bounded.ok) expect.fail(bounded.problem);
      bounded.pattern.test('a'.repeat(64));
    }
    expect(performance.now() - began).toBeLessThan(2_000);
  });
});

describe('templates beside a request', () => {
  const HTTP = `contract: 1
id: tickets
destination: {name: Tickets, protocol: http}
ownership: {owner: ops, reviewed_on: 2026-11-01, review_by: 2027-05-01}
operations:
  - id: ticket.create
    match: ['POST /queues/{queue}/tickets']
    effect: create
    identity: [queue, title]
    http: {method: POST, path: '/queues/{queue}/tickets', body: {title: '{title}', due: '{due?}', when: '{at/date}'}}
    completion: {kind: synchronous}
    guards: []
    lookups:
      - by: natural_fields
        http: {path: '/queues/{queue}/tickets', query: {title: '{title}'}}
        found: {items: {from: json}, where: [{path: /title, equals: '{title}'}], record: /id, content: [{path: /due, equals: '{due}'}]}
        consistency: {kind: unknown}
        proves: {present: applied_if_content_matches, absent: nothing}
        evidence: {grade: documented}
    outcomes: []
    reversals: [{kind: none, restores: nothing, evidence: {grade: documented}}]
`;

  it('are right where each argument is one that the request uses', () => {
    expect(said(HTTP)).toEqual([]);
  });

  it.each([
    [
      'identity: [queue, title]',
      'identity: [queu, queue, title]',
      '[queu,',
      'The identity of ticket.create names the argument queu, which its request does not use; did you mean queue?',
    ],
    [
      "query: {title: '{title}'}",
      "query: {title: '{subject}'}",
      'by: natural_fields',
      'The look-up of ticket.create names the argument subject, which its request does not use; it uses queue, title, due and at.',
    ],
    [
      'identity: [queue, title]',
      "identity: [queue, title, colour]\n    target: {type: ticket, id: '{queue}/{colour}'}",
      '[queue, title, colour]',
      'The identity of ticket.create names the argument colour, which its request does not use; it uses queue, title, due and at.',
    ],
  ])('%s → %s: told where it is', (from, to, at, sentence) => {
    const text = changed(HTTP, from, to);
    expect(said(text)[0]).toBe(`f:${positionIn(text, at)}: ${sentence}`);
  });
});
