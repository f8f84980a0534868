// Reads server-sent events from bytes. Nothing is decoded, so that what is not UTF-8 is still noticed by whoever
// reads the data, and a frame keeps its bytes.

export interface SseEvent {
  /** The data lines, joined by line feeds. Empty for an event that only carries an id. */
  readonly data: Buffer;
  readonly id: string | undefined;
  /** How long to wait before coming back, where the server has said it. */
  readonly retryMs: number | undefined;
}

const LINE_FEED = 0x0a;
const CARRIAGE_RETURN = 0x0d;
const COLON = 0x3a;
const SPACE = 0x20;
const JOIN = Buffer.from('\n');

export class SseReader {
  readonly #onEvent: (event: SseEvent) => void;
  readonly #onTooLong: () => void;
  readonly #maxBytes: number;
  #line: Buffer[] = [];
  #data: Buffer[] = [];
  #bytes = 0;
  #id: string | undefined;
  #retryMs: number | undefined;
  #hasField = false;
  /** The last line ended with CR: a line feed that follows belongs to it. */
  #afterReturn = false;

  /** @param maxBytes the longest event; a longer one is told, and nothing is read after it */
  constructor(maxBytes: number, onEvent: (event: SseEvent) => void, onTooLong: () => void) {
    this.#maxBytes = maxBytes;
    this.#onEvent = onEvent;
    this.#onTooLong = onTooLong;
  }

  push(chunk: Buffer): void {
    let from = 0;
    if (this.#afterReturn && chunk[0] === LINE_FEED) from = 1;
    this.#afterReturn = false;
    let lineFeed = chunk.indexOf(LINE_FEED, from);
    let carriageReturn = chunk.indexOf(CARRIAGE_RETURN, from);
    while (lineFeed !== -1 || carriageReturn !== -1) {
      const isReturn = carriageReturn !== -1 && (lineFeed === -1 || carriageReturn < lineFeed);
      const end = isReturn ? carriageReturn : lineFeed;
      if (!this.#keep(chunk.subarray(from, end))) return;
      this.#endLine();
      from = end + 1;
      if (isReturn && from === chunk.length) this.#afterReturn = true;
      if (isReturn && chunk[from] === LINE_FEED) from += 1;
      if (lineFeed !== -1 && lineFeed < from) lineFeed = chunk.indexOf(LINE_FEED, from);
      if (carriageReturn !== -1 && carriageReturn < from) {
        carriageReturn = chunk.indexOf(CARRIAGE_RETURN, from);
      }
    }
    if (from < chunk.length) this.#keep(chunk.subarray(from));
  }

  #keep(piece: Buffer): boolean {
    this.#bytes += piece.length;
    if (this.#bytes > this.#maxBytes) {
      this.#onTooLong();
      return false;
    }
    if (piece.length > 0) this.#line.push(piece);
    return true;
  }

  #endLine(): void {
    const line = this.#line.length === 1 ? (this.#line[0] ?? EMPTY) : Buffer.concat(this.#line);
    this.#line = [];
    if (line.length === 0) {
      this.#endEvent();
      return;
    }
    const colon = line.indexOf(COLON);
    if (colon === 0) return;
    const name = (colon === -1 ? line : line.subarray(0, colon)).toString('latin1');
    const value = colon === -1 ? EMPTY : line.subarray(line[colon + 1] === SPACE ? colon + 2 : colon + 1);
    switch (name) {
      case 'data':
        this.#data.push(value);
        this.#hasField = true;
        return;
      case 'id':
        this.#id = value.toString('utf8');
        this.#hasField = true;
        return;
      case 'retry':
        if (/^\d{1,9}$/.test(value.toString('latin1'))) this.#retryMs = Number(value.toString('latin1'));
        this.#hasField = true;
        return;
      default:
    }
  }

  #endEvent(): void {
    const pieces = this.#data.flatMap((line, index) => (index === 0 ? [line] : [JOIN, line]));
    const event = { data: Buffer.concat(pieces), id: this.#id, retryMs: this.#retryMs };
    const isEvent = this.#hasField;
    this.#data = [];
    this.#bytes = 0;
    this.#id = undefined;
    this.#retryMs = undefined;
    this.#hasField = false;
    if (isEvent) this.#onEvent(event);
  }
}

const EMPTY = Buffer.alloc(0);
