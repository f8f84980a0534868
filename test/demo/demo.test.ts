import { spawn } from 'node:child_process';
import { appendFileSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, type TestContext, test } from 'vitest';
import { type Acted, judge } from '../../demo/judge.mjs';
import { makeWorld, until, within } from '../../demo/world.mjs';

const DEMO = fileURLToPath(new URL('../../demo/demo.mjs', import.meta.url));
const CHANGE = { service: 'billing', starts: '2026-12-05T22:00Z', description: 'Move the billing database.' };

/** The destination alone, with a client before it. */
function setup({ onTestFinished }: Pick<TestContext, 'onTestFinished'>) {
  const folder = mkdtempSync(join(tmpdir(), 'counterfoil-demo-test-'));
  const world = makeWorld({ folder, gateway: false });
  onTestFinished(async () => {
    await world.close();
    rmSync(folder, { recursive: true, force: true, maxRetries: 10 });
  });
  return world;
}

describe.concurrent("the demo's destination", { timeout: 30_000 }, () => {
  test('carries out what is asked twice twice, and its log says so', async (context) => {
    const world = setup(context);
    const agent = await world.agent();
    const first = await agent.call('raise_change_request', CHANGE);
    const second = await agent.call('raise_change_request', CHANGE);
    expect([first, second].map(({ text }) => JSON.parse(text).id)).toEqual(['CHG-1042', 'CHG-1043']);
    expect(world.records('raise_change_request')).toHaveLength(2);
  });

  test('answers reads from its log, also of what another process of it has recorded', async (context) => {
    const world = setup(context);
    const one = await world.agent();
    const other = await world.agent();
    await one.call('raise_change_request', { ...CHANGE, external_ref: 'ref-1' });
    await one.call('update_dns_record', { name: 'db.example.com', type: 'A', value: '10.0.0.18' });
    await one.call('create_snapshot', { database: 'billing', label: 'before' });
    await one.call('decommission_vm', { vm: 'vm-17', name: 'billing-db-old' });
    const asked = async (tool: string, args: object) => JSON.parse((await other.call(tool, args)).text);
    expect((await asked('find_change_request', { external_ref: 'ref-1' })).items).toHaveLength(1);
    expect((await asked('find_change_request', { external_ref: 'ref-2' })).items).toEqual([]);
    expect(await asked('get_dns_record', { name: 'db.example.com', type: 'A' })).toMatchObject({
      value: '10.0.0.18',
      version: 1,
    });
    expect((await asked('list_snapshots', { database: 'billing' })).items).toMatchObject([{ id: 'SNAP-1' }]);
    expect(await asked('get_vm', { vm: 'vm-17' })).toMatchObject({ state: 'decommissioned' });
    expect(await asked('get_vm', { vm: 'vm-18' })).toMatchObject({ state: 'running' });
  });

  test('refuses a machine whose name is another, before anything is done', async (context) => {
    const world = setup(context);
    const agent = await world.agent();
    const answer = await agent.call('decommission_vm', { vm: 'vm-18', name: 'billing-db-old' });
    expect(answer).toMatchObject({
      isError: true,
      text: 'REFUSED: vm-18 is called billing-db-new, not billing-db-old.',
    });
    expect(world.records()).toEqual([]);
  });

  test('lose_reply: recorded and never answered, once; the next call is answered', async (context) => {
    const world = setup(context);
    world.plan({ on: 'notify_team', do: 'lose_reply' });
    const agent = await world.agent();
    const message = { channel: '#billing', text: 'The cutover begins.' };
    await expect(agent.call('notify_team', message, { patienceMs: 300 })).rejects.toThrow(/timed out/i);
    const second = await agent.call('notify_team', message);
    expect(JSON.parse(second.text).id).toBe('MSG-2');
    expect(world.faultsFired()).toBe(1);
    expect(world.records()).toHaveLength(2);
  });

  test('exit and exit_after: the process ends before or after the record', async (context) => {
    const world = setup(context);
    world.plan({ on: 'click', do: 'exit' }, { on: 'click', do: 'exit_after' });
    const agent = await world.agent();
    await expect(agent.call('click', { button: 'Next' })).rejects.toThrow(/closed/i);
    expect(world.records()).toHaveLength(0);
    await expect(agent.call('click', { button: 'Next' })).rejects.toThrow(/closed/i);
    expect(world.records()).toHaveLength(1);
    expect(world.faultsFired()).toBe(2);
  });

  test('exit at start: down as often as planned, then up', async (context) => {
    const world = setup(context);
    world.plan({ on: 'start', do: 'exit', times: 2 });
    for (let time = 1; time <= 2; time += 1) await expect(world.agent()).rejects.toThrow(/closed/i);
    const agent = await world.agent();
    expect((await agent.call('click', { button: 'Next' })).isError).toBe(false);
    expect(world.faultsFired()).toBe(2);
  });

  test('take: what was read is carried out, even when the caller has closed its end', async (context) => {
    const world = setup(context);
    world.plan({ on: 'create_snapshot', do: 'take', ms: 400 });
    const agent = await world.agent();
    agent.call('create_snapshot', { database: 'billing', label: 'before' }).catch(() => {});
    await until(() => world.faultsFired() === 1, 'the snapshot to begin');
    expect(world.records()).toHaveLength(0);
    await agent.close();
    expect(world.records()).toHaveLength(1);
  });

  test('a fault that it cannot do ends it, so that no story passes over a mistake in its plan', async (context) => {
    const world = setup(context);
    const agent = await world.agent();
    writeFileSync(join(world.folder, 'faults.json'), '[{"id": "f", "on": "click", "do": "explode"}]');
    agent.call('click', { button: 'Next' }).catch(() => {});
    await within(agent.lost, 'the destination to end');
    expect(world.records()).toEqual([]);
  });

  test('a log that is cut in the middle of a line is read up to there', async (context) => {
    const world = setup(context);
    const agent = await world.agent();
    await agent.call('click', { button: 'Next' });
    appendFileSync(world.log, '{"event":"rec');
    expect(world.records()).toHaveLength(1);
  });
});

