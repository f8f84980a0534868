import { mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, type TestContext, test } from 'vitest';
import { type Agent, makeWorld, until, type World } from '../../demo/world.mjs';
import { composeLedger } from '../../src/compose.ts';
import { heldBy, RUN } from './harness.ts';

const here = (name: string): string => fileURLToPath(new URL(name, import.meta.url));
const PASSPHRASE = 'the owner of the outage';
const HOUR_MS = 3_600_000;
const CAUSE = 'cause_no_answer@cutover';
const CHANGES = 8;
const MESSAGES = 8;
const RECORDS = 14;
const CLICKS = 10;

/** Forty writes, each in processes of its own; on a busy machine they take their time. */
const PATIENT = { timeout: 150_000 };

interface CauseJson {
  readonly id: string;
  readonly counts: { readonly [name: string]: number };
  readonly list: {
    readonly digest: string;
    readonly operations: readonly { readonly operation: string; readonly version: number }[];
  };
}

/** A world whose processes share a clock that the test moves, and in which a click needs an approval. */
function setup(context: Pick<TestContext, 'onTestFinished'>) {
  const folder = mkdtempSync(join(tmpdir(), 'counterfoil-outage-'));
  const clock = join(folder, 'clock');
  const config = join(folder, 'gateway.yaml');
  const moveClock = (ms: number): void => {
    writeFileSync(`${clock}.new`, String(ms));
    renameSync(`${clock}.new`, clock);
  };
  moveClock(0);
  writeFileSync(
    config,
    `destination: cutover
contracts: ['${here('../../demo/cutover.contract.yaml')}']
bindings: ['${here('../../demo/cutover.binding.yaml')}']
limits: {reply_timeout: PT5S, caller_wait: PT1S}
tools:
  click: {class: irreversible}
`,
  );
  const world = makeWorld({
    folder: join(folder, 'world'),
    config,
    env: {
      NODE_OPTIONS: `--import=${new URL('./fixtures/moved-clock.mjs', import.meta.url).href}`,
      COUNTERFOIL_TEST_CLOCK: clock,
    },
  });
  context.onTestFinished(async () => {
    await world.close();
    rmSync(folder, { recursive: true, force: true, maxRetries: 10 });
  });
  return {
    world,
    folder,
    moveClock,
    /** The destination can be started again. */
    lift: (): void => {
      const faults = join(world.folder, 'faults.json');
      writeFileSync(`${faults}.new`, '[]');
      renameSync(`${faults}.new`, faults);
    },
    cause: async (): Promise<CauseJson | undefined> => {
      const { json } = await world.counterfoil(['queue', '--json']);
      return (json as { readonly causes: readonly CauseJson[] }).causes.find(({ id }) => id === CAUSE);
    },
    decide: (...args: string[]) => world.onTerminal(args, [PASSPHRASE]),
  };
}

function times<Result>(count: number, make: (index: number) => Result): readonly Result[] {
  return Array.from({ length: count }, (_, index) => make(index));
}

/** What is out when the destination goes: recorded there, and never answered. */
async function callInFlight(world: World, agent: Agent): Promise<void> {
  world.plan(
    { on: 'raise_change_request', do: 'lose_reply', times: CHANGES },
    { on: 'notify_team', do: 'lose_reply', times: MESSAGES },
    { on: 'start', do: 'exit', times: 100_000 },
  );
  const calls = [
    ...times(CHANGES, (index) =>
      agent.call(
        'raise_change_request',
        { service: `s-${index}`, starts: '2026-12-05', description: 'Move it.' },
        RUN,
      ),
    ),
    ...times(MESSAGES, (index) =>
      agent.call('notify_team', { channel: `#c-${index}`, text: 'The cutover begins.' }, RUN),
    ),
  ];
  await until(() => world.records().length === CHANGES + MESSAGES, 'what is in flight to arrive');
  await world.killDestination();
  await Promise.all(calls);
}

/** What is asked for while the destination is away: nothing of it can be sent. */
async function callDuringOutage(world: World, agent: Agent): Promise<void> {
  await Promise.all(
    times(RECORDS, (index) =>
      agent.call('update_dns_record', { name: `db-${index}.example.com`, type: 'A', value: '10.0.0.2' }, RUN),
    ),
  );
  const asked = await Promise.all(
    times(CLICKS, (index) => agent.call('click', { button: `Switch ${index}` }, RUN)),
  );
  const ledger = await composeLedger({ data: world.data });
  try {
    for (const { operation = '' } of asked) {
      const record = await ledger.readings.record(operation);
      const digest = record?.operation.digest ?? '';
      const decision = { operation, digest, kind: 'approved', by: 'Mara', strength: 'passphrase' } as const;
      expect(await ledger.decideReview(decision)).toMatchObject({ decided: true });
    }
  } finally {
    await ledger.close();
  }
}

