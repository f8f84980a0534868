// Names of things: a kind, then 26 characters of Crockford's base 32 over time and chance (sortable, readable
// aloud, no I, L, O or U).

export type IdKind = 'op' | 'run' | 'rev' | 'att' | 'wrk' | 'gap' | 'tsk' | 'msg' | 'stp';

const ALPHABET = '0123456789ABCDEFGHJKMNPQRSTVWXYZ';
const TIME_CHARACTERS = 10;
export const ID_RANDOM_BYTES = 10;

/** @param at ms since the epoch · @param random ten bytes of chance, made at the edge */
export function formatId(kind: IdKind, at: number, random: Uint8Array): string {
  let time = '';
  for (let rest = at, place = 0; place < TIME_CHARACTERS; place += 1) {
    time = ALPHABET.charAt(rest % 32) + time;
    rest = Math.floor(rest / 32);
  }
  let chance = '';
  // Five bytes are eight characters of five bits each.
  for (let start = 0; start < ID_RANDOM_BYTES; start += 5) {
    let value = 0;
    for (let offset = 0; offset < 5; offset += 1) value = value * 256 + (random[start + offset] ?? 0);
    let eight = '';
    for (let place = 0; place < 8; place += 1) {
      eight = ALPHABET.charAt(value % 32) + eight;
      value = Math.floor(value / 32);
    }
    chance += eight;
  }
  return `${kind}_${time}${chance}`;
}

/** The instant that an id was made at, in ms since the epoch; `undefined` for what is no id. */
export function idInstant(id: string): number | undefined {
  const match = /^[a-z]{2,4}_([0-9A-HJKMNP-TV-Z]{10})[0-9A-HJKMNP-TV-Z]{16}$/.exec(id);
  if (match === null) return undefined;
  let at = 0;
  for (const character of match[1] ?? '') at = at * 32 + ALPHABET.indexOf(character);
  return at;
}
