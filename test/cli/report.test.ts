import { afterEach, describe, expect, test } from 'vitest';
import { fixtureWorld } from '../gateway/fixture-world.ts';
import { CleanUps, operationOf } from '../gateway/processes.ts';

const CONFIG = `destination: fixture
tools:
  note: {class: ordinary, repeat: unique}
  erase: {class: irreversible}
`;
const TOOLS = [{ name: 'note' }, { name: 'erase' }, { name: 'puzzle' }, { name: 'lost' }];

/** Each of them starts several processes; on a busy machine they take their time. */
const PATIENT = { timeout: 90_000 };

const cleanUps = new CleanUps();
afterEach(cleanUps.run);

describe('the report', PATIENT, () => {
  test('says what was written, what each mode would have asked, which repeats were caught, and what is unclear', async () => {
    const { command, start } = fixtureWorld(cleanUps, TOOLS, { note: { does: 'answer' } });
    const gateway = await start(CONFIG);
    for (const page of [1, 2, 1, 1]) await gateway.call('note', { page });
    await gateway.call('erase', { thing: 7 });
    await gateway.call('erase', { thing: 7 });
    await gateway.call('puzzle', { n: 1 });
    await gateway.call('puzzle', { n: 2 });
    const run = { 'counterfoil/run': 'other' };
    await gateway.call('note', { page: 9 }, run);
    await gateway.end();
    const ran = await command('report', '--json');
    expect(ran.code).toBe(0);
    expect(JSON.parse(ran.stdout)).toMatchObject({
      operations: 6,
      // In guard the unclassified tool asks once, whatever its calls; in strict each write asks.
      asked: { observe: 0, guard: 2, strict: 6 },
      repeatsCaught: 3,
      observed: 0,
      unclear: [],
      waiting: 3,
      gaps: [],
      tools: [
        { tool: 'erase', class: 'irreversible', operations: 1, effects: { not_sent: 1 } },
        { tool: 'note', class: 'ordinary', operations: 3, effects: { accepted: 3 } },
        { tool: 'puzzle', class: 'unclassified', operations: 2 },
      ],
    });
    const ofRun = JSON.parse((await command('report', '--run', 'other', '--json')).stdout) as object;
    expect(ofRun).toMatchObject({ operations: 1, run: 'other', repeatsCaught: 0 });
    const text = (await command('report')).stdout;
    expect(text).toContain('  note on fixture (ordinary): 3, of them 3 accepted, not checked\n');
    expect(text).toContain('by the classes of the tools: observe 0, guard 2, strict 6\n');
    expect(text).toContain('Repeats that were caught: 3, of 2 operations\n');
    expect(text).toContain('Waiting for a person: 3. See: counterfoil queue\n');
    expect(text).toContain('Unclear: nothing\n');
  });

  test('lists what is unclear with its reference', async () => {
    const { command, start } = fixtureWorld(cleanUps, TOOLS, { note: { does: 'die_done' } });
    const gateway = await start(CONFIG);
    const id = operationOf(await gateway.call('note', { page: 1 }));
    expect((await command('report')).stdout).toMatch(
      new RegExp(`Unclear: 1\n {2}${id} {2}Needs a person: note on fixture`),
    );
  });

  test('what is not asked well gets a sentence; a time without writes is empty, not wrong', async () => {
    const { command, start } = fixtureWorld(cleanUps, TOOLS);
    await (await start(CONFIG)).call('note', { page: 1 });
    const wrong = await command('report', '--since', 'yesterday');
    expect(wrong.code).toBe(2);
    expect(wrong.stderr).toContain('--since wants a day or an instant with its zone');
    expect((await command('report', '--since', '2999-01-01')).stdout).toBe(
      'No write has been recorded in this time.\n',
    );
    const none = await command('report', '--run', 'nobody');
    expect(none.code).toBe(3);
    expect(none.stderr).toContain('No write of the run nobody is recorded here.');
  });
});

describe('what is suggested', PATIENT, () => {
  test('rests on what was recorded, names it, is a configuration that loads, and changes nothing', async () => {
    const { command, operation, operations, start } = fixtureWorld(cleanUps, TOOLS);
    const gateway = await start('destination: fixture\ntools:\n  note: {class: ordinary}\n');
    for (let count = 0; count < 3; count += 1) await gateway.call('note', { page: 1 });
    const denied = operationOf(await gateway.call('puzzle', { n: 1 }));
    const { digest } = await operation(denied, 'awaiting_approval');
    await command('deny', denied, '--digest', digest);
    await gateway.end();
    const before = await operations();
    const ran = await command('policy', 'suggest');
    expect(ran.stdout).toBe(
      [
        '# Suggested from what was recorded; a person decides. Nothing is in force by this.',
        '# --config for fixture',
        'destination: fixture',
        'tools:',
        '  # note: ordinary now; 2 equal calls were sent again; as unique they would have been answered with the first',
        '  note: {repeat: unique}',
        '  # puzzle: unclassified now; 1 of 1 decisions on it were a no',
        '  puzzle: {class: irreversible}',
        '',
      ].join('\n'),
    );
    expect(await operations()).toEqual(before);
    // What is suggested is no looser than what is in force: it counts at once.
    const next = await start(
      ran.stdout.replace('note: {repeat: unique}', 'note: {class: ordinary, repeat: unique}'),
    );
    expect(next.stderr).not.toContain('not in force');
  });
});
