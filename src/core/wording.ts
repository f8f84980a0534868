// Every word that a person is shown for a state: a label, a sentence. What a model is told is in
// `answer-wording.ts`. Console, CLI, HTTP and MCP take them from these two.

import { isFoundByLookUp, lookedUpAt, unlikeReadBack, verifiedAt } from './known-facts.ts';
import { type Effect, type Stage } from './lifecycle.ts';
import {
  type AccessLost,
  assertNever,
  isStatementCurrent,
  type Operation,
  type StatedResolution,
  type Why,
} from './operation.ts';
import type { ApprovalDemands, PolicyReason } from './policy.ts';
import { ARGUMENT, clock, NAME, named, quoted, sentences, upperFirst } from './quoting.ts';

/** Words that the operation itself does not carry, because they are content or configuration. */
export interface Surroundings {
  /** The target in words, e.g. `file /srv/a.txt`; absent where none is declared or it is withheld. */
  readonly target?: string;
  /** Other people's words, to be quoted: a reviewer's reason, a schema problem. */
  readonly quote?: string;
  /** Top-level arguments that an equal call gave differently, and that were not sent. */
  readonly notApplied?: readonly string[];
  /** True when the process that had it out is no more. */
  readonly isSenderGone?: boolean;
  /** The helper tool's real name. */
  readonly helperTool?: string;
  /** Where a person can look: an address that asks for sign-in, or words. */
  readonly where?: string;
  /** Set when the answer is about an operation of another run: its requester. */
  readonly otherRun?: string;
}

const LABELS: { readonly [effect in Effect]: string } = {
  not_sent: 'Not sent',
  unknown: 'Outcome unknown',
  error_reported: 'Answered with an error',
  accepted: 'Accepted, not checked',
  verified: 'Verified',
  rejected: 'Rejected by the destination',
  absent: 'Looked for, not there',
  diverged: 'Contradicting evidence',
};

const STAGE_LABELS: { readonly [stage in Exclude<Stage, 'closed'>]: string } = {
  proposed: 'Recorded',
  awaiting_approval: 'Waiting for approval',
  held: 'Held',
  ready: 'Ready to send',
  sending: 'Sending',
  checking: 'Checking with the destination',
  parked: 'Needs a person',
};

/** The label of an effect alone, for tables. */
export function effectLabel(effect: Effect): string {
  return LABELS[effect];
}

/** The label for people: the stage while work is open, the effect when it is closed. */
export function labelOf(operation: Operation): string {
  const { effect, resolution, stage } = operation;
  if (stage === 'awaiting_approval' && operation.review?.because !== undefined) return STAGE_LABELS.held;
  if (stage !== 'closed') return STAGE_LABELS[stage];
  if (resolution !== undefined && effect === 'unknown' && isStatementCurrent(operation)) {
    return `Stated by ${named(resolution.by)} at ${clock(resolution.at)} UTC`;
  }
  if (effect === 'verified') return `Verified at ${clock(verifiedAt(operation))} UTC`;
  const unlike = unlikeReadBack(operation);
  if (unlike !== undefined) {
    return unlike.otherwise === 'later_writer'
      ? 'Accepted, changed since'
      : 'Accepted, read back and different';
  }
  if (!hasNotHappened(effect)) return LABELS[effect];
  if (operation.why?.code === 'denied') return 'Denied by a person';
  return operation.why?.code === 'stopped' ? 'Stopped by an operator' : LABELS[effect];
}

/** One or two sentences for people: what this state means, and nothing that is not known. */
export function sentenceOf(operation: Operation, words: Surroundings = {}): string {
  return sentences(...sentenceParts(operation, words), observedSentence(operation));
}

/** Beside the address of a review: for the person who is asked by a client whether to open it. */
export function reviewLinkText(operation: Operation, words: Surroundings = {}): string {
  const { destination, id, tool } = operation;
  const target = words.target === undefined ? '' : `, ${named(words.target)}`;
  return sentences(
    sentenceOf(operation, words),
    `${upperFirst(named(tool))} on ${destination}${target} (${id}).`,
    'The page asks who you are. Opening it decides nothing, and neither does this answer.',
  );
}

/** What is said wherever an operation of `observe` is shown; nothing of any other. */
export function observedSentence({ observed }: Operation): string {
  switch (observed?.guard) {
    case undefined:
      return '';
    case 'send':
      return 'Not guarded (observe).';
    case 'ask':
      return 'Not guarded (observe): guard would have asked a person.';
    case 'answer':
      return `Not guarded (observe): guard would have answered it with ${observed.operation}, and sent nothing.`;
  }
}

