// One stream of server-sent events to a client. A stream of the session generation outlives its connection: what it
// has carried is held for a while, and given again from the event that the client saw last.

import type { ServerResponse } from 'node:http';

/** What a client that does not read may leave in this process before its connection is ended. */
const UNREAD_MAX_BYTES = 16 * 1024 * 1024;
const KEEP_ALIVE_MS = 15_000;

const EVENT_HEADERS = {
  'content-type': 'text/event-stream',
  'cache-control': 'no-cache, no-transform',
  'x-accel-buffering': 'no',
} as const;

/** The text of one event. A frame with line feeds becomes several data lines, which a reader joins again. */
export function eventText(frame: string, id?: string): string {
  const data = frame
    .split(/\r\n|\n|\r/)
    .map((line) => `data: ${line}\n`)
    .join('');
  return `${id === undefined ? '' : `id: ${id}\n`}event: message\n${data}\n`;
}

/** A connection that carries events until it is ended by either side. */
export class EventConnection {
  readonly #response: ServerResponse;
  readonly #keepAlive: NodeJS.Timeout;

  constructor(
    response: ServerResponse,
    headers: { readonly [name: string]: string },
    onClose: () => void = () => {},
  ) {
    this.#response = response;
    response.writeHead(200, { ...EVENT_HEADERS, ...headers });
    response.flushHeaders();
    this.#keepAlive = setInterval(() => this.#write(': \n\n'), KEEP_ALIVE_MS);
    this.#keepAlive.unref();
    response.once('close', () => {
      clearInterval(this.#keepAlive);
      onClose();
    });
  }

  get isOpen(): boolean {
    return !this.#response.destroyed && !this.#response.writableEnded;
  }

  send(event: string, written: (isWritten: boolean) => void = () => {}): void {
    if (this.isOpen) this.#write(event, written);
    else written(false);
  }

  end(): void {
    clearInterval(this.#keepAlive);
    this.#response.end();
  }

  #write(text: string, written?: (isWritten: boolean) => void): void {
    // What has not been read before this is what counts: one message may be longer.
    if (this.#response.writableLength > UNREAD_MAX_BYTES) this.#response.destroy();
    this.#response.write(text, (cause) => written?.(cause === undefined || cause === null));
  }
}

const HELD_MAX_EVENTS = 1_000;
const HELD_MAX_BYTES = 8 * 1024 * 1024;

interface HeldEvent {
  readonly number: number;
  readonly text: string;
}

/** Streams of one session, by their numbers; event ids are `STREAM-EVENT`. */
export class HeldStream {
  readonly name: string;
  #held: HeldEvent[] = [];
  #heldBytes = 0;
  #count = 0;
  /** The last event that was handed to a connection. */
  #sent = 0;
  #connection: EventConnection | undefined;
  #isDone = false;

  constructor(name: string) {
    this.name = name;
  }

  get isConnected(): boolean {
    return this.#connection?.isOpen === true;
  }

  get isDone(): boolean {
    return this.#isDone;
  }

  /** @param primes whether the client knows an event without data, by which it can resume from the beginning */
  connect(connection: EventConnection, primes: boolean, after?: number): void {
    this.#connection?.end();
    this.#connection = connection;
    if (after === undefined && primes) connection.send(`id: ${this.name}-0\ndata: \n\n`);
    for (const { number, text } of this.#held) if (number > (after ?? this.#sent)) connection.send(text);
    this.#sent = this.#count;
    if (this.#isDone) connection.end();
  }

  push(frame: string, written?: (isWritten: boolean) => void): void {
    this.#count += 1;
    const text = eventText(frame, `${this.name}-${this.#count}`);
    this.#held.push({ number: this.#count, text });
    this.#heldBytes += text.length;
    while (
      this.#held.length > HELD_MAX_EVENTS ||
      (this.#heldBytes > HELD_MAX_BYTES && this.#held.length > 1)
    ) {
      this.#heldBytes -= this.#held.shift()?.text.length ?? 0;
    }
    if (this.#connection?.isOpen !== true) {
      written?.(false);
      return;
    }
    this.#sent = this.#count;
    this.#connection.send(text, written);
  }

  /** Nothing more will come on it. */
  finish(): void {
    this.#isDone = true;
    this.#connection?.end();
  }
}
