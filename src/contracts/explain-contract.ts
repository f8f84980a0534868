// What may happen by itself to a write of a contract, and what may not, in sentences: each is an answer of the algorithm.

import { type Contract, type ContractOperation, type Guard, type OutcomeMeaning } from '../core/contract.ts';
import { DEFAULT_BOUNDS, type NextStep } from '../core/repeatability.ts';
import { listed } from './problem.ts';
import { type Answer, answersFor, type SituationId } from './situations.ts';

export interface Explained {
  readonly situation: SituationId;
  /** Something is done by us, nothing more is to be done, or a person decides. */
  readonly then: 'by_itself' | 'settled' | 'person';
  readonly sentence: string;
}

/** In the order in which the situations are told; those that cannot arise are left out. */
export function explainOperation(contract: Contract, operation: ContractOperation): readonly Explained[] {
  return answersFor(contract, operation).flatMap((answer): readonly Explained[] => {
    const { situation, step } = answer;
    if (step === undefined) return withoutEvidence(situation, operation);
    const when = whenWords(answer, contract);
    return [
      {
        situation,
        then: THEN[step.step] ?? 'by_itself',
        sentence: `${when}, ${predicate(answer, step, operation)}.`,
      },
    ];
  });
}

const THEN: { readonly [step in NextStep['step']]?: Explained['then'] } = {
  close: 'settled',
  park: 'person',
};

const REFUSALS: { readonly [situation in SituationId]?: OutcomeMeaning } = {
  refused: 'not_applied',
  refused_for_now: 'not_applied_temporary',
};

/** A refusal that is stated, and rests on nothing that counts: such a reply is read as an error. */
function withoutEvidence(situation: SituationId, { outcomes }: ContractOperation): readonly Explained[] {
  const means = REFUSALS[situation];
  const rules = outcomes.filter((rule) => rule.means === means);
  if (means === undefined || rules.length === 0) return [];
  const grades = [...new Set(rules.map(({ evidence }) => evidence?.grade ?? 'without evidence'))];
  const how = situation === 'refused' ? 'refuses it for good' : 'refuses it for now';
  return [
    {
      situation,
      then: 'settled',
      sentence: `That a reply ${how} rests on nothing that counts (${listed(grades)}): such a reply is read as an error, and the write is never sent again by us.`,
    },
  ];
}

function whenWords({ afterMs = 0, situation }: Answer, { ownership }: Contract): string {
  switch (situation) {
    case 'not_sent':
      return 'Where it is proven that nothing left';
    case 'refused_for_now':
      return 'Where the reply is one that refuses it for now';
    case 'refused':
      return 'Where the reply is one that refuses it for good';
    case 'error':
      return 'After an error that no outcome names';
    case 'lost':
      return 'When the reply is lost';
    case 'found':
      return 'Where the look-up finds it';
    case 'inconclusive':
      return 'Where the look-up cannot tell';
    case 'not_found_early':
      return 'Where the look-up does not find it at first';
    case 'not_found_late':
      return `Where it is not found ${durationWords(afterMs)} after it was sent, when everything must have landed`;
    case 'two_found':
      return 'Where the look-up finds two';
    case 'window_over':
      return `When the reply is lost and nobody could act for ${durationWords(afterMs)}, so that the window of the guard is over`;
    case 'overdue':
      return `When the reply is lost after ${ownership.review_by}, and the contract was not reviewed`;
  }
}

function predicate({ effect, situation }: Answer, step: NextStep, operation: ContractOperation): string {
  switch (step.step) {
    case 'send_again':
      return situation === 'not_sent' || situation === 'refused_for_now'
        ? `it is sent again by us, at most ${DEFAULT_BOUNDS.attemptsMax} times within ${durationWords(DEFAULT_BOUNDS.elapsedMaxMs)}`
        : `it is sent again by us${underWords(step.under, operation)}`;
    case 'look_up':
      return situation === 'not_found_early' || situation === 'inconclusive'
        ? 'that claims nothing: it is looked up again'
        : `it is looked up by us ${byWords(operation)}, which changes nothing`;
    case 'ask_again':
      return 'it is asked again how far the destination is';
    case 'read_back':
      return 'it counts as accepted, and what it changed is read back';
    case 'close':
      return effect === 'accepted'
        ? 'it counts as accepted, and nothing more is sent'
        : `it is closed as ${effect === 'error_reported' ? 'answered with an error' : (effect ?? 'it stands')}, and never sent again by us`;
    case 'park':
      return `nothing is sent by us: ${whyWords(step)}`;
  }
}

