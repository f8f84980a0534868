// What is wrong with a file of facts or configuration: one sentence per problem, with the place where it is.

export interface Position {
  /** Both counted from 1. */
  readonly line: number;
  readonly column: number;
}

export interface Problem extends Position {
  readonly file: string;
  /** What is wrong and what is allowed instead; for a contradiction, both sides. */
  readonly sentence: string;
  /** An `error` refuses the file; a `note` is told and nothing is refused. */
  readonly severity: 'error' | 'note';
}

/** Keys and indexes that lead to a value of a file. */
export type Path = readonly (string | number)[];

/** A problem before its place in the text is known. `at: 'key'` points to the key instead of the value. */
export interface Finding {
  readonly path: Path;
  readonly at?: 'key' | 'value';
  readonly sentence: string;
  readonly severity?: Problem['severity'];
}

/** `file:line:column: sentence`, as compilers print it, so that editors can jump to it. */
export function formatProblem({ file, line, column, sentence, severity }: Problem): string {
  return `${file}:${line}:${column}: ${severity === 'note' ? 'note: ' : ''}${sentence}`;
}

/** `operations[2].lookups[0].by`; the empty path is the file itself. */
export function formatPath(path: Path): string {
  if (path.length === 0) return 'the file';
  return path.reduce<string>((text, token) => {
    if (typeof token === 'number') return `${text}[${token}]`;
    const name = /^[\w$-]+$/.test(token) ? token : shown(token);
    return text === '' ? name : `${text}.${name}`;
  }, '');
}

const SHOWN_MAX = 60;

/** A value as it is named in a sentence: on one line, quoted, and cut where it is long. */
export function shown(value: unknown): string {
  const text = JSON.stringify(value) ?? String(value);
  return text.length <= SHOWN_MAX ? text : `${text.slice(0, SHOWN_MAX)}…`;
}

/** `a, b and c` */
export function listed(names: readonly string[], last = 'and'): string {
  if (names.length < 2) return names.join('');
  return `${names.slice(0, -1).join(', ')} ${last} ${names.at(-1)}`;
}

/** The allowed name that is most like `name`, if one is so near that it was probably meant. */
export function closest(name: string, allowed: readonly string[]): string | undefined {
  let best: string | undefined;
  let least = Math.max(1, Math.floor(name.length / 3)) + 1;
  for (const candidate of allowed) {
    const distance = editDistance(name.toLowerCase(), candidate.toLowerCase(), least);
    if (distance < least) {
      best = candidate;
      least = distance;
    }
  }
  return best;
}

/** Insertions, deletions, replacements and swaps of neighbours; `limit` or more is given as `limit`. */
function editDistance(a: string, b: string, limit: number): number {
  if (Math.abs(a.length - b.length) >= limit) return limit;
  let before: number[] = [];
  let row = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const isSame = a[i - 1] === b[j - 1];
      let cost = Math.min((row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1, (row[j - 1] ?? 0) + (isSame ? 0 : 1));
      if (a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) cost = Math.min(cost, (before[j - 2] ?? 0) + 1);
      next.push(cost);
    }
    before = row;
    row = next;
  }
  return row[b.length] ?? limit;
}
