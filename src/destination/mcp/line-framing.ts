// Splits a byte stream into newline-terminated frames, exact bytes in and exact bytes out.
//
// Nothing is decoded: 0x0A never occurs inside a UTF-8 character, so that a character that arrives in two
// chunks needs no care. Only new bytes are searched, and an unfinished line grows by doubling, so that a
// frame costs time in proportion to its length however small its chunks are.

const LINE_FEED = 0x0a;
const CARRIAGE_RETURN = 0x0d;

/** How much of each end of an over-long line is kept, to tell whose it was. */
const EXCERPT_BYTES = 4096;

export const FRAME_MAX_BYTES = 64 * 1024 * 1024;

/** A line that was longer than the cap. Its bytes are gone but for the two ends. */
export interface UnreadableLine {
  readonly bytes: number;
  readonly start: Buffer;
  readonly end: Buffer;
}

export interface LineFramingOptions {
  /** Longest frame that is kept, without its terminator. Default 64 MiB. */
  readonly frameMaxBytes?: number;
  /**
   * One frame without its terminator (LF or CRLF). The bytes may be a view of the chunk: copy what is to be
   * kept for long. Blank lines are not frames.
   */
  readonly onFrame: (frame: Buffer) => void;
  readonly onUnreadable: (line: UnreadableLine) => void;
}

export class LineFraming {
  readonly #frameMaxBytes: number;
  readonly #onFrame: (frame: Buffer) => void;
  readonly #onUnreadable: (line: UnreadableLine) => void;
  /** The line that has no end yet. */
  #unfinished = new GrowingBytes();
  /** Set while the rest of an over-long line is being skipped. */
  #skipping: { readonly start: Buffer; bytes: number; readonly end: LastBytes } | null = null;

  constructor(options: LineFramingOptions) {
    this.#frameMaxBytes = options.frameMaxBytes ?? FRAME_MAX_BYTES;
    this.#onFrame = options.onFrame;
    this.#onUnreadable = options.onUnreadable;
  }

  push(chunk: Buffer): void {
    let from = 0;
    for (;;) {
      const lineFeed = chunk.indexOf(LINE_FEED, from);
      if (lineFeed === -1) break;
      this.#finishLine(chunk.subarray(from, lineFeed));
      from = lineFeed + 1;
    }
    if (from < chunk.length) this.#keep(chunk.subarray(from));
  }

  /** The stream has ended: how many bytes of an unfinished line were left over. They are never a frame. */
  end(): number {
    const leftBytes = this.#skipping?.bytes ?? this.#unfinished.bytes;
    this.#skipping = null;
    this.#unfinished = new GrowingBytes();
    return leftBytes;
  }

  #keep(piece: Buffer): void {
    if (this.#skipping === null) {
      this.#unfinished.append(piece);
      // One byte more than the cap may still turn out to be the CR of the terminator.
      if (this.#unfinished.bytes <= this.#frameMaxBytes + 1) return;
      this.#skipping = beginSkipping(this.#unfinished.take());
    } else {
      this.#skipping.bytes += piece.length;
      this.#skipping.end.append(piece);
    }
  }

  #finishLine(rest: Buffer): void {
    if (this.#skipping !== null || this.#unfinished.bytes > 0) this.#keep(rest);
    const skipped = this.#skipping;
    if (skipped !== null) {
      this.#skipping = null;
      this.#onUnreadable({ bytes: skipped.bytes, start: skipped.start, end: skipped.end.read() });
      return;
    }
    const line = this.#unfinished.bytes > 0 ? this.#unfinished.take() : rest;
    const frame = line[line.length - 1] === CARRIAGE_RETURN ? line.subarray(0, -1) : line;
    if (frame.length > this.#frameMaxBytes) {
      const { start, end, bytes } = beginSkipping(frame);
      this.#onUnreadable({ bytes, start, end: end.read() });
    } else if (frame.length > 0) {
      this.#onFrame(frame);
    }
  }
}

function beginSkipping(line: Buffer): { start: Buffer; bytes: number; end: LastBytes } {
  const end = new LastBytes();
  end.append(line);
  return { start: Buffer.from(line.subarray(0, EXCERPT_BYTES)), bytes: line.length, end };
}

/** Bytes that arrive in pieces, copied so that the chunks they came in can be freed. */
class GrowingBytes {
  #room = Buffer.alloc(0);
  bytes = 0;

  append(piece: Buffer): void {
    const bytes = this.bytes + piece.length;
    if (bytes > this.#room.length) {
      const room = Buffer.allocUnsafeSlow(Math.max(bytes, 2 * this.#room.length, 1024));
      this.#room.copy(room, 0, 0, this.bytes);
      this.#room = room;
    }
    piece.copy(this.#room, this.bytes);
    this.bytes = bytes;
  }

  take(): Buffer {
    const all = this.#room.subarray(0, this.bytes);
    this.#room = Buffer.alloc(0);
    this.bytes = 0;
    return all;
  }
}

/** The last `EXCERPT_BYTES` of what went by. */
class LastBytes {
  readonly #room = Buffer.allocUnsafeSlow(2 * EXCERPT_BYTES);
  #bytes = 0;

  append(piece: Buffer): void {
    const kept = piece.subarray(-EXCERPT_BYTES);
    if (this.#bytes + kept.length > this.#room.length) {
      this.#room.copy(this.#room, 0, this.#bytes - EXCERPT_BYTES, this.#bytes);
      this.#bytes = EXCERPT_BYTES;
    }
    kept.copy(this.#room, this.#bytes);
    this.#bytes += kept.length;
  }

  read(): Buffer {
    return this.#room.subarray(Math.max(0, this.#bytes - EXCERPT_BYTES), this.#bytes);
  }
}
