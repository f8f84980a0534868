// A system that is reached over HTTP, by what its contract states: one frozen request is one request on the wire.
//
// "Not sent" is proven by the transport alone: no connection came about, or the turn in which the first byte would have
// been handed to the socket was never reached. Everything after that which is no whole reply is unknown (D8).

import type { buildConnector, Pool } from 'undici';
import { canonicalJson, type JsonObject, type JsonValue } from '../../core/canonical.ts';
import type { ContractOperation } from '../../core/contract.ts';
import { sha256Hex } from '../../core/digest.ts';
import { type FrozenWrite, type HttpRequest, keyOf, madeFrom } from '../../core/http-request.ts';
import { compare } from '../../core/reply-places.ts';
import { valueAt } from '../../core/template.ts';
import type {
  AskReport,
  AskRequest,
  ConnectReport,
  Destination,
  GivenNotice,
  LateReply,
  NoticeName,
  NoticeReport,
  Reply,
  SendReport,
  SendRequest,
} from '../port.ts';
import { REPLY_MAX_BYTES } from '../reply-cap.ts';
import { undici } from '../undici.ts';
import { describe, type Exchange, type ExchangeEnd, startExchange } from './exchange.ts';
import { type PageAddress, type Pages, readPages } from './pages.ts';
import { type UnpackedReply, unpackReply } from './reply.ts';
import { Rest } from './rest.ts';
import type { Secrets } from './secrets.ts';
import { Slots } from './slots.ts';
import { verifySignature } from './webhook-signature.ts';
import { WriteCall } from './write-call.ts';

export interface HttpDestinationOptions {
  /** The stable configured name. */
  readonly name: string;
  /** The base address, below which all paths lie. */
  readonly url: string;
  /** By name: how a write is answered. Of one that is missing nothing is known but that it is answered in JSON. */
  readonly operations?: ReadonlyMap<string, ContractOperation>;
  /** Sent with each request: texts with names of secrets in braces. */
  readonly headers?: { readonly [name: string]: string };
  readonly secrets: Secrets;
  readonly timeouts: {
    readonly connectMs: number;
    /** How long a write may stand in line for a connection; it has not left then. */
    readonly queueMs: number;
    readonly headersMs: number;
    readonly bodyMs: number;
    /** How long an answer is still waited for when its time is over: it is evidence. */
    readonly lateMs: number;
  };
  readonly connections?: number;
  readonly keepAliveMs?: number;
  readonly replyMaxBytes?: number;
  /** Certificates beside those of Node, as PEM. */
  readonly ca?: string;
  readonly notices?: { readonly secret: string; readonly toleranceMs: number };
}

const CONNECTIONS_DEFAULT = 16;
/** Beside those of writes: while all of these wait for answers, it can still be asked what became of them. */
const ASKING_CONNECTIONS = 4;
/** Well below what servers use, so that no request is handed to a connection that is about to be closed. */
const KEEP_ALIVE_MS = 1_500;
const CLOSED = 'the destination was closed';
const ALL_TAKEN = 'all its connections are taken';

export function openHttpDestination(options: HttpDestinationOptions): HttpDestination {
  return new HttpDestination(options);
}

export class HttpDestination implements Destination {
  readonly name: string;
  onLateReply?: (late: LateReply) => void;
  readonly #options: HttpDestinationOptions;
  readonly #url: URL;
  readonly #pool: Pool;
  readonly #connector: buildConnector.connector;
  readonly #writing: Slots;
  readonly #asking = new Slots(ASKING_CONNECTIONS);
  readonly #keptHeaders: ReadonlySet<string>;
  readonly #under = new Set<{ abort(reason: string): void }>();
  readonly #rest = new Rest();
  #isReachable = false;
  #connecting: Promise<ConnectReport> | undefined;
  #closing: Promise<void> | undefined;

