// Telling others of causes, and requesters of what has settled. What is to be told is recorded before it is posted and goes when it was taken,
// so that no restart loses it; it may arrive more than once, under the same id. Nothing here is waited for by the
// ledger: whoever does not answer is told later, and after a day no more.

import { type CauseNotice, noticesOf, type ToldCauses } from '../core/cause-notices.ts';
import { sha256Hex } from '../core/digest.ts';
import type { ToldNotice } from '../core/notice-wording.ts';
import type { Operation } from '../core/operation.ts';
import { type Json, StoreFault } from '../store/port.ts';
import { type EngineContext, newId } from './context.ts';
import type { Queue } from './queue.ts';
import { describe } from './reports.ts';
import { type Settling, settledSince } from './settled.ts';

/** Somebody who is told, by whatever way. */
export interface Listener {
  /** Names its row. It may hold a secret, so that only its hash is kept. */
  readonly address: string;
  /** What it is in a sentence about it. */
  readonly what: string;
  /** Whose operations it is told of as they settle; of causes in the queue, where absent. */
  readonly requester?: string;
  /** How long what is to be told waits for more; 0: each goes by itself, at once. */
  readonly gatherMs: number;
  /** Resolves where it was taken. @throws where it was not, or no answer came */
  readonly tell: (messages: readonly Message[], tries: Tries) => Promise<void>;
}

export interface Tries {
  /** ms since the epoch, of this try. */
  readonly at: number;
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}

/** One notice, as it is recorded before it is told. */
export interface Message {
  readonly id: string;
  /** What it is about: a cause, or an operation and its round. */
  readonly cause: string;
  readonly type: CauseNotice['type'] | 'operation.settled';
  readonly body: string;
  readonly madeAt: number;
  readonly notice?: ToldNotice;
}

type Waiting = Message;

interface EndpointState {
  readonly told: ToldCauses;
  /** Of a requester's listener: what it has still to be told of. */
  readonly settling?: Settling;
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
  readonly #listeners: readonly Listener[];
  readonly #pacing = new Map<string, Pacing>();
  readonly #stopping = new AbortController();
  #lasting: ReadonlySet<string> = new Set();
  #isQuiet = false;
  #commits = -1;
  #cancel: (() => void) | undefined;
  #running: Promise<void> | undefined;

  constructor(context: EngineContext, queue: Queue, listeners: readonly Listener[]) {
    this.#context = context;
    this.#queue = queue;
    this.#listeners = listeners;
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
      for (const listener of this.#listeners) await this.#deliver(listener);
    } catch (cause) {
      const known = cause instanceof StoreFault ? cause.message : describe(cause);
      this.#context.report(`What is new could not be told; it is told later: ${known}`);
    }
  }