describe('the judge of the demo', () => {
  const row = {
    id: 'S1',
    title: 'a story',
    expected: 1,
    without: 2,
    effect: 'verified',
    told: ['ALREADY_EXISTS — …CHG-1042'],
  };
  const scene = { rows: [row], faults: 1 };
  const operations = [{ operation: { id: 'op_1', effect: 'verified', evidence: [] } }];
  const answers = ['ALREADY_EXISTS — it is there as CHG-1042.'];
  const good = { records: 1, answers, operations, problems: [] };
  const unguarded = (records: number): Acted => ({
    faultsFired: 1,
    rows: [{ records, answers: [], operations: [], problems: [] }],
  });

  function judged(changes: Partial<typeof good>, faultsFired = 1, without: Acted = unguarded(2)) {
    return judge(scene, 0, { faultsFired, rows: [{ ...good, ...changes }] }, without);
  }

  test('finds nothing wrong where count, effect, answers and faults are as meant', () => {
    expect(judged({})).toMatchObject({
      ok: true,
      problems: [],
      expectedRecords: 1,
      destinationRecords: 1,
      withoutCounterfoil: 2,
      effect: 'verified',
    });
  });

  test.each([
    ['a second record', judged({ records: 2 }), /holds 2 records; 1 meant/],
    [
      'another effect',
      judged({ operations: [{ operation: { id: 'op_1', effect: 'unknown', evidence: [] } }] }),
      /says unknown; verified meant/,
    ],
    ['no operation', judged({ operations: [] }), /says nothing recorded/],
    ['an untrue answer', judged({ answers: ['Success!'] }), /was told: Success!/],
    [
      'an answer without what matters',
      judged({ answers: ['ALREADY_EXISTS — it is there.'] }),
      /was told: ALREADY_EXISTS/,
    ],
    ['no answer', judged({ answers: [] }), /given 0 answers; 1 meant/],
    ['a fault that did not fire', judged({}, 0), /0 faults fired; 1 planned/],
    ['a fault that does no harm', judged({}, 1, unguarded(1)), /proves nothing/],
  ])('finds %s', (_, story, problem) => {
    expect(story.ok).toBe(false);
    expect(story.problems.join(' ')).toMatch(problem);
  });
});

describe.concurrent('the demo', { timeout: 60_000 }, () => {
  test('goes red without the gateway: the same client makes second records', async () => {
    const { code, stdout } = await demo('--without-gateway', '--json');
    const { ok, stories } = JSON.parse(stdout.trim().split('\n').at(-1) ?? '');
    const held = (id: string, variant?: string) =>
      stories.find((story: { id: string; variant?: string }) => story.id === id && story.variant === variant);
    expect(code).toBe(1);
    expect(ok).toBe(false);
    for (const [id, variant] of [
      ['S1'],
      ['S3'],
      ['S16', 'transport'],
      ['S16', 'reasoning'],
      ['S17'],
    ] as const) {
      expect(held(id, variant)).toMatchObject({ ok: false, expectedRecords: 1, destinationRecords: 2 });
    }
    expect(held('S18')).toMatchObject({ ok: false, expectedRecords: 0, destinationRecords: 1 });
    expect(held('S21')).toMatchObject({ ok: false, expectedRecords: 1, destinationRecords: 64 });
  });

  test('refuses a flag that it does not know, and starts nothing', async () => {
    const { code, stdout, stderr } = await demo('--jsn');
    expect(code).toBe(2);
    expect(stdout).toBe('');
    expect(stderr).toMatch(/^The demo knows no --jsn\./);
  });
});

async function demo(...flags: readonly string[]) {
  // What is kept of a run that went red is kept in here, and goes with it.
  const folder = mkdtempSync(join(tmpdir(), 'counterfoil-demo-test-'));
  const child = spawn(process.execPath, [DEMO, ...flags], { env: { ...process.env, TMPDIR: folder } });
  let stdout = '';
  let stderr = '';
  child.stdout.on('data', (chunk) => (stdout += chunk));
  child.stderr.on('data', (chunk) => (stderr += chunk));
  const code = await new Promise<number | null>((resolve) => child.on('close', resolve));
  rmSync(folder, { recursive: true, force: true, maxRetries: 10 });
  return { code, stdout, stderr };
}
