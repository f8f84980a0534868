// Every word that a person or a model is shown for a state. Console, CLI, HTTP and MCP take them from here.
//
// For people: a label, a sentence. For models: the first text block of an answer, whose first words are the
// state; then what is known, what to do, what to tell the user; at most 90 words; other people's words are
// quoted and escaped; no token, and no command that approves (D14).

import type { Effect, Stage } from './lifecycle.ts';
import { assertNever, type Operation, type ReviewQuestion, type Why } from './operation.ts';

/** Words that the operation itself does not carry, because they are content or configuration. */
export interface Surroundings {
  /** The target in words, e.g. `file /srv/a.txt`; absent where none is declared or it is withheld. */
  readonly target?: string;
  /** Other people's words, to be quoted: a reviewer's reason, a schema problem. */
  readonly quote?: string;
  /** Top-level arguments that an equal call gave differently, and that were not sent. */
  readonly notApplied?: readonly string[];
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
  if (operation.stage === 'awaiting_approval' && operation.review?.because !== undefined)
    return STAGE_LABELS.held;
  if (operation.stage !== 'closed') return STAGE_LABELS[operation.stage];
  if (operation.resolution !== undefined && operation.effect === 'unknown') {
    return `Stated by ${operation.resolution.by} at ${clock(operation.resolution.at)}`;
  }
  if (operation.effect === 'verified') return `Verified at ${clock(verifiedAt(operation))}`;
  return operation.why?.code === 'denied' ? 'Denied by a person' : LABELS[operation.effect];
}

/** One sentence for people: what this state means, and nothing that is not known. */
export function sentenceOf(operation: Operation, words: Surroundings = {}): string {
  const { destination } = operation;
  switch (operation.stage) {
    case 'proposed':
      return 'Saved here. Nothing has been sent.';
    case 'awaiting_approval':
      return operation.review?.because === undefined
        ? `${questionFor(operation.review?.question)} ${unknownReminder(operation)}`.trim()
        : `${becauseWords(operation.review.because, destination)} A new decision is needed. ${unknownReminder(operation) || 'We changed nothing.'}`;
    case 'held':
      return `${becauseWords(operation.why, destination)} A new decision is needed. We changed nothing.`;
    case 'ready':
      return `Not sent yet. ${upperFirst(becauseWords(operation.why, destination))}`;
    case 'sending':
      return 'On its way. No answer yet.';
    case 'checking':
      return checkingSentence(operation);
    case 'parked':
      return `${becauseWords(operation.why, destination)} ${knownSentence(operation, words)}`;
    case 'closed':
      return knownSentence(operation, words);
    default:
      return assertNever(operation.stage);
  }
}

function unknownReminder(operation: Operation): string {
  return operation.effect === 'unknown' ? 'An earlier try may or may not have happened.' : '';
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
      return 'An equal write was answered with an error, and whether it changed anything is not established.';
    case 'ordered_again':
      return 'A person asked for it to be sent again. That needs an approval of its own.';
    case 'irreversible':
    case undefined:
      return 'A person must approve this exact action first.';
  }
}

function checkingSentence(operation: Operation): string {
  const { why } = operation;
  if (why?.code === 'looking_up' || why?.code === 'destination_still_working') {
    const what = why.code === 'looking_up' ? 'Looking it up' : 'The destination is still working on it';
    return `${what}; next check at ${clock(why.nextAt)}. It may or may not have happened. Do not repeat it.`;
  }
  return 'The service acknowledged it. The changed record is being read back.';
}

/** What is known of the effect, in one or two sentences. */
function knownSentence(operation: Operation, words: Surroundings): string {
  const { destination } = operation;
  switch (operation.effect) {
    case 'not_sent':
      return `${destination} never received this. We changed nothing. ${notSentReason(operation, words)}`.trim();
    case 'unknown':
      return `It may or may not have happened. Do not repeat it.${statedSentence(operation)}`;
    case 'error_reported':
      return `${destination} reported an error. Whether it changed anything is not established.`;
    case 'accepted':
      return acceptedSentence(operation);
    case 'verified':
      return 'We read the changed record back and it matched.';
    case 'rejected':
      return `${destination} says that it did not apply this.`;
    case 'absent':
      return `Looked up at ${clock(lastLookUpAt(operation))}, after the settle time: not there.`;
    case 'diverged':
      return divergedSentence(operation);
    default:
      return assertNever(operation.effect);
  }
}