function sentenceParts(operation: Operation, words: Surroundings): readonly string[] {
  const { destination, review, stage } = operation;
  switch (stage) {
    case 'proposed':
      return ['Saved here.', earlierTry(operation) || 'Nothing has been sent.'];
    case 'awaiting_approval':
      return review?.because === undefined
        ? [questionFor(operation), earlierTry(operation), statedSentence(operation)]
        : heldParts(review.because, operation);
    case 'held':
      return heldParts(operation.why, operation);
    case 'ready':
      if (operation.why?.code === 'stopped') {
        return [
          operation.effect === 'not_sent' ? 'Not sent.' : 'Not sent again.',
          earlierTry(operation),
          stopped(stoppedWords(operation.why, operation, words)),
          'It leaves only if it is released when that is lifted.',
        ];
      }
      return [
        operation.effect === 'not_sent' ? 'Not sent yet.' : 'Not sent again yet.',
        earlierTry(operation),
        `${upperFirst(waitWords(operation, words))}.`,
      ];
    case 'sending':
      return words.isSenderGone === true
        ? [
            `It may have left; its sender is gone. A gateway to ${destination} looks it up when one runs.`,
            'Do not repeat it.',
          ]
        : ['On its way. No answer yet.'];
    case 'checking':
      return checkingParts(operation);
    case 'parked':
      return [whyWords(operation.why, destination), knownSentence(operation), statedSentence(operation)];
    case 'closed':
      return [knownSentence(operation), endedSentence(operation, words), statedSentence(operation)];
    default:
      return assertNever(stage);
  }
}

function heldParts(why: Why | undefined, operation: Operation): readonly string[] {
  return [
    whyWords(why, operation.destination),
    'A new decision is needed.',
    earlierTry(operation) || 'We changed nothing.',
  ];
}

function hasNotHappened(effect: Effect): boolean {
  return effect === 'not_sent' || effect === 'rejected' || effect === 'absent';
}

/** What is known of earlier tries while another one is waited for; nothing where none was sent. */
export function earlierTry({ destination, effect }: Operation): string {
  switch (effect) {
    case 'unknown':
      return 'An earlier try may or may not have happened.';
    case 'rejected':
      return `${destination} says it did not apply an earlier try.`;
    case 'absent':
      return 'An earlier try was looked for and is not there.';
    default:
      return '';
  }
}

function questionFor({ askedBy, policy, review }: Operation): string {
  switch (review?.question) {
    case 'unclassified':
      return 'Nobody has said yet what kind of write this tool makes. A person must decide once.';
    case 'same_work':
      return 'The same write was made in another run. A person must say whether this is the same work.';
    case 'too_old':
      return 'An equal write was made longer ago than this run can tell apart. A person must decide.';
    case 'error_reported':
      return 'An equal write was answered with an error, and whether it changed anything is not established. A person must decide.';
    case 'ordered_again':
      return 'A person asked for it to be sent again. That needs an approval of its own.';
    case 'strict':
      return 'Every write to this server waits for a person (strict).';
    case 'tool_changed':
      return 'This tool has changed since its class was given. A person must look at the difference and decide once.';
    case 'many_writes':
      return 'Many writes were made within an hour. A person must say whether to go on.';
    case 'again':
      return `${askedBy === undefined ? 'The caller' : named(askedBy)} says that a second one is really wanted. A person must decide.`;
    case 'policy':
      return policy?.because === undefined
        ? 'A rule wants a person to approve this exact action first.'
        : `A rule wants a person to approve this exact action first: ${reasonWords(policy.because)}.`;
    case 'irreversible':
    case undefined:
      return 'A person must approve this exact action first.';
  }
}

function checkingParts({ destination, effect, why }: Operation): readonly string[] {
  if (why?.code === 'waits_for_gateway') {
    return [
      `To be checked when a gateway to ${destination} runs; none runs now.`,
      effect === 'unknown'
        ? 'It may or may not have happened. Do not repeat it.'
        : 'The service acknowledged it.',
    ];
  }
  if (why?.code !== 'looking_up' && why?.code !== 'destination_still_working') {
    return ['The service acknowledged it. The changed record is being read back.'];
  }
  const what = why.code === 'looking_up' ? 'Looking it up' : `Still worked on by ${destination}`;
  return [
    `${what}; next check at ${clock(why.nextAt)} UTC.`,
    'It may or may not have happened. Do not repeat it.',
  ];
}

