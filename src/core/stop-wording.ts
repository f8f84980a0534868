// Every word that a person is shown for a stop or a cancel: its scope, and the three acknowledgements (D10).

import type { Acknowledgements, OutCounts } from './cancellation.ts';
import { clock, named } from './quoting.ts';
import type { StopScope } from './stop.ts';

/** What is stopped, or is to be: the rest of a sentence. */
export function scopeWords(scope: StopScope): string {
  switch (scope.kind) {
    case 'everything':
      return 'all sending';
    case 'destination':
      return `sending to ${named(scope.destination)}`;
    case 'tool':
      return `sending ${named(scope.tool)} to ${named(scope.destination)}`;
    case 'run':
      return `sending for the run ${named(scope.run)}`;
    case 'requester':
      return `sending for ${named(scope.requester)}`;
  }
}

/** Each with its time; the last one names what keeps it open. Earlier changes are never called back by it. */
export function acknowledgementLines(
  { noMore, out, requestedAt, settledAt }: Acknowledgements,
  first: 'Cancel requested' | 'Stopped',
): readonly string[] {
  return [
    `${first} at ${clock(requestedAt)} UTC.`,
    'at' in noMore
      ? `No more will be sent, since ${clock(noMore.at)} UTC.`
      : `That no more will be sent can be said at ${clock(noMore.until)} UTC: what was just being handed over may still leave.`,
    ...outLines(out, settledAt),
  ];
}

function outLines(out: OutCounts, settledAt: number | undefined): readonly string[] {
  const { closedUnknown, errorReported, landed, notLanded, open } = out;
  const all = closedUnknown.length + errorReported + landed + notLanded + open;
  if (all === 0) return ['Nothing was out.'];
  const counts = [
    landed === 0 ? '' : `${landed} landed`,
    notLanded === 0 ? '' : `${notLanded} did not`,
    errorReported === 0 ? '' : `${errorReported} answered with an error`,
  ].filter((part) => part !== '');
  const known = counts.length === 0 ? '' : ` (${counts.join(', ')})`;
  if (settledAt !== undefined) return [`What was out has settled, at ${clock(settledAt)} UTC${known}.`];
  const waits =
    open === 0 ? [] : [`${open} ${open === 1 ? 'result' : 'results'} still being checked${known}.`];
  const closed = closedUnknown.map(
    ({ by, operation }) => `1 result closed as unknown by ${named(by)} (${operation}).`,
  );
  return [...waits, ...closed];
}
