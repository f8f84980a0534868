// How one request of 2026-07-28 is answered: by one JSON object, or by a stream of events that ends with it. Its end
// before that is the client's cancel (specification 2026-07-28, streamable-http "Cancellation").

import type { ServerResponse } from 'node:http';
import { memberText } from '../../core/json-frame.ts';
import {
  CODE_HEADER_MISMATCH,
  CODE_MISSING_CAPABILITY,
  CODE_UNSUPPORTED_VERSION,
} from '../../destination/mcp/mcp-headers.ts';
import type { StatelessAnswer } from '../stateless-requests.ts';
import { EventConnection, eventText } from './event-stream.ts';
import { type HttpRefusal, sendJson, sendRefusal } from './refusals.ts';

/** Clients and proxies give up on a response whose headers do not come. */
const SILENT_MAX_MS = 10_000;

const STATUS: ReadonlyMap<string, number> = new Map([
  ['-32601', 404],
  [String(CODE_HEADER_MISMATCH), 400],
  [String(CODE_MISSING_CAPABILITY), 400],
  [String(CODE_UNSUPPORTED_VERSION), 400],
]);

export class ModernAnswer implements StatelessAnswer {
  onGone: () => void = () => {};
  readonly #response: ServerResponse;
  readonly #acceptsEvents: boolean;
  readonly #silence: NodeJS.Timeout;
  #connection: EventConnection | undefined;
  #isDone = false;

  constructor(response: ServerResponse, acceptsEvents: boolean) {
    this.#response = response;
    this.#acceptsEvents = acceptsEvents;
    this.#silence = setTimeout(() => this.open(), SILENT_MAX_MS);
    this.#silence.unref();
    response.once('close', () => {
      clearTimeout(this.#silence);
      if (!this.#isDone) this.onGone();
    });
  }

  /** Begins the stream at once, as a subscription does. */
  open(): void {
    if (this.#connection !== undefined || this.#isDone || !this.#acceptsEvents) return;
    if (this.#response.destroyed) return;
    clearTimeout(this.#silence);
    this.#connection = new EventConnection(this.#response, {});
  }

  message(frame: string): void {
    if (this.#isDone) return;
    this.open();
    this.#connection?.send(eventText(frame));
  }

  /** Answered where the door does not go on; a stream that has begun can only end with it. */
  refuse(refusal: HttpRefusal): void {
    if (this.#connection !== undefined) {
      const { code, message, data, id = 'null' } = refusal;
      this.end(id, 'error', JSON.stringify({ code, message, data: data ?? { origin: 'counterfoil' } }));
      return;
    }
    this.#isDone = true;
    clearTimeout(this.#silence);
    sendRefusal(this.#response, refusal);
  }

  end(
    id: string,
    member: 'result' | 'error',
    text: string,
    written: (isWritten: boolean) => void = () => {},
  ): void {
    if (this.#isDone) {
      written(false);
      return;
    }
    this.#isDone = true;
    clearTimeout(this.#silence);
    const frame = `{"jsonrpc":"2.0","id":${id},"${member}":${text}}`;
    if (this.#connection !== undefined) {
      this.#connection.send(eventText(frame), written);
      this.#connection.end();
      return;
    }
    const code = member === 'error' ? memberText(text, 'code') : undefined;
    sendJson(this.#response, STATUS.get(code ?? '') ?? 200, frame, {}, written);
  }
}