test(
  '[S40] [S10c] forty operations caught in one outage are one cause, and are worked off as frozen lists',
  PATIENT,
  async (context) => {
    const { cause, decide, folder, lift, moveClock, world } = setup(context);
    const agent = await world.agent();
    await world.onTerminal(['passphrase', 'set'], [PASSPHRASE, PASSPHRASE]);
    await callInFlight(world, agent);
    await callDuringOutage(world, agent);
    const arrived = world.records().length;
    await until(async () => (await cause())?.counts['never_sent'] === RECORDS + CLICKS, 'all to be caught');
    // An approval holds for eight hours.
    moveClock(9 * HOUR_MS);
    await until(
      async () => (await cause())?.counts['approvals_expired'] === CLICKS,
      'the approvals to expire',
    );
    const caught = await cause();
    const causes = await world.counterfoil(['queue', '--json']);
    const shownInWords = await world.counterfoil(['queue']);
    const frozen = join(folder, 'frozen.json');
    const kept = await world.counterfoil(['queue', 'show', CAUSE, '--json']);
    writeFileSync(frozen, kept.stdout);

    expect((causes.json as { readonly causes: readonly CauseJson[] }).causes.map(({ id }) => id)).toEqual([
      CAUSE,
    ]);
    expect(caught?.counts).toEqual({
      never_sent: RECORDS + CLICKS,
      found: 0,
      needs_person: MESSAGES,
      goes_on: CHANGES,
      approvals_expired: CLICKS,
    });
    expect(caught?.list.operations).toHaveLength(40);
    expect(shownInWords.stdout).toContain(
      `No answer from cutover (40)  ${CAUSE}\n  24 never sent (10 of them with an approval that has expired) · 8 need a person · 8 go on by themselves.`,
    );
    expect(arrived).toBe(CHANGES + MESSAGES);

    // One person works on it; another one is told so.
    const claimed = await world.counterfoil(['queue', 'claim', CAUSE, '--by', 'Mara']);
    const refused = await decide(
      'queue',
      'close-unknown',
      CAUSE,
      '--digest',
      (await cause())?.list.digest ?? '',
      '--by',
      'Luis',
    );
    expect(claimed.stdout).toMatch(/^cause_no_answer@cutover {2}Claimed by Mara until /);
    expect(refused.code).toBe(5);
    expect(refused.stdout).toMatch(/left out: its cause is claimed by Mara until /);

    lift();
    await until(() => world.records('update_dns_record').length === RECORDS, 'what was never sent to go');
    // Look-ups go on by themselves, and now where a person asks for it.
    const lookedUp = await world.counterfoil(['queue', 'look-up', '--list', frozen, '--by', 'Luis']);
    await until(
      async () => (await cause())?.counts['found'] === CHANGES,
      'the look-ups to find what arrived',
    );
    await until(
      async () => (await cause())?.list.operations.length === MESSAGES + CLICKS,
      'all that goes on by itself',
    );
    const returned = await cause();
    expect(returned?.counts).toEqual({
      never_sent: CLICKS,
      found: CHANGES,
      needs_person: MESSAGES,
      goes_on: 0,
      approvals_expired: CLICKS,
    });
    expect(lookedUp.code).toBe(0);
    expect(lookedUp.stdout).toContain('The running gateway to cutover looks now.');
    expect(world.records('click')).toEqual([]);

    // One decision over the list as it was frozen: what has changed since is left out and listed.
    const renewed = await decide('queue', 'renew', '--list', frozen, '--by', 'Mara', '--json');
    const { done, left_out: leftOut } = renewed.json as {
      readonly done: readonly { readonly operation: string }[];
      readonly left_out: readonly { readonly operation: string; readonly why: string }[];
    };
    expect(renewed.stderr).toBe('');
    expect(renewed.screen).toMatch(
      /One decision for \d+ operations, each exactly as it is shown:[^]*"Switch 9"/,
    );
    expect(done).toHaveLength(CLICKS);
    // The messages too: they were looked at, and nothing can be looked up of them.
    expect(leftOut).toHaveLength(CHANGES + RECORDS + MESSAGES);
    expect(new Set(leftOut.map(({ why }) => why))).toEqual(new Set(['changed']));
    await until(() => world.records('click').length === CLICKS, 'what was renewed to go');
    const [one] = done;
    await until(async () => (await world.show(one?.operation))?.operation.stage === 'closed', 'the answers');
    expect((await world.show(one?.operation))?.operation).toMatchObject({
      effect: 'accepted',
      review: {
        because: { code: 'approval_expired' },
        decision: { by: 'Mara', strength: 'passphrase', list: expect.stringMatching(/^[0-9a-f]{64}$/) },
      },
    });

    // What nobody can look up is for a person.
    await until(async () => (await cause())?.list.operations.length === MESSAGES, 'only these to be left');
    const stated = await decide(
      ...['queue', 'resolve', CAUSE, '--digest', (await cause())?.list.digest.slice(0, 12) ?? ''],
      ...['--happened', '--looked-at', 'the channels', '--by', 'Mara', '--json'],
    );
    const statedOperations = (stated.json as { readonly done: readonly object[] }).done;
    expect(stated.code).toBe(0);
    expect(statedOperations).toHaveLength(MESSAGES);
    for (const each of statedOperations) {
      expect(each).toMatchObject({
        stage: 'closed',
        effect: 'unknown',
        resolution: { strength: 'passphrase' },
      });
    }
    expect(await cause()).toBeUndefined();

    const held = await heldBy(world);
    const unique = new Set(
      held.map((record) => JSON.stringify({ ...record, id: undefined, clicks: undefined })),
    );
    expect(held).toHaveLength(40);
    expect(unique.size).toBe(40);
    const fired = (tool: string): number =>
      world.entries().filter((entry) => entry.event === 'fault' && 'on' in entry && entry.on === tool).length;
    expect(fired('raise_change_request')).toBe(CHANGES);
    expect(fired('notify_team')).toBe(MESSAGES);
    expect(fired('start')).toBeGreaterThan(0);
  },
);
