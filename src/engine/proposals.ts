// From a call to an operation: the same one, its next occurrence, or a new one (D6).

import { questionNow } from '../core/authority.ts';
import { unansweredQuestion } from '../core/decide.ts';
import {
  crossRunPrefixes,
  type EqualCall,
  type Judgement,
  judgeEqualCall,
  judgeOtherRun,
  openPrefix,
} from '../core/intent.ts';
import type { Observed, Operation } from '../core/operation.ts';
import type { Verdict } from '../core/policy.ts';
import { type Ending, whyOf } from '../core/stop.ts';
import { StoreFault, type StreamId } from '../store/port.ts';
import { type EngineContext, newReview } from './context.ts';
import { type Draft, keysOf } from './draft.ts';
import { type Extras, FateUnknown, NewOperations } from './new-operations.ts';
import { readPayload, targetWords } from './payload.ts';
import { verdictOf } from './policy-judging.ts';
import { type OperationRecord, readLocks, readOperation, streamOf, withDelivery } from './records.ts';
import type { PreparedReview } from './reviews.ts';
import type { ResolvedRun, Runs } from './runs.ts';
import type { Sender, StartedAttempt } from './sender.ts';
import { takeStep } from './steps.ts';
import { WriteRate } from './write-rate.ts';

export type Proposed =
  /** A new operation; `started` when its first attempt is recorded and must now be handed over. */
  | { readonly answer: 'new'; readonly record: OperationRecord; readonly started?: StartedAttempt }
  /** An earlier operation as it stands. `isOwn`: of this run. */
  | { readonly answer: 'earlier'; readonly record: OperationRecord; readonly isOwn: boolean }
  | { readonly answer: 'already_exists'; readonly record: OperationRecord; readonly isOwn: boolean };

export type Again =
  | { readonly opened: true; readonly operation: Operation }
  /** Nothing is opened: that one is the latest, and is not done. */
  | { readonly opened: false; readonly stands: Operation };

/** After this many tries a proposal makes room for those that overtake it. */
const PATIENT_TRIES = 20;
const PAUSE_MS = 5;
/** How many entries of other runs are looked at; the strictest of them decides. */
const OTHER_RUNS_MAX = 16;
/** How far back a replay is looked for along the occurrences of an intent. */
const OCCURRENCES_MAX = 64;

function asksToGoOn(beside: NonNullable<Extras['beside']>): Pick<Extras, 'beside' | 'question'> {
  return { question: 'many_writes', beside };
}

/** The place of a call in its run: what every judgement needs. */
interface Place {
  readonly draft: Draft;
  readonly run: ResolvedRun;
  readonly keys: readonly string[];
  readonly at: number;
}

export class Proposals {
  readonly #context: EngineContext;
  readonly #runs: Runs;
  readonly #sender: Sender;
  readonly #new: NewOperations;
  readonly #rate: WriteRate;
  /** Call ids of equal calls that came together, by operation: recorded in one step, not one for each. */
  readonly #replays = new Map<
    string,
    { readonly seen: Set<string>; readonly stored: Promise<OperationRecord> }
  >();
  constructor(context: EngineContext, runs: Runs, sender: Sender) {
    this.#context = context;
    this.#runs = runs;
    this.#sender = sender;
    this.#new = new NewOperations(context, sender);
    this.#rate = new WriteRate(context);
  }