function acceptedSentence(operation: Operation): string {
  const kind = isFoundByLookUp(operation) ? 'Found by look-up' : 'The service acknowledged it';
  const unlike = operation.evidence.findLast((piece) => piece.kind === 'readback');
  if (unlike?.kind === 'readback' && unlike.matches === false) {
    return unlike.otherwise === 'later_writer'
      ? `${kind}. It was changed by somebody else since.`
      : `${kind}. Read back at ${clock(unlike.observedAt)} and different; whether this write took effect cannot be told.`;
  }
  return `${kind}. We have not looked at the result.`;
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

function statedSentence(operation: Operation): string {
  const { resolution } = operation;
  if (resolution === undefined) return '';
  const contradicted = resolution.contradicted === true ? ' Later evidence contradicts this.' : '';
  return ` ${resolution.by} stated at ${clock(resolution.at)} that ${statedWords(resolution.resolution)}.${contradicted}`;
}

function statedWords(resolution: NonNullable<Operation['resolution']>['resolution']): string {
  switch (resolution) {
    case 'stated_happened':
      return 'it happened';
    case 'stated_not_happened':
      return 'it did not happen';
    case 'stated_other_change':
      return 'something else changed it';
  }
}

function notSentReason(operation: Operation, words: Surroundings): string {
  switch (operation.why?.code) {
    case 'denied':
      return words.quote === undefined
        ? 'Denied by a person.'
        : `Denied by a person: ${quoted(words.quote)}.`;
    case 'replaced':
      return `Replaced by ${operation.why.by}.`;
    case 'review_undecided':
      return 'Nobody decided before the review ended.';
    case 'arguments':
      return `The arguments do not fit the tool${words.quote === undefined ? '' : `: ${quoted(words.quote)}`}.`;
    case 'withdrawn_by_caller':
      return 'The caller took it back before it was sent.';
    case 'given_up':
      return `Given up by ${operation.why.by}.`;
    default:
      return '';
  }
}

/** Why an operation waits, is held or is with a person. */
function becauseWords(why: Why | undefined, destination: string): string {
  switch (why?.code) {
    case 'waits_for_operation':
      return `waits for ${why.operation}, which changes the same object.`;
    case 'waits_for_destination':
      return `waits for ${destination} to answer again.`;
    case 'waits_for_gateway':
      return `waits for a gateway to ${destination}.`;
    case 'waits_until':
      return `is sent again at ${clock(why.until)}.`;
    case 'approval_expired':
      return 'The approval has expired.';
    case 'rule_stricter':
      return 'The rule for this tool became stricter.';
    case 'no_lookup':
      return `The answer was lost, and ${destination} offers no way to look the operation up.`;
    case 'lookups_exhausted':
      return `${why.count} look-up${why.count === 1 ? '' : 's'} gave no answer.`;
    case 'absent_needs_decision':
      return 'It was looked for and is not there; sending it again needs a decision.';
    case 'bounds_used_up':
      return `${why.attempts} attempts were made; no more are made without a person.`;
    case 'digest_mismatch':
      return 'The stored payload is not what was decided on. Nothing was sent.';
    case 'contradiction':
      return 'The evidence contradicts itself.';
    case 'review_undecided':
      return 'Nobody decided before the review ended.';
    default:
      return `waits for a gateway to ${destination}.`;
  }
}

// ── For the model ──────────────────────────────────────────────────────────────────────────────────────────

/** The first text block of an answer about an operation that is not a first, confirmed result. */
export function answerText(operation: Operation, words: Surroundings = {}): string {
  const text = answerParts(operation, words)
    .filter((part) => part !== '')
    .join(' ');
  return limitWords(text);
}

function answerParts(operation: Operation, words: Surroundings): readonly string[] {
  const id = operation.id;
  const { destination } = operation;
  const other = words.otherRun === undefined ? '' : `It belongs to another run, of ${words.otherRun}.`;
  switch (operation.stage) {
    case 'proposed':
    case 'awaiting_approval':
    case 'held':
      return [...awaitingParts(operation, words), other];
    case 'ready':
      return [
        `NOT SENT YET — ${becauseWords(operation.why, destination).replace(/\.$/, '')} (${id}).`,
        'It is sent without you when that clears. Do not repeat it. Go on with independent work.',
        other,
      ];
    case 'sending':
      return [
        `SENT, NO ANSWER YET (${id}).`,
        `Do not repeat it, reword it, or do it another way. Next: ${helper(words)} {"operation": "${id}", "wait_s": 45}.`,
        other,
      ];
    case 'checking':
      return [...unknownParts(operation, words), other];
    case 'parked':
      return [...parkedParts(operation, words), other];
    case 'closed':
      return [...closedParts(operation, words), other];
    default:
      return assertNever(operation.stage);
  }
}

function awaitingParts(operation: Operation, words: Surroundings): readonly string[] {
  const { destination, id, review, tool } = operation;
  const until = review === undefined ? '' : ` until ${minute(review.expiresAt)} UTC`;
  if (review?.because !== undefined) {
    return [
      `NOT SENT — held (${id}). ${becauseWords(review.because, destination)}`,
      'The same call returns this answer; a person has been asked again.',
      'Other values are a new proposal. Otherwise tell the user what changed.',
    ];
  }
  if (review?.question === 'same_work' || review?.question === 'too_old') {
    const why =
      review.question === 'same_work'
        ? `the same write was made in another run (${operation.previous?.operation ?? 'earlier'}); a person is asked whether this is the same work`
        : 'this run is too old to tell whether it was made before; a person is asked';
    return [`NOT SENT — ${why} (${id}).`, 'Do not repeat it. Tell the user.'];
  }
  const unknown = operation.effect === 'unknown' ? ' An earlier try may or may not have happened.' : '';
  const reached = operation.effect === 'unknown' ? unknown : ` Nothing has reached ${destination}.`;
  return [
    `NOT SENT YET — waiting for a person's approval (${id}). ${tool} on ${destination}${subject(words)}.${reached}`,
    'Do not call this again and do not do it another way; a repeat returns this same operation.',
    'Work that does not depend on it may go on.',
    `To wait: ${helper(words)} {"operation": "${id}", "wait_s": 45}, at most twice; then tell the user it can be decided${until}${words.where === undefined ? '' : ` at ${words.where}`}, with the reference, and end your turn.`,
  ];
}

function unknownParts(operation: Operation, words: Surroundings): readonly string[] {
  const { id, why } = operation;
  if (operation.effect === 'accepted') {
    return [`ACCEPTED, BEING READ BACK (${id}).`, 'Do not repeat it.'];
  }
  const nextAt =
    why?.code === 'looking_up' || why?.code === 'destination_still_working' ? why.nextAt : undefined;
  const next = nextAt === undefined ? '' : `; next check ${clock(nextAt)}`;
  return [
    `OUTCOME UNKNOWN — sent ${times(operation)} at ${clock(lastSentAt(operation))} UTC, the answer was lost (${id}).`,
    `${upperFirst(words.target ?? 'the change')} may or may not have happened. It is being looked up${next}.`,
    'Do not repeat it, reword it, or reach the same effect another way. Do not call it done or failed.',
    `Go on with work that does not touch it. Next: ${helper(words)}.`,
  ];
}

function parkedParts(operation: Operation, words: Surroundings): readonly string[] {
  const { destination, effect, id, why } = operation;
  if (effect === 'unknown') {
    return [
      `OUTCOME UNKNOWN — with a person now (${id}). ${becauseWords(why, destination)} It is not sent again automatically.`,
      'Do not wait, poll or repeat. Go on only with independent work. Tell the user the reference.',
    ];
  }
  if (effect === 'diverged') {
    return [
      `CONTRADICTING EVIDENCE — with a person now (${id}). ${divergedSentence(operation)}`,
      'Do not repeat it and do not correct it yourself. Tell the user the reference.',
    ];
  }
  return [
    `NOT SENT — with a person now (${id}). ${becauseWords(why, destination)}`,
    `Do not repeat it. Tell the user the reference.${words.where === undefined ? '' : ` It is listed at ${words.where}.`}`,
  ];
}

function closedParts(operation: Operation, words: Surroundings): readonly string[] {
  const { destination, effect, id } = operation;
  switch (effect) {
    case 'accepted':
    case 'verified':
      return alreadyExistsParts(operation, words);
    case 'unknown':
    case 'diverged':
      return [
        `${effect === 'unknown' ? 'OUTCOME UNKNOWN' : 'CONTRADICTING EVIDENCE'} —${statedSentence(operation) || ' closed by a person.'} (${id}).`,
        'Not checked by us. Do not repeat it; tell the user.',
      ];
    case 'error_reported':
      return [
        `${destination} answered with an error (${id}).`,
        'Correct the arguments and call again, or read the record first if it may have been changed.',
      ];
    case 'rejected':
      return [`${destination} refused this and says it did not apply it (${id}).`, 'Correct and call again.'];
    case 'absent':
      return [
        `NOT THERE — looked up at ${clock(lastLookUpAt(operation))} UTC, after the settle time (${id}).`,
        'Tell the user before it is sent again.',
      ];
    case 'not_sent':
      return notSentParts(operation, words);
    default:
      return assertNever(effect);
  }
}

function alreadyExistsParts(operation: Operation, words: Surroundings): readonly string[] {
  const { destination, id, record } = operation;
  const found = isFoundByLookUp(operation)
    ? `found by look-up ${clock(lastLookUpAt(operation))} UTC`
    : `accepted ${clock(acknowledgedAt(operation))} UTC`;
  const readBack = operation.effect === 'verified' ? `, read back ${clock(verifiedAt(operation))}` : '';
  const held =
    record?.id === undefined ? `${destination} has it` : `${destination} holds it as ${quoted(record.id)}`;
  const notApplied = words.notApplied ?? [];
  return [
    `ALREADY_EXISTS — this was done before${words.otherRun === undefined ? ' in this run' : ''}; nothing was sent now (${id}).`,
    `${held}: ${found}${readBack}.`,
    notApplied.length === 0
      ? ''
      : `Different this time and NOT applied: ${notApplied.map(plain).join(', ')}.`,
    operation.result === undefined ? '' : 'Use the result below.',
    'If a second one is really wanted, ask the user; a person must allow it.',
  ];
}

/** For the caller whose own answer was lost on the way and found again by look-up. */
export function foundText(operation: Operation, words: Surroundings = {}): string {
  const { destination, id, record } = operation;
  const held =
    record?.id === undefined ? `${destination} has it` : `${destination} holds it as ${quoted(record.id)}`;
  const readBack = operation.effect === 'verified' ? `, read back ${clock(verifiedAt(operation))}` : '';
  const notApplied = words.notApplied ?? [];
  return limitWords(
    [
      `ALREADY_EXISTS — sent ${times(operation)} at ${clock(lastSentAt(operation))} UTC; its answer was lost, and the record was found (${id}).`,
      `${held}: found by look-up ${clock(lastLookUpAt(operation))} UTC${readBack}.`,
      notApplied.length === 0
        ? ''
        : `Different this time and NOT applied: ${notApplied.map(plain).join(', ')}.`,
      'It is done: do not repeat it.',
    ]
      .filter((part) => part !== '')
      .join(' '),
  );
}

function notSentParts(operation: Operation, words: Surroundings): readonly string[] {
  const { destination, id, why } = operation;
  switch (why?.code) {
    case 'arguments':
      return [
        `NOT SENT — arguments do not fit the tool${words.quote === undefined ? '' : `: ${plain(words.quote)}`} (${id}).`,
        'Correct and call again.',
      ];
    case 'denied': {
      const at = operation.review?.decision?.at;
      const reason = words.quote === undefined ? '' : ` Reason: ${quoted(words.quote)}.`;
      return [
        `NOT SENT — denied by an approver${at === undefined ? '' : ` at ${minute(at)} UTC`} (${id}). Nothing reached ${destination}.${reason}`,
        'Do not repeat, reword, split or do it another way. Tell the user.',
      ];
    }
    case 'replaced':
      return [`NOT SENT — replaced by ${why.by} (${id}).`, 'Do not send it again yourself. Tell the user.'];
    case 'review_undecided':
      return [
        `NOT SENT — nobody decided before the review ended (${id}). Nothing reached ${destination}.`,
        'Calling again asks a person again. Tell the user.',
      ];
    default:
      return [
        `NOT SENT — ${notSentReason(operation, words).replace(/\.$/, '') || 'nothing left here'} (${id}). Nothing reached ${destination}.`,
        'It may be called again.',
      ];
  }
}

/** Answered while the ledger cannot record: nothing has an id. */
export function storeDownText(): string {
  return 'NOT RECORDED, NOT SENT — the ledger cannot record writes now. Reads still work. Do not do it another way. Tell the user.';
}

/** Arguments that cannot be represented exactly: refused before anything is recorded under them. */
export function unrepresentableText(reason: string): string {
  return limitWords(
    `NOT SENT — the arguments cannot be represented exactly: ${plain(reason)} Correct and call again.`,
  );
}

/** What was written down about a tool does not fit the tool: its calls cannot be told apart, so none is sent. */
export function misconfiguredText(tool: string, problem: string): string {
  return limitWords(
    `NOT SENT — the configuration of this gateway does not fit the tool ${quoted(tool)}, so its writes cannot be told apart. Nothing was recorded. The owner must correct it: ${plain(problem)} Tell the user. Reads still work.`,
  );
}

function helper(words: Surroundings): string {
  return words.helperTool ?? 'counterfoil_operation_status';
}

function subject(words: Surroundings): string {
  return words.target === undefined ? '' : `, ${plain(words.target)}`;
}

function times(operation: Operation): string {
  const count = operation.attempts.length;
  return count <= 1 ? 'once' : `${count} times, last`;
}

// ── Facts read off the evidence ────────────────────────────────────────────────────────────────────────────

export function isFoundByLookUp(operation: Operation): boolean {
  const acknowledged = operation.evidence.some(
    (piece) => (piece.kind === 'acknowledgement' || piece.kind === 'notice') && piece.means === 'accepted',
  );
  return (
    !acknowledged && operation.evidence.some((piece) => piece.kind === 'lookup' && piece.found === 'present')
  );
}

function acknowledgedAt(operation: Operation): number {
  return operation.evidence.find((piece) => piece.kind === 'acknowledgement')?.observedAt ?? operation.since;
}

function lastLookUpAt(operation: Operation): number {
  return operation.evidence.findLast((piece) => piece.kind === 'lookup')?.observedAt ?? operation.since;
}

function verifiedAt(operation: Operation): number {
  const readBack = operation.evidence.findLast(
    (piece) => piece.kind === 'readback' && piece.matches === true,
  );
  return readBack?.observedAt ?? operation.since;
}

function lastSentAt(operation: Operation): number {
  return operation.attempts.at(-1)?.startedAt ?? operation.since;
}

// ── Small things about text ────────────────────────────────────────────────────────────────────────────────

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

const QUOTE_MAX = 160;

/** Other people's words on one line, without characters that hide, reorder or control. */
function plain(text: string): string {
  const cut = text.length > QUOTE_MAX ? `${text.slice(0, QUOTE_MAX)}…` : text;
  return cut
    .replace(/[\p{Cc}\p{Cf}\p{Co}\p{Cs}\u2028\u2029]/gu, (character) => {
      const code = character.codePointAt(0) ?? 0;
      return character === '\n' || character === '\t' ? ' ' : `\\u{${code.toString(16)}}`;
    })
    .trim();
}

/** The same between quotation marks, so that a reader sees whose words they are. */
export function quoted(text: string): string {
  return `"${plain(text).replaceAll('"', "'")}"`;
}

/** D14's limit; the sentences above stay well below it, only quoted words can reach it. */
const WORDS_MAX = 90;

function limitWords(text: string): string {
  const words = text.split(' ');
  return words.length <= WORDS_MAX ? text : `${words.slice(0, WORDS_MAX - 1).join(' ')} …`;
}
