// What an adapter's report says, in the contract's words.

import type { ToolFacts } from '../core/contract.ts';
import type { Finding } from '../core/evidence.ts';
import type { Operation } from '../core/operation.ts';
import { classifyReply } from '../core/reply-reading.ts';
import type { Reply, SendReport } from '../destination/port.ts';

export interface ReportReading {
  readonly finding: Finding;
  readonly found?: Operation['record'];
}

export function readReport(report: SendReport, facts: ToolFacts): ReportReading {
  if (report.left === 'no') return { finding: { kind: 'transport', left: 'no', what: report.proof } };
  if (report.reply === undefined) {
    return { finding: { kind: 'transport', left: 'maybe', what: report.ended } };
  }
  return readReply(report.reply, facts);
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
      return { finding: { kind: 'transport', left: 'maybe', what: 'reply_without_outcome' } };
  }
}

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
