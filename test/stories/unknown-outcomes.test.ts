import { describe, expect, test } from 'vitest';
import { until, type World } from '../../demo/world.mjs';
import {
  CHANGE,
  changedConfig,
  heldBy,
  OLD_MACHINE,
  OWN_ANSWER,
  RUN,
  STORY,
  setup,
  shown,
  somebodyWrites,
} from './harness.ts';

const FIND = 'find_change_request';
const RECORD = { name: 'db.example.com', type: 'A', value: '192.0.2.7' };
const LOOKED_UP = `consistency: {kind: read_after_write}
        unique: 'no'
        proves: {present: applied, absent: not_applied}`;
const NO_GUARD = `# It keeps the reference and enforces nothing: the same reference twice makes two requests.
    guards: []`;
/** What its contract says of the reference, and its server does not do. */
const GUARD = `guards:
      - kind: request_key
        carrier: {in: body, name: external_ref, encoding: opaque}
        scope: [container]
        window: {kind: duration, at_least: PT1H, from: first_accept, after: executes_again}
        same: {result: replays_original}
        different: {result: rejected}
        in_flight: {result: waits}
        strength: enforced
        evidence: {grade: documented, source: a page that is wrong}`;

/** The look-ups of an operation, in the order in which they were answered. */
async function lookUps(world: World): Promise<readonly string[]> {
  const { history } = await shown(world);
  return history.flatMap(({ event }) =>
    event.type === 'evidence_recorded' && event.evidence.kind === 'lookup' ? [event.evidence.found] : [],
  );
}

describe.concurrent('a look-up that cannot be relied on', STORY, () => {
  test('[S5] it lags, inside the time to settle: never taken for absent, then found', async (context) => {
    const config = changedConfig(context, {
      'cutover.contract.yaml': [
        [
          LOOKED_UP,
          `consistency: {kind: eventual, settle: PT3S}
        unique: 'no'
        proves: {present: applied, absent: not_applied_after_settle}`,
        ],
      ],
    });
    const world = setup(context, { config });
    world.plan({ on: 'raise_change_request', do: 'lose_reply' }, { on: FIND, do: 'find_nothing', times: 2 });
    const agent = await world.agent();
    const answer = await agent.call('raise_change_request', CHANGE, RUN);

    expect(answer.text).toMatch(/^ALREADY_EXISTS — .* its answer was lost, and the record was found/);
    expect(await lookUps(world)).toEqual(['not_found', 'not_found', 'present']);
    expect((await shown(world)).operation).toMatchObject({ effect: 'verified', record: { id: 'CHG-1042' } });
    expect(await heldBy(world)).toHaveLength(1);
    expect(world.faultsFired()).toBe(3);
  });

  test('[S5] it is itself lost, twice, with the process of its server: asked again, and found', async (context) => {
    const world = setup(context);
    world.plan({ on: 'raise_change_request', do: 'lose_reply' }, { on: FIND, do: 'exit', times: 2 });
    const agent = await world.agent();
    await agent.call('raise_change_request', CHANGE, RUN);
    await until(async () => (await shown(world)).operation.stage === 'closed', 'the record to be found');

    expect((await lookUps(world)).slice(0, 3)).toEqual(['inconclusive', 'inconclusive', 'present']);
    expect((await shown(world)).operation.attempts).toHaveLength(1);
    expect(await heldBy(world)).toHaveLength(1);
    expect(world.faultsFired()).toBe(3);
  });
});

describe.concurrent('a destination that stays down', STORY, () => {
  const DOWN = { on: 'start', do: 'exit' } as const;

  test('[S10a] what is for it waits, named; the circuit opens; when it is back, look-ups and sends go on by themselves', async (context) => {
    const world = setup(context);
    const agent = await world.agent();
    await agent.call('get_vm', { vm: 'vm-17' });
    world.plan({ on: 'raise_change_request', do: 'exit_after' }, { ...DOWN, times: 6 });
    const home = { HOME: world.folder };
    const lost = await agent
      .call('raise_change_request', CHANGE, { ...RUN, patienceMs: 1_000, tries: 1 })
      .catch(() => undefined);
    const waits = await agent.call('update_dns_record', RECORD, RUN);
    let doctor = '';
    await until(async () => {
      doctor = (await world.counterfoil(['doctor'], home)).stdout;
      return doctor.includes('circuit');
    }, 'the circuit to open');
    await until(async () => (await shown(world)).operation.stage === 'closed', 'the destination to be back');

    expect(lost?.facts?.effect ?? 'unknown').toBe('unknown');
    expect(waits.text).toMatch(/^NOT SENT YET — waits for cutover to answer again/);
    expect(doctor).toMatch(/cutover has not answered \d+ times in a row/);
    const found = await agent.call('raise_change_request', CHANGE, RUN);
    expect(found.text).toContain('"CHG-1042"');
    expect((await shown(world, found.operation)).operation).toMatchObject({ effect: 'verified' });
    expect((await shown(world, waits.operation)).operation).toMatchObject({ effect: 'verified' });
    expect(await heldBy(world)).toHaveLength(2);
    expect(world.faultsFired()).toBe(7);
  });

  test('[S10a] it stays down for longer than we may wait: parked at that bound, unknown, and with a person', async (context) => {
    const config = changedConfig(context, {
      'gateway.yaml': [['caller_wait: PT5S', 'caller_wait: PT1S\n  elapsed: PT4S']],
    });
    const world = setup(context, { config });
    const agent = await world.agent();
    await agent.call('get_vm', { vm: 'vm-17' });
    world.plan({ on: 'raise_change_request', do: 'exit_after' }, { ...DOWN, times: 1_000 });
    const first = await agent.call('raise_change_request', CHANGE, RUN);
    await until(async () => (await shown(world)).operation.stage === 'parked', 'the bound');
    const told = await agent.call('raise_change_request', CHANGE, RUN);

    expect(first.facts).toMatchObject({ stage: 'checking', effect: 'unknown' });
    expect(told.text).toMatch(/^OUTCOME UNKNOWN — with a person now/);
    expect((await shown(world)).operation).toMatchObject({
      effect: 'unknown',
      why: { code: 'lookups_exhausted' },
    });
    expect(await heldBy(world)).toHaveLength(1);
  });
});

