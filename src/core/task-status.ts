// What an operation looks like to a client that runs its call as a task: still on its way, or ended, and how.

import type { Operation } from './operation.ts';

/**
 * The words of the protocol. `completed` says that there is an answer, whatever is in it: an outcome that is unknown
 * is never `failed`, which is kept for an error of the protocol that the destination itself has answered with.
 */
export type TaskEnd = 'completed' | 'failed' | 'cancelled';
export type TaskStatus = 'working' | TaskEnd;

/** `undefined` while the operation goes on by itself, or as soon as a person has decided about it. */
export function taskEndOf(operation: Operation, isProtocolError: boolean): TaskEnd | undefined {
  const { effect, stage, why } = operation;
  // With a person, for nobody knows how long: its caller is told so and waits no more.
  if (stage === 'parked') return 'completed';
  if (stage !== 'closed') return undefined;
  if (effect === 'not_sent' && why?.code === 'withdrawn_by_caller') return 'cancelled';
  return isProtocolError ? 'failed' : 'completed';
}
