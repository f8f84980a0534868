// The rules of a configuration through a gateway: what they refuse, ask and let go, what is told about it, and how they
// are tried, explained and put back.

import { writeFileSync } from 'node:fs';
import { userInfo } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, test } from 'vitest';
import { fixtureWorld } from './fixture-world.ts';
import { CleanUps, operationOf, textOf } from './processes.ts';

const cleanUps = new CleanUps();
afterEach(cleanUps.run);

const PAY = {
  name: 'pay',
  inputSchema: { type: 'object', properties: { amount: { type: 'number' }, to: { type: 'string' } } },
};
const CLASSES = `destination: fixture
tools:
  pay: {class: ordinary, repeat: free}
  note: {class: ordinary, repeat: free}
`;
const LOCAL = `local:${userInfo().username}`;
const RULES = `${CLASSES}policy:
  version: 1
  rules:
    - {name: Large sums, tools: [pay], when: args.amount > 100, then: ask}
    - {name: Nobody pays Mallory, tools: [pay], when: 'has(args.to) && args.to == "mallory"', then: refuse}
    - {name: Four eyes, tools: [pay], when: args.amount > 1000, separate: true, approve: ["${LOCAL}", "local:mara"]}
    - {name: Few notes, tools: [note], per_run: 2}
`;

describe('rules', { timeout: 90_000 }, () => {
  test('refuse, ask and let go by the frozen arguments; a field that is missing asks a person; each says its name', async () => {
    const { calls, command, folder, operation, owner, start } = fixtureWorld(cleanUps, [
      PAY,
      { name: 'note' },
    ]);
    const before = await start(CLASSES);
    for (const amount of [5, 500, 5_000]) expect(textOf(await before.call('pay', { amount }))).toBe('done');
    await before.end();

    // What they would have done with what is recorded, before anything of them is in force.
    const file = join(folder, 'rules.yaml');
    writeFileSync(file, RULES);
    const checked = await command('policy', 'check', file);
    expect(checked.stdout).toContain('4 rules for fixture. It can be used.');
    expect(checked.stdout).toContain('It loosens nothing of the configuration in force.');
    expect(checked.stdout).toContain(
      '2 of 3 recorded writes would have waited for a person, 0 would have been refused.',
    );
    expect(checked.stdout).toMatch(/op_\w+ {2}pay {2}waits: "Large sums"/);
    writeFileSync(file, RULES.replace('per_run: 2', 'per_rum: 2'));
    const wrong = await command('policy', 'check', file);
    expect([wrong.code, wrong.stderr]).toEqual([2, expect.stringMatching(/rules\.yaml:11:40: .*per_run/)]);

    const gateway = await start(RULES);
    expect(textOf(await gateway.call('pay', { amount: 6 }))).toBe('done');
    const refused = await gateway.call('pay', { amount: 7, to: 'mallory' });
    expect(refused.isError).toBe(true);
    expect(textOf(refused)).toMatch(/^NOT SENT — refused by a rule: "Nobody pays Mallory" \(op_/);
    const missing = operationOf(await gateway.call('pay', { to: 'alice' }));
    const asked = await operation(missing, 'awaiting_approval');
    expect(asked.review?.question).toBe('policy');
    expect(asked.policy).toMatchObject({
      outcome: 'ask',
      because: { rule: 'Large sums', part: 'not_judged' },
    });
    // Under "Four eyes" whoever asked may not approve, also with the passphrase, and under whatever name.
    const large = operationOf(await gateway.call('pay', { amount: 2_000 }));
    const { digest } = await operation(large, 'awaiting_approval');
    const own = await command('approve', large, '--digest', digest, '--by', 'mara');
    expect([own.code, own.stderr]).toEqual([
      4,
      expect.stringContaining('a rule wants somebody else to approve it than whoever asked for it'),
    ]);
    expect((await command('show', large)).stdout).toContain(
      'wanted     by somebody else than whoever asked for it ("Four eyes")\n',
    );
    for (const text of ['one', 'two']) expect(textOf(await gateway.call('note', { text }))).toBe('done');
    const third = operationOf(await gateway.call('note', { text: 'three' }));
    expect((await operation(third, 'awaiting_approval')).policy?.because).toEqual({
      rule: 'Few notes',
      part: 'per_run',
      limit: 2,
    });
    const explained = await command('policy', 'explain', missing);
    expect(explained.stdout).toContain(
      'a rule wanted a person to decide: "Large sums" cannot be judged for it, for instance because a field is missing',
    );
    expect(explained.stdout).toContain('"Large sums" cannot be judged for it, as args.amount > 100');
    expect([calls('pay').length, calls('note').length]).toEqual([4, 2]);
    await gateway.end();

    // What is looser waits; an earlier one is put back by a person, and what is set aside waits as well.
    const loose = await start(RULES.replace('> 100,', '> 1000000,'));
    expect(loose.stderr).toContain('not in force: The rule "Large sums": when is not as before.');
    await loose.end();
    const history = await command('policy', 'history', 'fixture');
    const lines = history.stdout.split('\n');
    expect(lines.map((line) => line.replace(/^.* UTC {2}[0-9a-f]{12} {2}/, ''))).toEqual([
      expect.stringMatching(/^in force, by /),
      expect.stringMatching(/^in force, by /),
      expect.stringMatching(/^waits to be confirmed, by /),
      '    loosens: The rule "Large sums": when is not as before.',
      '',
    ]);
    const [first] = lines.map((line) => / ([0-9a-f]{12}) {2}/.exec(line)?.[1] ?? '');
    const alone = await command('policy', 'revert', 'fixture', '--digest', first ?? '');
    expect(alone.code).toBe(4);
    const reverted = await owner.run('policy', 'revert', 'fixture', '--digest', first ?? '');
    expect(reverted.screen).toContain('The rule "Nobody pays Mallory" is left out.');
    expect(reverted.code).toBe(0);
    const again = await start(RULES);
    expect(again.stderr).toContain('not in force: It was set aside by');
    expect(textOf(await again.call('pay', { amount: 8, to: 'mallory' }))).toBe('done');
  });
});
