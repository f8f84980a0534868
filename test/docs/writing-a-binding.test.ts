import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, describe, expect, test } from 'vitest';
import { loadBinding } from '../../src/contracts/load.ts';
import {
  CleanUps,
  COUNTERFOIL,
  counterfoil,
  LineProcess,
  operationOf,
  operationsIn,
  textOf,
} from '../gateway/processes.ts';

const here = (name: string): string => fileURLToPath(new URL(name, import.meta.url));
const PAGE = readFileSync(here('../../docs/writing-a-binding.md'), 'utf8');
const blocks = [...PAGE.matchAll(/```yaml\n([\s\S]*?)```/g)].map(([, text = '']) => text);
/** The files of the page, by the name in their first line. */
const files = new Map(
  blocks.flatMap((text) => {
    const [, name] = /^# (\S+\.yaml)\n/.exec(text) ?? [];
    return name === undefined ? [] : [[name, text] as const];
  }),
);
const MEASURED = blocks.find((text) => text.startsWith('measured:')) ?? '';

/** The files as the page has them, or with one of them changed, and a gateway that was started with them. */
function setup(cleanUps: CleanUps, change: (name: string, text: string) => string = (_, text) => text) {
  const folder = cleanUps.folder();
  for (const [name, text] of files) writeFileSync(join(folder, name), change(name, text));
  const tickets = join(folder, 'tickets');
  const data = join(folder, 'data');
  const options = ['--no-resident', '--data', data, '--config', join(folder, 'gateway.yaml')];
  const server = [process.execPath, here('./tickets-server.mjs'), tickets];
  return {
    arguments: ['mcp', ...options, '--', ...server],
    gateway: (): LineProcess =>
      cleanUps.started(new LineProcess(process.execPath, [COUNTERFOIL, 'mcp', ...options, '--', ...server])),
    direct: (): LineProcess => cleanUps.started(new LineProcess(process.execPath, server.slice(1))),
    dieAfterWrite: (): void => writeFileSync(`${tickets}.die`, ''),
    tickets: (): readonly unknown[] =>
      existsSync(tickets)
        ? readFileSync(tickets, 'utf8')
            .split('\n')
            .filter(Boolean)
            .map((line) => JSON.parse(line))
        : [],
    operations: () => operationsIn(data),
    show: () => counterfoil(['show', '--last', '--data', data]),
  };
}

describe('the page on writing a binding', () => {
  const cleanUps = new CleanUps();
  afterEach(cleanUps.run);
  const TICKET = { queue: 'billing', title: 'Invoices are late' };

  test('has three files, which are taken as they stand', () => {
    expect([...files.keys()]).toEqual(['tickets.contract.yaml', 'tickets.binding.yaml', 'gateway.yaml']);
  });

  test('a write is verified, an equal one is done before, and the server’s own refusal passes', async () => {
    const world = setup(cleanUps);
    const gateway = world.gateway();
    await gateway.initialize();
    expect((await gateway.call('create_ticket', TICKET)).structuredContent).toEqual({ id: 'T-1' });
    expect(textOf(await gateway.call('create_ticket', TICKET))).toMatch(/^ALREADY_EXISTS — /);
    expect((await world.show()).stdout).toContain('Verified at ');
    const refused = await gateway.call('create_ticket', { ...TICKET, queue: 'nowhere' });
    expect(textOf(refused)).toBe('No such queue: nowhere');
    expect(world.tickets()).toHaveLength(1);
    expect((await world.operations()).map(({ effect }) => effect)).toEqual(['verified', 'rejected']);
  });

  test('a reply that is lost is found by look-up, with one record at the destination', async () => {
    const world = setup(cleanUps);
    const gateway = world.gateway();
    await gateway.initialize();
    world.dieAfterWrite();
    const told = await gateway.call('create_ticket', TICKET);
    expect(textOf(told)).toMatch(/^ALREADY_EXISTS — .* its answer was lost, and the record was found/);
    expect(textOf(told)).toContain('T-1');
    expect(world.tickets()).toEqual([{ id: 'T-1', ...TICKET }]);
    expect((await world.operations()).map(({ effect }) => effect)).toEqual(['verified']);
  });

  test('without the gateway the repeat of a client whose answer was lost makes a second record', async () => {
    const world = setup(cleanUps);
    world.dieAfterWrite();
    for (const time of ['first', 'second']) {
      const server = world.direct();
      await server.initialize();
      const answer = server.call('create_ticket', TICKET);
      if (time === 'first') await expect(answer).rejects.toThrow('ended before it answered');
      else expect((await answer).structuredContent).toEqual({ id: 'T-2' });
    }
    expect(world.tickets()).toHaveLength(2);
  });

  test('an irreversible tool waits for a person', async () => {
    const world = setup(cleanUps);
    const gateway = world.gateway();
    await gateway.initialize();
    const asked = await gateway.call('purge_queue', { queue: 'billing' });
    expect(textOf(asked)).toMatch(/^NOT SENT YET — waiting for a person's approval/);
    expect(operationOf(asked)).toMatch(/^op_/);
  });

  test('a tool that has another digest than the page’s is told of and asked about', async () => {
    const world = setup(cleanUps, (name, text) => (name.includes('binding') ? text + MEASURED : text));
    const gateway = world.gateway();
    await gateway.initialize();
    expect(textOf(await gateway.call('create_ticket', TICKET))).toMatch(/^NOT SENT YET — /);
    await gateway.says('create_ticket is not the tool that the binding tickets-server was written for');
    expect(world.tickets()).toEqual([]);
  });

  test.each([
    ['an unknown key', 'class: read', 'class: read, colour: red', /colour/],
    [
      'a look-up through a tool that is not a read',
      'find_tickets, class: read',
      'find_tickets, class: interactive',
      /find_tickets/,
    ],
  ])('%s is refused before anything is sent, with a place', async (_, from, to, says) => {
    const { arguments: args } = setup(cleanUps, (_name, text) => text.replace(from, to));
    const { code, stderr } = await counterfoil(args);
    expect(code).not.toBe(0);
    expect(stderr).toMatch(/tickets\.binding\.yaml:\d+:\d+/);
    expect(stderr).toMatch(says);
  });

  test('an argument that the tool does not have is named, and its writes are not sent', async () => {
    const world = setup(cleanUps, (_, text) =>
      text.replace('identity: [queue, title]', 'identity: [queue, name]'),
    );
    const gateway = world.gateway();
    await gateway.initialize();
    const told = await gateway.call('create_ticket', TICKET);
    expect(told.isError).toBe(true);
    expect(textOf(told)).toContain('names the argument name, which the tool does not have');
    expect(world.tickets()).toEqual([]);
  });

  test('a refusal on a weaker grade counts as an error that establishes nothing', async () => {
    const world = setup(cleanUps, (name, text) =>
      name.includes('contract') ? text.replace('{grade: source,', '{grade: assumed,') : text,
    );
    const gateway = world.gateway();
    await gateway.initialize();
    await gateway.call('create_ticket', { ...TICKET, queue: 'nowhere' });
    expect((await world.operations()).map(({ effect }) => effect)).toEqual(['error_reported']);
  });

  test('the part on digests is one that a binding may have', () => {
    const binding = files.get('tickets.binding.yaml') ?? '';
    expect(loadBinding(binding + MEASURED, 'binding').ok).toBe(true);
  });
});
