// A strict reader of JSON text: it accepts only what has exactly one meaning, and says why it refuses the rest.
//
// `JSON.parse` takes the last of two equal keys and rounds large integers, so that the payload which was
// reviewed would not be the payload that was sent.

import {
  addMember,
  hasLoneSurrogate,
  type JsonArray,
  type JsonLimits,
  type JsonObject,
  type JsonValue,
  jsonPointer,
  LONE_SURROGATE_MESSAGE,
  RESERVED_KEY_MESSAGE,
  type Representable,
  resolveLimits,
  tooDeepMessage,
  tooLargeMessage,
  type Unrepresentable,
  type UnrepresentableCode,
  utf8Length,
} from './canonical.ts';

/**
 * Reads one JSON value (RFC 8259, I-JSON) from a text or its UTF-8 bytes, or says why it is refused.
 *
 * A number is accepted when the double that holds it prints as the same mathematical value: 1.0, 1e2 and 0.1
 * are, 9007199254740993, 1e400 and 0.10000000000000000555 are not. That is stricter than RFC 8785, which
 * rounds, because a rounded payload is not the one that was proposed. -0 is read as 0: the value is the same.
 */
export function readStrictJson(source: string | Uint8Array, limits: JsonLimits = {}): Representable {
  const { depthMax, bytesMax } = resolveLimits(limits);
  const bytes = typeof source === 'string' ? boundedUtf8Length(source, bytesMax) : source.byteLength;
  if (bytes > bytesMax) return refusal('too_large', tooLargeMessage(bytesMax));
  const text = typeof source === 'string' ? source : decodeUtf8(source);
  if (text === undefined) {
    return refusal(
      'invalid_utf8',
      'The bytes are not UTF-8, the only encoding of JSON. Encode the text as UTF-8.',
    );
  }
  if (text.charCodeAt(0) === BYTE_ORDER_MARK) {
    return refusal(
      'byte_order_mark',
      'The text starts with a byte order mark, which JSON does not allow. Remove it.',
    );
  }
  return new Reader(text, depthMax).read();
}

function refusal(code: UnrepresentableCode, message: string): Representable {
  return { ok: false, reason: { code, at: '', message } };
}

/** The length in UTF-8, counted only where it decides: a code unit takes one to three bytes. */
function boundedUtf8Length(text: string, bytesMax: number): number {
  return text.length > bytesMax || text.length * 3 <= bytesMax ? text.length : utf8Length(text);
}

// `ignoreBOM` leaves the mark in the text, where it is refused, instead of dropping it in silence.
const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

function decodeUtf8(bytes: Uint8Array): string | undefined {
  try {
    return decoder.decode(bytes);
  } catch {
    return undefined;
  }
}

const BYTE_ORDER_MARK = 0xfeff;
const QUOTE = 0x22;
const COMMA = 0x2c;
const MINUS = 0x2d;
const ZERO = 0x30;
const NINE = 0x39;
const COLON = 0x3a;
const OPEN_BRACKET = 0x5b;
const BACKSLASH = 0x5c;
const CLOSE_BRACKET = 0x5d;
const LOWER_F = 0x66;
const LOWER_N = 0x6e;
const LOWER_T = 0x74;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;

const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;

/** Reads one text once, or keeps the first reason why it cannot; `undefined` means refused. */
class Reader {
  private readonly text: string;
  private readonly depthMax: number;
  private offset = 0;
  // The keys and indexes that lead to the value at hand; its length is the depth.
  private readonly path: (string | number)[] = [];
  private reason: Unrepresentable | undefined;

  constructor(text: string, depthMax: number) {
    this.text = text;
    this.depthMax = depthMax;
  }

  read(): Representable {
    this.skipSpace();
    const value = this.text.length === this.offset ? this.refuseEmpty() : this.readValue();
    if (value !== undefined && this.skipSpace() < this.text.length) {
      this.refuse(
        'trailing_text',
        `More text follows the JSON value, from offset ${this.offset}. Send one value.`,
      );
    }
    if (this.reason !== undefined) return { ok: false, reason: this.reason };
    return { ok: true, value: value as JsonValue };
  }

