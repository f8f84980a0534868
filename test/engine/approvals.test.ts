// Decisions, and what attacks them: each counts what the destination holds.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { afterEach, describe, expect, onTestFinished, test } from 'vitest';
import type { Operation } from '../../src/core/operation.ts';
import type { StoppingPoint } from '../../src/core/stopping-points.ts';
import { functionDestination } from '../../src/destination/function-destination.ts';
import type { DecisionResult, Ledger, ReviewDecision } from '../../src/engine/ledger.ts';
import { alterContent, alterPayloads, alterStates } from './places.ts';
import { type Fixture, factsOf, lookedUpBy, operationOf, setup, until } from './setup.ts';

const STEP = { run: { id: 'cutover-1', step: 'decommission', single: true } };

let fixture: Fixture | undefined;
afterEach(async () => {
  await fixture?.close();
  fixture = undefined;
});

async function start(options: Parameters<typeof setup>[0] = {}): Promise<Fixture> {
  fixture = await setup(options);
  return fixture;
}

function decision({ digest, id }: Operation, more: Partial<ReviewDecision> = {}): ReviewDecision {
  return { operation: id, digest, kind: 'approved', by: 'Mara', strength: 'passphrase', ...more };
}

/** Asked, approved, and refused by the destination's connection, so that it waits under its approval. */
async function approvedAndWaiting({ faults, ledger, write }: Fixture): Promise<Operation> {
  const asked = operationOf(await write('destroy', { vm: 'a' }));
  faults.push('refuse');
  expect(await ledger.decideReview(decision(asked))).toMatchObject({ decided: true });
  return until(ledger, asked.id, ({ attempts, stage }) => stage === 'ready' && attempts.length === 1);
}

/** Every decision of the history, whatever the state shows now. */
async function decisionsOf(ledger: Ledger, id: string): Promise<readonly string[]> {
  const history = await ledger.readings.history(id);
  return history.flatMap(({ event }) =>
    event.type === 'approved' || event.type === 'denied' ? [event.decision.by] : [],
  );
}

describe('of a hundred decisions at once', () => {
  type Told = Pick<Extract<DecisionResult, { decided: false }>, 'decided' | 'refusal'> & {
    readonly decision: unknown;
  };

  test('one is taken and ninety-nine are shown it, in one process and in two on one file (I15)', async () => {
    const world = await start({ onDisk: true });
    const asked = operationOf(await world.write('destroy', { vm: 'a' }));
    const child = spawn(
      process.execPath,
      [
        fileURLToPath(new URL('fixtures/decider.mjs', import.meta.url)),
        ...[world.data, asked.id, asked.digest, '50'],
      ],
      { stdio: ['pipe', 'pipe', 'inherit'] },
    );
    onTestFinished(() => void child.kill('SIGKILL'));
    const lines = createInterface({ input: child.stdout });
    await once(lines, 'line');
    const theirs = once(lines, 'line') as Promise<[string]>;
    const second = await world.open({ destinations: [] });
    child.stdin.write('go\n');
    const here = await Promise.all(
      Array.from({ length: 50 }, (_, index) =>
        (index % 3 === 0 ? second : world.ledger).decideReview(
          decision(asked, { kind: index % 2 === 0 ? 'approved' : 'denied', by: `one-${index}` }),
        ),
      ),
    );
    const told: readonly Told[] = [
      ...here.map((result) => ({ ...result, decision: result.operation?.review?.decision }) as Told),
      ...(JSON.parse((await theirs)[0]) as Told[]),
    ];
    const taken = told.filter(({ decided }) => decided as boolean);
    expect(told).toHaveLength(100);
    expect(taken).toHaveLength(1);
    const winner = taken[0]?.decision as NonNullable<NonNullable<Operation['review']>['decision']>;
    for (const each of told) {
      expect(each.decision).toEqual(winner);
      if (!(each.decided as boolean)) expect(each.refusal).toBe('already_decided');
    }
    expect(await decisionsOf(world.ledger, asked.id)).toEqual([winner.by]);
    await until(world.ledger, asked.id, ({ stage }) => stage === 'closed');
    expect(world.records).toHaveLength(winner.kind === 'approved' ? 1 : 0);
  });
});

