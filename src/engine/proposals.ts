// From a call to an operation: the same one, its next occurrence, or a new one (D6) — in one commit, together
// with its claim, and with the attempt's start where nothing stands against sending at once.

import type { Command } from '../core/decide.ts';
import { decide, decided } from '../core/decide.ts';
import { sha256Hex } from '../core/digest.ts';
import { type EqualCall, type Judgement, judgeEqualCall, judgeOtherRun, stepName } from '../core/intent.ts';
import { lockAfter, lockedBy } from '../core/locks.ts';
import {
  evolveAll,
  isUnsettled,
  type Operation,
  type OperationEvent,
  type Proposal,
  type ReviewQuestion,
} from '../core/operation.ts';
import type { StreamWrite } from '../store/port.ts';
import { type EngineContext, newId, SALT_BYTES } from './context.ts';
import { crossRunKeysOf, type Draft, keysOf, payloadText } from './draft.ts';
import { digestOf, readPayload } from './payload.ts';
import {
  contentDocument,
  type LockRecords,
  type OperationRecord,
  readLocks,
  readOperation,
  streamOf,
  writesOf,
} from './records.ts';
import type { ResolvedRun, Runs } from './runs.ts';
import type { Sender, StartedAttempt } from './sender.ts';
import { takeStep } from './steps.ts';

export type Proposed =
  /** A new operation; `started` when its first attempt is recorded and must now be handed over. */
  | { readonly answer: 'new'; readonly record: OperationRecord; readonly started?: StartedAttempt }
  /** An earlier operation as it stands. `isOwn`: of this run. */
  | { readonly answer: 'earlier'; readonly record: OperationRecord; readonly isOwn: boolean }
  | { readonly answer: 'already_exists'; readonly record: OperationRecord; readonly isOwn: boolean };

interface Extras {
  readonly sequence: number;
  readonly question?: ReviewQuestion;
  readonly previous?: Operation['previous'];
}

/** The latest proposal on a declared step, as just read. */
interface StepPointer {
  readonly stream: string;
  readonly version: number;
  readonly earlier: OperationRecord | undefined;
}

const TRIES_MAX = 100;

export class Proposals {
  readonly #context: EngineContext;
  readonly #runs: Runs;
  readonly #sender: Sender;
  /** Call ids of equal calls that came together, by operation: recorded in one step, not one for each. */
  readonly #replays = new Map<
    string,
    { readonly seen: Set<string>; readonly stored: Promise<OperationRecord> }
  >();
  readonly #isDelivered: (operation: Operation) => boolean;

  constructor(
    context: EngineContext,
    runs: Runs,
    sender: Sender,
    isDelivered: (operation: Operation) => boolean,
  ) {
    this.#context = context;
    this.#runs = runs;
    this.#sender = sender;
    this.#isDelivered = isDelivered;
  }

  /** @throws {StoreFault} when nothing could be recorded; nothing was sent then. */
  async propose(draft: Draft): Promise<Proposed> {
    const context = this.#context;
    for (let tries = 0; tries < TRIES_MAX; tries += 1) {
      const at = context.environment.now();
      const { call } = draft;
      const run = await this.#runs.resolve(call.run, call.requester, call.destination, at);
      const proposed = await this.#proposeIn(draft, run, at);
      if (proposed !== undefined) return proposed;
      this.#runs.forget(run);
    }
    throw new Error(`Assertion: a proposal was overtaken ${TRIES_MAX} times.`);
  }