  private refuseEmpty(): undefined {
    return this.refuse('empty', 'The text is empty. Send a JSON value; null where nothing is meant.');
  }

  private readValue(): JsonValue | undefined {
    const unit = this.text.charCodeAt(this.offset);
    switch (unit) {
      case QUOTE:
        return this.readString();
      case OPEN_BRACE:
        return this.readObject();
      case OPEN_BRACKET:
        return this.readArray();
      case LOWER_T:
        return this.readLiteral('true', true);
      case LOWER_F:
        return this.readLiteral('false', false);
      case LOWER_N:
        return this.readLiteral('null', null);
      default:
        return unit === MINUS || isDigit(unit) ? this.readNumber() : this.refuseSyntax('a value');
    }
  }

  private readLiteral<Literal extends boolean | null>(word: string, value: Literal): Literal | undefined {
    if (!this.text.startsWith(word, this.offset)) return this.refuseSyntax('a value');
    this.offset += word.length;
    return value;
  }

  private readObject(): JsonObject | undefined {
    if (this.path.length >= this.depthMax) return this.refuse('too_deep', tooDeepMessage(this.depthMax));
    const object: Record<string, JsonValue> = {};
    this.offset++;
    if (this.peekAfterSpace() === CLOSE_BRACE) {
      this.offset++;
      return object;
    }
    for (;;) {
      if (!this.readMember(object)) return undefined;
      const next = this.peekAfterSpace();
      if (next !== COMMA && next !== CLOSE_BRACE) return this.refuseSyntax('"," or "}"');
      this.offset++;
      if (next === CLOSE_BRACE) return object;
      this.skipSpace();
    }
  }

  private readMember(object: Record<string, JsonValue>): true | undefined {
    if (this.text.charCodeAt(this.offset) !== QUOTE) return this.refuseSyntax('a key in double quotes');
    const key = this.readString();
    if (key === undefined) return undefined;
    this.path.push(key);
    if (key === '__proto__') return this.refuse('reserved_key', RESERVED_KEY_MESSAGE);
    if (this.peekAfterSpace() !== COLON) return this.refuseSyntax('":"');
    this.offset++;
    this.skipSpace();
    const value = this.readValue();
    if (value === undefined) return undefined;
    if (!addMember(object, key, value)) return this.refuse('duplicate_key', DUPLICATE_KEY_MESSAGE);
    this.path.pop();
    return true;
  }

  private readArray(): JsonArray | undefined {
    if (this.path.length >= this.depthMax) return this.refuse('too_deep', tooDeepMessage(this.depthMax));
    const array: JsonValue[] = [];
    this.offset++;
    if (this.peekAfterSpace() === CLOSE_BRACKET) {
      this.offset++;
      return array;
    }
    for (;;) {
      this.path.push(array.length);
      const value = this.readValue();
      if (value === undefined) return undefined;
      this.path.pop();
      array.push(value);
      const next = this.peekAfterSpace();
      if (next !== COMMA && next !== CLOSE_BRACKET) return this.refuseSyntax('"," or "]"');
      this.offset++;
      if (next === CLOSE_BRACKET) return array;
      this.skipSpace();
    }
  }

  private readString(): string | undefined {
    const { text } = this;
    const start = this.offset + 1;
    let end = start;
    let isVerbatim = true;
    let unit = text.charCodeAt(end);
    while (unit !== QUOTE) {
      // The end of the text reads as NaN, for which this comparison is false as well.
      if (!(unit >= 0x20)) return this.refuseInString(end);
      if (unit === BACKSLASH) {
        isVerbatim = false;
        end++;
      } else if (isSurrogate(unit)) {
        isVerbatim = false;
      }
      unit = text.charCodeAt(++end);
    }
    const value = isVerbatim ? text.slice(start, end) : unescape(text.slice(start - 1, end + 1));
    if (value === undefined) return this.refuseSyntax('only escapes that JSON has in the string');
    if (!isVerbatim && hasLoneSurrogate(value)) return this.refuse('lone_surrogate', LONE_SURROGATE_MESSAGE);
    this.offset = end + 1;
    return value;
  }

