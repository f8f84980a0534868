// What an owner decides counts behind the resident as it does in a process of its own: modes, configurations that wait,
// the passphrase, names.

import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { afterEach, describe, expect, test } from 'vitest';
import { packageVersion } from '../../src/cli/version.ts';
import { runPipe } from '../../src/resident/pipe.ts';
import { residentPlace } from '../../src/resident/place.ts';
import { cursorFile, Home } from '../cli/home.ts';
import {
  CleanUps,
  COUNTERFOIL,
  counterfoil,
  isRunning,
  LineProcess,
  operationOf,
  operationsIn,
  textOf,
  toolsServer,
  until,
  untilAsync,
} from '../gateway/processes.ts';
import { CONFIG, residentWorld } from './world.ts';

const WAITS = /^NOT SENT YET — waiting for a person/;
/** Each of them starts several processes; on a busy machine they take their time. */
const PATIENT = { timeout: 90_000 };

const cleanUps = new CleanUps();
afterEach(cleanUps.run);

describe('a configuration that loosens', PATIENT, () => {
  const OBSERVE = `${CONFIG}mode: observe\n`;

  test('waits for its owner, and its client is told; confirmed, it counts for clients that come then', async () => {
    const world = residentWorld(cleanUps);
    const careful = await world.client();
    await careful.says(/writes to fixture are recorded in/);
    const loose = await world.client({ config: OBSERVE });
    await loose.says(/not in force: The mode is observe, and was guard\./);
    await loose.says(/counterfoil policy confirm fixture --digest [0-9a-f]{12}/);
    expect(loose.stderr).not.toContain('(observe:');
    expect(careful.stderr).not.toContain('not in force');
    expect(textOf(await loose.call('erase', { n: 1 }))).toMatch(WAITS);
    const digest = /--digest ([0-9a-f]{12})/.exec(loose.stderr)?.[1] ?? '';
    const confirmed = await world.owner.run('policy', 'confirm', 'fixture', '--digest', digest);
    expect(confirmed.code, confirmed.stderr).toBe(0);
    const observed = await world.client({ config: OBSERVE });
    await observed.says(/\(observe: nothing is guarded, each call is sent as it comes\)/);
    expect(textOf(await observed.call('erase', { n: 2 }))).toBe('did erase');
    expect(textOf(await careful.call('erase', { n: 3 }))).toMatch(WAITS);
    expect(world.calls('erase')).toHaveLength(1);
    expect(world.residents()).toEqual([world.resident()]);
  });

  test('and one that is stricter counts at once, for clients that are there too; looser again, for those that come', async () => {
    const world = residentWorld(cleanUps);
    const first = await world.client();
    expect(textOf(await first.call('look', {}))).toBe('did look');
    const stricter = await world.client({
      config: CONFIG.replace('  erase:', '  look: {class: irreversible}\n  erase:'),
    });
    expect(textOf(await stricter.call('look', { of: 'stricter' }))).toMatch(WAITS);
    let n = 0;
    await untilAsync(async () => {
      n += 1;
      return WAITS.test(textOf(await first.call('look', { n })));
    }, 'the first client to be under the rules of the other');
    await first.says(/configuration of fixture that has come into force since counts here as well/);
    const loose = await world.client();
    await loose.says(/not in force: look is unclassified, and was irreversible\./);
    const digest = /--digest ([0-9a-f]{12})/.exec(loose.stderr)?.[1] ?? '';
    const confirmed = await world.owner.run('policy', 'confirm', 'fixture', '--digest', digest);
    expect(confirmed.code, confirmed.stderr).toBe(0);
    const last = await world.client();
    expect(textOf(await last.call('look', { of: 'last' }))).toBe('did look');
    expect(textOf(await first.call('look', { of: 'first' }))).toMatch(WAITS);
    expect(textOf(await loose.call('look', { of: 'loose' }))).toMatch(WAITS);
    expect(world.residents()).toEqual([world.resident()]);
  });

  test('by being left out waits as well', async () => {
    const world = residentWorld(cleanUps);
    await (await world.client()).end();
    const named = (name: string): LineProcess =>
      cleanUps.started(
        new LineProcess(
          process.execPath,
          [COUNTERFOIL, 'mcp', '--name', name, '--data', world.data, '--', ...toolsServer(world.folder)],
          { env: world.env },
        ),
      );
    const without = named('fixture');
    await without.initialize();
    await without.says(/to start without the configuration loosens the one before it/);
    expect(textOf(await without.call('note', { n: 1 }))).toBe('did note');
    const other = named('other');
    await other.initialize();
    expect(textOf(await other.call('note', { n: 1 }))).toMatch(WAITS);
  });
});