  /** @throws {StoreFault} when nothing could be recorded; nothing was sent then. @throws {FateUnknown} */
  async propose(draft: Draft): Promise<Proposed> {
    const { environment } = this.#context;
    const { call } = draft;
    // Without end: whoever overtakes has recorded something, so that all come through.
    for (let tries = 1; ; tries += 1) {
      if (tries > PATIENT_TRIES)
        await new Promise<void>((resolve) => environment.after(PAUSE_MS, resolve, true));
      const at = environment.now();
      const run = await this.#runs.resolve(call.run, call.requester, call.destination, at);
      const facts = await this.#sender.grants.applied(draft.facts, run.reference.id);
      const known = facts === draft.facts ? draft : { ...draft, facts };
      const place: Place = { draft: known, run, keys: keysOf(this.#context, draft, run), at };
      const proposed = await this.#proposeIn(place);
      if (proposed !== undefined) return proposed;
      this.#runs.forget(run);
    }
  }

  /** In `observe`: always a new operation, which says what `guard` would have done. @throws {StoreFault} @throws {FateUnknown} */
  async observe(draft: Draft): Promise<Proposed> {
    const { environment, store, tenant } = this.#context;
    const { call } = draft;
    for (;;) {
      const at = environment.now();
      const run = await this.#runs.resolve(call.run, call.requester, call.destination, at);
      const place: Place = { draft, run, keys: keysOf(this.#context, draft, run), at };
      const [claim] = await store.latestClaims(tenant, place.keys);
      const earlier = claim && (await readOperation(this.#context, claim.holder.slice(3)));
      const observed = await this.#wouldBe(place, earlier?.operation);
      const made = await this.#create(place, {
        sequence: claim === undefined ? 0 : claim.sequence + 1,
        observed,
        ...(earlier === undefined
          ? {}
          : { previous: { operation: earlier.operation.id, relation: 'occurrence' } }),
      });
      if (made !== undefined) return made;
      this.#runs.forget(run);
    }
  }

  /** What `guard` would have done with the call, from what is recorded alone: nobody waits for a look-up here. */
  async #wouldBe({ at, draft }: Place, earlier: Operation | undefined): Promise<Observed> {
    const { mode: _observe, ...guarded } = draft.facts;
    const question = questionNow(guarded);
    const send: Observed = question === undefined ? { guard: 'send' } : { guard: 'ask', question };
    if (earlier === undefined) return send;
    const judgement = judgeEqualCall(earlier, {
      at,
      replays: draft.call.replays ?? [],
      repeat: draft.facts.repeat,
      resumeWindowMs: this.#context.settings.resumeWindowMs,
      settledSince: await this.#isSettledSince(earlier),
      stillOurs: undefined,
      lookedUpAbsent: false,
    });
    switch (judgement.answer) {
      case 'attach':
      case 'already_exists':
        // Where that one was itself a repeat, both are answered with the first.
        return {
          guard: 'answer',
          operation: earlier.observed?.guard === 'answer' ? earlier.observed.operation : earlier.id,
        };
      case 'ask':
        return { guard: 'ask', question: judgement.question };
      case 'next_occurrence':
      case 'reopen':
      case 'look_up':
        return send;
    }
  }

  /** Arguments that do not fit the tool: recorded as not sent. @throws {StoreFault} */
  async refuseArguments(draft: Draft, problem: string): Promise<OperationRecord> {
    const { call } = draft;
    const at = this.#context.environment.now();
    const run = await this.#runs.resolve(call.run, call.requester, call.destination, at);
    return this.#new.refuseArguments(draft, run, problem);
  }

  /** `undefined`: overtaken by another commit; everything must be looked at again. */
  async #proposeIn(place: Place): Promise<Proposed | undefined> {
    const { store, tenant } = this.#context;
    const { keys, run } = place;
    // Asked together: nearly always there is neither, and then one snapshot has told so.
    const streams = this.#streamsOfOtherRuns(place);
    if (run.write === undefined || run.previous !== undefined) {
      const [claims] = await Promise.all([store.latestClaims(tenant, keys), streams]);
      const index = claims.findIndex((claim) => claim !== undefined);
      const claim = claims[index];
      if (claim !== undefined) {
        const earlier = await readOperation(this.#context, claim.holder.slice(3));
        if (earlier === undefined) throw new Error(`Assertion: ${claim.holder} has a claim and no row.`);
        // A claim of the rolled-over run counts here, but new ones are made in the present run.
        return this.#answerEqual(place, earlier, index === 0 ? claim.sequence + 1 : 0);
      }
    }
    return this.#answerOtherRun(place, await streams);
  }

  async #create(place: Place, extras: Extras): Promise<Proposed | undefined> {
    const { draft, run } = place;
    const stoppable = { ...draft.call, run: run.reference };
    const isEnded = run.cancelled !== undefined || this.#context.stops.over(stoppable) !== undefined;
    const isAsked = isEnded || extras.question !== undefined || extras.observed !== undefined;
    const goOn = isAsked ? undefined : await this.#rate.judge(place.draft, place.at);
    const made = await this.#new.create(place.draft, place.run, place.keys, {
      ...extras,
      ...(run.cancelled === undefined ? {} : { ended: run.cancelled }),
      ...(goOn === undefined || goOn.go ? {} : 'ask' in goOn ? asksToGoOn(goOn.ask) : { goOn: goOn.waitFor }),
    });
    if (made === undefined && goOn?.go === true) goOn.taken();
    return made === undefined ? undefined : { answer: 'new', ...made };
  }

