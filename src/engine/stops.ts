// Stopping and lifting by an operator, and the cancel of an operation or a run by a person (D10).
//
// A stop is in force with its commit: every commit that precedes a send requires the row of stops as it was known. What
// was recorded as started before may still hand over its first byte, within `sendBy`; so "no more will be sent" is said
// `sendBy` and a margin later, or at once where no other process has anything out.

import {
  type Acknowledgements,
  acknowledgedBy,
  acknowledgementsOf,
  countOut,
  settledAt,
} from '../core/cancellation.ts';
import { type FrozenList, frozenList, type ListedOperation } from '../core/frozen-list.ts';
import { idInstant } from '../core/ids.ts';
import type { DecisionStrength, Operation, OperationId } from '../core/operation.ts';
import { isCovered, isSameScope, type StopInForce, type StopScope, whyOf } from '../core/stop.ts';
import type { Json, StreamWrite } from '../store/port.ts';
import { type EngineContext, newId, SALT_BYTES } from './context.ts';
import { asRecord, type OperationRecord, readOperation, saltedDocument, streamOf } from './records.ts';
import { describe } from './reports.ts';
import { runStream } from './runs.ts';
import { takeStep } from './steps.ts';
import { STOPS_STREAM, type StopsState, stopStream } from './stops-in-force.ts';

/** Who orders, and how well that is known. */
export interface Orderer {
  readonly by: string;
  readonly strength: DecisionStrength;
}

interface OutAttempt {
  readonly operation: OperationId;
  readonly attempt: string;
  /** How long after its claim it may leave. */
  readonly sendByMs: number;
}

/** What is kept of a stop, or of a run's cancel, for ever. */
interface StopState extends StopInForce {
  /** What was out when the list was made, which was after the stop was in force. */
  readonly inFlight?: readonly OutAttempt[];
  readonly listedAt?: number;
  /** Acknowledged at: no first byte is handed over at its scope after this. */
  readonly noMoreAt?: number;
  /** What was released with the lifting, recorded before anything is ended. */
  readonly lifting?: Orderer & { readonly at: number; readonly released: readonly ListedOperation[] };
  readonly endedAt?: number;
}

export interface StopReading extends Acknowledgements {
  readonly stop: StopInForce;
  readonly reason?: string;
  /** Exactly what was out when the stop was in force and the list was made: nothing else leaves after that. */
  readonly inFlight: readonly Operation[];
  /** Ready, and not sent while the stop is in force. */
  readonly waiting: FrozenList;
  readonly endedAt?: number;
  readonly lifting?: Orderer & { readonly at: number; readonly released: readonly ListedOperation[] };
}

export interface LiftReport {
  readonly released: readonly OperationId[];
  readonly ended: readonly OperationId[];
  /** They were to be released, and are not as they were seen: ended with the others. */
  readonly leftOut: readonly OperationId[];
}

export type CancelResult =
  | { readonly cancelled: true; readonly operation: Operation; readonly acknowledgements: Acknowledgements }
  /** It had ended by itself: nothing of it was to be cancelled, and nothing is reversed. */
  | { readonly cancelled: false; readonly operation: Operation };

export interface RunCancel extends Acknowledgements {
  /** Of the order, as `find` takes it. */
  readonly id: string;
  readonly run: string;
  /** Which of them the cancel has kept from being sent, in order of arrival. */
  readonly notSent: readonly Operation[];
  readonly out: Acknowledgements['out'];
  /** They changed something before: none of them is reversed. */
  readonly earlierChanges: readonly Operation[];
}

const PAGE = 200;
const RUN_PAGE = 500;
const TOGETHER = 64;
const STOPS_LISTED_MAX = 1_000;

export class Stops {
  readonly #context: EngineContext;
  /** Stops that this process is about to acknowledge. */
  readonly #watched = new Set<string>();
  /** Monotonic instants from which this process has known of a stop that is in force. */
  readonly #known = new Map<string, number>();
  readonly #timers = new Set<() => void>();
  /** Called with operations that may have become sendable. */
  onFreed: (operations: readonly string[]) => void = () => {};
  #closing = false;

  constructor(context: EngineContext) {
    this.#context = context;
  }

