// One byte form for every JSON value (RFC 8785), and the check that a caller's value has such a form.
//
// A payload is hashed, reviewed and sent in this form. So what has no exact form is refused here, with the
// reason, and is never repaired: a repaired payload is one that nobody proposed.

export type JsonValue = null | boolean | number | string | JsonArray | JsonObject;
export type JsonArray = readonly JsonValue[];
export type JsonObject = { readonly [key: string]: JsonValue };

/** Why a text or a value has no exact canonical form. */
export type UnrepresentableCode =
  // a text only
  | 'empty'
  | 'byte_order_mark'
  | 'invalid_utf8'
  | 'syntax'
  | 'trailing_text'
  | 'duplicate_key'
  | 'number_not_exact'
  // either
  | 'too_large'
  | 'too_deep'
  | 'reserved_key'
  | 'lone_surrogate'
  // a caller's value only
  | 'not_json'
  | 'not_finite'
  | 'unsafe_integer'
  | 'cycle'
  | 'not_plain'
  | 'hidden_member'
  | 'symbol_key'
  | 'accessor'
  | 'sparse_array'
  | 'unreadable';

export interface Unrepresentable {
  readonly code: UnrepresentableCode;
  /** JSON pointer to the place; '' for the whole. Keys are the sender's: escape before showing; long ones are cut. */
  readonly at: string;
  /** English; holds nothing of the sender's but the digits of a number. */
  readonly message: string;
}

export type Representable =
  | { readonly ok: true; readonly value: JsonValue }
  | { readonly ok: false; readonly reason: Unrepresentable };

export interface JsonLimits {
  /** How many arrays and objects may lie within each other; 64 unless told, at most 512. */
  readonly depthMax?: number;
  /** UTF-8 bytes of a text as it came, or of a value's canonical form; 16 MiB unless told. */
  readonly bytesMax?: number;
}

// The walks recurse, so that the ceiling on depth is what keeps the stack safe, whatever limit a caller sets.
const DEPTH_CEILING = 512;

/**
 * The canonical text of a value (RFC 8785): keys by UTF-16 code units, numbers as ECMAScript prints them, the
 * fewest escapes, no white space. -0 prints as 0.
 *
 * The value comes from `readStrictJson` or `checkRepresentable`. Anything that is not JSON is a bug of the
 * caller, and throws an `AssertionError` before a wrong byte can be hashed. Accessors and members that are not
 * enumerable are the exception: to look for them here would double the time, so `checkRepresentable` does.
 */
export function canonicalJson(value: JsonValue): string {
  return print(value, 0);
}

function print(value: JsonValue, depth: number): string {
  switch (typeof value) {
    case 'string':
      return printString(value);
    case 'number':
      if (!Number.isFinite(value)) throw new AssertionError(`the number ${value} has no canonical form`);
      return String(value);
    case 'boolean':
      return value ? 'true' : 'false';
    case 'object':
      if (value === null) return 'null';
      if (depth >= DEPTH_CEILING) throw new AssertionError('a value is nested too deeply, or holds itself');
      return Array.isArray(value)
        ? printArray(value, depth + 1)
        : printObject(value as JsonObject, depth + 1);
    default:
      throw new AssertionError(`a value of type ${typeof value} has no canonical form`);
  }
}

function printArray(array: JsonArray, depth: number): string {
  if (!isPlainArray(array)) throw new AssertionError('an array of a subclass has no canonical form');
  let text = '[';
  for (let index = 0; index < array.length; index++) {
    if (index > 0) text += ',';
    // A hole reads as undefined, which `print` does not accept.
    text += print(array[index] as JsonValue, depth);
  }
  return `${text}]`;
}

function printObject(object: JsonObject, depth: number): string {
  if (!isPlainObject(object)) throw new AssertionError('an object that is not plain has no canonical form');
  if (Object.getOwnPropertySymbols(object).length > 0) throw new AssertionError('a key is a symbol');
  const keys = Object.keys(object);
  sortByCodeUnits(keys);
  let text = '{';
  for (let index = 0; index < keys.length; index++) {
    const key = keys[index] as string;
    if (key === '__proto__') throw new AssertionError('the key __proto__ has no canonical form');
    if (index > 0) text += ',';
    text += `${printString(key)}:${print(object[key] as JsonValue, depth)}`;
  }
  return `${text}}`;
}

