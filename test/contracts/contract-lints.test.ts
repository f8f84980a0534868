import { describe, expect, it } from 'vitest';
import { readShipped, shippedFiles } from '../../src/contracts/catalogue.ts';
import { evidenceIn, type LintOptions, lintContract } from '../../src/contracts/contract-lints.ts';
import { reportContract } from '../../src/contracts/contract-report.ts';
import { lintAgreement, waiverFor } from '../../src/contracts/going-live.ts';
import { loadContract, loadGatewayConfig } from '../../src/contracts/load.ts';
import { formatProblem } from '../../src/contracts/problem.ts';
import type { Contract } from '../../src/core/contract.ts';
import { CONTRACT, changed, positionIn } from './texts.ts';

const OPTIONS: LintOptions = {
  today: '2026-12-01',
  pauses: { resumeWindow: 'PT96H', approvalLifetime: 'PT8H' },
};

function contractOf(text: string): Contract {
  const loaded = loadContract(text, 'f');
  if (!loaded.ok) throw new Error(loaded.problems.map(formatProblem).join('\n'));
  return loaded.contract;
}

function codesOf(text: string, options: LintOptions = OPTIONS): readonly string[] {
  return lintContract(contractOf(text), options).map(({ code }) => code);
}

/** Right, and with nothing left open but what a test opens. */
const SOUND = CONTRACT.replaceAll(
  '{grade: documented}',
  '{grade: documented, source: page, checked_on: 2026-11-01}',
);

const KEY = `guards:
      - kind: request_key
        carrier: {in: body, name: key, encoding: opaque, max_length: 64}
        scope: [account]
        window: {kind: duration, at_least: PT2H, after: executes_again}
        same: {result: replays_original, side_effects: once}
        different: {result: rejected}
        in_flight: {result: unknown}
        strength: enforced
        evidence: {grade: documented, source: page, checked_on: 2026-11-01}
    lookups:
      - by: client_reference
        tool`;

const KEYED = changed(SOUND, 'guards: []\n    lookups:\n      - by: client_reference\n        tool', KEY);