describe.concurrent('a key that is known for an hour', STORY, () => {
  test('[S19] tries that are to go on for two are refused with both numbers, and nothing is started', async (context) => {
    const config = changedConfig(context, {
      'cutover.contract.yaml': [[NO_GUARD, GUARD]],
      'gateway.yaml': [['caller_wait: PT5S', 'caller_wait: PT5S\n  elapsed: PT2H']],
    });
    const world = setup(context, { config });
    const started = await world.counterfoil(['mcp', '--config', config, '--', process.execPath, world.log], {
      COUNTERFOIL_DATA: world.data,
    });

    const sentence =
      'limits.elapsed lets tries go on for PT2H, and the contract cutover-demo promises that the key of raise_change_request is known for PT1H; at most PT1H is allowed';
    expect(started.code).toBe(2);
    expect(started.stderr).toContain(sentence);
    expect(world.entries()).toEqual([]);
  });

  test('[S19] tries that go on for no longer than that are served', async (context) => {
    const config = changedConfig(context, {
      'cutover.contract.yaml': [[NO_GUARD, GUARD]],
      'gateway.yaml': [['caller_wait: PT5S', 'caller_wait: PT5S\n  elapsed: PT1H']],
    });
    const world = setup(context, { config });
    const agent = await world.agent();
    expect((await agent.call('raise_change_request', CHANGE, RUN)).text.startsWith(OWN_ANSWER)).toBe(true);
  });
});

describe.concurrent('two records where one was meant', STORY, () => {
  test('[S32a] the look-up finds two: diverged, with a person, and both are shown', async (context) => {
    const world = setup(context);
    world.plan({ on: 'raise_change_request', do: 'lose_reply' }, { on: FIND, do: 'take', ms: 1_500 });
    const agent = await world.agent();
    const call = agent.call('raise_change_request', CHANGE, RUN);
    await until(() => world.records().length === 1, 'the first record');
    somebodyWrites(world, 'raise_change_request', { ...world.records()[0], id: 'CHG-2000' });
    const answer = await call;
    const { operation } = await shown(world);
    const { stdout } = await world.counterfoil(['show', operation.id]);

    expect(operation).toMatchObject({ stage: 'parked', effect: 'diverged' });
    expect(answer.text).toMatch(/^CONTRADICTING EVIDENCE — with a person now/);
    expect(answer.text).toContain('2 records were found where one was meant: CHG-1042, CHG-2000.');
    expect(stdout).toContain('looked up: several (2 records: CHG-1042, CHG-2000)');
    expect(operation.attempts).toHaveLength(1);
    expect(await heldBy(world)).toHaveLength(2);
  });
});

