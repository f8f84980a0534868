// What a decision is worth when something has changed since: through a gateway, counted at a server that is a process.

import { appendFileSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, describe, expect, test } from 'vitest';
import { composeLedger, LEDGER_FILE } from '../../src/compose.ts';
import type { Operation } from '../../src/core/operation.ts';
import { systemEnvironment } from '../../src/engine/environment.ts';
import type { Ledger } from '../../src/engine/ledger.ts';
import { loadSqliteDriver } from '../../src/store/sqlite/driver.ts';
import { inProcess } from './in-process.ts';
import {
  CleanUps,
  callsOf,
  counterfoil,
  logOf,
  operationOf,
  ownerOf,
  textOf,
  toolsServer,
  until,
  untilAsync,
} from './processes.ts';

const TOOLS = [
  { name: 'erase', inputSchema: { type: 'object' } },
  { name: 'wipe', inputSchema: { type: 'object' } },
  { name: 'pay', inputSchema: { type: 'object' } },
  { name: 'note', inputSchema: { type: 'object' } },
];
const CONFIG = `
destination: fixture
tools:
  erase: {class: irreversible, repeat: unique}
  wipe: {class: irreversible, repeat: unique}
  pay: {class: irreversible, repeat: unique, identity: [amount, to]}
  note: {class: ordinary, repeat: free}
`;
const STEP = { 'counterfoil/run': 'billing', 'counterfoil/step': 'pay', 'counterfoil/single': true };

const cleanUps = new CleanUps();
afterEach(cleanUps.run);

interface World {
  readonly config: string;
  readonly server: (folder: string) => readonly string[];
  /** Of the contracts that the configuration names. */
  readonly contracts?: string;
}

const FIXTURE: World = { config: CONFIG, server: toolsServer };
const DEMO = fileURLToPath(new URL('../../demo/', import.meta.url));
/** The demo's destination, which keeps its records in a log, and in front of which every write waits. */
const CUTOVER: World = {
  config: `${readFileSync(join(DEMO, 'gateway.yaml'), 'utf8')}mode: strict\n`,
  server: (folder) => [process.execPath, join(DEMO, 'cutover-server.mjs'), join(folder, 'log')],
  contracts: DEMO,
};

async function setup({ config, contracts, server: serverIn }: World = FIXTURE) {
  const folder = cleanUps.folder();
  const data = join(folder, 'data');
  writeFileSync(join(folder, 'tools.json'), JSON.stringify(TOOLS));
  writeFileSync(join(folder, 'plan.json'), JSON.stringify({ note: { does: 'die' }, wipe: { does: 'hold' } }));
  let laterMs = 0;
  const system = systemEnvironment();
  const environment = { ...system, now: () => system.now() + laterMs };
  const server = serverIn(folder);
  const gateway = await inProcess({
    ...{ data, server, environment, config, cleanUps },
    ...(contracts === undefined ? {} : { folder: contracts }),
  });
  /** Another process's ledger on the same file, as the owner's command has one. */
  const owner: Ledger = await composeLedger({ data, environment });
  cleanUps.add(() => owner.close());
  const read = async (id: string): Promise<Operation> => {
    const record = await owner.readings.record(id);
    if (record === undefined) throw new Error(`${id} is not recorded`);
    return record.operation;
  };
  return {
    ...gateway,
    data,
    owner,
    read,
    calls: (tool: string) => callsOf(folder, tool),
    /** What the cutover server holds of a tool. */
    records: (tool: string) =>
      (logOf(folder) as readonly { readonly tool?: string; readonly record?: object }[])
        .filter((entry) => entry.tool === tool && entry.record !== undefined)
        .map(({ record }) => record),
    /** Somebody else writes at the destination: its log is its database. */
    somebodyWrites: (tool: string, record: object) =>
      appendFileSync(
        join(folder, 'log'),
        `${JSON.stringify({ event: 'record', at: '', pid: 0, tool, record })}\n`,
      ),
    asked: async (...args: Parameters<typeof gateway.call>): Promise<Operation> =>
      read(operationOf(await gateway.call(...args))),
    approve: (operation: Operation, kind: 'approved' | 'denied' = 'approved', by = 'Mara') =>
      owner.decideReview({
        ...(operation.review?.because === undefined ? {} : { review: operation.review.id }),
        operation: operation.id,
        digest: operation.digest,
        kind,
        by,
        strength: 'passphrase',
      }),
    as: (id: string, stage: string) =>
      untilAsync(async () => {
        const operation = await read(id);
        return operation.stage === stage ? operation : undefined;
      }, `${id} to be ${stage}`),
    pass: (ms: number) => {
      laterMs += ms;
    },
    /** The server ends with its next call, and does not start again before it is back. */
    goesDown: async () => {
      writeFileSync(join(folder, 'down'), '');
      await gateway.call('note', {});
    },
    isBack: () => rmSync(join(folder, 'down')),
    /** What it holds back is answered. */
    answers: () => writeFileSync(join(folder, 'release'), ''),
  };
}

