// Taking an approval back: no attempt starts under it any more, and what has left is not recalled (D9).

import type { RefusalCode } from '../core/decide.ts';
import type { DecisionStrength, Operation, OperationId, Revocation } from '../core/operation.ts';
import { type EngineContext, newReview, SALT_BYTES } from './context.ts';
import { DIGEST_PREFIX_MIN, wholeDigest } from './given-digest.ts';
import { contentDocument, readOperation, streamOf } from './records.ts';
import { takeStep } from './steps.ts';

export interface RevokeAsk {
  readonly operation: OperationId;
  /** The operation's digest, or at least its first twelve digits. */
  readonly digest: string;
  readonly by: string;
  readonly strength: DecisionStrength;
  readonly comment?: string;
}

export type RevokeResult =
  | {
      readonly revoked: true;
      readonly operation: Operation;
      readonly revocation: Revocation;
      /** It had been revoked before: the first revocation stands, and nothing was recorded now. */
      readonly isRepeat: boolean;
    }
  | {
      readonly revoked: false;
      readonly refusal: RefusalCode | 'not_found' | 'digest_too_short';
      readonly operation?: Operation;
    };

export class Revocations {
  readonly #context: EngineContext;

  constructor(context: EngineContext) {
    this.#context = context;
  }

  /** Anybody who may decide may revoke, however weakly it is known who it is: it only makes less happen. */
  async revoke({ by, comment: words, digest, operation: id, strength }: RevokeAsk): Promise<RevokeResult> {
    const context = this.#context;
    const record = await readOperation(context, id);
    if (record === undefined) return { revoked: false, refusal: 'not_found' };
    if (digest.length < DIGEST_PREFIX_MIN)
      return { revoked: false, refusal: 'digest_too_short', operation: record.operation };
    const at = context.environment.now();
    const salt = context.environment.random(SALT_BYTES);
    const comment =
      words === undefined ? undefined : contentDocument('comment', id, Buffer.from(words, 'utf8'), salt);
    const revocation: Revocation = {
      by,
      at,
      strength,
      ...(comment === undefined ? {} : { comment: comment.digest }),
    };
    const result = await takeStep(context, {
      id,
      from: record,
      command: ({ review }) => ({
        type: 'revoke_approval',
        digest: review === undefined ? digest : wholeDigest(review, digest),
        revocation,
        newReview: newReview(context, at),
      }),
      ...(comment === undefined ? {} : { documents: [comment] }),
    });
    const { operation } = result.record;
    if (result.stored) return { revoked: true, operation, revocation, isRepeat: false };
    if (result.refusal !== 'already_revoked') return { revoked: false, refusal: result.refusal, operation };
    const first = await this.#first(operation);
    return { revoked: true, operation, revocation: first ?? revocation, isRepeat: true };
  }

  /** The newest revocation of its history. */
  async #first({ id, review }: Operation): Promise<Revocation | undefined> {
    if (review?.revoked !== undefined) return review.revoked;
    const { store, tenant } = this.#context;
    const events = await store.history(tenant, streamOf(id));
    const newest = events.findLast(({ event }) => (event as { readonly type: string }).type === 'revoked');
    return (newest?.event as { readonly revocation: Revocation } | undefined)?.revocation;
  }
}