describe('what is left open', () => {
  it('is nothing where everything is told', () => {
    expect(codesOf(SOUND)).toEqual([]);
  });

  it.each<readonly [string, string, string]>([
    ['owner: ops', 'owner: unassigned', 'owner_missing'],
    ['review_by: 2027-05-01', 'review_by: 2026-12-20', 'review_due'],
    [
      'reversals: [{kind: cancel, restores: state_only, evidence: {grade: documented, source: page, checked_on: 2026-11-01}}]',
      'reversals: [{kind: cancel, restores: state_only, evidence: {grade: assumed}}]',
      'reversal_missing',
    ],
    [
      'grade: documented, source: page, checked_on: 2026-11-01}\n    outcomes',
      'grade: documented}\n    outcomes',
      'fact_not_graded',
    ],
    [
      'means: not_applied, evidence: {grade: documented, source: page, checked_on: 2026-11-01}}',
      'means: not_applied}',
      'fact_not_graded',
    ],
    ['effect: create\n', 'effect: create\n    batch: partial_possible\n', 'items_not_told'],
    ["target: {type: task, id: '{id}'}\n    ", '', 'no_target'],
    [
      "tool: {name: find_tasks, arguments: {reference: '{$stamp}'}}",
      'tool: {name: find_tasks, arguments: {}}',
      'stamp_not_looked_for',
    ],
  ])('%.60s → %.60s: %s', (from, to, code) => {
    expect(codesOf(changed(SOUND, from, to))).toEqual([code]);
  });

  it('a reference that no payload carries', () => {
    const text = changed(
      changed(
        SOUND,
        "tool: {name: find_tasks, arguments: {reference: '{$stamp}'}}\n        found: {items: {from: structured, path: /tasks}, record: /id, content: [{path: /title, equals: '{title}'}]}",
        'stamp: {in: body, name: label}\n        request: GET /tasks?label=…',
      ),
      '    stamp: {argument: reference}\n',
      '',
    );
    const [lint] = lintContract(contractOf(text), OPTIONS);
    expect(lint).toMatchObject({
      code: 'stamp_not_in_payload',
      sentence:
        'A look-up of task.create finds it by our reference in label, and no template of its payload is stated: what is sent does not carry the reference.',
    });
  });

  it('a look-up by the key itself needs no reference beside it', () => {
    const text = readShipped('stripe.contract.yaml');
    expect(codesOf(text)).not.toContain('stamp_not_in_payload');
  });

  it.each([
    ['max_length: 64', 'max_length: 12'],
    ['encoding: opaque, max_length: 64', "encoding: opaque, pattern: '^[0-9]+$'"],
    ['encoding: opaque, max_length: 64', 'encoding: etag'],
  ])('our key does not fit %s → %s', (from, to) => {
    expect(codesOf(changed(KEYED, from, to))).toContain('key_does_not_fit');
    expect(codesOf(KEYED)).not.toContain('key_does_not_fit');
  });

  it('a window that is shorter than work may pause, with both numbers and what comes then', () => {
    const sentences = lintContract(contractOf(KEYED), OPTIONS).map(({ sentence }) => sentence);
    expect(sentences).toEqual([
      'The request key of task.create is known for at least PT2H; work may pause for PT96H and an approval lasts PT8H. Beyond it nothing is repeated: a look-up is made, and then a person decides.',
    ]);
    // A look-up that is told in words alone is none that we can make.
    const inWords = lintContract(
      contractOf(KEYED.replace(/tool: \{name: find[^\n]*/, 'request: GET /tasks')),
      OPTIONS,
    );
    expect(inWords.map(({ code, sentence }) => [code, sentence.split('Beyond it ')[1]])).toContainEqual([
      'window_shorter_than_pause',
      'nothing is repeated: a person decides.',
    ]);
    const long = changed(KEYED, 'at_least: PT2H', 'at_least: PT96H');
    expect(codesOf(long)).toEqual([]);
    expect(
      codesOf(long, { ...OPTIONS, pauses: { resumeWindow: 'unbounded', approvalLifetime: 'PT8H' } }),
    ).toEqual(['window_shorter_than_pause']);
  });

  it('an argument that by its name is a recipient, a record or an amount, unless roles say what is what', () => {
    const options: LintOptions = {
      ...OPTIONS,
      argumentsOf: () => ['project', 'title', 'amount', 'to', 'colour'],
    };
    const found = lintContract(contractOf(SOUND), options).filter(
      ({ operation }) => operation === 'task.create',
    );
    expect(
      found.map(({ code, sentence }) => [code, /leaves out (\w+), .* is a (\w+)/.exec(sentence)?.slice(1)]),
    ).toEqual([
      ['business_parameter_left_out', ['amount', 'amount']],
      ['business_parameter_left_out', ['to', 'recipient']],
    ]);
    const told = changed(
      SOUND,
      'identity: [project, title]',
      'roles: {record: [project]}\n    identity: [project, title]',
    );
    expect(lintContract(contractOf(told), options)).toEqual([]);
  });

  it('facts whose grades permit nothing', () => {
    const text = changed(
      SOUND,
      'absent: not_applied_after_settle}\n        evidence: {grade: documented, source: page, checked_on: 2026-11-01}',
      'absent: not_applied_after_settle}\n        evidence: {grade: reported, source: issue 7, checked_on: 2026-11-01}',
    );
    expect(lintContract(contractOf(text), OPTIONS).map(({ sentence }) => sentence)).toEqual([
      'Nothing that task.create states permits a repeat, or lets an absence count: its look-up by client reference (reported). Only documented, source and drilled do.',
    ]);
  });
});

describe('before a tool goes live', () => {
  const CONFIG = `destination: tasks-eu
owner: platform team
recovery: {nobody_acted: cancel it by its id}
tools:
  create_task: {class: ordinary, recovery: {somebody_acted: ask whoever works on it}}
  purge_task: {class: irreversible, owner: Mara}
waivers:
  - {what: route_missing, tool: create_task, by: Mara, on: 2026-11-30, because: the pilot has one user}
`;

  function config(text: string) {
    const loaded = loadGatewayConfig(text, 'g');
    if (!loaded.ok) throw new Error(loaded.problems.map(formatProblem).join('\n'));
    return loaded.config;
  }

  it('each situation has a way back, or somebody has waived it by name', () => {
    const value = config(CONFIG);
    const missing = (tool: string) => lintAgreement(value, tool, undefined).map(({ sentence }) => sentence);
    expect(missing('create_task')).toEqual([
      'For create_task no way back is agreed where its outcome is unknown (recovery.unknown). Agree on one, or waive route_missing by name.',
    ]);
    expect(missing('purge_task')).toHaveLength(2);
    expect(waiverFor(value, 'route_missing', 'create_task')?.by).toBe('Mara');
    expect(waiverFor(value, 'route_missing', 'purge_task')).toBeUndefined();
    expect(waiverFor(value, 'owner_missing', 'create_task')).toBeUndefined();
  });

  it('somebody owns it: the tool, the configuration or the contract says who, and unassigned is nobody', () => {
    const nobody = config('destination: d\ntools:\n  t: {class: ordinary}\n');
    const codes = (contract: Contract | undefined) =>
      lintAgreement(nobody, 't', contract).map(({ code }) => code);
    expect(codes(contractOf(SOUND))).not.toContain('owner_missing');
    expect(codes(contractOf(changed(SOUND, 'owner: ops', 'owner: unassigned')))).toContain('owner_missing');
  });

  it.each([
    [
      'owner: platform team',
      'owner: [a, b]',
      'a, b',
      'owner is a list; allowed is a person or a team by name.',
    ],
    [
      'recovery: {nobody_acted: cancel it by its id}',
      'recovery: {nobody: x}',
      'nobody: x',
      'The key "nobody" is not known in recovery; allowed are nobody_acted, somebody_acted and unknown.',
    ],
    ['by: Mara, on', 'on', '{what', '"by" is missing from waivers[0].'],
    [
      'what: route_missing',
      'what: everything',
      'everything',
      'waivers[0].what is "everything"; allowed are owner_missing, route_missing, reversal_missing and review_due.',
    ],
  ])('%s → %s is told where it is', (from, to, at, sentence) => {
    const text = changed(CONFIG, from, to);
    const loaded = loadGatewayConfig(text, 'g');
    const problems = loaded.ok ? [] : loaded.problems.map(formatProblem);
    const [line, column] = positionIn(text, at).split(':').map(Number);
    const told = problems.find((problem) => problem.endsWith(sentence));
    expect(told, problems.join('\n')).toMatch(
      new RegExp(`^g:${line}:${at === 'a, b' ? (column ?? 0) - 1 : column}: `),
    );
  });
});

describe('the shipped contracts', () => {
  it.each(shippedFiles('contract'))(
    '%s: no error, and each fact has its grade, its source and its day',
    (file) => {
      const report = reportContract(readShipped(file), file, OPTIONS);
      expect(report.problems).toEqual([]);
      expect(report.notes.filter(({ code }) => code === 'fact_not_graded').map(formatProblem)).toEqual([]);
      const facts = evidenceIn(report.contract);
      expect(facts.length).toBeGreaterThan(0);
      for (const [, { grade, source }] of facts) {
        expect([grade, source !== undefined || grade === 'assumed']).toEqual([grade, true]);
      }
    },
  );

  it('say in sentences what happens by itself, for each write', () => {
    const report = reportContract(
      readShipped('kubernetes.contract.yaml'),
      'kubernetes.contract.yaml',
      OPTIONS,
    );
    const [apply] = report.operations;
    expect(apply?.explained.map(({ sentence }) => sentence)).toEqual(
      expect.arrayContaining([
        'Where it is proven that nothing left, it is sent again by us, at most 5 times within 1 d.',
        'After an error that no outcome names, it is closed as answered with an error, and never sent again by us.',
      ]),
    );
    for (const { sentence } of report.operations.flatMap(({ explained }) => explained)) {
      expect(sentence).toMatch(/^[A-Z].*\.$/);
    }
  });
});
