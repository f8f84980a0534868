// The ledger's commands: propose a write and be answered truthfully, decide a review, wait for an operation.

import { hkdfSync } from 'node:crypto';
import { isLooserClass, isStrongEnough, type Strength } from '../core/authority.ts';
import type { ToolClass, ToolFacts } from '../core/contract.ts';
import { approvalsMissing, decide, type RefusalCode } from '../core/decide.ts';
import { type Operation, type OperationId, type Review } from '../core/operation.ts';
import { type Json, StoreFault } from '../store/port.ts';
import {
  type Answer,
  type AnswerFacts,
  closedAnswer,
  isAnswered,
  type OperationAnswer,
  ownOperation,
} from './answers.ts';
import type { Circuits } from './circuits.ts';
import { type EngineContext, newId, SALT_BYTES } from './context.ts';
import { Deliveries } from './deliveries.ts';
import { type Draft, draftCall, draftFromRecord, notApplied, type WriteCall } from './draft.ts';
import { Gaps } from './gaps.ts';
import { DIGEST_PREFIX_MIN, wholeDigest } from './given-digest.ts';
import type { Grants } from './grants.ts';
import type { GuardTrust } from './guard-trust.ts';
import { Holders } from './holders.ts';
import { FateUnknown } from './new-operations.ts';
import { type Notice, type NoticeResult, Notices } from './notices.ts';
import { Owner } from './owner.ts';
import { readPayload } from './payload.ts';
import { Policies } from './policies.ts';
import { Presence } from './presence.ts';
import { Principals } from './principals.ts';
import { type Again, Proposals, type Proposed } from './proposals.ts';
import { Queue } from './queue.ts';
import { QueueActs } from './queue-acts.ts';
import { Readings } from './readings.ts';
import { contentDocument, type OperationRecord, readOperation, withDelivery } from './records.ts';
import { Repeats } from './repeats.ts';
import { describe } from './reports.ts';
import { Revocations } from './revocations.ts';
import { RunLists } from './run-lists.ts';
import { Runs } from './runs.ts';
import { SeenTools } from './seen-tools.ts';
import { Sender } from './sender.ts';
import { replyTimeoutMs } from './settings.ts';
import { takeStep } from './steps.ts';
import { Stops } from './stops.ts';
import { Tasks } from './tasks.ts';
import { Tokens } from './tokens.ts';
import type { AnswersOut } from './waiters.ts';
import { type Listener, Webhooks } from './webhooks.ts';
import { Worker } from './worker.ts';

export interface ReviewDecision {
  readonly operation: OperationId;
  /** The operation's digest, or at least its first twelve digits: what the person has looked at. */
  readonly digest: string;
  /** The review that was looked at. An approval wants it where it is not the first: nobody approves anew by repeating. */
  readonly review?: string;
  readonly kind: 'approved' | 'denied';
  readonly by: string;
  /** Who it is known to be, as rules name principals; `by` where the door knows no more. */
  readonly principal?: string;
  readonly strength: NonNullable<Review['decision']>['strength'];
  readonly comment?: string;
  /** For a tool that nobody has classified: the class that becomes the rule. `ordinary` when absent. */
  readonly toolClass?: Exclude<ToolClass, 'unclassified'>;
}

export type DecisionResult =
  | { readonly decided: true; readonly operation: Operation; readonly rule?: OwnerRule }
  | {
      readonly decided: false;
      readonly refusal: RefusalCode | 'not_found' | 'digest_too_short' | 'class_not_asked' | 'review_differs';
      readonly operation?: Operation;
    };

/** A class that an owner confirmed for a tool as it was listed then; visible, and revocable. */
export interface OwnerRule {
  readonly destination: string;
  readonly tool: string;
  readonly toolDigest: string;
  readonly class: Exclude<ToolClass, 'unclassified'>;
  readonly by: string;
  readonly at: number;
  readonly strength?: Strength;
  /** The tool as it was when this was said of it, as canonical JSON; absent where it is too long to be kept. */
  readonly definition?: string;
  readonly revokedAt?: number;
}

