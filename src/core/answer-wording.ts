// Every word that a model is told for a state: the first text block of an answer. Its first words are the state;
// then what is known, what to do, what to tell the user; at most 90 words; other people's words are quoted and
// escaped; no token, and no command that approves (D14).

import { idInstant } from './ids.ts';
import {
  acknowledgedAt,
  isFoundByLookUp,
  lastSentAt,
  lookedUpAt,
  sentAttempts,
  verifiedAt,
} from './known-facts.ts';
import { assertNever, isStatementCurrent, type Operation } from './operation.ts';
import {
  ARGUMENT,
  clock,
  limitWords,
  minute,
  NAME,
  named,
  plain,
  quoted,
  REASON,
  sentences,
  upperFirst,
} from './quoting.ts';
import { type StopInForce, whyOf } from './stop.ts';
import {
  divergedSentence,
  earlierTry,
  endedWords,
  knownSentence,
  type Surroundings,
  sentenceOf,
  statedSentence,
  statedWords,
  stopped,
  stoppedWords,
  unlikeSentence,
  waitWords,
  whyWords,
} from './wording.ts';

/** The first text block of an answer about an operation that is not a first, confirmed result. */
export function answerText(operation: Operation, words: Surroundings = {}): string {
  const [state = '', ...rest] = answerParts(operation, words);
  const other = words.otherRun === undefined ? '' : `It belongs to another run, of ${named(words.otherRun)}.`;
  // Of what is done it is said where the result is.
  const unlike = operation.stage === 'closed' ? '' : notAppliedBriefly(words);
  return limitWords(sentences(state, other, unlike, ...rest));
}

function answerParts(operation: Operation, words: Surroundings): readonly string[] {
  switch (operation.stage) {
    case 'proposed':
    case 'awaiting_approval':
    case 'held':
      return awaitingParts(operation, words);
    case 'ready':
      if (operation.why?.code === 'stopped') return notSentParts(operation, words);
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
      because.code === 'approval_expired' || because.code === 'approval_revoked'
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
    // Where it is told what was not applied there is no room for all of it.
    notAppliedBriefly(words) === ''
      ? 'Do not call this again and do not do it another way; a repeat returns this same operation. Go on with independent work.'
      : 'Do not call this again or do it another way.',
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
    case 'again':
      return `a second one beside ${previous?.operation ?? 'an earlier one'} was asked for; a person is asked whether it is wanted`;
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
    // There is room for one of the two.
    notAppliedBriefly(words) === '' ? 'Go on with work that does not touch it.' : '',
    `Next: ${asking(operation, words)}.`,
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

function notAppliedSentence(words: Surroundings): string {
  const names = notAppliedNames(words, NOT_APPLIED_MAX);
  return names === '' ? '' : `Different this time and NOT applied: ${names}.`;
}

/** Beside work that is open, of which there is more to be said: this version was not sent, and is not asked about. */
function notAppliedBriefly(words: Surroundings): string {
  const names = notAppliedNames(words, 2);
  return names === '' ? '' : `NOT applied: ${names}.`;
}

function notAppliedNames({ notApplied = [] }: Surroundings, max: number): string {
  const more = notApplied.length - max;
  const shown = notApplied.slice(0, max).map((name) => named(name, ARGUMENT));
  return [...shown, ...(more > 0 ? [`${more} more`] : [])].join(', ');
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
    case 'refused_by_rule':
      return [
        `${state} — ${endedWords(operation, words)} (${id}).`,
        known,
        'Do not repeat, reword, split or do it another way. Tell the user.',
      ];
    case 'cancelled':
      return [
        `${state} — ${endedWords(operation, words)} (${id}).`,
        known,
        'Do not send it again yourself. Tell the user.',
      ];
    case 'stopped':
      return [
        `${state} — ${lowerFirst(stoppedWords(why, operation))} (${id}).`,
        known,
        words.quote === undefined ? '' : stopped(`Reason: ${quoted(words.quote)}`),
        'It will not be sent later by itself; earlier changes were not reversed. Reads still work. Tell the user.',
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

/** For whoever has asked for a cancel: what that has ended, and what it has not (D10). */
export function cancelText(operation: Operation, words: Surroundings = {}): string {
  const { cancelRequestedAt, id, review, stage } = operation;
  if (stage === 'closed' || stage === 'parked') return statusText(operation, words);
  const first =
    review === undefined || cancelRequestedAt !== undefined
      ? `CANCEL REQUESTED${cancelRequestedAt === undefined ? '' : ` at ${clock(cancelRequestedAt)} UTC`} — nothing more of it will be sent; what was sent before is not called back or reversed (${id}).`
      : `NOT CANCELLED — a person was asked, and it is that person's to end (${id}).`;
  const [state = ''] = answerParts(operation, words);
  return limitWords(sentences(first, state));
}

/** Answered under a stop to a call that is no operation, so that nothing has an id. */
export function stoppedCallText(stop: StopInForce, call: Pick<Operation, 'destination' | 'tool'>): string {
  const why = whyOf(stop);
  const said = why.code === 'stopped' ? lowerFirst(stoppedWords(why, call)) : 'this run was cancelled';
  return `NOT SENT — ${said}. Nothing was recorded. Reads still work. Tell the user.`;
}

function lowerFirst(text: string): string {
  return text.charAt(0).toLowerCase() + text.slice(1);
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

/** A tool that its server lists and that cannot be called over the transport that reaches it. */
export function unusableText(tool: string, problem: string): string {
  return limitWords(
    `NOT SENT — the tool ${quoted(tool, NAME)} cannot be called: ${plain(problem, REASON)}. Nothing was recorded. It is its server's to correct. Tell the user.`,
  );
}

/** Its holder was given a token for reading. */
export function readOnlyText(tool: string, destination: string): string {
  return limitWords(
    `NOT SENT — this token opens ${named(destination)} for reading only, and ${quoted(tool, NAME)} writes. Nothing was recorded. Do not do it another way. Tell the user: a token for writing is needed.`,
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