  /** Records what is new; reads nothing while nobody has committed, and nothing was on its way to be told. */
  async #notice(): Promise<void> {
    const { environment, store } = this.#context;
    const commits = (await store.foreignCommits()) + store.commits;
    if (commits === this.#commits && this.#isQuiet) return;
    this.#commits = commits;
    for (const listener of this.#listeners) await this.#noticeSettled(listener);
    const { groups, isCut } = await this.#queue.read();
    const now = environment.now();
    let isBehind = false;
    for (const { address } of this.#listeners.filter(({ requester }) => requester === undefined)) {
      await this.#change(address, (state) => {
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
    const notice: ToldNotice = { type, cause: { id: cause, kind, destination }, counts };
    return { id: newId(this.#context, 'msg'), cause, type, body, madeAt: at, notice };
  }

  /** Of one requester's operations, those that have settled since it was last looked. */
  async #noticeSettled({ address, requester }: Listener): Promise<void> {
    if (requester === undefined) return;
    const { environment } = this.#context;
    const { state } = await this.#state(address);
    const now = environment.now();
    const news = await settledSince(this.#context, requester, state.settling, now);
    if (news === undefined) return;
    await this.#change(address, (present) => {
      // Another process has looked meanwhile: what it has found is there.
      if (JSON.stringify(present.settling) !== JSON.stringify(state.settling)) return undefined;
      const added = news.settled.map((operation) => this.#settledMessage(operation, now));
      return withNotices({ ...present, settling: news.settling }, added);
    });
  }

  #settledMessage(operation: Operation, at: number): Waiting {
    const { destination, effect, id, record, round, run, since, tool, why } = operation;
    const body = JSON.stringify({
      type: 'operation.settled',
      timestamp: new Date(at).toISOString(),
      data: {
        operation: id,
        run: run.id,
        destination,
        tool,
        effect,
        why: why?.code ?? null,
        record: record?.id ?? null,
        settled_at: new Date(since).toISOString(),
      },
    });
    const cause = `${id}/${round}`;
    return { id: newId(this.#context, 'msg'), cause, type: 'operation.settled', body, madeAt: at };
  }

  async #deliver(listener: Listener): Promise<void> {
    const { environment } = this.#context;
    const { address, gatherMs } = listener;
    const pacing = this.#pacing.get(address) ?? { tries: 0, nextAt: 0 };
    this.#pacing.set(address, pacing);
    for (;;) {
      if (this.#stopping.signal.aborted || environment.monotonic() < pacing.nextAt) return;
      const { outbox } = (await this.#state(address)).state;
      const [first] = outbox;
      if (first === undefined || environment.now() - first.madeAt < gatherMs) return;
      const batch = gatherMs === 0 ? [first] : outbox;
      const isTaken = await this.#isTaken(listener, batch);
      const isTooOld = !isTaken && environment.now() - first.madeAt > KEPT_MS;
      if (isTaken || isTooOld) {
        pacing.tries = 0;
        const gone = isTooOld ? [first] : batch;
        await this.#change(address, (state) => without(state, gone, isTooOld));
        continue;
      }
      pacing.nextAt = environment.monotonic() + Math.min(PAUSE_FIRST_MS * 2 ** pacing.tries, PAUSE_MAX_MS);
      pacing.tries += 1;
      return;
    }
  }

  async #isTaken({ tell, what }: Listener, messages: readonly Message[]): Promise<boolean> {
    const { signal } = this.#stopping;
    try {
      await tell(messages, { at: this.#context.environment.now(), timeoutMs: TIMEOUT_MS, signal });
      return true;
    } catch (cause) {
      if (!signal.aborted) {
        this.#context.report(`${what} has not taken what is new; it is told later: ${describe(cause)}`);
      }
      return false;
    }
  }

  async #state(address: string): Promise<{ readonly state: EndpointState; readonly version: number }> {
    const { store, tenant } = this.#context;
    const [record] = await store.read(tenant, [streamOf(address)]);
    return {
      state: (record?.state as unknown as EndpointState | undefined) ?? NOTHING,
      version: record?.version ?? 0,
    };
  }

  /** Several processes may have the same endpoint: each change is made on what is there. */
  async #change(address: string, next: (state: EndpointState) => EndpointState | undefined): Promise<void> {
    const { environment, store, tenant } = this.#context;
    for (;;) {
      const { state, version } = await this.#state(address);
      const changed = next(state);
      if (changed === undefined) return;
      const write = {
        stream: streamOf(address),
        expectedVersion: version,
        events: [],
        state: changed as unknown as Json,
      };
      const [result] = await store.commit([{ tenant, at: environment.now(), writes: [write] }]);
      if (result?.outcome === 'stored') return;
    }
  }
}

function streamOf(address: string): string {
  return `webhook:${sha256Hex(address).slice(0, 32)}`;
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

function without(
  state: EndpointState,
  gone: readonly Waiting[],
  isDropped: boolean,
): EndpointState | undefined {
  const ids = new Set(gone.map(({ id }) => id));
  const outbox = state.outbox.filter(({ id }) => !ids.has(id));
  if (outbox.length === state.outbox.length) return undefined;
  return {
    ...state,
    outbox,
    dropped: state.dropped + (isDropped ? state.outbox.length - outbox.length : 0),
  };
}
