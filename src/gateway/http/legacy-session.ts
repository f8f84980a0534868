// One session of the generation up to 2025-11-25 over HTTP: its POSTs, each answered in its own way, its one stream
// for what belongs to none of them, and its own connection to the server.

import type { IncomingMessage, ServerResponse } from 'node:http';
import { memberText } from '../../core/json-frame.ts';
import type { McpFrame } from '../../destination/mcp/frame.ts';
import type { McpUpstream } from '../../destination/mcp/upstream.ts';
import { type Refusal, readClientMessage, unusableId, usedId } from '../client-frame.ts';
import type { ClientPort } from '../client-port.ts';
import { ClientSession } from '../client-session.ts';
import type { CallParts } from '../tool-calls.ts';
import { EventConnection, HeldStream } from './event-stream.ts';
import { PostAnswer } from './post-answer.ts';
import { sendEmpty, sendRefusal } from './refusals.ts';
import { accepts, refused } from './request-guard.ts';

export interface LegacySessionParts extends CallParts {
  readonly id: string;
  readonly upstream: McpUpstream;
  /** The server did not agree to a session, or has ended before it could. */
  readonly onRefused: () => void;
}

/** Finished streams that can still be resumed. */
const STREAMS_KEPT_MAX = 64;
/** The first version whose clients know events without data. */
const PRIMED_SINCE = '2025-11-25';

export class LegacySession implements ClientPort {
  readonly id: string;
  readonly requester: string;
  readonly #parts: LegacySessionParts;
  readonly #session: ClientSession;
  /** The requests of the client that are open, by their keys. */
  readonly #posts = new Map<string, PostAnswer>();
  /** The stream of GET comes first and stays. */
  readonly #streams = new Map<string, HeldStream>();
  readonly #standing = new HeldStream('0');
  #streamCount = 0;
  #primes = false;
  #initializeKey: string | undefined;
  #isEnded = false;
  /** The instant of the last sign of life, on the monotonic clock. */
  lastSeenAt = performance.now();

  constructor(parts: LegacySessionParts) {
    this.id = parts.id;
    this.requester = parts.requester;
    this.#parts = parts;
    this.#streams.set(this.#standing.name, this.#standing);
    this.#session = new ClientSession({ ...parts, client: this });
  }

  get isBusy(): boolean {
    return this.#posts.size > 0 || this.#standing.isConnected;
  }

  // ── From the client ──────────────────────────────────────────────────────────────────────────────────────

  async post(request: IncomingMessage, response: ServerResponse, frame: McpFrame): Promise<void> {
    this.lastSeenAt = performance.now();
    const message = readClientMessage(frame, (key) => this.#posts.has(key));
    if (message.kind === 'refused') {
      this.#refuse(response, message);
      return;
    }
    if (message.kind !== 'request') {
      await this.#session.receive(frame);
      sendEmpty(response, 202, this.#headers);
      return;
    }
    const { id, key, method } = message;
    if (key === undefined) this.#refuse(response, unusableId());
    else if (this.#posts.has(key)) this.#refuse(response, usedId(id));
    else {
      if (method === 'initialize') this.#initializeKey = key;
      const answer = new PostAnswer({
        response,
        acceptsEvents: accepts(request, 'text/event-stream'),
        headers: this.#headers,
        progressToken: progressTokenOf(frame),
        openStream: () => this.#openStream(),
        primes: () => this.#primes,
      });
      this.#posts.set(key, answer);
      await this.#session.receive(frame);
    }
  }

  get(request: IncomingMessage, response: ServerResponse, lastEventId: string | undefined): void {
    this.lastSeenAt = performance.now();
    if (!accepts(request, 'text/event-stream')) {
      sendRefusal(response, refused(406, 'The Accept header of a GET must list text/event-stream.'));
      return;
    }
    const [name, after] = (lastEventId ?? '').split('-');
    const stream = lastEventId === undefined ? this.#standing : this.#streams.get(name ?? '');
    const seen = Number(after);
    if (stream === undefined || (lastEventId !== undefined && !Number.isSafeInteger(seen))) {
      sendRefusal(response, refused(400, 'The stream of that Last-Event-ID is not held here any more.'));
    } else if (lastEventId === undefined && stream.isConnected) {
      sendRefusal(response, refused(409, 'The session has a GET stream already.'));
    } else {
      const connection = new EventConnection(response, this.#headers);
      stream.connect(connection, this.#primes, lastEventId === undefined ? undefined : seen);
    }
  }

  /** Whatever the client has called goes on; what it waits for is not told any more. */
  async end(): Promise<void> {
    if (this.#isEnded) return;
    this.#isEnded = true;
    for (const post of this.#posts.values()) post.close();
    this.#posts.clear();
    for (const stream of this.#streams.values()) stream.finish();
    await this.#session.end();
  }

  // ── To the client ────────────────────────────────────────────────────────────────────────────────────────

  answer(
    key: string | undefined,
    frame: string | Buffer,
    written: (isWritten: boolean) => void = () => {},
  ): void {
    this.lastSeenAt = performance.now();
    const post = key === undefined ? undefined : this.#posts.get(key);
    if (key === undefined || post === undefined) {
      written(false);
      return;
    }
    this.#posts.delete(key);
    if (key === this.#initializeKey) this.#onInitialized(frame, post);
    post.answer(frame, written);
  }

  pass(frame: McpFrame, about: string | undefined): void {
    const post = this.#postFor(frame, about);
    if (post?.pass(frame.text) !== true) this.#standing.push(frame.text);
  }

  #onInitialized(frame: string | Buffer, post: PostAnswer): void {
    this.#initializeKey = undefined;
    const text = frame.toString();
    const version = memberText(text, 'result', 'protocolVersion');
    if (version === undefined) {
      post.dropHeaders();
      this.#parts.onRefused();
    } else this.#primes = version.slice(1, -1) >= PRIMED_SINCE;
  }

  /** The request that a message of the server belongs to, where that can be told. */
  #postFor({ head, text }: McpFrame, about: string | undefined): PostAnswer | undefined {
    const told = about === undefined ? undefined : this.#posts.get(about);
    if (told !== undefined) return told;
    const { method } = head ?? {};
    if (method === 'notifications/progress') {
      const token = memberText(text, 'params', 'progressToken');
      return [...this.#posts.values()].find((post) => post.progressToken === token);
    }
    const isRequest = head?.id !== undefined;
    if (!isRequest && method !== 'notifications/message') return undefined;
    const open = [...this.#posts.values()].filter((post) => post.canPass);
    if (open.length === 1) return open[0];
    // Of several nobody can tell which; a request is still better asked on one of them than not at all.
    return isRequest && !this.#standing.isConnected ? open.at(-1) : undefined;
  }

  #openStream(): HeldStream {
    this.#streamCount += 1;
    const stream = new HeldStream(String(this.#streamCount));
    this.#streams.set(stream.name, stream);
    for (const [name, { isDone }] of this.#streams) {
      if (this.#streams.size <= STREAMS_KEPT_MAX) break;
      if (isDone) this.#streams.delete(name);
    }
    return stream;
  }

  get #headers(): { readonly [name: string]: string } {
    return { 'mcp-session-id': this.id };
  }

  #refuse(response: ServerResponse, { id, code, message }: Refusal): void {
    sendRefusal(response, { status: 400, id, code, message, headers: this.#headers });
  }
}

function progressTokenOf({ head, text }: McpFrame): string | undefined {
  if (head?.params === undefined) return undefined;
  return memberText(text.slice(head.params.start, head.params.end), '_meta', 'progressToken');
}
