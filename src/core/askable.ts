// Which look-ups an operation can be asked about by now, best first: a resource that tells of work that goes on comes
// before all others, and what needs the destination's own id has no place while there is none.

import type { ContractOperation, Lookup, ToolFacts } from './contract.ts';
import type { Operation } from './operation.ts';
import { templateNames } from './template.ts';

/** The facts with the look-ups that this operation can be asked about, in the order in which they are asked. */
export function askableNow(facts: ToolFacts, operation: Operation): ToolFacts {
  const { operation: stated } = facts;
  if (stated === undefined || !stated.lookups.some(isBound)) return facts;
  const lookups = orderedFor(stated, operation);
  return { ...facts, operation: { ...stated, lookups } };
}

function orderedFor({ lookups }: ContractOperation, operation: Operation): readonly Lookup[] {
  const fits = lookups.filter((lookup) => operation.record?.id !== undefined || !isBound(lookup));
  const isWorking = operation.why?.code === 'destination_still_working';
  const isFirst = (lookup: Lookup): boolean => (lookup.status !== undefined) === isWorking;
  return [...fits.filter(isFirst), ...fits.filter((lookup) => !isFirst(lookup))];
}

/** Whether its question needs the id that the destination gives. */
function isBound({ tool }: Lookup): boolean {
  const names = templateNames(tool?.arguments);
  return names.includes('$record') || names.includes('$record_number');
}