describe('a decision', () => {
  test('that is forged, or addressed by a position, a tool or a run, decides nothing', async () => {
    const { ledger, records, write } = await start();
    const first = operationOf(await write('destroy', { vm: 'a' }));
    const second = operationOf(await write('destroy', { vm: 'b' }));
    const refusals: string[] = [];
    for (const forged of [
      decision(first, { digest: second.digest }),
      decision(second, { digest: first.digest }),
      decision(first, { digest: '' }),
      decision(first, { digest: first.digest.slice(0, 11) }),
      decision(first, { digest: 'f'.repeat(64) }),
      decision(first, { review: second.review?.id ?? '' }),
      ...['0', '1', 'destroy', 'cab', first.run.id].map((operation) => decision(first, { operation })),
    ]) {
      const result = await ledger.decideReview(forged);
      refusals.push(result.decided ? 'decided' : result.refusal);
    }
    expect(refusals).toEqual([
      ...['digest_differs', 'digest_differs', 'digest_too_short', 'digest_too_short', 'digest_differs'],
      'review_differs',
      ...Array.from({ length: 5 }, () => 'not_found'),
    ]);
    for (const { id } of [first, second])
      expect((await ledger.readings.record(id))?.operation.stage).toBe('awaiting_approval');
    expect(records).toEqual([]);
  });

  test('that is replayed after the approval has expired, or was revoked, decides nothing anew', async () => {
    const world = await start({ settings: { approvalLifetimeMs: 60_000 } });
    const { ledger, moveClock, records } = world;
    world.faults.push(...Array.from({ length: 20 }, () => 'refuse' as const));
    const asked = await approvedAndWaiting(world);
    const replayed = decision(asked);
    moveClock(61_000);
    const held = await until(ledger, asked.id, ({ review }) => review?.because !== undefined);
    expect(held.review?.because?.code).toBe('approval_expired');
    expect(await ledger.decideReview(replayed)).toMatchObject({ refusal: 'review_differs' });
    const named = decision(asked, { review: asked.review?.id ?? '' });
    expect(await ledger.decideReview(named)).toMatchObject({ refusal: 'review_differs' });
    // Who has looked at the review that is open now decides it.
    expect(await ledger.decideReview(decision(asked, { review: held.review?.id ?? '' }))).toMatchObject({
      decided: true,
    });
    const revoked = await ledger.revocations.revoke({ ...decision(asked), by: 'Luis' });
    expect(revoked).toMatchObject({ revoked: true, isRepeat: false });
    expect(await ledger.decideReview(replayed)).toMatchObject({ refusal: 'review_differs' });
    expect(records).toEqual([]);
  });

  test('after its review has ended decides nothing', async () => {
    const { ledger, moveClock, records, write } = await start({ settings: { approvalLifetimeMs: 60_000 } });
    const asked = operationOf(await write('destroy', { vm: 'a' }));
    moveClock(60_001);
    const late = await ledger.decideReview(decision(asked));
    expect(late).toMatchObject({ refusal: expect.stringMatching(/review_expired|no_open_review/) });
    await until(ledger, asked.id, ({ stage }) => stage === 'closed');
    expect(records).toEqual([]);
  });

  test('is for what was asked: arguments, target or tool that a replay changes have no approval', async () => {
    const world = await start({
      facts: { erase_all: factsOf('erase_all', { class: 'irreversible' }) },
    });
    const { ledger, records, write } = world;
    const asked = operationOf(await write('destroy', { vm: 'a' }, STEP));
    const changed = [
      operationOf(await write('destroy', { vm: 'b' }, STEP)),
      operationOf(await write('erase_all', { vm: 'b' }, STEP)),
      operationOf(await write('erase_all', { vm: 'b', force: true }, STEP)),
    ];
    expect(new Set([asked, ...changed].map(({ digest }) => digest)).size).toBe(4);
    expect(changed.map(({ stage, supersedes }) => [stage, supersedes])).toEqual([
      ['awaiting_approval', asked.id],
      ['awaiting_approval', changed[0]?.id],
      ['awaiting_approval', changed[1]?.id],
    ]);
    // A tab that still shows the first.
    expect(await ledger.decideReview(decision(asked))).toMatchObject({ refusal: 'no_open_review' });
    for (const { id } of changed)
      expect(await ledger.decideReview(decision(asked, { operation: id }))).toMatchObject({ decided: false });
    expect(records).toEqual([]);
  });

  test('that was denied stays so: asking for the work again does not send it', async () => {
    const { ledger, records, write } = await start();
    const asked = operationOf(await write('destroy', { vm: 'a' }, STEP));
    await ledger.decideReview(decision(asked, { kind: 'denied' }));
    expect(operationOf(await write('destroy', { vm: 'a' }, STEP)).why?.code).toBe('denied');
    expect(await ledger.decideReview(decision(asked))).toMatchObject({ refusal: 'already_decided' });
    expect(records).toEqual([]);
  });

  test('carries its work once, however often the work is resumed after it', async () => {
    const { ledger, records, write } = await start();
    const asked = operationOf(await write('destroy', { vm: 'a' }, STEP));
    await ledger.decideReview(decision(asked));
    const resumed = await Promise.all(
      Array.from({ length: 8 }, (_, index) =>
        write('destroy', { vm: 'a' }, { ...STEP, replays: [`call-${index}`] }),
      ),
    );
    expect(new Set(resumed.map((answer) => operationOf(answer).id))).toEqual(new Set([asked.id]));
    await until(ledger, asked.id, ({ stage }) => stage === 'closed');
    await write('destroy', { vm: 'a' }, STEP);
    expect(records).toEqual([{ vm: 'a' }]);
  });

  test('by somebody at the same account allows nothing that cannot be taken back', async () => {
    const { ledger, records, write } = await start();
    const asked = operationOf(await write('destroy', { vm: 'a' }));
    const weak = decision(asked, { strength: 'same_account' });
    expect(await ledger.decideReview(weak)).toMatchObject({ refusal: 'strength_too_low' });
    expect((await ledger.readings.record(asked.id))?.operation.stage).toBe('awaiting_approval');
    expect(records).toEqual([]);
  });
});

