// How one POST with a request is answered: by one JSON object, or, once there is something to say before the answer
// or the answer takes long, by a stream of events that ends with it.

import type { ServerResponse } from 'node:http';
import { EventConnection, type HeldStream } from './event-stream.ts';
import { sendJson } from './refusals.ts';

/** Clients and proxies give up on a response whose headers do not come. */
const SILENT_MAX_MS = 10_000;

export interface PostAnswerParts {
  readonly response: ServerResponse;
  readonly acceptsEvents: boolean;
  readonly headers: { readonly [name: string]: string };
  /** The raw text of the token by which the request asked for progress. */
  readonly progressToken: string | undefined;
  readonly openStream: () => HeldStream;
  readonly primes: () => boolean;
}

export class PostAnswer {
  readonly progressToken: string | undefined;
  readonly #parts: PostAnswerParts;
  readonly #silence: NodeJS.Timeout;
  #headers: { readonly [name: string]: string };
  #stream: HeldStream | undefined;

  constructor(parts: PostAnswerParts) {
    this.#parts = parts;
    this.#headers = parts.headers;
    this.progressToken = parts.progressToken;
    this.#silence = setTimeout(() => this.#upgrade(), SILENT_MAX_MS);
    this.#silence.unref();
  }

  /** Whether something can be said before the answer: a client that has lost its connection may come back for it. */
  get canPass(): boolean {
    return this.#stream !== undefined || (this.#parts.acceptsEvents && !this.#parts.response.destroyed);
  }

  dropHeaders(): void {
    this.#headers = {};
  }

  /** False where nothing but the answer can be told. */
  pass(frame: string): boolean {
    if (!this.canPass) return false;
    this.#upgrade();
    this.#stream?.push(frame);
    return true;
  }

  answer(frame: string | Buffer, written: (isWritten: boolean) => void): void {
    clearTimeout(this.#silence);
    if (this.#stream === undefined) {
      sendJson(this.#parts.response, 200, frame, this.#headers, written);
      return;
    }
    this.#stream.push(frame.toString(), written);
    this.#stream.finish();
  }

  /** It will not be answered. */
  close(): void {
    clearTimeout(this.#silence);
    // A refusal may be on its way in the answer's place.
    if (this.#stream === undefined && !this.#parts.response.writableEnded) this.#parts.response.destroy();
  }

  #upgrade(): void {
    if (this.#stream !== undefined || !this.canPass) return;
    clearTimeout(this.#silence);
    this.#stream = this.#parts.openStream();
    this.#stream.connect(new EventConnection(this.#parts.response, this.#headers), this.#parts.primes());
  }
}