  /** `undefined`: overtaken by another commit; everything must be looked at again. */
  async #proposeIn(draft: Draft, run: ResolvedRun, at: number): Promise<Proposed | undefined> {
    const context = this.#context;
    const keys = keysOf(context, draft, run);
    if (run.write === undefined || run.previous !== undefined) {
      const claims = await context.store.latestClaims(context.tenant, keys);
      const index = claims.findIndex((claim) => claim !== undefined);
      const claim = claims[index];
      if (claim !== undefined) {
        const earlier = await readOperation(context.store, context.tenant, claim.holder.slice(3));
        if (earlier === undefined) throw new Error(`Assertion: ${claim.holder} has a claim and no row.`);
        // A claim of the rolled-over run counts here, but new ones are made in the present run.
        return this.#answerEqual(draft, run, keys, earlier, index === 0 ? claim.sequence + 1 : 0, at);
      }
    }
    return this.#answerOtherRun(draft, run, keys, at);
  }

  async #answerEqual(
    draft: Draft,
    run: ResolvedRun,
    keys: readonly string[],
    earlier: OperationRecord,
    nextSequence: number,
    at: number,
  ): Promise<Proposed | undefined> {
    const operation = this.#withDelivery(earlier.operation);
    const judgement = await this.#judge(operation, draft, at);
    switch (judgement.answer) {
      case 'attach':
        return { answer: 'earlier', record: await this.#withReplay(earlier, draft), isOwn: true };
      case 'already_exists':
        return { answer: 'already_exists', record: earlier, isOwn: true };
      case 'reopen':
        return this.#reopen(draft, earlier);
      case 'next_occurrence':
        return this.#create(draft, run, keys, at, {
          sequence: nextSequence,
          previous: { operation: operation.id, relation: 'occurrence' },
        });
      case 'ask':
        return this.#create(draft, run, keys, at, {
          sequence: nextSequence,
          question: judgement.question,
          previous: { operation: operation.id, relation: 'occurrence' },
        });
      case 'look_up':
        throw new Error('Assertion: the judge was given what a look-up found.');
    }
  }

  async #judge(operation: Operation, draft: Draft, at: number): Promise<Judgement> {
    const call: EqualCall = {
      at,
      replays: draft.call.replays ?? [],
      repeat: draft.facts.repeat,
      resumeWindowMs: this.#context.settings.resumeWindowMs,
      settledSince: await this.#isSettledSince(operation),
      stillOurs: undefined,
    };
    const judgement = judgeEqualCall(operation, call);
    if (judgement.answer === 'already_exists' && call.repeat === 'state') {
      const stillOurs = await this.#sender.isStillOurs(operation, draft.facts, draft.call.arguments);
      return judgeEqualCall(operation, { ...call, stillOurs });
    }
    // Without a look-up made now, an error leaves the question open: a person answers it.
    if (judgement.answer === 'look_up') return judgeEqualCall(operation, { ...call, lookedUpAbsent: false });
    return judgement;
  }

  async #isSettledSince(operation: Operation): Promise<boolean> {
    const locks = await readLocks(this.#context.store, this.#context.tenant, operation.target?.locks);
    return locks.some((lock) => lock.state.lastSettled !== operation.id || lock.state.holder !== null);
  }

  async #answerOtherRun(
    draft: Draft,
    run: ResolvedRun,
    keys: readonly string[],
    at: number,
  ): Promise<Proposed | undefined> {
    const context = this.#context;
    const entries = await context.store.crossRun(context.tenant, crossRunKeysOf(context, draft, at), 1);
    const entry = entries[0];
    if (entry === undefined) return this.#create(draft, run, keys, at, { sequence: 0 });
    const earlier = await readOperation(context.store, context.tenant, entry.stream.slice(3));
    if (earlier === undefined || earlier.operation.run.id === run.reference.id) {
      return this.#create(draft, run, keys, at, { sequence: 0 });
    }
    const previous = { operation: earlier.operation.id, relation: 'other_run' } as const;
    const call: EqualCall = {
      at,
      replays: [],
      repeat: draft.facts.repeat,
      resumeWindowMs: context.settings.resumeWindowMs,
      settledSince: await this.#isSettledSince(earlier.operation),
      stillOurs: undefined,
    };
    let judgement = judgeOtherRun(earlier.operation, call, context.settings.crossRunWindowMs);
    if (judgement.answer === 'already_exists' && call.repeat === 'state') {
      const stillOurs = await this.#sender.isStillOurs(earlier.operation, draft.facts, draft.call.arguments);
      judgement = judgeOtherRun(earlier.operation, { ...call, stillOurs }, context.settings.crossRunWindowMs);
    }
    switch (judgement.answer) {
      case 'attach':
        // `free` work of another run is not ours to join: five agents may well append the same line.
        if (draft.facts.repeat === 'free')
          return this.#create(draft, run, keys, at, { sequence: 0, previous });
        return { answer: 'earlier', record: earlier, isOwn: false };
      case 'already_exists':
        return { answer: 'already_exists', record: earlier, isOwn: false };
      case 'ask':
        return this.#create(draft, run, keys, at, { sequence: 0, question: judgement.question, previous });
      case 'new_and_linked':
        return this.#create(draft, run, keys, at, { sequence: 0, previous });
    }
  }

  #withDelivery(operation: Operation): Operation {
    if (operation.deliveredAt !== undefined || !this.#isDelivered(operation)) return operation;
    return { ...operation, deliveredAt: this.#context.environment.now() };
  }

  /** A new call id or position of the same intent is kept, so that its replay can be told later. */
  async #withReplay(earlier: OperationRecord, draft: Draft): Promise<OperationRecord> {
    const unseen = (draft.call.replays ?? []).find((replay) => !earlier.operation.replays.includes(replay));
    if (unseen === undefined || earlier.operation.stage === 'closed') return earlier;
    const { id } = earlier.operation;
    const gathering = this.#replays.get(id);
    if (gathering !== undefined) {
      gathering.seen.add(unseen);
      return gathering.stored;
    }
    const seen = new Set([unseen]);
    const stored = this.#recordReplays(id, seen);
    this.#replays.set(id, { seen, stored });
    return stored;
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

  async #reopen(draft: Draft, earlier: OperationRecord): Promise<Proposed> {
    const context = this.#context;
    const result = await takeStep(context, {
      id: earlier.operation.id,
      command: () => ({
        type: 'reopen',
        by: 'caller',
        facts: draft.facts,
        newReview: this.#newReview(context.environment.now()),
      }),
    });
    // Whoever asked for the new round waits for it as for a first one.
    return result.stored
      ? { answer: 'new', record: result.record }
      : { answer: 'earlier', record: result.record, isOwn: true };
  }

  #newReview(at: number): { readonly id: string; readonly expiresAt: number } {
    return { id: newId(this.#context, 'rev'), expiresAt: at + this.#context.settings.approvalLifetimeMs };
  }

  // ── A new operation ──────────────────────────────────────────────────────────────────────────────────────

  async #create(
    draft: Draft,
    run: ResolvedRun,
    keys: readonly string[],
    at: number,
    extras: Extras,
  ): Promise<Proposed | undefined> {
    const context = this.#context;
    const step = await this.#stepOf(draft, run);
    const made = this.#proposal(draft, run, keys[0] ?? '', extras, step?.earlier?.operation.id);
    const withdrawn = await this.#withdrawn(step, made.proposal.id, at);
    const locks = merged(
      await readLocks(context.store, context.tenant, made.proposal.target?.locks),
      withdrawn.locks,
    );
    const first = this.#firstEvents(draft, made.proposal, locks, step?.earlier, extras, at);
    const { events } = first;
    const attempt = events.find((event) => event.type === 'attempt_started');
    context.reached('before_propose_commit');
    const notedAt = context.environment.monotonic();
    const { operation, writes } = writesOf({
      before: undefined,
      events,
      after: first.operation,
      locks,
      worker: context.worker,
    });
    const superseded = withdrawn.writes.filter((write) => !writes.some((own) => own.stream === write.stream));
    const [result] = await context.store.commit([
      {
        tenant: context.tenant,
        at,
        writes: [...writes, ...superseded, ...(run.write === undefined ? [] : [run.write])],
        claims: [{ key: made.proposal.intentKey, sequence: extras.sequence, holder: streamOf(operation.id) }],
        documents: made.documents,
        crossRun: [{ key: crossRunKeysOf(context, draft, at)[0] ?? '', stream: streamOf(operation.id) }],
        ...(run.requires === undefined ? {} : { requires: [run.requires] }),
      },
    ]);
    if (result?.outcome !== 'stored') return undefined;
    context.reached('proposed');
    const record: OperationRecord = { version: 1, operation };
    context.waiters.publish(record);
    if (attempt === undefined) return { answer: 'new', record };
    const started: StartedAttempt = {
      record,
      attempt: attempt.attempt.id,
      payload: made.payload,
      facts: draft.facts,
      notedAt,
      ...(draft.call.meta === undefined ? {} : { meta: draft.call.meta }),
    };
    return { answer: 'new', record, started };
  }

  #proposal(draft: Draft, run: ResolvedRun, key: string, extras: Extras, supersedes: string | undefined) {
    const context = this.#context;
    const { call, facts } = draft;
    const id = newId(context, 'op');
    const stamp = facts.stamp === undefined ? undefined : id;
    const payload = payloadText(draft, stamp);
    const payloadSha256 = payload === draft.argumentsText ? draft.argumentsDigest : sha256Hex(payload);
    const bytes = Buffer.from(payload, 'utf8');
    const salt = (): Uint8Array => context.environment.random(SALT_BYTES);
    const payloadDocument = contentDocument('payload', id, bytes, salt());
    const documents = [payloadDocument];
    let target: Proposal['target'];
    if (draft.target !== undefined) {
      const document = contentDocument('target', id, Buffer.from(JSON.stringify(draft.target)), salt());
      documents.push(document);
      target = { locks: draft.locks, document: document.digest };
    }
    const proposal: Proposal = {
      id,
      tenant: context.tenant,
      run: run.reference,
      requester: call.requester,
      destination: call.destination,
      tool: call.tool,
      toolClass: facts.class,
      repeat: facts.repeat,
      factsDigest: facts.digest,
      intentKey: key,
      sequence: extras.sequence,
      argumentsDigest: draft.argumentsDigest,
      payload: { document: payloadDocument.digest, sha256: payloadSha256, bytes: bytes.length },
      digest: digestOf({
        tenant: context.tenant,
        destination: call.destination,
        tool: call.tool,
        requester: call.requester,
        payloadSha256,
        target: draft.target,
      }),
      replays: call.replays ?? [],
      ...(facts.contract === undefined
        ? {}
        : { contract: `${facts.contract.id}@${facts.contract.revision}` }),
      ...(call.toolDigest === undefined ? {} : { toolDigest: call.toolDigest }),
      ...(target === undefined ? {} : { target }),
      ...(stamp === undefined ? {} : { stamp }),
      ...(supersedes === undefined ? {} : { supersedes }),
      ...(extras.previous === undefined ? {} : { previous: extras.previous }),
    };
    return { proposal, payload, documents };
  }

  /** Proposed, allowed or asked, and started where nothing stands against it. */
  #firstEvents(
    draft: Draft,
    proposal: Proposal,
    locks: LockRecords,
    predecessor: OperationRecord | undefined,
    extras: Extras,
    at: number,
  ): { readonly events: readonly OperationEvent[]; readonly operation: Operation } {
    const context = this.#context;
    // At most one of the two decisions below opens it.
    const newReview = this.#newReview(at);
    const command: Command = {
      type: 'propose',
      proposal,
      facts: draft.facts,
      newReview,
      ...(extras.question === undefined ? {} : { question: extras.question }),
    };
    const proposed = decide(undefined, command, at);
    const operation = decided(undefined, proposed);
    if (operation === undefined || proposed.events === undefined) {
      throw new Error('Assertion: a proposal of nothing before it was refused.');
    }
    if (operation.stage !== 'ready') return { events: proposed.events, operation };
    const destination = context.destinations.get(proposal.destination);
    const isConnected = destination?.isConnected() === true;
    // Connecting takes time that no claim should be held for: the sender does it, and claims then.
    if (!isConnected) return { events: proposed.events, operation };
    const lock = locks.find((one) => lockedBy(one.state, operation.id) !== undefined);
    const started = decide(
      operation,
      {
        type: 'start_attempt',
        attempt: {
          id: newId(context, 'att'),
          worker: context.worker,
          startedAt: at,
          sendBy: at + context.settings.bounds.sendByMs,
        },
        newReview,
        conditions: {
          at,
          facts: draft.facts,
          bounds: context.settings.bounds,
          digest: proposal.digest,
          connected: true,
          connectionDetail: '',
          lockedBy: lock === undefined ? undefined : lockedBy(lock.state, operation.id),
          unsettledPredecessor:
            predecessor !== undefined && isUnsettled(predecessor.operation)
              ? predecessor.operation.id
              : undefined,
        },
      },
      at,
    );
    if (started.events === undefined) return { events: proposed.events, operation };
    return {
      events: [...proposed.events, ...started.events],
      operation: evolveAll(operation, started.events) ?? operation,
    };
  }

  // ── Changed proposals on a declared step ─────────────────────────────────────────────────────────────────

  async #stepOf(draft: Draft, run: ResolvedRun): Promise<StepPointer | undefined> {
    const context = this.#context;
    const stream = stepName(context.secret, context.tenant, run.reference, draft.call.tool, draft.locks);
    if (stream === undefined) return undefined;
    const [row] = await context.store.read(context.tenant, [stream]);
    if (row === undefined) return { stream, version: 0, earlier: undefined };
    const id = (row.state as { readonly operation: string }).operation;
    const earlier = await readOperation(context.store, context.tenant, id);
    return { stream, version: row.version, earlier };
  }

  /** What takes the place of the step's earlier proposal: the pointer, its withdrawal, and its place in lines. */
  async #withdrawn(
    step: StepPointer | undefined,
    by: string,
    at: number,
  ): Promise<{ readonly writes: readonly StreamWrite[]; readonly locks: LockRecords }> {
    if (step === undefined) return { writes: [], locks: [] };
    const pointer: StreamWrite = {
      stream: step.stream,
      expectedVersion: step.version,
      events: [],
      state: { operation: by },
    };
    const { earlier } = step;
    if (earlier === undefined) return { writes: [pointer], locks: [] };
    const decision = decide(earlier.operation, { type: 'supersede', by }, at);
    if (decision.events === undefined) return { writes: [pointer], locks: [] };
    const context = this.#context;
    const locks = await readLocks(context.store, context.tenant, earlier.operation.target?.locks);
    const { operation, writes } = writesOf({
      before: earlier,
      events: decision.events,
      locks,
      worker: context.worker,
    });
    return {
      writes: [pointer, ...writes],
      locks: locks.map((lock) => ({ ...lock, state: lockAfter(lock.state, operation) })),
    };
  }

  // ── Arguments that do not fit the tool ───────────────────────────────────────────────────────────────────

  /** Recorded as not sent; no claim is taken, so that the corrected or repeated call is judged by itself. */
  async refuseArguments(draft: Draft, problem: string): Promise<OperationRecord> {
    const context = this.#context;
    const at = context.environment.now();
    const { call } = draft;
    const run = await this.#runs.resolve(call.run, call.requester, call.destination, at);
    const made = this.#proposal(draft, run, keysOf(context, draft, run)[0] ?? '', { sequence: 0 }, undefined);
    const document = contentDocument(
      'problem',
      made.proposal.id,
      Buffer.from(problem, 'utf8'),
      context.environment.random(SALT_BYTES),
    );
    const decision = decide(
      undefined,
      { type: 'refuse_arguments', proposal: made.proposal, problem: document.digest },
      at,
    );
    const { operation, writes } = writesOf({
      before: undefined,
      events: decision.events ?? [],
      locks: [],
      worker: context.worker,
    });
    await context.store.commit([
      { tenant: context.tenant, at, writes, documents: [...made.documents, document] },
    ]);
    return { version: 1, operation };
  }

  /** The arguments that an earlier operation was made from, for telling what is different now. */
  async argumentsOf(operation: Operation) {
    return (await readPayload(this.#context, operation)).arguments;
  }
}

/** Locks as they are once an earlier operation of the same commit has left their lines. */
function merged(locks: LockRecords, changed: LockRecords): LockRecords {
  return locks.map((lock) => changed.find((other) => other.stream === lock.stream) ?? lock);
}