/** What is known of the effect, in one or two sentences. */
export function knownSentence(operation: Operation): string {
  const { destination } = operation;
  switch (operation.effect) {
    case 'not_sent':
      return `${destination} never received this. We changed nothing.`;
    case 'unknown':
      return 'It may or may not have happened. Do not repeat it.';
    case 'error_reported':
      return `${destination} reported an error. Whether it changed anything is not established.`;
    case 'accepted':
      return acceptedSentence(operation);
    case 'verified':
      return 'We read the changed record back and it matched.';
    case 'rejected':
      return `${destination} says that it did not apply this.`;
    case 'absent':
      return `Looked up at ${clock(lookedUpAt(operation, 'absent'))} UTC, after the settle time: not there.`;
    case 'diverged':
      return divergedSentence(operation);
    default:
      return assertNever(operation.effect);
  }
}

function acceptedSentence(operation: Operation): string {
  const kind = isFoundByLookUp(operation) ? 'Found by look-up.' : 'The service acknowledged it.';
  return `${kind} ${unlikeSentence(operation) || 'We have not looked at the result.'}`;
}

/** What a read-back that showed something else tells. */
export function unlikeSentence(operation: Operation): string {
  const unlike = unlikeReadBack(operation);
  if (unlike === undefined) return '';
  return unlike.otherwise === 'later_writer'
    ? 'It was changed by somebody else since.'
    : `Read back at ${clock(unlike.observedAt)} UTC and different; whether this write took effect cannot be told.`;
}

export function divergedSentence(operation: Operation): string {
  const several = operation.evidence.findLast(
    (piece) => piece.kind === 'lookup' && piece.found === 'several',
  );
  if (several?.kind === 'lookup') {
    const { count = 'Several', records = [] } = several;
    const which = records.length === 0 ? '' : `: ${listedNames(records, count)}`;
    return `${count} records were found where one was meant${which}. Look at them before anything else.`;
  }
  const unlike = operation.evidence.findLast(
    (piece) => piece.kind === 'readback' && piece.otherwise === 'nobody_wrote',
  );
  if (unlike !== undefined) {
    return `The service acknowledged it. Read back at ${clock(unlike.observedAt)} UTC, the record is at the version that this write made, and is not what was written. Both are kept; a person must look.`;
  }
  return 'The pieces of evidence contradict each other. Both are kept; a person must look.';
}

const NAMES_SHOWN_MAX = 4;

function listedNames(names: readonly string[], count: number | string): string {
  const shown = names.slice(0, NAMES_SHOWN_MAX).map((name) => named(name));
  return shown.length < Number(count) ? `${shown.join(', ')}, …` : shown.join(', ');
}

/** What a person stated about what is not established, or stated and evidence contradicts. */
export function statedSentence(operation: Operation): string {
  const { effect, resolution } = operation;
  if (resolution === undefined) return '';
  const isOpen = effect === 'unknown' || effect === 'diverged';
  const isContradicted = resolution.contradicted === true && !isBorneOut(operation);
  if (isOpen ? !isStatementCurrent(operation) : !isContradicted) return '';
  return `${statedWords(resolution)}.`;
}

/** Contradicted about an earlier try, and true of the operation now. */
function isBorneOut({ effect, resolution }: Operation): boolean {
  const hasHappened = effect === 'accepted' || effect === 'verified';
  return resolution?.resolution === 'stated_happened' && hasHappened;
}

export function statedWords({ at, by, contradicted, resolution }: StatedResolution): string {
  const otherwise = contradicted === true ? '; later evidence says otherwise' : '';
  return `${named(by)} stated at ${clock(at)} UTC that ${FINDINGS_STATED[resolution]}${otherwise}`;
}

export const FINDINGS_STATED = {
  stated_happened: 'it happened',
  stated_not_happened: 'it did not happen',
  stated_other_change: 'something else changed it',
} as const;

/** Why a closed operation was not sent, or not sent again; of what is not established, who closed it. */
function endedSentence(operation: Operation, words: Surroundings): string {
  const ended = endedWords(operation, words);
  return ended === '' ? '' : stopped(upperFirst(ended));
}

/** With a full stop, where quoted words have not brought one. */
export function stopped(text: string): string {
  return /[.!?…]"$/.test(text) ? text : `${text}.`;
}

