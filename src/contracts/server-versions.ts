// Which versions of a server a binding is for: `*`, ranges such as `>=1.2 <2`, `^0.3` or `1.x`, exact versions.
//
// Versions are compared by their numbers, up to three. One with a suffix (`2.0.0-beta.1`) or of another shape
// fits only where it is named exactly, or where every version does.

type Numbers = readonly [number, number, number];

/** From the first version that fits up to, but not with, the first that does not. */
interface Interval {
  readonly from: Numbers;
  readonly to: Numbers;
}

export function fitsVersion(versions: string | readonly string[], version: string): boolean {
  const numbers = exactNumbers(version);
  return [versions].flat().some((entry) => {
    if (entry === '*' || entry === version) return true;
    return numbers !== undefined && (intervalsOf(entry) ?? []).some((interval) => holds(interval, numbers));
  });
}

/** Whether some version fits both; of what cannot be compared only equal texts do. */
export function mayOverlap(a: string | readonly string[], b: string | readonly string[]): boolean {
  return [a].flat().some((one) =>
    [b].flat().some((other) => {
      if (one === other || one === '*' || other === '*') return true;
      const left = intervalsOf(one) ?? [];
      const right = intervalsOf(other) ?? [];
      return left.some((x) => right.some((y) => isBefore(x.from, y.to) && isBefore(y.from, x.to)));
    }),
  );
}

/** A text with an operator that is no range that we can read; other texts are versions, of whatever shape. */
export function isBrokenRange(entry: string): boolean {
  return entry !== '*' && /[<>=^~|*\s]/.test(entry) && intervalsOf(entry) === undefined;
}

const INFINITE: Numbers = [Number.POSITIVE_INFINITY, 0, 0];

function intervalsOf(range: string): readonly Interval[] | undefined {
  const intervals: Interval[] = [];
  for (const alternative of range.split('||')) {
    let from: Numbers = [0, 0, 0];
    let to: Numbers = INFINITE;
    const comparators = alternative
      .trim()
      .replace(/([<>=^~])\s+/g, '$1')
      .split(/\s+/);
    for (const comparator of comparators) {
      const bounds = boundsOf(comparator);
      if (bounds === undefined) return undefined;
      if (isBefore(from, bounds.from)) from = bounds.from;
      if (isBefore(bounds.to, to)) to = bounds.to;
    }
    if (isBefore(from, to)) intervals.push({ from, to });
  }
  return intervals;
}

const COMPARATOR = /^(>=|<=|>|<|=|\^|~)?v?(\d{1,9})(?:\.(\d{1,9}|[x*]))?(?:\.(\d{1,9}|[x*]))?$/;

function boundsOf(comparator: string): Interval | undefined {
  const [matched, operator = '', ...parts] = COMPARATOR.exec(comparator) ?? [];
  if (matched === undefined) return undefined;
  const given = parts.map((part) =>
    part === undefined || part === 'x' || part === '*' ? undefined : Number(part),
  );
  const [major = 0, minor, patch] = given;
  const from: Numbers = [major, minor ?? 0, patch ?? 0];
  // The first version that no longer has the numbers that were given.
  const past: Numbers =
    minor === undefined
      ? [major + 1, 0, 0]
      : patch === undefined
        ? [major, minor + 1, 0]
        : [major, minor, patch + 1];
  switch (operator) {
    case '>=':
      return { from, to: INFINITE };
    case '>':
      return { from: past, to: INFINITE };
    case '<':
      return { from: [0, 0, 0], to: from };
    case '<=':
      return { from: [0, 0, 0], to: past };
    case '^':
      if (major > 0 || minor === undefined) return { from, to: [major + 1, 0, 0] };
      if (minor > 0 || patch === undefined) return { from, to: [0, minor + 1, 0] };
      return { from, to: [0, 0, patch + 1] };
    case '~':
      return { from, to: minor === undefined ? [major + 1, 0, 0] : [major, minor + 1, 0] };
    default:
      return { from, to: past };
  }
}

function exactNumbers(version: string): Numbers | undefined {
  const matched = /^v?(\d{1,9})(?:\.(\d{1,9}))?(?:\.(\d{1,9}))?$/.exec(version);
  if (matched === null) return undefined;
  const [, major, minor = '0', patch = '0'] = matched;
  return [Number(major), Number(minor), Number(patch)];
}

function holds({ from, to }: Interval, version: Numbers): boolean {
  return !isBefore(version, from) && isBefore(version, to);
}

function isBefore(a: Numbers, b: Numbers): boolean {
  for (const index of [0, 1, 2] as const) {
    if (a[index] !== b[index]) return a[index] < b[index];
  }
  return false;
}