describe('a payload or digest that was altered behind the ledger’s back', () => {
  const ALTERED: readonly (readonly [string, (data: string) => Promise<void>])[] = [
    ['the payload', (data: string) => alterPayloads(data, '{"vm":"b"}')],
    ['the payload, which was emptied', (data: string) => alterPayloads(data, '')],
    ['the digest that was decided on', (data: string) => alterStates(data, '"digest":"', '"digest":"0')],
  ];

  test.each(ALTERED)('%s: nothing is sent, and it is parked and named', async (_what, alterIn) => {
    const world = await start({ onDisk: true });
    const { data, ledger, records } = world;
    const waiting = await approvedAndWaiting(world);
    await alterIn(data);
    const parked = await until(ledger, waiting.id, ({ stage }) => stage === 'parked');
    expect([parked.why?.code, parked.effect]).toEqual(['digest_mismatch', 'not_sent']);
    const { groups } = await ledger.queue.read();
    expect(groups.map(({ cause }) => cause.kind)).toContain('digest_mismatch');
    expect(records).toEqual([]);
  });
});

describe('a target that was read for its review', () => {
  const facts = factsOf('set_due', {
    class: 'irreversible',
    target: { type: 'task', id: ['{id}'] },
    operation: lookedUpBy({
      effect: 'update',
      lookups: [],
      readback: {
        tool: { name: 'get', arguments: { id: '{id}' } },
        matches: [{ from: 'json', path: '/due', equals: '{due}' }],
        evidence: { grade: 'source' },
      },
    }),
  });

  async function reviewed() {
    const world = await start({ onDisk: true });
    const task = { due: 'Fri' };
    const sent: unknown[] = [];
    let isHeld = false;
    let known = facts;
    let get = (): unknown => ({ content: [{ type: 'text', text: JSON.stringify(task) }] });
    const ledger = await world.open({
      destinations: [
        functionDestination({
          name: 'cab',
          tools: { set_due: (args) => (sent.push(args), { content: [{ type: 'text', text: 'done' }] }) },
          asks: { get: () => (isHeld ? Promise.reject(new Error('no answer')) : get()) },
        }),
      ],
      factsFor: () => known,
      report: () => {},
    });
    const call = {
      destination: 'cab',
      tool: 'set_due',
      arguments: { id: '443', due: 'Mon' },
      requester: 'agent',
    };
    const asked = operationOf(await ledger.write(call));
    return {
      ...world,
      /** Nothing is carried on with before the release: the destination says nothing. */
      hold: () => {
        isHeld = true;
      },
      release: () => {
        isHeld = false;
      },
      asked,
      ledger,
      sent,
      task,
      /** The contract no longer says how it is read. */
      forgets: () => {
        known = factsOf('set_due', { class: 'irreversible' });
      },
      answers: (next: () => unknown) => void (get = next),
    };
  }

  test('and has not changed is written, under a decision that keeps what was shown', async () => {
    const { asked, ledger, sent } = await reviewed();
    const shown = (await ledger.readings.operation(asked.id))?.shown?.join('\n');
    expect(shown).toContain('due: "Fri" → "Mon"');
    await ledger.decideReview(decision(asked));
    const closed = await until(ledger, asked.id, ({ attempts }) => attempts.length > 0);
    expect(closed.review?.decision?.shown).toBe(asked.review?.shown);
    await until(ledger, asked.id, ({ stage }) => stage === 'closed');
    expect(sent).toHaveLength(1);
  });

  test('and has changed is held; a denial then ends it', async () => {
    const { asked, ledger, sent, task } = await reviewed();
    task.due = 'Tue';
    await ledger.decideReview(decision(asked));
    const held = await until(ledger, asked.id, ({ review }) => review?.because !== undefined);
    expect(held.review?.because).toEqual({ code: 'target_changed', fields: ['due'] });
    const shown = (await ledger.readings.operation(asked.id))?.shown?.join('\n');
    expect(shown).toContain('The target changed after the review: field "due".');
    expect(shown).toContain('due: "Tue" → "Mon"');
    expect(await ledger.decideReview(decision(asked, { kind: 'denied' }))).toMatchObject({ decided: true });
    expect(sent).toEqual([]);
  });

  test('and has changed after a revocation is held all the same, once somebody has approved it again', async () => {
    const { asked, ledger, sent, task, ...world } = await reviewed();
    world.hold();
    await ledger.decideReview(decision(asked));
    const revoked = await ledger.revocations.revoke(decision(asked));
    const { review } = revoked.revoked ? revoked.operation : asked;
    expect(review).toMatchObject({ because: { code: 'approval_revoked' }, seen: asked.review?.seen });
    task.due = 'Tue';
    world.release();
    await ledger.decideReview(decision(asked, { review: review?.id ?? '' }));
    const held = await until(ledger, asked.id, (one) => one.review?.because?.code === 'target_changed');
    expect(held.attempts).toEqual([]);
    expect(sent).toEqual([]);
  });

  test('and cannot be read any more is held; and waits, named, while its destination says nothing', async () => {
    const gone = await reviewed();
    gone.answers(() => ({ isError: true, content: [{ type: 'text', text: 'no such task' }] }));
    await gone.ledger.decideReview(decision(gone.asked));
    const held = await until(gone.ledger, gone.asked.id, ({ review }) => review?.because !== undefined);
    expect(held.review?.because).toEqual({ code: 'target_unreadable' });
    expect(gone.sent).toEqual([]);
    await gone.close();
    const untold = await reviewed();
    untold.forgets();
    await untold.ledger.decideReview(decision(untold.asked));
    await until(
      untold.ledger,
      untold.asked.id,
      ({ review }) => review?.because?.code === 'target_unreadable',
    );
    expect(untold.sent).toEqual([]);
    await untold.close();
    const silent = await reviewed();
    silent.answers(() => {
      throw new Error('no answer');
    });
    await silent.ledger.decideReview(decision(silent.asked));
    const waiting = await until(
      silent.ledger,
      silent.asked.id,
      ({ why }) => why?.code === 'waits_for_destination',
    );
    expect(waiting).toMatchObject({ stage: 'ready', effect: 'not_sent' });
    expect(silent.sent).toEqual([]);
  });

  test('and whose reading or text was altered behind the ledger’s back is held, and the text is not shown', async () => {
    const { asked, data, ledger, sent } = await reviewed();
    await alterContent(data, 'before', '{"fields":[{"at":"due","now":"Fri"}]}');
    await alterContent(data, 'review', 'Nothing is sent.');
    expect((await ledger.readings.operation(asked.id))?.shown).toBeUndefined();
    await ledger.decideReview(decision(asked));
    const held = await until(ledger, asked.id, ({ review }) => review?.because !== undefined);
    expect(held.review?.because).toEqual({ code: 'target_unreadable' });
    expect(sent).toEqual([]);
  });
});

