// Bugs that are planted on purpose, each in a copy of the build or in the model store, and nothing of them in the
// product: an invariant that no planted bug can break would say nothing by holding.

import { loadBuild } from './build.mjs';
import { planOf, playSeed } from './world.mjs';

const engine = (file, from, to) => ({ file: `engine/${file}.js`, from, to });
const core = (file, from, to) => ({ file: `core/${file}.js`, from, to });

/** What is checked, as the domain numbers it. */
export const INVARIANTS = [
  'I1',
  'I2',
  'I3',
  'I4',
  'I5',
  'I6',
  'I7',
  'I9',
  'I12',
  'I13',
  'I14',
  'I15',
  'liveness',
];

/**
 * `breaks`: the invariants of which one must be broken; what else a bug breaks on the way does not count. `among`: runs
 * in which it is to be looked for, where those of all plans are too seldom like it.
 */
export const PLANTED = [
  {
    name: 'sent-and-not-recorded',
    breaks: ['I1'],
    // The store says "stored" of what is lost.
    ignores: ['durability'],
  },
  {
    name: 'commit-error-taken-for-not-stored',
    breaks: ['I1'],
    patches: [
      engine(
        'new-operations',
        "cause.fate !== 'unknown')\n                throw cause;",
        'true)\n                throw cause;',
      ),
    ],
  },
  { name: 'claim-not-unique', breaks: ['I2'], ignores: ['taken'] },
  {
    name: 'judged-by-what-has-changed-since',
    breaks: ['I2'],
    patches: [
      engine('new-operations', '...requirementOf(extras.judgedBy),', ''),
      engine('new-operations', '...turnedPage(extras.judgedBy, context.worker, superseded),', ''),
    ],
  },
  {
    name: 'altered-payload-sent',
    breaks: ['I3'],
    patches: [core('authority', 'conditions.digest !== operation.digest', 'false')],
  },
  {
    name: 'irreversible-by-rule',
    breaks: ['I3'],
    patches: [
      core(
        'authority',
        "return { allowed: false, question: 'irreversible' };",
        'return { allowed: true, rule };',
      ),
    ],
  },
  {
    name: 'approval-of-another-digest',
    breaks: ['I3'],
    patches: [
      core(
        'decide',
        "return { refusal: 'no_open_review' };\n    if (review.digest !== command.digest)",
        "return { refusal: 'no_open_review' };\n    if (false)",
      ),
    ],
  },
  {
    name: 'giving-up-changes-effect',
    breaks: ['I4'],
    patches: [
      core(
        'operation',
        'draft.why = event.why;\n            draft.under = undefined;',
        "draft.why = event.why; if (event.type === 'closed' && draft.effect === 'unknown') draft.effect = 'rejected';\n            draft.under = undefined;",
      ),
    ],
  },
  {
    name: 'timeout-taken-for-not-sent',
    breaks: ['I7', 'I5'],
    patches: [
      engine(
        'reports',
        "{ finding: { kind: 'transport', left: 'maybe', what: report.ended } }",
        "{ finding: { kind: 'transport', left: 'no', what: report.ended } }",
      ),
    ],
  },
  {
    name: 'lost-claim-taken-for-not-sent',
    breaks: ['I7', 'I5'],
    patches: [
      core(
        'decide',
        "left: 'maybe',\n            what: 'claim_lost',",
        "left: 'no',\n            what: 'claim_lost',",
      ),
    ],
  },
  {
    name: 'absence-before-late-arrival',
    breaks: ['I7', 'I5'],
    patches: [core('repeatability', 'at >= absenceCountsFrom(operation, lookup, facts)', 'true')],
  },
  {
    name: 'repeat-after-an-absence-that-proves-nothing',
    breaks: ['I5'],
    patches: [
      core(
        'repeatability',
        "return proves.absent === 'not_applied' && consistency.kind === 'read_after_write' && isTrusted(evidence);",
        'return true;',
      ),
    ],
  },
  {
    name: 'repeat-without-a-guard',
    breaks: ['I5', 'I7'],
    patches: [
      core(
        'repeatability',
        "return orRepeat({ step: 'park', why: { code: 'no_lookup' } });",
        "return sendAgain(operation, bounds, at, { step: 'park', why: { code: 'no_lookup' } }, 'desired_state');",
      ),
      core('authority', 'if (guard === undefined)', 'if (false)'),
      core('authority', 'return isScopeKept(guard, operation, scope)', 'return true'),
    ],
  },
  {
    name: 'repeat-after-the-window',
    breaks: ['I5'],
    patches: [core('guarded-repeat', 'question.at < usableUntil(guard, operation, facts)', 'true')],
  },
  {
    name: 'repeat-that-lands-after-the-window',
    breaks: ['I5'],
    patches: [
      core(
        'guarded-repeat',
        'Math.min(promisedMs * WINDOW_SHARE, promisedMs - flightMs)',
        'promisedMs * WINDOW_SHARE',
      ),
    ],
    // Rare: the one process ends, and the next one repeats late what had landed early.
    among: {
      processes: 1,
      agents: 3,
      destinations: ['R2S'],
      busyMs: 90_000,
      wire: { loss: 0.1, late: 0.5, double: 0 },
      nemesis: { kill: 15_000 },
    },
  },
  {
    name: 'decision-on-another-review',
    breaks: ['I3'],
    patches: [engine('ledger', 'if (isAnotherReview(review, decision))', 'if (false)')],
    among: { processes: 2, destinations: ['R1', 'R2'], nemesis: { pause: 6_000, tamper: 6_000 } },
  },
  {
    name: 'claim-taken-by-an-old-beat',
    breaks: ['I6'],
    patches: [engine('sender', 'requires: [gone],', '')],
  },
  {
    name: 'too-late-and-sent-all-the-same',
    breaks: ['I6'],
    patches: [
      engine(
        'sender',
        'context.environment.monotonic() - started.notedAt <= context.settings.bounds.sendByMs',
        'true',
      ),
    ],
  },
  {
    name: 'live-worker-taken-over',
    breaks: ['I6'],
    patches: [
      engine(
        'presence',
        'return now - watched.seenAt > settings.leaseMs ? last : undefined;',
        'return last;',
      ),
    ],
  },
  {
    name: 'beat-that-does-not-move',
    breaks: ['I6'],
    patches: [engine('presence', 'beat: this.#version + 1', 'beat: 1')],
  },
  {
    name: 'fence-not-checked',
    breaks: ['I9'],
    ignores: ['stale'],
  },
  {
    name: 'found-nothing-taken-for-found',
    breaks: ['I7'],
    patches: [
      core(
        'reply-reading',
        "return nextLink(opened.headers?.['link']) === undefined ? ABSENT : INCONCLUSIVE;",
        "return { found: 'present', count: 1 };",
      ),
    ],
  },
  {
    name: 'refusal-taken-for-acknowledgement',
    breaks: ['I7'],
    patches: [core('reply-reading', "return trusted ? 'rejected' : 'error';", "return 'accepted';")],
  },
  {
    name: 'lock-not-looked-at',
    breaks: ['I12'],
    patches: [
      core('locks', 'if (lock === undefined)\n        return undefined;', 'return undefined;'),
      engine(
        'records',
        'if (isTaken && lock.state.holder !== null',
        'if (false && lock.state.holder !== null',
      ),
    ],
  },
  {
    name: 'reference-of-the-model-sent',
    breaks: ['I13'],
    patches: [
      engine(
        'draft',
        'return name === undefined ? args : { ...args, [name]: id };',
        'return name === undefined ? args : { [name]: id, ...args };',
      ),
      engine(
        'draft',
        'if (name === undefined || !Object.hasOwn(args, name))\n        return args;',
        'return args;',
      ),
    ],
  },
  {
    name: 'tries-without-end',
    breaks: ['I14'],
    patches: [core('repeatability', 'attemptsOfRound(operation).length >= bounds.attemptsMax ||', '')],
  },
  {
    name: 'places-not-counted',
    breaks: ['I14'],
    patches: [engine('allowances', 'if ((await store.live(query)).length >= concurrency)', 'if (false)')],
  },
  {
    name: 'place-taken-by-two',
    breaks: ['I14'],
    patches: [
      engine(
        'sender',
        'beside: async () => [await this.#allowances.place(destination, concurrency)],',
        'beside: async () => { await this.#allowances.place(destination, concurrency); return []; },',
      ),
    ],
  },
  {
    name: 'rate-not-kept',
    breaks: ['I14'],
    patches: [core('allowance', 'window?.beganAt === beganAt ? window.taken : 0', '0')],
    among: { agents: 3, destinations: ['R0'], sending: { rate: { writes: 1, perMs: 10_000 } }, nemesis: {} },
  },
  {
    name: 'windows-that-take-turns',
    breaks: ['I14'],
    patches: [
      core('allowance', 'const isNext = window?.beganAt === own + rate.perMs;', 'const isNext = false;'),
    ],
  },
  {
    name: 'second-decision-told-as-the-first',
    breaks: ['I15'],
    patches: [
      engine(
        'ledger',
        'if (!result.stored)\n            return { decided: false, refusal: result.refusal',
        "if (!result.stored && result.refusal !== 'already_decided')\n            return { decided: false, refusal: result.refusal",
      ),
    ],
  },
  {
    name: 'never-looked-at-again',
    breaks: ['liveness'],
    patches: [engine('worker', "case 'checking': {", "case 'checking': { return;")],
  },
];

/** @returns the first seed that breaks an invariant that the bug is to break, and how; `undefined` where none does */
export async function playPlanted({ among, breaks, patches = [], ignores = [] }, { seeds, from }) {
  const build = await loadBuild(patches);
  for (let seed = from; seed < from + seeds; seed += 1) {
    const plan = { ...planOf(seed), ...among };
    const { violation } = await playSeed(build, seed, { ignores, plan });
    if (violation !== undefined && breaks.includes(violation.invariant)) return { seed, violation };
  }
  return undefined;
}
