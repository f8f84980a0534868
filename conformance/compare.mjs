// What a run of the suite through us must be, given the run without us: pure, so that it can be tested with made-up
// results.

/** How bad a status is. What the suite only notes or leaves out says nothing about the server. */
const BADNESS = { SUCCESS: 0, INFO: 0, SKIPPED: 0, WARNING: 1, FAILURE: 2 };

/** Whether a scenario shows something, and nothing against the server. */
export function passes(checks) {
  return (
    checks.some(({ status }) => status === 'SUCCESS') && checks.every(({ status }) => badness(status) < 2)
  );
}

/**
 * @param {readonly { id: string, status: string, errorMessage?: string }[]} direct the checks without us
 * @param {readonly { id: string, status: string, errorMessage?: string }[] | undefined} through the same scenario
 *   through us; `undefined`: it was not run to its end
 * @returns {readonly { check: string, direct: string, through: string, message?: string }[]} each check that is worse;
 *   the n-th check of one id is held against the n-th of the same id
 */
export function worseChecks(direct, through) {
  if (through === undefined) return [{ check: '(scenario)', direct: 'run', through: 'not run' }];
  const problems = [];
  const theirs = byId(direct);
  const ours = byId(through);
  for (const [id, before] of theirs) {
    for (const [index, { status }] of before.entries()) {
      const now = ours.get(id)?.[index];
      if (now === undefined && status === 'SUCCESS') {
        problems.push({ check: id, direct: status, through: 'missing' });
      } else if (now !== undefined && isWorse(status, now.status)) {
        problems.push(problem(id, status, now));
      }
    }
  }
  for (const [id, now] of ours) {
    for (const check of now.slice(theirs.get(id)?.length ?? 0)) {
      if (badness(check.status) > 0) problems.push(problem(id, 'missing', check));
    }
  }
  return problems;
}

/**
 * Each scenario of one generation: what passes without us must pass through us, check by check; what the generation
 * requires must pass without us, or the fixture is not one.
 * @param {{ required: readonly string[], direct: ReadonlyMap<string, readonly object[]>, through: ReadonlyMap<string, readonly object[]>,
 *   agreed?: readonly { scenario: string, check: string, through: string, because: string }[] }} runs by scenario;
 *   `agreed`: differences that are meant, each with its reason. One that did not come about is a problem too
 * @returns {readonly { scenario: string, verdict: 'passed' | 'failed' | 'not_asked', problems: readonly object[] }[]}
 *   `not_asked`: it does not pass without us either, and nobody requires it
 */
export function compareRuns({ required, direct, through, agreed = [] }) {
  return [...direct].map(([scenario, checks]) => {
    if (!passes(checks)) {
      return required.includes(scenario)
        ? { scenario, verdict: 'failed', problems: failures(checks) }
        : { scenario, verdict: 'not_asked', problems: [] };
    }
    const own = agreed.filter((one) => one.scenario === scenario);
    const problems = withoutAgreed(worseChecks(checks, through.get(scenario)), own);
    return { scenario, verdict: problems.length === 0 ? 'passed' : 'failed', problems };
  });
}

/** What is agreed is taken out; what is agreed and is no difference any more is to be taken back. */
function withoutAgreed(problems, agreed) {
  const isAgreed = (problem, one) => problem.check === one.check && problem.through === one.through;
  const idle = agreed.filter((one) => !problems.some((problem) => isAgreed(problem, one)));
  return [
    ...problems.filter((problem) => !agreed.some((one) => isAgreed(problem, one))),
    ...idle.map(({ check, through }) => ({ check, direct: `agreed ${through}`, through: 'not so' })),
  ];
}

/**
 * A run without a second one beside it: the server itself, or a client.
 * @param {{ required: readonly string[], run: ReadonlyMap<string, readonly object[]>, notOurs?: Readonly<Record<string, string>> }} what
 *   `notOurs`: scenario → why it is not asked of us
 */
export function judgeRun({ required, run, notOurs = {} }) {
  return required.map((scenario) => {
    if (notOurs[scenario] !== undefined) {
      return { scenario, verdict: 'not_asked', problems: [], because: notOurs[scenario] };
    }
    const checks = run.get(scenario);
    if (checks === undefined) return { scenario, verdict: 'failed', problems: worseChecks([], undefined) };
    return passes(checks)
      ? { scenario, verdict: 'passed', problems: [] }
      : { scenario, verdict: 'failed', problems: failures(checks) };
  });
}

/** @returns {{ passed: number, failed: number, notAsked: number }} */
export function countVerdicts(rows) {
  const count = (verdict) => rows.filter((row) => row.verdict === verdict).length;
  return { passed: count('passed'), failed: count('failed'), notAsked: count('not_asked') };
}

function failures(checks) {
  const found = checks.filter(({ status }) => badness(status) === 2);
  const none = [{ check: '(scenario)', direct: 'required', through: 'no check passed' }];
  return found.length === 0 ? none : found.map((check) => problem(check.id, 'required', check));
}

function problem(check, direct, { status, errorMessage }) {
  return { check, direct, through: status, ...(errorMessage === undefined ? {} : { message: errorMessage }) };
}

/** A success that turned into a note is worse as well: what was shown is shown no more. */
function isWorse(before, now) {
  return badness(now) > badness(before) || (before === 'SUCCESS' && now !== 'SUCCESS');
}

function badness(status) {
  return BADNESS[status] ?? 2;
}

function byId(checks) {
  const groups = new Map();
  for (const check of checks) groups.set(check.id, [...(groups.get(check.id) ?? []), check]);
  return groups;
}
