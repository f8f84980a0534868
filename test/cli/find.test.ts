import { afterEach, describe, expect, test } from 'vitest';
import { fixtureWorld } from '../gateway/fixture-world.ts';
import { CleanUps, operationOf, textOf } from '../gateway/processes.ts';

const CONFIG = `destination: fixture
tools:
  note: {class: ordinary, repeat: unique, target: {type: page, id: '{page}'}}
  erase: {class: irreversible}
`;
const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736';

/** Each of them starts several processes; on a busy machine they take their time. */
const PATIENT = { timeout: 90_000 };

const cleanUps = new CleanUps();
afterEach(cleanUps.run);

interface Found {
  readonly matches: readonly { readonly operation: string; readonly foundBy: string }[];
}

describe('an operation is found by any name that somebody has for it', PATIENT, () => {
  test('ids of ours from their beginning, run, call, thread, trace, target, and what was sent or answered', async () => {
    const url = 'https://notes.example.com/pages/p-77?view=1';
    const { command, operations, start } = fixtureWorld(cleanUps, [{ name: 'note' }, { name: 'erase' }], {
      note: { result: { content: [{ type: 'text', text: `made ${url}` }] } },
    });
    const gateway = await start(CONFIG);
    await gateway.call(
      'note',
      { page: 'p-77', text: 'The "board" reads it.' },
      {
        'counterfoil/run': 'billing cutover',
        'counterfoil/call': 'toolu_01A',
        thread_id: 'thread-9',
        traceparent: `00-${TRACE}-00f067aa0ba902b7-01`,
      },
    );
    const asked = operationOf(await gateway.call('erase', { thing: 7 }));
    const [note, erase] = await operations();
    const find = async (words: string): Promise<readonly (readonly [string, string])[]> => {
      const ran = await command('find', words, '--json');
      expect(ran.stderr, words).toBe('');
      expect(ran.code).toBe(0);
      return (JSON.parse(ran.stdout) as Found).matches.map(({ foundBy, operation }) => [operation, foundBy]);
    };
    const id = note?.id ?? '';
    expect(await find(id)).toEqual([[id, 'operation']]);
    expect(await find(id.slice(0, 20).toLowerCase())).toContainEqual([id, 'operation']);
    expect(await find(note?.attempts[0]?.id ?? '')).toEqual([[id, 'attempt']]);
    expect(await find(erase?.review?.id ?? '')).toEqual([[asked, 'review']]);
    expect(await find('billing cutover')).toEqual([[id, 'run']]);
    expect(await find('toolu_01A')).toEqual([[id, 'call']]);
    expect(await find('thread-9')).toEqual([[id, 'reference']]);
    expect(await find(TRACE)).toEqual([[id, 'reference']]);
    expect(await find(`00-${TRACE}-aaaaaaaaaaaaaaaa-01`)).toEqual([[id, 'reference']]);
    expect(await find('p-77')).toEqual([[id, 'target']]);
    expect(await find(url)).toEqual([[id, 'target']]);
    expect(await find('https://notes.example.com/pages/p-77')).toEqual([[id, 'target']]);
    expect(await find('The "board" reads it.')).toEqual([[id, 'content']]);
    expect(await find(erase?.digest.slice(0, 12) ?? '')).toEqual([[asked, 'digest']]);
    const words = await command('find', 'p-77');
    expect(words.stdout).toMatch(
      new RegExp(`^${id} {2}Accepted, not checked {2}\\(found by its target\\)\n`),
    );
    expect(textOf(await gateway.call('counterfoil_operation_status', { operation: asked }))).toMatch(
      /^NOT SENT YET/,
    );
  });

  test('what nobody has heard of is not found, in a sentence', async () => {
    const { command, start } = fixtureWorld(cleanUps, [{ name: 'note' }]);
    await (await start(CONFIG)).call('note', { page: 'p-1' });
    const ran = await command('find', 'p-2');
    expect(ran.code).toBe(3);
    expect(ran.stderr).toBe(
      'counterfoil: Nothing recorded here is known as "p-2": it never reached this ledger, or goes by another name.\n',
    );
    expect((await command('find', ' ')).code).toBe(2);
  });
});