export function endedWords(operation: Operation, words: Surroundings): string {
  const { effect, review, why } = operation;
  if (effect === 'unknown' || effect === 'diverged') {
    const isStated = isStatementCurrent(operation) || why?.code !== 'given_up';
    return isStated ? '' : `closed by ${named(why.by)} without a finding`;
  }
  if (!hasNotHappened(effect)) return '';
  switch (why?.code) {
    case 'given_up':
      return `closed by ${named(why.by)}`;
    case 'denied': {
      const at = review?.decision?.at;
      const when = at === undefined ? '' : ` at ${clock(at)} UTC`;
      return `denied by a person${when}${words.quote === undefined ? '' : `: ${quoted(words.quote)}`}`;
    }
    case 'replaced':
      return `replaced by ${why.by}`;
    case 'review_undecided':
      return 'nobody decided before the review ended';
    case 'arguments':
      return `the arguments do not fit the tool${words.quote === undefined ? '' : `: ${quoted(words.quote)}`}`;
    case 'withdrawn_by_caller':
      return 'the caller took it back';
    case 'refused_by_rule':
      return `refused by a rule: ${reasonWords(why.because)}`;
    case 'cancelled':
      return `cancelled by ${named(why.by)} at ${clock(why.at)} UTC`;
    case 'stopped':
      return stoppedWords(why, operation, words);
    default:
      return '';
  }
}

/** Who has stopped what, since when, and why: a sentence without its stop. */
export function stoppedWords(
  { scope, since }: Extract<Why, { readonly code: 'stopped' }>,
  operation: Pick<Operation, 'destination' | 'tool'>,
  { quote }: Surroundings = {},
): string {
  const reason = quote === undefined ? '' : `. Reason: ${quoted(quote)}`;
  return `An operator has stopped ${STOPPED[scope](operation)} since ${clock(since)} UTC${reason}`;
}

const STOPPED: {
  readonly [scope in Extract<Why, { readonly code: 'stopped' }>['scope']]: (
    operation: Pick<Operation, 'destination' | 'tool'>,
  ) => string;
} = {
  everything: () => 'all sending',
  destination: ({ destination }) => `sending to ${destination}`,
  tool: ({ destination, tool }) => `sending ${named(tool)} to ${destination}`,
  run: () => 'sending for this run',
  requester: () => 'sending for this requester',
};

/** What a ready operation waits for: the rest of a sentence. */
export function waitWords({ destination, why }: Operation, words: Surroundings): string {
  switch (why?.code) {
    case 'waits_for_operation':
      return `waits for ${why.operation}${words.target === undefined ? '' : ` on ${named(words.target)}`}`;
    case 'waits_for_predecessor':
      return `waits for ${why.operation}, whose place it takes, to be settled`;
    case 'waits_for_go_on':
      return `waits for a person to say, with ${why.operation}, whether to go on after many writes`;
    case 'waits_for_prerequisite':
      return prerequisiteWords(why);
    case 'waits_for_destination':
      return `waits for ${destination} to answer again`;
    case 'waits_for_place':
      return `waits for its turn: at most ${counted(why.at_once, 'write')} to ${destination} ${why.at_once === 1 ? 'is' : 'are'} out at once`;
    case 'waits_for_rate':
      return `waits for its turn until ${clock(why.until)} UTC: at most ${counted(why.writes, 'write')} may leave for ${destination} in ${lasting(why.perMs)}`;
    case 'waits_until':
      return `waits until ${clock(why.until)} UTC`;
    case 'waits_for_gateway':
      return `waits for a gateway to ${destination}; none runs now`;
    default:
      return `waits for a gateway to ${destination}`;
  }
}

const LOST_GUARD = {
  window: 'the time is over for which the key is known to count',
  scope: 'the credential or the place that the key belongs to is not the same',
  distrusted: 'the destination has passed over a key before',
} as const;

const LOST_ACCESS: { readonly [how in AccessLost]: string } = {
  removed: 'was removed',
  expired: 'has expired',
  not_confirmed: 'cannot be confirmed now',
};

function accessWords({ how, principal, who }: Extract<Why, { code: 'access_lost' }>): string {
  const whose = who === 'requester' ? 'who asked for it' : 'who approved it';
  return `The access of ${named(principal)}, ${whose}, ${LOST_ACCESS[how]}.`;
}

function prerequisiteWords(why: Extract<Why, { code: 'waits_for_prerequisite' }>): string {
  const which = why.operation === undefined ? `; none is known in this run` : ` ${why.operation}`;
  const wanted = why.effect === 'verified' ? 'a verified' : 'an accepted';
  return `waits for ${wanted} ${named(why.tool)}${which}`;
}

/** What a rule of the policy says, with its name. */
export function reasonWords({ limit, part, rule }: PolicyReason): string {
  const name = quoted(rule, NAME);
  switch (part) {
    case 'then':
      return name;
    case 'propose':
      return `${name} names who may ask for it, and the requester is not among them`;
    case 'per_run':
      return `${name} lets ${counted(limit ?? 0, 'write')} of a run go without a person`;
    case 'not_judged':
      return `${name} cannot be judged for it, for instance because a field is missing`;
  }
}

