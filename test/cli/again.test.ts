// `counterfoil again`: a person asks for a second one in the caller's place; what is sent is what is approved.

import { afterEach, describe, expect, test } from 'vitest';
import { fixtureWorld } from '../gateway/fixture-world.ts';
import { CleanUps, operationOf, textOf } from '../gateway/processes.ts';

const CONFIG = `destination: fixture
tools:
  note: {class: ordinary, repeat: unique}
  erase: {class: irreversible}
limits: {approval_lifetime: PT30M}
`;
const TOOLS = [{ name: 'note' }, { name: 'erase' }, { name: 'puzzle' }];

/** Each of them starts several processes; on a busy machine they take their time. */
const PATIENT = { timeout: 90_000 };

const cleanUps = new CleanUps();
afterEach(cleanUps.run);

async function written(plan: object = {}) {
  const world = fixtureWorld(cleanUps, TOOLS, plan);
  const gateway = await world.start(CONFIG);
  const answer = await gateway.call('note', { page: 1 });
  const first = (await world.newest()).id;
  return { ...world, gateway, answer, first, again: (...args: string[]) => world.command('again', ...args) };
}

describe('a second one', PATIENT, () => {
  test('is a review that shows the first and who asks why; approved, it is the next occurrence, sent once', async () => {
    const { again, calls, command, first, gateway, operation, operations, start } = await written();
    await gateway.end();
    const reason = 'The board wants two \u001b[2J copies.';
    const { code, stdout, stderr } = await again(first, '--reason', reason, '--by', 'Mara');
    expect([code, stderr]).toEqual([10, '']);
    const second = (await operations())[1];
    expect(second).toMatchObject({
      stage: 'awaiting_approval',
      effect: 'not_sent',
      askedBy: 'Mara',
      previous: { operation: first, relation: 'occurrence' },
    });
    const id = second?.id ?? '';
    expect(stdout).toContain(`The first one  ${first}  Accepted, not checked`);
    expect(stdout).toContain('Mara says: "The board wants two \\u001b[2J copies."');
    expect(stdout).toContain('Mara says that a second one is really wanted. A person must decide.');
    expect(stdout).toContain(`linked     to ${first}`);
    expect(stdout).toContain(`To decide: counterfoil approve ${id} --digest ${second?.digest.slice(0, 12)}`);
    // As long as one that its gateway opens, by the configuration in force.
    expect((second?.review?.expiresAt ?? 0) - (second?.review?.openedAt ?? 0)).toBe(30 * 60_000);
    // The caller's own equal call is about that question now.
    const next = await start(CONFIG);
    expect(operationOf(await next.call('note', { page: 1 }))).toBe(id);
    expect(calls('note')).toHaveLength(1);

    expect((await command('approve', id, '--digest', second?.digest ?? '')).code).toBe(0);
    await operation(id, 'closed');
    expect(calls('note').map((call) => call.arguments)).toEqual([{ page: 1 }, { page: 1 }]);
    expect(textOf(await next.call('note', { page: 1 }))).toMatch(/^(done|ALREADY_EXISTS)/);
    expect(calls('note')).toHaveLength(2);
    expect(await operations()).toHaveLength(2);
  });

  test('is asked for once, also as JSON, and by any of its occurrences', async () => {
    const { again, command, first, operations } = await written();
    const { code, stdout } = await again(first, '--reason', 'Two.', '--json');
    const opened = JSON.parse(stdout);
    expect([code, opened]).toEqual([
      10,
      expect.objectContaining({
        opened: true,
        reason: 'Two.',
        first: expect.objectContaining({ operation: first }),
      }),
    ]);
    const second = opened.operation.id as string;
    for (const id of [first, second]) {
      const repeated = await again(id, '--reason', 'Please.');
      expect([repeated.code, repeated.stdout]).toEqual([10, expect.stringContaining('It is asked already')]);
    }
    await command('deny', second, '--digest', opened.digest, '--reason', 'One is enough.');
    const denied = await again(first, '--reason', 'Please.');
    expect([denied.code, denied.stdout]).toEqual([13, expect.stringContaining('Nothing was asked')]);
    expect(await operations()).toHaveLength(2);
  });

  test('of a tool that nobody had classified has the class that a person gave it since', async () => {
    const { again, command, gateway, operation } = await written();
    const asked = operationOf(await gateway.call('puzzle', { n: 1 }));
    const { digest } = await operation(asked, 'awaiting_approval');
    await command('approve', asked, '--digest', digest, '--class', 'ordinary');
    await operation(asked, 'closed');
    const { stdout } = await again(asked, '--reason', 'Two.', '--json');
    expect(JSON.parse(stdout).operation).toMatchObject({
      toolClass: 'ordinary',
      review: { question: 'again' },
    });
  });
});

describe('nothing is asked', PATIENT, () => {
  test('about what is not known to be done', async () => {
    const { again, calls, first, operations } = await written({ note: { does: 'die_done' } });
    const { code, stdout } = await again(first, '--reason', 'Once more.');
    expect([code, stdout]).toEqual([12, expect.stringMatching(/Nothing was asked/)]);
    expect(await operations()).toHaveLength(1);
    expect(calls('note')).toHaveLength(1);
  });

  test.each([
    [
      'an operation that is not here',
      ['op_none', '--reason', 'x'],
      3,
      /No operation op_none is recorded here/,
    ],
    ['no reason', ['op_none'], 2, /required option '--reason <text>' not specified/],
    ['an empty reason', ['op_none', '--reason', ' '], 2, /It is empty\./],
    ['a long reason', ['op_none', '--reason', 'x'.repeat(501)], 2, /at most 500 characters/],
    ['a name that is none', ['op_none', '--reason', 'x', '--by', 'a\u001b'], 2, /--by wants a name/],
    ['no operation', ['--reason', 'x'], 2, /missing required argument 'id'/],
  ])('for %s, in one sentence', async (_what, args, expected, sentence) => {
    const { again, operations } = await written();
    const { code, stdout, stderr } = await again(...args);
    expect([code, stdout, stderr]).toEqual([expected, '', expect.stringMatching(sentence)]);
    expect(await operations()).toHaveLength(1);
  });
});
