// Telling others of causes by webhook. What is to be told is recorded before it is posted and goes when it was taken,
// so that no restart loses it; it may arrive more than once, under the same id. Nothing here is waited for by the
// ledger: whoever does not answer is told later, and after a day no more.

import { type CauseNotice, noticesOf, type ToldCauses } from '../core/cause-notices.ts';
import { sha256Hex } from '../core/digest.ts';
import { type Json, StoreFault } from '../store/port.ts';
import { type EngineContext, newId } from './context.ts';
import type { Queue } from './queue.ts';
import { describe } from './reports.ts';

export interface WebhookEndpoint {
  readonly url: string;
  /** `whsec_` and base64. */
  readonly secret: string;
}

/** Signs and posts; resolves with the status, rejects where none came. Redirects are not followed. */
export type Post = (request: {
  readonly url: string;
  readonly secret: string;
  readonly id: string;
  /** Seconds since the epoch. */
  readonly timestamp: number;
  readonly body: string;
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}) => Promise<number>;

interface Waiting {
  readonly id: string;
  readonly cause: string;
  readonly type: CauseNotice['type'];
  readonly body: string;
  readonly madeAt: number;
}

interface EndpointState {
  readonly told: ToldCauses;
  /** In order; the first is posted before the others. */
  readonly outbox: readonly Waiting[];
  /** Notices that nobody took in a day, or for which there was no room. */
  readonly dropped: number;
}

const LOOK_MS = 2_000;
const TIMEOUT_MS = 10_000;
const PAUSE_FIRST_MS = 1_000;
const PAUSE_MAX_MS = 10 * 60_000;
const KEPT_MS = 24 * 3_600_000;
const OUTBOX_MAX = 200;
const NOTHING: EndpointState = { told: {}, outbox: [], dropped: 0 };

interface Pacing {
  tries: number;
  /** Monotonic. */
  nextAt: number;
}

export class Webhooks {
  readonly #context: EngineContext;
  readonly #queue: Queue;
  readonly #endpoints: readonly WebhookEndpoint[];
  readonly #post: Post;
  readonly #pacing = new Map<string, Pacing>();
  readonly #stopping = new AbortController();
  #lasting: ReadonlySet<string> = new Set();
  #isQuiet = false;
  #commits = -1;
  #cancel: (() => void) | undefined;
  #running: Promise<void> | undefined;

  constructor(
    context: EngineContext,
    queue: Queue,
    { endpoints, post }: { readonly endpoints: readonly WebhookEndpoint[]; readonly post: Post },
  ) {
    this.#context = context;
    this.#queue = queue;
    this.#endpoints = endpoints;
    this.#post = post;
  }

