// Whether a pattern of a file may be tried on a text: only one that cannot take long, whatever the text is.
//
// The engine of JavaScript tries all ways to match. A repetition inside a repetition makes them grow with a power of
// two, so that a line of a file could keep a process busy for years. What is refused here is not compiled at all.

/** Repetitions of one pattern that may match different lengths, each of which multiplies the ways. */
const REPETITIONS_MAX = 4;
const PATTERN_LENGTH_MAX = 512;
const COUNT_MAX = 4096;

export type BoundedPattern =
  | { readonly ok: true; readonly pattern: RegExp }
  /** A clause without its subject, which is the pattern. */
  | { readonly ok: false; readonly problem: string };

/** A pattern that is known to end soon on a text of some hundred characters, or why it is not used. */
export function boundedPattern(source: string): BoundedPattern {
  if (source.length > PATTERN_LENGTH_MAX) {
    return refuse(`has ${source.length} characters; at most ${PATTERN_LENGTH_MAX} are allowed`);
  }
  const problem = expensivePart(source);
  if (problem !== undefined) return refuse(problem);
  try {
    return { ok: true, pattern: new RegExp(source, 'u') };
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message.replace(/^.*: /s, '') : String(cause);
    return refuse(`is no regular expression: ${reason.charAt(0).toLowerCase()}${reason.slice(1)}`);
  }
}

function refuse(problem: string): BoundedPattern {
  return { ok: false, problem };
}

interface Group {
  /** It holds something that may match in more than one way. */
  varies: boolean;
  /** It holds something that is written out a number of times. */
  counted: boolean;
}

const QUANTIFIER = /^(?:[*+?]|\{(\d+)(,)?(\d+)?\})\??/;

function expensivePart(source: string): string | undefined {
  const groups: Group[] = [{ varies: false, counted: false }];
  let repetitions = 0;
  let at = 0;
  while (at < source.length) {
    const [length, closed] = atomAt(source, at, groups);
    if (length === 0) return undefined;
    at += length;
    const quantifier = QUANTIFIER.exec(source.slice(at));
    if (quantifier === null) continue;
    at += quantifier[0].length;
    const { isRepetition, varies, count } = read(quantifier);
    if (count > COUNT_MAX) return `repeats ${count} times; at most ${COUNT_MAX} are allowed`;
    if (isRepetition && closed?.varies === true) {
      return 'repeats a part that may itself match in more than one way, which may take for ever';
    }
    if (count > 1 && closed?.counted === true) return 'counts a part that itself is counted';
    if (count > 1) for (const group of groups) group.counted = true;
    if (!varies) continue;
    vary(groups);
    repetitions += 1;
    if (repetitions > REPETITIONS_MAX) {
      return `has more than ${REPETITIONS_MAX} parts of different length, which may take for ever`;
    }
  }
  return undefined;
}

function read([whole, least = '', comma, most]: RegExpExecArray) {
  if (least === '') {
    return { isRepetition: !whole.startsWith('?'), varies: true, count: 0 };
  }
  const upper = comma === undefined ? Number(least) : Number(most ?? least);
  return {
    isRepetition: upper > 1 || (comma !== undefined && most === undefined),
    varies: comma !== undefined && most !== least,
    count: Math.max(Number(least), upper),
  };
}

/** The length of what stands at a place, and the group that ends there. 0 where the pattern is not well formed. */
function atomAt(source: string, at: number, groups: Group[]): readonly [number, Group?] {
  const character = source.charAt(at);
  if (character === '\\') {
    // A reference to what was matched before cannot be bounded by looking at the pattern.
    if (/[1-9k]/.test(source.charAt(at + 1))) vary(groups);
    return [2];
  }
  if (character === '[') {
    const end = classEnd(source, at);
    return [end < 0 ? 0 : end - at + 1];
  }
  if (character === '(') {
    groups.push({ varies: false, counted: false });
    return [/^\((?:\?(?:[:=!]|<[=!]|<\w+>))?/.exec(source.slice(at))?.[0].length ?? 1];
  }
  if (character === ')') {
    const closed = groups.length > 1 ? groups.pop() : undefined;
    return closed === undefined ? [0] : [1, closed];
  }
  if (character === '|') vary(groups);
  return [1];
}

function vary(groups: readonly Group[]): void {
  for (const group of groups) group.varies = true;
}

function classEnd(source: string, start: number): number {
  for (let at = start + 1; at < source.length; at += 1) {
    if (source.charAt(at) === '\\') at += 1;
    else if (source.charAt(at) === ']') return at;
  }
  return -1;
}
