// The way of one operation from *ready* to *closed*: claim and record the attempt, send, record what came
// back, have it looked up and read back. Read → decide → store → touch the world, each beat in its own line.

import { allowanceOf } from '../core/allowance.ts';
import { questionNow, type SendingConditions } from '../core/authority.ts';
import type { JsonObject } from '../core/canonical.ts';
import type { ToolFacts } from '../core/contract.ts';
import { type Command, decide, decided, type NewReview } from '../core/decide.ts';
import type { Finding } from '../core/evidence.ts';
import { firstSentAt } from '../core/known-facts.ts';
import { lockedBy } from '../core/locks.ts';
import { isStatementCurrent, isUnsettled, type Operation } from '../core/operation.ts';
import type { Verdict } from '../core/policy.ts';
import type { SeenState } from '../core/review-text.ts';
import type { ConnectReport, Destination, LateReply, SendReport } from '../destination/port.ts';
import { type Requirement, StoreFault } from '../store/port.ts';
import { Allowances, NoPlace } from './allowances.ts';
import { encodeReply } from './answers.ts';
import { Checks } from './checks.ts';
import { Circuits, isItsOwn } from './circuits.ts';
import { type EngineContext, newId, newReview, scopeNow } from './context.ts';
import { Grants } from './grants.ts';
import { GuardTrust } from './guard-trust.ts';
import { readPayload, type StoredPayload, targetWords } from './payload.ts';
import { judgeSendingNow } from './policy-judging.ts';
import type { Principals } from './principals.ts';
import { Recorder } from './recorder.ts';
import { type LockRecords, type OperationRecord, readOperation } from './records.ts';
import { describe, factsUnknown, readReport } from './reports.ts';
import { type PreparedReview, Reviews } from './reviews.ts';
import { replyTimeoutMs } from './settings.ts';
import { type Step, takeStep } from './steps.ts';
import { goOnStanding } from './write-rate.ts';

/** An attempt that this process has recorded as started and may now hand over. */
export interface StartedAttempt {
  readonly record: OperationRecord;
  readonly attempt: string;
  readonly payload: string;
  readonly facts: ToolFacts;
  /** The monotonic instant noted before the claiming transaction (D8). */
  readonly notedAt: number;
  /** The version of the stops under which it was recorded as started. */
  readonly stopsVersion: number;
  readonly meta?: string;
  readonly via?: string;
}

/** What goes with a payload and is no part of it. */
export interface Beside {
  readonly meta?: string | undefined;
  readonly via?: string | undefined;
}

const CONNECT_PAUSE_MS = 500;
const LATE_AGAIN_MS = 1_000;
/** A destination whose tools are not known is asked again after this. */
const UNKNOWN_TOOLS_MS = 1_000;

export class Sender {
  readonly #context: EngineContext;
  /** Operations that this process is carrying on with right now. */
  readonly #carried = new Set<string>();
  /** Attempts that were given to a destination; of any other attempt of ours it is proven that nothing left. */
  readonly #handedOver = new Set<string>();
  /** One timer for an operation: a later call takes the place of an earlier one. */
  readonly #timers = new Map<string, () => void>();
  /** Operations that are looked up at once: their destination answers again. */
  readonly #hurried = new Set<string>();
  /** What the last try to connect came to, where it failed; another that ends before `until` is the same. */
  readonly #failed = new Map<string, { readonly until: number; readonly detail: string }>();
  /** What a caller that waits has given beside its arguments, by operation; it goes with it when it leaves. */
  readonly #waiting = new Map<string, Beside>();
  readonly #recorder: Recorder;
  readonly trust: GuardTrust;
  readonly circuits: Circuits;
  readonly #allowances: Allowances;
  readonly #checks: Checks;
  readonly principals: Principals;
  readonly reviews: Reviews;
  readonly grants: Grants;
  #closing = false;

