// S4: the gateway (or the command that decides) is killed by SIGKILL at every stopping point that a write can
// reach, and started again twice; then the caller asks again. What is right is judged in one place, and the
// judge itself is tried on a recovery that is wrong on purpose.

import { describe, expect, type TestContext, test } from 'vitest';
import { makeWorld, type Shown, type World, within } from '../../demo/world.mjs';
import { STOPPING_POINTS, type StoppingPoint } from '../../src/core/stopping-points.ts';
import { CHANGE, heldBy, OLD_MACHINE, RUN, STORY, setup, shown } from './harness.ts';

/** A way on which a write comes by a point. `told`: how the caller may be answered in the end. */
interface Way {
  readonly tool: 'raise_change_request' | 'decommission_vm';
  readonly args: object;
  readonly isReplyLost?: boolean;
  /** Who is killed: the gateway in the call, the gateway after the decision, or the command that decides. */
  readonly killed: 'in_call' | 'after_decision' | 'deciding';
}

const PLAIN: Way = { tool: 'raise_change_request', args: CHANGE, killed: 'in_call' };
const LOST: Way = { ...PLAIN, isReplyLost: true };
const DECIDING: Way = { tool: 'decommission_vm', args: OLD_MACHINE, killed: 'deciding' };
const DECIDED: Way = { ...DECIDING, killed: 'after_decision' };

/** Every point of the list has a way to it: a new one does not compile until it has one, too. */
const WAYS: { readonly [point in StoppingPoint]: Way } = {
  call_read: PLAIN,
  before_propose_commit: PLAIN,
  proposed: PLAIN,
  before_decision_commit: DECIDING,
  decided: DECIDING,
  before_attempt_commit: DECIDED,
  attempt_recorded: PLAIN,
  bytes_left: PLAIN,
  reply_received: PLAIN,
  before_outcome_commit: PLAIN,
  outcome_recorded: PLAIN,
  before_lookup: LOST,
  lookup_answered: LOST,
  before_readback: PLAIN,
  readback_answered: PLAIN,
  before_answer: PLAIN,
  answered: PLAIN,
};

/** Nothing of the call is in the ledger yet when the process ends here. */
const UNRECORDED: readonly StoppingPoint[] = ['call_read', 'before_propose_commit'];

const SAID = { ...RUN, step: 'the step', single: true, call: 'call-1' };

interface Found {
  readonly point: StoppingPoint;
  /** What the ledger showed between the kill and the next start, and what the destination held then. */
  readonly atKill: Shown | undefined;
  readonly heldAtKill: number;
  readonly atEnd: Shown | undefined;
  readonly heldAtEnd: number;
  readonly told: string;
}

