// What a reviewer is shown, made from the frozen bytes themselves: what is sent, how it differs from what is there, what
// cannot be seen or mistaken in it, what takes it back, and what happens if its reply is lost.

import type { ToolFacts } from './contract.ts';
import { bearsPrecondition } from './guarded-repeat.ts';
import type { Operation } from './operation.ts';
import { clock, visible } from './quoting.ts';
import { type Bounds, nextStep } from './repeatability.ts';
import type { TouchedState } from './touched-state.ts';
import { whyWords } from './wording.ts';

/** How the target stood when it was read for this review; or why that is not known. */
export type SeenState =
  | { readonly read: true; readonly at: number; readonly state: TouchedState }
  | { readonly read: false; readonly why: 'no_contract' | 'no_answer' | 'unreadable' | 'not_asked' };

export interface ReviewParts {
  /** As it stands when the review is opened. */
  readonly operation: Operation;
  readonly payload: string;
  readonly target: string | undefined;
  readonly facts: ToolFacts;
  readonly seen: SeenState;
  readonly bounds: Bounds;
  readonly at: number;
}

/** One line each, without what hides or reorders; nothing in it is a command. */
export function reviewText(parts: ReviewParts): readonly string[] {
  const { at, facts, operation, payload, target } = parts;
  const { because } = operation.review ?? {};
  return [
    `Review of ${operation.id}, made at ${instantWords(at)}`,
    `${operation.tool} on ${operation.destination}${target === undefined ? '' : `, ${target}`}`,
    `asked by ${operation.requester} in run ${operation.run.id}`,
    `digest ${operation.digest}`,
    ...(because === undefined ? [] : [whyWords(because, operation.destination)]),
    `Exactly this is sent (${operation.payload.bytes} bytes):`,
    ...indented(payload).map((line) => `    ${line}`),
    ...closeLooks(payload, facts),
    ...seenLines(parts),
    `Taking it back: ${reversalWords(facts)}`,
    `If its reply is lost: ${lostWords(parts)}`,
  ].map(visible);
}

function instantWords(at: number): string {
  return `${new Date(at).toISOString().slice(0, 10)} ${clock(at)} UTC`;
}

/** JSON text on lines, every character of it as it is: numbers and strings are not read and written anew. */
export function indented(text: string): readonly string[] {
  const lines: string[] = [];
  let line = '';
  let depth = 0;
  const next = (): void => {
    lines.push(line);
    line = '  '.repeat(depth);
  };
  for (const token of text.match(/"(?:[^"\\]|\\.)*"?|[[\]{},:]|[^"[\]{},:]+/gs) ?? []) {
    if (token === '{' || token === '[') {
      line += token;
      depth += 1;
      next();
    } else if (token === '}' || token === ']') {
      depth = Math.max(0, depth - 1);
      next();
      line += token;
    } else if (token === ',') {
      line += token;
      next();
    } else line += token === ':' ? ': ' : token;
  }
  return [...lines, line].filter((each) => each.trim() !== '');
}

// ── What looks like something else ─────────────────────────────────────────────────────────────────────────

const PLACES_MAX = 20;
const CHARACTERS_MAX = 8;

/** Hidden and reordering characters anywhere; in what says to whom, on what and how much, whatever is not plain ASCII. */
function closeLooks(payload: string, facts: ToolFacts): readonly string[] {
  const critical = criticalNames(facts);
  const found: string[] = [];
  for (const { at, name, value } of texts(payload)) {
    const isCritical = critical === undefined || critical.has(name);
    const odd = (value.match(/./gsu) ?? []).filter(
      (one) => isUnseen(one) || (isCritical && !/[\x20-\x7e]/.test(one)),
    );
    if (odd.length === 0) continue;
    const points = [...new Set(odd)].slice(0, CHARACTERS_MAX).map(codePoint).join(', ');
    const what = odd.some(isUnseen)
      ? 'characters that are not seen or reorder others'
      : 'characters that are not plain ASCII';
    found.push(`    ${at} holds ${what}: ${points}`);
  }
  if (found.length === 0) return [];
  const more = found.length - PLACES_MAX;
  return [
    'Look closely:',
    ...found.slice(0, PLACES_MAX),
    ...(more > 0 ? [`    and ${more} more places`] : []),
  ];
}

function isUnseen(character: string): boolean {
  return visible(character) !== character;
}

function codePoint(character: string): string {
  return `U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}`;
}

/** Arguments that say to whom, on what and how much; `undefined` where nobody has said which these are. */
function criticalNames({ identity, operation, target }: ToolFacts): ReadonlySet<string> | undefined {
  const roles = Object.values(operation?.roles ?? {}).flat();
  const ofTarget = (target?.id ?? []).flatMap((each) =>
    [...each.matchAll(/\{([^{}$]+)\}/g)].map(([, name = '']) => name),
  );
  const names = [...roles, ...ofTarget, ...(identity ?? [])].map((each) => each.split('/')[0] ?? '');
  return names.length === 0 ? undefined : new Set(names);
}