describe.concurrent('a server that does not keep its word about a reference', STORY, () => {
  test('[S34] it is passed over: two records, counted, never green; and a person\u2019s word restores the trust that it cost', async (context) => {
    const config = changedConfig(context, {
      'cutover.contract.yaml': [
        [NO_GUARD, GUARD],
        [
          LOOKED_UP,
          `consistency: {kind: unknown}
        proves: {present: applied, absent: nothing}`,
        ],
      ],
    });
    const world = setup(context, { config });
    const hidden = { on: FIND, do: 'hide_first', times: 1_000 } as const;
    world.plan({ on: 'raise_change_request', do: 'lose_reply' }, hidden);
    const agent = await world.agent();
    await agent.call('raise_change_request', CHANGE, RUN);
    await until(async () => (await shown(world)).operation.stage === 'parked', 'two records to be counted');
    const { operation } = await shown(world);

    expect(operation).toMatchObject({ stage: 'parked', effect: 'diverged' });
    expect(operation.attempts.map(({ under }) => under)).toEqual([undefined, 'request_key']);
    expect((await world.counterfoil(['show', operation.id])).stdout).toContain('CHG-1042, CHG-1043');
    expect(world.records()).toHaveLength(2);

    // The next lost reply is not repeated.
    world.plan({ on: 'raise_change_request', do: 'lose_reply' });
    await agent.call('raise_change_request', { ...CHANGE, service: 'orders' }, RUN);
    await until(async () => (await shown(world)).operation.stage === 'parked', 'a person to be asked');
    expect((await shown(world)).operation).toMatchObject({
      effect: 'unknown',
      why: { code: 'guard_lost', lost: 'distrusted' },
    });
    expect(world.records()).toHaveLength(3);

    // It is told, and stays so until a named person says otherwise.
    const home = { HOME: world.folder };
    const doctor = await world.counterfoil(['doctor'], home);
    expect(doctor.stdout).toContain('the guard of raise_change_request on cutover is counted on no longer');
    expect(doctor.stdout).toContain(`left a second record (${operation.id})`);
    const other = await world.counterfoil(['contract', 'trust', 'cutover/click'], home);
    expect([other.code, other.stderr]).toEqual([
      3,
      'counterfoil: Nothing was changed: no guard of cutover/click was passed over. Those that are: cutover/raise_change_request.\n',
    ]);
    const trusted = await world.asOwner([
      'contract',
      'trust',
      'cutover/raise_change_request',
      '--by',
      'Mara',
      '--json',
    ]);
    expect(trusted.json).toEqual({
      restored: { destination: 'cutover', tool: 'raise_change_request', by: 'Mara' },
      guards: [],
    });
    expect((await world.counterfoil(['doctor'], home)).stdout).not.toContain('counted on no longer');
    expect(await heldBy(world)).toHaveLength(3);
  });
});

describe.concurrent('what the destination says, and what is there', STORY, () => {
  test('[S42] it refuses: rejected, with its own words, and nothing is there', async (context) => {
    const world = setup(context);
    const agent = await world.agent();
    const machine = { ...OLD_MACHINE, name: 'billing-db' };
    const asked = await agent.call('decommission_vm', machine, RUN);
    const { operation, digest } = await shown(world, asked.operation);
    await world.approve(operation.id, digest, 'demo owner');
    const status = { operation: operation.id, wait_s: 10 };
    await agent.call('counterfoil_operation_status', status);
    const answer = await agent.call('decommission_vm', machine, RUN);
    const found = (await shown(world, operation.id)).operation;

    expect(answer.texts.join('\n')).toContain('REFUSED: vm-17 is called billing-db-old, not billing-db.');
    expect(answer.isError).toBe(true);
    expect(found).toMatchObject({ stage: 'closed', effect: 'rejected' });
    expect(found.evidence).toMatchObject([{ kind: 'acknowledgement', means: 'rejected' }]);
    expect(await heldBy(world)).toEqual([]);
  });

  test('[S42] it acknowledges, and at that very version another value is there: diverged, with both', async (context) => {
    const world = setup(context);
    world.plan({ on: 'update_dns_record', do: 'keep_value' });
    const agent = await world.agent();
    const answer = await agent.call('update_dns_record', RECORD, RUN);
    const { operation } = await shown(world);

    expect(operation).toMatchObject({ stage: 'parked', effect: 'diverged' });
    expect(operation.evidence).toMatchObject([
      { kind: 'acknowledgement', means: 'accepted' },
      { kind: 'readback', matches: false, otherwise: 'nobody_wrote' },
    ]);
    expect(answer.text).toMatch(/^CONTRADICTING EVIDENCE — with a person now/);
    expect(answer.isError).toBe(true);
    expect(await heldBy(world)).toMatchObject([{ value: null, version: 1 }]);
  });

  test('[S42] somebody wrote after us: accepted, changed since, and no contradiction', async (context) => {
    const world = setup(context);
    world.plan({ on: 'get_dns_record', do: 'take', ms: 1_000 });
    const agent = await world.agent();
    const call = agent.call('update_dns_record', RECORD, RUN);
    await until(() => world.records().length === 1, 'our write');
    somebodyWrites(world, 'update_dns_record', { ...RECORD, value: '192.0.2.8', version: 2 });
    const answer = await call;
    const { label, operation } = await shown(world);

    expect(operation).toMatchObject({ stage: 'closed', effect: 'accepted' });
    expect(label).toBe('Accepted, changed since');
    expect(JSON.parse(answer.text)).toMatchObject({ value: '192.0.2.7', version: 1 });
    expect(await heldBy(world)).toHaveLength(2);
  });

  test('what is there is what was written: verified, and the answer is the destination\u2019s own', async (context) => {
    const world = setup(context);
    const agent = await world.agent();
    const answer = await agent.call('raise_change_request', CHANGE, RUN);
    expect(answer.text.startsWith(OWN_ANSWER)).toBe(true);
    expect((await shown(world)).operation.effect).toBe('verified');
  });
});
