import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { loadBinding, loadContract, loadGatewayConfig, type Refused } from '../../src/contracts/load.ts';
import { formatProblem } from '../../src/contracts/problem.ts';
import { BINDING, CONFIG, CONTRACT, changed, positionIn } from './texts.ts';

type Load = (text: string, file: string) => { readonly ok: true } | Refused;

function said(load: Load, text: string): string[] {
  const loaded = load(text, 'f');
  return loaded.ok ? [] : loaded.problems.map(formatProblem);
}

/** A change of a right text, what the problem points at, and what is said about it. */
interface Mistake {
  readonly from: string;
  readonly to: string;
  readonly at: string;
  readonly says: string;
}

function expectOnly(load: Load, text: string, { from, to, at, says }: Mistake): void {
  const wrong = changed(text, from, to);
  expect(said(load, wrong)).toEqual([`f:${positionIn(wrong, at)}: ${says}`]);
}

describe('a text that cannot be read', () => {
  it.each([
    ['', 'f:1:1: The file is empty; a map of keys and values is expected.'],
    ['[]', 'f:1:1: the file is a list; allowed is a map of keys and values.'],
    ['a: 1\na: 2', 'f:2:1: This cannot be read as YAML: Map keys must be unique.'],
    ['a: 1\n---\nb: 2', /^f:\d:\d: This cannot be read as YAML: .*multiple documents/],
    ['a: !secret x', 'f:1:4: This cannot be read as YAML: Unresolved tag: !secret.'],
    ['? [a, b]\n: 1', /^f:1:\d: This cannot be read as YAML: /],
    ['a: [1', /^f:1:6: This cannot be read as YAML: /],
    ['a: .nan', /^f:1:4: a has no exact form as JSON: JSON has no number for NaN/],
    ['a: {b: 9007199254740993}', /^f:1:8: a\.b has no exact form as JSON: The integer/],
    ['a: "\\ud800"', /^f:1:4: a has no exact form as JSON: A string holds half/],
    ['a: {__proto__: 1}', /^f:1:\d+: a\.__proto__ has no exact form as JSON: /],
    [
      'a: &a [x, x]\nb: &b [*a, *a]\nc: &c [*b, *b]\nd: &d [*c, *c]\ne: [*d, *d, *d, *d, *d, *d, *d]',
      /^f:1:1: The aliases of the file unfold too far: write out what they stand for\.$/,
    ],
    [
      '['.repeat(2_000),
      'f:1:101: The file is nested deeper than 100 levels here, which nothing that is read here needs.',
    ],
    [`{"a": ${'{"a": '.repeat(400)}`, /^f:1:\d+: The file is nested deeper than 100 levels/],
    ['- '.repeat(2_000), /^f:1:20[13]: The file is nested deeper than 100 levels/],
    ['? '.repeat(2_000), /^f:1:20[13]: The file is nested deeper than 100 levels/],
    [
      Array.from({ length: 1_300 }, (_, level) => `${' '.repeat(level)}a:`).join('\n'),
      /^f:101:10[12]: The file is nested deeper than 100 levels/,
    ],
    [
      Array.from({ length: 600 }, (_, level) => `${'  '.repeat(level)}- b:`).join('\n'),
      /^f:\d+:\d+: The file is nested deeper than 100 levels/,
    ],
    [
      `a: ${'x'.repeat(1024 * 1024)}`,
      /^f:1:1: The file has 1048579 characters; at most 1048576 are allowed\./,
    ],
  ])('%.40j', (text, sentence) => {
    const [first] = said(loadContract, text);
    if (typeof sentence === 'string') expect(first).toBe(sentence);
    else expect(first).toMatch(sentence);
  });
});

describe('whatever a file holds', () => {
  const piece = fc.constantFrom(
    ' ',
    '\n',
    '  - ',
    '{',
    '}',
    '[',
    ']',
    ': ',
    '&a ',
    '*a',
    '!!x ',
    '|',
    "'",
    '"',
    '#',
    '? ',
    '~',
    'x',
  );
  const loads = [
    [loadContract, CONTRACT],
    [loadBinding, BINDING],
    [loadGatewayConfig, CONFIG],
  ] as const;

  it.each(loads)('%o refuses it in sentences with a place, and never throws', (load, text) => {
    const cut = fc
      .tuple(fc.nat(text.length), fc.nat(12), fc.oneof(piece, fc.string({ maxLength: 6 })))
      .map(([at, length, put]) => text.slice(0, at) + put + text.slice(at + length));
    fc.assert(
      fc.property(fc.oneof({ weight: 5, arbitrary: cut }, fc.string({ unit: 'binary' })), (wrong) => {
        for (const line of said(load, wrong)) expect(line).toMatch(/^f:[1-9]\d*:[1-9]\d*: \S.*[.?]$/su);
      }),
    );
  });
});

