// A run that has gone wrong, made smaller: fewer who take part, less that goes wrong, a shorter time, as long as the
// same invariant is broken.

import { playSeed } from './world.mjs';

const TRIES_MAX = 120;

/** @returns the smallest plan that was found, with how its run ended */
export async function shrunk(build, ended, options = {}) {
  let best = ended;
  let tries = 0;
  for (let isSmaller = true; isSmaller && tries < TRIES_MAX; ) {
    isSmaller = false;
    for (const plan of smallerPlans(best.plan)) {
      tries += 1;
      if (tries > TRIES_MAX) break;
      const end = await playSeed(build, plan.seed, { ...options, plan });
      if (end.violation === undefined || end.violation.invariant !== best.violation.invariant) continue;
      best = end;
      isSmaller = true;
      break;
    }
  }
  return best;
}

function* smallerPlans(plan) {
  for (const what of Object.keys(plan.nemesis)) {
    const { [what]: _left, ...nemesis } = plan.nemesis;
    yield { ...plan, nemesis };
  }
  for (const [index] of plan.destinations.entries()) {
    const destinations = plan.destinations.filter((_, other) => other !== index);
    if (destinations.length > 0) yield { ...plan, destinations };
  }
  if (plan.agents > 1) yield { ...plan, agents: plan.agents - 1 };
  if (plan.processes > 1) yield { ...plan, processes: plan.processes - 1 };
  for (const [fault, often] of Object.entries(plan.wire)) {
    if (often > 0) yield { ...plan, wire: { ...plan.wire, [fault]: 0 } };
  }
  if (plan.store > 0) yield { ...plan, store: 0 };
  for (const share of [0.5, 0.75, 0.9]) {
    const busyMs = Math.round(plan.busyMs * share);
    if (busyMs >= 2_000) yield { ...plan, busyMs };
  }
}
