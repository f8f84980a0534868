// Every word that a person or a model is shown for a state. Console, CLI, HTTP and MCP take them from here.
//
// For people: a label, a sentence. For models: the first text block of an answer, whose first words are the
// state; then what is known, what to do, what to tell the user; at most 90 words; other people's words are
// quoted and escaped; no token, and no command that approves (D14).

import type { Attempt } from './attempt.ts';
import type { Evidence } from './evidence.ts';
import { idInstant } from './ids.ts';
import type { Effect, Stage } from './lifecycle.ts';
import {
  assertNever,
  isStatementCurrent,
  type Operation,
  type ReviewQuestion,
  type StatedResolution,
  type Why,
} from './operation.ts';

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
  return operation.why?.code === 'denied' && hasNotHappened(effect) ? 'Denied by a person' : LABELS[effect];
}

/** One or two sentences for people: what this state means, and nothing that is not known. */
export function sentenceOf(operation: Operation, words: Surroundings = {}): string {
  return sentences(...sentenceParts(operation, words));
}

function sentenceParts(operation: Operation, words: Surroundings): readonly string[] {
  const { destination, review, stage } = operation;
  switch (stage) {
    case 'proposed':
      return ['Saved here.', earlierTry(operation) || 'Nothing has been sent.'];
    case 'awaiting_approval':
      return review?.because === undefined
        ? [questionFor(review?.question), earlierTry(operation)]
        : heldParts(review.because, operation);
    case 'held':
      return heldParts(operation.why, operation);
    case 'ready':
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
function earlierTry({ destination, effect }: Operation): string {
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

function questionFor(question: ReviewQuestion | undefined): string {
  switch (question) {
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
    case 'irreversible':
    case undefined:
      return 'A person must approve this exact action first.';
  }
}

function checkingParts({ destination, why }: Operation): readonly string[] {
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
function knownSentence(operation: Operation): string {
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
function unlikeSentence(operation: Operation): string {
  const unlike = unlikeReadBack(operation);
  if (unlike === undefined) return '';
  return unlike.otherwise === 'later_writer'
    ? 'It was changed by somebody else since.'
    : `Read back at ${clock(unlike.observedAt)} UTC and different; whether this write took effect cannot be told.`;
}

function divergedSentence(operation: Operation): string {
  const several = operation.evidence.findLast(
    (piece) => piece.kind === 'lookup' && piece.found === 'several',
  );
  if (several?.kind === 'lookup') {
    return `${several.count ?? 'Several'} records were found where one was meant. Look at them before anything else.`;
  }
  return 'The pieces of evidence contradict each other. Both are kept; a person must look.';
}

/** What a person stated about what is not established, or stated and evidence contradicts. */
function statedSentence(operation: Operation): string {
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

function statedWords({ at, by, contradicted, resolution }: StatedResolution): string {
  const otherwise = contradicted === true ? '; later evidence says otherwise' : '';
  return `${named(by)} stated at ${clock(at)} UTC that ${FINDINGS_STATED[resolution]}${otherwise}`;
}

const FINDINGS_STATED = {
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
function stopped(text: string): string {
  return /[.!?…]"$/.test(text) ? text : `${text}.`;
}

function endedWords(operation: Operation, words: Surroundings): string {
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
    default:
      return '';
  }
}

/** What a ready operation waits for: the rest of a sentence. */
function waitWords({ destination, why }: Operation, words: Surroundings): string {
  switch (why?.code) {
    case 'waits_for_operation':
      return `waits for ${why.operation}${words.target === undefined ? '' : ` on ${named(words.target)}`}`;
    case 'waits_for_predecessor':
      return `waits for ${why.operation}, whose place it takes, to be settled`;
    case 'waits_for_destination':
      return `waits for ${destination} to answer again`;
    case 'waits_until':
      return `waits until ${clock(why.until)} UTC`;
    default:
      return `waits for a gateway to ${destination}`;
  }
}

/** Why an operation is held or with a person, as a sentence. */
function whyWords(why: Why | undefined, destination: string): string {
  switch (why?.code) {
    case 'approval_expired':
      return 'The approval has expired.';
    case 'rule_stricter':
      return 'The rule for this tool became stricter.';
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

function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}

// ── For the model ──────────────────────────────────────────────────────────────────────────────────────────

/** The first text block of an answer about an operation that is not a first, confirmed result. */
export function answerText(operation: Operation, words: Surroundings = {}): string {
  const [state = '', ...rest] = answerParts(operation, words);
  const other = words.otherRun === undefined ? '' : `It belongs to another run, of ${named(words.otherRun)}.`;
  return limitWords(sentences(state, other, ...rest));
}

function answerParts(operation: Operation, words: Surroundings): readonly string[] {
  switch (operation.stage) {
    case 'proposed':
    case 'awaiting_approval':
    case 'held':
      return awaitingParts(operation, words);
    case 'ready':
      return [
        `${notSentYet(operation)} — ${waitWords(operation, words)} (${operation.id}).`,
        earlierTry(operation),
        'It is sent without you when that clears. Do not repeat it. Go on with independent work.',
      ];
    case 'sending':
      return [
        `SENT, NO ANSWER YET (${operation.id}).`,
        `Do not repeat it, reword it, or do it another way. Next: ${asking(operation, words)}.`,
      ];
    case 'checking':
      return unknownParts(operation, words);
    case 'parked':
      return parkedParts(operation, words);
    case 'closed':
      return closedParts(operation, words);
    default:
      return assertNever(operation.stage);
  }
}

function notSentYet({ effect }: Operation): string {
  return effect === 'not_sent' ? 'NOT SENT YET' : 'NOT SENT AGAIN YET';
}

function awaitingParts(operation: Operation, words: Surroundings): readonly string[] {
  const { destination, effect, id, review, tool } = operation;
  const because = review?.because ?? (operation.stage === 'held' ? operation.why : undefined);
  if (because !== undefined) {
    return [
      `${effect === 'not_sent' ? 'NOT SENT' : 'NOT SENT AGAIN'} — held (${id}).`,
      whyWords(because, destination),
      earlierTry(operation),
      'The same call returns this answer; a person has been asked again.',
      because.code === 'approval_expired'
        ? 'Tell the user that a new decision is needed.'
        : 'Other values are a new proposal. Otherwise tell the user what changed.',
    ];
  }
  const asked = askedWords(operation);
  if (asked !== undefined) return [`NOT SENT — ${asked} (${id}).`, 'Do not repeat it. Tell the user.'];
  const until = review === undefined ? '' : ` until when (${minute(review.expiresAt)} UTC)`;
  const where = words.where === undefined ? '' : ` and where (${plain(words.where, NAME)})`;
  return [
    `${notSentYet(operation)} — waiting for a person's approval (${id}). ${named(tool)} on ${destination}${subject(words)}.`,
    earlierTry(operation) || `Nothing has reached ${destination}.`,
    'Do not call this again and do not do it another way; a repeat returns this same operation.',
    'Go on with independent work.',
    `To wait: ${asking(operation, words)}, at most twice; then tell the user${until}${where}, with the reference, and end your turn.`,
  ];
}

/** What a person is asked, where it is not the action alone. */
function askedWords({ previous, review }: Operation): string | undefined {
  const earlier = previous === undefined ? '' : ` (${previous.operation})`;
  const made = previous === undefined ? undefined : idInstant(previous.operation);
  const at = made === undefined ? '' : ` at ${minute(made)} UTC`;
  switch (review?.question) {
    case 'same_work':
      return `the same write was made in another run${at}${earlier}; a person is asked whether this is the same work`;
    case 'too_old':
      return 'this run is too old to tell whether it was made before; a person is asked';
    case 'error_reported':
      return `an equal write${earlier} was answered with an error and may have changed something; a person is asked`;
    default:
      return undefined;
  }
}

function unknownParts(operation: Operation, words: Surroundings): readonly string[] {
  const { destination, effect, id, why } = operation;
  if (effect === 'accepted') {
    return [`ACCEPTED, BEING READ BACK (${id}).`, `Do not repeat it. Next: ${asking(operation, words)}.`];
  }
  const nextAt =
    why?.code === 'looking_up' || why?.code === 'destination_still_working' ? why.nextAt : undefined;
  const next = nextAt === undefined ? '' : `; next check ${clock(nextAt)} UTC`;
  const answered =
    why?.code === 'destination_still_working'
      ? `${destination} took it and is still working on it`
      : 'the answer was lost';
  const may =
    words.target === undefined
      ? 'The change may or may not have happened.'
      : `${upperFirst(named(words.target))} on ${destination} may or may not have changed.`;
  return [
    `OUTCOME UNKNOWN — sent ${times(operation)} at ${clock(lastSentAt(operation))} UTC, ${answered} (${id}).`,
    `${may} It is being looked up${next}.`,
    'Do not repeat it, reword it, or reach the same effect another way. Do not call it done or failed.',
    `Go on with work that does not touch it. Next: ${asking(operation, words)}.`,
  ];
}

function parkedParts(operation: Operation, words: Surroundings): readonly string[] {
  const { destination, effect, id } = operation;
  const why = whyWords(operation.why, destination);
  const stated = statedSentence(operation);
  switch (effect) {
    case 'unknown':
      return [
        `OUTCOME UNKNOWN — with a person now (${id}).`,
        why,
        stated,
        'It is not sent again automatically.',
        'Do not wait, poll or repeat. Go on only with independent work. Tell the user the reference.',
      ];
    case 'diverged':
      return [
        `CONTRADICTING EVIDENCE — with a person now (${id}).`,
        divergedSentence(operation),
        stated,
        'Do not repeat it and do not correct it yourself. Tell the user the reference.',
      ];
    default: {
      const state = effect === 'absent' ? 'NOT THERE' : effect === 'rejected' ? 'NOT APPLIED' : 'NOT SENT';
      const listed = words.where === undefined ? '' : `It is listed at ${plain(words.where, NAME)}.`;
      return [
        `${state} — with a person now (${id}).`,
        effect === 'not_sent' ? '' : knownSentence(operation),
        why,
        stated,
        'Do not repeat it. Tell the user the reference.',
        listed,
      ];
    }
  }
}

function closedParts(operation: Operation, words: Surroundings): readonly string[] {
  const { destination, effect, id } = operation;
  switch (effect) {
    case 'accepted':
    case 'verified':
      return alreadyExistsParts(operation, words);
    case 'unknown':
      return [
        `OUTCOME UNKNOWN — ${closedByWords(operation)} (${id}).`,
        'Not checked by us. Do not repeat it; tell the user.',
      ];
    case 'diverged':
      return [
        `CONTRADICTING EVIDENCE — ${closedByWords(operation)} (${id}).`,
        divergedSentence(operation),
        'Do not repeat it and do not correct it yourself; tell the user.',
      ];
    case 'error_reported':
      return [
        `${destination} answered with an error (${id}).`,
        'Correct the arguments and call again, or read the record first if it may have been changed.',
      ];
    case 'not_sent':
    case 'rejected':
    case 'absent':
      return [...notSentParts(operation, words), statedSentence(operation)];
    default:
      return assertNever(effect);
  }
}

function closedByWords(operation: Operation): string {
  const { resolution, why } = operation;
  if (resolution !== undefined && isStatementCurrent(operation)) return statedWords(resolution);
  return why?.code === 'given_up' ? `closed by ${named(why.by)} without a finding` : 'closed by a person';
}

function alreadyExistsParts(operation: Operation, words: Surroundings): readonly string[] {
  return [
    `ALREADY_EXISTS — this was done before${words.otherRun === undefined ? ' in this run' : ''}; nothing was sent now (${operation.id}).`,
    recordSentence(operation),
    // There is room for one of the two.
    unlikeSentence(operation) || statedSentence(operation),
    notAppliedSentence(words),
    operation.result === undefined ? '' : 'Use the result below.',
    operation.repeat === 'state'
      ? 'If it really must be set again, ask the user; a person must allow it.'
      : 'If a second one is really wanted, ask the user; a person must allow it.',
  ];
}

/** For the caller whose own answer was lost on the way and found again by look-up. */
export function foundText(operation: Operation, words: Surroundings = {}): string {
  if (operation.effect !== 'accepted' && operation.effect !== 'verified') return answerText(operation, words);
  return limitWords(
    sentences(
      `ALREADY_EXISTS — sent ${times(operation)} at ${clock(lastSentAt(operation))} UTC; its answer was lost, and the record was found (${operation.id}).`,
      recordSentence(operation),
      unlikeSentence(operation),
      notAppliedSentence(words),
      'It is done: do not repeat it.',
    ),
  );
}

/** What the destination holds, and how and when we know. */
function recordSentence(operation: Operation): string {
  const { destination, record } = operation;
  const known = isFoundByLookUp(operation)
    ? `found by look-up ${clock(lookedUpAt(operation, 'present'))} UTC`
    : `accepted ${clock(acknowledgedAt(operation))} UTC`;
  const readBack = operation.effect === 'verified' ? `, read back ${clock(verifiedAt(operation))} UTC` : '';
  const held = record?.id === undefined ? 'has it' : `holds it as ${quoted(record.id, NAME)}`;
  const version = record?.version === undefined ? '' : `, version ${named(record.version)}`;
  return `${destination} ${held}${version}: ${known}${readBack}.`;
}

const NOT_APPLIED_MAX = 4;

function notAppliedSentence({ notApplied = [] }: Surroundings): string {
  if (notApplied.length === 0) return '';
  const more = notApplied.length - NOT_APPLIED_MAX;
  const shown = notApplied.slice(0, NOT_APPLIED_MAX).map((name) => named(name, ARGUMENT));
  return `Different this time and NOT applied: ${[...shown, ...(more > 0 ? [`${more} more`] : [])].join(', ')}.`;
}

/** Closed and known not to have happened: not sent at all, or not sent again. */
function notSentParts(operation: Operation, words: Surroundings): readonly string[] {
  const { destination, effect, id, why } = operation;
  const state = effect === 'not_sent' ? 'NOT SENT' : 'NOT SENT AGAIN';
  const known = effect === 'not_sent' ? `Nothing reached ${destination}.` : earlierTry(operation);
  switch (why?.code) {
    case 'arguments':
      return [
        `NOT SENT — arguments do not fit the tool${words.quote === undefined ? '' : `: ${plain(words.quote)}`} (${id}).`,
        'Correct and call again.',
      ];
    case 'denied': {
      const at = operation.review?.decision?.at;
      return [
        `${state} — denied by an approver${at === undefined ? '' : ` at ${minute(at)} UTC`} (${id}).`,
        known,
        words.quote === undefined ? '' : stopped(`Reason: ${quoted(words.quote)}`),
        'Do not repeat, reword, split or do it another way. Tell the user.',
      ];
    }
    case 'replaced':
      return [
        `${state} — replaced by ${why.by} (${id}).`,
        known,
        'Do not send it again yourself. Tell the user.',
      ];
    case 'given_up':
      return [
        `${state} — ${endedWords(operation, words)} (${id}).`,
        known,
        'Do not send it again yourself. Tell the user.',
      ];
    case 'review_undecided':
      return [
        `${state} — nobody decided before the review ended (${id}).`,
        known,
        'Calling again asks a person again. Tell the user.',
      ];
    case 'withdrawn_by_caller':
      return [`${state} — the caller took it back (${id}).`, known, 'It may be called again.'];
    default:
      return knownNotToHaveHappened(operation);
  }
}

function knownNotToHaveHappened(operation: Operation): readonly string[] {
  const { destination, effect, id } = operation;
  if (effect === 'rejected') {
    return [`${destination} refused this and says it did not apply it (${id}).`, 'Correct and call again.'];
  }
  if (effect === 'absent') {
    const at = clock(lookedUpAt(operation, 'absent'));
    return [
      `NOT THERE — looked up at ${at} UTC, after the settle time (${id}).`,
      'Tell the user before it is sent again.',
    ];
  }
  return [`NOT SENT — nothing left here (${id}). Nothing reached ${destination}.`, 'It may be called again.'];
}

/** For whoever asks what became of an operation, in place of calling again. */
export function statusText(operation: Operation, words: Surroundings = {}): string {
  const { effect, id, stage } = operation;
  if (stage !== 'closed' || (effect !== 'accepted' && effect !== 'verified'))
    return answerText(operation, words);
  return limitWords(
    sentences(
      `${effect === 'verified' ? 'VERIFIED' : 'ACCEPTED, NOT CHECKED'} (${id}).`,
      recordSentence(operation),
      sentenceOf(operation, words),
      'Do not repeat it.',
      operation.result === undefined ? '' : 'The answer to it follows.',
    ),
  );
}

/** Answered while the ledger cannot record: nothing has an id. */
export function storeDownText(): string {
  return 'NOT RECORDED, NOT SENT — the ledger cannot record writes now. Reads still work. Do not do it another way. Tell the user.';
}

/** Answered when even the ledger cannot tell whether it has recorded the write. */
export function fateUnknownText(operation: string): string {
  return `OUTCOME UNKNOWN — the ledger failed while it recorded this (${operation}); it may be sent later, or not at all. Do not repeat it, reword it, or do it another way. Reads still work. Tell the user the reference.`;
}

/** Arguments that cannot be represented exactly: refused before anything is recorded under them. */
export function unrepresentableText(reason: string): string {
  return limitWords(
    `NOT SENT — the arguments cannot be represented exactly: ${plain(reason, REASON)} Correct and call again.`,
  );
}

/** What was written down about a tool does not fit the tool: its calls cannot be told apart, so none is sent. */
export function misconfiguredText(tool: string, problem: string): string {
  return limitWords(
    `NOT SENT — the configuration of this gateway does not fit the tool ${quoted(tool, NAME)}, so its writes cannot be told apart. Nothing was recorded. The owner must correct it: ${plain(problem, REASON)} Tell the user. Reads still work.`,
  );
}

function helper(words: Surroundings): string {
  return named(words.helperTool ?? 'counterfoil_operation_status');
}

/** The call by which a model waits for news. */
function asking(operation: Operation, words: Surroundings): string {
  return `${helper(words)} {"operation": "${operation.id}", "wait_s": 45}`;
}

function subject(words: Surroundings): string {
  return words.target === undefined ? '' : `, ${named(words.target)}`;
}

function times(operation: Operation): string {
  const count = sentAttempts(operation).length;
  return count <= 1 ? 'once' : `${count} times, last`;
}

// ── Facts read off the evidence ────────────────────────────────────────────────────────────────────────────

export function isFoundByLookUp(operation: Operation): boolean {
  return (
    !operation.evidence.some(isAcknowledgement) &&
    operation.evidence.some((piece) => piece.kind === 'lookup' && piece.found === 'present')
  );
}

function isAcknowledgement(piece: Evidence): boolean {
  return (piece.kind === 'acknowledgement' || piece.kind === 'notice') && piece.means === 'accepted';
}

function acknowledgedAt(operation: Operation): number {
  return operation.evidence.find(isAcknowledgement)?.observedAt ?? operation.since;
}

function lookedUpAt(operation: Operation, found: 'present' | 'absent'): number {
  const lookUp = operation.evidence.findLast((piece) => piece.kind === 'lookup' && piece.found === found);
  return lookUp?.observedAt ?? operation.since;
}

/** The last read-back, where it showed something else and the write is still no more than accepted. */
function unlikeReadBack(operation: Operation) {
  const last = operation.evidence.findLast((piece) => piece.kind === 'readback' && piece.matches === false);
  return last?.kind === 'readback' && operation.effect === 'accepted' ? last : undefined;
}

function verifiedAt(operation: Operation): number {
  const readBack = operation.evidence.findLast(
    (piece) => piece.kind === 'readback' && piece.matches === true,
  );
  return readBack?.observedAt ?? operation.since;
}

/** Attempts that may have left; of the others it is proven that nothing did. */
function sentAttempts({ attempts, evidence }: Operation): readonly Attempt[] {
  return attempts.filter(
    ({ id }) =>
      !evidence.some((piece) => piece.attempt === id && piece.kind === 'transport' && piece.left === 'no'),
  );
}

function lastSentAt(operation: Operation): number {
  return sentAttempts(operation).at(-1)?.startedAt ?? operation.since;
}

// ── Small things about text ────────────────────────────────────────────────────────────────────────────────

function sentences(...parts: readonly string[]): string {
  return parts.filter((part) => part !== '').join(' ');
}

/** `HH:MM:SS` of an instant, in UTC. */
export function clock(at: number): string {
  return new Date(at).toISOString().slice(11, 19);
}

function minute(at: number): string {
  return new Date(at).toISOString().slice(11, 16);
}

function upperFirst(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** How much of other people's words is shown: what is told about them must always find room beside them. */
interface Room {
  readonly charactersMax: number;
  readonly wordsMax: number;
}

const NAME: Room = { charactersMax: 80, wordsMax: 3 };
const ARGUMENT: Room = { charactersMax: 60, wordsMax: 2 };
const QUOTE: Room = { charactersMax: 160, wordsMax: 25 };
/** Reasons in our own words. */
const REASON: Room = { charactersMax: 400, wordsMax: 50 };

/** What controls, hides, reorders, or is drawn as nothing. */
const UNSEEN = /[\p{Cc}\p{Cf}\p{Cn}\p{Co}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u2800]/gu;

/** Other people's words on one line, with what could not be seen written out. */
function plain(text: string, room: Room = QUOTE): string {
  // However long it is, no more is read than could be shown between spaces.
  const begun = text.slice(0, room.charactersMax * 4);
  const line = begun.replace(/[\p{Zs}\t\r\n]+/gu, ' ').trim();
  const within = line.split(' ').slice(0, room.wordsMax).join(' ').slice(0, room.charactersMax);
  const isCut = within.length < line.length || begun.length < text.length;
  const cut = isCut ? `${within.trimEnd()}…` : within;
  return cut.replace(UNSEEN, (character) => `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`);
}

/** Whatever might be taken for the end of a quotation. */
const QUOTATION_MARKS =
  /["\p{Pi}\p{Pf}\u201e\u201f\uff02\u2033\u2036\u02ba\u02ee\u301d-\u301f\u275b-\u275e]/gu;

/** The same between quotation marks, so that a reader sees whose words they are. */
export function quoted(text: string, room: Room = QUOTE): string {
  return `"${plain(text, room).replace(QUOTATION_MARKS, "'")}"`;
}

/** One or two words of letters, digits and what stands within names: too little to be a sentence of its own. */
const NAME_PART = String.raw`[\p{L}\p{M}\p{N}_#@+~/\\-]+(?:[.:][\p{L}\p{M}\p{N}_#@+~/\\-]+)*`;
const PLAIN_NAME = new RegExp(`^${NAME_PART}(?: ${NAME_PART})?$`, 'u');

/** A name as it is where it can be taken for nothing else, else quoted. */
function named(text: string, room: Room = NAME): string {
  const name = plain(text, room);
  return PLAIN_NAME.test(name) ? name : quoted(text, room);
}

/** D14's limit; the sentences above stay below it. */
const WORDS_MAX = 90;

function limitWords(text: string): string {
  const words = text.split(' ');
  return words.length <= WORDS_MAX ? text : `${words.slice(0, WORDS_MAX - 1).join(' ')} …`;
}
