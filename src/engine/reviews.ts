// What a person is shown before deciding: the target is read, the text is made of the frozen bytes, and both are stored in
// the commit that opens the review. Before the write is sent the target is read again.

import type { SendingConditions } from '../core/authority.ts';
import type { JsonObject } from '../core/canonical.ts';
import type { ToolFacts } from '../core/contract.ts';
import type { NewReview } from '../core/decide.ts';
import type { Operation } from '../core/operation.ts';
import { reviewText, type SeenState } from '../core/review-text.ts';
import { type TouchedState, targetChange } from '../core/touched-state.ts';
import type { ContentDocument } from '../store/port.ts';
import type { Checks } from './checks.ts';
import { type EngineContext, SALT_BYTES } from './context.ts';
import { contentDocument, isUnaltered, streamOf } from './records.ts';

/** What a review is opened with, and what is stored beside it. */
export interface PreparedReview {
  readonly review: NewReview;
  readonly documents: readonly ContentDocument[];
}

export interface ShownWrite {
  readonly operation: Operation;
  readonly payload: string;
  readonly target: string | undefined;
  readonly facts: ToolFacts;
}

export class Reviews {
  readonly #context: EngineContext;
  readonly #checks: Checks;

  constructor(context: EngineContext, checks: Checks) {
    this.#context = context;
    this.#checks = checks;
  }

  /** How the target stands now, by the contract's own question. */
  async seen(facts: ToolFacts, args: JsonObject): Promise<SeenState> {
    return this.#checks.present(facts, args);
  }

  /** The text and the reading of a review that is about to be opened. */
  prepare(
    review: NewReview,
    { facts, operation, payload, target }: ShownWrite,
    seen: SeenState,
  ): PreparedReview {
    const { environment, settings } = this.#context;
    const at = environment.now();
    const { bounds } = settings;
    const lines = reviewText({ operation, payload, target, facts, seen, bounds, at });
    const shown = this.#document('review', operation.id, lines.join('\n'));
    if (!seen.read) return { review: { ...review, shown: shown.digest }, documents: [shown] };
    const before = this.#document('before', operation.id, JSON.stringify(seen.state));
    return {
      review: { ...review, shown: shown.digest, seen: { document: before.digest, at: seen.at } },
      documents: [shown, before],
    };
  }

  /**
   * Whether what an approval was given on is so still. `no_answer`: its destination did not say, and nothing is sent
   * before it does.
   */
  async recheck(
    { effect, id, review }: Operation,
    facts: ToolFacts,
    args: JsonObject,
  ): Promise<{ readonly seen: SeenState; readonly targetNow: SendingConditions['targetNow'] } | undefined> {
    // Of what may have happened already, our own write may be the change.
    if (review?.seen === undefined || review.decision?.kind !== 'approved' || effect === 'unknown')
      return undefined;
    const [document] = await this.#context.store.documents(this.#context.tenant, [
      { owner: streamOf(id), digest: review.seen.document },
    ]);
    const reviewed = document === undefined ? undefined : parsed(document);
    const seen = await this.seen(facts, args);
    if (!seen.read || reviewed === undefined) return { seen, targetNow: { code: 'target_unreadable' } };
    return { seen, targetNow: targetChange(reviewed, seen.state) };
  }

  #document(label: string, owner: string, text: string): ContentDocument {
    const salt = this.#context.environment.random(SALT_BYTES);
    return contentDocument(label, owner, Buffer.from(text, 'utf8'), salt);
  }
}

/** `undefined` where it was altered behind our back: then nobody can tell, and nothing is sent. */
function parsed(document: ContentDocument): TouchedState | undefined {
  if (!isUnaltered(document)) return undefined;
  return JSON.parse(Buffer.from(document.bytes).toString('utf8')) as TouchedState;
}