interface TextAt {
  readonly at: string;
  /** The argument that it belongs to. */
  readonly name: string;
  readonly value: string;
}

function texts(payload: string): readonly TextAt[] {
  const found: TextAt[] = [];
  const walk = (value: unknown, at: readonly string[]): void => {
    if (typeof value === 'string') {
      // Of a frozen request the arguments stand beside it.
      const name = at[0] === 'arguments' && at.length > 1 ? at[1] : at[0];
      found.push({ at: `/${at.join('/')}`, name: name ?? '', value });
    } else if (typeof value === 'object' && value !== null)
      for (const [key, member] of Object.entries(value)) {
        if (isOddName(key)) found.push({ at: `the name ${key} in /${at.join('/')}`, name: key, value: key });
        walk(member, [...at, key]);
      }
  };
  try {
    walk(JSON.parse(payload), []);
  } catch {
    return [{ at: 'it', name: '', value: payload }];
  }
  return found;
}

function isOddName(key: string): boolean {
  return /[^\x20-\x7e]/.test(key);
}

// ── Against what is there ──────────────────────────────────────────────────────────────────────────────────

const NOT_READ = {
  no_contract: 'no contract says how it is read',
  no_answer: 'it was asked and did not answer',
  unreadable: 'its answer was none that the contract describes',
  not_asked: 'nothing was connected that could ask',
} as const;

function seenLines({ facts, operation: { destination }, seen }: ReviewParts): readonly string[] {
  if (!seen.read)
    return [
      `How it stands at ${destination} now was not read: ${NOT_READ[seen.why]}. It is not checked again before it is sent.`,
    ];
  const { fields, version } = seen.state;
  return [
    `At ${destination}, read at ${instantWords(seen.at)} and read again before it is sent:`,
    ...fields.map(({ at, now, will }) => {
      const before = now === undefined ? 'nothing' : JSON.stringify(now);
      if (will === undefined) return `    ${at}: ${before}`;
      const after = JSON.stringify(will);
      return before === after ? `    ${at}: ${before}, and stays so` : `    ${at}: ${before} → ${after}`;
    }),
    ...(version === undefined ? [] : [`    version ${version}`]),
    bearsPrecondition(facts)
      ? `${destination} itself refuses the write where the record is not as the request names it.`
      : `Between that reading and the write somebody else may still change it: ${destination} is not asked to refuse the write then.`,
  ];
}

// ── What follows ───────────────────────────────────────────────────────────────────────────────────────────

function reversalWords({ operation }: ToolFacts): string {
  if (operation === undefined) return 'not known; no contract describes this tool.';
  const ways = operation.reversals.filter(({ kind }) => kind !== 'none');
  const left = [
    ...new Set([...(operation.side_effects ?? []), ...ways.flatMap(({ leaves = [] }) => leaves)]),
  ];
  const stays = left.length === 0 ? '' : ` What stays in any case: ${left.join('; ')}.`;
  if (operation.reversals.length === 0) return `not known; the contract does not say.${stays}`;
  if (ways.length === 0) return `impossible, as the contract states.${stays}`;
  const named = ways.map(({ evidence, kind, restores, within }) => {
    const what = restores === undefined ? '' : `, which restores ${restores.replaceAll('_', ' ')}`;
    const until = within === undefined ? '' : `, within ${within}`;
    return `${kind}${what}${until} (${evidence.grade.replaceAll('_', ' ')})`;
  });
  return `${named.join('; or ')}.${stays}`;
}

/** By the one algorithm: asked what it would do with this write, had it been sent once and its answer been lost. */
function lostWords({ at, bounds, facts, operation }: ReviewParts): string {
  const attempt = { id: 'att', number: 1, worker: '', epoch: 1, startedAt: at, sendBy: at, open: false };
  const lost: Operation = {
    ...operation,
    stage: 'sending',
    effect: 'unknown',
    attempts: [attempt],
    attemptsBefore: 0,
    evidence: [],
    lookUps: 0,
  };
  const step = nextStep(lost, facts, bounds, at);
  switch (step.step) {
    case 'look_up':
    case 'ask_again':
    case 'read_back':
      return 'its outcome is unknown, and it is looked up at the destination before anything else.';
    case 'send_again':
      return 'its outcome is unknown, and it is sent again under the same key, which the contract says does no harm.';
    case 'park':
    case 'close':
      return 'its outcome is unknown, nothing can look it up, and a person must find out. It is not sent again by itself.';
  }
}