describe('an approval', () => {
  test('[S6c] that expires before it could be used holds the write, names the condition, and sends nothing', async () => {
    const world = await setup();
    const { approve, as, asked, calls, call, goesDown, isBack, pass } = world;
    const erase = await asked('erase', { thing: 7 });
    await goesDown();
    await approve(erase);
    pass(61_000);
    isBack();
    const held = await as(erase.id, 'awaiting_approval');
    expect(held).toMatchObject({ effect: 'not_sent', review: { because: { code: 'approval_expired' } } });
    expect(textOf(await call('erase', { thing: 7 }))).toMatch(
      /^NOT SENT — held \(op_\w+\)\. The approval has expired\./,
    );
    const { stdout } = await counterfoil(['queue', '--data', world.data]);
    expect(stdout).toContain('The approval has expired. A new decision is needed. We changed nothing.');
    expect(stdout).toContain(`--review ${held.review?.id ?? ''}`);
    expect(calls('erase')).toEqual([]);
  });

  test('that is revoked before it could be used sends nothing, and the command says what has left', async () => {
    const world = await setup();
    const { approve, as, asked, calls, call, data, goesDown, isBack } = world;
    const erase = await asked('erase', { thing: 7 });
    await goesDown();
    await approve(erase);
    const revoke = (...args: string[]) =>
      counterfoil(['revoke', erase.id, '--digest', erase.digest.slice(0, 12), ...args, '--data', data]);
    const revoked = await revoke('--by', 'Luis', '--reason', 'Wrong VM.');
    expect([revoked.code, revoked.stderr]).toEqual([0, '']);
    expect(revoked.stdout).toMatch(/^op_\w+ {2}approval revoked by Luis at /);
    expect(revoked.stdout).toContain('Nothing has left under it, and nothing will.');
    const again = JSON.parse((await revoke('--by', 'Ada', '--json')).stdout) as object;
    expect(again).toMatchObject({ revoked: { by: 'Luis' }, repeat: true, left: false });
    isBack();
    const held = await as(erase.id, 'awaiting_approval');
    expect(held.review?.because).toEqual({ code: 'approval_revoked', by: 'Luis' });
    expect(textOf(await call('erase', { thing: 7 }))).toMatch(
      /^NOT SENT — held \(op_\w+\)\. The approval was revoked by "?Luis"?\./,
    );
    // What has left is not recalled: it goes on to be known, and nothing more is sent.
    const wipe = await asked('wipe', { disk: 1 });
    await approve(wipe);
    await until(() => calls('wipe').length === 1, 'the write to be out');
    const late = await counterfoil(['revoke', wipe.id, '--digest', wipe.digest, '--data', data]);
    expect(late.stdout).toContain(
      'What had left is not recalled: nothing was taken back at the destination. No later attempt starts.',
    );
    world.answers();
    expect((await as(wipe.id, 'closed')).effect).toBe('accepted');
    expect((await counterfoil(['show', wipe.id, '--data', data])).stdout).toMatch(
      /allowed +approved by Mara at .*; revoked by .* \(strength: same_account\)/,
    );
    expect(calls('wipe')).toHaveLength(1);
    // What was said of the first review does not count for the one that took its place.
    expect(await approve(erase)).toMatchObject({ decided: false, refusal: 'review_differs' });
    expect(calls('erase')).toEqual([]);
  });

  test('[S9] of a payload that was altered behind the ledger’s back sends nothing: parked, with an alarm in the queue', async () => {
    const { approve, as, asked, calls, call, data } = await setup();
    const erase = await asked('erase', { thing: 7 });
    const driver = await loadSqliteDriver();
    const database = driver.open(join(data, LEDGER_FILE));
    database.exec(`update content set bytes = cast('{"thing":8}' as blob) where label = 'payload'`);
    database.close();
    await approve(erase);
    const parked = await as(erase.id, 'parked');
    expect([parked.why?.code, parked.effect]).toEqual(['digest_mismatch', 'not_sent']);
    const queue = await counterfoil(['queue', '--data', data]);
    expect(queue.stdout).toContain('Not what was decided on, for fixture (1)  cause_digest_mismatch@fixture');
    expect(queue.stdout).toContain('Find out who changed what is stored.');
    const shown = await counterfoil(['show', erase.id, '--data', data]);
    expect(shown.stdout).toContain('DOES NOT MATCH what is stored now');
    expect(textOf(await call('erase', { thing: 7 }))).toMatch(/^NOT SENT — with a person now/);
    expect(calls('erase')).toEqual([]);
  });
});