test('strict: every write waits for a person', PATIENT, async () => {
  const world = residentWorld(cleanUps, { config: `${CONFIG}mode: strict\n` });
  const client = await world.client();
  await client.says(/\(strict: every write waits for a person\)/);
  expect(textOf(await client.call('note', { n: 1 }))).toMatch(WAITS);
  expect(textOf(await client.call('look', {}))).toBe('did look');
  expect(world.calls()).toEqual([]);
});

test(
  'what cannot be taken back is not approved without the passphrase, and is sent with it',
  PATIENT,
  async () => {
    const world = residentWorld(cleanUps);
    const client = await world.client();
    const id = operationOf(await client.call('erase', { n: 1 }));
    const digest = (await world.operations())[0]?.digest ?? '';
    const alone = await counterfoil(['approve', id, '--digest', digest, '--data', world.data]);
    expect(alone.code).toBe(4);
    expect(world.calls('erase')).toEqual([]);
    expect((await world.owner.approve(id, '--digest', digest)).code).toBe(0);
    await world.isOut('erase');
  },
);

describe('a name', PATIENT, () => {
  test('that the configuration contradicts is refused, whether or not a resident runs', async () => {
    const world = residentWorld(cleanUps);
    const args = world.arguments();
    const refused = async (): Promise<void> => {
      const ran = await counterfoil(['mcp', '--name', 'else', ...args.slice(args.indexOf('mcp') + 1)]);
      expect(ran.stderr).toMatch(/Two destinations are named: --name else, and destination: fixture in/);
      expect(ran.code).toBe(2);
    };
    await refused();
    expect(existsSync(world.data)).toBe(false);
    await world.client();
    await refused();
  });

  test('that init has written is the one that its writes are recorded under', async () => {
    const home = new Home(cleanUps);
    const tools = [{ name: 'note', inputSchema: { type: 'object' } }];
    home.write('.cursor/mcp.json', cursorFile({ notes: home.toolsEntry(tools) }));
    home.write('server/plan.json', '{"note":{"does":"answer"}}');
    expect((await home.run(['init', '--yes'])).code).toBe(0);
    const { mcpServers } = JSON.parse(home.read('.cursor/mcp.json'));
    const { command, args } = mcpServers.notes;
    const env = { ...home.env, COUNTERFOIL_RESIDENT_IDLE: 'PT0.1S' };
    const client = cleanUps.started(new LineProcess(command, args, { env }));
    await client.initialize();
    expect(textOf(await client.call('note', { n: 1 }))).toMatch(WAITS);
    const recorded = await operationsIn(home.data);
    expect(recorded).toMatchObject([{ destination: 'notes', stage: 'awaiting_approval' }]);
    const log = readFileSync(join(home.data, 'resident', 'log'), 'utf8');
    const pid = Number(/process (\d+) of version/.exec(log)?.[1]);
    await counterfoil(
      ['deny', recorded[0]?.id ?? '', '--digest', recorded[0]?.digest ?? '', '--data', home.data],
      { env: home.env },
    );
    await client.end();
    await until(() => !isRunning(pid), `process ${pid} to end`);
  });
});

test(
  'a client that reads another text in its configuration is served by a process of its own',
  PATIENT,
  async () => {
    const world = residentWorld(cleanUps);
    await world.client();
    const args = world.arguments();
    const end = await runPipe({
      place: residentPlace(world.data),
      version: packageVersion(),
      server: {
        name: 'fixture',
        isNamed: false,
        command: toolsServer(world.folder),
        cwd: world.folder,
        env: {},
        config: args[args.indexOf('--config') + 1] ?? '',
        configDigest: '0'.repeat(64),
      },
      start: { command: [process.execPath, '-e', ''], env: {} },
      input: new PassThrough(),
      output: new PassThrough(),
      talk: new PassThrough(),
    });
    expect(end).toEqual({
      ended: 'alone',
      reason: 'the process that serves the clients here reads another text in its configuration',
    });
  },
);