/** Every reason why a kill was not survived as promised. */
function judge({ point, atKill, heldAtKill, atEnd, heldAtEnd, told }: Found): readonly string[] {
  const complaints: string[] = [];
  if (heldAtEnd !== 1) complaints.push(`the destination holds ${heldAtEnd} records`);
  if (atKill === undefined && !UNRECORDED.includes(point)) complaints.push('the operation was lost');
  if (atKill !== undefined && UNRECORDED.includes(point)) complaints.push('an operation was there too early');
  if (heldAtKill > 0 && atKill === undefined) complaints.push('it was sent before it was recorded');
  const claimed = atKill?.operation.effect;
  if (heldAtKill > 0 && claimed !== undefined && !['unknown', 'accepted', 'verified'].includes(claimed)) {
    complaints.push(`after the kill the ledger said ${claimed} of a write that had happened`);
  }
  if (heldAtKill === 0 && (claimed === 'accepted' || claimed === 'verified')) {
    complaints.push(`after the kill the ledger said ${claimed} of a write that had not happened`);
  }
  if (atKill !== undefined && atEnd?.operation.id !== atKill.operation.id)
    complaints.push('another operation took its place');
  if (atEnd?.operation.effect !== 'verified') complaints.push(`the ledger says ${atEnd?.operation.effect}`);
  if (!/^(ALREADY_EXISTS — |\{"(id":"CHG-1042|vm":"vm-17)")/.test(told))
    complaints.push(`the caller was told: ${told}`);
  return complaints;
}

const fired = new Set<StoppingPoint>();

/** Does what leads to the point; when it resolves, the process that was to be killed is gone by SIGKILL. */
async function killAt(world: World, point: StoppingPoint): Promise<void> {
  const { tool, args, isReplyLost, killed } = WAYS[point];
  if (isReplyLost === true) world.plan({ on: tool, do: 'lose_reply' });
  const agent = await world.agent(killed === 'deciding' ? {} : { crashAt: point });
  const call = agent.call(tool, args, SAID);
  if (killed === 'in_call') {
    call.catch(() => {});
    await within(agent.lost, `the gateway to be killed at ${point}`);
  } else {
    const { operation } = await call;
    const { digest } = await shown(world, operation);
    const env = killed === 'deciding' ? { COUNTERFOIL_DRILL_CRASH_AT: point } : {};
    const decided = await world.approve(operation ?? '', digest, 'demo owner', env);
    if (killed === 'deciding') {
      if (decided.signal !== 'SIGKILL')
        throw new Error(`The command was not killed at ${point}: ${decided.stderr}`);
      await agent.kill();
    } else {
      await within(agent.lost, `the gateway to be killed at ${point}`);
    }
  }
  fired.add(point);
}

/**
 * Starts again twice, asks again, and looks.
 * @param secondKill where the first successor is killed in its turn; as soon as it has started, when absent
 */
async function recover(world: World, point: StoppingPoint, secondKill?: StoppingPoint): Promise<Found> {
  const { tool, args } = WAYS[point];
  const atKill = await world.show();
  const heldAtKill = world.records().length;
  const second = await world.agent(secondKill === undefined ? {} : { crashAt: secondKill });
  if (secondKill === undefined) await second.kill();
  else await within(second.lost, `the first successor to be killed at ${secondKill}`);
  const third = await world.agent();
  let answer = await third.call(tool, args, SAID);
  if (answer.text.startsWith('NOT SENT YET — waiting for a person')) {
    // The decision died with the command that made it: the owner decides again, on the same operation.
    const asked = await shown(world, answer.operation);
    await world.approve(asked.operation.id, asked.digest, 'demo owner');
    await third.call('counterfoil_operation_status', { operation: asked.operation.id, wait_s: 15 });
    answer = await third.call(tool, args, SAID);
  }
  const atEnd = await world.show();
  const heldAtEnd = (await heldBy(world)).length;
  return { point, atKill, heldAtKill, atEnd, heldAtEnd, told: answer.text };
}

/** A recovery that is wrong on purpose: what is unknown is taken for not sent, and sent again past the ledger. */
async function recoverNaively(context: TestContext, world: World, point: StoppingPoint): Promise<Found> {
  const { tool, args } = WAYS[point];
  const direct = makeWorld({ folder: world.folder, gateway: false });
  context.onTestFinished(() => direct.close());
  const agent = await direct.agent();
  await agent.call(tool, args);
  return recover(world, point);
}

describe.concurrent('the gateway is killed, started again twice, and asked again', STORY, () => {
  for (const point of STOPPING_POINTS) {
    test(`[S4] killed at ${point}: one record, nothing lost, and the truth is told`, async (context) => {
      const world = setup(context);
      await killAt(world, point);
      const found = await recover(world, point);
      expect(judge(found)).toEqual([]);
    });
  }
});

describe.concurrent('the first successor is killed in the middle of its recovery', STORY, () => {
  test.for([
    ['bytes_left', 'before_lookup'],
    ['bytes_left', 'before_outcome_commit'],
    ['attempt_recorded', 'before_attempt_commit'],
    ['attempt_recorded', 'bytes_left'],
  ] as const)(
    '[S4] killed at %s and then at %s: one record, nothing lost',
    async ([point, second], context) => {
      const world = setup(context);
      await killAt(world, point);
      const found = await recover(world, point, second);
      expect(judge(found)).toEqual([]);
      expect(world.faultsFired()).toBe(2);
    },
  );
});

describe.concurrent('a recovery that takes the unknown for not sent', STORY, () => {
  for (const point of ['bytes_left', 'before_outcome_commit', 'before_lookup'] as const) {
    test(`[S4] is found out when the kill was at ${point}`, async (context) => {
      const world = setup(context);
      await killAt(world, point);
      const found = await recoverNaively(context, world, point);
      expect(judge(found)).toContain('the destination holds 2 records');
    });
  }
});

test('[S4] every stopping point was reached, and its kill fired', () => {
  expect([...fired].toSorted()).toEqual([...STOPPING_POINTS].toSorted());
});
