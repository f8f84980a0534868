// The loop of one process: finds work that is due for its destinations, takes over from workers that are gone,
// lets reviews lapse, and hears of commits that other processes made.

import type { Operation } from '../core/operation.ts';
import { isBeyondBounds } from '../core/repeatability.ts';
import { type LiveRow, StoreFault } from '../store/port.ts';
import type { EngineContext } from './context.ts';
import type { Presence } from './presence.ts';
import { NEVER_DUE, type OperationRecord, readOperation } from './records.ts';
import { describe } from './reports.ts';
import type { Sender } from './sender.ts';
import { takeStep } from './steps.ts';

const TICK_MS = 100;
/** Open work is looked at this often even when nobody has committed: its time may have come. */
const SCAN_MS = 1_000;
/** One that waits for a destination that is away is read again after this: its own time may be over. */
const ANEW_MS = 30_000;
const PAGE = 200;
/** Stages from which work goes on without a person. */
const MOVING_STAGES = ['ready', 'sending', 'checking'] as const;

export class Worker {
  readonly #context: EngineContext;
  readonly #sender: Sender;
  readonly #presence: Presence;
  readonly #nudged = new Set<string>();
  readonly #reconnectAt = new Map<string, number>();
  /** Of which it is recorded that they wait for a destination that is away, and until when they are not read again. */
  readonly #waiting = new Map<string, number>();
  /** Under a stop, and recorded so: by the version of the stops at which they were looked at. */
  readonly #stopped = new Map<string, number>();
  #cancelTick: (() => void) | undefined;
  #foreignCommits = -1;
  #scanAt = 0;
  #cancelBeat: (() => void) | undefined;
  #silent = false;
  #running: Promise<void> | undefined;
  readonly #underWay = new Set<Promise<void>>();
  #closed = false;

  constructor(context: EngineContext, sender: Sender, presence: Presence) {
    this.#context = context;
    this.#sender = sender;
    this.#presence = presence;
    sender.circuits.onClosed = (destination) => void this.#answersAgain(destination);
    sender.onFreed = (operations) => {
      for (const operation of operations) this.nudge(operation);
    };
  }

  start(): void {
    this.#schedule(0);
    this.#scheduleBeat();
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#cancelTick?.();
    await this.#running;
  }