describe('loadContract', () => {
  it('gives a contract that is right', () => {
    const loaded = loadContract(CONTRACT, 'tasks.yaml', { today: '2026-12-01' });
    expect(loaded).toMatchObject({ ok: true, notes: [], contract: { id: 'tasks', revision: 3 } });
  });

  it('reads a contract that is written as JSON, tabs included', () => {
    const loaded = loadContract(CONTRACT, 'tasks.yaml');
    if (!loaded.ok) throw new Error('right as it stands');
    const asJson = JSON.stringify(loaded.contract, null, '\t');
    expect(loadContract(asJson, 'tasks.json')).toMatchObject({ ok: true, contract: loaded.contract });
  });

  it('takes a file without a revision for the first of its name', () => {
    const loaded = loadContract(changed(CONTRACT, 'revision: 3\n', ''), 'tasks.yaml');
    expect(loaded).toMatchObject({ ok: true, contract: { revision: 1 } });
  });

  it('tells that a review is overdue and refuses nothing', () => {
    const loaded = loadContract(CONTRACT, 'f', { today: '2027-05-02' });
    expect(loaded.ok && loaded.notes.map(formatProblem)).toEqual([
      `f:${positionIn(CONTRACT, '2027-05-01')}: note: tasks was to be reviewed by 2027-05-01; until it is, nothing is repeated on its word, and look-ups go on.`,
    ]);
  });

  it('points into the anchor where the fault is in what an alias stands for', () => {
    const evidence = 'evidence: {grade: documented}\n    readback';
    const text = changed(
      changed(
        CONTRACT,
        'evidence: {grade: documented}\n    readback',
        'evidence: &e {grade: rumour}\n    readback',
      ),
      'evidence: {grade: documented}\n    outcomes',
      'evidence: *e\n    outcomes',
    );
    expect(CONTRACT).toContain(evidence);
    const at = positionIn(text, 'rumour');
    expect(said(loadContract, text).map((line) => line.split(': ')[0])).toEqual([`f:${at}`, `f:${at}`]);
  });

  it('tells all that is wrong, in the order of the text', () => {
    const text = changed(changed(CONTRACT, 'effect: create', 'effect: make'), 'revision: 3', 'revison: 3');
    const [first, second, ...more] = said(loadContract, text);
    expect([first, second]).toEqual([
      expect.stringContaining('did you mean revision?'),
      expect.stringContaining('operations[0].effect is "make"'),
    ]);
    expect(more).toEqual([]);
  });

  it.each<Mistake>([
    {
      from: 'revision: 3',
      to: 'revison: 3',
      at: 'revison',
      says: 'The key "revison" is not known; did you mean revision?',
    },
    {
      from: 'revision: 3',
      to: 'colour: 3',
      at: 'colour',
      says: 'The key "colour" is not known; allowed are contract, id, revision, destination, ownership, client, limits and operations.',
    },
    {
      from: 'revision: 3',
      to: 'revision: three',
      at: 'three',
      says: 'revision is "three", which is a text; allowed is a whole number that grows with every change of the file.',
    },
    {
      from: 'revision: 3',
      to: 'revision: 0',
      at: '0\ndestination',
      says: 'revision is 0; at least 1 is allowed.',
    },
    {
      from: 'revision: 3',
      to: 'revision:',
      at: '\ndestination',
      says: 'revision is empty; allowed is a whole number that grows with every change of the file.',
    },
    { from: 'contract: 1', to: 'contract: 2', at: '2\nid', says: 'contract is 2; allowed is 1.' },
    {
      from: 'id: tasks',
      to: 'id: My Tasks',
      at: 'My Tasks',
      says: 'id is "My Tasks"; allowed is a name of small letters, digits, dots and hyphens.',
    },
    {
      from: ', review_by: 2027-05-01',
      to: '',
      at: '{owner: ops',
      says: '"review_by" is missing from ownership.',
    },
    {
      from: '2027-05-01',
      to: '2027-13-01',
      at: '2027-13-01',
      says: 'ownership.review_by is "2027-13-01"; allowed is a day such as 2026-11-30.',
    },
    {
      from: 'effect: create',
      to: 'effect: insert',
      at: 'insert',
      says: 'operations[0].effect is "insert"; allowed are create, update, replace, upsert, delete, action and message (did you mean upsert?).',
    },
    {
      from: 'effect: create',
      to: 'effect: creat',
      at: 'creat\n',
      says: 'operations[0].effect is "creat"; allowed are create, update, replace, upsert, delete, action and message (did you mean create?).',
    },
    {
      from: 'match: [create_task]',
      to: 'match: []',
      at: '[]',
      says: 'operations[0].match is empty; allowed is at least one entry.',
    },
    {
      from: 'settle: PT10S',
      to: 'settle: 10s',
      at: '10s',
      says: 'operations[0].lookups[0].consistency.settle is "10s"; allowed is an ISO 8601 duration of days, hours, minutes and seconds, such as PT30S or P1DT12H.',
    },
    {
      from: 'settle: PT10S',
      to: 'settle: PT',
      at: 'PT}',
      says: 'operations[0].lookups[0].consistency.settle is "PT"; allowed is an ISO 8601 duration of days, hours, minutes and seconds, such as PT30S or P1DT12H.',
    },
    {
      from: 'means: not_applied',
      to: 'means: not_aplied',
      at: 'not_aplied',
      says: 'operations[0].outcomes[0].means is "not_aplied"; allowed are applied, already_applied, accepted, in_progress, not_applied, not_applied_temporary and unknown (did you mean not_applied?).',
    },
    {
      from: "find_tasks, arguments: {reference: '{$stamp}'}}",
      to: 'find_tasks}',
      at: '{name: find_tasks}',
      says: '"arguments" is missing from operations[0].lookups[0].tool.',
    },
    {
      from: "tool: {name: find_tasks, arguments: {reference: '{$stamp}'}}\n        ",
      to: '',
      at: 'by: client_reference',
      says: 'operations[0].lookups[0] has the wrong members; allowed is a look-up with one of tool (asked through the same server), http (asked over HTTP) and request (in the words of its protocol, for people).',
    },
    {
      from: "when: {kind: [tool_error], text_starts: ['Quota: ']}",
      to: 'when: {}',
      at: '{}',
      says: 'operations[0].outcomes[0].when is empty; allowed is at least one mark by which a reply is known.',
    },
    {
      from: 'path: /tasks',
      to: 'path: tasks',
      at: 'tasks}, record',
      says: 'operations[0].lookups[0].found.items.path is "tasks"; allowed is a JSON pointer, such as /id or /items/0/name.',
    },
    {
      from: "equals: '{title}'}]}",
      to: "equal: '{title}'}]}",
      at: 'equal: ',
      says: 'The key "equal" is not known in operations[0].lookups[0].found.content[0]; did you mean equals?',
    },
    {
      from: "id: '{id}'",
      to: 'id: []',
      at: '[]}',
      says: 'operations[1].target.id is empty; allowed is a text with arguments in braces, such as {path}, or a list of such texts.',
    },
    {
      from: "id: '{id}'",
      to: 'id: 7',
      at: '7}',
      says: 'operations[1].target.id is 7, which is a number; allowed is a text with arguments in braces, such as {path}, or a list of such texts.',
    },
    {
      from: 'identity: [project, title]',
      to: 'identity: [project, title, project]',
      at: 'project]',
      says: 'operations[0].identity holds "project" twice.',
    },
    {
      from: 'identity: [project, title]',
      to: 'identity: [/project, title]',
      at: '/project',
      says: 'operations[0].identity[0] is "/project"; allowed is the name of an argument, or a JSON pointer into the arguments without its first slash, such as event/start.',
    },
  ])('$to: $says', (mistake) => {
    expectOnly(loadContract, CONTRACT, mistake);
  });

  it.each<Mistake>([
    {
      from: '2027-05-01',
      to: '2026-10-31',
      at: '2026-10-31',
      says: 'review_by is 2026-10-31, before the day of the last review, 2026-11-01.',
    },
    {
      from: 'id: task.purge',
      to: 'id: task.create',
      at: 'task.create\n    match: [purge_task]',
      says: 'operations[1] and operations[0] are both called task.create; each needs a name of its own.',
    },
    {
      from: '[project, title]',
      to: '[title]',
      at: '[title]',
      says: 'The identity of task.create leaves out the argument project, which names its target; calls for two targets would be taken for one.',
    },
    {
      from: '[project, title]',
      to: '[project/id, title]',
      at: '[project/id',
      says: 'The identity of task.create leaves out the argument project, which names its target; calls for two targets would be taken for one.',
    },
    {
      from: '[project, title]',
      to: '[project, reference]',
      at: 'reference]',
      says: 'The identity of task.create holds reference, and the stamp fills reference; what we fill ourselves cannot tell calls apart.',
    },
    {
      from: '[project, title]',
      to: '[project, reference/text]',
      at: 'reference/text]',
      says: 'The identity of task.create holds reference/text, and the stamp fills reference; what we fill ourselves cannot tell calls apart.',
    },
    {
      from: "identity: [project, title]\n    target: {type: slot, id: '{project}'}",
      to: "target: {type: slot, id: '{reference}'}",
      at: '{type: slot',
      says: 'The target of task.create is named by reference, and the stamp fills that argument; a target must be known before we fill anything.',
    },
    {
      from: "id: '{project}'",
      to: "id: '{$record}'",
      at: '{type: slot',
      says: 'The target of task.create is named by {$record}, which is known only after sending; only arguments of the call are allowed there.',
    },
    {
      from: '    stamp: {argument: reference}\n',
      to: '',
      at: 'by: client_reference',
      says: 'A look-up of task.create uses {$stamp}, and the operation has no stamp.',
    },
    {
      from: "reference: '{$stamp}'",
      to: "id: '{$token}'",
      at: 'by: client_reference',
      says: 'A look-up of task.create uses {$token}; allowed are arguments of the call, {$stamp}, {$key}, {$record} and {$record_number}.',
    },
    {
      from: ", content: [{path: /title, equals: '{title}'}]",
      to: '',
      at: 'applied_if_content_matches',
      says: 'A look-up of task.create proves something only if the content matches, and found.content names nothing to compare.',
    },
    {
      from: 'absent: not_applied_after_settle',
      to: 'absent: not_applied',
      at: 'not_applied}',
      says: 'A look-up of task.create takes an absence for proof at once, and its consistency is eventual; that needs read_after_write.',
    },
    {
      from: ', settle: PT10S',
      to: '',
      at: 'not_applied_after_settle',
      says: 'A look-up of task.create takes an absence for proof after the settle time, and consistency.settle is missing.',
    },
    {
      from: 'proves: {present',
      to: 'absent_when: {text_contains: [none]}\n        proves: {present',
      at: '{text_contains',
      says: 'The absence that a look-up of task.create reads is known by its text alone, which a success may contain as well; name its kind, status or code beside it.',
    },
    {
      from: 'kind: [tool_error], ',
      to: '',
      at: '{text_starts',
      says: 'A refusal of task.create is known by its text alone, which a success may contain as well; name its kind, status or code beside it.',
    },
    {
      from: 'reversals: [{kind: cancel',
      to: 'reversals: [{kind: none, restores: nothing, evidence: {grade: source}}, {kind: cancel',
      at: '{kind: none',
      says: 'task.create has the reversal none, and the reversal cancel beside it.',
    },
    {
      from: '[{from: structured, path: /title',
      to: '[{from: text, path: /title',
      at: "/title, equals: '{title}'}]\n      evidence",
      says: 'A place of task.create is in the text, which has no path /title; json reads the text as JSON.',
    },
    {
      from: 'outcomes: []',
      to: 'outcomes: [{when: {status: [409]}, means: unknown}, {when: {status: [409]}, means: applied}]',
      at: '{when: {status: [409]}, means: applied',
      says: 'outcomes[1] of task.purge means applied and never counts, because outcomes[0] has the same marks and means unknown.',
    },
  ])('contradiction, $to', (mistake) => {
    expectOnly(loadContract, CONTRACT, mistake);
  });

  it('refuses {$record} where nothing says where a record id is found', () => {
    const text = changed(
      changed(CONTRACT, '    acknowledgement: {record: {from: structured, path: /id}}\n', ''),
      'record: /id, ',
      '',
    );
    expect(said(loadContract, text)).toEqual([
      expect.stringContaining(
        'A read-back of task.create uses {$record}, and acknowledgement.record does not say where one is found.',
      ),
    ]);
  });
});