  /**
   * An equal call is said to be really wanted once more: a review is opened for the next occurrence, or the
   * latest one is given as it stands, where that one is not done yet (D6).
   */
  async again(
    earlier: Operation,
    draft: Draft,
    asked: { readonly reason: string; readonly askedBy?: string },
  ): Promise<Again> {
    const { environment, store, tenant } = this.#context;
    const run: ResolvedRun = { reference: earlier.run, beganAt: earlier.proposedAt };
    for (;;) {
      const [claim] = await store.latestClaims(tenant, [earlier.intentKey]);
      const latest = claim && (await readOperation(this.#context, claim.holder.slice(3)));
      if (claim === undefined || latest === undefined) return { opened: false, stands: earlier };
      const { effect, id, stage } = latest.operation;
      const isDone = effect === 'accepted' || effect === 'verified' || effect === 'error_reported';
      if (stage !== 'closed' || !isDone) return { opened: false, stands: latest.operation };
      const place: Place = { draft, run, keys: [earlier.intentKey], at: environment.now() };
      const made = await this.#create(place, {
        sequence: claim.sequence + 1,
        question: 'again',
        ...asked,
        previous: { operation: id, relation: 'occurrence' },
      });
      if (made !== undefined) return { opened: true, operation: made.record.operation };
    }
  }

  // ── In the same run ──────────────────────────────────────────────────────────────────────────────────────

