// What persons do with the queue: each act on operations as they were seen, recorded with a name and its strength.
// What has changed since it was seen is left out and told; an act that was done already is not done again.

import { mayBeListed } from '../core/authority.ts';
import { causeOf } from '../core/cause.ts';
import { type Command, decide, decided, type RefusalCode } from '../core/decide.ts';
import { type FrozenList, frozenList, type ListedOperation } from '../core/frozen-list.ts';
import type { Resolution } from '../core/lifecycle.ts';
import {
  type DecisionStrength,
  isStatementCurrent,
  type Operation,
  type OperationId,
} from '../core/operation.ts';
import { refusedOperator } from '../core/policy.ts';
import { labelOf } from '../core/wording.ts';
import type { ContentDocument, Json } from '../store/port.ts';
import type { CauseClaim, CauseClaims } from './cause-claims.ts';
import { type EngineContext, newReview, SALT_BYTES } from './context.ts';
import type { Queue } from './queue.ts';
import { contentDocument, type OperationRecord, readOperation, streamOf } from './records.ts';
import { listStream, shownIn } from './run-lists.ts';
import { takeStep } from './steps.ts';

export interface Actor {
  readonly by: string;
  /** Who it is known to be, as rules name principals; `by` where the door knows no more. */
  readonly principal?: string;
  readonly strength: DecisionStrength;
}

export interface ActMode {
  /** Nothing is recorded: what would be done is told, each operation as it would be. */
  readonly isTrial?: boolean;
}

export interface ActTarget {
  readonly operation: OperationId;
  /** The version that was seen; absent: as it is now. */
  readonly version?: number;
}

export type LeftOut = {
  readonly operation: OperationId;
} /** `state`: how it stands, in words, where that is in the way. */ & (
  | { readonly why: RefusalCode | 'not_found' | 'no_lookup'; readonly state?: string }
  | { readonly why: 'claimed'; readonly claim: CauseClaim }
);

export interface ActReport {
  readonly done: readonly Operation[];
  /** The same person had done the same before. */
  readonly already: readonly Operation[];
  readonly leftOut: readonly LeftOut[];
}

/** What is recorded of one decision on many operations. */
interface ListDecision extends Actor {
  readonly act: 'renew';
  readonly at: number;
  readonly operations: readonly ListedOperation[];
}

/** One act, as it is done with each operation of a list. */
interface Act extends ActMode {
  readonly command: (operation: Operation, at: number) => Command;
  readonly isDone: (operation: Operation) => boolean;
  readonly document?: (operation: Operation) => ContentDocument;
  /** Why nothing would come of it. */
  readonly hinders?: (operation: Operation) => Promise<'no_lookup' | undefined>;
  /** Reads only: nobody's claim is in its way, and it does not matter what has changed. */
  readonly isHarmless?: boolean;
}

/** They change nothing of what a person looks at before acting. */
const NO_NEWS: readonly string[] = ['replay_seen', 'delivered'];

export class QueueActs {
  readonly #context: EngineContext;
  readonly #claims: CauseClaims;
  readonly #queue: Pick<Queue, 'isHeld'>;

  constructor(context: EngineContext, queue: Queue) {
    this.#context = context;
    this.#claims = queue.claims;
    this.#queue = queue;
  }