  constructor(context: EngineContext, principals: Principals) {
    this.#context = context;
    this.principals = principals;
    this.trust = new GuardTrust(context);
    this.#recorder = new Recorder(context, this.trust);
    this.circuits = new Circuits(context);
    this.#allowances = new Allowances(context);
    this.#checks = new Checks(context, this.#recorder, this.circuits);
    this.reviews = new Reviews(context, this.#checks);
    this.grants = new Grants(context);
    for (const destination of context.destinations.values()) {
      destination.onLateReply = (late) => void this.#late(destination, late);
    }
  }

  /** Called with operations that may have become sendable by what was done here. */
  get onFreed(): (operations: readonly string[]) => void {
    return this.#recorder.onFreed;
  }

  set onFreed(listener: (operations: readonly string[]) => void) {
    this.#recorder.onFreed = listener;
  }

  get recorder(): Recorder {
    return this.#recorder;
  }

  get carried(): ReadonlySet<string> {
    return this.#carried;
  }

  /** No first byte leaves after this; what is out goes on to be recorded. */
  close(): void {
    this.#closing = true;
    this.#recorder.close();
    for (const cancel of this.#timers.values()) cancel();
    this.#timers.clear();
  }

  /** This process is about to record an attempt of the operation, and to send it. */
  carry(id: string): void {
    this.#carried.add(id);
  }

  /** Its caller waits; gives the function to be called when it does no more. */
  waitsFor(id: string, beside: Beside): () => void {
    this.#waiting.set(id, beside);
    return () => this.#waiting.delete(id);
  }

  /** What its next look-up waited for is over. */
  hurry(id: string): void {
    this.#hurried.add(id);
  }

  /** It was not recorded after all. */
  drop(id: string): void {
    this.#carried.delete(id);
  }

  isStillOurs(operation: Operation, facts: ToolFacts, args: JsonObject): Promise<boolean | undefined> {
    return this.#checks.isStillOurs(operation, facts, args);
  }

  isProvenAbsent(operation: Operation, facts: ToolFacts, args: JsonObject): Promise<boolean> {
    return this.#checks.isProvenAbsent(operation, facts, args);
  }

  /** Hands over an attempt that was recorded in the commit of its proposal, and carries on from there. */
  async sendStarted(started: StartedAttempt): Promise<void> {
    const { id } = started.record.operation;
    this.#carried.add(id);
    try {
      await this.#carryOn(await this.#send(started));
    } finally {
      this.#carried.delete(id);
    }
  }

  /**
   * Does what is due for an operation, until nothing is or somebody else must act.
   * @param mayConnect false: a destination that is away is not asked again now; that it waits is recorded
   */
  async carryOn(record: OperationRecord, mayConnect = true): Promise<void> {
    const { id } = record.operation;
    if (this.#carried.has(id)) return;
    this.#carried.add(id);
    try {
      await this.#carryOn(record, mayConnect);
    } finally {
      this.#carried.delete(id);
    }
  }

  async #carryOn(from: OperationRecord | undefined, mayConnect = true): Promise<void> {
    let record: OperationRecord | undefined = from;
    while (record !== undefined && !this.#closing) {
      const { operation }: OperationRecord = record;
      if (operation.stage === 'ready') record = await this.#startAndSend(record, mayConnect);
      else if (operation.stage === 'checking') record = await this.#check(record);
      else return;
    }
  }

  // ── Sending ──────────────────────────────────────────────────────────────────────────────────────────────

  async #startAndSend(record: OperationRecord, mayConnect: boolean): Promise<OperationRecord | undefined> {
    const { operation } = record;
    const { why } = operation;
    if (why !== undefined && 'until' in why && this.#later(operation.id, why.until)) return undefined;
    const destination = this.#context.destinations.get(operation.destination);
    if (destination === undefined) return undefined;
    const stopped = this.#context.stops.over(operation);
    if (stopped !== undefined) {
      if (why?.code === 'stopped' && why.stop === stopped.id && operation.effect !== 'unknown')
        return undefined;
      await this.#start(record, await readPayload(this.#context, operation), undefined, '');
      return undefined;
    }
    const connection = await this.#connected(destination, mayConnect);
    const payload = await readPayload(this.#context, operation);
    await this.#context.refreshFacts();
    const known = connection.connected
      ? this.#context.factsFor(operation.destination, operation.tool, payload.arguments)
      : undefined;
    const facts = known && (await this.grants.applied(known, operation.run.id));
    const detail = connection.connected ? `it lists no tool ${operation.tool}` : connection.detail;
    const started = await this.#startInTurn(record, payload, facts, detail);
    return started === undefined ? undefined : this.#send(started);
  }

  /** Within what may be sent to the destination at once and in a time. */
  async #startInTurn(
    record: OperationRecord,
    payload: StoredPayload,
    facts: ToolFacts | undefined,
    detail: string,
  ): Promise<StartedAttempt | undefined> {
    const allowance = facts && allowanceOf(facts);
    if (allowance === undefined || record.operation.observed !== undefined)
      return this.#start(record, payload, facts, detail);
    const { destination } = record.operation;
    const { concurrency, rate } = allowance;
    return this.#allowances.inTurn(destination, allowance, async () => {
      const until = await this.#allowances.take(destination, allowance);
      if (until !== undefined && rate !== undefined)
        return this.#start(record, payload, facts, detail, {
          noRoom: { code: 'waits_for_rate', ...rate, until },
        });
      if (concurrency === undefined) return this.#start(record, payload, facts, detail);
      try {
        return await this.#start(record, payload, facts, detail, {
          beside: async () => [await this.#allowances.place(destination, concurrency)],
        });
      } catch (cause) {
        if (!(cause instanceof NoPlace)) throw cause;
        const noRoom = { code: 'waits_for_place', at_once: concurrency } as const;
        return this.#start(record, payload, facts, detail, { noRoom });
      }
    });
  }

  /** Of an open circuit one is let through at a time: a look-up where one is due, else what is to be sent anyway. */
  async #connected(destination: Destination, mayConnect: boolean): Promise<ConnectReport> {
    const { name } = destination;
    if (!this.circuits.isClosed(name)) {
      const isHeldBack = !mayConnect || (await this.#hasLookUps(name));
      if (isHeldBack || (await this.circuits.closedUntil(name)) !== undefined) {
        return { connected: false, detail: this.circuits.words(name) ?? 'it did not answer a moment ago' };
      }
    }
    if (destination.isConnected()) {
      if (this.#failed.size > 0) this.#failed.delete(name);
      return { connected: true };
    }
    if (!mayConnect)
      return { connected: false, detail: this.#failed.get(name)?.detail ?? 'it did not answer a moment ago' };
    const connection = await destination.connect();
    if (connection.connected) this.#failed.delete(name);
    else await this.#noticeFailed(name, connection);
    return connection;
  }

  /** All that wait for one try hear of its end at once; it counts as one. */
  async #noticeFailed(
    name: string,
    { detail, isAway }: Extract<ConnectReport, { connected: false }>,
  ): Promise<void> {
    const now = this.#context.environment.monotonic();
    const isNews = now >= (this.#failed.get(name)?.until ?? 0);
    this.#failed.set(name, { until: now + CONNECT_PAUSE_MS, detail });
    if (isNews && isAway !== false) await this.circuits.failed(name);
  }

  /** Whether the last try to connect failed, with none since that did not. */
  hasFailed(destination: string): boolean {
    return this.#failed.has(destination);
  }

  async #hasLookUps(destination: string): Promise<boolean> {
    const { store, tenant } = this.#context;
    const query = { tenant, queues: [destination], stages: ['checking'], limit: 1 };
    return (await store.live(query)).length > 0;
  }

  /** The claim: D8's conditions, the locks and the attempt's start in one commit. */
  async #start(
    record: OperationRecord,
    payload: StoredPayload,
    facts: ToolFacts | undefined,
    connectionDetail: string,
    room: { readonly noRoom?: SendingConditions['noRoom']; readonly beside?: Step['beside'] } = {},
  ): Promise<StartedAttempt | undefined> {
    const context = this.#context;
    const { environment, settings } = context;
    const attempt = newId(context, 'att');
    const predecessor = await this.#unsettledPredecessor(record.operation);
    const goOn = await this.#goOn(record.operation);
    const { destination, tool, under } = record.operation;
    const isDistrusted = under !== undefined && (await this.trust.isLost(destination, tool));
    const scope = facts && scopeNow(context, facts);
    const { operation } = record;
    const judged = await judgeSendingNow(context, this.principals, operation, payload.arguments, facts);
    const again = facts && (await this.reviews.recheck(operation, facts, payload.arguments));
    // It does not say how the target stands: nothing is sent before it does.
    const isSilent =
      again?.seen.read === false && (again.seen.why === 'no_answer' || again.seen.why === 'not_asked');
    const isConnected = facts !== undefined && !isSilent;
    context.reached('before_attempt_commit');
    const notedAt = environment.monotonic();
    const at = environment.now();
    let stopsVersion = context.stops.version;
    const commandOf =
      (review: NewReview) =>
      (operation: Operation, locks: LockRecords): Extract<Command, { type: 'start_attempt' }> => {
        stopsVersion = context.stops.version;
        return {
          type: 'start_attempt',
          attempt: {
            ...(scope === undefined ? {} : { scope }),
            id: attempt,
            worker: context.worker,
            startedAt: at,
            sendBy: at + settings.bounds.sendByMs,
          },
          newReview: review,
          conditions: {
            at,
            facts,
            bounds: settings.bounds,
            digest: payload.digest,
            connected: isConnected,
            connectionDetail: isSilent ? 'it does not say how the target stands now' : connectionDetail,
            targetNow: isSilent ? undefined : again?.targetNow,
            lockedBy: operation.observed === undefined ? firstLock(locks, operation.id) : undefined,
            unsettledPredecessor: predecessor,
            goOn,
            scope,
            isDistrusted,
            ...judged,
            stopped: context.stops.over(operation),
            noRoom: room.noRoom,
          },
        };
      };
    const about = { facts, seen: again?.seen, verdict: judged?.verdict };
    const prepared = this.#preparedReview(operation, payload, about, commandOf, at);
    const result = await takeStep(context, {
      id: operation.id,
      from: record,
      isSending: true,
      ...(room.beside === undefined ? {} : { beside: room.beside }),
      command: commandOf(prepared.review),
      documents: prepared.documents,
    });
    this.onFreed(result.stored ? result.freed : []);
    if (!result.stored || result.record.operation.stage !== 'sending' || facts === undefined)
      return undefined;
    const { meta, via } = this.#waiting.get(record.operation.id) ?? {};
    return {
      record: result.record,
      attempt,
      payload: payload.text,
      facts,
      notedAt,
      stopsVersion,
      ...(meta === undefined ? {} : { meta }),
      ...(via === undefined ? {} : { via }),
    };
  }

  /** What a person is shown, where this attempt is going to be held; what has no facts here is shown without them. */
  #preparedReview(
    operation: Operation,
    { target, text }: StoredPayload,
    {
      facts,
      seen,
      verdict,
    }: {
      readonly facts: ToolFacts | undefined;
      readonly seen: SeenState | undefined;
      readonly verdict: Verdict | undefined;
    },
    commandOf: (review: NewReview) => (operation: Operation, locks: LockRecords) => Command,
    at: number,
  ): PreparedReview {
    const review = newReview(this.#context, at);
    // Nearly always nothing can hold it, and then it is not decided twice.
    const mayBeHeld =
      operation.review !== undefined ||
      operation.why?.code === 'waits_for_go_on' ||
      questionNow(facts, verdict) !== undefined;
    if (facts === undefined || !mayBeHeld) return { review, documents: [] };
    const trial = decide(operation, commandOf(review)(operation, []), at);
    const after = trial.events?.some(({ type }) => type === 'review_opened') && decided(operation, trial);
    if (!after) return { review, documents: [] };
    const shown = { operation: after, payload: text, target: targetWords(target), facts };
    return this.reviews.prepare(review, shown, seen ?? { read: false, why: 'not_asked' });
  }

  /** What was decided about going on, where the operation waits for that. */
  async #goOn({ why }: Operation): Promise<SendingConditions['goOn']> {
    if (why?.code !== 'waits_for_go_on') return undefined;
    const standing = await goOnStanding(this.#context, why.operation, this.#context.environment.now());
    if (standing === 'granted') return undefined;
    return { operation: why.operation, standing: standing === 'asked' ? 'asked' : 'refused' };
  }

  async #unsettledPredecessor(operation: Operation): Promise<string | undefined> {
    if (operation.supersedes === undefined) return undefined;
    const earlier = await readOperation(this.#context, operation.supersedes);
    if (earlier === undefined) return undefined;
    const isOpen = isUnsettled(earlier.operation) && !isStatementCurrent(earlier.operation);
    return isOpen && earlier.operation.stage !== 'closed' ? operation.supersedes : undefined;
  }

  async #send(started: StartedAttempt): Promise<OperationRecord | undefined> {
    const context = this.#context;
    const { operation } = started.record;
    const destination = context.destinations.get(operation.destination);
    context.reached('attempt_recorded');
    if (destination === undefined)
      throw new Error('Assertion: an attempt was started without a destination.');
    this.#handedOver.add(started.attempt);
    const sent = destination.send({
      operation: operation.id,
      attempt: started.attempt,
      tool: operation.tool,
      payload: started.payload,
      firstSentAt: firstSentAt(operation),
      replyTimeoutMs: replyTimeoutMs(context.settings, started.facts),
      mayLeave: () =>
        !this.#closing &&
        !context.stops.hasComeOver(operation, started.stopsVersion) &&
        context.environment.monotonic() - started.notedAt <= context.settings.bounds.sendByMs,
      recordLeg: (leg) => this.#recordLeg(operation.id, started.attempt, leg),
      ...(started.meta === undefined ? {} : { meta: started.meta }),
      ...(started.via === undefined ? {} : { via: started.via }),
    });
    context.reached('bytes_left');
    const report = await sent;
    context.reached('reply_received');
    const recorded = await this.#recordReport(started, report);
    if (!isWholeAnswer(report) || !this.circuits.isUnremarkable(operation.destination))
      await this.#noticeHealth(operation.destination, report);
    if (allowanceOf(started.facts)?.concurrency !== undefined)
      this.onFreed(await this.#allowances.waiting(operation.destination));
    this.#handedOver.delete(started.attempt);
    return recorded;
  }

  /** What we refused ourselves says nothing about it; a whole reply does, whatever it says. */
  async #noticeHealth(destination: string, report: SendReport): Promise<void> {
    if (report.left === 'no' ? report.proof === 'refused_by_sender' : report.ended === 'aborted') return;
    await (isWholeAnswer(report) ? this.circuits.answered(destination) : this.circuits.failed(destination));
  }

  /** A leg that cannot be recorded does not leave. */
  async #recordLeg(id: string, attempt: string, leg: number): Promise<boolean> {
    if (this.#closing) return false;
    try {
      const { stops } = this.#context;
      const result = await takeStep(this.#context, {
        id,
        isSending: true,
        command: (operation) => ({
          type: 'record_leg',
          attempt,
          leg,
          stopped: stops.over(operation) !== undefined,
        }),
      });
      return result.stored;
    } catch (cause) {
      this.#context.report(`A leg of ${id} was not recorded, and did not leave: ${describe(cause)}`);
      return false;
    }
  }

  async #recordReport(started: StartedAttempt, report: SendReport): Promise<OperationRecord | undefined> {
    const { operation } = started.record;
    const attempt = operation.attempts.find(({ id }) => id === started.attempt);
    const reading = readReport(report, started.facts, attempt?.under);
    if (reading.passedOver === true) {
      const { destination, id, tool } = operation;
      await this.trust.lower({ destination, tool, operation: id, because: 'not_proven' });
    }
    const reply = report.left === 'maybe' ? report.reply : undefined;
    const documents =
      reply === undefined ? [] : [this.#recorder.document('result', operation.id, encodeReply(reply))];
    return this.#recorder.record(started.record, reading.finding, started.facts, {
      closes: started.attempt,
      attempt: started.attempt,
      documents,
      reply: reply?.truncated === true ? undefined : reply,
      found: reading.found,
    });
  }

  /**
   * A reply that came after its attempt had been given up as lost: evidence, whoever holds the claim now. It comes once,
   * so that a store that is down is waited for.
   */
  async #late(destination: Destination, late: LateReply): Promise<void> {
    const { environment, report } = this.#context;
    for (;;) {
      try {
        const stored = await this.#recordLate(destination, late);
        if (stored !== undefined) await this.#again(late.operation, stored);
        return;
      } catch (cause) {
        const isOver = !(cause instanceof StoreFault) || this.#closing;
        const what = `A late reply of ${destination.name} to ${late.operation} was not recorded`;
        report(`${what}${isOver ? '' : ', and is tried again'}: ${describe(cause)}`);
        if (isOver) return;
        await new Promise<void>((resolve) => environment.after(LATE_AGAIN_MS, resolve));
      }
    }
  }

  async #recordLate(destination: Destination, late: LateReply): Promise<OperationRecord | undefined> {
    const context = this.#context;
    const record = await readOperation(context, late.operation);
    if (record === undefined) return undefined;
    const payload = await readPayload(context, record.operation);
    const facts =
      context.factsFor(destination.name, record.operation.tool, payload.arguments) ??
      factsUnknown(record.operation);
    const reading = readReport({ left: 'maybe', ended: 'reply', reply: late.reply, detail: '' }, facts);
    const documents = [this.#recorder.document('result', late.operation, encodeReply(late.reply))];
    return this.#recorder.record(record, reading.finding, facts, {
      closes: late.attempt,
      attempt: late.attempt,
      documents,
      reply: late.reply.truncated === true ? undefined : late.reply,
      found: reading.found,
    });
  }

  // ── Checking ─────────────────────────────────────────────────────────────────────────────────────────────

  async #check(record: OperationRecord): Promise<OperationRecord | undefined> {
    const { id, why, destination: name } = record.operation;
    const isHurried = this.#hurried.delete(id);
    if (!isHurried && why !== undefined && 'nextAt' in why && this.#later(id, why.nextAt)) return undefined;
    const destination = this.#context.destinations.get(name);
    if (destination === undefined) return undefined;
    const until = await this.circuits.closedUntil(name);
    if (until !== undefined) {
      this.#later(id, until);
      return undefined;
    }
    const checked = await this.#checks.check(record, destination);
    if (checked !== 'later') return checked;
    this.#later(id, this.#context.environment.now() + UNKNOWN_TOOLS_MS);
    return undefined;
  }

  /**
   * An attempt of this process that nobody carries on: the commit that started it was reported lost and yet
   * stored, or its way ended in a fault. Where it was never given to a destination, that is the proof that
   * nothing left; else its outcome is unknown.
   */
  async reclaim(record: OperationRecord): Promise<OperationRecord | undefined> {
    const { operation } = record;
    const attempt = operation.attempts.find((one) => one.open && one.worker === this.#context.worker);
    if (attempt === undefined || this.#carried.has(operation.id)) return undefined;
    const payload = await readPayload(this.#context, operation);
    const facts =
      this.#context.factsFor(operation.destination, operation.tool, payload.arguments) ??
      factsUnknown(operation);
    const left = this.#handedOver.has(attempt.id) ? 'maybe' : 'no';
    const finding: Finding = {
      kind: 'transport',
      left,
      what: left === 'no' ? 'never_handed_over' : 'abandoned',
    };
    const stored = await this.#recorder.record(record, finding, facts, {
      closes: attempt.id,
      attempt: attempt.id,
    });
    this.#handedOver.delete(attempt.id);
    return stored;
  }

  /**
   * The claim of a worker that is gone: what it had out is unknown from now on, and looked up by us (I6).
   * @param gone by what that was told; where it is so no more, the claim is left alone
   */
  async takeOver(record: OperationRecord, gone: Requirement): Promise<OperationRecord> {
    const context = this.#context;
    const { operation } = record;
    const open = operation.attempts.filter((attempt) => attempt.open);
    let present: OperationRecord = record;
    for (const attempt of open) {
      const payload = await readPayload(context, operation);
      const facts = context.factsFor(operation.destination, operation.tool, payload.arguments);
      const result = await takeStep(context, {
        id: operation.id,
        requires: [gone],
        command: () => ({
          type: 'fence_attempt',
          attempt: attempt.id,
          by: context.worker,
          facts,
          bounds: context.settings.bounds,
        }),
      });
      present = result.record;
      if (result.stored) this.onFreed(result.freed);
    }
    return present;
  }

  /** True when the instant is still to come; then this process looks again by itself at that instant. */
  #later(id: string, at: number): boolean {
    const { environment } = this.#context;
    const ms = at - environment.now();
    if (ms <= 0) return false;
    this.#timers.get(id)?.();
    const cancel = environment.after(ms, () => {
      this.#timers.delete(id);
      void this.#again(id);
    });
    this.#timers.set(id, cancel);
    return true;
  }

  async #again(id: string, from?: OperationRecord): Promise<void> {
    try {
      const record = from ?? (await readOperation(this.#context, id));
      if (record !== undefined && !this.#closing) await this.carryOn(record);
    } catch (cause) {
      this.#context.report(`Operation ${id} could not be carried on: ${describe(cause)}`);
    }
  }
}

function isWholeAnswer(report: SendReport): boolean {
  return report.left === 'maybe' && report.reply !== undefined && isItsOwn(report.reply);
}

function firstLock(locks: LockRecords, operation: string): string | undefined {
  for (const lock of locks) {
    const holder = lockedBy(lock.state, operation);
    if (holder !== undefined) return holder;
  }
  return undefined;
}