/** Who asks for a second one: the caller of the first, or a person in its place. */
export type AgainAsk = {
  readonly operation: OperationId;
  /** Why, in the asker's words; whoever decides reads them. */
  readonly reason: string;
} & (
  | { readonly requester: string; readonly person?: undefined }
  | { readonly person: string; readonly requester?: undefined }
);

interface Wait {
  readonly waitMs: number;
  readonly signal: AbortSignal | undefined;
  readonly isEnough: (operation: Operation) => boolean;
  /** True where nobody but this process can have moved the operation on since it was read or stored. */
  readonly isNewest?: boolean;
}

export class Ledger {
  readonly readings: Readings;
  readonly owner: Owner;
  readonly gaps: Gaps;
  readonly policies: Policies;
  readonly tools: SeenTools;
  readonly repeats: Repeats;
  readonly tokens: Tokens;
  readonly principals: Principals;
  readonly queue: Queue;
  readonly queueActs: QueueActs;
  readonly revocations: Revocations;
  readonly runLists: RunLists;
  readonly grants: Grants;
  readonly tasks: Tasks;
  /** Stopping and lifting by an operator, and a person's cancel of an operation or a run. */
  readonly stops: Stops;
  /** Which destinations do not answer now, since when, and when each is tried again. */
  readonly circuits: Pick<Circuits, 'list' | 'of' | 'close'>;
  /** Which tools' guards are counted on no longer, since which operation; and a person's way to count on one again. */
  readonly guards: Pick<GuardTrust, 'list' | 'restore'>;
  readonly #context: EngineContext;
  readonly #sender: Sender;
  readonly #worker: Worker;
  readonly #notices: Notices;
  readonly #presence: Presence;
  readonly #holders: Holders;
  readonly #proposals: Proposals;
  readonly #deliveries: Deliveries;
  readonly #underWay = new Set<Promise<void>>();
  readonly #given: AnswersOut['given'];
  #webhooks: Webhooks | undefined;

