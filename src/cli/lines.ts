// Lines for a terminal: other people's words made harmless, instants in UTC, evidence and history in words.

import type { Evidence } from '../core/evidence.ts';
import type { Why } from '../core/operation.ts';
import { FINDINGS_STATED } from '../core/wording.ts';
import type { HistoryEntry } from '../engine/readings.ts';

/** Characters that control, hide or reorder are shown as escapes, so that a terminal shows what is there. */
export function printable(text: string): string {
  return text.replace(
    /[\p{Cc}\p{Cf}\p{Co}\p{Cs}\u2028\u2029]/gu,
    (character) => `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`,
  );
}

/** A line of somebody's file: indented as it is there. */
export function printableLine(line: string): string {
  return line.split('\t').map(printable).join('\t');
}

/** `2026-11-30 14:03:11 UTC`. */
export function instant(at: number): string {
  return `${new Date(at).toISOString().slice(0, 19).replace('T', ' ')} UTC`;
}

const PAYLOAD_LINES_MAX = 200;

/** The exact payload, indented, whole; an over-long one says how much is left out. */
export function payloadLines(text: string): readonly string[] {
  let lines: readonly string[];
  try {
    lines = JSON.stringify(JSON.parse(text), null, 2).split('\n');
  } catch {
    lines = [text];
  }
  const shown = lines.slice(0, PAYLOAD_LINES_MAX).map((line) => `    ${printable(line)}`);
  return lines.length > PAYLOAD_LINES_MAX
    ? [...shown, `    … ${lines.length - PAYLOAD_LINES_MAX} more lines; show them with --json`]
    : shown;
}

/** The review as it was stored, whole; without one, the payload as it is. */
export function reviewLines(shown: readonly string[] | undefined, payload: string): readonly string[] {
  if (shown === undefined) return payloadLines(payload);
  const lines = shown.slice(0, PAYLOAD_LINES_MAX).map((line) => `    ${printable(line)}`);
  const more = shown.length - PAYLOAD_LINES_MAX;
  return more > 0 ? [...lines, `    … ${more} more lines; show them with --json`] : lines;
}

export function evidenceLine(piece: Evidence): string {
  return `${instant(piece.observedAt)}  ${findingWords(piece)}`;
}

function findingWords(piece: Evidence): string {
  switch (piece.kind) {
    case 'transport':
      return piece.left === 'no'
        ? `nothing left here (${spelled(piece.what)})`
        : `it may have left, and no complete answer came (${spelled(piece.what)})`;
    case 'acknowledgement':
      return `answered: ${piece.means.replaceAll('_', ' ')}`;
    case 'lookup':
      return `looked up: ${piece.found.replaceAll('_', ' ')}${severalWords(piece)}`;
    case 'readback':
      return piece.matches === true
        ? 'read back: it matches'
        : piece.matches === false
          ? `read back: it differs${UNLIKE[piece.otherwise ?? 'cannot_tell']}`
          : 'read back: could not be compared';
    case 'notice':
      return `told by the destination: ${piece.means}`;
  }
}

/** What the versions say of a read-back that differs. */
const UNLIKE = {
  nobody_wrote: ' at the version of our own write: nobody wrote in between',
  later_writer: ' at a later version: somebody wrote after us',
  cannot_tell: '',
} as const;

function severalWords({ count = 0, records = [] }: Extract<Evidence, { kind: 'lookup' }>): string {
  if (count < 2) return '';
  const ids = records.map(printable).join(', ');
  return ids === ''
    ? ` (${count} records)`
    : ` (${count} records: ${ids}${records.length < count ? ', …' : ''})`;
}

export function historyLine(entry: HistoryEntry): string {
  return `${instant(entry.recordedAt)}  ${eventWords(entry)}`;
}

function eventWords({ event }: HistoryEntry): string {
  switch (event.type) {
    case 'proposed':
      return 'proposed';
    case 'allowed':
      return `allowed by the rule ${event.rule}`;
    case 'review_opened':
      return `a person is asked (${event.review.id}) until ${instant(event.review.expiresAt)}`;
    case 'approved_in_part':
      return `approved by ${printable(event.decision.by)}, one of several who must (strength: ${event.decision.strength})`;
    case 'approved':
    case 'denied':
      return `${event.type} by ${printable(event.decision.by)} (strength: ${event.decision.strength})`;
    case 'revoked':
      return `the approval was revoked by ${printable(event.revocation.by)} (strength: ${event.revocation.strength})`;
    case 'attempt_started':
      return `attempt ${event.attempt.number} recorded as started, before anything was sent`;
    case 'leg_recorded':
      return `the destination asked back: leg ${event.leg} recorded, before the answer was sent`;
    case 'attempt_fenced':
      return 'the sender was gone: its attempt is unknown from here on';
    case 'evidence_recorded':
      return findingWords(event.evidence);
    case 'replay_seen':
      return 'an equal call came again';
    case 'superseded':
      return `a changed proposal followed it (${event.by})`;
    case 'reopened':
      return `asked for again by ${event.by === 'caller' ? 'the caller' : printable(event.by)}`;
    case 'sending_ended':
      return 'a stop was lifted without it: it is not sent again by itself';
    case 'ordered_again':
      return `ordered again by ${printable(event.by)}`;
    case 'look_up_ordered':
      return `${printable(event.by)} asked for a look-up now`;
    case 'stated':
      return `${printable(event.stated.by)} stated: ${FINDINGS_STATED[event.stated.resolution]}`;
    case 'cancel_requested':
      return event.cancelled === undefined
        ? 'the caller asked to cancel'
        : `${printable(event.cancelled.by)} asked to cancel`;
    case 'delivered':
      return 'its answer reached the caller';
    case 'waiting':
    case 'held':
    case 'checking':
    case 'sending_again':
    case 'parked':
    case 'closed':
      return `${spelled(event.type)}: ${reasonWords(event.why)}`;
  }
}

function spelled(code: string): string {
  return code.replaceAll('_', ' ');
}

function reasonWords(why: Why): string {
  switch (why.code) {
    case 'looking_up':
      return `a look-up is due at ${instant(why.nextAt)}`;
    case 'destination_still_working':
      return `the destination is still working; it is asked again at ${instant(why.nextAt)}`;
    case 'reading_back':
      return 'the changed record is read back';
    case 'waits_until':
      return `at ${instant(why.until)}`;
    case 'waits_for_operation':
    case 'waits_for_predecessor':
    case 'waits_for_go_on':
    case 'go_on_refused':
      return `for ${why.operation}`;
    case 'waits_for_destination':
      return `the destination does not answer (${printable(why.detail)})`;
    case 'answered':
      return 'what is known of it is settled';
    case 'arguments':
      return 'the arguments do not fit the tool';
    case 'replaced':
      return `${why.by} took its place`;
    case 'given_up':
    case 'approval_revoked':
    case 'stated':
      return `by ${printable(why.by)}`;
    default:
      return spelled(why.code);
  }
}
