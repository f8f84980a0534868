// The points at which a drill may stop the work. `reached(point)` does nothing in production; drill and tests
// iterate over this list, so that no point can be forgotten.

export const STOPPING_POINTS = [
  'call_read',
  'before_propose_commit',
  'proposed',
  'before_decision_commit',
  'decided',
  'before_attempt_commit',
  'attempt_recorded',
  'bytes_left',
  'reply_received',
  'before_outcome_commit',
  'outcome_recorded',
  'before_lookup',
  'lookup_answered',
  'before_readback',
  'readback_answered',
  'before_answer',
  'answered',
] as const;

export type StoppingPoint = (typeof STOPPING_POINTS)[number];

export type Reached = (point: StoppingPoint) => void;
