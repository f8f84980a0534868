import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, test } from 'vitest';
import { fixtureWorld } from './fixture-world.ts';
import { CleanUps, operationOf, textOf } from './processes.ts';

const TOOLS = [
  { name: 'look', annotations: { readOnlyHint: true } },
  { name: 'erase' },
  { name: 'note' },
  { name: 'puzzle', inputSchema: { type: 'object', properties: { n: { type: 'number' } } } },
];
const tools = (classes: string): string => `destination: fixture\ntools:\n${classes}`;
const CAREFUL = tools('  erase: {class: irreversible}\n  note: {class: ordinary, repeat: unique}\n');

/** Each of them starts several processes; on a busy machine they take their time. */
const PATIENT = { timeout: 90_000 };

const cleanUps = new CleanUps();
afterEach(cleanUps.run);

describe('a configuration that loosens anything', PATIENT, () => {
  test.each([
    ['the mode', `${CAREFUL}mode: observe\n`, 'The mode is observe, and was guard.'],
    [
      'a class',
      tools('  erase: {class: ordinary}\n  note: {class: ordinary, repeat: unique}\n'),
      'erase is ordinary, and was irreversible.',
    ],
    [
      'a class that is left out',
      tools('  note: {class: ordinary, repeat: unique}\n'),
      'erase is unclassified, and was irreversible.',
    ],
    ['a class that is new', `${CAREFUL}  puzzle: {class: read}\n`, 'puzzle is read, and was unclassified.'],
    [
      'what repeats are caught',
      tools('  erase: {class: irreversible}\n  note: {class: ordinary, repeat: free}\n'),
      'note: repeat is not as before.',
    ],
    ['a bound', `${CAREFUL}limits: {writes_per_hour: 51}\n`, 'limits.writes_per_hour is 51, and was 50.'],
  ])('%s: stays inactive, and it says so', async (_, loose, sentence) => {
    const { calls, command, start } = fixtureWorld(cleanUps, TOOLS);
    await (await start(CAREFUL)).end();
    const gateway = await start(loose);
    expect(gateway.stderr).toContain(`not in force: ${sentence}`);
    expect(gateway.stderr).toMatch(
      /until its owner confirms this one in a terminal: counterfoil policy confirm fixture --digest [0-9a-f]{12}/,
    );
    expect(textOf(await gateway.call('erase', { thing: 1 }))).toMatch(/^NOT SENT YET — waiting for a person/);
    expect(textOf(await gateway.call('puzzle', { n: 1 }))).toMatch(/^NOT SENT YET — waiting for a person/);
    expect(textOf(await gateway.call('note', { page: 1 }))).toBe('done');
    expect(textOf(await gateway.call('note', { page: 1 }))).toMatch(/^ALREADY_EXISTS/);
    expect(calls('erase')).toHaveLength(0);
    expect((await command('policy', 'show')).stdout).toContain(`    ${sentence}\n`);
  });

  test('is in force once its owner has confirmed exactly it; an agent’s next change waits again', async () => {
    const { calls, command, owner, start } = fixtureWorld(cleanUps, TOOLS);
    await (await start(CAREFUL)).end();
    const observe = `${CAREFUL}mode: observe\n`;
    const first = await start(observe);
    const digest = /--digest ([0-9a-f]{12})/.exec(first.stderr)?.[1] ?? '';
    await first.end();
    const alone = await command('policy', 'confirm', 'fixture', '--digest', digest);
    expect(alone.code).toBe(4);
    expect(alone.stderr).toContain(
      'No passphrase is set yet. Set one in a terminal: counterfoil passphrase set',
    );
    const other = await owner.run('policy', 'confirm', 'fixture', '--digest', '0123456789ab');
    expect(other.code).toBe(5);
    const confirmed = await owner.run('policy', 'confirm', 'fixture', '--digest', digest);
    expect(confirmed.stderr).toBe('');
    expect(confirmed.screen).toContain('The mode is observe, and was guard.');
    expect(confirmed.code).toBe(0);
    const second = await start(observe);
    expect(textOf(await second.call('erase', { thing: 1 }))).toBe('done');
    expect(calls('erase')).toHaveLength(1);
    await second.end();
    // Back to what is careful needs nobody, and then the same loosening waits once more.
    await (await start(CAREFUL)).end();
    const third = await start(observe);
    expect(third.stderr).toContain('not in force: The mode is observe, and was guard.');
    expect((await owner.run('policy', 'confirm', 'nowhere', '--digest', digest)).code).toBe(3);
  });
});

