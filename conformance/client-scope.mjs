// Which client scenarios of the suite are not asked of our upstream half, and why.

const SIGNS_IN_NOWHERE =
  'the gateway is given its credential for a server in its configuration, and signs in nowhere by itself (OAuth)';

/** @returns {Readonly<Record<string, string>>} scenario → why */
export function notOurs(scenarios) {
  const all = scenarios.filter((scenario) => scenario.startsWith('auth/'));
  return Object.fromEntries(all.map((scenario) => [scenario, SIGNS_IN_NOWHERE]));
}
