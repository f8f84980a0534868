// A new operation: its proposal, its authority, its claim, and the start of its first attempt where nothing
// stands against sending at once — all in one commit.

import { allowanceOf } from '../core/allowance.ts';
import type { ContentDigest } from '../core/attempt.ts';
import { questionNow } from '../core/authority.ts';
import { type Command, decide, decided } from '../core/decide.ts';
import { sha256Hex } from '../core/digest.ts';
import { crossRunKey, stepName } from '../core/intent.ts';
import { lockAfter, lockedBy } from '../core/locks.ts';
import {
  evolveAll,
  isUnsettled,
  mayBeAskedAnew,
  type Operation,
  type OperationEvent,
  type Proposal,
  type ReviewQuestion,
} from '../core/operation.ts';
import { recordedVerdict, type Verdict } from '../core/policy.ts';
import type { SeenState } from '../core/review-text.ts';
import { type Ending, whyOf } from '../core/stop.ts';
import {
  type Change,
  type ContentDocument,
  type Requirement,
  StoreFault,
  type StreamWrite,
} from '../store/port.ts';
import { type EngineContext, newId, newReview, SALT_BYTES, scopeNow } from './context.ts';
import { type Draft, keysOf, payloadText } from './draft.ts';
import { digestOf, targetWords } from './payload.ts';
import { judgeProposal } from './policy-judging.ts';
import {
  contentDocument,
  type LockRecords,
  type OperationRecord,
  openEntries,
  readLocks,
  readOperation,
  streamOf,
  writesOf,
} from './records.ts';
import type { ResolvedRun } from './runs.ts';
import type { Sender, StartedAttempt } from './sender.ts';
import { STOPS_STREAM } from './stops-in-force.ts';

export interface Extras {
  readonly sequence: number;
  readonly question?: ReviewQuestion;
  readonly previous?: Operation['previous'];
  /** The earlier one by which this was judged to be another: it must be as it was (I2). */
  readonly judgedBy?: OperationRecord;
  readonly observed?: Operation['observed'];
  /** After many writes: it waits for what is decided with that operation. */
  readonly goOn?: string;
  /** Another stream of the same commit, once the operation has its name. */
  readonly beside?: (operation: string) => StreamWrite;
  /** Nothing is sent where it belongs: it is recorded, and closed at once. */
  readonly ended?: Ending;
  /** Why its caller wants a second one, or the person who asks in its place. */
  readonly reason?: string;
  readonly askedBy?: string;
}

/** `started` when the first attempt is recorded and must now be handed over. */
export interface NewOperation {
  readonly record: OperationRecord;
  readonly started?: StartedAttempt;
}

/** A proposal as it was made, and what is needed to open its review. */
interface Begun {
  readonly proposal: Proposal;
  readonly payload: string;
  readonly seen: SeenState | undefined;
  readonly predecessor: OperationRecord | undefined;
  readonly verdict: Verdict | undefined;
  /** Something is to be asked before it is sent: the sender does that. */
  readonly isHeldBack: boolean;
}

interface FirstEvents {
  readonly events: readonly OperationEvent[];
  readonly operation: Operation;
  readonly documents: readonly ContentDocument[];
}

/** The latest proposal on a declared step, as just read. */
export interface StepPointer {
  readonly stream: string;
  readonly version: number;
  readonly earlier: OperationRecord | undefined;
}

/** Whether a commit whose fate was unknown has been stored cannot be read either. */
export class FateUnknown extends Error {
  override readonly name = 'FateUnknown';
  readonly operation: string;
  constructor(operation: string, cause: unknown) {
    super(`Whether ${operation} was recorded is not known.`, { cause });
    this.operation = operation;
  }
}

export class NewOperations {
  readonly #context: EngineContext;
  readonly #sender: Sender;

  constructor(context: EngineContext, sender: Sender) {
    this.#context = context;
    this.#sender = sender;
  }

