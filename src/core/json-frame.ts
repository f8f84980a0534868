// Finds where the members of a JSON-RPC frame lie in its text, so that they can be passed on byte for byte.
//
// A frame is read once from left to right and what is not asked for is skipped, not parsed. In a text that is
// JSON the ranges are exactly those that a parser would see. A text that is not JSON may still yield ranges:
// whoever interprets a value reads its text strictly (`readStrictJson`), and refuses it there.

/** Offsets into a text, in UTF-16 code units: `text.slice(start, end)`. */
export interface TextRange {
  readonly start: number;
  readonly end: number;
}

export interface ObjectMembers {
  /** Where the value of each key lies, by decoded key; of equal keys the last, as `JSON.parse` takes it. */
  readonly values: ReadonlyMap<string, TextRange>;
  /** Whether a key occurs more than once. Such an object has several meanings, and no write is made of it. */
  readonly duplicate: boolean;
}

export interface Frame {
  readonly id?: TextRange;
  /** Decoded; absent as well when the member is not a string. */
  readonly method?: string;
  readonly params?: TextRange;
  readonly result?: TextRange;
  readonly error?: TextRange;
  /** Whether any top-level key occurs more than once. */
  readonly duplicate: boolean;
}

/** The top-level members of a JSON-RPC frame; undefined when the text is not one JSON object. */
export function scanFrame(text: string): Frame | undefined {
  const members = scanMembers(text);
  if (members === undefined) return undefined;
  const { values, duplicate } = members;
  const methodAt = values.get('method');
  const method = methodAt && decodeString(text, methodAt.start, methodAt.end);
  const id = values.get('id');
  const params = values.get('params');
  const result = values.get('result');
  const error = values.get('error');
  return {
    duplicate,
    ...(id && { id }),
    ...(method !== undefined && { method }),
    ...(params && { params }),
    ...(result && { result }),
    ...(error && { error }),
  };
}

/** The members of the one JSON object that a text holds; undefined when it does not hold exactly that. */
export function scanMembers(text: string): ObjectMembers | undefined {
  const values = new Map<string, TextRange>();
  let duplicate = false;
  const open = skipSpace(text, 0);
  const close = skipMembers(text, open, (key, start) => {
    const end = skipValue(text, start);
    if (values.has(key)) duplicate = true;
    values.set(key, { start, end });
    return end;
  });
  return endsAt(text, close) ? { values, duplicate } : undefined;
}

/**
 * The text of the value that lies under a path of keys, exactly as it was written; undefined when nothing does,
 * or when the text is not one JSON value. Of equal keys the last counts, as in `JSON.parse`.
 */
export function memberText(text: string, ...path: readonly string[]): string | undefined {
  let found: TextRange | undefined;
  const seek = (start: number, depth: number): number => {
    if (depth < path.length && text.charCodeAt(start) === OPEN_BRACE) {
      return skipMembers(text, start, (key, valueStart) => {
        if (key !== path[depth]) return skipValue(text, valueStart);
        // A later member with this key hides the earlier one together with all that lies in it.
        found = undefined;
        return seek(valueStart, depth + 1);
      });
    }
    const end = skipValue(text, start);
    if (depth === path.length) found = { start, end };
    return end;
  };
  const end = seek(skipSpace(text, 0), 0);
  return found !== undefined && endsAt(text, end) ? text.slice(found.start, found.end) : undefined;
}

const NOT_JSON = -1;

const QUOTE = 0x22;
const COMMA = 0x2c;
const COLON = 0x3a;
const OPEN_BRACKET = 0x5b;
const BACKSLASH = 0x5c;
const CLOSE_BRACKET = 0x5d;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;

/** Whether nothing but white space follows a value that ends at `end`. */
function endsAt(text: string, end: number): boolean {
  return end !== NOT_JSON && skipSpace(text, end) === text.length;
}

// Each `skip…` takes the offset where something starts and returns the offset behind it, or NOT_JSON.

