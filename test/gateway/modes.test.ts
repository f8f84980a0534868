import { existsSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, test } from 'vitest';
import { fixtureWorld } from './fixture-world.ts';
import { CleanUps, operationOf, textOf, until, untilAsync } from './processes.ts';

const TOOLS = [
  { name: 'look', annotations: { readOnlyHint: true } },
  { name: 'erase' },
  { name: 'note' },
  { name: 'puzzle' },
];
const config = (mode: string): string => `
destination: fixture
mode: ${mode}
tools:
  erase: {class: irreversible, repeat: unique}
  note: {class: ordinary, repeat: unique, target: {type: page, id: '{page}'}}
`;

/** Each of them starts several processes; on a busy machine they take their time. */
const PATIENT = { timeout: 90_000 };

const cleanUps = new CleanUps();
afterEach(cleanUps.run);

describe('observe', PATIENT, () => {
  test('each call is sent and is its own operation, linked to what it would have been answered with; nothing waits', async () => {
    const { calls, command, operations, start } = fixtureWorld(cleanUps, TOOLS);
    const gateway = await start(config('observe'));
    for (let count = 0; count < 3; count += 1) {
      expect(await gateway.call('note', { page: 1 })).toEqual({ content: [{ type: 'text', text: 'done' }] });
    }
    expect(textOf(await gateway.call('erase', { thing: 7 }))).toBe('done');
    expect(textOf(await gateway.call('puzzle', { n: 1 }))).toBe('done');
    expect(calls('note')).toHaveLength(3);
    expect(calls('erase')).toHaveLength(1);
    const all = await operations();
    expect(all.map(({ effect, observed, tool }) => [tool, effect, observed])).toEqual([
      ['note', 'accepted', { guard: 'send' }],
      ['note', 'accepted', { guard: 'answer', operation: all[0]?.id }],
      ['note', 'accepted', { guard: 'answer', operation: all[0]?.id }],
      ['erase', 'accepted', { guard: 'ask', question: 'irreversible' }],
      ['puzzle', 'accepted', { guard: 'ask', question: 'unclassified' }],
    ]);
    expect(all.map(({ rule }) => rule)).toContain('observe/irreversible (configuration)');
    const shown = await command('show', all[1]?.id ?? '');
    expect(shown.stdout).toContain(
      `Not guarded (observe): guard would have answered it with ${all[0]?.id}, and sent nothing.`,
    );
    expect(gateway.stderr).toContain('(observe: nothing is guarded, each call is sent as it comes)');
    gateway.expectPure();
  });

  test('the agent sees the server’s own list and no tool of ours', async () => {
    const { start } = fixtureWorld(cleanUps, TOOLS);
    const gateway = await start(config('observe'));
    const { message } = await gateway.request('tools/list');
    expect(message.result?.tools?.map(({ name }) => name)).toEqual(TOOLS.map(({ name }) => name));
  });

  test('a lost answer is unknown on record, and is never sent again by us', async () => {
    const { calls, operation, start } = fixtureWorld(cleanUps, TOOLS, { note: { does: 'die_done' } });
    const gateway = await start(config('observe'));
    const lost = await gateway.call('note', { page: 1 });
    expect(textOf(lost)).toMatch(/^OUTCOME UNKNOWN — with a person now/);
    expect(await operation(operationOf(lost), 'parked')).toMatchObject({
      effect: 'unknown',
      observed: { guard: 'send' },
    });
    expect(calls('note')).toHaveLength(1);
  });

  test('a call that cannot be told from others, or be recorded, passes as it came, and leaves a gap on record', async () => {
    const { calls, command, data, start } = fixtureWorld(cleanUps, TOOLS);
    const gateway = await start(config('observe'));
    // A member twice: guard refuses it, because nobody can say which of the two is meant.
    gateway.send(
      '{"jsonrpc":"2.0","id":"twice","method":"tools/call","params":{"name":"note","arguments":{"page":1,"page":2}}}',
    );
    expect(textOf((await gateway.answer('twice')).message.result ?? {})).toBe('done');
    // The store goes away under the running gateway.
    await gateway.call('note', { page: 3 });
    renameSync(data, `${data}.away`);
    writeFileSync(data, 'no directory');
    await until(() => existsSync(data), 'the store to be away');
    expect(textOf(await gateway.call('note', { page: 4 }))).toBe('done');
    expect(calls('note')).toHaveLength(3);
    rmSync(data);
    renameSync(`${data}.away`, data);
    const gaps = async () => {
      const { stdout } = await command('report', '--json');
      return (
        JSON.parse(stdout) as { gaps: readonly { tools: { note?: number }; reasons: readonly string[] }[] }
      ).gaps;
    };
    const found = await untilAsync(async () => {
      const all = await gaps();
      return all.reduce((sum, { tools }) => sum + (tools.note ?? 0), 0) === 2 && all;
    }, 'both to be on record as a gap');
    expect(new Set(found.flatMap(({ reasons }) => reasons))).toEqual(
      new Set(['the call could not be read as an operation', 'the ledger could not record']),
    );
  });
});