describe('a proposal that changes', () => {
  test('[S8a] in amount, recipient or record is another operation with its own approval; the unsent old one is withdrawn', async () => {
    const { approve, as, asked, calls, call, read } = await setup();
    const first = await asked('pay', { amount: 10, to: 'acme', text: 'March' }, STEP);
    await approve(first, 'denied');
    const amount = await asked('pay', { amount: 20, to: 'acme', text: 'March' }, STEP);
    const recipient = await asked('pay', { amount: 20, to: 'evil', text: 'March' }, STEP);
    const tool = await asked('erase', { thing: 7 }, STEP);
    const chain = [first, amount, recipient, tool];
    expect(new Set(chain.map(({ id }) => id)).size).toBe(4);
    expect(new Set(chain.map(({ digest }) => digest)).size).toBe(4);
    for (const [index, operation] of chain.slice(1).entries())
      expect(operation).toMatchObject({ stage: 'awaiting_approval', supersedes: chain[index]?.id });
    for (const [index, old] of [amount, recipient].entries())
      expect(await read(old.id)).toMatchObject({
        stage: 'closed',
        effect: 'not_sent',
        why: { code: 'replaced', by: chain[index + 2]?.id },
      });
    // [S25] A tab that still shows what was withdrawn, and one that carries its digest over.
    expect(await approve(amount)).toMatchObject({ decided: false, refusal: 'no_open_review' });
    expect(await approve({ ...tool, digest: recipient.digest })).toMatchObject({ refusal: 'digest_differs' });
    expect(textOf(await call('counterfoil_operation_status', { operation: amount.id }))).toMatch(
      new RegExp(`^NOT SENT — replaced by ${recipient.id}`),
    );
    expect([...calls('pay'), ...calls('erase')]).toEqual([]);
    await approve(tool);
    await as(tool.id, 'closed');
    expect(calls('erase')).toHaveLength(1);
    expect(calls('pay')).toEqual([]);
  });

  test('[S8b] in its description alone is the same operation, and what was not applied is named', async () => {
    const { approve, as, asked, calls, call } = await setup();
    const first = await asked('pay', { amount: 10, to: 'acme', text: 'March' }, STEP);
    const waiting = await call('pay', { amount: 10, to: 'acme', text: 'March, corrected' }, STEP);
    expect(operationOf(waiting)).toBe(first.id);
    expect(textOf(waiting)).toMatch(/^NOT SENT YET — waiting for a person's approval .* NOT applied: text\./);
    await approve(first);
    await as(first.id, 'closed');
    const done = await call('pay', { amount: 10, to: 'acme', text: 'March, once more' }, STEP);
    expect(operationOf(done)).toBe(first.id);
    expect(textOf(done)).toMatch(/^ALREADY_EXISTS — .*Different this time and NOT applied: text\./);
    expect(calls('pay').map((each) => each.arguments)).toEqual([{ amount: 10, to: 'acme', text: 'March' }]);
  });

  test('[S25] and two approvers at once, one of them twice, and a digest that is not its own: one decision, one record', async () => {
    const { approve, as, asked, calls, data, owner } = await setup();
    const erase = await asked('erase', { thing: 7 });
    const stale = await counterfoil(['approve', erase.id, '--digest', 'f'.repeat(12), '--data', data]);
    expect(stale.code).toBe(5);
    expect(stale.stderr).toMatch(/^counterfoil: Nothing was decided: the digest given is not that of op_/);
    expect(calls('erase')).toEqual([]);
    const decided = await Promise.all([
      approve(erase, 'approved', 'Mara'),
      approve(erase, 'denied', 'Luis'),
      approve(erase, 'approved', 'Mara'),
    ]);
    expect(decided.filter((each) => each.decided)).toHaveLength(1);
    const first = (await as(erase.id, 'closed')).review?.decision;
    for (const each of decided) expect(each.operation?.review?.decision).toEqual(first);
    // Deciding twice yields the first decision.
    const twice = await counterfoil([
      ...[first?.kind === 'denied' ? 'deny' : 'approve', erase.id, '--digest', erase.digest],
      ...['--by', first?.by ?? '', '--json', '--data', data],
    ]);
    expect(JSON.parse(twice.stdout)).toMatchObject({ operation: erase.id, decision: first });
    const history = await owner.readings.history(erase.id);
    expect(history.filter(({ event }) => event.type === 'approved' || event.type === 'denied')).toHaveLength(
      1,
    );
    await until(() => calls('erase').length === (first?.kind === 'approved' ? 1 : 0), 'the write');
  });
});

describe('what is there when a write is reviewed', () => {
  const DNS = { name: 'db.example.com', type: 'A' };
  const ours = { ...DNS, value: '10.0.0.2' };

  test('[S7] has changed when it is to be sent: held, naming what changed, and nothing is written until somebody has seen it', async () => {
    const { approve, as, asked, call, data, read, records, somebodyWrites } = await setup(CUTOVER);
    const before = { ...DNS, value: '10.0.0.1', version: 1 };
    somebodyWrites('update_dns_record', before);
    const first = await asked('update_dns_record', ours);
    const queue = await counterfoil(['queue', '--data', data]);
    // What the reviewer sees is made of the frozen bytes, and stands beside what is there.
    expect(queue.stdout).toMatch(/Exactly this is sent \(\d+ bytes\):\n +\{\n +"name": "db\.example\.com",/);
    expect(queue.stdout).toMatch(
      /At cutover, read at .* UTC and read again before it is sent:\n +value: "10\.0\.0\.1" → "10\.0\.0\.2"\n +version 1\n/,
    );
    expect(queue.stdout).toContain('cutover is not asked to refuse the write then.');
    expect(queue.stdout).toMatch(/Taking it back: restore, which restores state only \(source\)\./);
    expect(queue.stdout).toContain(
      'If its reply is lost: its outcome is unknown, and it is looked up at the destination before anything else.',
    );
    const theirs = { ...DNS, value: '10.0.0.9', version: 2 };
    somebodyWrites('update_dns_record', theirs);
    await approve(first);
    const held = await as(first.id, 'awaiting_approval').then(() => read(first.id));
    expect(held.review?.because).toEqual({ code: 'target_changed', fields: ['value'], was: '1', is: '2' });
    expect(textOf(await call('update_dns_record', ours))).toMatch(
      /^NOT SENT — held \(op_\w+\)\. The target changed after the review: version 1 → 2, field "value"\./,
    );
    expect(records('update_dns_record')).toEqual([before, theirs]);
    // The fresh review shows the present facts, and the decision keeps which review was shown.
    const shown = await counterfoil(['show', first.id, '--data', data]);
    expect(shown.stdout).toContain('value: "10.0.0.9" → "10.0.0.2"');
    await approve(held);
    const closed = await as(first.id, 'closed');
    expect(closed).toMatchObject({ effect: 'verified', review: { decision: { shown: held.review?.shown } } });
    expect(records('update_dns_record')).toMatchObject([before, theirs, { value: '10.0.0.2', version: 3 }]);
  });

  test('[S18] is another machine for a replayed decommission: not covered; name and state are read again; records 0', async () => {
    const { approve, as, asked, call, data, records, somebodyWrites } = await setup(CUTOVER);
    const STEP = { 'counterfoil/run': 'billing', 'counterfoil/step': 'off', 'counterfoil/single': true };
    const first = await asked('decommission_vm', { vm: 'vm-17', name: 'billing-db-old' }, STEP);
    await approve(first, 'denied');
    const replayed = await asked('decommission_vm', { vm: 'vm-18', name: 'billing-db-old' }, STEP);
    expect(replayed).toMatchObject({ stage: 'awaiting_approval', supersedes: first.id });
    expect(await approve({ ...replayed, digest: first.digest })).toMatchObject({ refusal: 'digest_differs' });
    // The name that it gives is not the one that the machine has.
    const shown = await counterfoil(['show', replayed.id, '--data', data]);
    expect(shown.stdout).toMatch(
      /state: "running" → "decommissioned"\n +name: "billing-db-new" → "billing-db-old"/,
    );
    expect(shown.stdout).toContain('Taking it back: impossible, as the contract states.');
    somebodyWrites('decommission_vm', { vm: 'vm-18', name: 'billing-db-new', state: 'decommissioned' });
    await approve(replayed);
    const held = await as(replayed.id, 'awaiting_approval');
    expect(held.review?.because).toEqual({ code: 'target_changed', fields: ['state'] });
    expect(textOf(await call('decommission_vm', { vm: 'vm-18', name: 'billing-db-old' }, STEP))).toMatch(
      /^NOT SENT — held .* field "state"\./,
    );
    expect(records('decommission_vm')).toEqual([
      { vm: 'vm-18', name: 'billing-db-new', state: 'decommissioned' },
    ]);
  });
});

test('what waits in a run is approved as one list on a terminal; what was denied by itself is left out, and the rest is sent', async () => {
  const { as, asked, approve, calls, data } = await setup();
  const run = { 'counterfoil/run': 'the cutover' };
  const operations = [
    await asked('erase', { thing: 1 }, run),
    await asked('erase', { thing: 2 }, run),
    await asked('wipe', { disk: 'c\u202e' }, run),
  ];
  const [first, second, third] = operations as [Operation, Operation, Operation];
  const other = await asked('erase', { thing: 3 });
  const shown = await counterfoil(['approve', '--run', 'the cutover', '--data', data]);
  expect([shown.code, shown.stderr]).toEqual([10, '']);
  expect(shown.stdout).toMatch(
    /^Run the cutover: 3 operations wait for approval, each exactly as it is shown:/,
  );
  for (const { id } of operations) expect(shown.stdout).toContain(`To be approved: ${id}@1, `);
  expect(shown.stdout).toContain('"disk": "c\\u{202e}"');
  expect(shown.stdout).toContain('/disk holds characters that are not seen or reorder others: U+202E');
  expect(shown.stdout).not.toContain(other.id);
  const digest = /approve --run 'the cutover' --digest ([0-9a-f]{12})/.exec(shown.stdout)?.[1] ?? '';
  await approve(third, 'denied');
  const decided = await ownerOf(data).approve('--run', 'the cutover', '--digest', digest, '--by', 'Mara');
  expect(decided.stderr).toBe('');
  expect(decided.code).toBe(5);
  expect(decided.stdout).toContain(`${third.id}  left out: it has changed since it was looked at.`);
  for (const { id } of [first, second])
    expect((await as(id, 'closed')).review?.decision).toMatchObject({ by: 'Mara', strength: 'passphrase' });
  expect(calls('erase').map((each) => each.arguments)).toEqual([{ thing: 1 }, { thing: 2 }]);
  expect(calls('wipe')).toEqual([]);
  const unknown = await counterfoil([
    'approve',
    '--run',
    'the cutover',
    '--digest',
    'f'.repeat(12),
    '--data',
    data,
  ]);
  expect(unknown.code).toBe(5);
  expect(unknown.stderr).toMatch(
    /^counterfoil: Nothing was decided: no list of the run 'the cutover' with that digest/,
  );
});

test('a kind of write is granted on a terminal for one run, with the rule in words, and ends when it is revoked', async () => {
  const { asked, call, data, records } = await setup(CUTOVER);
  const run = { 'counterfoil/run': 'billing' };
  const dns = (name: string) => ({ name, type: 'A', value: '10.0.0.2' });
  const waiting = await asked('update_dns_record', dns('a.example.com'), run);
  const machine = await asked('decommission_vm', { vm: 'vm-17', name: 'billing-db-old' }, run);
  const owner = ownerOf(data);
  const give = (operation: Operation) =>
    owner.run(
      'grant',
      'give',
      operation.id,
      '--digest',
      operation.digest.slice(0, 12),
      '--for',
      '2h',
      '--by',
      'Mara',
    );
  const given = await give(waiting);
  expect([given.code, given.stderr]).toEqual([0, '']);
  expect(given.screen).toContain(
    'To be granted: update_dns_record on cutover is sent without asking in the run "billing"',
  );
  const id = /grant_[0-9a-f]{16}/.exec(given.stdout)?.[0] ?? '';
  const floor = await give(machine);
  expect(floor.code).toBe(4);
  expect(floor.stderr).toContain(
    'what cannot be taken back, and what nobody has classified, is decided each time.',
  );
  expect((await call('update_dns_record', dns('b.example.com'), run)).isError).toBeUndefined();
  const listed = await counterfoil(['grant', 'list', '--data', data]);
  expect(listed.stdout).toMatch(
    /^grant_\w+ {2}in force: update_dns_record on cutover is sent .*; given by Mara at /,
  );
  const ended = await counterfoil(['grant', 'revoke', id, '--by', 'Luis', '--data', data]);
  expect(ended.stdout).toMatch(
    /revoked by Luis at .*What it has let through is not taken back; what has not left is held\./,
  );
  expect(textOf(await call('update_dns_record', dns('c.example.com'), run))).toMatch(/^NOT SENT YET — /);
  expect(records('update_dns_record')).toMatchObject([{ name: 'b.example.com' }]);
  expect(records('decommission_vm')).toEqual([]);
});