  /** States what a person found; it never changes the effect (D4). */
  state(
    targets: readonly ActTarget[],
    finding: { readonly resolution: Resolution; readonly looked: string },
    actor: Actor,
    mode: ActMode = {},
  ): Promise<ActReport> {
    const { by, strength } = actor;
    const { resolution } = finding;
    const documents = new Map<string, ContentDocument>();
    const document = ({ id }: Operation): ContentDocument => {
      const made = documents.get(id) ?? this.#statement(id, finding.looked);
      documents.set(id, made);
      return made;
    };
    return this.#act(targets, actor, {
      ...mode,
      document,
      command: (operation, at) => ({
        type: 'state_finding',
        stated: { resolution, by, at, strength, looked: document(operation).digest },
      }),
      isDone: (operation) =>
        isStatementCurrent(operation) &&
        operation.resolution?.resolution === resolution &&
        operation.resolution.by === by,
    });
  }

  /** Opens a review that shows what is not known and what was stated; nothing is sent without its approval. */
  sendAgain(targets: readonly ActTarget[], actor: Actor, mode: ActMode = {}): Promise<ActReport> {
    const { by, strength } = actor;
    return this.#act(targets, actor, {
      ...mode,
      command: (_operation, at) => ({
        type: 'order_again',
        by,
        strength,
        newReview: newReview(this.#context, at),
      }),
      isDone: ({ orderedBy, stage }) => stage === 'awaiting_approval' && orderedBy === by,
    });
  }

  /** Closed by name, with what is not known left unknown for ever. */
  close(targets: readonly ActTarget[], actor: Actor, mode: ActMode = {}): Promise<ActReport> {
    const { by, strength } = actor;
    return this.#act(targets, actor, {
      ...mode,
      command: () => ({ type: 'give_up', by, strength }),
      isDone: ({ stage, why }) => stage === 'closed' && why?.code === 'given_up' && why.by === by,
    });
  }

  /** The wish alone is recorded: the process that holds the destination looks. */
  lookUp(targets: readonly ActTarget[], actor: Actor, mode: ActMode = {}): Promise<ActReport> {
    const { by } = actor;
    return this.#act(targets, actor, {
      ...mode,
      command: () => ({ type: 'order_look_up', by }),
      isDone: ({ stage, why }) =>
        stage === 'checking' && why?.code === 'looking_up' && why.nextAt <= this.#context.environment.now(),
      isHarmless: true,
      // A person could say nothing of it any more until a gateway runs.
      hinders: async ({ destination, why }) =>
        why?.code === 'no_lookup' && !(await this.#queue.isHeld(destination)) ? 'no_lookup' : undefined,
    });
  }

  /**
   * Approves anew what was never sent and whose approvals have expired: one decision, on one frozen list. It is
   * recorded once, under the list's digest; who decides the same list again finishes the first decision.
   */
  async renew(
    targets: readonly ActTarget[],
    actor: Actor,
    mode: ActMode = {},
  ): Promise<ActReport & { readonly list: FrozenList }> {
    const records = await Promise.all(
      targets.map(({ operation }) => readOperation(this.#context, operation)),
    );
    const list = frozenList(
      records.flatMap((record, index) => {
        const seen = targets[index]?.version ?? record?.version;
        return record === undefined || seen === undefined
          ? []
          : [{ operation: record.operation.id, version: seen }];
      }),
    );
    const now = this.#context.environment.now();
    const mayAny = await Promise.all(
      records.map((record, index) => this.#mayDecide(record, targets[index]?.version, actor, now, renewal)),
    );
    // A decision that would be taken on nothing is none.
    const isTaken = mayAny.includes(true) && mode.isTrial !== true;
    const decision = isTaken ? await this.#decided(list, actor, now) : { ...actor, at: now };
    const report = await this.#act(targets, actor, {
      ...mode,
      command: (operation) => renewal(operation, { ...decision, list: list.digest }),
      isDone: ({ review }) => review?.decision?.list === list.digest,
    });
    return { ...report, list };
  }

  /**
   * One decision for a list that was shown: each operation as it was then. What has changed since is left out, and what
   * was denied by itself stays so; neither drops nor releases the others.
   */
  async approveShown(list: FrozenList, actor: Actor, mode: ActMode = {}): Promise<ActReport> {
    const now = this.#context.environment.now();
    const mayAny = await Promise.all(
      list.operations.map(async ({ operation: id, version }) =>
        this.#mayDecide(await readOperation(this.#context, id), version, actor, now, listApproval),
      ),
    );
    const isTaken = mayAny.includes(true) && mode.isTrial !== true;
    const decision = isTaken ? await this.#decidedShown(list, actor, now) : { ...actor, at: now };
    return this.#act(list.operations, actor, {
      ...mode,
      command: (operation) => listApproval(operation, { ...decision, list: list.digest }),
      isDone: ({ review }) => review?.decision?.list === list.digest,
    });
  }

  async #mayDecide(
    record: OperationRecord | undefined,
    seen: number | undefined,
    actor: Actor,
    at: number,
    command: typeof renewal,
  ): Promise<boolean> {
    if (record === undefined || (await this.#hasChanged(record, seen))) return false;
    if ((await this.#claimOfAnother(record.operation, actor.by)) !== undefined) return false;
    const { operation } = record;
    return decide(operation, command(operation, { ...actor, at, list: '' }), at).events !== undefined;
  }

  /** The one decision on a list that was shown: the first stands, whoever finishes it. */
  async #decidedShown(
    { digest }: FrozenList,
    { by, strength }: Actor,
    at: number,
  ): Promise<Actor & { readonly at: number }> {
    const { store, tenant } = this.#context;
    const stream = listStream(digest);
    const [record] = await store.read(tenant, [stream]);
    if (record === undefined) throw new Error(`Assertion: the list ${digest} was not shown.`);
    const before = shownIn(record).decision;
    if (before !== undefined) return before as unknown as Actor & { readonly at: number };
    const decision = { by, strength, at };
    const [result] = await store.commit([
      {
        tenant,
        at,
        writes: [
          {
            stream,
            expectedVersion: record.version,
            events: [{ type: 'list_decided', act: 'approve', ...decision }],
            state: { ...(record.state as object), decision },
          },
        ],
      },
    ]);
    return result?.outcome === 'stored'
      ? decision
      : this.#decidedShown({ digest, operations: [] }, { by, strength }, at);
  }

  /** The one row of a decision on a list: the first decision stands. */
  async #decided(
    { digest, operations }: FrozenList,
    { by, principal, strength }: Actor,
    at: number,
  ): Promise<ListDecision> {
    const { store, tenant } = this.#context;
    const stream = `list:${digest}`;
    const decision: ListDecision = {
      act: 'renew',
      by,
      ...(principal === undefined ? {} : { principal }),
      strength,
      at,
      operations,
    };
    const event = { type: 'list_decided', ...decision };
    const [result] = await store.commit([
      {
        tenant,
        at,
        writes: [
          {
            stream,
            expectedVersion: 0,
            events: [event as unknown as Json],
            state: decision as unknown as Json,
          },
        ],
      },
    ]);
    if (result?.outcome === 'stored') return decision;
    const [record] = await store.read(tenant, [stream]);
    return record?.state as unknown as ListDecision;
  }

  #statement(operation: string, looked: string): ContentDocument {
    const salt = this.#context.environment.random(SALT_BYTES);
    return contentDocument('statement', operation, Buffer.from(looked, 'utf8'), salt);
  }

  async #act(targets: readonly ActTarget[], actor: Actor, act: Act): Promise<ActReport> {
    const done: Operation[] = [];
    const already: Operation[] = [];
    const leftOut: LeftOut[] = [];
    for (const target of targets) {
      const result = await this.#one(target, actor, act);
      if ('why' in result) leftOut.push(result);
      else if (result.isNew) done.push(result.after);
      else already.push(result.after);
    }
    return { done, already, leftOut };
  }

  async #one(
    { operation: id, version }: ActTarget,
    { by, principal = by }: Actor,
    act: Act,
  ): Promise<LeftOut | { readonly isNew: boolean; readonly after: Operation }> {
    const context = this.#context;
    for (;;) {
      const record = await readOperation(context, id);
      if (record === undefined) return { operation: id, why: 'not_found' };
      if (act.isDone(record.operation)) return { isNew: false, after: record.operation };
      if (act.isHarmless !== true) {
        if (await this.#hasChanged(record, version)) return { operation: id, why: 'changed' };
        const claim = await this.#claimOfAnother(record.operation, by);
        if (claim !== undefined) return { operation: id, why: 'claimed', claim };
        if (refusedOperator(record.operation.policy, principal) !== undefined)
          return { operation: id, why: 'not_an_operator' };
      }
      const hindered = await act.hinders?.(record.operation);
      if (hindered !== undefined) return { operation: id, why: hindered };
      if (act.isTrial === true) return this.#tried(record.operation, act);
      const document = act.document?.(record.operation);
      const result = await takeStep(context, {
        id,
        from: record,
        onlyAt: record.version,
        command: (operation) => act.command(operation, context.environment.now()),
        ...(document === undefined ? {} : { documents: [document] }),
      });
      if (result.stored) return { isNew: true, after: result.record.operation };
      // Somebody came between the reading and the commit: judged anew, as it is now.
      if (result.refusal !== 'changed') return refused(record.operation, result.refusal);
    }
  }

  #tried(
    operation: Operation,
    { command }: Act,
  ): LeftOut | { readonly isNew: boolean; readonly after: Operation } {
    const at = this.#context.environment.now();
    const decision = decide(operation, command(operation, at), at);
    const after = decided(operation, decision);
    if (after !== undefined) return { isNew: true, after };
    return refused(operation, decision.refusal ?? 'nothing_to_do');
  }

  /** Whether anything that a person would want to know of has happened since that version. */
  async #hasChanged({ operation, version }: OperationRecord, seen: number | undefined): Promise<boolean> {
    if (seen === undefined || seen === version) return false;
    if (seen > version) return true;
    const { store, tenant } = this.#context;
    const history = await store.history(tenant, streamOf(operation.id));
    return history.some(
      (stored) =>
        stored.version > seen && !NO_NEWS.includes((stored.event as { readonly type: string }).type),
    );
  }

  async #claimOfAnother(operation: Operation, by: string): Promise<CauseClaim | undefined> {
    const cause = causeOf(operation)?.id;
    if (cause === undefined) return undefined;
    const claim = (await this.#claims.of([cause])).get(cause);
    return claim === undefined || claim.by === by ? undefined : claim;
  }
}