it.each([
  ['update', 'changes a record that is there'],
  ['delete', 'removes one'],
])('a look-up that takes any record for proof of a write with the effect %s is refused', (effect, does) => {
  const byName = CONTRACT.replace("arguments: {reference: '{$stamp}'}", "arguments: {title: '{title}'}");
  const text = changed(
    changed(changed(byName, 'effect: create', `effect: ${effect}`), 'applied_if_content_matches', 'applied'),
    ", content: [{path: /title, equals: '{title}'}]",
    '',
  );
  const loaded = loadContract(text, 'f');
  expect(loaded.ok ? [] : loaded.problems.map(({ sentence }) => sentence)).toEqual([
    `A look-up of task.create takes any record that it finds for proof, and the write ${does}: found.where has to say what shows that it was done.`,
  ]);
});

describe('loadBinding', () => {
  it('gives a binding that is right', () => {
    expect(loadBinding(BINDING, 'f')).toMatchObject({ ok: true, binding: { id: 'tasks-server' } });
  });

  it.each<Mistake>([
    {
      from: 'class: irreversible',
      to: 'class: dangerous',
      at: 'dangerous',
      says: 'tools[4].class is "dangerous"; allowed are read, ordinary, irreversible and interactive.',
    },
    {
      from: 'when: {preview: true}',
      to: 'when: {}',
      at: '{}',
      says: 'tools[2].when is empty; allowed is arguments with the values that they must have, such as {dryRun: true}.',
    },
    {
      from: 'when: {preview: true}',
      to: 'when: {/preview: true}',
      at: '/preview',
      says: 'tools[2].when has the key "/preview"; allowed is the name of an argument, or a JSON pointer into the arguments without its first slash, such as event/start.',
    },
    {
      from: 'name: [tasks-mcp]',
      to: 'name: tasks-mcp',
      at: 'tasks-mcp,',
      says: 'server.name is "tasks-mcp", which is a text; allowed is a list of names, as the server gives its own in the handshake (serverInfo.name).',
    },
    {
      from: "'>=1.2 <2'",
      to: "'>=one'",
      at: "'>=one'",
      says: `">=one" is no range of versions; allowed is '*', or one such as '>=1.2 <2'.`,
    },
    {
      from: "'>=1.2 <2'",
      to: "['1.0.0', '~x']",
      at: "'~x'",
      says: `"~x" is no range of versions; allowed is '*', or one such as '>=1.2 <2'.`,
    },
    {
      from: 'get_task, class: read',
      to: 'get_task, operation: task.create, class: read',
      at: 'task.create, class: read',
      says: 'get_task is declared a read, and is mapped to the write task.create; it can be only one of them.',
    },
    {
      from: 'operation: task.purge, ',
      to: '',
      at: '{tool: purge_task',
      says: 'purge_task is declared irreversible, and no operation of the contract is named for it; only reads and interactive tools go without.',
    },
    {
      from: '  - {tool: create_task, when: {preview: true}, class: read}\n  - {tool: create_task, operation: task.create, class: ordinary}',
      to: '  - {tool: create_task, operation: task.create, class: ordinary}\n  - {tool: create_task, when: {preview: true}, class: read}',
      at: '{tool: create_task, when',
      says: 'This row for create_task can never count, because tools[2] fits whenever it does and stands before it.',
    },
    {
      from: 'tools:\n',
      to: `measured: [{package: p, version: '1', on: 2026-11-30, tools: {get_task: abc}}]\ntools:\n`,
      at: 'abc',
      says: 'measured[0].tools.get_task is "abc"; allowed is the digest of a tool, in 64 hexadecimal digits.',
    },
    {
      from: 'tools:\n',
      to: `measured: [{package: p, version: '1', on: yesterday, tools: {get_task: ${'a'.repeat(64)}}}]\ntools:\n`,
      at: 'yesterday',
      says: 'measured[0].on is "yesterday"; allowed is a day such as 2026-11-30.',
    },
    {
      from: 'get_task, class: read',
      to: 'get_task, class: read, corrects: {openWorldHint: true}',
      at: 'openWorldHint',
      says: 'The key "openWorldHint" is not known in tools[1].corrects; allowed are readOnlyHint, destructiveHint and idempotentHint.',
    },
    {
      from: 'when: {preview: true}',
      to: 'unless: preview',
      at: 'preview, class',
      says: 'tools[2].unless is "preview", which is a text; allowed is a list of arguments of which none may be given, such as [filename].',
    },
  ])('$to: $says', (mistake) => {
    expectOnly(loadBinding, BINDING, mistake);
  });
});