  constructor(context: EngineContext) {
    this.#context = context;
    this.#given = context.answersOut.given;
    this.tokens = new Tokens(context);
    this.principals = new Principals(context, this.tokens);
    this.#sender = new Sender(context, this.principals);
    this.circuits = this.#sender.circuits;
    this.guards = this.#sender.trust;
    this.#presence = new Presence(context);
    this.#holders = new Holders(context);
    this.#worker = new Worker(context, this.#sender, this.#presence);
    this.#deliveries = new Deliveries(context);
    this.owner = new Owner(context);
    this.gaps = new Gaps(context);
    this.policies = new Policies(context);
    this.tools = new SeenTools(context);
    this.repeats = new Repeats(context);
    this.readings = new Readings(context, this.#holders);
    this.queue = new Queue(context, this.#holders);
    this.revocations = new Revocations(context);
    this.runLists = new RunLists(context);
    this.grants = this.#sender.grants;
    this.queueActs = new QueueActs(context, this.queue);
    this.#notices = new Notices(context, this.readings, this.#sender.recorder);
    this.stops = new Stops(context);
    this.stops.onFreed = (operations) => this.#sender.onFreed(operations);
    context.stops.onChanged = () => {
      if (context.destinations.size > 0) this.stops.watch();
    };
    this.tasks = new Tasks(
      context,
      this.readings,
      ({ id, deliveredAt }) => deliveredAt !== undefined || this.#given.has(id),
    );
    this.#proposals = new Proposals(context, new Runs(context.store, context.tenant), this.#sender);
  }

  /** How long a caller waits for news of an operation that it meets. */
  get callerWaitMs(): number {
    return this.#context.settings.callerWaitMs;
  }

  /** Begins to carry on with open work of this process's destinations. */
  async start(): Promise<void> {
    try {
      await this.#presence.beat();
      await this.#holders.enter();
      await this.#context.stops.refresh();
    } catch (cause) {
      if (!(cause instanceof StoreFault)) throw cause;
      this.#context.report(`The ledger cannot record now: ${cause.message}`);
    }
    this.#worker.start();
  }

  /** From now on these are told of causes, or of what has settled, as long as this process runs. */
  tell(listeners: readonly Listener[]): void {
    this.#webhooks = new Webhooks(this.#context, this.queue, listeners);
    this.#webhooks.start();
  }

  /** Nothing leaves any more; what is out is waited for and recorded, then the store is closed. */
  async close(): Promise<void> {
    await this.#webhooks?.close();
    this.stops.close();
    await this.#worker.close();
    this.#sender.close();
    await Promise.allSettled([...this.#underWay, this.#worker.idle()]);
    this.#worker.silence();
    await this.#deliveries.flush();
    await this.gaps.close();
    await this.repeats.flush();
    await this.#holders.leave();
    for (const destination of this.#context.destinations.values()) await destination.close();
    await this.#context.store.close();
  }

  // ── Writing ──────────────────────────────────────────────────────────────────────────────────────────────

  /** Never throws for what the world, the store or the arguments do; those are answers. */
  async write(call: WriteCall): Promise<Answer> {
    const context = this.#context;
    context.reached('call_read');
    const facts = context.factsFor(call.destination, call.tool, call.arguments);
    if (facts === undefined) {
      return {
        kind: 'not_recorded',
        detail: `${call.destination} has no tool "${call.tool}" that is known here.`,
      };
    }
    if (facts.mode === 'observe') return this.#observe(call, facts);
    try {
      const opening = context.whenReady();
      if (opening !== undefined) await opening;
      const draft = draftCall(context, call, facts);
      const problem = facts.checksArguments ? draft.problem : (call.schemaProblem ?? draft.problem);
      if (problem !== undefined) {
        const record = await this.#proposals.refuseArguments(draft, problem);
        return await this.#stateAnswer(record.operation, draft, undefined);
      }
      const proposed = await this.#proposals.propose(draft);
      const answer = await this.#answer(draft, proposed);
      if (call.delivery !== 'told') this.#assumeDelivered(answer, call.signal);
      return answer;
    } catch (cause) {
      if (cause instanceof FateUnknown) {
        context.report(`${cause.message} It is looked for when the ledger can be read.`);
        return { kind: 'fate_unknown', operation: cause.operation };
      }
      if (!(cause instanceof StoreFault)) throw cause;
      context.report(`A write to ${call.destination} was not recorded: ${cause.message}`);
      return { kind: 'not_recorded', detail: cause.message };
    }
  }

  /** Sent as it is, whatever the ledger holds; recorded where that is possible, and a gap where it is not. */
  async #observe(call: WriteCall, facts: ToolFacts): Promise<Answer> {
    const context = this.#context;
    try {
      const opening = context.whenReady();
      if (opening !== undefined) await opening;
      const draft = draftCall(context, call, facts);
      const destination = context.destinations.get(call.destination);
      const connection = await destination?.connect();
      // Its caller is told so by the destination's own side, as without us.
      if (connection?.connected !== true && context.stops.over({ ...call, run: { id: '' } }) === undefined)
        return { kind: 'pass', detail: `${call.destination} is away.` };
      const proposed = await this.#proposals.observe(draft);
      const answer = await this.#answer(draft, proposed);
      if (call.delivery !== 'told') this.#assumeDelivered(answer, call.signal);
      return answer;
    } catch (cause) {
      // It may be recorded as an attempt, which must not be sent beside it by another way.
      if (cause instanceof FateUnknown) return { kind: 'fate_unknown', operation: cause.operation };
      if (!(cause instanceof StoreFault)) throw cause;
      if ((await this.stops.over(call)) !== undefined) return { kind: 'not_recorded', detail: cause.message };
      this.gaps.note(call.destination, call.tool, 'the ledger could not record');
      return { kind: 'pass', detail: cause.message };
    }
  }

  async #answer(draft: Draft, proposed: Proposed): Promise<OperationAnswer> {
    const { call } = draft;
    const settings = this.#context.settings;
    if (proposed.answer !== 'new') this.repeats.caught(proposed.record.operation.id);
    if (proposed.answer === 'already_exists')
      return this.#alreadyExists(draft, proposed.record, proposed.isOwn);
    const isFirst = proposed.answer === 'new';
    if (isFirst) this.#deliveries.forget(proposed.record.operation.id);
    const { id } = proposed.record.operation;
    const stopWaiting = isFirst ? this.#sender.waitsFor(id, call) : () => {};
    const isSending = isFirst && proposed.started !== undefined;
    if (isSending) this.#background(this.#sender.sendStarted(proposed.started));
    else if (proposed.record.operation.stage === 'ready') this.#worker.nudge(proposed.record.operation.id);
    const waitMs =
      call.waitMs ??
      (isFirst ? replyTimeoutMs(settings, draft.facts) + settings.callerWaitMs : settings.callerWaitMs);
    const record = await this.#outcome(proposed.record, { waitMs, signal: call.signal, isNewest: isSending });
    stopWaiting();
    const isOwn = isFirst || proposed.isOwn;
    // Somebody else's operation is not this caller's to take back.
    if (isOwn && call.signal?.aborted === true) await this.#callerLeft(record.operation);
    return { ...(await this.#finalAnswer(draft, record, isFirst, isOwn)), isFirst };
  }

  /** Waits while an outcome is on its way; never for a lock, a person, or a destination that is down. */
  async #outcome(from: OperationRecord, wait: Omit<Wait, 'isEnough'>): Promise<OperationRecord> {
    return this.#until(from, { isEnough: (operation) => !isOnItsWay(operation), ...wait });
  }

  async #until(from: OperationRecord, wait: Wait): Promise<OperationRecord> {
    const { environment, waiters } = this.#context;
    const { isEnough, signal, waitMs } = wait;
    if (isEnough(from.operation) || signal?.aborted === true) return from;
    return new Promise((resolve) => {
      let latest = from;
      const finish = (): void => {
        stopListening();
        cancelTimer();
        signal?.removeEventListener('abort', finish);
        resolve(latest);
      };
      const stopListening = waiters.listen(from.operation.id, (record) => {
        latest = record;
        if (isEnough(record.operation)) finish();
      });
      const cancelTimer = environment.after(waitMs, finish, true);
      signal?.addEventListener('abort', finish, { once: true });
      if (wait.isNewest === true) return;
      // It may have moved on between the reading and the listening.
      void readOperation(this.#context, from.operation.id).then(
        (record) => {
          if (record === undefined || record.version <= latest.version) return;
          latest = record;
          if (isEnough(record.operation)) finish();
        },
        () => {},
      );
    });
  }

  async #callerLeft(operation: Operation): Promise<void> {
    if (operation.stage !== 'closed') await this.#orNothing(this.takeBack(operation.id));
  }

  /**
   * Its caller asks for a cancel. It ends what has not left and what no person was asked about; what is out goes on
   * to be known, with the request on record (D10).
   * @throws {StoreFault}
   */
  async takeBack(id: OperationId): Promise<void> {
    await takeStep(this.#context, { id, command: () => ({ type: 'cancel_by_caller' }) });
  }

  /**
   * The write is recorded, and perhaps sent: a store that fails from here on takes details from its answer, and
   * never makes it say that nothing was recorded.
   */
  async #orNothing<Read>(reading: Promise<Read>): Promise<Read | undefined> {
    try {
      return await reading;
    } catch (cause) {
      if (!(cause instanceof StoreFault)) throw cause;
      this.#context.report(`Details of an answer could not be read: ${cause.message}`);
      return undefined;
    }
  }

  async #finalAnswer(
    draft: Draft,
    record: OperationRecord,
    isFirst: boolean,
    isOwn: boolean,
  ): Promise<OperationAnswer> {
    const { operation } = withDelivery(this.#context, record);
    const owner = isOwn ? undefined : operation.requester;
    if (operation.stage !== 'closed') return this.#stateAnswer(operation, draft, owner);
    const isGiven = operation.deliveredAt !== undefined || this.#given.has(operation.id);
    // Taken in this turn, before anything is waited for: of many equal callers one is given the reply itself.
    // The reply is about the text that was sent: a call with another text is told so in words.
    const isItsText = operation.argumentsDigest === draft.argumentsDigest;
    const isGivenHere =
      isAnswered(operation) && isOwn && isItsText && !isGiven && operation.result !== undefined;
    const isThere = draft.call.signal?.aborted !== true && draft.call.hasLeft?.() !== true;
    if (isGivenHere && isThere) this.#give(record);
    const reply = record.reply ?? (await this.#orNothing(this.readings.reply(operation)));
    const facts = await this.#facts(operation, draft, owner);
    if (isGivenHere && reply !== undefined) return { ...facts, kind: 'reply', reply };
    return closedAnswer(facts, reply, { isFirst, isRequester: isForCaller(operation, draft) });
  }

  /** Bounded, should a door forget to tell: forgetting only gives a result unchanged once more. */
  #give(record: OperationRecord): void {
    const oldest = this.#given.size < GIVEN_MAX ? undefined : this.#given.keys().next().value;
    if (oldest !== undefined) this.#given.delete(oldest);
    this.#given.set(record.operation.id, record);
  }

  async #alreadyExists(draft: Draft, record: OperationRecord, isOwn: boolean): Promise<OperationAnswer> {
    const { operation } = record;
    const reply = await this.#orNothing(this.readings.reply(operation));
    const facts = await this.#facts(operation, draft, isOwn ? undefined : operation.requester);
    const isTold = reply !== undefined && isForCaller(operation, draft);
    return { ...facts, kind: 'already_exists', ...(isTold ? { reply } : {}) };
  }

  async #stateAnswer(
    operation: Operation,
    draft: Draft,
    otherRun: string | undefined,
  ): Promise<Extract<Answer, { kind: 'state' }>> {
    return { ...(await this.#facts(operation, draft, otherRun)), kind: 'state' };
  }

  async #facts(operation: Operation, draft: Draft, otherRun: string | undefined): Promise<AnswerFacts> {
    const isPlain = operation.argumentsDigest === draft.argumentsDigest && operation.stage === 'closed';
    const reading =
      isPlain && operation.result !== undefined
        ? undefined
        : await this.#orNothing(this.readings.reading(operation));
    return {
      operation,
      notApplied:
        operation.argumentsDigest === draft.argumentsDigest || reading === undefined
          ? []
          : notApplied(reading.payload.arguments, draft.call.arguments, draft.facts.stamp?.argument),
      ...(reading?.target === undefined ? {} : { target: reading.target }),
      ...(reading?.quote === undefined || !isForCaller(operation, draft) ? {} : { quote: reading.quote }),
      ...(otherRun === undefined ? {} : { otherRun }),
    };
  }

  #assumeDelivered(answer: Answer, signal: AbortSignal | undefined): void {
    const operation = ownOperation(answer);
    if (operation === undefined || operation.stage !== 'closed') return;
    if (signal?.aborted === true) this.undelivered(operation.id);
    else if (operation.deliveredAt === undefined) this.delivered(operation.id);
  }