  close(): void {
    this.#closing = true;
    for (const cancel of this.#timers) cancel();
  }

  // ── Stopping ─────────────────────────────────────────────────────────────────────────────────────────────

  /**
   * From the moment that this resolves nothing new is started at the scope, in any process. The second
   * acknowledgement may take `sendBy` and a margin: `acknowledged`. A scope that is stopped already stays so, with the
   * first order's words.
   * @throws {StoreFault}
   */
  async stop(order: Orderer & { readonly scope: StopScope; readonly reason: string }): Promise<StopReading> {
    const { by, reason, scope, strength } = order;
    const existing = await this.#put('stop', { by, strength }, scope, reason);
    return this.reading(existing);
  }

  /** Puts an order in force and lists what is out; gives the id of the one that is. */
  async #put(
    kind: StopInForce['kind'],
    { by, strength }: Orderer,
    scope: StopScope,
    reason: string | undefined,
    beside: readonly StreamWrite[] = [],
  ): Promise<string> {
    const { environment, stops, store, tenant } = this.#context;
    const id = newId(this.#context, 'stp');
    const document =
      reason === undefined
        ? undefined
        : saltedDocument(
            'reason',
            stopStream(id),
            Buffer.from(reason, 'utf8'),
            environment.random(SALT_BYTES),
          );
    for (;;) {
      await stops.refresh();
      const same = stops.all.find((one) => one.kind === kind && isSameScope(one.scope, scope));
      if (same !== undefined) {
        await this.#list(same.id);
        return same.id;
      }
      const at = environment.now();
      const order: StopInForce = {
        id,
        kind,
        scope,
        by,
        strength,
        at,
        ...(document === undefined ? {} : { reason: document.digest }),
      };
      const next: StopsState = { stops: [...stops.all, order] };
      const [result] = await store.commit([
        {
          tenant,
          at,
          writes: [
            this.#controlWrite(next),
            {
              stream: stopStream(id),
              expectedVersion: 0,
              events: [order as unknown as Json],
              state: order as unknown as Json,
            },
            ...beside,
          ],
          ...(document === undefined ? {} : { documents: [document] }),
        },
      ]);
      if (result?.outcome !== 'stored') {
        if (result?.outcome === 'stale' && beside.some(({ stream }) => stream === result.stream))
          throw new Error(`Assertion: ${result.stream} was read a moment ago.`);
        continue;
      }
      stops.learn(stops.version + 1, next);
      this.#knownSince(id);
      await this.#list(id);
      return id;
    }
  }

  #controlWrite(next: StopsState): StreamWrite {
    const { stops } = this.#context;
    return {
      stream: STOPS_STREAM,
      expectedVersion: stops.version,
      events: [],
      state: next as unknown as Json,
    };
  }