  /** Resolves when nothing that was begun here is out any more. */
  async idle(): Promise<void> {
    await Promise.allSettled([...this.#underWay]);
  }

  /** What waited for its health alone goes on by itself: look-ups at once, whenever they were due. */
  async #answersAgain(destination: string): Promise<void> {
    this.#waiting.clear();
    const { report, store, tenant } = this.#context;
    try {
      let after: string | undefined;
      for (;;) {
        const rows = await store.live({
          tenant,
          queues: [destination],
          stages: ['ready', 'checking'],
          limit: PAGE,
          ...(after === undefined ? {} : { after }),
        });
        for (const { stage, stream } of rows) {
          const id = stream.slice('op:'.length);
          if (stage === 'checking') this.#sender.hurry(id);
          this.nudge(id);
        }
        after = rows.at(-1)?.order;
        if (rows.length < PAGE) return;
      }
    } catch (cause) {
      // The next scan finds them as they fall due.
      report(`What waits for ${destination} could not be looked at: ${describe(cause)}`);
    }
  }

  /** An operation may have become sendable: it is looked at in the next turn. */
  nudge(operation: string): void {
    this.#nudged.add(operation);
    this.#schedule(0);
  }

  #schedule(ms: number): void {
    if (this.#closed) return;
    this.#cancelTick?.();
    this.#cancelTick = this.#context.environment.after(ms, () => {
      this.#running ??= this.#tick().finally(() => {
        this.#running = undefined;
        this.#schedule(this.#nudged.size > 0 ? 0 : TICK_MS);
      });
    });
  }

  async #tick(): Promise<void> {
    try {
      for (const id of [...this.#nudged]) {
        this.#nudged.delete(id);
        await this.#lookSafely(id);
      }
      const foreign = await this.#context.store.foreignCommits();
      const now = this.#context.environment.monotonic();
      if (foreign === this.#foreignCommits && now < this.#scanAt) return;
      if (foreign !== this.#foreignCommits) await this.#tellWaiters();
      if (foreign !== this.#foreignCommits) await this.#sender.circuits.refresh();
      await this.#context.stops.refresh();
      this.#foreignCommits = foreign;
      this.#scanAt = now + SCAN_MS;
      await this.#scan();
    } catch (cause) {
      const known = cause instanceof StoreFault ? cause.message : describe(cause);
      this.#context.report(`Open work could not be looked at; it is looked at again: ${known}`);
    }
  }

  /**
   * On a timer of its own: nothing that takes long here may make this process look gone. It goes on while the
   * process closes and waits for what is out.
   */
  #scheduleBeat(): void {
    const { environment, settings } = this.#context;
    this.#cancelBeat = environment.after(settings.leaseMs / 5, () => {
      void this.#beat().finally(() => {
        if (!this.#silent) this.#scheduleBeat();
      });
    });
  }

  async #beat(): Promise<void> {
    if (this.#sender.carried.size === 0) return;
    try {
      await this.#presence.beat();
    } catch (cause) {
      this.#context.report(`That this process lives could not be recorded: ${describe(cause)}`);
    }
  }

  /** Nothing is out any more. */
  silence(): void {
    this.#silent = true;
    this.#cancelBeat?.();
  }

  /** Another process may have decided or settled what callers here wait for. */
  async #tellWaiters(): Promise<void> {
    const { waiters } = this.#context;
    for (const id of [...waiters.operations]) {
      if (this.#sender.carried.has(id)) continue;
      const record = await readOperation(this.#context, id);
      if (record !== undefined) waiters.publish(record);
    }
  }

  async #scan(): Promise<void> {
    const { destinations, environment, store, tenant } = this.#context;
    if (destinations.size === 0) return;
    const queues = [...destinations.keys()];
    const now = environment.now();
    const lapsed = await store.live({
      tenant,
      queues,
      stages: ['awaiting_approval'],
      dueBy: now,
      limit: PAGE,
    });
    for (const row of lapsed) await this.#lookSafely(row.stream.slice(3));
    // In order of arrival and whole, so that work which cannot go on yet never hides work which can.
    let after: string | undefined;
    for (;;) {
      const rows = await store.live({
        tenant,
        queues,
        stages: MOVING_STAGES,
        limit: PAGE,
        ...(after === undefined ? {} : { after }),
      });
      for (const row of rows) {
        if (row.dueAt <= now && !this.#isKnownToWait(row)) await this.#lookSafely(row.stream.slice(3));
      }
      after = rows.at(-1)?.order;
      if (rows.length < PAGE || this.#closed) return;
    }
  }

  /** One operation that cannot be looked at must not hide those behind it. A store that is down ends the scan. */
  async #lookSafely(id: string): Promise<void> {
    try {
      await this.#look(id);
    } catch (cause) {
      if (cause instanceof StoreFault) throw cause;
      this.#context.report(`Operation ${id} could not be looked at: ${describe(cause)}`);
    }
  }

  async #look(id: string): Promise<void> {
    if (this.#sender.carried.has(id) || this.#closed) return;
    const { environment, worker } = this.#context;
    const record = await readOperation(this.#context, id);
    if (record === undefined || !this.#context.destinations.has(record.operation.destination)) return;
    const { operation } = record;
    switch (operation.stage) {
      case 'awaiting_approval':
        if (environment.now() > (operation.review?.expiresAt ?? NEVER_DUE)) {
          await takeStep(this.#context, { id, from: record, command: () => ({ type: 'lapse_review' }) });
        }
        return;
      case 'ready':
        this.#tryReady(record);
        return;
      case 'sending':
      case 'checking': {
        const last = operation.attempts.at(-1);
        if (last === undefined) return;
        if (last.worker === worker) {
          this.#carryOn(operation.stage === 'sending' ? await this.#sender.reclaim(record) : record);
          return;
        }
        const gone = await this.#presence.goneBy(last.worker, `${last.id}/${operation.epoch}`);
        if (gone !== undefined) this.#carryOn(await this.#sender.takeOver(record, gone));
        return;
      }
      default:
        return;
    }
  }

  /** While its destination may not be asked again, that an operation waits for it is recorded, once. */
  #tryReady(record: OperationRecord): void {
    const { destination, id, why } = record.operation;
    const { stops } = this.#context;
    if (stops.over(record.operation) !== undefined) {
      this.#stopped.set(id, stops.version);
      this.#carryOn(record, false);
      return;
    }
    this.#stopped.delete(id);
    const mayTry = this.#mayTry(destination);
    if (mayTry) this.#waiting.delete(record.operation.id);
    else if (why !== undefined && why.code !== 'stopped')
      this.#waiting.set(record.operation.id, this.#context.environment.now() + ANEW_MS);
    // What a stop was lifted for waits for something else now, or for nothing.
    const isFree = mayTry || why === undefined || why.code === 'stopped';
    if (isFree || this.#hasRunOut(record.operation)) this.#carryOn(record, mayTry);
  }

  /** A person hears of it when it happens, and not only when its destination answers again. */
  #hasRunOut(operation: Operation): boolean {
    const { environment, settings } = this.#context;
    const now = environment.now();
    const { review } = operation;
    const isExpired = review?.decision?.kind === 'approved' && now > review.expiresAt;
    return isExpired || isBeyondBounds(operation, settings.bounds, now);
  }

  /** It is not read again for nothing: thousands may wait for one destination, and others are not to wait for them. */
  #isKnownToWait({ queue, stage, stream }: LiveRow): boolean {
    const id = stream.slice('op:'.length);
    if (this.#stopped.get(id) === this.#context.stops.version) return true;
    const until = this.#waiting.get(id) ?? 0;
    return stage === 'ready' && this.#context.environment.now() < until && !this.#couldTry(queue);
  }

  /** Not awaited: one slow destination must not hold up the others. */
  #carryOn(record: OperationRecord | undefined, mayConnect = true): void {
    if (record === undefined) return;
    const work: Promise<void> = this.#sender
      .carryOn(record, mayConnect)
      .catch((cause: unknown) => {
        this.#context.report(`Operation ${record.operation.id} could not be carried on: ${describe(cause)}`);
      })
      .finally(() => this.#underWay.delete(work));
    this.#underWay.add(work);
  }

  /**
   * A destination that is down is asked once in a while, not once for every operation that waits for it. While it is
   * only being connected to, or all its connections are taken, nothing says that it is down.
   */
  #mayTry(name: string): boolean {
    if (!this.#couldTry(name)) return false;
    if (this.#isAway(name)) this.#reconnectAt.set(name, this.#context.environment.monotonic() + SCAN_MS);
    return true;
  }

  #couldTry(name: string): boolean {
    if (!this.#context.destinations.has(name)) return false;
    if (!this.#isAway(name)) return true;
    return this.#context.environment.monotonic() >= (this.#reconnectAt.get(name) ?? 0);
  }

  #isAway(name: string): boolean {
    if (!this.#sender.circuits.isClosed(name)) return true;
    return this.#sender.hasFailed(name) && this.#context.destinations.get(name)?.isConnected() !== true;
  }
}