/** What rules want of an approval, each with the name of its rule: rests of a sentence. */
export function demandWords(demands: ApprovalDemands): readonly string[] {
  const { approvers = [], lifetime, quorum, separate } = demands;
  const by = (rule: string): string => `(${quoted(rule, NAME)})`;
  return [
    ...approvers.map(({ names, rule }) => `by one of ${listedNames(names, names.length)} ${by(rule)}`),
    ...(quorum === undefined ? [] : [`by ${counted(quorum.persons, 'person')} ${by(quorum.rule)}`]),
    ...(separate === undefined ? [] : [`by somebody else than whoever asked for it ${by(separate)}`]),
    ...(lifetime === undefined ? [] : [`for ${lasting(lifetime.ms)} ${by(lifetime.rule)}`]),
  ];
}

/** Why an operation is held or with a person, as a sentence. */
export function whyWords(why: Why | undefined, destination: string): string {
  switch (why?.code) {
    case 'approval_expired':
      return 'The approval has expired.';
    case 'target_changed':
      return targetChangedWords(why);
    case 'target_unreadable':
      return 'The target cannot be read any more, so that nobody can tell whether it is what was reviewed.';
    case 'approval_revoked':
      return `The approval was revoked by ${named(why.by)}.`;
    case 'rule_stricter':
      return why.rule === undefined
        ? 'The rule for this tool became stricter.'
        : `The rule ${quoted(why.rule, NAME)} became stricter, and is not met.`;
    case 'access_lost':
      return accessWords(why);
    case 'no_lookup':
      return `No answer came back that settles it, and ${destination} offers no way to look it up.`;
    case 'lookups_exhausted':
      return why.count === 0
        ? 'It could not be looked up in time.'
        : `${counted(why.count, 'look-up')} gave no answer that settles it.`;
    case 'absent_needs_decision':
      return 'Sending it again needs a decision.';
    case 'bounds_used_up':
      return why.attempts === 0
        ? 'It waited too long to be sent without a person.'
        : `${counted(why.attempts, 'attempt')} ${why.attempts === 1 ? 'was' : 'were'} made; no more are made without a person.`;
    case 'go_on_refused':
      return `Many writes were made within an hour, and ${why.operation}, with which a person was asked to go on, was not approved.`;
    case 'not_guarded':
      return 'It is only observed, so nothing is sent by us.';
    case 'withdrawn_by_caller':
      return 'The caller took it back, so it is not sent again.';
    case 'cancelled':
      return `${upperFirst(named(why.by))} cancelled it at ${clock(why.at)} UTC, so it is not sent again.`;
    case 'stopped':
      return 'An operator has stopped sending, so it is not sent again.';
    case 'guard_lost':
      return `It was to be sent again under the same key, and ${LOST_GUARD[why.lost]}.`;
    case 'digest_mismatch':
      return 'The stored payload is not what was decided on, so it is not sent.';
    case 'review_undecided':
      return 'Nobody decided before the review ended.';
    case 'denied':
      return 'Sending it again was denied.';
    case 'replaced':
      return `It was replaced by ${why.by}.`;
    default:
      return '';
  }
}

/** `The target changed after the review: version 11 → 12, field "due".` */
function targetChangedWords({ fields, is, was }: Extract<Why, { readonly code: 'target_changed' }>): string {
  const shown = fields.slice(0, FIELDS_SHOWN_MAX).map((field) => quoted(field, ARGUMENT));
  const more = fields.length - shown.length;
  const parts = [
    was === undefined && is === undefined ? '' : `version ${versionWords(was)} → ${versionWords(is)}`,
    shown.length === 0 ? '' : `field ${shown.join(', ')}${more > 0 ? ` and ${more} more` : ''}`,
  ];
  return `The target changed after the review: ${parts.filter((part) => part !== '').join(', ')}.`;
}

const FIELDS_SHOWN_MAX = 2;

function versionWords(version: string | undefined): string {
  return version === undefined ? 'none' : named(version, ARGUMENT);
}

/** A length of time in its largest whole unit. */
function lasting(ms: number): string {
  const [unit, size] =
    UNITS.find(([, unitMs]) => ms % unitMs === 0 && ms >= unitMs) ?? (['millisecond', 1] as const);
  return ms === size ? `a${unit === 'hour' ? 'n' : ''} ${unit}` : counted(ms / size, unit);
}

const UNITS = [
  ['day', 86_400_000],
  ['hour', 3_600_000],
  ['minute', 60_000],
  ['second', 1_000],
] as const;

function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}