  async #answerEqual(
    place: Place,
    earlier: OperationRecord,
    nextSequence: number,
  ): Promise<Proposed | undefined> {
    const { draft } = place;
    const replayed = await this.#replayed(earlier.operation, draft);
    if (replayed !== undefined) return { answer: 'earlier', record: replayed, isOwn: true };
    const { operation } = withDelivery(this.#context, earlier);
    const judgement = await this.#judge(operation, place);
    // Another operation of this intent is under the same question, about the same earlier write, until a person
    // has answered it.
    const question = unansweredQuestion(operation);
    const asked = question === undefined ? undefined : operation.previous;
    const next: Extras = {
      sequence: nextSequence,
      judgedBy: earlier,
      previous: asked ?? { operation: operation.id, relation: 'occurrence' },
      ...(question === undefined ? {} : { question }),
    };
    switch (judgement.answer) {
      case 'attach':
        return { answer: 'earlier', record: await this.#withReplay(earlier, draft), isOwn: true };
      case 'already_exists':
        return { answer: 'already_exists', record: earlier, isOwn: true };
      case 'reopen':
        // The same intent in another text: a new round would send the old one.
        return operation.argumentsDigest === draft.argumentsDigest
          ? this.#reopen(place, earlier)
          : this.#create(place, next);
      case 'next_occurrence':
        return this.#create(place, next);
      case 'ask':
        return this.#create(place, { ...next, question: judgement.question });
      case 'look_up':
        throw new Error('Assertion: the judge was given what a look-up found.');
    }
  }

  async #judge(operation: Operation, { at, draft }: Place): Promise<Judgement> {
    const { arguments: args, replays = [] } = draft.call;
    const call: EqualCall = {
      at,
      replays,
      repeat: draft.facts.repeat,
      resumeWindowMs: this.#context.settings.resumeWindowMs,
      settledSince: await this.#isSettledSince(operation),
      stillOurs: undefined,
    };
    const judgement = judgeEqualCall(operation, call);
    if (judgement.answer === 'already_exists' && call.repeat === 'state') {
      const stillOurs = await this.#sender.isStillOurs(operation, draft.facts, args);
      return judgeEqualCall(operation, { ...call, stillOurs });
    }
    if (judgement.answer === 'look_up') {
      const lookedUpAbsent = await this.#sender.isProvenAbsent(operation, draft.facts, args);
      return judgeEqualCall(operation, { ...call, lookedUpAbsent });
    }
    return judgement;
  }

  async #isSettledSince(operation: Operation): Promise<boolean> {
    const locks = await readLocks(this.#context.store, this.#context.tenant, operation.target?.locks);
    return locks.some((lock) => lock.state.lastSettled !== operation.id || lock.state.holder !== null);
  }

  /** An orchestrator that resumes replays every occurrence, not only the latest. */
  async #replayed(latest: Operation, draft: Draft): Promise<OperationRecord | undefined> {
    const replays = draft.call.replays ?? [];
    if (replays.length === 0 || isReplayOf(latest, replays)) return undefined;
    let before = latest.previous;
    for (let seen = 0; before?.relation === 'occurrence' && seen < OCCURRENCES_MAX; seen += 1) {
      const record = await readOperation(this.#context, before.operation);
      if (record === undefined) return undefined;
      if (isReplayOf(record.operation, replays)) return isTakenBack(record.operation) ? undefined : record;
      before = record.operation.previous;
    }
    return undefined;
  }

  /** A new call id or position of the same intent is kept, so that its replay can be told later. */
  async #withReplay(earlier: OperationRecord, draft: Draft): Promise<OperationRecord> {
    const unseen = (draft.call.replays ?? []).find((replay) => !earlier.operation.replays.includes(replay));
    if (unseen === undefined || earlier.operation.stage === 'closed') return earlier;
    const { id } = earlier.operation;
    let gathering = this.#replays.get(id);
    if (gathering === undefined) {
      const seen = new Set<string>();
      gathering = { seen, stored: this.#recordReplays(id, seen) };
      this.#replays.set(id, gathering);
    }
    gathering.seen.add(unseen);
    try {
      return await gathering.stored;
    } catch (cause) {
      // The note is for later; the operation is there, and that is what the caller must be told.
      if (cause instanceof StoreFault) return earlier;
      throw cause;
    }
  }

  async #recordReplays(id: string, seen: ReadonlySet<string>): Promise<OperationRecord> {
    // One turn for the calls that are being read now.
    await new Promise<void>((resolve) => setImmediate(resolve));
    this.#replays.delete(id);
    const result = await takeStep(this.#context, {
      id,
      command: () => ({ type: 'see_replays', replays: [...seen] }),
    });
    return result.record;
  }

  /**
   * A new round. On a declared step it is a proposal like any other: it takes the place of the latest one. `undefined`:
   * the earlier one is no longer what it was judged by, and another may have taken its place.
   */
  async #reopen(place: Place, earlier: OperationRecord): Promise<Proposed | undefined> {
    const context = this.#context;
    const { draft } = place;
    const { id, intentKey } = earlier.operation;
    // Asked after it was read: whatever comes from here on moves its version.
    const [latest] = await context.store.latestClaims(context.tenant, [intentKey]);
    if (latest?.holder !== streamOf(id)) return undefined;
    // No commit requires its row here: it may have been cancelled since it was remembered.
    this.#runs.forget(place.run);
    const { call } = draft;
    const run = await this.#runs.resolve(call.run, call.requester, call.destination, place.at);
    const step = await this.#new.stepOf(draft, run);
    const replaced =
      step?.earlier !== undefined && step.earlier.operation.id !== id ? step.earlier.operation.id : undefined;
    if (replaced !== undefined) {
      const withdrawn = await takeStep(context, {
        id: replaced,
        command: () => ({ type: 'supersede', by: id }),
      });
      if (withdrawn.stored) this.#sender.onFreed(withdrawn.freed);
    }
    const verdict = verdictOf(draft, run.reference);
    const prepared = await this.#preparedReview(earlier.operation, draft, verdict);
    const reopening = takeStep(context, {
      id,
      documents: prepared.documents,
      from: earlier,
      onlyAt: earlier.version,
      command: () => ({
        type: 'reopen',
        by: 'caller',
        facts: draft.facts,
        newReview: prepared.review,
        verdict,
        ended: this.#endingNow(earlier.operation, run),
        ...(replaced === undefined ? {} : { supersedes: replaced }),
      }),
      ...(step === undefined || replaced === undefined
        ? {}
        : { beside: async () => [await this.#new.pointerTo(step.stream, id)] }),
    });
    const result = await reopening.catch((cause: unknown) => this.#reopenedAfterAll(earlier, cause));
    if (!result.stored && result.refusal === 'changed') return undefined;
    // Whoever asked for the new round waits for it as for a first one.
    return result.stored
      ? { answer: 'new', record: result.record }
      : { answer: 'earlier', record: result.record, isOwn: true };
  }

  /** What a round that is asked for now would end by at once. */
  #endingNow(operation: Operation, { cancelled }: ResolvedRun): Ending | undefined {
    const stopped = this.#context.stops.over(operation);
    return cancelled ?? (stopped && whyOf(stopped));
  }

  /** What a person is shown, where the new round asks one. */
  async #preparedReview(
    operation: Operation,
    { call, facts }: Draft,
    verdict: Verdict | undefined,
  ): Promise<PreparedReview> {
    const review = newReview(this.#context, this.#context.environment.now());
    const isAsked = (unansweredQuestion(operation) ?? questionNow(facts, verdict)) !== undefined;
    if (!isAsked) return { review, documents: [] };
    const { target, text } = await readPayload(this.#context, operation);
    const { review: _earlier, ...proposed } = operation;
    const shown = { operation: proposed, payload: text, target: targetWords(target), facts };
    return this.#sender.reviews.prepare(
      review,
      shown,
      await this.#sender.reviews.seen(facts, call.arguments),
    );
  }

  /** After a COMMIT of unknown fate: the new round is there, or nothing of it was recorded. */
  async #reopenedAfterAll(
    earlier: OperationRecord,
    cause: unknown,
  ): Promise<{ readonly stored: true; readonly record: OperationRecord }> {
    if (!(cause instanceof StoreFault) || cause.fate !== 'unknown') throw cause;
    const { id, round } = earlier.operation;
    const present = await readOperation(this.#context, id).catch(() => {
      throw new FateUnknown(id, cause);
    });
    if (present !== undefined && present.operation.round > round) return { stored: true, record: present };
    throw new StoreFault(cause.code, cause.message, { fate: 'not_stored', cause });
  }

  // ── In other runs ────────────────────────────────────────────────────────────────────────────────────────

  async #answerOtherRun(place: Place, streams: readonly StreamId[]): Promise<Proposed | undefined> {
    const { draft } = place;
    const others = await this.#others(place, streams);
    const judged: { readonly record: OperationRecord; readonly answer: string }[] = [];
    for (const record of others)
      judged.push({ record, answer: await this.#judgeOther(record.operation, place) });
    const strictest = STRICTEST_FIRST.flatMap((answer) => judged.filter((one) => one.answer === answer))[0];
    if (strictest === undefined) return this.#create(place, { sequence: 0 });
    const { answer, record } = strictest;
    const previous = { operation: record.operation.id, relation: 'other_run' } as const;
    // `free` work of another run is not ours to join: five agents may well append the same line.
    if (answer === 'attach' && draft.facts.repeat !== 'free')
      return { answer: 'earlier', record, isOwn: false };
    if (answer === 'already_exists') return { answer: 'already_exists', record, isOwn: false };
    return this.#create(place, {
      sequence: 0,
      previous,
      ...(answer === 'ask' ? { question: 'same_work' as const } : {}),
    });
  }

  /** Where the same intent may be found in any run: whatever is open, and what was made within the window. */
  #streamsOfOtherRuns({ at, draft }: Place): Promise<readonly StreamId[]> {
    const { settings, store, tenant } = this.#context;
    const { crossRunHash } = draft;
    // The window first: work that was open once leaves its entry behind.
    const prefixes = crossRunPrefixes(crossRunHash, at, settings.crossRunWindowMs);
    return store.crossRun(tenant, [...prefixes, openPrefix(crossRunHash)], OTHER_RUNS_MAX);
  }

  async #others({ draft, run }: Place, streams: readonly StreamId[]): Promise<readonly OperationRecord[]> {
    const { crossRunHash } = draft;
    const names = new Set(streams.map((stream) => stream.slice(3)));
    const others: OperationRecord[] = [];
    // What is added on the way is looked at too.
    for (const name of names) {
      const record = await readOperation(this.#context, name);
      if (record === undefined) continue;
      const { previous, run: itsRun } = record.operation;
      if (record.operation.crossRunHash !== crossRunHash) continue;
      // However many runs were refused since, each of them names the one that was made.
      if (previous?.relation === 'other_run' && names.size < 2 * OTHER_RUNS_MAX)
        names.add(previous.operation);
      if (itsRun.id !== run.reference.id) others.push(record);
    }
    return others;
  }

  async #judgeOther(operation: Operation, { at, draft }: Place): Promise<string> {
    const { crossRunWindowMs, resumeWindowMs } = this.#context.settings;
    const call: EqualCall = {
      at,
      replays: [],
      repeat: draft.facts.repeat,
      resumeWindowMs,
      settledSince: await this.#isSettledSince(operation),
      stillOurs: undefined,
    };
    const judgement = judgeOtherRun(operation, call, crossRunWindowMs);
    if (judgement.answer !== 'already_exists' || call.repeat !== 'state') return judgement.answer;
    const stillOurs = await this.#sender.isStillOurs(operation, draft.facts, draft.call.arguments);
    return judgeOtherRun(operation, { ...call, stillOurs }, crossRunWindowMs).answer;
  }
}

function isReplayOf(operation: Operation, replays: readonly string[]): boolean {
  return replays.some((replay) => operation.replays.includes(replay));
}

/** Its caller asked for no answer, so that a later one may be given to the same call. */
function isTakenBack(operation: Operation): boolean {
  return operation.why?.code === 'withdrawn_by_caller';
}

/** One entry must not hide another: of all that are found, the most careful answer is given. */
const STRICTEST_FIRST = ['attach', 'ask', 'already_exists', 'new_and_linked'];
