// What a data directory holds after writes were made, looked at byte by byte: nothing of what was in them.

import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import { composeLedger } from '../../src/compose.ts';
import { fixtureWorld } from './fixture-world.ts';
import { CleanUps, operationOf, textOf } from './processes.ts';

const cleanUps = new CleanUps();
afterEach(cleanUps.run);

const CANARY = {
  argument: 'canary-argument-7311',
  target: 'canary-target-7312',
  reply: 'canary-reply-7313',
  reason: 'canary-reason-7314',
};
const CONFIG = `
destination: notes
tools:
  note: {class: ordinary, repeat: unique, target: {type: page, id: '{page}'}}
  erase: {class: irreversible, repeat: unique}
`;

/** Every byte of every file below it, the write-ahead log included. */
function bytesBelow(directory: string): Buffer {
  const files = readdirSync(directory, { withFileTypes: true, recursive: true }).filter((one) =>
    one.isFile(),
  );
  expect(files.map(({ name }) => name)).toContain('ledger.sqlite');
  return Buffer.concat(files.map(({ name, parentPath }) => readFileSync(join(parentPath, name))));
}

test('arguments, targets, replies and reasons lie in no file of the data directory; whoever may read them can', async () => {
  const world = fixtureWorld(cleanUps, [{ name: 'note' }, { name: 'erase' }], {
    note: { result: { content: [{ type: 'text', text: `kept as ${CANARY.reply}` }] } },
  });
  const gateway = await world.start(CONFIG);
  const kept = await gateway.call('note', { page: CANARY.target, text: CANARY.argument });
  expect(textOf(kept)).toContain(CANARY.reply);
  const waiting = gateway.ask('tools/call', { name: 'erase', arguments: { page: 'a' } });
  const { message } = await gateway.answer(waiting);
  const id = operationOf(message.result ?? {});
  const waits = await world.operation(id, 'awaiting_approval');
  const denied = await world.command('deny', id, '--digest', waits.digest, '--reason', CANARY.reason);
  expect(denied.stderr).toBe('');

  const open = bytesBelow(world.data);
  expect(Object.values(CANARY).filter((canary) => open.includes(canary))).toEqual([]);
  await gateway.end();
  const closed = bytesBelow(world.data);
  expect(Object.values(CANARY).filter((canary) => closed.includes(canary))).toEqual([]);
  // The names of what was done are there to be found: the files are the right ones.
  expect(closed.includes('notes') && closed.includes(id.slice(3))).toBe(true);

  const ledger = await composeLedger({ data: world.data });
  cleanUps.add(() => ledger.close());
  const [, first] = await ledger.readings.recent(2);
  const reading = first && (await ledger.readings.operation(first.id));
  const readable = JSON.stringify([reading?.payload, reading?.target, reading?.reply]);
  for (const canary of [CANARY.argument, CANARY.target, CANARY.reply]) expect(readable).toContain(canary);
  expect((await world.command('show', id, '--json')).stdout).toContain(CANARY.reason);
});
