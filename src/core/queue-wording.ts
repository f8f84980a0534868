// Every word that a person is shown for a cause in the queue: a heading, what it means, how many of what.

import { CAUSE_KINDS, type Cause, type CauseCounts, type CauseKind } from './cause.ts';
import type { RefusalCode } from './decide.ts';
import { named } from './quoting.ts';

const HEADINGS: { readonly [kind in CauseKind]: (destination: string) => string } = {
  contradiction: (destination) => `Contradicting evidence from ${destination}`,
  digest_mismatch: (destination) => `Not what was decided on, for ${destination}`,
  no_answer: (destination) => `No answer from ${destination}`,
  gateway_ended: (destination) => `A gateway to ${destination} ended with work out`,
  absent: (destination) => `Looked for on ${destination}, not there`,
  bounds_used_up: (destination) => `Bounds used up, for ${destination}`,
  approval_expired: (destination) => `Approvals expired, for ${destination}`,
  target_changed: (destination) => `Changed since it was reviewed, on ${destination}`,
  approval_revoked: (destination) => `Approvals revoked, for ${destination}`,
  rule_stricter: (destination) => `A rule for ${destination} became stricter`,
  access_lost: (destination) => `Access was lost, for work to ${destination}`,
  go_on_refused: (destination) => `Going on after many writes to ${destination} was not approved`,
  read_back_differs: (destination) => `Read back from ${destination} and different`,
  approval: (destination) => `Waiting for approval, to ${destination}`,
  no_gateway: (destination) => `No gateway to ${destination} runs`,
  stopped: (destination) => `Stopped by an operator, to ${destination}`,
  limit: (destination) => `Waits for room under a limit of ${destination}`,
  other_first: (destination) => `Waits for another operation on ${destination}`,
  on_its_way: (destination) => `On its way to ${destination}`,
};

/** What a person does about it, as a sentence. */
const WHAT_TO_DO: { readonly [kind in CauseKind]: string } = {
  contradiction: 'Look at the records before anything else.',
  digest_mismatch: 'Nothing of it is sent. Find out who changed what is stored.',
  no_answer:
    'What was never sent goes when it answers again; what was sent is looked up where that is possible.',
  gateway_ended: 'What was out is looked up where that is possible.',
  absent: 'Another send needs a decision.',
  bounds_used_up: 'No more is tried without a person.',
  approval_expired: 'A new decision is needed.',
  target_changed: 'Look at what has changed; a new decision is needed.',
  approval_revoked: 'A new decision is needed.',
  rule_stricter: 'A new decision is needed.',
  access_lost: 'Whoever asked or approved may not any more. A new decision is needed, and their access.',
  go_on_refused: 'A new decision is needed.',
  read_back_differs: 'Whether these writes took effect cannot be told from the record. Look at it.',
  approval: 'A person must decide.',
  no_gateway: 'It goes on when a client or counterfoil serve starts one.',
  stopped: 'It goes on when the stop is lifted for it, and is closed when it is lifted without it.',
  limit: 'It goes on by itself, in its turn.',
  other_first: 'It goes on by itself when that one is settled.',
  on_its_way: 'It goes on by itself.',
};

export function causeHeading({ destination, kind }: Cause): string {
  return HEADINGS[kind](named(destination));
}

export function causeSentence({ kind }: Cause): string {
  return WHAT_TO_DO[kind];
}

/** `25 never sent (12 approvals expired) · 8 found since · 7 need a person`. */
export function countsWords(counts: CauseCounts): string {
  const { approvalsExpired, found, goesOn, needsPerson, neverSent } = counts;
  const expired =
    approvalsExpired === 0 ? '' : ` (${approvalsExpired} of them with an approval that has expired)`;
  const parts = [
    neverSent === 0 ? '' : `${neverSent} never sent${expired}`,
    found === 0 ? '' : `${found} found since`,
    needsPerson === 0 ? '' : `${needsPerson} ${needsPerson === 1 ? 'needs' : 'need'} a person`,
    goesOn === 0
      ? ''
      : `${goesOn} ${goesOn === 1 ? 'goes' : 'go'} on by ${goesOn === 1 ? 'itself' : 'themselves'}`,
  ];
  return parts.filter((part) => part !== '').join(' · ');
}

/** Why an operation of a list was left out of an act: the rest of a sentence. */
export function leftOutWords(
  why: RefusalCode | 'not_found' | 'claimed' | 'no_lookup',
  state?: string,
): string {
  switch (why) {
    case 'not_found':
      return 'it is not recorded here';
    case 'changed':
      return 'it has changed since it was looked at';
    case 'claimed':
      return 'somebody else has claimed its cause';
    case 'needs_statement':
      return 'whether it happened is not known, and nobody has stated that it did not';
    case 'nothing_to_do':
      return 'there is nothing to do about it now';
    case 'already_decided':
      return 'it was decided by somebody else';
    case 'already_revoked':
      return 'its approval was revoked before';
    case 'no_approval':
      return 'it has no approval';
    case 'digest_differs':
      return 'its digest is another one';
    case 'no_open_review':
      return 'nobody is being asked about it';
    case 'review_expired':
      return 'its review has ended';
    case 'strength_too_low':
      return 'it cannot be taken back, and needs the passphrase of the owner';
    case 'not_an_approver':
      return 'a rule says who may approve it, and this is somebody else';
    case 'not_an_operator':
      return 'a rule says who may act on it, and this is somebody else';
    case 'own_request':
      return 'a rule wants somebody else to approve it than whoever asked for it';
    case 'unsettled':
    case 'not_at_this_stage':
      return state === undefined
        ? 'that cannot be done with it as it is now'
        : `that cannot be done with it as it is now: ${state}`;
    case 'no_lookup':
      return 'nothing is known by which it could be looked up, and no gateway to it runs that may know better';
  }
}

/** Whether a text is the id of a cause, as far as its form goes. */
export function isCauseId(text: string): boolean {
  return CAUSE_KINDS.some((kind) => text.startsWith(`cause_${kind}@`));
}
