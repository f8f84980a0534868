// What `counterfoil demo` tells: what an agent does, which fault falls on it, and what must be there in the end.

import type { StoppingPoint } from '../core/stopping-points.ts';
import type { Meant } from './demo-judge.ts';
import type { StoryWorld } from './story-world.ts';

export interface Story extends Meant {
  /** @returns what the agent was told, call by call; `undefined` where the connection ended */
  readonly act: (world: StoryWorld) => Promise<readonly (string | undefined)[]>;
}

type Call = readonly [tool: string, args: { readonly [name: string]: string }];

const NOTE: Call = ['add_note', { text: 'The cutover begins at 22:00 UTC.' }];
const OTHER_NOTE: Call = ['add_note', { text: 'The cutover is done.' }];
const MESSAGE: Call = ['post_message', { text: 'We begin.' }];
const AT_ONCE = 16;

/** Calls one after the other, as agents do: a connection that has ended is opened anew, and the call made again. */
async function inTurn(
  world: StoryWorld,
  calls: readonly Call[],
  crashAt?: StoppingPoint,
): Promise<readonly (string | undefined)[]> {
  const answers: (string | undefined)[] = [];
  let client = await world.agent(crashAt);
  for (const [index, [tool, args]] of calls.entries()) {
    const answer = await client.call(tool, args);
    answers.push(answer);
    if (answer !== undefined) continue;
    if (crashAt !== undefined) world.kills += 1;
    if (index < calls.length - 1) client = await world.agent();
  }
  await client.end();
  return answers;
}

async function atOnce(world: StoryWorld, [tool, args]: Call): Promise<readonly (string | undefined)[]> {
  const client = await world.agent();
  const answers = await Promise.all(Array.from({ length: AT_ONCE }, () => client.call(tool, args)));
  await client.end();
  return answers;
}

async function withLostAnswer(world: StoryWorld, call: Call): Promise<readonly (string | undefined)[]> {
  world.loseNextAnswer();
  return inTurn(world, [call, call]);
}

export const STORIES: readonly Story[] = [
  {
    id: 'S1',
    title: 'The note is made, its answer is lost, it is asked for again',
    expectedRecords: 1,
    without: 2,
    effect: 'verified',
    operations: 1,
    faults: 1,
    told: 'ALREADY_EXISTS',
    act: (world) => withLostAnswer(world, NOTE),
  },
  {
    id: 'S3',
    title: 'The same with a message that nobody can look up',
    expectedRecords: 1,
    without: 2,
    effect: 'unknown',
    operations: 1,
    faults: 1,
    told: 'OUTCOME UNKNOWN',
    act: (world) => withLostAnswer(world, MESSAGE),
  },
  {
    id: 'S4',
    title: 'SIGKILL of the gateway in mid-send, then the same call',
    expectedRecords: 1,
    effect: 'verified',
    operations: 1,
    faults: 1,
    told: 'ALREADY_EXISTS',
    act: (world) => inTurn(world, [NOTE, NOTE], 'bytes_left'),
  },
  {
    id: 'S4',
    title: 'SIGKILL before anything left, then the same call',
    expectedRecords: 1,
    effect: 'verified',
    operations: 1,
    faults: 1,
    told: '{"id":"NOTE-1"',
    act: (world) => inTurn(world, [NOTE, NOTE], 'attempt_recorded'),
  },
  {
    id: 'S21',
    title: `${AT_ONCE} equal calls at once`,
    expectedRecords: 1,
    without: AT_ONCE,
    effect: 'verified',
    operations: 1,
    faults: 0,
    told: 'ALREADY_EXISTS',
    act: (world) => atOnce(world, NOTE),
  },
  {
    id: '',
    title: 'Two notes that differ, both of them meant',
    expectedRecords: 2,
    without: 2,
    effect: 'verified',
    operations: 2,
    faults: 0,
    told: '{"id":"NOTE-2"',
    act: (world) => inTurn(world, [NOTE, OTHER_NOTE]),
  },
  {
    id: '',
    title: 'What cannot be taken back, and nobody has approved',
    expectedRecords: 0,
    without: 1,
    effect: 'not_sent',
    operations: 1,
    faults: 0,
    told: 'NOT SENT YET',
    act: (world) => inTurn(world, [['erase_notes', {}]]),
  },
];
