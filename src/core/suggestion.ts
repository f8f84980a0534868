// What recorded operations say about how a tool may be declared: a suggestion for a person, who decides.

import type { RepeatClass, ToolClass } from './contract.ts';
import type { Operation } from './operation.ts';

export interface ToolSuggestion {
  readonly destination: string;
  readonly tool: string;
  /** The class that its newest operation was treated as. */
  readonly present: ToolClass;
  readonly class?: Exclude<ToolClass, 'unclassified' | 'read'>;
  readonly repeat?: RepeatClass;
  /** What each of the two rests on. */
  readonly because: readonly string[];
}

/** Fewer decisions than this say nothing about a tool. */
const DECISIONS_MIN = 3;

/**
 * One entry for each tool that was written through. A read is never suggested, and nothing less careful than
 * *irreversible* for a tool that is so now: what operations look like does not tell what can be taken back.
 */
export function suggestClasses(operations: readonly Operation[]): readonly ToolSuggestion[] {
  const byTool = new Map<string, Operation[]>();
  for (const operation of operations) {
    const name = `${operation.destination}/${operation.tool}`;
    byTool.set(name, [...(byTool.get(name) ?? []), operation]);
  }
  return [...byTool.entries()].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, all]) => suggestFor(all));
}

function suggestFor(operations: readonly Operation[]): ToolSuggestion {
  const newest = operations.reduce((one, other) => (other.id > one.id ? other : one));
  const { destination, tool, toolClass: present } = newest;
  const classed = suggestedClass(operations, present);
  const repeated = suggestedRepeat(operations, newest.repeat);
  return {
    destination,
    tool,
    present,
    ...(classed === undefined ? {} : { class: classed.class }),
    ...(repeated === undefined ? {} : { repeat: repeated.repeat }),
    because: [...(classed?.because ?? []), ...(repeated?.because ?? [])],
  };
}

function suggestedClass(
  operations: readonly Operation[],
  present: ToolClass,
): { readonly class: 'ordinary' | 'irreversible'; readonly because: readonly string[] } | undefined {
  if (present === 'irreversible') return undefined;
  const decisions = operations.flatMap(({ review }) => review?.decision?.kind ?? []);
  const denied = decisions.filter((kind) => kind === 'denied').length;
  if (denied > 0) {
    return { class: 'irreversible', because: [`${denied} of ${decisions.length} decisions on it were a no`] };
  }
  if (present !== 'unclassified' || decisions.length < DECISIONS_MIN) return undefined;
  return { class: 'ordinary', because: [`all ${decisions.length} decisions on it were a yes`] };
}

/** Equal calls that became operations of their own, though nothing says that both were meant. */
function suggestedRepeat(
  operations: readonly Operation[],
  present: RepeatClass,
): { readonly repeat: RepeatClass; readonly because: readonly string[] } | undefined {
  if (present !== 'free') return undefined;
  const repeats = operations.filter(({ previous }) => previous?.relation === 'occurrence').length;
  if (repeats === 0) return undefined;
  return {
    repeat: 'unique',
    because: [
      `${repeats} equal ${repeats === 1 ? 'call was' : 'calls were'} sent again; as unique ${repeats === 1 ? 'it' : 'they'} would have been answered with the first`,
    ],
  };
}