/** What makes it harmless, should the first try have happened after all. */
function underWords(under: Guard['kind'] | undefined, { guards }: ContractOperation): string {
  const guard = guards.find(({ kind }) => kind === under);
  return guard === undefined ? '' : `, byte for byte and under its ${carrierWords(guard)}`;
}

function byWords({ lookups }: ContractOperation): string {
  // What is only told in words is not asked.
  const first = lookups.find(({ http, tool }) => http !== undefined || tool !== undefined);
  return first === undefined ? '' : `by ${first.by.replaceAll('_', ' ')}`;
}

function carrierWords({ carrier, kind }: Guard): string {
  return `${kind.replaceAll('_', ' ')} (${carrier.name ?? carrier.in})`;
}

const WHY: { readonly [code: string]: string } = {
  no_lookup: 'a person is asked, because there is no look-up that we can ask',
  lookups_exhausted: 'a person is asked, because not finding it proves nothing here',
  absent_needs_decision:
    'a person is asked, with the sending prepared, because it is known not to be there and nothing makes a second sending safe',
  contradiction: 'a person is asked, because there must not be two; it is shown as contradicting evidence',
  bounds_used_up: 'a person is asked, because the tries are used up',
};

/** Why a person is asked, as a clause; a reason that is not known here is named by its code. */
export function whyWords(step: NextStep): string {
  const code = 'why' in step ? step.why.code : '';
  return WHY[code] ?? `a person is asked (${code.replaceAll('_', ' ')})`;
}

/** One line for each guard: what it is, for how long it holds and what a repeat gets. */
export function guardLines({ guards }: ContractOperation): readonly string[] {
  return guards.map((guard) => {
    const { evidence, same, strength = 'unknown' } = guard;
    const effects = same.side_effects === undefined ? '' : EFFECTS[same.side_effects];
    return `${carrierWords(guard)}: ${windowWords(guard)}; a repeat ${RESULTS[same.result]}${effects}; ${STRENGTHS[strength]}, ${evidence.grade.replaceAll('_', ' ')}`;
  });
}

const RESULTS: { readonly [result in Guard['same']['result']]: string } = {
  replays_original: 'gets the first answer again',
  replays_current: 'gets the state as it is by then',
  conflict: 'is refused as a clash',
  converges: 'ends in the same state',
  silently_dropped: 'is dropped, and nobody is told',
  appends_note: 'is added as a note',
  executes_again: 'is done again',
  unknown: 'gets what nobody has told',
};

const EFFECTS = {
  once: ', and mails and triggers do not come again',
  again: ', and mails and triggers come again',
  unknown: ', and whether mails and triggers come again is not known',
} as const;

const STRENGTHS = {
  enforced: 'enforced',
  best_effort: 'not always enforced',
  unknown: 'enforced or not, nobody has told',
} as const;

const KINDS: { readonly [kind in Guard['window']['kind']]: string } = {
  duration: '',
  resource_lifetime: 'as long as the record is there',
  while_state: 'while the record is in a state',
  session: 'within a session',
  none: 'for no time at all',
  unknown: 'for a time that nobody has told',
};

const AFTER = {
  executes_again: 'afterwards it is a new write',
  rejected: 'afterwards it is refused',
  unknown: 'what comes afterwards is not known',
} as const;

/** For how long a guard knows its value, and what comes after. */
export function windowWords({ window }: Guard): string {
  const { at_least: least, at_most: most, after = 'unknown', kind } = window;
  const known =
    kind !== 'duration'
      ? `${KINDS[kind]}${window.while === undefined ? '' : ` (${window.while})`}`
      : [least && `for at least ${least}`, most && `for at most ${most}, which promises nothing`]
          .filter(Boolean)
          .join(', ');
  return `known ${known}, ${AFTER[after]}`;
}

/** `15 min`, `2 h 3 s`: the two largest parts, rounded to seconds. */
export function durationWords(ms: number): string {
  const seconds = Math.round(ms / 1000);
  const parts = [
    [Math.floor(seconds / 86_400), 'd'],
    [Math.floor(seconds / 3600) % 24, 'h'],
    [Math.floor(seconds / 60) % 60, 'min'],
    [seconds % 60, 's'],
  ] as const;
  const told = parts.filter(([count]) => count > 0).slice(0, 2);
  return told.length === 0 ? '0 s' : told.map(([count, unit]) => `${count} ${unit}`).join(' ');
}