describe('loadGatewayConfig', () => {
  it('gives a configuration that is right', () => {
    expect(loadGatewayConfig(CONFIG, 'f')).toMatchObject({ ok: true, config: { destination: 'tasks-eu' } });
  });

  it.each([
    'https://ledger.example/reviews/{operation}',
    'https://ledger.example:8443/?of={operation}&from=client',
    'http://localhost:3211/reviews/{operation}',
    'http://127.0.0.1/{operation}',
    'http://[::1]:3211/{operation}',
  ])('takes %s as the address of reviews', (address) => {
    const config = loadGatewayConfig(`destination: a\nreview_url: '${address}'`, 'f');
    expect(config).toMatchObject({ ok: true, config: { review_url: address } });
  });

  const KIND =
    'allowed is an address with {operation} in its path or query once, and no sign-in in it, such as https://ledger.example/reviews/{operation}.';
  const CLEAR = 'which is not encrypted; http is allowed for this machine alone, https elsewhere.';
  it.each([
    ['https://ledger.example/reviews', KIND],
    ['https://ledger.example/{operation}/{operation}', KIND],
    ['https://ledger.example/{digest}/{operation}', KIND],
    ['https://{operation}.example/', KIND],
    ['https://ada:secret@ledger.example/{operation}', KIND],
    ['javascript:alert({operation})', KIND],
    ['ftp://ledger.example/{operation}', KIND],
    ['http://ledger.example/{operation}', CLEAR],
    ['http://127.0.0.1.example/{operation}', CLEAR],
    ['https://ledger.example:port/{operation}', 'which is no address.'],
  ])('refuses %s', (address, why) => {
    const config = loadGatewayConfig(`destination: a\nreview_url: '${address}'`, 'f');
    expect(config.ok).toBe(false);
    const sentences = config.ok ? [] : config.problems.map(formatProblem);
    expect(sentences).toHaveLength(1);
    expect(sentences[0]).toContain(why);
  });

  it('needs no more than the name of the destination', () => {
    expect(loadGatewayConfig('{"destination": "tasks-eu"}', 'f').ok).toBe(true);
  });

  it.each<Mistake>([
    { from: 'tools:', to: 'tool:', at: 'tool:', says: 'The key "tool" is not known; did you mean tools?' },
    {
      from: 'destination: tasks-eu',
      to: 'destination: tasks eu',
      at: 'tasks eu',
      says: 'destination is "tasks eu"; allowed is a stable name of at most 64 letters, digits, dots, hyphens and underscores.',
    },
    {
      from: 'class: ordinary',
      to: 'class: unclassified',
      at: 'unclassified',
      says: 'tools.add_comment.class is "unclassified"; allowed are read, ordinary, irreversible and interactive.',
    },
    {
      from: 'repeat: unique',
      to: 'repat: unique',
      at: 'repat',
      says: 'The key "repat" is not known in tools.add_comment; did you mean repeat?',
    },
    {
      from: 'resume_window: PT96H',
      to: 'resume_window: forever',
      at: 'forever',
      says: 'resume_window is "forever"; allowed is unbounded, or an ISO 8601 duration of days, hours, minutes and seconds, such as P4D.',
    },
    {
      from: 'attempts: 5',
      to: 'attempts: 0',
      at: '0, approval',
      says: 'limits.attempts is 0; at least 1 is allowed.',
    },
    {
      from: 'reply_timeout: PT30S',
      to: 'reply_timeout: PT0.5S',
      at: 'PT0.5S',
      says: 'limits.reply_timeout is PT0.5S; at least PT1S is allowed.',
    },
    {
      from: 'approval_lifetime: PT8H',
      to: 'approval_lifetime: PT8S',
      at: 'PT8S',
      says: 'limits.approval_lifetime is PT8S; at least PT1M is allowed.',
    },
    {
      from: 'elapsed: PT24H',
      to: 'elapsed: PT20S',
      at: 'PT20S',
      says: 'limits.elapsed is PT20S, which is shorter than the PT30S that limits.reply_timeout gives one attempt.',
    },
    {
      from: 'class: ordinary',
      to: 'class: read',
      at: 'read,',
      says: 'add_comment is declared a read, and repeat, identity and target are given for it, which only a write has.',
    },
    {
      from: 'identity: [task, text]',
      to: 'identity: [text]',
      at: '[text]',
      says: 'The identity of add_comment leaves out the argument task, which names its target; calls for two targets would be taken for one.',
    },
  ])('$to: $says', (mistake) => {
    expectOnly(loadGatewayConfig, CONFIG, mistake);
  });
});