describe('a revoked approval', () => {
  /** From the decision to the outcome, in order; `sent`: the destination has it by then. */
  const POINTS: readonly (readonly [StoppingPoint, sent: boolean])[] = [
    ['decided', false],
    ['before_attempt_commit', false],
    ['attempt_recorded', false],
    ['bytes_left', true],
    ['reply_received', true],
    ['before_outcome_commit', true],
  ];

  test.each(POINTS)('at %s: no attempt starts after it', async (stopAt, isSent) => {
    let isStopped = false;
    const world = await start({ onDisk: true });
    const { records } = world;
    // Whoever carries it on ends at this point each time, until its approval has been revoked.
    const ends = (point: StoppingPoint): void => {
      if (isStopped && point === stopAt) throw new Error(`the drill ends here: ${point}`);
    };
    const first = await world.open({ reached: ends, report: () => {} });
    const answer = await first.write({
      destination: 'cab',
      tool: 'destroy',
      arguments: { vm: 'a' },
      requester: 'agent',
    });
    const asked = operationOf(answer);
    isStopped = true;
    await first.decideReview(decision(asked)).catch(() => {});
    if (stopAt !== 'decided' && stopAt !== 'before_attempt_commit')
      await until(first, asked.id, ({ attempts }) => attempts.length > 0);
    const revoked = await first.revocations.revoke({ ...decision(asked), by: 'Luis' });
    expect(revoked.revoked).toBe(true);
    const before = (await first.readings.record(asked.id))?.operation.attempts.length ?? 0;
    isStopped = false;
    const settled = await until(
      first,
      asked.id,
      ({ stage }) => stage === 'awaiting_approval' || stage === 'parked' || stage === 'closed',
    );
    expect(settled.attempts).toHaveLength(before);
    expect(records).toHaveLength(isSent ? 1 : 0);
    if (!isSent) expect(settled.review?.because).toEqual({ code: 'approval_revoked', by: 'Luis' });
  });

  test('is revoked once, whoever else tries, and what is closed has nothing to revoke', async () => {
    const world = await start();
    const { ledger, write } = world;
    const waiting = await approvedAndWaiting(world);
    const tried = await Promise.all(
      Array.from({ length: 20 }, (_, index) =>
        ledger.revocations.revoke({ ...decision(waiting), by: `one-${index}` }),
      ),
    );
    const first = tried.find((each) => each.revoked && !each.isRepeat);
    const by = first?.revoked === true ? first.revocation.by : '';
    expect(tried.filter((each) => each.revoked && !each.isRepeat)).toHaveLength(1);
    for (const each of tried) expect(each).toMatchObject({ revoked: true, revocation: { by } });
    const done = operationOf(await write('destroy', { vm: 'b' }));
    expect(await ledger.revocations.revoke(decision(done))).toMatchObject({ refusal: 'no_approval' });
    await ledger.decideReview(decision(done));
    await until(ledger, done.id, ({ stage }) => stage === 'closed');
    expect(await ledger.revocations.revoke(decision(done))).toMatchObject({ refusal: 'not_at_this_stage' });
    expect(world.records).toEqual([{ vm: 'b' }]);
  });
});