  start(): void {
    this.#cancel = this.#context.environment.after(LOOK_MS, () => {
      this.#running = this.#look().finally(() => {
        if (!this.#stopping.signal.aborted) this.start();
      });
    });
  }

  /** What is not told yet stays recorded, and is told by the next process that has these endpoints. */
  async close(): Promise<void> {
    this.#stopping.abort();
    this.#cancel?.();
    await this.#running;
  }

  async #look(): Promise<void> {
    try {
      await this.#notice();
      for (const endpoint of this.#endpoints) await this.#deliver(endpoint);
    } catch (cause) {
      const known = cause instanceof StoreFault ? cause.message : describe(cause);
      this.#context.report(`Webhooks could not be told; they are told later: ${known}`);
    }
  }

  /** Records what is new; reads nothing while nobody has committed, and nothing was on its way to be told. */
  async #notice(): Promise<void> {
    const { environment, store } = this.#context;
    const commits = (await store.foreignCommits()) + store.commits;
    if (commits === this.#commits && this.#isQuiet) return;
    this.#commits = commits;
    const { groups, isCut } = await this.#queue.read();
    const now = environment.now();
    let isBehind = false;
    for (const { url } of this.#endpoints) {
      await this.#change(url, (state) => {
        const noticed = noticesOf(state.told, groups, this.#lasting, now, isCut);
        isBehind ||= noticed.isBehind;
        if (noticed.notices.length === 0) return undefined;
        const added = noticed.notices.map((one) => this.#waiting(one, now));
        return withNotices({ ...state, told: noticed.told }, added);
      });
    }
    const present = new Set(groups.map(({ cause }) => cause.id));
    this.#isQuiet =
      !isBehind && present.size === this.#lasting.size && [...present].every((id) => this.#lasting.has(id));
    this.#lasting = present;
  }

  #waiting({ cause, told, type }: CauseNotice, at: number): Waiting {
    const { counts, destination, kind, openedAt } = told;
    const body = JSON.stringify({
      type,
      timestamp: new Date(at).toISOString(),
      data: {
        cause,
        kind,
        destination,
        opened_at: new Date(openedAt).toISOString(),
        never_sent: counts.neverSent,
        found: counts.found,
        needs_person: counts.needsPerson,
        goes_on: counts.goesOn,
        approvals_expired: counts.approvalsExpired,
      },
    });
    return { id: newId(this.#context, 'msg'), cause, type, body, madeAt: at };
  }

  async #deliver(endpoint: WebhookEndpoint): Promise<void> {
    const { environment } = this.#context;
    const pacing = this.#pacing.get(endpoint.url) ?? { tries: 0, nextAt: 0 };
    this.#pacing.set(endpoint.url, pacing);
    for (;;) {
      if (this.#stopping.signal.aborted || environment.monotonic() < pacing.nextAt) return;
      const [first] = (await this.#state(endpoint.url)).state.outbox;
      if (first === undefined) return;
      const isTaken = await this.#isTaken(endpoint, first);
      const isTooOld = !isTaken && environment.now() - first.madeAt > KEPT_MS;
      if (isTaken || isTooOld) {
        pacing.tries = 0;
        await this.#change(endpoint.url, (state) => without(state, first, isTooOld));
        continue;
      }
      pacing.nextAt = environment.monotonic() + Math.min(PAUSE_FIRST_MS * 2 ** pacing.tries, PAUSE_MAX_MS);
      pacing.tries += 1;
      return;
    }
  }

  async #isTaken({ secret, url }: WebhookEndpoint, { body, id }: Waiting): Promise<boolean> {
    const timestamp = Math.floor(this.#context.environment.now() / 1_000);
    const { signal } = this.#stopping;
    try {
      const status = await this.#post({ url, secret, id, timestamp, body, timeoutMs: TIMEOUT_MS, signal });
      if (status >= 200 && status < 300) return true;
      this.#context.report(`A webhook answered with ${status}; it is told again later.`);
    } catch (cause) {
      if (!signal.aborted) this.#context.report(`A webhook gave no answer: ${describe(cause)}`);
    }
    return false;
  }

  async #state(url: string): Promise<{ readonly state: EndpointState; readonly version: number }> {
    const { store, tenant } = this.#context;
    const [record] = await store.read(tenant, [streamOf(url)]);
    return {
      state: (record?.state as unknown as EndpointState | undefined) ?? NOTHING,
      version: record?.version ?? 0,
    };
  }

  /** Several processes may have the same endpoint: each change is made on what is there. */
  async #change(url: string, next: (state: EndpointState) => EndpointState | undefined): Promise<void> {
    const { environment, store, tenant } = this.#context;
    for (;;) {
      const { state, version } = await this.#state(url);
      const changed = next(state);
      if (changed === undefined) return;
      const write = {
        stream: streamOf(url),
        expectedVersion: version,
        events: [],
        state: changed as unknown as Json,
      };
      const [result] = await store.commit([{ tenant, at: environment.now(), writes: [write] }]);
      if (result?.outcome === 'stored') return;
    }
  }
}

/** Its address may hold a secret of its own, so that it is no name. */
function streamOf(url: string): string {
  return `webhook:${sha256Hex(url).slice(0, 32)}`;
}

/** A newer count takes the place of one that still waits; what there is no room for is counted. */
function withNotices(state: EndpointState, added: readonly Waiting[]): EndpointState {
  let { outbox, dropped } = state;
  for (const notice of added) {
    // The first may be on its way.
    const isReplaced = (one: Waiting, index: number): boolean =>
      index > 0 &&
      notice.type === 'cause.changed' &&
      one.type === 'cause.changed' &&
      one.cause === notice.cause;
    outbox = [...outbox.filter((one, index) => !isReplaced(one, index)), notice];
  }
  if (outbox.length > OUTBOX_MAX) {
    dropped += outbox.length - OUTBOX_MAX;
    outbox = outbox.slice(-OUTBOX_MAX);
  }
  return { ...state, outbox, dropped };
}

function without(state: EndpointState, { id }: Waiting, isDropped: boolean): EndpointState | undefined {
  if (!state.outbox.some((one) => one.id === id)) return undefined;
  return {
    ...state,
    outbox: state.outbox.filter((one) => one.id !== id),
    dropped: state.dropped + (isDropped ? 1 : 0),
  };
}