// Objects of tool arguments have a handful of keys; below this count an insertion sort beats the built-in.
const FEW_KEYS = 24;

function sortByCodeUnits(keys: string[]): void {
  // The built-in order and `<` both compare UTF-16 code units, which is the order of RFC 8785, 3.2.3.
  if (keys.length > FEW_KEYS) {
    keys.sort();
    return;
  }
  for (let index = 1; index < keys.length; index++) {
    const key = keys[index] as string;
    let free = index;
    for (; free > 0 && key < (keys[free - 1] as string); free--) keys[free] = keys[free - 1] as string;
    keys[free] = key;
  }
}

// oxlint-disable-next-line no-control-regex -- control characters are what must be escaped.
const NOT_VERBATIM = /[\u0000-\u001f"\\\ud800-\udfff]/;

/** The quoted form; JSON.stringify escapes exactly what RFC 8785, 3.2.2.2 does. */
function printString(text: string): string {
  if (!NOT_VERBATIM.test(text)) return `"${text}"`;
  if (hasLoneSurrogate(text)) throw new AssertionError('a lone surrogate has no canonical form');
  return JSON.stringify(text);
}

// With the `u` flag a pair is one code point, so that only a surrogate without its partner matches.
const LONE_SURROGATE = /[\ud800-\udfff]/u;

/** Whether a string holds half of a surrogate pair, which UTF-8 cannot carry. */
export function hasLoneSurrogate(text: string): boolean {
  return LONE_SURROGATE.test(text);
}

/**
 * A deep-frozen plain copy of a value that a library caller passed, or why there is none. Never throws.
 *
 * Each member is read once, through its descriptor: an accessor is refused and not run, so that what is
 * reviewed cannot differ from what is sent. Integers beyond 2^53 are refused here although a text may spell
 * some of them: a text shows its digits, while a number may have lost them before it came.
 */
export function checkRepresentable(value: unknown, limits: JsonLimits = {}): Representable {
  const snapshot = new Snapshot(resolveLimits(limits));
  const copy = snapshot.take(value);
  return copy === undefined ? { ok: false, reason: snapshot.refusal() } : { ok: true, value: copy };
}

/** Copies one value, or keeps the first reason why it cannot; `undefined` means refused. */
class Snapshot {
  private readonly limits: Required<JsonLimits>;
  // The keys and indexes that lead to the value at hand; its length is the depth.
  private readonly path: (string | number)[] = [];
  private readonly ancestors: object[] = [];
  // Counted while copying, not afterwards: a small value that shares its parts can unfold without end.
  private bytes = 0;
  private reason: Unrepresentable | undefined;

  constructor(limits: Required<JsonLimits>) {
    this.limits = limits;
  }

  take(value: unknown): JsonValue | undefined {
    try {
      return this.copy(value);
    } catch (error) {
      if (error instanceof AssertionError) throw error;
      // The traps of a proxy are the only foreign code that can run here.
      return this.refuse(
        'unreadable',
        'The object threw an error while it was read. Send a plain copy of it.',
      );
    }
  }

  refusal(): Unrepresentable {
    if (this.reason === undefined) throw new AssertionError('a refused value has a reason');
    return this.reason;
  }

  private copy(value: unknown): JsonValue | undefined {
    switch (typeof value) {
      case 'string':
        return this.copyString(value);
      case 'number':
        return this.copyNumber(value);
      case 'boolean':
        return this.spend(value ? 4 : 5) ? value : undefined;
      case 'object':
        if (value !== null) return this.copyContainer(value);
        return this.spend(4) ? null : undefined;
      default:
        return this.refuse(
          'not_json',
          `A value of type ${typeof value} cannot be sent as JSON. Leave the member out, or send null or a string.`,
        );
    }
  }

  private copyString(text: string): string | undefined {
    if (hasLoneSurrogate(text)) return this.refuse('lone_surrogate', LONE_SURROGATE_MESSAGE);
    return this.spendString(text) ? text : undefined;
  }

  private copyNumber(value: number): number | undefined {
    if (!Number.isFinite(value)) {
      return this.refuse('not_finite', `JSON has no number for ${value}. Send null or a string.`);
    }
    if (Number.isInteger(value) && !Number.isSafeInteger(value)) {
      return this.refuse(
        'unsafe_integer',
        `The integer ${value} is beyond 2^53, so that digits may already be lost. Send it as a string.`,
      );
    }
    // `+ 0` turns -0 into the 0 that it is printed as.
    return this.spend(String(value).length) ? value + 0 : undefined;
  }

  private copyContainer(container: object): JsonValue | undefined {
    if (this.ancestors.includes(container)) {
      return this.refuse('cycle', 'The value holds itself, so that it has no end. Send a tree.');
    }
    if (this.path.length >= this.limits.depthMax) {
      return this.refuse('too_deep', tooDeepMessage(this.limits.depthMax));
    }
    const isArray = Array.isArray(container);
    if (!(isArray ? isPlainArray(container) : isPlainObject(container))) {
      return this.refuse(
        'not_plain',
        'Only plain objects and arrays are JSON. Convert the instance of a class first.',
      );
    }
    this.ancestors.push(container);
    const copy = isArray ? this.copyArray(container) : this.copyObject(container);
    this.ancestors.pop();
    return copy;
  }

  private copyArray(array: readonly unknown[]): JsonArray | undefined {
    const { length } = array;
    if (!this.spend(length === 0 ? 2 : length + 1)) return undefined;
    const copy: JsonValue[] = [];
    for (let index = 0; index < length; index++) {
      this.path.push(index);
      const member = this.copyMember(array, index);
      if (member === undefined) return undefined;
      copy.push(member);
      this.path.pop();
    }
    // Every own key but the indexes and `length` is something that an array in JSON cannot carry.
    if (Reflect.ownKeys(array).length > length + 1) {
      return this.refuse('hidden_member', 'An array has members beside its elements, which JSON would drop.');
    }
    return Object.freeze(copy);
  }

  private copyObject(object: object): JsonObject | undefined {
    if (!this.spend(2)) return undefined;
    const copy: Record<string, JsonValue> = {};
    let separators = 1;
    for (const key of Reflect.ownKeys(object)) {
      if (typeof key === 'symbol') {
        return this.refuse('symbol_key', 'A key is a symbol, which JSON would drop. Use strings as keys.');
      }
      if (hasLoneSurrogate(key)) return this.refuse('lone_surrogate', LONE_SURROGATE_MESSAGE);
      this.path.push(key);
      if (key === '__proto__') return this.refuse('reserved_key', RESERVED_KEY_MESSAGE);
      if (!this.spend(separators) || !this.spendString(key)) return undefined;
      const member = this.copyMember(object, key);
      if (member === undefined) return undefined;
      addMember(copy, key, member);
      separators = 2;
      this.path.pop();
    }
    return Object.freeze(copy);
  }

  private copyMember(container: object, key: string | number): JsonValue | undefined {
    const descriptor = Object.getOwnPropertyDescriptor(container, key);
    if (descriptor === undefined) {
      return this.refuse('sparse_array', 'The array has a hole. Put null where nothing is meant.');
    }
    if (!Object.hasOwn(descriptor, 'value')) {
      return this.refuse(
        'accessor',
        'The member is computed when it is read, so that two readings may differ. Send a plain copy.',
      );
    }
    if (!descriptor.enumerable) {
      return this.refuse(
        'hidden_member',
        'The member is not enumerable, so that JSON would drop it. Send a plain copy.',
      );
    }
    return this.copy(descriptor.value);
  }

  private spendString(text: string): boolean {
    // A string has at least as many bytes as code units, so that one far too long is not printed to find out.
    if (text.length > this.limits.bytesMax) return this.spend(text.length);
    return this.spend(utf8Length(printString(text)));
  }

  private spend(bytes: number): boolean {
    this.bytes += bytes;
    if (this.bytes <= this.limits.bytesMax) return true;
    this.refuse('too_large', tooLargeMessage(this.limits.bytesMax));
    return false;
  }

  private refuse(code: UnrepresentableCode, message: string): undefined {
    this.reason = { code, at: jsonPointer(this.path), message };
    return undefined;
  }
}

/**
 * Sets an own member, whatever its key; false when the key is there already.
 *
 * A key such as `constructor`, which every object inherits, is defined instead of assigned, so that neither a
 * setter nor a frozen member of a prototype can come between. Members stay on ordinary objects because schema
 * validators call inherited methods (ajv throws on objects without a prototype); read one whose name came from
 * outside with `Object.hasOwn`.
 */
export function addMember(object: Record<string, JsonValue>, key: string, value: JsonValue): boolean {
  if (!(key in object)) {
    object[key] = value;
    return true;
  }
  if (Object.hasOwn(object, key)) return false;
  Object.defineProperty(object, key, { value, writable: true, enumerable: true, configurable: true });
  return true;
}

function isPlainObject(object: object): boolean {
  const prototype: object | null = Object.getPrototypeOf(object);
  if (prototype === Object.prototype || prototype === null) return true;
  // Object.prototype of another realm (a test runner's, a worker's context) is as plain as ours.
  return Object.getPrototypeOf(prototype) === null && Object.hasOwn(prototype, 'hasOwnProperty');
}

function isPlainArray(array: readonly unknown[]): boolean {
  const prototype: object | null = Object.getPrototypeOf(array);
  // Array.prototype is itself an object without a class; the prototype of a subclass of Array is not.
  return prototype === Array.prototype || (prototype !== null && isPlainObject(prototype));
}

/** The limits that hold, with what was left out filled in. */
export function resolveLimits({
  depthMax = 64,
  bytesMax = 16 * 1024 * 1024,
}: JsonLimits): Required<JsonLimits> {
  if (!Number.isInteger(depthMax) || depthMax < 0 || depthMax > DEPTH_CEILING) {
    throw new AssertionError(`depthMax is a whole number up to ${DEPTH_CEILING}, not ${depthMax}`);
  }
  if (!Number.isSafeInteger(bytesMax) || bytesMax < 0) {
    throw new AssertionError(`bytesMax is a whole number, not ${bytesMax}`);
  }
  return { depthMax, bytesMax };
}

/** How many bytes a text has in UTF-8; a lone surrogate counts three, as its replacement would. */
export function utf8Length(text: string): number {
  let bytes = text.length;
  for (let index = 0; index < text.length; index++) {
    const unit = text.charCodeAt(index);
    if (unit < 0x80) continue;
    if (unit < 0x800) {
      bytes += 1;
    } else {
      bytes += 2;
      // Both halves of a pair were counted as units already, and four bytes are their sum.
      if (unit >= 0xd800 && unit <= 0xdbff && isLowSurrogate(text.charCodeAt(index + 1))) index++;
    }
  }
  return bytes;
}

function isLowSurrogate(unit: number): boolean {
  return unit >= 0xdc00 && unit <= 0xdfff;
}

/** RFC 6901; a key beyond 80 characters is cut, because a reason must stay small whatever was sent. */
export function jsonPointer(path: readonly (string | number)[]): string {
  return path.map((token) => `/${cut(String(token)).replaceAll('~', '~0').replaceAll('/', '~1')}`).join('');
}

const KEY_SHOWN_MAX = 80;

function cut(key: string): string {
  if (key.length <= KEY_SHOWN_MAX) return key;
  const head = key.slice(0, KEY_SHOWN_MAX);
  // The cut must not leave half a pair: a reason is stored, and has to have a canonical form itself.
  return `${hasLoneSurrogate(head) ? head.slice(0, -1) : head}…`;
}

export const LONE_SURROGATE_MESSAGE =
  'A string holds half of a surrogate pair, which UTF-8 cannot carry. Remove it or send the whole character.';

// JavaScript readers drop this key or turn it into a prototype, so what was reviewed would not be what is used.
export const RESERVED_KEY_MESSAGE =
  'The key __proto__ is not sent, because many readers misread it. Rename it.';

export function tooDeepMessage(depthMax: number): string {
  return `More than ${depthMax} arrays and objects lie within each other. Send a flatter value.`;
}

export function tooLargeMessage(bytesMax: number): string {
  return `The JSON has more than ${bytesMax} bytes. Send less at a time.`;
}

/** A bug in our own code. It has the name that `node:assert` gives, from where the core cannot import. */
class AssertionError extends Error {
  override readonly name = 'AssertionError';
}