function refused(operation: Operation, why: RefusalCode): LeftOut {
  return { operation: operation.id, why, state: labelOf(operation) };
}

/** Only what was never sent is renewed; about anything else nobody is asked here. */
function renewal(
  { digest, effect, review }: Operation,
  decision: Omit<NonNullable<NonNullable<Operation['review']>['decision']>, 'kind'>,
): Command {
  const { at, by, list, principal, strength } = decision;
  return {
    type: 'decide_review',
    review: effect === 'not_sent' && review?.because?.code === 'approval_expired' ? review.id : '',
    digest,
    decision: {
      kind: 'approved',
      by,
      ...(principal === undefined ? {} : { principal }),
      at,
      strength,
      ...(list === undefined ? {} : { list }),
    },
  };
}

/** Of a list, only what is asked about the action alone; about anything else nobody is asked here. */
function listApproval(operation: Operation, decision: Parameters<typeof renewal>[1]): Command {
  const { digest, review, stage } = operation;
  const { at, by, list, strength } = decision;
  const isAsked = stage === 'awaiting_approval' && review !== undefined && mayBeListed(review.question);
  return {
    type: 'decide_review',
    review: isAsked ? review.id : '',
    digest,
    decision: { kind: 'approved', by, at, strength, ...(list === undefined ? {} : { list }) },
  };
}