  /** The answer about this operation has been written to a caller that was still there. */
  delivered(operation: OperationId): void {
    this.#deliveries.add(operation, this.#given.get(operation));
    this.#given.delete(operation);
  }

  /** The answer did not reach its caller: the first equal call is given it. */
  undelivered(operation: OperationId): void {
    this.#given.delete(operation);
  }

  /** Waits up to `waitMs` for news of an operation, no longer than `signal` lets it, and reads it. */
  async status(id: OperationId, waitMs: number, signal?: AbortSignal): Promise<Operation | undefined> {
    const record = await this.readings.record(id);
    if (record === undefined) return undefined;
    const { stage, version } = { stage: record.operation.stage, version: record.version };
    const isNews = (operation: Operation): boolean =>
      operation.stage === 'closed' || operation.stage !== stage;
    if (stage === 'closed' || stage === 'parked' || waitMs <= 0) return record.operation;
    const after = await this.#until(
      { version, operation: record.operation },
      { waitMs, signal, isEnough: (operation) => isNews(operation) && !isOnItsWay(operation) },
    );
    return after.operation;
  }

  /** Whether the worker that had an operation out is no more, so that nobody waits for its answer now. */
  async isSenderGone(operation: Operation): Promise<boolean> {
    const last = operation.attempts.at(-1);
    if (operation.stage !== 'sending' || last === undefined) return false;
    return (await this.#presence.goneBy(last.worker, last.id)) !== undefined;
  }

  /**
   * The lawful way to a second one: a person is asked whether an equal call is really wanted once more (D6).
   * @returns `not_found` also for an operation of somebody else; `altered` where its payload is not what was sent
   */
  async again(ask: AgainAsk): Promise<Again | 'not_found' | 'tool_unknown' | 'altered'> {
    const context = this.#context;
    const record = await this.readings.record(ask.operation);
    if (record === undefined) return 'not_found';
    const { operation } = record;
    if (ask.person === undefined && operation.requester !== ask.requester) return 'not_found';
    const payload = await readPayload(context, operation);
    if (payload.digest !== operation.digest) return 'altered';
    const facts = context.factsFor(operation.destination, operation.tool, payload.arguments);
    const isPerson = ask.person !== undefined;
    // A request over HTTP is made by a contract, which nobody has here.
    const canBeMade = isPerson && operation.payload.holds === undefined;
    if (facts?.class === 'read' || (facts === undefined && !canBeMade)) return 'tool_unknown';
    const call: WriteCall = {
      destination: operation.destination,
      tool: operation.tool,
      arguments: payload.arguments,
      requester: operation.requester,
      ...(operation.toolDigest === undefined ? {} : { toolDigest: operation.toolDigest }),
    };
    const draft =
      facts === undefined
        ? draftFromRecord(context, { operation, payload, call }, await this.#classNow(operation))
        : draftCall(context, call, facts);
    return this.#proposals.again(operation, draft, {
      reason: ask.reason,
      ...(isPerson ? { askedBy: ask.person } : {}),
    });
  }

  /** The class of an operation's tool: as a person has confirmed it since, else as it was. */
  async #classNow({ destination, tool, toolClass, toolDigest }: Operation): Promise<ToolClass> {
    const rule = await this.rule(destination, tool);
    return rule !== undefined && rule.toolDigest === toolDigest && rule.class !== 'read'
      ? rule.class
      : toolClass;
  }

  // ── What a destination tells by itself ───────────────────────────────────────────────────────────────────

  /**
   * A callback (webhook) of a destination: its signature is checked, and what it says is recorded as evidence about the
   * operation that it names, however late it comes. A repeated delivery is recorded once.
   * @throws {StoreFault} when nothing can be recorded now; the destination should deliver it again
   */
  async notice(notice: Notice): Promise<NoticeResult> {
    const opening = this.#context.whenReady();
    if (opening !== undefined) await opening;
    const { record, result } = await this.#notices.receive(notice);
    if (record !== undefined) this.#background(this.#sender.carryOn(record));
    return result;
  }

  // ── Deciding ─────────────────────────────────────────────────────────────────────────────────────────────

  /** One person's answer to the open review of an operation, on exactly the digest that was looked at. */
  async decideReview(decision: ReviewDecision): Promise<DecisionResult> {
    const context = this.#context;
    const record = await this.readings.record(decision.operation);
    const refused = this.#refusedReview(decision, record);
    if (record === undefined || refused !== undefined)
      return refused ?? { decided: false, refusal: 'not_found' };
    const { operation } = record;
    const { review } = operation;
    if (review === undefined) return { decided: false, refusal: 'no_open_review', operation };
    const digest = wholeDigest(review, decision.digest);
    const at = context.environment.now();
    const comment =
      decision.comment === undefined
        ? undefined
        : contentDocument(
            'comment',
            operation.id,
            Buffer.from(decision.comment, 'utf8'),
            context.environment.random(SALT_BYTES),
          );
    const rule = await this.#ruleOf(operation, decision, at);
    context.reached('before_decision_commit');
    const result = await takeStep(context, {
      id: operation.id,
      from: record,
      command: () => ({
        type: 'decide_review',
        review: review.id,
        digest,
        decision: {
          kind: decision.kind,
          by: decision.by,
          ...(decision.principal === undefined ? {} : { principal: decision.principal }),
          at,
          strength: decision.strength,
          ...(comment === undefined ? {} : { comment: comment.digest }),
        },
      }),
      ...(comment === undefined ? {} : { documents: [comment] }),
      ...(rule === undefined ? {} : { beside: async () => [await this.#ruleWrite(rule)] }),
    });
    if (!result.stored)
      return { decided: false, refusal: result.refusal, operation: result.record.operation };
    context.reached('decided');
    this.#worker.nudge(operation.id);
    return { decided: true, operation: result.record.operation, ...(rule === undefined ? {} : { rule }) };
  }

  /** Why a decision would not be taken as things stand; `undefined` when it would. Nothing is changed. */
  async refusalOf(
    decision: ReviewDecision,
  ): Promise<Extract<DecisionResult, { decided: false }> | undefined> {
    const record = await this.readings.record(decision.operation);
    const refused = this.#refusedReview(decision, record);
    if (refused !== undefined || record === undefined) return refused;
    const { operation } = record;
    const { review } = operation;
    const at = this.#context.environment.now();
    const judged = decide(
      operation,
      {
        type: 'decide_review',
        review: review?.id ?? '',
        digest: review === undefined ? '' : wholeDigest(review, decision.digest),
        decision: {
          kind: decision.kind,
          by: decision.by,
          ...(decision.principal === undefined ? {} : { principal: decision.principal }),
          at,
          strength: decision.strength,
        },
      },
      at,
    );
    return judged.refusal === undefined ? undefined : { decided: false, refusal: judged.refusal, operation };
  }

  #refusedReview(
    decision: ReviewDecision,
    record: OperationRecord | undefined,
  ): Extract<DecisionResult, { decided: false }> | undefined {
    if (record === undefined) return { decided: false, refusal: 'not_found' };
    const { operation } = record;
    const { review } = operation;
    if (review === undefined) return { decided: false, refusal: 'no_open_review', operation };
    if (decision.digest.length < DIGEST_PREFIX_MIN)
      return { decided: false, refusal: 'digest_too_short', operation };
    if (isAnotherReview(review, decision)) return { decided: false, refusal: 'review_differs', operation };
    if (decision.toolClass !== undefined && !asksForClass(review)) {
      return { decided: false, refusal: 'class_not_asked', operation };
    }
    const given =
      decision.kind === 'approved' && asksForClass(review) ? classGiven(operation, decision) : undefined;
    if (given === undefined) return undefined;
    // What is called irreversible from now on is so for this call as well; and a class that was given before is not
    // loosened by somebody who may be the agent.
    const isLooser = operation.classBefore !== undefined && isLooserClass(given, operation.classBefore);
    const isEnough = isStrongEnough(decision.strength, isLooser ? 'irreversible' : given);
    return isEnough ? undefined : { decided: false, refusal: 'strength_too_low', operation };
  }

  async #ruleOf(operation: Operation, decision: ReviewDecision, at: number): Promise<OwnerRule | undefined> {
    const { review } = operation;
    if (decision.kind !== 'approved' || review === undefined || !asksForClass(review)) return undefined;
    // Of several persons the last one says what the tool is.
    if (approvalsMissing(review) > 1) return undefined;
    // Without a digest of the tool nobody could tell that it is still the one that was classified.
    if (operation.toolDigest === undefined || operation.toolDigest === '') return undefined;
    const definition = await this.readings.toolDefinition(operation);
    return {
      destination: operation.destination,
      tool: operation.tool,
      toolDigest: operation.toolDigest,
      class: classGiven(operation, decision),
      by: decision.by,
      at,
      strength: decision.strength,
      ...(definition === undefined || definition.length > DEFINITION_MAX ? {} : { definition }),
    };
  }

  async #ruleWrite(rule: OwnerRule) {
    const stream = `rule:${rule.destination}/${rule.tool}`;
    const [record] = await this.#context.store.read(this.#context.tenant, [stream]);
    return {
      stream,
      expectedVersion: record?.version ?? 0,
      events: [{ type: 'confirmed', ...rule }] as unknown as readonly Json[],
      state: rule as unknown as Json,
    };
  }

  /** Every confirmed class, revoked ones with the instant of their end. */
  async rules(): Promise<readonly OwnerRule[]> {
    const records = await this.#context.store.streams({
      tenant: this.#context.tenant,
      kind: 'rule',
      limit: RULES_MAX,
    });
    return records.map((record) => record.state as unknown as OwnerRule);
  }

  /** The class that was confirmed for a tool, where one is in force. */
  async rule(destination: string, tool: string): Promise<OwnerRule | undefined> {
    const [record] = await this.#context.store.read(this.#context.tenant, [`rule:${destination}/${tool}`]);
    const rule = record?.state as unknown as OwnerRule | undefined;
    return rule?.revokedAt === undefined ? rule : undefined;
  }

  /**
   * The tool is unclassified again: its next call asks. What was confirmed as irreversible asked each time, so that
   * its end loosens something: then the same account is too little.
   */
  async revokeRule(
    destination: string,
    tool: string,
    by: string,
    strength: Strength,
  ): Promise<'revoked' | 'no_rule' | 'strength_too_low'> {
    const { environment, store, tenant } = this.#context;
    const stream = `rule:${destination}/${tool}`;
    const [record] = await store.read(tenant, [stream]);
    const rule = record?.state as unknown as OwnerRule | undefined;
    if (record === undefined || rule === undefined || rule.revokedAt !== undefined) return 'no_rule';
    if (!isStrongEnough(strength, rule.class)) return 'strength_too_low';
    const at = environment.now();
    const [result] = await store.commit([
      {
        tenant,
        at,
        writes: [
          {
            stream,
            expectedVersion: record.version,
            events: [{ type: 'revoked', by, at, strength }],
            state: { ...rule, revokedAt: at },
          },
        ],
      },
    ]);
    return result?.outcome === 'stored' ? 'revoked' : this.revokeRule(destination, tool, by, strength);
  }

  #background(work: Promise<void>): void {
    const tracked: Promise<void> = work
      .catch((cause: unknown) => this.#context.report(`A write could not be carried on: ${describe(cause)}`))
      .finally(() => this.#underWay.delete(tracked));
    this.#underWay.add(tracked);
  }

  /**
   * A key for one purpose, from the secret beside the store: every process of this data directory has the same.
   * @throws {StoreFault} while that secret cannot be read
   */
  keyFor(purpose: string): Uint8Array {
    const key = hkdfSync('sha256', this.#context.secret, new Uint8Array(), `counterfoil ${purpose}`, 32);
    return new Uint8Array(key);
  }

  /** A fresh identity for a worker of this ledger. */
  static newWorker(context: Pick<EngineContext, 'environment'>): string {
    return newId(context as EngineContext, 'wrk');
  }
}

/**
 * A review that takes the place of one that no longer held has the same digest: without its own id, what was said of the
 * earlier one would count for it.
 */
function isAnotherReview(review: Review, { digest, kind, review: looked }: ReviewDecision): boolean {
  if (looked !== undefined) return looked !== review.id;
  // A denial only makes less happen.
  if (kind === 'denied') return false;
  const isReplacement = review.because !== undefined && review.decision === undefined;
  return isReplacement && wholeDigest(review, digest) === review.digest;
}

function asksForClass({ question }: Review): boolean {
  return question === 'unclassified' || question === 'tool_changed';
}

function classGiven(operation: Operation, { toolClass }: ReviewDecision): Exclude<ToolClass, 'unclassified'> {
  return toolClass ?? operation.classBefore ?? 'ordinary';
}

const RULES_MAX = 1_000;
const DEFINITION_MAX = 64 * 1024;
const GIVEN_MAX = 10_000;

/** What a destination or a reviewer has said is told to whom it was said to: equal writes of others share nothing. */
function isForCaller({ requester }: Operation, { call }: Draft): boolean {
  return requester === call.requester;
}

/** An outcome is being established by itself: worth a short wait. */
function isOnItsWay(operation: Operation): boolean {
  if (operation.stage === 'sending' || operation.stage === 'checking' || operation.stage === 'proposed')
    return true;
  // Just allowed, and about to be claimed; or a refusal that is only for a moment.
  return operation.stage === 'ready' && (operation.why === undefined || operation.why.code === 'waits_until');
}