describe('strict', PATIENT, () => {
  test('every write waits for a person, and reads pass', async () => {
    const { approve, calls, operation, start } = fixtureWorld(cleanUps, TOOLS);
    const gateway = await start(config('strict'));
    expect(textOf(await gateway.call('look', {}))).toBe('done');
    const asked = await gateway.call('note', { page: 1 });
    expect(textOf(asked)).toMatch(/^NOT SENT YET — waiting for a person's approval/);
    const id = operationOf(asked);
    expect(await operation(id, 'awaiting_approval')).toMatchObject({ review: { question: 'strict' } });
    expect(calls('note')).toHaveLength(0);
    expect((await approve(id)).code).toBe(0);
    await operation(id, 'closed');
    expect(calls('note')).toHaveLength(1);
    // Nothing is granted for the next one.
    expect(textOf(await gateway.call('note', { page: 2 }))).toMatch(/^NOT SENT YET/);
  });

  test('what guard had allowed and could not send yet is held once the server is strict', async () => {
    const { calls, folder, operation, start } = fixtureWorld(cleanUps, TOOLS, { look: { does: 'die' } });
    const first = await start(config('guard'));
    await first.call('note', { page: 1 });
    writeFileSync(join(folder, 'down'), '');
    await first.request('tools/call', { name: 'look' });
    const waiting = operationOf(await first.call('note', { page: 2 }));
    await first.end();
    rmSync(join(folder, 'down'));
    await start(config('strict'));
    const held = await operation(waiting, 'awaiting_approval');
    expect(held.review).toMatchObject({ because: { code: 'rule_stricter' }, question: 'strict' });
    expect(calls('note')).toHaveLength(1);
  });
});

test(
  'a configuration that would lower what its contract calls irreversible is refused, in each mode',
  PATIENT,
  async () => {
    const { folder, start } = fixtureWorld(cleanUps, TOOLS);
    writeFileSync(
      join(folder, 'c.yaml'),
      `contract: 1
id: c
destination: {name: c, protocol: mcp}
ownership: {owner: o, reviewed_on: 2026-01-01, review_by: 2099-01-01}
operations:
  - id: erase
    match: [erase]
    effect: delete
    destructive: true
    completion: {kind: synchronous}
    guards: []
    lookups: []
    outcomes: []
    reversals: [{kind: none, restores: nothing, evidence: {grade: documented, source: s}}]
`,
    );
    for (const mode of ['guard', 'strict']) {
      const text = `destination: fixture\nmode: ${mode}\ncontracts: [c.yaml]\ntools:\n  erase: {class: ordinary, contract_operation: c/erase}\n`;
      await expect(start(text)).rejects.toThrow(
        /erase is declared ordinary, and the contract c states that erase is destructive and has no reversal/,
      );
    }
  },
);
