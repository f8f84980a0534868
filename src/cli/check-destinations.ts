// What `doctor` looks at of what destinations have shown: those that do not answer, and guards that were passed over.

import type { Ledger } from '../engine/ledger.ts';
import type { Check } from './check-machine.ts';
import { instant } from './lines.ts';
import { toType } from './starter.ts';
import { LOST_TRUST } from './trust.ts';

export async function checkDestinations(ledger: Ledger): Promise<readonly Check[]> {
  const circuits = await ledger.circuits.list();
  const guards = await ledger.guards.list();
  return [
    ...circuits.map(
      ({ destination, failures, since, tryAt }): Check => ({
        area: 'circuit',
        level: 'note',
        found: `${destination} has not answered ${failures} times in a row, since ${instant(since)}: what is for it waits, and goes on by itself`,
        fix: `Nothing, if it is down: one try is made from ${instant(tryAt)} on. What waits: ${toType('queue')}. When it answers again and you do not want to wait for that try: ${toType(`queue reset ${destination}`)}`,
      }),
    ),
    ...guards.map(
      ({ at, because, destination, operation, tool }): Check => ({
        area: 'guard',
        level: 'note',
        found: `the guard of ${tool} on ${destination} is counted on no longer since ${instant(at)}: ${LOST_TRUST[because]} (${operation})`,
        fix: `Look at it: ${toType(`show ${operation}`)}. When the destination keeps its promise again: ${toType(`contract trust ${destination}/${tool}`)}`,
      }),
    ),
  ];
}
