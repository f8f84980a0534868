// What an adapter's report says, in the contract's words.

import type { Attempt } from '../core/attempt.ts';
import type { ToolFacts, WorkStatus } from '../core/contract.ts';
import type { Finding } from '../core/evidence.ts';
import type { Operation } from '../core/operation.ts';
import { classifyReply, matchesSignal, readStatus } from '../core/reply-reading.ts';
import { keyGuard } from '../core/request-key.ts';
import type { Reply, SendReport } from '../destination/port.ts';

export interface ReportReading {
  readonly finding: Finding;
  readonly found?: Operation['record'];
  /** The reply lacks what shows that the guard of the contract was honoured. */
  readonly passedOver?: true;
}

/** @param under the guard under which the attempt repeats an earlier one, if it does */
export function readReport(report: SendReport, facts: ToolFacts, under?: Attempt['under']): ReportReading {
  if (report.left === 'no') return { finding: { kind: 'transport', left: 'no', what: report.proof } };
  if (report.reply === undefined) {
    return { finding: { kind: 'transport', left: 'maybe', what: report.ended } };
  }
  const reading = readReply(report.reply, facts);
  if (!isPassedOver(report.reply, reading, facts)) return reading;
  // It says that it is done; it does not say that it was not done twice.
  const finding: Finding =
    under === undefined ? reading.finding : { kind: 'transport', left: 'maybe', what: 'guard_not_proven' };
  return { ...reading, finding, passedOver: true };
}

/** Only of a write that it took can a destination be expected to show that it has seen the key. */
function isPassedOver(reply: Reply, { finding }: ReportReading, { operation }: ToolFacts): boolean {
  const proof = operation === undefined ? undefined : keyGuard(operation)?.honoured_proof;
  if (proof === undefined || proof.in === 'none') return false;
  if (finding.kind !== 'acknowledgement' || finding.means !== 'accepted') return false;
  return !matchesSignal(reply, { marker: proof });
}

function readReply(reply: Reply, facts: ToolFacts): ReportReading {
  const read = classifyReply(reply, facts.operation);
  const found = recordOf(read);
  switch (read.means) {
    case 'applied':
    case 'accepted':
      return { finding: { kind: 'acknowledgement', means: 'accepted' }, found };
    case 'in_progress':
      return { finding: { kind: 'acknowledgement', means: 'in_progress' }, found };
    case 'rejected':
      return { finding: { kind: 'acknowledgement', means: 'rejected' } };
    case 'rejected_temporary':
      return { finding: { kind: 'acknowledgement', means: 'rejected_temporary' } };
    case 'error':
      return { finding: { kind: 'acknowledgement', means: 'error' } };
    case 'unknown':
      return { finding: { kind: 'transport', left: 'maybe', what: DOUBTS[reply.doubt ?? 'none'] } };
  }
}

/** What a resource says of work that was taken: its end is the destination's own word about it. */
export function readWork(reply: Reply, status: WorkStatus): ReportReading {
  const read = readStatus(reply, status);
  switch (read.state) {
    case 'done':
      return { finding: { kind: 'lookup', found: 'present', count: 1 }, found: recordOf(read) };
    case 'failed': {
      const means = status.failedMeansNotApplied === true ? 'rejected' : 'error';
      return { finding: { kind: 'acknowledgement', means } };
    }
    case 'working':
    case 'inconclusive':
      return { finding: { kind: 'lookup', found: 'inconclusive' } };
  }
}

/** What came in the place of an answer, as evidence names it. */
const DOUBTS: { readonly [doubt in NonNullable<Reply['doubt']> | 'none']: string } = {
  none: 'reply_without_outcome',
  redirect: 'reply_points_elsewhere',
  gateway: 'reply_of_a_gateway',
  page: 'reply_is_a_page',
  empty: 'reply_is_empty',
  other: 'reply_to_another_request',
};

/** The destination's id and version of the record, where a reply told them. */
export function recordOf(read: { readonly record?: string; readonly version?: string }): {
  readonly id?: string;
  readonly version?: string;
} {
  return {
    ...(read.record === undefined ? {} : { id: read.record }),
    ...(read.version === undefined ? {} : { version: read.version }),
  };
}

/** A tool that is not known here: nothing is known of it but how the operation was proposed. */
export function factsUnknown(operation: Operation): ToolFacts {
  return {
    destination: operation.destination,
    tool: operation.tool,
    class: operation.toolClass,
    classSource: 'nobody',
    repeat: operation.repeat,
    checksArguments: false,
    digest: operation.factsDigest,
  };
}

export function describe(cause: unknown): string {
  return cause instanceof Error ? cause.message : String(cause);
}
