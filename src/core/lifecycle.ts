// Which effects a stage may show, and which events move an operation from stage to stage: D4 as data.
//
// The documentation's table and diagram are generated from here, and tests run over every stage × event.

export const STAGES = [
  'proposed',
  'awaiting_approval',
  'held',
  'ready',
  'sending',
  'checking',
  'parked',
  'closed',
] as const;
export type Stage = (typeof STAGES)[number];

export const EFFECTS = [
  'not_sent',
  'unknown',
  'error_reported',
  'accepted',
  'verified',
  'rejected',
  'absent',
  'diverged',
] as const;
export type Effect = (typeof EFFECTS)[number];

/** What a named person has stated (D4). It never changes `effect`. */
export const RESOLUTIONS = ['stated_happened', 'stated_not_happened', 'stated_other_change'] as const;
export type Resolution = (typeof RESOLUTIONS)[number];

const NOTHING_ON_ITS_WAY = ['not_sent', 'rejected', 'absent'] as const;

/**
 * `always`: allowed without more. `bySomebody`: allowed only where a named person's act stands behind it: an
 * order to send again after "it did not happen", or the closing of what is not known; and where it is ready, a guard of
 * the destination under which it is repeated (D7).
 */
export const STAGE_EFFECTS: {
  readonly [stage in Stage]: { readonly always: readonly Effect[]; readonly bySomebody: readonly Effect[] };
} = {
  proposed: { always: NOTHING_ON_ITS_WAY, bySomebody: ['unknown'] },
  awaiting_approval: { always: NOTHING_ON_ITS_WAY, bySomebody: ['unknown'] },
  held: { always: NOTHING_ON_ITS_WAY, bySomebody: [] },
  ready: { always: NOTHING_ON_ITS_WAY, bySomebody: ['unknown'] },
  sending: { always: ['unknown'], bySomebody: [] },
  checking: { always: ['unknown', 'accepted'], bySomebody: [] },
  parked: { always: ['not_sent', 'rejected', 'absent', 'unknown', 'diverged'], bySomebody: [] },
  closed: {
    always: ['not_sent', 'error_reported', 'accepted', 'verified', 'rejected', 'absent'],
    bySomebody: ['unknown', 'diverged'],
  },
};

/** @param bySomebody whether a named person's order or closing stands behind this pair */
export function isAllowedPair(stage: Stage, effect: Effect, bySomebody: boolean): boolean {
  const row = STAGE_EFFECTS[stage];
  return row.always.includes(effect) || (bySomebody && row.bySomebody.includes(effect));
}

/** `from: 'none'` begins a history; `to: 'same'` leaves the stage; evidence may arrive at any stage. */
export interface Transition {
  readonly from: readonly Stage[] | 'none' | 'any';
  readonly to: Stage | 'same';
}

export const TRANSITIONS = {
  proposed: { from: 'none', to: 'proposed' },
  allowed: { from: ['proposed'], to: 'ready' },
  review_opened: { from: ['proposed', 'held'], to: 'awaiting_approval' },
  approved: { from: ['awaiting_approval'], to: 'ready' },
  approved_in_part: { from: ['awaiting_approval'], to: 'same' },
  denied: { from: ['awaiting_approval'], to: 'closed' },
  revoked: { from: ['ready', 'sending', 'checking', 'parked'], to: 'same' },
  waiting: { from: ['ready'], to: 'same' },
  held: { from: ['ready'], to: 'held' },
  attempt_started: { from: ['ready'], to: 'sending' },
  leg_recorded: { from: ['sending'], to: 'same' },
  attempt_fenced: { from: ['sending', 'parked', 'closed'], to: 'same' },
  evidence_recorded: { from: 'any', to: 'same' },
  checking: { from: ['sending', 'checking'], to: 'checking' },
  sending_again: { from: ['sending', 'checking'], to: 'ready' },
  parked: { from: 'any', to: 'parked' },
  closed: {
    from: ['proposed', 'awaiting_approval', 'held', 'ready', 'sending', 'checking', 'parked'],
    to: 'closed',
  },
  reopened: { from: ['closed'], to: 'proposed' },
  ordered_again: { from: ['parked', 'closed'], to: 'proposed' },
  look_up_ordered: { from: ['checking', 'parked'], to: 'checking' },
  stated: { from: ['parked', 'closed'], to: 'same' },
  cancel_requested: { from: 'any', to: 'same' },
  sending_ended: { from: ['sending', 'checking'], to: 'same' },
  delivered: { from: 'any', to: 'same' },
  replay_seen: { from: 'any', to: 'same' },
  superseded: { from: 'any', to: 'same' },
} as const satisfies { readonly [event: string]: Transition };

export type EventType = keyof typeof TRANSITIONS;

/** Whether an event of this type may follow while the operation is at `stage` (`undefined`: none yet). */
export function mayFollow(type: EventType, stage: Stage | undefined): boolean {
  const from: Transition['from'] = TRANSITIONS[type].from;
  if (from === 'none') return stage === undefined;
  return stage !== undefined && (from === 'any' || from.includes(stage));
}

export function stageAfter(type: EventType, stage: Stage | undefined): Stage {
  const { to }: Transition = TRANSITIONS[type];
  if (to !== 'same') return to;
  if (stage === undefined) throw new Error(`An operation cannot begin with "${type}".`);
  return stage;
}