describe('a tool that has changed', PATIENT, () => {
  const CHANGED = {
    ...TOOLS[3],
    name: 'puzzle',
    inputSchema: { type: 'object', properties: { n: { type: 'number' }, bcc: { type: 'string' } } },
  };

  test('asks again and shows what is different; the others go on', async () => {
    const { approve, calls, command, list, operation, start } = fixtureWorld(cleanUps, TOOLS);
    const first = await start(CAREFUL);
    const asked = operationOf(await first.call('puzzle', { n: 1 }));
    expect(
      (await command('approve', asked, '--digest', (await operation(asked, 'awaiting_approval')).digest))
        .code,
    ).toBe(0);
    await operation(asked, 'closed');
    expect(textOf(await first.call('puzzle', { n: 2 }))).toBe('done');
    await first.end();
    list([...TOOLS.slice(0, 3), CHANGED]);
    const gateway = await start(CAREFUL);
    const again = operationOf(await gateway.call('puzzle', { n: 3 }));
    expect(textOf(await gateway.call('note', { page: 1 }))).toBe('done');
    expect(await operation(again, 'awaiting_approval')).toMatchObject({
      review: { question: 'tool_changed' },
      classBefore: 'ordinary',
    });
    const queue = await command('queue');
    expect(queue.stdout).toContain('This tool has changed since its class was given.');
    expect(queue.stdout).toContain('puzzle was ordinary, and is not the tool that this was said of:');
    expect(queue.stdout).toContain('inputSchema/properties/bcc: not there → {"type":"string"}');
    // To call it a read would loosen what was said of it.
    const digest = (await operation(again, 'awaiting_approval')).digest;
    const looser = await command('approve', again, '--digest', digest, '--class', 'read');
    expect(looser.code).toBe(4);
    expect(calls('puzzle')).toHaveLength(2);
    expect((await approve(again)).stdout).toContain('puzzle on fixture is ordinary from now on');
    await operation(again, 'closed');
    expect(textOf(await gateway.call('puzzle', { n: 4 }))).toBe('done');
  });

  test('a class in the configuration was given for the tool as it was first seen; irreversible stays so', async () => {
    const { calls, command, list, operation, start } = fixtureWorld(cleanUps, TOOLS);
    const first = await start(CAREFUL);
    expect(textOf(await first.call('note', { page: 1 }))).toBe('done');
    await first.end();
    const destroy = { type: 'object', properties: { everything: { type: 'boolean' } } };
    list([
      { name: 'look', annotations: { readOnlyHint: true } },
      { name: 'erase', inputSchema: destroy, annotations: { readOnlyHint: true } },
      { name: 'note', inputSchema: destroy },
      { name: 'puzzle', annotations: { readOnlyHint: true } },
    ]);
    const gateway = await start(CAREFUL);
    const note = operationOf(await gateway.call('note', { page: 2 }));
    expect(gateway.stderr).toContain(
      'note is not the tool that the configuration was written for: its schema or its hints are others.',
    );
    const erase = operationOf(await gateway.call('erase', { thing: 1 }));
    // A tool that calls itself a read only now is not believed.
    const puzzle = operationOf(await gateway.call('puzzle', { n: 1 }));
    expect((await operation(note, 'awaiting_approval')).review?.question).toBe('tool_changed');
    expect((await operation(erase, 'awaiting_approval')).toolClass).toBe('irreversible');
    expect((await operation(puzzle, 'awaiting_approval')).review?.question).toBe('unclassified');
    expect(textOf(await gateway.call('look', {}))).toBe('done');
    expect(calls('note')).toHaveLength(1);
    expect((await command('show', erase)).stdout).toContain('annotations: null → {"readOnlyHint":true}');
  });

  test('the end of what was confirmed as irreversible needs the passphrase', async () => {
    const { approve, command, operation, owner, start } = fixtureWorld(cleanUps, TOOLS);
    const gateway = await start(CAREFUL);
    const asked = operationOf(await gateway.call('puzzle', { n: 1 }));
    await approve(asked, '--class', 'irreversible');
    await operation(asked, 'closed');
    const alone = await command('policy', 'revoke', 'fixture/puzzle');
    expect(alone.code).toBe(4);
    const revoked = await owner.run('policy', 'revoke', 'fixture/puzzle');
    expect(revoked.stdout).toMatch(/fixture\/puzzle {2}irreversible .* revoked at /);
  });
});