  private refuseInString(offset: number): undefined {
    this.offset = offset;
    return this.refuseSyntax(
      offset < this.text.length ? 'an escape instead of a control character' : 'the end of a string',
    );
  }

  private readNumber(): number | undefined {
    const start = this.offset;
    NUMBER.lastIndex = start;
    if (!NUMBER.test(this.text)) return this.refuseSyntax('a number');
    this.offset = NUMBER.lastIndex;
    const token = this.text.slice(start, this.offset);
    const value = Number(token);
    if (!isExact(token, value)) return this.refuse('number_not_exact', notExactMessage(token, value));
    // `+ 0` turns -0 into the 0 that it is printed as.
    return value + 0;
  }

  /** Moves past white space; returns the offset of what follows. */
  private skipSpace(): number {
    while (isSpace(this.text.charCodeAt(this.offset))) this.offset++;
    return this.offset;
  }

  private peekAfterSpace(): number {
    return this.text.charCodeAt(this.skipSpace());
  }

  private refuseSyntax(expected: string, offset: number = this.offset): undefined {
    const where = offset < this.text.length ? `at offset ${offset}` : 'where the text ends';
    return this.refuse('syntax', `The text is not JSON: expected ${expected} ${where}. Send RFC 8259 JSON.`);
  }

  private refuse(code: UnrepresentableCode, message: string): undefined {
    this.reason ??= { code, at: jsonPointer(this.path), message };
    return undefined;
  }
}

function isDigit(unit: number): boolean {
  return unit >= ZERO && unit <= NINE;
}

function isSpace(unit: number): boolean {
  return unit === 0x20 || unit === 0x0a || unit === 0x0d || unit === 0x09;
}

function isSurrogate(unit: number): boolean {
  return unit >= 0xd800 && unit <= 0xdfff;
}

/** The text of a quoted string, or undefined when an escape in it is not JSON. */
function unescape(quoted: string): string | undefined {
  try {
    // Only the escapes are left to judge, and for one string the built-in reader is as strict as this one.
    return JSON.parse(quoted) as string;
  } catch {
    return undefined;
  }
}

/** Whether a number, written as `token`, is printed with the same mathematical value once it is a double. */
function isExact(token: string, value: number): boolean {
  const size = Math.abs(value);
  // A double keeps every decimal of 15 digits, but for the margins of its range, where digits run out.
  if (token.length <= 15 && size > 1e-300 && size < 1e300) return true;
  if (!Number.isFinite(value)) return false;
  const printed = String(value);
  return printed === token || significand(printed) === significand(token);
}

const NUMBER_PARTS = /^-?(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/;

/** Digits without zeros around them, and the power of ten: one spelling for each absolute value. */
function significand(token: string): string {
  const [, whole = '', fraction = '', exponent = '0'] = NUMBER_PARTS.exec(token) ?? [];
  const digits = whole + fraction;
  // Loops, because a regular expression for trailing zeros takes quadratic time on "1000…0001".
  let start = 0;
  while (start < digits.length && digits.charCodeAt(start) === ZERO) start++;
  if (start === digits.length) return '0';
  let end = digits.length;
  while (digits.charCodeAt(end - 1) === ZERO) end--;
  return `${digits.slice(start, end)}e${Number(exponent) - fraction.length + digits.length - end}`;
}

const TOKEN_SHOWN_MAX = 40;

function notExactMessage(token: string, value: number): string {
  const shown = token.length > TOKEN_SHOWN_MAX ? `${token.slice(0, TOKEN_SHOWN_MAX)}…` : token;
  const known = Number.isFinite(value)
    ? `cannot be held exactly: it would be sent as ${value}. Send that`
    : 'is too large for a double. Send a smaller number';
  return `The number ${shown} ${known}, or the digits as a string.`;
}

const DUPLICATE_KEY_MESSAGE =
  'The key occurs twice in its object, and readers differ on which one counts. Send it once.';