  /** What is out now: nothing is started any more, so that it can only become less. */
  async #list(id: string): Promise<void> {
    const { environment, worker } = this.#context;
    const known = await this.#state(id);
    if (known === undefined || known.state.inFlight !== undefined) return;
    const inFlight: OutAttempt[] = [];
    let isAllOurs = true;
    for await (const { operation } of this.#open(known.state.scope, ['sending'])) {
      for (const attempt of operation.attempts.filter((one) => one.open)) {
        const sendByMs = attempt.sendBy - attempt.startedAt;
        inFlight.push({ operation: operation.id, attempt: attempt.id, sendByMs });
        isAllOurs &&= attempt.worker === worker;
      }
    }
    const at = environment.now();
    await this.#change(id, (state) =>
      state.inFlight === undefined
        ? { ...state, inFlight, listedAt: at, ...(isAllOurs ? { noMoreAt: at } : {}) }
        : undefined,
    );
  }

  /**
   * Waits until "no more will be sent" can be said, says it once for all, and gives the reading with it. It is counted
   * on this process's own monotonic clock, from when it first knew that the stop is in force.
   * @throws {StoreFault}
   */
  async acknowledged(id: string): Promise<StopReading> {
    const { environment } = this.#context;
    const from = this.#knownSince(id);
    await this.#list(id);
    const known = await this.#state(id);
    if (known === undefined) throw new Error(`Assertion: stop ${id} is not in the ledger.`);
    if (known.state.noMoreAt === undefined) {
      const restMs = from + this.#noMoreMs(known.state) - environment.monotonic();
      if (restMs > 0) await new Promise<void>((resolve) => environment.after(restMs, resolve, true));
      const at = environment.now();
      await this.#change(id, (state) =>
        state.noMoreAt === undefined ? { ...state, noMoreAt: at } : undefined,
      );
    }
    return this.reading(id);
  }

  #knownSince(id: string): number {
    const since = this.#known.get(id) ?? this.#context.environment.monotonic();
    this.#known.set(id, since);
    return since;
  }

  #noMoreMs({ inFlight = [] }: StopState): number {
    const { bounds, stopMarginMs } = this.#context.settings;
    return Math.max(bounds.sendByMs, ...inFlight.map(({ sendByMs }) => sendByMs)) + stopMarginMs;
  }

  /** Acknowledges what whoever has ordered it has not, and ends what a cancel was to end: also after a crash. */
  watch(): void {
    const { environment, report, stops } = this.#context;
    for (const { id, kind } of stops.all) {
      if (this.#watched.has(id)) continue;
      this.#watched.add(id);
      this.#knownSince(id);
      const { bounds, stopMarginMs } = this.#context.settings;
      const cancel = environment.after(bounds.sendByMs + stopMarginMs, () => {
        this.#timers.delete(cancel);
        if (this.#closing) return;
        const work = kind === 'stop' ? this.acknowledged(id) : this.#finishCancel(id);
        work.catch((cause: unknown) => {
          this.#watched.delete(id);
          report(`That no more will be sent could not be recorded: ${describe(cause)}`);
        });
      });
      this.#timers.add(cancel);
    }
  }

  /**
   * What stands against passing on a call that is no operation: in `observe`, where the ledger cannot record or the call
   * cannot be read. While nothing can be read, what was known counts.
   */
  async over(call: {
    readonly destination: string;
    readonly tool: string;
    readonly requester: string;
  }): Promise<StopInForce | undefined> {
    const { stops } = this.#context;
    // Whatever keeps it from being read.
    await stops.refresh().catch(() => {});
    return stops.over({ ...call, run: { id: '' } });
  }

  // ── Reading ──────────────────────────────────────────────────────────────────────────────────────────────

  /** Those that are in force, in the order in which they came. @throws {StoreFault} */
  async list(): Promise<readonly StopReading[]> {
    await this.#context.stops.refresh();
    const inForce = this.#context.stops.all.slice(0, STOPS_LISTED_MAX);
    return Promise.all(inForce.map(({ id }) => this.reading(id)));
  }

  /** `undefined` where there is none with that id, in force or lifted. @throws {StoreFault} */
  async find(id: string): Promise<StopReading | undefined> {
    return (await this.#state(id)) === undefined ? undefined : this.reading(id);
  }

  async reading(id: string): Promise<StopReading> {
    const known = await this.#state(id);
    if (known === undefined) throw new Error(`Assertion: stop ${id} is not in the ledger.`);
    const { inFlight = [], lifting, noMoreAt, endedAt, listedAt: _listed, ...stop } = known.state;
    const out = await this.#operations(inFlight.map(({ operation }) => operation));
    const reason = await this.#reason(known.state);
    const settled = noMoreAt === undefined ? undefined : settledAt(out, noMoreAt);
    return {
      stop,
      requestedAt: stop.at,
      noMore: noMoreAt === undefined ? { until: stop.at + this.#noMoreMs(known.state) } : { at: noMoreAt },
      inFlight: out,
      out: countOut(out),
      waiting: await this.#waiting(stop.scope),
      ...(reason === undefined ? {} : { reason }),
      ...(settled === undefined ? {} : { settledAt: settled }),
      ...(lifting === undefined ? {} : { lifting }),
      ...(endedAt === undefined ? {} : { endedAt }),
    };
  }

  /** The operator's words, for a stop that an operation names. */
  async #reason({ id, reason }: StopInForce): Promise<string | undefined> {
    if (reason === undefined) return undefined;
    const { store, tenant } = this.#context;
    const [document] = await store.documents(tenant, [{ owner: stopStream(id), digest: reason }]);
    return document === undefined ? undefined : Buffer.from(document.bytes).toString('utf8');
  }

  async #waiting(scope: StopScope): Promise<FrozenList> {
    const waiting: ListedOperation[] = [];
    for await (const { operation, version } of this.#open(scope, ['ready']))
      waiting.push({ operation: operation.id, version });
    return frozenList(waiting);
  }

  async *#open(scope: StopScope, stages: readonly string[]): AsyncGenerator<OperationRecord> {
    const { store, tenant } = this.#context;
    const queues = 'destination' in scope ? { queues: [scope.destination] } : {};
    let after: string | undefined;
    for (;;) {
      const page = { tenant, stages, limit: PAGE, ...queues, ...(after === undefined ? {} : { after }) };
      const rows = await store.live(page);
      const records = await store.read(
        tenant,
        rows.map(({ stream }) => stream),
      );
      for (const read of records) {
        if (read === undefined) continue;
        const record = asRecord(read);
        if (isCovered(scope, record.operation) && stages.includes(record.operation.stage)) yield record;
      }
      after = rows.at(-1)?.order;
      if (rows.length < PAGE) return;
    }
  }

  /** Many at a time, so that their commits share what a commit costs. */
  async #each(
    scope: StopScope,
    stages: readonly string[],
    does: (record: OperationRecord) => Promise<void>,
  ): Promise<void> {
    let together: Promise<void>[] = [];
    for await (const record of this.#open(scope, stages)) {
      together.push(does(record));
      if (together.length < TOGETHER) continue;
      await Promise.all(together);
      together = [];
    }
    await Promise.all(together);
  }

  async #operations(ids: readonly OperationId[]): Promise<readonly Operation[]> {
    const { store, tenant } = this.#context;
    const records = ids.length === 0 ? [] : await store.read(tenant, ids.map(streamOf));
    return records.flatMap((record) => (record === undefined ? [] : [asRecord(record).operation]));
  }

  // ── Lifting ──────────────────────────────────────────────────────────────────────────────────────────────

  /**
   * For new work only, or also for the operations of a frozen list, each as it was seen and each judged again before it
   * is sent. Whatever else waited is closed, and what is out is not sent again by itself. Called again after it was cut
   * short, it goes on under the first order.
   * @returns `undefined` where no such stop is in force
   * @throws {StoreFault}
   */
  async lift(
    id: string,
    { by, strength }: Orderer,
    released: readonly ListedOperation[] = [],
  ): Promise<LiftReport | undefined> {
    const { environment, stops } = this.#context;
    await stops.refresh();
    if (!stops.all.some((one) => one.id === id && one.kind === 'stop')) return undefined;
    const at = environment.now();
    const state = await this.#change(id, (before) =>
      before.lifting === undefined ? { ...before, lifting: { by, strength, at, released } } : undefined,
    );
    const listed = new Map(
      (state.lifting?.released ?? []).map(({ operation, version }) => [operation, version]),
    );
    const report = await this.#endWaiting(state, listed);
    await this.#endInForce(id);
    this.onFreed(report.released);
    return report;
  }

  async #endWaiting(state: StopState, listed: ReadonlyMap<string, number>): Promise<LiftReport> {
    const why = whyOf(state);
    if (why.code !== 'stopped') throw new Error('Assertion: a cancel is not lifted.');
    const released: string[] = [];
    const ended: string[] = [];
    const leftOut: string[] = [];
    const { stops } = this.#context;
    const end = async ({ operation, version }: OperationRecord): Promise<void> => {
      const { id } = operation;
      // Another order is over it as well: that one's lifting decides about it.
      const other = stops.all.find((one) => one.id !== state.id && isCovered(one.scope, operation));
      if (other !== undefined) return;
      if (operation.stage === 'ready' && listed.get(id) === version) {
        released.push(id);
        return;
      }
      if (listed.has(id)) leftOut.push(id);
      const result = await takeStep(this.#context, { id, command: () => ({ type: 'end_stopped', why }) });
      if (result.stored && operation.stage === 'ready') ended.push(id);
      if (result.stored) this.onFreed(result.freed);
    };
    await this.#each(state.scope, ['ready', 'sending', 'checking'], end);
    return { released, ended, leftOut };
  }

  /** Nothing of it is in force after this; what it kept stays on record. */
  async #endInForce(id: string): Promise<void> {
    const { environment, stops, store, tenant } = this.#context;
    for (;;) {
      await stops.refresh();
      const known = await this.#state(id);
      if (known === undefined || !stops.all.some((one) => one.id === id)) return;
      const at = environment.now();
      const next: StopsState = { stops: stops.all.filter((one) => one.id !== id) };
      const ended: StopState = { ...known.state, endedAt: at };
      const [result] = await store.commit([
        {
          tenant,
          at,
          writes: [
            this.#controlWrite(next),
            {
              stream: stopStream(id),
              expectedVersion: known.version,
              events: [{ type: 'ended', at, by: known.state.lifting?.by ?? known.state.by }],
              state: ended as unknown as Json,
            },
          ],
        },
      ]);
      if (result?.outcome !== 'stored') continue;
      stops.learn(stops.version + 1, next);
      return;
    }
  }

  // ── Cancelling ───────────────────────────────────────────────────────────────────────────────────────────

  /** A person's cancel of one operation, whoever has approved it. Asked again it says how far it has come. @throws {StoreFault} */
  async cancel(id: OperationId, { by, strength }: Orderer): Promise<CancelResult | undefined> {
    if ((await readOperation(this.#context, id)) === undefined) return undefined;
    const result = await takeStep(this.#context, { id, command: () => ({ type: 'cancel', by, strength }) });
    if (result.stored) this.onFreed(result.freed);
    return this.cancelOf(result.record.operation);
  }

  cancelOf(operation: Operation): CancelResult {
    const { environment, settings } = this.#context;
    const acknowledgements = acknowledgementsOf(operation, settings.stopMarginMs);
    return acknowledgements === undefined
      ? { cancelled: false, operation }
      : {
          cancelled: true,
          operation,
          acknowledgements: acknowledgedBy(acknowledgements, environment.now()),
        };
  }

  /**
   * A person's cancel of a run. It is in force for all processes with one commit; then each open operation is closed,
   * or kept from being sent again. Writes that are asked for in the run afterwards are closed at once; a run that nobody
   * gave a name goes on with what is asked for after it.
   * @returns `undefined` where nothing is recorded of the run
   * @throws {StoreFault}
   */
  async cancelRun(run: string, { by, strength }: Orderer): Promise<RunCancel | undefined> {
    const { environment, stops, store, tenant } = this.#context;
    await stops.refresh();
    const scope: StopScope = { kind: 'run', run };
    const stream = runStream(run);
    const [row] = await store.read(tenant, [stream]);
    const before = row?.state as { readonly cancelled?: { readonly id: string } } | undefined;
    if (before?.cancelled !== undefined) {
      await this.#endRun(before.cancelled.id);
      return this.runCancel(run);
    }
    if (row === undefined && !(await this.#hasAny(run))) return undefined;
    const id = await this.#put('cancel', { by, strength }, scope, undefined);
    await this.#markRun(stream, { id, by, strength, at: environment.now() });
    await this.#endRun(id);
    return this.runCancel(run, id);
  }

  /** In the run's own row, which each later proposal in it requires. */
  async #markRun(
    stream: string,
    cancelled: Orderer & { readonly id: string; readonly at: number },
  ): Promise<void> {
    const { environment, store, tenant } = this.#context;
    for (;;) {
      const [row] = await store.read(tenant, [stream]);
      if (row === undefined || (row.state as { readonly cancelled?: unknown }).cancelled !== undefined)
        return;
      const state = { ...(row.state as object), cancelled } as unknown as Json;
      const write = { stream, expectedVersion: row.version, events: [], state };
      const [result] = await store.commit([{ tenant, at: environment.now(), writes: [write] }]);
      if (result?.outcome === 'stored') return;
    }
  }

  /** As soon as no more can be sent it is in force no more, because nothing of it is left that could be. */
  async #finishCancel(id: string): Promise<void> {
    await this.acknowledged(id);
    await this.#endRun(id);
  }

  /** Ends what is open in its run. Until no more can be sent its order stays in force beside that. */
  async #endRun(id: string): Promise<void> {
    const { stops } = this.#context;
    await stops.refresh();
    const order = stops.all.find((one) => one.id === id);
    if (order === undefined || order.scope.kind !== 'run') return;
    const { at, by, strength = 'same_account' } = order;
    await this.#markRun(runStream(order.scope.run), { id, by, strength, at });
    await this.#each(order.scope, OPEN_STAGES, async ({ operation }) => {
      const command = { type: 'cancel', by, strength } as const;
      const result = await takeStep(this.#context, { id: operation.id, command: () => command });
      if (result.stored) this.onFreed(result.freed);
    });
    if ((await this.#state(id))?.state.noMoreAt !== undefined) await this.#endInForce(id);
    else this.watch();
  }

  /** How far the cancel of a run has come; `undefined` where nobody has cancelled it. @throws {StoreFault} */
  async runCancel(run: string, knownId?: string): Promise<RunCancel | undefined> {
    const { store, tenant } = this.#context;
    const [row] = await store.read(tenant, [runStream(run)]);
    const state = row?.state as { readonly cancelled?: { readonly id: string } } | undefined;
    const id = state?.cancelled?.id ?? knownId;
    const known = id === undefined ? undefined : await this.#state(id);
    if (id === undefined || known === undefined) return undefined;
    const all = await this.#ofRun(run);
    const out = all.filter(({ attempts, ended }) => attempts.length > 0 && ended?.code === 'cancelled');
    const requestedAt = known.state.at;
    const until = requestedAt + this.#noMoreMs(known.state);
    const { noMoreAt: saidAt } = known.state;
    const settled = saidAt === undefined ? undefined : settledAt(out, saidAt);
    return {
      id,
      run,
      requestedAt,
      noMore: saidAt === undefined ? { until } : { at: saidAt },
      out: countOut(out),
      notSent: all.filter(({ attempts, ended }) => attempts.length === 0 && ended?.code === 'cancelled'),
      earlierChanges: all.filter(
        ({ effect, ended }) =>
          ended === undefined &&
          (effect === 'accepted' || effect === 'verified' || effect === 'error_reported'),
      ),
      ...(settled === undefined ? {} : { settledAt: settled }),
    };
  }

  /** The run's cancel as above, once "no more will be sent" can be said. @throws {StoreFault} */
  async runAcknowledged({ id, run }: RunCancel): Promise<RunCancel | undefined> {
    await this.#finishCancel(id);
    return this.runCancel(run, id);
  }

  async #hasAny(run: string): Promise<boolean> {
    return (await this.#ofRun(run, 1)).length > 0;
  }

  /** In order of arrival. A run's operations are not older than its row. */
  async #ofRun(run: string, limit = Number.POSITIVE_INFINITY): Promise<readonly Operation[]> {
    const { store, tenant } = this.#context;
    const [row] = await store.read(tenant, [runStream(run)]);
    const beganAt = (row?.state as { readonly beganAt?: number } | undefined)?.beganAt ?? 0;
    const found: Operation[] = [];
    let after: string | undefined;
    for (;;) {
      const page = await store.streams({
        tenant,
        kind: 'op',
        newest: true,
        limit: RUN_PAGE,
        ...(after === undefined ? {} : { after }),
      });
      const operations = page.map((record) => asRecord(record).operation);
      found.push(...operations.filter((operation) => operation.run.id === run));
      const oldest = operations.at(-1);
      after = page.at(-1)?.stream;
      if (page.length < RUN_PAGE || found.length >= limit || oldest === undefined) break;
      if ((idInstant(oldest.id) ?? 0) < beganAt) break;
    }
    return found.reverse();
  }

  // ── Rows ─────────────────────────────────────────────────────────────────────────────────────────────────

  async #state(id: string): Promise<{ readonly state: StopState; readonly version: number } | undefined> {
    const { store, tenant } = this.#context;
    const [record] = await store.read(tenant, [stopStream(id)]);
    return record && { state: record.state as unknown as StopState, version: record.version };
  }

  async #change(id: string, next: (state: StopState) => StopState | undefined): Promise<StopState> {
    const { environment, store, tenant } = this.#context;
    for (;;) {
      const known = await this.#state(id);
      if (known === undefined) throw new Error(`Assertion: stop ${id} is not in the ledger.`);
      const after = next(known.state);
      if (after === undefined) return known.state;
      const state = after as unknown as Json;
      const write = { stream: stopStream(id), expectedVersion: known.version, events: [state], state };
      const [result] = await store.commit([{ tenant, at: environment.now(), writes: [write] }]);
      if (result?.outcome === 'stored') return after;
    }
  }
}

const OPEN_STAGES = [
  'proposed',
  'awaiting_approval',
  'held',
  'ready',
  'sending',
  'checking',
  'parked',
] as const;