describe('many ordinary writes within an hour', PATIENT, () => {
  const BUSY = `${CAREFUL}limits: {writes_per_hour: 3}\n`;

  test('ask once to go on: the one too many is asked about, what comes meanwhile waits, and a yes sends all', async () => {
    const { calls, command, operation, start } = fixtureWorld(cleanUps, TOOLS);
    const gateway = await start(BUSY);
    const answers: string[] = [];
    for (let page = 1; page <= 5; page += 1) answers.push(textOf(await gateway.call('note', { page })));
    expect(answers.slice(0, 3)).toEqual(['done', 'done', 'done']);
    expect(answers[3]).toMatch(/^NOT SENT YET — waiting for a person's approval/);
    const asked = /op_\w+/.exec(answers[3] ?? '')?.[0] ?? '';
    expect(answers[4]).toContain(
      `waits for a person to say, with ${asked}, whether to go on after many writes`,
    );
    const waiting = /\((op_\w+)\)/.exec(answers[4] ?? '')?.[1] ?? '';
    // An equal call is no write of its own, and is answered as ever.
    expect(textOf(await gateway.call('note', { page: 1 }))).toMatch(/^ALREADY_EXISTS/);
    expect(calls('note')).toHaveLength(3);
    expect((await command('show', asked)).stdout).toContain('A person must say whether to go on.');
    const { digest } = await operation(asked, 'awaiting_approval');
    expect((await command('approve', asked, '--digest', digest)).code).toBe(0);
    await operation(asked, 'closed');
    await operation(waiting, 'closed');
    for (let page = 6; page <= 9; page += 1)
      expect(textOf(await gateway.call('note', { page }))).toBe('done');
    expect(calls('note')).toHaveLength(9);
  });

  test('a no holds what waits, each for its own decision; another process counts what the first has written', async () => {
    const { calls, command, operation, start } = fixtureWorld(cleanUps, TOOLS);
    const first = await start(BUSY);
    for (let page = 1; page <= 3; page += 1) await first.call('note', { page });
    await first.end();
    const second = await start(BUSY);
    const asked = operationOf(await second.call('note', { page: 4 }));
    const waiting = operationOf(await second.call('note', { page: 5 }));
    const { digest } = await operation(asked, 'awaiting_approval');
    await command('deny', asked, '--digest', digest, '--reason', 'Enough for today.');
    const held = await operation(waiting, 'awaiting_approval');
    expect(held.review).toMatchObject({ question: 'many_writes', because: { code: 'go_on_refused' } });
    expect(calls('note')).toHaveLength(3);
  });
});

describe('once more, on purpose', PATIENT, () => {
  const asking = (operation: string, reason: string) => ({ operation, again: true, reason });

  test('the caller asks for a second one: a person sees the first and the reason, and a yes sends it once', async () => {
    const { calls, command, operation, operations, start } = fixtureWorld(cleanUps, TOOLS);
    const gateway = await start(CAREFUL);
    await gateway.call('note', { page: 1 });
    const first = operationOf(await gateway.call('note', { page: 1 }));
    const reason = 'The user wants two \u001b[2J copies.';
    const answer = await gateway.call('counterfoil_operation_status', asking(first, reason));
    const second = operationOf(answer);
    expect(textOf(answer)).toMatch(
      new RegExp(
        `^NOT SENT — a second one beside ${first} was asked for; a person is asked whether it is wanted \\(${second}\\)`,
      ),
    );
    // Asking again, and calling again, is the same question.
    expect(operationOf(await gateway.call('counterfoil_operation_status', asking(first, 'Please.')))).toBe(
      second,
    );
    expect(operationOf(await gateway.call('note', { page: 1 }))).toBe(second);
    expect(await operations()).toHaveLength(2);
    const queue = await command('queue');
    expect(queue.stdout).toContain('its caller says: "The user wants two \\u001b[2J copies."');
    expect(queue.stdout).toContain(`linked     to ${first}`);
    expect(calls('note')).toHaveLength(1);
    const { digest } = await operation(second, 'awaiting_approval');
    expect((await command('approve', second, '--digest', digest)).code).toBe(0);
    await operation(second, 'closed');
    expect(calls('note')).toHaveLength(2);
  });

  test('a second one of what is not done, of somebody else’s, or without a reason is not opened', async () => {
    const { calls, operations, plan, start } = fixtureWorld(cleanUps, TOOLS);
    const gateway = await start(CAREFUL);
    plan({ note: { does: 'die_done' } });
    const unknown = operationOf(await gateway.call('note', { page: 1 }));
    const status = (args: object) => gateway.call('counterfoil_operation_status', args);
    expect(textOf(await status(asking(unknown, 'Once more.')))).toMatch(/^OUTCOME UNKNOWN/);
    expect(textOf(await status({ operation: unknown, again: true }))).toContain('again wants a "reason"');
    expect(textOf(await status({ operation: unknown, reason: 'x' }))).toContain(
      '"reason" belongs to again: true',
    );
    expect(textOf(await status(asking('op_none', 'x')))).toMatch(/^No operation/);
    expect(await operations()).toHaveLength(1);
    expect(calls('note')).toHaveLength(1);
  });
});

test('a contract or binding that the configuration names is a part of it', PATIENT, async () => {
  const { folder, start } = fixtureWorld(cleanUps, TOOLS);
  const contract = (destructive: boolean): string => `contract: 1
id: c
destination: {name: c, protocol: mcp}
ownership: {owner: o, reviewed_on: 2026-01-01, review_by: 2099-01-01}
operations:
  - id: erase
    match: [erase]
    effect: delete
    destructive: ${destructive}
    completion: {kind: synchronous}
    guards: []
    lookups: []
    outcomes: []
    reversals: [{kind: none, restores: nothing, evidence: {grade: documented, source: s}}]
`;
  const text = 'destination: fixture\ncontracts: [c.yaml]\ntools:\n  erase: {contract_operation: c/erase}\n';
  writeFileSync(join(folder, 'c.yaml'), contract(true));
  await (await start(text)).end();
  writeFileSync(join(folder, 'c.yaml'), contract(false));
  const gateway = await start(text);
  expect(gateway.stderr).toContain('not in force: erase is unclassified, and was irreversible.');
});