/** `visit` gets a decoded key and the start of its value, and returns the end of the value. */
function skipMembers(text: string, open: number, visit: (key: string, start: number) => number): number {
  if (text.charCodeAt(open) !== OPEN_BRACE) return NOT_JSON;
  let offset = skipSpace(text, open + 1);
  if (text.charCodeAt(offset) === CLOSE_BRACE) return offset + 1;
  for (;;) {
    const keyEnd = skipString(text, offset);
    const key = decodeString(text, offset, keyEnd);
    if (key === undefined) return NOT_JSON;
    offset = skipSpace(text, keyEnd);
    if (text.charCodeAt(offset) !== COLON) return NOT_JSON;
    const valueEnd = visit(key, skipSpace(text, offset + 1));
    if (valueEnd === NOT_JSON) return NOT_JSON;
    offset = skipSpace(text, valueEnd);
    const next = text.charCodeAt(offset);
    if (next === CLOSE_BRACE) return offset + 1;
    if (next !== COMMA) return NOT_JSON;
    offset = skipSpace(text, offset + 1);
  }
}

function skipValue(text: string, start: number): number {
  switch (text.charCodeAt(start)) {
    case QUOTE:
      return skipString(text, start);
    case OPEN_BRACE:
    case OPEN_BRACKET:
      return skipContainer(text, start);
    default:
      return skipScalar(text, start);
  }
}

const SCALAR = /true|false|null|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;

function skipScalar(text: string, start: number): number {
  SCALAR.lastIndex = start;
  return SCALAR.test(text) ? SCALAR.lastIndex : NOT_JSON;
}

function skipContainer(text: string, start: number): number {
  // A list, not recursion: what is skipped may be nested to any depth.
  const closers: number[] = [];
  let offset = start;
  do {
    const unit = text.charCodeAt(offset);
    if (unit === QUOTE) {
      offset = skipString(text, offset);
      if (offset === NOT_JSON) return NOT_JSON;
      continue;
    }
    if (unit === OPEN_BRACE) closers.push(CLOSE_BRACE);
    else if (unit === OPEN_BRACKET) closers.push(CLOSE_BRACKET);
    else if (unit === CLOSE_BRACE || unit === CLOSE_BRACKET) {
      if (closers.pop() !== unit) return NOT_JSON;
    } else if (BARE[unit] !== 1) return NOT_JSON;
    offset++;
  } while (closers.length > 0);
  return offset;
}

// What may stand outside of strings. A comment is thereby noticed, in which a quote would shift every later
// range for a reader that allows comments: the destination could then see another call than the gateway did.
const BARE = new Uint8Array(128);
for (const character of ' \t\n\r,:+-.0123456789Eaeflnrstu') BARE[character.charCodeAt(0)] = 1;

function skipString(text: string, open: number): number {
  if (text.charCodeAt(open) !== QUOTE) return NOT_JSON;
  let close = open;
  do {
    close = text.indexOf('"', close + 1);
    if (close === -1) return NOT_JSON;
  } while (isEscaped(text, close));
  return close + 1;
}

/** Whether an odd number of backslashes precedes; the opening quote ends the count at the latest. */
function isEscaped(text: string, offset: number): boolean {
  let start = offset;
  while (text.charCodeAt(start - 1) === BACKSLASH) start--;
  return (offset - start) % 2 === 1;
}

function skipSpace(text: string, start: number): number {
  let offset = start;
  for (;;) {
    const unit = text.charCodeAt(offset);
    if (unit !== 0x20 && unit !== 0x0a && unit !== 0x0d && unit !== 0x09) return offset;
    offset++;
  }
}

// oxlint-disable-next-line no-control-regex -- a bare control character is what JSON forbids.
const NOT_VERBATIM = /[\u0000-\u001f\\]/;

/** The string between two offsets, quotes included; undefined when it is not a string of JSON. */
function decodeString(text: string, start: number, end: number): string | undefined {
  if (end === NOT_JSON || text.charCodeAt(start) !== QUOTE) return undefined;
  const verbatim = text.slice(start + 1, end - 1);
  if (!NOT_VERBATIM.test(verbatim)) return verbatim;
  try {
    return JSON.parse(text.slice(start, end)) as string;
  } catch {
    return undefined;
  }
}
