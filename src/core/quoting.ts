// Other people's words beside ours: on one line, with what hides written out, in marks where they could be taken
// for a sentence. And the small things that every text is put together with.

export function sentences(...parts: readonly string[]): string {
  return parts.filter((part) => part !== '').join(' ');
}

/** `HH:MM:SS` of an instant, in UTC. */
export function clock(at: number): string {
  return new Date(at).toISOString().slice(11, 19);
}

export function minute(at: number): string {
  return new Date(at).toISOString().slice(11, 16);
}

export function upperFirst(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** How much of other people's words is shown: what is told about them must always find room beside them. */
export interface Room {
  readonly charactersMax: number;
  readonly wordsMax: number;
}

export const NAME: Room = { charactersMax: 80, wordsMax: 3 };
export const ARGUMENT: Room = { charactersMax: 60, wordsMax: 2 };
const QUOTE: Room = { charactersMax: 160, wordsMax: 25 };
/** Reasons in our own words. */
export const REASON: Room = { charactersMax: 400, wordsMax: 50 };

/** What controls, hides, reorders, or is drawn as nothing. */
const UNSEEN = /[\p{Cc}\p{Cf}\p{Cn}\p{Co}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u2800]/gu;

/** Other people's words on one line, with what could not be seen written out. */
export function plain(text: string, room: Room = QUOTE): string {
  // However long it is, no more is read than could be shown between spaces.
  const begun = text.slice(0, room.charactersMax * 4);
  const line = begun.replace(/[\p{Zs}\t\r\n]+/gu, ' ').trim();
  const within = line.split(' ').slice(0, room.wordsMax).join(' ').slice(0, room.charactersMax);
  const isCut = within.length < line.length || begun.length < text.length;
  const cut = isCut ? `${within.trimEnd()}…` : within;
  return visible(cut);
}

/** What could not be seen, written out; all else as it is, however long. */
export function visible(text: string): string {
  return text.replace(UNSEEN, (character) => `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`);
}

/** Whatever might be taken for the end of a quotation. */
const QUOTATION_MARKS =
  /["\p{Pi}\p{Pf}\u201e\u201f\uff02\u2033\u2036\u02ba\u02ee\u301d-\u301f\u275b-\u275e]/gu;

/** The same between quotation marks, so that a reader sees whose words they are. */
export function quoted(text: string, room: Room = QUOTE): string {
  return `"${plain(text, room).replace(QUOTATION_MARKS, "'")}"`;
}

/** One or two words of letters, digits and what stands within names: too little to be a sentence of its own. */
const NAME_PART = String.raw`[\p{L}\p{M}\p{N}_#@+~/\\-]+(?:[.:][\p{L}\p{M}\p{N}_#@+~/\\-]+)*`;
const PLAIN_NAME = new RegExp(`^${NAME_PART}(?: ${NAME_PART})?$`, 'u');

/** A name as it is where it can be taken for nothing else, else quoted. */
export function named(text: string, room: Room = NAME): string {
  const name = plain(text, room);
  return PLAIN_NAME.test(name) ? name : quoted(text, room);
}

/** D14's limit; the sentences above stay below it. */
const WORDS_MAX = 90;

export function limitWords(text: string): string {
  const words = text.split(' ');
  return words.length <= WORDS_MAX ? text : `${words.slice(0, WORDS_MAX - 1).join(' ')} …`;
}