  constructor(options: HttpDestinationOptions) {
    this.name = options.name;
    this.#options = options;
    this.#url = new URL(options.url);
    const connections = options.connections ?? CONNECTIONS_DEFAULT;
    const connect = {
      timeout: options.timeouts.connectMs,
      allowH2: false,
      ...(options.ca === undefined ? {} : { ca: options.ca }),
    };
    const { buildConnector, Pool } = undici();
    this.#connector = buildConnector(connect);
    this.#pool = new Pool(this.#url.origin, {
      connections: connections + ASKING_CONNECTIONS,
      connect,
      keepAliveTimeout: options.keepAliveMs ?? KEEP_ALIVE_MS,
      keepAliveMaxTimeout: options.keepAliveMs ?? KEEP_ALIVE_MS,
      pipelining: 1,
      allowH2: false,
    });
    this.#writing = new Slots(connections);
    this.#keptHeaders = headersRead([...(options.operations?.values() ?? [])]);
  }

  isConnected(): boolean {
    return this.#closing === undefined && this.#isReachable && this.#writing.isFree && this.#rest.isOver;
  }

  /** That it can be connected to, that every secret is there, and that there is a place in line; nothing is sent. */
  async connect(): Promise<ConnectReport> {
    if (this.#closing !== undefined) return { connected: false, detail: CLOSED };
    if (!this.#rest.isOver) return { connected: false, detail: this.#rest.words, isAway: false };
    if (!this.#isReachable) {
      this.#connecting ??= this.#connect().finally(() => {
        this.#connecting = undefined;
      });
      const report = await this.#connecting;
      if (!report.connected) return report;
    }
    if (await this.#writing.whenFree(this.#options.timeouts.queueMs)) return { connected: true };
    return { connected: false, detail: ALL_TAKEN, isAway: false };
  }

  async #connect(): Promise<ConnectReport> {
    const headers = this.#configuredHeaders();
    if (typeof headers === 'string') return { connected: false, detail: headers, isAway: false };
    const { hostname, port, protocol } = this.#url;
    const host = hostname.replace(/^\[|\]$/g, '');
    const failure = await new Promise<Error | null>((resolve) => {
      const isNamed = protocol === 'https:' && !/^[\d.]+$|:/.test(host);
      const target = { hostname: host, host, protocol, port, ...(isNamed ? { servername: host } : {}) };
      this.#connector(target, (error, socket) => {
        socket?.destroy();
        resolve(error);
      });
    });
    if (failure !== null) return { connected: false, detail: describe(failure) };
    this.#isReachable = true;
    return { connected: true };
  }

  /** A new value of the same secret is another scope: whether it is of the same account cannot be told. */
  scope(): string | undefined {
    const headers = this.#configuredHeaders();
    if (typeof headers === 'string') return undefined;
    const { origin, pathname } = this.#url;
    return sha256Hex(canonicalJson([origin, pathname, headers]));
  }

  // ── Writes ─────────────────────────────────────────────────────────────────────────────────────────────────

  async send(request: SendRequest): Promise<SendReport> {
    if (this.#closing !== undefined) return { left: 'no', proof: 'not_connected', detail: CLOSED };
    const frozen = frozenIn(request.payload);
    if (frozen === undefined) return refused('what was stored of it is no request over HTTP');
    const configured = this.#configuredHeaders();
    if (typeof configured === 'string') {
      this.#isReachable = false;
      return refused(configured);
    }
    const firstSent = firstSentHeader(frozen.request, request);
    if (firstSent === undefined) return refused('when it was first sent is not known');
    const headers = { ...configured, ...firstSent };
    const free = await this.#writing.take(Math.min(this.#options.timeouts.queueMs, request.replyTimeoutMs));
    if (free === undefined) return refused(ALL_TAKEN);
    if (request.signal?.aborted === true || this.#closing !== undefined) {
      free();
      return refused('the wait was aborted before anything was handed over');
    }
    return new Promise((resolve) => {
      const call = new WriteCall(request, this.#options.timeouts.lateMs, resolve);
      const { method } = frozen.request;
      const path = this.#below(frozen.request.target);
      const exchange = this.#start({ ...frozen.request, method }, path, headers, call);
      call.exchange = exchange;
      this.#under.add(call);
      void this.#follow(exchange, call, request, frozen).finally(() => {
        this.#under.delete(call);
        free();
      });
    });
  }

  #start(
    { body, headers: own, method }: HttpRequest,
    path: string,
    configured: Readonly<Record<string, string>>,
    call: { mayLeave?(): boolean; onSlow(phase: string): void },
  ): Exchange {
    const { headersMs, bodyMs } = this.#options.timeouts;
    return startExchange(this.#pool, {
      method,
      path,
      headers: { ...DEFAULT_HEADERS, ...own, ...configured },
      ...(body === undefined ? {} : { body }),
      replyMaxBytes: this.#options.replyMaxBytes ?? REPLY_MAX_BYTES,
      headersMs,
      bodyMs,
      mayLeave: () => call.mayLeave?.() ?? true,
      onSlow: (phase) => call.onSlow(phase),
    });
  }

  async #follow(
    exchange: Exchange,
    call: WriteCall,
    request: SendRequest,
    frozen: FrozenWrite,
  ): Promise<void> {
    const end = await exchange.done;
    if (end.left === 'no') {
      // Found out only when it was sent: until it can be connected to again, nothing is tried.
      if (end.proof !== 'refused_by_sender') this.#isReachable = false;
      call.report({ ...end, detail: this.#clean(end.detail) });
      return;
    }
    if (end.ended !== 'whole') {
      call.report({ ...end, detail: this.#clean(end.detail) });
      return;
    }
    const operation = this.#options.operations?.get(request.tool);
    const unpacked = await this.#unpacked(end, operation?.http?.answer?.form ?? 'json');
    if ('unreadable' in unpacked) {
      call.report({ left: 'maybe', ended: 'unreadable', detail: this.#clean(unpacked.unreadable) });
      return;
    }
    const reply = echoed(unpacked.reply, operation, request.operation, frozen);
    if (!call.replied(reply)) {
      this.onLateReply?.({ operation: request.operation, attempt: request.attempt, reply });
    }
  }

  // ── Questions ──────────────────────────────────────────────────────────────────────────────────────────────

  async ask(request: AskRequest): Promise<AskReport> {
    if (this.#closing !== undefined) return { answered: false, detail: CLOSED };
    const endsAt = Date.now() + request.timeoutMs;
    let asked: { readonly filled: JsonObject; readonly pages: Pages | undefined };
    try {
      const { pages, ...filled } = JSON.parse(request.payload) as JsonObject & { readonly pages?: unknown };
      asked = { filled, pages: pages as Pages | undefined };
    } catch {
      return { answered: false, detail: 'the question is no JSON' };
    }
    const one = (at: PageAddress | undefined): Promise<Reply | string> =>
      this.#askOnce(asked.filled, at, endsAt);
    const answer = asked.pages === undefined ? await one(undefined) : await readPages(asked.pages, one);
    if (typeof answer !== 'string') return { answered: true, reply: answer };
    return { answered: false, detail: this.#clean(`${request.tool} gave no answer: ${answer}`) };
  }

  async #askOnce(filled: JsonObject, at: PageAddress | undefined, endsAt: number): Promise<Reply | string> {
    const query =
      at !== undefined && 'query' in at ? { query: { ...(filled['query'] as JsonObject), ...at.query } } : {};
    const made = madeFrom({ ...filled, ...query });
    if (!made.ok) return made.problem;
    // A text alone is an address that the destination has given; so is a link to the next page.
    const given = at !== undefined && 'url' in at ? at.url : undefined;
    const isGiven = given !== undefined || typeof filled['path'] === 'string';
    const path = isGiven
      ? this.#ofSameOrigin(given ?? made.request.target)
      : this.#below(made.request.target);
    if (path === undefined) return 'it points to another place than the one that is configured';
    const headers = this.#configuredHeaders();
    if (typeof headers === 'string') return headers;
    const free = await this.#asking.take(endsAt - Date.now());
    if (free === undefined) return ALL_TAKEN;
    let slow = '';
    const exchange = this.#start(made.request, path, headers, {
      onSlow: (phase) => {
        slow = phase;
        exchange.abort(phase);
      },
    });
    const waiting = { abort: (reason: string) => exchange.abort(reason) };
    this.#under.add(waiting);
    const timer = setTimeout(() => exchange.abort('timed out'), Math.max(0, endsAt - Date.now()));
    try {
      return await this.#answerOf(await exchange.done, slow);
    } finally {
      clearTimeout(timer);
      this.#under.delete(waiting);
      free();
    }
  }

  async #answerOf(end: ExchangeEnd, slow: string): Promise<Reply | string> {
    if (end.left === 'no' || end.ended !== 'whole') {
      if (end.left === 'no' && end.proof !== 'refused_by_sender') this.#isReachable = false;
      return slow === '' ? end.detail : slow;
    }
    const unpacked = await this.#unpacked(end, 'json');
    if ('unreadable' in unpacked) return unpacked.unreadable;
    const { doubt } = unpacked.reply;
    return doubt === undefined ? unpacked.reply : `it was answered with ${end.status}, as ${DOUBTS[doubt]}`;
  }

  async #unpacked(
    end: Extract<ExchangeEnd, { readonly ended: 'whole' }>,
    form: 'json' | 'any',
  ): Promise<UnpackedReply> {
    this.#rest.heed(end.status, end.headers['retry-after']);
    const replyMaxBytes = this.#options.replyMaxBytes ?? REPLY_MAX_BYTES;
    const unpacked = await unpackReply(end, { form, replyMaxBytes, keptHeaders: this.#keptHeaders });
    if ('unreadable' in unpacked) return unpacked;
    const { body, headers = {} } = unpacked.reply;
    const clean = Object.entries(headers).map(([name, value]) => [name, this.#clean(value)] as const);
    return { reply: { ...unpacked.reply, body: this.#clean(body), headers: Object.fromEntries(clean) } };
  }

  // ── Callbacks ──────────────────────────────────────────────────────────────────────────────────────────────

  readNotice({ at, body, headers }: GivenNotice): NoticeReport {
    const { notices, secrets } = this.#options;
    if (notices === undefined)
      return { genuine: false, why: `${this.name} is configured to send no notices` };
    const secret = secrets.read(notices.secret);
    if (!secret.ok) return { genuine: false, why: secret.why };
    const signed = verifySignature({ body, headers }, secret.value, { at, toleranceMs: notices.toleranceMs });
    if (!signed.ok) return { genuine: false, why: signed.why };
    const text = this.#clean(Buffer.from(body).toString('utf8'));
    const names = namesIn(text, [...(this.#options.operations?.values() ?? [])]);
    if (names === undefined) return { genuine: false, why: 'its body is no JSON' };
    return { genuine: true, id: signed.id, sentAt: signed.sentAt, body: text, names };
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    for (const one of [...this.#under]) one.abort(CLOSED);
    await this.#pool.destroy();
  }

  // ── What every request has ─────────────────────────────────────────────────────────────────────────────────

  /** @returns a sentence's second half where a secret is missing */
  #configuredHeaders(): Readonly<Record<string, string>> | string {
    const filled: Record<string, string> = {};
    for (const [name, text] of Object.entries(this.#options.headers ?? {})) {
      const value = this.#options.secrets.fill(text);
      if (!value.ok) return value.why;
      filled[name.toLowerCase()] = value.value;
    }
    return filled;
  }

  #below(target: string): string {
    return `${this.#url.pathname.replace(/\/$/, '')}${target}`;
  }

  #ofSameOrigin(address: string): string | undefined {
    const base = new URL(this.#url.href);
    if (!base.pathname.endsWith('/')) base.pathname += '/';
    const url = URL.canParse(address, base.href) ? new URL(address, base.href) : undefined;
    if (url?.origin !== this.#url.origin || url.username !== '') return undefined;
    return `${url.pathname}${url.search}`;
  }

  #clean(text: string): string {
    return this.#options.secrets.without(text);
  }
}

const DEFAULT_HEADERS = {
  accept: 'application/json',
  'accept-encoding': 'identity',
  'user-agent': 'counterfoil',
};

const DOUBTS: { readonly [doubt in NonNullable<Reply['doubt']>]: string } = {
  redirect: 'an address elsewhere',
  gateway: 'what stands in between answers as well',
  page: 'a page that is no answer',
  empty: 'an empty reply',
  other: 'an answer to another request',
};

function refused(detail: string): SendReport {
  return { left: 'no', proof: 'refused_by_sender', detail };
}

/** IMF-fixdate (RFC 9110), whole seconds. */
function firstSentHeader({ firstSent }: HttpRequest, { firstSentAt }: SendRequest) {
  if (firstSent === undefined) return {};
  if (firstSentAt === undefined) return undefined;
  return { [firstSent]: new Date(firstSentAt).toUTCString() };
}

function frozenIn(payload: string): FrozenWrite | undefined {
  try {
    const frozen = JSON.parse(payload) as Partial<FrozenWrite>;
    return frozen.request?.target === undefined ? undefined : (frozen as FrozenWrite);
  } catch {
    return undefined;
  }
}

/** What an answer repeats of the request tells whose it is: where something differs it is another's. */
function echoed(
  reply: Reply,
  operation: ContractOperation | undefined,
  id: string,
  frozen: FrozenWrite,
): Reply {
  const echoes = operation?.http?.answer?.echoes ?? [];
  if (reply.kind !== 'result' || reply.doubt !== undefined) return reply;
  const values = { arguments: frozen.arguments, stamp: id, key: keyOf(operation, id) };
  return echoes.some((echo) => compare(reply, echo, values) === 'differs')
    ? { ...reply, doubt: 'other' }
    : reply;
}

/** Whatever stands in the places by which a notice may name an operation; `undefined` for what is no JSON. */
function namesIn(text: string, operations: readonly ContractOperation[]): readonly NoticeName[] | undefined {
  let body: JsonValue;
  try {
    body = JSON.parse(text) as JsonValue;
  } catch {
    return undefined;
  }
  return operations
    .flatMap(({ notices = [] }) => notices)
    .flatMap(({ names: { by, path } }) => {
      const value = valueAt(body, path);
      const isName = (typeof value === 'string' && value !== '') || typeof value === 'number';
      return isName ? [{ by, value: String(value) }] : [];
    });
}

/** Headers that the contract reads from replies, in small letters. */
function headersRead(operations: readonly ContractOperation[]): ReadonlySet<string> {
  const names = new Set<string>();
  collectHeaders(operations, names);
  return names;
}

function collectHeaders(part: unknown, names: Set<string>): void {
  if (typeof part !== 'object' || part === null) return;
  const { from, in: where, name, path } = part as { readonly [member: string]: unknown };
  if (from === 'headers' && typeof path === 'string') names.add(path.slice(1).toLowerCase());
  if (where === 'header' && typeof name === 'string') names.add(name.toLowerCase());
  for (const member of Object.values(part)) collectHeaders(member, names);
}