  /** `undefined`: overtaken by another commit. @throws {StoreFault} nothing was stored. @throws {FateUnknown} */
  async create(
    draft: Draft,
    run: ResolvedRun,
    keys: readonly string[],
    extras: Extras,
  ): Promise<NewOperation | undefined> {
    const context = this.#context;
    // What is observed, or wanted once more, takes the place of nothing.
    const isBeside = extras.observed !== undefined || extras.question === 'again';
    const step = isBeside ? undefined : await this.stepOf(draft, run);
    const judged =
      draft.facts.policy === undefined ? undefined : await judgeProposal(context, draft, run.reference);
    const verdict = judged?.verdict;
    const seen = await this.#seen(draft, verdict, extras);
    const made = this.#proposal(draft, run, keys[0] ?? '', extras, {
      supersedes: step?.earlier?.operation.id,
      verdict,
    });
    const mayBeLost =
      extras.observed === undefined && this.#sender.principals.mayBeLost(draft.call.requester);
    const isHeldBack = typeof mayBeLost === 'boolean' ? mayBeLost : await mayBeLost;
    // What `sendBy` and the absence of a result are counted from: after everything that took time.
    const at = context.environment.now();
    const withdrawn = await this.#withdrawn(step, made.proposal.id, at);
    const locks = merged(
      await readLocks(context.store, context.tenant, made.proposal.target?.locks),
      withdrawn.locks,
    );
    const stopped = context.stops.over(made.proposal);
    const ended = extras.ended ?? (stopped && whyOf(stopped));
    // What is copied comes last: members that are added to a copy cost many times as much.
    const begun = { seen, predecessor: step?.earlier, verdict, isHeldBack, ...made };
    const first = this.#firstEvents(
      draft,
      begun,
      locks,
      ended === undefined ? extras : { ...extras, ended },
      at,
    );
    const attempt = first.events.find((event) => event.type === 'attempt_started');
    context.reached('before_propose_commit');
    const notedAt = context.environment.monotonic();
    const stopsVersion = context.stops.version;
    const { operation, writes } = writesOf({
      before: undefined,
      events: first.events,
      after: first.operation,
      locks,
      worker: context.worker,
    });
    const superseded = withdrawn.writes.filter((write) => !writes.some((own) => own.stream === write.stream));
    const stream = streamOf(operation.id);
    const entryKey = crossRunKey(draft.crossRunHash, at, made.proposal.intentKey);
    // Carried from before it can be seen: nobody may take an attempt that is about to be sent for an orphan.
    if (attempt !== undefined) this.#sender.carry(operation.id);
    const isStored = await this.#store(operation.id, {
      tenant: context.tenant,
      at,
      writes: [
        ...writes,
        ...superseded,
        ...turnedPage(extras.judgedBy, context.worker, superseded),
        ...(run.write === undefined ? [] : [run.write]),
        ...(extras.beside === undefined ? [] : [extras.beside(operation.id)]),
        ...(judged?.writes(operation.id) ?? []),
      ],
      claims: [{ key: made.proposal.intentKey, sequence: extras.sequence, holder: stream }],
      documents: [...made.documents, ...first.documents],
      crossRun: [
        ...(entryKey === undefined ? [] : [{ key: entryKey, stream }]),
        ...openEntries(undefined, operation),
      ],
      requires: [
        { stream: STOPS_STREAM, version: stopsVersion },
        ...(run.requires === undefined ? [] : [run.requires]),
        ...requirementOf(extras.judgedBy),
      ],
    });
    if (!isStored) {
      await context.stops.refresh();
      return undefined;
    }
    context.reached('proposed');
    const record: OperationRecord = { version: 1, operation };
    context.waiters.publish(record);
    if (attempt === undefined) return { record };
    const started: StartedAttempt = {
      record,
      attempt: attempt.attempt.id,
      payload: made.payload,
      facts: draft.facts,
      notedAt,
      stopsVersion,
      ...(draft.call.meta === undefined ? {} : { meta: draft.call.meta }),
      ...(draft.call.via === undefined ? {} : { via: draft.call.via }),
    };
    return { record, started };
  }

  /**
   * Stores the first change of an operation. After a COMMIT of unknown fate the row is read again by the same
   * operation id on a new connection: it is there, or nothing was recorded.
   */
  async #store(id: string, change: Change): Promise<boolean> {
    let isStored = false;
    try {
      const [result] = await this.#context.store.commit([change]);
      isStored = result?.outcome === 'stored';
    } catch (cause) {
      if (!(cause instanceof StoreFault) || cause.fate !== 'unknown') throw cause;
      isStored = await this.#isThere(id, cause);
      if (!isStored) throw new StoreFault(cause.code, cause.message, { fate: 'not_stored', cause });
    } finally {
      if (!isStored) this.#sender.drop(id);
    }
    return isStored;
  }

  async #isThere(id: string, cause: StoreFault): Promise<boolean> {
    try {
      return (await readOperation(this.#context, id)) !== undefined;
    } catch {
      throw new FateUnknown(id, cause);
    }
  }

  #proposal(
    draft: Draft,
    run: ResolvedRun,
    key: string,
    extras: Extras,
    judged: { readonly supersedes?: string | undefined; readonly verdict?: Verdict | undefined },
  ) {
    const context = this.#context;
    const { supersedes, verdict } = judged;
    const { call, facts } = draft;
    const id = newId(context, 'op');
    const stamp = facts.stamp === undefined ? undefined : id;
    const payload = payloadText(draft, id);
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
    const content = (label: string, text: string | undefined): ContentDigest | undefined => {
      if (text === undefined || text === '') return undefined;
      const document = contentDocument(label, id, Buffer.from(text, 'utf8'), salt());
      documents.push(document);
      return document.digest;
    };
    const isAskedAbout = facts.class === 'unclassified' || facts.changedFrom !== undefined;
    const toolDocument = content('tool', isAskedAbout ? call.toolDefinition : undefined);
    const reason = content('reason', extras.reason);
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
      crossRunHash: draft.crossRunHash,
      sequence: extras.sequence,
      argumentsDigest: draft.argumentsDigest,
      payload: {
        document: payloadDocument.digest,
        sha256: payloadSha256,
        bytes: bytes.length,
        ...(facts.operation?.http === undefined ? {} : { holds: 'http_request' as const }),
      },
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
      ...(verdict === undefined ? {} : { policy: recordedVerdict(verdict) }),
      ...(extras.previous === undefined ? {} : { previous: extras.previous }),
      ...(extras.observed === undefined ? {} : { observed: extras.observed }),
      ...(facts.changedFrom === undefined ? {} : { classBefore: facts.changedFrom }),
      ...(toolDocument === undefined ? {} : { toolDocument }),
      ...(reason === undefined ? {} : { reason }),
      ...(extras.askedBy === undefined ? {} : { askedBy: extras.askedBy }),
      ...(call.references === undefined ? {} : { references: call.references }),
    };
    return { proposal, payload, documents };
  }

  /** Proposed, allowed or asked, and started where nothing stands against it. */
  #firstEvents(
    draft: Draft,
    { isHeldBack, payload, predecessor, proposal, seen, verdict }: Begun,
    locks: LockRecords,
    extras: Extras,
    at: number,
  ): FirstEvents {
    const context = this.#context;
    // At most one of the two decisions below opens it.
    const review = newReview(context, at);
    const command: Command = {
      type: 'propose',
      proposal,
      facts: draft.facts,
      newReview: review,
      verdict,
      ...(extras.question === undefined ? {} : { question: extras.question }),
      ended: extras.ended,
    };
    const proposed = decide(undefined, command, at);
    const operation = decided(undefined, proposed);
    if (operation === undefined || proposed.events === undefined) {
      throw new Error('Assertion: a proposal of nothing before it was refused.');
    }
    const { reviews } = this.#sender;
    if (operation.stage === 'awaiting_approval' && seen !== undefined) {
      const shown = { operation, payload, target: targetWords(draft.target), facts: draft.facts };
      const prepared = reviews.prepare(review, shown, seen);
      const asked = decide(undefined, { ...command, newReview: prepared.review }, at);
      const after = decided(undefined, asked);
      if (asked.events === undefined || after === undefined)
        throw new Error('Assertion: the same proposal was refused.');
      return { events: asked.events, operation: after, documents: prepared.documents };
    }
    if (operation.stage !== 'ready') return { events: proposed.events, operation, documents: [] };
    const destination = context.destinations.get(proposal.destination);
    const isAnswering = extras.observed !== undefined || this.#sender.circuits.isClosed(proposal.destination);
    // A place is claimed with a count of those that are taken: the sender does that too.
    const isBounded = extras.observed === undefined && allowanceOf(draft.facts) !== undefined;
    // Whoever is to be asked, and what must have happened before, are read before it is sent, by the sender as well.
    const isAsked = (verdict?.requires.length ?? 0) > 0 || draft.facts.policy?.access !== undefined;
    const isConnected =
      destination?.isConnected() === true && isAnswering && !isBounded && !isAsked && !isHeldBack;
    // Connecting takes time that no claim should be held for: the sender does it, and claims then.
    if (!isConnected && extras.goOn === undefined)
      return { events: proposed.events, operation, documents: [] };
    const lock =
      extras.observed === undefined
        ? locks.find((one) => lockedBy(one.state, operation.id) !== undefined)
        : undefined;
    const scope = scopeNow(context, draft.facts);
    const started = decide(
      operation,
      {
        type: 'start_attempt',
        attempt: {
          ...(scope === undefined ? {} : { scope }),
          id: newId(context, 'att'),
          worker: context.worker,
          startedAt: at,
          sendBy: at + context.settings.bounds.sendByMs,
        },
        newReview: review,
        conditions: {
          at,
          facts: draft.facts,
          bounds: context.settings.bounds,
          digest: proposal.digest,
          connected: isConnected,
          connectionDetail: '',
          verdict,
          goOn: extras.goOn === undefined ? undefined : { operation: extras.goOn, standing: 'asked' },
          lockedBy: lock === undefined ? undefined : lockedBy(lock.state, operation.id),
          unsettledPredecessor:
            extras.observed === undefined && predecessor !== undefined && isUnsettled(predecessor.operation)
              ? predecessor.operation.id
              : undefined,
        },
      },
      at,
    );
    if (started.events === undefined) return { events: proposed.events, operation, documents: [] };
    return {
      documents: [],
      events: [...proposed.events, ...started.events],
      operation: evolveAll(operation, started.events) ?? operation,
    };
  }

  /** Where a person is asked, how the target stands; read before anything is recorded, so that it is in the same commit. */
  async #seen(
    { call, facts }: Draft,
    verdict: Verdict | undefined,
    extras: Extras,
  ): Promise<SeenState | undefined> {
    if (extras.observed !== undefined) return undefined;
    const isAsked = extras.question !== undefined || questionNow(facts, verdict) !== undefined;
    return isAsked ? this.#sender.reviews.seen(facts, call.arguments) : undefined;
  }

  // ── Changed proposals on a declared step ─────────────────────────────────────────────────────────────────

  async stepOf(draft: Draft, run: ResolvedRun): Promise<StepPointer | undefined> {
    const context = this.#context;
    const stream = stepName(context.secret, context.tenant, run.reference, draft.call.tool, draft.locks);
    if (stream === undefined) return undefined;
    const [row] = await context.store.read(context.tenant, [stream]);
    if (row === undefined) return { stream, version: 0, earlier: undefined };
    const id = (row.state as { readonly operation: string }).operation;
    const earlier = await readOperation(context, id);
    return { stream, version: row.version, earlier };
  }

  /** The step's pointer, moved to an operation that is proposed on it anew. */
  async pointerTo(stream: string, operation: string): Promise<StreamWrite> {
    const [row] = await this.#context.store.read(this.#context.tenant, [stream]);
    return { stream, expectedVersion: row?.version ?? 0, events: [], state: { operation } };
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
      locks: locks.map((lock) => ({ ...lock, state: lockAfter(lock.state, operation, false) })),
    };
  }

  // ── Arguments that do not fit the tool ───────────────────────────────────────────────────────────────────

  /** Recorded as not sent; no claim is taken, so that the corrected or repeated call is judged by itself. */
  async refuseArguments(draft: Draft, run: ResolvedRun, problem: string): Promise<OperationRecord> {
    const context = this.#context;
    const at = context.environment.now();
    const made = this.#proposal(draft, run, keysOf(context, draft, run)[0] ?? '', { sequence: 0 }, {});
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
}

function requirementOf(judgedBy: OperationRecord | undefined): readonly Requirement[] {
  return judgedBy === undefined
    ? []
    : [{ stream: streamOf(judgedBy.operation.id), version: judgedBy.version }];
}

/**
 * Where the earlier one could have been asked for anew instead, it moves on by a version without a change: of two calls
 * that come at once, one with its text and one with another, the second to be stored is judged anew.
 */
function turnedPage(
  judgedBy: OperationRecord | undefined,
  worker: string,
  others: readonly StreamWrite[],
): readonly StreamWrite[] {
  if (judgedBy === undefined || !mayBeAskedAnew(judgedBy.operation)) return [];
  const { writes } = writesOf({ before: judgedBy, events: [], locks: [], worker });
  return writes.filter((write) => !others.some(({ stream }) => stream === write.stream));
}

/** Locks as they are once an earlier operation of the same commit has left their lines. */
function merged(locks: LockRecords, changed: LockRecords): LockRecords {
  return locks.map((lock) => changed.find((other) => other.stream === lock.stream) ?? lock);
}
