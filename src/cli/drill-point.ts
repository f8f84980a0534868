// Stopping at a named point, for drills: the process kills itself as a crash would, with nothing cleaned up.

import { type Reached, STOPPING_POINTS } from '../core/stopping-points.ts';
import { CommandFault, EXIT } from './output.ts';

/**
 * @param setting `POINT` or `POINT:N`, the N-th time that the point is reached; `undefined` in production
 */
export function drillPoint(setting: string | undefined): Reached {
  if (setting === undefined || setting === '') return () => {};
  const [name, count = '1'] = setting.split(':');
  const point = STOPPING_POINTS.find((known) => known === name);
  const times = Number(count);
  if (point === undefined || !Number.isSafeInteger(times) || times < 1) {
    throw new CommandFault(
      EXIT.usage,
      `COUNTERFOIL_DRILL_CRASH_AT names no stopping point: ${setting}. Allowed is one of ${STOPPING_POINTS.join(', ')}, and :N for the N-th time.`,
    );
  }
  let left = times;
  return (reached) => {
    if (reached !== point) return;
    left -= 1;
    if (left === 0) process.kill(process.pid, 'SIGKILL');
  };
}
